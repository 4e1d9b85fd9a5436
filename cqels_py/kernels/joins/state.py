"""The records of a join (primitives/state_record.py): its state, the blocks that a step works in, and its description."""

from __future__ import annotations

from cqels_py.kernels.compiler.jit import jit_inline
from cqels_py.kernels.primitives.state_record import int32s, int64s

(
    CURSOR, PORTS, INDEXES, GROUPS, KEY_COLUMNS, CELLS, TABLES, LOCATED, RINGS, RING_IDS, RING_META, LEVELS, LEAF_PLACES, POSITIONS,
    SINCE, PRODUCTS, PARTNERS, PARTNER_IDS,
) = range(18)  # fmt: skip
"""The arrays of JoinState."""
BY_PORT, CHANGES, CHANGE_CHAINS, RECORDS, PENDING, MATCHED = range(6)
"""The arrays of Blocks."""
OUT_PORTS, OF_OUTPUT, OWN, OPTIONS, KNOWN, SOURCE_FIRST, SOURCES, CHECK_FIRST, CHECKS = range(9)
"""The arrays that describe a join: those of `of_output` and `of_ways`."""


@jit_inline
def of_state(state):
    """Cursor, ports, indexes, groups, key columns, cells, tables, located entries, rings as slots and as ids, ring
    arena.

    See structures/ring_index.py. After them are the arrays that the next two functions read.
    """
    return (
        int64s(state, CURSOR),
        int64s(state, PORTS),
        int64s(state, INDEXES),
        int64s(state, GROUPS),
        int64s(state, KEY_COLUMNS),
        int64s(state, CELLS),
        int64s(state, TABLES),
        int64s(state, LOCATED),
        int32s(state, RINGS),
        int64s(state, RING_IDS),
        int64s(state, RING_META),
    )


@jit_inline
def of_results(state):
    """Levels and leaves: the progress of writing results. Positions and since: of ports that are not FIFO
    (multiway.py)."""
    return int64s(state, LEVELS), int64s(state, LEAF_PLACES), int32s(state, POSITIONS), int32s(state, SINCE)


@jit_inline
def of_star(state):
    """Products, their partners as slots, and as ids (star.py)."""
    return int64s(state, PRODUCTS), int32s(state, PARTNERS), int64s(state, PARTNER_IDS)


@jit_inline
def of_output(asked):
    """The sources of result columns: by column the ports it is taken from, the ports that have it, and by port its own
    column."""
    return int64s(asked, OUT_PORTS), int64s(asked, OF_OUTPUT), int64s(asked, OWN)


@jit_inline
def of_ways(asked):
    """The order in which ports are probed (multiway.py): options, known, starts of sources, sources, starts of checks,
    checks."""
    return (
        int64s(asked, OPTIONS),
        int64s(asked, KNOWN),
        int64s(asked, SOURCE_FIRST),
        int64s(asked, SOURCES),
        int64s(asked, CHECK_FIRST),
        int64s(asked, CHECKS),
    )


@jit_inline
def of_block(block):
    """By port, changes, their chains, records, pending, matched (multiway.py)."""
    return (
        int32s(block, BY_PORT),
        int64s(block, CHANGES),
        int32s(block, CHANGE_CHAINS),
        int64s(block, RECORDS),
        int64s(block, PENDING),
        int64s(block, MATCHED),
    )
