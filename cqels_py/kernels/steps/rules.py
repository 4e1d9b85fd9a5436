"""The entries of temporal rules: the facts of an element and what follows from them, and the rows of STATE.

What follows through the end of the instant before the element's is derived before the clock makes the ticks, as it is to make some
at the instants of its changes. Where there is no room, or a FILTER or BIND of a rule needs texts, Python goes on from there.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat, jit_inline
from cqels_py.kernels.compiler.native_call import INT64, INT64_ROWS, NativeCall
from cqels_py.kernels.primitives.state_record import int8s, int32s, int64_rows, int64s, matrix
from cqels_py.kernels.primitives.status import DONE, PYTHON_NEEDED
from cqels_py.kernels.rules import propagate, records
from cqels_py.kernels.steps import element as element_entries
from cqels_py.kernels.steps.conditions import EVALUATION
from cqels_py.kernels.steps.deltas import COUNT, DELTA_COLUMNS, SIGN, TICK, close_gaps
from cqels_py.kernels.steps.driver import VALUES_NEEDED
from cqels_py.kernels.steps.element import (
    BOUNDARIES,
    COLUMNS,
    DUE_BOUNDARIES,
    ELEMENT,
    LINKS,
    STATE,
    STREAM,
    THROUGH,
    TICKS,
    TIME,
    TRIPLES,
    WORDS,
)
from cqels_py.kernels.structures import kept_rows
from cqels_py.kernels.structures.key_index import KEYS
from cqels_py.kernels.windows import clock

PROPAGATE, PROGRAM, FACTS, CHAINS, RULE_STATE, WAITING, CHANGES, INSTANTS, EVALUATE, TYPE, FIRST_TEST = range(3, 14)
"""LINKS of `tell_time`, behind those of `element.tell_time`: the kernel and the records of the rules (rules/records.py), the
KeptRows of facts that wait, of changes, and of instants at which there will be ticks, the kernel of expressions, the id of rdf:type,
and the records of the tests."""
NUMBERS, STREAMS, PROPERTIES, CLASSES, STEPS = range(1, 6)
"""Arrays of its record. NUMBERS: see FIRST. STREAMS: 1 for each stream whose triples are facts. PROPERTIES, CLASSES (n, 2): ids, and
the numbers of their predicates. STEPS: those of the STATEs, 0 for one without STEP."""
FIRST, TOLD, STAGE, FACTS_TAKEN, CHANGES_MADE, EVERY_INSTANT = range(6)
"""NUMBERS: the time of the streams' first element, or NEVER; the instant through whose end all has been told; STAGE;
how many facts and changes there have been since they were settled; and 1 if there is a tick at the end of each instant of an
element, without STEP."""
NEVER = np.int64(np.iinfo(np.int64).max)
READY, DERIVING = range(2)
"""STAGE: whether the kernel of the rules is to be called anew, or goes on."""
OF_TEST, CODE, CONSTANTS, SPECIAL, PLACES, INPUTS, NOW, VALUE = range(8)
"""Arrays of a test's record. OF_TEST (2): the predicate, and whether it is a condition. An expression as of `evaluate_rows`, and the
columns of its inputs; scratch for these, and for one value."""
LATER, PREDICATE, STEP, OUTPUT, CLOCK = range(3, 8)
"""LINKS of `tell_changes`, behind those of every entry, whose STATE are the KeptRows of the rules' changes: those of changes that
have had no tick, the predicate of the STATE, its STEP or 0, where rows go, and the clock."""

DERIVE = NativeCall(propagate.propagate, INT64, INT64, INT64, INT64, INT64, INT64_ROWS, INT64)
_propagate, _evaluate = DERIVE.call, EVALUATION.call


@jit_inline
def _number(table, identifier):
    """The number of a predicate by its id; -1: it is none."""
    for row in range(len(table)):
        if table[row, 0] == identifier:
            return table[row, 1]
    return np.int64(-1)


@jit_inline
def _count(kept):
    """How many of these rows there are."""
    return int64s(kept, kept_rows.COUNT)[0]


@jit_flat
def _add_instant(kept, instant):
    """Put an instant among others, in order, each once."""
    instants, count = int64_rows(kept, kept_rows.ROWS), int64s(kept, kept_rows.COUNT)
    at = count[0]
    while at > 0 and instants[at - 1, 0] > instant:
        at -= 1
    if at > 0 and instants[at - 1, 0] == instant:
        return
    for moved in range(count[0], at, -1):
        instants[moved, 0] = instants[moved - 1, 0]
    instants[at, 0] = instant
    count[0] += 1


@jit_flat
def _take_facts(record):
    """The facts of the element wait until its instant has ended. False: there is no room for them, or for the instant."""
    links, element = int64s(record, LINKS), int64s(record, LINKS)[ELEMENT]
    if int64s(record, STREAMS)[int32s(element, STREAM)[0]] == 0:
        return True
    numbers, triples, time = int64s(record, NUMBERS), int64s(element, WORDS)[TRIPLES], int64s(element, TIME)[0]
    kept = links[WAITING]
    rows, count = int64_rows(kept, kept_rows.ROWS), _count(kept)
    if count + triples > len(rows):
        return False
    if numbers[EVERY_INSTANT] != 0:
        if _count(links[INSTANTS]) == len(int64_rows(links[INSTANTS], kept_rows.ROWS)):
            return False
        _add_instant(links[INSTANTS], time)
    columns, width = matrix(int64s(element, COLUMNS), 3, triples), rows.shape[1] - 3
    for t in range(triples):
        number = _number(int64_rows(record, PROPERTIES), columns[1, t])
        is_property = number >= 0
        if columns[1, t] == links[TYPE]:
            number = _number(int64_rows(record, CLASSES), columns[2, t])
        if number < 0:
            continue
        at = count
        # Facts that come with the rules may be later.
        while at > 0 and rows[at - 1, width + 1] > 2 * time:
            for c in range(width + 3):
                rows[at, c] = rows[at - 1, c]
            at -= 1
        rows[at, 0], rows[at, 1] = number, columns[0, t]
        for c in range(2, width + 1):
            rows[at, c] = columns[2, t] if c == 2 and is_property else 0
        rows[at, width + 1] = rows[at, width + 2] = 2 * time
        count += 1
        numbers[FACTS_TAKEN] += 1
    int64s(kept, kept_rows.COUNT)[0] = count
    numbers[FIRST] = min(numbers[FIRST], time)
    return True


@jit_flat
def _value(links, test, entry):
    """The value of a test of a ground atom, or 0: it needs texts."""
    places, inputs, now, value = int64s(test, PLACES), int64s(test, INPUTS), int64s(test, NOW), int64s(test, VALUE)
    width, keys = len(int64_rows(links[RULE_STATE], records.KEY_ARRAY)), int64s(links[FACTS], KEYS)
    for c in range(len(places)):
        inputs[c] = keys[entry * width + places[c]]
    is_condition = int64s(test, OF_TEST)[1] != 0
    code, constants, special = int64_rows(test, CODE), int64s(test, CONSTANTS), int64s(test, SPECIAL)
    if _evaluate(links[EVALUATE], (code, constants, special, matrix(inputs, len(places), 1), now, is_condition, value)):
        return np.int64(0)
    return np.int64(records.FAILED) if value[0] == 0 else value[0]


@jit_flat
def _test(links):
    """Test the ground atoms that wait for it. False: one needs texts."""
    counters, keys = int64s(links[RULE_STATE], records.COUNTERS_ARRAY), int64s(links[FACTS], KEYS)
    values, unknown = int64s(links[RULE_STATE], records.VALUES_ARRAY), int64s(links[RULE_STATE], records.UNKNOWN_ARRAY)
    width = len(int64_rows(links[RULE_STATE], records.KEY_ARRAY))
    for u in range(counters[records.UNTESTED]):
        entry = unknown[u]
        values[entry] = records.FAILED
        for t in range(FIRST_TEST, len(links)):
            if keys[entry * width] == int64s(links[t], OF_TEST)[0]:
                values[entry] = _value(links, links[t], entry)
                if values[entry] == 0:
                    return False
    counters[records.UNTESTED] = 0
    return True


@jit_flat
def _derive(links, known, until):
    """Derive what follows through `until` from the first facts that wait. False: there is no room, or a test needs texts."""
    counters, given = int64s(links[RULE_STATE], records.COUNTERS_ARRAY), int64_rows(links[WAITING], kept_rows.ROWS)
    program, facts, chains, state = links[PROGRAM], links[FACTS], links[CHAINS], links[RULE_STATE]
    while _propagate(links[PROPAGATE], (program, facts, chains, state, given[:known], until)) == records.NO_ROOM:
        if counters[records.SHORT] != records.SHORT_OF_VALUES or not _test(links):
            return False
    return True


@jit_flat
def _is_later(change, other):
    """The order of changes: by time, then by predicate and ids, as that of entries depends on how elements are batched."""
    width = len(change) - 2
    if change[width] != other[width]:
        return change[width] > other[width]
    for c in range(width):
        if change[c] != other[c]:
            return change[c] > other[c]
    return False


@jit_flat
def _move_changes(links, first):
    """Make the rules' output the changes of the step, in their order, and none before `first`."""
    counters = int64s(links[RULE_STATE], records.COUNTERS_ARRAY)
    output, changes = int64_rows(links[RULE_STATE], records.OUTPUT_ARRAY), int64_rows(links[CHANGES], kept_rows.ROWS)
    made, width = counters[records.ENDED], changes.shape[1]
    for row in range(made):
        at = row
        while at > 0 and _is_later(changes[at - 1], output[row]):
            for c in range(width):
                changes[at, c] = changes[at - 1, c]
            at -= 1
        for c in range(width):
            changes[at, c] = output[row, c]
    for row in range(made):
        changes[row, width - 2] = max(changes[row, width - 2], first)
    counters[records.ENDED] = 0
    int64s(links[CHANGES], kept_rows.COUNT)[0] = made


