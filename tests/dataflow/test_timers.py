"""Timers: who is due when a measure of the streams has reached a point."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from cqels_py.dataflow.timers import Timers
from cqels_py.event_time.windows import NEVER, Measure
from cqels_py.operators.s2r.window import Timer

STREAM, OTHER = 0, 1


@dataclass(eq=False)
class Scan:
    """A scan that expires at a point."""

    name: str
    next_timer: Timer
    stream: int = STREAM


class Reached:
    """A step as timers see it: the points that the measures have reached."""

    def __init__(self, time: int = 0, elements: int = 0, others: int = 0) -> None:
        self._time = time
        self._elements = {STREAM: elements, OTHER: others}

    def reached(self, measure: Measure, stream: int) -> int:
        return self._time if measure is Measure.TIME else self._elements[stream]


def due(timers: Timers[Scan], **reached: int) -> str:
    return " ".join(scan.name for scan in timers.due(Reached(**reached)))  # type: ignore[arg-type]


def test_each_is_due_once_and_in_the_order_of_the_points() -> None:
    """
    time  ──5───7───9──
            b   a   c
    """
    timers: Timers[Scan] = Timers()
    for name, point in (("a", 7), ("b", 5), ("c", 9)):
        timers.set(Scan(name, (Measure.TIME, point)))
    assert [due(timers, time=time) for time in (4, 7, 8, 9, 99)] == ["", "b a", "", "c", ""]
    assert not timers.waiting


def test_a_scan_whose_timer_has_moved_on_waits_for_the_later_point() -> None:
    timers: Timers[Scan] = Timers()
    scan = Scan("a", (Measure.TIME, 5))
    timers.set(scan)
    scan.next_timer = Measure.TIME, 8
    timers.set(scan)
    assert due(timers, time=6) == ""
    assert timers.waiting == {scan}
    assert due(timers, time=8) == "a"


def test_streams_count_apart() -> None:
    timers: Timers[Scan] = Timers()
    timers.set(Scan("a", (Measure.ELEMENTS, 3), STREAM))
    timers.set(Scan("b", (Measure.ELEMENTS, 3), OTHER))
    assert due(timers, time=99, elements=3, others=2) == "a"
    assert due(timers, time=99, elements=3, others=3) == "b"


@pytest.mark.parametrize("timer", [None, (Measure.TIME, NEVER)])
def test_without_a_point_nothing_waits(timer: Timer) -> None:
    timers: Timers[Scan] = Timers()
    timers.set(Scan("a", timer))
    assert not timers.waiting


def test_who_is_cancelled_is_never_due() -> None:
    timers: Timers[Scan] = Timers()
    scans = [Scan(str(point), (Measure.TIME, point)) for point in range(9)]
    for scan in scans:
        timers.set(scan)
    for scan in scans[::2]:
        timers.cancel(scan)
    assert due(timers, time=99) == "1 3 5 7"
