"""Runs of an event automaton: one element after the other, with constant work for each event and transition.

A *run* is a chain of events, the last of them in some state. It is kept as a node: the last event, and the newest run that it
prolongs. Runs in the same state and with the same key, the values that the next event must have, are linked from newest to
oldest; an event that prolongs one of them prolongs all older ones too, so a node stands for as many runs as there are ways back
through the links. Nodes are numbered from 1 and lie in a ring in the order of their numbers; TAIL is the first one that is still
near enough to be part of a match, and all nodes before it are free. MOST_RECENT of a node is the greatest number of a first event
that a run through it or through an older node of its list can have: if that is before TAIL, the list is empty from there on.

A node takes 40 bytes and 8 for each value. Its links are distances, of 32 bits: the node's number less that of the other node. All
that is linked was within reach when the link was made, so a distance is less than the ring is long; NONE, which is more, leads to a
number before TAIL. The hash table's numbers are counted from BASE, and the table is rebuilt before they need more than 31 bits.

(The list takes the place of the union of Proposition 5.3 of Pinto & Riveros: an insertion changes one link. Runs are walked as in
their Enumerate, with a stack for the chain.) A list whose runs do not begin in the order in which they enter may have many in a row
that are out of reach. Such a list can be HEAPED: then OLDER of a node is the root of a persistent heap of it and all older ones, the
low 32 bits of a number in the ring of trees (start_heap).

A NOT whose key is part of that of the transition after it is a *cut*: a list never reaches back behind its last event, as OLDER is
not set across it, and a transition finds the list empty if there is one after its newest run.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat, jit_inline
from cqels_py.kernels.patterns import start_heap as heap
from cqels_py.kernels.primitives.state_record import int32s, int64_rows, int64s
from cqels_py.kernels.structures.hashing import combine, mix

# A node's words: POSITION, TIME, three of two halves each, and from FIELDS on its row. Halves are 32-bit integers, from the node's
# first. EARLIER: the newest of its list of an earlier element; in strict time, of an earlier instant. KIND: the entry and the
# list that it belongs to. Where matches are kept or the EARLIEST is told, there is one word more behind the row: the first of the
# STANDING matches that begin with the node, and the distance of the next NEWER one.
POSITION, TIME, FIELDS = 0, 1, 5
BEFORE, OLDER, FIRST, MOST_RECENT, EARLIER, KIND = range(4, 10)
STANDING, NEWER = 2, 1
"""Counted from the node's end."""
NONE = (1 << 31) - 1
_LIST_BITS, NO_LIST = 16, (1 << 16) - 1
MOST_ENTRIES = 1 << 15
# An entry: a transition into a state by an event. SOURCE -1: it begins a run. GAP: a NOT that is checked for each run; CUT: one that
# the keys decide. OWN: the row of LATER_THAN with the events than whose nearest this one is later, or -1.
# LISTS_FROM, LISTS_TO: the lists that its nodes go into, in LISTS.
TARGET, SOURCE, SAME, TIMED, GAP, FRESH, FINAL, KEYS, CUT, OWN, LISTS_FROM, LISTS_TO, ENTRY_FIELDS = range(13)
# The program's arrays.
(
    ENTRIES, FINALS_OF, FINALS, LINKED_OF, LINKED, KEY_COLUMNS, LISTS, LIST_KEYS, COLUMNS, CLEARED, GAPS, GAP_KEYS, AFTER, EVENT_OF,
    OUTPUT, LIMITS, PARTITION, PARTITION_OUT, CUT_COLUMNS, LIST_CUTS, HEAPED, LATER_THAN,
) = range(22)  # fmt: skip
# The state's arrays. STOP: the word of `state.stop.Stop`.
NODES, LINKS, TABLE, META, STACK, BOUND, KEY, STAND, STAND_NEXT, BEST, OLDEST, PENDING, TREES, OUT, STOP = range(15)
(
    NEXT, TAIL, BASE, USED, POSITIONS, FREE, STANDING_USED, MADE, ELEMENT, OPENED, ELEMENT_MADE, ROW_MADE, FLOOR, BEST_LENGTH,
    TRIAL_LENGTH, TIED, ELEMENT_TIME, PENDING_USED, NEXT_TREE, TREES_TAIL, LONGEST_UNION, MOST_STEPS, MOST_BETWEEN, STEPS, MISSING,
    META_FIELDS,
) = range(26)  # fmt: skip
# Rows of BEST: the positions of the best match of the element, from last to first; and those with the row at hand.
CHOSEN, TRIAL = range(2)
# A row of an event: its number, the element's position, time and tick, and the values.
EVENT, AT, WHEN, TICK, VALUES = range(5)
# A row of output: tick, sign, the number of the match's first event, and the values.
OUT_TICK, OUT_SIGN, OUT_FIRST, OUT_VALUES = range(4)
# Numbers of a step.
FIRST_POSITION, LAST_POSITION, EXPIRED_THROUGH = range(3)
# LIMITS: greatest distances, -1 for any; which times count; are matches kept, to be withdrawn? which matches of an element are told:
# ALL, the LATEST or the EARLIEST; the list of consumed elements, or -1; how many nodes and trees a row makes at most;
# is _take_plain enough for rows that end no match?
WITHIN, WITHIN_EVENTS, STRICT, KEPT, POLICY, CONSUMED, MOST_NODES, MOST_TREES, PLAIN = range(9)
EARLIEST, ALL, LATEST = -1, 0, 1
# A step of the stack. BETTER: the positions so far are better than those of the best match, not only as good.
NODE, VIA, UNKNOWN, BETTER, PENDING_FROM, STACK_FIELDS = range(6)
# A row of LIST_CUTS: the list's cut and the columns of its key; or one of these.
NO_CUT, OF_ABSENT = -1, -2
FULL = -2
# MISSING: the arrays in which there is no room; STOP_ASKED: none, but somebody has asked the search to stop.
OUTPUT_ROOM, RUN_ROOM, STANDING_ROOM, NODE_ROOM, TABLE_ROOM, TREE_ROOM, STOP_ASKED = range(7)
_ENDLESS = 1 << 62
MOST_NUMBERS = (1 << 31) - (1 << 20)
"""So many nodes after its BASE, the table is rebuilt."""


@jit_inline
def _opened(state):
    """The nodes, their halves, the hash table and the numbers."""
    return int64_rows(state, NODES), int32s(state, LINKS), int32s(state, TABLE), int64s(state, META)


@jit_inline
def _halves(nodes, number):
    """Where the halves of a node begin."""
    return (number & np.int64(len(nodes) - 1)) * 2 * np.int64(nodes.shape[1])


