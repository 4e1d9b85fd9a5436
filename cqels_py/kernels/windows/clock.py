"""One step of a query's clock, in one pass: the numbers of elements, the instants due, and the ticks in order."""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat, jit_inline
from cqels_py.kernels.primitives.state_record import flag_rows, flags, int64_rows, int64s, uint8_rows
from cqels_py.kernels.windows.varint_queue import AT, END, EXPIRING, FIELDS, MOST_BYTES, NEWEST, put, read_through

VARINTS_FULL, TICKS_FULL = -1, -2
"""`varints` is full, or there are more ticks than fit: nothing has been changed."""
ELEMENTS, TRIPLES = 0, 1
EAGER, STEPS, COUNTS, OFFSETS, PROMISING, VARINTS, PLACES, DUE, INSTANTS, QUIET, OPEN, OPENED_BY, SESSIONS, LAST_OF = (
    range(14)
)
"""The arrays of a clock's record (primitives/state_record.py). QUIET (streams): up to this time an element alone passes no boundary,
and sets none that is not noted yet. OPEN (k): of each window that changes at the end of every instant of its stream's elements,
whose number is in OPENED_BY (k), the last of these instants, if it has not ended; else NEVER. SESSIONS (k, 2): of each window of
sessions the number of its stream and its gap; LAST_OF (k): the time of the last element of its open session, or NEVER."""
NEVER = np.int64(np.iinfo(np.int64).max)
KEPT, ENDS = 2 * FIELDS, 2 * FIELDS + 1
"""Fields of `ends` after those of the queue and their values before the step: how many promised instants are due now."""
_FEW = 8
"""With fewer ticks than these, the merge does not run in two chains."""
_ONE = np.uint64(1)


@jit_flat
def step(time, stream, first, boundary, through, state, number, element_tick):
    """Number elements (n), and collect the ticks of a step.

    `time` (n) not falling, `stream` (n), `first` (n + 1): where each element's triples start. `boundary`: STEP
    boundaries in order, each once. Arrays in `state`: `eager` (streams): every arrival is a tick. `steps` (k, 3): an
    element of that stream is a tick if it brings the count of elements (or TRIPLES) to a multiple of that size, or past
    it. `counts` (2, streams): how many came before; updated. `offsets` (q), `promising` (q, streams): for each queue
    the promise that a tick follows this long after each element of these streams; `varints` (q, room), `ends` (q, ENDS):
    the instants in each queue (varint_queue.py). `due` (q, m): room for those that are due now.

    Promised instants up to `through`, or up to the last arrival that is a tick, are due. At one instant a promised tick
    comes before all others (there is none if an arrival is a tick then), then the arrivals, then a boundary. Writes
    `number` (n), from 1 per stream, `element_tick` (n), -1 for an arrival that is no tick, and `instants` (room for
    all). Returns the number of ticks (or VARINTS_FULL, TICKS_FULL), and the instant up to which promised instants were due.
    """
    eager, steps, counts, offsets, promising, varints, ends, due, instants = (
        flags(state, EAGER), int64_rows(state, STEPS), int64_rows(state, COUNTS),
        int64s(state, OFFSETS), flag_rows(state, PROMISING), uint8_rows(state, VARINTS),
        int64_rows(state, PLACES), int64_rows(state, DUE), int64s(state, INSTANTS),
    )  # fmt: skip
    n, promises, limit = len(time), np.uint64(len(offsets)), through
    if len(instants) < n + len(boundary):
        return TICKS_FULL, limit
    for q in range(promises):
        if (ends[q, END] - ends[q, EXPIRING + AT]) % varints.shape[1] + MOST_BYTES * n >= varints.shape[1]:
            return VARINTS_FULL, limit
        for field in range(FIELDS):
            ends[q, FIELDS + field] = ends[q, field]
    all_ticks = _all(eager)
    if all_ticks:
        through = _number_ticks(time, stream, first, through, counts, number, element_tick)
    else:
        through = _number(time, stream, first, through, eager, steps, counts, number, element_tick)
    if len(offsets) == 0 and len(boundary) == 0:
        return _arrivals_alone(time, element_tick, instants), through
    ticks, has_room = n + len(boundary), True
    for q in range(promises):
        _promise(time, stream, promising[q], offsets[q], varints[q], ends[q])
        kept = read_through(through, EXPIRING, varints[q], ends[q], due[q])
        ticks += kept
        has_room = has_room and kept < due.shape[1] and ticks <= len(instants)
        if has_room:
            due[q, kept] = NEVER
            ends[q, KEPT] = kept
    if not has_room:
        for q in range(promises):
            for field in range(FIELDS):
                ends[q, field] = ends[q, FIELDS + field]
        _forget_numbers(stream, first, counts)
        return TICKS_FULL, limit
    if all_ticks and promises == 1 and len(boundary) == 0:
        return _arrivals_and_kept(time, due[0, : ends[0, KEPT]], element_tick, instants), through
    return _in_order(time, boundary, promises, due, ends, element_tick, instants), through


