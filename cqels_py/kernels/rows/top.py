"""ORDER BY, LIMIT and OFFSET: the rows in order, and the rows that enter and leave the slice under insertions and
retractions.

Entries of a one-way index over whole rows are kept sorted in blocks (structures/ordered_blocks.py), an entry as often
as its row occurs. Rows of the same key (`by`: its columns; none: all rows) are contiguous, and have a slice of their
own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cqels_py.kernels.compiler.jit import jit_flat, jit_inline
from cqels_py.kernels.primitives.state_record import flags, int64_rows, int64s
from cqels_py.kernels.structures.hash_table import hash_row
from cqels_py.kernels.structures.key_index import add_key, count_entry, find_key, has_room, open_index
from cqels_py.kernels.structures.ordered_blocks import (
    COUNT,
    FREE,
    SIZE,
    USED,
    number_at,
    number_at_position,
    numbers_before,
    put,
    take_out,
)
from cqels_py.kernels.values.order import order_terms, order_values

# state, after the fields of structures/ordered_blocks.py
LENGTH, OUT = FREE + 1, FREE + 2
STATE_FIELDS = FREE + 3

BLOCKS, DIRECTORY, STATE, BY, COLUMNS, DESCENDING, SLICE = range(7)
"""The arrays of the record of OrderedRows. SLICE: offset and limit."""
DONE, ROWS_FULL, NOT_THERE = range(3)
"""ROWS_FULL: there is no room for so many new rows, and nothing has changed. NOT_THERE: a retracted row was not there."""


class Sorted(NamedTuple):
    """The entries in order (structures/ordered_blocks.py), and the rows that they stand for: `width` ids of `keys`
    each."""

    blocks: npt.NDArray[np.int64]
    directory: npt.NDArray[np.int64]
    state: npt.NDArray[np.int64]
    keys: npt.NDArray[np.int64]
    width: int


class Order(NamedTuple):
    """The columns of the key, and those of the order with their directions; where the texts of hashed terms are."""

    by: npt.NDArray[np.int64]
    columns: npt.NDArray[np.int64]
    descending: npt.NDArray[np.bool_]
    texts: npt.NDArray[np.uint8]
    spans: npt.NDArray[np.int64]


class Changes(NamedTuple):
    """Room for rows that enter and leave: their columns (width, n), ticks and signs."""

    columns: npt.NDArray[np.int64]
    tick: npt.NDArray[np.int32]
    sign: npt.NDArray[np.int8]


@jit_inline
def blocks_for(used, more):
    """Blocks that suffice for `more` rows beside `used` blocks: each may be split once, and again after half a block
    more."""
    return used + min(used, more) + 2 * more // SIZE + 2


@jit_inline
def _compare_keys(keys, at, other_at, by):
    """Compare the columns of the key by id; any order serves."""
    for k in range(len(by)):
        one, other = keys[at + by[k]], keys[other_at + by[k]]
        if one != other:
            return np.int64(-1 if one < other else 1)
    return np.int64(0)


@jit_flat
def _compare_rows(keys, at, other_at, width, order):
    """Compare the rows at `at` and `other_at` by the key, the values of the order's columns, then the terms of all
    columns."""
    by_key = _compare_keys(keys, at, other_at, order.by)
    if by_key != 0:
        return by_key
    for k in range(len(order.columns)):
        column = order.columns[k]
        by_value = order_values(keys[at + column], keys[other_at + column], order.texts, order.spans)
        if by_value != 0:
            return -by_value if order.descending[k] else by_value
    for c in range(width):
        by_term = order_terms(keys[at + c], keys[other_at + c], order.texts, order.spans)
        if by_term != 0:
            return by_term
    return 0


@jit_inline
def _is_before(d, i, entry, rows, order):
    """Is the row at position (d, i) before the entry's?"""
    other = number_at(rows.blocks, rows.directory, d, i)
    return _compare_rows(rows.keys, other * rows.width, entry * rows.width, rows.width, order) < 0


@jit_inline
def _place(entry, rows, order):
    """The first position whose row is not before the entry's; after the last number of a block where that is the first
    of the next block."""
    low, high = np.int64(0), rows.state[USED]
    while low < high:
        middle = (low + high) >> 1
        if _is_before(middle, 0, entry, rows, order):
            low = middle + 1
        else:
            high = middle
    if low == 0:
        return np.int64(0), np.int64(0)
    d = low - 1
    low, high = np.int64(1), rows.directory[COUNT, d]
    while low < high:
        middle = (low + high) >> 1
        if _is_before(d, middle, entry, rows, order):
            low = middle + 1
        else:
            high = middle
    return d, low


