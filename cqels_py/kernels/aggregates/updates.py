"""The passes of a GROUP BY in which an aggregate takes its column: into the groups' accumulators, and what these come to into notes.

The accumulators are those of kernels/aggregate.py; rows, notes and what an aggregate comes to (`fresh`; for averages `scales` and
`divisors` too) are those of kernels/grouping.py. A note is about its group at the end of a tick: what is known in passing is written
with every row, over what the row before it wrote, and what takes longer is left to the note's last row. Of a join, where `weighted`
is given, a row of another input than the argument's has the sign 0, and each member counts once for each combination of the other
inputs' rows.

Each pass goes on at cursor[AT], of rows that are cursor[STOP] - cursor[FIRST] in number, and returns why it stopped. Rows of which
there is one AVG alone go through all passes at once (`note_short_averages`), until the first whose sum is not short.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.aggregates.accumulators import (
    AS_BEFORE,
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
    NOT_THERE,
    OVERFLOW,
    SCALE,
    STAMP,
    SUM_WORDS,
    TOO_MANY,
    N,
    _joined_text,
    _take_number,
    _take_odd,
    count_id,
    is_short,
    settle,
    take_float,
    total_of,
)
from cqels_py.kernels.aggregates.exact_float_sums import REAL_WORDS, expect_real
from cqels_py.kernels.aggregates.weighted_sums import add_difference, add_times, are_too_many, total_of_times
from cqels_py.kernels.compiler.jit import jit_flat, jit_inline
from cqels_py.kernels.primitives.llvm_hints import kept_apart
from cqels_py.kernels.primitives.prefetch import prefetch
from cqels_py.kernels.structures.hash_table import ZERO, add, find, hash_row
from cqels_py.kernels.structures.heaps import bag_first, bag_replace, expect_bag, make_room, replace_room
from cqels_py.kernels.structures.monotonic_queue import extreme_put, extreme_room
from cqels_py.kernels.structures.sorted_runs import run_put
from cqels_py.kernels.values.decimals import LIMIT, scaled_id
from cqels_py.terms.layout import TAG_DECIMAL, TAG_FLOAT, TAG_INTEGER

# cursor, after the fields of kernels/aggregate.py: the chunk's first row, that after its last, the row at hand, how many notes, how
# many rows need no passes any more, which pass comes next; and the notes of all time, which stay from one delta to the next.
FIRST, STOP, AT, NOTED, THROUGH, PASS, SEEN = range(CURSOR_FIELDS, CURSOR_FIELDS + 7)
# rows
HASH, GROUP, NOTE, SIGN = np.arange(4, dtype=np.uint64)
# notes
NOTE_GROUP, NOTE_TICK, THERE, LAST_ROW, TAKEN, GIVEN, OF_INPUT = np.arange(7, dtype=np.uint64)

_AHEAD, _NEAR = np.uint64(8), np.uint64(4)
_ONE, _TWO = np.uint64(1), np.uint64(2)
_ODD_INDEX = np.int64((1 << 60) - 1)
_N, _INEXACT, _HI, _LO, _SCALE, _DECIMALS, _STAMP = np.array([N, INEXACT, HI, LO, SCALE, DECIMALS, STAMP], np.uint64)
_RUN_SIZE = 2
_FORM, _DIGITS = np.uint64(56), np.uint64(15)
_FIRST_FORM, _FIRST_DECIMAL, _END_OF_FORMS = np.array(
    [TAG_INTEGER, TAG_DECIMAL, TAG_DECIMAL + 1], np.uint64
) << np.uint64(4)
SHORT_SUM = -1
"""Among the divisors."""


@jit_inline
def expect(i, end, rows, words, group_words, place):
    """Have an accumulator come nearer that will be needed some rows later."""
    if i + _AHEAD < end:
        prefetch(words, rows[GROUP, i + _AHEAD] * group_words + place)


@jit_inline
def is_last(notes, note, i, always):
    """Is row i the last of its note, and is there a value to be found?"""
    return notes[LAST_ROW, note] == np.int64(i) and (notes[THERE, note] > 0 or always)


@jit_inline
def partners(notes, note, port):
    """With how many combinations of the other inputs' rows a row of an input is joined."""
    found = np.int64(1)
    for p in range(np.uint64(len(notes)) - OF_INPUT):
        if p != np.uint64(port):
            found *= notes[OF_INPUT + p, note]
    return found


