"""Monotonic queues: the first member in the total order of a queue, under insertion at its end and removal at its
start. MIN and MAX over windows.

A member that is followed by one before it in the order will never be the first again, so it is dropped. The remaining
members are in increasing order. An inserted member drops those behind it in the order; an expiring one is the first of
the queue, or was dropped before.

Members are contiguous in a run of 2**k elements in the arena of heaps.py. A queue is four words: the position of its
first member, log2 of the run's capacity, its size, and the start of the run. The first three are as those of a bag, so
`bag_first` and `prefetch_bag` work for both.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat, jit_inline
from cqels_py.kernels.primitives.select import select_branchless
from cqels_py.kernels.structures.arena import release
from cqels_py.kernels.structures.heaps import allocate_run, bag_put, bag_room, before, is_before

FIRST, _LOG, _SIZE, START, QUEUE_WORDS = range(5)
_FIRST_LOG = 2


@jit_inline
def queue_room(words, at, sign, heap, heap_meta):
    """Room for an inserted member. False if the arena is full; nothing has changed then."""
    end = words[at + START] + (np.int64(1) << words[at + _LOG])
    there = words[at + _LOG] > 0 and words[at + FIRST] + words[at + _SIZE] < end
    return sign < 0 or there or _move(words, at, heap, heap_meta)


@jit_flat
def _move(words, at, heap, heap_meta):
    log, size, start = words[at + _LOG], words[at + _SIZE], words[at + START]
    to = start
    # Members are mostly moved to the start of the run. If they fill more than half of it that would be repeated too
    # soon, so the run is enlarged.
    if log == 0 or 2 * size > (np.int64(1) << log):
        larger = log + 1 if log > 0 else np.int64(_FIRST_LOG)
        to = allocate_run(heap, heap_meta, larger)
        if to < 0:
            return False
        words[at + _LOG] = larger
        words[at + START] = to
    for i in range(size):
        heap[to + i] = heap[words[at + FIRST] + i]
    if log > 0 and to != start:
        release(heap, heap_meta, start, log)
    words[at + FIRST] = to
    return True


@jit_inline
def queue_put(words, at, sign, value, heap, largest, texts, spans):
    """Insert a member, or remove the oldest; `queue_room` has made room."""
    first, size = words[at + FIRST], words[at + _SIZE]
    if sign < 0:
        # Written unconditionally: whether the member was dropped before is unpredictable.
        is_first = np.int64((size > 0) & (heap[first] == value))
        words[at + FIRST] = first + is_first
        words[at + _SIZE] = size - is_first
        return
    # Mostly there are few members. Whether one is dropped is unpredictable, so it is done without a branch; more than
    # one is rare.
    top = select_branchless(size > 0, heap[select_branchless(size > 0, first + size - 1, first)], value)
    is_dropped = is_before(value, top, largest, texts, spans)
    size -= np.int64(is_dropped)
    if is_dropped and size > 0:
        size = _members_left(heap, first, size, value, largest, texts, spans)
    heap[first + size] = value
    words[at + _SIZE] = size + 1


@jit_flat
def _members_left(heap, first, size, value, largest, texts, spans):
    """The number of members that an inserted one does not drop."""
    while size > 0 and before(value, heap[first + size - 1], largest, texts, spans):
        size -= 1
    return size


@jit_inline
def extreme_room(expires_fifo, words, at, sign, heap, heap_meta):
    """Room for an inserted or retracted member in a monotonic queue (`expires_fifo`) or a bag."""
    if heap is None:
        return True
    if expires_fifo:
        return queue_room(words, at, sign, heap, heap_meta)
    return bag_room(words, at, sign, heap, heap_meta)


@jit_inline
def extreme_put(expires_fifo, words, at, sign, value, heap, largest, texts, spans):
    """Insert or retract a member; `extreme_room` has made room. False: the retracted member was found to be missing."""
    if heap is None:
        return False
    if expires_fifo:
        queue_put(words, at, sign, value, heap, largest, texts, spans)
        return True
    return bag_put(words, at, sign, value, heap, largest, texts, spans)
