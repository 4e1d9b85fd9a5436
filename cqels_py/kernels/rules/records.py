"""The layout of rule programs and of their state. All arrays are of int64,
in rows of the fields named here.

Times are doubled microseconds: 2k is the point k, 2k + 1 the open cell after it. `FOREVER` is the upper end of an
interval without end, its negative the lower end of one without beginning.
"""

from __future__ import annotations

from typing import NamedTuple

FOREVER = 1 << 61


class RuleRecords(NamedTuple):
    """The addresses of the records of a program and of its state (primitives/state_record.py).

    `facts`: the hash table (structures/key_index.py) of ground atoms, (predicate, ids); `chains`: that of (index, ids).
    """

    program: int
    facts: int
    chains: int
    state: int


PREDICATES_ARRAY, RULES_ARRAY, COLUMNS_ARRAY, INDEXES_ARRAY, CONSTANTS_ARRAY = range(5)
"""The arrays of a program: rows of predicates, of rules (those of a body predicate follow each other) and of indexes;
COLUMNS: runs of numbers that the rows refer to. A number >= 0 is a column, of the body's entry, or of the partner's if it
is at least its arity; -1 is the beginning of an interval of the left side of SINCE, or the value of a test; -2 - n is
entry n of CONSTANTS."""

ARITY, FIRST_RULE, RULES, DELAYED, SHOWN, FIRST_INDEX, INDEXES, TESTED, PREDICATE_FIELDS = range(9)
(
    KIND, HEAD, RULE_LO, RULE_HI, HEAD_COLUMNS, INDEX, PROBE_COLUMNS, CHECKS, RULE_CHECKS, RULE_LEVEL, BODY_INDEX, RULE_FIELDS,
) = range(12)  # fmt: skip
INDEX_PREDICATE, INDEX_WIDTH, INDEX_COLUMNS, INDEX_FIELDS = range(4)
BEGINNING, CONSTANT = -1, -2
HIDDEN, ENDED_ONCE, LIVE = range(3)
"""How a predicate is SHOWN: not at all, its intervals when they have ended, or both ends of them at once."""

SOMETIME, ALWAYS, JOIN, SINCE_LEFT, SINCE_RIGHT, PARTS, PARTS_OF_LEFT, NOT, TEST = range(9)
"""Kinds of rules. SINCE_LEFT to PARTS_OF_LEFT are SINCE: its sides make parts, and parts hold within the interval of the
left side. NOT: where the body holds and its partner does not; RULE_LEVEL is its stratum, BODY_INDEX the index of all entries
of the body. TEST: a condition on the entry's ids, or a value computed from them."""
FAILED = -(1 << 63)
"""The value of an entry whose test has failed; 0: it has not been tested."""

(
    ENDS_ARRAY, LINKS_ARRAY, HEADS_ARRAY, NODES_ARRAY, QUEUE_ARRAY, CALENDAR_ARRAY, OUTPUT_ARRAY, KEY_ARRAY, CHAIN_KEY_ARRAY,
    COUNTERS_ARRAY, VALUES_ARRAY, UNKNOWN_ARRAY, TIMERS_ARRAY,
) = range(13)  # fmt: skip
"""The arrays of a state. By entry of `facts`: ENDS (first and last node), LINKS (next entry in the chain of each index). By
entry of `chains`: HEADS, the first entry of the chain. NODES: the intervals of an entry, disjoint and not touching, in
order of time. QUEUE: parts to propagate. CALENDAR: a binary heap of parts that wait for their beginning. OUTPUT: ended
intervals (the key, lo, hi), or the key, an instant in microseconds, and 1 or -1 as it begins or ceases to hold. KEY,
CHAIN_KEY: keys that are looked up. By entry of `facts`: VALUES of tests; UNKNOWN: entries to be tested. TIMERS: a binary heap
of entries of LIVE predicates (timers.py), one row more than entries; by place from 1 on TIMER_ENTRY, whose row 0 is how many there
are; by entry TIMER_TIME, and TIMER_PLACE, 0: it has none."""

NODE_LO, NODE_HI, NODE_NEXT, NODE_TOLD, NODE_FIELDS = range(5)
TIMER_ENTRY, TIMER_TIME, TIMER_PLACE, TIMER_FIELDS = range(4)
FIRST, LAST, END_FIELDS = range(3)
ENTRY, PART_LO, PART_HI, PART_FIELDS = range(4)

(
    NOW, NODES, FREE_NODE, LIVE_NODES, PEAK, QUEUE_AT, QUEUE_END, WAITING, ENDED, NEXT_GIVEN, SWEEP_AT, SWEEP_LEAST, SHORT, FINAL,
    HORIZON, LEVEL, LEVELS, BEGUN, UNTESTED, COUNTERS,
) = range(20)  # fmt: skip
"""FINAL: through this time nothing changes any more. HORIZON: intervals that end before it serve no rule. LEVEL: the strata of
NOT that have been applied at NOW, of LEVELS. BEGUN: whether all that begins at NOW is queued."""

FINISHED, NO_ROOM = 0, 1
"""The values that `propagate` returns. With NO_ROOM the counter SHORT names what has to grow (or `output`, to be emptied); the same
call then goes on, as adding an interval again changes nothing."""
(
    SHORT_OF_FACTS, SHORT_OF_CHAINS, SHORT_OF_NODES, SHORT_OF_QUEUE, SHORT_OF_CALENDAR, SHORT_OF_OUTPUT, SHORT_OF_VALUES,
) = range(7)  # fmt: skip
