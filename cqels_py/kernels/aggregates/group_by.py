"""The kernels of GROUP BY: rows into their groups, and the rows of the answer that change.

Rows are processed in chunks of whole ticks, few enough to stay in the cache, and each chunk in passes. Find the group
of every row. Make a note for every group that changes at a tick. For each aggregate, apply its column and write its
value to the notes (updates.py). Compute the averages of all notes at once, and deliver the changes. So each loop does
one thing to many rows: it has no unpredictable branches, and many lookups are in flight at once.

Rows are of one input, or (with `group_joined`) of several inputs whose join on the groups' keys is never made: a group
then has as many results as the product of its numbers of rows of each input, and a sum counts each member once for each
combination of the others' rows.

`rows` (4, size), by row of the chunk: its hash, group, note and sign. `notes` (6, size): group, tick, the number of
results the group has then, its last row in the chunk, and the positions in the output of its retracted and its inserted
row; for a join followed by the number of rows the group has of each input. A group's record, in `words`, has the number
of its last note, counted over all time. `results` (4, aggregates * size, by aggregate): `fresh`, the value of an
aggregate. For an average: the sum, its scale, its divisor, 0 where the value is known, and the quotient. For a sum of
64 bits without fraction digits the divisor is SHORT_SUM, and the scale says whether it is a decimal. When all values
are computed, the last row holds those delivered before.

`queue`: a circular buffer, 2**n; for FIFO input the groups of the mappings that are there, in order.

Kernels called from Python get the address of the operator's record, and open it once into the NamedTuples of
group_records.py: `plan`, `groups`, `chunk` and others, which all functions here get. Those whose names end in _terms are for
queries with MIN, MAX or GROUP_CONCAT: the others have no code for terms, which takes most of the compiler's time.
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
    NOT_THERE,
    OUT,
    PROVISIONAL,
    SHOWN,
    STAMP,
    SUM,
    TOO_MANY,
    count_id,
    first_value,
    forget,
    long_average,
)
from cqels_py.kernels.aggregates.group_records import (
    Input,
    Output,
    Wide,
    open_chunk,
    open_distinct_index,
    open_groups,
    open_groups_index,
    open_join,
    open_numbers,
    open_plan,
    open_terms,
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
    take_counts,
    take_differences,
    take_extremes,
    take_sums,
    take_texts,
)
from cqels_py.kernels.aggregates.weighted_sums import large_id, short_times_id, times
from cqels_py.kernels.compiler.jit import jit_flat, jit_inline
from cqels_py.kernels.primitives.prefetch import prefetch
from cqels_py.kernels.primitives.select import select_branchless
from cqels_py.kernels.structures.hash_table import FREE, USED, ZERO, find_in_first_slots, hash_row
from cqels_py.kernels.structures.key_index import add_key, find_key
from cqels_py.kernels.values.decimals import average_ids, scaled_id
from cqels_py.kernels.values.quotients import fraction_ids
from cqels_py.terms.layout import TAG_DECIMAL, TAG_INTEGER, TAG_SHIFT

# Cursor, after the fields of updates.py: mappings that have left the queue, and mappings that have entered it, which
# are kept from delta to delta.
HEAD, TAIL = range(SEEN + 1, SEEN + 3)
FIELDS = TAIL + 1
LOCATE = 0

# Why a kernel stopped, in addition to the reasons of accumulators.py.
INDEX_FULL, QUEUE_FULL, CHUNK_SMALL, DISTINCT_FULL = range(8, 12)

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
def _find_groups(end, given, plan, groups, index, chunk):
    """Find the groups of the rows from cursor[FIRST] to `end`; missing groups are added, with a counter of zero.

    Returns the row at which it stopped: `end`, or the start of the tick in which the index became full. Negative: a
    retracted row was not there.
    """
    tick, sign, columns, width, is_fifo = given.tick, given.sign, given.keyed, plan.n_keys, plan.is_fifo
    table, keys, cursor, rows, queue = index.table, index.keys, chunk.cursor, chunk.rows, groups.queue
    first = cursor[FIRST]
    room = min(len(index.counts), len(table) >> 1) - index.meta[USED] + index.meta[FREE]
    places, circle = np.uint64(len(table) - 1), np.uint64(len(queue) - 1)
    start, found = np.uint64(first), np.uint64(end - first)
    head, tail = np.uint64(cursor[HEAD]), np.uint64(cursor[TAIL])
    for i in range(found):
        rows[HASH, i] = hash_row(columns, start + i, width)
    for i in range(found):
        row = start + i
        if is_fifo and sign[row] < 0:
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
            entry = find_key(index, width, columns, row, hashed)
        if entry < 0:
            if sign[row] <= 0:
                return np.int64(-1)
            if room == 0:
                found = i
                break
            room -= 1
            entry = add_key(index, width, columns, row, hashed)
        if is_fifo:
            queue[tail & circle] = np.int32(entry)
            tail += _ONE
        rows[GROUP, i] = entry
    end_found = np.int64(start + found)
    if end_found < end:
        end_found = _start_of_tick(tick, first, end_found)
        if is_fifo:
            for row in range(end_found, np.int64(start + found)):
                head -= np.uint64(sign[row] < 0)
                tail -= np.uint64(sign[row] > 0)
    cursor[HEAD], cursor[TAIL] = np.int64(head), np.int64(tail)
    return end_found


@jit_inline
def _count_row(join, row, step, group, notes, note):
    """Count an inserted or retracted row of an input; returns how many the group has left of it: negative if the row was not
    there."""
    port_counts, inputs = join.counts, np.uint64(len(notes)) - OF_INPUT
    place = np.uint64(group) * inputs
    mine = place + np.uint64(join.port[row])
    left = port_counts[mine] + step
    port_counts[mine] = left
    # The first two, which every join has, are not in the loop.
    notes[OF_INPUT, note] = port_counts[place]
    notes[OF_INPUT + _ONE, note] = port_counts[place + _ONE]
    for p in range(_TWO, inputs):
        notes[OF_INPUT + p, note] = port_counts[place + p]
    return left


@jit_flat
def _count_results(chunk):
    """Write to the notes how many results their groups have: the products of the inputs' counts. Returns DONE, or TOO_MANY."""
    notes, noted, size = chunk.notes, np.uint64(chunk.cursor[NOTED]), np.int64(0)
    for i in range(noted):
        notes[THERE, i] = notes[OF_INPUT, i]
    for p in range(OF_INPUT + _ONE, np.uint64(len(notes))):
        for i in range(noted):
            size |= notes[THERE, i] | notes[p, i]
            notes[THERE, i] *= notes[p, i]
    if size >= _SMALL:
        for i in range(noted):
            notes[THERE, i] = _many_results(notes, i)
            if notes[THERE, i] < 0:
                return TOO_MANY
    return DONE


