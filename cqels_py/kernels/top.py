"""ORDER BY, LIMIT and OFFSET: the rows in order, and what enters and leaves the slice as they come and go.

`order` holds the entries of a one-way index over whole rows, sorted, an entry as often as its row is there. Rows of the same key
(`by`: its columns; none: all rows) are a run of it, and have a slice of their own.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.jit import jit_flat, jit_inline
from cqels_py.kernels.key_table import ZERO, add, find, hash_row
from cqels_py.kernels.order import order_terms

LENGTH, OUT = range(2)
STATE_FIELDS = 2


@jit_flat
def _compare_keys(a, a_at, b, b_at, by):
    """By the columns of the key, in any order: of their ids."""
    for k in range(len(by)):
        one, other = a[a_at + by[k]], b[b_at + by[k]]
        if one != other:
            return np.int64(-1 if one < other else 1)
    return np.int64(0)


@jit_flat
def _compare_rows(a, a_at, b, b_at, width, by, columns, descending, texts, spans):
    """Rows at a[a_at:] and b[b_at:] by the key, the order's columns, then by all columns."""
    by_key = _compare_keys(a, a_at, b, b_at, by)
    if by_key != 0:
        return by_key
    for k in range(len(columns)):
        order = order_terms(a[a_at + columns[k]], b[b_at + columns[k]], texts, spans)
        if order != 0:
            return -order if descending[k] else order
    for c in range(width):
        order = order_terms(a[a_at + c], b[b_at + c], texts, spans)
        if order != 0:
            return order
    return 0


@jit_inline
def _place(order, length, keys, entry, width, by, columns, descending, texts, spans):
    """The first position whose row is not before the entry's."""
    low = np.int64(0)
    high = length
    while low < high:
        middle = (low + high) >> 1
        if (
            _compare_rows(
                keys, order[middle] * width, keys, entry * width, width, by, columns, descending, texts, spans
            )
            < 0
        ):
            low = middle + 1
        else:
            high = middle
    return low


@jit_flat
def _run_edge(order, length, keys, entry, width, by, behind):
    """Where the run of the entry's key begins (`behind` 0), or the place behind it (1)."""
    low = np.int64(0)
    high = length
    while low < high:
        middle = (low + high) >> 1
        if _compare_keys(keys, order[middle] * width, keys, entry * width, by) < behind:
            low = middle + 1
        else:
            high = middle
    return low


@jit_inline
def _emit(tick, sign, entry, keys, width, state, out, out_tick, out_sign):
    k = state[OUT]
    for c in range(width):
        out[c, k] = keys[entry * width + c]
    out_tick[k] = tick
    out_sign[k] = sign
    state[OUT] = k + 1


@jit_flat
def take(
    tick, sign, rows, width, table, mask, keys, counts, free, meta, order, state, by, columns, descending, offset, limit, texts,
    spans, out, out_tick, out_sign,
):  # fmt: skip
    """Rows (width, n) come and go; what enters and leaves the slice goes out, two rows at most for each. False: a row was never
    there.

    Within a tick a row may enter and leave again. Where a row comes, what stood at the slice's end leaves, and one row enters:
    itself, or the one that it pushes over the slice's beginning. Where one goes, it is the other way round.
    """
    for row in range(len(tick)):
        hashed = hash_row(rows, row, width)
        entry = find(table, mask, keys, width, rows, row, hashed)
        length = state[LENGTH]
        if entry < 0:
            if sign[row] < 0:
                return False
            entry = add(table, mask, keys, width, rows, row, hashed, counts, free, meta)
        first, behind = np.int64(0), length
        if len(by) > 0:
            first = _run_edge(order, length, keys, entry, width, by, 0)
            behind = _run_edge(order, length, keys, entry, width, by, 1)
        end = first + offset + limit
        if sign[row] > 0:
            if counts[entry] == 0:
                meta[ZERO] -= 1
            counts[entry] += 1
            at = _place(order, length, keys, entry, width, by, columns, descending, texts, spans)
            for i in range(length, at, -1):
                order[i] = order[i - 1]
            order[at] = entry
            state[LENGTH] = length + 1
            moved = max(at, first + offset)
            if moved < end and moved <= behind:
                _emit(tick[row], 1, order[moved], keys, width, state, out, out_tick, out_sign)
                if end <= behind:
                    _emit(tick[row], -1, order[end], keys, width, state, out, out_tick, out_sign)
        else:
            if counts[entry] == 0:
                return False
            counts[entry] -= 1
            if counts[entry] == 0:
                meta[ZERO] += 1
            at = _place(order, length, keys, entry, width, by, columns, descending, texts, spans)
            moved = max(at, first + offset)
            if moved < end and moved < behind:
                _emit(tick[row], -1, order[moved], keys, width, state, out, out_tick, out_sign)
                if end < behind:
                    _emit(tick[row], 1, order[end], keys, width, state, out, out_tick, out_sign)
            for i in range(at, length - 1):
                order[i] = order[i + 1]
            state[LENGTH] = length - 1
    return True
