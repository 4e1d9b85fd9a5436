"""The entry of MATCH: the rows of its events in one element, which its automaton takes in.

Each event has a record of its own. The automaton stops where it needs room: then the entry goes on where it was.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat
from cqels_py.kernels.compiler.native_call import INT64, INT64_ROWS, INT64S, NativeCall
from cqels_py.kernels.patterns import event_rows, runs
from cqels_py.kernels.primitives.state_record import int8s, int32s, int64_rows, int64s, matrix
from cqels_py.kernels.primitives.status import DONE, PYTHON_NEEDED
from cqels_py.kernels.steps.conditions import CODE, CONSTANTS, EVALUATION, FIELDS, PLACES, SPECIAL, fulfilling
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
    STREAM,
    TICKS,
    TIME,
    TRIPLES,
    WORDS,
)
from cqels_py.kernels.windows import clock, match

AUTOMATON, ROUTER, CLOCK, OUTPUT, WIDTH, RETRACT, ROWS_OF_EVENT, EVALUATE, FIRST_EVENT = range(3, 12)
"""LINKS, behind those of every entry, whose KERNEL is `runs.step` and whose STATE is the MatchState: the automaton's program, the
router's table, the clock, where matches go, the number of their columns, whether they are withdrawn, the kernels of events' rows and
conditions, and the records of the events, in the order in which their rows are taken in."""
STREAMS, BEGUN, ROWS, ABOUT, POSITION_TICK, NO_POSITION = range(1, 7)
"""Arrays of the record. STREAMS: 1 for each stream whose elements have positions. BEGUN: see STATE_OF. ROWS (n, ...): room for the
events' rows, as `runs.step` reads them; ABOUT (3): its numbers; POSITION_TICK (1), NO_POSITION (0): its ticks of positions."""
STATE_OF, AT_ROW, MANY_ROWS, ALL_ROWS = range(4)
"""BEGUN: one of the numbers below, the row that is taken in next, how many there are, and how many there have been."""
READY, RUNNING, TOO_MANY = range(3)
OF_EVENT, MATCHED, COMPUTED, CONDITIONS = range(4)

(
    PATTERNS,
    SPEC,
    BOUNDS,
    SCRATCH,
    CHAINS,
    OF_ROW,
    VALUES,
    CHOSEN,
    NUMBER,
    INPUTS,
    NOW,
    TRUE,
    REQUIRED,
    FIRST_EXPRESSION,
) = range(14)
"""Arrays of an event's record: the numbers of its patterns, their columns and room as `event_rows` takes them; behind their columns
are those that are computed. CHOSEN: the columns that are kept; NUMBER (4): that of the event, how many columns its patterns have,
how many are computed, and how many conditions there are; scratch for INPUTS, NOW and TRUE; REQUIRED: columns that must have a
value. Expression k has its arrays (conditions.py) from FIRST_EXPRESSION + k * FIELDS on. Those of computed columns come first, in
their order, then conditions."""

MATCHING = NativeCall(runs.step, INT64, INT64, INT64, INT64_ROWS, INT64, INT64S, INT64S, INT64S, INT64_ROWS)
EVENT = NativeCall(
    event_rows.event_rows, INT64, INT64S, INT64S, INT64S, INT64S, INT64S, INT64_ROWS, INT64_ROWS, INT64S, INT64_ROWS, INT64S,
    INT64_ROWS,
)  # fmt: skip
_step, _event_rows, _evaluate = MATCHING.call, EVENT.call, EVALUATION.call


@jit_flat
def may_match(event, first):
    """Has each pattern of an event a match?"""
    patterns, bounds = int64s(event, PATTERNS), int64_rows(event, BOUNDS)
    there = True
    for p in range(len(patterns)):
        bounds[p, 0], bounds[p, 1] = first[patterns[p]], first[patterns[p] + 1]
        there = there and bounds[p, 0] < bounds[p, 1]
    return there


