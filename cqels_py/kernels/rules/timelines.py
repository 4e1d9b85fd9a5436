"""The intervals of ground atoms: maximal, in order of time, without those that are over.

An interval is kept while it reaches the time before now, with its true beginning: everything that it implies for later
times has been derived when it ends.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat, jit_inline
from cqels_py.kernels.rules.calendar import wait
from cqels_py.kernels.rules.records import (
    DELAYED,
    ENDED,
    ENTRY,
    FIRST,
    FIRST_INDEX,
    FREE_NODE,
    INDEX_COLUMNS,
    INDEX_WIDTH,
    INDEXES,
    LAST,
    LIVE,
    NODE_HI,
    NODE_LO,
    NODE_NEXT,
    NODES,
    NOW,
    PART_HI,
    PART_LO,
    PEAK,
    QUEUE_END,
    SHORT,
    SHORT_OF_CALENDAR,
    SHORT_OF_CHAINS,
    SHORT_OF_FACTS,
    SHORT_OF_NODES,
    SHORT_OF_OUTPUT,
    SHORT_OF_QUEUE,
    SHOWN,
    WAITING,
)
from cqels_py.kernels.structures.hash_table import FREE, USED, ZERO, add, find, hash_row


@jit_inline
def predicate_of(state, entry):
    return state.facts.keys[entry * len(state.key)]


@jit_inline
def argument(state, entry, column):
    return state.facts.keys[entry * len(state.key) + 1 + column]


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
def entry_of_key(program, state):
    """The entry of the ground atom in `state.key`, made if there is none; -1 without room."""
    entry = entry_with(state.facts, state.key)
    if entry >= 0:
        return entry
    if room(state.facts) < 1:
        state.counters[SHORT] = SHORT_OF_FACTS
        return np.int64(-1)
    if room(state.chains) < program.predicates[state.key[0, 0], INDEXES]:
        state.counters[SHORT] = SHORT_OF_CHAINS
        return np.int64(-1)
    entry = new_entry(state.facts, state.key)
    state.facts.counts[entry] = 1
    state.facts.meta[ZERO] -= 1
    state.ends[entry, FIRST] = -1
    state.ends[entry, LAST] = -1
    link(program, state, entry)
    return entry


@jit_flat
def link(program, state, entry):
    """Put an entry into the chains of its predicate's indexes. The caller has made sure that there is room."""
    predicate = predicate_of(state, entry)
    for k in range(program.predicates[predicate, INDEXES]):
        index = program.predicates[predicate, FIRST_INDEX] + k
        state.chain_key[:, 0] = 0
        state.chain_key[0, 0] = index
        for c in range(program.indexes[index, INDEX_WIDTH]):
            column = program.columns[program.indexes[index, INDEX_COLUMNS] + c]
            state.chain_key[1 + c, 0] = argument(state, entry, column)
        chain = entry_with(state.chains, state.chain_key)
        if chain < 0:
            chain = new_entry(state.chains, state.chain_key)
            state.chains.counts[chain] = 1
            state.chains.meta[ZERO] -= 1
            state.heads[chain] = -1
        state.links[entry, k] = state.heads[chain]
        state.heads[chain] = entry


@jit_inline
def free_node(state, node):
    state.nodes[node, NODE_NEXT] = state.counters[FREE_NODE]
    state.counters[FREE_NODE] = node
    state.counters[LIVE] -= 1


@jit_inline
def has_room_for_node(state):
    return state.counters[FREE_NODE] >= 0 or state.counters[NODES] < len(state.nodes)


@jit_inline
def new_node(state, lo, hi, following):
    node = state.counters[FREE_NODE]
    if node >= 0:
        state.counters[FREE_NODE] = state.nodes[node, NODE_NEXT]
    else:
        node = state.counters[NODES]
        state.counters[NODES] += 1
    state.nodes[node, NODE_LO] = lo
    state.nodes[node, NODE_HI] = hi
    state.nodes[node, NODE_NEXT] = following
    state.counters[LIVE] += 1
    state.counters[PEAK] = max(state.counters[PEAK], state.counters[LIVE])
    return node


