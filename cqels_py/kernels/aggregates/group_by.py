"""The kernels of GROUP BY: rows into their groups, and the rows of the answer that change.

Rows are processed in chunks of whole ticks, few enough to stay in the cache, and each chunk in passes. Find the group
of every row. Make a note for every group that changes at a tick. For each aggregate, apply its column and write its
value to the notes (updates.py). Compute the averages of all notes at once, and deliver the changes. So each loop does
one thing to many rows: it has no unpredictable branches, and many lookups are in flight at once.

Rows are of one input, or (where `port` is given) of several inputs whose join on the groups' keys is never made: a
group then has as many results as the product of its numbers of rows of each input, and a sum counts each member once
for each combination of the others' rows.

`rows` (4, size), by row of the chunk: its hash, group, note and sign. `notes` (6, size): group, tick, the number of
results the group has then, its last row in the chunk, and the positions in the output of its retracted and its inserted
row; for a join followed by the number of rows the group has of each input. A group's record, in `words`, has the number
of its last note, counted over all time. `results` (4, aggregates * size, by aggregate): `fresh`, the value of an
aggregate. For an average: the sum, its scale, its divisor, 0 where the value is known, and the quotient. For a sum of
64 bits without fraction digits the divisor is SHORT_SUM, and the scale says whether it is a decimal. When all values
are computed, the last row holds those delivered before. `of_aggregates` (6, aggregates): function, column of the
argument, position of the accumulator, whether a term counts once, the input of the argument, and whether that input is
FIFO.

`queue`: a circular buffer, 2**n; for FIFO input the groups of the mappings that are there, in order.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.aggregates.accumulators import (
    AS_BEFORE,
    AVG,
    CONCAT,
    COUNT,
    COUNT_ALL,
    DEFERRED,
    DEFERRED_PLACE,
    DONE,
    MAX,
    NOT_THERE,
    OUT,
    PROVISIONAL,
    SHOWN,
    STAMP,
    SUM,
    TOO_MANY,
    any_total,
    count_id,
    forget,
    long_average,
    value_of,
)
from cqels_py.kernels.aggregates.updates import (
    AT,
    FIRST,
    GIVEN,
    GROUP,
    HASH,
    LAST_ROW,
    NOTE,
    NOTE_GROUP,
    NOTE_TICK,
    NOTED,
    OF_INPUT,
    PASS,
    SEEN,
    SHORT_SUM,
    SIGN,
    STOP,
    TAKEN,
    THERE,
    only_new,
    partners,
    take_counts,
    take_differences,
    take_extremes,
    take_sums,
    take_texts,
)
from cqels_py.kernels.aggregates.weighted_sums import times, times_id
from cqels_py.kernels.compiler.jit import jit_flat, jit_inline
from cqels_py.kernels.primitives.prefetch import prefetch
from cqels_py.kernels.primitives.select import select_branchless
from cqels_py.kernels.primitives.state_record import int32s, int64_rows, int64s, int64s_with, uint32s, uint32s_with
from cqels_py.kernels.structures.hash_table import FREE, USED, ZERO, add, find, find_in_first_slots, hash_row
from cqels_py.kernels.values.decimals import average_ids, scaled_id
from cqels_py.kernels.values.quotients import fraction_ids
from cqels_py.terms.layout import TAG_DECIMAL, TAG_INTEGER, TAG_SHIFT

# Cursor, after the fields of updates.py: mappings that have left the queue, and mappings that have entered it, which
# are kept from delta to delta.
HEAD, TAIL = range(SEEN + 1, SEEN + 3)
FIELDS = TAIL + 1
LOCATE = 0

# of_aggregates, results
FUNCTIONS, ARGUMENTS, PLACES, DISTINCT, PORTS, EXPIRES_FIFO = range(6)
FRESH, SCALES, DIVISORS, QUOTIENTS = range(4)

# STANDING: the arrays of a GROUP BY, as its record has them. From INDEX on: the index of the groups'
# keys. From D_INDEX on: a one-way index (aggregate, group, term) -> counter, where a term counts once. WEIGHTED and
# WEIGHTED_APART: an accumulator as scratch for a join's sums.
OF_AGGREGATES, CURSOR, QUEUE, ROWS, NOTES, RESULTS, SCRATCH, WORDS, APART, HEAP, HEAP_META, PORT_COUNTS = range(12)
WEIGHTED, WEIGHTED_APART, INDEX, D_INDEX = 12, 13, 14, 19

# Why a kernel stopped, in addition to the reasons of accumulators.py.
INDEX_FULL, QUEUE_FULL, CHUNK_SMALL = range(8, 11)

_STAMP, _SHOWN = np.array([STAMP, SHOWN], np.uint64)
_TABLE_AHEAD, _KEY_AHEAD, _GROUP_AHEAD = np.uint64(32), np.uint64(16), np.uint64(20)
_ONE, _TWO, _NOTHING = np.uint64(1), np.uint64(2), np.uint64(0)
_NOW_AND_THEN = np.uint64(63)
_SMALL = 1 << 30
"""The product of two smaller numbers cannot overflow."""
_LOWER = np.uint64((1 << 32) - 1)


@jit_inline
def _start_of_tick(tick, first, row):
    """The first row, from `first` on, of the tick of this row."""
    while row > first and tick[row - 1] == tick[row]:
        row -= 1
    return np.int64(row)


@jit_inline
def _end_of_chunk(tick, first, end, size):
    """The end of the rows of as many whole ticks as there is room for; `first` if there is no room for the first tick."""
    if end - first <= size:
        return np.int64(end)
    return _start_of_tick(tick, first, first + size)


@jit_flat
def _find_groups(
    tick, sign, columns, first, end, width, expires_fifo, cursor, queue, table, keys, counts, free, meta, rows
):  # fmt: skip
    """Find the groups of the rows from `first` to `end`; missing groups are added, with a counter of zero.

    Returns the row at which it stopped: `end`, or the start of the tick in which the index became full. Negative: a
    retracted row was not there.
    """
    mask = np.int64(len(table) - 1)
    room = min(len(counts), len(table) >> 1) - meta[USED] + meta[FREE]
    places, circle = np.uint64(mask), np.uint64(len(queue) - 1)
    start, found = np.uint64(first), np.uint64(end - first)
    head, tail = np.uint64(cursor[HEAD]), np.uint64(cursor[TAIL])
    for i in range(found):
        rows[HASH, i] = hash_row(columns, start + i, width)
    for i in range(found):
        row = start + i
        if expires_fifo and sign[row] < 0:
            group = np.uint64(queue[head & circle])
            # Checked now and then: a retraction that is out of order would put all later ones out of order.
            seen = width > 0 and head & _NOW_AND_THEN == _NOTHING
            if head == tail or (seen and keys[group * np.uint64(width)] != columns[0, row]):
                return np.int64(-1)
            head += _ONE
            rows[GROUP, i] = np.int64(group)
            continue
        if i + _TABLE_AHEAD < found:
            prefetch(table, np.uint64(rows[HASH, i + _TABLE_AHEAD]) & places)
            word = np.uint64(table[np.uint64(rows[HASH, i + _KEY_AHEAD]) & places])
            prefetch(keys, ((word & _LOWER) - _ONE) * np.uint64(width))
        hashed = rows[HASH, i]
        entry = np.int64(-1)
        if width == 1:
            entry = find_in_first_slots(hashed, columns[0, row], table, places, keys)
        if entry < 0:
            entry = find(table, mask, keys, width, columns, row, hashed)
        if entry < 0:
            if sign[row] <= 0:
                return np.int64(-1)
            if room == 0:
                found = i
                break
            room -= 1
            entry = add(table, mask, keys, width, columns, row, hashed, counts, free, meta)
        if expires_fifo:
            queue[tail & circle] = np.int32(entry)
            tail += _ONE
        rows[GROUP, i] = entry
    end_found = np.int64(start + found)
    if end_found < end:
        end_found = _start_of_tick(tick, first, end_found)
        if expires_fifo:
            for row in range(end_found, np.int64(start + found)):
                head -= np.uint64(sign[row] < 0)
                tail -= np.uint64(sign[row] > 0)
    cursor[HEAD], cursor[TAIL] = np.int64(head), np.int64(tail)
    return end_found


@jit_inline
def _results(port, row, step, group, port_counts, notes, note):
    """Count an inserted or retracted row of an input; returns the number of results of its group. -1: too many, -2: the
    row was not there."""
    inputs = np.uint64(len(notes)) - OF_INPUT
    place = np.uint64(group) * inputs
    mine = place + np.uint64(port[row])
    left = port_counts[mine] + step
    port_counts[mine] = left
    product, size = np.int64(1), np.int64(0)
    for p in range(inputs):
        count = port_counts[place + p]
        notes[OF_INPUT + p, note] = count
        size |= count | product
        product *= count
    if size >= _SMALL:
        product = _many_results(place, inputs, port_counts)
    return product if left >= 0 else np.int64(-2)


@jit_flat
def _many_results(place, inputs, port_counts):
    """The product of the inputs' counts, or -1. If one of them is 0 there are no results, however many rows the others
    have."""
    product = np.int64(1)
    for p in range(inputs):
        if port_counts[place + p] == 0:
            return np.int64(0)
        product = times(product, port_counts[place + p])
    return product


@jit_flat
def _note(tick, sign, port, cursor, counts, meta, port_counts, rows, notes, words, group_words):
    """Make a note for each group that changes at a tick, and update the groups' counters. Returns DONE, or an error."""
    first, seen, record = np.uint64(cursor[FIRST]), cursor[SEEN], np.uint64(group_words)
    end = np.uint64(cursor[STOP]) - first
    next_note, now = seen, np.int32(-1)
    of_tick, zero, least = seen, np.int64(0), np.int64(0)
    for i in range(end):
        if i + _GROUP_AHEAD < end:
            ahead = rows[GROUP, i + _GROUP_AHEAD]
            prefetch(counts, ahead)
            prefetch(words, ahead * group_words)
            if port_counts is not None:
                prefetch(port_counts, ahead * np.int64(len(notes) - OF_INPUT))
        row, group = first + i, np.uint64(rows[GROUP, i])
        of_tick = next_note if tick[row] != now else of_tick
        now = np.int32(tick[row])
        before = counts[group]
        after = before + sign[row]
        counts[group] = after
        zero += np.int64(after == 0) - np.int64(before == 0)
        stamp = words[group * record + _STAMP]
        new = stamp < of_tick
        stamp = next_note if new else stamp
        next_note += np.int64(new)
        words[group * record + _STAMP] = stamp
        note = np.uint64(stamp - seen)
        rows[NOTE, i] = np.int64(note)
        notes[NOTE_GROUP, note] = np.int64(group)
        notes[NOTE_TICK, note] = now
        notes[THERE, note] = after
        notes[LAST_ROW, note] = np.int64(i)
        if port_counts is not None:
            results = _results(port, row, np.int64(sign[row]), group, port_counts, notes, note)
            notes[THERE, note] = results
            least = min(least, results)
    meta[ZERO] += zero
    cursor[SEEN] = next_note
    cursor[NOTED] = next_note - seen
    return DONE if least == 0 else TOO_MANY if least == -1 else NOT_THERE


