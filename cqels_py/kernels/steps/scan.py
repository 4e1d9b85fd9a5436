"""The entries of scans: of the triples that match their pattern, those that fulfil their conditions enter the window."""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat, jit_inline
from cqels_py.kernels.compiler.native_call import (
    INT8S,
    INT32S,
    INT64,
    INT64_ROWS,
    INT64S,
    NativeCall,
)
from cqels_py.kernels.primitives.state_record import int8s, int32s, int64_rows, int64s, matrix, uint8s
from cqels_py.kernels.primitives.status import DONE, PYTHON_NEEDED
from cqels_py.kernels.steps import by_calls
from cqels_py.kernels.steps.conditions import FIELDS, fulfilling
from cqels_py.kernels.steps.deltas import COUNT, DELTA_COLUMNS, SIGN, TICK
from cqels_py.kernels.steps.driver import ROOM_NEEDED, VALUES_NEEDED
from cqels_py.kernels.steps.element import (
    COLUMNS,
    DUE_THROUGH,
    ELEMENT,
    ELEMENT_TICK,
    ENDED,
    KERNEL,
    LINKS,
    MATCHES,
    NUMBER,
    OF_TRIPLE,
    STATE,
    STEP,
    THROUGH,
    TICKS,
    TIME,
    TRIPLES,
    WORDS,
)
from cqels_py.kernels.windows import clock, delayed, match, sliding, varint_queue

ROUTER, PATTERN, TESTS, EVALUATE, CLOCK, OUTPUT, MEASURE, STREAM_OF = range(3, 11)
"""LINKS, behind those of every entry, whose STATE is the window: the router's table, the pattern's number there, how many conditions
there are, the kernel for them, the clock, where the changes go, the window's measure (`clock.ELEMENTS`, `clock.TRIPLES`, OF_TIME or
OF_SESSION) and the number of its stream."""
STEP_OF, START_OF, DELAY, SIZE_OF, KEEPS_IDS = range(11, 16)
"""Further LINKS of `wait` and `take_session`: the window's STEP (0: none), where its boundaries start, how long ago it ends, its
size, and 1 if a mapping that expires has its ids."""
OF_TIME, OF_SESSION = 2, 3
POSITIONS, ROWS, INPUTS, POINTS, NOW, TRUE, ENTERING, ASKED, FIRST_TEST = range(1, 10)
"""Arrays of the record. POSITIONS (width): 0, 1 or 2 for each column. Scratch for as many rows as an element has triples: ROWS, the
conditions' INPUTS (three columns), POINTS, NOW, TRUE, and the ENTERING mappings (of `wait`: for as many as there are changes).
ASKED: of `wait` and `take_session`. Condition k has its arrays (conditions.py) from FIRST_TEST + k * FIELDS on; its inputs are
columns of triples."""
CALLED, NEW, TAKEN = range(3)
"""ASKED: whether the window has been advanced by Python in this step, as of `by_calls`; how many mappings are new; and how many have
been since the count was settled."""
_BEFORE_ALL = np.int64(-(1 << 62))
SLIDE = NativeCall(
    sliding.slide, INT64, INT64, INT64S, INT64, INT64S, INT64S, INT64, INT64S, INT32S, INT64_ROWS, INT32S, INT8S, INT64_ROWS
)  # fmt: skip
_slide = SLIDE.call


@jit_inline
def _matching(record, router, pattern, element):
    """Copy the numbers of the triples that match to ROWS; returns how many."""
    first, matches, rows = int64s(router, match.FIRST), int64s(element, MATCHES), int64s(record, ROWS)
    start = first[pattern]
    for i in range(first[pattern + 1] - start):
        rows[i] = matches[start + i]
    return first[pattern + 1] - start


@jit_inline
def _reached(links, element):
    """How far the window's measure has come: it expires through this instant, or number."""
    if links[MEASURE] >= OF_TIME:
        return int64s(element, WORDS)[DUE_THROUGH]
    return int64_rows(links[CLOCK], clock.COUNTS)[links[MEASURE], links[STREAM_OF]]


