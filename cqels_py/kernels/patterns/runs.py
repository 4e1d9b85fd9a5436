"""Runs of an event automaton: one element after the other, with constant work for each event and transition.

A *run* is a chain of events, the last of them in some state. It is kept as a node: the last event, and the newest run that it
prolongs. Runs in the same state and with the same key, the values that the next event must have, are linked from newest to
oldest; an event that prolongs one of them prolongs all older ones too, so a node stands for as many runs as there are ways back
through the links. Nodes are numbered from 1 and lie in a ring in the order of their numbers; TAIL is the first one that is still
near enough to be part of a match, and all nodes before it are free. MOST_RECENT of a node is the greatest number of a first event
that a run through it or through an older node of its list can have: if that is before TAIL, the list is empty from there on.

(The list takes the place of the union of Proposition 5.3 of Pinto & Riveros: an insertion changes one link. Runs are walked as in
their Enumerate, with a stack for the chain.) A list whose runs do not begin in the order in which they enter may have many in a row
that are out of reach. Such a list can be HEAPED: then it is their persistent heap (start_heap), and the table has its root.

A NOT whose key is part of that of the transition after it is a *cut*: a list never reaches back behind its last event, as OLDER is
not set across it, and a transition finds the list empty if there is one after its newest run.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat, jit_inline
from cqels_py.kernels.patterns import start_heap as heap
from cqels_py.kernels.primitives.state_record import int64_rows, int64s
from cqels_py.kernels.structures.hashing import combine, mix

# A node's fields, and behind them its row. EARLIER: the newest of its list of an earlier element; in strict time, of an earlier
# instant. Those of a heap's tree are aliased by start_heap. Under EARLIEST the last column is the number of the next newer node.
POSITION, TIME, BEFORE, OLDER, FIRST, MOST_RECENT, ENTRY, LIST, STANDING, EARLIER, FIELDS = range(11)
# An entry: a transition into a state by an event. SOURCE -1: it begins a run. GAP: a NOT that is checked for each run; CUT: one that
# the keys decide. OWN: the row of LATER_THAN with the events than whose nearest this one is later, or -1.
TARGET, SOURCE, SAME, TIMED, GAP, FRESH, FINAL, KEYS, CUT, OWN, ENTRY_FIELDS = range(11)
# The program's arrays.
(
    ENTRIES, ENTRIES_OF, KEY_COLUMNS, LISTS_OF, LISTS, LIST_KEYS, COLUMNS, CLEARED, GAPS, GAP_KEYS, AFTER, EVENT_OF, OUTPUT, LIMITS,
    PARTITION, PARTITION_OUT, CUT_COLUMNS, LIST_CUTS, HEAPED, LATER_THAN,
) = range(20)  # fmt: skip
# The state's arrays.
NODES, TABLE, META, STACK, BOUND, KEY, STAND, STAND_NEXT, BEST, OLDEST, PENDING = range(11)
(
    NEXT, TAIL, USED, POSITIONS, FREE, STANDING_USED, MADE, ELEMENT, OPENED, ELEMENT_MADE, ROW_MADE, FLOOR, BEST_LENGTH,
    TRIAL_LENGTH, TIED, ELEMENT_TIME, PENDING_USED, LONGEST_UNION, MOST_STEPS, MOST_BETWEEN, STEPS,
    META_FIELDS,
) = range(22)  # fmt: skip
# Rows of BEST: the positions of the best match of the element, from last to first; and those with the row at hand.
CHOSEN, TRIAL = range(2)
# A row of an event: its number, the element's position, time and tick, and the values.
EVENT, AT, WHEN, TICK, VALUES = range(5)
# A row of output: tick, sign, the number of the match's first event, and the values.
OUT_TICK, OUT_SIGN, OUT_FIRST, OUT_VALUES = range(4)
# Numbers of a step.
FIRST_POSITION, LAST_POSITION, EXPIRED_THROUGH = range(3)
# LIMITS: greatest distances, -1 for any; which times count; are matches kept, to be withdrawn? which matches of an element are told:
# ALL, the LATEST or the EARLIEST; the list of consumed elements, or -1.
WITHIN, WITHIN_EVENTS, STRICT, KEPT, POLICY, CONSUMED = range(6)
EARLIEST, ALL, LATEST = -1, 0, 1
# A step of the stack. BETTER: the positions so far are better than those of the best match, not only as good.
NODE, VIA, UNKNOWN, BETTER, PENDING_FROM, STACK_FIELDS = range(6)
# A row of LIST_CUTS: the list's cut and the columns of its key; or one of these.
NO_CUT, OF_ABSENT = -1, -2
DONE, FULL = -1, -2


@jit_inline
def _same_key(nodes, mask, number, list_keys, list_, key, count):
    row = number & mask
    if nodes[row, LIST] != list_:
        return False
    for k in range(count):
        if nodes[row, FIELDS + list_keys[list_, 1 + k]] != key[k]:
            return False
    return True


@jit_inline
def _hash(list_, key, count):
    hashed = mix(list_ + 1)
    for k in range(count):
        hashed = combine(hashed, key[k])
    return hashed


@jit_inline
def _find(nodes, table, tail, list_keys, list_, key):
    """The slot with the newest node of a list and key; -1 - slot where there is none: a slot to put it into."""
    count = list_keys[list_, 0]
    mask, slots = np.int64(len(nodes) - 1), np.int64(len(table) - 1)
    slot = _hash(list_, key, count) & slots
    free = np.int64(-1)
    while table[slot] != 0:
        number = table[slot]
        if number < tail:
            if free < 0:
                free = slot
        elif _same_key(nodes, mask, number, list_keys, list_, key, count):
            return slot
        slot = (slot + 1) & slots
    return -1 - (slot if free < 0 else free)


@jit_flat
def _last_absent(program, state, gap, position, key):
    """The position of the last event of a NOT, up to a position, with this key; -1 for none within reach."""
    nodes, table, meta = int64_rows(state, NODES), int64s(state, TABLE), int64s(state, META)
    mask, tail = np.int64(len(nodes) - 1), meta[TAIL]
    slot = _find(nodes, table, tail, int64_rows(program, LIST_KEYS), int64s(program, GAPS)[gap], key)
    number = table[slot] if slot >= 0 else np.int64(0)
    # A NOT has one node for each element.
    while number >= tail and nodes[number & mask, POSITION] > position:
        number = nodes[number & mask, OLDER]
    return nodes[number & mask, POSITION] if number >= tail else np.int64(-1)


@jit_flat
def _is_cut_off(program, state, number, older, key):
    """Is an older run of the list of a new node out of the question, for all that come after the node?"""
    nodes, meta = int64_rows(state, NODES), int64s(state, META)
    list_cuts = int64_rows(program, LIST_CUTS)
    mask = np.int64(len(nodes) - 1)
    list_ = nodes[number & mask, LIST]
    gap, place = list_cuts[list_, 0], nodes[older & mask, POSITION]
    if int64s(program, HEAPED)[list_] != 0 and place <= meta[FLOOR]:
        return True
    if gap < 0:
        return False
    for k in range(int64_rows(program, GAP_KEYS)[gap, 0]):
        key[k] = nodes[number & mask, FIELDS + list_cuts[list_, 1 + k]]
    return place < _last_absent(program, state, gap, nodes[number & mask, POSITION], key)


@jit_flat
def _grow_heap(state, number, root, earlier, slot):
    """Put a new node into the heap of its list."""
    nodes, table, meta = int64_rows(state, NODES), int64s(state, TABLE), int64s(state, META)
    mask, first = np.int64(len(nodes) - 1), meta[NEXT]
    row = number & mask
    meta[NEXT] = heap.insert(nodes, first, root, number, meta[TAIL], meta[TAIL])
    meta[LONGEST_UNION] = max(meta[LONGEST_UNION], meta[NEXT] - first)
    meta[STEPS] += meta[NEXT] - first
    for copy in range(first, meta[NEXT]):
        place = copy & mask
        nodes[place, POSITION], nodes[place, TIME] = nodes[row, POSITION], nodes[row, TIME]
        nodes[place, LIST], nodes[place, STANDING], nodes[place, EARLIER] = -1, 0, 0
        for c in range(FIELDS, nodes.shape[1]):
            nodes[place, c] = 0
    place = first & mask
    nodes[place, LIST], nodes[place, EARLIER] = nodes[row, LIST], earlier
    for c in range(FIELDS, nodes.shape[1]):
        nodes[place, c] = nodes[row, c]
    table[slot] = first


@jit_flat
def _insert(program, state, number, key):
    """Link a new node in front of the list with its key."""
    nodes, table, meta = int64_rows(state, NODES), int64s(state, TABLE), int64s(state, META)
    list_keys, limits = int64_rows(program, LIST_KEYS), int64s(program, LIMITS)
    mask = np.int64(len(nodes) - 1)
    row = number & mask
    list_ = nodes[row, LIST]
    for k in range(list_keys[list_, 0]):
        key[k] = nodes[row, FIELDS + list_keys[list_, 1 + k]]
    slot = _find(nodes, table, meta[TAIL], list_keys, list_, key)
    older = np.int64(0)
    if slot >= 0:
        older = table[slot]
        measure = TIME if limits[STRICT] != 0 else POSITION
        before = older & mask
        nodes[row, EARLIER] = nodes[before, EARLIER] if nodes[before, measure] == nodes[row, measure] else older
        if int64_rows(program, LIST_CUTS)[list_, 0] == OF_ABSENT and nodes[before, POSITION] == nodes[row, POSITION]:
            return
        if _is_cut_off(program, state, number, older, key):
            older = np.int64(0)
    else:
        slot = -1 - slot
        if table[slot] == 0:
            meta[USED] += 1
    meta[STEPS] += 1
    if int64s(program, HEAPED)[list_] != 0:
        _grow_heap(state, number, older, nodes[row, EARLIER], slot)
        return
    nodes[row, OLDER] = older
    if older != 0:
        nodes[row, MOST_RECENT] = max(nodes[row, FIRST], nodes[older & mask, MOST_RECENT])
    if limits[POLICY] == EARLIEST:
        newer = nodes.shape[1] - 1
        nodes[row, newer] = 0
        if older != 0:
            nodes[older & mask, newer] = number
        else:
            int64s(state, OLDEST)[slot] = number
    table[slot] = number


@jit_flat
def _oldest(program, state, number, key):
    """The oldest run within reach of the list that a node is in, up to this node."""
    nodes, table, meta = int64_rows(state, NODES), int64s(state, TABLE), int64s(state, META)
    list_keys, oldest = int64_rows(program, LIST_KEYS), int64s(state, OLDEST)
    mask, list_ = np.int64(len(nodes) - 1), nodes[number & np.int64(len(nodes) - 1), LIST]
    for k in range(list_keys[list_, 0]):
        key[k] = nodes[number & mask, FIELDS + list_keys[list_, 1 + k]]
    slot = _find(nodes, table, meta[TAIL], list_keys, list_, key)
    at = oldest[slot]
    while at < number and (nodes[at & mask, FIRST] < meta[TAIL] or nodes[at & mask, POSITION] <= meta[FLOOR]):
        # Out of reach for ever: no search passes it again.
        at = nodes[at & mask, nodes.shape[1] - 1]
        meta[STEPS] += 1
    oldest[slot] = at
    return at


@jit_flat
def _forget_oldest(program, state, number):
    """A node leaves: the oldest of its list is the next newer one, if it was this."""
    nodes, table, meta = int64_rows(state, NODES), int64s(state, TABLE), int64s(state, META)
    list_keys, oldest, key = int64_rows(program, LIST_KEYS), int64s(state, OLDEST), int64s(state, KEY)
    row = number & np.int64(len(nodes) - 1)
    list_ = nodes[row, LIST]
    if list_ < 0:
        return
    for k in range(list_keys[list_, 0]):
        key[k] = nodes[row, FIELDS + list_keys[list_, 1 + k]]
    slot = _find(nodes, table, meta[TAIL], list_keys, list_, key)
    if slot >= 0 and oldest[slot] == number:
        oldest[slot] = nodes[row, nodes.shape[1] - 1]


@jit_flat
def rebuild(old, old_oldest, nodes, table, oldest, meta, list_keys, key):
    """Fill a new, empty table with the heads of lists that are not dead. Returns their number.

    `oldest`: the oldest of each list, by slot; empty where there is no need of it.
    """
    mask, slots = np.int64(len(nodes) - 1), np.int64(len(table) - 1)
    used = np.int64(0)
    for place in range(len(old)):
        number = old[place]
        if number < meta[TAIL] or number == 0:
            continue
        list_ = nodes[number & mask, LIST]
        count = list_keys[list_, 0]
        for k in range(count):
            key[k] = nodes[number & mask, FIELDS + list_keys[list_, 1 + k]]
        slot = _hash(list_, key, count) & slots
        while table[slot] != 0:
            slot = (slot + 1) & slots
        table[slot] = number
        if len(oldest) > 1:
            oldest[slot] = old_oldest[place]
        used += 1
    meta[USED] = used
    return used


@jit_flat
def _gap_is_empty(program, state, gap, before, after, bound, key):
    """Is there no event of a NOT between two nodes' places? 1: none, 0: there is one, -1: a value of its key is not known."""
    nodes, table, meta = int64_rows(state, NODES), int64s(state, TABLE), int64s(state, META)
    list_keys, gap_keys = int64_rows(program, LIST_KEYS), int64_rows(program, GAP_KEYS)
    strict = int64s(program, LIMITS)[STRICT] != 0
    mask, tail = np.int64(len(nodes) - 1), meta[TAIL]
    list_ = int64s(program, GAPS)[gap]
    for k in range(gap_keys[gap, 0]):
        key[k] = bound[gap_keys[gap, 1 + k]]
        if key[k] == 0:
            return np.int64(-1)
    slot = _find(nodes, table, tail, list_keys, list_, key)
    if slot < 0:
        return np.int64(1)
    measure = TIME if strict else POSITION
    number = table[slot]
    while number >= tail and nodes[number & mask, measure] >= after:
        number = nodes[number & mask, OLDER]
    return np.int64(number < tail or nodes[number & mask, measure] <= before)


