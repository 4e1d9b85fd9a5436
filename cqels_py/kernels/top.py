"""ORDER BY with LIMIT and OFFSET: the rows in order, and what enters and leaves the slice at each tick.

`order` holds the entries of a one-way index over whole rows, sorted, an entry as often as its row is there. `slice_rows` are the
rows of the slice as it was last delivered, in order.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.jit import jit_flat, jit_inline
from cqels_py.kernels.key_table import ZERO, add, find, hash_row
from cqels_py.kernels.order import order_terms

LENGTH, SLICE_LENGTH, OUT = range(3)
STATE_FIELDS = 3


@jit_flat
def _compare_rows(a, a_at, b, b_at, width, columns, descending, texts, spans):
    """Rows at a[a_at:] and b[b_at:] by the order's columns, then by all columns."""
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
def _place(order, length, keys, entry, width, columns, descending, texts, spans):
    """The first position whose row is not before the entry's."""
    low = np.int64(0)
    high = length
    while low < high:
        middle = (low + high) >> 1
        if (
            _compare_rows(keys, order[middle] * width, keys, entry * width, width, columns, descending, texts, spans)
            < 0
        ):
            low = middle + 1
        else:
            high = middle
    return low


@jit_flat
def _deliver(
    tick,
    state,
    order,
    keys,
    width,
    offset,
    limit,
    slice_rows,
    columns,
    descending,
    texts,
    spans,
    out,
    out_tick,
    out_sign,
):
    """Both slices are in order: what stands in only one of them has entered or left."""
    first = min(np.int64(offset), state[LENGTH])
    last = min(first + limit, state[LENGTH])
    i = np.int64(0)
    j = first
    k = state[OUT]
    while i < state[SLICE_LENGTH] or j < last:
        if i == state[SLICE_LENGTH]:
            order_of = 1
        elif j == last:
            order_of = -1
        else:
            order_of = _compare_rows(
                slice_rows, i * width, keys, order[j] * width, width, columns, descending, texts, spans
            )
        if order_of == 0:
            i += 1
            j += 1
            continue
        for c in range(width):
            out[c, k] = slice_rows[i * width + c] if order_of < 0 else keys[order[j] * width + c]
        out_tick[k] = tick
        out_sign[k] = -1 if order_of < 0 else 1
        k += 1
        if order_of < 0:
            i += 1
        else:
            j += 1
    for j in range(first, last):
        for c in range(width):
            slice_rows[(j - first) * width + c] = keys[order[j] * width + c]
    state[SLICE_LENGTH] = last - first
    state[OUT] = k


@jit_flat
def take(
    tick, sign, rows, width, table, mask, keys, counts, free, meta, order, state, columns, descending, offset, limit,
    slice_rows, texts, spans, out, out_tick, out_sign,
):  # fmt: skip
    """Rows (width, n) come and go; changes of the slice go out at the end of each tick. False: a row was never there."""
    for row in range(len(tick)):
        hashed = hash_row(rows, row, width)
        entry = find(table, mask, keys, width, rows, row, hashed)
        if sign[row] > 0:
            if entry < 0:
                entry = add(table, mask, keys, width, rows, row, hashed, counts, free, meta)
            if counts[entry] == 0:
                meta[ZERO] -= 1
            counts[entry] += 1
            at = _place(order, state[LENGTH], keys, entry, width, columns, descending, texts, spans)
            for i in range(state[LENGTH], at, -1):
                order[i] = order[i - 1]
            order[at] = entry
            state[LENGTH] += 1
        else:
            if entry < 0 or counts[entry] == 0:
                return False
            counts[entry] -= 1
            if counts[entry] == 0:
                meta[ZERO] += 1
            at = _place(order, state[LENGTH], keys, entry, width, columns, descending, texts, spans)
            for i in range(at, state[LENGTH] - 1):
                order[i] = order[i + 1]
            state[LENGTH] -= 1
        if row + 1 == len(tick) or tick[row + 1] != tick[row]:
            _deliver(
                tick[row], state, order, keys, width, offset, limit, slice_rows, columns, descending, texts, spans, out,
                out_tick, out_sign,
            )  # fmt: skip
    return True
