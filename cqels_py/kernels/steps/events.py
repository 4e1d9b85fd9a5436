"""The entries of EVENT blocks without windows: rows wait until their instant has ended, then they are delivered, or counted.

The rows of an event are those of MATCH (matches.py). Those that are counted make results with the counters of a join
(joins/counted.py).
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat, jit_inline
from cqels_py.kernels.compiler.native_call import INT64, INT64_ROWS, INT64S, NativeCall
from cqels_py.kernels.joins import counted
from cqels_py.kernels.primitives.state_record import int8s, int32s, int64_rows, int64s, matrix
from cqels_py.kernels.primitives.status import DONE, PYTHON_NEEDED
from cqels_py.kernels.steps.conditions import CODE, CONSTANTS, EVALUATION, FIELDS, SPECIAL
from cqels_py.kernels.steps.conditions import PLACES as INPUT_PLACES
from cqels_py.kernels.steps.deltas import COUNT, DELTA_COLUMNS, SIGN, TICK, close_gaps
from cqels_py.kernels.steps.driver import ROOM_NEEDED, VALUES_NEEDED
from cqels_py.kernels.steps.element import ELEMENT, KERNEL, LINKS, STATE, THROUGH, TICKS, TIME, WORDS
from cqels_py.kernels.steps.matches import CHOSEN, OF_ROW, VALUES, may_match, rows_of
from cqels_py.kernels.structures import open_instant
from cqels_py.kernels.values import places
from cqels_py.kernels.windows import clock, match
from cqels_py.terms.layout import TAG_DECIMAL, TAG_INTEGER, TAG_SHIFT, VALUE_BITS

ROUTER, CLOCK, OUTPUT, ROWS_OF_EVENT, EVALUATE, EVENT, OPEN = range(3, 10)
"""LINKS of `deliver`, behind those of every entry, of which KERNEL and STATE are not used: the router's table, the clock, where rows
go, the kernels of events' rows and of expressions, the record of the event (matches.py), and that of the rows that wait."""
PROGRAM, FIND_PLACES, EVENTS, FIRST_EVENT = range(8, 12)
"""LINKS of `count`, behind EVALUATE, whose KERNEL is `counted.take` and whose STATE are the counters: the program of the join, the
kernel of places, how many events there are, then for each event, in the order of the sources, its record and that of the rows that
wait, and at last the records of the sources."""
TAKEN = 1
"""In both records, behind LINKS: how many rows have been taken in since they were settled (1)."""
FOUND, BEGUN, ROWS, SUMMED, OPTIONS = range(2, 7)
"""Further arrays of the record of `count`. FOUND: how many rows each event has in the element. BEGUN: see STAGE. ROWS (n, ...): room
for rows that are counted. SUMMED: the columns of the results that are summed. OPTIONS (2): whether results come once, and whether
they have a column with their weight."""
STAGE, AT_ROW, MANY_ROWS = range(3)
"""BEGUN: one of the numbers below, the row that is counted next, and how many there are."""
READY, WAITING, COUNTING, COMPLETE, TOO_MANY, OVERFLOWN = range(6)
"""Nothing has happened; rows of the element wait; rows are counted; Python has made the results; there is no room for them; a
counter has overflowed."""
ONCE, WEIGHTED = range(2)
OF_SOURCE, COLUMNS, RANGES, PLACED, INPUTS, NOW, VALUE, FIRST_TEST = range(8)
"""Arrays of a source's record. OF_SOURCE (4): its number, its events, whether Python makes its rows, and how many conditions it has.
COLUMNS (n, 2): for each of a counter's values the column of the event, and -1, or the range whose place it is. RANGES (n, 3): the
column, the least and the greatest place. PLACED: room for these places; for the INPUTS of a condition, NOW, and one VALUE."""
NUMBER, EVENTS_OF, BY_PYTHON, CONDITIONS = range(4)
"""Condition k of a source has its arrays (conditions.py) from FIRST_TEST + k * FIELDS on."""

COUNTING_ROWS = NativeCall(counted.take, INT64, INT64, INT64, INT64_ROWS, INT64, INT64_ROWS)
FINDING_PLACES = NativeCall(places.places, INT64, INT64S, INT64S)
_take, _find_places, _evaluate = COUNTING_ROWS.call, FINDING_PLACES.call, EVALUATION.call


