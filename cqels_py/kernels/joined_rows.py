"""One step's rows of all inputs of an aggregation below a join, laid out as its kernel reads them (kernels/factorised.py)."""

from __future__ import annotations

import numpy as np

from cqels_py.dictionary.layout import TAG_FLOAT, TAG_LITERAL, TAG_OVERFLOW
from cqels_py.kernels.jit import jit_flat
from cqels_py.kernels.joined_records import FIRST, KEY_HASH, NUMBER, ROW_HASH, ROW_PORT, ROW_SIGN, ROW_TICK
from cqels_py.kernels.key_table import hash_row


@jit_flat
def lay_rows(port, tick, sign, columns, place, start, rows, key, key_width, width, arguments, kinds, hashes):
    """Put an input's rows (n) in their places among those of all, place[start:].

    `key`: which of its `columns` become the first of the `width` ones of a key and its row; the others are zeros. `arguments`:
    for each aggregate the column that it takes from this input, -1 for none: zeros. `hashes`: those of keys and rows are wanted.
    Returns how many rows have a plus sign, whether an argument is a literal of which only the dictionary knows the number, and
    whether one is a float.
    """
    come, hashed, floats, n, place = np.int64(0), False, False, np.uint64(len(tick)), place[start:]
    for i in range(n):
        to = np.uint64(place[i])
        rows[ROW_TICK, to] = tick[i]
        rows[ROW_SIGN, to] = sign[i]
        rows[ROW_PORT, to] = port
        come += sign[i] > 0
    for k in range(width):
        for i in range(n):
            rows[FIRST + k, place[i]] = columns[key[k], i] if k < len(key) else 0
    for a in range(len(arguments)):
        for i in range(n):
            term = columns[arguments[a], i] if arguments[a] >= 0 else np.int64(0)
            rows[FIRST + width + a, place[i]] = term
            tag = term >> 60
            hashed |= (kinds[a] == NUMBER) & ((tag == TAG_LITERAL) | (tag == TAG_OVERFLOW))
            floats |= (kinds[a] == NUMBER) & (tag == TAG_FLOAT - 16)
    if not hashes:
        return come, hashed, floats
    keys = rows[FIRST : FIRST + width]
    for i in range(n):
        to = np.uint64(place[i])
        rows[KEY_HASH, to] = hash_row(keys, to, key_width)
    if len(key) > key_width:
        for i in range(n):
            to = np.uint64(place[i])
            rows[ROW_HASH, to] = hash_row(keys, to, width)
    return come, hashed, floats