@jit_inline
def _at_end(instant, step):
    """The instant at which a change is seen: with STEP at the next multiple."""
    return instant if step == 0 else -(-instant // step) * step


@jit_flat
def _ask_for_ticks(record, through):
    """The clock gets the instants of changes that are due, unless they have been told; those to come wait."""
    links, numbers, steps = int64s(record, LINKS), int64s(record, NUMBERS), int64s(record, STEPS)
    changes, element = int64_rows(links[CHANGES], kept_rows.ROWS), links[ELEMENT]
    for row in range(_count(links[CHANGES])):
        for s in range(len(steps)):
            _add_instant(links[INSTANTS], _at_end(changes[row, changes.shape[1] - 2], steps[s]))
    instants, count = int64_rows(links[INSTANTS], kept_rows.ROWS), int64s(links[INSTANTS], kept_rows.COUNT)
    boundaries, due, made = int64s(element, BOUNDARIES), 0, 0
    while due < count[0] and instants[due, 0] <= through:
        if instants[due, 0] > numbers[TOLD]:
            boundaries[made] = instants[due, 0]
            made += 1
        due += 1
    for i in range(count[0] - due):
        instants[i, 0] = instants[due + i, 0]
    count[0] -= due
    int64s(element, WORDS)[DUE_BOUNDARIES] = made


@jit_flat
def _has_room_for_changes(record):
    """Is there room for the rules' output as changes, and for their instants?"""
    links = int64s(record, LINKS)
    made = int64s(links[RULE_STATE], records.COUNTERS_ARRAY)[records.ENDED]
    instants = _count(links[INSTANTS]) + made * len(int64s(record, STEPS))
    room = min(len(int64_rows(links[INSTANTS], kept_rows.ROWS)), len(int64s(links[ELEMENT], BOUNDARIES)))
    return made <= len(int64_rows(links[CHANGES], kept_rows.ROWS)) and instants <= room


@jit_flat
def _foresee(record):
    """Take in the element's facts, and derive what follows before its instant. False: Python is to go on from the STAGE."""
    links, numbers = int64s(record, LINKS), int64s(record, NUMBERS)
    through = int64s(links[ELEMENT], WORDS)[THROUGH]
    int64s(links[ELEMENT], WORDS)[DUE_BOUNDARIES] = 0
    if not _take_facts(record):
        return False
    if through < numbers[FIRST]:
        numbers[TOLD] = max(numbers[TOLD], through)
        return True
    waiting, count = int64_rows(links[WAITING], kept_rows.ROWS), int64s(links[WAITING], kept_rows.COUNT)
    known, width, until = 0, waiting.shape[1], 2 * through + 1
    while known < count[0] and waiting[known, width - 2] <= until:
        known += 1
    int64s(links[RULE_STATE], records.COUNTERS_ARRAY)[records.NEXT_GIVEN] = 0
    numbers[STAGE] = DERIVING
    if not _derive(links, known, until) or not _has_room_for_changes(record):
        return False
    numbers[STAGE] = READY
    for row in range(count[0] - known if known > 0 else 0):
        for c in range(width):
            waiting[row, c] = waiting[known + row, c]
    count[0] -= known
    _move_changes(links, numbers[FIRST])
    _ask_for_ticks(record, through)
    numbers[TOLD] = through
    numbers[CHANGES_MADE] += int64s(links[CHANGES], kept_rows.COUNT)[0]
    return True


@jit_flat
def tell_time(record):
    """As `element.tell_time`, with ticks of the rules' changes. VALUES_NEEDED: Python is to foresee these, or the rest
    of them, and to have the clock take in the element."""
    if not _foresee(record):
        return np.int64(VALUES_NEEDED)
    return np.int64(element_entries.tell_time(record))


@jit_inline
def _tick_of(instants, instant):
    """The tick at the end of an instant, or the first after it; as many as there are if it is to come."""
    tick = 0
    while tick < len(instants) and instants[tick] < instant:
        tick += 1
    while tick + 1 < len(instants) and instants[tick + 1] == instant:
        tick += 1
    return tick


@jit_flat
def tell_changes(record):
    """The rows of a STATE that begin and cease to hold. PYTHON_NEEDED: there is no room for them."""
    links = int64s(record, LINKS)
    changes, later, output = (
        int64_rows(links[STATE], kept_rows.ROWS),
        int64_rows(links[LATER], kept_rows.ROWS),
        links[OUTPUT],
    )
    made, waiting, most = _count(links[STATE]), _count(links[LATER]), len(int32s(output, TICK))
    int64s(output, COUNT)[0] = 0
    if made + waiting == 0:
        return np.int64(DONE)
    if made + waiting > min(most, len(later)):
        return np.int64(PYTHON_NEEDED)
    width = changes.shape[1]
    for row in range(made):
        if changes[row, 0] == links[PREDICATE]:
            for c in range(width):
                later[waiting, c] = changes[row, c]
            waiting += 1
    words = int64s(links[ELEMENT], WORDS)
    instants = int64s(links[CLOCK], clock.INSTANTS)[: words[TICKS]]
    told = left = 0
    columns = int64s(output, DELTA_COLUMNS)
    for row in range(waiting):
        instant = _at_end(later[row, width - 2], links[STEP])
        tick = _tick_of(instants, instant)
        # The end of a boundary's instant may be to come, though an element of that instant has its tick now.
        if tick == len(instants) or instant > words[THROUGH]:
            for c in range(width):
                later[left, c] = later[row, c]
            left += 1
            continue
        int32s(output, TICK)[told], int8s(output, SIGN)[told] = np.int32(tick), np.int8(later[row, width - 1])
        for c in range(len(columns) // most):
            columns[c * most + told] = later[row, 1 + c]
        told += 1
    int64s(links[LATER], kept_rows.COUNT)[0] = left
    close_gaps(output, len(columns) // most, told)
    return np.int64(DONE)
