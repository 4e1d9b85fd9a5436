"""The n-ary join with dynamic probing (Algorithms 4 and 5) over ring indexes, and what an expired leaf takes with it (Alg. 3).

State, all of one join, in flat arrays (state/join_state.py holds and grows them):

`cells`    the ports' leaf mappings, row after row: port p, slot s, column c is at base[p] + s * width[p] + c.
`tables`   open-addressing tables of all ring indexes; an entry is 4 words: key, offset of the ring in `rings`,
           (log2 of its capacity << 32 | position of the oldest), counter. A zero counter is an entry awaiting deletion (3.4).
`rings`    for each key a contiguous circular run of slots, oldest first; the counter is the stop.
`chains`   for each leaf the first result it is part of, or -1; `results` holds the results as trees: for each input the
           slot of its leaf, then for each input the next and the previous result of that leaf.
`positions` for ports that retract in any order: where a slot stands in the ring of each of its indexes.

`ports` (n, PORT_FIELDS), `indexes` (k, INDEX_FIELDS), `key_columns`/`key_variables` describe them; `variable_of` (n, width)
numbers the columns' variables. `choices[set * n + q]`: the index by which port q is probed once the ports in the bit set
are bound (-1: not connected yet); `checks[set * n + q]`: a bit mask of q's columns to compare then.

`step` is resumable: it returns why it stopped, and goes on from `cursor` when called again.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.hashing import combine, mix
from cqels_py.kernels.jit import jit, jit_flat, jit_inline

# ports
BASE, WIDTH, MASK, FIFO, HEAD, TAIL, CHAIN, FULL, FIRST_INDEX, LAST_INDEX, LOOSE, BOUND = range(12)
PORT_FIELDS = 12
COLUMNS = 64
"""The most columns of a port: the stride of `variable_of`."""
# indexes
PORT, TABLE, TABLE_MASK, TABLE_USED, TABLE_ZERO, KEY_FIRST, KEY_WIDTH, POSITIONS = range(8)
INDEX_FIELDS = 8
# cursor
ROW, PHASE, DEPTH, OUT, AT, PROBES = range(6)
CURSOR_FIELDS = 8
# phases
NEW, PROBING, INSERTING, RETRACTING = range(4)
# why a step stopped
DONE, OUT_FULL, TABLE_FULL, RINGS_FULL, RESULTS_FULL, NOT_STORED = range(6)
# stack
L_PORT, L_OFFSET, L_MASK, L_HEAD, L_COUNT, L_AT, L_SET, L_CHECK = range(8)
STACK_FIELDS = 8
# rings: a free list for each size, then the top
RING_SIZES = 40
RING_TOP = 40
RING_FIELDS = 41
# results
RESULT_TOP, RESULT_FREE = 0, 1

ENTRY = 4
_LOW = np.int64(0xFFFFFFFF)
_SHIFT = np.int64(32)
_SMALLEST_RING = 1


@jit_inline
def _entry(tables, base, mask, key):
    """Where the entry of `key` starts in `tables`, or -1."""
    position = mix(key) & mask
    while True:
        at = base + position * ENTRY
        found = tables[at]
        if found == key:
            return at
        if found == 0:
            return np.int64(-1)
        position = (position + 1) & mask


@jit_inline
def _key_of_leaf(cells, leaf, key_columns, first, width):
    if width == 1:
        value = cells[leaf + key_columns[first]]
        return value if value != 0 else np.int64(1)
    key = np.int64(width + 1)
    for k in range(first, first + width):
        key = combine(key, cells[leaf + key_columns[k]])
    return key | np.int64(1)


@jit_inline
def _key_of_binding(bindings, depth, n_variables, key_variables, first, width):
    if width == 1:
        return bindings[depth * n_variables + key_variables[first]]
    key = np.int64(width + 1)
    for k in range(first, first + width):
        key = combine(key, bindings[depth * n_variables + key_variables[k]])
    return key | np.int64(1)


@jit_inline
def _allocate_ring(rings, ring_meta, size):
    """Offset of a ring of 2**size slots, or -1 if there is no room."""
    offset = ring_meta[size]
    if offset >= 0:
        ring_meta[size] = rings[offset]
        return offset
    offset = ring_meta[RING_TOP]
    capacity = np.int64(1) << size
    if offset + capacity > len(rings):
        return np.int64(-1)
    ring_meta[RING_TOP] = offset + capacity
    return offset


@jit_inline
def _insert(index, indexes, key_columns, cells, leaf, slot, tables, rings, ring_meta, positions):
    """Enter a leaf in a ring index. 0, or why it cannot be yet."""
    key = _key_of_leaf(
        cells, leaf, key_columns, indexes[index * INDEX_FIELDS + KEY_FIRST], indexes[index * INDEX_FIELDS + KEY_WIDTH]
    )
    mask = indexes[index * INDEX_FIELDS + TABLE_MASK]
    base = indexes[index * INDEX_FIELDS + TABLE]
    position = mix(key) & mask
    at = base + position * ENTRY
    while tables[at] != key and tables[at] != 0:
        position = (position + 1) & mask
        at = base + position * ENTRY
    if tables[at] == 0:
        if (indexes[index * INDEX_FIELDS + TABLE_USED] + 1) * 5 > (mask + 1) * 3:
            return TABLE_FULL
        offset = _allocate_ring(rings, ring_meta, _SMALLEST_RING)
        if offset < 0:
            return RINGS_FULL
        tables[at] = key
        tables[at + 1] = offset
        tables[at + 2] = np.int64(_SMALLEST_RING) << _SHIFT
        tables[at + 3] = 0
        indexes[index * INDEX_FIELDS + TABLE_USED] += 1
        indexes[index * INDEX_FIELDS + TABLE_ZERO] += 1
    count = tables[at + 3]
    word = tables[at + 2]
    size = word >> _SHIFT
    head = word & _LOW
    capacity = np.int64(1) << size
    if count == capacity:
        larger = _allocate_ring(rings, ring_meta, size + 1)
        if larger < 0:
            return RINGS_FULL
        offset = tables[at + 1]
        for i in range(count):
            rings[larger + i] = rings[offset + ((head + i) & (capacity - 1))]
        rings[offset] = ring_meta[size]
        ring_meta[size] = offset
        head = np.int64(0)
        capacity = capacity * 2
        tables[at + 1] = larger
        tables[at + 2] = (size + 1) << _SHIFT
    place = (head + count) & (capacity - 1)
    rings[tables[at + 1] + place] = slot
    tables[at + 3] = count + 1
    if count == 0:
        indexes[index * INDEX_FIELDS + TABLE_ZERO] -= 1
    if indexes[index * INDEX_FIELDS + POSITIONS] >= 0:
        positions[indexes[index * INDEX_FIELDS + POSITIONS] + slot] = place
    return DONE


@jit_inline
def _remove(index, indexes, key_columns, cells, leaf, slot, tables, rings, positions):
    """Take a leaf out of a ring index: the oldest of its key where leaves expire in order, else wherever it stands."""
    key = _key_of_leaf(
        cells, leaf, key_columns, indexes[index * INDEX_FIELDS + KEY_FIRST], indexes[index * INDEX_FIELDS + KEY_WIDTH]
    )
    at = _entry(tables, indexes[index * INDEX_FIELDS + TABLE], indexes[index * INDEX_FIELDS + TABLE_MASK], key)
    word = tables[at + 2]
    count = tables[at + 3] - 1
    tables[at + 3] = count
    if count == 0:
        indexes[index * INDEX_FIELDS + TABLE_ZERO] += 1
    if indexes[index * INDEX_FIELDS + POSITIONS] < 0:
        size = word >> _SHIFT
        head = ((word & _LOW) + 1) & ((np.int64(1) << size) - 1)
        tables[at + 2] = (size << _SHIFT) | head
    else:
        offset = tables[at + 1]
        place = np.int64(positions[indexes[index * INDEX_FIELDS + POSITIONS] + slot])
        last = rings[offset + count]
        rings[offset + place] = last
        positions[indexes[index * INDEX_FIELDS + POSITIONS] + last] = place


@jit_inline
def _equal_leaf(index, indexes, key_columns, cells, base, leaf, width, tables, rings):
    """The slot of a stored leaf with the same ids as the cells at `leaf`, through the index over all columns."""
    key = _key_of_leaf(
        cells, leaf, key_columns, indexes[index * INDEX_FIELDS + KEY_FIRST], indexes[index * INDEX_FIELDS + KEY_WIDTH]
    )
    at = _entry(tables, indexes[index * INDEX_FIELDS + TABLE], indexes[index * INDEX_FIELDS + TABLE_MASK], key)
    if at < 0:
        return np.int64(-1)
    offset = tables[at + 1]
    i = tables[at + 3] - 1
    while i >= 0:
        slot = np.int64(rings[offset + i])
        same = True
        for c in range(width):
            if cells[base + slot * width + c] != cells[leaf + c]:
                same = False
                break
        if same:
            return slot
        i -= 1
    return np.int64(-1)


@jit_inline
def _compatible(check, loose, cells, leaf, variable_of, port, bindings, depth, n_variables):
    """Do the checked columns of a leaf agree with the bindings? An unbound one (id 0) agrees with anything."""
    column = 0
    while check != 0:
        if check & 1:
            here = cells[leaf + column]
            there = bindings[depth * n_variables + variable_of[port * COLUMNS + column]]
            if here != there and not (loose >> column & 1 and (here == 0 or there == 0)):
                return False
        check >>= 1
        column += 1
    return True


@jit_inline
def _bind(cells, leaf, width, variable_of, port, bindings, depth, n_variables):
    """The bindings of the next depth: those of `depth` and the leaf's."""
    for v in range(n_variables):
        bindings[(depth + 1) * n_variables + v] = bindings[depth * n_variables + v]
    for c in range(width):
        value = cells[leaf + c]
        if value != 0:
            bindings[(depth + 1) * n_variables + variable_of[port * COLUMNS + c]] = value


