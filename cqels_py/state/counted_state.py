"""The counters of a join of events, in flat arrays that never shrink."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from cqels_py.errors import RunError
from cqels_py.kernels.joins import counted as kernel
from cqels_py.kernels.primitives.state_record import ArrayTable, StateArray, StateRecord

Int64 = npt.NDArray[np.int64]
_FIRST_ROOM = 64
_MOST_ROWS = 1 << 16
"""Rows of output that are made at once, unless those of a single row are more."""


class CountedState(StateRecord):
    """The counters, and room for rows of output.

    `program`: the arrays of the join's steps, in the order of the kernel. `width`: values of the widest set, `indexes`: of a set, at
    most. `outputs`: columns of a row of output. `once`: counters do not count. `ids`: for each set its columns that are terms.
    """

    _entries = StateArray[np.int64](kernel.ENTRIES)
    _links = StateArray[np.int64](kernel.LINKS)
    _buckets = StateArray[np.int64](kernel.BUCKETS)
    _sizes = StateArray[np.int64](kernel.SIZES)
    _meta = StateArray[np.int64](kernel.META)
    _key = StateArray[np.int64](kernel.KEY)
    _out = StateArray[np.int64](kernel.OUT)
    STATE = ("_entries", "_links", "_buckets", "_sizes", "_meta")

    def __init__(
        self,
        program: Sequence[Int64],
        *,
        width: int,
        indexes: int,
        outputs: int,
        once: bool,
        ids: Sequence[Sequence[int]],
    ) -> None:
        self._program = ArrayTable(*program)
        self._ids = [np.array(columns, np.int64) for columns in ids]
        self._entries = np.zeros((_FIRST_ROOM, kernel.VALUES + width), np.int64)
        self._links = np.zeros((_FIRST_ROOM, max(1, indexes)), np.int64)
        self._buckets = np.zeros(2 * _FIRST_ROOM, np.int64)
        self._sizes = np.zeros(max(1, len(ids)), np.int64)
        self._meta = np.zeros(kernel.META_FIELDS, np.int64)
        self._meta[kernel.ONCE] = once
        self._key = np.zeros(max(1, width), np.int64)
        self._out = np.zeros((_FIRST_ROOM, kernel.OUT_VALUES + outputs), np.int64)

    @property
    def counters(self) -> int:
        """The number of counters."""
        return self._meta.item(kernel.USED)

    def take(self, rows: Int64) -> Int64:
        """Take in rows (see the kernel's `take`); the rows of output that they make. Raises RunError if a counter overflows."""
        meta, start = self._meta, 0
        meta[kernel.MADE] = 0
        made: list[Int64] = []
        while True:
            start = kernel.take(self._program.address, self.address, rows, start, self._out)
            if start < 0:
                raise overflow()
            if start == len(rows):
                break
            self._make_room(rows[start], made)
        made.append(self.made)
        return made[0] if len(made) == 1 else np.concatenate(made)

    @property
    def program_address(self) -> int:
        """That of the join's steps."""
        return self._program.address

    @property
    def made(self) -> Int64:
        """A copy of the rows of output that a kernel has made."""
        return self._out[: self._meta.item(kernel.MADE)].copy()

    def make_room_behind(self, source: int) -> None:
        """Room for the results of a row of this source, behind those that have been made."""
        count = self._meta.item(kernel.MADE)
        needed = kernel.room_needed(self._program.address, self.address, source)
        if self._meta.item(kernel.USED) + needed > len(self._entries):
            self._grow(self._meta.item(kernel.USED) + needed)
        if count + needed > len(self._out):
            larger = np.zeros((1 << (count + int(needed) - 1).bit_length(), self._out.shape[1]), np.int64)
            larger[:count] = self._out[:count]
            self._out = larger

    def _make_room(self, row: Int64, made: list[Int64]) -> None:
        """Room for the results of the next row."""
        meta = self._meta
        needed = kernel.room_needed(self._program.address, self.address, row[kernel.SOURCE])
        if meta.item(kernel.USED) + needed > len(self._entries):
            self._grow(meta.item(kernel.USED) + needed)
        if meta.item(kernel.MADE) + needed > len(self._out):
            made.append(self._out[: meta.item(kernel.MADE)].copy())
            meta[kernel.MADE] = 0
            if needed > len(self._out) or len(self._out) < _MOST_ROWS:
                rows = max(int(needed), min(2 * len(self._out), _MOST_ROWS))
                self._out = np.zeros((1 << (rows - 1).bit_length(), self._out.shape[1]), np.int64)

    def _grow(self, entries: int) -> None:
        size = 1 << (entries - 1).bit_length()
        more = size - len(self._entries)
        self._entries = np.concatenate([self._entries, np.zeros((more, self._entries.shape[1]), np.int64)])
        self._links = np.zeros((size, self._links.shape[1]), np.int64)
        self._buckets = np.zeros(2 * size, np.int64)
        kernel.relink(self._program.address, self.address)

    def live_ids(self) -> Int64:
        """The terms of all counters."""
        entries = self._entries[: self.counters]
        found = [
            entries[entries[:, kernel.SET] == s][:, kernel.VALUES + ids].reshape(-1) for s, ids in enumerate(self._ids)
        ]
        return np.concatenate([np.empty(0, np.int64), *found])

    @property
    def nbytes(self) -> int:
        arrays = (self._entries, self._links, self._buckets, self._sizes, self._key, self._out)
        return sum(array.nbytes for array in arrays)


def overflow() -> RunError:
    """The error of a counter that has overflowed."""
    return RunError(
        "a counter of the EVENT blocks has passed 2^63 - 1: there are more combinations of elements than it can "
        "count; use SELECT DISTINCT, or a window"
    )