@jit_inline
def _linked(nodes, links, number, link):
    """The node that a link of a node leads to: a number before TAIL where there is none."""
    return number - links[_halves(nodes, number) + link]


@jit_inline
def _list_of(nodes, links, number):
    return np.int64(links[_halves(nodes, number) + KIND]) & NO_LIST


@jit_inline
def _entry_of(nodes, links, number):
    return np.int64(links[_halves(nodes, number) + KIND]) >> _LIST_BITS


@jit_inline
def _same_key(nodes, links, number, list_keys, list_, key, count):
    if _list_of(nodes, links, number) != list_:
        return False
    row = number & np.int64(len(nodes) - 1)
    for k in range(count):
        if nodes[row, FIELDS + list_keys[list_, 1 + k]] != key[k]:
            return False
    return True


@jit_inline
def _hash(list_, key, count):
    hashed = (list_ + 1) << 44
    if count > 0:
        hashed ^= key[0]
    hashed = mix(hashed)
    for k in range(1, count):
        hashed = combine(hashed, key[k])
    return hashed


@jit_inline
def _find(nodes, links, table, meta, list_keys, list_, key):
    """The slot with the newest node of a list and key; -1 - slot where there is none: a slot to put it into."""
    count = list_keys[list_, 0]
    slots, base, tail = np.int64(len(table) - 1), meta[BASE], meta[TAIL]
    slot = _hash(list_, key, count) & slots
    free = np.int64(-1)
    while table[slot] != 0:
        number = base + table[slot]
        if number < tail:
            if free < 0:
                free = slot
        elif _same_key(nodes, links, number, list_keys, list_, key, count):
            return slot
        slot = (slot + 1) & slots
    return -1 - (slot if free < 0 else free)


@jit_inline
def _newest(program, state, list_, key):
    """The newest node of a list and key; 0 where there is none within reach."""
    nodes, links, table, meta = _opened(state)
    slot = _find(nodes, links, table, meta, int64_rows(program, LIST_KEYS), list_, key)
    return meta[BASE] + table[slot] if slot >= 0 else np.int64(0)


@jit_flat
def _last_absent(program, state, gap, position, key):
    """The position of the last event of a NOT, up to a position, with this key; -1 for none within reach."""
    nodes, links, _, meta = _opened(state)
    mask, tail = np.int64(len(nodes) - 1), meta[TAIL]
    number = _newest(program, state, int64s(program, GAPS)[gap], key)
    # A NOT has one node for each element.
    while number >= tail and nodes[number & mask, POSITION] > position:
        number = _linked(nodes, links, number, OLDER)
    return nodes[number & mask, POSITION] if number >= tail else np.int64(-1)


@jit_flat
def _is_cut_off(program, state, number, older, key):
    """Is an older run of the list of a new node out of the question, for all that come after the node?"""
    nodes, links, _, meta = _opened(state)
    list_cuts = int64_rows(program, LIST_CUTS)
    mask = np.int64(len(nodes) - 1)
    list_ = _list_of(nodes, links, number)
    gap, place = list_cuts[list_, 0], nodes[older & mask, POSITION]
    if int64s(program, HEAPED)[list_] != 0 and place <= meta[FLOOR]:
        return True
    if gap < 0:
        return False
    for k in range(int64_rows(program, GAP_KEYS)[gap, 0]):
        key[k] = nodes[number & mask, FIELDS + list_cuts[list_, 1 + k]]
    return place < _last_absent(program, state, gap, nodes[number & mask, POSITION], key)


@jit_inline
def _root(nodes, links, meta, number):
    """The root of the heap of a node and all that are older in its list."""
    low = np.int64(links[_halves(nodes, number) + OLDER])
    return meta[NEXT_TREE] - ((meta[NEXT_TREE] - low) & ((1 << 32) - 1))


@jit_flat
def _grow_heap(state, number, older):
    """Put a new node into the heap of its list, which is that of an older node, or empty (0)."""
    nodes, links, _, meta = _opened(state)
    trees = int64_rows(state, TREES)
    mask, first, half = np.int64(len(trees) - 1), meta[NEXT_TREE], _halves(nodes, number)
    root = _root(nodes, links, meta, older) if older != 0 else np.int64(0)
    start = number - links[half + FIRST]
    meta[NEXT_TREE] = heap.insert(trees, first, root, number, start, meta[TAIL], meta[TREES_TAIL])
    meta[LONGEST_UNION] = max(meta[LONGEST_UNION], meta[NEXT_TREE] - first)
    meta[STEPS] += meta[NEXT_TREE] - first
    for copy in range(first, meta[NEXT_TREE]):
        # No run in it is newer: it is out of reach with this node at the latest.
        trees[copy & mask, heap.POSITION] = number
    links[half + OLDER] = np.int32(first & ((1 << 32) - 1))
    links[half + MOST_RECENT] = number - trees[first & mask, heap.START]


@jit_flat
def _forget_trees(state):
    """Give up the trees that are out of reach."""
    trees, meta = int64_rows(state, TREES), int64s(state, META)
    mask = np.int64(len(trees) - 1)
    while meta[TREES_TAIL] < meta[NEXT_TREE] and trees[meta[TREES_TAIL] & mask, heap.POSITION] < meta[TAIL]:
        meta[TREES_TAIL] += 1


@jit_inline
def _insert(program, state, number, key):
    """Link a new node in front of the list with its key."""
    nodes, links, table, meta = _opened(state)
    list_keys, limits = int64_rows(program, LIST_KEYS), int64s(program, LIMITS)
    mask = np.int64(len(nodes) - 1)
    row, half = number & mask, _halves(nodes, number)
    list_ = _list_of(nodes, links, number)
    for k in range(list_keys[list_, 0]):
        key[k] = nodes[row, FIELDS + list_keys[list_, 1 + k]]
    slot = _find(nodes, links, table, meta, list_keys, list_, key)
    older = np.int64(0)
    cut, heaped = int64_rows(program, LIST_CUTS)[list_, 0], int64s(program, HEAPED)[list_] != 0
    if slot >= 0:
        older = meta[BASE] + table[slot]
        measure = TIME if limits[STRICT] != 0 else POSITION
        before = older & mask
        distance = number - older
        if nodes[before, measure] == nodes[row, measure]:
            distance += links[_halves(nodes, older) + EARLIER]
        links[half + EARLIER] = min(distance, NONE)
        if cut == OF_ABSENT and nodes[before, POSITION] == nodes[row, POSITION]:
            return
        if (cut >= 0 or heaped) and _is_cut_off(program, state, number, older, key):
            older = np.int64(0)
    else:
        slot = -1 - slot
        if table[slot] == 0:
            meta[USED] += 1
    meta[STEPS] += 1
    table[slot] = number - meta[BASE]
    if heaped:
        _grow_heap(state, number, older)
        return
    if older != 0:
        links[half + OLDER] = number - older
        recent = number - older + links[_halves(nodes, older) + MOST_RECENT]
        links[half + MOST_RECENT] = min(np.int64(links[half + FIRST]), recent)
    if limits[POLICY] == EARLIEST:
        end = 2 * np.int64(nodes.shape[1])
        if older != 0:
            links[_halves(nodes, older) + end - NEWER] = number - older
        else:
            int64s(state, OLDEST)[slot] = number


