"""`cqels bench patterns`: MATCH, the kernel by hand and CORE find the same, and the steps of each are counted."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from cqels_py.suites import patterns
from tests.cli.conftest import Cqels


def test_all_cases_are_measured(cqels: Cqels, tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    finished = cqels("bench", "patterns", "--triples", 3_000, "--window", "20,100", "--json", file)
    assert finished.status == 0, finished.err
    assert "CORE is left out: --core PYTHON" in finished.err
    figures = json.loads(file.read_text())["figures"]
    assert [(each["case"], each["window"]) for each in figures] == [
        (case.name, window) for window in (20, 100) for case in patterns.CASES
    ]
    for each in figures:
        assert each["matches"] > 0
        assert min(each["to_json"], each["from_texts"], each["from_ids"], each["kernel"], each["push_us"]) > 0
        assert (each["by_hand"] is not None) == (each["case"] == patterns.CASES[0].name)
        # All events have the key: no step and no delay depends on the window.
        assert each["most_steps"] <= 2
        assert each["most_between"] <= 4
        assert each["case"] in finished.out


def test_a_python_without_core_is_said(cqels: Cqels) -> None:
    finished = cqels("bench", "patterns", "--triples", 90, "--core", sys.executable)
    assert finished.status == 0
    assert f"CORE is left out: {sys.executable} has no package pycer" in finished.err


def test_different_answers_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns.by_hand, "three_in_sequence", lambda *arguments: 1)
    with pytest.raises(patterns.UsageError, match="the kernel by hand finds 1 matches, MATCH"):
        patterns.measure(patterns.CASES[0], 20, 2_000, 1, None)