@jit_inline
def _number(time, stream, first, through, eager, steps, counts, number, element_tick):
    """Write the elements' numbers, and 0 for the tick of each arrival that is one. Returns the instant up to which
    promised instants are due."""
    for i in range(np.uint64(len(time))):
        s = np.uint64(stream[i])
        triples = np.int64(first[i + _ONE]) - np.int64(first[i])
        elements = counts[ELEMENTS, s] + 1
        counts[ELEMENTS, s] = elements
        counts[TRIPLES, s] += triples
        number[i] = elements
        is_tick = eager[s]
        for k in range(len(steps)):
            if steps[k, 0] == np.int64(s):
                after = counts[steps[k, 2], s]
                before = after - (1 if steps[k, 2] == ELEMENTS else triples)
                is_tick = is_tick or after // steps[k, 1] > before // steps[k, 1]
        element_tick[i] = 0 if is_tick else -1
        through = max(through, time[i]) if is_tick else through
    return through


@jit_inline
def _all(flags):
    for i in range(len(flags)):
        if not flags[i]:
            return False
    return True


@jit_inline
def _number_ticks(time, stream, first, through, counts, number, element_tick):
    """`_number` where every arrival is a tick: there are fewer checks per element, and none with a single stream."""
    n = np.uint64(len(time))
    if n == 0:
        return through
    for i in range(n):
        element_tick[i] = 0
    if counts.shape[1] == 1:
        before = counts[ELEMENTS, 0] + 1
        for i in range(n):
            number[i] = before + np.int64(i)
        counts[ELEMENTS, 0] += np.int64(n)
        counts[TRIPLES, 0] += np.int64(first[n]) - np.int64(first[0])
    else:
        for i in range(n):
            s = np.uint64(stream[i])
            elements = counts[ELEMENTS, s] + 1
            counts[ELEMENTS, s] = elements
            number[i] = elements
            counts[TRIPLES, s] += np.int64(first[i + _ONE]) - np.int64(first[i])
    return max(through, time[n - _ONE])


@jit_inline
def _arrivals_alone(time, element_tick, instants):
    """The ticks where only arrivals are ticks; returns how many."""
    ticks = np.uint64(0)
    for i in range(np.uint64(len(time))):
        is_tick = element_tick[i] == 0
        instants[ticks] = time[i]
        element_tick[i] = np.int32(ticks) if is_tick else np.int32(-1)
        ticks += np.uint64(is_tick)
    return np.int64(ticks)


@jit_inline
def _forget_numbers(stream, first, counts):
    """Undo the numbering, as the step will be repeated."""
    for i in range(np.uint64(len(stream))):
        s = np.uint64(stream[i])
        counts[ELEMENTS, s] -= 1
        counts[TRIPLES, s] -= np.int64(first[i + _ONE]) - np.int64(first[i])


@jit_inline
def _promise(time, stream, promising, offset, varints, ends):
    """Append the promised instants of elements of the `promising` streams to a queue, each instant once."""
    place, newest = np.uint64(ends[END]), ends[NEWEST]
    for i in range(np.uint64(len(time))):
        # Without a branch, as the streams are unpredictable: written unconditionally, and overwritten if it is not
        # promised.
        instant = time[i] + offset
        new = promising[stream[i]] & (instant != newest)
        behind = put(np.uint64(instant - newest), place, varints)
        place = behind if new else place
        newest = instant if new else newest
    ends[END], ends[NEWEST] = np.int64(place), newest


@jit_inline
def _all_kept(promises, due, ends, instants):
    """Merge the due instants, each once, to the end of `instants`, after room for all other ticks.

    Returns where they start there, and how many there are.
    """
    start, many = np.uint64(len(instants)), np.uint64(0)
    for q in range(promises):
        count = np.uint64(ends[q, KEPT])
        if count == 0:
            continue
        to = start - count
        if many == 0:
            for i in range(count):
                instants[to + i] = due[q, i]
            start, many = to, count
            continue
        i = j = made = np.uint64(0)
        while i < many or j < count:
            # Without a branch: which of the two is next is unpredictable.
            other, mine = instants[start + i] if i < many else NEVER, due[q, j]
            earliest = min(other, mine)
            instants[to + made] = earliest
            i += np.uint64(other == earliest)
            j += np.uint64(mine == earliest)
            made += _ONE
        start, many = to, made
    return start, many