@jit_flat
def _many_results(notes, note):
    """The product of the inputs' counts, or -1. If one of them is 0 there are no results, however many rows the others
    have."""
    product = np.int64(1)
    for p in range(OF_INPUT, np.uint64(len(notes))):
        if notes[p, note] == 0:
            return np.int64(0)
        product = times(product, notes[p, note])
    return product


@jit_flat
def _note(given, groups, index, chunk, join):
    """Make a note for each group that changes at a tick, and update the groups' counters. Returns DONE, or an error."""
    tick, sign, counts, words, group_words = given.tick, given.sign, index.counts, groups.words, groups.size
    cursor, rows, notes = chunk.cursor, chunk.rows, chunk.notes
    first, seen, record = np.uint64(cursor[FIRST]), cursor[SEEN], np.uint64(group_words)
    end = np.uint64(cursor[STOP]) - first
    next_note, now = seen, np.int32(-1)
    of_tick, zero, least = seen, np.int64(0), np.int64(0)
    for i in range(end):
        if i + _GROUP_AHEAD < end:
            ahead = rows[GROUP, i + _GROUP_AHEAD]
            prefetch(counts, ahead)
            prefetch(words, ahead * group_words)
            if join is not None:
                prefetch(join.counts, ahead * np.int64(len(notes) - OF_INPUT))
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
        notes[LAST_ROW, note] = np.int64(i)
        if join is None:
            notes[THERE, note] = after
        else:
            least = min(least, _count_row(join, row, np.int64(sign[row]), group, notes, note))
    index.meta[ZERO] += zero
    cursor[SEEN] = next_note
    cursor[NOTED] = next_note - seen
    if least < 0:
        return NOT_THERE
    return np.int64(DONE if join is None else _count_results(chunk))


