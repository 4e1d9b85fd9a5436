"""A number for each different mapping, for COUNT(DISTINCT *)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from cqels_py.batches.delta import Delta
from cqels_py.batches.elements import Ids
from cqels_py.event_time.clock import Ticks
from cqels_py.kernels.rows.numbering import number_rows
from cqels_py.state.key_table import KeyTable


class NumberRows:
    """Adds a column of integers: equal for mappings that are equal in `columns`, different for others.

    A retraction has the same number as its insertion. A number may be reused when no mapping has it any more.
    """

    STATE = ("_index",)

    def __init__(self, columns: Sequence[int]) -> None:
        self._columns = np.array(columns, np.int64)
        self._index = KeyTable(len(columns))

    def process(self, ticks: Ticks, inputs: Sequence[Iterable[Delta]]) -> Iterator[Delta]:
        for delta in inputs[0]:
            yield self._chunk(delta)

    def _chunk(self, delta: Delta) -> Delta:
        index = self._index
        index.ensure(len(delta))
        number = np.empty(len(delta), np.int64)
        there = number_rows(
            delta.sign, np.ascontiguousarray(delta.columns[self._columns]), len(self._columns), index.table, index.mask,
            index.keys, index.counts, index.free, index.meta, number,
        )  # fmt: skip
        assert there, "a withdrawn mapping was never there"
        return delta.with_columns(np.concatenate([delta.columns, number[np.newaxis]]))

    def live_ids(self) -> Iterable[Ids]:
        return (self._index.live_ids(),)

    @property
    def nbytes(self) -> int:
        return self._index.nbytes
