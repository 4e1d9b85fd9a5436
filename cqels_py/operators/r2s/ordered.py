"""RSTREAM with ORDER BY: each report in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from cqels_py.batches.delta import Delta
from cqels_py.batches.elements import Ids
from cqels_py.batches.results import ResultBatch
from cqels_py.event_time.clock import Ticks
from cqels_py.operators.r2r.aggregate import TermValues
from cqels_py.state.ordered_rows import OrderedRows


class OrderedAnswers:
    """RSTREAM by the values of `order` (column, descending), ties by the results' columns in term order.

    The input's `width` columns are the results', then the others of the order. `distinct`: only the first of equal
    results in a report.
    """

    STATE = ("_rows",)

    def __init__(
        self,
        variables: tuple[str, ...],
        width: int,
        order: Sequence[tuple[int, bool]],
        values: TermValues,
        *,
        distinct: bool = False,
    ) -> None:
        self._variables = variables
        self._width = width
        self._rows = OrderedRows(width, order, limit=0)
        self._values = values
        self._distinct = distinct

    def process(self, ticks: Ticks, chunks: Iterable[Delta]) -> Iterator[ResultBatch]:
        done = 0
        for delta in chunks:
            starts = np.searchsorted(delta.tick, np.arange(len(ticks) + 1))
            for tick in np.unique(delta.tick).tolist():
                # A chunk may begin with the last tick of the one before.
                yield from self._reports(ticks, done, tick)
                done = tick
                self._rows.take(delta.take(np.arange(starts[tick], starts[tick + 1])), *self._values.texts())
        yield from self._reports(ticks, done, len(ticks))

    def _reports(self, ticks: Ticks, first: int, last: int) -> Iterator[ResultBatch]:
        """The reports of the ticks from `first` to `last`, at which nothing more changes."""
        for tick in range(first, last):
            report = self._report(int(ticks.time[tick]))
            if len(report):
                yield report

    def _report(self, time: int) -> ResultBatch:
        rows = self._rows.in_order()[: len(self._variables)]
        if self._distinct:
            rows = rows[:, _first_of_each(rows)]
        n = rows.shape[1]
        columns = tuple(np.ascontiguousarray(column) for column in rows)
        return ResultBatch(self._variables, np.full(n, time, np.int64), np.ones(n, np.int8), columns)

    def live_ids(self) -> Iterable[Ids]:
        return (self._rows.live_ids(),)

    @property
    def nbytes(self) -> int:
        return self._rows.nbytes


def _first_of_each(rows: Ids) -> Ids:
    """The first position of each different column of an array."""
    _, first = np.unique(rows, axis=1, return_index=True)
    return np.sort(first)
