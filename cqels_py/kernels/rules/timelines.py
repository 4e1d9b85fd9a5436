"""The intervals of ground atoms: maximal, in order of time, without those that are over.

An interval is kept while it reaches the time before now, with its true beginning: everything that it implies for later
times has been derived when it ends.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat, jit_inline
from cqels_py.kernels.primitives.state_record import int64_rows, int64s
from cqels_py.kernels.rules.calendar import wait
from cqels_py.kernels.rules.records import (
    CALENDAR_ARRAY,
    CHAIN_KEY_ARRAY,
    COLUMNS_ARRAY,
    COUNTERS_ARRAY,
    DELAYED,
    ENDED,
    ENDED_ONCE,
    ENDS_ARRAY,
    ENTRY,
    FIRST,
    FIRST_INDEX,
    FOREVER,
    FREE_NODE,
    HEADS_ARRAY,
    HORIZON,
    INDEX_COLUMNS,
    INDEX_WIDTH,
    INDEXES,
    INDEXES_ARRAY,
    KEY_ARRAY,
    LAST,
    LINKS_ARRAY,
    LIVE,
    LIVE_NODES,
    NODE_HI,
    NODE_LO,
    NODE_NEXT,
    NODE_TOLD,
    NODES,
    NODES_ARRAY,
    NOW,
    OUTPUT_ARRAY,
    PART_HI,
    PART_LO,
    PEAK,
    PREDICATES_ARRAY,
    QUEUE_ARRAY,
    QUEUE_END,
    SHORT,
    SHORT_OF_CALENDAR,
    SHORT_OF_CHAINS,
    SHORT_OF_FACTS,
    SHORT_OF_NODES,
    SHORT_OF_OUTPUT,
    SHORT_OF_QUEUE,
    SHORT_OF_VALUES,
    SHOWN,
    TESTED,
    UNKNOWN_ARRAY,
    UNTESTED,
    VALUES_ARRAY,
    WAITING,
)
from cqels_py.kernels.rules.timers import set_timer
from cqels_py.kernels.structures.hash_table import FREE, USED, ZERO, add, find, hash_row
from cqels_py.kernels.structures.key_index import KEYS, open_index


@jit_inline
def predicate_of(rules, entry):
    key = int64_rows(rules.state, KEY_ARRAY)
    facts = open_index(rules.facts)
    return facts.keys[entry * len(key)]


@jit_inline
def argument(rules, entry, column):
    key = int64_rows(rules.state, KEY_ARRAY)
    facts = open_index(rules.facts)
    return facts.keys[entry * len(key) + 1 + column]


@jit_inline
def entry_with(keys, key):
    """The entry with the key, or -1."""
    return find(keys.table, len(keys.table) - 1, keys.keys, len(key), key, 0, hash_row(key, 0, len(key)))


@jit_inline
def new_entry(keys, key):
    return add(
        keys.table, len(keys.table) - 1, keys.keys, len(key), key, 0, hash_row(key, 0, len(key)), keys.counts, keys.free,
        keys.meta,
    )  # fmt: skip


@jit_inline
def room(keys):
    return len(keys.counts) - keys.meta[USED] + keys.meta[FREE]


@jit_flat
def entry_of_key(rules):
    """The entry of the ground atom in `state.key`, made if there is none; -1 without room."""
    predicates = int64_rows(rules.program, PREDICATES_ARRAY)
    ends = int64_rows(rules.state, ENDS_ARRAY)
    key = int64_rows(rules.state, KEY_ARRAY)
    counters = int64s(rules.state, COUNTERS_ARRAY)
    facts = open_index(rules.facts)
    chains = open_index(rules.chains)
    values = int64s(rules.state, VALUES_ARRAY)
    unknown = int64s(rules.state, UNKNOWN_ARRAY)
    entry = entry_with(facts, key)
    if entry >= 0:
        return entry
    if room(facts) < 1:
        counters[SHORT] = SHORT_OF_FACTS
        return np.int64(-1)
    if room(chains) < predicates[key[0, 0], INDEXES]:
        counters[SHORT] = SHORT_OF_CHAINS
        return np.int64(-1)
    if counters[UNTESTED] == len(unknown):
        counters[SHORT] = SHORT_OF_VALUES
        return np.int64(-1)
    entry = new_entry(facts, key)
    facts.counts[entry] = 1
    facts.meta[ZERO] -= 1
    ends[entry, FIRST] = -1
    ends[entry, LAST] = -1
    values[entry] = 0
    if predicates[key[0, 0], TESTED]:
        unknown[counters[UNTESTED]] = entry
        counters[UNTESTED] += 1
    link(rules, entry)
    return entry


@jit_flat
def link(rules, entry):
    """Put an entry into the chains of its predicate's indexes. The caller has made sure that there is room."""
    predicates = int64_rows(rules.program, PREDICATES_ARRAY)
    columns = int64s(rules.program, COLUMNS_ARRAY)
    indexes = int64_rows(rules.program, INDEXES_ARRAY)
    links = int64_rows(rules.state, LINKS_ARRAY)
    heads = int64s(rules.state, HEADS_ARRAY)
    chain_key = int64_rows(rules.state, CHAIN_KEY_ARRAY)
    chains = open_index(rules.chains)
    predicate = predicate_of(rules, entry)
    for k in range(predicates[predicate, INDEXES]):
        index = predicates[predicate, FIRST_INDEX] + k
        chain_key[:, 0] = 0
        chain_key[0, 0] = index
        for c in range(indexes[index, INDEX_WIDTH]):
            column = columns[indexes[index, INDEX_COLUMNS] + c]
            chain_key[1 + c, 0] = argument(rules, entry, column)
        chain = entry_with(chains, chain_key)
        if chain < 0:
            chain = new_entry(chains, chain_key)
            chains.counts[chain] = 1
            chains.meta[ZERO] -= 1
            heads[chain] = -1
        links[entry, k] = heads[chain]
        heads[chain] = entry


