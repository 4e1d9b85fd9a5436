"""Negation (Algorithm 8) and its opposite: left mappings without, or with, a right mapping of the same key.

The state is that of a join with two ports, the left mappings (0) and the keys of the right ones (1), each with a ring index
over the key, `left_index` and `right_index`, in one group: a key has one entry with both rings.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.jit import jit_flat, jit_inline
from cqels_py.kernels.join import AT, CURSOR_FIELDS, INSERTING, NEW, OUT, PHASE, PROBING, ROW
from cqels_py.kernels.ring_index import (
    BASE,
    DONE,
    FIRST_INDEX,
    FULL,
    INDEX_FIELDS,
    KEY_FIRST,
    KEY_WIDTH,
    LAST_INDEX,
    LOW,
    MEMBER,
    NOT_STORED,
    OUT_FULL,
    PORT_FIELDS,
    SHIFT,
    SIZE_BITS,
    SIZE_MASK,
    WIDTH,
    equal_leaf,
    expect_row,
    find_leaf,
    insert,
    remove,
)

FOUND, RING_AT = 6, 7
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
    ring = at + indexes[right_index * INDEX_FIELDS + MEMBER]
    if at < 0 or tables[ring] < 0:
        return False
    if indexes[index * INDEX_FIELDS + KEY_WIDTH] == 1:
        return tables[ring + 1] & LOW > 0
    mask = (np.int64(1) << (tables[ring] & SIZE_MASK)) - 1
    offset = tables[ring] >> SIZE_BITS
    head = tables[ring + 1] >> SHIFT
    for i in range(tables[ring + 1] & LOW):
        slot = np.int64(rings[offset + ((head + i) & mask)])
        other = ports[1 * PORT_FIELDS + BASE] + slot * ports[1 * PORT_FIELDS + WIDTH]
        if _same_key(index, leaf, right_index, other, indexes, key_columns, cells):
            return True
    return False


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
    room = len(out_tick)
    while cursor[ROW] < rows:
        row = cursor[ROW]
        p = np.int64(row_port[row])
        slot = np.int64(row_slot[row])
        base = ports[p * PORT_FIELDS + BASE]
        width = ports[p * PORT_FIELDS + WIDTH]
        leaf = base + slot * width
        mine = left_index if p == 0 else right_index
        at = np.int64(-1)
        if cursor[PHASE] == NEW:
            expect_row(row, row_port, row_slot, ports, indexes, groups, key_columns, cells, tables)
            cursor[AT] = ports[p * PORT_FIELDS + FIRST_INDEX]
            if row_sign[row] < 0:
                full = ports[p * PORT_FIELDS + FULL]
                if full >= 0:
                    slot = equal_leaf(full, indexes, groups, key_columns, cells, base, leaf, width, tables, rings)
                    if slot < 0:
                        return NOT_STORED
                    row_slot[row] = np.int32(slot)
                    leaf = base + slot * width
                for index in range(ports[p * PORT_FIELDS + FIRST_INDEX], ports[p * PORT_FIELDS + LAST_INDEX]):
                    entry = find_leaf(index, indexes, groups, key_columns, cells, leaf, tables)
                    remove(index, entry, indexes, groups, slot, tables, rings, positions)
                    if index == mine:
                        at = entry
                cursor[AT] = ports[p * PORT_FIELDS + LAST_INDEX]
            else:
                at = find_leaf(mine, indexes, groups, key_columns, cells, leaf, tables)
            found = _any_right(at, mine, leaf, right_index, ports, indexes, key_columns, cells, tables, rings)
            cursor[FOUND] = 1 if found else 0
            cursor[RING_AT] = 0
            cursor[PHASE] = INSERTING
        if cursor[PHASE] == INSERTING:
            while cursor[AT] < ports[p * PORT_FIELDS + LAST_INDEX]:
                known = at if cursor[AT] == mine else np.int64(-1)
                status = insert(
                    cursor[AT],
                    known,
                    indexes,
                    groups,
                    key_columns,
                    cells,
                    leaf,
                    slot,
                    tables,
                    rings,
                    ring_meta,
                    positions,
                )
                if status != DONE:
                    return status
                cursor[AT] += 1
            cursor[PHASE] = PROBING
        found = cursor[FOUND] == 1
        k = cursor[OUT]
        if p == 0:
            if found == wanted:
                if k == room:
                    return OUT_FULL
                for c in range(width):
                    out_columns[c * room + k] = cells[leaf + c]
                out_tick[k] = row_tick[row]
                out_sign[k] = row_sign[row]
                cursor[OUT] = k + 1
        elif not found:
            # The first right mapping of its key has come, or the last has gone.
            if at < 0:
                at = find_leaf(right_index, indexes, groups, key_columns, cells, leaf, tables)
            ring = at + indexes[left_index * INDEX_FIELDS + MEMBER]
            if tables[ring] >= 0:
                mask = (np.int64(1) << (tables[ring] & SIZE_MASK)) - 1
                offset = tables[ring] >> SIZE_BITS
                head = tables[ring + 1] >> SHIFT
                sign = row_sign[row] if wanted else -row_sign[row]
                while cursor[RING_AT] < tables[ring + 1] & LOW:
                    other = np.int64(rings[offset + ((head + cursor[RING_AT]) & mask)])
                    other_leaf = ports[0 * PORT_FIELDS + BASE] + other * ports[0 * PORT_FIELDS + WIDTH]
                    if _same_key(right_index, leaf, left_index, other_leaf, indexes, key_columns, cells):
                        if k == room:
                            cursor[OUT] = k
                            return OUT_FULL
                        for c in range(ports[0 * PORT_FIELDS + WIDTH]):
                            out_columns[c * room + k] = cells[other_leaf + c]
                        out_tick[k] = row_tick[row]
                        out_sign[k] = sign
                        k += 1
                    cursor[RING_AT] += 1
                cursor[OUT] = k
        cursor[PHASE] = NEW
        cursor[ROW] = row + 1
    return DONE