@jit_flat
def _check_gaps(program, state, depth, bound, key):
    """Check the NOT that the event at this depth of the stack stands before, as far as values are known: 1, 0 or -1."""
    nodes, stack = int64_rows(state, NODES), int64_rows(state, STACK)
    entries, after_of, event_of = int64_rows(program, ENTRIES), int64_rows(program, AFTER), int64s(program, EVENT_OF)
    measure = TIME if int64s(program, LIMITS)[STRICT] != 0 else POSITION
    mask = np.int64(len(nodes) - 1)
    here = stack[depth, NODE] & mask
    event = event_of[entries[nodes[here, ENTRY], TARGET]]
    for above in range(depth - 1, -1, -1):
        gap = entries[stack[above + 1, VIA], GAP]
        if gap < 0 or after_of[gap, event] == 0:
            continue
        nearest = True
        for between in range(above + 1, depth):
            other = event_of[entries[nodes[stack[between, NODE] & mask, ENTRY], TARGET]]
            nearest = nearest and after_of[gap, other] == 0
        if nearest:
            following = nodes[stack[above, NODE] & mask, measure]
            return _gap_is_empty(program, state, gap, nodes[here, measure], following, bound, key)
    return np.int64(1)


@jit_flat
def _take(program, state, depth, bindings):
    """Bind the values of the node at this depth on top of those above it; False where they differ."""
    nodes, stack = int64_rows(state, NODES), int64_rows(state, STACK)
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
    event = event_of[entries[nodes[row, ENTRY], TARGET]]
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