@jit_inline
def _add_short(words, at, total, scale, decimal, identifier, way):
    """An integer or decimal comes or goes, of a `total` of 64 bits with as many fraction digits. Returns how many members there are
    then, and what they come to."""
    total += ((identifier << 8) >> 8) * way
    count = words[at + _N] + way
    words[at + _LO] = total
    words[at + _HI] = total >> 63
    words[at + _N] = count
    # Of no members nothing is left.
    words[at + _SCALE] = 0 if count == 0 else scale
    if decimal:
        words[at + _DECIMALS] += way
    return count, total


@jit_flat
def note_short_averages(
    column, tick, sign, values, cursor, counts, meta, rows, notes, words, group_words, place, fresh, scales, divisors
):  # fmt: skip
    """The notes of kernels/grouping.py, and what `take_sums` does, for rows of a GROUP BY with keys that has nothing but one AVG.

    Up to the first row, if there is one, of which the sum or the argument is none of 64 bits that is exact: cursor[THROUGH].
    """
    kept_apart()
    first, seen, record, place = np.uint64(cursor[FIRST]), cursor[SEEN], np.uint64(group_words), np.uint64(place)
    end = np.uint64(cursor[STOP]) - first
    noted, of_tick, now, through = np.int64(0), np.int64(0), np.int32(-1), end
    for i in range(end):
        if i + _AHEAD < end:
            ahead = rows[GROUP, i + _AHEAD]
            prefetch(counts, ahead)
            prefetch(words, ahead * group_words)
        row, group = first + i, np.uint64(rows[GROUP, i])
        stamped = group * record
        at = stamped + place
        identifier, way = values[column, row], np.int64(sign[row])
        form, total = np.uint64(identifier) >> _FORM, words[at + _LO]
        scale = np.int64(form & _DIGITS)
        unusual = (words[at + _HI] ^ (total >> 63)) | words[at + _INEXACT] | (words[at + _SCALE] ^ scale)
        if unusual != 0 or form < _FIRST_FORM or form >= _END_OF_FORMS or total <= -LIMIT or total >= LIMIT:
            through = i
            break
        of_tick = noted if tick[row] != now else of_tick
        now = np.int32(tick[row])
        before = counts[group]
        after = before + way
        counts[group] = after
        if before == 0 or after == 0:
            meta[ZERO] += np.int64(after == 0) - np.int64(before == 0)
        note = words[stamped + _STAMP] - seen
        new = note < of_tick
        note = noted if new else note
        noted += np.int64(new)
        words[stamped + _STAMP] = note + seen
        here = np.uint64(note)
        notes[NOTE_GROUP, here] = np.int64(group)
        notes[NOTE_TICK, here] = now
        notes[THERE, here] = after
        count, total = _add_short(words, at, total, scale, form >= _FIRST_DECIMAL, identifier, way)
        fresh[here] = total
        scales[here] = scale
        divisors[here] = max(count, np.int64(1))
    cursor[NOTED], cursor[THROUGH] = noted, np.int64(through)


@jit_flat
def only_new(aggregate, column, columns, values, cursor, rows, scratch, table, keys, counts, free, meta):
    """Take the sign from rows that are of no matter to an aggregate with DISTINCT: of terms that are one more, or one of several.

    The arrays from `table` on are a one-way index (aggregate, group, term) -> counter, with room for all rows.
    """
    first = np.uint64(cursor[FIRST])
    mask = np.int64(len(table) - 1)
    for i in range(np.uint64(cursor[STOP]) - first):
        if values[column, first + i] != 0:
            scratch[0, 0] = aggregate
            scratch[1, 0] = rows[GROUP, i]
            scratch[2, 0] = columns[column, first + i]
            hashed = hash_row(scratch, 0, 3)
            entry = find(table, mask, keys, 3, scratch, 0, hashed)
            if entry < 0:
                entry = add(table, mask, keys, 3, scratch, 0, hashed, counts, free, meta)
            before = counts[entry]
            after = before + rows[SIGN, i]
            counts[entry] = after
            meta[ZERO] += np.int64(after == 0) - np.int64(before == 0)
            if (before == 0) == (after == 0):
                rows[SIGN, i] = 0


