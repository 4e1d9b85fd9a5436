"""Ring indexes over leaf mappings (Algorithms 1 and 2); the indexes of several ports share a hash table.

Indexes of different ports over the same variables form a group: one hash table with open addressing, whose entries have
a ring for each index. So a mapping that arrives in a star join finds the partners of all inputs, and its own ring, by
one lookup.

`cells`     the ports' leaf mappings, row after row: column c of slot s of port p is at base[p] + s * width[p] + c.
`tables`    an entry: its key, then a word for each index of the group, the key's ring: the position of its oldest leaf
            in `rings` << 32 | whether it holds ids << 31 | log2 of its capacity << 26 | counter. A ring that never had
            two leaves has no run: its word has the slot of its leaf instead, and a capacity of 1. Where leaves are only
            counted (joins/semi_anti_join.py) it has the counter alone. An entry without leaves is deleted later (3.4).
`rings`     for each other ring a run of slots, a circular buffer with the oldest first; the counter is the stop. A run
            begins at a multiple of its length (arena.py), so a position in it gives its start. Element 0 is in no run.
`ring_ids`  the same memory as ids, two elements each. Where a port's leaves have only one column besides an index's key
            (its ID_COLUMN), and the kernel supports it, rings whose capacity reaches 2**IDS_FROM hold the ids of this
            column instead of slots. So the matches of a frequent key are contiguous, and are not looked up one by one.
`positions` for ports with retractions in any order: the position of a slot in the ring of each of its indexes.

`ports` (n, PORT_FIELDS), `indexes` (k, INDEX_FIELDS) and `groups` (g, GROUP_FIELDS) describe them, all flat. Functions that use
many of these get them together, as the RingArrays of ring_record.py.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat, jit_inline
from cqels_py.kernels.primitives.prefetch import prefetch
from cqels_py.kernels.primitives.state_record import int32s, int64s
from cqels_py.kernels.structures.arena import allocate_aligned, release
from cqels_py.kernels.structures.hashing import combine, mix
from cqels_py.kernels.structures.ring_record import CELLS, FREE, FREE_META, PORTS, open_rings

# Fields of a port. HEAD, LEAVES: of a FIFO port, the slot of the oldest leaf, and the number of leaves that follow it
# in the circular buffer. SINCE: of another port, where `since` begins (joins/multiway.py), else -1. KEY_COLUMN: the
# column that alone is the key of the port's first index; -1 if the key has several.
BASE, WIDTH, CAPACITY, FIFO, HEAD, LEAVES, FULL, FIRST_INDEX, LAST_INDEX, SINCE, KEY_COLUMN = range(11)
PORT_FIELDS = 11
RETRACTED = 1 << 16
# Fields of an index. MEMBER: the word of an entry that is its ring. IDS_FROM: log2 of the capacity from which rings
# hold ids, those of ID_COLUMN.
PORT, GROUP, MEMBER, KEY_FIRST, KEY_WIDTH, POSITIONS, IDS_FROM, ID_COLUMN = range(8)
INDEX_FIELDS = 8
NEVER = 31
"""IDS_FROM where all rings hold slots."""
SMALLEST_OF_IDS = 4
"""The least value of IDS_FROM."""
# Fields of a group. SIZE: slots of the hash table, less than 2**31. LIMIT: how many of them may be used. STRIDE: words
# of an entry, the first of which is the key.
TABLE, SIZE, USED, STRIDE, LIMIT = range(5)
GROUP_FIELDS = 5
# Why a kernel stopped.
DONE, OUT_FULL, TABLE_FULL, RINGS_FULL, RING_FULL, NOT_STORED, PARTNERS_FULL, LEAVES_FULL, STOP_ASKED = range(9)
# The upper bits of a 63-bit hash, read as a fraction.
_PART_BITS = np.int64(31)
_TO_PART = np.int64(63) - _PART_BITS
# The word of a ring.
_PLACE = np.int64(32)
_IDS = np.int64(1) << 31
_SIZE = np.int64(26)
_SIZE_MASK = np.int64(31)
_COUNT = (np.int64(1) << _SIZE) - 1
MOST_IN_RING = 1 << 25
RUN_SIZES = 28
"""Sizes of runs: the largest ring of ids takes twice as many elements as MOST_IN_RING."""
# Cursor of the kernels that process rows.
ROW, PHASE, DEPTH, OUT, AT, LOCATED, NOTED, PROBES = range(8)
CURSOR_FIELDS = 10
LOCATED_ROWS = 256
"""The entries of this many rows are looked up together."""
BRANCHLESS_PROBES = 2
"""The number of slots after the home slot that are probed without a branch; few keys are further away."""
LEAVES_AHEAD = 20
"""Distance, in leaves, between prefetching one and reading it."""
_LINE, _MOST_EXPECTED = 16, 128
NEAR_CELLS = 1 << 18
"""With at most this many cells, leaves are in the cache anyway and are not prefetched."""


@jit_inline
def ring_of(at, index, indexes):
    """The position of an index's word in the entry `at`."""
    return at + indexes[index * INDEX_FIELDS + MEMBER]


