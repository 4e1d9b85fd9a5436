"""Negation (Algorithm 8) and its opposite: left mappings without, or with, a right mapping of the same key.

The state is that of a join with two ports, the left mappings (0) and the keys of the right ones (1), each with a ring index
over the key, `left_index` and `right_index`, in one group: a key has one entry with both rings.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.jit import jit_flat, jit_inline
from cqels_py.kernels.join import CURSOR_FIELDS, INSERTING, NEW, PROBING
from cqels_py.kernels.prefetch import prefetch
from cqels_py.kernels.ring_index import (
    AT,
    BASE,
    DONE,
    FIRST_INDEX,
    FULL,
    INDEX_FIELDS,
    KEY_FIRST,
    KEY_WIDTH,
    LAST_INDEX,
    LEAVES_AHEAD,
    LOCATED,
    LOCATED_ROWS,
    NEAR_CELLS,
    NOT_STORED,
    OUT,
    OUT_FULL,
    PHASE,
    PORT_FIELDS,
    RINGS_AHEAD,
    ROW,
    TABLE_FULL,
    WIDTH,
    equal_leaf,
    expect_ring,
    find_leaf,
    insert,
    leaves_in,
    locate,
    oldest_in,
    open_ring,
    remove,
    ring_of,
)

FOUND, RING_AT = 8, 9
assert CURSOR_FIELDS > RING_AT


@jit_inline
def _same_key(index, leaf, other_index, other_leaf, indexes, key_columns, cells):
    """Do two leaves agree in the key columns of their indexes? (Keys of several ids are told apart by their ids.)"""
    if indexes[index * INDEX_FIELDS + KEY_WIDTH] == 1:
        return True
    first = indexes[index * INDEX_FIELDS + KEY_FIRST]
    other_first = indexes[other_index * INDEX_FIELDS + KEY_FIRST]
    for k in range(indexes[index * INDEX_FIELDS + KEY_WIDTH]):
        if cells[leaf + key_columns[first + k]] != cells[other_leaf + key_columns[other_first + k]]:
            return False
    return True


@jit_inline
def _any_right(at, index, leaf, right_index, ports, indexes, key_columns, cells, tables, rings):
    """Is there a right mapping, in the entry `at`, with the key that `leaf` has by `index`?"""
    first, mask, head, count = open_ring(tables[ring_of(at, right_index, indexes)])
    if count == 0 or indexes[index * INDEX_FIELDS + KEY_WIDTH] == 1:
        return count > 0
    for i in range(count):
        slot = np.int64(rings[first + ((head + i) & mask)])
        other = ports[1 * PORT_FIELDS + BASE] + slot * ports[1 * PORT_FIELDS + WIDTH]
        if _same_key(index, leaf, right_index, other, indexes, key_columns, cells):
            return True
    return False


@jit_inline
def _expect_left(row, located_to, row_port, left_index, located, ports, indexes, cells, tables, rings):
    """Of right mappings further on have the ring of left ones come nearer, and of the next ones the first leaf in it.

    One leads to the other, and both to memory that nothing else touches: asked for in turn, several are under way at once.
    """
    for ahead in (RINGS_AHEAD, LEAVES_AHEAD):
        later = row + ahead
        if later < located_to and row_port[later] == 1 and located[later % LOCATED_ROWS] >= 0:
            word = tables[ring_of(located[later % LOCATED_ROWS], left_index, indexes)]
            if ahead == RINGS_AHEAD:
                expect_ring(word, rings)
            elif leaves_in(word) > 0:
                prefetch(cells, ports[BASE] + np.int64(rings[oldest_in(word)]) * ports[WIDTH])


@jit_inline
def _write_left(leaf, width, tick, sign, cells, out_columns, out_tick, out_sign, made, room):
    """The ids of a left mapping as result `made`."""
    for c in range(width):
        out_columns[c * room + made] = cells[leaf + c]
    out_tick[made] = tick
    out_sign[made] = sign


@jit_flat
def step(
    row_port,
    row_slot,
    row_tick,
    row_sign,
    cursor,
    ports,
    indexes,
    groups,
    left_index,
    right_index,
    key_columns,
    cells,
    tables,
    located,
    rings,
    ring_meta,
    positions,
    wanted,
    out_columns,
    out_tick,
    out_sign,
):
    """Take in rows from cursor[ROW] on; `wanted`: keep left mappings with a partner (EXISTS), else those without.

    Resumable as `join.step` is. Results are the ids of left leaves.
    """
    rows = len(row_port)
    room = np.int64(len(out_tick))
    far = len(cells) > NEAR_CELLS
    phase, made = cursor[PHASE], cursor[OUT]
    found, ring_at, index = cursor[FOUND] == 1, cursor[RING_AT], cursor[AT]
    status = np.int64(DONE)
    row = cursor[ROW]
    located_to = max(cursor[LOCATED], row)
    while row < rows:
        p = np.int64(row_port[row])
        slot = np.int64(row_slot[row])
        sign = row_sign[row]
        port = p * PORT_FIELDS
        base = ports[port + BASE]
        width = ports[port + WIDTH]
        leaf = base + slot * width
        last_index = ports[port + LAST_INDEX]
        mine = left_index if p == 0 else right_index
        if row + RINGS_AHEAD >= located_to and located_to < rows:
            last = min(row + LOCATED_ROWS, rows)
            located_to = locate(
                located_to, last, row_port, row_slot, row_sign, ports, indexes, groups, key_columns, cells, tables, located,
                cursor,
            )  # fmt: skip
            if located_to == row:
                status = np.int64(TABLE_FULL)
                break
        at = located[row % LOCATED_ROWS]
        if phase == NEW:
            if far:
                _expect_left(row, located_to, row_port, left_index, located, ports, indexes, cells, tables, rings)
            index = ports[port + FIRST_INDEX]
            if sign < 0:
                full = ports[port + FULL]
                if full >= 0:
                    slot = equal_leaf(full, indexes, groups, key_columns, cells, base, leaf, width, tables, rings)
                    if slot < 0:
                        status = np.int64(NOT_STORED)
                        break
                    row_slot[row] = np.int32(slot)
                    leaf = base + slot * width
                while index < last_index:
                    entry = at
                    if index != mine:
                        entry = find_leaf(index, indexes, groups, key_columns, cells, leaf, tables)
                    remove(index, entry, indexes, slot, tables, rings, positions)
                    index += 1
            found = _any_right(at, mine, leaf, right_index, ports, indexes, key_columns, cells, tables, rings)
            ring_at = np.int64(0)
            phase = np.int64(INSERTING)
        while index < last_index:
            known = at if index == mine else np.int64(-1)
            status = np.int64(
                insert(
                    index, known, indexes, groups, key_columns, cells, leaf, slot, tables, rings, ring_meta, positions
                )
            )
            if status != DONE:
                break
            index += 1
        if status != DONE:
            break
        phase = np.int64(PROBING)
        if p == 0:
            if found == wanted:
                if made == room:
                    status = np.int64(OUT_FULL)
                    break
                _write_left(leaf, width, row_tick[row], sign, cells, out_columns, out_tick, out_sign, made, room)
                made += 1
        elif not found:
            # The first right mapping of its key has come, or the last has gone.
            first, mask, head, left = open_ring(tables[ring_of(at, left_index, indexes)])
            while ring_at < left:
                other = np.int64(rings[first + ((head + ring_at) & mask)])
                other_leaf = ports[BASE] + other * ports[WIDTH]
                if _same_key(right_index, leaf, left_index, other_leaf, indexes, key_columns, cells):
                    if made == room:
                        break
                    _write_left(
                        other_leaf, ports[WIDTH], row_tick[row], sign if wanted else -sign, cells, out_columns, out_tick, out_sign,
                        made, room,
                    )  # fmt: skip
                    made += 1
                ring_at += 1
            if ring_at < left:
                status = np.int64(OUT_FULL)
                break
        phase = np.int64(NEW)
        row += 1
    cursor[ROW], cursor[PHASE], cursor[OUT], cursor[LOCATED] = row, phase, made, located_to
    cursor[FOUND], cursor[RING_AT], cursor[AT] = np.int64(found), ring_at, index
    return status
