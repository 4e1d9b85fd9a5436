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


PREDICATES_ARRAY, RULES_ARRAY, COLUMNS_ARRAY, INDEXES_ARRAY = range(4)
"""The arrays of a program: rows of predicates, of rules (those of a body predicate follow each other) and of indexes;
COLUMNS: runs of numbers that the rows refer to. A number >= 0 is a column, of the body's entry, or of the partner's if it
is at least its arity; -1 is the beginning of an interval of the left side of SINCE; -2 - id is a constant."""

ARITY, FIRST_RULE, RULES, DELAYED, SHOWN, FIRST_INDEX, INDEXES, PREDICATE_FIELDS = range(8)
KIND, HEAD, RULE_LO, RULE_HI, HEAD_COLUMNS, INDEX, PROBE_COLUMNS, CHECKS, RULE_CHECKS, RULE_FIELDS = range(10)
INDEX_PREDICATE, INDEX_WIDTH, INDEX_COLUMNS, INDEX_FIELDS = range(4)
BEGINNING, CONSTANT = -1, -2

SOMETIME, ALWAYS, JOIN, SINCE_LEFT, SINCE_RIGHT, PARTS, PARTS_OF_LEFT = range(7)
"""Kinds of rules. The last four are SINCE: its sides make parts, and parts hold within the interval of the left side."""

(
    ENDS_ARRAY, LINKS_ARRAY, HEADS_ARRAY, NODES_ARRAY, QUEUE_ARRAY, CALENDAR_ARRAY, OUTPUT_ARRAY, KEY_ARRAY, CHAIN_KEY_ARRAY,
    COUNTERS_ARRAY,
) = range(10)  # fmt: skip
"""The arrays of a state. By entry of `facts`: ENDS (first and last node), LINKS (next entry in the chain of each index). By
entry of `chains`: HEADS, the first entry of the chain. NODES: the intervals of an entry, disjoint and not touching, in
order of time. QUEUE: parts to propagate. CALENDAR: a binary heap of parts that wait for their beginning. OUTPUT: ended
intervals (the key, lo, hi). KEY, CHAIN_KEY: keys that are looked up."""

NODE_LO, NODE_HI, NODE_NEXT, NODE_FIELDS = range(4)
FIRST, LAST, END_FIELDS = range(3)
ENTRY, PART_LO, PART_HI, PART_FIELDS = range(4)

NOW, NODES, FREE_NODE, LIVE, PEAK, QUEUE_AT, QUEUE_END, WAITING, ENDED, NEXT_GIVEN, SWEEP_AT, SWEEP_LEAST, SHORT = (
    range(13)
)
COUNTERS = 13

FINISHED, NO_ROOM = 0, 1
"""What `propagate` returns. With NO_ROOM the counter SHORT names what has to grow (or `output`, to be emptied); the same
call then goes on, as adding an interval again changes nothing."""
SHORT_OF_FACTS, SHORT_OF_CHAINS, SHORT_OF_NODES, SHORT_OF_QUEUE, SHORT_OF_CALENDAR, SHORT_OF_OUTPUT = range(6)
