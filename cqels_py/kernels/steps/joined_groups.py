"""Entries of aggregates below joins: the rows of all inputs are laid out in the order of their ticks, and aggregated by key.

Where the inputs have more rows than there is room for, or numbers that are not inline, Python calls the operator instead, as for
`by_calls.call`. What has begun goes on where it was.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.aggregates import factorised, group_by
from cqels_py.kernels.aggregates import factorised_state as state_arrays
from cqels_py.kernels.aggregates.accumulators import DEFERRED, OUT
from cqels_py.kernels.aggregates.factorised_input import lay_rows
from cqels_py.kernels.aggregates.factorised_records import FIRST, ROW_PORT, ROW_SIGN, ROW_TICK
from cqels_py.kernels.aggregates.group_records import APART, CURSOR, HASHED_KIND, HASHED_REAL, HASHED_WORDS
from cqels_py.kernels.aggregates.updates import SEEN
from cqels_py.kernels.compiler.jit import jit_flat, jit_inline
from cqels_py.kernels.compiler.native_call import (
    FLOAT64S,
    INT8S,
    INT32S,
    INT64,
    INT64_PAIR,
    INT64_ROWS,
    INT64S,
    UINT8S,
    UINT32S,
    NativeCall,
)
from cqels_py.kernels.primitives.state_record import (
    float64s,
    int8s,
    int32s,
    int64_rows,
    int64s,
    matrix,
    uint8s,
    uint32s,
)
from cqels_py.kernels.primitives.status import DONE, PYTHON_NEEDED
from cqels_py.kernels.steps.by_calls import COMPLETE, NOT_CALLED
from cqels_py.kernels.steps.deltas import COUNT, DELTA_COLUMNS, SIGN, TICK, close_gaps
from cqels_py.kernels.steps.driver import ROOM_NEEDED, VALUES_NEEDED
from cqels_py.kernels.steps.element import ARENA, KERNEL, LINKS, STATE, TABLE

(
    OUTPUT, RESULT_WIDTH, ASKED_TAGS, FLOATS, NUMBERS, TERMS, GROUPS_TERMS, LAYING, LAID_FIELDS, KEY_WIDTH, ROW_WIDTH, PUTTING,
    PUTS, OPERATOR, SUMS_OF_KEYS, KEY_INDEX, ROW_INDEX, CONTRIBUTIONS, FIRST_INPUT,
) = range(3, 22)  # fmt: skip
"""LINKS, behind those of every entry, whose KERNEL and STATE are those of the GroupBy. OUTPUT to TERMS: as of steps/groups.py;
GROUPS_TERMS: 1 if the GroupBy needs texts; LAYING: the kernel that lays an input's rows out, LAID_FIELDS: the fields of a row, and
how many columns its key and the whole of it have. Those up to CONTRIBUTIONS are for `group_carried` alone: the kernel PUTTING that
makes contributions, which of PUTS it is, and its records. Then for each input INPUT_LINKS."""
PORT, DELTA, DELTA_WIDTH, HASHES, INPUT_LINKS = range(5)
"""Links of an input, in the order in which they are taken: its number, its delta, and which hashes its rows need."""
EXTREMES, SUMS, BOTH = range(3)
"""PUTS: which aggregates there are."""
BEGUN, CALLED, PLACES, ROWS, FIRST_SOURCES = range(1, 6)
"""Arrays of the record. BEGUN (3): how far the entry is, its kernel's status and how many rows there are; CALLED: as of
`by_calls.call`; PLACES: each row's among all; ROWS: room for them; and for each input `sources` as of `lay_rows`."""
READY, PUT, UNFINISHED, AGGREGATING, AGGREGATED, RESOLVED = range(6)
"""BEGUN. PUT: contributions are being made; UNFINISHED: there is no room for them, and Python goes on; AGGREGATED: the changes have
values that are not inline; RESOLVED: Python has found these."""

LAY = NativeCall(
    lay_rows, INT64_PAIR, INT64, INT32S, INT8S, INT64_ROWS, INT32S, INT64, INT64_ROWS, INT64_ROWS, INT64, INT64, INT64
)  # fmt: skip
_OUT = (INT32S, INT8S, INT64_ROWS)
_JOINED = (INT64S, INT64S, INT64S, INT64_ROWS, INT64_ROWS, *_OUT)
JOINED = NativeCall(group_by.group_joined, INT64, INT64, INT64, *_JOINED)
JOINED_TERMS = NativeCall(group_by.group_joined_terms, INT64, INT64, INT64, UINT8S, INT64S, *_JOINED)
_DIFFERENCES = (INT32S, INT8S, INT64_ROWS, INT64S, UINT32S, *_OUT)
DIFFERENCES = NativeCall(group_by.group_differences, INT64, INT64, *_DIFFERENCES)
DIFFERENCES_TERMS = NativeCall(group_by.group_differences_terms, INT64, INT64, UINT8S, INT64S, *_DIFFERENCES)
_TEXTS, _NUMBERS = (UINT8S, INT64S), (INT64S, INT64_ROWS, FLOAT64S)
_PUT = (INT64_ROWS, INT64, INT64, INT64, INT64, INT64)
PUT_EXTREMES = NativeCall(factorised.put_extremes, INT64, *_PUT, *_TEXTS)
PUT_EXTREME_OF_TWO = NativeCall(factorised.put_extreme_of_two, INT64, *_PUT, *_TEXTS)
PUT_SUMS = NativeCall(factorised.put_sums, INT64, *_PUT, *_NUMBERS)
PUT_SUM_OF_TWO = NativeCall(factorised.put_sum_of_two, INT64, *_PUT, *_NUMBERS)
PUT_ALL = NativeCall(factorised.put_all, INT64, *_PUT, *_TEXTS, *_NUMBERS)
_lay, _joined, _joined_terms = LAY.call, JOINED.call, JOINED_TERMS.call
_differences, _differences_terms = DIFFERENCES.call, DIFFERENCES_TERMS.call
_put_extremes, _put_sums, _put_all = PUT_EXTREMES.call, PUT_SUMS.call, PUT_ALL.call


