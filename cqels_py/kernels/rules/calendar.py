"""A binary heap of parts of intervals by their beginning."""

from __future__ import annotations

from cqels_py.kernels.compiler.jit import jit_flat
from cqels_py.kernels.primitives.state_record import int64_rows, int64s
from cqels_py.kernels.rules.records import (
    CALENDAR_ARRAY,
    COUNTERS_ARRAY,
    ENTRY,
    PART_FIELDS,
    PART_HI,
    PART_LO,
    QUEUE_ARRAY,
    QUEUE_END,
    WAITING,
)


@jit_flat
def swap(calendar, a, b):
    for field in range(PART_FIELDS):
        calendar[a, field], calendar[b, field] = calendar[b, field], calendar[a, field]


@jit_flat
def wait(calendar, counters, entry, lo, hi):
    """Insert a part. The caller has made sure that there is room."""
    at = counters[WAITING]
    calendar[at, ENTRY] = entry
    calendar[at, PART_LO] = lo
    calendar[at, PART_HI] = hi
    counters[WAITING] += 1
    while at > 0 and calendar[at, PART_LO] < calendar[(at - 1) // 2, PART_LO]:
        swap(calendar, at, (at - 1) // 2)
        at = (at - 1) // 2


@jit_flat
def queue_first(rules):
    """Move the part with the earliest beginning to the end of the queue, which has room."""
    queue = int64_rows(rules.state, QUEUE_ARRAY)
    calendar = int64_rows(rules.state, CALENDAR_ARRAY)
    counters = int64s(rules.state, COUNTERS_ARRAY)
    for field in range(PART_FIELDS):
        queue[counters[QUEUE_END], field] = calendar[0, field]
    counters[QUEUE_END] += 1
    counters[WAITING] -= 1
    size, at = counters[WAITING], 0
    swap(calendar, 0, size)
    while 2 * at + 1 < size:
        least = 2 * at + 1
        if least + 1 < size and calendar[least + 1, PART_LO] < calendar[least, PART_LO]:
            least += 1
        if calendar[at, PART_LO] <= calendar[least, PART_LO]:
            return
        swap(calendar, at, least)
        at = least
