"""PARTITION BY: the last units of each value, where a unit (an element or a triple) may have several values.

A value's units are a linked list, oldest first, found by the one-way index. A unit is in as many lists as it has
values, and expires when it has left the last of them.

`ends` (2, entries): each list's oldest and newest node; the entry's counter is its length. `nodes` (2, …): the next
newer node, the slot of its unit. `slots` (2, …): a unit's number, the number of lists it is in. Free nodes and slots
are linked by their first row. `places`: nodes ever used, first free node, slots ever used, first free slot (-1: none).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cqels_py.kernels.compiler.jit import jit_flat, jit_inline
from cqels_py.kernels.primitives.state_record import int64_rows, int64s
from cqels_py.kernels.structures.hash_table import ZERO, hash_row
from cqels_py.kernels.structures.key_index import add_key, find_key, has_room, open_index

UNITS, PLACES, ENDS, NODES, LAST, AWAITED = range(6)
"""The arrays of the record (primitives/state_record.py): `slots`, `places`, `ends`, `nodes`, and two of sessions alone."""
OLDEST, NEWEST = 0, 1
NEXT, SLOT = 0, 1
NUMBER, LISTS = 0, 1
NODE_COUNT, FREE_NODE, SLOT_COUNT, FREE_SLOT = 0, 1, 2, 3
SHORT = -1
"""There is no room for a node and a slot for each row, or for new values: nothing has been changed."""


class Lists(NamedTuple):
    """The lists of all values."""

    slots: npt.NDArray[np.int64]
    places: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    nodes: npt.NDArray[np.int64]


@jit_inline
def _open_lists(state):
    return Lists(int64_rows(state, UNITS), int64s(state, PLACES), int64_rows(state, ENDS), int64_rows(state, NODES))


@jit_inline
def _is_short(lists, index, width, rows):
    places = lists.places
    most = max(places[NODE_COUNT] - lists.nodes.shape[1], places[SLOT_COUNT] - lists.slots.shape[1])
    return most + rows > 0 or not has_room(index, width, rows)


@jit_inline
def _find_or_add(index, width, columns, row):
    """The entry of a value."""
    hashed = hash_row(columns, row, width)
    entry = find_key(index, width, columns, row, hashed)
    return entry if entry >= 0 else add_key(index, width, columns, row, hashed)


@jit_inline
def _is_newest(unit, entry, index, lists):
    """Is this unit the newest of a value?"""
    if index.counts[entry] == 0:
        return False
    return lists.slots[NUMBER, lists.nodes[SLOT, lists.ends[NEWEST, entry]]] == unit


@jit_inline
def _new_slot(unit, lists):
    """A slot for a unit that is in no list yet."""
    slots, places = lists.slots, lists.places
    slot = places[FREE_SLOT]
    if slot >= 0:
        places[FREE_SLOT] = slots[NUMBER, slot]
    else:
        slot = places[SLOT_COUNT]
        places[SLOT_COUNT] += 1
    slots[NUMBER, slot] = unit
    slots[LISTS, slot] = 0
    return slot


@jit_inline
def _new_node(lists):
    nodes, places = lists.nodes, lists.places
    node = places[FREE_NODE]
    if node >= 0:
        places[FREE_NODE] = nodes[NEXT, node]
    else:
        node = places[NODE_COUNT]
        places[NODE_COUNT] += 1
    return node


@jit_inline
def _append(node, slot, entry, index, lists):
    """Append the unit in a slot to a list, as its newest."""
    ends, nodes = lists.ends, lists.nodes
    nodes[SLOT, node] = slot
    nodes[NEXT, node] = -1
    if index.counts[entry] == 0:
        ends[OLDEST, entry] = node
    else:
        nodes[NEXT, ends[NEWEST, entry]] = node
    ends[NEWEST, entry] = node
    index.counts[entry] += 1


@jit_inline
def _leave_list(slot, lists, left, made):
    """Remove a unit from one list. If that was its last one, its number is written to left[made]. Returns the count of
    expired units."""
    slots, places = lists.slots, lists.places
    slots[LISTS, slot] -= 1
    if slots[LISTS, slot] > 0:
        return made
    left[made] = slots[NUMBER, slot]
    slots[NUMBER, slot] = places[FREE_SLOT]
    places[FREE_SLOT] = slot
    return made + 1


@jit_flat
def keep_last(state, values, unit, columns, limit, left, left_at):
    """Add units with their values: row r states that unit[r] (numbers, not falling) has the value columns[:, r].

    Each value keeps its last `limit` units. `values`: the record of the one-way index. Writes the numbers of the units that
    expire, and the rows at which they do, and returns how many; or SHORT.
    """
    lists, index, width = _open_lists(state), open_index(values), len(columns)
    if _is_short(lists, index, width, len(unit)):
        return SHORT
    slots, nodes, ends, counts = lists.slots, lists.nodes, lists.ends, index.counts
    made, slot = np.int64(0), np.int64(-1)
    for row in range(len(unit)):
        entry = _find_or_add(index, width, columns, row)
        if _is_newest(unit[row], entry, index, lists):
            continue
        if row == 0 or slot < 0 or slots[NUMBER, slot] != unit[row]:
            slot = _new_slot(unit[row], lists)
        slots[LISTS, slot] += 1
        if counts[entry] == limit:
            node = ends[OLDEST, entry]
            ends[OLDEST, entry] = nodes[NEXT, node]
            counts[entry] -= 1
            left_at[made] = row
            made = _leave_list(nodes[SLOT, node], lists, left, made)
        else:
            if counts[entry] == 0:
                index.meta[ZERO] -= 1
            node = _new_node(lists)
        _append(node, slot, entry, index, lists)
    return made


HEAD, TAIL = 4, 5
TIME, ENTRY = 0, 1


@jit_flat
def keep_sessions(state, values, unit, time, columns, gap, through, left, left_at):
    """Add units with their values and times, as `keep_last`; sessions that end at `through` or before are closed.

    A value keeps its units until none has come for `gap`; LAST (1, entries): the time of its newest unit. AWAITED (2, …):
    the times of all rows, and their entries, from places[HEAD] to places[TAIL]; a gap after each its session ends, unless
    another unit came. Writes the numbers of the units that expire, and when, and returns how many; or SHORT, also for
    AWAITED.
    """
    lists, index, width = _open_lists(state), open_index(values), len(columns)
    last, awaited = int64_rows(state, LAST), int64_rows(state, AWAITED)
    slots, places, ends, nodes, counts = lists.slots, lists.places, lists.ends, lists.nodes, index.counts
    if _is_short(lists, index, width, len(unit)) or places[TAIL] + len(unit) > awaited.shape[1]:
        return SHORT
    made, slot = np.int64(0), np.int64(-1)
    for row in range(len(unit) + 1):
        # A unit that comes exactly at the end of a session belongs to it.
        ended = time[row] - 1 if row < len(unit) else through
        while places[HEAD] < places[TAIL] and awaited[TIME, places[HEAD]] + gap <= ended:
            came, entry = awaited[TIME, places[HEAD]], awaited[ENTRY, places[HEAD]]
            places[HEAD] += 1
            if counts[entry] == 0 or last[0, entry] != came:
                continue
            node = ends[OLDEST, entry]
            while node >= 0:
                left_at[made] = came + gap
                made = _leave_list(nodes[SLOT, node], lists, left, made)
                following = nodes[NEXT, node]
                nodes[NEXT, node] = places[FREE_NODE]
                places[FREE_NODE] = node
                node = following
            counts[entry] = 0
            index.meta[ZERO] += 1
        if row == len(unit):
            break
        entry = _find_or_add(index, width, columns, row)
        if _is_newest(unit[row], entry, index, lists):
            continue
        if slot < 0 or slots[NUMBER, slot] != unit[row] or slots[LISTS, slot] == 0:
            slot = _new_slot(unit[row], lists)
        slots[LISTS, slot] += 1
        if counts[entry] == 0:
            index.meta[ZERO] -= 1
        _append(_new_node(lists), slot, entry, index, lists)
        last[0, entry] = time[row]
        awaited[TIME, places[TAIL]] = time[row]
        awaited[ENTRY, places[TAIL]] = entry
        places[TAIL] += 1
    return made
