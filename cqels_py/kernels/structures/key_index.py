"""The one-way index (hash_table.py) as one argument: its arrays as kernels open them from the record of a KeyTable."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cqels_py.kernels.compiler.jit import jit_inline
from cqels_py.kernels.primitives.state_record import int32s, int64s
from cqels_py.kernels.structures.hash_table import FREE, USED, ZERO, add, find

TABLE, KEYS, COUNTS, FREE_ENTRIES, META = range(5)
"""The arrays of the record (primitives/state_record.py)."""


class KeyIndex(NamedTuple):
    """The arrays of hash_table.py. They stay those of the record until it is given larger ones, which no kernel does."""

    table: npt.NDArray[np.int64]
    keys: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]
    free: npt.NDArray[np.int32]
    meta: npt.NDArray[np.int64]


@jit_inline
def open_index(record):
    """The KeyIndex of a record."""
    return KeyIndex(
        int64s(record, TABLE),
        int64s(record, KEYS),
        int64s(record, COUNTS),
        int32s(record, FREE_ENTRIES),
        int64s(record, META),
    )


@jit_inline
def has_room(index, width, new_keys):
    """Is there room for so many new keys? An index without columns has one key at most, and always room for it."""
    room = min(len(index.counts), len(index.table) >> 1) - (index.meta[USED] - index.meta[FREE])
    return width == 0 or new_keys <= room


@jit_inline
def find_key(index, width, columns, row, hashed):
    """The entry with the key in `columns[:width, row]`, or -1."""
    return find(index.table, np.int64(len(index.table) - 1), index.keys, width, columns, row, hashed)


@jit_inline
def add_key(index, width, columns, row, hashed):
    """Add an entry with a zero counter; there is room, and the key is not there."""
    mask = np.int64(len(index.table) - 1)
    return add(index.table, mask, index.keys, width, columns, row, hashed, index.counts, index.free, index.meta)


@jit_inline
def count_entry(index, entry, step):
    """Add to an entry's counter. Returns the counter before."""
    before = index.counts[entry]
    index.counts[entry] = before + step
    index.meta[ZERO] += np.int64(before + step == 0) - np.int64(before == 0)
    return before