@jit_inline
def _remember(chosen, n, results, result_meta, chains, ports):
    """Store a result and hang it on the chain of each of its leaves."""
    if result_meta[RESULT_FREE] >= 0:
        node = result_meta[RESULT_FREE]
        result_meta[RESULT_FREE] = results[node * 3 * n + 2 * n]
    else:
        node = result_meta[RESULT_TOP]
        result_meta[RESULT_TOP] += 1
    at = node * 3 * n
    for p in range(n):
        slot = chosen[p]
        chain = ports[p * PORT_FIELDS + CHAIN] + slot
        following = chains[chain]
        results[at + p] = slot
        results[at + n + p] = following
        results[at + 2 * n + p] = -1
        if following >= 0:
            results[np.int64(following) * 3 * n + 2 * n + p] = node
        chains[chain] = node


@jit_inline
def _forget(node, n, results, result_meta, chains, ports):
    at = node * 3 * n
    for p in range(n):
        following = results[at + n + p]
        previous = results[at + 2 * n + p]
        if following >= 0:
            results[np.int64(following) * 3 * n + 2 * n + p] = previous
        if previous >= 0:
            results[np.int64(previous) * 3 * n + n + p] = following
        else:
            chains[ports[p * PORT_FIELDS + CHAIN] + results[at + p]] = following
    # The free list is linked where a live result has a previous one: the places of slots are renumbered in bulk.
    results[at + 2 * n] = result_meta[RESULT_FREE]
    result_meta[RESULT_FREE] = node


