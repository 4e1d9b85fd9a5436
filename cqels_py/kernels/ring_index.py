"""Ring indexes over leaf mappings (Algorithms 1 and 2), several of which share one table.

Indexes of different ports over the same variables form a group: one open-addressing table, whose entry has a ring for each
of them. What arrives in a star join so finds the partners of all inputs, and its own ring, by one lookup.

`cells`   the ports' leaf mappings, row after row: port p, slot s, column c is at base[p] + s * width[p] + c.
`tables`  an entry: key, number of leaves in all its rings, then for each index of the group two words:
          offset of the ring in `rings` << 6 | log2 of its capacity (-1: none yet), and position of the oldest << 32 | counter.
          An entry without leaves awaits deletion (3.4).
`rings`   for each key a contiguous circular run of slots, oldest first; the counter is the stop.
`positions` for ports that retract in any order: where a slot stands in the ring of each of its indexes.

`ports` (n, PORT_FIELDS), `indexes` (k, INDEX_FIELDS) and `groups` (g, GROUP_FIELDS) describe them, all flat.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.hashing import combine, mix
from cqels_py.kernels.jit import jit, jit_flat, jit_inline
from cqels_py.kernels.prefetch import prefetch

# ports
BASE, WIDTH, MASK, FIFO, HEAD, TAIL, FULL, FIRST_INDEX, LAST_INDEX, LOOSE = range(10)
PORT_FIELDS = 10
# indexes
PORT, GROUP, MEMBER, KEY_FIRST, KEY_WIDTH, POSITIONS = range(6)
INDEX_FIELDS = 6
# groups
TABLE, TABLE_MASK, USED, ZERO, STRIDE = range(5)
GROUP_FIELDS = 5
# entries
LEAVES, RINGS = 1, 2
# why a kernel stopped
DONE, OUT_FULL, TABLE_FULL, RINGS_FULL, NOT_STORED = range(5)
# ring memory: a free list for each size, then the top
RING_SIZES = 40
RING_TOP = 40
RING_FIELDS = 41

LOW = np.int64(0xFFFFFFFF)
SHIFT = np.int64(32)
SIZE_BITS = np.int64(6)
SIZE_MASK = np.int64(63)
_SMALLEST_RING = np.int64(1)

AHEAD, _STORED_AHEAD = 10, 20
"""Rows between asking for an entry, or for the leaf that a row stands for, and using it."""
RINGS_AHEAD, LEAVES_AHEAD = 5, 2
"""The same for a ring that an entry leads to, and for the leaves that this leads to."""
NEAR_CELLS = 1 << 18
"""With no more cells than these, what an entry leads to is near in any case."""


@jit_inline
def find(tables, groups, group, key):
    """Where the entry of `key` starts in `tables`, or -1."""
    mask = groups[group * GROUP_FIELDS + TABLE_MASK]
    base = groups[group * GROUP_FIELDS + TABLE]
    stride = groups[group * GROUP_FIELDS + STRIDE]
    position = mix(key) & mask
    while True:
        at = base + position * stride
        found = tables[at]
        if found == key:
            return at
        if found == 0:
            return np.int64(-1)
        position = (position + 1) & mask


@jit_inline
def key_of_leaf(cells, leaf, key_columns, first, width):
    if width == 1:
        value = cells[leaf + key_columns[first]]
        return value if value != 0 else np.int64(1)
    key = np.int64(width + 1)
    for k in range(first, first + width):
        key = combine(key, cells[leaf + key_columns[k]])
    return key | np.int64(1)


@jit_inline
def find_leaf(index, indexes, groups, key_columns, cells, leaf, tables):
    """The entry that the leaf's key has in the group of the index, or -1."""
    key = key_of_leaf(
        cells, leaf, key_columns, indexes[index * INDEX_FIELDS + KEY_FIRST], indexes[index * INDEX_FIELDS + KEY_WIDTH]
    )
    return find(tables, groups, indexes[index * INDEX_FIELDS + GROUP], key)


@jit_inline
def expect_entry(key, table, mask, stride, tables):
    """Have a key's entry come nearer: its end may stand in another line of the cache than its start."""
    at = table + (mix(key) & mask) * stride
    prefetch(tables, at)
    prefetch(tables, at + stride - 1)


