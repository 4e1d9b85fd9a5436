"""The n-ary join with dynamic probing (Algorithms 4 and 5) over ring indexes (structures/ring_index.py), for many
mappings at a time.

Rows are processed in chunks, and each chunk in passes, so that many lookups are in flight at once: find the entries of
the rows' keys, insert, find results, and remove retracted rows. Where the order of rows does not matter they are
processed port by port, since the port of the next row, and so its number of keys, is unpredictable. `by_port` lists
them: the count of rows of port p is at p * LANE, followed by the rows, numbered from the chunk's first.

A row's results are of the other inputs' mappings as they were at that row. In a FIFO port the leaves of a ring at any
row are contiguous. `changes` lists the changes of rings in a chunk (changes[0]: how many; then ring << 16 | row << 1 |
whether a leaf is inserted), in chains by ring, whose heads are in `change_chains`, followed by the next change for
each. For a leaf of another port `since` holds, during a chunk, the number in it (from 1 on) of the row that inserted
it, plus that of the row that retracted it times RETRACTED; 0: the leaf is of another chunk.

Results are found depth first, a block of partial results at a time. A partial result is a record: its row, the bound
ports, and the entries that are known, as a key that is looked up once serves all ports that it probes. For a bound port
it has the position of the leaf or, if that is from a ring of ids, the id: R_IDS says of which column, two bits a port.
A block is probed in passes: keys are looked up, the port with the fewest matches is chosen for each record (Algorithm
5), and each of its matches makes a record of the block below. The records of the last block are results. They are laid
out as leaves and written by columns. Many contiguous matches are written as runs. Where rings of ids have at most one
SIMD vector of matches (primitives/simd_copy.py), all records that bind the same ports are written column by column.

`known` (p * groups + group): which of port p's indexes is of that group, counted from its first; -1: none. `all_known`:
does each port have indexes of all groups that are probed from it alone? `options` ((set * n + k) * 2): port and index
of the k-th choice once the ports in the bit set are bound; port -1: no more. For port q, probed with that set bound,
`sources` from source_first[set * n + q] on are the bound columns that form its key, and `checks` from check_first[set *
n + q] on, up to the next, are pairs of one of its columns and a bound one that must be compatible. A column of port p
is its number + p * COLUMNS. An unbound one (id 0) is compatible with any.

Results are written as ids, column by column: `out_ports[c]` is a bit mask of the ports that column c is taken from; the
first of them in which it is bound gives its value. `having[c]`: all ports that have it. `own[q * columns + c]`: its
column in port q, or -1.

A retraction finds its results through the indexes too: the rings of its key have the partners side by side. Chains of
results from each leaf (Algorithm 3) were measured and were slower at every size: they cost two words of memory per
result and input, and a cache miss per result where this costs one per run.

`step` is resumable: it returns why it stopped, and continues from `cursor` when called again.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat, jit_inline
from cqels_py.kernels.joins.state import STOP, open_blocks, open_order, open_results
from cqels_py.kernels.primitives.llvm_hints import noinline
from cqels_py.kernels.primitives.prefetch import prefetch
from cqels_py.kernels.primitives.simd_copy import VECTOR_LENGTH, copy_vector, fill_vector
from cqels_py.kernels.primitives.state_record import int64s
from cqels_py.kernels.structures.hashing import combine
from cqels_py.kernels.structures.ring_index import (
    AT,
    BASE,
    BRANCHLESS_PROBES,
    DEPTH,
    DONE,
    FIRST_INDEX,
    FULL,
    GROUP,
    GROUP_FIELDS,
    ID_COLUMN,
    INDEX_FIELDS,
    KEY_FIRST,
    KEY_WIDTH,
    LAST_INDEX,
    LEAVES_AHEAD,
    LOCATED,
    LOCATED_ROWS,
    NOT_STORED,
    NOTED,
    OUT,
    OUT_FULL,
    PHASE,
    PORT_FIELDS,
    POSITIONS,
    PROBES,
    RETRACTED,
    ROW,
    SINCE,
    SIZE,
    SMALLEST_OF_IDS,
    STOP_ASKED,
    STRIDE,
    TABLE,
    TABLE_FULL,
    WIDTH,
    equal_leaf,
    find_from,
    holds_ids,
    home_slot_in,
    home_slot_of,
    key_of_id,
    key_of_leaf,
    leaves_in,
    oldest_in,
    open_ring,
    prefetch_entry,
    probe_listed,
    push_leaf,
    remove,
    ring_of,
    search_listed,
    seek_between,
    size_of,
    slot_in,
    word_as,
)
from cqels_py.kernels.structures.ring_record import InputRows, open_rings

COLUMNS = 64
"""The most columns of a port."""
BLOCK = 256
"""Records of a block."""
LAID_OUT = 256
"""Results that are laid out together."""
LANE = 1 + LOCATED_ROWS
SHORT = PROBES + 1
"""In the cursor: how often a chunk's length has been halved, as there was no room for the keys of longer ones."""
_MOST_SHORT = 8
IDS_FROM = SMALLEST_OF_IDS
"""log2 of the capacity from which rings hold ids: that of a SIMD vector."""
CHANGE_CHAINS = 1 << 12
_RING_SHIFT = np.int64(16)
_ROW_MASK = (np.int64(1) << _RING_SHIFT) - 1
_LINE_OF_IDS, _MOST_EXPECTED = 8, 64
# Phases of a chunk.
LOCATING, ENTERING, PROBING = range(3)
# A record: the port that is probed next and the word of its ring, the row in the chunk, the bound ports, and which of
# them are bound by ids; then each port's id or the position of its leaf, and the position of each group's entry.
R_PORT, R_WORD, R_ROW, R_BOUND, R_IDS, R_LEAVES = range(6)
# Levels: the number of records of a block, the one that is being extended, and its next match.
L_RECORDS, L_RECORD, L_MATCH = range(3)
LEVEL_FIELDS = 3
_UNKNOWN = np.int64(-2)
_RUN = 8
"""Up to this number of matches, results are laid out instead of written as runs."""
_MOST = np.int64(1) << 62