@jit_inline
def _choose(depth, bound, n, n_variables, choices, checks, indexes, key_variables, bindings, tables, stack, cursor):
    """Algorithm 5: of the ports that the bound ones reach, probe the one with the fewest matches. Writes the stack level."""
    best = np.int64(-1)
    best_count = np.int64(0)
    best_at = np.int64(-1)
    for q in range(n):
        if bound >> q & 1:
            continue
        index = choices[bound * n + q]
        if index < 0:
            continue
        key = _key_of_binding(
            bindings,
            depth,
            n_variables,
            key_variables,
            indexes[index * INDEX_FIELDS + KEY_FIRST],
            indexes[index * INDEX_FIELDS + KEY_WIDTH],
        )
        cursor[PROBES] += 1
        at = _entry(tables, indexes[index * INDEX_FIELDS + TABLE], indexes[index * INDEX_FIELDS + TABLE_MASK], key)
        count = np.int64(0)
        if at >= 0:
            count = tables[at + 3]
        if best < 0 or count < best_count:
            best = np.int64(q)
            best_count = count
            best_at = at
        if count == 0:
            break
    stack[depth * STACK_FIELDS + L_COUNT] = best_count
    stack[depth * STACK_FIELDS + L_AT] = 0
    stack[depth * STACK_FIELDS + L_SET] = bound
    stack[depth * STACK_FIELDS + L_PORT] = best
    if best_count > 0:
        word = tables[best_at + 2]
        stack[depth * STACK_FIELDS + L_OFFSET] = tables[best_at + 1]
        stack[depth * STACK_FIELDS + L_MASK] = (np.int64(1) << (word >> _SHIFT)) - 1
        stack[depth * STACK_FIELDS + L_HEAD] = word & _LOW
        stack[depth * STACK_FIELDS + L_CHECK] = checks[bound * n + best]


