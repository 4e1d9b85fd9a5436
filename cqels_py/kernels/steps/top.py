"""The entry of ORDER BY with LIMIT: the rows that enter and leave the slice."""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat
from cqels_py.kernels.compiler.native_call import (
    INT8S,
    INT32S,
    INT64,
    INT64_PAIR,
    INT64_ROWS,
    INT64S,
    UINT8S,
    NativeCall,
)
from cqels_py.kernels.primitives.state_record import int8s, int32s, int64s, matrix, uint8s
from cqels_py.kernels.primitives.status import DONE, PYTHON_NEEDED
from cqels_py.kernels.rows import top as top_rows
from cqels_py.kernels.steps.deltas import CHANGES, COUNT, DELTA_COLUMNS, SIGN, TICK
from cqels_py.kernels.steps.driver import ROOM_NEEDED
from cqels_py.kernels.steps.element import ARENA, KERNEL, LINKS, STATE, TABLE
from cqels_py.kernels.steps.rows import OUTPUT, SOURCE, WIDTH
from cqels_py.kernels.windows import clock

INDEX, TERMS, CANCEL, CLOCK = range(OUTPUT + 1, OUTPUT + 5)
"""LINKS, behind those of steps/rows.py, whose STATE is the record of OrderedRows. INDEX: that of its KeyTable; TERMS: the record of
`element.encode`, which has the dictionary's texts; CANCEL: the kernel `changes`; CLOCK: the clock."""
MOVED_TICK, MOVED_SIGN, MOVED, SCRATCH, REMAINING = range(1, 6)
"""Arrays of the record, scratch for as many rows as a delta has: those that `take` emits, the scratch of `changes`, its output,
which has a column more."""

TAKE = NativeCall(
    top_rows.take, INT64_PAIR, INT32S, INT8S, INT64_ROWS, INT64, INT64, UINT8S, INT64S, INT64_ROWS, INT32S, INT8S
)  # fmt: skip
_take, _changes = TAKE.call, CHANGES.call


@jit_flat
def top(record):
    """The slice's changes. PYTHON_NEEDED: there are more rows than there is room for; ROOM_NEEDED: the state has too little."""
    links = int64s(record, LINKS)
    source, output, width = links[SOURCE], links[OUTPUT], links[WIDTH]
    rows, room, made = int64s(source, COUNT)[0], len(int32s(output, TICK)), int64s(output, COUNT)
    made[0] = 0
    if rows == 0:
        return np.int64(DONE)
    # Each moves two at most.
    if 2 * rows > room:
        return np.int64(PYTHON_NEEDED)
    ticks, signs = int32s(record, MOVED_TICK), int8s(record, MOVED_SIGN)
    status, moved = _take(
        links[KERNEL],
        (
            int32s(source, TICK)[:rows], int8s(source, SIGN)[:rows], matrix(int64s(source, DELTA_COLUMNS), width, rows),
            links[STATE], links[INDEX], uint8s(links[TERMS], ARENA), int64s(links[TERMS], TABLE),
            matrix(int64s(record, MOVED), width, room), ticks, signs,
        ),
    )  # fmt: skip
    if status != top_rows.DONE:
        return np.int64(ROOM_NEEDED if status == top_rows.ROWS_FULL else PYTHON_NEEDED)
    columns = int64s(record, MOVED)
    for c in range(1, width):
        for i in range(moved):
            columns[c * moved + i] = columns[c * room + i]
    left = _changes(
        links[CANCEL],
        (
            ticks[:moved], signs[:moved], matrix(columns, width, moved), int64s(links[CLOCK], clock.INSTANTS), 1, 1,
            int64s(record, SCRATCH), int32s(output, TICK), int8s(output, SIGN),
            matrix(int64s(record, REMAINING), width + 1, moved),
        ),
    )  # fmt: skip
    remaining, out = int64s(record, REMAINING), int64s(output, DELTA_COLUMNS)
    for c in range(width):
        for i in range(left):
            out[c * left + i] = remaining[(c + 1) * moved + i]
    made[0] = left
    return np.int64(DONE)
