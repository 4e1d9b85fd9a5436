"""The entry of scans in a step of several elements, whose triples are routed: those that match enter a sliding window."""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat
from cqels_py.kernels.primitives.state_record import int8s, int32s, int64_rows, int64s, matrix
from cqels_py.kernels.primitives.status import DONE, OUTPUT_FULL, PYTHON_NEEDED
from cqels_py.kernels.steps.deltas import COUNT, DELTA_COLUMNS, SIGN, TICK
from cqels_py.kernels.steps.driver import ROOM_NEEDED
from cqels_py.kernels.steps.element import ELEMENT, KERNEL, LINKS, STATE, TICKS, WORDS
from cqels_py.kernels.steps.scan import OF_TIME, SLIDE
from cqels_py.kernels.windows import clock, match, sliding

COLUMNS, OF_TRIPLE, MATCHES, ELEMENT_TICK, POINTS_OF, TRIPLE_NUMBER, UNITS, BEFORE, REACHED = range(1, 10)
"""The arrays of the record of a step's elements, behind WORDS, where TICKS is set. COLUMNS (3, m): the triples; OF_TRIPLE: their
elements; MATCHES: as routed. ELEMENT_TICK: of each element; POINTS_OF (3, m): by measure, that of an element (TRIPLES: not used);
TRIPLE_NUMBER: of each triple. By stream, for ELEMENTS and then for TRIPLES: UNITS (2 * streams, m), the elements of those that are
counted, and BEFORE: how many came earlier. REACHED (3, streams): how far each measure has come."""
ROUTER, PATTERN, CLOCK, OUTPUT, MEASURE, STREAM_OF, STREAMS = range(3, 10)
"""LINKS, behind those of every entry, whose STATE is the window: see scan.py. STREAMS: how many there are."""
POSITIONS, ELEMENTS_OF, POINTS, ENTERING = range(1, 5)
"""Arrays of the record. POSITIONS: as in scan.py. Scratch for as many rows as a step has triples: the elements and points of the
mappings that arrive, and these."""
_slide = SLIDE.call


@jit_flat
def _take_matches(record, rows):
    """Write the mappings of these triples, their elements, and the points of the window's measure at which they arrive."""
    links = int64s(record, LINKS)
    batch, measure, count = links[ELEMENT], links[MEASURE], len(rows)
    of_triple, numbers, points_of = int64s(batch, OF_TRIPLE), int64s(batch, TRIPLE_NUMBER), int64_rows(batch, POINTS_OF)
    positions, columns = int64s(record, POSITIONS), int64_rows(batch, COLUMNS)
    elements, points, entering = int64s(record, ELEMENTS_OF), int64s(record, POINTS), int64s(record, ENTERING)
    for i in range(count):
        triple = rows[i]
        elements[i] = of_triple[triple]
        points[i] = numbers[triple] if measure == clock.TRIPLES else points_of[measure, of_triple[triple]]
        for c in range(len(positions)):
            entering[c * count + i] = columns[positions[c], triple]


@jit_flat
def scan_batch(record):
    """The changes of a sliding window. ROOM_NEEDED: its buffer or its scratch may be too small; PYTHON_NEEDED: there are more
    changes than there is room for."""
    links = int64s(record, LINKS)
    batch, window, output, measure, stream = (
        links[ELEMENT],
        links[STATE],
        links[OUTPUT],
        links[MEASURE],
        links[STREAM_OF],
    )
    first, made, counters = int64s(links[ROUTER], match.FIRST), int64s(output, COUNT), int64s(window, sliding.COUNTERS)
    rows = int64s(batch, MATCHES)[first[links[PATTERN]] : first[links[PATTERN] + 1]]
    count, reached = len(rows), int64_rows(batch, REACHED)[measure, stream]
    made[0] = 0
    if count == 0 and counters[sliding.NEXT_EXPIRY] > reached:
        return np.int64(DONE)
    _take_matches(record, rows)
    width, tick = len(int64s(record, POSITIONS)), int32s(output, TICK)
    unit = stream if measure == OF_TIME else measure * links[STREAMS] + stream
    status = _slide(
        links[KERNEL],
        (
            window, int64s(record, POINTS)[:count], reached, int64s(links[CLOCK], clock.INSTANTS)[: int64s(batch, WORDS)[TICKS]],
            int64_rows(batch, UNITS)[unit], int64s(batch, BEFORE)[unit], int64s(record, ELEMENTS_OF)[:count],
            int32s(batch, ELEMENT_TICK), matrix(int64s(record, ENTERING), width, count), tick, int8s(output, SIGN),
            matrix(int64s(output, DELTA_COLUMNS), width, len(tick)),
        ),
    )  # fmt: skip
    if status == DONE:
        made[0] = counters[sliding.MADE]
        return np.int64(DONE)
    if status == OUTPUT_FULL and len(int64s(window, sliding.EXPIRING_POINTS)) >= len(tick):
        return np.int64(PYTHON_NEEDED)
    return np.int64(ROOM_NEEDED)