@jit_inline
def expect_row(row, row_port, row_slot, ports, indexes, groups, key_columns, cells, tables):
    """Have the entry that a row further on starts from come nearer, where there is such a row."""
    leaving = row + _STORED_AHEAD
    if leaving < len(row_port):
        port = np.int64(row_port[leaving]) * PORT_FIELDS
        prefetch(cells, ports[port + BASE] + np.int64(row_slot[leaving]) * ports[port + WIDTH])
    row += AHEAD
    if row < len(row_port):
        port = np.int64(row_port[row]) * PORT_FIELDS
        index = ports[port + FIRST_INDEX] * INDEX_FIELDS
        leaf = ports[port + BASE] + np.int64(row_slot[row]) * ports[port + WIDTH]
        group = indexes[index + GROUP] * GROUP_FIELDS
        key = key_of_leaf(cells, leaf, key_columns, indexes[index + KEY_FIRST], indexes[index + KEY_WIDTH])
        expect_entry(key, groups[group + TABLE], groups[group + TABLE_MASK], groups[group + STRIDE], tables)


@jit_inline
def allocate(rings, ring_meta, size):
    """Offset of a run of 2**size places in an arena, or -1 if it has no room."""
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
def release(rings, ring_meta, offset, size):
    """A run of 2**size places is free."""
    rings[offset] = ring_meta[size]
    ring_meta[size] = offset


@jit_inline
def create(group, groups, key, tables):
    """Start of a new, empty entry, or -1 if the table is too full."""
    mask = groups[group * GROUP_FIELDS + TABLE_MASK]
    if (groups[group * GROUP_FIELDS + USED] + 1) * 5 > (mask + 1) * 3:
        return np.int64(-1)
    base = groups[group * GROUP_FIELDS + TABLE]
    stride = groups[group * GROUP_FIELDS + STRIDE]
    position = mix(key) & mask
    while tables[base + position * stride] != 0:
        position = (position + 1) & mask
    at = base + position * stride
    tables[at] = key
    tables[at + LEAVES] = 0
    for word in range(RINGS, stride, 2):
        tables[at + word] = -1
        tables[at + word + 1] = 0
    groups[group * GROUP_FIELDS + USED] += 1
    groups[group * GROUP_FIELDS + ZERO] += 1
    return at


@jit_inline
def insert(index, at, indexes, groups, key_columns, cells, leaf, slot, tables, rings, ring_meta, positions):
    """Enter a leaf in a ring index; `at`: the entry of its key, or -1 if that is not known. DONE, or what is short."""
    group = indexes[index * INDEX_FIELDS + GROUP]
    if at < 0:
        key = key_of_leaf(
            cells,
            leaf,
            key_columns,
            indexes[index * INDEX_FIELDS + KEY_FIRST],
            indexes[index * INDEX_FIELDS + KEY_WIDTH],
        )
        at = find(tables, groups, group, key)
        if at < 0:
            at = create(group, groups, key, tables)
            if at < 0:
                return TABLE_FULL
    ring = at + indexes[index * INDEX_FIELDS + MEMBER]
    if tables[ring] < 0:
        offset = allocate(rings, ring_meta, _SMALLEST_RING)
        if offset < 0:
            return RINGS_FULL
        tables[ring] = offset << SIZE_BITS | _SMALLEST_RING
        tables[ring + 1] = 0
    size = tables[ring] & SIZE_MASK
    offset = tables[ring] >> SIZE_BITS
    count = tables[ring + 1] & LOW
    head = tables[ring + 1] >> SHIFT
    capacity = np.int64(1) << size
    if count == capacity:
        larger = allocate(rings, ring_meta, size + 1)
        if larger < 0:
            return RINGS_FULL
        for i in range(count):
            rings[larger + i] = rings[offset + ((head + i) & (capacity - 1))]
        release(rings, ring_meta, offset, size)
        head = np.int64(0)
        capacity = capacity * 2
        offset = larger
        tables[ring] = offset << SIZE_BITS | (size + 1)
    place = (head + count) & (capacity - 1)
    rings[offset + place] = slot
    tables[ring + 1] = head << SHIFT | (count + 1)
    if tables[at + LEAVES] == 0:
        groups[group * GROUP_FIELDS + ZERO] -= 1
    tables[at + LEAVES] += 1
    if indexes[index * INDEX_FIELDS + POSITIONS] >= 0:
        positions[indexes[index * INDEX_FIELDS + POSITIONS] + slot] = place
    return DONE