@jit_inline
def _newer(nodes, links, number):
    """Under EARLIEST, the next newer node of the list; 0 where there is none."""
    distance = np.int64(links[_halves(nodes, number) + 2 * np.int64(nodes.shape[1]) - NEWER])
    return number + distance if distance != 0 else np.int64(0)


@jit_flat
def _oldest(program, state, number, key):
    """The oldest run within reach of the list that a node is in, up to this node."""
    nodes, links, table, meta = _opened(state)
    list_keys, oldest = int64_rows(program, LIST_KEYS), int64s(state, OLDEST)
    mask, list_ = np.int64(len(nodes) - 1), _list_of(nodes, links, number)
    for k in range(list_keys[list_, 0]):
        key[k] = nodes[number & mask, FIELDS + list_keys[list_, 1 + k]]
    slot = _find(nodes, links, table, meta, list_keys, list_, key)
    at = oldest[slot]
    while at < number and (_linked(nodes, links, at, FIRST) < meta[TAIL] or nodes[at & mask, POSITION] <= meta[FLOOR]):
        # Out of reach for ever: no search passes it again.
        at = _newer(nodes, links, at)
        meta[STEPS] += 1
    oldest[slot] = at
    return at


@jit_flat
def _forget_oldest(program, state, number):
    """A node leaves: the oldest of its list is the next newer one, if it was this."""
    nodes, links, table, meta = _opened(state)
    list_keys, oldest, key = int64_rows(program, LIST_KEYS), int64s(state, OLDEST), int64s(state, KEY)
    row = number & np.int64(len(nodes) - 1)
    list_ = _list_of(nodes, links, number)
    if list_ == NO_LIST:
        return
    for k in range(list_keys[list_, 0]):
        key[k] = nodes[row, FIELDS + list_keys[list_, 1 + k]]
    slot = _find(nodes, links, table, meta, list_keys, list_, key)
    if slot >= 0 and oldest[slot] == number:
        oldest[slot] = _newer(nodes, links, number)


@jit_flat
def rebuild(program, state, old, old_oldest):
    """Fill a new, empty table with the heads of lists that are not dead. `old`, `old_oldest`: the table and OLDEST before."""
    nodes, links, table, meta = _opened(state)
    list_keys, oldest, key = int64_rows(program, LIST_KEYS), int64s(state, OLDEST), int64s(state, KEY)
    mask, slots, base = np.int64(len(nodes) - 1), np.int64(len(table) - 1), meta[BASE]
    meta[BASE] = meta[TAIL] - 1
    meta[USED] = 0
    for place in range(len(old)):
        number = base + old[place]
        if old[place] == 0 or number < meta[TAIL]:
            continue
        list_ = _list_of(nodes, links, number)
        count = list_keys[list_, 0]
        for k in range(count):
            key[k] = nodes[number & mask, FIELDS + list_keys[list_, 1 + k]]
        slot = _hash(list_, key, count) & slots
        while table[slot] != 0:
            slot = (slot + 1) & slots
        table[slot] = number - meta[BASE]
        if len(oldest) > 1:
            oldest[slot] = old_oldest[place]
        meta[USED] += 1


@jit_flat
def _gap_is_empty(program, state, gap, before, after, bound, key):
    """Is there no event of a NOT between two nodes' places? 1: none, 0: there is one, -1: a value of its key is not known."""
    nodes, links, _, meta = _opened(state)
    gap_keys = int64_rows(program, GAP_KEYS)
    strict = int64s(program, LIMITS)[STRICT] != 0
    mask, tail = np.int64(len(nodes) - 1), meta[TAIL]
    list_ = int64s(program, GAPS)[gap]
    for k in range(gap_keys[gap, 0]):
        key[k] = bound[gap_keys[gap, 1 + k]]
        if key[k] == 0:
            return np.int64(-1)
    measure = TIME if strict else POSITION
    number = _newest(program, state, list_, key)
    while number >= tail and nodes[number & mask, measure] >= after:
        number = _linked(nodes, links, number, OLDER)
    return np.int64(number < tail or nodes[number & mask, measure] <= before)


@jit_flat
def _check_gaps(program, state, depth, bound, key):
    """Check the NOT that the event at this depth of the stack stands before, as far as values are known: 1, 0 or -1."""
    nodes, links, stack = int64_rows(state, NODES), int32s(state, LINKS), int64_rows(state, STACK)
    entries, after_of, event_of = int64_rows(program, ENTRIES), int64_rows(program, AFTER), int64s(program, EVENT_OF)
    measure = TIME if int64s(program, LIMITS)[STRICT] != 0 else POSITION
    mask = np.int64(len(nodes) - 1)
    here = stack[depth, NODE] & mask
    event = event_of[entries[_entry_of(nodes, links, stack[depth, NODE]), TARGET]]
    for above in range(depth - 1, -1, -1):
        gap = entries[stack[above + 1, VIA], GAP]
        if gap < 0 or after_of[gap, event] == 0:
            continue
        nearest = True
        for between in range(above + 1, depth):
            other = event_of[entries[_entry_of(nodes, links, stack[between, NODE]), TARGET]]
            nearest = nearest and after_of[gap, other] == 0
        if nearest:
            following = nodes[stack[above, NODE] & mask, measure]
            return _gap_is_empty(program, state, gap, nodes[here, measure], following, bound, key)
    return np.int64(1)


