"""Ring indexes over leaf mappings (Algorithms 1 and 2), several of which share one table.

Indexes of different ports over the same variables form a group: one open-addressing table, whose entry has a ring for each
of them. What arrives in a star join so finds the partners of all inputs, and its own ring, by one lookup.

`cells`   the ports' leaf mappings, row after row: port p, slot s, column c is at base[p] + s * width[p] + c.
`tables`  an entry: its key, then a word for each index of the group, the key's ring: the place of its oldest leaf in `rings` << 32
          | whether it holds ids << 31 | log2 of its capacity << 26 | counter. A ring that has had no two leaves needs no places:
          its word has the slot of its leaf instead, and a capacity of 1; where leaves are just counted (kernels/negation.py) it
          has the counter alone. An entry without leaves awaits deletion (3.4).
`rings`   for each other ring a contiguous circular run of slots, oldest first; the counter is the stop. A run begins at a multiple
          of its length (kernels/arena.py), so that a place in it says where. Place 0 is in no run.
`ring_ids` the same memory as ids, two places each: where a port's leaves have but one column beside an index's key (its ID_COLUMN),
          and the kernel of a star or a tree asks, rings that come to have 2**IDS_FROM places hold its ids instead of slots from
          then on. So the matches of a key that has many stand side by side, and are not looked up one by one.
`positions` for ports that retract in any order: where a slot stands in the ring of each of its indexes.

`ports` (n, PORT_FIELDS), `indexes` (k, INDEX_FIELDS) and `groups` (g, GROUP_FIELDS) describe them, all flat.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat, jit_inline
from cqels_py.kernels.primitives.prefetch import prefetch
from cqels_py.kernels.structures.arena import allocate_aligned, release
from cqels_py.kernels.structures.hashing import combine, mix

# ports
# HEAD, LEAVES: of a port in order, the slot of the oldest leaf, and how many follow each other from there on, round the end;
# SINCE: of one without order, where `since` begins that kernels/join.py describes, else -1
# KEY_COLUMN: that which alone makes the key in its first index; -1 if several do
BASE, WIDTH, CAPACITY, FIFO, HEAD, LEAVES, FULL, FIRST_INDEX, LAST_INDEX, SINCE, KEY_COLUMN = range(11)
PORT_FIELDS = 11
GONE = 1 << 16
# indexes; MEMBER: which word of an entry is theirs; IDS_FROM: log2 of the capacity with which rings begin to hold ids, of ID_COLUMN
PORT, GROUP, MEMBER, KEY_FIRST, KEY_WIDTH, POSITIONS, IDS_FROM, ID_COLUMN = range(8)
INDEX_FIELDS = 8
NEVER = 31
"""IDS_FROM where rings hold slots, whatever their size."""
SMALLEST_OF_IDS = 4
"""The least that IDS_FROM may be."""
# groups; SIZE: entries of the table, less than 2**31; LIMIT: so many of them may be used; STRIDE: words of an entry, the first of
# which is the key
TABLE, SIZE, USED, STRIDE, LIMIT = range(5)
GROUP_FIELDS = 5
# why a kernel stopped
DONE, OUT_FULL, TABLE_FULL, RINGS_FULL, RING_FULL, NOT_STORED, PARTNERS_FULL = range(7)
# of a hash of 63 bits the upper ones are a part of one
_PART_BITS = np.int64(31)
_TO_PART = np.int64(63) - _PART_BITS
# the word of a ring
_PLACE = np.int64(32)
_IDS = np.int64(1) << 31
_SIZE = np.int64(26)
_SIZE_MASK = np.int64(31)
_COUNT = (np.int64(1) << _SIZE) - 1
MOST_IN_RING = 1 << 25
RUN_SIZES = 28
"""A ring of most ids takes twice as many places."""
# cursor of the kernels that take in rows
ROW, PHASE, DEPTH, OUT, AT, LOCATED, NOTED, PROBES = range(8)
CURSOR_FIELDS = 10
LOCATED_ROWS = 256
"""So many rows are located together."""
NEAR_HOME = 2
"""So many places behind its home a key is looked for without a jump: few are further from it."""
LEAVES_AHEAD = 20
"""Leaves between asking for one and reading it."""
_LINE, _MOST_EXPECTED = 16, 128
NEAR_CELLS = 1 << 18
"""With no more cells than these, what an entry leads to is near in any case."""
_LOOKED_AT = np.int64(32)
_ONE, _TWO = np.uint64(1), np.uint64(2)


@jit_inline
def ring_of(at, index, indexes):
    """Where the word of an index stands in the entry `at`."""
    return at + indexes[index * INDEX_FIELDS + MEMBER]


@jit_inline
def leaves_in(word):
    """How many leaves a ring has."""
    return word & _COUNT


@jit_inline
def size_of(word):
    """log2 of the capacity of a ring."""
    return word >> _SIZE & _SIZE_MASK


@jit_inline
def holds_ids(word):
    """Has a ring ids in its places instead of slots?"""
    return word & _IDS != 0


@jit_inline
def oldest_in(word):
    """Where the slot of a ring's oldest leaf stands in `rings`."""
    return word >> _PLACE


