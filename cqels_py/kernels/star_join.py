"""The n-ary join where all inputs share one variable and nothing else: a star, the shape of observations.

Every port is then probed by the same key, whose entry has the rings of all ports (kernels/ring_index.py): one lookup a row, and
no choice to make but the order of loops. The state and the resumption are those of `join.step`; ports expire in order.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.hashing import mix
from cqels_py.kernels.jit import jit_flat, jit_inline
from cqels_py.kernels.join import (
    COLUMNS,
    DEPTH,
    INSERTING,
    L_AT,
    L_COUNT,
    L_HEAD,
    L_MASK,
    L_OFFSET,
    L_PORT,
    NEW,
    OUT,
    PHASE,
    PROBES,
    PROBING,
    ROW,
    STACK_FIELDS,
    bind,
    repeat_run,
    write_run,
    write_signs,
)
from cqels_py.kernels.prefetch import prefetch
from cqels_py.kernels.ring_index import (
    AHEAD,
    BASE,
    DONE,
    FIRST_INDEX,
    INDEX_FIELDS,
    KEY_FIRST,
    LOW,
    MEMBER,
    OUT_FULL,
    PORT_FIELDS,
    SHIFT,
    SIZE_BITS,
    SIZE_MASK,
    STRIDE,
    TABLE,
    TABLE_MASK,
    WIDTH,
    insert,
    remove,
)

_MOST_EXPECTED = 16
_LONG_RUN = 4


@jit_inline
def _key(p, slot, ports, indexes, key_columns, cells):
    port = p * PORT_FIELDS
    key_at = indexes[ports[port + FIRST_INDEX] * INDEX_FIELDS + KEY_FIRST]
    return cells[ports[port + BASE] + slot * ports[port + WIDTH] + key_columns[key_at]]


@jit_inline
def _expect_leaves(ports, cells, rings, stack, level):
    """Have the leaves of an outer loop come nearer, all at once: each is used for a whole run of results before the next."""
    to = level * STACK_FIELDS
    q = stack[to + L_PORT] * PORT_FIELDS
    for i in range(min(stack[to + L_COUNT], _MOST_EXPECTED)):
        slot = np.int64(rings[stack[to + L_OFFSET] + ((stack[to + L_HEAD] + i) & stack[to + L_MASK])])
        prefetch(cells, ports[q + BASE] + slot * ports[q + WIDTH])


@jit_inline
def _fan_out(p, n, at, indexes, ports, cells, rings, tables, stack):
    """Lays out the loops over the other ports' rings, the shortest outside so that runs are long. False: one is empty."""
    levels = np.int64(0)
    for q in range(n):
        if q == p:
            continue
        ring = at + indexes[ports[q * PORT_FIELDS + FIRST_INDEX] * INDEX_FIELDS + MEMBER]
        count = tables[ring + 1] & LOW
        if count == 0:
            return False
        to = levels * STACK_FIELDS
        while to > 0 and stack[to - STACK_FIELDS + L_COUNT] > count:
            for field in range(L_COUNT + 1):
                stack[to + field] = stack[to - STACK_FIELDS + field]
            to -= STACK_FIELDS
        stack[to + L_PORT] = q
        stack[to + L_OFFSET] = tables[ring] >> SIZE_BITS
        stack[to + L_MASK] = (np.int64(1) << (tables[ring] & SIZE_MASK)) - 1
        stack[to + L_HEAD] = tables[ring + 1] >> SHIFT
        stack[to + L_COUNT] = count
        levels += 1
    for level in range(levels):
        stack[level * STACK_FIELDS + L_AT] = 0
        if level < levels - 1:
            _expect_leaves(ports, cells, rings, stack, level)
    return True


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
    key_columns,
    variable_of,
    cells,
    tables,
    rings,
    ring_meta,
    positions,
    stack,
    bindings,
    out_variable,
    out_ports,
    own,
    out_columns,
    out_tick,
    out_sign,
    retract,
):
    """Take in the rows from cursor[ROW] on; results go to out_* from cursor[OUT] on. Returns DONE or what is short."""
    n = np.int64(len(ports) // PORT_FIELDS)
    last = n - 2
    everything = (np.int64(1) << n) - 1
    room = np.int64(len(out_tick))
    mask = groups[TABLE_MASK]
    table = groups[TABLE]
    stride = groups[STRIDE]
    phase = cursor[PHASE]
    made = cursor[OUT]
    for row in range(cursor[ROW], len(row_port)):
        p = np.int64(row_port[row])
        slot = np.int64(row_slot[row])
        tick = row_tick[row]
        sign = row_sign[row]
        width = ports[p * PORT_FIELDS + WIDTH]
        leaf = ports[p * PORT_FIELDS + BASE] + slot * width
        index = ports[p * PORT_FIELDS + FIRST_INDEX]
        at = np.int64(-1)
        depth = np.int64(-1)
        # So many results before the next one have all leaves of the innermost loop: it runs over the same ones again.
        whole_run = np.int64(0)
        if phase == NEW:
            if row + AHEAD < len(row_port):
                later = row + AHEAD
                later_key = _key(
                    np.int64(row_port[later]), np.int64(row_slot[later]), ports, indexes, key_columns, cells
                )
                prefetch(tables, table + (mix(later_key) & mask) * stride)
            cursor[PROBES] += 1
            key = _key(p, slot, ports, indexes, key_columns, cells)
            position = mix(key) & mask
            at = table + position * stride
            while tables[at] != key and tables[at] != 0:
                position = (position + 1) & mask
                at = table + position * stride
            if tables[at] == 0:
                at = np.int64(-1)
            if sign < 0:
                remove(index, at, indexes, groups, slot, tables, rings, positions)
            if at >= 0 and (sign > 0 or retract) and _fan_out(p, n, at, indexes, ports, cells, rings, tables, stack):
                bind(cells, leaf, width, p * COLUMNS, variable_of, bindings, np.int64(0), np.int64(0))
                depth = np.int64(0)
        elif phase == PROBING:
            depth = cursor[DEPTH]
        while depth >= 0:
            level = depth * STACK_FIELDS
            i = stack[level + L_AT]
            count = stack[level + L_COUNT]
            if i >= count:
                depth -= 1
                continue
            q = stack[level + L_PORT]
            base = ports[q * PORT_FIELDS + BASE]
            q_width = ports[q * PORT_FIELDS + WIDTH]
            offset = stack[level + L_OFFSET]
            ring_mask = stack[level + L_MASK]
            start = (stack[level + L_HEAD] + i) & ring_mask
            if depth < last:
                stack[level + L_AT] = i + 1
                other = base + np.int64(rings[offset + start]) * q_width
                bind(cells, other, q_width, q * COLUMNS, variable_of, bindings, np.int64(0), np.int64(0))
                depth += 1
                stack[depth * STACK_FIELDS + L_AT] = 0
                continue
            many = min(count - i, room - made)
            before = everything & ~(np.int64(1) << q)
            if many == whole_run and many >= _LONG_RUN:
                repeat_run(
                    many, q, before, bindings, np.int64(0), out_variable, out_ports, own, out_columns, made, room
                )
            else:
                write_run(
                    rings, start, ring_mask, offset, many, q, base, q_width, before, cells, bindings, np.int64(0), out_variable,
                    out_ports, own, out_columns, made, room,
                )  # fmt: skip
            whole_run = many if many == count else np.int64(0)
            write_signs(tick, sign, out_tick, out_sign, made, many)
            made += many
            if i + many < count:
                stack[level + L_AT] = i + many
                cursor[ROW], cursor[PHASE], cursor[DEPTH], cursor[OUT] = row, PROBING, depth, made
                return OUT_FULL
            depth -= 1
        if sign > 0:
            status = insert(
                index, at, indexes, groups, key_columns, cells, leaf, slot, tables, rings, ring_meta, positions
            )
            if status != DONE:
                cursor[ROW], cursor[PHASE], cursor[OUT] = row, INSERTING, made
                return status
        phase = np.int64(NEW)
    cursor[ROW], cursor[PHASE], cursor[OUT] = len(row_port), NEW, made
    return DONE
