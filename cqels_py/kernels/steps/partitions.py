"""The entry of scans of windows with PARTITION BY: mappings enter and expire with the elements, or triples, that are kept."""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat, jit_inline
from cqels_py.kernels.compiler.native_call import INT64, INT64_ROWS, INT64S, NativeCall
from cqels_py.kernels.primitives.state_record import flags, int8s, int32s, int64_rows, int64s, matrix
from cqels_py.kernels.primitives.status import DONE, PYTHON_NEEDED
from cqels_py.kernels.steps import by_calls
from cqels_py.kernels.steps.deltas import COUNT, DELTA_COLUMNS, SIGN, TICK
from cqels_py.kernels.steps.driver import ROOM_NEEDED, VALUES_NEEDED
from cqels_py.kernels.steps.element import (
    COLUMNS,
    ELEMENT,
    ELEMENT_TICK,
    KERNEL,
    LINKS,
    MATCHES,
    NUMBER,
    STATE,
    STEP,
    TRIPLES,
    WORDS,
)
from cqels_py.kernels.steps.scan import ASKED, CALLED, ENTERING, OUTPUT, POINTS, TAKEN, find_entering
from cqels_py.kernels.windows import clock, match, sparse_buffer
from cqels_py.kernels.windows.partition import keep_last
from cqels_py.kernels.windows.sparse_buffer import place_of

KEEPING = 11
"""In LINKS of `take`, behind those of a scan: the record of the units that the window keeps, which all its scans in a step read."""

VALUES, LIMIT, ROUTER, PATTERN, CLOCK, STREAM_OF, BY_TRIPLE = range(3, 10)
"""LINKS of a record of units, whose KERNEL is `keep_last` (0: Python finds them), and whose STATE the units: the record of the
values, how many units are kept of each, the router's table, the pattern that gives values, the clock, the stream, and 1 if units are
triples."""
VALUE_POSITIONS, COUNTS, UNITS, ENTERING_TICKS, EXPIRING_TICKS, PLACES, UNIT, OF_VALUES, LEFT_AT = range(1, 10)
"""Its arrays. VALUE_POSITIONS: 0, 1 or 2 for each variable. COUNTS: TAKEN_IN, the number of the step in which they were found last,
then how many UNITS (4, room) there are of each kind, rising; ENTERING_TICKS, EXPIRING_TICKS: those of units that enter and expire.
Scratch: PLACES for as many as a delta has rows, UNIT and LEFT_AT for as many as an element has triples, OF_VALUES for their
values."""
TAKEN_IN, ACCEPTED, ENTERED, EXPIRED, UNSEEN = range(5)
"""COUNTS, of which the last four are also, less one, the rows of UNITS: those that arrived and have a value, that enter, that
expire, and that would enter and expire at the same tick."""

KEEP_LAST = NativeCall(keep_last, INT64, INT64, INT64, INT64S, INT64_ROWS, INT64, INT64S, INT64S)
_keep_last = KEEP_LAST.call


@jit_flat
def _find_values(keeping):
    """Write the units that have a value, a row for each of its values, and these. Returns how many rows."""
    links, positions, unit = int64s(keeping, LINKS), int64s(keeping, VALUE_POSITIONS), int64s(keeping, UNIT)
    element = links[ELEMENT]
    triples = int64s(element, WORDS)[TRIPLES]
    columns = matrix(int64s(element, COLUMNS), 3, triples)
    first, matches = int64s(links[ROUTER], match.FIRST), int64s(element, MATCHES)
    start, count = first[links[PATTERN]], first[links[PATTERN] + 1] - first[links[PATTERN]]
    before = int64_rows(links[CLOCK], clock.COUNTS)[clock.TRIPLES, links[STREAM_OF]] - triples
    values = int64s(keeping, OF_VALUES)
    for i in range(count):
        row = matches[start + i]
        unit[i] = before + row + 1 if links[BY_TRIPLE] else int64s(element, NUMBER)[0]
        for c in range(len(positions)):
            values[c * count + i] = columns[positions[c], row]
    return np.int64(count)