@jit_flat
def find_entering(record):
    """Write the mappings that arrive, and the points of the window's measure at which they do. Returns how many, or -1: a condition
    needs texts."""
    links = int64s(record, LINKS)
    element = links[ELEMENT]
    words, time = int64s(element, WORDS), int64s(element, TIME)[0]
    columns = matrix(int64s(element, COLUMNS), 3, words[TRIPLES])
    count = _matching(record, links[ROUTER], links[PATTERN], element)
    for test in range(links[TESTS]):
        if count > 0:
            count = fulfilling(
                record, FIRST_TEST + test * FIELDS, links[EVALUATE], int64s(element, COLUMNS), words[TRIPLES], int64s(record, ROWS),
                count, time, int64s(record, INPUTS), int64s(record, NOW), int64s(record, TRUE),
            )  # fmt: skip
    if count <= 0:
        return np.int64(count)
    positions, rows, points = int64s(record, POSITIONS), int64s(record, ROWS), int64s(record, POINTS)
    entering, measure = int64s(record, ENTERING), links[MEASURE]
    point = time if measure >= OF_TIME else int64s(element, NUMBER)[0]
    before = _reached(links, element) - words[TRIPLES] if measure == clock.TRIPLES else 0
    for i in range(count):
        points[i] = before + rows[i] + 1 if measure == clock.TRIPLES else point
        for c in range(len(positions)):
            entering[c * count + i] = columns[positions[c], rows[i]]
    return np.int64(count)


@jit_flat
def scan(record):
    """The changes of a sliding window. PYTHON_NEEDED: a condition needs texts; ROOM_NEEDED: the window's buffer may be too small;
    OUTPUT_FULL: there are more changes than there is room for."""
    links = int64s(record, LINKS)
    element, window, output = links[ELEMENT], links[STATE], links[OUTPUT]
    count, words, made = find_entering(record), int64s(element, WORDS), int64s(output, COUNT)
    if count < 0:
        return PYTHON_NEEDED
    counters, reached, made[0] = int64s(window, sliding.COUNTERS), _reached(links, element), 0
    if count == 0 and counters[sliding.NEXT_EXPIRY] > reached:
        return DONE
    # Of a window that counts something expires in the steps of its stream's elements only.
    before = reached - (words[TRIPLES] if links[MEASURE] == clock.TRIPLES else 1)
    width, tick = len(int64s(record, POSITIONS)), int32s(output, TICK)
    status = _slide(
        links[KERNEL],
        (
            window, int64s(record, POINTS)[:count], reached, int64s(links[CLOCK], clock.INSTANTS)[: words[TICKS]],
            int64s(element, OF_TRIPLE), before, int64s(element, OF_TRIPLE)[:count], int32s(element, ELEMENT_TICK),
            matrix(int64s(record, ENTERING), width, count), tick, int8s(output, SIGN),
            matrix(int64s(output, DELTA_COLUMNS), width, len(tick)),
        ),
    )  # fmt: skip
    made[0] = counters[sliding.MADE]
    return np.int64(ROOM_NEEDED) if status == PYTHON_NEEDED else status


@jit_flat
def _enter(record, count):
    """Mappings enter when they arrive, and nothing expires."""
    links = int64s(record, LINKS)
    output = links[OUTPUT]
    ticks, signs, columns = int32s(output, TICK), int8s(output, SIGN), int64s(output, DELTA_COLUMNS)
    entering, tick = int64s(record, ENTERING), int32s(links[ELEMENT], ELEMENT_TICK)[0]
    for i in range(count):
        ticks[i], signs[i] = tick, 1
    for i in range(len(int64s(record, POSITIONS)) * count):
        columns[i] = entering[i]
    int64s(output, COUNT)[0] = count


@jit_flat
def keep(record):
    """The changes of a window from which nothing expires, and which keeps nothing. PYTHON_NEEDED: a condition needs texts."""
    count = find_entering(record)
    if count < 0:
        return PYTHON_NEEDED
    _enter(record, count)
    return DONE


@jit_flat
def _passed(links, element):
    """The point, less the delay, through which mappings have entered: with STEP that of the last boundary."""
    limit = _reached(links, element)
    if links[STEP_OF] != 0:
        if links[MEASURE] >= OF_TIME:
            limit = int64s(element, WORDS)[THROUGH]
        limit = max(limit, _BEFORE_ALL)
        limit = (limit - links[START_OF]) // links[STEP_OF] * links[STEP_OF] + links[START_OF]
    return limit - links[DELAY]


@jit_flat
def _append(record, window, count):
    """New mappings arrive. False: the buffer may be too small."""
    counters, ends, varints = (
        int64s(window, sliding.COUNTERS),
        int64s(window, sliding.PLACES),
        uint8s(window, sliding.VARINTS),
    )
    arrived, bytes_ = counters[sliding.LAST], varint_queue.MOST_BYTES * count
    if arrived + count > counters[sliding.ROOM_THROUGH] or bytes_ > counters[sliding.SPARE]:
        return False
    points, ids = int64s(record, POINTS)[:count], int64_rows(window, sliding.IDS)
    for reader in (varint_queue.EXPIRING, varint_queue.ENTERING):
        if ends[reader + varint_queue.AT] == ends[varint_queue.END]:
            ends[reader + varint_queue.NEXT] = points[0]
    varint_queue.append(points, varints, ends)
    sliding.store(ids, arrived, matrix(int64s(record, ENTERING), len(ids), count))
    counters[sliding.SPARE] -= bytes_
    counters[sliding.LAST] = arrived + count
    return True


