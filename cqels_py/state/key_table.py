"""A hash table from keys to counted entries: the arrays of `kernels.structures.hash_table`, and their growth."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from cqels_py.kernels.primitives.state_record import StateArray, StateRecord
from cqels_py.kernels.structures import hash_table as kernel
from cqels_py.kernels.structures import key_index as record
from cqels_py.state.arrays import SHRINK_FROM, rows_of

_SMALLEST = 64


class KeyTable(StateRecord):
    """Key (a row of `width` ids) -> entry number with a counter: the one-way index of the paper's section 3.2.

    The arrays are public, as kernels work on them; kernels open the record by `address` (kernels/structures/key_index.py). `ensure`
    before a batch makes room for as many new keys as it has rows.
    """

    table = StateArray[np.int64](record.TABLE)
    keys = StateArray[np.int64](record.KEYS)
    counts = StateArray[np.int64](record.COUNTS)
    free = StateArray[np.int32](record.FREE_ENTRIES)
    meta = StateArray[np.int64](record.META)

    STATE = ("table", "keys", "counts", "free", "meta")

    def __init__(self, width: int) -> None:
        self.width = width
        self.table = np.zeros(2 * _SMALLEST, np.int64)
        self.keys = np.zeros(_SMALLEST * max(width, 1), np.int64)
        self.counts = np.zeros(_SMALLEST, np.int64)
        self.free = np.zeros(_SMALLEST, np.int32)
        self.meta = np.zeros(4, np.int64)

    @property
    def arrays(self) -> tuple[npt.NDArray[Any], ...]:
        """All arrays; `ensure` may replace them."""
        return self.table, self.keys, self.counts, self.free, self.meta

    @property
    def mask(self) -> int:
        return len(self.table) - 1

    @property
    def capacity(self) -> int:
        return len(self.counts)

    @property
    def entries(self) -> int:
        """Entries in use, those with a zero counter included."""
        return self.meta.item(kernel.USED) - self.meta.item(kernel.FREE)

    @property
    def live(self) -> int:
        """Keys whose counter is not zero."""
        return self.entries - int(self.meta[kernel.ZERO])

    @property
    def spare(self) -> int:
        """The number of new keys for which there is room."""
        return min(self.capacity, len(self.table) // 2) - self.entries

    def keys_of(self, entries: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The keys of these entries (width, n)."""
        return self.keys.reshape(self.capacity, -1)[entries, : self.width].T

    def ensure(self, new_keys: int) -> bool:
        """Make room for `new_keys` more; entries with a zero counter are released for that.

        True if the arrays by entry number have grown: the operator must grow its own to `capacity`.
        """
        if self.width == 0:
            # One key at most; its entry stays, with a zero counter too (the single group of an aggregation).
            return False
        if new_keys <= self.spare:
            return False
        needed = max(_SMALLEST, 1 << int(max(self.live + new_keys, 1) * 3 // 2 - 1).bit_length())
        grown = needed > self.capacity
        if grown:
            self._grow(needed)
            self.table = np.zeros(2 * self.capacity, np.int64)
        self._rebuild()
        return grown

    def compact(self) -> npt.NDArray[np.int64] | None:
        """Give back room, between two steps, if few entries are live: they get new numbers, and all others are released.

        Returns the former numbers of the entries in the order of the new ones, for the owner's arrays; None if nothing has changed.
        """
        if not self._is_sparse:
            return None
        kept = np.flatnonzero(self.counts[: self.meta[kernel.USED]])
        self._keep(kept)
        return kept

    def release(self) -> None:
        """Give back room, between two steps, if few entries are live, as far as these keep their numbers."""
        if self._is_sparse:
            live = np.flatnonzero(self.counts[: self.meta[kernel.USED]])
            self._keep(np.arange(live[-1] + 1 if len(live) else 0))
            # No term is kept for them.
            self.keys.reshape(self.capacity, -1)[self.counts == 0] = 0
            # Those with the lowest numbers are used next, so that there will be more room behind the last one.
            free = self.free[: self.meta[kernel.FREE]]
            free[:] = free[::-1].copy()

    @property
    def _is_sparse(self) -> bool:
        return self.width > 0 and SHRINK_FROM * _least_for(self.live) <= self.capacity

    def _keep(self, entries: npt.NDArray[np.int64]) -> None:
        """Keep these entries alone, with numbers from 0 on."""
        before, capacity = self.capacity, _least_for(len(entries))
        self.keys = rows_of(self.keys, entries, before, capacity)
        self.counts = rows_of(self.counts, entries, before, capacity)
        self.free = np.zeros(capacity, np.int32)
        self.table = np.zeros(2 * capacity, np.int64)
        self.meta[kernel.USED] = len(entries)
        self._rebuild()

    def renumber(self, column: int, numbers: npt.NDArray[np.int64]) -> None:
        """One column of the keys has numbers of another table's entries, whose new ones are given by the former ones."""
        keys = self.keys.reshape(self.capacity, -1)[: self.meta[kernel.USED]]
        keys[:, column] = numbers[keys[:, column]]
        self._rebuild()

    def _rebuild(self) -> None:
        kernel.rebuild(self.table, self.keys, self.width, self.counts, self.free, self.meta)

    def _grow(self, capacity: int) -> None:
        extra = capacity - self.capacity
        self.keys = np.concatenate([self.keys, np.zeros(extra * max(self.width, 1), np.int64)])
        self.counts = np.concatenate([self.counts, np.zeros(extra, np.int64)])
        self.free = np.concatenate([self.free, np.zeros(extra, np.int32)])

    def live_ids(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Ids that keys may refer to (a superset: released entries are included until they are used again)."""
        return self.keys[: int(self.meta[kernel.USED]) * self.width]

    @property
    def nbytes(self) -> int:
        return self.table.nbytes + self.keys.nbytes + self.counts.nbytes + self.free.nbytes


def _least_for(keys: int) -> int:
    """The capacity that so many keys need at least."""
    return max(_SMALLEST, 1 << max(keys - 1, 0).bit_length())