@jit_inline
def free_node(rules, node):
    nodes = int64_rows(rules.state, NODES_ARRAY)
    counters = int64s(rules.state, COUNTERS_ARRAY)
    nodes[node, NODE_NEXT] = counters[FREE_NODE]
    counters[FREE_NODE] = node
    counters[LIVE_NODES] -= 1


@jit_inline
def has_room_for_node(rules):
    nodes = int64_rows(rules.state, NODES_ARRAY)
    counters = int64s(rules.state, COUNTERS_ARRAY)
    return counters[FREE_NODE] >= 0 or counters[NODES] < len(nodes)


@jit_inline
def new_node(rules, lo, hi, following):
    nodes = int64_rows(rules.state, NODES_ARRAY)
    counters = int64s(rules.state, COUNTERS_ARRAY)
    node = counters[FREE_NODE]
    if node >= 0:
        counters[FREE_NODE] = nodes[node, NODE_NEXT]
    else:
        node = counters[NODES]
        counters[NODES] += 1
    nodes[node, NODE_LO] = lo
    nodes[node, NODE_HI] = hi
    nodes[node, NODE_NEXT] = following
    nodes[node, NODE_TOLD] = 0
    counters[LIVE_NODES] += 1
    counters[PEAK] = max(counters[PEAK], counters[LIVE_NODES])
    return node


@jit_flat
def output_row(rules, entry, first, second):
    """A row of output with the key of an entry; the caller has made sure that there is room."""
    output = int64_rows(rules.state, OUTPUT_ARRAY)
    counters = int64s(rules.state, COUNTERS_ARRAY)
    keys = int64s(rules.facts, KEYS)
    row, width = counters[ENDED], len(int64_rows(rules.state, KEY_ARRAY))
    for c in range(width):
        output[row, c] = keys[entry * width + c]
    output[row, width] = first
    output[row, width + 1] = second
    counters[ENDED] += 1


@jit_flat
def output_end(rules, entry, node, shown):
    """Output an interval that has ended. It holds at the whole microseconds from its first to its last point."""
    nodes = int64_rows(rules.state, NODES_ARRAY)
    lo, hi = nodes[node, NODE_LO], nodes[node, NODE_HI]
    if shown == ENDED_ONCE:
        output_row(rules, entry, lo, hi)
    elif first_point(lo) <= last_point(hi):
        if not nodes[node, NODE_TOLD]:
            output_row(rules, entry, first_point(lo), 1)
        output_row(rules, entry, last_point(hi) + 1, -1)


