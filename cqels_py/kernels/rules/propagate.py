"""Temporal rules: what a new part of an interval implies is written down at once, also for times ahead of now, so that
nothing has to be looked up in the past.

On an interval of the body: SOMETIME adds both ends of its own interval, ALWAYS the upper end to the beginning and the
lower end to the end. In a recursion with a delay a part waits until its beginning is now.
"""

from __future__ import annotations

from cqels_py.kernels.compiler.jit import jit_flat, jit_inline
from cqels_py.kernels.rules.calendar import queue_first
from cqels_py.kernels.rules.records import (
    ALWAYS,
    ARITY,
    BEGINNING,
    CHECKS,
    CONSTANT,
    ENTRY,
    FINISHED,
    FIRST,
    FIRST_INDEX,
    FIRST_RULE,
    FOREVER,
    HEAD,
    HEAD_COLUMNS,
    INDEX,
    INDEX_PREDICATE,
    INDEX_WIDTH,
    KIND,
    NEXT_GIVEN,
    NO_ROOM,
    NODE_HI,
    NODE_LO,
    NODE_NEXT,
    NOW,
    PART_HI,
    PART_LO,
    PARTS,
    PARTS_OF_LEFT,
    PROBE_COLUMNS,
    QUEUE_AT,
    QUEUE_END,
    RULE_CHECKS,
    RULE_HI,
    RULE_LO,
    RULES,
    SHORT,
    SHORT_OF_QUEUE,
    SINCE_LEFT,
    SINCE_RIGHT,
    SOMETIME,
    SWEEP_AT,
    SWEEP_LEAST,
    WAITING,
)
from cqels_py.kernels.rules.timelines import (
    add_interval,
    argument,
    drop_ended,
    entry_of_key,
    entry_with,
    link,
    node_at,
    predicate_of,
)
from cqels_py.kernels.structures.hash_table import FREE, USED, rebuild


@jit_inline
def lower_end(lo, by, always):
    """The beginning of what follows from an interval that begins at `lo`, for a distance that ends at `by`.

    A sum of two ends is closed if both are; for ALWAYS, if the interval's is, or the other is open.
    """
    if lo <= -FOREVER:
        return lo
    is_open = (lo & 1) & ((by & 1) ^ 1) if always else (lo & 1) | (by & 1)
    if always:
        return (lo - (lo & 1)) + (by + (by & 1)) + is_open
    return (lo - (lo & 1)) + (by - (by & 1)) + is_open


@jit_inline
def upper_end(hi, by, always):
    if hi >= FOREVER or by >= FOREVER:
        return FOREVER
    is_open = (hi & 1) & ((by & 1) ^ 1) if always else (hi & 1) | (by & 1)
    if always:
        return (hi + (hi & 1)) + (by - (by & 1)) - is_open
    return (hi + (hi & 1)) + (by + (by & 1)) - is_open


@jit_inline
def closure_lo(lo):
    return lo - (lo & 1)


@jit_inline
def closure_hi(hi):
    return hi + (hi & 1)


@jit_inline
def value(state, number, entry, partner, beginning, arity):
    """What a number of `columns` stands for."""
    if number <= CONSTANT:
        return CONSTANT - number
    if number == BEGINNING:
        return beginning
    return argument(state, entry, number) if number < arity else argument(state, partner, number - arity)


@jit_flat
def put(program, state, rule, entry, partner, beginning, lo, hi):
    """Add an interval to the head of a rule, for the entries of its body; False without room."""
    head = program.rules[rule, HEAD]
    arity = program.predicates[predicate_of(state, entry), ARITY]
    state.key[:, 0] = 0
    state.key[0, 0] = head
    for c in range(program.predicates[head, ARITY]):
        number = program.columns[program.rules[rule, HEAD_COLUMNS] + c]
        state.key[1 + c, 0] = value(state, number, entry, partner, beginning, arity)
    into = entry_of_key(program, state)
    return into >= 0 and add_interval(program, state, into, lo, hi)


@jit_flat
def matches(program, state, rule, entry):
    """Whether the constants and repeated variables of a rule's body fit an entry."""
    first, arity = program.rules[rule, CHECKS], program.predicates[predicate_of(state, entry), ARITY]
    for check in range(program.rules[rule, RULE_CHECKS]):
        column, number = program.columns[first + 2 * check], program.columns[first + 2 * check + 1]
        if argument(state, entry, column) != value(state, number, entry, entry, 0, arity):
            return False
    return True


