"""Bags of terms that know their first one in the total order while members come and go in any order: MIN and MAX.

A bag is two binary heaps: what came, and what has gone but is not yet at the top of the first; equal tops leave together, so
nothing is ever searched for. When half of a bag is gone it is rebuilt, so that its size follows its content.

Heaps stand in one arena, in runs of 2**k places whose free ones are linked by size (as rings are). A bag is six words: offset,
log2 of the capacity and size of the first heap, then of the second.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.jit import jit_flat, jit_inline
from cqels_py.kernels.order import order_terms
from cqels_py.kernels.ring_index import allocate, release

BAG_WORDS = 6
_OFFSET, _LOG, _SIZE = range(3)
_GONE = 3
_FIRST_LOG = 2
_REBUILD_FROM = 16


@jit_flat
def before(a, b, largest, texts, spans):
    """Does a term come before another in the order, or after it where the largest is the first?"""
    order = order_terms(a, b, texts, spans)
    return order > 0 if largest else order < 0


@jit_flat
def _sift_up(heap, offset, at, value, largest, texts, spans):
    while at > 0:
        parent = (at - 1) >> 1
        if not before(value, heap[offset + parent], largest, texts, spans):
            break
        heap[offset + at] = heap[offset + parent]
        at = parent
    heap[offset + at] = value


@jit_flat
def _sift_down(heap, offset, size, at, value, largest, texts, spans):
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and before(heap[offset + child + 1], heap[offset + child], largest, texts, spans):
            child += 1
        if not before(heap[offset + child], value, largest, texts, spans):
            break
        heap[offset + at] = heap[offset + child]
        at = child
    heap[offset + at] = value


@jit_flat
def _drop_first(words, at, heap, largest, texts, spans):
    size = words[at + _SIZE] - 1
    words[at + _SIZE] = size
    begin = words[at + _OFFSET]
    if size > 0:
        _sift_down(heap, begin, size, np.int64(0), heap[begin + size], largest, texts, spans)


@jit_inline
def make_room(words, at, heap, heap_meta):
    """Room for one more in the heap whose words start at `at`; False if the arena has none (nothing is changed)."""
    log = words[at + _LOG]
    # A heap that was never used has log 0, which no run has.
    return (log > 0 and words[at + _SIZE] < (np.int64(1) << log)) or _enlarge(words, at, heap, heap_meta)


@jit_flat
def _enlarge(words, at, heap, heap_meta):
    size, log = words[at + _SIZE], words[at + _LOG]
    larger = log + 1 if log > 0 else np.int64(_FIRST_LOG)
    offset = allocate(heap, heap_meta, larger)
    if offset < 0:
        return False
    if log > 0:
        old = words[at + _OFFSET]
        for i in range(size):
            heap[offset + i] = heap[old + i]
        release(heap, heap_meta, old, log)
    words[at + _OFFSET] = offset
    words[at + _LOG] = larger
    return True


@jit_flat
def _sort(heap, offset, size):
    """Sort a run of ids in place (heapsort: no memory of its own)."""
    for start in range(2 * size - 1, 0, -1):
        # First every parent sinks (start from size on), then the largest goes to the end, again and again.
        if start >= size:
            at, length = start - size, size
            value = heap[offset + at]
        else:
            at, length = 0, start
            value = heap[offset + start]
            heap[offset + start] = heap[offset]
        while True:
            child = 2 * at + 1
            if child >= length:
                break
            if child + 1 < length and heap[offset + child + 1] > heap[offset + child]:
                child += 1
            if heap[offset + child] <= value:
                break
            heap[offset + at] = heap[offset + child]
            at = child
        heap[offset + at] = value


@jit_flat
def _rebuild(words, at, heap, largest, texts, spans):
    """Take what has gone out of the first heap, whatever its place. Sorted by id: any order serves to find equal ones."""
    offset, size = words[at + _OFFSET], words[at + _SIZE]
    gone_offset, gone_size = words[at + _GONE + _OFFSET], words[at + _GONE + _SIZE]
    _sort(heap, offset, size)
    _sort(heap, gone_offset, gone_size)
    kept = 0
    g = 0
    for i in range(size):
        if g < gone_size and heap[gone_offset + g] == heap[offset + i]:
            g += 1
        else:
            heap[offset + kept] = heap[offset + i]
            kept += 1
    words[at + _SIZE] = kept
    words[at + _GONE + _SIZE] = 0
    for i in range(kept // 2 - 1, -1, -1):
        _sift_down(heap, offset, kept, i, heap[offset + i], largest, texts, spans)


@jit_inline
def bag_room(words, at, sign, heap, heap_meta):
    """Room for a member that comes, or for one that goes."""
    return make_room(words, at if sign > 0 else at + _GONE, heap, heap_meta)


@jit_flat
def bag_put(words, at, sign, value, heap, largest, texts, spans):
    """A member comes or goes; `bag_room` has said that there is room."""
    place = at if sign > 0 else at + _GONE
    size = words[place + _SIZE]
    _sift_up(heap, words[place + _OFFSET], size, value, largest, texts, spans)
    words[place + _SIZE] = size + 1
    if sign > 0:
        return
    offset, gone_offset = words[at + _OFFSET], words[at + _GONE + _OFFSET]
    while words[at + _GONE + _SIZE] > 0 and heap[offset] == heap[gone_offset]:
        _drop_first(words, at, heap, largest, texts, spans)
        _drop_first(words, at + _GONE, heap, largest, texts, spans)
    if words[at + _GONE + _SIZE] > _REBUILD_FROM and 2 * words[at + _GONE + _SIZE] > words[at + _SIZE]:
        _rebuild(words, at, heap, largest, texts, spans)


@jit_inline
def bag_first(words, at, heap):
    """The first member in the order, or 0 if there is none."""
    if words[at + _SIZE] == 0:
        return np.int64(0)
    return heap[words[at + _OFFSET]]


@jit_inline
def bag_clear(words, at):
    """No members; the runs are kept for later ones."""
    words[at + _SIZE] = 0
    words[at + _GONE + _SIZE] = 0
