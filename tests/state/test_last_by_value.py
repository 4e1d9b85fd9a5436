"""The last units of each value against lists, one for each value."""

from __future__ import annotations

import random

import numpy as np
import pytest

from cqels_py.state.last_by_value import LastByValue

Value = tuple[int, ...]


class Lists:
    """The same, plainly: all units of each value; a unit is kept while it is among the last of any of its values."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._units: dict[Value, list[int]] = {}
        self.kept: set[int] = set()

    def keep(self, unit: int, values: list[Value]) -> set[int]:
        """Take in a unit; returns those that leave."""
        for value in dict.fromkeys(values):
            self._units.setdefault(value, []).append(unit)
        before = self.kept | ({unit} if values else set())
        self.kept = {each for units in self._units.values() for each in units[-self._limit :]}
        return before - self.kept


@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize("seed", range(15))
def test_units_leave_when_the_last_of_their_values_lets_go(width: int, seed: int) -> None:
    rng = random.Random(seed)
    limit, different = rng.choice([1, 2, 3, 7]), rng.choice([2, 5, 400])
    last, lists = LastByValue(width, limit), Lists(limit)
    number = 0
    for _ in range(12):
        rows: list[tuple[int, Value]] = []
        expected: list[tuple[int, int]] = []
        for _ in range(rng.choice([0, 1, 2, 60])):
            number += rng.choice([1, 1, 4])
            values = [tuple(rng.randrange(different) for _ in range(width)) for _ in range(rng.choice([1, 1, 2, 4]))]
            rows += [(number, value) for value in values]
            expected += [(gone, number) for gone in lists.keep(number, values)]
        unit = np.array([number for number, _ in rows], np.int64)
        columns = np.array([value for _, value in rows], np.int64).reshape(len(rows), width).T.copy()
        left, left_at = last.keep(unit, columns)
        assert sorted(zip(left.tolist(), unit[left_at].tolist(), strict=True)) == sorted(expected)


def test_what_is_kept_follows_from_the_values_not_from_the_stream() -> None:
    last = LastByValue(1, 3)
    sizes = []
    for start in range(1, 8_001, 40):
        unit = np.arange(start, start + 40)
        last.keep(unit, (unit % 10)[np.newaxis])
        sizes.append(last.nbytes)
    assert sizes[-1] == sizes[2]
    assert set(last.live_ids().tolist()) <= set(range(10))