@jit_flat
def _enumerate(program, state, bindings, key, tick, made, out):
    """Write all matches whose last event is the node at the bottom of the stack. Returns the number of rows, or FULL."""
    nodes, stack, meta = int64_rows(state, NODES), int64_rows(state, STACK), int64s(state, META)
    mask, policy = np.int64(len(nodes) - 1), int64s(program, LIMITS)[POLICY]
    entries, heaped, pending = int64_rows(program, ENTRIES), int64s(program, HEAPED), int64s(state, PENDING)
    link = nodes.shape[1] - 1 if policy == EARLIEST else OLDER
    depth = 0
    meta[PENDING_USED], meta[STEPS] = 0, 0
    stack[0, UNKNOWN] = 0
    stack[0, BETTER] = meta[TRIAL_LENGTH] == 0
    _take(program, state, 0, bindings)
    while True:
        number = stack[depth, NODE]
        before = nodes[number & mask, BEFORE]
        if before == 0:
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
            if depth + 1 == len(stack):
                return np.int64(FULL)
            if meta[PENDING_USED] + heap.LONGEST > len(pending):
                return np.int64(FULL)
            depth += 1
            stack[depth, VIA] = nodes[number & mask, ENTRY]
            stack[depth, NODE] = _oldest(program, state, before, key) if policy == EARLIEST else before
            stack[depth, PENDING_FROM] = meta[PENDING_USED]
            if heaped[entries[stack[depth, VIA], SOURCE]] != 0:
                pending[meta[PENDING_USED]] = before
                meta[PENDING_USED] += 1
            if _settle(program, state, depth, bindings, key):
                continue
            depth -= 1
        # The next older run at this depth, or above it.
        while True:
            if depth == 0:
                meta[MOST_BETWEEN] = max(meta[MOST_BETWEEN], meta[STEPS])
                return made
            stack[depth, NODE] = nodes[stack[depth, NODE] & mask, link]
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
    nodes, stack = int64_rows(state, NODES), int64_rows(state, STACK)
    entries, event_of, later_than = (
        int64_rows(program, ENTRIES),
        int64s(program, EVENT_OF),
        int64_rows(program, LATER_THAN),
    )
    mask = np.int64(len(nodes) - 1)
    here = stack[depth, NODE] & mask
    event = event_of[entries[nodes[here, ENTRY], TARGET]]
    for above in range(depth - 1, -1, -1):
        own = entries[stack[above + 1, VIA], OWN]
        if own < 0 or later_than[own, event] == 0:
            continue
        nearest = True
        for between in range(above + 1, depth):
            nearest = (
                nearest and later_than[own, event_of[entries[nodes[stack[between, NODE] & mask, ENTRY], TARGET]]] == 0
            )
        if nearest and nodes[here, TIME] >= nodes[stack[above, NODE] & mask, TIME]:
            return False
    return True


