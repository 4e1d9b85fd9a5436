"""Duplicate elimination (Algorithm 7)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from cqels_py.batches.delta import Delta, first_rows
from cqels_py.batches.elements import Ids
from cqels_py.event_time.clock import Ticks
from cqels_py.kernels.rows import distinct as kernel
from cqels_py.state.key_table import KeyTable


class DistinctRows:
    """Each different mapping once: a one-way index counts its copies."""

    STATE = ("index",)

    def __init__(self, width: int) -> None:
        self._width = width
        self.index = KeyTable(width)

    def process(self, ticks: Ticks, inputs: Sequence[Iterable[Delta]]) -> Iterator[Delta]:
        for delta in inputs[0]:
            yield self._chunk(delta)

    def _chunk(self, delta: Delta) -> Delta:
        rows = len(delta)
        tick, sign, columns = np.empty(rows, np.int32), np.empty(rows, np.int8), np.empty((self._width, rows), np.int64)
        given = (
            delta.tick,
            delta.sign,
            delta.columns,
            self.index.address,
            np.empty(rows, np.int64),
            tick,
            sign,
            columns,
        )
        made = kernel.distinct(*given)
        if made == kernel.KEYS_FULL:
            self.index.ensure(rows)
            made = kernel.distinct(*given)
        assert made >= 0, "a retracted mapping was never inserted"
        return first_rows(tick, sign, columns, made)

    def standing_rows(self) -> Ids:
        """The different mappings that are there (width, n)."""
        return self.index.keys_of(np.flatnonzero(self.index.counts))

    def shrink(self) -> None:
        self.index.compact()

    def live_ids(self) -> Iterable[Ids]:
        return (self.index.live_ids(),)

    @property
    def nbytes(self) -> int:
        return self.index.nbytes
