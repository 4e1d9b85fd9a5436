"""Merging of runs of rows that are each in the order of ticks. Ties: the earlier run first."""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.jit import jit

_END = np.int64(1 << 40)


@jit
def merge_rows(ticks, signs, slots, starts, row_port, row_slot, row_tick, row_sign):
    """The rows of all ports in one order: run r, that of port r, is ticks[starts[r]:starts[r+1]]."""
    runs = len(starts) - 1
    at = starts[:-1].copy()
    head = np.full(runs, _END, np.int64)
    for r in range(runs):
        if at[r] < starts[r + 1]:
            head[r] = ticks[at[r]]
    for k in range(len(ticks)):
        best = 0
        for r in range(1, runs):
            if head[r] < head[best]:
                best = r
        i = at[best]
        row_port[k] = best
        row_slot[k] = slots[i]
        row_tick[k] = ticks[i]
        row_sign[k] = signs[i]
        at[best] = i + 1
        head[best] = ticks[i + 1] if i + 1 < starts[best + 1] else _END


@jit
def merge_by_tick(ticks, starts, order):
    """For each merged row its position in `ticks`: run r is ticks[starts[r]:starts[r+1]]."""
    runs = len(starts) - 1
    at = starts[:-1].copy()
    head = np.full(runs, _END, np.int64)
    for r in range(runs):
        if at[r] < starts[r + 1]:
            head[r] = ticks[at[r]]
    for k in range(len(ticks)):
        best = 0
        for r in range(1, runs):
            if head[r] < head[best]:
                best = r
        i = at[best]
        order[k] = i
        at[best] = i + 1
        head[best] = ticks[i + 1] if i + 1 < starts[best + 1] else _END