@jit_flat
def _next_of_heap(state, depth):
    """The next run of the heap at this depth; 0 where there is none."""
    nodes, stack, meta = int64_rows(state, NODES), int64_rows(state, STACK), int64s(state, META)
    pending, mask = int64s(state, PENDING), np.int64(len(nodes) - 1)
    count = meta[PENDING_USED]
    if count == stack[depth, PENDING_FROM]:
        return np.int64(0)
    count -= 1
    place = pending[count] & mask
    for side in (heap.RIGHT, heap.LEFT):
        if not heap.is_dead(nodes, nodes[place, side], meta[TAIL], meta[TAIL]):
            pending[count] = nodes[place, side]
            count += 1
    meta[PENDING_USED] = count
    return nodes[place, heap.CONTENT]


@jit_flat
def _settle(program, state, depth, bindings, key):
    """Move on to the next node at this depth, from the one there, that fits; False where there is none."""
    nodes, stack, meta = int64_rows(state, NODES), int64_rows(state, STACK), int64s(state, META)
    mask, tail, floor = np.int64(len(nodes) - 1), meta[TAIL], meta[FLOOR]
    policy = int64s(program, LIMITS)[POLICY]
    number = stack[depth, NODE]
    if int64s(program, HEAPED)[int64_rows(program, ENTRIES)[stack[depth, VIA], SOURCE]] != 0:
        # The keys decide all comparisons, and all runs in the heap are within reach.
        stack[depth, NODE] = _next_of_heap(state, depth)
        stack[depth, UNKNOWN] = stack[depth - 1, UNKNOWN]
        meta[STEPS] += 1
        return stack[depth, NODE] != 0 and _take(program, state, depth, bindings)
    newest = nodes[stack[depth - 1, NODE] & mask, BEFORE]
    while number >= tail:
        meta[STEPS] += 1
        if policy == EARLIEST:
            if number > newest:
                return False
        elif nodes[number & mask, MOST_RECENT] < tail or nodes[number & mask, POSITION] <= floor:
            return False
        stack[depth, NODE] = number
        if nodes[number & mask, FIRST] >= tail and nodes[number & mask, POSITION] > floor:
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
        number = nodes[number & mask, nodes.shape[1] - 1 if policy == EARLIEST else OLDER]
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
def _prolonged(nodes, tail, number, row, same, timed, strict):
    """The first node of a list, or root of its heap, that the event of a row may follow; 0 for none."""
    mask = np.int64(len(nodes) - 1)
    if timed != 0 and nodes[number & mask, TIME] >= row[WHEN]:
        number = nodes[number & mask, EARLIER]
    elif strict == 0 and same == 0 and nodes[number & mask, POSITION] >= row[AT]:
        number = nodes[number & mask, EARLIER]
    # In strict time, parts of AND in one element.
    while same == 0 and number >= tail and nodes[number & mask, POSITION] >= row[AT]:
        number = nodes[number & mask, OLDER]
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


