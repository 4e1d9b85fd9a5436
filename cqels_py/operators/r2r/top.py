"""ORDER BY with LIMIT and OFFSET, incrementally: only rows that enter or leave the slice are delivered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from cqels_py.batches.delta import Delta
from cqels_py.batches.elements import Ids
from cqels_py.event_time.clock import Ticks
from cqels_py.kernels import top as kernel
from cqels_py.operators.r2r.aggregate import TermValues
from cqels_py.state.key_table import KeyTable


class TopRows:
    """The rows at positions offset to offset + limit, by `order` (column, descending), ties by all columns in term order."""

    def __init__(
        self, width: int, order: Sequence[tuple[int, bool]], offset: int, limit: int, values: TermValues
    ) -> None:
        self._width = width
        self._columns = np.array([column for column, _ in order], np.int64)
        self._descending = np.array([descending for _, descending in order], np.bool_)
        self._offset, self._limit = offset, limit
        self._values = values
        self.index = KeyTable(width)
        self._order = np.zeros(64, np.int64)
        self._state = np.zeros(kernel.STATE_FIELDS, np.int64)
        self._slice = np.zeros(64 * max(width, 1), np.int64)

    def process(self, ticks: Ticks, inputs: Sequence[Iterable[Delta]]) -> Iterator[Delta]:
        for delta in inputs[0]:
            if len(delta):
                yield self._chunk(delta)

    def _chunk(self, delta: Delta) -> Delta:
        rows = len(delta)
        index, state = self.index, self._state
        index.ensure(rows)
        self._make_room(int(state[kernel.LENGTH]) + rows)
        out = np.empty((self._width, 2 * rows), np.int64)
        tick, sign = np.empty(2 * rows, np.int32), np.empty(2 * rows, np.int8)
        state[kernel.OUT] = 0
        texts, spans = self._values.texts()
        there = kernel.take(
            delta.tick, delta.sign, delta.columns, self._width, index.table, index.mask, index.keys,
            index.counts, index.free, index.meta, self._order, state, self._columns, self._descending, self._offset,
            self._limit, self._slice, texts, spans, out, tick, sign,
        )  # fmt: skip
        assert there, "a withdrawn mapping was never there"
        made = int(state[kernel.OUT])
        return Delta(tick[:made], sign[:made], out[:, :made])

    def _make_room(self, rows: int) -> None:
        while len(self._order) < rows + 1:
            self._order = np.concatenate([self._order, np.zeros_like(self._order)])
        while len(self._slice) < min(rows, self._limit) * self._width:
            self._slice = np.concatenate([self._slice, np.zeros_like(self._slice)])

    def live_ids(self) -> Iterable[Ids]:
        return (self.index.live_ids(), self._slice)

    @property
    def nbytes(self) -> int:
        return self.index.nbytes + self._order.nbytes + self._slice.nbytes