@jit_inline
def leaves_in(word):
    """The number of leaves in a ring."""
    return word & _COUNT


@jit_inline
def size_of(word):
    """log2 of the capacity of a ring."""
    return word >> _SIZE & _SIZE_MASK


@jit_inline
def holds_ids(word):
    """Does a ring hold ids instead of slots?"""
    return word & _IDS != 0


@jit_inline
def oldest_in(word):
    """The position of a ring's oldest leaf in `rings`."""
    return word >> _PLACE


@jit_inline
def open_ring(word):
    """The circular buffer of a ring: its first position in `rings`, its mask, the position of the oldest leaf in it,
    and the number of leaves."""
    mask = (np.int64(1) << size_of(word)) - 1
    oldest = word >> _PLACE
    return oldest & ~mask, mask, oldest & mask, word & _COUNT


@jit_inline
def slot_in(first, mask, position, rings):
    """The slot at a position of an open ring. Without a branch: which rings have a run is unpredictable."""
    slot = np.int64(rings[first + position if mask > 0 else 0])
    return slot if mask > 0 else first


@jit_inline
def word_of(place, size, count):
    """The word of a ring of slots."""
    return place << _PLACE | size << _SIZE | count


@jit_inline
def word_as(word, place, size, count):
    """The word of a ring that holds slots or ids, as `word` does."""
    return word_of(place, size, count) | (word & _IDS)


@jit_inline
def home_slot_in(key, size):
    """The home slot of a key in a table of any size: the hash, read as a fraction, of the size."""
    return (mix(key) >> _TO_PART) * size >> _PART_BITS


@jit_inline
def home_slot_of(key, groups, group):
    """The position in `tables` of the home slot of `key`."""
    place = home_slot_in(key, groups[group * GROUP_FIELDS + SIZE])
    return groups[group * GROUP_FIELDS + TABLE] + place * groups[group * GROUP_FIELDS + STRIDE]


@jit_inline
def find(tables, groups, group, key):
    """The position of the entry of `key` in `tables`, or -1."""
    return find_from(home_slot_of(key, groups, group), tables, groups, group, key)


@jit_inline
def find_from(at, tables, groups, group, key):
    """The position of the entry of `key`, probing from its home slot `at` on; or -1."""
    at = seek(at, tables, groups, group, key)
    return at if tables[at] != 0 else np.int64(-1)


@jit_inline
def seek(at, tables, groups, group, key):
    """The position of the entry of `key`, or of the free slot that ends its probe sequence, from its home slot `at` on."""
    base = groups[group * GROUP_FIELDS + TABLE]
    stride = groups[group * GROUP_FIELDS + STRIDE]
    end = base + groups[group * GROUP_FIELDS + SIZE] * stride
    return seek_between(base, end, stride, at, tables, key)


@jit_inline
def seek_between(base, end, stride, at, tables, key):
    """`seek` in a table that begins at `base` and ends at `end`."""
    there = tables[at]
    while there != key and there != 0:
        at += stride
        at = base if at == end else at
        there = tables[at]
    return at


@jit_inline
def occupy(at, tables, groups, group, key):
    """Make a free slot the entry of `key`. Returns its position, or -1 if the table is too full."""
    used = groups[group * GROUP_FIELDS + USED] + 1
    if used > groups[group * GROUP_FIELDS + LIMIT]:
        return np.int64(-1)
    tables[at] = key
    groups[group * GROUP_FIELDS + USED] = used
    return at


@jit_inline
def key_of_id(value):
    """The key for a single id: 0 would be that of a free slot."""
    return value if value != 0 else np.int64(1)


@jit_inline
def key_of_leaf(cells, leaf, key_columns, first, width):
    if width == 1:
        return key_of_id(cells[leaf + key_columns[first]])
    key = np.int64(width + 1)
    for k in range(first, first + width):
        key = combine(key, cells[leaf + key_columns[k]])
    return key | np.int64(1)


@jit_inline
def key_in(index, leaf, arrays):
    """The key of a leaf in an index."""
    first, width = arrays.indexes[index * INDEX_FIELDS + KEY_FIRST], arrays.indexes[index * INDEX_FIELDS + KEY_WIDTH]
    return key_of_leaf(arrays.cells, leaf, arrays.key_columns, first, width)