@jit_flat
def _take_signs(sign, port, input_of_argument, cursor, rows):
    """Copy the rows' signs; for rows of another input than the argument's the sign is 0."""
    first = np.uint64(cursor[FIRST])
    for i in range(np.uint64(cursor[STOP]) - first):
        of_argument = np.int64(port is None or port[first + i] == input_of_argument)
        rows[SIGN, i] = sign[first + i] * of_argument


@jit_inline
def _is_one_missing(divisors, quotients, start, end):
    missing = np.int64(0)
    for i in range(start, end):
        missing |= np.int64((divisors[i] > 0) & (quotients[i] == 0))
    return missing != 0


@jit_flat
def _find_averages(functions, noted, size, fresh, scales, divisors, quotients, cursor, deferred, deferred_real):
    for a in range(len(functions)):
        if functions[a] == AVG:
            start, end = np.uint64(a * size), np.uint64(a * size + noted)
            average_ids(fresh, scales, divisors, start, end, quotients)
            if _is_one_missing(divisors, quotients, start, end):
                fraction_ids(fresh, scales, divisors, start, end, quotients)
            # Averages without a short id: all are checked in a pass without branches, as mostly there are none.
            missing = np.int64(0)
            for i in range(start, end):
                is_average, quotient = divisors[i] > 0, quotients[i]
                missing |= np.int64(is_average & (quotient == 0))
                fresh[i] = select_branchless(is_average & (quotient != 0), quotient, fresh[i])
            if missing:
                for i in range(start, end):
                    if divisors[i] > 0 and quotients[i] == 0:
                        total = fresh[i]
                        fresh[i] = long_average(
                            total >> 63, np.uint64(total), scales[i], divisors[i], cursor, deferred, deferred_real
                        )