@jit_inline
def _sessions_end(links):
    """Have sessions ended in this step?"""
    words = int64s(links[ELEMENT], WORDS)
    return words[ENDED] == words[STEP]


@jit_inline
def _expires(links, oldest, through):
    """Can a window's oldest mapping expire, which arrived at this point?"""
    if links[MEASURE] == OF_SESSION:
        return _sessions_end(links)
    return oldest <= through - links[SIZE_OF]


@jit_flat
def _can_advance(links, window, through, new, room):
    """Can the entry advance the window, before its `new` points enter? It has no STEP, and there is room for the changes."""
    if links[STEP_OF] != 0 or links[MEASURE] != OF_TIME or (len(new) > 0 and new[0] <= through):
        return False
    return delayed.due(window, through, links[SIZE_OF]) <= room


@jit_flat
def _advance(record, through):
    """Write the changes of a window that `_can_advance`."""
    links = int64s(record, LINKS)
    output = links[OUTPUT]
    instants = int64s(links[CLOCK], clock.INSTANTS)[: int64s(links[ELEMENT], WORDS)[TICKS]]
    int64s(output, COUNT)[0] = delayed.advance(
        links[STATE], through, links[SIZE_OF], links[DELAY], links[KEEPS_IDS], instants, int64s(record, ENTERING),
        int32s(output, TICK), int8s(output, SIGN), int64s(output, DELTA_COLUMNS),
    )  # fmt: skip


@jit_flat
def wait(record):
    """New mappings wait to enter the window, and those that are due enter and expire. VALUES_NEEDED: Python is to advance it, as
    mappings enter or expire at boundaries, or many at once; PYTHON_NEEDED: a condition needs texts, or there is no room for the
    changes; ROOM_NEEDED: the window's buffer may be too small."""
    links, asked = int64s(record, LINKS), int64s(record, ASKED)
    before = asked[CALLED]
    asked[CALLED] = by_calls.NOT_CALLED
    if before != by_calls.NOT_CALLED:
        return np.int64(DONE if before == by_calls.COMPLETE else PYTHON_NEEDED)
    count, window = find_entering(record), links[STATE]
    if count < 0:
        return np.int64(PYTHON_NEEDED)
    int64s(links[OUTPUT], COUNT)[0] = 0
    counters, ends, points = int64s(window, sliding.COUNTERS), int64s(window, sliding.PLACES), int64s(record, POINTS)
    through, asked[NEW] = _passed(links, links[ELEMENT]), count
    oldest = first = points[0] if count > 0 else sliding.NEVER
    if counters[sliding.START] < counters[sliding.LAST]:
        oldest = ends[varint_queue.EXPIRING + varint_queue.NEXT]
    if counters[sliding.ENTERED] < counters[sliding.LAST]:
        first = ends[varint_queue.ENTERING + varint_queue.NEXT]
    is_due = first <= through or _expires(links, oldest, through)
    if is_due and not _can_advance(links, window, through, points[:count], len(int32s(links[OUTPUT], TICK))):
        return np.int64(VALUES_NEEDED)
    if count > 0 and not _append(record, window, count):
        return np.int64(ROOM_NEEDED)
    if is_due:
        _advance(record, through)
    asked[TAKEN] += count
    return np.int64(DONE)


@jit_flat
def take_session(record):
    """The changes of a window of sessions without STEP. VALUES_NEEDED: sessions have ended, and Python is to advance it; else as
    `wait`."""
    links, asked = int64s(record, LINKS), int64s(record, ASKED)
    before = asked[CALLED]
    asked[CALLED] = by_calls.NOT_CALLED
    if before != by_calls.NOT_CALLED:
        return np.int64(DONE if before == by_calls.COMPLETE else PYTHON_NEEDED)
    count = asked[NEW] = find_entering(record)
    if count < 0:
        return np.int64(PYTHON_NEEDED)
    if _sessions_end(links):
        return np.int64(VALUES_NEEDED)
    if count > 0 and not _append(record, links[STATE], count):
        return np.int64(ROOM_NEEDED)
    _enter(record, count)
    asked[TAKEN] += count
    return np.int64(DONE)