@jit_inline
def open_ring(word):
    """Where the slots of a ring stand in `rings`: the first place, a mask, the position of the oldest, and how many."""
    mask = (np.int64(1) << size_of(word)) - 1
    oldest = word >> _PLACE
    return oldest & ~mask, mask, oldest & mask, word & _COUNT


@jit_inline
def slot_in(first, mask, position, rings):
    """The slot at a position of an open ring. Without a jump: nobody can foresee which rings have a run of places."""
    slot = np.int64(rings[first + position if mask > 0 else 0])
    return slot if mask > 0 else first


@jit_inline
def word_of(place, size, count):
    """Of a ring of slots."""
    return place << _PLACE | size << _SIZE | count


@jit_inline
def word_as(word, place, size, count):
    """Of a ring that holds what another one does, slots or ids."""
    return word_of(place, size, count) | (word & _IDS)


@jit_inline
def home_in(key, size):
    """The home of a key in a table of any size: its hash as a part of one, of the size."""
    return (mix(key) >> _TO_PART) * size >> _PART_BITS


@jit_inline
def home_of(key, groups, group):
    """Where the entry of `key` starts in `tables` if no other is in its way."""
    place = home_in(key, groups[group * GROUP_FIELDS + SIZE])
    return groups[group * GROUP_FIELDS + TABLE] + place * groups[group * GROUP_FIELDS + STRIDE]


@jit_inline
def find(tables, groups, group, key):
    """Where the entry of `key` starts in `tables`, or -1."""
    return find_from(home_of(key, groups, group), tables, groups, group, key)


@jit_inline
def find_from(at, tables, groups, group, key):
    """The same, from the home of `key` on."""
    at = seek(at, tables, groups, group, key)
    return at if tables[at] != 0 else np.int64(-1)


@jit_inline
def seek(at, tables, groups, group, key):
    """Where the entry of `key` starts, or the free one that it would have; from the home of `key` on."""
    base = groups[group * GROUP_FIELDS + TABLE]
    stride = groups[group * GROUP_FIELDS + STRIDE]
    end = base + groups[group * GROUP_FIELDS + SIZE] * stride
    return seek_between(base, end, stride, at, tables, key)


@jit_inline
def seek_between(base, end, stride, at, tables, key):
    """The same in a table that begins and ends there."""
    there = tables[at]
    while there != key and there != 0:
        at += stride
        at = base if at == end else at
        there = tables[at]
    return at


@jit_inline
def occupy(at, tables, groups, group, key):
    """A free entry becomes that of `key`; returns its start, or -1 if the table is too full."""
    used = groups[group * GROUP_FIELDS + USED] + 1
    if used > groups[group * GROUP_FIELDS + LIMIT]:
        return np.int64(-1)
    tables[at] = key
    groups[group * GROUP_FIELDS + USED] = used
    return at


