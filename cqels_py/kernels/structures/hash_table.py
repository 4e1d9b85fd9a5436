"""The one-way index (section 3.2): a hash table key -> entry with open addressing, for keys of any number of ids.

An entry's number does not change during its life, so operators keep data of the entry in arrays of their own, indexed
by it.

`table`: a slot is 0 if empty, else the upper half of the hash, with entry number + 1 in the lower half. `keys`: `width`
ids for each entry. `counts`: the entry's counter; entries whose counter is zero stay until `rebuild` (section 3.4:
lazy, batched deletion). `meta`: entries ever used, free entries, entries with a zero counter.
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
def find_in_first_slots(hashed, key, table, places, keys):
    """The entry of a key of one id if it is in the first or second slot of its probe sequence, as most are; else -1.

    `places`: the table's mask. There is no branch between the two slots, as it would be unpredictable.
    """
    place = np.uint64(hashed) & places
    upper = np.uint64(hashed) >> _SHIFT
    # Computed, as a conditional expression between two words would become a branch.
    place = (place + np.uint64(np.uint64(table[place]) >> _SHIFT != upper)) & places
    word = np.uint64(table[place])
    entry = (word & _ENTRY) - _ONE
    if (word >> _SHIFT) == upper and word != _NOTHING and keys[entry] == key:
        return np.int64(entry)
    return np.int64(-1)


@jit_inline
def prefetch_lookup(row, hashes, table, mask, keys, width, counts):
    """Prefetch the entries of later rows: first the slot in the table, then the entry that it refers to."""
    if row + _TABLE_AHEAD < len(hashes):
        prefetch(table, hashes[row + _TABLE_AHEAD] & mask)
    if row + _ENTRY_AHEAD < len(hashes):
        entry = (table[hashes[row + _ENTRY_AHEAD] & mask] & _LOWER) - 1
        if entry >= 0:
            prefetch(keys, entry * width)
            prefetch(counts, entry)


@jit_inline
def add(table, mask, keys, width, columns, row, hashed, counts, free, meta):
    """Add an entry with a zero counter. The caller has made sure that there is room and that the key is not in the
    table."""
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
    """Clear `table` and insert all entries again; those with a zero counter become free.

    Entries are visited by number, in the order in which their counters and keys are in memory. `meta` is updated.
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
