"""Bags of terms that stay in the total order while members come and go: what GROUP_CONCAT joins.

A bag is a run in the arena of `kernels.heaps`, with the same first three words: offset, log2 of the capacity, size. A member that
comes or goes is found by halving and moves those after it: less than writing the joined text, which is as long.
"""

from __future__ import annotations

from cqels_py.kernels.compiler.jit import jit_flat
from cqels_py.kernels.values.order import order_terms

RUN_WORDS = 3
_OFFSET, _SIZE = 0, 2


@jit_flat
def run_put(words, at, sign, value, heap, texts, spans):
    """A member comes (`make_room` has said that there is room) or goes. False: it was not there."""
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