@jit_flat
def _rows_in_element(links, event, waiting):
    """Find the rows of an event; returns how many, or -1: not without Python, or there is no room for them."""
    element = links[ELEMENT]
    if not may_match(event, int64s(links[ROUTER], match.FIRST)):
        return np.int64(0)
    found = rows_of(event, links[ROWS_OF_EVENT], links[EVALUATE], element)
    there, room = int64s(waiting, open_instant.COUNT)[0], int64_rows(waiting, open_instant.ROWS).shape[1]
    return np.int64(-1) if there + found > room else np.int64(found)


@jit_flat
def _let_wait(event, waiting, found, time):
    """The rows that have been found wait until their instant has ended."""
    rows, count = int64_rows(waiting, open_instant.ROWS), int64s(waiting, open_instant.COUNT)
    kept, values, chosen = int64s(event, OF_ROW), int64s(event, VALUES), int64s(event, CHOSEN)
    for i in range(found):
        at = count[0] + i
        rows[0, at] = time
        for v in range(len(chosen)):
            rows[1 + v, at] = values[chosen[v] * len(kept) + kept[i]]
    count[0] += found


@jit_flat
def _ended(waiting, through):
    """How many of the rows that wait are of instants that have ended."""
    rows, ended = int64_rows(waiting, open_instant.ROWS), 0
    while ended < int64s(waiting, open_instant.COUNT)[0] and rows[0, ended] <= through:
        ended += 1
    return ended


@jit_flat
def _take_out(waiting, ended):
    """The first rows wait no longer."""
    if ended == 0:
        return
    rows, count = int64_rows(waiting, open_instant.ROWS), int64s(waiting, open_instant.COUNT)
    count[0] -= ended
    for v in range(len(rows)):
        for i in range(count[0]):
            rows[v, i] = rows[v, ended + i]


@jit_inline
def _tick_at_end(links, time):
    """The tick at the end of an instant."""
    instants, ticks = int64s(links[CLOCK], clock.INSTANTS), int64s(links[ELEMENT], WORDS)[TICKS]
    while ticks > 0 and instants[ticks - 1] > time:
        ticks -= 1
    return np.int32(ticks - 1)


@jit_flat
def deliver(record):
    """The rows of an event whose instants have ended. PYTHON_NEEDED: there is no room, or an expression needs texts."""
    links = int64s(record, LINKS)
    event, waiting, output = links[EVENT], links[OPEN], links[OUTPUT]
    int64s(output, COUNT)[0] = 0
    through = int64s(links[ELEMENT], WORDS)[THROUGH]
    ended, ticks = _ended(waiting, through), int32s(output, TICK)
    found = _rows_in_element(links, event, waiting)
    if found < 0 or ended > len(ticks):
        return np.int64(PYTHON_NEEDED)
    rows, columns = int64_rows(waiting, open_instant.ROWS), int64s(output, DELTA_COLUMNS)
    for i in range(ended):
        ticks[i], int8s(output, SIGN)[i] = _tick_at_end(links, rows[0, i]), 1
        for v in range(1, len(rows)):
            columns[(v - 1) * ended + i] = rows[v, i]
    int64s(output, COUNT)[0] = ended
    _take_out(waiting, ended)
    _let_wait(event, waiting, found, int64s(links[ELEMENT], TIME)[0])
    int64s(record, TAKEN)[0] += found
    return np.int64(DONE)


@jit_flat
def _take_in(record):
    """The rows of all events wait. False: not without Python; then nothing has happened."""
    links, found = int64s(record, LINKS), int64s(record, FOUND)
    for e in range(len(found)):
        found[e] = _rows_in_element(links, links[FIRST_EVENT + 2 * e], links[FIRST_EVENT + 2 * e + 1])
        if found[e] < 0:
            return False
    for e in range(len(found)):
        event, waiting = links[FIRST_EVENT + 2 * e], links[FIRST_EVENT + 2 * e + 1]
        _let_wait(event, waiting, found[e], int64s(links[ELEMENT], TIME)[0])
        int64s(record, TAKEN)[0] += found[e]
    return True


