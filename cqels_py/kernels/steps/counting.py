"""The last entry of a program: it counts the rows that the others have made in a complete step."""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat
from cqels_py.kernels.primitives.state_record import int8s, int64s
from cqels_py.kernels.primitives.status import DONE
from cqels_py.kernels.steps.deltas import COUNT, SIGN
from cqels_py.kernels.steps.element import LINKS

TOTALS = 1
"""In its record, behind LINKS, which are the deltas: of each all rows so far, and those that are insertions."""


@jit_flat
def count(record):
    """Add up the rows of all deltas."""
    deltas, totals = int64s(record, LINKS), int64s(record, TOTALS)
    for d in range(len(deltas)):
        rows, signs = int64s(deltas[d], COUNT)[0], int8s(deltas[d], SIGN)
        totals[2 * d] += rows
        for i in range(rows):
            if signs[i] > 0:
                totals[2 * d + 1] += 1
    return np.int64(DONE)
