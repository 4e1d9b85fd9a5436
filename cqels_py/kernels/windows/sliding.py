"""The changes of a window in one step: expired and entering mappings, merged by tick."""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit, jit_flat, jit_inline
from cqels_py.kernels.primitives.state_record import int32s, int64_rows, int64s, uint8s
from cqels_py.kernels.primitives.status import DONE, OUTPUT_FULL, PYTHON_NEEDED
from cqels_py.kernels.windows.arrivals import places_of
from cqels_py.kernels.windows.varint_queue import (
    AT,
    END,
    EXPIRING,
    MOST_BYTES,
    NEWEST,
    NEXT,
    PASSED,
    append,
    read_through,
)

NEVER = np.iinfo(np.int64).max
"""A point that is never reached."""
VARINTS, PLACES, IDS, COUNTERS, EXPIRING_POINTS, TICKS = range(6)
"""The arrays of a window's buffer (primitives/state_record.py). VARINTS and PLACES: the points of its mappings (varint_queue.py).
IDS (width, room; or no rows): the ids of mapping number n at n modulo the room. The last two are scratch of `slide`: for the points
of expired mappings, and for twice as many ticks as mappings expire and enter."""
START, ENTERED, LAST, SPARE, ROOM_THROUGH, SIZE, TIMED, NEXT_EXPIRY, EXPIRED, MADE = range(10)
"""COUNTERS: the numbers of the oldest mapping, of the oldest that waits to enter, and of the next to arrive; bytes of VARINTS that
are certainly free; the number up to which mappings certainly have room. Of a sliding window: its size, 1 if in time, the point at
which its oldest mapping expires (NEVER if there is none); how many mappings expired, and how many changes were made, at the last
step."""
_ONE, _TWO = np.uint64(1), np.uint64(2)
_DROPPED = np.int32(-1)
"""Instead of a tick."""
_FEW = 8
"""With fewer changes than these, the merge does not run in two chains."""


@jit_inline
def _in_pairs(expiry_tick, enter_tick):
    """Does exactly one mapping expire at each tick at which one enters, as in a full count window?"""
    rows = len(expiry_tick)
    if rows != len(enter_tick) or rows == 0:
        return False
    pairs = np.int64(expiry_tick[0] == enter_tick[0])
    for i in range(1, rows):
        pairs += np.int64((expiry_tick[i] == enter_tick[i]) & (enter_tick[i] != enter_tick[i - 1]))
    return pairs == rows


@jit_inline
def _write_pairs(ticks, ids, first, columns, tick, sign, changed):
    rows = np.uint64(len(ticks))
    for i in range(rows):
        tick[_TWO * i] = ticks[i]
        tick[_TWO * i + _ONE] = ticks[i]
    for i in range(rows):
        sign[_TWO * i] = -1
        sign[_TWO * i + _ONE] = 1
    start = np.uint64(first)
    straight = min(rows, np.uint64(ids.shape[1]) - start)
    # Both rows of a pair in one loop, so that several pairs are written at once.
    if len(ids) == 0:
        for c in range(len(columns)):
            for i in range(rows):
                changed[c, _TWO * i] = 0
                changed[c, _TWO * i + _ONE] = columns[c, i]
        return
    for c in range(len(columns)):
        for i in range(straight):
            changed[c, _TWO * i] = ids[c, start + i]
            changed[c, _TWO * i + _ONE] = columns[c, i]
        for i in range(straight, rows):
            changed[c, _TWO * i] = ids[c, i - straight]
            changed[c, _TWO * i + _ONE] = columns[c, i]


@jit_inline
def drop(expiry_tick, enter_tick, ahead):
    """Mark mappings that expire at the tick at which they entered. Returns the number of changes without them."""
    expiring = len(expiry_tick)
    rows = expiring + len(enter_tick)
    for i in range(ahead, expiring):
        if expiry_tick[i] <= enter_tick[i - ahead]:
            expiry_tick[i] = _DROPPED
            rows -= 2
    return rows


@jit_inline
def _in_front(ticks, expiring, rows):
    """How many of the first `rows` changes in the order of ticks are expiries; at one tick they come first."""
    entering = np.uint64(len(ticks)) - expiring
    least, most = rows - min(rows, entering), min(rows, expiring)
    while least < most:
        middle = (least + most) >> _ONE
        if ticks[middle] <= ticks[expiring + rows - _ONE - middle]:
            least = middle + _ONE
        else:
            most = middle
    return least


@jit_inline
def _find_next(ticks, i, j, k, place, tick):
    """The next expiry, i, or the next entering mapping, j, has place k. Returns the indices of the next ones."""
    # Without a branch: which of the two is next is unpredictable.
    expires, enters_at = ticks[i], ticks[j]
    first = expires <= enters_at
    place[i if first else j] = np.int32(k)
    tick[k] = min(expires, enters_at)
    return i + np.uint64(first), j + np.uint64(not first)