@jit_inline
def _list_by_port(first, rows, n, row_port, by_port):
    """List the rows from `first` on by port."""
    for p in range(n):
        by_port[p * LANE] = 0
    for row in range(rows):
        lane = np.int64(row_port[first + row]) * LANE
        count = np.int64(by_port[lane]) + 1
        by_port[lane + count] = row
        by_port[lane] = count


@jit_flat
def _find_home_slots(n, rows, by_port, state, most):
    """Compute the keys of the rows and their home slots.

    Those of row cursor[ROW] + i are in located[i * most] and after it, in the order of its port's indexes; the keys
    follow all of these.
    """
    arrays = open_rings(state)
    ports, indexes, groups, key_columns = arrays.ports, arrays.indexes, arrays.groups, arrays.key_columns
    cells, located = arrays.cells, arrays.located
    first, keys = arrays.cursor[ROW], LOCATED_ROWS * most
    for p in range(n):
        port, lane = p * PORT_FIELDS, p * LANE + 1
        base, width = ports[port + BASE], ports[port + WIDTH]
        first_index, last_index = ports[port + FIRST_INDEX], ports[port + LAST_INDEX]
        for index in range(first_index, last_index):
            group = indexes[index * INDEX_FIELDS + GROUP]
            table, size = groups[group * GROUP_FIELDS + TABLE], groups[group * GROUP_FIELDS + SIZE]
            stride = groups[group * GROUP_FIELDS + STRIDE]
            key_first = indexes[index * INDEX_FIELDS + KEY_FIRST]
            key_width = indexes[index * INDEX_FIELDS + KEY_WIDTH]
            column = key_columns[key_first]
            for j in range(lane, lane + by_port[lane - 1]):
                row = np.int64(by_port[j])
                leaf = base + np.int64(rows.slot[first + row]) * width
                if key_width == 1:
                    key = key_of_id(cells[leaf + column])
                else:
                    key = key_of_leaf(cells, leaf, key_columns, key_first, key_width)
                # In a FIFO port the next leaves to be inserted or expired follow this one.
                prefetch(cells, leaf + LEAVES_AHEAD * width)
                place = row * most + index - first_index
                located[place] = table + home_slot_in(key, size) * stride
                located[keys + place] = key


@jit_flat
def _list_not_in_home_slot(lane, most, number, stride, by_port, tables, located):
    """List the positions in `located` of a port's rows, for its index of that number, whose key is not in its home
    slot. Returns how many."""
    keys = LOCATED_ROWS * most
    found = 2 * keys
    for j in range(lane, lane + by_port[lane - 1]):
        place = np.int64(by_port[j]) * most + number
        home_slot = located[place]
        # The end of an entry may be in another cache line than its start.
        prefetch(tables, home_slot + stride - 1)
        located[found] = place
        found += np.int64(tables[home_slot] != located[keys + place])
    return found - 2 * keys


@jit_flat
def _find_entries(many_rows, n, rows, by_port, state, most):
    """Find the entries of the keys of `many_rows` rows from cursor[ROW] on, probing from their home slots. A row to
    insert gets a new entry if its key has none. Returns how many rows there was room for."""
    arrays = open_rings(state)
    ports, indexes, groups = arrays.ports, arrays.indexes, arrays.groups
    tables, located, first = arrays.tables, arrays.located, arrays.cursor[ROW]
    keys, probes, room = LOCATED_ROWS * most, np.int64(0), many_rows
    for p in range(n):
        port, lane = p * PORT_FIELDS, p * LANE + 1
        first_index, last_index = ports[port + FIRST_INDEX], ports[port + LAST_INDEX]
        for index in range(first_index, last_index):
            group, number = indexes[index * INDEX_FIELDS + GROUP], index - first_index
            base, stride = groups[group * GROUP_FIELDS + TABLE], groups[group * GROUP_FIELDS + STRIDE]
            size = groups[group * GROUP_FIELDS + SIZE]
            many = _list_not_in_home_slot(lane, most, number, stride, by_port, tables, located)
            for steps in range(1, BRANCHLESS_PROBES + 1):
                many = probe_listed(steps, many, keys, base, size, stride, tables, located)
            short = search_listed(many, keys, number, most, first, rows.sign, groups, group, tables, located)
            room = room if short < 0 else min(room, short - first)
            probes += by_port[lane - 1]
    arrays.cursor[PROBES] += probes
    return room


