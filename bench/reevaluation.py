"""Re-evaluation from scratch: numpy over the whole content of the windows at the end of each batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bench.arrivals import Batch, Int64
from bench.contest import Competitor, Rows


def joined(left: Int64, right: Int64) -> tuple[Int64, Int64]:
    """Positions (in left, in right) of all pairs of equal keys."""
    order = np.argsort(right, kind="stable")
    keys = right[order]
    first = np.searchsorted(keys, left, side="left")
    counts = np.searchsorted(keys, left, side="right") - first
    lefts = np.repeat(np.arange(len(left)), counts)
    within = np.arange(len(lefts)) - np.repeat(np.cumsum(counts) - counts, counts)
    return lefts, order[np.repeat(first, counts) + within]


class Reevaluation(Competitor):
    """Keeps the content of the windows and evaluates it again: windows of `size` mappings each, or (`timed`) of `size`
    arrivals in all.
    """

    whole_answers = True

    def __init__(self, size: int, inputs: int, *, timed: bool = False) -> None:
        self._size = size
        self._timed = timed
        self._contents = [np.empty((2, 0), np.int64) for _ in range(inputs)]
        self._times = [np.empty(0, np.int64) for _ in range(inputs)]
        self._now = 0

    def answer(self, windows: Sequence[Int64]) -> Sequence[Int64]:
        """The columns of the answer over each input's keys and values (2, n)."""
        raise NotImplementedError

    def fill(self, batch: Batch) -> None:
        time = self._now + 1 + np.arange(len(batch))
        self._now += len(batch)
        for port in range(len(self._contents)):
            mine = batch.of(port)
            contents = np.concatenate([self._contents[port], batch.columns[:, mine]], axis=1)
            times = np.concatenate([self._times[port], time[mine]])
            if self._timed:
                start = int(np.searchsorted(times, self._now - self._size, side="right"))
            else:
                start = max(0, len(times) - self._size)
            self._contents[port], self._times[port] = contents[:, start:], times[start:]

    def take(self, batch: Batch) -> list[Rows]:
        self.fill(batch)
        columns = self.answer(self._contents)
        return [Rows(np.zeros(len(columns[0]), np.int32), columns)]
