"""A number for each different row."""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit
from cqels_py.kernels.structures.hash_table import ZERO, add, find, hash_row
from cqels_py.kernels.values.decimals import scaled_id
from cqels_py.terms.layout import TAG_INTEGER


@jit
def number_rows(sign, columns, width, table, mask, keys, counts, free, meta, out):
    """Insert rows (width, n) into a one-way index; `out` (n): the entry of each, as the id of an integer. False: a
    retracted row was not there."""
    for row in range(len(sign)):
        hashed = hash_row(columns, row, width)
        entry = find(table, mask, keys, width, columns, row, hashed)
        if entry < 0:
            entry = add(table, mask, keys, width, columns, row, hashed, counts, free, meta)
        if counts[entry] == 0:
            if sign[row] < 0:
                return False
            meta[ZERO] -= 1
        counts[entry] += sign[row]
        if counts[entry] == 0:
            meta[ZERO] += 1
        out[row] = scaled_id(np.int64(TAG_INTEGER), np.int64(entry), np.int64(0))
    return True
