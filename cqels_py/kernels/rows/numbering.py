"""A number for each different row."""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit
from cqels_py.kernels.structures.hash_table import hash_row
from cqels_py.kernels.structures.key_index import add_key, count_entry, find_key, has_room, open_index
from cqels_py.kernels.values.decimals import scaled_id
from cqels_py.terms.layout import TAG_INTEGER

DONE, KEYS_FULL, NOT_THERE = range(3)


@jit
def number_rows(sign, columns, index, out):
    """Insert rows (width, n) into the one-way index with this address; `out` (n): the entry of each, as the id of an
    integer.

    KEYS_FULL: there is no room for so many new rows, and nothing has changed. NOT_THERE: a retracted row was not there.
    """
    key_index, width = open_index(index), len(columns)
    if not has_room(key_index, width, len(sign)):
        return KEYS_FULL
    for row in range(len(sign)):
        hashed = hash_row(columns, row, width)
        entry = find_key(key_index, width, columns, row, hashed)
        if entry < 0:
            entry = add_key(key_index, width, columns, row, hashed)
        if count_entry(key_index, entry, np.int64(sign[row])) == 0 and sign[row] < 0:
            return NOT_THERE
        out[row] = scaled_id(np.int64(TAG_INTEGER), np.int64(entry), np.int64(0))
    return DONE
