"""Entries of operators on one mapping at a time that evaluate an expression, and of DISTINCT."""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat
from cqels_py.kernels.compiler.native_call import INT8S, INT32S, INT64, INT64_ROWS, INT64S, NativeCall
from cqels_py.kernels.primitives.state_record import int8s, int32s, int64_rows, int64s, matrix
from cqels_py.kernels.primitives.status import DONE, PYTHON_NEEDED
from cqels_py.kernels.rows import distinct as distinct_rows
from cqels_py.kernels.steps.conditions import EVALUATION
from cqels_py.kernels.steps.deltas import COUNT, DELTA_COLUMNS, SIGN, TICK, close_gaps
from cqels_py.kernels.steps.driver import ROOM_NEEDED, VALUES_NEEDED
from cqels_py.kernels.steps.element import KERNEL, LINKS, STATE
from cqels_py.kernels.windows import clock

SOURCE, WIDTH, OUTPUT = range(3, 6)
"""LINKS, behind those of every entry: the delta that is read, the number of its columns, and where the changes go. STATE is the
clock for an expression, and the KeyTable for DISTINCT."""
CODE, CONSTANTS, SPECIAL, PLACES, INPUTS, NOW, VALUES, FOUND = range(1, 9)
"""Arrays of an expression's record. CODE, CONSTANTS, SPECIAL: as of `evaluate_rows`; PLACES: the columns of its inputs. Scratch for
as many rows as a delta has: the INPUTS' columns, NOW, the rows' VALUES. FOUND (1): 1 where Python has found the values that need
texts."""
HASHES = 1
"""Scratch of DISTINCT: a number a row."""

DISTINCT = NativeCall(
    distinct_rows.distinct, INT64, INT32S, INT8S, INT64_ROWS, INT64, INT64S, INT32S, INT8S, INT64_ROWS
)  # fmt: skip
_evaluate, _distinct = EVALUATION.call, DISTINCT.call


@jit_flat
def _find_values(record, rows, as_test):
    """Evaluate the expression for each row, to VALUES. False: some rows need texts."""
    links, found = int64s(record, LINKS), int64s(record, FOUND)
    if found[0] != 0 or rows == 0:
        found[0] = 0
        return True
    columns, ticks = int64s(links[SOURCE], DELTA_COLUMNS), int32s(links[SOURCE], TICK)
    places, instants = int64s(record, PLACES), int64s(links[STATE], clock.INSTANTS)
    inputs, now = matrix(int64s(record, INPUTS), len(places), rows), int64s(record, NOW)[:rows]
    for i in range(rows):
        now[i] = instants[ticks[i]]
    for c in range(len(places)):
        for i in range(rows):
            inputs[c, i] = columns[places[c] * rows + i]
    code, constants, special = int64_rows(record, CODE), int64s(record, CONSTANTS), int64s(record, SPECIAL)
    values = int64s(record, VALUES)[:rows]
    return _evaluate(links[KERNEL], (code, constants, special, inputs, now, as_test, values)) == 0


@jit_flat
def filter_rows(record):
    """Keep the rows for which the condition is true. VALUES_NEEDED: it needs texts."""
    links = int64s(record, LINKS)
    source, output, width = links[SOURCE], links[OUTPUT], links[WIDTH]
    rows = int64s(source, COUNT)[0]
    if not _find_values(record, rows, True):
        return np.int64(VALUES_NEEDED)
    true, columns, chosen = int64s(record, VALUES), int64s(source, DELTA_COLUMNS), int64s(output, DELTA_COLUMNS)
    made, room = 0, len(int32s(output, TICK))
    for i in range(rows):
        if true[i] == 1:
            int32s(output, TICK)[made] = int32s(source, TICK)[i]
            int8s(output, SIGN)[made] = int8s(source, SIGN)[i]
            for c in range(width):
                chosen[c * room + made] = columns[c * rows + i]
            made += 1
    close_gaps(output, width, made)
    return np.int64(DONE)


@jit_flat
def extend_rows(record):
    """Add a column with the expression's values. VALUES_NEEDED: it needs texts."""
    links = int64s(record, LINKS)
    source, output, width = links[SOURCE], links[OUTPUT], links[WIDTH]
    rows = int64s(source, COUNT)[0]
    if not _find_values(record, rows, False):
        return np.int64(VALUES_NEEDED)
    values, columns, extended = int64s(record, VALUES), int64s(source, DELTA_COLUMNS), int64s(output, DELTA_COLUMNS)
    for i in range(rows):
        int32s(output, TICK)[i] = int32s(source, TICK)[i]
        int8s(output, SIGN)[i] = int8s(source, SIGN)[i]
        extended[width * rows + i] = values[i]
    for i in range(width * rows):
        extended[i] = columns[i]
    int64s(output, COUNT)[0] = rows
    return np.int64(DONE)


@jit_flat
def distinct(record):
    """The rows that appear and vanish. ROOM_NEEDED: the index has none for new ones."""
    links = int64s(record, LINKS)
    source, output, width = links[SOURCE], links[OUTPUT], links[WIDTH]
    rows, tick = int64s(source, COUNT)[0], int32s(output, TICK)
    int64s(output, COUNT)[0] = 0
    if rows == 0:
        return np.int64(DONE)
    made = _distinct(
        links[KERNEL],
        (
            int32s(source, TICK)[:rows], int8s(source, SIGN)[:rows], matrix(int64s(source, DELTA_COLUMNS), width, rows),
            links[STATE], int64s(record, HASHES), tick, int8s(output, SIGN),
            matrix(int64s(output, DELTA_COLUMNS), width, len(tick)),
        ),
    )  # fmt: skip
    if made < 0:
        return np.int64(ROOM_NEEDED if made == distinct_rows.KEYS_FULL else PYTHON_NEEDED)
    close_gaps(output, width, made)
    return np.int64(DONE)
