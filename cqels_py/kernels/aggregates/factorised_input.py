"""A step's rows of all inputs of an aggregation below a join, laid out as its kernel reads them (factorised.py)."""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.aggregates.factorised_records import (
    FIRST,
    KEY_HASH,
    NUMBER,
    ROW_HASH,
    ROW_PORT,
    ROW_SIGN,
    ROW_TICK,
)
from cqels_py.kernels.compiler.jit import jit_flat
from cqels_py.kernels.structures.hash_table import hash_row


@jit_flat
def lay_rows(port, tick, sign, columns, place, start, rows, sources, key_width, width, hashes):
    """Write an input's rows (n) to their places among those of all inputs: place[start:], or from `start` on where
    `place` is empty.

    `sources` (2, all): for each of the `width` columns of a key and its row, and for each aggregate's argument, the
    index in this input's `columns`, -1 for none: zeros; and the kind of the argument. `hashes`: 1 if the hashes of keys
    are needed, 2 if those of rows too, else 0. Returns the number of insertions, and the tags of the arguments of sums,
    a bit for each.
    """
    inserts, tags, n, expires_fifo = np.int64(0), np.int64(0), np.uint64(len(tick)), len(place) == 0
    first, place = np.uint64(start if expires_fifo else 0), place[start:]
    for i in range(n):
        to = first + i if expires_fifo else np.uint64(place[i])
        rows[ROW_TICK, to] = tick[i]
        rows[ROW_SIGN, to] = sign[i]
        rows[ROW_PORT, to] = port
        inserts += sign[i] > 0
    for c in range(sources.shape[1]):
        source, number = sources[0, c], np.int64(sources[1, c] == NUMBER)
        for i in range(n):
            term = columns[source, i] if source >= 0 else np.int64(0)
            rows[FIRST + c, first + i if expires_fifo else np.uint64(place[i])] = term
            tags |= number << ((term >> 60) & 15)
    if hashes == 0:
        return inserts, tags
    keys = rows[FIRST : FIRST + width]
    for i in range(n):
        to = first + i if expires_fifo else np.uint64(place[i])
        rows[KEY_HASH, to] = hash_row(keys, to, key_width)
    if hashes == 2:
        for i in range(n):
            to = first + i if expires_fifo else np.uint64(place[i])
            rows[ROW_HASH, to] = hash_row(keys, to, width)
    return inserts, tags
