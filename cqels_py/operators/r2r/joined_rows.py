"""The rows of a join's inputs, none of whose results are made, laid out side by side for aggregation below the join."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cqels_py.batches.delta import Delta, TickColumn, concatenate, in_blocks
from cqels_py.batches.elements import Ids
from cqels_py.kernels.aggregates import factorised_records as records
from cqels_py.kernels.aggregates.factorised_input import lay_rows
from cqels_py.kernels.primitives.dtypes import INT64
from cqels_py.kernels.windows.merge import places_by_tick
from cqels_py.operators.r2r.aggregate import HashedNumbers, TermValues, needs_numbers, with_numbers, without_terms

FEW_ROWS = 8
"""Steps of so few rows, as on a live stream, use arrays that are kept."""
_IN_ORDER = np.empty(0, np.int32)

FUNCTIONS = {
    "COUNT(*)": ("SUM", records.ROWS),
    "COUNT": ("SUM", records.BOUND),
    "SUM": ("SUM", records.NUMBER),
    "AVG": ("AVG", records.NUMBER),
    "MIN": ("MIN", records.TERM),
    "SAMPLE": ("MIN", records.TERM),
    "MAX": ("MAX", records.TERM),
}
"""The aggregate over contributions (a COUNT is a sum of ones), and the kind of the argument."""


@dataclass(frozen=True, slots=True)
class JoinedInput:
    """An input of the join: its number of columns, and which of them are the key, in the same order in all inputs.

    `expires_fifo`: is the input FIFO, as a window is, so that MIN and MAX need no bags?
    """

    width: int
    key: tuple[int, ...]
    expires_fifo: bool = False


@dataclass(frozen=True, slots=True)
class JoinedAggregate:
    """One aggregate: a name of FUNCTIONS, the input that has its argument, and the column there (None for COUNT(*))."""

    function: str
    input: int = 0
    argument: int | None = None


Filled = tuple[int, tuple[Any, ...], Delta]
"""An input that has changes: its number, the constant arguments of the kernel that lays out its rows, and the changes."""


class JoinedRows:
    """Lays out the rows of all inputs (see kernels/aggregates/factorised_records.py).

    `taken`: for each input, in the order in which they are applied at each tick, its number and the columns that become
    the first of the `width` ones of a row; `key_width` of these are the key. `hashes`: those of keys and rows are
    needed. `size`: the fields of a row. `ways`: of each of `taken` its number, its number of columns, and constant arguments
    of the kernel that lays out its rows.
    """

    def __init__(
        self,
        inputs: Sequence[JoinedInput],
        taken: Sequence[tuple[int, Sequence[int]]],
        key_width: int,
        width: int,
        aggregates: Sequence[JoinedAggregate],
        values: TermValues,
        *,
        hashes: bool,
    ) -> None:
        self._values = values
        self._widths = [each.width for each in inputs]
        self._kinds = np.array([FUNCTIONS[each.function][1] for each in aggregates], np.int64)
        summed = [(each.input, each.argument) for each in aggregates if FUNCTIONS[each.function][1] == records.NUMBER]
        self._first_uses = [summed.index(argument) for argument in dict.fromkeys(summed)]
        self.size = records.FIRST + width + len(aggregates)
        self._first_argument = records.FIRST + width
        self.ways = []
        for port, columns in taken:
            sources = [*columns, *[-1] * (width - len(columns)), *_arguments(aggregates, port)]
            kinds = [*[records.ROWS] * width, *self._kinds]
            wanted = (2 if len(columns) > key_width else 1) if hashes else 0
            given = np.array([sources, kinds], np.int64), key_width, width, wanted
            self.ways.append((port, inputs[port].width, given))

    def blocks(self, inputs: Sequence[Iterable[Delta]]) -> Iterable[Sequence[Iterable[Delta]]]:
        """The inputs' deltas, in blocks if they come in parts; see `in_blocks`."""
        for chunks in inputs:
            if not isinstance(chunks, tuple):
                return ([(delta,) for delta in block] for block in in_blocks(inputs, self._widths))
        return (inputs,)

    def filled(self, inputs: Sequence[Iterable[Delta]]) -> tuple[list[Filled], int]:
        """The inputs that have changes, and the number of rows."""
        filled, rows = [], 0
        for port, width, given in self.ways:
            if chunks := inputs[port]:
                delta = concatenate(chunks, width)
                if count := len(delta.tick):
                    filled.append((port, given, delta))
                    rows += count
        return filled, rows

    def lay(
        self, filled: Sequence[Filled], count: int, *, one_tick: bool, carrier: int = -1
    ) -> tuple[Ids, int, int, HashedNumbers]:
        """All rows in the order of ticks; the number of insertions, of all inputs and of the carrier; the numbers of
        hashed literals."""
        rows = np.empty((self.size, count), INT64)
        place = _IN_ORDER if one_tick or len(filled) == 1 else _places([delta.tick for _, _, delta in filled])
        all_inserts = of_carrier = tags = start = 0
        for port, given, delta in filled:
            tick = delta.tick
            inserts, of_input = lay_rows(port, tick, delta.sign, delta.columns, place, start, rows, *given)
            tags |= of_input
            all_inserts += inserts
            if port == carrier:
                of_carrier = inserts
            start += len(tick)
        known = self._known_numbers(rows) if needs_numbers(tags) else without_terms(tags)
        return rows, all_inserts, of_carrier, known

    def _known_numbers(self, rows: Ids) -> HashedNumbers:
        """Replace hashed literals among the arguments of SUM and AVG by their numbers."""
        arguments, summed = rows[self._first_argument :], self._kinds == records.NUMBER
        arguments[summed], known = with_numbers(
            arguments[summed], self._values, rows[records.ROW_SIGN] > 0, self._first_uses
        )
        return known


def _arguments(aggregates: Sequence[JoinedAggregate], port: int) -> list[int]:
    """The columns of an input that are the aggregates' arguments; -1 where it has none."""
    return [-1 if a.argument is None or a.input != port else a.argument for a in aggregates]


def _places(ticks: Sequence[TickColumn]) -> npt.NDArray[np.int32]:
    """The position of each row of several inputs in the order of ticks."""
    starts = [0]
    for column in ticks:
        starts.append(starts[-1] + len(column))
    place: npt.NDArray[np.int32] = places_by_tick(np.concatenate(ticks), np.array(starts, np.int64))
    return place
