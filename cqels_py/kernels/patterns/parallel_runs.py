"""Runs of a parallelized complex event automaton: Algorithm 1 of Pinto & Riveros over tuples of numbers.

A transition with several source states joins one run of each. A run is a node: its position, its transition, and for each source
state the tree of the runs that it may continue (see start_heap). Nodes lie in a ring in the order of their numbers, from 1. TAIL is
the first one within reach; a tree's nodes are never older than the starts that they hold.

A tuple is a row: its relation, and values from 1 on; 0 where it has none.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat
from cqels_py.kernels.patterns import start_heap as heap
from cqels_py.kernels.patterns.start_heap import CONTENT, LEFT, POSITION, RIGHT, START
from cqels_py.kernels.primitives.state_record import int64_rows, int64s
from cqels_py.kernels.structures.hashing import combine, mix

# Further columns of a node: of a run its transition, of a tree its entry. Then the trees of a run, then its tuple.
TRANSITION, ENTRY, TREES = 6, 7, 8
# The program's arrays.
TRANSITIONS, OF_RELATION, ENTRIES, CHECKS, KEYS, KEY_POSITIONS, LEFT_KEYS, OF_STATE, READERS, FINAL, MOST_TREES = range(
    11
)
# A transition: its target state, its checks and its entries (one for each source state), from and to.
TARGET, CHECKED_FROM, CHECKED_TO, ENTRY_FROM, ENTRY_TO, TRANSITION_FIELDS = range(6)
# A check of a tuple: a position has a constant, or the value of another position.
KIND, PLACE, OPERAND, CHECK_FIELDS = range(4)
CONSTANT, EQUAL = range(2)
# A key of a tuple: checks, and positions.
KEY_CHECKED_FROM, KEY_CHECKED_TO, KEY_FROM, KEY_TO, KEY_FIELDS = range(5)
# The state's arrays.
NODES, TABLE, META, AGENDA, FRAMES, PENDING = range(6)
(
    NEXT, TAIL, USED, SEEN, MADE, LONGEST_UNION, MOST_BETWEEN, MOST_STEPS, META_FIELDS,
) = range(9)  # fmt: skip
# A frame of the enumeration: a run that has been chosen, where its trees begin on the agenda, and where its pending trees begin.
CHOSEN, AGENDA_FROM, PENDING_FROM, FRAME_FIELDS = range(4)
FULL = -1
_ENDLESS = -(1 << 62)


@jit_flat
def _holds(checks, first, last, row):
    """Do all checks hold for the tuple?"""
    for c in range(first, last):
        place = checks[c, PLACE]
        if place + 1 >= len(row):
            return False
        value = row[1 + place]
        other = checks[c, OPERAND]
        if checks[c, KIND] == EQUAL:
            if other + 1 >= len(row):
                return False
            other = row[1 + other]
        if value == 0 or value != other:
            return False
    return True


@jit_flat
def _has_key(program, key, row):
    """Is the key defined for the tuple?"""
    if key < 0:
        return False
    keys, places = int64_rows(program, KEYS), int64s(program, KEY_POSITIONS)
    if not _holds(int64_rows(program, CHECKS), keys[key, KEY_CHECKED_FROM], keys[key, KEY_CHECKED_TO], row):
        return False
    for at in range(keys[key, KEY_FROM], keys[key, KEY_TO]):
        if places[at] + 1 >= len(row) or row[1 + places[at]] == 0:
            return False
    return True


@jit_flat
def _hash(program, entry, key, row):
    keys, places = int64_rows(program, KEYS), int64s(program, KEY_POSITIONS)
    hashed = mix(entry + 1)
    for at in range(keys[key, KEY_FROM], keys[key, KEY_TO]):
        hashed = combine(hashed, row[1 + places[at]])
    return hashed


@jit_flat
def _same_key(program, nodes, root, entry, key, row, trees):
    """Are the runs of a tree those of this entry, with the key that the tuple has by `key`?"""
    mask = np.int64(len(nodes) - 1)
    if nodes[root & mask, ENTRY] != entry:
        return False
    keys, places = int64_rows(program, KEYS), int64s(program, KEY_POSITIONS)
    held = nodes[nodes[root & mask, CONTENT] & mask, TREES + trees :]
    left = int64_rows(program, LEFT_KEYS)[entry, held[0]]
    for k in range(keys[key, KEY_TO] - keys[key, KEY_FROM]):
        if row[1 + places[keys[key, KEY_FROM] + k]] != held[1 + places[keys[left, KEY_FROM] + k]]:
            return False
    return True


@jit_flat
def _find(program, state, entry, key, row, low):
    """The slot of the tree of an entry and key; -1 - slot where there is none: a slot to put it into."""
    nodes, table, meta = int64_rows(state, NODES), int64s(state, TABLE), int64s(state, META)
    slots, tail, trees = np.int64(len(table) - 1), meta[TAIL], int64s(program, MOST_TREES)[0]
    slot = _hash(program, entry, key, row) & slots
    free = np.int64(-1)
    while table[slot] != 0:
        if heap.is_dead(nodes, table[slot], low, tail):
            if free < 0:
                free = slot
        elif _same_key(program, nodes, table[slot], entry, key, row, trees):
            return slot
        slot = (slot + 1) & slots
    return -1 - (slot if free < 0 else free)


@jit_flat
def _fire(program, state, row, position, low):
    """FireTransitions: a node for each transition that the tuple takes."""
    nodes, table, meta = int64_rows(state, NODES), int64s(state, TABLE), int64s(state, META)
    transitions, entries = int64_rows(program, TRANSITIONS), int64s(program, ENTRIES)
    of_relation, checks = int64s(program, OF_RELATION), int64_rows(program, CHECKS)
    mask, trees = np.int64(len(nodes) - 1), int64s(program, MOST_TREES)[0]
    for t in range(of_relation[row[0]], of_relation[row[0] + 1]):
        if not _holds(checks, transitions[t, CHECKED_FROM], transitions[t, CHECKED_TO], row):
            continue
        place = meta[NEXT] & mask
        start, complete = position, True
        for entry in range(transitions[t, ENTRY_FROM], transitions[t, ENTRY_TO]):
            slot = np.int64(-1)
            if _has_key(program, entries[entry], row):
                slot = _find(program, state, entry, entries[entry], row, low)
            if slot < 0:
                complete = False
                break
            nodes[place, TREES + entry - transitions[t, ENTRY_FROM]] = table[slot]
            start = min(start, nodes[table[slot] & mask, START])
        if complete:
            nodes[place, POSITION], nodes[place, START] = position, start
            nodes[place, TRANSITION] = t
            held = nodes[place, TREES + trees :]
            for v in range(len(row)):
                held[v] = row[v]
            meta[NEXT] += 1


@jit_flat
def _update(program, state, begun, position, low):
    """UpdateIndices: the new runs enter the trees of the transitions that may continue them."""
    nodes, table, meta = int64_rows(state, NODES), int64s(state, TABLE), int64s(state, META)
    transitions, left_keys = int64_rows(program, TRANSITIONS), int64_rows(program, LEFT_KEYS)
    of_state, readers = int64s(program, OF_STATE), int64s(program, READERS)
    mask, trees, fired = np.int64(len(nodes) - 1), int64s(program, MOST_TREES)[0], meta[NEXT]
    steps = fired - begun
    for number in range(begun, fired):
        row = nodes[number & mask, TREES + trees :]
        target = transitions[nodes[number & mask, TRANSITION], TARGET]
        for at in range(of_state[target], of_state[target + 1]):
            entry = readers[at]
            key = left_keys[entry, row[0]]
            if not _has_key(program, key, row):
                continue
            slot = _find(program, state, entry, key, row, low)
            root = table[slot] if slot >= 0 else np.int64(0)
            first = meta[NEXT]
            meta[NEXT] = heap.insert(nodes, first, root, number, nodes[number & mask, START], low, meta[TAIL])
            for copy in range(first, meta[NEXT]):
                nodes[copy & mask, POSITION], nodes[copy & mask, ENTRY] = position, entry
            steps += meta[NEXT] - first
            meta[LONGEST_UNION] = max(meta[LONGEST_UNION], meta[NEXT] - first)
            if slot < 0:
                slot = -1 - slot
                if table[slot] == 0:
                    meta[USED] += 1
            table[slot] = first
    meta[MOST_STEPS] = max(meta[MOST_STEPS], steps)


@jit_flat
def _advance(state, frame, count, low):
    """Choose the next run for a frame, from its pending trees.

    Returns the number of pending trees; -2 - it where none is left; or FULL.
    """
    nodes, meta = int64_rows(state, NODES), int64s(state, META)
    frames, pending = int64_rows(state, FRAMES), int64s(state, PENDING)
    mask = np.int64(len(nodes) - 1)
    if count + 2 > len(pending):
        return np.int64(FULL)
    if count == frames[frame, PENDING_FROM]:
        return -2 - count
    count -= 1
    place = pending[count] & mask
    for side in (RIGHT, LEFT):
        if not heap.is_dead(nodes, nodes[place, side], low, meta[TAIL]):
            pending[count] = nodes[place, side]
            count += 1
    frames[frame, CHOSEN] = nodes[place, CONTENT]
    return count


@jit_flat
def _write(state, frames_used, position, made, out):
    """A valuation: its position, how many runs it has, and the transition and position of each."""
    nodes, frames = int64_rows(state, NODES), int64_rows(state, FRAMES)
    mask = np.int64(len(nodes) - 1)
    if made + 2 + 2 * frames_used > len(out):
        return np.int64(FULL)
    out[made], out[made + 1] = position, frames_used
    made += 2
    for frame in range(frames_used):
        row = frames[frame, CHOSEN] & mask
        out[made], out[made + 1] = nodes[row, TRANSITION], nodes[row, POSITION]
        made += 2
    return made


@jit_flat
def _enumerate(program, state, last, position, low, made, out):
    """Write all valuations whose last run is this node. Returns how far `out` is filled, or FULL.

    A frame for each run of a combination, in the order in which their trees stand on the agenda; the last frame moves first.
    """
    nodes, meta = int64_rows(state, NODES), int64s(state, META)
    agenda, frames, pending = int64s(state, AGENDA), int64_rows(state, FRAMES), int64s(state, PENDING)
    transitions = int64_rows(program, TRANSITIONS)
    mask, trees, since = np.int64(len(nodes) - 1), int64s(program, MOST_TREES)[0], np.int64(0)
    frames[0, CHOSEN], frames[0, AGENDA_FROM], frames[0, PENDING_FROM] = last, 0, 0
    used, count = np.int64(1), np.int64(0)
    while True:
        # The run of the last frame was chosen just now: its trees stand behind those of the frames before it.
        since += 1
        frame = used - 1
        row = frames[frame, CHOSEN] & mask
        end = frames[frame, AGENDA_FROM]
        first, behind = transitions[nodes[row, TRANSITION], ENTRY_FROM], transitions[nodes[row, TRANSITION], ENTRY_TO]
        if end + trees > len(agenda) or used == len(frames):
            return np.int64(FULL)
        for k in range(behind - first):
            agenda[end] = nodes[row, TREES + k]
            end += 1
        if frame < end:
            # Frame f + 1 takes the agenda's tree f.
            if count == len(pending):
                return np.int64(FULL)
            frames[used, AGENDA_FROM], frames[used, PENDING_FROM] = end, count
            pending[count] = agenda[frame]
            count += 1
            used += 1
        else:
            made = _write(state, used, position, made, out)
            if made < 0:
                return made
            meta[MOST_BETWEEN] = max(meta[MOST_BETWEEN], since)
            since = 0
        while used > 1:
            found = _advance(state, used - 1, count, low)
            if found == FULL:
                return found
            if found >= 0:
                count = found
                break
            count = -2 - found
            used -= 1
        if used == 1:
            return made


@jit_flat
def rebuild(program, state, old, low):
    """Fill the state's new, empty table with the trees within reach."""
    nodes, table, meta = int64_rows(state, NODES), int64s(state, TABLE), int64s(state, META)
    mask, slots, trees = np.int64(len(nodes) - 1), np.int64(len(table) - 1), int64s(program, MOST_TREES)[0]
    meta[USED] = 0
    for root in old:
        if heap.is_dead(nodes, root, low, meta[TAIL]):
            continue
        entry = nodes[root & mask, ENTRY]
        row = nodes[nodes[root & mask, CONTENT] & mask, TREES + trees :]
        slot = _hash(program, entry, int64_rows(program, LEFT_KEYS)[entry, row[0]], row) & slots
        while table[slot] != 0:
            slot = (slot + 1) & slots
        table[slot] = root
        meta[USED] += 1


