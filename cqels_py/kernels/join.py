"""The n-ary join with dynamic probing (Algorithms 4 and 5) over ring indexes (kernels/ring_index.py).

`choices[set * n + q]`: the index by which port q is probed once the ports in the bit set are bound (-1: not connected yet);
`checks[set * n + q]`: a bit mask of q's columns to compare then; `binds[set * n + q]`: does q bind what a later port needs?
`variable_of` (n, COLUMNS) numbers the columns' variables.

A leaf that goes finds what it produced by the indexes too: its key's rings hold the partners side by side, so that results are
written out in runs. Chains of results from each leaf (Algorithm 3) were measured beside it and lost at every size: they cost
two words of memory for each result and input, and a cache miss for each where this costs one for a run.

`step` is resumable: it returns why it stopped, and goes on from `cursor` when called again.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.hashing import combine
from cqels_py.kernels.jit import jit, jit_flat, jit_inline
from cqels_py.kernels.ring_index import (
    BASE,
    DONE,
    FIRST_INDEX,
    FULL,
    GROUP,
    INDEX_FIELDS,
    KEY_FIRST,
    KEY_WIDTH,
    LAST_INDEX,
    LOOSE,
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
    find,
    find_leaf,
    insert,
    remove,
)

COLUMNS = 64
"""The most columns of a port: the stride of `variable_of`."""
# cursor
ROW, PHASE, DEPTH, OUT, AT, PROBES = range(6)
CURSOR_FIELDS = 8
# phases
NEW, PROBING, INSERTING = range(3)
# stack
L_PORT, L_OFFSET, L_MASK, L_HEAD, L_COUNT, L_AT, L_SET, L_CHECK = range(8)
STACK_FIELDS = 8
# found: for each group the entry of the bound key, and from which depth on it is known
F_AT, F_DEPTH = range(2)
FOUND_FIELDS = 2
_UNKNOWN = np.int64(1 << 20)
_SHORT_RUN = 4


@jit_inline
def _key_of_binding(bindings, row, key_variables, first, width):
    if width == 1:
        value = bindings[row + key_variables[first]]
        return value if value != 0 else np.int64(1)
    key = np.int64(width + 1)
    for k in range(first, first + width):
        key = combine(key, bindings[row + key_variables[k]])
    return key | np.int64(1)


@jit_inline
def _compatible(check, loose, cells, leaf, variables, variable_of, bindings, row):
    """Do the checked columns of a leaf agree with the bindings? An unbound one (id 0) agrees with anything."""
    column = 0
    while check != 0:
        if check & 1:
            here = cells[leaf + column]
            there = bindings[row + variable_of[variables + column]]
            if here != there and not (loose >> column & 1 and (here == 0 or there == 0)):
                return False
        check >>= 1
        column += 1
    return True


@jit_inline
def _bind(cells, leaf, width, variables, variable_of, bindings, row, stride):
    """The bindings of the next depth: those at `row` and the leaf's. With a stride of 0 all depths share one row."""
    for v in range(stride):
        bindings[row + stride + v] = bindings[row + v]
    for c in range(width):
        value = cells[leaf + c]
        if value != 0:
            bindings[row + stride + variable_of[variables + c]] = value


