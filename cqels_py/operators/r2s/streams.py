"""Relation to stream: ISTREAM, DSTREAM, RSTREAM and the changelog."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from cqels_py.batches.delta import Delta, by_whole_ticks, concatenate
from cqels_py.batches.elements import Ids
from cqels_py.batches.results import ResultBatch
from cqels_py.event_time.clock import Ticks
from cqels_py.kernels import distinct as kernel
from cqels_py.state.key_table import KeyTable


class Changes:
    """The difference of the answers at two ticks, as bags: its plus side, its minus side, or both (the changelog)."""

    def __init__(self, variables: tuple[str, ...], *, insertions: bool, deletions: bool) -> None:
        self._variables = variables
        self._insertions = insertions
        self._deletions = deletions

    def process(self, ticks: Ticks, chunks: Iterable[Delta]) -> Iterator[ResultBatch]:
        for delta in by_whole_ticks(chunks, len(self._variables)):
            columns, sign, tick = delta.columns, delta.sign, delta.tick
            left = kernel.cancel(tick, sign, columns)
            if not (self._insertions and self._deletions):
                left = left[sign[left] == (1 if self._insertions else -1)]
            if len(left):
                chosen = tick[left]
                yield ResultBatch(self._variables, ticks.time[chosen], sign[left], tuple(columns[:, left]), chosen)

    def live_ids(self) -> Iterable[Ids]:
        return ()

    @property
    def nbytes(self) -> int:
        return 0


class Answers:
    """RSTREAM: the whole answer at each tick; keeps it as a bag."""

    def __init__(self, variables: tuple[str, ...]) -> None:
        self._variables = variables
        self._width = len(variables)
        self._bag = KeyTable(self._width)

    def process(self, ticks: Ticks, chunks: Iterable[Delta]) -> Iterator[ResultBatch]:
        delta = concatenate(chunks, self._width)
        starts = np.searchsorted(delta.tick, np.arange(len(ticks) + 1))
        columns = delta.columns
        for tick in range(len(ticks)):
            self._take(delta.sign, columns, int(starts[tick]), int(starts[tick + 1]))
            rows = kernel.bag_rows(self._bag.counts, int(self._bag.meta[0]))
            if len(rows):
                yield self._report(int(ticks.time[tick]), tick, rows)

    def _take(self, sign: npt.NDArray[np.int8], columns: Ids, first: int, last: int) -> None:
        bag = self._bag
        if first == last:
            return
        bag.ensure(last - first)
        kernel.count_rows(
            sign, columns, self._width, first, last, bag.table, bag.mask, bag.keys, bag.counts, bag.free, bag.meta
        )

    def _report(self, time: int, tick: int, rows: npt.NDArray[np.int64]) -> ResultBatch:
        keys = self._bag.keys.reshape(-1, max(self._width, 1))[rows]
        return ResultBatch(
            self._variables,
            np.full(len(rows), time, np.int64),
            np.ones(len(rows), np.int8),
            tuple(np.ascontiguousarray(keys[:, c]) for c in range(self._width)),
            np.full(len(rows), tick, np.int32),
        )

    def live_ids(self) -> Iterable[Ids]:
        return (self._bag.live_ids(),)

    @property
    def nbytes(self) -> int:
        return self._bag.nbytes