@jit_flat
def step(
    row_port,
    row_slot,
    row_tick,
    row_sign,
    cursor,
    ports,
    indexes,
    key_columns,
    key_variables,
    variable_of,
    choices,
    checks,
    cells,
    tables,
    rings,
    ring_meta,
    positions,
    chains,
    results,
    result_meta,
    stack,
    bindings,
    chosen,
    out_pointers,
    out_tick,
    out_sign,
    remember,
):
    """Take in the rows from cursor[ROW] on; results go to out_* from cursor[OUT] on. Returns DONE or what is short."""
    n = np.int64(len(chosen))
    n_variables = np.int64(len(bindings) // (n + 1))
    everything = (np.int64(1) << n) - 1
    room = np.int64(len(out_tick))
    result_room = np.int64(len(results)) // (3 * n)
    rows = len(row_port)
    while cursor[ROW] < rows:
        row = cursor[ROW]
        p = np.int64(row_port[row])
        slot = np.int64(row_slot[row])
        width = ports[p * PORT_FIELDS + WIDTH]
        leaf = ports[p * PORT_FIELDS + BASE] + slot * width
        tick = row_tick[row]
        if cursor[PHASE] == NEW:
            cursor[AT] = ports[p * PORT_FIELDS + FIRST_INDEX]
            if row_sign[row] > 0:
                for v in range(n_variables):
                    bindings[0 * n_variables + v] = 0
                for c in range(width):
                    bindings[0 * n_variables + variable_of[p * COLUMNS + c]] = cells[leaf + c]
                chosen[p] = slot
                cursor[DEPTH] = 0
                cursor[PHASE] = PROBING
                _choose(
                    np.int64(0),
                    np.int64(1) << p,
                    n,
                    n_variables,
                    choices,
                    checks,
                    indexes,
                    key_variables,
                    bindings,
                    tables,
                    stack,
                    cursor,
                )
            else:
                if ports[p * PORT_FIELDS + FULL] >= 0:
                    stored = _equal_leaf(
                        ports[p * PORT_FIELDS + FULL],
                        indexes,
                        key_columns,
                        cells,
                        ports[p * PORT_FIELDS + BASE],
                        leaf,
                        width,
                        tables,
                        rings,
                    )
                    if stored < 0:
                        return NOT_STORED
                    # The temporary slot of the negative mapping gives way to that of the leaf it takes back.
                    slot = stored
                    row_slot[row] = np.int32(stored)
                    leaf = ports[p * PORT_FIELDS + BASE] + slot * width
                for index in range(ports[p * PORT_FIELDS + FIRST_INDEX], ports[p * PORT_FIELDS + LAST_INDEX]):
                    _remove(index, indexes, key_columns, cells, leaf, slot, tables, rings, positions)
                cursor[PHASE] = RETRACTING
        if cursor[PHASE] == PROBING:
            depth = cursor[DEPTH]
            while depth >= 0:
                at = stack[depth * STACK_FIELDS + L_AT]
                count = stack[depth * STACK_FIELDS + L_COUNT]
                if at >= count:
                    depth -= 1
                    continue
                q = stack[depth * STACK_FIELDS + L_PORT]
                offset = stack[depth * STACK_FIELDS + L_OFFSET]
                ring_mask = stack[depth * STACK_FIELDS + L_MASK]
                head = stack[depth * STACK_FIELDS + L_HEAD]
                check = stack[depth * STACK_FIELDS + L_CHECK]
                bound = stack[depth * STACK_FIELDS + L_SET] | (np.int64(1) << q)
                base = ports[q * PORT_FIELDS + BASE]
                q_width = ports[q * PORT_FIELDS + WIDTH]
                if bound != everything:
                    other = np.int64(rings[offset + ((head + at) & ring_mask)])
                    stack[depth * STACK_FIELDS + L_AT] = at + 1
                    q_leaf = base + other * q_width
                    if check != 0 and not _compatible(
                        check,
                        ports[q * PORT_FIELDS + LOOSE],
                        cells,
                        q_leaf,
                        variable_of,
                        q,
                        bindings,
                        depth,
                        n_variables,
                    ):
                        continue
                    chosen[q] = other
                    _bind(cells, q_leaf, q_width, variable_of, q, bindings, depth, n_variables)
                    depth += 1
                    _choose(
                        depth,
                        bound,
                        n,
                        n_variables,
                        choices,
                        checks,
                        indexes,
                        key_variables,
                        bindings,
                        tables,
                        stack,
                        cursor,
                    )
                    continue
                k = cursor[OUT]
                if check == 0 and not remember:
                    many = min(count - at, room - k)
                    for x in range(n):
                        if x == q:
                            for j in range(many):
                                out_pointers[x * room + k + j] = rings[offset + ((head + at + j) & ring_mask)]
                        else:
                            pointer = np.int32(chosen[x])
                            for j in range(many):
                                out_pointers[x * room + k + j] = pointer
                    for j in range(many):
                        out_tick[k + j] = tick
                    for j in range(many):
                        out_sign[k + j] = 1
                    cursor[OUT] = k + many
                    stack[depth * STACK_FIELDS + L_AT] = at + many
                    if at + many < count:
                        cursor[DEPTH] = depth
                        return OUT_FULL
                    continue
                while at < count:
                    other = np.int64(rings[offset + ((head + at) & ring_mask)])
                    if check == 0 or _compatible(
                        check,
                        ports[q * PORT_FIELDS + LOOSE],
                        cells,
                        base + other * q_width,
                        variable_of,
                        q,
                        bindings,
                        depth,
                        n_variables,
                    ):
                        if k == room:
                            cursor[OUT] = k
                            cursor[DEPTH] = depth
                            stack[depth * STACK_FIELDS + L_AT] = at
                            return OUT_FULL
                        chosen[q] = other
                        if remember:
                            if result_meta[RESULT_FREE] < 0 and result_meta[RESULT_TOP] == result_room:
                                cursor[OUT] = k
                                cursor[DEPTH] = depth
                                stack[depth * STACK_FIELDS + L_AT] = at
                                return RESULTS_FULL
                            _remember(chosen, n, results, result_meta, chains, ports)
                        for x in range(n):
                            out_pointers[x * room + k] = chosen[x]
                        out_tick[k] = tick
                        out_sign[k] = 1
                        k += 1
                    at += 1
                stack[depth * STACK_FIELDS + L_AT] = at
                cursor[OUT] = k
            cursor[PHASE] = INSERTING
        if cursor[PHASE] == INSERTING:
            while cursor[AT] < ports[p * PORT_FIELDS + LAST_INDEX]:
                status = _insert(
                    cursor[AT], indexes, key_columns, cells, leaf, slot, tables, rings, ring_meta, positions
                )
                if status != DONE:
                    return status
                cursor[AT] += 1
        elif remember:
            chain = ports[p * PORT_FIELDS + CHAIN] + slot
            k = cursor[OUT]
            while chains[chain] >= 0:
                if k == room:
                    cursor[OUT] = k
                    return OUT_FULL
                node = np.int64(chains[chain])
                for x in range(n):
                    out_pointers[x * room + k] = results[node * 3 * n + x]
                out_tick[k] = tick
                out_sign[k] = -1
                k += 1
                _forget(node, n, results, result_meta, chains, ports)
            cursor[OUT] = k
        cursor[PHASE] = NEW
        cursor[ROW] = row + 1
    return DONE


@jit
def load(port, ports, cells, columns, sign, free, free_meta, row_slot):
    """Write a port's input rows (width, n) to its leaf cells and note their slots.

    In a port that expires in order a negative row is the oldest leaf; in another it gets a temporary slot, to be compared.
    """
    base = ports[port * PORT_FIELDS + BASE]
    width = ports[port * PORT_FIELDS + WIDTH]
    mask = ports[port * PORT_FIELDS + MASK]
    fifo = ports[port * PORT_FIELDS + FIFO] != 0
    for row in range(len(sign)):
        if fifo:
            if sign[row] < 0:
                row_slot[row] = np.int32(ports[port * PORT_FIELDS + HEAD] & mask)
                ports[port * PORT_FIELDS + HEAD] += 1
                continue
            slot = ports[port * PORT_FIELDS + TAIL] & mask
            ports[port * PORT_FIELDS + TAIL] += 1
        else:
            free_meta[port] -= 1
            slot = np.int64(free[port, free_meta[port]])
        row_slot[row] = np.int32(slot)
        at = base + slot * width
        for c in range(width):
            cells[at + c] = columns[c, row]


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
            out[c, row] = cells[base + np.int64(pointers[p, row]) * step_width]
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


@jit
def enter_tables(old_tables, indexes, new_tables, new_base, new_mask, rings, ring_meta):
    """Enter all live entries in larger (or purged) tables; rings of entries with a zero counter become free (3.4)."""
    for index in range(len(new_base)):
        used = np.int64(0)
        base = indexes[index * INDEX_FIELDS + TABLE]
        for position in range(indexes[index * INDEX_FIELDS + TABLE_MASK] + 1):
            at = base + position * ENTRY
            if old_tables[at] == 0:
                continue
            if old_tables[at + 3] == 0:
                size = old_tables[at + 2] >> _SHIFT
                offset = old_tables[at + 1]
                rings[offset] = ring_meta[size]
                ring_meta[size] = offset
                continue
            place = mix(old_tables[at]) & new_mask[index]
            while new_tables[new_base[index] + place * ENTRY] != 0:
                place = (place + 1) & new_mask[index]
            for word in range(ENTRY):
                new_tables[new_base[index] + place * ENTRY + word] = old_tables[at + word]
            used += 1
        indexes[index * INDEX_FIELDS + TABLE] = new_base[index]
        indexes[index * INDEX_FIELDS + TABLE_MASK] = new_mask[index]
        indexes[index * INDEX_FIELDS + TABLE_USED] = used
        indexes[index * INDEX_FIELDS + TABLE_ZERO] = 0


@jit
def renumber_slots(port, ports, indexes, tables, rings, results, result_meta, n, new_mask):
    """A circular buffer has grown: the slot of a leaf in rings and results follows its place in the larger buffer."""
    old_mask = ports[port * PORT_FIELDS + MASK]
    head = ports[port * PORT_FIELDS + HEAD]
    for index in range(ports[port * PORT_FIELDS + FIRST_INDEX], ports[port * PORT_FIELDS + LAST_INDEX]):
        for position in range(indexes[index * INDEX_FIELDS + TABLE_MASK] + 1):
            at = indexes[index * INDEX_FIELDS + TABLE] + position * ENTRY
            if tables[at] == 0:
                continue
            capacity_mask = (np.int64(1) << (tables[at + 2] >> _SHIFT)) - 1
            first = tables[at + 2] & _LOW
            for i in range(tables[at + 3]):
                place = tables[at + 1] + ((first + i) & capacity_mask)
                slot = np.int64(rings[place])
                rings[place] = np.int32((head + ((slot - head) & old_mask)) & new_mask)
    for node in range(result_meta[RESULT_TOP]):
        slot = np.int64(results[node * 3 * n + port])
        results[node * 3 * n + port] = np.int32((head + ((slot - head) & old_mask)) & new_mask)


@jit
def merge_by_tick(ticks, starts, order, source):
    """Merge runs ordered by tick: run r is ticks[starts[r]:starts[r+1]]. Ties: the earlier run first.

    Writes for each merged row its position in `ticks` (order) and its run (source).
    """
    runs = len(starts) - 1
    at = starts[:-1].copy()
    for k in range(len(ticks)):
        best = -1
        best_tick = np.int64(0)
        for r in range(runs):
            if at[r] < starts[r + 1]:
                tick = np.int64(ticks[at[r]])
                if best < 0 or tick < best_tick:
                    best = r
                    best_tick = tick
        order[k] = at[best]
        source[k] = best
        at[best] += 1
