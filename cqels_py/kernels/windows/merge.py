"""Merging of runs of rows that are each ordered by tick. Ties: the earlier run first.

Usually the runs have about the same ticks, and rows are placed by counting sort. Comparing the runs' heads, whose
minimum is unpredictable, takes three times as long. It is used where there are few rows over many ticks.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit, jit_inline

_END = np.int64(1 << 40)
_DENSE = 8
"""Ticks per row up to which counting sort is used."""


@jit_inline
def _count_places(ticks, first, behind, place):
    """Counting sort. `behind` (ticks + 1): zeros, for the number of rows before each tick."""
    for i in range(np.uint64(len(ticks))):
        behind[ticks[i] - first + 1] += 1
    before = np.int32(0)
    for tick in range(np.uint64(len(behind))):
        before += behind[tick]
        behind[tick] = before
    for i in range(np.uint64(len(ticks))):
        tick = np.uint64(ticks[i] - first)
        place[i] = behind[tick]
        behind[tick] += 1


@jit
def _compare_heads(ticks, starts, place):
    runs = len(starts) - 1
    at, head = starts[:-1].copy(), np.full(runs, _END, np.int64)
    for r in range(runs):
        if starts[r] < starts[r + 1]:
            head[r] = ticks[starts[r]]
    for k in range(len(ticks)):
        best = 0
        for r in range(1, runs):
            if head[r] < head[best]:
                best = r
        i = at[best]
        place[i] = k
        at[best] = i + 1
        head[best] = ticks[i + 1] if i + 1 < starts[best + 1] else _END


@jit
def places_by_tick(ticks, starts):
    """The position of each row in the order of ticks; run r is ticks[starts[r]:starts[r+1]]."""
    first, last = _END, np.int64(0)
    for r in range(len(starts) - 1):
        if starts[r] < starts[r + 1]:
            first, last = min(first, np.int64(ticks[starts[r]])), max(last, np.int64(ticks[starts[r + 1] - 1]))
    place = np.empty(len(ticks), np.int32)
    if first <= last < first + _DENSE * len(ticks):
        _count_places(ticks, first, np.zeros(last - first + 2, np.int32), place)
    else:
        _compare_heads(ticks, starts, place)
    return place


@jit
def merge_rows(ticks, signs, slots, starts, row_port, row_slot, row_tick, row_sign):
    """The rows of all ports in one order: run r, that of port r, is ticks[starts[r]:starts[r+1]]."""
    place = places_by_tick(ticks, starts)
    for r in range(len(starts) - 1):
        for i in range(np.uint64(starts[r]), np.uint64(starts[r + 1])):
            to = np.uint64(place[i])
            row_port[to] = r
            row_slot[to] = slots[i]
            row_tick[to] = ticks[i]
            row_sign[to] = signs[i]


@jit
def merge_by_tick(ticks, starts, order):
    """For each merged row its position in `ticks`: run r is ticks[starts[r]:starts[r+1]]."""
    place = places_by_tick(ticks, starts)
    for i in range(np.uint64(len(ticks))):
        order[place[i]] = i