@jit_flat
def _take_signs(given, join, input_of_argument, chunk):
    """Copy the rows' signs; for rows of another input than the argument's the sign is 0."""
    sign, rows = given.sign, chunk.rows
    first = np.uint64(chunk.cursor[FIRST])
    for i in range(np.uint64(chunk.cursor[STOP]) - first):
        of_argument = np.int64(join is None or join.port[first + i] == input_of_argument)
        rows[SIGN, i] = sign[first + i] * of_argument


@jit_inline
def _is_one_missing(divisors, quotients, start, end):
    missing = np.int64(0)
    for i in range(start, end):
        missing |= np.int64((divisors[i] > 0) & (quotients[i] == 0))
    return missing != 0


@jit_flat
def _find_averages(functions, chunk):
    fresh, scales, divisors, quotients = chunk.fresh, chunk.scales, chunk.divisors, chunk.quotients
    noted, size = chunk.cursor[NOTED], chunk.size
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
                            total >> 63, np.uint64(total), scales[i], divisors[i], chunk.cursor, chunk.deferred,
                            chunk.deferred_real,
                        )  # fmt: skip


@jit_inline
def _replace_value(i, here, last, notes, fresh, previous, words, group_words):
    """Replace the value delivered last with the new one: 1 if it differs."""
    at = np.uint64(notes[NOTE_GROUP, i]) * group_words + last
    before = words[at]
    previous[here] = before
    # Without a branch: which groups have no results is unpredictable.
    value = select_branchless((notes[THERE, i] == 0) | (fresh[here] == AS_BEFORE), before, fresh[here])
    fresh[here] = value
    words[at] = value
    return np.int64(value != before)


@jit_flat
def _replace_values(plan, groups, chunk):
    """Replace the values delivered last, which are written to `quotients`, with the new ones.

    A note's TAKEN is 1 if the group's row is retracted, and GIVEN is 1 if a row is inserted; both are 0 where it stays
    the same. Returns the number of all these rows.
    """
    notes, fresh, previous, places, words = chunk.notes, chunk.fresh, chunk.quotients, plan.places, groups.words
    noted, size = np.uint64(chunk.cursor[NOTED]), np.uint64(chunk.size)
    width, group_words = np.uint64(len(places)), np.uint64(groups.size)
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
def _write_pairs(end, plan, keys, chunk, output):
    """Each group retracts one row and inserts one."""
    notes, fresh, previous = chunk.notes, chunk.fresh, chunk.quotients
    noted, size, n_keys = np.uint64(chunk.cursor[NOTED]), np.uint64(chunk.size), np.uint64(plan.n_keys)
    out_tick, out_sign, out = output.tick, output.sign, output.columns
    for i in range(noted):
        out_tick[end + _TWO * i] = out_tick[end + _TWO * i + _ONE] = notes[NOTE_TICK, i]
    for i in range(noted):
        out_sign[end + _TWO * i] = -1
        out_sign[end + _TWO * i + _ONE] = 1
    for a in range(np.uint64(len(plan.places))):
        for i in range(noted):
            out[n_keys + a, end + _TWO * i] = previous[a * size + i]
            out[n_keys + a, end + _TWO * i + _ONE] = fresh[a * size + i]
    for c in range(n_keys):
        for i in range(noted):
            key = keys[np.uint64(notes[NOTE_GROUP, i]) * n_keys + c]
            out[c, end + _TWO * i] = out[c, end + _TWO * i + _ONE] = key


