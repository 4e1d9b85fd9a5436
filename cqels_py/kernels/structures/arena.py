"""An allocator of runs inside of one growing array, used for the members of rings, heaps and monotonic queues.

A run has 2**size elements. `meta` holds for each size the first free run, whose first element is the number of the next
free run (-1: none), and then TOP, from which on the array was never used.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat, jit_inline

_SIZES = 40
TOP = _SIZES
ARENA_FIELDS = _SIZES + 1


@jit_inline
def allocate(arena, meta, size):
    """The start of a new run, or -1 if the arena is full."""
    offset = meta[size]
    if offset >= 0:
        meta[size] = arena[offset]
        return offset
    offset = meta[TOP]
    capacity = np.int64(1) << size
    if offset + capacity > len(arena):
        return np.int64(-1)
    meta[TOP] = offset + capacity
    return offset


@jit_flat
def allocate_aligned(arena, meta, size):
    """`allocate` for an arena whose runs all begin at multiples of their length. Gaps left for alignment become free
    runs."""
    if meta[size] < 0:
        capacity = np.int64(1) << size
        top = meta[TOP]
        start = (top + capacity - 1) & -capacity
        if start + capacity > len(arena):
            return np.int64(-1)
        while top < start:
            piece = np.int64(0)
            while top >> piece & 1 == 0:
                piece += 1
            release(arena, meta, top, piece)
            top += np.int64(1) << piece
        meta[TOP] = start
    return allocate(arena, meta, size)


@jit_inline
def release(arena, meta, offset, size):
    """Add a run to the free list of its size."""
    arena[offset] = meta[size]
    meta[size] = offset