@jit_flat
def _fulfils(links, source, test, rows, at):
    """Does a row fulfil a condition of its source? -1: it needs texts."""
    field, inputs, now, value = (
        FIRST_TEST + test * FIELDS,
        int64s(source, INPUTS),
        int64s(source, NOW),
        int64s(source, VALUE),
    )
    columns = int64s(source, field + INPUT_PLACES)
    now[0] = rows[0, at]
    for c in range(len(columns)):
        inputs[c] = rows[1 + columns[c], at]
    code, constants, special = (
        int64_rows(source, field + CODE), int64s(source, field + CONSTANTS), int64s(source, field + SPECIAL)
    )  # fmt: skip
    if _evaluate(links[EVALUATE], (code, constants, special, matrix(inputs, len(columns), 1), now, True, value)):
        return np.int64(-1)
    return value[0]


@jit_flat
def _is_placed(links, source, rows, at):
    """Are the numbers of a row in their ranges? Writes their places. -1: one is known from its text only."""
    ranges, placed, value = int64_rows(source, RANGES), int64s(source, PLACED), int64s(source, VALUE)
    for r in range(len(ranges)):
        value[0] = rows[1 + ranges[r, 0], at]
        if _find_places(links[FIND_PLACES], (value, placed[r : r + 1])):
            return np.int64(-1)
        if placed[r] == places.NO_NUMBER or placed[r] < ranges[r, 1] or placed[r] > ranges[r, 2]:
            return np.int64(0)
    return np.int64(1)


@jit_flat
def _is_counted(links, source, rows, at):
    """Is a row of an event one of its source? -1: that needs texts."""
    for test in range(int64s(source, OF_SOURCE)[CONDITIONS]):
        fulfilled = _fulfils(links, source, test, rows, at)
        if fulfilled != 1:
            return fulfilled
    return _is_placed(links, source, rows, at)


@jit_flat
def _add_row(source, counted_rows, made, rows, at):
    """Lay out a row for the counters, behind those that are not later."""
    number, columns, placed = int64s(source, OF_SOURCE)[NUMBER], int64_rows(source, COLUMNS), int64s(source, PLACED)
    to = made
    while to > 0 and counted_rows[to - 1, counted.TIME] > rows[0, at]:
        for c in range(counted_rows.shape[1]):
            counted_rows[to, c] = counted_rows[to - 1, c]
        to -= 1
    counted_rows[to, counted.SOURCE], counted_rows[to, counted.TIME] = number, rows[0, at]
    for c in range(len(columns)):
        value = rows[1 + columns[c, 0], at] if columns[c, 1] < 0 else placed[columns[c, 1]]
        counted_rows[to, counted.ROW_VALUES + c] = value


@jit_flat
def _all_ended(links, first, events, through):
    """Have all of these events rows of instants that have ended? Those of a source are joined then."""
    for e in range(first, first + events):
        if _ended(links[FIRST_EVENT + 2 * e + 1], through) == 0:
            return False
    return True


@jit_flat
def _find_ended(record, through):
    """Write the rows of all sources whose instants have ended, for the counters; returns how many, or -1: not without Python.

    The rows of the events wait on.
    """
    links, counted_rows, made, first = int64s(record, LINKS), int64_rows(record, ROWS), 0, 0
    for s in range(FIRST_EVENT + 2 * links[EVENTS], len(links)):
        source = links[s]
        events, by_python = int64s(source, OF_SOURCE)[EVENTS_OF], int64s(source, OF_SOURCE)[BY_PYTHON] != 0
        if by_python and _all_ended(links, first, events, through):
            return np.int64(-1)
        for e in range(first, first + (0 if by_python else events)):
            waiting = links[FIRST_EVENT + 2 * e + 1]
            ended = _ended(waiting, through)
            if made + ended > len(counted_rows):
                return np.int64(-1)
            for i in range(ended):
                kept = _is_counted(links, source, int64_rows(waiting, open_instant.ROWS), i)
                if kept < 0:
                    return np.int64(-1)
                if kept == 1:
                    _add_row(source, counted_rows, made, int64_rows(waiting, open_instant.ROWS), i)
                    made += 1
        first += events
    return np.int64(made)


