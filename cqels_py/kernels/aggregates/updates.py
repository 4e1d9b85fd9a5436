"""The passes of a GROUP BY that apply an aggregate's column to the groups' accumulators, and write its values to the
notes.

The accumulators are those of accumulators.py. Rows, notes and values (`fresh`; for averages `scales` and `divisors`
too) are those of group_by.py. A note describes its group at the end of a tick: values that are cheap are written with
every row, over those of earlier rows; others are computed at the note's last row only. For a join a row of another
input than the argument's has the sign 0, and each member counts once for each combination of the other inputs' rows.

A pass for the aggregate with the number `a` gets the NamedTuples of group_records.py: `plan`, `groups`, `chunk`, the rows
`given`, and others where it needs them. Each pass continues at cursor[AT], over the cursor[STOP] - cursor[FIRST] rows of
the chunk, and returns why it stopped.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.aggregates.accumulators import (
    AS_BEFORE,
    AVG,
    CLEAN,
    CURSOR_FIELDS,
    DECIMALS,
    DONE,
    EXTREME_WORDS,
    HEAP_FULL,
    HI,
    INEXACT,
    JOINED,
    JOINED_FULL,
    LO,
    MAX,
    NOT_THERE,
    OVERFLOW,
    SCALE,
    SUM,
    SUM_WORDS,
    TOO_MANY,
    N,
    _joined_text,
    _take_hashed,
    _take_number,
    count_id,
    is_short,
    settle,
    take_float,
    total_of,
)
from cqels_py.kernels.aggregates.exact_float_sums import REAL_WORDS, prefetch_real
from cqels_py.kernels.aggregates.weighted_sums import add_difference, add_times, are_too_many, total_of_times
from cqels_py.kernels.compiler.jit import jit_flat, jit_inline
from cqels_py.kernels.primitives.prefetch import prefetch
from cqels_py.kernels.primitives.select import select_branchless
from cqels_py.kernels.structures.hash_table import hash_row
from cqels_py.kernels.structures.heaps import bag_first, bag_replace, make_room, prefetch_bag, replace_room
from cqels_py.kernels.structures.key_index import add_key, count_entry, find_key, has_room
from cqels_py.kernels.structures.monotonic_queue import extreme_put, extreme_room
from cqels_py.kernels.structures.sorted_runs import run_put
from cqels_py.kernels.values.decimals import LIMIT, scaled_id
from cqels_py.terms.layout import TAG_DECIMAL, TAG_FLOAT, TAG_INTEGER

# Cursor, after the fields of accumulators.py: the chunk's first row, the row after its last, the current row, the
# number of notes, the next pass; and the number of notes over all time, which is kept from delta to delta.
FIRST, STOP, AT, NOTED, PASS, SEEN = range(CURSOR_FIELDS, CURSOR_FIELDS + 6)
# rows
HASH, GROUP, NOTE, SIGN = np.arange(4, dtype=np.uint64)
# notes
NOTE_GROUP, NOTE_TICK, THERE, LAST_ROW, TAKEN, GIVEN, OF_INPUT = np.arange(7, dtype=np.uint64)

_AHEAD, _NEAR = np.uint64(8), np.uint64(4)
_ONE, _TWO = np.uint64(1), np.uint64(2)
_HASHED_INDEX = np.int64((1 << 60) - 1)
_N, _INEXACT, _HI, _LO, _SCALE, _DECIMALS = np.array([N, INEXACT, HI, LO, SCALE, DECIMALS], np.uint64)
_RUN_SIZE = 2
SHORT_SUM = -1
"""Instead of a divisor."""


@jit_inline
def prefetch_accumulator(i, end, rows, words, group_words, place):
    """Prefetch an accumulator that a later row needs."""
    if i + _AHEAD < end:
        prefetch(words, rows[GROUP, i + _AHEAD] * group_words + place)


@jit_inline
def is_last(notes, note, i, always):
    """Is row i the last of its note, and does its group have a value?"""
    return notes[LAST_ROW, note] == np.int64(i) and (notes[THERE, note] > 0 or always)


@jit_inline
def partners(notes, note, port):
    """The number of combinations of the other inputs' rows that a row of an input is joined with."""
    found = np.int64(1)
    for p in range(np.uint64(len(notes)) - OF_INPUT):
        if p != np.uint64(port):
            found *= notes[OF_INPUT + p, note]
    return found


