"""Reports that come by the thousand: the first in full, then one a minute with the count, and a last one."""

from __future__ import annotations

import logging
from collections import deque

import pytest

from cqels_py.engine.engine import Engine
from cqels_py.engine.reports import EVERY, IN_FULL, Reports
from cqels_py.errors import DataError
from tests.engine.test_engine import STREAM, VALUES, texts


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_one_a_minute_after_the_first_few() -> None:
    said, clock = list[str](), Clock()
    reports = Reports(said.append, clock)
    for number in range(1, 1_001):
        clock.now += EVERY / 60
        reports(f"late {number}")
    assert said[:IN_FULL] == [f"late {number}" for number in range(1, IN_FULL + 1)]
    assert said[IN_FULL].startswith("… further reports are counted")
    later = said[IN_FULL + 1 :]
    assert later[:2] == [
        "late 70 (70 reports in all, 60 since the last one shown)",
        "late 130 (130 reports in all, 60 since the last one shown)",
    ]
    assert len(later) == 16
    reports.close()
    assert said[-1] == "1,000 reports in all, 30 since the last one shown"
    reports.close()
    assert len(said) == IN_FULL + 1 + 17


def test_a_few_reports_need_no_summary() -> None:
    said = list[str]()
    reports = Reports(said.append, Clock())
    for number in range(IN_FULL):
        reports(number)
    reports.close()
    assert said == [str(number) for number in range(IN_FULL)]


def test_an_engine_tells_their_number_when_it_ends(caplog: pytest.LogCaptureFixture) -> None:
    engine = Engine()
    engine.register(VALUES)
    engine.push(STREAM, [texts("a", 1)], time=50)
    with caplog.at_level(logging.WARNING, "cqels_py"):
        for _ in range(25):
            engine.push(STREAM, [texts("a", 1)], time=1)
        engine.finish()
    said = [record.message for record in caplog.records]
    assert len(said) == IN_FULL + 2
    assert said[-1] == "25 reports in all, 15 since the last one shown"


def test_reports_that_two_threads_make_at_once() -> None:
    class TakenByAnother(deque[DataError]):
        """Another thread takes the last one as soon as this one has seen it."""

        def __bool__(self) -> bool:
            there = len(self) > 0
            self.clear()
            return there

    engine = Engine(report=lambda _: None)
    engine._reports.due = TakenByAnother([DataError("late")])
    failures: list[BaseException] = []
    engine._reports.report_due(failures)
    assert not failures