@jit_flat
def drop_ended(program, state, entry, before):
    """Output and free the intervals of an entry that end before the time before `before`; False without room."""
    node = state.ends[entry, FIRST]
    while node >= 0 and state.nodes[node, NODE_HI] + 1 < before:
        if program.predicates[predicate_of(state, entry), SHOWN]:
            row = state.counters[ENDED]
            if row == len(state.output):
                state.counters[SHORT] = SHORT_OF_OUTPUT
                return False
            width = len(state.key)
            for c in range(width):
                state.output[row, c] = state.facts.keys[entry * width + c]
            state.output[row, width] = state.nodes[node, NODE_LO]
            state.output[row, width + 1] = state.nodes[node, NODE_HI]
            state.counters[ENDED] += 1
        following = state.nodes[node, NODE_NEXT]
        free_node(state, node)
        node = following
        state.ends[entry, FIRST] = node
    if node < 0:
        state.ends[entry, LAST] = -1
    return True


@jit_flat
def node_at(state, entry, time):
    """The interval of an entry that contains `time`, or -1."""
    node = state.ends[entry, FIRST]
    while node >= 0 and state.nodes[node, NODE_HI] < time:
        node = state.nodes[node, NODE_NEXT]
    return node if node >= 0 and state.nodes[node, NODE_LO] <= time else np.int64(-1)


@jit_flat
def add_interval(program, state, entry, lo, hi):
    """Add an interval to an entry, and queue what is new of it; False if nothing was done for lack of room."""
    if not drop_ended(program, state, entry, state.counters[NOW]):
        return False
    if not has_room_for_node(state):
        state.counters[SHORT] = SHORT_OF_NODES
        return False
    if state.counters[QUEUE_END] == len(state.queue):
        state.counters[SHORT] = SHORT_OF_QUEUE
        return False
    if state.counters[WAITING] == len(state.calendar):
        state.counters[SHORT] = SHORT_OF_CALENDAR
        return False
    before, node = np.int64(-1), state.ends[entry, FIRST]
    last = state.ends[entry, LAST]
    if last >= 0 and state.nodes[last, NODE_HI] + 1 < lo:
        before, node = last, np.int64(-1)
    while node >= 0 and state.nodes[node, NODE_HI] + 1 < lo:
        before, node = node, state.nodes[node, NODE_NEXT]
    if node < 0 or hi + 1 < state.nodes[node, NODE_LO]:
        made = new_node(state, lo, hi, node)
        if before < 0:
            state.ends[entry, FIRST] = made
        else:
            state.nodes[before, NODE_NEXT] = made
        if node < 0:
            state.ends[entry, LAST] = made
        announce(program, state, entry, lo, hi)
        return True
    return widen(program, state, entry, node, lo, hi)


@jit_flat
def widen(program, state, entry, node, lo, hi):
    """Merge an interval with the touching one in `node`, and with those that follow."""
    nodes = state.nodes
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
        free_node(state, absorbed)
    nodes[node, NODE_HI] = widest
    nodes[node, NODE_NEXT] = following
    if following < 0:
        state.ends[entry, LAST] = node
    announce(program, state, entry, new_lo, new_hi)
    return True


@jit_flat
def announce(program, state, entry, lo, hi):
    """Queue a new part, or let it wait for its beginning where a recursion could go on without end."""
    counters = state.counters
    if program.predicates[predicate_of(state, entry), DELAYED] and lo > counters[NOW]:
        wait(state.calendar, counters, entry, lo, hi)
        return
    end = counters[QUEUE_END]
    state.queue[end, ENTRY] = entry
    state.queue[end, PART_LO] = lo
    state.queue[end, PART_HI] = hi
    counters[QUEUE_END] += 1
