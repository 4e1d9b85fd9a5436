"""The first member of a queue in the total order, while members come at its end and go at its start: MIN and MAX over windows.

A member that a later one comes before will never be the first again: it is forgotten. What is left goes up, from the first on, as
a staircase: each member that comes takes away the steps above it, and one that goes is the lowest step, or was forgotten.

Steps stand side by side in a run of 2**k places in the arena of `kernels.heaps`. A staircase is four words: where the first step is,
log2 of the run's capacity, how many steps there are, and where the run starts. The first three are those of a bag, so `bag_first`
and `expect_bag` do for both.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat, jit_inline
from cqels_py.kernels.primitives.select import choose
from cqels_py.kernels.structures.arena import release
from cqels_py.kernels.structures.heaps import allocate_run, bag_put, bag_room, before, is_before

FIRST, _LOG, _SIZE, START, STAIR_WORDS = range(5)
_FIRST_LOG = 2


@jit_inline
def stairs_room(words, at, sign, heap, heap_meta):
    """Room for one more step, if a member comes; False if the arena has none (nothing is changed)."""
    end = words[at + START] + (np.int64(1) << words[at + _LOG])
    there = words[at + _LOG] > 0 and words[at + FIRST] + words[at + _SIZE] < end
    return sign < 0 or there or _move(words, at, heap, heap_meta)


@jit_flat
def _move(words, at, heap, heap_meta):
    log, size, start = words[at + _LOG], words[at + _SIZE], words[at + START]
    to = start
    # Mostly the steps move to the run's start; if they fill half of it that would be again and again.
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
def stairs_put(words, at, sign, value, heap, largest, texts, spans):
    """A member comes, or the oldest goes; `stairs_room` has said that there is room."""
    first, size = words[at + FIRST], words[at + _SIZE]
    if sign < 0:
        # Written in any case: whether it was forgotten cannot be foreseen.
        leaves = np.int64((size > 0) & (heap[first] == value))
        words[at + FIRST] = first + leaves
        words[at + _SIZE] = size - leaves
        return
    # Mostly there are few steps, and whether one goes cannot be foreseen: that more do is seldom.
    top = choose(size > 0, heap[choose(size > 0, first + size - 1, first)], value)
    goes = is_before(value, top, largest, texts, spans)
    size -= np.int64(goes)
    if goes and size > 0:
        size = _steps_left(heap, first, size, value, largest, texts, spans)
    heap[first + size] = value
    words[at + _SIZE] = size + 1


@jit_flat
def _steps_left(heap, first, size, value, largest, texts, spans):
    """How many steps stay below a member that comes."""
    while size > 0 and before(value, heap[first + size - 1], largest, texts, spans):
        size -= 1
    return size


@jit_inline
def extreme_room(in_order, words, at, sign, heap, heap_meta):
    """Room for a member that comes or goes, in a staircase (`in_order`) or a bag."""
    if heap is None:
        return True
    if in_order:
        return stairs_room(words, at, sign, heap, heap_meta)
    return bag_room(words, at, sign, heap, heap_meta)


@jit_inline
def extreme_put(in_order, words, at, sign, value, heap, largest, texts, spans):
    """A member comes or goes; `extreme_room` has said that there is room. False: it was seen that it was not there."""
    if heap is None:
        return False
    if in_order:
        stairs_put(words, at, sign, value, heap, largest, texts, spans)
        return True
    return bag_put(words, at, sign, value, heap, largest, texts, spans)
