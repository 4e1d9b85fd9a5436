"""The record of ring indexes (ring_index.py), as part of a join's state (primitives/state_record.py)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cqels_py.kernels.compiler.jit import jit_inline
from cqels_py.kernels.primitives.state_record import int32s, int64s

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]

(
    CURSOR, PORTS, INDEXES, GROUPS, KEY_COLUMNS, CELLS, TABLES, LOCATED, RINGS, RING_IDS, RING_META, POSITIONS, FREE, FREE_META,
) = range(14)  # fmt: skip
"""The arrays of ring indexes and of the leaves that they index. FREE, FREE_META: see `load`."""
RECORD_ARRAYS = 14
"""An array of a record that has more is numbered from here on."""


class RingArrays(NamedTuple):
    """Ring indexes with their leaves, as kernels use them; see ring_index.py.

    `state`: the record's address. A function that is not inlined gets this and opens the record itself, since an array takes seven
    words as an argument.
    """

    state: int
    cursor: Int64
    ports: Int64
    indexes: Int64
    groups: Int64
    key_columns: Int64
    cells: Int64
    tables: Int64
    located: Int64
    rings: Int32
    ring_ids: Int64
    ring_meta: Int64
    positions: Int32


class InputRows(NamedTuple):
    """Rows of all ports in the order of ticks: the port of each, the slot of its leaf, its tick and its sign."""

    port: Int32
    slot: Int32
    tick: Int32
    sign: npt.NDArray[np.int8]


@jit_inline
def open_rings(state):
    """The RingArrays of a record."""
    return RingArrays(
        state,
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
        int32s(state, POSITIONS),
    )
