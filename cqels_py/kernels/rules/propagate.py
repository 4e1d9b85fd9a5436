"""Temporal rules: the conclusions from a new part of an interval are written down at once, also for times ahead of now, so that
nothing has to be looked up in the past.

On an interval of the body: SOMETIME adds both ends of its own interval, ALWAYS the upper end to the beginning and the
lower end to the end. In a recursion with a delay a part waits until its beginning is now.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat, jit_inline
from cqels_py.kernels.primitives.state_record import int64_rows, int64s
from cqels_py.kernels.rules.calendar import queue_first
from cqels_py.kernels.rules.records import (
    ALWAYS,
    ARITY,
    BEGINNING,
    BEGUN,
    BODY_INDEX,
    CALENDAR_ARRAY,
    CHAIN_KEY_ARRAY,
    CHECKS,
    COLUMNS_ARRAY,
    CONSTANT,
    CONSTANTS_ARRAY,
    COUNTERS_ARRAY,
    ENDS_ARRAY,
    ENTRY,
    FAILED,
    FINAL,
    FINISHED,
    FIRST,
    FIRST_INDEX,
    FIRST_RULE,
    FOREVER,
    HEAD,
    HEAD_COLUMNS,
    HEADS_ARRAY,
    HORIZON,
    INDEX,
    INDEX_PREDICATE,
    INDEX_WIDTH,
    INDEXES_ARRAY,
    KEY_ARRAY,
    KIND,
    LEVEL,
    LEVELS,
    LINKS_ARRAY,
    LIVE,
    NEXT_GIVEN,
    NO_ROOM,
    NODE_HI,
    NODE_LO,
    NODE_NEXT,
    NODES_ARRAY,
    NOT,
    NOW,
    PART_HI,
    PART_LO,
    PARTS,
    PARTS_OF_LEFT,
    PREDICATES_ARRAY,
    PROBE_COLUMNS,
    QUEUE_ARRAY,
    QUEUE_AT,
    QUEUE_END,
    RULE_CHECKS,
    RULE_HI,
    RULE_LEVEL,
    RULE_LO,
    RULES,
    RULES_ARRAY,
    SHORT,
    SHORT_OF_QUEUE,
    SHORT_OF_VALUES,
    SHOWN,
    SINCE_LEFT,
    SINCE_RIGHT,
    SOMETIME,
    SWEEP_AT,
    SWEEP_LEAST,
    TEST,
    TIMER_TIME,
    TIMERS_ARRAY,
    VALUES_ARRAY,
    WAITING,
    RuleRecords,
)
from cqels_py.kernels.rules.timelines import (
    add_interval,
    argument,
    drop_ended,
    entry_of_key,
    entry_with,
    link,
    next_change,
    node_at,
    predicate_of,
    tell_begun,
)
from cqels_py.kernels.rules.timers import first_timer, put_off, set_timer, stop_timer
from cqels_py.kernels.structures.hash_table import FREE, USED, rebuild
from cqels_py.kernels.structures.key_index import open_index


@jit_inline
def lower_end(lo, by, always):
    """The beginning of the conclusion from an interval that begins at `lo`, for a distance that ends at `by`.

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
def value(rules, number, entry, partner, beginning, arity):
    """The value that a number of `columns` stands for."""
    if number <= CONSTANT:
        return int64s(rules.program, CONSTANTS_ARRAY)[CONSTANT - number]
    if number == BEGINNING:
        return beginning
    return argument(rules, entry, number) if number < arity else argument(rules, partner, number - arity)


@jit_flat
def put(rules, rule, entry, partner, beginning, lo, hi):
    """Add an interval to the head of a rule, for the entries of its body; False without room."""
    predicates = int64_rows(rules.program, PREDICATES_ARRAY)
    rows = int64_rows(rules.program, RULES_ARRAY)
    columns = int64s(rules.program, COLUMNS_ARRAY)
    key = int64_rows(rules.state, KEY_ARRAY)
    head = rows[rule, HEAD]
    arity = predicates[predicate_of(rules, entry), ARITY]
    key[:, 0] = 0
    key[0, 0] = head
    for c in range(predicates[head, ARITY]):
        number = columns[rows[rule, HEAD_COLUMNS] + c]
        key[1 + c, 0] = value(rules, number, entry, partner, beginning, arity)
    into = entry_of_key(rules)
    return into >= 0 and add_interval(rules, into, lo, hi)