@jit_flat
def _deliver(plan, groups, keys, chunk, output):
    """Write the changes of the noted groups' rows, column by column."""
    cursor, notes, fresh, previous = chunk.cursor, chunk.notes, chunk.fresh, chunk.quotients
    noted, size, end = np.uint64(cursor[NOTED]), np.uint64(chunk.size), np.uint64(cursor[OUT])
    n_keys, out_tick, out_sign, out = np.uint64(plan.n_keys), output.tick, output.sign, output.columns
    changes = np.uint64(_replace_values(plan, groups, chunk))
    cursor[OUT] = np.int64(end + changes)
    if changes == _TWO * noted:
        _write_pairs(end, plan, keys, chunk, output)
        return
    for i in range(noted):
        # Both rows are written; one that is not needed is overwritten by the next.
        taken, given = end, end + np.uint64(notes[TAKEN, i])
        end = given + np.uint64(notes[GIVEN, i])
        notes[TAKEN, i], notes[GIVEN, i] = np.int64(taken), np.int64(given)
        out_tick[taken] = out_tick[given] = notes[NOTE_TICK, i]
        out_sign[taken] = -1
        out_sign[given] = 1
    for a in range(np.uint64(len(plan.places))):
        for i in range(noted):
            out[n_keys + a, notes[TAKEN, i]] = previous[a * size + i]
            out[n_keys + a, notes[GIVEN, i]] = fresh[a * size + i]
    for c in range(n_keys):
        for i in range(noted):
            key = keys[np.uint64(notes[NOTE_GROUP, i]) * n_keys + c]
            out[c, notes[TAKEN, i]] = out[c, notes[GIVEN, i]] = key


@jit_inline
def _weigh_sums(a, port, chunk, weights):
    """Write to `weights`, from a * size on, how often each member of an aggregate of an input counts."""
    notes, start, noted = chunk.notes, np.uint64(a * chunk.size), np.uint64(chunk.cursor[NOTED])
    for i in range(noted):
        weights[start + i] = 1
    for p in range(OF_INPUT, np.uint64(len(notes))):
        if p != OF_INPUT + np.uint64(port):
            for i in range(noted):
                weights[start + i] *= notes[p, i]


@jit_flat
def _find_short_sums(plan, chunk, join):
    """The ids of sums of 64 bits; in a join each member counts once for each combination of the other inputs' rows."""
    functions, fresh, scales, divisors, weights = (
        plan.functions, chunk.fresh, chunk.scales, chunk.divisors, chunk.quotients
    )  # fmt: skip
    for a in range(len(functions)):
        if functions[a] == SUM:
            start, end = np.uint64(a * chunk.size), np.uint64(a * chunk.size + chunk.cursor[NOTED])
            if join is not None:
                _weigh_sums(a, plan.ports[a], chunk, weights)
            missing = np.int64(0)
            for i in range(start, end):
                tag = np.int64(TAG_INTEGER if scales[i] == 0 else TAG_DECIMAL)
                found = short_times_id(tag, fresh[i], weights[i] if join is not None else np.int64(1))
                is_found = (divisors[i] == SHORT_SUM) & (found != 0)
                fresh[i] = found if is_found else fresh[i]
                divisors[i] = 0 if is_found else divisors[i]
                missing |= np.int64(divisors[i] == SHORT_SUM)
            if missing:
                for i in range(start, end):
                    if divisors[i] == SHORT_SUM:
                        tag = np.int64(TAG_INTEGER if scales[i] == 0 else TAG_DECIMAL)
                        weight = weights[i] if join is not None else np.int64(1)
                        fresh[i] = large_id(tag, fresh[i], weight, chunk.cursor, chunk.deferred, chunk.deferred_real)


@jit_flat
def _forget_terms(plan, groups, counts, chunk):
    """Clear the terms of empty groups."""
    for i in range(np.uint64(chunk.cursor[NOTED])):
        group = chunk.notes[NOTE_GROUP, i]
        if chunk.notes[THERE, i] == 0 and counts[group] == 0:
            forget(plan.functions, plan.places, groups.words, group * groups.size)


@jit_flat
def _tell_places(plan, groups, chunk):
    """Record the positions of the values that have no ids yet."""
    places, words = plan.places, groups.words
    for i in range(np.uint64(chunk.cursor[NOTED])):
        for a in range(len(places)):
            at = np.uint64(chunk.notes[NOTE_GROUP, i] * groups.size + places[a] - 1)
            if words[at] >> TAG_SHIFT == PROVISIONAL >> TAG_SHIFT:
                chunk.deferred[words[at] - PROVISIONAL, DEFERRED_PLACE] = np.int64(at)