@jit_inline
def _replace_value(i, here, last, notes, fresh, previous, words, group_words):
    """Replace the value delivered last with the new one: 1 if it differs."""
    at = np.uint64(notes[NOTE_GROUP, i]) * group_words + last
    before = words[at]
    previous[here] = before
    value = before if notes[THERE, i] == 0 or fresh[here] == AS_BEFORE else fresh[here]
    fresh[here] = value
    words[at] = value
    return np.int64(value != before)


@jit_flat
def _replace_values(noted, notes, size, places, fresh, previous, words, group_words):
    """Replace the values delivered last, which are written to `previous`, with the new ones.

    A note's TAKEN is 1 if the group's row is retracted, and GIVEN is 1 if a row is inserted; both are 0 where it stays
    the same. Returns the number of all these rows.
    """
    width, group_words = np.uint64(len(places)), np.uint64(group_words)
    if width != _ONE:
        for i in range(noted):
            notes[GIVEN, i] = 0
        for a in range(width):
            last = np.uint64(places[a]) - _ONE
            for i in range(noted):
                notes[GIVEN, i] |= _replace_value(i, a * size + i, last, notes, fresh, previous, words, group_words)
    changes, last = np.int64(0), np.uint64(places[0]) - _ONE if width == _ONE else _NOTHING
    for i in range(noted):
        shown = np.uint64(notes[NOTE_GROUP, i]) * group_words + _SHOWN
        if width == _ONE:
            # A single aggregate, as in most queries, needs no pass of its own.
            differs = _replace_value(i, i, last, notes, fresh, previous, words, group_words)
        else:
            differs = notes[GIVEN, i]
        exists, before = np.int64(notes[THERE, i] != 0), words[shown]
        words[shown] = exists
        changed = differs | (exists ^ before)
        notes[TAKEN, i] = before & changed
        notes[GIVEN, i] = exists & changed
        changes += (before & changed) + (exists & changed)
    return changes


