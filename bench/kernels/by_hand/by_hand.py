"""The common part of the hand-written kernels: the result buffer, and calls that continue where the last one stopped.

Each key has a line of eight words (64 bytes, a cache line) in an open-addressing hash table: the key, then heads and counts of its
rings. A ring is a fixed, contiguous and circular run of values, large enough for the most mappings that uniform keys
bring. Keys never leave.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from bench.arrivals import Batch, Setting
from bench.contest import Competitor, Rows

LINE = 8
# cursor: the current arrival, results in the buffer, arrivals before this batch
ROW, MADE, BEFORE = range(3)

_FIRST_ROOM = 8192


def table(keys: int) -> npt.NDArray[np.int64]:
    """A hash table for `keys` keys, at most half full."""
    return np.zeros(LINE << int(2 * keys - 1).bit_length(), np.int64)


class ByHand(Competitor):
    """Calls a kernel until it has processed a batch, and delivers its buffer whenever it is full.

    A kernel stops before an arrival whose results do not fit, and returns False if a ring is too small.
    """

    def __init__(self, setting: Setting, width: int, dtype: type[np.generic] = np.int64) -> None:
        self.cursor = np.zeros(3, np.int64)
        self.out_tick = np.empty(_FIRST_ROOM, np.int32)
        self.out = np.empty((width, _FIRST_ROOM), dtype)
        self.heads = np.zeros(setting.inputs, np.int64)

    def step(self, batch: Batch) -> bool:
        """One call of the kernel."""
        raise NotImplementedError

    def take(self, batch: Batch) -> Iterator[Rows]:
        cursor = self.cursor
        cursor[ROW] = 0
        while cursor[ROW] < len(batch):
            before = int(cursor[ROW])
            cursor[MADE] = 0
            if not self.step(batch):
                raise RuntimeError("a hand-written kernel has met more mappings of one key than it has room for")
            made = int(cursor[MADE])
            if made:
                yield Rows(self.out_tick[:made], self.out[:, :made])
            elif cursor[ROW] == before:
                self.out_tick = np.empty(2 * len(self.out_tick), np.int32)
                self.out = np.empty((len(self.out), len(self.out_tick)), self.out.dtype)
        cursor[BEFORE] += len(batch)