@jit_flat
def _shorten(rows, n, by_port):
    """Remove the rows from `rows` on from the lists."""
    for p in range(n):
        lane = p * LANE
        count = np.int64(by_port[lane])
        while count > 0 and by_port[lane + count] >= rows:
            count -= 1
        by_port[lane] = count


@jit_inline
def _chain_of(ring):
    """The chain of changes for a ring."""
    return (ring ^ ring >> 12) & (CHANGE_CHAINS - 1)


@jit_inline
def _note_change(ring, row, is_insert, changes, change_chains):
    """Record that a row of the chunk inserts a leaf into a ring, or retracts one."""
    number = changes[0] + 1
    chain = np.uint64(_chain_of(ring))
    changes[0] = number
    changes[number] = ring << _RING_SHIFT | row << 1 | np.int64(is_insert)
    change_chains[CHANGE_CHAINS + number] = change_chains[chain]
    change_chains[chain] = number


@jit_inline
def _forget_changes(changes, change_chains):
    for number in range(1, changes[0] + 1):
        change_chains[_chain_of(changes[number] >> _RING_SHIFT)] = 0
    changes[0] = 0


@jit_inline
def _word_at(ring, row, tables, changes, change_chains):
    """The word of a ring as it was at a row of the chunk."""
    word, number = tables[ring], np.int64(change_chains[_chain_of(ring)])
    return word if number == 0 else _word_before_changes(word, ring, row, number, changes, change_chains)


@jit_flat
def _word_before_changes(word, ring, row, number, changes, change_chains):
    """`_word_at` for a ring whose chain of changes is not empty: all insertions of the chunk have been applied, and no
    removals."""
    inserted_later, retracted = np.int64(0), np.int64(0)
    while number != 0:
        change = changes[number]
        if change >> _RING_SHIFT == ring:
            later = (change & _ROW_MASK) >> 1 > row
            inserted_later += np.int64(change & 1 != 0 and later)
            retracted += np.int64(change & 1 == 0 and not later)
        number = np.int64(change_chains[CHANGE_CHAINS + number])
    first, mask, oldest, count = open_ring(word)
    return word_as(word, first | ((oldest + retracted) & mask), size_of(word), count - inserted_later - retracted)


