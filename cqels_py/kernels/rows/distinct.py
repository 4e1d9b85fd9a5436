"""Duplicate elimination (Algorithm 7), bag difference within a tick, and the bag of RSTREAM."""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit, jit_flat, jit_inline
from cqels_py.kernels.structures.hash_table import FREE, USED, ZERO, hash_row, prefetch_lookup, rebuild
from cqels_py.kernels.structures.hashing import combine
from cqels_py.kernels.structures.key_index import add_key, count_entry, find_key, has_room, open_index

ROOM_A_ROW, ROOM = 5, 16
"""Scratch of `changes`: ROOM_A_ROW numbers per row plus ROOM. A link for each row, then a hash table."""
NOT_THERE, KEYS_FULL = -1, -2
"""Why there is no result: a row was retracted that was not there; the index has no room for so many new rows, and is as
it was."""
_GONE, _FEW = -2, 64


@jit_flat
def distinct(tick, sign, columns, index, hashes, out_tick, out_sign, out):
    """Rows whose key appears (counter 0 to 1) or vanishes (1 to 0). Returns how many; or NOT_THERE, KEYS_FULL.

    `index`: the address of a KeyTable; `hashes`: room for one number per row. Writes ticks, signs and columns (width, n)
    of these rows, and their numbers over `hashes`.
    """
    width, key_index = columns.shape[0], open_index(index)
    if not has_room(key_index, width, len(sign)):
        return np.int64(KEYS_FULL)
    counts, mask = key_index.counts, np.int64(len(key_index.table) - 1)
    rows, made, zero = np.uint64(len(sign)), np.uint64(0), np.int64(0)
    for row in range(rows):
        hashes[row] = hash_row(columns, row, width)
    for row in range(rows):
        prefetch_lookup(row, hashes, key_index.table, mask, key_index.keys, width, counts)
        hashed, delta = hashes[row], np.int64(sign[row])
        entry = find_key(key_index, width, columns, row, hashed)
        if entry < 0 and delta > 0:
            entry = add_key(key_index, width, columns, row, hashed)
        before = counts[entry] if entry >= 0 else np.int64(0)
        after = before + delta
        if after < 0:
            return np.int64(NOT_THERE)
        counts[entry] = after
        zero += np.int64(after == 0) - np.int64(before == 0)
        # Written unconditionally, and overwritten if the key neither appears nor vanishes: that is unpredictable.
        hashes[made] = np.int64(row)
        made += np.uint64((before == 0) | (after == 0))
    key_index.meta[ZERO] += zero
    for i in range(made):
        row = np.uint64(hashes[i])
        out_tick[i] = tick[row]
        out_sign[i] = sign[row]
    for c in range(width):
        for i in range(made):
            out[c, i] = columns[c, hashes[i]]
    return np.int64(made)


@jit_inline
def _count_row(row, sign, columns, key_index):
    width = columns.shape[0]
    hashed = hash_row(columns, row, width)
    entry = find_key(key_index, width, columns, row, hashed)
    if entry < 0:
        entry = add_key(key_index, width, columns, row, hashed)
    count_entry(key_index, entry, np.int64(sign[row]))


@jit_flat
def count_rows(sign, columns, first, last, index):
    """Update a bag, of which `index` is the address, with rows first to last. False: there is no room for so many new
    rows, and nothing has changed."""
    key_index = open_index(index)
    if not has_room(key_index, columns.shape[0], last - first):
        return False
    for row in range(first, last):
        _count_row(row, sign, columns, key_index)
    return True


@jit_inline
def _reuse_entries(index, width):
    """Release the entries with a zero counter once they outnumber the others. So a report reads few more entries than
    twice the rows, as long as these do not become fewer."""
    rows = index.meta[USED] - index.meta[FREE] - index.meta[ZERO]
    if index.meta[FREE] == 0 and index.meta[ZERO] > rows + _FEW:
        rebuild(index.table, index.keys, width, index.counts, index.free, index.meta)