@jit_inline
def count_sums(functions, end):
    """The number of sums and averages among the first aggregates."""
    found = np.int64(0)
    for a in range(end):
        found += np.int64((functions[a] == SUM) | (functions[a] == AVG))
    return found


@jit_inline
def _add_short(words, at, total, scale, decimal, identifier, delta):
    """Add or subtract an integer or decimal with the scale of a 64-bit sum. Returns the number of members and the new
    sum."""
    total += ((identifier << 8) >> 8) * delta
    count = words[at + _N] + delta
    words[at + _LO] = total
    words[at + _HI] = total >> 63
    words[at + _N] = count
    # A sum without members has no scale.
    words[at + _SCALE] = 0 if count == 0 else scale
    if decimal:
        words[at + _DECIMALS] += delta
    return count, total


@jit_flat
def only_new(a, given, plan, chunk, index):
    """For an aggregate with DISTINCT, set the sign to 0 for rows that are neither the first insertion nor the last
    retraction of their term.

    `index`: (aggregate, group, term) -> counter. False, and nothing is changed, if it has no room for all rows.
    """
    column, cursor, rows, key = np.uint64(plan.arguments[a]), chunk.cursor, chunk.rows, chunk.scratch
    first = np.uint64(cursor[FIRST])
    if not has_room(index, 3, cursor[STOP] - cursor[FIRST]):
        return False
    for i in range(np.uint64(cursor[STOP]) - first):
        if given.values[column, first + i] != 0:
            key[0, 0] = a
            key[1, 0] = rows[GROUP, i]
            key[2, 0] = given.columns[column, first + i]
            hashed = hash_row(key, 0, 3)
            entry = find_key(index, 3, key, 0, hashed)
            if entry < 0:
                entry = add_key(index, 3, key, 0, hashed)
            before = count_entry(index, entry, rows[SIGN, i])
            if (before == 0) == (before + rows[SIGN, i] == 0):
                rows[SIGN, i] = 0
    return True


@jit_flat
def take_counts(a, given, plan, groups, chunk, join):
    """COUNT of bound arguments."""
    column, place, port, shift = np.uint64(plan.arguments[a]), plan.places[a], plan.ports[a], np.uint64(a * chunk.size)
    words, group_words, values = groups.words, groups.size, given.values
    cursor, rows, notes, fresh = chunk.cursor, chunk.rows, chunk.notes, chunk.fresh
    first = np.uint64(cursor[FIRST])
    end = np.uint64(cursor[STOP]) - first
    for i in range(end):
        prefetch_accumulator(i, end, rows, words, group_words, place)
        at = np.uint64(rows[GROUP, i] * group_words + place)
        count = words[at] + (rows[SIGN, i] if values[column, first + i] != 0 else np.int64(0))
        words[at] = count
        note = np.uint64(rows[NOTE, i])
        if join is None:
            fresh[shift + note] = scaled_id(np.int64(TAG_INTEGER), count, np.int64(0))
        elif is_last(notes, note, i, False):
            fresh[shift + note] = count_id(
                count * partners(notes, note, port), cursor, chunk.deferred, chunk.deferred_real
            )
    return DONE