@jit_inline
def _write_pairs(noted, notes, size, aggregates, fresh, previous, n_keys, keys, end, out_tick, out_sign, out):
    """Each group retracts one row and inserts one."""
    for i in range(noted):
        out_tick[end + _TWO * i] = out_tick[end + _TWO * i + _ONE] = notes[NOTE_TICK, i]
    for i in range(noted):
        out_sign[end + _TWO * i] = -1
        out_sign[end + _TWO * i + _ONE] = 1
    for a in range(np.uint64(aggregates)):
        for i in range(noted):
            out[np.uint64(n_keys) + a, end + _TWO * i] = previous[a * size + i]
            out[np.uint64(n_keys) + a, end + _TWO * i + _ONE] = fresh[a * size + i]
    for c in range(np.uint64(n_keys)):
        for i in range(noted):
            key = keys[np.uint64(notes[NOTE_GROUP, i]) * np.uint64(n_keys) + c]
            out[c, end + _TWO * i] = out[c, end + _TWO * i + _ONE] = key


@jit_flat
def _deliver(
    noted, notes, size, places, fresh, previous, n_keys, keys, words, group_words, cursor, out_tick, out_sign, out
):  # fmt: skip
    """Write the changes of the noted groups' rows, column by column."""
    noted, size, end = np.uint64(noted), np.uint64(size), np.uint64(cursor[OUT])
    changes = np.uint64(_replace_values(noted, notes, size, places, fresh, previous, words, group_words))
    cursor[OUT] = np.int64(end + changes)
    if changes == _TWO * noted:
        _write_pairs(noted, notes, size, len(places), fresh, previous, n_keys, keys, end, out_tick, out_sign, out)
        return
    for i in range(noted):
        # Both rows are written; one that is not needed is overwritten by the next.
        taken, given = end, end + np.uint64(notes[TAKEN, i])
        end = given + np.uint64(notes[GIVEN, i])
        notes[TAKEN, i], notes[GIVEN, i] = np.int64(taken), np.int64(given)
        out_tick[taken] = out_tick[given] = notes[NOTE_TICK, i]
        out_sign[taken] = -1
        out_sign[given] = 1
    for a in range(np.uint64(len(places))):
        for i in range(noted):
            out[np.uint64(n_keys) + a, notes[TAKEN, i]] = previous[a * size + i]
            out[np.uint64(n_keys) + a, notes[GIVEN, i]] = fresh[a * size + i]
    for c in range(np.uint64(n_keys)):
        for i in range(noted):
            key = keys[np.uint64(notes[NOTE_GROUP, i]) * np.uint64(n_keys) + c]
            out[c, notes[TAKEN, i]] = out[c, notes[GIVEN, i]] = key