@jit_flat
def _count_all(functions, chunk, join):
    """The values of COUNT(*)."""
    fresh, there, size, noted = chunk.fresh, chunk.notes[THERE], np.uint64(chunk.size), np.uint64(chunk.cursor[NOTED])
    for a in range(np.uint64(len(functions))):
        if functions[a] == COUNT_ALL:
            missing = np.int64(0)
            for i in range(noted):
                found = scaled_id(np.int64(TAG_INTEGER), there[i], np.int64(0))
                missing |= np.int64(found == 0)
                fresh[a * size + i] = found
            if join is not None and missing:
                for i in range(noted):
                    fresh[a * size + i] = count_id(there[i], chunk.cursor, chunk.deferred, chunk.deferred_real)


@jit_flat
def _end_chunk(plan, groups, index, chunk, join, terms, output):
    """Compute the values that are still missing in the notes, and deliver the changes."""
    _count_all(plan.functions, chunk, join)
    _find_averages(plan.functions, chunk)
    _find_short_sums(plan, chunk, join)
    if terms is not None:
        _forget_terms(plan, groups, index.counts, chunk)
    if plan.n_keys == 0:
        for i in range(np.uint64(chunk.cursor[NOTED])):
            # The single group is always there.
            chunk.notes[THERE, i] = 1
    _deliver(plan, groups, index.keys, chunk, output)
    if chunk.cursor[DEFERRED] != 0:
        _tell_places(plan, groups, chunk)


@jit_flat
def open_group(state, out_tick, out_sign, out):
    """The single group of an aggregation without keys, and its row before there is any mapping: entry 0 of an empty
    index."""
    plan, groups, index, chunk = open_plan(state), open_groups(state), open_groups_index(state), open_chunk(state)
    cursor = chunk.cursor
    add_key(index, 0, chunk.scratch, 0, hash_row(chunk.scratch, 0, 0))
    for field in range(4):
        chunk.notes[field, 0] = 0
    for a in range(len(plan.functions)):
        here = a * chunk.size
        chunk.divisors[here] = 0
        chunk.fresh[here] = first_value(a, plan.functions[a], cursor, chunk.deferred, chunk.deferred_real)
    cursor[NOTED] = 1
    _end_chunk(plan, groups, index, chunk, None, None, Output(out_tick, out_sign, out))


@jit_flat
def _start_chunk(given, plan, groups, index, chunk, join):
    """Find the groups of as many rows as there is room for, and make their notes. Returns DONE, or why it stopped."""
    cursor = chunk.cursor
    first, count = cursor[FIRST], np.int64(len(given.tick))
    stop = _end_of_chunk(given.tick, first, count, chunk.size)
    if stop == first:
        return CHUNK_SMALL
    if plan.is_fifo and cursor[TAIL] - cursor[HEAD] + stop - first > len(groups.queue):
        return QUEUE_FULL
    end = _find_groups(stop, given, plan, groups, index, chunk)
    if end < 0:
        return NOT_THERE
    if end == first:
        return INDEX_FULL
    cursor[STOP] = end
    return np.int64(_note(given, groups, index, chunk, join))


@jit_flat
def _apply(a, given, plan, groups, chunk, join, terms, numbers, wide):
    """Apply an aggregate's column. Code for those of `join`, `terms`, `numbers` and `wide` that are None is not compiled."""
    function = plan.functions[a]
    if function == COUNT:
        return take_counts(a, given, plan, groups, chunk, join)
    if function == SUM or function == AVG:
        if numbers is not None:
            return take_sums(a, given, plan, groups, chunk, join, numbers)
        if wide is not None:
            return take_differences(a, given, plan, groups, chunk, wide)
    if terms is not None:
        if function == CONCAT:
            return take_texts(a, given, plan, groups, chunk, terms)
        if function != COUNT_ALL:
            return take_extremes(a, given, plan, groups, chunk, terms, numbers)
    return DONE