@jit_inline
def _find_rest(ticks, i, last_i, j, last_j, k, place, tick):
    """The places from k on of the expiries from i to `last_i`, and of the entering mappings from j to `last_j`."""
    while i < last_i and j < last_j:
        i, j = _find_next(ticks, i, j, k, place, tick)
        k += _ONE
    for at in range(last_i - i):
        place[i + at] = np.int32(k + at)
        tick[k + at] = ticks[i + at]
    k += last_i - i
    for at in range(last_j - j):
        place[j + at] = np.int32(k + at)
        tick[k + at] = ticks[j + at]


@jit_flat
def _find_places(ticks, expiring, place, tick):
    """Write the place of each change in the order of ticks; `ticks` has those of the expiries first.

    In a merge each comparison waits for the one before it. So both halves of the order are merged at once, as two
    independent chains: a two-ended merge saves 10 ns per arrival.
    """
    changes, half, k = np.uint64(len(ticks)), np.uint64(len(ticks)) >> _ONE, np.uint64(0)
    last_i = _in_front(ticks, expiring, half)
    last_j = expiring + half - last_i
    i, j, u, v = np.uint64(0), expiring, last_i, last_j
    while True:
        # This many of each are certainly left.
        together = min(min(last_i - i, last_j - j), min(expiring - u, changes - v))
        if together < _FEW:
            break
        for at in range(k, k + together):
            i, j = _find_next(ticks, i, j, at, place, tick)
            u, v = _find_next(ticks, u, v, half + at, place, tick)
        k += together
    _find_rest(ticks, i, last_i, j, last_j, k, place, tick)
    _find_rest(ticks, u, expiring, v, changes, half + k, place, tick)


@jit_flat
def _write_in_places(ticks, expiring, ids, first, columns, place, tick, sign, changed):
    """The general case, expiries and entering mappings at any ticks: the place of each change is found first, then it
    is written."""
    rows, expiring = np.uint64(len(ticks)), np.uint64(expiring)
    entering = rows - expiring
    _find_places(ticks, expiring, place, tick)
    for k in range(rows):
        sign[k] = 1
    for i in range(expiring):
        sign[place[i]] = -1
    start = np.uint64(first)
    straight = min(expiring, np.uint64(ids.shape[1]) - start)
    for c in range(len(columns)):
        if len(ids):
            for i in range(straight):
                changed[c, place[i]] = ids[c, start + i]
            for i in range(expiring - straight):
                changed[c, place[straight + i]] = ids[c, i]
        else:
            for k in range(rows):
                changed[c, k] = 0
        for i in range(entering):
            changed[c, place[expiring + i]] = columns[c, i]


@jit_inline
def _write_entering(ticks, columns, tick, sign, changed):
    for i in range(np.uint64(len(ticks))):
        tick[i] = ticks[i]
        sign[i] = 1
    for c in range(len(columns)):
        for i in range(np.uint64(len(ticks))):
            changed[c, i] = columns[c, i]


@jit_flat
def write_remaining(expiry_tick, enter_tick, ahead, ids, first, columns, tick, sign, changed):
    """The changes by tick where some are dropped."""
    expiring, entering, width, rows = len(expiry_tick), len(enter_tick), len(columns), len(tick)
    room = ids.shape[1]
    i, j, k, place = 0, 0, 0, first
    while k < rows:
        if i < expiring and expiry_tick[i] == _DROPPED:
            i += 1
            place = place + 1 if place + 1 < room else 0
        elif j < entering and ahead + j < expiring and expiry_tick[ahead + j] == _DROPPED:
            j += 1
        elif j == entering or (i < expiring and expiry_tick[i] <= enter_tick[j]):
            tick[k] = expiry_tick[i]
            sign[k] = -1
            for c in range(width):
                changed[c, k] = ids[c, place] if len(ids) else 0
            i += 1
            place = place + 1 if place + 1 < room else 0
            k += 1
        else:
            tick[k] = enter_tick[j]
            sign[k] = 1
            for c in range(width):
                changed[c, k] = columns[c, j]
            j += 1
            k += 1


@jit_flat
def _write(ticks, expiring, ahead, ids, first, columns, place, tick, sign, changed):
    """The changes by tick, as many as there is room for. `ticks`: of the `expiring` mappings, then of those that enter.

    `place`: scratch for a number per change.
    """
    expiry_tick, enter_tick = ticks[:expiring], ticks[expiring:]
    if len(tick) < len(ticks):
        write_remaining(expiry_tick, enter_tick, ahead, ids, first, columns, tick, sign, changed)
    elif expiring == 0:
        _write_entering(enter_tick, columns, tick, sign, changed)
    elif _in_pairs(expiry_tick, enter_tick):
        _write_pairs(enter_tick, ids, first, columns, tick, sign, changed)
    else:
        _write_in_places(ticks, expiring, ids, first, columns, place, tick, sign, changed)