@jit_flat
def _compute(event, kernel, count, time):
    """Write the columns of all rows that are computed. False: one needs texts."""
    numbers, values, room = int64s(event, NUMBER), int64s(event, VALUES), len(int64s(event, OF_ROW))
    now = int64s(event, NOW)[:count]
    for i in range(count):
        now[i] = time
    for computed in range(numbers[COMPUTED]):
        field, made = FIRST_EXPRESSION + computed * FIELDS, (numbers[MATCHED] + computed) * room
        places = int64s(event, field + PLACES)
        inputs = matrix(int64s(event, INPUTS), len(places), count)
        for c in range(len(places)):
            for i in range(count):
                inputs[c, i] = values[places[c] * room + i]
        code, constants, special = (
            int64_rows(event, field + CODE), int64s(event, field + CONSTANTS), int64s(event, field + SPECIAL)
        )  # fmt: skip
        if _evaluate(kernel, (code, constants, special, inputs, now, False, values[made : made + count])):
            return False
    return True


@jit_flat
def _having(event, column, count):
    """Leave those of an event's rows, listed in OF_ROW, that have a value in a column; returns how many."""
    kept, values, left = int64s(event, OF_ROW), int64s(event, VALUES), 0
    for i in range(count):
        if values[column * len(kept) + kept[i]] != 0:
            kept[left] = kept[i]
            left += 1
    return left


@jit_flat
def rows_of(event, kernel, evaluate, element):
    """The rows of an event, whose numbers are left in its OF_ROW; -1: not without Python. `kernel`: `event_rows`; `evaluate`: for
    expressions."""
    columns = matrix(int64s(element, COLUMNS), 3, int64s(element, WORDS)[TRIPLES])
    of_row, scratch = int64s(event, OF_ROW), int64s(event, SCRATCH)
    count = _event_rows(
        kernel,
        (
            columns[0], columns[1], columns[2], int64s(element, OF_TRIPLE), int64s(element, MATCHES), int64_rows(event, BOUNDS),
            int64_rows(event, SPEC), scratch, int64_rows(event, CHAINS), of_row,
            matrix(int64s(event, VALUES), int64s(event, NUMBER)[MATCHED], len(of_row)),
        ),
    )  # fmt: skip
    if count < 0 or scratch[0] == event_rows.REPEATED:
        return np.int64(-1)
    for i in range(count):
        of_row[i] = i
    time = int64s(element, TIME)[0]
    if count > 0 and not _compute(event, evaluate, count, time):
        return np.int64(-1)
    for column in int64s(event, REQUIRED):
        count = _having(event, column, count)
    for test in range(int64s(event, NUMBER)[CONDITIONS]):
        if count > 0:
            field = FIRST_EXPRESSION + (int64s(event, NUMBER)[COMPUTED] + test) * FIELDS
            count = fulfilling(
                event, field, evaluate, int64s(event, VALUES), len(of_row), of_row, count, time, int64s(event, INPUTS),
                int64s(event, NOW), int64s(event, TRUE),
            )  # fmt: skip
    return np.int64(count)


@jit_flat
def _find_rows(record, position):
    """Write the rows of all events; returns how many, or -1: not without Python. Nothing else changes."""
    links, rows = int64s(record, LINKS), int64_rows(record, ROWS)
    element, first, made = links[ELEMENT], int64s(links[ROUTER], match.FIRST), 0
    for e in range(FIRST_EVENT, len(links)):
        event = links[e]
        if not may_match(event, first):
            continue
        count = rows_of(event, links[ROWS_OF_EVENT], links[EVALUATE], element)
        if count < 0 or made + count > len(rows):
            return np.int64(-1)
        kept, values, chosen = int64s(event, OF_ROW), int64s(event, VALUES), int64s(event, CHOSEN)
        for i in range(count):
            row = rows[made + i]
            row[runs.EVENT], row[runs.AT] = int64s(event, NUMBER)[OF_EVENT], position
            row[runs.WHEN], row[runs.TICK] = int64s(element, TIME)[0], int32s(element, ELEMENT_TICK)[0]
            for v in range(runs.VALUES, rows.shape[1]):
                row[v] = 0
            for v in range(len(chosen)):
                row[runs.VALUES + v] = values[chosen[v] * len(kept) + kept[i]]
        made += count
    return np.int64(made)