@jit_flat
def _find_short_sums(
    functions, ports, noted, notes, size, weighted, fresh, scales, divisors, cursor, deferred, deferred_real
):
    """The ids of sums of 64 bits; in a join each member counts once for each combination of the other inputs' rows."""
    for a in range(len(functions)):
        if functions[a] == SUM:
            for i in range(np.uint64(noted)):
                here = np.uint64(a * size) + i
                if divisors[here] == SHORT_SUM:
                    weight = np.int64(1)
                    if weighted is not None:
                        weight = partners(notes, i, ports[a])
                    tag = np.int64(TAG_INTEGER if scales[here] == 0 else TAG_DECIMAL)
                    fresh[here] = times_id(tag, fresh[here], weight, cursor, deferred, deferred_real)


@jit_flat
def _forget_terms(functions, places, words, group_words, counts, noted, notes):
    """Clear the terms of empty groups."""
    for i in range(np.uint64(noted)):
        group = notes[NOTE_GROUP, i]
        if notes[THERE, i] == 0 and counts[group] == 0:
            forget(functions, places, words, group * group_words)


@jit_flat
def _tell_places(noted, notes, places, words, group_words, deferred):
    """Record the positions of the values that have no ids yet."""
    for i in range(np.uint64(noted)):
        for a in range(len(places)):
            at = np.uint64(notes[NOTE_GROUP, i] * group_words + places[a] - 1)
            if words[at] >> TAG_SHIFT == PROVISIONAL >> TAG_SHIFT:
                deferred[words[at] - PROVISIONAL, DEFERRED_PLACE] = np.int64(at)


@jit_flat
def _end_chunk(
    of_aggregates, words, group_words, n_keys, keys, counts, heap, weighted, cursor, notes, size, fresh, scales, divisors, quotients,
    out_tick, out_sign, out, deferred, deferred_real,
):  # fmt: skip
    functions, places, ports = of_aggregates[FUNCTIONS], of_aggregates[PLACES], of_aggregates[PORTS]
    noted, aggregates = cursor[NOTED], len(functions)
    for a in range(aggregates):
        if functions[a] == COUNT_ALL:
            for i in range(noted):
                there = notes[THERE, i]
                if weighted is None:
                    fresh[a * size + i] = scaled_id(np.int64(TAG_INTEGER), there, np.int64(0))
                else:
                    fresh[a * size + i] = count_id(there, cursor, deferred, deferred_real)
    _find_averages(functions, noted, size, fresh, scales, divisors, quotients, cursor, deferred, deferred_real)
    _find_short_sums(
        functions, ports, noted, notes, size, weighted, fresh, scales, divisors, cursor, deferred, deferred_real
    )
    if heap is not None:
        _forget_terms(functions, places, words, group_words, counts, noted, notes)
    if n_keys == 0:
        for i in range(np.uint64(noted)):
            # The single group is always there.
            notes[THERE, i] = 1
    _deliver(
        noted, notes, size, places, fresh, quotients, n_keys, keys, words, group_words, cursor, out_tick, out_sign, out
    )  # fmt: skip
    if cursor[DEFERRED] != 0:
        _tell_places(noted, notes, places, words, group_words, deferred)