@jit_flat
def take_counts(
    column, values, cursor, rows, notes, port, weighted, place, words, group_words, fresh, shift, late, late_real
):  # fmt: skip
    """COUNT of what is bound."""
    first = np.uint64(cursor[FIRST])
    end = np.uint64(cursor[STOP]) - first
    for i in range(end):
        expect(i, end, rows, words, group_words, place)
        at = np.uint64(rows[GROUP, i] * group_words + place)
        count = words[at] + (rows[SIGN, i] if values[column, first + i] != 0 else np.int64(0))
        words[at] = count
        note = np.uint64(rows[NOTE, i])
        if weighted is None:
            fresh[shift + note] = scaled_id(np.int64(TAG_INTEGER), count, np.int64(0))
        elif is_last(notes, note, i, False):
            fresh[shift + note] = count_id(count * partners(notes, note, port), cursor, late, late_real)
    return DONE


@jit_flat
def take_sums(
    average, number, sums, column, values, cursor, rows, notes, always, place, words, group_words, apart, port, weighted,
    weighted_apart, odd_kind, odd_words, odd_real, fresh, scales, divisors, shift, late, late_real,
):  # fmt: skip
    """SUM and AVG, the one of that number among so many. Of an average of exact numbers the note gets sum, scale and count; any
    other value is found here."""
    first = np.uint64(cursor[FIRST])
    end = np.uint64(cursor[STOP]) - first
    for i in range(np.uint64(cursor[THROUGH]), end):
        expect(i, end, rows, words, group_words, place)
        identifier, sign, group = values[column, first + i], rows[SIGN, i], rows[GROUP, i]
        at = np.uint64(group * group_words + place)
        note = np.uint64(rows[NOTE, i])
        here = shift + note
        tag = (identifier >> 60) & 15
        scale = np.int64(0) if tag == TAG_INTEGER else (identifier >> 56) & 15
        total = words[at + _LO]
        exact = (scale == words[at + _SCALE]) & ((tag == TAG_INTEGER) | (tag == TAG_DECIMAL))
        if weighted is not None and sign == 0:
            # The sum stays: what it comes to may change with the other inputs' rows.
            scale = words[at + _SCALE]
            exact = True
        if exact and words[at + _HI] == total >> 63 and total > -LIMIT and total < LIMIT:
            # The sum stays within 64 bits.
            count, total = _add_short(words, at, total, scale, tag == TAG_DECIMAL, identifier, sign)
            exact = words[at + _INEXACT] == 0
            if average and exact and (count > 0 or not always):
                # What the mean of no members is matters of a group that is always there.
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
                # Where one is summed apart, others mostly are.
                expect_real(apart, (rows[GROUP, i + _AHEAD] * sums + number) * REAL_WORDS)
            of_group, fits = (group * sums + number) * REAL_WORDS, True
            if tag == 15:
                odd = identifier & _ODD_INDEX
                fits = _take_odd(words, np.int64(at), apart, of_group, odd, sign, odd_kind, odd_words, odd_real)
            elif tag == TAG_FLOAT:
                take_float(words, np.int64(at), apart, of_group, identifier, sign)
            else:
                fits = _take_number(words, np.int64(at), identifier, sign)
            if not fits:
                return OVERFLOW
            if words[at + _N] == 0:
                words[at + _SCALE] = 0
        divisors[here] = 0
        if is_last(notes, note, i, always):
            of_group = (group * sums + number) * REAL_WORDS
            if weighted is None:
                fresh[here] = total_of(words, np.int64(at), apart, of_group, average, cursor, late, late_real)
                continue
            status = total_of_times(
                words, np.int64(at), apart, of_group, average, partners(notes, note, port), weighted, weighted_apart, cursor, late,
                late_real, fresh, here,
            )  # fmt: skip
            if status != DONE:
                return status
    return DONE