@jit_flat
def _group(given, state, join, terms, numbers, wide, output):
    """Aggregate rows from cursor[FIRST] and the pass cursor[PASS] on; writes the changes at each tick.

    Returns DONE, or why it stopped: it continues there when it is called again.
    """
    plan, groups, chunk = open_plan(state), open_groups(state), open_chunk(state)
    index, distinct, cursor = open_groups_index(state), open_distinct_index(state), chunk.cursor
    while True:
        if cursor[PASS] == LOCATE:
            if cursor[FIRST] == len(given.tick):
                return DONE
            status = np.int64(_start_chunk(given, plan, groups, index, chunk, join))
            if status != DONE:
                return status
            cursor[PASS] = 1
            cursor[AT] = -1
        while cursor[PASS] <= len(plan.functions):
            a = cursor[PASS] - 1
            if cursor[AT] < 0:
                _take_signs(given, join, plan.ports[a], chunk)
                if plan.distinct[a] and not only_new(a, given, plan, chunk, distinct):
                    return DISTINCT_FULL
                cursor[AT] = 0
            status = np.int64(_apply(a, given, plan, groups, chunk, join, terms, numbers, wide))
            if status != DONE:
                return status
            cursor[PASS] += 1
            cursor[AT] = -1
        _end_chunk(plan, groups, index, chunk, join, terms, output)
        cursor[FIRST] = cursor[STOP]
        cursor[PASS] = LOCATE


@jit_flat
def group(state, numbers, tick, sign, keyed, columns, values, out_tick, out_sign, out):
    """Aggregate a delta's rows; see Input of group_records.py. `state`: the address of the operator's record.

    `numbers`: the address of those of hashed literals. Returns DONE, or why it stopped: it continues there when it is
    called again.
    """
    given, output = Input(tick, sign, keyed, columns, values), Output(out_tick, out_sign, out)
    return _group(given, state, None, None, open_numbers(numbers), None, output)


@jit_flat
def group_terms(state, numbers, texts, spans, tick, sign, keyed, columns, values, out_tick, out_sign, out):
    """`group` for aggregates that keep terms. `texts` and `spans`: the dictionary's."""
    given, output = Input(tick, sign, keyed, columns, values), Output(out_tick, out_sign, out)
    return _group(given, state, None, open_terms(state, texts, spans), open_numbers(numbers), None, output)


@jit_flat
def group_joined(state, numbers, tick, sign, port, keyed, arguments, out_tick, out_sign, out):
    """`group` for the rows of a join's inputs. `port`: each row's input.

    Each aggregate has a column of its own in `arguments`, 0 in rows of other inputs.
    """
    given, output = Input(tick, sign, keyed, arguments, arguments), Output(out_tick, out_sign, out)
    return _group(given, state, open_join(state, port), None, open_numbers(numbers), None, output)


@jit_flat
def group_joined_terms(state, numbers, texts, spans, tick, sign, port, keyed, arguments, out_tick, out_sign, out):
    """`group_joined` for aggregates that keep terms."""
    given, output = Input(tick, sign, keyed, arguments, arguments), Output(out_tick, out_sign, out)
    join, terms = open_join(state, port), open_terms(state, texts, spans)
    return _group(given, state, join, terms, open_numbers(numbers), None, output)


@jit_flat
def group_differences(state, tick, sign, columns, wide, wide_apart, out_tick, out_sign, out):
    """`group` for rows whose columns for SUM and AVG are differences (weighted_sums.py).

    A sign is 0 where a row changes only these. `wide` and `wide_apart`: the accumulators of those that three words do
    not hold.
    """
    given, output = Input(tick, sign, columns, columns, columns), Output(out_tick, out_sign, out)
    return _group(given, state, None, None, None, Wide(wide, wide_apart), output)


@jit_flat
def group_differences_terms(state, texts, spans, tick, sign, columns, wide, wide_apart, out_tick, out_sign, out):
    """`group_differences` for aggregates that keep terms."""
    given, output = Input(tick, sign, columns, columns, columns), Output(out_tick, out_sign, out)
    return _group(given, state, None, open_terms(state, texts, spans), None, Wide(wide, wide_apart), output)


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