@jit_inline
def find_leaf(index, leaf, arrays):
    """The entry for the leaf's key in the group of the index, or -1."""
    key = key_in(index, leaf, arrays)
    return find(arrays.tables, arrays.groups, arrays.indexes[index * INDEX_FIELDS + GROUP], key)


@jit_inline
def prefetch_entry(at, stride, tables):
    """Prefetch an entry, whose end may be in another cache line than its start."""
    prefetch(tables, at)
    prefetch(tables, at + stride - 1)


@jit_inline
def prefetch_rings(p, at, words, tables, rings):
    """Prefetch the leaves that a row of port p is joined with, and the position at which it is inserted. The words of
    the entry are those of port 0, port 1 and so on."""
    for q in range(words):
        word = tables[at + 1 + q]
        first, mask, oldest, count = open_ring(word)
        # An id takes two elements of `rings`.
        double = np.int64(holds_ids(word))
        if q == p:
            prefetch(rings, (first + ((oldest + count) & mask)) << double)
            continue
        for i in range(0, min(count, _MOST_EXPECTED), _LINE >> double):
            prefetch(rings, (first + ((oldest + i) & mask)) << double)


@jit_flat
def _are_of_one_port(first, rows, row_port):
    others = np.int64(0)
    for row in range(np.uint64(first), np.uint64(first + rows)):
        others += np.int64(row_port[row] != row_port[first])
    return others == 0


@jit_flat
def _compute_keys_of_one_port(key_of_first, width, first, rows, row_slot, cells, located):
    """Compute the keys of rows of one port whose key is one column: that of slot 0 is at `key_of_first`."""
    start, to = np.uint64(first), np.uint64(LOCATED_ROWS + first % LOCATED_ROWS)
    for i in range(np.uint64(rows)):
        at = key_of_first + np.int64(row_slot[start + i]) * width
        # In a FIFO port the next leaves to be inserted or expired follow this one.
        prefetch(cells, at + LEAVES_AHEAD * width)
        located[to + i] = key_of_id(cells[at])


@jit_flat
def _compute_keys(first, many, rows, state):
    """Compute the keys of `many` rows from `first` on, in their ports' first indexes."""
    arrays = open_rings(state)
    ports, cells = arrays.ports, arrays.cells
    start, to = np.uint64(first), np.uint64(LOCATED_ROWS + first % LOCATED_ROWS)
    for i in range(np.uint64(many)):
        port = np.int64(rows.port[start + i]) * PORT_FIELDS
        width, key_column = ports[port + WIDTH], ports[port + KEY_COLUMN]
        leaf = ports[port + BASE] + np.int64(rows.slot[start + i]) * width
        # In a FIFO port the next leaves to be inserted or expired follow this one.
        prefetch(cells, leaf + LEAVES_AHEAD * width)
        if key_column >= 0:
            key = key_of_id(cells[leaf + key_column])
        else:
            key = key_in(ports[port + FIRST_INDEX], leaf, arrays)
        arrays.located[to + i] = key


@jit_flat
def _find_home_slots(place, rows, base, size, stride, located):
    """Compute the home slots of `rows` keys, from a position of `located` on."""
    at, keys = np.uint64(place), np.uint64(LOCATED_ROWS + place)
    for i in range(np.uint64(rows)):
        located[at + i] = base + home_slot_in(located[keys + i], size) * stride


@jit_flat
def _list_not_in_home_slot(first, many, stride, tables, located):
    """List the positions in `located` whose key is not in its home slot. Returns how many.

    Without a branch, as they are unpredictable: so many entries are loaded from memory at once.
    """
    keys, found = np.uint64(LOCATED_ROWS), np.uint64(2 * LOCATED_ROWS)
    for place in range(np.uint64(first), np.uint64(first + many)):
        home_slot = located[place]
        # The end of an entry may be in another cache line than its start.
        prefetch(tables, home_slot + stride - 1)
        located[found] = np.int64(place)
        found += np.uint64(tables[home_slot] != located[keys + place])
    return np.int64(found) - 2 * LOCATED_ROWS


@jit_flat
def probe_listed(steps, many, keys, base, size, stride, tables, located):
    """Probe the slot `steps` after the home slot for each of the `many` listed keys. Keys not found there stay listed.

    `located`: the home slots; from `keys` on the keys, in the same order; and from 2 * keys on the list of positions.
    Returns how many stay.
    """
    list_first = np.int64(2 * keys)
    found, end = list_first, base + size * stride
    for j in range(list_first, list_first + many):
        place = located[j]
        home_slot = located[place]
        behind = home_slot + steps * stride
        behind = behind if behind < end else behind - size * stride
        there = tables[behind] == located[keys + place]
        located[place] = behind if there else home_slot
        located[found] = place
        found += np.int64(not there)
    return found - list_first