@jit_flat
def _take(program, state, depth, bindings):
    """Bind the values of the node at this depth on top of those above it; False where they differ."""
    nodes, links, stack = int64_rows(state, NODES), int32s(state, LINKS), int64_rows(state, STACK)
    entries, columns, event_of = int64_rows(program, ENTRIES), int64_rows(program, COLUMNS), int64s(program, EVENT_OF)
    row = stack[depth, NODE] & np.int64(len(nodes) - 1)
    if depth == 0:
        for v in range(bindings.shape[1]):
            bindings[0, v] = 0
    else:
        fresh = entries[stack[depth, VIA], FRESH]
        cleared = int64_rows(program, CLEARED)
        for v in range(bindings.shape[1]):
            forgotten = fresh >= 0 and cleared[fresh, v] != 0
            bindings[depth, v] = 0 if forgotten else bindings[depth - 1, v]
    event = event_of[entries[_entry_of(nodes, links, stack[depth, NODE]), TARGET]]
    for c in range(columns.shape[1]):
        v = columns[event, c]
        if v < 0:
            break
        value = nodes[row, FIELDS + c]
        if bindings[depth, v] == 0:
            bindings[depth, v] = value
        elif value != 0 and bindings[depth, v] != value:
            return False
    return True


@jit_flat
def _write(program, bound, first, tick, made, out):
    """Write a match."""
    output = int64s(program, OUTPUT)
    out[made, OUT_TICK], out[made, OUT_SIGN], out[made, OUT_FIRST] = tick, 1, first
    for c in range(len(output)):
        out[made, OUT_VALUES + c] = bound[output[c]]


@jit_inline
def _next_of_list(nodes, links, number, policy):
    """The next older node of a list; under EARLIEST the next newer one."""
    return _newer(nodes, links, number) if policy == EARLIEST else _linked(nodes, links, number, OLDER)


@jit_flat
def _enumerate(program, state, tick, made, out):
    """Write all matches whose last event is the node at the bottom of the stack. Returns the number of rows, or FULL."""
    nodes, links, _, meta = _opened(state)
    stack, policy = int64_rows(state, STACK), int64s(program, LIMITS)[POLICY]
    entries, heaped, pending = int64_rows(program, ENTRIES), int64s(program, HEAPED), int64s(state, PENDING)
    bindings, key = int64_rows(state, BOUND), int64s(state, KEY)
    depth, stop = 0, int64s(state, STOP)
    meta[PENDING_USED], meta[STEPS] = 0, 0
    stack[0, UNKNOWN] = 0
    stack[0, BETTER] = meta[TRIAL_LENGTH] == 0
    _take(program, state, 0, bindings)
    while True:
        if stop[0] != 0:
            meta[MISSING] = STOP_ASKED
            return np.int64(FULL)
        number = stack[depth, NODE]
        before = _linked(nodes, links, number, BEFORE)
        if before < meta[TAIL]:
            if made == len(out):
                return np.int64(FULL)
            if _all_gaps_empty(program, state, depth, bindings, key):
                place = made if policy == ALL else _choose(state, depth, policy, made)
                if place >= 0:
                    _write(program, bindings[depth], number, tick, place, out)
                    made = place + 1
                    meta[MOST_BETWEEN] = max(meta[MOST_BETWEEN], meta[STEPS])
                    meta[STEPS] = 0
        else:
            if depth + 1 == len(stack) or meta[PENDING_USED] + heap.LONGEST > len(pending):
                meta[MISSING] = RUN_ROOM
                return np.int64(FULL)
            depth += 1
            stack[depth, VIA] = _entry_of(nodes, links, number)
            stack[depth, NODE] = _oldest(program, state, before, key) if policy == EARLIEST else before
            stack[depth, PENDING_FROM] = meta[PENDING_USED]
            if heaped[entries[stack[depth, VIA], SOURCE]] != 0:
                pending[meta[PENDING_USED]] = _root(nodes, links, meta, before)
                meta[PENDING_USED] += 1
            if _settle(program, state, depth, bindings, key):
                continue
            depth -= 1
        # The next older run at this depth, or above it.
        while True:
            if depth == 0:
                meta[MOST_BETWEEN] = max(meta[MOST_BETWEEN], meta[STEPS])
                return made
            stack[depth, NODE] = _next_of_list(nodes, links, stack[depth, NODE], policy)
            if _settle(program, state, depth, bindings, key):
                break
            depth -= 1


@jit_flat
def _compare(state, depth, position, policy):
    """Is a match with this position at this depth worse than the best one? Notes whether it is better already."""
    stack, meta, best = int64_rows(state, STACK), int64s(state, META), int64_rows(state, BEST)
    stack[depth, BETTER] = stack[depth - 1, BETTER]
    if stack[depth, BETTER] != 0:
        return False
    if depth >= meta[TRIAL_LENGTH]:
        # Of two that begin alike, the longer one is later.
        stack[depth, BETTER] = policy == LATEST
        return policy == EARLIEST
    difference = (position - best[TRIAL, depth]) * policy
    stack[depth, BETTER] = difference > 0
    return difference < 0


@jit_flat
def _choose(state, depth, policy, made):
    """Is the match on the stack to be written? Returns the row to write it to, or -1; a better one replaces the others."""
    nodes, stack, meta = int64_rows(state, NODES), int64_rows(state, STACK), int64s(state, META)
    best, mask = int64_rows(state, BEST), np.int64(len(nodes) - 1)
    if stack[depth, BETTER] == 0:
        if depth + 1 == meta[TRIAL_LENGTH]:
            return made
        if policy == LATEST:
            return np.int64(-1)
    for at in range(depth + 1):
        best[TRIAL, at] = nodes[stack[at, NODE] & mask, POSITION]
        stack[at, BETTER] = 0
    meta[TRIAL_LENGTH] = depth + 1
    if meta[ROW_MADE] < 0:
        meta[ROW_MADE] = made
    return meta[ROW_MADE]


@jit_flat
def _is_earlier(program, state, depth):
    """Is the event at this depth earlier than those after it that have to be later than it?"""
    nodes, links, stack = int64_rows(state, NODES), int32s(state, LINKS), int64_rows(state, STACK)
    entries, event_of, later_than = (
        int64_rows(program, ENTRIES),
        int64s(program, EVENT_OF),
        int64_rows(program, LATER_THAN),
    )
    mask = np.int64(len(nodes) - 1)
    here = stack[depth, NODE] & mask
    event = event_of[entries[_entry_of(nodes, links, stack[depth, NODE]), TARGET]]
    for above in range(depth - 1, -1, -1):
        own = entries[stack[above + 1, VIA], OWN]
        if own < 0 or later_than[own, event] == 0:
            continue
        nearest = True
        for between in range(above + 1, depth):
            nearest = (
                nearest
                and later_than[own, event_of[entries[_entry_of(nodes, links, stack[between, NODE]), TARGET]]] == 0
            )
        if nearest and nodes[here, TIME] >= nodes[stack[above, NODE] & mask, TIME]:
            return False
    return True


