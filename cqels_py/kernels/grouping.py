"""Which group each row belongs to: rows looked up in a one-way index ahead of the work on them.

A lookup depends on nothing but the index, so that many are under way at once; what comes after knows its groups in time to ask
for their memory.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.jit import jit_flat
from cqels_py.kernels.key_table import FREE, USED, add, find, hash_row
from cqels_py.kernels.prefetch import prefetch

_TABLE_AHEAD, _KEY_AHEAD = 32, 16
_ONE, _ZERO = np.uint64(1), np.uint64(0)
_SHIFT, _LOWER = np.uint64(32), np.uint64((1 << 32) - 1)


@jit_flat
def locate(tick, sign, columns, first, width, table, keys, counts, free, meta, hashes, groups):
    """The entries of `columns[:width]` for rows from `first` on, in `groups`; missing ones are added, with a counter of zero.

    Returns the row before which this is done: all of them, or the start of the tick in which the index became full. Negative:
    -1 - row, where a row is withdrawn whose key is not there. `hashes`: room for one number a row.
    """
    rows = len(tick)
    mask = np.int64(len(table) - 1)
    room = min(len(counts), len(table) >> 1) - meta[USED] + meta[FREE]
    places = np.uint64(mask)
    for row in range(first, rows):
        hashes[row] = hash_row(columns, row, width)
    for row in range(first, rows):
        if row + _TABLE_AHEAD < rows:
            prefetch(table, np.uint64(hashes[row + _TABLE_AHEAD]) & places)
            word = np.uint64(table[np.uint64(hashes[row + _KEY_AHEAD]) & places])
            prefetch(keys, ((word & _LOWER) - _ONE) * np.uint64(width))
        hashed = hashes[row]
        if width == 1:
            # Most are found at once.
            word = np.uint64(table[np.uint64(hashed) & places])
            if word != _ZERO and (word >> _SHIFT) == (np.uint64(hashed) >> _SHIFT):
                there = (word & _LOWER) - _ONE
                if keys[there] == columns[0, row]:
                    groups[row] = np.int64(there)
                    continue
        entry = find(table, mask, keys, width, columns, row, hashed)
        if entry < 0:
            if sign[row] < 0:
                return np.int64(-1 - row)
            if room == 0:
                while row > first and tick[row - 1] == tick[row]:
                    row -= 1
                return np.int64(row)
            room -= 1
            entry = add(table, mask, keys, width, columns, row, hashed, counts, free, meta)
        groups[row] = entry
    return np.int64(rows)
