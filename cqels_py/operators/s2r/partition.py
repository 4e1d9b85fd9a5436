"""PARTITION BY: decides which elements (or triples) a window keeps, before its scans make mappings of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cqels_py.batches.elements import ElementBatch, Ids

Int64 = npt.NDArray[np.int64]
Ticks = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Kept:
    """One step of a partitioned window. Units are elements or triples, by number (from 1, per stream), rising.

    `accepted`: those that arrived and have a value. `entered`, `expired`: those that enter and leave the window, with their ticks.
    `unseen`: those that would enter and expire at the same tick.
    """

    accepted: Int64
    entered: Int64
    entered_tick: Ticks
    expired: Int64
    expired_tick: Ticks
    unseen: Int64


@dataclass(frozen=True, slots=True)
class KeyPattern:
    """A triple pattern that gives elements their values: its variables, and where each first stands (0, 1, 2; 3: the graph)."""

    variables: tuple[str, ...]
    positions: tuple[int, ...]


class Partitioning:
    """The values of PARTITION BY over `variables` that a stream's units have.

    An element has the values that the patterns of any of the `alternatives` (numbers of patterns) give it by matching together.
    """

    def __init__(
        self, variables: Sequence[str], patterns: Sequence[KeyPattern], alternatives: Sequence[Sequence[int]]
    ) -> None:
        self._variables = tuple(variables)
        self._patterns = tuple(patterns)
        self._alternatives = alternatives

    @property
    def positions(self) -> tuple[int, ...]:
        """Where the values' terms are in the triples of the first pattern, as far as it has them."""
        pattern = self._patterns[0]
        places = dict(zip(pattern.variables, pattern.positions, strict=True))
        return tuple(places[name] for name in self._variables if name in places)

    def values(self, batch: ElementBatch, matches: Sequence[Int64], element: Int64) -> tuple[Int64, Ids]:
        """Triples of the batch, in order, and for each a value (a column) that its element has by it.

        `matches`: for each pattern the triples of the batch that match it; `element` (triples): positions in the batch.
        """
        parts = batch.positions
        found = [
            _Solutions(rows, dict(zip(pattern.variables, (parts[p][rows] for p in pattern.positions), strict=True)))
            for pattern, rows in zip(self._patterns, matches, strict=True)
        ]
        solutions = [self._together([found[number] for number in numbers], element) for numbers in self._alternatives]
        rows = np.concatenate([each.rows for each in solutions])
        values = np.concatenate([self._values_of(each) for each in solutions], axis=1)
        order = np.argsort(rows, kind="stable")
        return rows[order], np.ascontiguousarray(values[:, order])

    @staticmethod
    def _together(matched: Sequence[_Solutions], element: Int64) -> _Solutions:
        solutions = matched[0]
        for each in matched[1:]:
            solutions = _joined(solutions, each, element)
        return solutions

    def _values_of(self, solutions: _Solutions) -> Ids:
        return np.stack([solutions.columns[name] for name in self._variables])


@dataclass(frozen=True, slots=True)
class _Solutions:
    """Mappings of patterns within elements: a triple of each one's element, and the variables' values."""

    rows: Int64
    columns: dict[str, Ids]


def _joined(left: _Solutions, right: _Solutions, element: Int64) -> _Solutions:
    """The join of mappings of the same element."""
    shared = [name for name in right.columns if name in left.columns]
    code = _codes(
        [np.concatenate([element[left.rows], element[right.rows]])]
        + [np.concatenate([left.columns[name], right.columns[name]]) for name in shared]
    )
    left_code, right_code = code[: len(left.rows)], code[len(left.rows) :]
    order = np.argsort(right_code, kind="stable")
    first = np.searchsorted(right_code[order], left_code, side="left")
    count = np.searchsorted(right_code[order], left_code, side="right") - first
    from_left = np.repeat(np.arange(len(left_code)), count)
    within = np.arange(len(from_left)) - np.repeat(np.cumsum(count) - count, count)
    from_right = order[np.repeat(first, count) + within]
    columns = {name: ids[from_left] for name, ids in left.columns.items()}
    columns |= {name: ids[from_right] for name, ids in right.columns.items() if name not in columns}
    return _Solutions(left.rows[from_left], columns)


def _codes(columns: Sequence[Int64]) -> Int64:
    """A number for each row, equal for equal rows of the columns."""
    code = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        values, place = np.unique(column, return_inverse=True)
        _, code = np.unique(code * max(len(values), 1) + place, return_inverse=True)
    return code
