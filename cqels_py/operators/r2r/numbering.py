"""A number for each different mapping, for COUNT(DISTINCT *)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from cqels_py.batches.delta import Delta
from cqels_py.batches.elements import Ids
from cqels_py.event_time.clock import Ticks
from cqels_py.kernels.rows import numbering as kernel
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
        number = np.empty(len(delta), np.int64)
        given = (delta.sign, np.ascontiguousarray(delta.columns[self._columns]), self._index.address, number)
        status = kernel.number_rows(*given)
        if status == kernel.KEYS_FULL:
            self._index.ensure(len(delta))
            status = kernel.number_rows(*given)
        assert status == kernel.DONE, "a retracted mapping was never inserted"
        return delta.with_columns(np.concatenate([delta.columns, number[np.newaxis]]))

    def shrink(self) -> None:
        """The numbers of rows that are there stay as they are."""
        self._index.release()

    def live_ids(self) -> Iterable[Ids]:
        return (self._index.live_ids(),)

    @property
    def nbytes(self) -> int:
        return self._index.nbytes