@jit_flat
def search_listed(many, keys, first_place, each, first, row_sign, groups, group, tables, located):
    """Find or insert the entries of the `many` listed keys, probing from their home slots. Returns -1, or the row at
    which the table was full.

    Each row has `each` positions of `located`; row `first` is at `first_place`.
    """
    fields = group * GROUP_FIELDS
    base, stride = groups[fields + TABLE], groups[fields + STRIDE]
    end = base + groups[fields + SIZE] * stride
    for j in range(2 * keys, 2 * keys + many):
        place = located[j]
        key = located[keys + place]
        at = seek_between(base, end, stride, located[place], tables, key)
        if tables[at] == 0:
            row = first + (place - first_place) // each
            is_insert = row_sign[row] > 0
            at = occupy(at, tables, groups, group, key) if is_insert else np.int64(-1)
            if at < 0 and is_insert:
                return row
        located[place] = at
    return np.int64(-1)


@jit_flat
def find_entries(first, last, rows, state):
    """Find the entries of the keys of rows `first` to `last` - 1 in the group of the ports' first indexes, which is one
    for all ports.

    A row to insert gets a new entry if its key has none; -1: a row to retract whose key has none. The entry of row r is
    located[r % LOCATED_ROWS]. `last` is at most `end_of_run`. After the entries, `located` has as many elements for the
    keys, and as many for a list of rows. Returns the row before which the table became full, or `last`.
    """
    arrays = open_rings(state)
    ports, groups, tables, located = arrays.ports, arrays.groups, arrays.tables, arrays.located
    group = arrays.indexes[ports[FIRST_INDEX] * INDEX_FIELDS + GROUP]
    fields = group * GROUP_FIELDS
    base, size, stride = groups[fields + TABLE], groups[fields + SIZE], groups[fields + STRIDE]
    many, place, port = last - first, first % LOCATED_ROWS, np.int64(rows.port[first]) * PORT_FIELDS
    if ports[port + KEY_COLUMN] >= 0 and _are_of_one_port(first, many, rows.port):
        key_of_first = ports[port + BASE] + ports[port + KEY_COLUMN]
        _compute_keys_of_one_port(key_of_first, ports[port + WIDTH], first, many, rows.slot, arrays.cells, located)
    else:
        _compute_keys(first, many, rows, state)
    _find_home_slots(place, many, base, size, stride, located)
    listed = _list_not_in_home_slot(place, many, stride, tables, located)
    for steps in range(1, BRANCHLESS_PROBES + 1):
        listed = probe_listed(steps, listed, LOCATED_ROWS, base, size, stride, tables, located)
    short = search_listed(listed, LOCATED_ROWS, place, 1, first, rows.sign, groups, group, tables, located)
    last = short if short >= 0 else last
    arrays.cursor[PROBES] += last - first
    return last