@jit_flat
def _expire(program, state, position, time, step, tick, made, out):
    """Give up the nodes that are too far from this position and time, and withdraw the matches that began with them.

    Changes are at `tick` at the latest. Returns the number of rows, or FULL; then it goes on where it stopped.
    """
    ticks, position_ticks, numbers = step
    nodes, meta, limits = int64_rows(state, NODES), int64s(state, META), int64s(program, LIMITS)
    stand, following = int64_rows(state, STAND), int64s(state, STAND_NEXT)
    mask, within, events = np.int64(len(nodes) - 1), limits[WITHIN], limits[WITHIN_EVENTS]
    while meta[TAIL] < meta[NEXT]:
        row = meta[TAIL] & mask
        if not _has_expired(nodes, meta, limits, position, time):
            return made
        late = within >= 0 and time - nodes[row, TIME] > within
        far = events >= 0 and position - nodes[row, POSITION] > events
        if nodes[row, STANDING] != 0:
            at = np.int64(tick)
            if late:
                at = min(at, _first_at(ticks, nodes[row, TIME] + within + 1))
            if far:
                after = nodes[row, POSITION] + events + 1 - numbers[FIRST_POSITION]
                if after >= 0:
                    at = min(at, position_ticks[after])
            while nodes[row, STANDING] != 0:
                if made == len(out):
                    meta[MADE] = made
                    return np.int64(FULL)
                place = nodes[row, STANDING]
                out[made, OUT_TICK], out[made, OUT_SIGN], out[made, OUT_FIRST] = at, -1, meta[TAIL]
                for c in range(stand.shape[1]):
                    out[made, OUT_VALUES + c] = stand[place, c]
                    stand[place, c] = 0
                made += 1
                nodes[row, STANDING] = following[place]
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
    nodes, table, meta = int64_rows(state, NODES), int64s(state, TABLE), int64s(state, META)
    source = entries[entry, SOURCE]
    if source < 0:
        return np.int64(-1)
    for k in range(entries[entry, KEYS]):
        key[k] = row[VALUES + key_columns[entry, k]]
    slot = _find(nodes, table, meta[TAIL], int64_rows(program, LIST_KEYS), source, key)
    if slot < 0:
        return np.int64(0)
    strict, mask = int64s(program, LIMITS)[STRICT], np.int64(len(nodes) - 1)
    before = _prolonged(nodes, meta[TAIL], table[slot], row, entries[entry, SAME], entries[entry, TIMED], strict)
    if before == 0:
        return np.int64(0)
    recent = FIRST if int64s(program, HEAPED)[source] != 0 else MOST_RECENT
    if nodes[before & mask, recent] < meta[TAIL] or nodes[before & mask, POSITION] <= meta[FLOOR]:
        return np.int64(0)
    gap = entries[entry, CUT]
    if gap >= 0:
        for k in range(int64_rows(program, GAP_KEYS)[gap, 0]):
            key[k] = row[VALUES + int64_rows(program, CUT_COLUMNS)[entry, k]]
        if nodes[before & mask, POSITION] < _last_absent(program, state, gap, row[AT] - 1, key):
            return np.int64(0)
    return before


