"""The start-up benchmark runs, and writes the figures that it prints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.suites import startup
from tests.support.amount import long


@long
def test_it_measures_warm_starts_of_every_query_by_command_and_program(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert startup.main(["--quick", "--output", str(tmp_path)]) == 0
    found = json.loads((tmp_path / "startup.json").read_text())
    cases = found["figures"]["cases"]
    assert found["quick"] and [case["streams"] for case in cases] == ["a", "a", "abc", "abc"]
    assert all(len(case["warm"]) == 1 and case["cold"] == [] for case in cases)
    printed = capsys.readouterr().out
    assert f"{cases[0]['warm'][0]:.2f}" in printed