@jit_flat
def take_sums(a, given, plan, groups, chunk, join, numbers):
    """SUM or AVG. For an average of exact numbers the note gets sum, scale and count; other values are computed here."""
    column, place, port, shift = np.uint64(plan.arguments[a]), plan.places[a], plan.ports[a], np.uint64(a * chunk.size)
    average, always, number = plan.functions[a] == AVG, plan.n_keys == 0, count_sums(plan.functions, a)
    words, group_words, apart, sums = groups.words, groups.size, groups.apart, groups.sums
    cursor, rows, notes, values = chunk.cursor, chunk.rows, chunk.notes, given.values
    fresh, scales, divisors = chunk.fresh, chunk.scales, chunk.divisors
    first = np.uint64(cursor[FIRST])
    end = np.uint64(cursor[STOP]) - first
    for i in range(end):
        prefetch_accumulator(i, end, rows, words, group_words, place)
        identifier, sign, group = values[column, first + i], rows[SIGN, i], rows[GROUP, i]
        at = np.uint64(group * group_words + place)
        note = np.uint64(rows[NOTE, i])
        here = shift + note
        tag = (identifier >> 60) & 15
        scale = np.int64(0) if tag == TAG_INTEGER else (identifier >> 56) & 15
        total = words[at + _LO]
        # Where the sign is 0 the sum stays, but in a join its value may change with the other inputs' rows. Without a branch, as
        # the order of the inputs' rows is unpredictable.
        scale = select_branchless(sign == 0, words[at + _SCALE], scale)
        exact = (sign == 0) | ((scale == words[at + _SCALE]) & ((tag == TAG_INTEGER) | (tag == TAG_DECIMAL)))
        if exact & (words[at + _HI] == total >> 63) & (total > -LIMIT) & (total < LIMIT):
            # The sum stays within 64 bits.
            count, total = _add_short(words, at, total, scale, tag == TAG_DECIMAL, identifier, sign)
            exact = words[at + _INEXACT] == 0
            if average and exact and (count > 0 or not always):
                # The mean of no members is needed only for the group that is always there.
                fresh[here] = total
                scales[here] = scale
                divisors[here] = max(count, np.int64(1))
                continue
            if not average and exact and scale == 0:
                fresh[here] = total
                scales[here] = words[at + _DECIMALS]
                divisors[here] = SHORT_SUM
                continue
        elif sign != 0:
            if len(apart) > 0 and i + _AHEAD < end:
                # Where one number is summed separately, others mostly are too.
                prefetch_real(apart, (rows[GROUP, i + _AHEAD] * sums + number) * REAL_WORDS)
            of_group = (group * sums + number) * REAL_WORDS
            if not _take_any(words, np.int64(at), apart, of_group, identifier, sign, numbers):
                return OVERFLOW
            if words[at + _N] == 0:
                words[at + _SCALE] = 0
        divisors[here] = 0
        if is_last(notes, note, i, always):
            of_group = (group * sums + number) * REAL_WORDS
            if join is None:
                fresh[here] = total_of(
                    words, np.int64(at), apart, of_group, average, cursor, chunk.deferred, chunk.deferred_real
                )
                continue
            status = total_of_times(
                words, np.int64(at), apart, of_group, average, partners(notes, note, port), join, chunk, here
            )
            if status != DONE:
                return status
    return DONE


@jit_inline
def _take_any(words, at, apart, of_group, identifier, sign, numbers):
    """Add or subtract an argument of any kind. False on overflow of 128 bits."""
    tag = (identifier >> 60) & 15
    if tag == 15:
        odd = identifier & _HASHED_INDEX
        return _take_hashed(words, at, apart, of_group, odd, sign, numbers.kind, numbers.words, numbers.real)
    if tag == TAG_FLOAT:
        take_float(words, at, apart, of_group, identifier, sign)
        return True
    return _take_number(words, at, identifier, sign)


@jit_flat
def take_differences(a, given, plan, groups, chunk, wide):
    """SUM or AVG where each row is a difference (weighted_sums.py)."""
    column, place, shift = np.uint64(plan.arguments[a]), plan.places[a], np.uint64(a * chunk.size)
    average, always, number = plan.functions[a] == AVG, plan.n_keys == 0, count_sums(plan.functions, a)
    words, group_words, apart, sums = groups.words, groups.size, groups.apart, groups.sums
    cursor, rows, notes, values = chunk.cursor, chunk.rows, chunk.notes, given.values
    fresh, scales, divisors = chunk.fresh, chunk.scales, chunk.divisors
    first = np.uint64(cursor[FIRST])
    end = np.uint64(cursor[STOP]) - first
    for i in range(end):
        prefetch_accumulator(i, end, rows, words, group_words, place)
        group, note = rows[GROUP, i], np.uint64(rows[NOTE, i])
        at, here, of_group = group * group_words + place, shift + note, (group * sums + number) * REAL_WORDS
        form = values[column + _TWO, first + i]
        if form >= 0:
            ok = add_difference(values[column, first + i], values[column + _ONE, first + i], form, words, at)
        else:
            slot = -1 - form
            ok = add_times(
                words, at, apart, of_group, wide.words, slot * SUM_WORDS, wide.apart, REAL_WORDS * slot, np.int64(1)
            )
            settle(words, at, apart, of_group)
        if not ok:
            return OVERFLOW
        if are_too_many(words[at + N], average):
            return TOO_MANY
        if average and is_short(words, at):
            fresh[here], scales[here], divisors[here] = words[at + LO], words[at + SCALE], words[at + N]
            continue
        if words[at + N] == 0:
            words[at + SCALE] = 0
        divisors[here] = 0
        if is_last(notes, note, i, always):
            fresh[here] = total_of(words, at, apart, of_group, average, cursor, chunk.deferred, chunk.deferred_real)
    return DONE