@jit_flat
def open_group(
    of_aggregates, words, group_words, apart, keys, counts, heap, cursor, notes, results, out_tick, out_sign, out, deferred,
    deferred_real, joined,
):  # fmt: skip
    """The row of the single group of an aggregation without keys, entry 0 of its index, before there is any mapping."""
    functions, places = of_aggregates[FUNCTIONS], of_aggregates[PLACES]
    fresh, scales, divisors, quotients = results[FRESH], results[SCALES], results[DIVISORS], results[QUOTIENTS]
    size = np.int64(notes.shape[1])
    for field in range(4):
        notes[field, 0] = 0
    for a in range(len(functions)):
        here = a * size
        divisors[here] = 0
        if functions[a] == AVG:
            fresh[here] = any_total(words, places[a], apart, 0, True, cursor, deferred, deferred_real)
        else:
            fresh[here] = value_of(
                a, functions[a], np.int64(0), words, places[a], apart, 0, heap, cursor, joined, deferred, deferred_real
            )  # fmt: skip
    cursor[NOTED] = 1
    _end_chunk(
        of_aggregates, words, group_words, 0, keys, counts, heap, None, cursor, notes, size, fresh, scales, divisors, quotients,
        out_tick, out_sign, out, deferred, deferred_real,
    )  # fmt: skip


@jit_inline
def _index(state, first):
    """The arrays of a one-way index."""
    return (
        int64s(state, first), int64s(state, first + 1), int64s(state, first + 2), int32s(state, first + 3),
        int64s(state, first + 4),
    )  # fmt: skip


@jit_inline
def _count_sums(functions, end):
    """The number of sums and averages among the first aggregates."""
    found = np.int64(0)
    for a in range(end):
        found += np.int64((functions[a] == SUM) | (functions[a] == AVG))
    return found


