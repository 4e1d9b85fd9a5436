"""PARTITION BY of single steps: which values elements have, which elements are kept for them, and at which ticks."""

from __future__ import annotations

import numpy as np

from cqels_py.batches.elements import ElementBatch
from cqels_py.event_time.clock import ClockedWindow, TickClock
from cqels_py.event_time.windows import Bounds, Measure
from cqels_py.operators.s2r.arrivals import ArrivalCounter
from cqels_py.operators.s2r.kept_units import KeptUnits
from cqels_py.operators.s2r.partition import KeyPattern, Partitioning
from cqels_py.state.last_by_value import LastByValue

Triples = list[tuple[int, int, int]]
SENSOR, KIND = 100, 200
SENSORS, KINDS = KeyPattern(("o", "s"), (0, 2)), KeyPattern(("o", "k"), (0, 2))


def batch_of(elements: list[Triples]) -> ElementBatch:
    columns = np.array([triple for triples in elements for triple in triples], np.int64).reshape(-1, 3)
    first = np.cumsum([0, *map(len, elements)]).astype(np.int64)
    times, streams = np.arange(len(elements), dtype=np.int64), np.zeros(len(elements), np.int32)
    return ElementBatch(times, streams, first, *(columns[:, c].copy() for c in range(3)))


class Partitioned:
    """The last of each value; the first element's number is 1."""

    def __init__(
        self, variables: tuple[str, ...], patterns: tuple[KeyPattern, ...], alternatives: list[tuple[int, ...]]
    ) -> None:
        self._partitioning = Partitioning(variables, patterns, alternatives)
        self._last = LastByValue(len(variables), 1)
        self._number = 1

    def advance(self, elements: list[Triples]) -> tuple[list[int], list[int]]:
        """The numbers of the elements that have a value, and of those that leave."""
        batch = batch_of(elements)
        element = np.repeat(np.arange(len(elements)), np.diff(batch.first))
        matches = [np.flatnonzero(batch.predicate == SENSOR), np.flatnonzero(batch.predicate == KIND)]
        rows, values = self._partitioning.values(batch, matches, element)
        unit = element[rows] + self._number
        self._number += len(elements)
        left, left_row = self._last.keep(unit, values)
        assert (unit[left_row] > left).all()
        return np.unique(unit).tolist(), sorted(left.tolist())


def observation(number: int, sensor: int, kind: int) -> Triples:
    return [(number, SENSOR, sensor), (number, KIND, kind)]


def test_the_values_of_two_patterns_belong_together_where_they_are_of_one_observation() -> None:
    """The first element holds (1, 7) and (2, 8), not (1, 8): the second pushes nothing out."""
    partitioned = Partitioned(("s", "k"), (SENSORS, KINDS), [(0, 1)])
    both = observation(11, 1, 7) + observation(12, 2, 8)
    assert partitioned.advance([both, observation(13, 1, 8)]) == ([1, 2], [])
    assert partitioned.advance([observation(14, 1, 7)]) == ([3], [])
    assert partitioned.advance([observation(15, 2, 8)]) == ([4], [1])


def test_an_element_without_all_patterns_has_no_value_of_them_together() -> None:
    partitioned = Partitioned(("s", "k"), (SENSORS, KINDS), [(0, 1)])
    assert partitioned.advance([[(11, SENSOR, 1)], [(11, KIND, 7)], [(11, SENSOR, 1), (12, KIND, 7)]]) == ([], [])


def test_each_pattern_that_has_the_variable_gives_its_values() -> None:
    """Values 1 and 2 come from the one pattern, 2 from the other too: the second element is the last of both."""
    subjects = (KeyPattern(("s", "x"), (0, 2)), KeyPattern(("s", "y"), (0, 2)))
    partitioned = Partitioned(("s",), subjects, [(0,), (1,)])
    elements = [[(1, SENSOR, 5)], [(1, SENSOR, 5), (2, KIND, 5)], [(2, SENSOR, 6)], [(3, 300, 1)], [(1, KIND, 6)]]
    assert partitioned.advance(elements) == ([1, 2, 3, 5], [1, 2])


def test_nothing_comes_nothing_goes() -> None:
    assert Partitioned(("s", "k"), (SENSORS, KINDS), [(0, 1)]).advance([]) == ([], [])
    assert Partitioned(("o",), (SENSORS, KINDS), [(0,), (1,)]).advance([]) == ([], [])


def test_with_a_step_units_enter_and_leave_at_boundaries() -> None:
    """Every third element is a tick: what was pushed out before it was never there."""
    bounds = Bounds(Measure.ELEMENTS, 1, 3)
    clock = TickClock([ClockedWindow(0, bounds, partitioned=True)], 1, every_boundary=False)
    kept, counter = KeptUnits(1, bounds, 0), ArrivalCounter(1)
    found = []
    for values in ([1, 1, 2, 2], [1], [3, 1]):
        batch = batch_of([[(value, SENSOR, value)] for value in values])
        step = clock.step(batch.time, batch.stream, batch.first)
        arrivals = counter.take(batch, step)
        element = arrivals.element
        units = step.number[element]
        each = kept.advance(arrivals.streams[0], units, element, batch.time[element], batch.subject[np.newaxis])
        entered = list(zip(each.entered.tolist(), each.entered_tick.tolist(), strict=True))
        found.append((entered, each.expired.tolist(), each.unseen.tolist(), len(step.ticks)))
    assert found == [([(2, 0), (3, 0)], [], [1], 1), ([], [], [], 0), ([(4, 0), (5, 0), (6, 0)], [2, 3], [], 1)]