@jit_inline
def _inputs(links):
    return (len(links) - FIRST_INPUT) // INPUT_LINKS


@jit_flat
def _place_rows(record):
    """Find the place of each input's rows among all, by ticks; at one tick those that are taken first come first."""
    links, places = int64s(record, LINKS), int32s(record, PLACES)
    inputs, start = _inputs(links), 0
    for p in range(inputs):
        mine = links[FIRST_INPUT + p * INPUT_LINKS + DELTA]
        rows, ticks = int64s(mine, COUNT)[0], int32s(mine, TICK)
        for i in range(rows):
            at = i
            for q in range(inputs):
                other = links[FIRST_INPUT + q * INPUT_LINKS + DELTA]
                if q != p:
                    theirs = int32s(other, TICK)
                    for j in range(int64s(other, COUNT)[0]):
                        at += theirs[j] < ticks[i] or (q < p and theirs[j] == ticks[i])
            places[start + i] = at
        start += rows


@jit_flat
def _lay_out(record, count):
    """Lay out the rows of all inputs. False: some numbers are not inline, or there are floats for which nothing is prepared."""
    links, tags, start = int64s(record, LINKS), np.int64(0), 0
    _place_rows(record)
    laid = matrix(int64s(record, ROWS), links[LAID_FIELDS], count)
    for p in range(_inputs(links)):
        at = FIRST_INPUT + p * INPUT_LINKS
        delta = links[at + DELTA]
        rows = int64s(delta, COUNT)[0]
        if rows == 0:
            continue
        _, found = _lay(
            links[LAYING],
            (
                links[at + PORT], int32s(delta, TICK)[:rows], int8s(delta, SIGN)[:rows],
                matrix(int64s(delta, DELTA_COLUMNS), links[at + DELTA_WIDTH], rows), int32s(record, PLACES), start, laid,
                int64_rows(record, FIRST_SOURCES + p), links[KEY_WIDTH], links[ROW_WIDTH], links[at + HASHES],
            ),
        )  # fmt: skip
        tags |= found
        start += rows
    known_reals = len(uint32s(links[STATE], APART)) != 0
    return tags & links[ASKED_TAGS] == 0 and (known_reals or tags & links[FLOATS] == 0)


@jit_flat
def _begin(record):
    """Lay out the rows if that has not been done: DONE if there is something to be aggregated, else the status of the entry + 1."""
    links, begun, called = int64s(record, LINKS), int64s(record, BEGUN), int64s(record, CALLED)
    before, called[0] = called[0], NOT_CALLED
    if before != NOT_CALLED:
        begun[0] = READY
        return np.int64(1 + (DONE if before == COMPLETE else PYTHON_NEEDED))
    if begun[0] == RESOLVED:
        begun[0] = READY
        return np.int64(1 + DONE)
    if begun[0] != READY:
        return np.int64(0)
    count = 0
    for p in range(_inputs(links)):
        count += int64s(links[FIRST_INPUT + p * INPUT_LINKS + DELTA], COUNT)[0]
    int64s(links[OUTPUT], COUNT)[0] = 0
    if count == 0:
        return np.int64(1 + DONE)
    if count > len(int32s(record, PLACES)) or not _lay_out(record, count):
        return np.int64(1 + VALUES_NEEDED)
    begun[2] = count
    return np.int64(0)


@jit_flat
def _begin_groups(record):
    """Before the first call of the GroupBy's kernel: its cursor is set back."""
    cursor = int64s(int64s(record, LINKS)[STATE], CURSOR)
    for field in range(SEEN):
        cursor[field] = 0
    int64s(record, BEGUN)[0] = AGGREGATING


@jit_flat
def _end(record, status):
    """The status of the entry after the GroupBy's kernel has returned this one."""
    links, begun = int64s(record, LINKS), int64s(record, BEGUN)
    begun[1] = status
    if status != DONE:
        return np.int64(ROOM_NEEDED)
    cursor = int64s(links[STATE], CURSOR)
    close_gaps(links[OUTPUT], links[RESULT_WIDTH], cursor[OUT])
    begun[0] = READY if cursor[DEFERRED] == 0 else AGGREGATED
    return np.int64(DONE if begun[0] == READY else VALUES_NEEDED)


