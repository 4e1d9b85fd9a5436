"""The benchmark of single pushes runs, compares all answers, and stops where one differs."""

from __future__ import annotations

import json
from pathlib import Path

import pyoxigraph
import pytest

from bench.suites import pushes
from bench.suites.stepping import Disagreement


class Forgetful(pushes.FilledAnew):
    """A loop that forgets half of the window."""

    name = "forgetful"

    def contents(self, start: int) -> pyoxigraph.Store:
        return super().contents(start + 5_000_000)


def test_it_compares_the_answers_of_all(tmp_path: Path) -> None:
    assert pushes.main(["--quick", "--output", str(tmp_path)]) == 0
    found = json.loads((tmp_path / "pushes.json").read_text())
    cases = found["figures"]["cases"]
    assert [case["question"] for case in cases] == [each.name for each in pushes.QUESTIONS for _ in range(3)]
    # Ten steps fill the window, one more is the end of the first rounds, and two are measured.
    assert {case["answers"] for case in cases} == {13}
    assert all(case["push"][0] > 0 and case["answering"][0] >= case["waiting"][0] for case in cases)


def test_another_answer_stops_it() -> None:
    with pytest.raises(Disagreement, match=r"engine, push and forgetful differ at 6 s: AVG by group"):
        pushes.measure(pushes.QUESTIONS[0], (pushes.Pushed, Forgetful), rounds=1, steps=1)
