"""Operators that set timers, and are told through when all is known: the same ticks whatever the batches.

time            0    1    2    3    4    5    6    7
a enters        ●━━━━━━━━━━━━━━━○                       held for 2: + at the end of 2, - at 3
b enters             ●━━━━━━━━━━━━━━━○
heartbeat       ●         ▲         ▲         ▲         every 2, from the first arrival on
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pytest

from cqels_py.batches.delta import Delta
from cqels_py.batches.elements import Ids
from cqels_py.dataflow.dataflow import Dataflow
from cqels_py.dataflow.static_data import StaticData
from cqels_py.dictionary import Dictionary
from cqels_py.engine.compile import compile_query
from cqels_py.event_time.clock import Ticks
from cqels_py.event_time.timers import EventTimers
from cqels_py.runners.local import LocalRunner
from cqels_py.runners.running import RunningQuery
from tests.support.driven import Arrival, Received, Row, push, put_on_top

PREFIX = "PREFIX : <http://ex.org/> "
BATCHES = (1, 2, 3, 7, None)


class Timed:
    """What the operators here have in common: rows by tick, and ticks at which timers are due."""

    def __init__(self, timers: EventTimers, gap: int) -> None:
        self._timers = timers
        self._gap = gap
        self.known: list[tuple[int, int]] = []

    def process(self, ticks: Ticks, inputs: Sequence[Iterable[Delta]]) -> Iterator[Delta]:
        self.known.append((int(ticks.time[-1]), ticks.known_through))
        rows = [
            (int(tick), int(sign), tuple(column))
            for delta in inputs[0]
            for tick, sign, column in zip(delta.tick, delta.sign, delta.columns.T.tolist(), strict=True)
        ]
        out: list[tuple[int, int, tuple[int, ...]]] = []
        for tick, time in enumerate(ticks.time.tolist()):
            for at, sign, row in rows:
                if at == tick:
                    out += [(tick, s, r) for s, r in self.take(time, sign, row)]
            is_last = tick + 1 == len(ticks) or ticks.time[tick + 1] > time
            if is_last and time <= ticks.known_through:
                out += [(tick, s, r) for s, r in self.end(time)]
        if out:
            tick, sign, columns = zip(*out, strict=True)
            yield Delta(np.array(tick, np.int32), np.array(sign, np.int8), np.array(columns, np.int64).T)

    def take(self, time: int, sign: int, row: tuple[int, ...]) -> list[tuple[int, tuple[int, ...]]]:
        raise NotImplementedError

    def end(self, time: int) -> list[tuple[int, tuple[int, ...]]]:
        """The end of an instant."""
        raise NotImplementedError

    def live_ids(self) -> Iterable[Ids]:
        return ()

    @property
    def nbytes(self) -> int:
        return 0


class HeldFor(Timed):
    """Mappings that have been there for `gap` microseconds, until they leave; each leaves before those that came later."""

    def __init__(self, timers: EventTimers, gap: int) -> None:
        super().__init__(timers, gap)
        self._there: dict[tuple[int, ...], deque[list[int]]] = {}

    def take(self, time: int, sign: int, row: tuple[int, ...]) -> list[tuple[int, tuple[int, ...]]]:
        there = self._there.setdefault(row, deque())
        if sign > 0:
            there.append([time + self._gap, 0])
            self._timers.set(time + self._gap)
            return []
        _, delivered = there.popleft()
        return [(-1, row)] if delivered else []

    def end(self, time: int) -> list[tuple[int, tuple[int, ...]]]:
        found = []
        for row, there in self._there.items():
            for each in there:
                if each[0] == time:
                    each[1] = 1
                    found.append((1, row))
        return found


class Heartbeat(Timed):
    """The first mapping again, `gap` after `gap`; at the end of each instant at which anything came too, which sets no timer."""

    STATE = ("_row", "_next")

    def __init__(self, timers: EventTimers, gap: int) -> None:
        super().__init__(timers, gap)
        self._row: list[int] = []
        self._next = -1

    def take(self, time: int, sign: int, row: tuple[int, ...]) -> list[tuple[int, tuple[int, ...]]]:
        if not self._row:
            self._row, self._next = list(row), time + self._gap
            self._timers.set(self._next)
        return []

    def end(self, time: int) -> list[tuple[int, tuple[int, ...]]]:
        if time != self._next:
            return []
        self._next += self._gap
        self._timers.set(self._next)
        return [(1, tuple(self._row))]


class Driven:
    """A query with such an operator on top."""

    def __init__(
        self, text: str, kind: type[Timed], gap: int, least_delay: int, dictionary: Dictionary | None = None
    ) -> None:
        self.dictionary, timers = dictionary or Dictionary(), EventTimers(least_delay)
        self.operator = kind(timers, gap)
        plan = compile_query(text, changelog=True).plan
        self.dataflow = Dataflow(plan, self.dictionary, StaticData(), timers=timers)
        put_on_top(self.dataflow, self.operator)
        self.received = Received(self.dictionary)
        self.runner = LocalRunner(self.dictionary, 0)
        self.runner.queries = [RunningQuery(self.dataflow, [0], self.received)]

    def push(self, arrivals: Sequence[Arrival], batch: int | None = None) -> None:
        push(self.runner, self.dictionary, arrivals, batch)


def arrival(time: int, name: str) -> Arrival:
    return time, 0, [(f"<http://ex.org/{name}>", "<http://ex.org/p>", "<http://ex.org/o>")]


def drawn(seed: int, count: int = 40) -> list[Arrival]:
    rng = random.Random(seed)
    time, found = 1000, []
    for _ in range(count):
        time += rng.choice((0, 1, 1, 2, 3, 20))
        found.append(arrival(time, rng.choice("abc")))
    return found


def names(rows: Sequence[Row]) -> list[tuple[int, int, str]]:
    return sorted((time, sign, str(row[0])[len("<http://ex.org/") : -1]) for time, sign, row in rows)


def leaves(arrivals: Sequence[Arrival], window: str) -> list[int | None]:
    """When each mapping leaves."""
    kind, size = window.split()
    number = int(size.removesuffix("us"))
    if kind == "RANGE":
        return [time + number for time, _, _ in arrivals]
    return [arrivals[i + number][0] if i + number < len(arrivals) else None for i in range(len(arrivals))]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("gap", [1, 4, 30])
@pytest.mark.parametrize("window", ["RANGE 5us", "RANGE 40us", "COUNT 3"])
def test_what_has_been_there_for_some_time(window: str, gap: int, seed: int) -> None:
    arrivals = drawn(seed)
    last = arrivals[-1][0]
    expected = []
    for (time, _, triples), leaving in zip(arrivals, leaves(arrivals, window), strict=True):
        name = triples[0][0][len("<http://ex.org/") : -1]
        if time + gap <= last and (leaving is None or leaving > time + gap):
            expected.append((time + gap, 1, name))
            if leaving is not None and leaving <= last:
                expected.append((leaving, -1, name))
    text = f"{PREFIX} SELECT * {{ STREAM :s [{window}] {{ ?a :p ?b }} }}"
    for batch in BATCHES:
        for least_delay in {1, gap}:
            driven = Driven(text, HeldFor, gap, least_delay)
            driven.push(arrivals, batch)
            driven.runner.finish()
            assert names(driven.received.rows) == sorted(expected), (batch, least_delay)
            assert [time for time, _, _ in driven.received.rows] == sorted(time for time, _, _ in driven.received.rows)


HEARTBEAT = f"{PREFIX} SELECT * {{ STREAM :s [RANGE 5us] {{ ?a :p ?b }} }}"


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("gap", [1, 3, 8])
def test_timers_that_are_set_by_timers(gap: int, seed: int) -> None:
    arrivals = [arrival(1000, "first"), *drawn(seed)[1:]]
    last = arrivals[-1][0]
    for batch in BATCHES:
        driven = Driven(HEARTBEAT, Heartbeat, gap, gap)
        driven.push(arrivals, batch)
        driven.runner.advance(last + 50)
        assert names(driven.received.rows) == [(time, 1, "first") for time in range(1000 + gap, last + 50, gap)]


def test_an_operator_is_told_through_when_all_is_known() -> None:
    arrivals = [arrival(time, "a") for time in (10, 10, 12, 20)]
    driven = Driven(HEARTBEAT, Heartbeat, 1000, 1000)
    driven.push(arrivals, 1)
    driven.runner.advance(40)
    # At an arrival all is known through the instant before; what expired at 15 and 17 is told when 20 comes, at 25 by the advance.
    assert driven.operator.known == [(10, 9), (10, 9), (12, 11), (20, 19), (25, 39)]
    driven.runner.finish()


def test_timers_are_state() -> None:
    arrivals = [arrival(time, "a") for time in (1000, 1003, 1011, 1030)]
    whole = Driven(HEARTBEAT, Heartbeat, 4, 4)
    whole.push(arrivals)
    half = Driven(HEARTBEAT, Heartbeat, 4, 4)
    half.push(arrivals[:2])
    rest = Driven(HEARTBEAT, Heartbeat, 4, 4, half.dictionary)
    rest.dataflow.restore(half.dataflow.state())
    rest.push(arrivals[2:])
    assert half.received.rows + rest.received.rows == whole.received.rows
    assert len(rest.received.rows) == 7


def test_a_timer_is_not_set_for_what_has_passed() -> None:
    driven = Driven(HEARTBEAT, Heartbeat, -3, 1)
    driven.push([arrival(10, "a")])
    assert "an instant that has passed" in str(driven.received.failure)