@jit_inline
def end_of_run(row, rows):
    """The end of the rows that are looked up together with `row`."""
    return min((row // LOCATED_ROWS + 1) * LOCATED_ROWS, rows)


@jit_flat
def prefetch_rings_of(first, last, rows, stride, state, retract):
    """Prefetch the rings of rows whose entries are known: those of insertions, and with `retract` those of retractions."""
    arrays = open_rings(state)
    for row in range(first, last):
        if rows.sign[row] > 0 or retract:
            at = arrays.located[row % LOCATED_ROWS]
            prefetch_rings(np.int64(rows.port[row]), at, stride - 1, arrays.tables, arrays.rings)


@jit_inline
def is_empty(at, group, groups, tables):
    """Has no index a leaf in this entry?"""
    words = np.int64(0)
    for word in range(at + 1, at + groups[group * GROUP_FIELDS + STRIDE]):
        words |= tables[word]
    return words & _COUNT == 0


@jit_inline
def insert(index, at, leaf, slot, arrays):
    """Insert a leaf into a ring index. `at`: the entry of its key, or -1 if it is not known. Returns DONE, or why it
    stopped."""
    indexes, groups, tables = arrays.indexes, arrays.groups, arrays.tables
    if at < 0:
        group = indexes[index * INDEX_FIELDS + GROUP]
        key = key_in(index, leaf, arrays)
        at = seek(home_slot_of(key, groups, group), tables, groups, group, key)
        if tables[at] == 0:
            at = occupy(at, tables, groups, group, key)
            if at < 0:
                return TABLE_FULL
    ring = ring_of(at, index, indexes)
    status = push(ring, slot, tables, arrays.rings, arrays.ring_meta)
    place = indexes[index * INDEX_FIELDS + POSITIONS]
    if status == DONE and place >= 0:
        _, mask, oldest, count = open_ring(tables[ring])
        arrays.positions[place + slot] = (oldest + count - 1) & mask
    return status


@jit_inline
def push(ring, slot, tables, rings, ring_meta):
    """Append a slot to the ring whose word is at `ring`. Returns DONE, or why it stopped."""
    word = tables[ring]
    first, mask, oldest, count = open_ring(word)
    if count > mask:
        status = enlarge(ring, tables, rings, ring_meta)
        if status != DONE:
            return status
        word = tables[ring]
        first, mask, oldest, count = open_ring(word)
    rings[first + ((oldest + count) & mask) if mask > 0 else 0] = slot
    tables[ring] = word + 1 if mask > 0 else word_of(np.int64(slot), 0, 1)
    return np.int64(DONE)


@jit_inline
def pop(ring, tables):
    """Remove the oldest slot from the ring whose word is at `ring`."""
    word = tables[ring]
    first, mask, oldest, _ = open_ring(word)
    step = (first | ((oldest + 1) & mask)) - (first | oldest)
    tables[ring] = word + (step << _PLACE) - 1


@jit_flat
def enlarge(ring, tables, rings, ring_meta):
    """Move the full ring whose word is at `ring` to a run of twice its capacity. Returns DONE, or why it stopped."""
    word = tables[ring]
    first, mask, oldest, count = open_ring(word)
    size = size_of(word)
    if mask + 1 == MOST_IN_RING:
        return RING_FULL
    larger = allocate_aligned(rings, ring_meta, size + 1)
    if larger < 0:
        return RINGS_FULL
    for i in range(count):
        rings[larger + i] = slot_in(first, mask, (oldest + i) & mask, rings)
    if size > 0:
        release(rings, ring_meta, first, size)
    tables[ring] = word_of(larger, size + 1, count)
    return DONE


@jit_inline
def push_leaf(ring, slot, index, port, arrays):
    """Append a leaf to a ring that may hold ids; the port's fields begin at `port`. Returns DONE, or why it stopped."""
    tables, ports = arrays.tables, arrays.ports
    word = tables[ring]
    first, mask, oldest, count = open_ring(word)
    if count > mask:
        status = enlarge_to_ids(ring, index, port, arrays.state)
        if status != DONE:
            return status
        word = tables[ring]
        first, mask, oldest, count = open_ring(word)
    place = first + ((oldest + count) & mask) if mask > 0 else 0
    if holds_ids(word):
        leaf = ports[port + BASE] + slot * ports[port + WIDTH]
        arrays.ring_ids[place] = arrays.cells[leaf + arrays.indexes[index * INDEX_FIELDS + ID_COLUMN]]
    else:
        arrays.rings[place] = slot
    tables[ring] = word + 1 if mask > 0 else word_of(np.int64(slot), 0, 1)
    return np.int64(DONE)


@jit_flat
def enlarge_to_ids(ring, index, port, state):
    """`enlarge` for a ring that holds ids, or may do so from now on."""
    arrays = open_rings(state)
    tables, rings, ring_ids, ring_meta = arrays.tables, arrays.rings, arrays.ring_ids, arrays.ring_meta
    word, base, width = tables[ring], arrays.ports[port + BASE], arrays.ports[port + WIDTH]
    ids_from, id_column = (
        arrays.indexes[index * INDEX_FIELDS + IDS_FROM],
        arrays.indexes[index * INDEX_FIELDS + ID_COLUMN],
    )
    first, mask, oldest, count = open_ring(word)
    size = size_of(word)
    if not holds_ids(word) and size + 1 < ids_from:
        return enlarge(ring, tables, rings, ring_meta)
    if mask + 1 == MOST_IN_RING:
        return RING_FULL
    larger = allocate_aligned(rings, ring_meta, size + 2)
    if larger < 0:
        return RINGS_FULL
    larger >>= 1
    for i in range(count):
        place = (oldest + i) & mask
        if holds_ids(word):
            ring_ids[larger + i] = ring_ids[first + place]
        else:
            ring_ids[larger + i] = arrays.cells[base + slot_in(first, mask, place, rings) * width + id_column]
    tables[ring] = word_of(larger, size + 1, count) | _IDS
    _release_run(word, rings, ring_meta)
    return np.int64(DONE)


@jit_inline
def _release_run(word, rings, ring_meta):
    """Free the run of a ring, if it has one."""
    first, size, double = open_ring(word)[0], size_of(word), np.int64(holds_ids(word))
    if size > 0:
        release(rings, ring_meta, first << double, size + double)


@jit_inline
def remove(index, at, slot, arrays):
    """Remove a leaf from a ring index, at the entry `at`: the oldest where leaves expire in FIFO order, else the one in
    `slot`."""
    tables, rings, positions = arrays.tables, arrays.rings, arrays.positions
    ring, of_index = ring_of(at, index, arrays.indexes), arrays.indexes[index * INDEX_FIELDS + POSITIONS]
    if of_index < 0:
        pop(ring, tables)
        return
    # Such a ring always starts at position 0: its last slot is moved to the position that is free now.
    first, mask, _, count = open_ring(tables[ring])
    place = np.int64(positions[of_index + slot])
    last = slot_in(first, mask, count - 1, rings)
    rings[first + place if mask > 0 else 0] = last
    positions[of_index + last] = place
    tables[ring] -= 1


@jit_inline
def equal_leaf(index, base, leaf, width, arrays, since, since_first):
    """The slot of a stored leaf with the same ids as the cells at `leaf`, through the index over all columns, or -1.

    `since` from `since_first` on: for each slot a word that is at least RETRACTED if its leaf is retracted already; -1: no
    leaf is.
    """
    cells, rings = arrays.cells, arrays.rings
    at = find_leaf(index, leaf, arrays)
    if at < 0:
        return np.int64(-1)
    first, mask, _, count = open_ring(arrays.tables[ring_of(at, index, arrays.indexes)])
    i = count - 1
    while i >= 0:
        slot = slot_in(first, mask, i, rings)
        same = since_first < 0 or since[since_first + slot] < RETRACTED
        for c in range(width):
            same = same and cells[base + slot * width + c] == cells[leaf + c]
        if same:
            return slot
        i -= 1
    return np.int64(-1)


@jit_flat
def count_live(groups, tables, live):
    """Count the entries with a leaf in each group."""
    for group in range(len(live)):
        base, stride = groups[group * GROUP_FIELDS + TABLE], groups[group * GROUP_FIELDS + STRIDE]
        for position in range(groups[group * GROUP_FIELDS + SIZE]):
            live[group] += np.int64(not is_empty(base + position * stride, np.int64(group), groups, tables))


@jit_inline
def _free_rings(at, stride, tables, rings, ring_meta):
    """Free the runs of an entry without leaves."""
    for word in range(1, stride):
        _release_run(tables[at + word], rings, ring_meta)


@jit_inline
def _clear_gone(first, many, base, stride, tables, rings, ring_meta, live):
    """Clear those of `many` entries, from position `first` on, that have no leaves. Writes the positions of the others
    to `live` and returns how many there are."""
    start, step, entries = np.uint64(base + first * stride), np.uint64(stride), np.uint64(many)
    # Word by word and without a branch: which keys have no leaves is unpredictable.
    for i in range(entries):
        live[i] = 0
    for word in range(np.uint64(1), step):
        for i in range(entries):
            live[i] |= tables[start + i * step + word]
    for i in range(entries):
        if live[i] & _COUNT == 0 and size_of(live[i]) != 0:
            _free_rings(np.int64(start + i * step), stride, tables, rings, ring_meta)
    for word in range(step):
        for i in range(entries):
            tables[start + i * step + word] &= -np.int64(live[i] & _COUNT != 0)
    found = np.uint64(0)
    for i in range(entries):
        is_live = live[i] & _COUNT != 0
        live[found] = np.int64(start + i * step)
        found += np.uint64(is_live)
    return found


@jit_flat
def purge(groups, tables, rings, ring_meta, live):
    """Delete all entries without leaves at once (3.4), and shift the others back in their probe sequences.

    `live`: space for the positions of some entries at a time.
    """
    for group in range(len(groups) // GROUP_FIELDS):
        base, stride = groups[group * GROUP_FIELDS + TABLE], groups[group * GROUP_FIELDS + STRIDE]
        size = groups[group * GROUP_FIELDS + SIZE]
        used, start = np.uint64(0), np.int64(0)
        # There always is a free slot. No entry after it belongs before it.
        while tables[base + start * stride] != 0:
            start += 1
        first, end = start + 1, start + size
        while first < end:
            # Wrap around.
            here, stop = (first, size) if first < size else (first - size, end - size)
            many = min(len(live), stop - here)
            found = _clear_gone(here, many, base, stride, tables, rings, ring_meta, live)
            for i in range(found):
                at = np.uint64(live[i])
                to = np.uint64(base + home_slot_in(tables[at], size) * stride)
                while to != at and tables[to] != 0:
                    to += np.uint64(stride)
                    to = np.uint64(base) if to == np.uint64(base + size * stride) else to
                if to != at:
                    for word in range(np.uint64(stride)):
                        tables[to + word] = tables[at + word]
                        tables[at + word] = 0
            used += found
            first += many
        groups[group * GROUP_FIELDS + USED] = np.int64(used)


@jit_flat
def enter_tables(old_tables, groups, new_tables, new_base, new_size, rings, ring_meta):
    """Insert all live entries into larger tables; rings of entries without leaves are freed."""
    for group in range(len(new_base)):
        used = np.int64(0)
        base = groups[group * GROUP_FIELDS + TABLE]
        stride = groups[group * GROUP_FIELDS + STRIDE]
        for position in range(groups[group * GROUP_FIELDS + SIZE]):
            at = base + position * stride
            if old_tables[at] == 0:
                continue
            if is_empty(at, np.int64(group), groups, old_tables):
                _free_rings(at, stride, old_tables, rings, ring_meta)
                continue
            place = home_slot_in(old_tables[at], new_size[group])
            while new_tables[new_base[group] + place * stride] != 0:
                place = place + 1 if place + 1 < new_size[group] else np.int64(0)
            for word in range(stride):
                new_tables[new_base[group] + place * stride + word] = old_tables[at + word]
            used += 1
        groups[group * GROUP_FIELDS + TABLE] = new_base[group]
        groups[group * GROUP_FIELDS + SIZE] = new_size[group]
        groups[group * GROUP_FIELDS + USED] = used


@jit_inline
def _least_size(word):
    """log2 of the capacity that a ring needs for its leaves. A ring of ids has a run even for one leaf. A ring without
    a run, whose leaves may only be counted, needs none."""
    count, size = leaves_in(word) if size_of(word) > 0 else np.int64(0), np.int64(0)
    while np.int64(1) << size < count:
        size += 1
    return max(size, np.int64(1)) if holds_ids(word) and count > 0 else size


@jit_inline
def _least_run(word):
    """log2 of the elements of `rings` that this takes; 0: none."""
    size = _least_size(word)
    return size + np.int64(holds_ids(word)) if size > 0 else size


@jit_flat
def count_least_places(groups, tables, runs):
    """How many elements all rings need, those of slots and those of ids, and the most that one of them will request
    when it grows.

    `runs` (RUN_SIZES): the number of runs by log2 of their size.
    """
    for size in range(RUN_SIZES):
        runs[size] = 0
    of_slots, of_ids, next_run = np.int64(0), np.int64(0), np.int64(1)
    for group in range(len(groups) // GROUP_FIELDS):
        base, stride = groups[group * GROUP_FIELDS + TABLE], groups[group * GROUP_FIELDS + STRIDE]
        for position in range(groups[group * GROUP_FIELDS + SIZE]):
            for member in range(1, stride):
                word = tables[base + position * stride + member]
                run = _least_run(word)
                runs[run] += 1
                places = np.int64(1) << run if run > 0 else np.int64(0)
                of_ids += places if holds_ids(word) else np.int64(0)
                of_slots += np.int64(0) if holds_ids(word) else places
                # A ring that begins to hold ids gets four times as many elements.
                begins = not holds_ids(word) and run + 1 >= SMALLEST_OF_IDS
                next_run = max(next_run, run + 1 + np.int64(begins))
    return of_slots, of_ids, np.int64(1) << next_run


@jit_flat
def move_rings(groups, tables, runs, any_order, rings, ring_ids, new_rings, new_ids, new_meta):
    """Move all rings to a new arena, with the least capacity they need.

    Runs begin at multiples of their length. If the arena has twice the elements they need, they may be moved in any
    order (`any_order`); else the largest are moved first, so that there are no gaps between them. `runs`: as written by
    `count_least_places`.
    """
    for run in range(RUN_SIZES - 1, -1, -1):
        if runs[run] == 0 and not any_order:
            continue
        for group in range(len(groups) // GROUP_FIELDS):
            base, stride = groups[group * GROUP_FIELDS + TABLE], groups[group * GROUP_FIELDS + STRIDE]
            for position in range(groups[group * GROUP_FIELDS + SIZE]):
                for member in range(1, stride):
                    at = base + position * stride + member
                    if size_of(tables[at]) > 0 and (any_order or _least_run(tables[at]) == run):
                        _move_ring(at, tables, rings, ring_ids, new_rings, new_ids, new_meta)
        if any_order:
            return


@jit_inline
def _move_ring(at, tables, rings, ring_ids, new_rings, new_ids, new_meta):
    word = tables[at]
    first, mask, oldest, count = open_ring(word)
    run = _least_run(word)
    if run == 0:
        slot = slot_in(first, mask, oldest, rings) if count > 0 else np.int64(0)
        tables[at] = word_of(slot, np.int64(0), count)
        return
    place = allocate_aligned(new_rings, new_meta, run)
    if holds_ids(word):
        place >>= 1
        for i in range(count):
            new_ids[place + i] = ring_ids[first + ((oldest + i) & mask)]
    else:
        for i in range(count):
            new_rings[place + i] = rings[first + ((oldest + i) & mask)]
    tables[at] = word_as(word, place, _least_size(word), count)


@jit_flat
def renumber_slots(port, ports, indexes, groups, tables, rings, slots):
    """Renumber the slots in a port's rings: `slots` has the new one by the former one."""
    for index in range(ports[port * PORT_FIELDS + FIRST_INDEX], ports[port * PORT_FIELDS + LAST_INDEX]):
        group = indexes[index * INDEX_FIELDS + GROUP]
        stride = groups[group * GROUP_FIELDS + STRIDE]
        for position in range(groups[group * GROUP_FIELDS + SIZE]):
            at = groups[group * GROUP_FIELDS + TABLE] + position * stride
            ring = ring_of(at, index, indexes)
            first, mask, oldest, count = open_ring(tables[ring])
            # Rings of ids, and those whose leaves are only counted, have no slots.
            if holds_ids(tables[ring]) or count > mask + 1:
                continue
            for i in range(count):
                place = (oldest + i) & mask
                slot = np.int64(slots[slot_in(first, mask, place, rings)])
                if mask > 0:
                    rings[first + place] = slot
                else:
                    tables[ring] = word_of(slot, 0, count)


@jit_flat
def load(port, state, columns, sign, row_slot):
    """Write a port's input rows (width, n) to its leaf cells, and their slots to `row_slot`. Returns DONE, or LEAVES_FULL if there
    is no room for them, with all as it was.

    In a FIFO port a retraction is of the oldest leaf, whose slot is not used again before the step has ended. In another port it
    gets a temporary slot, for comparison with the stored leaves: there the free slots are in a stack in `free` (n, as many as a port
    has at most), whose height is in `free_meta`.
    """
    ports = int64s(state, PORTS)
    if ports[port * PORT_FIELDS + FIFO] != 0:
        return _load_fifo(
            ports[port * PORT_FIELDS : (port + 1) * PORT_FIELDS], int64s(state, CELLS), columns, sign, row_slot
        )
    cells, free, free_meta = int64s(state, CELLS), int32s(state, FREE), int64s(state, FREE_META)
    base, width, rows = ports[port * PORT_FIELDS + BASE], ports[port * PORT_FIELDS + WIDTH], len(sign)
    if free_meta[port] < rows:
        return np.int64(LEAVES_FULL)
    top = port * (len(free) // len(free_meta)) + free_meta[port] - 1
    for row in range(rows):
        slot = np.int64(free[top - row])
        row_slot[row] = np.int32(slot)
        for c in range(width):
            cells[base + slot * width + c] = columns[c, row]
    free_meta[port] -= rows
    return np.int64(DONE)


@jit_flat
def _load_fifo(port, cells, columns, sign, row_slot):
    """`load` for a FIFO port with these fields."""
    base, width, capacity, head, leaves = port[BASE], port[WIDTH], port[CAPACITY], port[HEAD], port[LEAVES]
    tail = head + leaves
    tail -= capacity if tail >= capacity else np.int64(0)
    # Scratch until the slots are written: the rows that are insertions.
    inserts = _list_inserts(sign, row_slot)
    if leaves + inserts > capacity:
        return np.int64(LEAVES_FULL)
    for c in range(width):
        _load_column(c, base + c, width, capacity, tail, inserts, columns, row_slot, cells)
    _note_slots(head, tail, capacity, sign, row_slot)
    expired = len(sign) - inserts
    head += expired
    port[HEAD] = head - capacity if head >= capacity else head
    port[LEAVES] = leaves + inserts - expired
    return np.int64(DONE)


@jit_flat
def _list_inserts(sign, insert_rows):
    """Write the numbers of the insertions to the start of `insert_rows` (n). Returns how many there are.

    Without a branch: where a time window's retractions and insertions alternate is unpredictable.
    """
    inserts = np.int64(0)
    for row in range(len(sign)):
        insert_rows[inserts] = np.int32(row)
        inserts += np.int64(sign[row] > 0)
    return inserts


@jit_inline
def _load_column(c, first, width, capacity, tail, inserts, columns, insert_rows, cells):
    """Write column c of the insertions to consecutive slots of a circular buffer, from the tail on."""
    straight = min(inserts, capacity - tail)
    at = first + tail * width
    for i in range(straight):
        cells[at + i * width] = columns[c, insert_rows[i]]
    for i in range(inserts - straight):
        cells[first + i * width] = columns[c, insert_rows[straight + i]]


@jit_flat
def _note_slots(head, tail, capacity, sign, row_slot):
    """Insertions get the slots from the tail on, retractions have those from the head on.

    A row's slot depends only on the number of insertions before it, so that no row waits for an earlier one to wrap
    around.
    """
    inserts = np.int64(0)
    for row in range(len(sign)):
        is_insert = sign[row] > 0
        slot = tail + inserts if is_insert else head + row - inserts
        row_slot[row] = np.int32(slot - capacity if slot >= capacity else slot)
        inserts += np.int64(is_insert)
