"""Expressions with NOW(): at every tick, over all current rows."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pytest

from cqels_py.batches.elements import Ids
from cqels_py.event_time.clock import Ticks
from cqels_py.operators.r2r.timed import TimedExtend, TimedFilter
from tests.operators.deltas import Event, Row, changes, delta, difference

OWN_TERM = 99


class Sum:
    """The row's values and the time, modulo something: tests are true where that is 0."""

    def __init__(self, modulus: int) -> None:
        self._modulus = modulus
        self.evaluated = 0

    def evaluate(self, columns: Sequence[Ids], now: npt.NDArray[np.int64] | None) -> Ids:
        assert now is not None
        self.evaluated += len(now)
        found: Ids = (sum(columns, start=now)) % self._modulus
        return found

    def test(self, columns: Sequence[Ids], now: npt.NDArray[np.int64] | None) -> npt.NDArray[np.bool_]:
        passed: npt.NDArray[np.bool_] = self.evaluate(columns, now) == 0
        return passed

    def live_ids(self) -> Iterable[Ids]:
        return (np.array([OWN_TERM]),)


Model = Callable[[Row, int], list[Row]]


def follows(operator: TimedExtend | TimedFilter, model: Model, width: int, seed: int) -> None:
    """At each tick the operator's output is the difference of the model's answers."""
    rng = random.Random(seed)
    live: list[Row] = []
    before: Counter[tuple[object, ...]] = Counter()
    time = 0
    for _ in range(8):
        n = rng.randrange(1, 7)
        times = np.cumsum(rng.choices([0, 1, 2], k=n)) + time
        time = int(times[-1])
        events: list[Event] = []
        expected = {}
        for tick in range(n):
            for _ in range(rng.choice([0, 0, 1, 3, 40])):
                if live and rng.random() < 0.5:
                    events.append((tick, -1, live.pop(rng.randrange(len(live)))))
                else:
                    live.append(tuple(rng.randrange(5) for _ in range(width)))
                    events.append((tick, 1, live[-1]))
            after = Counter(row for mapping in live for row in model(mapping, int(times[tick])))
            expected[tick] = difference(Counter(after), before)
            before = Counter(after)
        cut = rng.randrange(len(events) + 1)
        chunks = [delta(part, width) for part in (events[:cut], events[cut:])]
        found = changes(operator.process(Ticks(times, first=False), [chunks]))
        assert found == {tick: bag for tick, bag in expected.items() if bag}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("width", "inputs"), [(2, (1, 0)), (3, (2,)), (1, ()), (0, ())])
def test_an_expression(width: int, inputs: tuple[int, ...], seed: int) -> None:
    def extended(row: Row, now: int) -> list[Row]:
        return [(*row, (sum(row[c] for c in inputs) + now) % 3)]

    follows(TimedExtend(Sum(3), inputs, width), extended, width, seed)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("width", "inputs"), [(2, (1, 0)), (3, (2,)), (1, ()), (0, ())])
def test_a_filter(width: int, inputs: tuple[int, ...], seed: int) -> None:
    def passed(row: Row, now: int) -> list[Row]:
        return [row] if (sum(row[c] for c in inputs) + now) % 2 == 0 else []

    follows(TimedFilter(Sum(2), inputs, width), passed, width, seed)


def test_equal_rows_are_evaluated_once_a_tick() -> None:
    expression = Sum(2)
    operator = TimedExtend(expression, (0,), 1)
    rows = [(0, 1, (7,))] * 10 + [(0, 1, (8,))] * 5
    list(operator.process(Ticks(np.arange(4), first=True), [[delta(rows, 1)]]))
    assert expression.evaluated == 4 * 2


def test_an_unchanged_value_is_not_delivered_again() -> None:
    operator = TimedExtend(Sum(2), (0,), 1)
    out = list(operator.process(Ticks(np.array([0, 2, 4]), first=True), [[delta([(0, 1, (7,))], 1)]]))
    assert [len(chunk) for chunk in out] == [1]


def test_rows_values_and_the_expressions_terms_are_live() -> None:
    operator = TimedExtend(Sum(50), (0,), 1)
    list(operator.process(Ticks(np.array([30]), first=True), [[delta([(0, 1, (7,))], 1)]]))
    assert {7, 37, OWN_TERM} <= set(np.concatenate([np.ravel(ids) for ids in operator.live_ids()]).tolist())
    assert operator.nbytes > 0