@jit_inline
def _choose(
    depth, bound, n, bindings, row, choices, checks, indexes, groups, key_variables, tables, found, stack, cursor
):
    """Algorithm 5: of the ports that the bound ones reach, probe the one with the fewest matches. Writes the stack level."""
    for group in range(len(found) // FOUND_FIELDS):
        # Known below this depth for another mapping than the one that is bound here now.
        if found[group * FOUND_FIELDS + F_DEPTH] >= depth:
            found[group * FOUND_FIELDS + F_DEPTH] = _UNKNOWN
    best = np.int64(-1)
    best_count = np.int64(0)
    best_ring = np.int64(0)
    for q in range(n):
        if bound >> q & 1:
            continue
        index = choices[bound * n + q]
        if index < 0:
            continue
        group = indexes[index * INDEX_FIELDS + GROUP]
        if found[group * FOUND_FIELDS + F_DEPTH] == _UNKNOWN:
            key = _key_of_binding(
                bindings,
                row,
                key_variables,
                indexes[index * INDEX_FIELDS + KEY_FIRST],
                indexes[index * INDEX_FIELDS + KEY_WIDTH],
            )
            cursor[PROBES] += 1
            found[group * FOUND_FIELDS + F_AT] = find(tables, groups, group, key)
            found[group * FOUND_FIELDS + F_DEPTH] = depth
        at = found[group * FOUND_FIELDS + F_AT]
        count = np.int64(0)
        ring = at + indexes[index * INDEX_FIELDS + MEMBER]
        if at >= 0:
            count = tables[ring + 1] & LOW
        if best < 0 or count < best_count:
            best = np.int64(q)
            best_count = count
            best_ring = ring
        if count == 0:
            break
    level = depth * STACK_FIELDS
    stack[level + L_COUNT] = best_count
    stack[level + L_AT] = 0
    stack[level + L_SET] = bound
    stack[level + L_PORT] = best
    if best_count > 0:
        stack[level + L_OFFSET] = tables[best_ring] >> SIZE_BITS
        stack[level + L_MASK] = (np.int64(1) << (tables[best_ring] & SIZE_MASK)) - 1
        stack[level + L_HEAD] = tables[best_ring + 1] >> SHIFT
        stack[level + L_CHECK] = checks[bound * n + best]


@jit_inline
def _write_run(
    rings, start, ring_mask, offset, many, q, n, chosen, tick, sign, out_pointers, out_tick, out_sign, k, room
):
    """Results for `many` leaves of port q that stand side by side in a ring, all others as chosen."""
    if many < _SHORT_RUN:
        # Few: one loop, whose end the processor guesses once.
        for j in range(many):
            for x in range(n):
                out_pointers[x * room + k + j] = np.int32(chosen[x])
            out_pointers[q * room + k + j] = rings[offset + ((start + j) & ring_mask)]
            out_tick[k + j] = tick
            out_sign[k + j] = sign
        return
    # Unsigned positions: signed ones are tested for being negative, which keeps the loops from being vectorised.
    straight = min(many, ring_mask + 1 - start)
    for x in range(n):
        to = np.uint64(x * room + k)
        if x == q:
            first = np.uint64(offset + start)
            for j in range(np.uint64(straight)):
                out_pointers[to + j] = rings[first + j]
            to = np.uint64(x * room + k + straight)
            first = np.uint64(offset)
            for j in range(np.uint64(many - straight)):
                out_pointers[to + j] = rings[first + j]
        else:
            pointer = np.int32(chosen[x])
            for j in range(np.uint64(many)):
                out_pointers[to + j] = pointer
    to = np.uint64(k)
    for j in range(np.uint64(many)):
        out_tick[to + j] = tick
    for j in range(np.uint64(many)):
        out_sign[to + j] = sign


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
    key_variables,
    variable_of,
    choices,
    checks,
    binds,
    cells,
    tables,
    rings,
    ring_meta,
    positions,
    found,
    stack,
    bindings,
    binding_stride,
    chosen,
    out_pointers,
    out_tick,
    out_sign,
    retract,
):
    """Take in the rows from cursor[ROW] on; results go to out_* from cursor[OUT] on. Returns DONE or what is short."""
    n = np.int64(len(chosen))
    everything = (np.int64(1) << n) - 1
    room = np.int64(len(out_tick))
    rows = len(row_port)
    for group in range(len(found) // FOUND_FIELDS):
        found[group * FOUND_FIELDS + F_DEPTH] = _UNKNOWN
    while cursor[ROW] < rows:
        row = cursor[ROW]
        p = np.int64(row_port[row])
        slot = np.int64(row_slot[row])
        width = ports[p * PORT_FIELDS + WIDTH]
        base = ports[p * PORT_FIELDS + BASE]
        leaf = base + slot * width
        tick = row_tick[row]
        sign = row_sign[row]
        first_index = ports[p * PORT_FIELDS + FIRST_INDEX]
        last_index = ports[p * PORT_FIELDS + LAST_INDEX]
        if cursor[PHASE] == NEW:
            for group in range(len(found) // FOUND_FIELDS):
                found[group * FOUND_FIELDS + F_DEPTH] = _UNKNOWN
            cursor[AT] = first_index
            if sign < 0:
                full = ports[p * PORT_FIELDS + FULL]
                if full >= 0:
                    slot = equal_leaf(full, indexes, groups, key_columns, cells, base, leaf, width, tables, rings)
                    if slot < 0:
                        return NOT_STORED
                    # The temporary slot of the negative mapping gives way to that of the leaf it takes back.
                    row_slot[row] = np.int32(slot)
                    leaf = base + slot * width
                for index in range(first_index, last_index):
                    at = find_leaf(index, indexes, groups, key_columns, cells, leaf, tables)
                    remove(index, at, indexes, groups, slot, tables, rings, positions)
                    group = indexes[index * INDEX_FIELDS + GROUP]
                    found[group * FOUND_FIELDS + F_AT] = at
                    found[group * FOUND_FIELDS + F_DEPTH] = -1
                cursor[AT] = last_index
            if sign > 0 or retract:
                for v in range(binding_stride):
                    bindings[v] = 0
                variables = p * COLUMNS
                for c in range(width):
                    bindings[variable_of[variables + c]] = cells[leaf + c]
                chosen[p] = slot
                cursor[DEPTH] = 0
                _choose(
                    np.int64(0), np.int64(1) << p, n, bindings, np.int64(0), choices, checks, indexes, groups, key_variables,
                    tables, found, stack, cursor,
                )  # fmt: skip
                cursor[PHASE] = PROBING
            else:
                cursor[PHASE] = INSERTING
        if cursor[PHASE] == PROBING:
            depth = cursor[DEPTH]
            while depth >= 0:
                level = depth * STACK_FIELDS
                at = stack[level + L_AT]
                count = stack[level + L_COUNT]
                if at >= count:
                    depth -= 1
                    continue
                q = stack[level + L_PORT]
                offset = stack[level + L_OFFSET]
                ring_mask = stack[level + L_MASK]
                start = (stack[level + L_HEAD] + at) & ring_mask
                check = stack[level + L_CHECK]
                before = stack[level + L_SET]
                bound = before | (np.int64(1) << q)
                k = cursor[OUT]
                if bound == everything and check == 0:
                    many = min(count - at, room - k)
                    _write_run(
                        rings, start, ring_mask, offset, many, q, n, chosen, tick, sign, out_pointers, out_tick, out_sign, k,
                        room,
                    )  # fmt: skip
                    cursor[OUT] = k + many
                    stack[level + L_AT] = at + many
                    if at + many < count:
                        cursor[DEPTH] = depth
                        return OUT_FULL
                    depth -= 1
                    continue
                other = np.int64(rings[offset + start])
                q_width = ports[q * PORT_FIELDS + WIDTH]
                q_leaf = ports[q * PORT_FIELDS + BASE] + other * q_width
                variables = q * COLUMNS
                here = depth * binding_stride
                if check != 0 and not _compatible(
                    check, ports[q * PORT_FIELDS + LOOSE], cells, q_leaf, variables, variable_of, bindings, here
                ):
                    stack[level + L_AT] = at + 1
                    continue
                if bound == everything:
                    if k == room:
                        cursor[DEPTH] = depth
                        return OUT_FULL
                    chosen[q] = other
                    for x in range(n):
                        out_pointers[x * room + k] = chosen[x]
                    out_tick[k] = tick
                    out_sign[k] = sign
                    cursor[OUT] = k + 1
                    stack[level + L_AT] = at + 1
                    continue
                stack[level + L_AT] = at + 1
                chosen[q] = other
                depth += 1
                if at > 0 and check == 0 and not binds[before * n + q]:
                    # Nothing that follows depends on this leaf: the level above it is as it was for the one before.
                    stack[depth * STACK_FIELDS + L_AT] = 0
                    continue
                if binds[before * n + q]:
                    _bind(cells, q_leaf, q_width, variables, variable_of, bindings, here, binding_stride)
                _choose(
                    depth, bound, n, bindings, here + binding_stride, choices, checks, indexes, groups, key_variables,
                    tables, found, stack, cursor,
                )  # fmt: skip
            cursor[PHASE] = INSERTING
        while cursor[AT] < last_index:
            group = indexes[cursor[AT] * INDEX_FIELDS + GROUP]
            at = np.int64(-1)
            if found[group * FOUND_FIELDS + F_DEPTH] != _UNKNOWN:
                at = found[group * FOUND_FIELDS + F_AT]
            status = insert(
                cursor[AT], at, indexes, groups, key_columns, cells, leaf, slot, tables, rings, ring_meta, positions
            )
            if status != DONE:
                return status
            cursor[AT] += 1
        cursor[PHASE] = NEW
        cursor[ROW] = row + 1
    return DONE


@jit
def materialise(pointers, ports, cells, out_port, out_column, fallbacks):
    """Ids behind the pointers (n ports, m rows): for each output column its port and column.

    `fallbacks` (width, k): other places of the same variable, as port * 64 + column, -1 where none, tried while unbound.
    """
    rows = pointers.shape[1]
    width = len(out_port)
    out = np.empty((width, rows), np.int64)
    for c in range(width):
        p = out_port[c]
        base = ports[p * PORT_FIELDS + BASE] + out_column[c]
        step_width = ports[p * PORT_FIELDS + WIDTH]
        for row in range(rows):
            out[c, row] = cells[np.uint64(base + np.int64(pointers[p, row]) * step_width)]
        for k in range(fallbacks.shape[1]):
            place = fallbacks[c, k]
            if place < 0:
                break
            other = place // 64
            base = ports[other * PORT_FIELDS + BASE] + place % 64
            step_width = ports[other * PORT_FIELDS + WIDTH]
            for row in range(rows):
                if out[c, row] == 0:
                    out[c, row] = cells[base + np.int64(pointers[other, row]) * step_width]
    return out