@jit_flat
def _next_of_heap(state, depth):
    """The next run of the heap at this depth; 0 where there is none."""
    trees, stack, meta = int64_rows(state, TREES), int64_rows(state, STACK), int64s(state, META)
    pending, mask = int64s(state, PENDING), np.int64(len(trees) - 1)
    count = meta[PENDING_USED]
    if count == stack[depth, PENDING_FROM]:
        return np.int64(0)
    count -= 1
    place = pending[count] & mask
    for side in (heap.RIGHT, heap.LEFT):
        if not heap.is_dead(trees, trees[place, side], meta[TAIL], meta[TREES_TAIL]):
            pending[count] = trees[place, side]
            count += 1
    meta[PENDING_USED] = count
    return trees[place, heap.CONTENT]


@jit_flat
def _settle(program, state, depth, bindings, key):
    """Move on to the next node at this depth, from the one there, that fits; False where there is none."""
    nodes, links, _, meta = _opened(state)
    stack = int64_rows(state, STACK)
    mask, tail, floor = np.int64(len(nodes) - 1), meta[TAIL], meta[FLOOR]
    policy = int64s(program, LIMITS)[POLICY]
    number = stack[depth, NODE]
    if int64s(program, HEAPED)[int64_rows(program, ENTRIES)[stack[depth, VIA], SOURCE]] != 0:
        # The keys decide all comparisons, and all runs in the heap are within reach.
        stack[depth, NODE] = _next_of_heap(state, depth)
        stack[depth, UNKNOWN] = stack[depth - 1, UNKNOWN]
        meta[STEPS] += 1
        return stack[depth, NODE] != 0 and _take(program, state, depth, bindings)
    newest = _linked(nodes, links, stack[depth - 1, NODE], BEFORE)
    while number >= tail:
        meta[STEPS] += 1
        if policy == EARLIEST:
            if number > newest:
                return False
        elif _linked(nodes, links, number, MOST_RECENT) < tail or nodes[number & mask, POSITION] <= floor:
            return False
        stack[depth, NODE] = number
        if _linked(nodes, links, number, FIRST) >= tail and nodes[number & mask, POSITION] > floor:
            # Positions only get worse from here on.
            if policy != ALL and _compare(state, depth, nodes[number & mask, POSITION], policy):
                return False
            earlier = len(int64_rows(program, LATER_THAN)) == 0 or _is_earlier(program, state, depth)
            if earlier and _take(program, state, depth, bindings):
                empty = np.int64(1)
                if len(int64s(program, GAPS)):
                    empty = _check_gaps(program, state, depth, bindings[depth], key)
                stack[depth, UNKNOWN] = stack[depth - 1, UNKNOWN] | np.int64(empty < 0)
                if empty != 0:
                    return True
        number = _next_of_list(nodes, links, number, policy)
    return False


@jit_flat
def _all_gaps_empty(program, state, depth, bindings, key):
    """Check each NOT of the run on the stack again, if values were missing before."""
    stack = int64_rows(state, STACK)
    if stack[depth, UNKNOWN] == 0:
        return True
    for at in range(1, depth + 1):
        if _check_gaps(program, state, at, bindings[depth], key) == 0:
            return False
    return True


@jit_inline
def _prolonged(nodes, links, tail, number, row, same, timed, strict):
    """The first node of a list that the event of a row may follow; 0 for none."""
    mask = np.int64(len(nodes) - 1)
    if timed != 0 and nodes[number & mask, TIME] >= row[WHEN]:
        number = _linked(nodes, links, number, EARLIER)
    elif strict == 0 and same == 0 and nodes[number & mask, POSITION] >= row[AT]:
        number = _linked(nodes, links, number, EARLIER)
    # In strict time, parts of AND in one element.
    while same == 0 and number >= tail and nodes[number & mask, POSITION] >= row[AT]:
        number = _linked(nodes, links, number, OLDER)
    return number if number >= tail else np.int64(0)


@jit_flat
def _first_at(ticks, instant):
    """The first tick at an instant or after it."""
    low, high = np.int64(0), np.int64(len(ticks))
    while low < high:
        middle = (low + high) // 2
        if ticks[middle] < instant:
            low = middle + 1
        else:
            high = middle
    return low


@jit_inline
def _has_expired(nodes, meta, limits, position, time):
    """Is the oldest node too far from this position and time?"""
    row = meta[TAIL] & np.int64(len(nodes) - 1)
    late = limits[WITHIN] >= 0 and time - nodes[row, TIME] > limits[WITHIN]
    far = limits[WITHIN_EVENTS] >= 0 and position - nodes[row, POSITION] > limits[WITHIN_EVENTS]
    return meta[TAIL] < meta[NEXT] and (late or far)


@jit_inline
def _pass_over(state, limits, position, time):
    """Give up the nodes that are too far from this position and time."""
    nodes, meta = int64_rows(state, NODES), int64s(state, META)
    mask, tail, following = np.int64(len(nodes) - 1), meta[TAIL], meta[NEXT]
    within, events = limits[WITHIN], limits[WITHIN_EVENTS]
    while tail < following:
        late = within >= 0 and time - nodes[tail & mask, TIME] > within
        if not late and not (events >= 0 and position - nodes[tail & mask, POSITION] > events):
            break
        tail += 1
    meta[TAIL] = tail


@jit_inline
def _is_apart(limits):
    """Does nothing depend on which rows are of one element, and no match on when its first event leaves?"""
    return limits[KEPT] == 0 and limits[POLICY] == ALL and limits[CONSUMED] < 0


@jit_flat
def _expire(program, state, position, time, step, tick, made, out):
    """Give up the nodes that are too far from this position and time, and withdraw the matches that began with them.

    Changes are at `tick` at the latest. Returns the number of rows, or FULL; then it goes on where it stopped.
    """
    if _is_apart(int64s(program, LIMITS)):
        _pass_over(state, int64s(program, LIMITS), position, time)
        return made
    ticks, position_ticks, numbers = step
    nodes, links, _, meta = _opened(state)
    limits, stand, following = int64s(program, LIMITS), int64_rows(state, STAND), int64s(state, STAND_NEXT)
    mask, within, events = np.int64(len(nodes) - 1), limits[WITHIN], limits[WITHIN_EVENTS]
    while meta[TAIL] < meta[NEXT]:
        row = meta[TAIL] & mask
        if not _has_expired(nodes, meta, limits, position, time):
            return made
        late = within >= 0 and time - nodes[row, TIME] > within
        far = events >= 0 and position - nodes[row, POSITION] > events
        standing = _halves(nodes, meta[TAIL]) + 2 * np.int64(nodes.shape[1]) - STANDING
        if limits[KEPT] != 0 and links[standing] != 0:
            at = np.int64(tick)
            if late:
                at = min(at, _first_at(ticks, nodes[row, TIME] + within + 1))
            if far:
                after = nodes[row, POSITION] + events + 1 - numbers[FIRST_POSITION]
                if after >= 0:
                    at = min(at, position_ticks[after])
            while links[standing] != 0:
                if made == len(out):
                    meta[MADE] = made
                    return np.int64(FULL)
                place = np.int64(links[standing])
                out[made, OUT_TICK], out[made, OUT_SIGN], out[made, OUT_FIRST] = at, -1, meta[TAIL]
                for c in range(stand.shape[1]):
                    out[made, OUT_VALUES + c] = stand[place, c]
                    stand[place, c] = 0
                made += 1
                links[standing] = following[place]
                following[place] = meta[FREE]
                meta[FREE] = place
        if limits[POLICY] == EARLIEST:
            _forget_oldest(program, state, meta[TAIL])
        meta[TAIL] += 1
    return made