@jit_inline
def _sort(values, count):
    """The first `count` values, which are few, rise."""
    for i in range(1, count):
        value, at = values[i], i
        while at > 0 and values[at - 1] > value:
            values[at] = values[at - 1]
            at -= 1
        values[at] = value


@jit_inline
def _is_among(value, values, count):
    for i in range(count):
        if values[i] == value:
            return True
    return False


@jit_inline
def _tell_kinds(keeping, rows, left):
    """Of so many rows of UNIT, and so many units that have `left` their lists (in the row of EXPIRED), tell the kinds: all
    happens at the element's tick."""
    counts, units, unit = int64s(keeping, COUNTS), int64_rows(keeping, UNITS), int64s(keeping, UNIT)
    tick = int64s(keeping, ENTERING_TICKS)
    accepted, entered, expired, unseen = units[ACCEPTED - 1], units[ENTERED - 1], units[EXPIRED - 1], units[UNSEEN - 1]
    counts[ACCEPTED:] = 0
    _sort(expired, left)
    for i in range(rows):
        if i > 0 and unit[i] == unit[i - 1]:
            continue
        accepted[counts[ACCEPTED]] = unit[i]
        counts[ACCEPTED] += 1
        if _is_among(unit[i], expired, left):
            unseen[counts[UNSEEN]] = unit[i]
            counts[UNSEEN] += 1
        else:
            entered[counts[ENTERED]] = unit[i]
            counts[ENTERED] += 1
    for i in range(left):
        if not _is_among(expired[i], unseen, counts[UNSEEN]):
            expired[counts[EXPIRED]] = expired[i]
            counts[EXPIRED] += 1
    now = np.int64(int32s(int64s(keeping, LINKS)[ELEMENT], ELEMENT_TICK)[0])
    tick[: counts[ENTERED]] = now
    int64s(keeping, EXPIRING_TICKS)[: counts[EXPIRED]] = now


@jit_flat
def _keep_units(keeping):
    """Find the units that enter and expire in this step, unless they have been found. VALUES_NEEDED: Python is to find them;
    ROOM_NEEDED: there is no room for more."""
    links, counts, unit = int64s(keeping, LINKS), int64s(keeping, COUNTS), int64s(keeping, UNIT)
    step = int64s(links[ELEMENT], WORDS)[STEP]
    if counts[TAKEN_IN] == step:
        return np.int64(DONE)
    if links[KERNEL] == 0:
        return np.int64(VALUES_NEEDED)
    rows, width = _find_values(keeping), len(int64s(keeping, VALUE_POSITIONS))
    left = np.int64(0)
    if rows > 0:
        left = _keep_last(
            links[KERNEL],
            (
                links[STATE], links[VALUES], unit[:rows], matrix(int64s(keeping, OF_VALUES), width, rows), links[LIMIT],
                int64_rows(keeping, UNITS)[EXPIRED - 1], int64s(keeping, LEFT_AT),
            ),
        )  # fmt: skip
        if left < 0:
            return np.int64(ROOM_NEEDED)
    _tell_kinds(keeping, rows, left)
    counts[TAKEN_IN] = step
    return np.int64(DONE)


@jit_inline
def _collect(units, count, ticks, sign, points, end, output, places, made):
    """Note the places of the mappings of units, with their ticks and a sign, from change `made` on. Returns how many changes there
    are then, perhaps more than there is room for: these are not written."""
    tick, signs = int32s(output, TICK), int8s(output, SIGN)
    for u in range(count):
        place = place_of(units[u], points, end)
        while place < end and points[place] == units[u]:
            if made < len(tick):
                tick[made], signs[made], places[made] = ticks[u], sign, place
            made += 1
            place += 1
    return made


