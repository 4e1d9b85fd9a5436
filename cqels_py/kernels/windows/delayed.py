"""The changes of a window of time that ends a while ago, without STEP, in a step of one element."""

from __future__ import annotations

from cqels_py.kernels.compiler.jit import jit_flat
from cqels_py.kernels.primitives.state_record import int32s, int64_rows, int64s, matrix, uint8s
from cqels_py.kernels.windows import sliding
from cqels_py.kernels.windows.arrivals import places_of
from cqels_py.kernels.windows.varint_queue import ENTERING, EXPIRING, read_through


@jit_flat
def due(buffer, through, size):
    """How many mappings change: those that enter, which arrived at or before `through`, and those that expire, which did `size`
    earlier. Nothing is changed."""
    varints, ends, none = (
        uint8s(buffer, sliding.VARINTS),
        int64s(buffer, sliding.PLACES),
        int64s(buffer, sliding.EXPIRING_POINTS)[:0],
    )
    return read_through(through, ENTERING, varints, ends, none) + read_through(
        through - size, EXPIRING, varints, ends, none
    )


@jit_flat
def advance(buffer, through, size, delay, keeps_ids, instants, columns, tick, sign, changed):
    """Let mappings that are `due` enter and expire: at the first of `instants` (of the ticks) not before their point + `delay`, and
    not before their point + `delay` + `size`.

    `columns`: scratch for the ids of those that enter. Writes the changes to `tick`, `sign` and, column after column from its start
    on, `changed`, all of which have room for them; without `keeps_ids` the ids of those that expire are 0. Returns how many.
    """
    varints, ends, ids, counters = (
        uint8s(buffer, sliding.VARINTS),
        int64s(buffer, sliding.PLACES),
        int64_rows(buffer, sliding.IDS),
        int64s(buffer, sliding.COUNTERS),
    )
    points, ticks = int64s(buffer, sliding.EXPIRING_POINTS), int32s(buffer, sliding.TICKS)
    start, entered, width, room = counters[sliding.START], counters[sliding.ENTERED], len(ids), ids.shape[1]
    expiring = read_through(through - size, EXPIRING, varints, ends, points)
    expiry_tick = ticks[:expiring]
    places_of(instants, points[:expiring], size + delay, expiry_tick)
    entering = read_through(through, ENTERING, varints, ends, points)
    entry_tick = ticks[expiring : expiring + entering]
    places_of(instants, points[:entering], delay, entry_tick)
    counters[sliding.START], counters[sliding.ENTERED] = start + expiring, entered + entering
    for c in range(width):
        for i in range(entering):
            columns[c * entering + i] = ids[c, (entered + i) % room]
    rows = sliding.drop(expiry_tick, entry_tick, entered - start)
    sliding.write_remaining(
        expiry_tick, entry_tick, entered - start, ids[: width * keeps_ids], start % max(room, 1), matrix(columns, width, entering),
        tick[:rows], sign[:rows], matrix(changed, width, rows),
    )  # fmt: skip
    return rows
