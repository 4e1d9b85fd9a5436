"""Joins of a batch's rows with others by equal ids, in columns: with static relations, and of events of the same instant."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Int64 = npt.NDArray[np.int64]


class RelationIndex:
    """The rows of a relation by the values of some columns (`keys`, each of n rows)."""

    def __init__(self, keys: Sequence[Int64], rows: int) -> None:
        self._values = [np.unique(key) for key in keys]
        codes = self._codes(keys, rows)
        self._order = np.argsort(codes, kind="stable")
        self._sorted = codes[self._order]

    def _codes(self, keys: Sequence[Int64], rows: int) -> Int64:
        """A number for each combination of values; -1 where one of the values is in no row."""
        codes = np.zeros(rows, np.int64)
        missing = np.zeros(rows, np.bool_)
        for key, values in zip(keys, self._values, strict=True):
            if not len(values):
                return np.full(rows, -1, np.int64)
            place = np.minimum(np.searchsorted(values, key), len(values) - 1)
            missing |= values[place] != key
            codes = codes * len(values) + place
        codes[missing] = -1
        return codes

    def partners(self, keys: Sequence[Int64], rows: int) -> tuple[Int64, Int64]:
        """All pairs of one of these rows and a row of the relation with the same values: their numbers, in order of these rows."""
        codes = self._codes(keys, rows)
        first = np.searchsorted(self._sorted, codes, side="left")
        count = np.searchsorted(self._sorted, codes, side="right") - first
        count[codes < 0] = 0
        mine = np.repeat(np.arange(rows), count)
        within = np.arange(len(mine)) - np.repeat(np.cumsum(count) - count, count)
        return mine, self._order[first[mine] + within]

    def has_partner(self, keys: Sequence[Int64], rows: int) -> npt.NDArray[np.bool_]:
        """For each of these rows: has the relation a row with the same values?"""
        codes = self._codes(keys, rows)
        first = np.searchsorted(self._sorted, codes, side="left")
        there = (first < len(self._sorted)) & (codes >= 0)
        there[there] = self._sorted[first[there]] == codes[there]
        return there