@jit_inline
def _before(program, state, entry, row, key):
    """The newest run that an event prolongs by a transition: its node, or 0; -1 where the event begins a run."""
    entries, key_columns = int64_rows(program, ENTRIES), int64_rows(program, KEY_COLUMNS)
    nodes, links, table, meta = _opened(state)
    source = entries[entry, SOURCE]
    if source < 0:
        return np.int64(-1)
    for k in range(entries[entry, KEYS]):
        key[k] = row[VALUES + key_columns[entry, k]]
    slot = _find(nodes, links, table, meta, int64_rows(program, LIST_KEYS), source, key)
    if slot < 0:
        return np.int64(0)
    strict, mask, newest = int64s(program, LIMITS)[STRICT], np.int64(len(nodes) - 1), meta[BASE] + table[slot]
    before = _prolonged(nodes, links, meta[TAIL], newest, row, entries[entry, SAME], entries[entry, TIMED], strict)
    if before == 0:
        return np.int64(0)
    if _linked(nodes, links, before, MOST_RECENT) < meta[TAIL] or nodes[before & mask, POSITION] <= meta[FLOOR]:
        return np.int64(0)
    if entries[entry, CUT] >= 0 and _is_cut(program, state, entry, before, row, key):
        return np.int64(0)
    return before


@jit_flat
def _is_cut(program, state, entry, before, row, key):
    """Is there an event of the NOT of a transition between its newest run and the event of a row?"""
    nodes, gap = int64_rows(state, NODES), int64_rows(program, ENTRIES)[entry, CUT]
    for k in range(int64_rows(program, GAP_KEYS)[gap, 0]):
        key[k] = row[VALUES + int64_rows(program, CUT_COLUMNS)[entry, k]]
    position = nodes[before & np.int64(len(nodes) - 1), POSITION]
    return position < _last_absent(program, state, gap, row[AT] - 1, key)


@jit_inline
def _make_node(nodes, links, number, entry, list_, before, row):
    """Write a node that is in no list yet."""
    place, half = number & np.int64(len(nodes) - 1), _halves(nodes, number)
    nodes[place, POSITION], nodes[place, TIME] = row[AT], row[WHEN]
    distance, first = np.int64(NONE), np.int64(0)
    if before > 0:
        distance = number - before
        first = distance + links[_halves(nodes, before) + MOST_RECENT]
    links[half + BEFORE], links[half + OLDER], links[half + EARLIER] = distance, NONE, NONE
    links[half + FIRST], links[half + MOST_RECENT] = first, first
    links[half + KIND] = (entry << _LIST_BITS) | list_
    width = len(row) - VALUES
    for c in range(width):
        nodes[place, FIELDS + c] = row[VALUES + c]
    for c in range(FIELDS + width, nodes.shape[1]):
        nodes[place, c] = 0


@jit_flat
def _keep(state, first, made, out):
    """Keep the matches in out[first:made] with their first events. False where there is no room for them."""
    nodes, links, _, meta = _opened(state)
    stand, following = int64_rows(state, STAND), int64s(state, STAND_NEXT)
    if meta[STANDING_USED] + made - first >= len(following):
        meta[MISSING] = STANDING_ROOM
        return False
    for m in range(first, made):
        place = meta[FREE]
        if place > 0:
            meta[FREE] = following[place]
        else:
            meta[STANDING_USED] += 1
            place = meta[STANDING_USED]
        for c in range(stand.shape[1]):
            stand[place, c] = out[m, OUT_VALUES + c]
        standing = _halves(nodes, out[m, OUT_FIRST]) + 2 * np.int64(nodes.shape[1]) - STANDING
        following[place] = links[standing]
        links[standing] = place
    return True


@jit_flat
def _settle_choice(state, made, out):
    """The best matches with the row at hand become those of the element. Returns the number of rows then."""
    meta, best = int64s(state, META), int64_rows(state, BEST)
    meta[BEST_LENGTH] = meta[TRIAL_LENGTH]
    for at in range(meta[TRIAL_LENGTH]):
        best[CHOSEN, at] = best[TRIAL, at]
    if meta[ROW_MADE] < 0:
        return made
    moved = meta[ROW_MADE] - meta[ELEMENT_MADE]
    for m in range(meta[ROW_MADE], made):
        for c in range(out.shape[1]):
            out[m - moved, c] = out[m, c]
    return made - moved


@jit_flat
def _consumed(program, state, position, key):
    """The last position, before this one, whose elements serve no more in the partition of this key; -1 for none."""
    nodes, links, _, meta = _opened(state)
    mask = np.int64(len(nodes) - 1)
    number = _newest(program, state, int64s(program, LIMITS)[CONSUMED], key)
    while number >= meta[TAIL]:
        if nodes[number & mask, POSITION] < position:
            return nodes[number & mask, POSITION]
        number = _linked(nodes, links, number, OLDER)
    return np.int64(-1)


@jit_inline
def _has_room(program, state):
    """Is there room for the results of a row? Notes the arrays without it in MISSING."""
    nodes, _, table, meta = _opened(state)
    limits = int64s(program, LIMITS)
    most = limits[MOST_NODES]
    if meta[NEXT] - meta[TAIL] + most > len(nodes):
        meta[MISSING] = NODE_ROOM
        return False
    if 3 * (meta[USED] + most) > 2 * len(table) or meta[NEXT] - meta[BASE] > MOST_NUMBERS:
        meta[MISSING] = TABLE_ROOM
        return False
    if limits[MOST_TREES] > 0:
        _forget_trees(state)
        if meta[NEXT_TREE] - meta[TREES_TAIL] + limits[MOST_TREES] > len(int64_rows(state, TREES)):
            meta[MISSING] = TREE_ROOM
            return False
    return True


