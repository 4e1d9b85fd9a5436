"""The entry of a scan: of the triples that match its pattern, those that fulfil its conditions enter the window."""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat, jit_inline
from cqels_py.kernels.compiler.native_call import (
    BOOL,
    INT8S,
    INT32S,
    INT64,
    INT64_ROWS,
    INT64S,
    NativeCall,
)
from cqels_py.kernels.primitives.state_record import int8s, int32s, int64_rows, int64s, matrix
from cqels_py.kernels.primitives.status import DONE, PYTHON_NEEDED
from cqels_py.kernels.steps.deltas import COUNT, DELTA_COLUMNS, SIGN, TICK
from cqels_py.kernels.steps.driver import ROOM_NEEDED
from cqels_py.kernels.steps.element import (
    COLUMNS,
    DUE_THROUGH,
    ELEMENT,
    ELEMENT_TICK,
    KERNEL,
    LINKS,
    MATCHES,
    OF_TRIPLE,
    STATE,
    TICKS,
    TIME,
    TRIPLES,
    WORDS,
)
from cqels_py.kernels.values.interpreter import evaluate_rows
from cqels_py.kernels.windows import clock, match, sliding

ROUTER, PATTERN, TESTS, EVALUATE, CLOCK, OUTPUT = range(3, 9)
"""LINKS, behind those of every entry, whose STATE is the window: the router's table, the pattern's number there, how many conditions
there are, the kernel for them, the clock, and where the changes go."""
POSITIONS, ROWS, INPUTS, POINTS, NOW, TRUE, ENTERING, NO_UNITS, FIRST_TEST = range(1, 10)
"""Arrays of the record. POSITIONS (width): 0, 1 or 2 for each column. Scratch for as many rows as an element has triples: ROWS, the
conditions' INPUTS (three columns), POINTS, NOW, TRUE, and the ENTERING mappings. NO_UNITS: empty."""
CODE, CONSTANTS, SPECIAL, PLACES, FIELDS = range(5)
"""Arrays of condition k, from FIRST_TEST + k * FIELDS on: as of `evaluate_rows`, and where its inputs are in a triple."""

EVALUATION = NativeCall(evaluate_rows, INT64, INT64_ROWS, INT64S, INT64S, INT64_ROWS, INT64S, BOOL, INT64S)
SLIDE = NativeCall(
    sliding.slide, INT64, INT64, INT64S, INT64, INT64S, INT64S, INT64, INT64S, INT32S, INT64_ROWS, INT32S, INT8S, INT64_ROWS
)  # fmt: skip
_evaluate, _slide = EVALUATION.call, SLIDE.call


@jit_inline
def _matching(record, router, pattern, element):
    """Copy the numbers of the triples that match to ROWS; returns how many."""
    first, matches, rows = int64s(router, match.FIRST), int64s(element, MATCHES), int64s(record, ROWS)
    start = first[pattern]
    for i in range(first[pattern + 1] - start):
        rows[i] = matches[start + i]
    return first[pattern + 1] - start


@jit_flat
def _fulfilling(record, test, kernel, columns, time, count):
    """Leave those of ROWS that fulfil a condition; returns how many, or -1 if one needs texts."""
    rows, field = int64s(record, ROWS), FIRST_TEST + test * FIELDS
    places, now, true = int64s(record, field + PLACES), int64s(record, NOW)[:count], int64s(record, TRUE)[:count]
    inputs = matrix(int64s(record, INPUTS), len(places), count)
    for i in range(count):
        now[i] = time
        for c in range(len(places)):
            inputs[c, i] = columns[places[c], rows[i]]
    code, constants, special = (
        int64_rows(record, field + CODE), int64s(record, field + CONSTANTS), int64s(record, field + SPECIAL)
    )  # fmt: skip
    if _evaluate(kernel, (code, constants, special, inputs, now, True, true)):
        return np.int64(-1)
    kept = 0
    for i in range(count):
        if true[i] == 1:
            rows[kept] = rows[i]
            kept += 1
    return np.int64(kept)


@jit_flat
def scan(record):
    """The window's changes. PYTHON_NEEDED: a condition needs texts; ROOM_NEEDED: the window's buffer may be too small;
    OUTPUT_FULL: there are more changes than there is room for."""
    links = int64s(record, LINKS)
    element, window, output = links[ELEMENT], links[STATE], links[OUTPUT]
    words, time = int64s(element, WORDS), int64s(element, TIME)[0]
    columns = matrix(int64s(element, COLUMNS), 3, words[TRIPLES])
    count, made = _matching(record, links[ROUTER], links[PATTERN], element), int64s(output, COUNT)
    for test in range(links[TESTS]):
        if count > 0:
            count = _fulfilling(record, test, links[EVALUATE], columns, time, count)
    if count < 0:
        return PYTHON_NEEDED
    counters, reached, made[0] = int64s(window, sliding.COUNTERS), words[DUE_THROUGH], 0
    if count == 0 and counters[sliding.NEXT_EXPIRY] > reached:
        return DONE
    positions, rows, points = int64s(record, POSITIONS), int64s(record, ROWS), int64s(record, POINTS)[:count]
    width = len(positions)
    entering = matrix(int64s(record, ENTERING), width, count)
    for i in range(count):
        points[i] = time
        for c in range(width):
            entering[c, i] = columns[positions[c], rows[i]]
    tick = int32s(output, TICK)
    status = _slide(
        links[KERNEL],
        (
            window, points, reached, int64s(links[CLOCK], clock.INSTANTS)[: words[TICKS]], int64s(record, NO_UNITS), 0,
            int64s(element, OF_TRIPLE)[:count], int32s(element, ELEMENT_TICK), entering, tick, int8s(output, SIGN),
            matrix(int64s(output, DELTA_COLUMNS), width, len(tick)),
        ),
    )  # fmt: skip
    made[0] = counters[sliding.MADE]
    return np.int64(ROOM_NEEDED) if status == PYTHON_NEEDED else status