@jit_inline
def _compare_key_at(d, i, entry, rows, by):
    other = number_at(rows.blocks, rows.directory, d, i)
    return _compare_keys(rows.keys, other * rows.width, entry * rows.width, by)


@jit_flat
def _run_edge(entry, rows, by, behind):
    """The position where the rows of the entry's key begin (`behind` 0), or the one after them (1)."""
    low, high = np.int64(0), rows.state[USED]
    while low < high:
        middle = (low + high) >> 1
        if _compare_key_at(middle, 0, entry, rows, by) < behind:
            low = middle + 1
        else:
            high = middle
    if low == 0:
        return np.int64(0)
    d = low - 1
    low, high = np.int64(1), rows.directory[COUNT, d]
    while low < high:
        middle = (low + high) >> 1
        if _compare_key_at(d, middle, entry, rows, by) < behind:
            low = middle + 1
        else:
            high = middle
    return numbers_before(rows.directory, d) + low


@jit_inline
def _emit(tick, sign, position, rows, out):
    entry = number_at_position(rows.blocks, rows.directory, rows.state[USED], position)
    k = rows.state[OUT]
    for c in range(rows.width):
        out.columns[c, k] = rows.keys[entry * rows.width + c]
    out.tick[k] = tick
    out.sign[k] = sign
    rows.state[OUT] = k + 1


@jit_flat
def take(tick, sign, columns, state, index, texts, spans, out, out_tick, out_sign):
    """Insert and retract rows, whose `columns` are (width, n), and emit the changes of the slice, at most two rows for
    each. Returns a status, and how many rows were emitted.

    `state`, `index`: the addresses of the records of an OrderedRows and of its KeyTable. Within a tick a row may enter
    and leave again. When a row is inserted, the last row of the slice leaves, and one row enters: itself, or the one
    that it pushes over the slice's beginning. A retraction is the reverse.
    """
    width, key_index = columns.shape[0], open_index(index)
    rows = Sorted(
        int64_rows(state, BLOCKS), int64_rows(state, DIRECTORY), int64s(state, STATE), key_index.keys, np.int64(width)
    )
    used, in_slice, made = rows.state[USED], int64s(state, SLICE), np.int64(0)
    if len(rows.blocks) < blocks_for(used, len(tick)) or not has_room(key_index, width, len(tick)):
        return ROWS_FULL, made
    order = Order(int64s(state, BY), int64s(state, COLUMNS), flags(state, DESCENDING), texts, spans)
    changes = Changes(out, out_tick, out_sign)
    rows.state[OUT] = 0
    for row in range(len(tick)):
        hashed = hash_row(columns, row, width)
        entry = find_key(key_index, width, columns, row, hashed)
        if entry < 0:
            if sign[row] < 0:
                return NOT_THERE, made
            entry = add_key(key_index, width, columns, row, hashed)
        if sign[row] < 0 and key_index.counts[entry] == 0:
            return NOT_THERE, made
        count_entry(key_index, entry, np.int64(sign[row]))
        _take_entry(entry, tick[row], sign[row], in_slice[0], in_slice[1], rows, order, changes)
    return DONE, rows.state[OUT]


@jit_inline
def _take_entry(entry, tick, sign, offset, limit, rows, order, out):
    """Insert or retract a row, given its entry."""
    blocks, directory, state = rows.blocks, rows.directory, rows.state
    first, behind = np.int64(0), state[LENGTH]
    if len(order.by) > 0:
        first = _run_edge(entry, rows, order.by, 0)
        behind = _run_edge(entry, rows, order.by, 1)
    end = first + offset + limit
    d, i = _place(entry, rows, order)
    moved = max(numbers_before(directory, d) + i, first + offset)
    if sign > 0:
        put(blocks, directory, state, d, i, entry)
        state[LENGTH] += 1
        if moved < end and moved <= behind:
            _emit(tick, 1, moved, rows, out)
            if end <= behind:
                _emit(tick, -1, end, rows, out)
    else:
        if moved < end and moved < behind:
            _emit(tick, -1, moved, rows, out)
            if end < behind:
                _emit(tick, 1, end, rows, out)
        if i == directory[COUNT, d]:
            d, i = d + 1, np.int64(0)
        take_out(blocks, directory, state, d, i)
        state[LENGTH] -= 1