@jit_flat
def group(
    row_count, tick, sign, port, keyed, columns, values, n_keys, expires_fifo, texts, spans, hashed_kind, hashed_words, hashed_real,
    wide, wide_apart, state, group_words, out_tick, out_sign, out, deferred, deferred_real, joined,
):  # fmt: skip
    """Aggregate a delta's rows, from cursor[FIRST] and the pass cursor[PASS] on; writes the changes at each tick.

    `keyed`: the columns with the keys first. Aggregates take their arguments as terms from `columns`, and as numbers
    from `values`, which has tag 15 for those whose numbers are in `hashed_*`. `texts` and `spans` are given where terms
    are kept. `expires_fifo`, 1 or 0: is the input FIFO? If `wide` and `wide_apart`, and not `hashed_*`, are given, SUM and AVG
    take differences (weighted_sums.py) instead of terms; a sign is 0 where a row changes only these. For a join (see
    above) `port` is each row's input, and each aggregate has a column of its own, 0 in rows of other inputs.
    `state`: see STANDING.

    Returns DONE, or why it stopped: it continues there when it is called again.
    """
    of_aggregates, rows, notes, results, scratch = (
        int64_rows(state, OF_AGGREGATES), int64_rows(state, ROWS), int64_rows(state, NOTES),
        int64_rows(state, RESULTS), int64_rows(state, SCRATCH),
    )  # fmt: skip
    cursor, queue, words, apart = (
        int64s(state, CURSOR), int32s(state, QUEUE), int64s(state, WORDS), uint32s(state, APART)
    )  # fmt: skip
    table, keys, counts, free, meta = _index(state, INDEX)
    d_table, d_keys, d_counts, d_free, d_meta = _index(state, D_INDEX)
    # Code for arrays that are None is not compiled.
    heap, heap_meta = int64s_with(texts, state, HEAP), int64s_with(texts, state, HEAP_META)
    port_counts, weighted, weighted_apart = (
        int64s_with(port, state, PORT_COUNTS), int64s_with(port, state, WEIGHTED),
        uint32s_with(port, state, WEIGHTED_APART)
    )  # fmt: skip
    functions, arguments, places, distinct, ports = (
        of_aggregates[FUNCTIONS], of_aggregates[ARGUMENTS], of_aggregates[PLACES], of_aggregates[DISTINCT], of_aggregates[PORTS],
    )  # fmt: skip
    fresh, scales, divisors, quotients = results[FRESH], results[SCALES], results[DIVISORS], results[QUOTIENTS]
    aggregates, size, always = len(functions), np.int64(notes.shape[1]), n_keys == 0
    sums = _count_sums(functions, aggregates)
    while True:
        if cursor[PASS] == LOCATE:
            first = cursor[FIRST]
            if first == row_count:
                return DONE
            stop = _end_of_chunk(tick, first, row_count, size)
            if stop == first:
                return CHUNK_SMALL
            if expires_fifo and cursor[TAIL] - cursor[HEAD] + stop - first > len(queue):
                return QUEUE_FULL
            end = _find_groups(
                tick, sign, keyed, first, stop, n_keys, expires_fifo, cursor, queue, table, keys, counts, free, meta, rows
            )  # fmt: skip
            if end < 0:
                return NOT_THERE
            if end == first:
                return INDEX_FULL
            cursor[STOP] = end
            status = np.int64(
                _note(tick, sign, port, cursor, counts, meta, port_counts, rows, notes, words, group_words)
            )
            if status != DONE:
                return status
            cursor[PASS] = 1
            cursor[AT] = -1
        while cursor[PASS] <= aggregates:
            a = cursor[PASS] - 1
            function, column, place, shift = functions[a], np.uint64(arguments[a]), places[a], np.uint64(a * size)
            if cursor[AT] < 0:
                cursor[AT] = 0
                _take_signs(sign, port, ports[a], cursor, rows)
                if distinct[a]:
                    only_new(
                        a, column, columns, values, cursor, rows, scratch, d_table, d_keys, d_counts, d_free, d_meta
                    )
            status = np.int64(DONE)
            if function == COUNT:
                status = take_counts(
                    column, values, cursor, rows, notes, ports[a], weighted, place, words, group_words, fresh, shift, deferred,
                    deferred_real
                )  # fmt: skip
            elif function == SUM or function == AVG:
                # Code for arrays that are None is not compiled.
                if hashed_kind is not None:
                    status = take_sums(
                        function == AVG, _count_sums(functions, a), sums, column, values, cursor, rows, notes, always, place,
                        words, group_words, apart, ports[a], weighted, weighted_apart, hashed_kind, hashed_words, hashed_real,
                        fresh, scales, divisors, shift, deferred, deferred_real,
                    )  # fmt: skip
                if wide is not None:
                    status = take_differences(
                        function == AVG, _count_sums(functions, a), sums, column, values, cursor, rows, notes, always, place, words,
                        group_words, apart, wide, wide_apart, fresh, scales, divisors, shift, deferred, deferred_real,
                    )  # fmt: skip
            elif function == CONCAT:
                status = take_texts(
                    a, column, columns, cursor, rows, notes, always, place, words, group_words, heap, heap_meta, texts, spans,
                    fresh, shift, joined, deferred, deferred_real,
                )  # fmt: skip
            elif function != COUNT_ALL:
                status = take_extremes(
                    function == MAX, of_aggregates[EXPIRES_FIFO, a] != 0, hashed_kind, column, columns, cursor, rows, place, words,
                    group_words, heap, heap_meta, texts, spans, fresh, shift,
                )  # fmt: skip
            if status != DONE:
                return status
            cursor[PASS] += 1
            cursor[AT] = -1
        _end_chunk(
            of_aggregates, words, group_words, n_keys, keys, counts, heap, weighted, cursor, notes, size, fresh, scales, divisors,
            quotients, out_tick, out_sign, out, deferred, deferred_real,
        )  # fmt: skip
        cursor[FIRST] = cursor[STOP]
        cursor[PASS] = LOCATE


@jit_flat
def tags_of_arguments(values, arguments, functions):
    """The tags of the arguments of SUM and AVG, a bit for each."""
    tags = np.int64(0)
    for a in range(len(functions)):
        if functions[a] == SUM or functions[a] == AVG:
            column = np.uint64(arguments[a])
            for row in range(np.uint64(values.shape[1])):
                tags |= np.int64(1) << ((values[column, row] >> 60) & 15)
    return tags