@jit_inline
def first_point(lo):
    return (lo + 1) >> 1


@jit_inline
def last_point(hi):
    return hi >> 1


@jit_inline
def has_room_for_output(rules):
    """Room for two rows, or the counter SHORT says that there is none."""
    counters = int64s(rules.state, COUNTERS_ARRAY)
    if counters[ENDED] + 2 > len(int64_rows(rules.state, OUTPUT_ARRAY)):
        counters[SHORT] = SHORT_OF_OUTPUT
        return False
    return True


@jit_flat
def drop_ended(rules, entry, before):
    """Output and free the intervals of an entry that end before the time before `before`; False without room."""
    predicates = int64_rows(rules.program, PREDICATES_ARRAY)
    ends = int64_rows(rules.state, ENDS_ARRAY)
    nodes = int64_rows(rules.state, NODES_ARRAY)
    shown = predicates[predicate_of(rules, entry), SHOWN]
    node = ends[entry, FIRST]
    while node >= 0 and nodes[node, NODE_HI] + 1 < before:
        if shown:
            if not has_room_for_output(rules):
                return False
            output_end(rules, entry, node, shown)
        following = nodes[node, NODE_NEXT]
        free_node(rules, node)
        node = following
        ends[entry, FIRST] = node
    if node < 0:
        ends[entry, LAST] = -1
    return True


@jit_flat
def tell_begun(rules, entry, until):
    """Output the beginnings through a time that have not been output; False without room."""
    ends = int64_rows(rules.state, ENDS_ARRAY)
    nodes = int64_rows(rules.state, NODES_ARRAY)
    node = ends[entry, FIRST]
    while node >= 0 and first_point(nodes[node, NODE_LO]) <= last_point(until):
        first = first_point(nodes[node, NODE_LO])
        if not nodes[node, NODE_TOLD] and first <= last_point(nodes[node, NODE_HI]):
            if not has_room_for_output(rules):
                return False
            nodes[node, NODE_TOLD] = 1
            output_row(rules, entry, first, 1)
        node = nodes[node, NODE_NEXT]
    return True


@jit_inline
def known_from(rules, node):
    """The time from which the next change by an interval is known: its beginning, or if that has been output its end."""
    nodes = int64_rows(rules.state, NODES_ARRAY)
    end = nodes[node, NODE_HI] + 2
    return end if nodes[node, NODE_TOLD] else min(end, 2 * first_point(nodes[node, NODE_LO]))


@jit_flat
def foresee_change(rules, entry, node):
    """An interval is new or wider: its entry is looked at by its next change."""
    predicates = int64_rows(rules.program, PREDICATES_ARRAY)
    if predicates[predicate_of(rules, entry), SHOWN] == LIVE:
        set_timer(rules, entry, known_from(rules, node))


@jit_flat
def next_change(rules, entry, after):
    """The time from which the next change of an entry is known, once all through `after` have been output; FOREVER + 3: none."""
    ends = int64_rows(rules.state, ENDS_ARRAY)
    nodes = int64_rows(rules.state, NODES_ARRAY)
    node = ends[entry, FIRST]
    if node < 0:
        return np.int64(FOREVER + 3)
    time = nodes[node, NODE_HI] + 2
    while node >= 0:
        beginning = 2 * first_point(nodes[node, NODE_LO])
        if not nodes[node, NODE_TOLD] and beginning > after:
            return min(time, beginning)
        node = nodes[node, NODE_NEXT]
    return time


@jit_flat
def node_at(rules, entry, time):
    """The interval of an entry that contains `time`, or -1."""
    ends = int64_rows(rules.state, ENDS_ARRAY)
    nodes = int64_rows(rules.state, NODES_ARRAY)
    node = ends[entry, FIRST]
    while node >= 0 and nodes[node, NODE_HI] < time:
        node = nodes[node, NODE_NEXT]
    return node if node >= 0 and nodes[node, NODE_LO] <= time else np.int64(-1)