@jit_flat
def report_bag(tick, last, row, starts, sign, columns, index, out_tick, out):
    """At each of the ticks `tick` to `last`: update the bag, of which `index` is the address, and write all its rows,
    each as often as it counts.

    A tick's changes are the rows starts[tick] to starts[tick + 1]; those before `row` have been processed. Stops where
    the output is full -> (next tick, next row, rows written, rows of the next tick); or, with KEYS_FULL as the last
    number, where the bag has no room for the next tick's rows.
    """
    key_index, width = open_index(index), columns.shape[0]
    keys, counts, meta = key_index.keys, key_index.counts, key_index.meta
    at, total = np.int64(0), np.int64(0)
    while tick < last:
        if not has_room(key_index, width, starts[tick + 1] - row):
            return tick, row, at, np.int64(KEYS_FULL)
        _reuse_entries(key_index, width)
        while row < starts[tick + 1]:
            _count_row(row, sign, columns, key_index)
            row += 1
        total = np.int64(0)
        for entry in range(meta[USED]):
            total += max(counts[entry], 0)
        if at + total > len(out_tick):
            break
        for entry in range(meta[USED]):
            for _ in range(counts[entry]):
                out_tick[at] = tick
                for c in range(width):
                    out[c, at] = keys[entry * width + c]
                at += 1
        tick += 1
    return tick, row, at, total


@jit_flat
def _cancel(tick, sign, columns, room):
    """Cancel + and - of equal rows within their tick: room[row] is _GONE for those that cancel."""
    rows = len(tick)
    width = columns.shape[0]
    first = 0
    while first < rows:
        last = first
        mixed = False
        while last < rows and tick[last] == tick[first]:
            if sign[last] != sign[first]:
                mixed = True
            last += 1
        if mixed:
            size = ROOM
            while size < 2 * (last - first):
                size *= 2
            for slot in range(rows, rows + size):
                room[slot] = 0
            mask = np.int64(size - 1)
            for row in range(first, last):
                hashed = np.int64(7)
                for c in range(width):
                    hashed = combine(hashed, columns[c, row])
                slot = rows + (hashed & mask)
                # A slot refers to the newest row of its hash, and a row's own element to the next older one.
                at = room[slot] - 1
                before = np.int64(-1)
                while at >= 0:
                    same = sign[at] != sign[row]
                    c = 0
                    while same and c < width:
                        same = columns[c, at] == columns[c, row]
                        c += 1
                    if same:
                        break
                    before = at
                    at = room[at]
                if at >= 0:
                    if before < 0:
                        room[slot] = room[at] + 1
                    else:
                        room[before] = room[at]
                    room[row] = _GONE
                    room[at] = _GONE
                else:
                    room[row] = room[slot] - 1
                    room[slot] = row + 1
        else:
            for row in range(first, last):
                room[row] = -1
        first = last


@jit
def cancel(tick, sign, columns):
    """Bag difference within each tick: the rows (positions in order) that remain when + and - of equal rows cancel."""
    room = np.empty(ROOM_A_ROW * len(tick) + ROOM, np.int64)
    _cancel(tick, sign, columns, room)
    return np.flatnonzero(room[: len(tick)] != _GONE)


@jit_flat
def changes(tick, sign, columns, instants, insertions, deletions, room, out_tick, out_sign, out):
    """The rows that `cancel` keeps, of the requested signs; returns how many. `room`: see ROOM.

    Writes their ticks and signs, and to `out` (1 + width, n) the times of their ticks, `instants`[tick], above their
    columns. Within a tick retractions come first.
    """
    _cancel(tick, sign, columns, room)
    made, first, rows = 0, 0, len(tick)
    while first < rows:
        last = first
        for sought, asked in ((-1, deletions), (1, insertions)):
            last = first
            while last < rows and tick[last] == tick[first]:
                if asked and sign[last] == sought and room[last] != _GONE:
                    out_tick[made] = tick[last]
                    out_sign[made] = sign[last]
                    out[0, made] = instants[tick[last]]
                    for c in range(len(columns)):
                        out[c + 1, made] = columns[c, last]
                    made += 1
                last += 1
        first = last
    return made
