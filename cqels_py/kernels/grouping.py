"""The kernels of GROUP BY: which group each row belongs to, rows into their groups, and the rows of the answer that change.

A lookup depends on nothing but the index, so that many are under way at once; what comes after knows its groups in time to ask
for their memory. In the same way averages are found for many changes at once: at the end of each tick the changed groups are noted
with their sums, and when there are enough notes, or no more rows, the averages are found and the rows delivered.

Notes: `notes` (3, size) the group, its tick, and whether it has mappings. `fresh`, `scales`, `divisors`, `quotients` (aggregates *
size, by aggregate): the new value; of an average the sum, its scale, by how much it is to be divided, 0 where it is known, and
what comes of it. When the averages are found `quotients` holds the values delivered before.
"""

from __future__ import annotations

import numpy as np

from cqels_py.dictionary.layout import TAG_LITERAL, TAG_OVERFLOW
from cqels_py.kernels.aggregate import (
    AS_BEFORE,
    AVG,
    CLEAN,
    CONCAT,
    COUNT,
    COUNT_ALL,
    CURSOR_FIELDS,
    DONE,
    HEAP_FULL,
    JOINED_FULL,
    LO,
    MAX,
    MIN,
    NOT_THERE,
    OUT,
    OVERFLOW,
    ROW,
    SCALE,
    SUM,
    TICK,
    TOUCHED,
    N,
    _take_number,
    _take_odd,
    any_total,
    forget,
    is_short,
    joined_room,
    long_average,
    value_of,
)
from cqels_py.kernels.decimals import average_ids
from cqels_py.kernels.heaps import bag_put, bag_room, make_room
from cqels_py.kernels.jit import jit_flat, jit_inline
from cqels_py.kernels.key_table import FREE, USED, ZERO, add, find, hash_row
from cqels_py.kernels.prefetch import prefetch
from cqels_py.kernels.sorted_runs import run_put
from cqels_py.kernels.staircase import stairs_put, stairs_room

# cursor, after the fields of kernels/aggregate.py
NOTED = CURSOR_FIELDS
FIELDS = CURSOR_FIELDS + 1

_AHEAD, _LINE = np.uint64(8), 7
_PROVISIONAL_INDEX = np.int64((1 << 60) - 1)
_N, _LO, _SCALE = np.array([N, LO, SCALE], np.uint64)

_TABLE_AHEAD, _KEY_AHEAD = 32, 16
_ONE, _NOTHING = np.uint64(1), np.uint64(0)
_SHIFT, _LOWER = np.uint64(32), np.uint64((1 << 32) - 1)


@jit_flat
def locate(tick, sign, columns, first, width, table, keys, counts, free, meta, hashes, groups):
    """The entries of `columns[:width]` for rows from `first` on, in `groups`; missing ones are added, with a counter of zero.

    Returns the row before which this is done: all of them, or the start of the tick in which the index became full. Negative:
    -1 - row, where a row is withdrawn whose key is not there. `hashes`: room for one number a row.
    """
    rows = len(tick)
    mask = np.int64(len(table) - 1)
    room = min(len(counts), len(table) >> 1) - meta[USED] + meta[FREE]
    places = np.uint64(mask)
    for row in range(first, rows):
        hashes[row] = hash_row(columns, row, width)
    for row in range(first, rows):
        if row + _TABLE_AHEAD < rows:
            prefetch(table, np.uint64(hashes[row + _TABLE_AHEAD]) & places)
            word = np.uint64(table[np.uint64(hashes[row + _KEY_AHEAD]) & places])
            prefetch(keys, ((word & _LOWER) - _ONE) * np.uint64(width))
        hashed = hashes[row]
        if width == 1:
            # Most are found at once, or at the next place: a jump between the two could not be foreseen.
            place = np.uint64(hashed) & places
            word, second = np.uint64(table[place]), np.uint64(table[(place + _ONE) & places])
            upper = np.uint64(hashed) >> _SHIFT
            word = word if (word >> _SHIFT) == upper else second
            there = (word & _LOWER) - _ONE
            if (word >> _SHIFT) == upper and word != _NOTHING and keys[there] == columns[0, row]:
                groups[row] = np.int64(there)
                continue
        entry = find(table, mask, keys, width, columns, row, hashed)
        if entry < 0:
            if sign[row] < 0:
                return np.int64(-1 - row)
            if room == 0:
                while row > first and tick[row - 1] == tick[row]:
                    row -= 1
                return np.int64(row)
            room -= 1
            entry = add(table, mask, keys, width, columns, row, hashed, counts, free, meta)
        groups[row] = entry
    return np.int64(rows)