@jit_inline
def _order(output, places, made):
    """Changes in the order of their ticks, those of one tick as they are; they are few."""
    tick, signs = int32s(output, TICK), int8s(output, SIGN)
    for i in range(1, made):
        at, mine, sign, place = i, tick[i], signs[i], places[i]
        while at > 0 and tick[at - 1] > mine:
            tick[at], signs[at], places[at] = tick[at - 1], signs[at - 1], places[at - 1]
            at -= 1
        tick[at], signs[at], places[at] = mine, sign, place


@jit_flat
def _append(record, window, keeping, count):
    """Write the mappings whose units are accepted behind the window's others. Returns where they end."""
    points, columns, kept = (
        int64s(window, sparse_buffer.POINTS),
        int64_rows(window, sparse_buffer.COLUMNS),
        flags(window, sparse_buffer.KEPT),
    )
    units, accepted = int64_rows(keeping, UNITS)[ACCEPTED - 1], int64s(keeping, COUNTS)[ACCEPTED]
    arriving, entering = int64s(record, POINTS), int64s(record, ENTERING)
    end = int64s(window, sparse_buffer.COUNTERS)[sparse_buffer.END]
    for i in range(count):
        if _is_among(arriving[i], units, accepted):
            points[end], kept[end] = arriving[i], True
            for c in range(len(columns)):
                columns[c, end] = entering[c * count + i]
            end += 1
    return end


@jit_flat
def _advance(record, window, keeping, count):
    """The window takes in `count` mappings. False: there are more changes than there is room for, and nothing has happened."""
    output, counts, units = int64s(record, LINKS)[OUTPUT], int64s(keeping, COUNTS), int64_rows(keeping, UNITS)
    points, columns, kept = (
        int64s(window, sparse_buffer.POINTS),
        int64_rows(window, sparse_buffer.COLUMNS),
        flags(window, sparse_buffer.KEPT),
    )
    counters, places = int64s(window, sparse_buffer.COUNTERS), int64s(keeping, PLACES)
    end = _append(record, window, keeping, count)
    expiring = _collect(
        units[EXPIRED - 1], counts[EXPIRED], int64s(keeping, EXPIRING_TICKS), -1, points, end, output, places, 0
    )
    made = _collect(
        units[ENTERED - 1], counts[ENTERED], int64s(keeping, ENTERING_TICKS), 1, points, end, output, places, expiring
    )
    if made > len(places):
        return False
    counters[sparse_buffer.END] = end
    for u in range(counts[UNSEEN]):
        place = place_of(units[UNSEEN - 1, u], points, end)
        while place < end and points[place] == units[UNSEEN - 1, u]:
            kept[place] = False
            counters[sparse_buffer.RELEASED] += 1
            place += 1
    for i in range(expiring):
        kept[places[i]] = False
    counters[sparse_buffer.RELEASED] += expiring
    _order(output, places, made)
    changed = matrix(int64s(output, DELTA_COLUMNS), len(columns), made)
    for c in range(len(columns)):
        for i in range(made):
            changed[c, i] = columns[c, places[i]]
    int64s(output, COUNT)[0] = made
    return True


@jit_flat
def take(record):
    """The changes of a window. VALUES_NEEDED: Python is to find the units that enter and expire; ROOM_NEEDED: there is no room for
    these or for mappings; PYTHON_NEEDED: a condition needs texts, or there are more units or changes than there is room for."""
    links, asked = int64s(record, LINKS), int64s(record, ASKED)
    before, window = asked[CALLED], links[STATE]
    asked[CALLED] = by_calls.NOT_CALLED
    if before == by_calls.TOO_MANY:
        return np.int64(PYTHON_NEEDED)
    count = find_entering(record)
    if count < 0:
        return np.int64(PYTHON_NEEDED)
    if int64s(window, sparse_buffer.COUNTERS)[sparse_buffer.END] + count > len(int64s(window, sparse_buffer.POINTS)):
        return np.int64(ROOM_NEEDED)
    status = _keep_units(links[KEEPING])
    if status != DONE:
        return np.int64(status)
    if not _advance(record, window, links[KEEPING], count):
        return np.int64(PYTHON_NEEDED)
    asked[TAKEN] += count
    return np.int64(DONE)
