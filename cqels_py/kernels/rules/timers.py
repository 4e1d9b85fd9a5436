"""A binary heap of the ground atoms that are reported while they hold, by the time from which the next change of theirs is known.

Each has at most one timer, whose time is never later than that of its next change. Those of equal times are in the order of their
entries, so that the order of output depends neither on former changes nor on how many times are gone through at once.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat, jit_inline
from cqels_py.kernels.primitives.state_record import int64_rows
from cqels_py.kernels.rules.records import TIMER_ENTRY, TIMER_PLACE, TIMER_TIME, TIMERS_ARRAY


@jit_inline
def _is_earlier(timers, entry, other):
    time, other_time = timers[entry, TIMER_TIME], timers[other, TIMER_TIME]
    return time < other_time or (time == other_time and entry < other)


@jit_inline
def _set_at(timers, place, entry):
    timers[place, TIMER_ENTRY] = entry
    timers[entry, TIMER_PLACE] = place


@jit_flat
def _rise(timers, place, entry):
    """Put an entry at a free place of the heap, or further up."""
    while place > 1 and _is_earlier(timers, entry, timers[place // 2, TIMER_ENTRY]):
        _set_at(timers, place, timers[place // 2, TIMER_ENTRY])
        place //= 2
    _set_at(timers, place, entry)


@jit_flat
def _sink(timers, entry):
    """Put an entry at the first place of the heap, which is free, or further down."""
    place, last = np.int64(1), timers[0, TIMER_ENTRY]
    while 2 * place <= last:
        least = 2 * place
        if least < last and _is_earlier(timers, timers[least + 1, TIMER_ENTRY], timers[least, TIMER_ENTRY]):
            least += 1
        if not _is_earlier(timers, timers[least, TIMER_ENTRY], entry):
            break
        _set_at(timers, place, timers[least, TIMER_ENTRY])
        place = least
    _set_at(timers, place, entry)


@jit_flat
def set_timer(rules, entry, time):
    """The timer of an entry goes off by this time."""
    timers = int64_rows(rules.state, TIMERS_ARRAY)
    place = timers[entry, TIMER_PLACE]
    if place > 0 and timers[entry, TIMER_TIME] <= time:
        return
    if place == 0:
        timers[0, TIMER_ENTRY] += 1
        place = timers[0, TIMER_ENTRY]
    timers[entry, TIMER_TIME] = time
    _rise(timers, place, entry)


@jit_inline
def first_timer(rules):
    """The entry whose timer goes off first, or -1."""
    timers = int64_rows(rules.state, TIMERS_ARRAY)
    return timers[1, TIMER_ENTRY] if timers[0, TIMER_ENTRY] > 0 else np.int64(-1)


@jit_flat
def put_off(rules, entry, time):
    """The first timer, which is that of the entry, goes off at a later time."""
    timers = int64_rows(rules.state, TIMERS_ARRAY)
    timers[entry, TIMER_TIME] = time
    _sink(timers, entry)


@jit_flat
def stop_timer(rules, entry):
    """Remove the first timer, which is that of the entry."""
    timers = int64_rows(rules.state, TIMERS_ARRAY)
    last = timers[0, TIMER_ENTRY]
    timers[0, TIMER_ENTRY] -= 1
    if last > 1:
        _sink(timers, timers[last, TIMER_ENTRY])
    timers[entry, TIMER_PLACE] = 0