@jit_inline
def _make_node(nodes, number, entry, list_, before, row, recent):
    """Write a node that is in no list yet. `recent`: the field of `before` with the greatest number of a first event."""
    mask = np.int64(len(nodes) - 1)
    place = number & mask
    nodes[place, POSITION], nodes[place, TIME], nodes[place, BEFORE] = row[AT], row[WHEN], max(before, np.int64(0))
    nodes[place, OLDER], nodes[place, ENTRY], nodes[place, STANDING], nodes[place, LIST] = 0, entry, 0, list_
    nodes[place, FIRST] = number if before < 0 else nodes[before & mask, recent]
    nodes[place, MOST_RECENT], nodes[place, EARLIER] = nodes[place, FIRST], 0
    for c in range(len(row) - VALUES):
        nodes[place, FIELDS + c] = row[VALUES + c]


@jit_flat
def _keep(state, first, made, out):
    """Keep the matches in out[first:made] with their first events. False where there is no room for them."""
    nodes, meta = int64_rows(state, NODES), int64s(state, META)
    stand, following = int64_rows(state, STAND), int64s(state, STAND_NEXT)
    if meta[STANDING_USED] + made - first >= len(following):
        return False
    mask = np.int64(len(nodes) - 1)
    for m in range(first, made):
        place = meta[FREE]
        if place > 0:
            meta[FREE] = following[place]
        else:
            meta[STANDING_USED] += 1
            place = meta[STANDING_USED]
        for c in range(stand.shape[1]):
            stand[place, c] = out[m, OUT_VALUES + c]
        row = out[m, OUT_FIRST] & mask
        following[place] = nodes[row, STANDING]
        nodes[row, STANDING] = place
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
    nodes, table, meta = int64_rows(state, NODES), int64s(state, TABLE), int64s(state, META)
    mask, list_keys = np.int64(len(nodes) - 1), int64_rows(program, LIST_KEYS)
    slot = _find(nodes, table, meta[TAIL], list_keys, int64s(program, LIMITS)[CONSUMED], key)
    number = table[slot] if slot >= 0 else np.int64(0)
    while number >= meta[TAIL]:
        if nodes[number & mask, POSITION] < position:
            return nodes[number & mask, POSITION]
        number = nodes[number & mask, OLDER]
    return np.int64(-1)