@jit_inline
def key_of_id(value):
    """The key that an id alone makes: 0 is that of a free entry."""
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
def key_in(index, leaf, indexes, key_columns, cells):
    """The key that a leaf has in an index."""
    at = index * INDEX_FIELDS
    return key_of_leaf(cells, leaf, key_columns, indexes[at + KEY_FIRST], indexes[at + KEY_WIDTH])


@jit_inline
def find_leaf(index, indexes, groups, key_columns, cells, leaf, tables):
    """The entry that the leaf's key has in the group of the index, or -1."""
    key = key_in(index, leaf, indexes, key_columns, cells)
    return find(tables, groups, indexes[index * INDEX_FIELDS + GROUP], key)


@jit_inline
def expect_entry(at, stride, tables):
    """Have an entry come nearer: its end may stand in another line of the cache than its start."""
    prefetch(tables, at)
    prefetch(tables, at + stride - 1)


@jit_inline
def expect_rings(p, at, words, tables, rings):
    """Have the leaves come nearer that a row of port p is joined with, and the place where it enters. The entry's words are those of
    port 0, port 1 and so on."""
    for q in range(words):
        word = tables[at + 1 + q]
        first, mask, oldest, count = open_ring(word)
        # An id takes two places.
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
def _note_keys_of_one_port(key_of_first, width, first, rows, row_slot, cells, located):
    """The keys of rows of a port whose leaves have them in one place: the leaf in slot 0 at `key_of_first`."""
    start, to = np.uint64(first), np.uint64(LOCATED_ROWS + first % LOCATED_ROWS)
    for i in range(np.uint64(rows)):
        at = key_of_first + np.int64(row_slot[start + i]) * width
        # In a port in order the next leaves that come, or go, follow this one.
        prefetch(cells, at + LEAVES_AHEAD * width)
        located[to + i] = key_of_id(cells[at])


@jit_flat
def _note_keys(first, rows, row_port, row_slot, ports, indexes, key_columns, cells, located):
    """The keys that so many rows from `first` on have in their ports' first indexes."""
    start, to = np.uint64(first), np.uint64(LOCATED_ROWS + first % LOCATED_ROWS)
    for i in range(np.uint64(rows)):
        port = np.int64(row_port[start + i]) * PORT_FIELDS
        width, key_column = ports[port + WIDTH], ports[port + KEY_COLUMN]
        leaf = ports[port + BASE] + np.int64(row_slot[start + i]) * width
        # In a port in order the next leaves that come, or go, follow this one.
        prefetch(cells, leaf + LEAVES_AHEAD * width)
        if key_column >= 0:
            key = key_of_id(cells[leaf + key_column])
        else:
            key = key_in(ports[port + FIRST_INDEX], leaf, indexes, key_columns, cells)
        located[to + i] = key


@jit_flat
def _note_homes(place, rows, base, size, stride, located):
    """Where the entries of so many keys are, from a place of `located` on, if no other is in their way."""
    at, keys = np.uint64(place), np.uint64(LOCATED_ROWS + place)
    for i in range(np.uint64(rows)):
        located[at + i] = base + home_in(located[keys + i], size) * stride


@jit_flat
def _list_not_at_home(first, many, stride, tables, located):
    """List the places of `located` where a key's entry is somewhere else, or none; returns how many they are.

    Without a jump, as nobody can foresee which they are: so many entries are on their way from memory at once.
    """
    keys, found = np.uint64(LOCATED_ROWS), np.uint64(2 * LOCATED_ROWS)
    for place in range(np.uint64(first), np.uint64(first + many)):
        home = located[place]
        # The end of an entry may stand in another line of the cache than its start.
        prefetch(tables, home + stride - 1)
        located[found] = np.int64(place)
        found += np.uint64(tables[home] != located[keys + place])
    return np.int64(found) - 2 * LOCATED_ROWS


