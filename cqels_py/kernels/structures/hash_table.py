"""The one-way index (section 3.2): key -> entry, an open-addressing table over keys of any number of ids.

An entry's number is stable while it lives, so that operators keep what belongs to it in arrays of their own.

`table`: 0 is empty, else the upper half of the hash with entry number + 1 in the lower half.
`keys`: `width` ids for each entry. `counts`: the entry's counter; entries that fell to zero stay until `rebuild`
(section 3.4: lazy, batched deletion). `meta`: entries ever used, free entries, entries with a zero counter.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat, jit_inline
from cqels_py.kernels.primitives.prefetch import prefetch
from cqels_py.kernels.structures.hashing import combine, mix

USED, FREE, ZERO = 0, 1, 2

_UPPER = np.int64(-(1 << 32))
_LOWER = np.int64((1 << 32) - 1)
_SHIFT, _ENTRY, _NOTHING, _ONE = np.uint64(32), np.uint64((1 << 32) - 1), np.uint64(0), np.uint64(1)
_SEED = 0x5851F42D
_TABLE_AHEAD, _ENTRY_AHEAD = 12, 6


@jit_inline
def hash_row(columns, row, width):
    if width == 1:
        return mix(columns[0, row])
    hashed = np.int64(_SEED)
    for c in range(width):
        hashed = combine(hashed, columns[c, row])
    return hashed


@jit_inline
def find(table, mask, keys, width, columns, row, hashed):
    """The entry with the key in `columns[:width, row]`, or -1."""
    position = hashed & mask
    upper = hashed & _UPPER
    while True:
        word = table[position]
        if word == 0:
            return np.int64(-1)
        if word & _UPPER == upper:
            entry = (word & _LOWER) - 1
            same = True
            for c in range(width):
                if keys[entry * width + c] != columns[c, row]:
                    same = False
                    break
            if same:
                return np.int64(entry)
        position = (position + 1) & mask


@jit_inline
def find_nearby(hashed, key, table, places, keys):
    """The entry with a key of one id, if it stands at the first or second place where it may stand, as most do; or -1.

    `places`: the mask of the table's. Without a jump between the two, which could not be foreseen.
    """
    place = np.uint64(hashed) & places
    upper = np.uint64(hashed) >> _SHIFT
    # A choice between two words would become one.
    place = (place + np.uint64(np.uint64(table[place]) >> _SHIFT != upper)) & places
    word = np.uint64(table[place])
    entry = (word & _ENTRY) - _ONE
    if (word >> _SHIFT) == upper and word != _NOTHING and keys[entry] == key:
        return np.int64(entry)
    return np.int64(-1)


@jit_inline
def expect(row, hashes, table, mask, keys, width, counts):
    """Have what rows further on will look up come nearer: first the table's word, then the entry to which it leads."""
    if row + _TABLE_AHEAD < len(hashes):
        prefetch(table, hashes[row + _TABLE_AHEAD] & mask)
    if row + _ENTRY_AHEAD < len(hashes):
        entry = (table[hashes[row + _ENTRY_AHEAD] & mask] & _LOWER) - 1
        if entry >= 0:
            prefetch(keys, entry * width)
            prefetch(counts, entry)


@jit_inline
def add(table, mask, keys, width, columns, row, hashed, counts, free, meta):
    """A new entry, its counter zero. The caller has made sure that there is room and that the key is not there."""
    if meta[FREE] > 0:
        meta[FREE] -= 1
        entry = np.int64(free[meta[FREE]])
    else:
        entry = np.int64(meta[USED])
        meta[USED] += 1
    for c in range(width):
        keys[entry * width + c] = columns[c, row]
    counts[entry] = 0
    meta[ZERO] += 1
    position = hashed & mask
    while table[position] != 0:
        position = (position + 1) & mask
    table[position] = (hashed & _UPPER) | (entry + 1)
    return entry


@jit_flat
def rebuild(table, keys, width, counts, free, meta):
    """Enter the entries in `table`, whatever it has, anew; those with a zero counter become free.

    Entries come in the order of their numbers, as their counters and keys stand in memory. `meta` is brought up to date.
    """
    mask, unused = np.int64(len(table) - 1), np.int64(0)
    for position in range(np.uint64(len(table))):
        table[position] = 0
    for entry in range(meta[USED]):
        if counts[entry] == 0:
            free[unused] = entry
            unused += 1
            continue
        hashed = mix(keys[entry]) if width == 1 else np.int64(_SEED)
        if width != 1:
            for c in range(width):
                hashed = combine(hashed, keys[entry * width + c])
        position = hashed & mask
        while table[position] != 0:
            position = (position + 1) & mask
        table[position] = (hashed & _UPPER) | (entry + 1)
    meta[FREE], meta[ZERO] = unused, 0