@jit_inline
def _room_in_bags(row, sign, columns, arguments, functions, in_order, places, words, base, heap, heap_meta):
    """Room for a row's arguments in what keeps them; False if the arena has none."""
    for a in range(len(functions)):
        if functions[a] >= MIN and columns[arguments[a], row] != 0:
            if functions[a] < CONCAT:
                if in_order:
                    if not stairs_room(words, base + places[a], sign, heap, heap_meta):
                        return False
                elif not bag_room(words, base + places[a], sign, heap, heap_meta):
                    return False
            elif sign > 0 and not make_room(words, base + places[a], heap, heap_meta):
                return False
    return True


@jit_flat
def _repeats(aggregate, group, term, step, scratch, table, keys, counts, free, meta):
    """Is this term of an aggregate with DISTINCT one more, or one of several, and so of no matter to its group?"""
    scratch[0, 0] = aggregate
    scratch[1, 0] = group
    scratch[2, 0] = term
    mask = np.int64(len(table) - 1)
    hashed = hash_row(scratch, 0, 3)
    entry = find(table, mask, keys, 3, scratch, 0, hashed)
    if entry < 0:
        entry = add(table, mask, keys, 3, scratch, 0, hashed, counts, free, meta)
    before = counts[entry]
    counts[entry] += step
    if before == 0:
        meta[ZERO] -= 1
    if counts[entry] == 0:
        meta[ZERO] += 1
    return (before == 0) == (counts[entry] == 0)


@jit_flat
def _find_averages(functions, noted, size, fresh, scales, divisors, quotients, cursor, late, late_real):
    for a in range(len(functions)):
        if functions[a] == AVG:
            start, end = a * size, a * size + noted
            average_ids(fresh, scales, divisors, start, end, quotients)
            for i in range(start, end):
                if divisors[i] > 0:
                    found = quotients[i]
                    if found == 0:
                        total = fresh[i]
                        found = long_average(
                            total >> 63, np.uint64(total), scales[i], divisors[i], cursor, late, late_real
                        )
                    fresh[i] = found


@jit_flat
def _deliver(
    noted, notes, size, aggregates, fresh, previous, n_keys, keys, last, shown, cursor, out_tick, out_sign, out
):  # fmt: skip
    """The noted groups' rows are now those of their values, or none: what changes goes out, column by column."""
    for a in range(aggregates):
        for i in range(noted):
            here = np.uint64(a * size + i)
            at = np.uint64(notes[0, i] * aggregates + a)
            before = last[at]
            previous[here] = before
            if notes[2, i] != 0:
                value = fresh[here]
                value = before if value == AS_BEFORE else value
                fresh[here] = value
                last[at] = value
                notes[2, i] |= np.int64(value != before) << 1
    width = n_keys + aggregates
    first = np.uint64(cursor[OUT])
    end = first
    for i in range(noted):
        group, state = np.uint64(notes[0, i]), notes[2, i]
        exists, differs, before = state & 1, state >> 1, np.int64(shown[group])
        shown[group] = exists != 0
        # Both are written, and stay if the next one is written behind them.
        out_tick[end] = notes[1, i]
        out_sign[end] = -1
        if width > 0:
            out[0, end] = i
        end += np.uint64(before & (differs | (1 - exists)))
        out_tick[end] = notes[1, i]
        out_sign[end] = 1
        if width > 0:
            out[0, end] = i
        end += np.uint64(exists & (differs | (1 - before)))
    # The first column, which holds whose rows these are, comes last.
    for a in range(aggregates - 1, -1, -1):
        column, here = np.uint64(n_keys + a), np.uint64(a * size)
        for k in range(first, end):
            i = np.uint64(out[0, k])
            out[column, k] = previous[here + i] if out_sign[k] < 0 else fresh[here + i]
    for c in range(n_keys - 1, -1, -1):
        for k in range(first, end):
            group = notes[0, np.uint64(out[0, k])]
            out[np.uint64(c), k] = keys[np.uint64(group * n_keys + c)]
    cursor[OUT] = np.int64(end)