@jit_flat
def add_interval(rules, entry, lo, hi):
    """Add an interval to an entry, and queue its new parts; False if nothing was done for lack of room."""
    ends = int64_rows(rules.state, ENDS_ARRAY)
    nodes = int64_rows(rules.state, NODES_ARRAY)
    queue = int64_rows(rules.state, QUEUE_ARRAY)
    calendar = int64_rows(rules.state, CALENDAR_ARRAY)
    counters = int64s(rules.state, COUNTERS_ARRAY)
    if hi + 1 < counters[HORIZON]:
        # All of that time is known: a part of SINCE that is over has met a longer left side again.
        return True
    if not drop_ended(rules, entry, counters[HORIZON]):
        return False
    if not has_room_for_node(rules):
        counters[SHORT] = SHORT_OF_NODES
        return False
    if counters[QUEUE_END] == len(queue):
        counters[SHORT] = SHORT_OF_QUEUE
        return False
    if counters[WAITING] == len(calendar):
        counters[SHORT] = SHORT_OF_CALENDAR
        return False
    before, node = np.int64(-1), ends[entry, FIRST]
    last = ends[entry, LAST]
    if last >= 0 and nodes[last, NODE_HI] + 1 < lo:
        before, node = last, np.int64(-1)
    while node >= 0 and nodes[node, NODE_HI] + 1 < lo:
        before, node = node, nodes[node, NODE_NEXT]
    if node < 0 or hi + 1 < nodes[node, NODE_LO]:
        made = new_node(rules, lo, hi, node)
        if before < 0:
            ends[entry, FIRST] = made
        else:
            nodes[before, NODE_NEXT] = made
        if node < 0:
            ends[entry, LAST] = made
        foresee_change(rules, entry, made)
        announce(rules, entry, lo, hi)
        return True
    return widen(rules, entry, node, lo, hi)


@jit_flat
def widen(rules, entry, node, lo, hi):
    """Merge an interval with the touching one in `node`, and with those that follow."""
    ends = int64_rows(rules.state, ENDS_ARRAY)
    nodes = int64_rows(rules.state, NODES_ARRAY)
    new_lo, new_hi = lo, hi
    if nodes[node, NODE_LO] <= lo:
        if hi <= nodes[node, NODE_HI]:
            return True
        new_lo = nodes[node, NODE_HI] + 1
    nodes[node, NODE_LO] = min(lo, nodes[node, NODE_LO])
    widest = max(hi, nodes[node, NODE_HI])
    following = nodes[node, NODE_NEXT]
    while following >= 0 and nodes[following, NODE_LO] <= widest + 1:
        if nodes[following, NODE_HI] >= hi and nodes[following, NODE_LO] > new_lo:
            new_hi = min(new_hi, nodes[following, NODE_LO] - 1)
        widest = max(widest, nodes[following, NODE_HI])
        absorbed = following
        following = nodes[following, NODE_NEXT]
        free_node(rules, absorbed)
    nodes[node, NODE_HI] = widest
    nodes[node, NODE_NEXT] = following
    if following < 0:
        ends[entry, LAST] = node
    foresee_change(rules, entry, node)
    announce(rules, entry, new_lo, new_hi)
    return True


@jit_flat
def announce(rules, entry, lo, hi):
    """Queue a new part, or let it wait for its beginning where a recursion could go on without end."""
    predicates = int64_rows(rules.program, PREDICATES_ARRAY)
    queue = int64_rows(rules.state, QUEUE_ARRAY)
    calendar = int64_rows(rules.state, CALENDAR_ARRAY)
    counters = int64s(rules.state, COUNTERS_ARRAY)
    if predicates[predicate_of(rules, entry), DELAYED] and lo > counters[NOW]:
        wait(calendar, counters, entry, lo, hi)
        return
    end = counters[QUEUE_END]
    queue[end, ENTRY] = entry
    queue[end, PART_LO] = lo
    queue[end, PART_HI] = hi
    counters[QUEUE_END] += 1
