"""Flink as a contender: its output is divided into steps correctly; and Flink itself, if an environment has it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from bench.suites import over_flink, peers
from bench.suites.contenders import PyoxigraphKept, Question
from bench.suites.over_flink import Absent, Flink
from bench.suites.stepping import Timing, compete
from tests.bench import sums_like_flink

COUNTS = Question(peers.PROPERTIES, "COUNT", sums_like_flink.WINDOW)


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(over_flink.VARIABLE, sys.executable)
    monkeypatch.setattr(over_flink, "_JOB", Path(sums_like_flink.__file__))


@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize("step", [1, 7])
def test_a_step_is_over_when_its_whole_answer_is_there(step: int) -> None:
    makers = [lambda step: PyoxigraphKept(COUNTS, step), lambda step: Flink(COUNTS, step)]
    _, flink = compete(makers, step, COUNTS.window, Timing(1, 0.05, 50))
    assert (flink.contender, flink.checked >= 2) == ("PyFlink, SQL", True)


@pytest.mark.usefixtures("stand_in")
def test_a_failing_job_gives_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(over_flink, "statements", lambda question: ["fail"])
    with pytest.raises(RuntimeError, match="Flink gave no answer: ValueError: no such table"):
        Flink(COUNTS, 1)


def test_where_there_is_none_is_said_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(over_flink.VARIABLE, raising=False)
    with pytest.raises(Absent, match=r"CQELS_BENCH_FLINK names no Python .*pip install apache-flink"):
        over_flink.version()
    monkeypatch.setenv(over_flink.VARIABLE, "/no/such/python")
    with pytest.raises(Absent, match="cannot run /no/such/python"):
        over_flink.version()
    monkeypatch.setenv(over_flink.VARIABLE, sys.executable)
    with pytest.raises(Absent, match=r"has no apache-flink .*pip install"):
        over_flink.version()


@pytest.mark.skipif(over_flink.VARIABLE not in os.environ, reason=f"{over_flink.VARIABLE} names no Python")
@pytest.mark.parametrize(("aggregate", "step"), [("COUNT", 7), ("AVG", 120)])
def test_flink_gives_the_same_answers(aggregate: str, step: int) -> None:
    question = Question(peers.PROPERTIES, aggregate, 40)
    makers = [lambda step: PyoxigraphKept(question, step), lambda step: Flink(question, step)]
    _, flink = compete(makers, step, question.window, Timing(1, 0.05, 500))
    assert flink.checked >= 2