@jit_flat
def take(
    tick, sign, groups, end, columns, values, arguments, cursor, n_keys, keys, counts, meta, functions, in_order, places, words,
    group_words, apart, heap, heap_meta, texts, spans, distinct, d_table, d_keys, d_counts, d_free, d_meta, d_scratch, odd_kind,
    odd_words, odd_real, last, shown, touched, in_touched, notes, fresh, scales, divisors, quotients, out_tick, out_sign, out,
    late, late_real, joined,
):  # fmt: skip
    """Rows from cursor[ROW] to `end` (ticks are whole) into their groups; rows of the answer that change at each tick go out.

    `arguments` (aggregates): the columns that aggregates take, in `columns` as the terms they are, in `values` with tag 15 for
    what `odd_*` tells the numbers of. `distinct` (aggregates): a term counts once; the d_* arrays are a one-way index
    (aggregate, group, term) -> counter. `in_order`: rows leave in the order in which they came. Resumable, whatever it stopped for.
    """
    aggregates = len(functions)
    size = np.int64(notes.shape[1])
    bags = False
    for a in range(aggregates):
        bags = bags or functions[a] >= MIN
    row = np.uint64(cursor[ROW])
    stop = np.uint64(end)
    now = cursor[TICK]
    noted = cursor[NOTED]
    while True:
        if row == stop or tick[row] != now:
            cursor[ROW] = np.int64(row)
            if bags and not joined_room(cursor, functions, places, words, group_words, touched, joined):
                cursor[NOTED] = noted
                return JOINED_FULL
            next_touched = np.int64(0)
            while True:
                until = min(cursor[TOUCHED], next_touched + size - noted)
                while next_touched < until:
                    group = np.uint64(touched[next_touched])
                    next_touched += 1
                    in_touched[group] = 0
                    base = np.int64(group) * group_words
                    there = counts[group]
                    exists = there > 0 or n_keys == 0
                    notes[0, noted] = np.int64(group)
                    notes[1, noted] = now
                    notes[2, noted] = np.int64(exists)
                    if exists:
                        for a in range(aggregates):
                            at = base + places[a]
                            here = np.uint64(a * size + noted)
                            of_group = (np.int64(group) * aggregates + a) * 2
                            if functions[a] == AVG:
                                if is_short(words, at):
                                    place = np.uint64(at)
                                    fresh[here] = words[place + _LO]
                                    scales[here] = words[place + _SCALE]
                                    divisors[here] = words[place + _N]
                                else:
                                    fresh[here] = any_total(words, at, apart, of_group, True, cursor, late, late_real)
                                    divisors[here] = 0
                                continue
                            fresh[here] = value_of(
                                a, functions[a], there, words, at, apart, of_group, heap, cursor, joined, late, late_real,
                            )  # fmt: skip
                    if there == 0:
                        forget(functions, places, words, base)
                    noted += 1
                if noted == size or row == stop:
                    _find_averages(functions, noted, size, fresh, scales, divisors, quotients, cursor, late, late_real)
                    _deliver(
                        noted, notes, size, aggregates, fresh, quotients, n_keys, keys, last, shown, cursor, out_tick, out_sign,
                        out,
                    )  # fmt: skip
                    noted = np.int64(0)
                if next_touched == cursor[TOUCHED]:
                    break
            cursor[TOUCHED] = 0
            if row == stop:
                cursor[NOTED] = 0
                return DONE
            now = np.int64(tick[row])
            cursor[TICK] = now
        if row + _AHEAD < stop:
            ahead = groups[row + _AHEAD]
            prefetch(counts, ahead)
            prefetch(words, ahead * group_words)
            prefetch(words, ahead * group_words + _LINE)
        step = np.int64(sign[row])
        group = np.uint64(groups[row])
        base = np.int64(group) * group_words
        if bags:
            if not _room_in_bags(
                row, step, columns, arguments, functions, in_order, places, words, base, heap, heap_meta
            ):
                cursor[ROW] = np.int64(row)
                cursor[NOTED] = noted
                return HEAP_FULL
        if not in_touched[group]:
            in_touched[group] = True
            touched[cursor[TOUCHED]] = np.int64(group)
            cursor[TOUCHED] += 1
        there = counts[group]
        counts[group] = there + step
        if there == 0:
            meta[ZERO] -= 1
        if there + step == 0:
            meta[ZERO] += 1
        for a in range(aggregates):
            function = functions[a]
            if function == COUNT_ALL:
                continue
            column = np.uint64(arguments[a])
            identifier = values[column, row]
            if distinct[a] and identifier != 0:
                term = columns[column, row]
                if _repeats(a, np.int64(group), term, step, d_scratch, d_table, d_keys, d_counts, d_free, d_meta):
                    continue
            at = base + places[a]
            if function <= COUNT:
                if identifier != 0:
                    words[at] += step
            elif function <= AVG:
                if (identifier >> 60) == -1:
                    ok = _take_odd(
                        words, at, apart, (np.int64(group) * aggregates + a) * 2, identifier & _PROVISIONAL_INDEX, step,
                        odd_kind, odd_words, odd_real,
                    )  # fmt: skip
                else:
                    ok = _take_number(words, at, identifier, step)
                if not ok:
                    return OVERFLOW
            elif identifier != 0:
                term = columns[column, row]
                if function < CONCAT and in_order:
                    stairs_put(words, at, step, term, heap, function == MAX, texts, spans)
                elif function < CONCAT:
                    bag_put(words, at, step, term, heap, function == MAX, texts, spans)
                elif run_put(words, at, step, term, heap, texts, spans):
                    words[at + CLEAN] = 0
                else:
                    return NOT_THERE
        row += _ONE


@jit_flat
def holds_hashed(values, arguments, functions):
    """Is any argument of SUM or AVG a literal that only the dictionary knows?"""
    for a in range(len(functions)):
        if functions[a] == SUM or functions[a] == AVG:
            found = False
            for row in range(values.shape[1]):
                tag = values[arguments[a], row] >> 60
                found |= (tag == TAG_LITERAL) | (tag == TAG_OVERFLOW)
            if found:
                return True
    return False