@jit_flat
def shift(program, state, rule, entry, lo, hi):
    """SOMETIME on a new part, ALWAYS on a whole interval."""
    if not matches(program, state, rule, entry):
        return True
    least, greatest = program.rules[rule, RULE_LO], program.rules[rule, RULE_HI]
    if program.rules[rule, KIND] == ALWAYS:
        lo, hi = lower_end(lo, greatest, True), upper_end(hi, least, True)
    else:
        lo, hi = lower_end(lo, least, False), upper_end(hi, greatest, False)
    return lo > hi or put(program, state, rule, entry, entry, 0, lo, hi)


@jit_flat
def chain_of(program, state, rule, entry, beginning):
    """The first partner of an entry in a join, or -1."""
    index = program.rules[rule, INDEX]
    state.chain_key[:, 0] = 0
    state.chain_key[0, 0] = index
    for c in range(program.indexes[index, INDEX_WIDTH]):
        number = program.columns[program.rules[rule, PROBE_COLUMNS] + c]
        state.chain_key[1 + c, 0] = beginning if number == BEGINNING else argument(state, entry, number)
    chain = entry_with(state.chains, state.chain_key)
    return state.heads[chain] if chain >= 0 else chain


@jit_flat
def join(program, state, rule, entry, lo, hi):
    """All rules with a partner. `lo` and `hi`: for the left side of SINCE the whole interval, else the new part."""
    kind, index, beginning = program.rules[rule, KIND], program.rules[rule, INDEX], lo
    if kind == SINCE_LEFT or kind == PARTS_OF_LEFT:
        lo, hi = closure_lo(lo), closure_hi(hi)
    which = index - program.predicates[program.indexes[index, INDEX_PREDICATE], FIRST_INDEX]
    partner = chain_of(program, state, rule, entry, beginning)
    while partner >= 0:
        if not meet(program, state, rule, entry, partner, beginning, lo, hi):
            return False
        partner = state.links[partner, which]
    return True


@jit_flat
def meet(program, state, rule, entry, partner, beginning, lo, hi):
    """A part of an entry with the intervals of a partner."""
    kind = program.rules[rule, KIND]
    node = state.ends[partner, FIRST]
    while node >= 0 and state.nodes[node, NODE_LO] <= hi + 1:
        other_lo, other_hi = state.nodes[node, NODE_LO], state.nodes[node, NODE_HI]
        node = state.nodes[node, NODE_NEXT]
        if kind == PARTS and other_lo != argument(
            state, entry, program.predicates[predicate_of(state, entry), ARITY] - 1
        ):
            continue
        if kind == SINCE_RIGHT or kind == PARTS:
            beginning = other_lo
            other_lo, other_hi = closure_lo(other_lo), closure_hi(other_hi)
        both_lo, both_hi = max(lo, other_lo), min(hi, other_hi)
        if both_lo > both_hi:
            continue
        if kind == SINCE_LEFT or kind == SINCE_RIGHT:
            both_lo = lower_end(both_lo, program.rules[rule, RULE_LO], False)
            both_hi = upper_end(both_hi, program.rules[rule, RULE_HI], False)
        if not put(program, state, rule, entry, partner, beginning, both_lo, both_hi):
            return False
    return True


@jit_flat
def fire(program, state, place):
    """Apply all rules to a queued part; False without room, and then the part stays to be taken again."""
    entry, lo, hi = state.queue[place, ENTRY], state.queue[place, PART_LO], state.queue[place, PART_HI]
    node = node_at(state, entry, lo)
    if node < 0:
        return True
    # A rule may widen the interval that it is applied to: its ends are those from before.
    whole_lo, whole_hi = state.nodes[node, NODE_LO], state.nodes[node, NODE_HI]
    hi = min(hi, whole_hi)
    predicate = predicate_of(state, entry)
    first = program.predicates[predicate, FIRST_RULE]
    for rule in range(first, first + program.predicates[predicate, RULES]):
        kind = program.rules[rule, KIND]
        if kind == SOMETIME:
            done = shift(program, state, rule, entry, lo, hi)
        elif kind == ALWAYS:
            done = shift(program, state, rule, entry, whole_lo, whole_hi)
        elif kind == SINCE_LEFT or kind == PARTS_OF_LEFT:
            done = join(program, state, rule, entry, whole_lo, whole_hi)
        else:
            done = join(program, state, rule, entry, lo, hi)
        if not done:
            return False
    return True


