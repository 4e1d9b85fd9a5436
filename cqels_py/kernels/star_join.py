"""The n-ary join where all inputs share one variable and nothing else: a star, the shape of observations.

Every port is then probed by the same key, whose entry has the rings of all ports (kernels/ring_index.py): one lookup a row, and
none for a row of the key that the last one of its sign had, as the triples of an observation that arrive, or leave, together.

What a row yields is the product of the other ports' rings, so it is written column by column: a leaf's ids are repeated once for
each combination of the leaves of the deeper levels, and what a level has written is copied for each combination of those outside.
Ports expire in order. The state, and how the kernel goes on after it stopped, are those of `join.step`; of a row whose results
did not fit, cursor[DELIVERED] have been written.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.jit import jit_flat, jit_inline
from cqels_py.kernels.join import (
    INSERTING,
    L_COUNT,
    L_HEAD,
    L_MASK,
    L_OFFSET,
    L_PORT,
    L_SET,
    NEW,
    PROBING,
    STACK_FIELDS,
    write_signs,
)
from cqels_py.kernels.prefetch import prefetch
from cqels_py.kernels.ring_index import (
    BASE,
    DEPTH,
    DONE,
    FIRST_INDEX,
    LEAVES_AHEAD,
    LOCATED,
    LOCATED_ROWS,
    NEAR_CELLS,
    OUT,
    OUT_FULL,
    PHASE,
    PORT_FIELDS,
    RINGS_AHEAD,
    ROW,
    TABLE_FULL,
    WIDTH,
    expect_ring,
    insert,
    leaves_in,
    locate,
    open_ring,
    remove,
    ring_of,
)

DELIVERED = DEPTH
# of a level of the stack: so many results have the same leaf, one after the other
L_EACH = L_SET
_MOST_EXPECTED = 16


@jit_inline
def _expect_partners(p, at, n, leaves, ports, indexes, cells, rings, tables):
    """Of a row further on have the rings of the other ports come nearer, or (`leaves`) the first leaves in them."""
    for q in range(n):
        word = tables[ring_of(at, ports[q * PORT_FIELDS + FIRST_INDEX], indexes)]
        if q == p or leaves_in(word) == 0:
            continue
        if not leaves:
            expect_ring(word, rings)
            continue
        first, ring_mask, head, count = open_ring(word)
        base, width = ports[q * PORT_FIELDS + BASE], ports[q * PORT_FIELDS + WIDTH]
        for i in range(min(count, _MOST_EXPECTED)):
            prefetch(cells, base + np.int64(rings[first + ((head + i) & ring_mask)]) * width)


@jit_inline
def _expect_results(row, located_to, row_port, row_sign, n, located, ports, indexes, cells, rings, tables, retract):
    """The same for rows further on that yield results: first the rings, then the leaves that these lead to."""
    for ahead in (RINGS_AHEAD, LEAVES_AHEAD):
        later = row + ahead
        if later < located_to and (row_sign[later] > 0 or retract):
            _expect_partners(
                np.int64(row_port[later]), located[later % LOCATED_ROWS], n, ahead == LEAVES_AHEAD, ports, indexes, cells, rings,
                tables,
            )  # fmt: skip


@jit_inline
def _fan_out(p, n, at, indexes, ports, tables, stack):
    """Lays out the levels of the product of the other ports' rings, the shortest outside so that what is copied is long.

    Returns how many results it has.
    """
    levels = np.int64(0)
    for q in range(n):
        if q == p:
            continue
        word = tables[ring_of(at, ports[q * PORT_FIELDS + FIRST_INDEX], indexes)]
        first, ring_mask, head, count = open_ring(word)
        if count == 0:
            return np.int64(0)
        to = levels * STACK_FIELDS
        while to > 0 and stack[to - STACK_FIELDS + L_COUNT] > count:
            for field in range(L_COUNT + 1):
                stack[to + field] = stack[to - STACK_FIELDS + field]
            to -= STACK_FIELDS
        stack[to + L_PORT] = q
        stack[to + L_OFFSET] = first
        stack[to + L_MASK] = ring_mask
        stack[to + L_HEAD] = head
        stack[to + L_COUNT] = count
        levels += 1
    each = np.int64(1)
    for level in range(levels - 1, -1, -1):
        stack[level * STACK_FIELDS + L_EACH] = each
        each *= stack[level * STACK_FIELDS + L_COUNT]
    return each


@jit_inline
def _write_level(to, first, many, cell, width, cells, rings, stack, out_columns, start):
    """A column of a level's port: the ids of results `first` to `first` + `many` - 1 of a product; `cell`: that of slot 0."""
    offset, ring_mask, head = stack[to + L_OFFSET], stack[to + L_MASK], stack[to + L_HEAD]
    count, each = stack[to + L_COUNT], stack[to + L_EACH]
    place, left = head, each
    if first > 0:
        place = head + first // each % count
        left = each - first % each
    end = head + count
    # Unsigned positions: signed ones are tested for being negative, which keeps the loops from being vectorised.
    have = min(many, count * each)
    if each == 1:
        for j in range(have):
            slot = np.int64(rings[offset + (place & ring_mask)])
            out_columns[np.uint64(start + j)] = cells[np.uint64(cell + slot * width)]
            place = place + 1 if place + 1 < end else head
    else:
        done = np.int64(0)
        while done < have:
            value = cells[np.uint64(cell + np.int64(rings[offset + (place & ring_mask)]) * width)]
            run = min(left, have - done)
            here = np.uint64(start + done)
            for j in range(np.uint64(run)):
                out_columns[here + j] = value
            done += run
            left = each
            place = place + 1 if place + 1 < end else head
    while have < many:
        more = np.uint64(min(have, many - have))
        source, target = np.uint64(start), np.uint64(start + have)
        for j in range(more):
            out_columns[target + j] = out_columns[source + j]
        have += np.int64(more)


