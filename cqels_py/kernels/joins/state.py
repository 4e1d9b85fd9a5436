"""What a join keeps from step to step, as its kernels find it by where it is (kernels/standing.py).

JoinState and its Blocks list their arrays in this order, and MultiwayJoin what is asked of it.
"""

from __future__ import annotations

from cqels_py.kernels.compiler.jit import jit_inline
from cqels_py.kernels.primitives.array_table import int32s, int64s


@jit_inline
def of_state(state):
    """Cursor, ports, indexes, groups, key columns, cells, tables, what is located; rings, as slots and as ids, and of these.

    See kernels/ring_index.py. Behind them are what the next two functions read.
    """
    return (
        int64s(state, 0), int64s(state, 1), int64s(state, 2), int64s(state, 3), int64s(state, 4), int64s(state, 5), int64s(state, 6),
        int64s(state, 7), int32s(state, 8), int64s(state, 9), int64s(state, 10),
    )  # fmt: skip


@jit_inline
def of_results(state):
    """Levels and leaves: how far the writing of results has come. Positions and since: of ports without order (kernels/join.py)."""
    return int64s(state, 11), int64s(state, 12), int32s(state, 13), int32s(state, 14)


@jit_inline
def of_star(state):
    """Products, partners, and these as ids (kernels/star_join.py)."""
    return int64s(state, 15), int32s(state, 16), int64s(state, 17)


@jit_inline
def of_output(asked):
    """Where the columns of results come from: by column its port or ports, those that have it, and by port its own column."""
    return int64s(asked, 0), int64s(asked, 1), int64s(asked, 2)


@jit_inline
def of_ways(asked):
    """How a join goes from port to port (kernels/join.py): options, known, where sources begin, they, where checks begin, they."""
    return (
        int64s(asked, 3), int64s(asked, 4), int64s(asked, 5), int64s(asked, 6), int64s(asked, 7), int64s(asked, 8)
    )  # fmt: skip


@jit_inline
def of_block(block):
    """By port, changes, their chains, records, pending, matched (kernels/join.py)."""
    return (
        int32s(block, 0), int64s(block, 1), int32s(block, 2), int64s(block, 3), int64s(block, 4), int64s(block, 5)
    )  # fmt: skip
