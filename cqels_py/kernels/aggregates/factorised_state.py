"""The state of aggregation below a join (factorised.py) as its kernels open it: from the records of the operator, of its
state and of a step's contributions (primitives/state_record.py), into NamedTuples.

Their arrays are described in factorised_records.py and factorised.py.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from cqels_py.kernels.aggregates.factorised_records import (
    COLUMNS,
    EXPIRES_FIFO,
    FIRST,
    FUNCTIONS,
    KINDS,
    LOCAL,
    LOCAL_APART,
    PORTS,
    ROW_PORT,
    ROW_SIGN,
    ROW_TICK,
)
from cqels_py.kernels.compiler.jit import jit_inline
from cqels_py.kernels.primitives.state_record import int8s, int32s, int64_rows, int64s, uint32s

Int64: TypeAlias = npt.NDArray[np.int64]
Uint32: TypeAlias = npt.NDArray[np.uint32]

CURSOR, LOCATED, ORDER, KEY_PLACES, ROW_PLACES, GROUPS, OF_AGGREGATES = range(7)
"""The arrays of the operator's record. ORDER: the inputs, the carrier first; the places of the ids of a key and of a
row, and of the group's columns in a row."""
(
    SIZES, KEY_WORDS, KEY_APART, ROW_RECORDS, ROW_APART, SNAP_KEY, SNAP_RECORDS, SNAP_APART, CHANGE, CHANGE_APART, HEAP, HEAP_META,
) = range(12)  # fmt: skip
"""The arrays of the state's record."""
KEY_SIZE, KEY_APART_SIZE, ROW_SIZE, ROW_APART_SIZE, SIZE_FIELDS = range(5)
"""SIZES: the lengths of the records of a key and of a row."""
OUT_TICK, OUT_SIGN, OUT_COLUMNS, WIDE_WORDS, WIDE_APART = range(5)
"""The arrays of the contributions' record."""

# Cursor. MADE and WIDE: the number of contributions written, and of accumulators of `wide` used; VISITED is kept from
# step to step and counts the contributions.
TICK, ROW, LOCATED_TO, SNAPS, FLUSHED, NEXT_ROW, MADE, WIDE, VISITED = range(9)
FIELDS = VISITED + 1


class Plan(NamedTuple):
    """The operator's constants. `other_inputs`: those other than the carrier; from `kinds` on: by aggregate.

    Arrays, or in the most common shape, of two inputs with one aggregate, a key of one id and a row of two, tuples, for
    which the kernel has no loops over one or two.
    """

    carrier: int
    other_inputs: Int64
    key_places: Int64
    row_places: Int64
    group_columns: Int64
    kinds: Int64
    ports: Int64
    local: Int64
    local_apart: Int64
    functions: Int64
    columns: Int64
    expires_fifo: Int64


class Records(NamedTuple):
    """The records by key and by row, their lengths, the ids of the rows; and the `change` of a key (factorised.py)."""

    key_size: int
    key_words: Int64
    key_apart_n: int
    key_apart: Uint32
    row_size: int
    row_words: Int64
    row_apart_n: int
    row_apart: Uint32
    row_keys: Int64
    row_width: int
    change: Int64
    change_apart: Uint32


class Snaps(NamedTuple):
    """The keys that have a snapshot at this tick, and copies of their records."""

    key: Int64
    words: Int64
    apart: Uint32


class Step(NamedTuple):
    """The rows of a step, the arguments of the aggregates, the cursor, and `slots`: its field WIDE."""

    tick: Int64
    sign: Int64
    port: Int64
    arguments: Int64
    cursor: Int64
    slots: Int64


class Terms(NamedTuple):
    """The values that arguments refer to: bags and queues of terms in the heap, the dictionary's texts, and the numbers
    of arguments with tag 15. None where no aggregate needs them."""

    heap: Int64 | None
    heap_meta: Int64 | None
    texts: npt.NDArray[np.uint8] | None
    spans: Int64 | None
    hashed_kind: Int64 | None
    hashed_words: Int64 | None
    hashed_real: npt.NDArray[np.float64] | None


class Contributions(NamedTuple):
    """The room for contributions, and for the accumulators of those whose sums are too large for their columns."""

    tick: npt.NDArray[np.int32]
    sign: npt.NDArray[np.int8]
    columns: Int64
    wide: Int64 | None
    wide_apart: Uint32 | None


@jit_inline
def open_plan(operator):
    """The Plan of an operator of any shape."""
    order, of_aggregates = int64s(operator, ORDER), int64_rows(operator, OF_AGGREGATES)
    return Plan(
        order[0],
        order[1:],
        int64s(operator, KEY_PLACES),
        int64s(operator, ROW_PLACES),
        int64s(operator, GROUPS),
        of_aggregates[KINDS],
        of_aggregates[PORTS],
        of_aggregates[LOCAL],
        of_aggregates[LOCAL_APART],
        of_aggregates[FUNCTIONS],
        of_aggregates[COLUMNS],
        of_aggregates[EXPIRES_FIFO],
    )


@jit_inline
def open_common_plan(operator):
    """The Plan of an operator of the most common shape, as tuples."""
    order, of_aggregates = int64s(operator, ORDER), int64_rows(operator, OF_AGGREGATES)
    return Plan(
        order[0],
        (order[1],),
        (np.int64(0),),
        (np.int64(0), np.int64(1)),
        int64s(operator, GROUPS),
        (of_aggregates[KINDS, 0],),
        (of_aggregates[PORTS, 0],),
        (of_aggregates[LOCAL, 0],),
        (of_aggregates[LOCAL_APART, 0],),
        (of_aggregates[FUNCTIONS, 0],),
        (of_aggregates[COLUMNS, 0],),
        (of_aggregates[EXPIRES_FIFO, 0],),
    )


@jit_inline
def open_records(state, plan, own):
    """The Records of a state; `own`: the index of the rows."""
    sizes = int64s(state, SIZES)
    return Records(
        sizes[KEY_SIZE],
        int64s(state, KEY_WORDS),
        sizes[KEY_APART_SIZE],
        uint32s(state, KEY_APART),
        sizes[ROW_SIZE],
        int64s(state, ROW_RECORDS),
        sizes[ROW_APART_SIZE],
        uint32s(state, ROW_APART),
        own.keys,
        np.int64(len(plan.row_places)),
        int64s(state, CHANGE),
        uint32s(state, CHANGE_APART),
    )


@jit_inline
def open_snaps(state):
    """The Snaps of a state."""
    return Snaps(int64s(state, SNAP_KEY), int64s(state, SNAP_RECORDS), uint32s(state, SNAP_APART))


@jit_inline
def open_step(rows, plan, operator):
    """The Step of a call."""
    cursor = int64s(operator, CURSOR)
    return Step(
        rows[ROW_TICK],
        rows[ROW_SIGN],
        rows[ROW_PORT],
        rows[FIRST + len(plan.row_places) :],
        cursor,
        cursor[WIDE : WIDE + 1],
    )


@jit_inline
def open_contributions(record):
    """The Contributions of a record."""
    return Contributions(
        int32s(record, OUT_TICK),
        int8s(record, OUT_SIGN),
        int64_rows(record, OUT_COLUMNS),
        int64s(record, WIDE_WORDS),
        uint32s(record, WIDE_APART),
    )


@jit_inline
def open_narrow_contributions(record):
    """The Contributions of a record where nothing is summed."""
    return Contributions(int32s(record, OUT_TICK), int8s(record, OUT_SIGN), int64_rows(record, OUT_COLUMNS), None, None)
