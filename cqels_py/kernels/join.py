"""The n-ary join with dynamic probing (Algorithms 4 and 5) over ring indexes (kernels/ring_index.py).

`choices[set * n + q]`: the index by which port q is probed once the ports in the bit set are bound (-1: not connected yet);
`checks[set * n + q]`: a bit mask of q's columns to compare then; `binds[set * n + q]`: does q bind what a later port needs?
`variable_of` (n, COLUMNS) numbers the columns' variables.

Results are written out as ids, column by column: `out_variable[c]` is column c's variable, `out_ports[c]` a bit mask of the ports
that have it, `own[q * columns + c]` its column in port q, or -1.

A leaf that goes finds what it produced by the indexes too: its key's rings hold the partners side by side, so that results are
written out in runs. Chains of results from each leaf (Algorithm 3) were measured beside it and lost at every size: they cost
two words of memory for each result and input, and a cache miss for each where this costs one for a run.

`step` is resumable: it returns why it stopped, and goes on from `cursor` when called again.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.hashing import combine
from cqels_py.kernels.jit import jit_flat, jit_inline
from cqels_py.kernels.ring_index import (
    AT,
    BASE,
    DEPTH,
    DONE,
    FIRST_INDEX,
    FULL,
    GROUP,
    INDEX_FIELDS,
    KEY_FIRST,
    KEY_WIDTH,
    LAST_INDEX,
    LOOSE,
    NOT_STORED,
    OUT,
    OUT_FULL,
    PHASE,
    PORT_FIELDS,
    PROBES,
    ROW,
    WIDTH,
    equal_leaf,
    expect_row,
    find,
    find_leaf,
    insert,
    leaves_in,
    open_ring,
    remove,
    ring_of,
    slot_in,
)

COLUMNS = 64
"""The most columns of a port: the stride of `variable_of`."""
CURSOR_FIELDS = 10
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
def bind(cells, leaf, width, variables, variable_of, bindings, row, stride):
    """The bindings of the next depth: those at `row` and the leaf's. With a stride of 0 all depths share one row."""
    for v in range(stride):
        bindings[row + stride + v] = bindings[row + v]
    for c in range(width):
        value = cells[leaf + c]
        # Unbound here: another port may have bound it. In a shared row what stands there is of another leaf.
        if value != 0 or stride == 0:
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
    best_word = np.int64(0)
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
        word = tables[ring_of(at, index, indexes)] if at >= 0 else np.int64(0)
        count = leaves_in(word)
        if best < 0 or count < best_count:
            best = np.int64(q)
            best_count = count
            best_word = word
        if count == 0:
            break
    level = depth * STACK_FIELDS
    stack[level + L_COUNT] = best_count
    stack[level + L_AT] = 0
    stack[level + L_SET] = bound
    stack[level + L_PORT] = best
    if best_count > 0:
        first, ring_mask, head, _ = open_ring(best_word)
        stack[level + L_OFFSET] = first
        stack[level + L_MASK] = ring_mask
        stack[level + L_HEAD] = head
        stack[level + L_CHECK] = checks[bound * n + best]


@jit_inline
def _known(c, before, bindings, row, out_variable, out_ports):
    """What the bound ports say of output column c; 0: nothing."""
    if out_ports[c] & before:
        return bindings[row + out_variable[c]]
    return np.int64(0)


@jit_inline
def _write_result(q, leaf, before, cells, bindings, row, out_variable, out_ports, own, out_columns, k, room):
    """The ids of one result, whose last leaf is that of port q."""
    columns = len(out_variable)
    for c in range(columns):
        value = _known(c, before, bindings, row, out_variable, out_ports)
        column = np.int64(own[q * columns + c])
        if value == 0 and column >= 0:
            value = cells[leaf + column]
        out_columns[c * room + k] = value


@jit_inline
def write_run(
    rings, start, ring_mask, offset, many, q, base, width, before, cells, bindings, row, out_variable, out_ports, own,
    out_columns, k, room
):  # fmt: skip
    """The ids of `many` results, whose last leaves, all of port q, stand side by side in a ring."""
    if many < _SHORT_RUN:
        # Few: one loop, whose end the processor guesses once.
        for j in range(many):
            leaf = base + slot_in(offset, ring_mask, (start + j) & ring_mask, rings) * width
            _write_result(q, leaf, before, cells, bindings, row, out_variable, out_ports, own, out_columns, k + j, room)
        return
    # Unsigned positions: signed ones are tested for being negative, which keeps the loops from being vectorised.
    columns = len(out_variable)
    straight = min(many, ring_mask + 1 - start)
    for c in range(columns):
        value = _known(c, before, bindings, row, out_variable, out_ports)
        column = np.int64(own[q * columns + c])
        to = np.uint64(c * room + k)
        if value == 0 and column >= 0:
            first = np.uint64(offset + start)
            for j in range(np.uint64(straight)):
                out_columns[to + j] = cells[np.uint64(base + column + np.int64(rings[first + j]) * width)]
            to = np.uint64(c * room + k + straight)
            first = np.uint64(offset)
            for j in range(np.uint64(many - straight)):
                out_columns[to + j] = cells[np.uint64(base + column + np.int64(rings[first + j]) * width)]
        else:
            for j in range(np.uint64(many)):
                out_columns[to + j] = value


@jit_inline
def write_signs(tick, sign, out_tick, out_sign, k, many):
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
            expect_row(row, row_port, row_slot, ports, indexes, groups, key_columns, cells, tables)
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
                    remove(index, at, indexes, slot, tables, rings, positions)
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
                q_width = ports[q * PORT_FIELDS + WIDTH]
                here = depth * binding_stride
                if bound == everything and check == 0:
                    many = min(count - at, room - k)
                    write_run(
                        rings, start, ring_mask, offset, many, q, ports[q * PORT_FIELDS + BASE], q_width, before, cells,
                        bindings, here, out_variable, out_ports, own, out_columns, k, room,
                    )  # fmt: skip
                    write_signs(tick, sign, out_tick, out_sign, k, many)
                    cursor[OUT] = k + many
                    stack[level + L_AT] = at + many
                    if at + many < count:
                        cursor[DEPTH] = depth
                        return OUT_FULL
                    depth -= 1
                    continue
                other = slot_in(offset, ring_mask, start, rings)
                q_leaf = ports[q * PORT_FIELDS + BASE] + other * q_width
                variables = q * COLUMNS
                if check != 0 and not _compatible(
                    check, ports[q * PORT_FIELDS + LOOSE], cells, q_leaf, variables, variable_of, bindings, here
                ):
                    stack[level + L_AT] = at + 1
                    continue
                if bound == everything:
                    if k == room:
                        cursor[DEPTH] = depth
                        return OUT_FULL
                    _write_result(
                        q, q_leaf, before, cells, bindings, here, out_variable, out_ports, own, out_columns, k, room
                    )
                    out_tick[k] = tick
                    out_sign[k] = sign
                    cursor[OUT] = k + 1
                    stack[level + L_AT] = at + 1
                    continue
                stack[level + L_AT] = at + 1
                bind(cells, q_leaf, q_width, variables, variable_of, bindings, here, binding_stride)
                depth += 1
                if at > 0 and check == 0 and not binds[before * n + q]:
                    # Nothing that follows depends on this leaf: the level above it is as it was for the one before.
                    stack[depth * STACK_FIELDS + L_AT] = 0
                    continue
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
