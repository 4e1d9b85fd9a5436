"""The state of a join, as its kernels read it from tables of arrays (primitives/array_table.py).

JoinState and its Blocks list their arrays in this order, and MultiwayJoin the arrays that describe the join.
"""

from __future__ import annotations

from cqels_py.kernels.compiler.jit import jit_inline
from cqels_py.kernels.primitives.array_table import int32s, int64s


@jit_inline
def of_state(state):
    """Cursor, ports, indexes, groups, key columns, cells, tables, located entries, rings as slots and as ids, ring
    arena.

    See structures/ring_index.py. After them are the arrays that the next two functions read.
    """
    return (
        int64s(state, 0), int64s(state, 1), int64s(state, 2), int64s(state, 3), int64s(state, 4), int64s(state, 5), int64s(state, 6),
        int64s(state, 7), int32s(state, 8), int64s(state, 9), int64s(state, 10),
    )  # fmt: skip


@jit_inline
def of_results(state):
    """Levels and leaves: the progress of writing results. Positions and since: of ports that are not FIFO
    (multiway.py)."""
    return int64s(state, 11), int64s(state, 12), int32s(state, 13), int32s(state, 14)


@jit_inline
def of_star(state):
    """Products, their partners as slots, and as ids (star.py)."""
    return int64s(state, 15), int32s(state, 16), int64s(state, 17)


@jit_inline
def of_output(asked):
    """The sources of result columns: by column the ports it is taken from, the ports that have it, and by port its own
    column."""
    return int64s(asked, 0), int64s(asked, 1), int64s(asked, 2)


@jit_inline
def of_ways(asked):
    """The order in which ports are probed (multiway.py): options, known, starts of sources, sources, starts of checks,
    checks."""
    return (
        int64s(asked, 3), int64s(asked, 4), int64s(asked, 5), int64s(asked, 6), int64s(asked, 7), int64s(asked, 8)
    )  # fmt: skip


@jit_inline
def of_block(block):
    """By port, changes, their chains, records, pending, matched (multiway.py)."""
    return (
        int32s(block, 0), int64s(block, 1), int32s(block, 2), int64s(block, 3), int64s(block, 4), int64s(block, 5)
    )  # fmt: skip
