"""Bags of terms kept in the total order under insertions and retractions: the values that GROUP_CONCAT joins.

A bag is a run in the arena of heaps.py, with the same first three words: offset, log2 of the capacity, size. A member
is found by binary search, and inserting or retracting it moves those after it. That costs less than writing the joined
text, which is as long.
"""

from __future__ import annotations

from cqels_py.kernels.compiler.jit import jit_flat
from cqels_py.kernels.values.order import order_terms

RUN_WORDS = 3
_OFFSET, _SIZE = 0, 2


@jit_flat
def run_put(words, at, sign, value, heap, texts, spans):
    """Insert a member (`make_room` has made room) or retract one. False: the retracted member was not in the bag."""
    offset, size = words[at + _OFFSET], words[at + _SIZE]
    low = size - size
    high = size
    while low < high:
        middle = (low + high) >> 1
        if order_terms(heap[offset + middle], value, texts, spans) < 0:
            low = middle + 1
        else:
            high = middle
    if sign > 0:
        for i in range(size, low, -1):
            heap[offset + i] = heap[offset + i - 1]
        heap[offset + low] = value
        words[at + _SIZE] = size + 1
        return True
    if low == size or heap[offset + low] != value:
        return False
    for i in range(low, size - 1):
        heap[offset + i] = heap[offset + i + 1]
    words[at + _SIZE] = size - 1
    return True


@jit_flat
def run_copy(words, at, heap, out, start):
    """Write the members to out[start:], in order. Returns how many."""
    offset, size = words[at + _OFFSET], words[at + _SIZE]
    for i in range(size):
        out[start + i] = heap[offset + i]
    return size
