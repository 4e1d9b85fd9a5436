"""Runs of places in one growing array: what rings, heaps and staircases keep their members in.

A run has 2**size places. `meta`: for each size the first free run, whose own first place says which is the next one (-1: none),
then the top, behind which nothing was ever used.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat, jit_inline

_SIZES = 40
TOP = _SIZES
ARENA_FIELDS = _SIZES + 1


@jit_inline
def allocate(arena, meta, size):
    """Where a run begins, or -1 if the arena has no room."""
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
    """The same in an arena whose runs all begin at a multiple of their length; what is left out before one is free."""
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
    """A run is free."""
    arena[offset] = meta[size]
    meta[size] = offset