@jit_flat
def list_not_behind(steps, many, keys, base, size, stride, tables, located):
    """Of the keys listed, so many, those whose entry is so many places behind their home have found it; the others stay listed.

    `located`: the homes, the keys from place `keys` on, in the same order, and from 2 * keys on the list of places.
    """
    list_first = np.int64(2 * keys)
    found, end = list_first, base + size * stride
    for j in range(list_first, list_first + many):
        place = located[j]
        home = located[place]
        behind = home + steps * stride
        behind = behind if behind < end else behind - size * stride
        there = tables[behind] == located[keys + place]
        located[place] = behind if there else home
        located[found] = place
        found += np.int64(not there)
    return found - list_first


@jit_flat
def search_listed(many, keys, first_place, each, first, row_sign, groups, group, tables, located):
    """Find the entries of the keys listed, so many, from their homes on. -1: there was room for all; else up to which row.

    Each row has so many places of `located`; row `first` is at `first_place`.
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
            comes = row_sign[row] > 0
            at = occupy(at, tables, groups, group, key) if comes else np.int64(-1)
            if at < 0 and comes:
                return row
        located[place] = at
    return np.int64(-1)


@jit_inline
def _are_in_runs(place, rows, located):
    """Do most of so many rows, from a place of `located` on, have the key of one of the two before them? The first ones tell."""
    keys, again, looked_at = np.uint64(LOCATED_ROWS + place), np.int64(0), min(np.int64(rows), _LOOKED_AT)
    for i in range(np.uint64(2), np.uint64(looked_at)):
        key = located[keys + i]
        again += np.int64((key == located[keys + i - _ONE]) | (key == located[keys + i - _TWO]))
    return 2 * again > looked_at


@jit_flat
def _search_runs(first, rows, row_sign, groups, group, tables, located, cursor):
    """Find the entries of rows that share keys, from their homes on: one with the key of the last one of its sign, as the triples of
    an observation that arrive, or leave, together, needs no lookup. Returns up to which row there was room in the table."""
    fields = group * GROUP_FIELDS
    base, stride = groups[fields + TABLE], groups[fields + STRIDE]
    end = base + groups[fields + SIZE] * stride
    place = np.uint64(first % LOCATED_ROWS)
    for i in range(np.uint64(rows)):
        expect_entry(located[place + i], stride, tables)
    come_key, come_at, gone_key, gone_at = np.int64(0), np.int64(-1), np.int64(0), np.int64(-1)
    for i in range(np.uint64(rows)):
        key, comes = located[np.uint64(LOCATED_ROWS) + place + i], row_sign[np.uint64(first) + i] > 0
        if key == (come_key if comes else gone_key):
            at = come_at if comes else gone_at
        elif key == come_key:
            at, gone_key, gone_at = come_at, key, come_at
        else:
            at = seek_between(base, end, stride, located[place + i], tables, key)
            if tables[at] == 0:
                at = occupy(at, tables, groups, group, key) if comes else np.int64(-1)
                if at < 0 and comes:
                    return np.int64(np.uint64(first) + i)
            cursor[PROBES] += 1
            if comes:
                come_key, come_at = key, at
            elif at >= 0:
                gone_key, gone_at = key, at
        located[place + i] = at
    return np.int64(first + rows)


@jit_flat
def locate(
    first, last, row_port, row_slot, row_sign, ports, indexes, groups, key_columns, cells, tables, located, cursor
):  # fmt: skip
    """Find where rows `first` to `last` - 1 have their key's entry in the group of the ports' first indexes, which is one.

    A mapping that comes gets an entry if its key has none; -1: one that goes has none. That of row r is located[r % LOCATED_ROWS];
    `last` is at most what `end_of_run` says, and behind the entries there are as many places for their keys, and as many to list
    rows. Returns up to which row there was room in the table. Where rows share keys one lookup serves for several.
    """
    group = indexes[ports[FIRST_INDEX] * INDEX_FIELDS + GROUP]
    fields = group * GROUP_FIELDS
    base, size, stride = groups[fields + TABLE], groups[fields + SIZE], groups[fields + STRIDE]
    rows, place, port = last - first, first % LOCATED_ROWS, np.int64(row_port[first]) * PORT_FIELDS
    if ports[port + KEY_COLUMN] >= 0 and _are_of_one_port(first, rows, row_port):
        key_of_first = ports[port + BASE] + ports[port + KEY_COLUMN]
        _note_keys_of_one_port(key_of_first, ports[port + WIDTH], first, rows, row_slot, cells, located)
    else:
        _note_keys(first, rows, row_port, row_slot, ports, indexes, key_columns, cells, located)
    _note_homes(place, rows, base, size, stride, located)
    if _are_in_runs(place, rows, located):
        return _search_runs(first, rows, row_sign, groups, group, tables, located, cursor)
    many = _list_not_at_home(place, rows, stride, tables, located)
    for steps in range(1, NEAR_HOME + 1):
        many = list_not_behind(steps, many, LOCATED_ROWS, base, size, stride, tables, located)
    short = search_listed(many, LOCATED_ROWS, place, 1, first, row_sign, groups, group, tables, located)
    last = short if short >= 0 else last
    cursor[PROBES] += last - first
    return last


@jit_inline
def end_of_run(row, rows):
    """Up to which row those from `row` on are located together."""
    return min((row // LOCATED_ROWS + 1) * LOCATED_ROWS, rows)


@jit_flat
def expect_rings_of(first, last, row_port, row_sign, stride, tables, located, rings, retract):
    """Have the rings come nearer that located rows ask for: those that come, and those that go if `retract`."""
    for row in range(first, last):
        if row_sign[row] > 0 or retract:
            expect_rings(np.int64(row_port[row]), located[row % LOCATED_ROWS], stride - 1, tables, rings)


@jit_inline
def is_empty(at, group, groups, tables):
    """Has no index a leaf in this entry?"""
    words = np.int64(0)
    for word in range(at + 1, at + groups[group * GROUP_FIELDS + STRIDE]):
        words |= tables[word]
    return words & _COUNT == 0


@jit_inline
def insert(index, at, indexes, groups, key_columns, cells, leaf, slot, tables, rings, ring_meta, positions):
    """Enter a leaf in a ring index; `at`: the entry of its key, or -1 if that is not known. DONE, or what is short."""
    if at < 0:
        group = indexes[index * INDEX_FIELDS + GROUP]
        key = key_in(index, leaf, indexes, key_columns, cells)
        at = seek(home_of(key, groups, group), tables, groups, group, key)
        if tables[at] == 0:
            at = occupy(at, tables, groups, group, key)
            if at < 0:
                return TABLE_FULL
    ring = ring_of(at, index, indexes)
    status = push(ring, slot, tables, rings, ring_meta)
    place = indexes[index * INDEX_FIELDS + POSITIONS]
    if status == DONE and place >= 0:
        _, mask, oldest, count = open_ring(tables[ring])
        positions[place + slot] = (oldest + count - 1) & mask
    return status


@jit_inline
def push(ring, slot, tables, rings, ring_meta):
    """A slot becomes the newest of the ring whose word stands at `ring`. DONE, or what is short."""
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
    """The oldest slot leaves the ring whose word stands at `ring`."""
    word = tables[ring]
    first, mask, oldest, _ = open_ring(word)
    step = (first | ((oldest + 1) & mask)) - (first | oldest)
    tables[ring] = word + (step << _PLACE) - 1


@jit_flat
def enlarge(ring, tables, rings, ring_meta):
    """The full ring whose word stands at `ring` gets a run of twice its capacity. DONE, or what is short."""
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
def push_leaf(ring, slot, index, port, ports, indexes, cells, tables, rings, ring_ids, ring_meta):
    """A leaf, of the port whose fields begin there, becomes the newest of a ring that may hold ids. DONE, or what is short."""
    word = tables[ring]
    first, mask, oldest, count = open_ring(word)
    if count > mask:
        status = enlarge_to_ids(ring, index, port, ports, indexes, cells, tables, rings, ring_ids, ring_meta)
        if status != DONE:
            return status
        word = tables[ring]
        first, mask, oldest, count = open_ring(word)
    place = first + ((oldest + count) & mask) if mask > 0 else 0
    if holds_ids(word):
        leaf = ports[port + BASE] + slot * ports[port + WIDTH]
        ring_ids[place] = cells[leaf + indexes[index * INDEX_FIELDS + ID_COLUMN]]
    else:
        rings[place] = slot
    tables[ring] = word + 1 if mask > 0 else word_of(np.int64(slot), 0, 1)
    return np.int64(DONE)


@jit_flat
def enlarge_to_ids(ring, index, port, ports, indexes, cells, tables, rings, ring_ids, ring_meta):
    """As `enlarge` does it, for a ring that holds ids, or may do so from now on."""
    word, base, width = tables[ring], ports[port + BASE], ports[port + WIDTH]
    ids_from, id_column = indexes[index * INDEX_FIELDS + IDS_FROM], indexes[index * INDEX_FIELDS + ID_COLUMN]
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
            ring_ids[larger + i] = cells[base + slot_in(first, mask, place, rings) * width + id_column]
    tables[ring] = word_of(larger, size + 1, count) | _IDS
    _release_run(word, rings, ring_meta)
    return np.int64(DONE)


@jit_inline
def _release_run(word, rings, ring_meta):
    """The places that a ring had, if it had any, become free."""
    first, size, double = open_ring(word)[0], size_of(word), np.int64(holds_ids(word))
    if size > 0:
        release(rings, ring_meta, first << double, size + double)


@jit_inline
def remove(index, at, indexes, slot, tables, rings, positions):
    """Take a leaf out of a ring index, from the entry `at`: the oldest where leaves expire in order, else where it stands."""
    ring = ring_of(at, index, indexes)
    if indexes[index * INDEX_FIELDS + POSITIONS] < 0:
        pop(ring, tables)
        return
    # Such a ring always starts at 0: its last slot takes the place that is free now.
    first, mask, _, count = open_ring(tables[ring])
    place = np.int64(positions[indexes[index * INDEX_FIELDS + POSITIONS] + slot])
    last = slot_in(first, mask, count - 1, rings)
    rings[first + place if mask > 0 else 0] = last
    positions[indexes[index * INDEX_FIELDS + POSITIONS] + last] = place
    tables[ring] -= 1


@jit_inline
def equal_leaf(index, indexes, groups, key_columns, cells, base, leaf, width, tables, rings, since, since_first):
    """The slot of a stored leaf with the same ids as the cells at `leaf`, through the index over all columns, or -1.

    `since` from `since_first` on: for each slot a word that is above GONE if its leaf does not count any more; -1: all count.
    """
    at = find_leaf(index, indexes, groups, key_columns, cells, leaf, tables)
    if at < 0:
        return np.int64(-1)
    first, mask, _, count = open_ring(tables[ring_of(at, index, indexes)])
    i = count - 1
    while i >= 0:
        slot = slot_in(first, mask, i, rings)
        same = since_first < 0 or since[since_first + slot] < GONE
        for c in range(width):
            same = same and cells[base + slot * width + c] == cells[leaf + c]
        if same:
            return slot
        i -= 1
    return np.int64(-1)


@jit_flat
def count_live(groups, tables, live):
    """Of each group how many entries have a leaf."""
    for group in range(len(live)):
        base, stride = groups[group * GROUP_FIELDS + TABLE], groups[group * GROUP_FIELDS + STRIDE]
        for position in range(groups[group * GROUP_FIELDS + SIZE]):
            live[group] += np.int64(not is_empty(base + position * stride, np.int64(group), groups, tables))


@jit_inline
def _free_rings(at, stride, tables, rings, ring_meta):
    """The rings of an entry without leaves become free."""
    for word in range(1, stride):
        _release_run(tables[at + word], rings, ring_meta)


@jit_inline
def _clear_gone(first, many, base, stride, tables, rings, ring_meta, live):
    """Of `many` entries from position `first` on, those without leaves become free; where the others start is written to `live`,
    and returned how many they are."""
    start, step, entries = np.uint64(base + first * stride), np.uint64(stride), np.uint64(many)
    # Word by word, without a jump in it: nobody can foresee which keys have gone.
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
    """Entries without leaves go, all at once (3.4), and the others move up to where a search now ends.

    `live`: room for some of them at a time.
    """
    for group in range(len(groups) // GROUP_FIELDS):
        base, stride = groups[group * GROUP_FIELDS + TABLE], groups[group * GROUP_FIELDS + STRIDE]
        size = groups[group * GROUP_FIELDS + SIZE]
        used, start = np.uint64(0), np.int64(0)
        # Behind a free place, of which there always is one, no entry belongs in front of the first.
        while tables[base + start * stride] != 0:
            start += 1
        first, end = start + 1, start + size
        while first < end:
            # Round the end.
            here, stop = (first, size) if first < size else (first - size, end - size)
            many = min(len(live), stop - here)
            found = _clear_gone(here, many, base, stride, tables, rings, ring_meta, live)
            for i in range(found):
                at = np.uint64(live[i])
                to = np.uint64(base + home_in(tables[at], size) * stride)
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
    """Enter all live entries in larger tables; rings of entries without leaves become free."""
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
            place = home_in(old_tables[at], new_size[group])
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
    """log2 of the capacity that a ring needs for its leaves; with one it has a place for that of an id. One without places, where
    leaves may just be counted, needs none."""
    count, size = leaves_in(word) if size_of(word) > 0 else np.int64(0), np.int64(0)
    while np.int64(1) << size < count:
        size += 1
    return max(size, np.int64(1)) if holds_ids(word) and count > 0 else size


@jit_inline
def _least_run(word):
    """log2 of the places that this takes; 0: none."""
    size = _least_size(word)
    return size + np.int64(holds_ids(word)) if size > 0 else size


@jit_flat
def count_least_places(groups, tables, runs):
    """How many places all rings would do with, those of slots and those of ids, and how many one of them asks for at most when it is
    to be larger.

    `runs` (RUN_SIZES): by log2 of the places of a run how many there are then.
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
                # One that begins to hold ids gets four times as many places.
                begins = not holds_ids(word) and run + 1 >= SMALLEST_OF_IDS
                next_run = max(next_run, run + 1 + np.int64(begins))
    return of_slots, of_ids, np.int64(1) << next_run