@jit_flat
def group_by_key(record):
    """The changes of groups by exactly the key of the join. VALUES_NEEDED: Python calls the operator, or values are not inline."""
    status = _begin(record)
    if status != 0:
        return np.int64(status - 1)
    links, begun, laid = int64s(record, LINKS), int64s(record, BEGUN), int64s(record, ROWS)
    if begun[0] == READY:
        _begin_groups(record)
    count, output, state = begun[2], links[OUTPUT], links[STATE]
    tick, port = laid[ROW_TICK * count :][:count], laid[ROW_PORT * count :][:count]
    sign, out_tick, keys = laid[ROW_SIGN * count :][:count], int32s(output, TICK), links[KEY_WIDTH]
    keyed = matrix(laid[FIRST * count :], keys, count)
    arguments = matrix(laid[(FIRST + keys) * count :], links[LAID_FIELDS] - FIRST - keys, count)
    out = matrix(int64s(output, DELTA_COLUMNS), links[RESULT_WIDTH], len(out_tick))
    if links[GROUPS_TERMS] == 0:
        status = _joined(
            links[KERNEL],
            (state, links[NUMBERS], tick, sign, port, keyed, arguments, out_tick, int8s(output, SIGN), out),
        )
    else:
        status = _joined_terms(
            links[KERNEL],
            (
                state, links[NUMBERS], uint8s(links[TERMS], ARENA), int64s(links[TERMS], TABLE), tick, sign, port, keyed,
                arguments, out_tick, int8s(output, SIGN), out,
            ),
        )  # fmt: skip
    return _end(record, status)


@jit_flat
def _put(record, count):
    """Make the contributions of the rows; the kernel's status."""
    links = int64s(record, LINKS)
    rows, kernel, numbers = matrix(int64s(record, ROWS), links[LAID_FIELDS], count), links[PUTTING], links[NUMBERS]
    operator, state, keys, own = links[OPERATOR], links[SUMS_OF_KEYS], links[KEY_INDEX], links[ROW_INDEX]
    made = links[CONTRIBUTIONS]
    if links[PUTS] == SUMS:
        return _put_sums(
            kernel,
            (
                rows, operator, state, keys, own, made, int64s(numbers, HASHED_KIND), int64_rows(numbers, HASHED_WORDS),
                float64s(numbers, HASHED_REAL),
            ),
        )  # fmt: skip
    texts, spans = uint8s(links[TERMS], ARENA), int64s(links[TERMS], TABLE)
    if links[PUTS] == EXTREMES:
        return _put_extremes(kernel, (rows, operator, state, keys, own, made, texts, spans))
    return _put_all(
        kernel,
        (
            rows, operator, state, keys, own, made, texts, spans, int64s(numbers, HASHED_KIND),
            int64_rows(numbers, HASHED_WORDS), float64s(numbers, HASHED_REAL),
        ),
    )  # fmt: skip


@jit_flat
def group_carried(record):
    """The changes of groups of a join with a carrier (aggregates/factorised.py); otherwise as `group_by_key`."""
    status = _begin(record)
    if status != 0:
        return np.int64(status - 1)
    links, begun = int64s(record, LINKS), int64s(record, BEGUN)
    cursor = int64s(links[OPERATOR], state_arrays.CURSOR)
    if begun[0] == READY:
        for field in range(state_arrays.VISITED):
            cursor[field] = 0
        begun[0] = PUT
    if begun[0] == PUT:
        begun[1] = _put(record, begun[2])
        if begun[1] in (factorised.CONTRIBUTIONS_FULL, factorised.ENOUGH):
            begun[0] = UNFINISHED
            return np.int64(VALUES_NEEDED)
        if begun[1] != DONE:
            return np.int64(ROOM_NEEDED)
        if cursor[state_arrays.MADE] == 0:
            begun[0] = READY
            return np.int64(DONE)
        _begin_groups(record)
    made, output, out_tick = cursor[state_arrays.MADE], links[OUTPUT], int32s(links[OUTPUT], TICK)
    given = links[CONTRIBUTIONS]
    tick, sign = int32s(given, state_arrays.OUT_TICK)[:made], int8s(given, state_arrays.OUT_SIGN)
    columns, wide = int64_rows(given, state_arrays.OUT_COLUMNS), int64s(given, state_arrays.WIDE_WORDS)
    wide_apart = uint32s(given, state_arrays.WIDE_APART)
    out = matrix(int64s(output, DELTA_COLUMNS), links[RESULT_WIDTH], len(out_tick))
    if links[GROUPS_TERMS] == 0:
        status = _differences(
            links[KERNEL],
            (links[STATE], tick, sign, columns, wide, wide_apart, out_tick, int8s(output, SIGN), out),
        )
    else:
        status = _differences_terms(
            links[KERNEL],
            (
                links[STATE], uint8s(links[TERMS], ARENA), int64s(links[TERMS], TABLE), tick, sign, columns, wide, wide_apart,
                out_tick, int8s(output, SIGN), out,
            ),
        )  # fmt: skip
    return _end(record, status)
