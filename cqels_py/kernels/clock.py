"""One step of a query's clock, in one pass: numbers of elements, what they promise, and the ticks in order."""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.jit import jit_flat, jit_inline

FULL = -1
"""There is no room: nothing has been changed."""
STREAM, OFFSET = 0, 1
"""What a queue of promises has: at so many microseconds after each element of a stream something happens."""
HEAD, TAIL = 0, 1
ELEMENTS, TRIPLES = 0, 1
_ONE = np.uint64(1)
_NEVER = np.int64(np.iinfo(np.int64).max)


@jit_flat
def step(
    time, stream, first, boundary, through, eager, steps, counts, promised, queues, ends, number, element_tick, instants
):
    """Number elements (n), and put together the ticks of a step.

    `time` (n) not falling, `stream` (n), `first` (n + 1): where each element's triples start. `boundary`: instants in order, each
    once. `eager` (streams): every arrival is a tick. `steps` (k, 3): of that stream the element that brings the count of elements
    (or TRIPLES) to a multiple of that size, or past it, is one. `counts` (2, streams): how many came before; updated.
    `promised` (q, 2): see STREAM; `queues` (q, room): instants in order, queue j from ends[j, HEAD] to ends[j, TAIL].

    Promises through `through`, or the last arrival that is a tick, are kept: at one instant they are a tick ahead of all (none
    if an arrival is), then come the arrivals, then a boundary. Writes `number` (n), from 1 per stream, `element_tick` (n), -1
    for an arrival that is none, and `instants`. Returns how many ticks there are (or FULL), and through when promises were kept.
    """
    n, room = len(time), queues.shape[1]
    if len(instants) < len(promised) * room + n + len(boundary):
        return FULL, through
    for q in range(len(promised)):
        if ends[q, TAIL] + n > room:
            live = ends[q, TAIL] - ends[q, HEAD]
            # Moving must cost no more than a constant for each instant that was promised since the last move.
            if 2 * (live + n) > room:
                return FULL, through
            for i in range(live):
                queues[q, i] = queues[q, ends[q, HEAD] + i]
            ends[q, HEAD] = 0
            ends[q, TAIL] = live
    through = _number(time, stream, first, through, eager, steps, counts, number, element_tick)
    if len(promised) == 0 and len(boundary) == 0:
        return _arrivals_alone(time, element_tick, instants), through
    for q in range(np.uint64(len(promised))):
        _promise(time, stream, promised[q, STREAM], promised[q, OFFSET], q, queues, ends)
    return _in_order(time, boundary, through, np.uint64(len(promised)), queues, ends, element_tick, instants), through


@jit_inline
def _number(time, stream, first, through, eager, steps, counts, number, element_tick):
    """The elements' numbers, and 0 for the tick of each whose arrival is one; returns through when promises are kept."""
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
def _arrivals_alone(time, element_tick, instants):
    """The ticks where nothing but arrivals makes any; returns how many."""
    ticks = np.uint64(0)
    for i in range(np.uint64(len(time))):
        is_tick = element_tick[i] == 0
        instants[ticks] = time[i]
        element_tick[i] = np.int32(ticks) if is_tick else np.int32(-1)
        ticks += np.uint64(is_tick)
    return np.int64(ticks)


@jit_inline
def _promise(time, stream, of_stream, offset, q, queues, ends):
    """What the elements of a stream promise, to the end of a queue."""
    head, tail = np.uint64(ends[q, HEAD]), np.uint64(ends[q, TAIL])
    latest = queues[q, tail - _ONE] if tail > head else _NEVER
    for i in range(np.uint64(len(time))):
        # Without a jump, as nobody can foresee the streams: written in any case, and over again if it is no promise.
        instant = time[i] + offset
        queues[q, tail] = instant
        new = (np.int64(stream[i]) == of_stream) & (instant != latest)
        latest = instant if new else latest
        tail += np.uint64(new)
    ends[q, TAIL] = np.int64(tail)


@jit_inline
def _earliest(queues, ends, number_of_queues):
    earliest, last = _NEVER, np.uint64(queues.shape[1]) - _ONE
    for q in range(number_of_queues):
        head = np.uint64(ends[q, HEAD])
        instant = queues[q, min(head, last)] if head < np.uint64(ends[q, TAIL]) else _NEVER
        earliest = min(earliest, instant)
    return earliest


@jit_inline
def _in_order(time, boundary, through, promises, queues, ends, element_tick, instants):
    """The ticks that promises, arrivals and boundaries make; returns how many."""
    n, boundaries, last = np.uint64(len(time)), np.uint64(len(boundary)), np.uint64(queues.shape[1]) - _ONE
    a = b = ticks = np.uint64(0)
    kept = _earliest(queues, ends, promises)
    while True:
        while a < n and element_tick[a] < 0:
            a += _ONE
        arrival = time[a] if a < n else _NEVER
        following = boundary[b] if b < boundaries else _NEVER
        if kept <= through and kept <= arrival and kept <= following:
            for q in range(promises):
                head = np.uint64(ends[q, HEAD])
                ends[q, HEAD] += np.int64((head < np.uint64(ends[q, TAIL])) & (queues[q, min(head, last)] == kept))
            instants[ticks] = kept
            ticks += np.uint64(kept != arrival)
            kept = _earliest(queues, ends, promises)
        elif a < n and arrival <= following:
            instants[ticks] = arrival
            element_tick[a] = np.int32(ticks)
            a += _ONE
            ticks += _ONE
        elif b < boundaries:
            instants[ticks] = following
            b += _ONE
            ticks += _ONE
        else:
            return np.int64(ticks)