@jit_inline
def _write_product(
    p, leaf, n, first, many, ports, cells, rings, stack, out_ports, own, out_columns, made, room
):  # fmt: skip
    """Results `first` to `first` + `many` - 1 of a row of port p, from place `made` on."""
    columns = len(out_ports)
    for c in range(columns):
        if out_ports[c] >> p & 1:
            value = cells[leaf + np.int64(own[p * columns + c])]
            to = np.uint64(c * room + made)
            for j in range(np.uint64(many)):
                out_columns[to + j] = value
    for level in range(n - 1):
        to_level = level * STACK_FIELDS
        q = stack[to_level + L_PORT]
        base, width = ports[q * PORT_FIELDS + BASE], ports[q * PORT_FIELDS + WIDTH]
        for c in range(columns):
            column = np.int64(own[q * columns + c])
            if column >= 0 and not out_ports[c] >> p & 1:
                _write_level(
                    to_level, first, many, base + column, width, cells, rings, stack, out_columns, c * room + made
                )


@jit_flat
def step(
    row_port, row_slot, row_tick, row_sign, cursor, ports, indexes, groups, key_columns, cells, tables, located,
    rings, ring_meta, positions, stack, out_ports, own, out_columns, out_tick, out_sign, retract,
):  # fmt: skip
    """Take in the rows from cursor[ROW] on; results go to out_* from cursor[OUT] on. Returns DONE or what is short."""
    n = np.int64(len(ports) // PORT_FIELDS)
    room = np.int64(len(out_tick))
    far = len(cells) > NEAR_CELLS
    phase = cursor[PHASE]
    made = cursor[OUT]
    located_to = max(cursor[LOCATED], cursor[ROW])
    for row in range(cursor[ROW], len(row_port)):
        p = np.int64(row_port[row])
        slot = np.int64(row_slot[row])
        tick = row_tick[row]
        sign = row_sign[row]
        leaf = ports[p * PORT_FIELDS + BASE] + slot * ports[p * PORT_FIELDS + WIDTH]
        index = ports[p * PORT_FIELDS + FIRST_INDEX]
        if row + RINGS_AHEAD >= located_to and located_to < len(row_port):
            last = min(row + LOCATED_ROWS, len(row_port))
            located_to = locate(
                located_to, last, row_port, row_slot, row_sign, ports, indexes, groups, key_columns, cells, tables, located,
                cursor,
            )  # fmt: skip
            if located_to == row:
                cursor[ROW], cursor[PHASE], cursor[OUT] = row, phase, made
                return TABLE_FULL
        at = located[row % LOCATED_ROWS]
        first = cursor[DELIVERED]
        results = np.int64(0)
        if phase == NEW:
            if far:
                _expect_results(
                    row, located_to, row_port, row_sign, n, located, ports, indexes, cells, rings, tables, retract
                )
            if sign < 0:
                remove(index, at, indexes, groups, slot, tables, rings, positions)
            if sign > 0 or retract:
                first = np.int64(0)
                results = _fan_out(p, n, at, indexes, ports, tables, stack)
        elif phase == PROBING:
            results = stack[L_COUNT] * stack[L_EACH]
        if results > 0:
            many = min(results - first, room - made)
            if many > 0:
                _write_product(
                    p, leaf, n, first, many, ports, cells, rings, stack, out_ports, own, out_columns, made, room
                )
                write_signs(tick, sign, out_tick, out_sign, made, many)
                made += many
            if first + many < results:
                cursor[ROW], cursor[PHASE], cursor[OUT], cursor[DELIVERED] = row, PROBING, made, first + many
                cursor[LOCATED] = located_to
                return OUT_FULL
        if sign > 0:
            status = insert(
                index, at, indexes, groups, key_columns, cells, leaf, slot, tables, rings, ring_meta, positions
            )
            if status != DONE:
                cursor[ROW], cursor[PHASE], cursor[OUT], cursor[LOCATED] = row, INSERTING, made, located_to
                return status
        phase = np.int64(NEW)
    cursor[ROW], cursor[PHASE], cursor[OUT] = len(row_port), NEW, made
    return DONE