@jit_flat
def _begin(record):
    """Find the events' rows, and count the element. Returns False if there is nothing to be done, or not without Python."""
    links, begun = int64s(record, LINKS), int64s(record, BEGUN)
    meta = int64s(links[STATE], runs.META)
    position = meta[runs.POSITIONS]
    rows = _find_rows(record, position)
    begun[MANY_ROWS], begun[AT_ROW] = rows, 0
    if rows < 0:
        return False
    counted = int64s(record, STREAMS)[int32s(links[ELEMENT], STREAM)[0]]
    meta[runs.POSITIONS] = position + counted
    if rows == 0 and links[RETRACT] == 0:
        return False
    begun[ALL_ROWS] += rows
    words, about = int64s(links[ELEMENT], WORDS), int64s(record, ABOUT)
    about[runs.FIRST_POSITION], about[runs.LAST_POSITION] = position, position + counted - 1
    about[runs.EXPIRED_THROUGH] = words[DUE_THROUGH]
    int64s(record, POSITION_TICK)[0] = int32s(links[ELEMENT], ELEMENT_TICK)[0]
    meta[runs.MADE] = 0
    return True


@jit_flat
def _deliver(links, made):
    """Write so many matches as a delta."""
    found, output, width = int64_rows(links[STATE], runs.OUT), links[OUTPUT], links[WIDTH]
    columns = int64s(output, DELTA_COLUMNS)
    for i in range(made):
        int32s(output, TICK)[i] = np.int32(found[i, runs.OUT_TICK])
        int8s(output, SIGN)[i] = np.int8(found[i, runs.OUT_SIGN])
        for c in range(width):
            columns[c * made + i] = found[i, runs.OUT_VALUES + c]
    int64s(output, COUNT)[0] = made


@jit_flat
def take_in(record):
    """The matches that the element completes or ends. PYTHON_NEEDED: there are more rows or matches than there is room for."""
    links, begun = int64s(record, LINKS), int64s(record, BEGUN)
    if begun[STATE_OF] == READY:
        int64s(links[OUTPUT], COUNT)[0] = 0
        if not _begin(record):
            return np.int64(PYTHON_NEEDED if begun[MANY_ROWS] < 0 else DONE)
        begun[STATE_OF] = RUNNING
    about, all_rows = int64s(record, ABOUT), int64_rows(record, ROWS)
    ticks = int64s(links[CLOCK], clock.INSTANTS)[: int64s(links[ELEMENT], WORDS)[TICKS]]
    counted = about[runs.LAST_POSITION] >= about[runs.FIRST_POSITION]
    position_ticks = int64s(record, POSITION_TICK) if counted else int64s(record, NO_POSITION)
    begun[AT_ROW] = _step(
        links[KERNEL],
        (
            links[AUTOMATON], links[STATE], all_rows[: begun[MANY_ROWS]], begun[AT_ROW], ticks, position_ticks, about,
            int64_rows(links[STATE], runs.OUT),
        ),
    )  # fmt: skip
    if begun[AT_ROW] <= begun[MANY_ROWS]:
        return np.int64(ROOM_NEEDED)
    made = int64s(links[STATE], runs.META)[runs.MADE]
    if made > len(int32s(links[OUTPUT], TICK)):
        begun[STATE_OF] = TOO_MANY
        return np.int64(PYTHON_NEEDED)
    begun[STATE_OF] = READY
    _deliver(links, made)
    return np.int64(DONE)