@jit_flat
def take_extremes(a, given, plan, groups, chunk, terms, numbers):
    """MIN or MAX, with bags or, over FIFO input, monotonic queues.

    If `numbers` is None, a row has the retracted member and, in the next column, the inserted one, 0 for none, and
    there are bags only; else it has one member, and its sign.
    """
    column, place, shift = np.uint64(plan.arguments[a]), plan.places[a], np.uint64(a * chunk.size)
    largest, expires_fifo = plan.functions[a] == MAX, plan.expires_fifo[a] != 0
    words, group_words, heap, heap_meta = groups.words, groups.size, terms.heap, terms.heap_meta
    texts, spans, columns = terms.texts, terms.spans, given.columns
    cursor, rows, fresh = chunk.cursor, chunk.rows, chunk.fresh
    first = np.uint64(cursor[FIRST])
    end = np.uint64(cursor[STOP]) - first
    for i in range(np.uint64(cursor[AT]), end):
        # The words may be in two cache lines; of a sum most rows need only the first.
        prefetch_accumulator(i, end, rows, words, group_words, place)
        prefetch_accumulator(i, end, rows, words, group_words, place + EXTREME_WORDS - 1)
        if i + _NEAR < end:
            prefetch_bag(words, rows[GROUP, i + _NEAR] * group_words + place, heap)
        term, sign, at = columns[column, first + i], rows[SIGN, i], rows[GROUP, i] * group_words + place
        if numbers is not None:
            has_places = term == 0 or extreme_room(expires_fifo, words, at, sign, heap, heap_meta)
        else:
            has_places = replace_room(words, at, term, columns[column + _ONE, first + i], heap, heap_meta)
        if not has_places:
            cursor[AT] = np.int64(i)
            return HEAP_FULL
        if numbers is not None:
            was_there = term == 0 or extreme_put(expires_fifo, words, at, sign, term, heap, largest, texts, spans)
        else:
            inserted = columns[column + _ONE, first + i]
            was_there = bag_replace(words, at, term, inserted, heap, largest, texts, spans)
        if not was_there:
            return NOT_THERE
        fresh[shift + np.uint64(rows[NOTE, i])] = bag_first(words, at, heap)
    return DONE


@jit_flat
def take_texts(a, given, plan, groups, chunk, terms):
    """GROUP_CONCAT: the values of a note are written to `joined` once."""
    column, place, shift = np.uint64(plan.arguments[a]), plan.places[a], np.uint64(a * chunk.size)
    always, words, group_words, heap = plan.n_keys == 0, groups.words, groups.size, terms.heap
    cursor, rows, notes, joined = chunk.cursor, chunk.rows, chunk.notes, chunk.joined
    first = np.uint64(cursor[FIRST])
    for i in range(np.uint64(cursor[AT]), np.uint64(cursor[STOP]) - first):
        term, sign, at = given.columns[column, first + i], rows[SIGN, i], rows[GROUP, i] * group_words + place
        note = np.uint64(rows[NOTE, i])
        last = is_last(notes, note, i, always)
        if last and cursor[JOINED] + words[at + _RUN_SIZE] + 1 > len(joined):
            cursor[AT] = np.int64(i)
            return JOINED_FULL
        if term != 0 and sign != 0:
            if sign > 0 and not make_room(words, at, heap, terms.heap_meta):
                cursor[AT] = np.int64(i)
                return HEAP_FULL
            if not run_put(words, at, sign, term, heap, terms.texts, terms.spans):
                return NOT_THERE
            words[at + CLEAN] = 0
        if last:
            value = np.int64(AS_BEFORE)
            if not words[at + CLEAN]:
                value = _joined_text(words, at, heap, a, cursor, joined, chunk.deferred, chunk.deferred_real)
            chunk.fresh[shift + note] = value
    return DONE