@jit_flat
def _enter(n, most, rows, state, block):
    """Insert rows, port by port, from cursor[AT] of their lists on, and record which rings change. Returns DONE, or
    what is full."""
    arrays, blocks = open_rings(state), open_blocks(block, state)
    cursor, ports, indexes, tables = arrays.cursor, arrays.ports, arrays.indexes, arrays.tables
    by_port, since, first = blocks.by_port, blocks.since, cursor[ROW]
    for p in range(cursor[AT] // LANE, n):
        port, lane = p * PORT_FIELDS, p * LANE + 1
        base, width, since_first = ports[port + BASE], ports[port + WIDTH], ports[port + SINCE]
        first_index = ports[port + FIRST_INDEX]
        many = ports[port + LAST_INDEX] - first_index
        for j in range(max(cursor[AT], lane), lane + by_port[lane - 1]):
            row = np.int64(by_port[j])
            here, place = np.uint64(first + row), row * most
            slot, is_insert = np.int64(rows.slot[here]), rows.sign[here] > 0
            leaf = base + slot * width
            for k in range(cursor[NOTED], many):
                index = first_index + k
                ring = ring_of(arrays.located[place + k], index, indexes)
                if is_insert:
                    status = push_leaf(ring, slot, index, port, arrays)
                    if status != DONE:
                        cursor[AT], cursor[NOTED] = j, k
                        return status
                    positions_first = indexes[index * INDEX_FIELDS + POSITIONS]
                    if positions_first >= 0:
                        _, mask, oldest, count = open_ring(tables[ring])
                        arrays.positions[positions_first + slot] = (oldest + count - 1) & mask
                if since_first < 0:
                    _note_change(ring, row, is_insert, blocks.changes, blocks.change_chains)
            cursor[NOTED] = 0
            if since_first >= 0:
                if not is_insert:
                    slot = equal_leaf(ports[port + FULL], base, leaf, width, arrays, since, since_first)
                    if slot < 0:
                        return NOT_STORED
                    # The temporary slot of the retraction is replaced with that of the leaf that it retracts.
                    rows.slot[here] = np.int32(slot)
                since[since_first + slot] += (row + 1) * (1 if is_insert else RETRACTED)
    return DONE


@jit_flat
def _begin(n, n_groups, most, rows, state, asked, all_known, block, retract):
    """Make a record in the first block for each row. If the entries of all probed groups are known, the records with
    matches are `matched`; else all are still to be probed."""
    arrays, blocks, order = open_rings(state), open_blocks(block, state), open_order(asked)
    ports, records, by_port = arrays.ports, blocks.records, blocks.by_port
    first, last, fields = arrays.cursor[ROW], arrays.cursor[LOCATED], R_LEAVES + n + n_groups
    for p in range(n):
        port, lane = p * PORT_FIELDS, p * LANE + 1
        base, width = ports[port + BASE], ports[port + WIDTH]
        for j in range(lane, lane + by_port[lane - 1]):
            row = np.int64(by_port[j])
            record = row * fields
            # A row without results has no matches and no options.
            records[record + R_WORD], records[record + R_BOUND] = 0, 0
            if rows.sign[first + row] > 0 or retract:
                records[record + R_ROW] = row
                records[record + R_BOUND], records[record + R_IDS] = np.int64(1) << p, 0
                leaf = base + np.int64(rows.slot[first + row]) * width
                records[record + R_LEAVES + p] = leaf
                entries = record + R_LEAVES + n
                for group in range(n_groups):
                    k = order.known[p * n_groups + group]
                    at = arrays.located[row * most + max(k, 0)]
                    records[entries + group] = at if k >= 0 else _UNKNOWN
                if all_known:
                    _choose_port(record, n, order.options, arrays, blocks)
    blocks.levels[L_RECORDS] = last - first
    if all_known:
        _keep_matched(np.int64(0), last - first, fields, records, blocks.matched, blocks.levels)


@jit_inline
def _keep_matched(level, many, fields, records, matched, levels):
    """Of a level's `many` records, keep those with matches, as `matched` from level * BLOCK on."""
    begin, first, stay = level * BLOCK * fields, np.uint64(level * BLOCK), np.uint64(0)
    for i in range(many):
        record = begin + i * fields
        # Written unconditionally, and overwritten if it has no match: that is unpredictable.
        matched[first + stay] = record
        stay += np.uint64(leaves_in(records[record + R_WORD]) > 0)
    levels[level * LEVEL_FIELDS + L_RECORDS] = np.int64(stay)


@jit_inline
def _id_column(ids, port):
    """For a port that is bound by an id: the column of the id, counted from 1; 0: it is bound by the position of a
    leaf."""
    return ids >> (2 * port) & 3


@jit_inline
def _bound_id(source, leaves, ids, cells, records):
    """The id of a bound column. A port that is bound by an id was probed by a key whose entry is known; only its other
    column is ever asked for."""
    port = source // COLUMNS
    bound = records[leaves + port]
    return cells[bound + source % COLUMNS] if _id_column(ids, port) == 0 else bound


@jit_inline
def _key_of_record(record, width, source, sources, cells, records):
    """The key of an index with so many columns, from the bound columns."""
    leaves, ids = record + R_LEAVES, records[record + R_IDS]
    if width == 1:
        return key_of_id(_bound_id(sources[source], leaves, ids, cells, records))
    key = np.int64(width + 1)
    for k in range(source, source + width):
        key = combine(key, _bound_id(sources[k], leaves, ids, cells, records))
    return key | np.int64(1)


@jit_inline
def _choose_port(record, n, options, arrays, blocks):
    """Algorithm 5: of the ports that can be probed from a record, the one with the fewest matches is bound next."""
    indexes, records = arrays.indexes, blocks.records
    entries, option = record + R_LEAVES + n, records[record + R_BOUND] * n * 2
    row = records[record + R_ROW]
    best, best_index, best_word, fewest = np.int64(0), np.int64(0), np.int64(0), _MOST
    q = options[option]
    while q >= 0:
        index = options[option + 1]
        at = records[entries + indexes[index * INDEX_FIELDS + GROUP]]
        word = np.int64(0)
        if at >= 0:
            word = _word_at(ring_of(at, index, indexes), row, arrays.tables, blocks.changes, blocks.change_chains)
        count = leaves_in(word)
        best = q if count < fewest else best
        best_index = index if count < fewest else best_index
        best_word = word if count < fewest else best_word
        fewest = min(count, fewest)
        option += 2
        q = options[option]
    _bind_next(record, best, best_index, best_word, indexes, arrays.rings, records)


@jit_inline
def _bind_next(record, q, index, word, indexes, rings, records):
    """Set that a record is extended by the leaves of port q in a ring, and prefetch these."""
    records[record + R_PORT] = q
    records[record + R_WORD] = word
    if holds_ids(word):
        first, mask, oldest, count = open_ring(word)
        for i in range(0, min(count + _LINE_OF_IDS, _MOST_EXPECTED), _LINE_OF_IDS):
            prefetch(rings, (first + ((oldest + i) & mask)) << 1)
        ids = (1 + indexes[index * INDEX_FIELDS + ID_COLUMN]) << (2 * q)
        records[record + R_IDS] |= ids
    else:
        prefetch(rings, oldest_in(word))


@jit_flat
def _probe(level, n, n_groups, state, asked, block):
    """Look up the missing entries for the records of a level's block, and choose the port that extends each record.

    Records with matches are kept, as `matched` from level * BLOCK on.
    """
    arrays, blocks, order = open_rings(state), open_blocks(block, state), open_order(asked)
    options, indexes, groups, tables = order.options, arrays.indexes, arrays.groups, arrays.tables
    records, pending = blocks.records, blocks.pending
    fields, asked, waiting = R_LEAVES + n + n_groups, np.int64(0), np.int64(0)
    begin, many = level * BLOCK * fields, blocks.levels[level * LEVEL_FIELDS + L_RECORDS]
    keys = BLOCK
    for i in range(many):
        record = begin + i * fields
        entries = record + R_LEAVES + n
        bound, before = records[record + R_BOUND], asked
        option = bound * n * 2
        q = options[option]
        while q >= 0:
            index = options[option + 1]
            group = indexes[index * INDEX_FIELDS + GROUP]
            if records[entries + group] == _UNKNOWN:
                width = indexes[index * INDEX_FIELDS + KEY_WIDTH]
                source = order.source_first[bound * n + q]
                key = _key_of_record(record, width, source, order.sources, arrays.cells, records)
                home_slot = home_slot_of(key, groups, group)
                prefetch_entry(home_slot, groups[group * GROUP_FIELDS + STRIDE], tables)
                records[entries + group] = home_slot
                pending[keys + 3 * asked] = entries + group
                pending[keys + 3 * asked + 1] = group
                pending[keys + 3 * asked + 2] = key
                asked += 1
            option += 2
            q = options[option]
        if asked == before:
            _choose_port(record, n, options, arrays, blocks)
        else:
            pending[waiting] = record
            waiting += 1
    for i in range(asked):
        place = keys + 3 * i
        entry, group, key = pending[place], pending[place + 1], pending[place + 2]
        records[entry] = find_from(records[entry], tables, groups, group, key)
    for i in range(waiting):
        _choose_port(pending[i], n, options, arrays, blocks)
    arrays.cursor[PROBES] += asked
    _keep_matched(level, many, fields, records, blocks.matched, blocks.levels)


@jit_flat
def _probe_last(level, n, n_groups, state, asked, block):
    """`_probe` where one port is left, as for most records: there is no choice, and the keys to look up depend only on
    the bound ports."""
    arrays, blocks, order = open_rings(state), open_blocks(block, state), open_order(asked)
    options, indexes, groups, tables = order.options, arrays.indexes, arrays.groups, arrays.tables
    records, pending = blocks.records, blocks.pending
    fields, asked, bound_before = R_LEAVES + n + n_groups, np.int64(0), np.int64(-1)
    begin, many = level * BLOCK * fields, blocks.levels[level * LEVEL_FIELDS + L_RECORDS]
    index, group, width, source, stride = np.int64(0), np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    for i in range(many):
        record = begin + i * fields
        bound = records[record + R_BOUND]
        if bound != bound_before:
            bound_before, option = bound, bound * n * 2
            index = options[option + 1] * INDEX_FIELDS
            group, width = indexes[index + GROUP], indexes[index + KEY_WIDTH]
            source = order.source_first[bound * n + options[option]]
            stride = groups[group * GROUP_FIELDS + STRIDE]
        at, key = records[record + R_LEAVES + n + group], np.int64(0)
        if at == _UNKNOWN:
            key = _key_of_record(record, width, source, order.sources, arrays.cells, records)
            at = home_slot_of(key, groups, group)
            prefetch_entry(at, stride, tables)
        pending[2 * i], pending[2 * i + 1] = at, key
    bound_before, q, base, end = np.int64(-1), np.int64(0), np.int64(0), np.int64(0)
    for i in range(many):
        record = begin + i * fields
        bound = records[record + R_BOUND]
        if bound != bound_before:
            bound_before, option = bound, bound * n * 2
            q, index = options[option], options[option + 1]
            group = indexes[index * INDEX_FIELDS + GROUP] * GROUP_FIELDS
            base, stride = groups[group + TABLE], groups[group + STRIDE]
            end = base + groups[group + SIZE] * stride
        at, key = pending[2 * i], pending[2 * i + 1]
        if key != 0:
            asked += 1
            at = seek_between(base, end, stride, at, tables, key)
            at = at if tables[at] != 0 else np.int64(-1)
        word = np.int64(0)
        if at >= 0:
            row = records[record + R_ROW]
            word = _word_at(ring_of(at, index, indexes), row, tables, blocks.changes, blocks.change_chains)
        _bind_next(record, q, index, word, indexes, arrays.rings, records)
    arrays.cursor[PROBES] += asked
    _keep_matched(level, many, fields, records, blocks.matched, blocks.levels)


@jit_inline
def _there(slot, row, since, first):
    """Was the leaf in this slot, of a port that is not FIFO, present at a row of the chunk?"""
    word = np.int64(since[first + slot])
    return word % RETRACTED <= row and (word < RETRACTED or word // RETRACTED > row + 1)


@jit_inline
def _agrees(check, end, leaf, record, checks, cells, records):
    """Are the compared columns of a leaf compatible with the bound ones?"""
    while check < end:
        here = cells[leaf + checks[2 * check]]
        there = _bound_id(checks[2 * check + 1], record + R_LEAVES, records[record + R_IDS], cells, records)
        if here != there and here != 0 and there != 0:
            return False
        check += 1
    return True


@jit_flat
def _extend(level, n, n_groups, state, asked, block):
    """Fill the block below a level with the extensions of its records by their matches, as far as there is room."""
    arrays, blocks, order = open_rings(state), open_blocks(block, state), open_order(asked)
    ports, cells, since, records, levels = arrays.ports, arrays.cells, blocks.since, blocks.records, blocks.levels
    fields = R_LEAVES + n + n_groups
    end, first_matched = (level + 1) * BLOCK * fields, level * BLOCK
    here = level * LEVEL_FIELDS
    i, match, made = levels[here + L_RECORD], levels[here + L_MATCH], np.int64(0)
    while i < levels[here + L_RECORDS] and made < BLOCK:
        record = blocks.matched[first_matched + i]
        bound, q, row = records[record + R_BOUND], records[record + R_PORT], records[record + R_ROW]
        first, ring_mask, oldest, count = open_ring(records[record + R_WORD])
        base, width = ports[q * PORT_FIELDS + BASE], ports[q * PORT_FIELDS + WIDTH]
        since_first = ports[q * PORT_FIELDS + SINCE]
        check, check_end = order.check_first[bound * n + q], order.check_first[bound * n + q + 1]
        special = check < check_end or since_first >= 0
        of_ids = _id_column(records[record + R_IDS], q) != 0
        stop = min(count, match + BLOCK - made)
        while match < stop:
            if of_ids:
                slot, leaf = np.int64(0), arrays.ring_ids[first + ((oldest + match) & ring_mask)]
            else:
                slot = slot_in(first, ring_mask, (oldest + match) & ring_mask, arrays.rings)
                leaf = base + slot * width
                prefetch(cells, leaf)
            to = end + made * fields
            for field in range(R_ROW, fields):
                records[to + field] = records[record + field]
            records[to + R_BOUND] = bound | np.int64(1) << q
            records[to + R_LEAVES + q] = leaf
            if special:
                there = since_first < 0 or _there(slot, row, since, since_first)
                made += np.int64(there and _agrees(check, check_end, leaf, record, order.checks, cells, records))
            else:
                made += 1
            match += 1
        if match == count:
            i += 1
            match = np.int64(0)
    levels[here + L_RECORD], levels[here + L_MATCH] = i, match
    levels[here + LEVEL_FIELDS + L_RECORDS] = made
    levels[here + LEVEL_FIELDS + L_RECORD], levels[here + LEVEL_FIELDS + L_MATCH] = 0, 0


@jit_flat
def write_columns(done, made, room, cells, leaves, out_ports, own, out_columns):
    """The ids of results that are laid out as leaves, those of port q from `leaves[q * LAID_OUT]` on, to result number
    `made` and on."""
    noinline()
    columns = len(out_ports)
    for c in range(columns):
        q, of_ports = np.int64(0), out_ports[c]
        to = c * room + made
        while not of_ports >> q & 1:
            q += 1
        column, of_port = own[q * columns + c], q * LAID_OUT
        for i in range(done):
            out_columns[to + i] = cells[leaves[of_port + i] + column]
        of_ports >>= q + 1
        # A column that is unbound in one port may be bound in another.
        while of_ports != 0:
            q += 1
            if of_ports & 1:
                column, of_port = own[q * columns + c], q * LAID_OUT
                for i in range(done):
                    if out_columns[to + i] == 0:
                        out_columns[to + i] = cells[leaves[of_port + i] + column]
            of_ports >>= 1


@jit_inline
def write_signs(tick, sign, results, k, many):
    """The tick and sign of `many` results from number k on."""
    for j in range(many):
        results.tick[k + j] = tick
    for j in range(many):
        results.sign[k + j] = sign


@jit_inline
def _known(c, before, record, results, cells, records):
    """The value of output column c in the bound ports; 0: they do not have it."""
    of_ports, q, value = results.having[c] & before, np.int64(0), np.int64(0)
    ids, columns = records[record + R_IDS], len(results.having)
    while of_ports != 0 and value == 0:
        if of_ports & 1:
            bound, column = records[record + R_LEAVES + q], results.own[q * columns + c]
            id_column = _id_column(ids, q)
            if id_column == 0:
                value = cells[bound + column]
            elif id_column == column + 1:
                value = bound
        of_ports >>= 1
        q += 1
    return value


@jit_inline
def _list_vectors(first, i, many, made, room, blocks):
    """How many of a block's `many` records, from number i on, bind the same ports and make at most a SIMD vector of
    results each. Writes the start of the results of each to `leaves`, and the end of the last."""
    records, matched, places = blocks.records, blocks.matched, blocks.leaves
    record = matched[first + i]
    bound, q, ids = records[record + R_BOUND], records[record + R_PORT], records[record + R_IDS]
    found = np.int64(0)
    if _id_column(ids, q) == 0:
        return found
    places[0] = made
    while i + found < many and made + VECTOR_LENGTH <= room:
        record = matched[first + i + found]
        count = leaves_in(records[record + R_WORD])
        same = records[record + R_BOUND] == bound and records[record + R_PORT] == q
        if count > VECTOR_LENGTH or not same or records[record + R_IDS] != ids:
            break
        found, made = found + 1, made + count
        places[found] = made
    return found


@jit_inline
def _source(c, bound, ids, n, columns, own):
    """The first bound port that has output column c, and its column there; -1: none does.

    A port that is bound by an id gives this one column only; a column that it shares is in another port too.
    """
    for p in range(n):
        column, id_column = own[p * columns + c], _id_column(ids, p)
        if bound >> p & 1 and column >= 0 and (id_column == 0 or id_column == column + 1):
            return np.int64(p), column
    return np.int64(0), np.int64(-1)


@jit_inline
def _write_vectors(first, vectors, n, bound, ids, rows, arrays, blocks, results):
    """Write the results of `vectors` records from matched[first] on, which bind the same ports, column by column."""
    records, matched, places, out_columns = blocks.records, blocks.matched, blocks.leaves, results.columns
    columns, room, many = len(results.own) // n, np.int64(len(results.tick)), np.uint64(vectors)
    here, row = np.uint64(first), arrays.cursor[ROW]
    for i in range(many):
        at = np.uint64(row + records[matched[here + i] + R_ROW])
        fill_vector(results.tick, np.uint64(places[i]), rows.tick[at])
        fill_vector(results.sign, np.uint64(places[i]), rows.sign[at])
    for c in range(columns):
        to = c * room
        port, column = _source(c, bound, ids, n, columns, results.own)
        of_port, of_id = R_LEAVES + port, _id_column(ids, port)
        if column < 0:
            for i in range(many):
                first_place, mask, oldest, _ = open_ring(records[matched[here + i] + R_WORD])
                at = np.uint64(to + places[i])
                copy_vector(
                    out_columns, at, arrays.ring_ids, np.uint64(first_place), np.uint64(oldest), np.uint64(mask)
                )
        elif of_id != 0:
            for i in range(many):
                fill_vector(out_columns, np.uint64(to + places[i]), records[matched[here + i] + of_port])
        else:
            for i in range(many):
                leaf = records[matched[here + i] + of_port]
                fill_vector(out_columns, np.uint64(to + places[i]), arrays.cells[leaf + column])


@jit_inline
def _write_run(match, many, record, arrays, records, results, made):
    """Write the ids of `many` results of one record from number `made` on: those with its matches from `match` on,
    which are contiguous in a ring."""
    before, q, cells, rings = records[record + R_BOUND], records[record + R_PORT], arrays.cells, arrays.rings
    first, ring_mask, oldest, _ = open_ring(records[record + R_WORD])
    base, width = arrays.ports[q * PORT_FIELDS + BASE], arrays.ports[q * PORT_FIELDS + WIDTH]
    columns, room, out_columns = len(results.having), np.int64(len(results.tick)), results.columns
    start = (oldest + match) & ring_mask
    straight = min(many, ring_mask + 1 - start)
    of_ids = _id_column(records[record + R_IDS], q) != 0
    here = first + start
    for c in range(columns):
        value = _known(c, before, record, results, cells, records)
        column = results.own[q * columns + c]
        to = c * room + made
        if value != 0 or column < 0:
            for j in range(many):
                out_columns[to + j] = value
        elif of_ids:
            for j in range(straight):
                out_columns[to + j] = arrays.ring_ids[here + j]
            for j in range(many - straight):
                out_columns[to + straight + j] = arrays.ring_ids[first + j]
        elif ring_mask == 0:
            out_columns[to] = cells[base + column + first * width]
        else:
            for j in range(straight):
                out_columns[to + j] = cells[base + column + np.int64(rings[here + j]) * width]
            for j in range(many - straight):
                out_columns[to + straight + j] = cells[base + column + np.int64(rings[first + j]) * width]


@jit_flat
def _write(level, n, rows, state, asked, block, results):
    """Write the results of the records of the last block with their matches. Returns DONE, or OUT_FULL."""
    arrays, blocks, order = open_rings(state), open_blocks(block, state), open_order(asked)
    cursor, ports, cells, records = arrays.cursor, arrays.ports, arrays.cells, blocks.records
    leaves, levels, since = blocks.leaves, blocks.levels, blocks.since
    first_matched, here = level * BLOCK, level * LEVEL_FIELDS
    i, match, last = levels[here + L_RECORD], levels[here + L_MATCH], levels[here + L_RECORDS]
    room, made, done = np.int64(len(results.tick)), cursor[OUT], np.int64(0)
    while i < last and made < room:
        record = blocks.matched[first_matched + i]
        of_ports = record + R_LEAVES
        bound, q, row = records[record + R_BOUND], records[record + R_PORT], records[record + R_ROW]
        first, ring_mask, oldest, count = open_ring(records[record + R_WORD])
        base, width = ports[q * PORT_FIELDS + BASE], ports[q * PORT_FIELDS + WIDTH]
        since_first = ports[q * PORT_FIELDS + SINCE]
        check, check_end = order.check_first[bound * n + q], order.check_first[bound * n + q + 1]
        special = check < check_end or since_first >= 0
        tick, sign = rows.tick[cursor[ROW] + row], rows.sign[cursor[ROW] + row]
        if records[record + R_IDS] != 0 or (count - match > _RUN and not special):
            if done > 0:
                write_columns(done, made, room, cells, leaves, results.out_ports, results.own, results.columns)
                made += done
                done = np.int64(0)
            vectors = np.int64(0)
            if match == 0:
                vectors = _list_vectors(first_matched, i, last, made, room, blocks)
            if vectors > 0:
                ids = records[record + R_IDS]
                _write_vectors(first_matched + i, vectors, n, bound, ids, rows, arrays, blocks, results)
                made = leaves[vectors]
                i += vectors
                continue
            many = min(count - match, room - made)
            _write_run(match, many, record, arrays, records, results, made)
            write_signs(tick, sign, results, made, many)
            made += many
            match += many
            if match == count:
                i += 1
                match = np.int64(0)
            continue
        stop, before = min(count, match + min(np.int64(LAID_OUT), room - made) - done), done
        while match < stop:
            slot = slot_in(first, ring_mask, (oldest + match) & ring_mask, arrays.rings)
            leaf = base + slot * width
            prefetch(cells, leaf)
            leaves[q * LAID_OUT + done] = leaf
            if special:
                there = since_first < 0 or _there(slot, row, since, since_first)
                done += np.int64(there and _agrees(check, check_end, leaf, record, order.checks, cells, records))
            else:
                done += 1
            match += 1
        # The other ports' leaves are the same in all of these results.
        many = done - before
        for p in range(n):
            if p != q:
                other, to = records[of_ports + p], p * LAID_OUT + before
                for k in range(many):
                    leaves[to + k] = other
        write_signs(tick, sign, results, made + before, many)
        if match == count:
            i += 1
            match = np.int64(0)
        if done == min(np.int64(LAID_OUT), room - made):
            write_columns(done, made, room, cells, leaves, results.out_ports, results.own, results.columns)
            made += done
            done = np.int64(0)
    write_columns(done, made, room, cells, leaves, results.out_ports, results.own, results.columns)
    cursor[OUT] = made + done
    levels[here + L_RECORD], levels[here + L_MATCH] = i, match
    return OUT_FULL if i < last else DONE


@jit_flat
def _remove(n, most, rows, state, block):
    """Remove the retracted leaves from the indexes; the chunk ends."""
    arrays, blocks = open_rings(state), open_blocks(block, state)
    ports, by_port, since, first = arrays.ports, blocks.by_port, blocks.since, arrays.cursor[ROW]
    for p in range(n):
        port, lane = p * PORT_FIELDS, p * LANE + 1
        first_index, since_first = ports[port + FIRST_INDEX], ports[port + SINCE]
        many = ports[port + LAST_INDEX] - first_index
        for j in range(lane, lane + by_port[lane - 1]):
            row = np.int64(by_port[j])
            slot = np.int64(rows.slot[first + row])
            if since_first >= 0:
                since[since_first + slot] = 0
            if rows.sign[first + row] > 0:
                continue
            for k in range(many):
                remove(first_index + k, arrays.located[row * most + k], slot, arrays)


@jit_flat
def step(
    row_port, row_slot, row_tick, row_sign, state, asked, all_known, block, out_columns, out_tick, out_sign, retract
):
    """Process the rows from cursor[ROW] on; results go to out_* from cursor[OUT] on. Returns DONE or why it stopped.

    `state`, `asked`, `block`: see joins/state.py. `all_known`, `retract`: 1 or 0.
    """
    rows, arrays = InputRows(row_port, row_slot, row_tick, row_sign), open_rings(state)
    results, blocks = open_results(asked, out_columns, out_tick, out_sign), open_blocks(block, state)
    cursor, by_port, levels, stop = arrays.cursor, blocks.by_port, blocks.levels, int64s(state, STOP)
    n = np.int64(len(arrays.ports) // PORT_FIELDS)
    n_groups = np.int64(len(arrays.groups) // GROUP_FIELDS)
    most = np.int64(len(arrays.located) // (2 * LOCATED_ROWS))
    end = len(row_port)
    while cursor[ROW] < end:
        if cursor[PHASE] == LOCATING:
            row = cursor[ROW]
            last = min(row + (LOCATED_ROWS >> cursor[SHORT]), end)
            _forget_changes(blocks.changes, blocks.change_chains)
            _list_by_port(row, last - row, n, row_port, by_port)
            _find_home_slots(n, rows, by_port, state, most)
            room = _find_entries(last - row, n, rows, by_port, state, most)
            if room == 0:
                # Other rows of the chunk may have taken the room that the first one needs.
                cursor[SHORT] = min(cursor[SHORT] + 2, _MOST_SHORT)
                return TABLE_FULL
            cursor[SHORT] = max(cursor[SHORT] - 1, 0)
            if row + room < last:
                _shorten(room, n, by_port)
            cursor[LOCATED] = row + room
            cursor[AT], cursor[NOTED], cursor[PHASE] = 0, 0, ENTERING
        if cursor[PHASE] == ENTERING:
            status = _enter(n, most, rows, state, block)
            if status != DONE:
                return status
            levels[L_RECORDS], levels[L_RECORD], levels[L_MATCH] = 0, 0, 0
            _begin(n, n_groups, most, rows, state, asked, all_known, block, retract)
            if not all_known:
                _probe(np.int64(0), n, n_groups, state, asked, block)
            cursor[DEPTH], cursor[PHASE] = 0, PROBING
        while cursor[DEPTH] >= 0:
            if stop[0] != 0:
                return np.int64(STOP_ASKED)
            depth = cursor[DEPTH]
            if depth == n - 2:
                status = _write(depth, n, rows, state, asked, block, results)
                if status != DONE:
                    return status
                cursor[DEPTH] = depth - 1
            elif levels[depth * LEVEL_FIELDS + L_RECORD] == levels[depth * LEVEL_FIELDS + L_RECORDS]:
                cursor[DEPTH] = depth - 1
            else:
                _extend(depth, n, n_groups, state, asked, block)
                cursor[DEPTH] = depth + 1
                if depth + 1 == n - 2:
                    _probe_last(depth + 1, n, n_groups, state, asked, block)
                else:
                    _probe(depth + 1, n, n_groups, state, asked, block)
        _remove(n, most, rows, state, block)
        cursor[ROW], cursor[PHASE] = cursor[LOCATED], LOCATING
    return DONE