@jit_flat
def _end_element(program, state, made, out):
    """All rows of an element have been taken in: consume, and keep its matches. False where there is no room, or TIED is set."""
    nodes, links, _, meta = _opened(state)
    limits, key = int64s(program, LIMITS), int64s(state, KEY)
    first = meta[ELEMENT_MADE]
    if meta[OPENED] == 0 or first == made:
        meta[OPENED], meta[BEST_LENGTH] = 0, 0
        return True
    if limits[POLICY] != ALL and made > first + 1:
        meta[TIED] = 1
        return False
    if limits[CONSUMED] >= 0:
        mask, columns = np.int64(len(nodes) - 1), int64s(program, PARTITION_OUT)
        for m in range(first, made):
            for k in range(len(columns)):
                key[k] = out[m, OUT_VALUES + columns[k]]
            if _consumed(program, state, meta[ELEMENT] + 1, key) == meta[ELEMENT]:
                continue
            if not _has_room(program, state):
                return False
            number = meta[NEXT]
            place = number & mask
            half = _halves(nodes, number)
            for c in range(nodes.shape[1]):
                nodes[place, c] = 0
            nodes[place, POSITION], nodes[place, TIME] = meta[ELEMENT], meta[ELEMENT_TIME]
            links[half + BEFORE], links[half + OLDER], links[half + EARLIER] = NONE, NONE, NONE
            links[half + KIND] = limits[CONSUMED]
            for k in range(len(columns)):
                nodes[place, FIELDS + k] = key[k]
            meta[NEXT] += 1
            _insert(program, state, number, key)
    if limits[KEPT] != 0 and not _keep(state, first, made, out):
        return False
    meta[OPENED], meta[BEST_LENGTH] = 0, 0
    return True


@jit_inline
def _take_matches(program, state, row, made, out):
    """The matches whose last event is that of a row. Returns the number of rows written, or FULL: then nothing has changed."""
    nodes, links, _, meta = _opened(state)
    limits, key = int64s(program, LIMITS), int64s(state, KEY)
    finals_of, finals = int64s(program, FINALS_OF), int64s(program, FINALS)
    begun, event = meta[NEXT], row[EVENT]
    if limits[POLICY] != ALL:
        best = int64_rows(state, BEST)
        meta[TRIAL_LENGTH], meta[ROW_MADE] = meta[BEST_LENGTH], -1
        for at in range(meta[BEST_LENGTH]):
            best[TRIAL, at] = best[CHOSEN, at]
    for at in range(finals_of[event], finals_of[event + 1]):
        before = _before(program, state, finals[at], row, key)
        if before == 0:
            continue
        _make_node(nodes, links, meta[NEXT], finals[at], NO_LIST, before, row)
        int64_rows(state, STACK)[0, NODE] = meta[NEXT]
        if limits[KEPT] != 0 and before < 0:
            # The match is withdrawn when this node leaves.
            meta[NEXT] += 1
        made = _enumerate(program, state, row[TICK], made, out)
        if made < 0:
            meta[NEXT] = begun
            return np.int64(FULL)
    if limits[POLICY] != ALL:
        made = _settle_choice(state, made, out)
    return made


@jit_inline
def _take_row(program, state, row, made, out):
    """Take in one row of an event. Returns the number of rows written so far, or FULL: then nothing has changed."""
    nodes, links, _, meta = _opened(state)
    limits, key = int64s(program, LIMITS), int64s(state, KEY)
    event = row[EVENT]
    finals_of, linked_of = int64s(program, FINALS_OF), int64s(program, LINKED_OF)
    if limits[CONSUMED] >= 0:
        partition = int64_rows(program, PARTITION)
        for k in range(partition.shape[1]):
            key[k] = row[VALUES + partition[event, k]]
        meta[FLOOR] = _consumed(program, state, row[AT], key)
    # First all matches, then the runs that go on: where there is no room for the matches, nothing has changed.
    if finals_of[event] < finals_of[event + 1]:
        made = _take_matches(program, state, row, made, out)
        if made < 0:
            return np.int64(FULL)
    entries, lists, linked = int64_rows(program, ENTRIES), int64s(program, LISTS), int64s(program, LINKED)
    meta[STEPS] = 0
    for at in range(linked_of[event], linked_of[event + 1]):
        entry = linked[at]
        before = _before(program, state, entry, row, key)
        if before == 0:
            continue
        for place in range(entries[entry, LISTS_FROM], entries[entry, LISTS_TO]):
            number = meta[NEXT]
            _make_node(nodes, links, number, entry, lists[place], before, row)
            meta[NEXT] = number + 1
            _insert(program, state, number, key)
    meta[MOST_STEPS] = max(meta[MOST_STEPS], meta[STEPS])
    return made


@jit_inline
def _find_for(nodes, links, table, tail, base, list_, own, row, places, count):
    """`_find` for the key at these places of a row of an event, and at its own of a node's row."""
    slots, mask, width = np.int64(len(table) - 1), np.int64(len(nodes) - 1), np.int64(nodes.shape[1])
    hashed = (list_ + 1) << 44
    if count > 0:
        hashed ^= row[VALUES + places[0]]
    hashed = mix(hashed)
    for k in range(1, count):
        hashed = combine(hashed, row[VALUES + places[k]])
    slot = hashed & slots
    free = np.int64(-1)
    while table[slot] != 0:
        number = base + table[slot]
        place = number & mask
        if number < tail:
            if free < 0:
                free = slot
        elif np.int64(links[place * 2 * width + KIND]) & NO_LIST == list_:
            same = True
            for k in range(count):
                same = same and nodes[place, FIELDS + own[k]] == row[VALUES + places[k]]
            if same:
                return slot
        slot = (slot + 1) & slots
    return -1 - (slot if free < 0 else free)


