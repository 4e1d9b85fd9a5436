"""Semi-join and anti-join (Algorithm 8): left mappings with, or without, a right mapping of the same key.

The state is that of a join with two ports, the left mappings (0) and the keys of the right ones (1), whose first indexes
are over the key, in one group: a key has one entry with both rings.

Where both inputs are FIFO and the key is one id, the right mappings are only counted: their ring has no run. There
`step_counting_right` takes the place of `step`. It passes None as `positions`, so that the code for other retractions is not
compiled.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cqels_py.kernels.compiler.jit import jit_flat, jit_inline
from cqels_py.kernels.joins.state import LEAF_PLACES
from cqels_py.kernels.primitives.prefetch import prefetch
from cqels_py.kernels.primitives.state_record import int32s, int64s
from cqels_py.kernels.structures.ring_index import (
    AT,
    BASE,
    CURSOR_FIELDS,
    DONE,
    FIRST_INDEX,
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
from cqels_py.kernels.structures.ring_record import POSITIONS, InputRows, open_rings

FOUND, RING_AT = 8, 9
assert CURSOR_FIELDS > RING_AT
# Phases of a row.
NEW, ENTERING, DELIVERING = range(3)
_LOCATED = np.uint64(LOCATED_ROWS)


class LeftResults(NamedTuple):
    """Where results go. `columns`: flat."""

    columns: npt.NDArray[np.int64]
    tick: npt.NDArray[np.int32]
    sign: npt.NDArray[np.int8]


@jit_inline
def _same_key(index, leaf, other_index, other_leaf, arrays):
    """Do two leaves agree in the key columns of their indexes? Needed for keys of several ids, which are only hashes."""
    indexes, cells, key_columns = arrays.indexes, arrays.cells, arrays.key_columns
    if indexes[index * INDEX_FIELDS + KEY_WIDTH] == 1:
        return True
    first = indexes[index * INDEX_FIELDS + KEY_FIRST]
    other_first = indexes[other_index * INDEX_FIELDS + KEY_FIRST]
    for k in range(indexes[index * INDEX_FIELDS + KEY_WIDTH]):
        if cells[leaf + key_columns[first + k]] != cells[other_leaf + key_columns[other_first + k]]:
            return False
    return True


@jit_inline
def _any_right(ring, index, leaf, right_index, arrays, positions):
    """Is there a right mapping, in the ring of this word, with the key that `leaf` has by `index`?"""
    ports, word = arrays.ports, arrays.tables[ring]
    if positions is None:
        return leaves_in(word) > 0
    first, mask, head, count = open_ring(word)
    if count == 0 or arrays.indexes[index * INDEX_FIELDS + KEY_WIDTH] == 1:
        return count > 0
    for i in range(count):
        slot = slot_in(first, mask, (head + i) & mask, arrays.rings)
        other = ports[1 * PORT_FIELDS + BASE] + slot * ports[1 * PORT_FIELDS + WIDTH]
        if _same_key(index, leaf, right_index, other, arrays):
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
def _take_equal(full, mine, at, base, leaf, width, row_slot, arrays, positions):
    """Remove a mapping that is equal to `leaf`, in a port that is not FIFO. Returns its slot; -1: there is none."""
    if positions is None:
        return np.int64(-1)
    slot = equal_leaf(full, base, leaf, width, arrays, row_slot, np.int64(-1))
    if slot >= 0:
        remove(mine, at, slot, arrays)
        remove(full, find_leaf(full, base + slot * width, arrays), slot, arrays)
    return slot


@jit_inline
def _add_to_indexes(index, full, mine, at, leaf, slot, arrays, positions):
    """Insert a mapping, in a port that is not FIFO, into its indexes from number `index` on. Returns DONE, or why it
    stopped, and the index at which it stopped."""
    status = np.int64(DONE)
    if positions is None:
        return status, index
    while status == DONE and index <= full:
        known = at if index == mine else np.int64(-1)
        status = np.int64(insert(index, known, leaf, slot, arrays))
        index += np.int64(status == DONE)
    return status, index


@jit_flat
def _prefetch_rings(first, last, state, positions):
    """Prefetch the rings of rows whose entries are known."""
    arrays = open_rings(state)
    ports, indexes, tables, rings = arrays.ports, arrays.indexes, arrays.tables, arrays.rings
    left, right = (
        indexes[ports[FIRST_INDEX] * INDEX_FIELDS + MEMBER],
        indexes[ports[PORT_FIELDS + FIRST_INDEX] * INDEX_FIELDS + MEMBER],
    )
    for row in range(first, last):
        at = arrays.located[row % LOCATED_ROWS]
        if at >= 0:
            prefetch(rings, oldest_in(tables[at + left]))
            if positions is not None:
                prefetch(rings, oldest_in(tables[at + right]))


@jit_flat
def _apply_rows(rows, state, positions, wanted, results):
    """Process rows whose entries are known from cursor[ROW] on; writes tick, sign, and the position of the leaf of each
    result. Returns DONE, or why it stopped: OUT_FULL also where `leaves` is full."""
    arrays, leaves = open_rings(state), int64s(state, LEAF_PLACES)
    cursor, ports, indexes = arrays.cursor, arrays.ports, arrays.indexes
    cells, tables, rings, ring_meta = arrays.cells, arrays.tables, arrays.rings, arrays.ring_meta
    start = cursor[OUT]
    room = min(np.int64(len(results.tick)), start + len(leaves))
    far = len(cells) > NEAR_CELLS
    left_index, right_index = ports[FIRST_INDEX], ports[PORT_FIELDS + FIRST_INDEX]
    left, right = indexes[left_index * INDEX_FIELDS + MEMBER], indexes[right_index * INDEX_FIELDS + MEMBER]
    left_base, left_width = ports[BASE], ports[WIDTH]
    phase, made, ring_at, index = cursor[PHASE], start, cursor[RING_AT], cursor[AT]
    found = cursor[FOUND] == 1
    status, row = np.int64(DONE), cursor[ROW]
    while row < cursor[LOCATED]:
        here = np.uint64(row)
        p, slot, sign = np.int64(rows.port[here]), np.int64(rows.slot[here]), rows.sign[here]
        at, port = arrays.located[here % _LOCATED], p * PORT_FIELDS
        base, width, full = ports[port + BASE], ports[port + WIDTH], ports[port + FULL]
        leaf = base + slot * width
        mine = left_index if p == 0 else right_index
        ring = at + (left if p == 0 else right)
        if phase == NEW:
            if sign < 0 and full < 0:
                _take_oldest(p, ring, tables, positions)
            elif sign < 0:
                slot = _take_equal(full, mine, at, base, leaf, width, rows.slot, arrays, positions)
                if slot < 0:
                    status = np.int64(NOT_STORED)
                    break
                rows.slot[here] = np.int32(slot)
                leaf = base + slot * width
            found = _any_right(at + right, mine, leaf, right_index, arrays, positions)
            ring_at, index = np.int64(0), mine
            phase = np.int64(ENTERING)
        if phase == ENTERING and sign > 0:
            if full < 0:
                status = _add_newest(p, slot, ring, tables, rings, ring_meta, positions)
            else:
                status, index = _add_to_indexes(index, full, mine, at, leaf, slot, arrays, positions)
            if status != DONE:
                break
        phase = np.int64(DELIVERING)
        if p == 0:
            if made == room:
                status = np.int64(OUT_FULL)
                break
            # Written unconditionally, and overwritten if it is no result.
            leaves[made - start] = leaf
            results.tick[made] = rows.tick[here]
            results.sign[made] = sign
            made += np.int64(found == wanted)
        elif not found:
            # The first right mapping of its key was inserted, or the last was retracted.
            first, mask, head, partners = open_ring(tables[at + left])
            while ring_at < partners:
                other = left_base + slot_in(first, mask, (head + ring_at) & mask, rings) * left_width
                if positions is None or _same_key(right_index, leaf, left_index, other, arrays):
                    if made == room:
                        break
                    if far:
                        prefetch(cells, other)
                    leaves[made - start] = other
                    results.tick[made] = rows.tick[here]
                    results.sign[made] = sign if wanted else -sign
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
def _write_columns(first, last, state, results):
    """The ids of the leaves of results `first` to `last` - 1."""
    arrays = open_rings(state)
    cells, leaves, room = arrays.cells, int64s(state, LEAF_PLACES), np.int64(len(results.tick))
    for c in range(arrays.ports[WIDTH]):
        to = c * room + first
        for i in range(last - first):
            results.columns[to + i] = cells[leaves[i] + c]


@jit_flat
def step(row_port, row_slot, row_tick, row_sign, state, wanted, out_columns, out_tick, out_sign):
    """Process rows from cursor[ROW] on. `wanted` 1: a semi-join (EXISTS), 0: an anti-join.

    Results are the ids of left leaves. Resumable like `multiway.step`.
    """
    rows = InputRows(row_port, row_slot, row_tick, row_sign)
    return _step(
        rows,
        state,
        int32s(state, POSITIONS),
        wanted,
        LeftResults(out_columns.reshape(out_columns.size), out_tick, out_sign),
    )


@jit_flat
def step_counting_right(row_port, row_slot, row_tick, row_sign, state, wanted, out_columns, out_tick, out_sign):
    """`step` where both inputs are FIFO and the key is one id."""
    rows = InputRows(row_port, row_slot, row_tick, row_sign)
    return _step(rows, state, None, wanted, LeftResults(out_columns.reshape(out_columns.size), out_tick, out_sign))


@jit_inline
def _step(rows, state, positions, wanted, results):
    """`step` and `step_counting_right`. Rows are processed in chunks, and each chunk in passes: entries are found, rows are applied,
    and the results, whose leaves are listed in `leaves`, are written."""
    arrays = open_rings(state)
    cursor, end, status = arrays.cursor, len(rows.port), np.int64(DONE)
    while status == DONE and cursor[ROW] < end:
        row, made = cursor[ROW], cursor[OUT]
        if row >= cursor[LOCATED]:
            cursor[LOCATED] = find_entries(row, end_of_run(row, end), rows, state)
            if cursor[LOCATED] == row:
                return np.int64(TABLE_FULL)
            if len(arrays.cells) > NEAR_CELLS:
                _prefetch_rings(row, cursor[LOCATED], state, positions)
        status = _apply_rows(rows, state, positions, wanted != 0, results)
        _write_columns(made, cursor[OUT], state, results)
        if status == OUT_FULL and cursor[OUT] < len(results.tick):
            status = np.int64(DONE)
    return status