@jit_flat
def matches(rules, rule, entry):
    """Whether the constants and repeated variables of a rule's body fit an entry."""
    predicates = int64_rows(rules.program, PREDICATES_ARRAY)
    rows = int64_rows(rules.program, RULES_ARRAY)
    columns = int64s(rules.program, COLUMNS_ARRAY)
    first, arity = rows[rule, CHECKS], predicates[predicate_of(rules, entry), ARITY]
    for check in range(rows[rule, RULE_CHECKS]):
        column, number = columns[first + 2 * check], columns[first + 2 * check + 1]
        if argument(rules, entry, column) != value(rules, number, entry, entry, 0, arity):
            return False
    return True


@jit_flat
def shift(rules, rule, entry, lo, hi):
    """SOMETIME on a new part, ALWAYS on a whole interval."""
    rows = int64_rows(rules.program, RULES_ARRAY)
    if not matches(rules, rule, entry):
        return True
    least, greatest = rows[rule, RULE_LO], rows[rule, RULE_HI]
    if rows[rule, KIND] == ALWAYS:
        lo, hi = lower_end(lo, greatest, True), upper_end(hi, least, True)
    else:
        lo, hi = lower_end(lo, least, False), upper_end(hi, greatest, False)
    return lo > hi or put(rules, rule, entry, entry, 0, lo, hi)


@jit_flat
def chain_of(rules, rule, entry, beginning):
    """The first partner of an entry in a join, or -1."""
    rows = int64_rows(rules.program, RULES_ARRAY)
    columns = int64s(rules.program, COLUMNS_ARRAY)
    indexes = int64_rows(rules.program, INDEXES_ARRAY)
    heads = int64s(rules.state, HEADS_ARRAY)
    chain_key = int64_rows(rules.state, CHAIN_KEY_ARRAY)
    chains = open_index(rules.chains)
    index = rows[rule, INDEX]
    chain_key[:, 0] = 0
    chain_key[0, 0] = index
    for c in range(indexes[index, INDEX_WIDTH]):
        number = columns[rows[rule, PROBE_COLUMNS] + c]
        chain_key[1 + c, 0] = beginning if number == BEGINNING else argument(rules, entry, number)
    chain = entry_with(chains, chain_key)
    return heads[chain] if chain >= 0 else chain


@jit_flat
def join(rules, rule, entry, lo, hi):
    """All rules with a partner. `lo` and `hi`: for the left side of SINCE the whole interval, else the new part."""
    predicates = int64_rows(rules.program, PREDICATES_ARRAY)
    rows = int64_rows(rules.program, RULES_ARRAY)
    indexes = int64_rows(rules.program, INDEXES_ARRAY)
    links = int64_rows(rules.state, LINKS_ARRAY)
    kind, index, beginning = rows[rule, KIND], rows[rule, INDEX], lo
    if kind == SINCE_LEFT or kind == PARTS_OF_LEFT:
        lo, hi = closure_lo(lo), closure_hi(hi)
    which = index - predicates[indexes[index, INDEX_PREDICATE], FIRST_INDEX]
    partner = chain_of(rules, rule, entry, beginning)
    while partner >= 0:
        if not meet(rules, rule, entry, partner, beginning, lo, hi):
            return False
        partner = links[partner, which]
    return True


@jit_flat
def meet(rules, rule, entry, partner, beginning, lo, hi):
    """A part of an entry with the intervals of a partner."""
    predicates = int64_rows(rules.program, PREDICATES_ARRAY)
    rows = int64_rows(rules.program, RULES_ARRAY)
    ends = int64_rows(rules.state, ENDS_ARRAY)
    nodes = int64_rows(rules.state, NODES_ARRAY)
    kind = rows[rule, KIND]
    node = ends[partner, FIRST]
    while node >= 0 and nodes[node, NODE_LO] <= hi + 1:
        other_lo, other_hi = nodes[node, NODE_LO], nodes[node, NODE_HI]
        node = nodes[node, NODE_NEXT]
        if kind == PARTS and other_lo != argument(rules, entry, predicates[predicate_of(rules, entry), ARITY] - 1):
            continue
        if kind == SINCE_RIGHT or kind == PARTS:
            beginning = other_lo
            other_lo, other_hi = closure_lo(other_lo), closure_hi(other_hi)
        both_lo, both_hi = max(lo, other_lo), min(hi, other_hi)
        if both_lo > both_hi:
            continue
        if kind == SINCE_LEFT or kind == SINCE_RIGHT:
            both_lo = lower_end(both_lo, rows[rule, RULE_LO], False)
            both_hi = upper_end(both_hi, rows[rule, RULE_HI], False)
        if not put(rules, rule, entry, partner, beginning, both_lo, both_hi):
            return False
    return True


