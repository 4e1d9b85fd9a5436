"""Deltas between the entries of a program, and the entry that makes results of them.

A delta's record has room for as many rows as TICK has places. COUNT (1): how many there are. Their columns stand one after the
other in DELTA_COLUMNS, without gaps. An entry with another status than DONE leaves no delta.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat
from cqels_py.kernels.compiler.native_call import INT8S, INT32S, INT64, INT64_ROWS, INT64S, NativeCall
from cqels_py.kernels.primitives.state_record import int8s, int32s, int64s, matrix
from cqels_py.kernels.primitives.status import DONE
from cqels_py.kernels.rows.distinct import changes
from cqels_py.kernels.steps.element import KERNEL, LINKS, STATE
from cqels_py.kernels.windows import clock

TICK, SIGN, DELTA_COLUMNS, COUNT = range(4)
"""The arrays of a delta's record."""

INPUT, WIDTH, INSERTIONS, DELETIONS, OUTPUT = range(3, 8)
"""LINKS of `report`, behind those of every entry, whose STATE is the clock. OUTPUT: a delta's record, whose first column is for the
times of results."""
ROOM = 1
"""The scratch of `changes` in the record of `report`."""

CHANGES = NativeCall(
    changes, INT64, INT32S, INT8S, INT64_ROWS, INT64S, INT64, INT64, INT64S, INT32S, INT8S, INT64_ROWS
)  # fmt: skip
_changes = CHANGES.call


@jit_flat
def report(record):
    """The results: the changes that remain when + and - of equal rows cancel, with the times of their ticks."""
    links = int64s(record, LINKS)
    source, output, width = links[INPUT], links[OUTPUT], links[WIDTH]
    rows, made = int64s(source, COUNT)[0], int64s(output, COUNT)
    made[0] = 0
    if rows:
        made[0] = _changes(
            links[KERNEL],
            (
                int32s(source, TICK)[:rows], int8s(source, SIGN)[:rows], matrix(int64s(source, DELTA_COLUMNS), width, rows),
                int64s(links[STATE], clock.INSTANTS), links[INSERTIONS], links[DELETIONS], int64s(record, ROOM),
                int32s(output, TICK), int8s(output, SIGN), matrix(int64s(output, DELTA_COLUMNS), width + 1, rows),
            ),
        )  # fmt: skip
    return np.int64(DONE)
