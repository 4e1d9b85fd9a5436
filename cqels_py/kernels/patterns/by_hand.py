"""`A SEQ B SEQ C` with one key, written by hand: the kernel of MATCH, which interprets any automaton, is measured against it.

The same algorithm: a list for each key, from the newest run to the oldest, in a ring of nodes.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat
from cqels_py.kernels.structures.hashing import mix

POSITION, BEFORE, OLDER, FIRST, RECENT, KEY, FIELDS = range(7)


@jit_flat
def _slot(keys, wanted):
    slots = np.int64(len(keys) - 1)
    slot = mix(wanted) & slots
    while keys[slot] != 0 and keys[slot] != wanted:
        slot = (slot + 1) & slots
    return slot


@jit_flat
def three_in_sequence(kind, key, window, nodes, keys, heads, out):
    """All matches of kinds 0, 1 and 2 with one key, no more than `window` positions apart, as rows of positions (n, 3).

    `nodes`: a ring with a power of 2 rows, more than the window; `keys`, `heads`: a hash table with room for all keys of both lists.
    Returns the number of matches, of which those that `out` has room for are written.
    """
    mask, made = np.int64(len(nodes) - 1), np.int64(0)
    tail, following = np.int64(1), np.int64(1)
    for at in range(len(kind)):
        low = at - window
        while tail < following and nodes[tail & mask, POSITION] < low:
            tail += 1
        before, first = np.int64(0), following
        if kind[at] > 0:
            slot = _slot(keys, 2 * key[at] + kind[at])
            before = heads[slot]
            if before < tail or nodes[before & mask, RECENT] < tail:
                continue
            first = nodes[before & mask, RECENT]
        if kind[at] < 2:
            row = following & mask
            slot = _slot(keys, 2 * key[at] + kind[at] + 1)
            older = heads[slot]
            keys[slot] = 2 * key[at] + kind[at] + 1
            nodes[row, POSITION], nodes[row, BEFORE], nodes[row, FIRST], nodes[row, OLDER] = at, before, first, older
            nodes[row, RECENT] = first
            if older >= tail:
                nodes[row, RECENT] = max(first, nodes[older & mask, RECENT])
            heads[slot] = following
            following += 1
            continue
        while before >= tail and nodes[before & mask, RECENT] >= tail:
            if nodes[before & mask, FIRST] >= tail:
                begun = nodes[before & mask, BEFORE]
                while begun >= tail:
                    if made < len(out):
                        out[made, 0], out[made, 1], out[made, 2] = (
                            nodes[begun & mask, POSITION],
                            nodes[before & mask, POSITION],
                            at,
                        )
                    made += 1
                    begun = nodes[begun & mask, OLDER]
            before = nodes[before & mask, OLDER]
    return made