@jit_flat
def test(rules, rule, entry, lo, hi):
    """A condition, or a computed value, of an entry; False also if the entry has not been tested."""
    outcome = int64s(rules.state, VALUES_ARRAY)[entry]
    if outcome == 0:
        int64s(rules.state, COUNTERS_ARRAY)[SHORT] = SHORT_OF_VALUES
        return False
    return outcome == FAILED or put(rules, rule, entry, entry, outcome, lo, hi)


@jit_flat
def without(rules, rule, entry, lo, hi):
    """The parts of an interval of the body, between FINAL and NOW, at which the partner does not hold."""
    ends = int64_rows(rules.state, ENDS_ARRAY)
    nodes = int64_rows(rules.state, NODES_ARRAY)
    counters = int64s(rules.state, COUNTERS_ARRAY)
    at, hi = max(lo, counters[FINAL] + 1), min(hi, counters[NOW])
    partner = chain_of(rules, rule, entry, 0)
    node = ends[partner, FIRST] if partner >= 0 else np.int64(-1)
    while at <= hi:
        while node >= 0 and nodes[node, NODE_HI] < at:
            node = nodes[node, NODE_NEXT]
        if node < 0 or nodes[node, NODE_LO] > hi:
            return put(rules, rule, entry, entry, 0, at, hi)
        if nodes[node, NODE_LO] > at and not put(rules, rule, entry, entry, 0, at, nodes[node, NODE_LO] - 1):
            return False
        at = nodes[node, NODE_HI] + 1
    return True


@jit_flat
def first_of(rules, index):
    """The first entry of an index without columns, or -1."""
    chain_key = int64_rows(rules.state, CHAIN_KEY_ARRAY)
    chain_key[:, 0] = 0
    chain_key[0, 0] = index
    chain = entry_with(open_index(rules.chains), chain_key)
    return int64s(rules.state, HEADS_ARRAY)[chain] if chain >= 0 else chain


@jit_inline
def link_of(rules, index):
    """Which of the links of an entry is that of an index."""
    indexes = int64_rows(rules.program, INDEXES_ARRAY)
    return index - int64_rows(rules.program, PREDICATES_ARRAY)[indexes[index, INDEX_PREDICATE], FIRST_INDEX]


@jit_flat
def negate(rules, level):
    """Apply the rules with NOT of a stratum to all that their bodies have between FINAL and NOW; False without room."""
    rows = int64_rows(rules.program, RULES_ARRAY)
    ends = int64_rows(rules.state, ENDS_ARRAY)
    nodes = int64_rows(rules.state, NODES_ARRAY)
    links = int64_rows(rules.state, LINKS_ARRAY)
    for rule in range(np.uint64(len(rows))):
        if rows[rule, KIND] != NOT or rows[rule, RULE_LEVEL] != level:
            continue
        index = rows[rule, BODY_INDEX]
        entry = first_of(rules, index)
        while entry >= 0:
            node = ends[entry, FIRST]
            while node >= 0:
                if not without(rules, rule, entry, nodes[node, NODE_LO], nodes[node, NODE_HI]):
                    return False
                node = nodes[node, NODE_NEXT]
            entry = links[entry, link_of(rules, index)]
    return True


@jit_flat
def tell(rules, until):
    """Output the facts that begin and cease to hold through a time; False without room."""
    predicates = int64_rows(rules.program, PREDICATES_ARRAY)
    timers = int64_rows(rules.state, TIMERS_ARRAY)
    entry = first_timer(rules)
    while entry >= 0 and timers[entry, TIMER_TIME] <= until:
        time, following = timers[entry, TIMER_TIME], np.int64(FOREVER + 3)
        # The entry may have been swept, and be that of another predicate now.
        if predicates[predicate_of(rules, entry), SHOWN] == LIVE:
            if not drop_ended(rules, entry, time) or not tell_begun(rules, entry, time):
                return False
            following = next_change(rules, entry, time)
        if following <= FOREVER:
            put_off(rules, entry, following)
        else:
            stop_timer(rules, entry)
        entry = first_timer(rules)
    return True


