"""Deltas between the entries of a program, and the entry that makes results of them.

A delta's record has room for as many rows as TICK has places. COUNT (1): how many there are. Their columns stand one after the
other in DELTA_COLUMNS, without gaps. After another status than DONE, COUNT may be that of an earlier step: then only
the entry's own part (dataflow/program_parts.py) reads the delta, and only if the entry has begun.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat
from cqels_py.kernels.compiler.native_call import INT8S, INT32S, INT64, INT64_ROWS, INT64S, NativeCall
from cqels_py.kernels.primitives.state_record import int8s, int32s, int64s, matrix
from cqels_py.kernels.primitives.status import DONE, PYTHON_NEEDED
from cqels_py.kernels.rows.distinct import changes
from cqels_py.kernels.steps.element import KERNEL, LINKS, STATE
from cqels_py.kernels.windows import clock

TICK, SIGN, DELTA_COLUMNS, COUNT = range(4)
"""The arrays of a delta's record."""

INPUT, WIDTH, INSERTIONS, DELETIONS, OUTPUT = range(3, 8)
"""LINKS of `report`, behind those of every entry, whose STATE is the clock. OUTPUT: a delta's record, whose first column is for the
times of results."""
TARGET, FIRST_INPUT = 1, 2
"""LINKS of `project` and `union`, which need no state: where the delta goes, and those that are read."""
POSITIONS = 1
"""In their records an array with a number for each column: for `project` that of the column of its input."""
ROOM = 1
"""The scratch of `changes` in the record of `report`."""

CHANGES = NativeCall(
    changes, INT64, INT32S, INT8S, INT64_ROWS, INT64S, INT64, INT64, INT64S, INT32S, INT8S, INT64_ROWS
)  # fmt: skip
_changes = CHANGES.call


@jit_flat
def close_gaps(delta, width, rows):
    """So many rows have been written to a delta, in columns as long as there is room for."""
    columns, room = int64s(delta, DELTA_COLUMNS), len(int32s(delta, TICK))
    for c in range(1, width):
        for i in range(rows):
            columns[c * rows + i] = columns[c * room + i]
    int64s(delta, COUNT)[0] = rows


@jit_flat
def project(record):
    """Choose columns of a delta; -1 makes one of unbound values."""
    links, positions = int64s(record, LINKS), int64s(record, POSITIONS)
    source, output = links[FIRST_INPUT], links[TARGET]
    rows = int64s(source, COUNT)[0]
    columns, chosen = int64s(source, DELTA_COLUMNS), int64s(output, DELTA_COLUMNS)
    for i in range(rows):
        int32s(output, TICK)[i] = int32s(source, TICK)[i]
        int8s(output, SIGN)[i] = int8s(source, SIGN)[i]
    for c in range(len(positions)):
        for i in range(rows):
            chosen[c * rows + i] = 0 if positions[c] < 0 else columns[positions[c] * rows + i]
    int64s(output, COUNT)[0] = rows
    return np.int64(DONE)


@jit_flat
def union(record):
    """The rows of all inputs by tick; at one tick those of the first come first. PYTHON_NEEDED: there is no room for them."""
    links, width = int64s(record, LINKS), len(int64s(record, POSITIONS))
    output, inputs, total = links[TARGET], len(links) - FIRST_INPUT, 0
    for p in range(inputs):
        total += int64s(links[FIRST_INPUT + p], COUNT)[0]
    ticks, signs, columns = int32s(output, TICK), int8s(output, SIGN), int64s(output, DELTA_COLUMNS)
    if total > len(ticks):
        return np.int64(PYTHON_NEEDED)
    made = 0
    for p in range(inputs):
        source = links[FIRST_INPUT + p]
        rows, own = int64s(source, COUNT)[0], int64s(source, DELTA_COLUMNS)
        # From behind: no row is moved twice.
        left, at = made, made + rows
        for i in range(rows - 1, -1, -1):
            tick = int32s(source, TICK)[i]
            while left > 0 and ticks[left - 1] > tick:
                at, left = at - 1, left - 1
                ticks[at], signs[at] = ticks[left], signs[left]
                for c in range(width):
                    columns[c * total + at] = columns[c * total + left]
            at -= 1
            ticks[at], signs[at] = tick, int8s(source, SIGN)[i]
            for c in range(width):
                columns[c * total + at] = own[c * rows + i]
        made += rows
    int64s(output, COUNT)[0] = total
    return np.int64(DONE)


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