@jit_inline
def _through(instants, limit):
    """How many of the instants are at or before a limit (binary search)."""
    least, most = np.uint64(0), np.uint64(len(instants))
    while least < most:
        middle = (least + most) >> _ONE
        if instants[middle] <= limit:
            least = middle + _ONE
        else:
            most = middle
    return least


@jit_inline
def _next_tick(time, kept, a, p, tick, element_tick, instants):
    """A tick at the instant of arrival a or of promised instant p, or of both. Returns the indices of the next ones."""
    # Without a branch: which is next is unpredictable. A value written too early is overwritten.
    arrival, instant = time[a], kept[p]
    element_tick[a] = np.int32(tick)
    instants[tick] = min(arrival, instant)
    return a + np.uint64(arrival <= instant), p + np.uint64(instant <= arrival)


@jit_inline
def _remaining_ticks(time, kept, a, last_a, p, last_p, tick, element_tick, instants):
    """The ticks of arrivals from a to `last_a` and of promised instants from p to `last_p`. Returns the number of the
    next tick."""
    while a < last_a and p < last_p:
        a, p = _next_tick(time, kept, a, p, tick, element_tick, instants)
        tick += _ONE
    for at in range(last_a - a):
        element_tick[a + at] = np.int32(tick + at)
        instants[tick + at] = time[a + at]
    tick += last_a - a
    for at in range(last_p - p):
        instants[tick + at] = kept[p + at]
    return tick + last_p - p


@jit_inline
def _arrivals_and_kept(time, kept, element_tick, instants):
    """The ticks of arrivals, all of which are ticks, and of one queue's due instants. Returns how many.

    In a merge each comparison waits for the one before it. So both halves of the arrivals are merged at once, as two
    independent chains: a two-ended merge saves 10 ns per arrival. The second half's ticks are numbered as if no due
    instant of the first coincided with an arrival, and corrected afterwards.
    """
    n, promised = np.uint64(len(time)), np.uint64(len(kept))
    last_a = n >> _ONE
    last_p = _through(kept, time[last_a - _ONE]) if last_a else np.uint64(0)
    a, p, b, q, tick, start = np.uint64(0), np.uint64(0), last_a, last_p, np.uint64(0), last_a + last_p
    while True:
        # This many of each are certainly left.
        together = min(min(last_a - a, last_p - p), min(n - b, promised - q))
        if together < _FEW:
            break
        for at in range(tick, tick + together):
            a, p = _next_tick(time, kept, a, p, at, element_tick, instants)
            b, q = _next_tick(time, kept, b, q, start + at, element_tick, instants)
        tick += together
    end = _remaining_ticks(time, kept, b, n, q, promised, start + tick, element_tick, instants)
    middle = _remaining_ticks(time, kept, a, last_a, p, last_p, tick, element_tick, instants)
    for i in range(last_a, n):
        element_tick[i] -= np.int32(start - middle)
    for i in range(end - start):
        instants[middle + i] = instants[start + i]
    return np.int64(end - start + middle)


@jit_inline
def _in_order(time, boundary, promises, due, ends, element_tick, instants):
    """The ticks of promised instants, arrivals and boundaries; returns how many."""
    n, boundaries = np.uint64(len(time)), np.uint64(len(boundary))
    start, promised = _all_kept(promises, due, ends, instants)
    a = b = p = ticks = np.uint64(0)
    while True:
        while a < n and element_tick[a] < 0:
            a += _ONE
        arrival = time[a] if a < n else NEVER
        kept = instants[start + p] if p < promised else NEVER
        following = boundary[b] if b < boundaries else NEVER
        now = min(kept, arrival, following)
        if now == NEVER:
            return np.int64(ticks)
        # Without a branch: which is next is unpredictable. A value written too early is overwritten.
        if a < n:
            element_tick[a] = np.int32(ticks)
        instants[ticks] = now
        arrives, keeps = arrival == now, kept == now
        a += np.uint64(arrives)
        p += np.uint64(keeps)
        b += np.uint64(not (arrives or keeps))
        ticks += _ONE