@jit_flat
def set_timers(program, facts, chains, state):
    """Set the timers of a state that has none."""
    rules = RuleRecords(program, facts, chains, state)
    predicates, atoms = int64_rows(program, PREDICATES_ARRAY), open_index(facts)
    for entry in range(atoms.meta[USED]):
        if atoms.counts[entry] and predicates[predicate_of(rules, entry), SHOWN] == LIVE:
            time = next_change(rules, entry, np.int64(-FOREVER - 2))
            if time <= FOREVER:
                set_timer(rules, entry, time)


@jit_flat
def fire(rules, place):
    """Apply all rules to a queued part; False without room, and then the part stays to be taken again."""
    predicates = int64_rows(rules.program, PREDICATES_ARRAY)
    rows = int64_rows(rules.program, RULES_ARRAY)
    nodes = int64_rows(rules.state, NODES_ARRAY)
    queue = int64_rows(rules.state, QUEUE_ARRAY)
    counters = int64s(rules.state, COUNTERS_ARRAY)
    entry, lo, hi = queue[place, ENTRY], queue[place, PART_LO], queue[place, PART_HI]
    node = node_at(rules, entry, lo)
    if node < 0:
        return True
    # A rule may widen the interval that it is applied to: its ends are those from before.
    whole_lo, whole_hi = nodes[node, NODE_LO], nodes[node, NODE_HI]
    hi = min(hi, whole_hi)
    predicate = predicate_of(rules, entry)
    first = predicates[predicate, FIRST_RULE]
    for rule in range(first, first + predicates[predicate, RULES]):
        kind = rows[rule, KIND]
        if kind == SOMETIME:
            done = shift(rules, rule, entry, lo, hi)
        elif kind == ALWAYS:
            done = shift(rules, rule, entry, whole_lo, whole_hi)
        elif kind == SINCE_LEFT or kind == PARTS_OF_LEFT:
            done = join(rules, rule, entry, whole_lo, whole_hi)
        elif kind == TEST:
            done = test(rules, rule, entry, lo, hi)
        elif kind == NOT:
            # Before its stratum is applied, all of the body is still to come.
            done = counters[LEVEL] < rows[rule, RULE_LEVEL] or without(rules, rule, entry, lo, hi)
        else:
            done = join(rules, rule, entry, lo, hi)
        if not done:
            return False
    return True


@jit_flat
def is_over(rules, entry):
    """Whether an entry of SINCE belongs to an interval of the left side that is over."""
    predicates = int64_rows(rules.program, PREDICATES_ARRAY)
    rows = int64_rows(rules.program, RULES_ARRAY)
    nodes = int64_rows(rules.state, NODES_ARRAY)
    predicate = predicate_of(rules, entry)
    if predicates[predicate, RULES] == 0:
        return False
    rule = predicates[predicate, FIRST_RULE]
    if rows[rule, KIND] != PARTS:
        return False
    left = chain_of(rules, rule, entry, 0)
    if left < 0:
        return True
    beginning = argument(rules, entry, predicates[predicate, ARITY] - 1)
    node = node_at(rules, left, beginning)
    return node < 0 or nodes[node, NODE_LO] != beginning


@jit_flat
def sweep(rules, now):
    """Free the entries without intervals and rebuild all chains. The queue is empty. False without room for output."""
    ends = int64_rows(rules.state, ENDS_ARRAY)
    key = int64_rows(rules.state, KEY_ARRAY)
    counters = int64s(rules.state, COUNTERS_ARRAY)
    facts = open_index(rules.facts)
    chains = open_index(rules.chains)
    for entry in range(facts.meta[USED]):
        if facts.counts[entry] and not drop_ended(rules, entry, now):
            return False
    for entry in range(facts.meta[USED]):
        if facts.counts[entry] and is_over(rules, entry):
            # Hidden, so that nothing is output.
            drop_ended(rules, entry, FOREVER + 2)
    for entry in range(facts.meta[USED]):
        if facts.counts[entry] and ends[entry, FIRST] < 0:
            facts.counts[entry] = 0
    width = len(key)
    rebuild(facts.table, facts.keys, width, facts.counts, facts.free, facts.meta)
    chains.counts[:] = 0
    rebuild(chains.table, chains.keys, width, chains.counts, chains.free, chains.meta)
    for entry in range(facts.meta[USED]):
        if facts.counts[entry]:
            link(rules, entry)
    counters[SWEEP_AT] = max(counters[SWEEP_LEAST], 2 * (facts.meta[USED] - facts.meta[FREE]))
    return True


