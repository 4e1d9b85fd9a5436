"""The driver: it runs a program, which is data. A row has the address of an entry and that of the entry's record.

An entry is a kernel that takes its record's address (primitives/state_record.py) and returns a status. Each does one part of the
step of a single element: it reads the rows that the entries before it have written, updates a state, and writes its own results.
With another status than DONE the driver stops there, and Python goes on with the step: nothing that the entry owns has changed, or
it has begun, and its record tells how far it is (joins, aggregates, MATCH, counted joins, PARTITION BY, rules).
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat
from cqels_py.kernels.compiler.native_call import call_entry
from cqels_py.kernels.primitives.state_record import int64_rows, int64s
from cqels_py.kernels.primitives.status import DONE

ROWS, STATUS = range(2)
"""The arrays of a program's record: its rows (n, 2), and the status (1) of the last one that was run."""
ROOM_NEEDED, VALUES_NEEDED = 3, 4
"""Statuses: the entry's state has too little room; Python is to find values. Then the program can go on with the same row."""


@jit_flat
def run(program, first):
    """Run the rows from `first` on. Returns the number of the first that is not completed, or how many there are."""
    rows, status = int64_rows(program, ROWS), int64s(program, STATUS)
    for row in range(np.uint64(first), np.uint64(len(rows))):
        status[0] = call_entry(rows[row, 0], (rows[row, 1],))
        if status[0] != DONE:
            return np.int64(row)
    return np.int64(len(rows))