@jit
def merge(expiry_tick, enter_tick, ahead, ids, first, columns):
    """The changes of a window, by tick; at one tick expiries come first. A mapping that expires at the tick at which it
    enters is left out.

    `expiry_tick`, `enter_tick`: the ticks of expiring and entering mappings, in order of arrival; the first that enters
    arrived `ahead` mappings after the first that expires. `ids` (width, room): a circular buffer with the ids of
    expiring mappings from `first` on; without rows these ids are 0. `columns` (width, n): the entering mappings.
    Returns tick, sign and columns of the changes.
    """
    ticks, expiring = np.concatenate((expiry_tick, enter_tick)), len(expiry_tick)
    rows = drop(ticks[:expiring], enter_tick, ahead)
    tick, sign, changed = np.empty(rows, np.int32), np.empty(rows, np.int8), np.empty((len(columns), rows), np.int64)
    _write(ticks, expiring, ahead, ids, first, columns, np.empty(rows, np.int32), tick, sign, changed)
    return tick, sign, changed


@jit_inline
def store(ids, arrived, columns):
    """Store the ids of entering mappings in the circular buffer, from mapping number `arrived` on."""
    if len(ids) == 0:
        return
    place, rows = np.uint64(arrived % ids.shape[1]), np.uint64(columns.shape[1])
    straight = min(rows, np.uint64(ids.shape[1]) - place)
    for c in range(len(ids)):
        for i in range(straight):
            ids[c, place + i] = columns[c, i]
        for i in range(rows - straight):
            ids[c, i] = columns[c, straight + i]


@jit_flat
def slide(buffer, new_points, reached, instants, units, before, element, element_tick, columns, tick, sign, changed):
    """The changes of a window into which each mapping enters at its own arrival; see `merge`. Returns a status.

    New mappings have `new_points` (n), elements `element` (n) and ids `columns` (width, n). A mapping expires at its point
    + SIZE, if that is at most `reached`: if TIMED, at the first of `instants` (of the ticks) that is not before it; else at
    the arrival with that number, whose element is units[number - before - 1].

    Writes `tick`, `sign` and, column after column from its start on, `changed` (width, room): as many rows as there are
    changes, MADE, which may be fewer than there is room for. OUTPUT_FULL: there is no room for them, or too little scratch;
    room for new and EXPIRED mappings is enough. PYTHON_NEEDED: the buffer may be too small for the new mappings.
    """
    varints, ends, ids, counters = (
        uint8s(buffer, VARINTS),
        int64s(buffer, PLACES),
        int64_rows(buffer, IDS),
        int64s(buffer, COUNTERS),
    )
    points, ticks = int64s(buffer, EXPIRING_POINTS), int32s(buffer, TICKS)
    start, arrived, size, new, width = counters[START], counters[LAST], counters[SIZE], len(new_points), len(columns)
    if arrived + new > counters[ROOM_THROUGH] or MOST_BYTES * new > counters[SPARE]:
        return PYTHON_NEEDED
    end, newest, at, passed = ends[END], ends[NEWEST], ends[EXPIRING + AT], ends[EXPIRING + PASSED]
    append(new_points, varints, ends)
    expiring = read_through(reached - size, EXPIRING, varints, ends, points)
    changes, rows = expiring + new, np.int64(-1)
    if expiring <= len(points) and 2 * changes <= len(ticks):
        expiry_tick, enter_tick = ticks[:expiring], ticks[expiring:changes]
        if counters[TIMED]:
            places_of(instants, points, size, expiry_tick)
        else:
            for i in range(np.uint64(expiring)):
                expiry_tick[i] = element_tick[units[points[i] + size - before - 1]]
        for j in range(np.uint64(len(element))):
            enter_tick[j] = element_tick[element[j]]
        rows = drop(expiry_tick, enter_tick, arrived - start)
    counters[EXPIRED] = expiring
    if rows < 0 or rows > len(tick):
        ends[END], ends[NEWEST], ends[EXPIRING + AT], ends[EXPIRING + PASSED] = end, newest, at, passed
        return OUTPUT_FULL
    store(ids, arrived, columns)
    first, place = start % max(ids.shape[1], 1), ticks[changes : 2 * changes]
    tick, sign, changed = tick[:rows], sign[:rows], changed.reshape(changed.size)[: width * rows].reshape((width, rows))
    _write(ticks[:changes], expiring, arrived - start, ids, first, columns, place, tick, sign, changed)
    counters[START], counters[LAST], counters[MADE] = start + expiring, arrived + new, rows
    counters[SPARE] -= MOST_BYTES * new
    counters[NEXT_EXPIRY] = ends[EXPIRING + NEXT] + size if start + expiring < arrived + new else NEVER
    return DONE