@jit_inline
def next_time(rules, given):
    """The earliest beginning of a given fact or a waiting part."""
    calendar = int64_rows(rules.state, CALENDAR_ARRAY)
    key = int64_rows(rules.state, KEY_ARRAY)
    counters = int64s(rules.state, COUNTERS_ARRAY)
    time = given[counters[NEXT_GIVEN], len(key)] if counters[NEXT_GIVEN] < len(given) else FOREVER + 1
    if counters[WAITING]:
        time = min(time, calendar[0, PART_LO])
    return time


@jit_flat
def begin(rules, given):
    """Queue the parts that waited for NOW and the facts given for it; False without room."""
    queue = int64_rows(rules.state, QUEUE_ARRAY)
    calendar = int64_rows(rules.state, CALENDAR_ARRAY)
    key = int64_rows(rules.state, KEY_ARRAY)
    counters = int64s(rules.state, COUNTERS_ARRAY)
    width, time = len(key), counters[NOW]
    while counters[WAITING] and calendar[0, PART_LO] <= time:
        if counters[QUEUE_END] == len(queue):
            counters[SHORT] = SHORT_OF_QUEUE
            return False
        queue_first(rules)
    while counters[NEXT_GIVEN] < len(given) and given[counters[NEXT_GIVEN], width] <= time:
        fact = counters[NEXT_GIVEN]
        for c in range(width):
            key[c, 0] = given[fact, c]
        entry = entry_of_key(rules)
        if entry < 0 or not add_interval(rules, entry, given[fact, width], given[fact, width + 1]):
            return False
        counters[NEXT_GIVEN] += 1
    counters[BEGUN] = 1
    return True


@jit_flat
def complete(rules, given):
    """Derive all that holds at NOW; False without room."""
    counters = int64s(rules.state, COUNTERS_ARRAY)
    if not counters[BEGUN] and not begin(rules, given):
        return False
    while True:
        while counters[QUEUE_AT] < counters[QUEUE_END]:
            if not fire(rules, counters[QUEUE_AT]):
                return False
            counters[QUEUE_AT] += 1
        counters[QUEUE_AT] = 0
        counters[QUEUE_END] = 0
        if counters[LEVEL] == counters[LEVELS] or counters[NOW] <= -FOREVER:
            # The times that NOT gives before the first end of an interval are known when that is gone to.
            return True
        # Lower strata do not change any more through NOW.
        if not negate(rules, counters[LEVEL] + 1):
            return False
        counters[LEVEL] += 1


@jit_inline
def go_to(counters, time):
    if counters[NOW] > -FOREVER:
        counters[FINAL] = counters[NOW]
    counters[HORIZON] = counters[NOW] if counters[LEVELS] else time
    counters[NOW] = time
    counters[BEGUN] = 0
    counters[LEVEL] = 0


@jit_flat
def propagate(program, facts, chains, state, given, until):
    """Derive all that holds up to `until` from facts (the key, lo, hi) in order of their beginnings.

    In `output` are intervals that have ended, and facts that began and ceased to hold; the others stay in the state.
    """
    rules = RuleRecords(program, facts, chains, state)
    counters, atoms = int64s(state, COUNTERS_ARRAY), open_index(facts)
    while True:
        if not complete(rules, given):
            return NO_ROOM
        time = next_time(rules, given)
        live = atoms.meta[USED] - atoms.meta[FREE]
        if live > counters[SWEEP_AT] and not sweep(rules, counters[HORIZON]):
            return NO_ROOM
        if time > until and counters[LEVELS] and counters[NOW] < until:
            # The times that NOT gives are known up to the last time that was gone to.
            time = until
        if time > until:
            return FINISHED if tell(rules, until) else NO_ROOM
        go_to(counters, time)


@jit_flat
def end_all(program, facts, chains, state):
    """Output all intervals that are left; NO_ROOM until the output has been taken."""
    rules = RuleRecords(program, facts, chains, state)
    atoms = open_index(facts)
    for entry in range(atoms.meta[USED]):
        if atoms.counts[entry] and not drop_ended(rules, entry, FOREVER + 2):
            return NO_ROOM
    return FINISHED
