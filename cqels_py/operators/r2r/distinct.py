"""Duplicate elimination (Algorithm 7)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from cqels_py.batches.delta import Delta
from cqels_py.batches.elements import Ids
from cqels_py.event_time.clock import Ticks
from cqels_py.kernels import distinct as kernel
from cqels_py.state.key_table import KeyTable


class DistinctRows:
    """Each mapping once: a counter for each different one (a one-way index)."""

    def __init__(self, width: int) -> None:
        self._width = width
        self.index = KeyTable(width)

    def process(self, ticks: Ticks, inputs: Sequence[Iterable[Delta]]) -> Iterator[Delta]:
        for delta in inputs[0]:
            yield self._chunk(delta)

    def _chunk(self, delta: Delta) -> Delta:
        index = self.index
        index.ensure(len(delta))
        row = np.empty(len(delta), np.int64)
        sign = np.empty(len(delta), np.int8)
        made = kernel.distinct(
            delta.sign, delta.columns, self._width, index.table, index.mask, index.keys, index.counts, index.free,
            index.meta, np.empty(len(delta), np.int64), row, sign,
        )  # fmt: skip
        assert made >= 0, "a withdrawn mapping was never there"
        row = row[:made]
        return Delta(delta.tick[row], sign[:made], delta.columns[:, row])

    def live_ids(self) -> Iterable[Ids]:
        return (self.index.live_ids(),)

    @property
    def nbytes(self) -> int:
        return self.index.nbytes
