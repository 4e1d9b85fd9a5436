"""The records of a GROUP BY (primitives/state_record.py), and the NamedTuples that kernels open.

`of_aggregates` (6, aggregates): function, column of the argument, position of the accumulator, whether a term counts
once, the input of the argument, and whether that input is FIFO.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from cqels_py.kernels.compiler.jit import jit_inline
from cqels_py.kernels.primitives.state_record import float64s, int32s, int64_rows, int64s, uint32s
from cqels_py.kernels.structures.key_index import open_index

Int32: TypeAlias = npt.NDArray[np.int32]
Int64: TypeAlias = npt.NDArray[np.int64]
Uint32: TypeAlias = npt.NDArray[np.uint32]
Float64: TypeAlias = npt.NDArray[np.float64]

(
    SETTINGS, RECORDS, OF_AGGREGATES, CURSOR, QUEUE, ROWS, NOTES, RESULTS, SCRATCH, WORDS, APART, DEFERRED_ROWS, DEFERRED_REAL,
    JOINED_VALUES, PORT_COUNTS, WEIGHTED, WEIGHTED_APART,
) = range(17)  # fmt: skip
"""The arrays of a GROUP BY."""
N_KEYS, IS_FIFO, GROUP_SIZE, SUMS = range(4)
"""SETTINGS: the number of the groups' columns, whether the input is FIFO, the number of words of a group, and of sums."""
GROUPS, DISTINCT_TERMS, TERM_RUNS = range(3)
"""RECORDS: the addresses of the index of the groups' keys, of the index (aggregate, group, term) -> counter where a term
counts once, and of the terms that MIN, MAX and GROUP_CONCAT keep."""
HEAP, HEAP_META = range(2)
"""The arrays of TermRuns."""
HASHED_KIND, HASHED_WORDS, HASHED_REAL = range(3)
"""The arrays of HashedNumbers."""

FUNCTIONS, ARGUMENTS, PLACES, DISTINCT, PORTS, EXPIRES_FIFO = range(6)
FRESH, SCALES, DIVISORS, QUOTIENTS = range(4)


class Plan(NamedTuple):
    """Constants: the rows of `of_aggregates`, the number of the groups' columns, and whether the input is
    FIFO."""

    functions: Int64
    arguments: Int64
    places: Int64
    distinct: Int64
    ports: Int64
    expires_fifo: Int64
    n_keys: int
    is_fifo: bool


class Groups(NamedTuple):
    """The accumulators of all groups (accumulators.py), and of FIFO input the groups of the mappings that are there."""

    words: Int64
    size: int
    apart: Uint32
    sums: int
    queue: Int32


class Chunk(NamedTuple):
    """The rows in work, their notes and the notes' values, with room for `size` of each; and values that the caller computes.

    See group_by.py. `fresh`, `scales`, `divisors` and `quotients`: the rows of `results`.
    """

    cursor: Int64
    rows: Int64
    notes: Int64
    size: int
    scratch: Int64
    fresh: Int64
    scales: Int64
    divisors: Int64
    quotients: Int64
    deferred: Int64
    deferred_real: Float64
    joined: Int64


class Input(NamedTuple):
    """The rows to be aggregated. `keyed`: the columns with the groups' columns first.

    Aggregates take their arguments as terms from `columns`, and as numbers from `values`, which has tag 15 for those
    whose numbers are among the hashed ones.
    """

    tick: Int32
    sign: npt.NDArray[np.int8]
    keyed: Int64
    columns: Int64
    values: Int64


class Join(NamedTuple):
    """Of a join: each row's input, by group the number of rows of each input, and an accumulator as scratch."""

    port: Int64
    counts: Int64
    words: Int64
    apart: Uint32


class Terms(NamedTuple):
    """The terms that are kept, and the dictionary's texts of terms."""

    heap: Int64
    heap_meta: Int64
    texts: npt.NDArray[np.uint8]
    spans: Int64


class Numbers(NamedTuple):
    """The numbers of terms with tag 15, as _take_hashed of accumulators.py takes them."""

    kind: Int64
    words: Int64
    real: Float64


class Wide(NamedTuple):
    """Accumulators of differences that three words do not hold (weighted_sums.py)."""

    words: Int64
    apart: Uint32


class Output(NamedTuple):
    """Room for the changes of the answer."""

    tick: Int32
    sign: npt.NDArray[np.int8]
    columns: Int64


@jit_inline
def open_plan(state):
    of_aggregates, settings = int64_rows(state, OF_AGGREGATES), int64s(state, SETTINGS)
    return Plan(
        of_aggregates[FUNCTIONS],
        of_aggregates[ARGUMENTS],
        of_aggregates[PLACES],
        of_aggregates[DISTINCT],
        of_aggregates[PORTS],
        of_aggregates[EXPIRES_FIFO],
        settings[N_KEYS],
        settings[IS_FIFO] != 0,
    )


@jit_inline
def open_groups(state):
    settings = int64s(state, SETTINGS)
    return Groups(
        int64s(state, WORDS), settings[GROUP_SIZE], uint32s(state, APART), settings[SUMS], int32s(state, QUEUE)
    )


@jit_inline
def open_chunk(state):
    notes, results = int64_rows(state, NOTES), int64_rows(state, RESULTS)
    return Chunk(
        int64s(state, CURSOR),
        int64_rows(state, ROWS),
        notes,
        np.int64(notes.shape[1]),
        int64_rows(state, SCRATCH),
        results[FRESH],
        results[SCALES],
        results[DIVISORS],
        results[QUOTIENTS],
        int64_rows(state, DEFERRED_ROWS),
        float64s(state, DEFERRED_REAL),
        int64s(state, JOINED_VALUES),
    )


@jit_inline
def open_groups_index(state):
    """The index of the groups' keys."""
    return open_index(int64s(state, RECORDS)[GROUPS])


@jit_inline
def open_distinct_index(state):
    """The index of the terms that count once."""
    return open_index(int64s(state, RECORDS)[DISTINCT_TERMS])


@jit_inline
def open_join(state, port):
    return Join(port, int64s(state, PORT_COUNTS), int64s(state, WEIGHTED), uint32s(state, WEIGHTED_APART))


@jit_inline
def open_terms(state, texts, spans):
    runs = int64s(state, RECORDS)[TERM_RUNS]
    return Terms(int64s(runs, HEAP), int64s(runs, HEAP_META), texts, spans)


@jit_inline
def open_numbers(numbers):
    """The numbers of a record of hashed literals."""
    return Numbers(int64s(numbers, HASHED_KIND), int64_rows(numbers, HASHED_WORDS), float64s(numbers, HASHED_REAL))