@jit_flat
def take_differences(
    average, number, sums, column, values, cursor, rows, notes, always, place, words, group_words, apart, wide, wide_apart,
    fresh, scales, divisors, shift, late, late_real,
):  # fmt: skip
    """The same where each row tells a difference (kernels/weighted_sums.py)."""
    first = np.uint64(cursor[FIRST])
    end = np.uint64(cursor[STOP]) - first
    for i in range(end):
        expect(i, end, rows, words, group_words, place)
        group, note = rows[GROUP, i], np.uint64(rows[NOTE, i])
        at, here, of_group = group * group_words + place, shift + note, (group * sums + number) * REAL_WORDS
        form = values[column + _TWO, first + i]
        if form >= 0:
            ok = add_difference(values[column, first + i], values[column + _ONE, first + i], form, words, at)
        else:
            slot = -1 - form
            ok = add_times(
                words, at, apart, of_group, wide, slot * SUM_WORDS, wide_apart, REAL_WORDS * slot, np.int64(1)
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
            fresh[here] = total_of(words, at, apart, of_group, average, cursor, late, late_real)
    return DONE


@jit_flat
def take_extremes(
    largest, in_order, column, columns, cursor, rows, place, words, group_words, heap, heap_meta, texts, spans, fresh, shift
):  # fmt: skip
    """MIN and MAX, by bags or, where mappings leave in the order in which they came, by staircases."""
    if heap is None:
        return DONE
    first = np.uint64(cursor[FIRST])
    end = np.uint64(cursor[STOP]) - first
    for i in range(np.uint64(cursor[AT]), end):
        # Its words may be in two lines of the cache; a sum's are where most rows need no others but the first.
        expect(i, end, rows, words, group_words, place)
        expect(i, end, rows, words, group_words, place + EXTREME_WORDS - 1)
        if i + _NEAR < end:
            expect_bag(words, rows[GROUP, i + _NEAR] * group_words + place, heap)
        term, sign, at = columns[column, first + i], rows[SIGN, i], rows[GROUP, i] * group_words + place
        if term != 0:
            if not extreme_room(in_order, words, at, sign, heap, heap_meta):
                cursor[AT] = np.int64(i)
                return HEAP_FULL
            if not extreme_put(in_order, words, at, sign, term, heap, largest, texts, spans):
                return NOT_THERE
        fresh[shift + np.uint64(rows[NOTE, i])] = bag_first(words, at, heap)
    return DONE


@jit_flat
def take_replaced_extremes(
    largest, column, columns, cursor, rows, place, words, group_words, heap, heap_meta, texts, spans, fresh, shift
):  # fmt: skip
    """The same, by bags, where each row tells which member goes and, in the next column, which one comes; 0: none."""
    if heap is None:
        return DONE
    first = np.uint64(cursor[FIRST])
    end = np.uint64(cursor[STOP]) - first
    for i in range(np.uint64(cursor[AT]), end):
        expect(i, end, rows, words, group_words, place)
        expect(i, end, rows, words, group_words, place + EXTREME_WORDS - 1)
        if i + _NEAR < end:
            expect_bag(words, rows[GROUP, i + _NEAR] * group_words + place, heap)
        gone, come = columns[column, first + i], columns[column + _ONE, first + i]
        at = rows[GROUP, i] * group_words + place
        if not replace_room(words, at, gone, come, heap, heap_meta):
            cursor[AT] = np.int64(i)
            return HEAP_FULL
        if not bag_replace(words, at, gone, come, heap, largest, texts, spans):
            return NOT_THERE
        fresh[shift + np.uint64(rows[NOTE, i])] = bag_first(words, at, heap)
    return DONE


@jit_flat
def take_texts(
    aggregate, column, columns, cursor, rows, notes, always, place, words, group_words, heap, heap_meta, texts, spans, fresh, shift,
    joined, late, late_real,
):  # fmt: skip
    """GROUP_CONCAT: what is joined is written to `joined` once a note."""
    if heap is None:
        return DONE
    first = np.uint64(cursor[FIRST])
    for i in range(np.uint64(cursor[AT]), np.uint64(cursor[STOP]) - first):
        term, sign, at = columns[column, first + i], rows[SIGN, i], rows[GROUP, i] * group_words + place
        note = np.uint64(rows[NOTE, i])
        last = is_last(notes, note, i, always)
        if last and cursor[JOINED] + words[at + _RUN_SIZE] + 1 > len(joined):
            cursor[AT] = np.int64(i)
            return JOINED_FULL
        if term != 0 and sign != 0:
            if sign > 0 and not make_room(words, at, heap, heap_meta):
                cursor[AT] = np.int64(i)
                return HEAP_FULL
            if not run_put(words, at, sign, term, heap, texts, spans):
                return NOT_THERE
            words[at + CLEAN] = 0
        if last:
            value = np.int64(AS_BEFORE)
            if not words[at + CLEAN]:
                value = _joined_text(words, at, heap, aggregate, cursor, joined, late, late_real)
            fresh[shift + note] = value
    return DONE