@jit_inline
def remove(index, at, indexes, groups, slot, tables, rings, positions):
    """Take a leaf out of a ring index, from the entry `at`: the oldest where leaves expire in order, else where it stands."""
    ring = at + indexes[index * INDEX_FIELDS + MEMBER]
    tables[at + LEAVES] -= 1
    if tables[at + LEAVES] == 0:
        groups[indexes[index * INDEX_FIELDS + GROUP] * GROUP_FIELDS + ZERO] += 1
    count = (tables[ring + 1] & LOW) - 1
    head = tables[ring + 1] >> SHIFT
    if indexes[index * INDEX_FIELDS + POSITIONS] < 0:
        head = (head + 1) & ((np.int64(1) << (tables[ring] & SIZE_MASK)) - 1)
    else:
        # Such a ring always starts at 0: its last slot takes the place that is free now.
        offset = tables[ring] >> SIZE_BITS
        place = np.int64(positions[indexes[index * INDEX_FIELDS + POSITIONS] + slot])
        last = rings[offset + count]
        rings[offset + place] = last
        positions[indexes[index * INDEX_FIELDS + POSITIONS] + last] = place
    tables[ring + 1] = head << SHIFT | count


@jit_inline
def equal_leaf(index, indexes, groups, key_columns, cells, base, leaf, width, tables, rings):
    """The slot of a stored leaf with the same ids as the cells at `leaf`, through the index over all columns, or -1."""
    at = find_leaf(index, indexes, groups, key_columns, cells, leaf, tables)
    if at < 0:
        return np.int64(-1)
    ring = at + indexes[index * INDEX_FIELDS + MEMBER]
    offset = tables[ring] >> SIZE_BITS
    i = (tables[ring + 1] & LOW) - 1
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


@jit_flat
def enter_tables(old_tables, groups, new_tables, new_base, new_mask, rings, ring_meta):
    """Enter all live entries in larger (or purged) tables; rings of entries without leaves become free (3.4)."""
    for group in range(len(new_base)):
        used = np.int64(0)
        base = groups[group * GROUP_FIELDS + TABLE]
        stride = groups[group * GROUP_FIELDS + STRIDE]
        for position in range(groups[group * GROUP_FIELDS + TABLE_MASK] + 1):
            at = base + position * stride
            if old_tables[at] == 0:
                continue
            if old_tables[at + LEAVES] == 0:
                for word in range(RINGS, stride, 2):
                    if old_tables[at + word] >= 0:
                        size = old_tables[at + word] & SIZE_MASK
                        offset = old_tables[at + word] >> SIZE_BITS
                        release(rings, ring_meta, offset, size)
                continue
            place = mix(old_tables[at]) & new_mask[group]
            while new_tables[new_base[group] + place * stride] != 0:
                place = (place + 1) & new_mask[group]
            for word in range(stride):
                new_tables[new_base[group] + place * stride + word] = old_tables[at + word]
            used += 1
        groups[group * GROUP_FIELDS + TABLE] = new_base[group]
        groups[group * GROUP_FIELDS + TABLE_MASK] = new_mask[group]
        groups[group * GROUP_FIELDS + USED] = used
        groups[group * GROUP_FIELDS + ZERO] = 0


@jit_flat
def renumber_slots(port, ports, indexes, groups, tables, rings, new_mask):
    """A circular buffer has grown: the slot of a leaf in rings follows its place in the larger buffer."""
    old_mask = ports[port * PORT_FIELDS + MASK]
    head = ports[port * PORT_FIELDS + HEAD]
    for index in range(ports[port * PORT_FIELDS + FIRST_INDEX], ports[port * PORT_FIELDS + LAST_INDEX]):
        group = indexes[index * INDEX_FIELDS + GROUP]
        stride = groups[group * GROUP_FIELDS + STRIDE]
        for position in range(groups[group * GROUP_FIELDS + TABLE_MASK] + 1):
            at = groups[group * GROUP_FIELDS + TABLE] + position * stride
            ring = at + indexes[index * INDEX_FIELDS + MEMBER]
            if tables[at] == 0 or tables[ring] < 0:
                continue
            capacity_mask = (np.int64(1) << (tables[ring] & SIZE_MASK)) - 1
            first = tables[ring + 1] >> SHIFT
            for i in range(tables[ring + 1] & LOW):
                place = (tables[ring] >> SIZE_BITS) + ((first + i) & capacity_mask)
                slot = np.int64(rings[place])
                rings[place] = np.int32((head + ((slot - head) & old_mask)) & new_mask)


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