@jit_flat
def step(program, state, rows, window, room, out):
    """Take in tuples, from META's SEEN on. `window`: greatest distance of the first and the last position, -1 for any.

    Returns how many of the rows have been taken in: fewer than all where fewer than `room` nodes are free, the table is half full
    or there is no room for output. META's MADE is how far `out` is filled.
    """
    nodes, table, meta = int64_rows(state, NODES), int64s(state, TABLE), int64s(state, META)
    transitions, final = int64_rows(program, TRANSITIONS), int64s(program, FINAL)
    mask = np.int64(len(nodes) - 1)
    for r in range(len(rows)):
        position = meta[SEEN]
        low = np.int64(_ENDLESS) if window < 0 else position - window
        while meta[TAIL] < meta[NEXT] and nodes[meta[TAIL] & mask, POSITION] < low:
            meta[TAIL] += 1
        if meta[NEXT] - meta[TAIL] + room > len(nodes) or 2 * (meta[USED] + room) > len(table):
            return np.int64(r)
        begun, made = meta[NEXT], meta[MADE]
        _fire(program, state, rows[r], position, low)
        for number in range(begun, meta[NEXT]):
            if final[transitions[nodes[number & mask, TRANSITION], TARGET]] != 0:
                made = _enumerate(program, state, number, position, low, made, out)
                if made < 0:
                    meta[NEXT] = begun
                    return np.int64(r)
        meta[MADE] = made
        _update(program, state, begun, position, low)
        meta[SEEN] += 1
    return np.int64(len(rows))
