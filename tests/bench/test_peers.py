"""Contenders that answer at each step: they agree, disagreement is detected, and the result file is right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.suites import contenders, peers, slides
from bench.suites.contenders import PyoxigraphKept, Question
from bench.suites.stepping import Disagreement, Pace, Timing, checksum, checksums, compete, row_hashes

AT_ONCE = Timing(1, 0.01, 50)


def test_a_checksum_is_that_of_a_bag() -> None:
    columns = [np.array([3, 1, 1]), np.array([7, 5, 5])]
    assert checksum(columns) == checksum([column[::-1] for column in columns])
    assert checksum(columns) != checksum([column[:2] for column in columns])
    assert checksum(columns) != checksum([np.array([3, 1, 1]), np.array([5, 7, 5])])


def test_rows_that_come_and_go_add_up() -> None:
    """Two rows at time 4; at time 9 one of them goes, and another comes."""
    hashes = row_hashes([np.array([1, 2, 1, 3])])
    changes = checksums(np.array([4, 4, 9, 9]), np.where(np.array([1, 1, -1, 1]) > 0, hashes, -hashes))
    assert changes[4] == checksum([np.array([1, 2])])
    assert (changes[4] + changes[9]) % 2**64 == checksum([np.array([2, 3])])


class Forgetful(PyoxigraphKept):
    """Never lets go of an observation."""

    name = "forgetful"

    def _gone(self) -> Any:
        return iter(())


def test_a_wrong_answer_is_seen() -> None:
    question = Question(slides.PROPERTIES, "COUNT", 40)
    wrong = [lambda step: PyoxigraphKept(question, step), lambda step: Forgetful(question, step)]
    with pytest.raises(Disagreement, match="forgetful and pyoxigraph, store kept differ after 60 elements, at STEP 20"):
        compete(wrong, 20, 40, AT_ONCE)


@pytest.mark.parametrize(("aggregate", "step"), [("COUNT", 7), ("AVG", 1), ("AVG", 20)])
def test_all_contenders_agree(aggregate: str, step: int) -> None:
    """Whether a step divides the window or not."""
    question = Question(peers.PROPERTIES, aggregate, 40)
    others, _ = contenders.available(peers.OTHERS)
    makers = slides.engines(question) + [lambda step, other=other: other(question, step) for other in others]
    paces = compete(makers, step, 40, AT_ONCE)
    assert len(paces) == 3 + len(others)
    assert all(pace.checked >= 2 for pace in paces[1:])


def test_missing_libraries_are_left_out_with_a_message() -> None:
    there, missing = contenders.available([("no_such_library", PyoxigraphKept)])
    assert there == []
    assert missing == [
        "pyoxigraph, store kept is left out: no_such_library is not installed (pip install no_such_library)"
    ]


@pytest.mark.parametrize("suite", ["slides", "peers"])
def test_a_suite_runs(suite: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module = {"slides": slides, "peers": peers}[suite]
    assert module.main(["--quick", "--output", str(tmp_path)]) == 0
    assert "pyoxigraph, store rebuilt" in capsys.readouterr().out
    written = json.loads((tmp_path / f"{suite}.json").read_text())
    assert written["quick"] is True
    paces = written["figures"]["paces"]
    assert {pace["step"] for pace in paces} == {1, 100}
    assert all(pace["median"] > 0 for pace in paces)
    assert paces[0]["first_is_times_as_fast"] == 1


def test_a_median_is_of_the_rounds() -> None:
    assert Pace("engine", 1, [5.0, 1.0, 2.0], 8, 0).median == 2.0
