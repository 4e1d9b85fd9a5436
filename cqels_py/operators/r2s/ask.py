"""ASK: whether there is any mapping, delivered when that changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from cqels_py.batches.delta import Delta
from cqels_py.batches.elements import Ids
from cqels_py.batches.results import ResultBatch
from cqels_py.event_time.clock import Ticks
from cqels_py.terms.layout import FALSE, TRUE


class Ask:
    """The answer as a stream: `every_tick` (RSTREAM), or its changes: the new value, the old one, or both."""

    STATE = ("_count", "_last")

    def __init__(self, variables: tuple[str, ...], *, insertions: bool, deletions: bool, every_tick: bool) -> None:
        self._variables = variables
        self._insertions = insertions
        self._deletions = deletions
        self._every_tick = every_tick
        self._count = 0
        self._last = 0

    def process(self, ticks: Ticks, chunks: Iterable[Delta]) -> Iterator[ResultBatch]:
        change = np.zeros(len(ticks), np.int64)
        for delta in chunks:
            np.add.at(change, delta.tick, delta.sign)
        counts = self._count + np.cumsum(change)
        answers = np.where(counts > 0, TRUE, FALSE)
        before = np.concatenate([[self._last], answers[:-1]])
        self._count, self._last = int(counts[-1]), int(answers[-1])
        if self._every_tick:
            rows = np.arange(len(ticks))
            yield self._batch(ticks, rows, np.ones(len(rows), np.int8), answers)
            return
        flips = np.flatnonzero(answers != before)
        if self._insertions and self._deletions:
            rows = np.repeat(flips, 2)
            sign = np.tile(np.array([-1, 1], np.int8), len(flips))
            values = np.where(sign < 0, before[rows], answers[rows])
            known = values != 0
            yield self._batch(ticks, rows[known], sign[known], values[known])
        elif self._insertions:
            yield self._batch(ticks, flips, np.ones(len(flips), np.int8), answers[flips])
        else:
            flips = flips[before[flips] != 0]
            yield self._batch(ticks, flips, np.full(len(flips), -1, np.int8), before[flips])

    def _batch(self, ticks: Ticks, rows: Ids, sign: npt.NDArray[np.int8], values: Ids) -> ResultBatch:
        return ResultBatch(self._variables, ticks.time[rows], sign, (values,))

    def live_ids(self) -> Iterable[Ids]:
        return ()

    @property
    def nbytes(self) -> int:
        return 0