@jit_flat
def _take_plain(program, state, rows, start):
    """Take in rows from `start` on up to one that ends a match or for which there is no room. Returns its number, or that of rows.

    The same as the general way where no match is kept, the policy is ALL, and there is no NOT, CONSUME, STRICT TIME or heap: numbers
    stay in registers. Half as fast again.
    """
    nodes, links, table, meta = _opened(state)
    entries, limits, list_keys = int64_rows(program, ENTRIES), int64s(program, LIMITS), int64_rows(program, LIST_KEYS)
    finals_of, finals, linked_of, linked = (
        int64s(program, FINALS_OF), int64s(program, FINALS), int64s(program, LINKED_OF), int64s(program, LINKED),
    )  # fmt: skip
    lists, key_columns = int64s(program, LISTS), int64_rows(program, KEY_COLUMNS)
    mask, width, size = np.int64(len(nodes) - 1), np.int64(nodes.shape[1]), np.int64(len(nodes)) - limits[MOST_NODES]
    most_used = 2 * np.int64(len(table)) // 3 - limits[MOST_NODES]
    within = limits[WITHIN] if limits[WITHIN] >= 0 else np.int64(_ENDLESS)
    events = limits[WITHIN_EVENTS] if limits[WITHIN_EVENTS] >= 0 else np.int64(_ENDLESS)
    tail, following, base, used = meta[TAIL], meta[NEXT], meta[BASE], meta[USED]
    most_steps = meta[MOST_STEPS]
    r = np.int64(start)
    while r < len(rows):
        row, begun = rows[r], following
        at, when, event = row[AT], row[WHEN], row[EVENT]
        while tail < following and (
            at - nodes[tail & mask, POSITION] > events or when - nodes[tail & mask, TIME] > within
        ):
            tail += 1
        if following - tail > size or used > most_used or following - base > MOST_NUMBERS:
            break
        ends = False
        for f in range(finals_of[event], finals_of[event + 1]):
            entry = finals[f]
            source = entries[entry, SOURCE]
            if source < 0:
                ends = True
                break
            slot = _find_for(
                nodes,
                links,
                table,
                tail,
                base,
                source,
                list_keys[source, 1:],
                row,
                key_columns[entry],
                entries[entry, KEYS],
            )
            if slot >= 0:
                # Its runs may all be out of reach: the general way looks.
                before = base + table[slot]
                if before - links[(before & mask) * 2 * width + MOST_RECENT] >= tail:
                    ends = True
                    break
        if ends:
            break
        for n in range(linked_of[event], linked_of[event + 1]):
            entry = linked[n]
            source = entries[entry, SOURCE]
            before, recent = np.int64(-1), np.int64(0)
            if source >= 0:
                slot = _find_for(
                    nodes,
                    links,
                    table,
                    tail,
                    base,
                    source,
                    list_keys[source, 1:],
                    row,
                    key_columns[entry],
                    entries[entry, KEYS],
                )
                if slot < 0:
                    continue
                before = base + table[slot]
                if entries[entry, SAME] == 0 and nodes[before & mask, POSITION] >= at:
                    before -= links[(before & mask) * 2 * width + EARLIER]
                if before < tail:
                    continue
                recent = before - links[(before & mask) * 2 * width + MOST_RECENT]
                if recent < tail:
                    continue
            for place in range(entries[entry, LISTS_FROM], entries[entry, LISTS_TO]):
                list_, number = lists[place], following
                following += 1
                here = number & mask
                half = here * 2 * width
                nodes[here, POSITION], nodes[here, TIME] = at, when
                first = number - recent if source >= 0 else np.int64(0)
                links[half + BEFORE] = number - before if source >= 0 else np.int64(NONE)
                links[half + FIRST] = first
                links[half + KIND] = (entry << _LIST_BITS) | list_
                for c in range(len(row) - VALUES):
                    nodes[here, FIELDS + c] = row[VALUES + c]
                slot = _find_for(
                    nodes,
                    links,
                    table,
                    tail,
                    base,
                    list_,
                    list_keys[list_, 1:],
                    row,
                    list_keys[list_, 1:],
                    list_keys[list_, 0],
                )
                distance, earlier = np.int64(NONE), np.int64(NONE)
                if slot >= 0:
                    older = base + table[slot]
                    distance = number - older
                    there = (older & mask) * 2 * width
                    earlier = distance
                    if nodes[older & mask, POSITION] == at:
                        earlier = min(distance + links[there + EARLIER], NONE)
                    first = min(first, distance + links[there + MOST_RECENT])
                else:
                    slot = -1 - slot
                    used += np.int64(table[slot] == 0)
                links[half + OLDER], links[half + EARLIER], links[half + MOST_RECENT] = distance, earlier, first
                table[slot] = number - base
        most_steps = max(most_steps, following - begun)
        r += 1
    meta[TAIL], meta[NEXT], meta[USED], meta[MOST_STEPS] = tail, following, used, most_steps
    return r


@jit_flat
def _come_to(program, state, row, step, out):
    """Before a row of an event: end the element before, and give up runs that are too far from it. False where there is no room."""
    nodes, meta, limits = int64_rows(state, NODES), int64s(state, META), int64s(program, LIMITS)
    if row[AT] != meta[ELEMENT]:
        if not _end_element(program, state, meta[MADE], out):
            return False
        meta[ELEMENT] = row[AT]
    if _has_expired(nodes, meta, limits, row[AT], row[WHEN]):
        made = _expire(program, state, row[AT], row[WHEN], step, row[TICK], meta[MADE], out)
        if made < 0:
            return False
        meta[MADE] = made
    return True


@jit_flat
def step(program, state, rows, start, ticks, position_ticks, numbers, out):
    """Take in the rows of a step's events from `start` on, in order of their elements, and withdraw matches that no longer stand.

    `rows` (n, VALUES + v), `ticks`: the step's instants, `position_ticks[p - numbers[FIRST_POSITION]]`: the tick of position p.
    Writes to `out` from META's MADE on. Returns n + 1, or the row at which it stopped, to be called again from there: with more
    room in the arrays of MISSING; or, where META's TIED is set, with one of the matches from ELEMENT_MADE on.
    """
    meta, limits = int64s(state, META), int64s(program, LIMITS)
    about, apart = (ticks, position_ticks, numbers), _is_apart(limits)
    meta[MISSING] = OUTPUT_ROOM
    r = np.int64(start)
    while r < len(rows):
        if limits[PLAIN] != 0:
            r = _take_plain(program, state, rows, r)
            if r == len(rows):
                break
        row = rows[r]
        if apart:
            _pass_over(state, limits, row[AT], row[WHEN])
        elif not _come_to(program, state, row, about, out):
            return np.int64(r)
        if not _has_room(program, state):
            return np.int64(r)
        if not apart and meta[OPENED] == 0:
            meta[OPENED], meta[ELEMENT_MADE], meta[ELEMENT_TIME] = 1, meta[MADE], row[WHEN]
        made = _take_row(program, state, row, meta[MADE], out)
        if made < 0:
            return np.int64(r)
        meta[MADE] = made
        r += 1
    if not _end_element(program, state, meta[MADE], out):
        return np.int64(len(rows))
    last = np.int64(len(ticks) - 1)
    made = _expire(program, state, numbers[LAST_POSITION], numbers[EXPIRED_THROUGH], about, last, meta[MADE], out)
    if made < 0:
        return np.int64(len(rows))
    meta[MADE] = made
    return np.int64(len(rows) + 1)
