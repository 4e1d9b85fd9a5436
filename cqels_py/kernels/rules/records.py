"""The layout of rule programs and of their state. All arrays are of int64, in rows of the fields named here.

Times are doubled microseconds: 2k is the point k, 2k + 1 the open cell after it. `FOREVER` is the upper end of an
interval without end, its negative the lower end of one without beginning.
"""

from __future__ import annotations

from collections import namedtuple

FOREVER = 1 << 61

Program = namedtuple("Program", ("predicates", "rules", "columns", "indexes"))
"""`predicates`, `rules` (those of a body predicate follow each other), `indexes`: rows. `columns`: runs of numbers that
the rows refer to. A number >= 0 is a column, of the body's entry, or of the partner's if it is at least its arity; -1 is
the beginning of an interval of the left side of SINCE; -2 - id is a constant."""

ARITY, FIRST_RULE, RULES, DELAYED, SHOWN, FIRST_INDEX, INDEXES, PREDICATE_FIELDS = range(8)
KIND, HEAD, RULE_LO, RULE_HI, HEAD_COLUMNS, INDEX, PROBE_COLUMNS, CHECKS, RULE_CHECKS, RULE_FIELDS = range(10)
INDEX_PREDICATE, INDEX_WIDTH, INDEX_COLUMNS, INDEX_FIELDS = range(4)
BEGINNING, CONSTANT = -1, -2

SOMETIME, ALWAYS, JOIN, SINCE_LEFT, SINCE_RIGHT, PARTS, PARTS_OF_LEFT = range(7)
"""Kinds of rules. The last four are SINCE: its sides make parts, and parts hold within the interval of the left side."""

Keys = namedtuple("Keys", ("table", "keys", "counts", "free", "meta"))
"""A hash table of `structures/hash_table.py`."""

State = namedtuple(
    "State",
    (
        "facts",
        "ends",
        "links",
        "chains",
        "heads",
        "nodes",
        "queue",
        "calendar",
        "output",
        "key",
        "chain_key",
        "counters",
    ),
)
"""`facts`: Keys of ground atoms (predicate, ids); by entry: `ends` (first and last node), `links` (next entry in the
chain of each index). `chains`: Keys of (index, ids), with the first entry in `heads`. `nodes`: the intervals of an entry,
disjoint and not touching, in order of time. `queue`: parts to propagate. `calendar`: a binary heap of parts that wait for
their beginning. `output`: ended intervals (the key, lo, hi). `key`, `chain_key`: keys that are looked up."""

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
