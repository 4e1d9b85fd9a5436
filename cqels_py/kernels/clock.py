"""One step of a query's clock, in one pass: numbers of elements, what they promise, and the ticks in order."""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.jit import jit_flat

FULL = -1
"""There is no room: nothing has been changed."""
STREAM, OFFSET = 0, 1
"""What a queue of promises has: at so many microseconds after each element of a stream something happens."""
HEAD, TAIL = 0, 1
ELEMENTS, TRIPLES = 0, 1
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
    for i in range(n):
        s = stream[i]
        triples = first[i + 1] - first[i]
        counts[ELEMENTS, s] += 1
        counts[TRIPLES, s] += triples
        number[i] = counts[ELEMENTS, s]
        is_tick = eager[s]
        for k in range(len(steps)):
            if steps[k, 0] == s:
                after = counts[steps[k, 2], s]
                before = after - (1 if steps[k, 2] == ELEMENTS else triples)
                is_tick = is_tick or after // steps[k, 1] > before // steps[k, 1]
        element_tick[i] = 0 if is_tick else -1
        if is_tick and time[i] > through:
            through = time[i]
        for q in range(len(promised)):
            if promised[q, STREAM] == s:
                instant = time[i] + promised[q, OFFSET]
                tail = ends[q, TAIL]
                if tail == ends[q, HEAD] or queues[q, tail - 1] != instant:
                    queues[q, tail] = instant
                    ends[q, TAIL] = tail + 1
    a = b = ticks = 0
    if len(promised) == 0 and len(boundary) == 0:
        # Nothing but arrivals.
        for i in range(n):
            if element_tick[i] == 0:
                instants[ticks] = time[i]
                element_tick[i] = ticks
                ticks += 1
        return ticks, through
    while True:
        kept = _NEVER
        for q in range(len(promised)):
            if ends[q, HEAD] < ends[q, TAIL]:
                kept = min(kept, queues[q, ends[q, HEAD]])
        while a < n and element_tick[a] < 0:
            a += 1
        arrival = time[a] if a < n else _NEVER
        following = boundary[b] if b < len(boundary) else _NEVER
        if kept <= through and kept <= arrival and kept <= following:
            for q in range(len(promised)):
                if ends[q, HEAD] < ends[q, TAIL] and queues[q, ends[q, HEAD]] == kept:
                    ends[q, HEAD] += 1
            if kept == arrival:
                continue
            instants[ticks] = kept
        elif a < n and arrival <= following:
            instants[ticks] = arrival
            element_tick[a] = ticks
            a += 1
        elif b < len(boundary):
            instants[ticks] = following
            b += 1
        else:
            return ticks, through
        ticks += 1
