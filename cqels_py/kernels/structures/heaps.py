"""Bags of terms with access to their first member in the total order, under insertions and retractions in any order:
MIN and MAX.

A small bag is a run whose first element is the first member; the others are unordered. A retraction searches the run
for the member, and for the new first one where that was the first, comparing all members at once by their ids with
SIMD. With more than MOST_IN_RUN members the bag becomes two binary heaps: the inserted members, and the retracted
members that are not yet at the top of the first heap. When the tops are equal both are removed, so retracting needs no
search. When half of a bag is retracted, or few members are left, it is rebuilt, so that its size follows its content;
it becomes a run again if it is small enough.

Runs are allocated in one arena with 2**k elements each, and free runs are linked by size. A bag is six words: offset,
log2 of the capacity, and size of the run or first heap, then the same of the second heap, whose size is stored plus
one; that is 0 for a run.

Where no aggregate keeps terms the arena is None. For such a caller none of this is compiled, which would be up to a
third of all that a query needs compiled.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat, jit_inline
from cqels_py.kernels.primitives.prefetch import prefetch
from cqels_py.kernels.primitives.select import select_branchless
from cqels_py.kernels.structures.arena import allocate, release
from cqels_py.kernels.values.order import order_terms, same_kind

BAG_WORDS = 6
_OFFSET, _LOG, _SIZE = range(3)
RETRACTED = 3
_FIRST_LOG = 2
MOST_IN_RUN = 128
"""Up to this size searching a run costs less than maintaining heaps."""
_REBUILD_FROM = 16
_FEW = 32
_NOTHING, _ONE = np.uint64(0), np.uint64(1)
LANES = 16
"""The elements of a run that are compared together, whether they hold members or not, as the number of members is
unpredictable."""
_KIND_PLACE, _KIND_BITS, _PLACE = 56, 8, 255
_ALL_BUT_PLACE, _NONE, _BEHIND_NONE = np.int64(~_PLACE), np.int64(-(1 << 63) + 1), np.uint64(2)


@jit_flat
def before(a, b, largest, texts, spans):
    """Does term `a` come before `b`, in the total order or, with `largest`, in the reverse order?"""
    order = order_terms(a, b, texts, spans)
    return order > 0 if largest else order < 0


@jit_inline
def is_before(a, b, largest, texts, spans):
    """`before`, inlined for terms whose ids give the order, as most do: no call and no unpredictable branch."""
    if same_kind(a, b):
        return select_branchless(largest, (b << _KIND_BITS) < (a << _KIND_BITS), (a << _KIND_BITS) < (b << _KIND_BITS))
    return before(a, b, largest, texts, spans)


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
def _drop_first(heap, offset, size, largest, texts, spans):
    """Remove the first member of a heap of `size` members."""
    if size > 1:
        _sift_down(heap, offset, size - 1, np.int64(0), heap[offset + size - 1], largest, texts, spans)


@jit_inline
def allocate_run(heap, heap_meta, log):
    """The start of a new run, or -1. Behind each run there are LANES more elements, so that it can be read in whole
    vectors."""
    return allocate(heap[: max(len(heap) - LANES, 0)], heap_meta, log)


@jit_inline
def make_room(words, at, heap, heap_meta):
    """Room for one more member in the heap whose words begin at `at`. False if the arena is full; nothing has changed
    then."""
    log = words[at + _LOG]
    # A heap that was never used has log2 of the capacity 0, which no run has.
    return (log > 0 and words[at + _SIZE] < (np.int64(1) << log)) or _enlarge(words, at, heap, heap_meta)


@jit_flat
def _enlarge(words, at, heap, heap_meta):
    size, log = words[at + _SIZE], words[at + _LOG]
    larger = log + 1 if log > 0 else np.int64(_FIRST_LOG)
    offset = allocate_run(heap, heap_meta, larger)
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


@jit_inline
def _least_log(words, at):
    """log2 of the capacity needed by the members of the run or heap whose words begin at `at`; 0 if it is empty."""
    size = words[at + _SIZE] if words[at + _LOG] > 0 else np.int64(0)
    log = np.int64(_FIRST_LOG) if size > 0 else np.int64(0)
    while np.int64(1) << log < size:
        log += 1
    return log


@jit_flat
def count_places(words, width, place):
    """Of the runs whose words are at `place` of each `width` words: the elements needed by all, and the most that one
    of them will request when it grows."""
    places, next_one = np.int64(0), np.int64(1) << _FIRST_LOG
    for at in range(place, len(words), width):
        log = _least_log(words, at)
        if log > 0:
            places += np.int64(1) << log
            next_one = max(next_one, np.int64(2) << log)
    return places, next_one


@jit_flat
def move_runs(words, width, place, heap, new_heap, new_meta):
    """Move these runs to a new arena that has room for them, with the least capacity they need."""
    for at in range(place, len(words), width):
        log, offset = _least_log(words, at), words[at + _OFFSET]
        words[at + _LOG] = log
        if log > 0:
            words[at + _OFFSET] = allocate_run(new_heap, new_meta, log)
            for i in range(words[at + _SIZE]):
                new_heap[words[at + _OFFSET] + i] = heap[offset + i]


@jit_inline
def _insert(heap, offset, size, value, largest, texts, spans):
    """Insert into a run."""
    first = select_branchless(size > 0, heap[offset], value)
    comes_first = is_before(value, first, largest, texts, spans)
    heap[offset + size] = select_branchless(comes_first, first, value)
    heap[offset] = select_branchless(comes_first, value, first)


@jit_inline
def _lanes(size):
    """The number of elements of a run of this size that are read: a multiple of LANES."""
    return np.uint64((size + LANES - 1) & -LANES)


@jit_inline
def _in_order(identifier, place, largest):
    """A number by which terms whose ids give the order are compared; the largest number is first. Its last byte encodes
    the position. The first byte of the id, which holds its kind, is shifted out."""
    number = (identifier << _KIND_BITS) | np.int64(place + _BEHIND_NONE)
    return number if largest else number ^ _ALL_BUT_PLACE


@jit_inline
def _place_in(number):
    """The position encoded in such a number; 0 for _NONE."""
    return np.uint64(max((number & _PLACE) - np.int64(_BEHIND_NONE), np.int64(0)))


@jit_inline
def _first_of_others(heap, start, size, largest):
    """`_in_order` of the first member of a run other than the one at its start, or _NONE."""
    first = _NONE
    for i in range(_lanes(size)):
        there = (i > _NOTHING) & (np.int64(i) < size)
        first = max(first, _in_order(heap[start + i], i, largest) if there else _NONE)
    return first


@jit_flat
def _replace(heap, offset, size, retracted, inserted, largest, texts, spans):
    """Retract a member of a run and insert another in its place, unless `inserted` is 0. False: the member was not in the
    run."""
    start, place, kinds = np.uint64(offset), np.int64(-1), np.int64(0)
    for i in range(_lanes(size)):
        there = np.int64(i) < size
        place = max(place, np.int64(i) if (heap[start + i] == retracted) & there else np.int64(-1))
        kinds |= heap[start + i] ^ retracted if there else np.int64(0)
    if place < 0:
        return False
    kinds |= inserted ^ retracted if inserted != 0 else np.int64(0)
    if kinds >> _KIND_PLACE != 0 or not same_kind(retracted, retracted):
        _replace_slowly(heap, offset, size, place, inserted, largest, texts, spans)
        return True
    first = _in_order(heap[start], _NOTHING, largest)
    if place == 0:
        first = _first_of_others(heap, start, size, largest)
    comes_first = (inserted != 0) & (_in_order(inserted, _NOTHING, largest) > first)
    head, behind, other = heap[start], heap[start + np.uint64(size - 1)], heap[start + _place_in(first)]
    to = select_branchless(comes_first | (place > 0), np.uint64(place), _place_in(first))
    heap[start + to] = select_branchless(comes_first, head, select_branchless(inserted != 0, inserted, behind))
    heap[start] = select_branchless(comes_first, inserted, other)
    return True


@jit_flat
def _replace_slowly(heap, offset, size, place, inserted, largest, texts, spans):
    """Replace the member at a position where the ids alone do not give the order."""
    heap[offset + place] = heap[offset + size - 1]
    if place == 0 and size > 2:
        _bring_first(heap, offset, size - 1, largest, texts, spans)
    if inserted != 0:
        _insert(heap, offset, size - 1, inserted, largest, texts, spans)


@jit_flat
def _bring_first(heap, offset, size, largest, texts, spans):
    """Swap the first member to the start of a run."""
    start, end = np.uint64(offset), np.uint64(offset + size)
    place = start
    for i in range(start + _ONE, end):
        if before(heap[i], heap[place], largest, texts, spans):
            place = i
    heap[start], heap[place] = heap[place], heap[start]


@jit_flat
def _sort(heap, offset, size):
    """Sort a run of ids in place (Shellsort, which needs no memory)."""
    gap = size
    while gap > 1:
        gap = max(gap * 4 // 9, np.int64(1))
        for i in range(offset + gap, offset + size):
            value = heap[i]
            at = i
            while at >= offset + gap and heap[at - gap] > value:
                heap[at] = heap[at - gap]
                at -= gap
            heap[at] = value


@jit_flat
def _rebuild(words, at, heap, largest, texts, spans):
    """Remove all retracted members from the first heap. Both are sorted by id: any order serves to find equal members."""
    offset, size = words[at + _OFFSET], words[at + _SIZE]
    gone_offset, gone_size = words[at + RETRACTED + _OFFSET], words[at + RETRACTED + _SIZE] - 1
    kept = size
    if gone_size > 0:
        _sort(heap, offset, size)
        _sort(heap, gone_offset, gone_size)
        kept -= size
        g = 0
        for i in range(size):
            if g < gone_size and heap[gone_offset + g] == heap[offset + i]:
                g += 1
            else:
                heap[offset + kept] = heap[offset + i]
                kept += 1
    words[at + _SIZE] = kept
    words[at + RETRACTED + _SIZE] = kept > MOST_IN_RUN // 2
    if kept <= MOST_IN_RUN // 2:
        if kept > 1:
            _bring_first(heap, offset, kept, largest, texts, spans)
        return
    _make_heap(heap, offset, kept, largest, texts, spans)


@jit_flat
def _make_heap(heap, offset, size, largest, texts, spans):
    for i in range(size // 2 - 1, -1, -1):
        _sift_down(heap, offset, size, i, heap[offset + i], largest, texts, spans)


@jit_inline
def bag_room(words, at, sign, heap, heap_meta):
    """Room for an inserted or a retracted member."""
    if heap is None:
        return True
    if sign > 0:
        return make_room(words, at, heap, heap_meta)
    return words[at + RETRACTED + _SIZE] == 0 or make_room(words, at + RETRACTED, heap, heap_meta)


@jit_inline
def prefetch_first(words, at, heap):
    """Prefetch the first member."""
    if heap is not None:
        prefetch(heap, words[at + _OFFSET])


@jit_inline
def prefetch_bag(words, at, heap):
    """Prefetch the first member and the position of the next insertion."""
    if heap is not None:
        prefetch(heap, words[at + _OFFSET])
        prefetch(heap, words[at + _OFFSET] + words[at + _SIZE])


@jit_inline
def bag_put(words, at, sign, value, heap, largest, texts, spans):
    """Insert or retract a member; `bag_room` has made room. False: the retracted member was not in the bag."""
    if heap is None:
        return False
    size, offset = words[at + _SIZE], words[at + _OFFSET]
    if words[at + RETRACTED + _SIZE] > 0 or (sign > 0 and size >= MOST_IN_RUN):
        _put_in_heaps(words, at, sign, value, heap, largest, texts, spans)
        return True
    if sign > 0:
        _insert(heap, offset, size, value, largest, texts, spans)
    elif not _replace(heap, offset, size, value, np.int64(0), largest, texts, spans):
        return False
    words[at + _SIZE] = size + sign
    return True


@jit_inline
def replace_room(words, at, retracted, inserted, heap, heap_meta):
    """Room for `bag_replace`."""
    return (inserted == 0 or bag_room(words, at, np.int64(1), heap, heap_meta)) and (
        retracted == 0 or bag_room(words, at, np.int64(-1), heap, heap_meta)
    )


@jit_inline
def bag_replace(words, at, retracted, inserted, heap, largest, texts, spans):
    """Retract the member `retracted` and insert `inserted`; either may be 0 for none. `replace_room` has made room. False: the
    retracted member was not in the bag."""
    if retracted == 0 or words[at + RETRACTED + _SIZE] > 0:
        there = retracted == 0 or bag_put(words, at, np.int64(-1), retracted, heap, largest, texts, spans)
        return there and (inserted == 0 or bag_put(words, at, np.int64(1), inserted, heap, largest, texts, spans))
    size = words[at + _SIZE]
    words[at + _SIZE] = size - np.int64(inserted == 0)
    return _replace(heap, words[at + _OFFSET], size, retracted, inserted, largest, texts, spans)


@jit_flat
def _put_in_heaps(words, at, sign, value, heap, largest, texts, spans):
    is_insert = sign > 0
    place = at if is_insert else at + RETRACTED
    size, gone_size = words[at + _SIZE], max(words[at + RETRACTED + _SIZE] - 1, np.int64(0))
    if words[at + RETRACTED + _SIZE] == 0:
        _make_heap(heap, words[at + _OFFSET], size, largest, texts, spans)
    _sift_up(heap, words[place + _OFFSET], size if is_insert else gone_size, value, largest, texts, spans)
    size += is_insert
    gone_size += not is_insert
    offset, gone_offset = words[at + _OFFSET], words[at + RETRACTED + _OFFSET]
    while gone_size > 0 and heap[offset] == heap[gone_offset]:
        _drop_first(heap, offset, size, largest, texts, spans)
        _drop_first(heap, gone_offset, gone_size, largest, texts, spans)
        size -= 1
        gone_size -= 1
    words[at + _SIZE] = size
    words[at + RETRACTED + _SIZE] = gone_size + 1
    if not is_insert and (size <= _FEW or (gone_size > _REBUILD_FROM and 2 * gone_size > size)):
        _rebuild(words, at, heap, largest, texts, spans)


@jit_inline
def bag_first(words, at, heap):
    """The first member in the order, or 0 if the bag is empty."""
    if heap is None:
        return np.int64(0)
    # For a bag that never had a member this reads an arbitrary element, which is not used.
    return select_branchless(words[at + _SIZE] > 0, heap[words[at + _OFFSET]], np.int64(0))


@jit_inline
def bag_clear(words, at):
    """Remove all members; the runs are kept for later ones."""
    words[at + _SIZE] = 0
    words[at + RETRACTED + _SIZE] = 0