@jit_flat
def move_rings(groups, tables, runs, anyhow, rings, ring_ids, new_rings, new_ids, new_meta):
    """All rings get runs in a new arena that are no larger than they need.

    Runs begin at multiples of their length. If there is room for twice as many places as they have they may come in any order
    (`anyhow`), else the largest come first, so that nothing is left out between them. `runs`: as `count_least_places` has it.
    """
    for run in range(RUN_SIZES - 1, -1, -1):
        if runs[run] == 0 and not anyhow:
            continue
        for group in range(len(groups) // GROUP_FIELDS):
            base, stride = groups[group * GROUP_FIELDS + TABLE], groups[group * GROUP_FIELDS + STRIDE]
            for position in range(groups[group * GROUP_FIELDS + SIZE]):
                for member in range(1, stride):
                    at = base + position * stride + member
                    if size_of(tables[at]) > 0 and (anyhow or _least_run(tables[at]) == run):
                        _move_ring(at, tables, rings, ring_ids, new_rings, new_ids, new_meta)
        if anyhow:
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


@jit_inline
def age_of(slot, head, capacity):
    """How many leaves of a circular buffer came since the one in slot `head`, up to that in another."""
    age = slot - head
    return age + capacity if age < 0 else age


@jit_flat
def renumber_slots(port, ports, indexes, groups, tables, rings, new_capacity):
    """A circular buffer has grown whose leaves went round its end: those at its start now follow the others further than before."""
    capacity, head = ports[port * PORT_FIELDS + CAPACITY], ports[port * PORT_FIELDS + HEAD]
    for index in range(ports[port * PORT_FIELDS + FIRST_INDEX], ports[port * PORT_FIELDS + LAST_INDEX]):
        group = indexes[index * INDEX_FIELDS + GROUP]
        stride = groups[group * GROUP_FIELDS + STRIDE]
        for position in range(groups[group * GROUP_FIELDS + SIZE]):
            at = groups[group * GROUP_FIELDS + TABLE] + position * stride
            ring = ring_of(at, index, indexes)
            first, mask, oldest, count = open_ring(tables[ring])
            # What holds ids, or has leaves that are just counted, has no slots.
            if holds_ids(tables[ring]) or count > mask + 1:
                continue
            for i in range(count):
                place = (oldest + i) & mask
                slot = (head + age_of(slot_in(first, mask, place, rings), head, capacity)) % new_capacity
                if mask > 0:
                    rings[first + place] = slot
                else:
                    tables[ring] = word_of(slot, 0, count)


@jit_flat
def load(port, ports, cells, columns, sign, free, free_meta, row_slot):
    """Write a port's input rows (width, n) to its leaf cells and note their slots.

    In a port that expires in order a negative row is the oldest leaf; in another it gets a temporary slot, to be compared.
    """
    base = ports[port * PORT_FIELDS + BASE]
    width = ports[port * PORT_FIELDS + WIDTH]
    if ports[port * PORT_FIELDS + FIFO] == 0:
        for row in range(len(sign)):
            free_meta[port] -= 1
            slot = np.int64(free[port, free_meta[port]])
            row_slot[row] = np.int32(slot)
            for c in range(width):
                cells[base + slot * width + c] = columns[c, row]
        return
    capacity, head = ports[port * PORT_FIELDS + CAPACITY], ports[port * PORT_FIELDS + HEAD]
    leaves = ports[port * PORT_FIELDS + LEAVES]
    tail = head + leaves
    tail -= capacity if tail >= capacity else np.int64(0)
    # Until the slots stand there: which rows come.
    came = _list_what_comes(sign, row_slot)
    for c in range(width):
        _load_column(c, base + c, width, capacity, tail, came, columns, row_slot, cells)
    _note_slots(head, tail, capacity, sign, row_slot)
    gone = len(sign) - came
    head += gone
    ports[port * PORT_FIELDS + HEAD] = head - capacity if head >= capacity else head
    ports[port * PORT_FIELDS + LEAVES] = leaves + came - gone


@jit_flat
def _list_what_comes(sign, coming):
    """The rows with a positive sign go to the start of `coming` (n); returns how many they are.

    Here and there without a jump: nobody can foresee where time windows leave off and go on.
    """
    came = np.int64(0)
    for row in range(len(sign)):
        coming[came] = np.int32(row)
        came += np.int64(sign[row] > 0)
    return came


@jit_inline
def _load_column(c, first, width, capacity, tail, came, columns, coming, cells):
    """Column c of what comes, to one slot after the other from the tail on, round the end."""
    straight = min(came, capacity - tail)
    at = first + tail * width
    for i in range(straight):
        cells[at + i * width] = columns[c, coming[i]]
    for i in range(came - straight):
        cells[first + i * width] = columns[c, coming[straight + i]]


@jit_flat
def _note_slots(head, tail, capacity, sign, row_slot):
    """What comes gets the slots from the tail on, what goes has those from the head on.

    A row's slot follows from how many came before it alone, so that no row waits for where the last one went round the end.
    """
    came = np.int64(0)
    for row in range(len(sign)):
        comes = sign[row] > 0
        slot = tail + came if comes else head + row - came
        row_slot[row] = np.int32(slot - capacity if slot >= capacity else slot)
        came += np.int64(comes)
