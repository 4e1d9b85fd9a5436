"""Expressions with NOW(), whose values change at every tick, even if the input does not.

The input's rows are kept, each different one once with its counter. At every tick the expression is evaluated over all
of them, and the differences from the tick before are delivered: the cost of a tick follows from the number of rows
kept, not from the number of changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from cqels_py.batches.delta import Delta
from cqels_py.batches.elements import Ids
from cqels_py.event_time.clock import Ticks
from cqels_py.kernels.rows.distinct import count_rows
from cqels_py.kernels.structures.hash_table import USED
from cqels_py.operators.r2r.rows import ColumnExpression
from cqels_py.state.arrays import rows_of
from cqels_py.state.key_table import KeyTable


class _Timed:
    """The current rows, and for each the rows delivered: `_shown` times with the value `_value`."""

    STATE = ("_rows", "_shown", "_value")

    def __init__(self, expression: ColumnExpression, inputs: Sequence[int], width: int) -> None:
        self._expression = expression
        self._inputs = tuple(inputs)
        self._width = width
        self._rows = KeyTable(width)
        self._shown = np.zeros(self._rows.capacity, np.int64)
        self._value = np.zeros(self._rows.capacity, np.int64)

    def process(self, ticks: Ticks, inputs: Sequence[Iterable[Delta]]) -> Iterator[Delta]:
        done = 0
        for delta in inputs[0]:
            starts = np.searchsorted(delta.tick, np.arange(len(ticks) + 1))
            for tick in np.unique(delta.tick).tolist():
                # A chunk may begin with the last tick of the one before.
                yield from self._changes(ticks, done, tick)
                done = tick
                self._take(delta, int(starts[tick]), int(starts[tick + 1]))
        yield from self._changes(ticks, done, len(ticks))

    def _changes(self, ticks: Ticks, first: int, last: int) -> Iterator[Delta]:
        """The changes at the ticks from `first` to `last`, of which all rows have been applied."""
        for tick in range(first, last):
            changed = self._evaluate(tick, int(ticks.time[tick]))
            if len(changed):
                yield changed

    def _take(self, delta: Delta, first: int, last: int) -> None:
        if first == last:
            return
        if not count_rows(delta.sign, delta.columns, first, last, self._rows.address):
            self._make_room(last - first)
            count_rows(delta.sign, delta.columns, first, last, self._rows.address)

    def _make_room(self, new_rows: int) -> None:
        rows = self._rows
        if rows.ensure(new_rows):
            grown = np.zeros(rows.capacity - len(self._shown), np.int64)
            self._shown = np.concatenate([self._shown, grown])
            self._value = np.concatenate([self._value, grown])

    def _evaluate(self, tick: int, time: int) -> Delta:
        """The results of all rows at this instant, as a difference."""
        rows = self._rows
        used = int(rows.meta[USED])
        live = np.flatnonzero((rows.counts[:used] > 0) | (self._shown[:used] > 0))
        columns = rows.keys.reshape(-1, max(self._width, 1))[live, : self._width].T
        value, count = self._at(columns, rows.counts[live], np.full(len(live), time, np.int64))
        same = value == self._value[live]
        shown = self._shown[live]
        retracted = np.where(same, np.maximum(shown - count, 0), shown)
        inserted = np.where(same, np.maximum(count - shown, 0), count)
        retracted_rows, inserted_rows = (
            np.repeat(np.arange(len(live)), retracted),
            np.repeat(np.arange(len(live)), inserted),
        )
        delivered = np.concatenate(
            [
                self._row(columns[:, retracted_rows], self._value[live][retracted_rows]),
                self._row(columns[:, inserted_rows], value[inserted_rows]),
            ],
            axis=1,
        )
        sign = np.repeat(np.array([-1, 1], np.int8), [len(retracted_rows), len(inserted_rows)])
        self._shown[live], self._value[live] = count, value
        return Delta(np.full(len(sign), tick, np.int32), sign, delivered)

    def _at(self, columns: Ids, count: Ids, now: Ids) -> tuple[Ids, Ids]:
        """For each row its value, and how often it is delivered."""
        raise NotImplementedError

    def _row(self, columns: Ids, value: Ids) -> Ids:
        """The rows in the form in which they are delivered."""
        raise NotImplementedError

    def _chosen(self, columns: Ids) -> list[npt.NDArray[np.int64]]:
        return [columns[c] for c in self._inputs]

    def shrink(self) -> None:
        """Between two steps all rows that have been shown are there."""
        before, kept = self._rows.capacity, self._rows.compact()
        if kept is not None:
            self._shown = rows_of(self._shown, kept, before, self._rows.capacity)
            self._value = rows_of(self._value, kept, before, self._rows.capacity)

    def live_ids(self) -> Iterable[Ids]:
        return (self._rows.live_ids(), self._value, *self._expression.live_ids())

    @property
    def nbytes(self) -> int:
        return self._rows.nbytes + self._shown.nbytes + self._value.nbytes


class TimedFilter(_Timed):
    """The mappings for which the condition is true at the tick."""

    def _at(self, columns: Ids, count: Ids, now: Ids) -> tuple[Ids, Ids]:
        passed = self._expression.test(self._chosen(columns), now)
        return np.zeros(len(count), np.int64), np.where(passed, count, 0)

    def _row(self, columns: Ids, value: Ids) -> Ids:
        return columns


class TimedExtend(_Timed):
    """Adds a column: the expression's value at the tick."""

    def _at(self, columns: Ids, count: Ids, now: Ids) -> tuple[Ids, Ids]:
        return self._expression.evaluate(self._chosen(columns), now), count

    def _row(self, columns: Ids, value: Ids) -> Ids:
        return np.concatenate([columns, value[np.newaxis]])