@jit_flat
def _end_element(program, state, made, out):
    """All rows of an element have been taken in: keep its matches, and consume. False where there is no room, or TIED is set."""
    nodes, meta = int64_rows(state, NODES), int64s(state, META)
    limits, key = int64s(program, LIMITS), int64s(state, KEY)
    first = meta[ELEMENT_MADE]
    if meta[OPENED] == 0 or first == made:
        meta[OPENED], meta[BEST_LENGTH] = 0, 0
        return True
    if limits[POLICY] != ALL and made > first + 1:
        meta[TIED] = 1
        return False
    if limits[KEPT] != 0 and not _keep(state, first, made, out):
        return False
    if limits[CONSUMED] >= 0:
        mask, columns = np.int64(len(nodes) - 1), int64s(program, PARTITION_OUT)
        for m in range(first, made):
            for k in range(len(columns)):
                key[k] = out[m, OUT_VALUES + columns[k]]
            if _consumed(program, state, meta[ELEMENT] + 1, key) == meta[ELEMENT]:
                continue
            number = meta[NEXT]
            place = number & mask
            for field in range(FIELDS):
                nodes[place, field] = 0
            nodes[place, POSITION], nodes[place, TIME] = meta[ELEMENT], meta[ELEMENT_TIME]
            nodes[place, FIRST], nodes[place, LIST] = number, limits[CONSUMED]
            for k in range(len(columns)):
                nodes[place, FIELDS + k] = key[k]
            meta[NEXT] += 1
            _insert(program, state, number, key)
    meta[OPENED], meta[BEST_LENGTH] = 0, 0
    return True