@jit_inline
def _has_weight(summed, row):
    """Does a result come once, with its weight?"""
    for column in summed:
        tag = (row[counted.OUT_VALUES + column] >> TAG_SHIFT) & 15
        if tag != TAG_INTEGER and tag != TAG_DECIMAL:
            return False
    return True


@jit_flat
def _deliver_results(record):
    """Write the results that the counters have made, each as often as it counts. False: there is no room for them, or a weight is
    not inline."""
    links, options, summed = int64s(record, LINKS), int64s(record, OPTIONS), int64s(record, SUMMED)
    made, output = int64s(links[STATE], counted.META)[counted.MADE], links[OUTPUT]
    out, ticks, columns = int64_rows(links[STATE], counted.OUT), int32s(output, TICK), int64s(output, DELTA_COLUMNS)
    room, width, told = len(ticks), out.shape[1] - counted.OUT_VALUES, 0
    for row in range(made):
        times = np.int64(1) if options[ONCE] != 0 else out[row, counted.OUT_COUNT]
        weight = np.int64(1)
        if options[WEIGHTED] != 0 and _has_weight(summed, out[row]):
            weight, times = times, np.int64(1)
        if times > room - told or weight >= 1 << (VALUE_BITS - 1):
            return False
        for _ in range(times):
            ticks[told], int8s(output, SIGN)[told] = _tick_at_end(links, out[row, counted.OUT_TIME]), 1
            for c in range(width):
                columns[c * room + told] = out[row, counted.OUT_VALUES + c]
            if options[WEIGHTED] != 0:
                columns[width * room + told] = (np.int64(TAG_INTEGER) << np.int64(TAG_SHIFT)) | weight
            told += 1
    close_gaps(output, len(columns) // room, told)
    return True


@jit_flat
def _begin(record):
    """Take in the element, and find the rows that are counted. False: not without Python, from the STAGE on."""
    links, begun = int64s(record, LINKS), int64s(record, BEGUN)
    int64s(links[OUTPUT], COUNT)[0] = 0
    if not _take_in(record):
        return False
    begun[STAGE], through = WAITING, int64s(links[ELEMENT], WORDS)[THROUGH]
    rows = _find_ended(record, through)
    if rows < 0:
        return False
    for e in range(links[EVENTS]):
        waiting = links[FIRST_EVENT + 2 * e + 1]
        _take_out(waiting, _ended(waiting, through))
    begun[STAGE], begun[AT_ROW], begun[MANY_ROWS] = COUNTING, 0, rows
    int64s(links[STATE], counted.META)[counted.MADE] = 0
    return True


@jit_flat
def count(record):
    """The results of a counted join. PYTHON_NEEDED: the events' rows need texts or room, or results have no room; VALUES_NEEDED:
    those of instants that have ended do; ROOM_NEEDED: for the counters."""
    links, begun = int64s(record, LINKS), int64s(record, BEGUN)
    if begun[STAGE] == COMPLETE:
        begun[STAGE] = READY
        return np.int64(DONE)
    if begun[STAGE] == TOO_MANY:
        return np.int64(PYTHON_NEEDED)
    if begun[STAGE] == READY and not _begin(record):
        return np.int64(PYTHON_NEEDED if begun[STAGE] == READY else VALUES_NEEDED)
    rows = int64_rows(record, ROWS)[: begun[MANY_ROWS]]
    begun[AT_ROW] = _take(
        links[KERNEL], (links[PROGRAM], links[STATE], rows, begun[AT_ROW], int64_rows(links[STATE], counted.OUT))
    )
    if begun[AT_ROW] < 0:
        begun[STAGE] = OVERFLOWN
        return np.int64(VALUES_NEEDED)
    if begun[AT_ROW] < begun[MANY_ROWS]:
        return np.int64(ROOM_NEEDED)
    if not _deliver_results(record):
        begun[STAGE] = TOO_MANY
        return np.int64(PYTHON_NEEDED)
    begun[STAGE] = READY
    return np.int64(DONE)
