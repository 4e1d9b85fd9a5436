"""The records of a join (primitives/state_record.py): its state, the blocks that a step works in, and its description.

The first arrays of the state are those of structures/ring_record.py.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cqels_py.kernels.compiler.jit import jit_inline
from cqels_py.kernels.primitives.state_record import int32s, int64s
from cqels_py.kernels.structures.ring_record import RECORD_ARRAYS, Int32, Int64

LEVELS, LEAF_PLACES, SINCE, PRODUCTS, PARTNERS, PARTNER_IDS, STOP = range(RECORD_ARRAYS, RECORD_ARRAYS + 7)
"""The arrays of JoinState, after those of its ring indexes. STOP: the word of `state.stop.Stop`."""
BY_PORT, CHANGES, CHANGE_CHAINS, RECORDS, PENDING, MATCHED = range(6)
"""The arrays of Blocks."""
OUT_PORTS, HAVING, OWN, OPTIONS, KNOWN, SOURCE_FIRST, SOURCES, CHECK_FIRST, CHECKS = range(9)
"""The arrays that describe a join: those of Results and of ProbeOrder."""


class Results(NamedTuple):
    """Where results go, and the ports that each column is taken from (multiway.py). `columns`: flat."""

    out_ports: Int64
    having: Int64
    own: Int64
    columns: Int64
    tick: Int32
    sign: npt.NDArray[np.int8]


class ProbeOrder(NamedTuple):
    """The order in which ports are probed (multiway.py)."""

    options: Int64
    known: Int64
    source_first: Int64
    sources: Int64
    check_first: Int64
    checks: Int64


class Blocks(NamedTuple):
    """Blocks of partial results, the changes of a chunk, and the progress of writing results (multiway.py)."""

    by_port: Int32
    changes: Int64
    change_chains: Int32
    records: Int64
    pending: Int64
    matched: Int64
    levels: Int64
    leaves: Int64
    since: Int32


class Products(NamedTuple):
    """The recorded products, their partners as slots and as ids, and the progress of writing them (star.py)."""

    records: Int64
    partners: Int32
    partner_ids: Int64
    levels: Int64
    leaves: Int64


@jit_inline
def open_results(asked, columns, tick, sign):
    """The Results of a join's description, with arrays for the results of one call."""
    return Results(
        int64s(asked, OUT_PORTS),
        int64s(asked, HAVING),
        int64s(asked, OWN),
        columns.reshape(columns.size),
        tick,
        sign,
    )


@jit_inline
def open_order(asked):
    """The ProbeOrder of a join's description."""
    return ProbeOrder(
        int64s(asked, OPTIONS),
        int64s(asked, KNOWN),
        int64s(asked, SOURCE_FIRST),
        int64s(asked, SOURCES),
        int64s(asked, CHECK_FIRST),
        int64s(asked, CHECKS),
    )


@jit_inline
def open_blocks(block, state):
    """The Blocks of a record of that name, with work memory of the state's own."""
    return Blocks(
        int32s(block, BY_PORT),
        int64s(block, CHANGES),
        int32s(block, CHANGE_CHAINS),
        int64s(block, RECORDS),
        int64s(block, PENDING),
        int64s(block, MATCHED),
        int64s(state, LEVELS),
        int64s(state, LEAF_PLACES),
        int32s(state, SINCE),
    )


@jit_inline
def open_products(state):
    """The Products of a star's state."""
    return Products(
        int64s(state, PRODUCTS),
        int32s(state, PARTNERS),
        int64s(state, PARTNER_IDS),
        int64s(state, LEVELS),
        int64s(state, LEAF_PLACES),
    )