@jit_flat
def _take_row(program, state, row, made, out):
    """Take in one row of an event. Returns the number of rows written so far, or FULL: then nothing has changed."""
    nodes, meta = int64_rows(state, NODES), int64s(state, META)
    entries, entries_of = int64_rows(program, ENTRIES), int64s(program, ENTRIES_OF)
    lists_of, lists, heaped = int64s(program, LISTS_OF), int64s(program, LISTS), int64s(program, HEAPED)
    stack, bindings, key = int64_rows(state, STACK), int64_rows(state, BOUND), int64s(state, KEY)
    kept = int64s(program, LIMITS)[KEPT] != 0
    begun = meta[NEXT]
    first, last = entries_of[row[EVENT]], entries_of[row[EVENT] + 1]
    limits = int64s(program, LIMITS)
    if limits[CONSUMED] >= 0:
        partition = int64_rows(program, PARTITION)
        for k in range(partition.shape[1]):
            key[k] = row[VALUES + partition[row[EVENT], k]]
        meta[FLOOR] = _consumed(program, state, row[AT], key)
    if limits[POLICY] != ALL:
        best = int64_rows(state, BEST)
        meta[TRIAL_LENGTH], meta[ROW_MADE] = meta[BEST_LENGTH], -1
        for at in range(meta[BEST_LENGTH]):
            best[TRIAL, at] = best[CHOSEN, at]
    # First all matches, then the runs that go on: where there is no room for the matches, nothing has changed.
    for entry in range(first, last):
        if entries[entry, FINAL] == 0:
            continue
        before = _before(program, state, entry, row, key)
        if before == 0:
            continue
        recent = FIRST if before > 0 and heaped[entries[entry, SOURCE]] != 0 else MOST_RECENT
        _make_node(nodes, meta[NEXT], entry, -1, before, row, recent)
        stack[0, NODE] = meta[NEXT]
        if kept and before < 0:
            # The match is withdrawn when this node leaves.
            meta[NEXT] += 1
        made = _enumerate(program, state, bindings, key, row[TICK], made, out)
        if made < 0:
            meta[NEXT] = begun
            return np.int64(FULL)
    if limits[POLICY] != ALL:
        made = _settle_choice(state, made, out)
    meta[STEPS] = 0
    for entry in range(first, last):
        target = entries[entry, TARGET]
        if lists_of[target] == lists_of[target + 1]:
            continue
        before = _before(program, state, entry, row, key)
        if before == 0:
            continue
        for place in range(lists_of[target], lists_of[target + 1]):
            recent = FIRST if before > 0 and heaped[entries[entry, SOURCE]] != 0 else MOST_RECENT
            number = meta[NEXT]
            _make_node(nodes, number, entry, lists[place], before, row, recent)
            meta[NEXT] += 1
            _insert(program, state, number, key)
    meta[MOST_STEPS] = max(meta[MOST_STEPS], meta[STEPS])
    return made


@jit_flat
def step(program, state, rows, start, ticks, position_ticks, numbers, out):
    """Take in the rows of a step's events from `start` on, in order of their elements, and withdraw matches that no longer stand.

    `rows` (n, VALUES + v), `ticks`: the step's instants, `position_ticks[p - numbers[FIRST_POSITION]]`: the tick of position p.
    Writes to `out` from META's MADE on. Returns n + 1, or the row at which it stopped, to be called again from there: with more
    room; or, where META's TIED is set, with one of the matches from ELEMENT_MADE on. A LAST_POSITION of -1: the step is not over.
    """
    nodes, meta, limits = int64_rows(state, NODES), int64s(state, META), int64s(program, LIMITS)
    made = meta[MADE]
    about = (ticks, position_ticks, numbers)
    for r in range(start, len(rows)):
        row = rows[r]
        if row[AT] != meta[ELEMENT]:
            if not _end_element(program, state, made, out):
                return np.int64(r)
            meta[ELEMENT] = row[AT]
        if _has_expired(nodes, meta, limits, row[AT], row[WHEN]):
            made = _expire(program, state, row[AT], row[WHEN], about, row[TICK], made, out)
            if made < 0:
                return np.int64(r)
            meta[MADE] = made
        if meta[OPENED] == 0:
            meta[OPENED], meta[ELEMENT_MADE], meta[ELEMENT_TIME] = 1, made, row[WHEN]
        made = _take_row(program, state, row, made, out)
        if made < 0:
            return np.int64(r)
        meta[MADE] = made
    if numbers[LAST_POSITION] < 0:
        # More rows are to come, perhaps of the same element.
        return np.int64(len(rows) + 1)
    if not _end_element(program, state, made, out):
        return np.int64(len(rows))
    last = np.int64(len(ticks) - 1)
    made = _expire(program, state, numbers[LAST_POSITION], numbers[EXPIRED_THROUGH], about, last, made, out)
    if made < 0:
        return np.int64(len(rows))
    meta[MADE] = made
    return np.int64(len(rows) + 1)
