"""PARTITION BY: the last units of each value, where a unit (an element or a triple) may have several values.

A value's units are a linked list, oldest first, found by the one-way index. A unit is in as many lists as it has
values, and expires when it has left the last of them.

`ends` (2, entries): each list's oldest and newest node; the entry's counter is its length. `nodes` (2, …): the next
newer node, the slot of its unit. `slots` (2, …): a unit's number, the number of lists it is in. Free nodes and slots
are linked by their first row. `places`: nodes ever used, first free node, slots ever used, first free slot (-1: none).
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit, jit_inline
from cqels_py.kernels.structures.hash_table import ZERO, add, find, hash_row

OLDEST, NEWEST = 0, 1
NEXT, SLOT = 0, 1
NUMBER, LISTS = 0, 1
NODES, FREE_NODE, SLOTS, FREE_SLOT = 0, 1, 2, 3


@jit_inline
def _new_slot(unit, slots, places):
    """A slot for a unit that is in no list yet."""
    slot = places[FREE_SLOT]
    if slot >= 0:
        places[FREE_SLOT] = slots[NUMBER, slot]
    else:
        slot = places[SLOTS]
        places[SLOTS] += 1
    slots[NUMBER, slot] = unit
    slots[LISTS, slot] = 0
    return slot


@jit_inline
def _new_node(nodes, places):
    node = places[FREE_NODE]
    if node >= 0:
        places[FREE_NODE] = nodes[NEXT, node]
    else:
        node = places[NODES]
        places[NODES] += 1
    return node


@jit_inline
def _append(node, slot, entry, counts, ends, nodes):
    """Append the unit in a slot to a list, as its newest."""
    nodes[SLOT, node] = slot
    nodes[NEXT, node] = -1
    if counts[entry] == 0:
        ends[OLDEST, entry] = node
    else:
        nodes[NEXT, ends[NEWEST, entry]] = node
    ends[NEWEST, entry] = node
    counts[entry] += 1


@jit_inline
def _leave_list(slot, slots, places, left, made):
    """Remove a unit from one list. If that was its last one, its number is written to left[made]. Returns the count of
    expired units."""
    slots[LISTS, slot] -= 1
    if slots[LISTS, slot] > 0:
        return made
    left[made] = slots[NUMBER, slot]
    slots[NUMBER, slot] = places[FREE_SLOT]
    places[FREE_SLOT] = slot
    return made + 1


@jit
def keep_last(
    unit, columns, width, limit, table, mask, keys, counts, free, meta, ends, nodes, slots, places, left, left_at
):
    """Add units with their values: row r states that unit[r] (numbers, not falling) has the value columns[:, r].

    Each value keeps its last `limit` units. Writes the numbers of the units that expire, and the rows at which they do;
    returns how many. The caller has made room for a node and a slot for each row.
    """
    made = np.int64(0)
    slot = np.int64(-1)
    for row in range(len(unit)):
        hashed = hash_row(columns, row, width)
        entry = find(table, mask, keys, width, columns, row, hashed)
        if entry < 0:
            entry = add(table, mask, keys, width, columns, row, hashed, counts, free, meta)
        if counts[entry] > 0 and slots[NUMBER, nodes[SLOT, ends[NEWEST, entry]]] == unit[row]:
            continue
        if row == 0 or slot < 0 or slots[NUMBER, slot] != unit[row]:
            slot = _new_slot(unit[row], slots, places)
        slots[LISTS, slot] += 1
        if counts[entry] == limit:
            node = ends[OLDEST, entry]
            ends[OLDEST, entry] = nodes[NEXT, node]
            counts[entry] -= 1
            left_at[made] = row
            made = _leave_list(nodes[SLOT, node], slots, places, left, made)
        else:
            if counts[entry] == 0:
                meta[ZERO] -= 1
            node = _new_node(nodes, places)
        _append(node, slot, entry, counts, ends, nodes)
    return made


HEAD, TAIL = 4, 5
TIME, ENTRY = 0, 1


@jit
def keep_sessions(
    unit, time, columns, width, gap, through, table, mask, keys, counts, free, meta, ends, last, nodes, slots, places, awaited,
    left, left_at,
):  # fmt: skip
    """Add units with their values and times, as `keep_last`; sessions that end at `through` or before are closed.

    A value keeps its units until none has come for `gap`; `last`: the time of its newest unit. `awaited` (2, …): the
    times of all rows, and their entries, from places[HEAD] to places[TAIL]; a gap after each its session ends, unless
    another unit came. Writes the numbers of the units that expire, and when; returns how many. The caller has made room
    for a node, a slot and a position in `awaited` for each row.
    """
    made = np.int64(0)
    slot = np.int64(-1)
    for row in range(len(unit) + 1):
        # A unit that comes exactly at the end of a session belongs to it.
        ended = time[row] - 1 if row < len(unit) else through
        while places[HEAD] < places[TAIL] and awaited[TIME, places[HEAD]] + gap <= ended:
            came, entry = awaited[TIME, places[HEAD]], awaited[ENTRY, places[HEAD]]
            places[HEAD] += 1
            if counts[entry] == 0 or last[entry] != came:
                continue
            node = ends[OLDEST, entry]
            while node >= 0:
                left_at[made] = came + gap
                made = _leave_list(nodes[SLOT, node], slots, places, left, made)
                following = nodes[NEXT, node]
                nodes[NEXT, node] = places[FREE_NODE]
                places[FREE_NODE] = node
                node = following
            counts[entry] = 0
            meta[ZERO] += 1
        if row == len(unit):
            break
        hashed = hash_row(columns, row, width)
        entry = find(table, mask, keys, width, columns, row, hashed)
        if entry < 0:
            entry = add(table, mask, keys, width, columns, row, hashed, counts, free, meta)
        if counts[entry] > 0 and slots[NUMBER, nodes[SLOT, ends[NEWEST, entry]]] == unit[row]:
            continue
        if slot < 0 or slots[NUMBER, slot] != unit[row] or slots[LISTS, slot] == 0:
            slot = _new_slot(unit[row], slots, places)
        slots[LISTS, slot] += 1
        if counts[entry] == 0:
            meta[ZERO] -= 1
        _append(_new_node(nodes, places), slot, entry, counts, ends, nodes)
        last[entry] = time[row]
        awaited[TIME, places[TAIL]] = time[row]
        awaited[ENTRY, places[TAIL]] = entry
        places[TAIL] += 1
    return made
