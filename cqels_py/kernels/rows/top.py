"""ORDER BY, LIMIT and OFFSET: the rows in order, and the rows that enter and leave the slice under insertions and
retractions.

Entries of a one-way index over whole rows are kept sorted in blocks (structures/ordered_blocks.py), an entry as often
as its row occurs. Rows of the same key (`by`: its columns; none: all rows) are contiguous, and have a slice of their
own.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat, jit_inline
from cqels_py.kernels.structures.hash_table import ZERO, add, find, hash_row
from cqels_py.kernels.structures.ordered_blocks import (
    COUNT,
    FREE,
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


@jit_flat
def _compare_keys(a, a_at, b, b_at, by):
    """Compare the columns of the key by id; any order serves."""
    for k in range(len(by)):
        one, other = a[a_at + by[k]], b[b_at + by[k]]
        if one != other:
            return np.int64(-1 if one < other else 1)
    return np.int64(0)


@jit_flat
def _compare_rows(a, a_at, b, b_at, width, by, columns, descending, texts, spans):
    """Compare the rows at a[a_at:] and b[b_at:] by the key, the values of the order's columns, then the terms of all
    columns."""
    by_key = _compare_keys(a, a_at, b, b_at, by)
    if by_key != 0:
        return by_key
    for k in range(len(columns)):
        order = order_values(a[a_at + columns[k]], b[b_at + columns[k]], texts, spans)
        if order != 0:
            return -order if descending[k] else order
    for c in range(width):
        order = order_terms(a[a_at + c], b[b_at + c], texts, spans)
        if order != 0:
            return order
    return 0


@jit_inline
def _place(blocks, directory, used, keys, entry, width, by, columns, descending, texts, spans):
    """The first position whose row is not before the entry's; after the last number of a block where that is the first
    of the next block."""
    low = np.int64(0)
    high = used
    while low < high:
        middle = (low + high) >> 1
        other = number_at(blocks, directory, middle, 0)
        if _compare_rows(keys, other * width, keys, entry * width, width, by, columns, descending, texts, spans) < 0:
            low = middle + 1
        else:
            high = middle
    if low == 0:
        return np.int64(0), np.int64(0)
    d = low - 1
    low = np.int64(1)
    high = directory[COUNT, d]
    while low < high:
        middle = (low + high) >> 1
        other = number_at(blocks, directory, d, middle)
        if _compare_rows(keys, other * width, keys, entry * width, width, by, columns, descending, texts, spans) < 0:
            low = middle + 1
        else:
            high = middle
    return d, low


@jit_flat
def _run_edge(blocks, directory, used, keys, entry, width, by, behind):
    """The position where the rows of the entry's key begin (`behind` 0), or the one after them (1)."""
    low = np.int64(0)
    high = used
    while low < high:
        middle = (low + high) >> 1
        if _compare_keys(keys, number_at(blocks, directory, middle, 0) * width, keys, entry * width, by) < behind:
            low = middle + 1
        else:
            high = middle
    if low == 0:
        return np.int64(0)
    d = low - 1
    low = np.int64(1)
    high = directory[COUNT, d]
    while low < high:
        middle = (low + high) >> 1
        if _compare_keys(keys, number_at(blocks, directory, d, middle) * width, keys, entry * width, by) < behind:
            low = middle + 1
        else:
            high = middle
    return numbers_before(directory, d) + low


@jit_inline
def _emit(tick, sign, position, blocks, directory, keys, width, state, out, out_tick, out_sign):
    entry = number_at_position(blocks, directory, state[USED], position)
    k = state[OUT]
    for c in range(width):
        out[c, k] = keys[entry * width + c]
    out_tick[k] = tick
    out_sign[k] = sign
    state[OUT] = k + 1


@jit_flat
def take(
    tick, sign, rows, width, table, mask, keys, counts, free, meta, blocks, directory, state, by, columns, descending, offset, limit,
    texts, spans, out, out_tick, out_sign,
):  # fmt: skip
    """Insert and retract rows (width, n), and emit the changes of the slice, at most two rows for each. False: a
    retracted row was not there.

    Within a tick a row may enter and leave again. When a row is inserted, the last row of the slice leaves, and one row
    enters: itself, or the one that it pushes over the slice's beginning. A retraction is the reverse.
    """
    for row in range(len(tick)):
        hashed = hash_row(rows, row, width)
        entry = find(table, mask, keys, width, rows, row, hashed)
        if entry < 0:
            if sign[row] < 0:
                return False
            entry = add(table, mask, keys, width, rows, row, hashed, counts, free, meta)
        first, behind = np.int64(0), state[LENGTH]
        if len(by) > 0:
            first = _run_edge(blocks, directory, state[USED], keys, entry, width, by, 0)
            behind = _run_edge(blocks, directory, state[USED], keys, entry, width, by, 1)
        end = first + offset + limit
        d, i = _place(blocks, directory, state[USED], keys, entry, width, by, columns, descending, texts, spans)
        moved = max(numbers_before(directory, d) + i, first + offset)
        if sign[row] > 0:
            if counts[entry] == 0:
                meta[ZERO] -= 1
            counts[entry] += 1
            put(blocks, directory, state, d, i, entry)
            state[LENGTH] += 1
            if moved < end and moved <= behind:
                _emit(tick[row], 1, moved, blocks, directory, keys, width, state, out, out_tick, out_sign)
                if end <= behind:
                    _emit(tick[row], -1, end, blocks, directory, keys, width, state, out, out_tick, out_sign)
        else:
            if counts[entry] == 0:
                return False
            counts[entry] -= 1
            if counts[entry] == 0:
                meta[ZERO] += 1
            if moved < end and moved < behind:
                _emit(tick[row], -1, moved, blocks, directory, keys, width, state, out, out_tick, out_sign)
                if end < behind:
                    _emit(tick[row], 1, end, blocks, directory, keys, width, state, out, out_tick, out_sign)
            if i == directory[COUNT, d]:
                d, i = d + 1, np.int64(0)
            take_out(blocks, directory, state, d, i)
            state[LENGTH] -= 1
    return True
