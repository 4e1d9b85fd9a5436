"""The arrays of a buffer of mappings that expire in any order, and where a unit's mappings are in it."""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_inline

POINTS, COLUMNS, KEPT, COUNTERS = range(4)
"""The arrays of its record (primitives/state_record.py). POINTS (room), never falling: of each mapping the number of its unit.
COLUMNS (width, room): its ids. KEPT (room): whether it has not been released."""
END, RELEASED = range(2)
"""COUNTERS: how many places are used, and how many of those have been released."""


@jit_inline
def place_of(unit, points, end):
    """The place of the first mapping of a unit, or of the first after it."""
    least, most = np.int64(0), end
    while least < most:
        middle = (least + most) >> 1
        if points[middle] < unit:
            least = middle + 1
        else:
            most = middle
    return least
