"""One step of a window that moves with every arrival: what enters at once, and what leaves, in one pass."""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.jit import jit


@jit
def slide(
    points, ids, start, arrived, end, limit, size, timed, instants, units, before, element, element_tick, columns
):
    """The changes of a window, by tick; at one tick first what leaves. What leaves at the tick it entered was never there.

    `points` (room), `ids` (width, room; with no rows at all, ids of what leaves are 0): circular, of the mappings with numbers
    `start` to `end` - 1, of which those from `arrived` on are new: their elements are `element` (n), their ids `columns`
    (width, n). What arrived at or before the point `limit` leaves, at its point + `size`: `timed`, at the first of `instants`
    (the ticks') that is not before it; else with the arrival of that number, units[number - before - 1] being its element.
    Returns how many leave, and tick, sign and columns of the changes.
    """
    room = len(points)
    width, entering = columns.shape
    first = start % room
    leaving, place = 0, first
    while start + leaving < end and points[place] <= limit:
        leaving += 1
        place = place + 1 if place + 1 < room else 0
    leave_tick = np.empty(leaving, np.int32)
    dropped, at, place = 0, 0, first
    for i in range(leaving):
        point = points[place] + size
        place = place + 1 if place + 1 < room else 0
        if timed:
            while at < len(instants) and instants[at] < point:
                at += 1
            leave_tick[i] = at
        else:
            leave_tick[i] = element_tick[units[point - before - 1]]
        entered = start + i - arrived
        if entered >= 0 and leave_tick[i] <= element_tick[element[entered]]:
            leave_tick[i] = -1
            dropped += 1
    rows = leaving + entering - 2 * dropped
    tick, sign, changed = np.empty(rows, np.int32), np.empty(rows, np.int8), np.empty((width, rows), np.int64)
    i, j, k, place = 0, 0, 0, first
    while k < rows:
        if i < leaving and leave_tick[i] < 0:
            i += 1
            place = place + 1 if place + 1 < room else 0
            continue
        gone = arrived + j - start
        if j < entering and gone < leaving and leave_tick[gone] < 0:
            j += 1
            continue
        if j == entering or (i < leaving and leave_tick[i] <= element_tick[element[j]]):
            tick[k] = leave_tick[i]
            sign[k] = -1
            for c in range(width):
                changed[c, k] = ids[c, place] if len(ids) else 0
            i += 1
            place = place + 1 if place + 1 < room else 0
        else:
            tick[k] = element_tick[element[j]]
            sign[k] = 1
            for c in range(width):
                changed[c, k] = columns[c, j]
            j += 1
        k += 1
    return leaving, tick, sign, changed
