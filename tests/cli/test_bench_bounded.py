"""`cqels bench bounded`: counters, the join of all rows and the kernel by hand find the same, and memory is flat."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cqels_py.suites import bounded
from tests.cli.conftest import Cqels


def test_counters_are_measured_over_time(cqels: Cqels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "_BATCH", 1_000)
    file = tmp_path / "figures.json"
    finished = cqels("bench", "bounded", "--triples", 8_000, "--json", file)
    assert finished.status == 0, finished.err
    figures = json.loads(file.read_text())["figures"]
    assert figures["counters"] == 5
    assert min(figures["from_texts"], figures["kernel"], figures["by_hand"]) > 0
    # The first batches find how many rows an instant has; after that nothing grows, while the join of all rows does.
    assert len({each["nbytes"] for each in figures["points"][1:]}) == 1
    assert figures["all_rows"][-1]["nbytes"] > 2 * figures["all_rows"][0]["nbytes"]


def test_different_answers_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded.by_hand, "readings_above_thresholds", lambda *arguments: 1)
    with pytest.raises(bounded.UsageError, match="the kernel by hand finds"):
        bounded.measure(500, 1, lambda text: None)