@jit_flat
def is_over(program, state, entry):
    """Whether an entry of SINCE belongs to an interval of the left side that is over."""
    predicate = predicate_of(state, entry)
    if program.predicates[predicate, RULES] == 0:
        return False
    rule = program.predicates[predicate, FIRST_RULE]
    if program.rules[rule, KIND] != PARTS:
        return False
    left = chain_of(program, state, rule, entry, 0)
    if left < 0:
        return True
    beginning = argument(state, entry, program.predicates[predicate, ARITY] - 1)
    node = node_at(state, left, beginning)
    return node < 0 or state.nodes[node, NODE_LO] != beginning


@jit_flat
def sweep(program, state, now):
    """Free the entries without intervals and rebuild all chains. The queue is empty. False without room for output."""
    facts, chains, counters = state.facts, state.chains, state.counters
    for entry in range(facts.meta[USED]):
        if facts.counts[entry] and not drop_ended(program, state, entry, now):
            return False
    for entry in range(facts.meta[USED]):
        if facts.counts[entry] and is_over(program, state, entry):
            # Hidden, so that nothing is output.
            drop_ended(program, state, entry, FOREVER + 2)
    for entry in range(facts.meta[USED]):
        if facts.counts[entry] and state.ends[entry, FIRST] < 0:
            facts.counts[entry] = 0
    width = len(state.key)
    rebuild(facts.table, facts.keys, width, facts.counts, facts.free, facts.meta)
    chains.counts[:] = 0
    rebuild(chains.table, chains.keys, width, chains.counts, chains.free, chains.meta)
    for entry in range(facts.meta[USED]):
        if facts.counts[entry]:
            link(program, state, entry)
    counters[SWEEP_AT] = max(counters[SWEEP_LEAST], 2 * (facts.meta[USED] - facts.meta[FREE]))
    return True


@jit_inline
def next_time(state, given):
    """The earliest beginning of a given fact or a waiting part."""
    counters = state.counters
    time = given[counters[NEXT_GIVEN], len(state.key)] if counters[NEXT_GIVEN] < len(given) else FOREVER + 1
    if counters[WAITING]:
        time = min(time, state.calendar[0, PART_LO])
    return time


@jit_flat
def begin(program, state, given, time):
    """Go to a time: queue the parts that waited for it and the facts given for it; False without room."""
    counters, width = state.counters, len(state.key)
    counters[NOW] = time
    while counters[WAITING] and state.calendar[0, PART_LO] <= time:
        if counters[QUEUE_END] == len(state.queue):
            counters[SHORT] = SHORT_OF_QUEUE
            return False
        queue_first(state)
    while counters[NEXT_GIVEN] < len(given) and given[counters[NEXT_GIVEN], width] <= time:
        fact = counters[NEXT_GIVEN]
        for c in range(width):
            state.key[c, 0] = given[fact, c]
        entry = entry_of_key(program, state)
        if entry < 0 or not add_interval(program, state, entry, given[fact, width], given[fact, width + 1]):
            return False
        counters[NEXT_GIVEN] += 1
    return True


@jit_flat
def propagate(program, state, given, until):
    """Derive all that holds up to `until` from facts (the key, lo, hi) in order of their beginnings.

    Intervals that end are in `output`, the others stay in the state.
    """
    counters = state.counters
    while True:
        while counters[QUEUE_AT] < counters[QUEUE_END]:
            if not fire(program, state, counters[QUEUE_AT]):
                return NO_ROOM
            counters[QUEUE_AT] += 1
        counters[QUEUE_AT] = 0
        counters[QUEUE_END] = 0
        time = next_time(state, given)
        live = state.facts.meta[USED] - state.facts.meta[FREE]
        if live > counters[SWEEP_AT] and not sweep(program, state, counters[NOW]):
            return NO_ROOM
        if time > until:
            return FINISHED
        if not begin(program, state, given, time):
            return NO_ROOM


@jit_flat
def end_all(program, state):
    """Output all intervals that are left; NO_ROOM until the output has been taken."""
    for entry in range(state.facts.meta[USED]):
        if state.facts.counts[entry] and not drop_ended(program, state, entry, FOREVER + 2):
            return NO_ROOM
    return FINISHED
