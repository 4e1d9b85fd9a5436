"""Semi-join and anti-join (Algorithm 8): left mappings with, or without, a right mapping of the same key.

The state is that of a join with two ports, the left mappings (0) and the keys of the right ones (1), each with a ring
index over the key, `left_index` and `right_index`, in one group: a key has one entry with both rings.

Where both inputs are FIFO and the key is one id, the right mappings are only counted: their ring has no run. Then
`positions` is None, and the code for other retractions is not compiled.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat, jit_inline
from cqels_py.kernels.joins.state import of_state
from cqels_py.kernels.primitives.prefetch import prefetch
from cqels_py.kernels.structures.ring_index import (
    AT,
    BASE,
    CURSOR_FIELDS,
    DONE,
    FULL,
    INDEX_FIELDS,
    KEY_FIRST,
    KEY_WIDTH,
    LOCATED,
    LOCATED_ROWS,
    MEMBER,
    MOST_IN_RING,
    NEAR_CELLS,
    NOT_STORED,
    OUT,
    OUT_FULL,
    PHASE,
    PORT_FIELDS,
    RING_FULL,
    ROW,
    TABLE_FULL,
    WIDTH,
    end_of_run,
    equal_leaf,
    find_entries,
    find_leaf,
    insert,
    leaves_in,
    oldest_in,
    open_ring,
    pop,
    push,
    remove,
    slot_in,
)

FOUND, RING_AT = 8, 9
assert CURSOR_FIELDS > RING_AT
# Phases of a row.
NEW, ENTERING, DELIVERING = range(3)
_LOCATED = np.uint64(LOCATED_ROWS)


@jit_inline
def _same_key(index, leaf, other_index, other_leaf, indexes, key_columns, cells):
    """Do two leaves agree in the key columns of their indexes? Needed for keys of several ids, which are only hashes."""
    if indexes[index * INDEX_FIELDS + KEY_WIDTH] == 1:
        return True
    first = indexes[index * INDEX_FIELDS + KEY_FIRST]
    other_first = indexes[other_index * INDEX_FIELDS + KEY_FIRST]
    for k in range(indexes[index * INDEX_FIELDS + KEY_WIDTH]):
        if cells[leaf + key_columns[first + k]] != cells[other_leaf + key_columns[other_first + k]]:
            return False
    return True


@jit_inline
def _any_right(ring, index, leaf, right_index, ports, indexes, key_columns, cells, tables, rings, positions):
    """Is there a right mapping, in the ring of this word, with the key that `leaf` has by `index`?"""
    if positions is None:
        return leaves_in(tables[ring]) > 0
    first, mask, head, count = open_ring(tables[ring])
    if count == 0 or indexes[index * INDEX_FIELDS + KEY_WIDTH] == 1:
        return count > 0
    for i in range(count):
        slot = slot_in(first, mask, (head + i) & mask, rings)
        other = ports[1 * PORT_FIELDS + BASE] + slot * ports[1 * PORT_FIELDS + WIDTH]
        if _same_key(index, leaf, right_index, other, indexes, key_columns, cells):
            return True
    return False


@jit_inline
def _take_oldest(p, ring, tables, positions):
    """Remove the oldest mapping of a key, in a FIFO port."""
    if positions is None and p == 1:
        tables[ring] -= 1
    else:
        pop(ring, tables)


@jit_inline
def _add_newest(p, slot, ring, tables, rings, ring_meta, positions):
    """Insert a mapping of a key, in a FIFO port. Returns DONE, or why it stopped."""
    if positions is not None or p == 0:
        return push(ring, slot, tables, rings, ring_meta)
    if leaves_in(tables[ring]) == MOST_IN_RING:
        return np.int64(RING_FULL)
    tables[ring] += 1
    return np.int64(DONE)


@jit_inline
def _take_equal(
    full, mine, at, base, leaf, width, indexes, groups, key_columns, cells, tables, rings, row_slot, positions
):  # fmt: skip
    """Remove a mapping that is equal to `leaf`, in a port that is not FIFO. Returns its slot; -1: there is none."""
    if positions is None:
        return np.int64(-1)
    slot = equal_leaf(
        full, indexes, groups, key_columns, cells, base, leaf, width, tables, rings, row_slot, np.int64(-1)
    )
    if slot >= 0:
        remove(mine, at, indexes, slot, tables, rings, positions)
        entry = find_leaf(full, indexes, groups, key_columns, cells, base + slot * width, tables)
        remove(full, entry, indexes, slot, tables, rings, positions)
    return slot


@jit_inline
def _add_to_indexes(
    index, full, mine, at, leaf, slot, indexes, groups, key_columns, cells, tables, rings, ring_meta, positions
):  # fmt: skip
    """Insert a mapping, in a port that is not FIFO, into its indexes from number `index` on. Returns DONE, or why it
    stopped, and the index at which it stopped."""
    status = np.int64(DONE)
    if positions is None:
        return status, index
    while status == DONE and index <= full:
        known = at if index == mine else np.int64(-1)
        status = np.int64(
            insert(index, known, indexes, groups, key_columns, cells, leaf, slot, tables, rings, ring_meta, positions)
        )
        index += np.int64(status == DONE)
    return status, index


@jit_flat
def _prefetch_rings(first, last, left, right, located, tables, rings, positions):
    """Prefetch the rings of rows whose entries are known."""
    for row in range(first, last):
        at = located[row % LOCATED_ROWS]
        if at >= 0:
            prefetch(rings, oldest_in(tables[at + left]))
            if positions is not None:
                prefetch(rings, oldest_in(tables[at + right]))


@jit_flat
def _apply_rows(
    row_port, row_slot, row_tick, row_sign, cursor, ports, indexes, groups, left_index, right_index, key_columns, cells, tables,
    located, rings, ring_meta, positions, wanted, leaves, out_tick, out_sign,
):  # fmt: skip
    """Process rows whose entries are known from cursor[ROW] on; writes tick, sign, and the position of the leaf of each
    result. Returns DONE, or why it stopped."""
    room = np.int64(len(out_tick))
    far = len(cells) > NEAR_CELLS
    left, right = indexes[left_index * INDEX_FIELDS + MEMBER], indexes[right_index * INDEX_FIELDS + MEMBER]
    left_base, left_width = ports[BASE], ports[WIDTH]
    phase, made, ring_at, index = cursor[PHASE], cursor[OUT], cursor[RING_AT], cursor[AT]
    found = cursor[FOUND] == 1
    status, row = np.int64(DONE), cursor[ROW]
    while row < cursor[LOCATED]:
        here = np.uint64(row)
        p, slot, sign, at = np.int64(row_port[here]), np.int64(row_slot[here]), row_sign[here], located[here % _LOCATED]
        port = p * PORT_FIELDS
        base, width = ports[port + BASE], ports[port + WIDTH]
        leaf = base + slot * width
        mine = left_index if p == 0 else right_index
        ring = at + (left if p == 0 else right)
        if phase == NEW:
            if sign < 0 and ports[port + FULL] < 0:
                _take_oldest(p, ring, tables, positions)
            elif sign < 0:
                slot = _take_equal(
                    ports[port + FULL], mine, at, base, leaf, width, indexes, groups, key_columns, cells, tables, rings, row_slot,
                    positions,
                )  # fmt: skip
                if slot < 0:
                    status = np.int64(NOT_STORED)
                    break
                row_slot[here] = np.int32(slot)
                leaf = base + slot * width
            found = _any_right(
                at + right, mine, leaf, right_index, ports, indexes, key_columns, cells, tables, rings, positions
            )
            ring_at, index = np.int64(0), mine
            phase = np.int64(ENTERING)
        if phase == ENTERING and sign > 0:
            if ports[port + FULL] < 0:
                status = _add_newest(p, slot, ring, tables, rings, ring_meta, positions)
            else:
                status, index = _add_to_indexes(
                    index, ports[port + FULL], mine, at, leaf, slot, indexes, groups, key_columns, cells, tables, rings, ring_meta,
                    positions,
                )  # fmt: skip
            if status != DONE:
                break
        phase = np.int64(DELIVERING)
        if p == 0:
            if made == room:
                status = np.int64(OUT_FULL)
                break
            # Written unconditionally, and overwritten if it is no result.
            leaves[made] = leaf
            out_tick[made] = row_tick[here]
            out_sign[made] = sign
            made += np.int64(found == wanted)
        elif not found:
            # The first right mapping of its key was inserted, or the last was retracted.
            first, mask, head, partners = open_ring(tables[at + left])
            while ring_at < partners:
                other = left_base + slot_in(first, mask, (head + ring_at) & mask, rings) * left_width
                if positions is None or _same_key(right_index, leaf, left_index, other, indexes, key_columns, cells):
                    if made == room:
                        break
                    if far:
                        prefetch(cells, other)
                    leaves[made] = other
                    out_tick[made] = row_tick[here]
                    out_sign[made] = sign if wanted else -sign
                    made += 1
                ring_at += 1
            if ring_at < partners:
                status = np.int64(OUT_FULL)
                break
        phase = np.int64(NEW)
        row += 1
    cursor[ROW], cursor[PHASE], cursor[OUT] = row, phase, made
    cursor[FOUND], cursor[RING_AT], cursor[AT] = np.int64(found), ring_at, index
    return status


@jit_flat
def _write_columns(first, last, width, room, leaves, cells, out_columns):
    """The ids of the leaves of results `first` to `last` - 1."""
    for c in range(width):
        for i in range(first, last):
            out_columns[c * room + i] = cells[leaves[i] + c]


@jit_flat
def step(
    row_port, row_slot, row_tick, row_sign, state, left_index, right_index, positions, wanted, leaves, out_columns, out_tick,
    out_sign,
):  # fmt: skip
    """Process rows from cursor[ROW] on. `wanted` 1: a semi-join (EXISTS), 0: an anti-join.

    Results are the ids of left leaves; `leaves`, as long as there is room for results, is scratch for their positions.
    Resumable like `multiway.step`. Rows are processed in chunks, and each chunk in passes: entries are found, rows are
    applied, and results are written.
    """
    cursor, ports, indexes, groups, key_columns, cells, tables, located, rings, _, ring_meta = of_state(state)
    out_columns, wanted = out_columns.reshape(out_columns.size), wanted != 0
    left, right = indexes[left_index * INDEX_FIELDS + MEMBER], indexes[right_index * INDEX_FIELDS + MEMBER]
    rows, status = len(row_port), np.int64(DONE)
    while status == DONE and cursor[ROW] < rows:
        row, made = cursor[ROW], cursor[OUT]
        if row >= cursor[LOCATED]:
            cursor[LOCATED] = find_entries(
                row, end_of_run(row, rows), row_port, row_slot, row_sign, ports, indexes, groups, key_columns, cells, tables,
                located, cursor,
            )  # fmt: skip
            if cursor[LOCATED] == row:
                return np.int64(TABLE_FULL)
            if len(cells) > NEAR_CELLS:
                _prefetch_rings(row, cursor[LOCATED], left, right, located, tables, rings, positions)
        status = _apply_rows(
            row_port, row_slot, row_tick, row_sign, cursor, ports, indexes, groups, left_index, right_index, key_columns, cells,
            tables, located, rings, ring_meta, positions, wanted, leaves, out_tick, out_sign,
        )  # fmt: skip
        _write_columns(made, cursor[OUT], ports[WIDTH], len(out_tick), leaves, cells, out_columns)
    return status
