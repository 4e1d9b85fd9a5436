"""Aggregation below a join: inputs that share a key are aggregated by that key, and never joined row by row.

One input is the carrier: it has those of the group's variables that are not in the key. Its mappings are kept as rows,
one for each key and values of these variables, with a counter and, for aggregates of its own variables, accumulators
(accumulators.py). Of each other input a key keeps only a counter and accumulators. A row stands for counter * product
of the other inputs' counters results of the join. The row's contribution to its group is sums times counters, and for
MIN and MAX the single extreme of its key.

At each tick the carrier's changes are applied first, against the other inputs as they were; each affects one row. Then
the other inputs' changes are applied by key, after a snapshot of the key's record; their combined difference changes
the contributions of the key's rows, and nothing is done where there is none.

Changes of contributions are written as rows of a delta of their own, which is then aggregated like the input of any
GROUP BY (group_by.py).

Records by key and by row, and the rows of a step, are those of factorised_records.py.

Contributions: tick, sign (0 where a contribution only changes, with a sign where it appears or vanishes), and columns:
the group's keys, then those by aggregate, from COLUMNS on: for MIN and MAX the retracted and the inserted extreme, 0
for none; for others a difference (weighted_sums.py). `change`: by aggregate, such a difference, or the extremes before
and after a change.

Where there are only MIN and MAX `wide` is None, and where there is neither `heap` is: for such a caller the code for
them is not compiled. So there are kernels for each (put_extremes, put_sums, put_all), and two of them also for the most
common shape of a query, without loops over one or two.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.aggregates.accumulators import DONE, MAX, NOT_THERE, OVERFLOW, SCALE, SUM_WORDS, TOO_MANY
from cqels_py.kernels.aggregates.exact_float_sums import REAL_WORDS, copy_reals
from cqels_py.kernels.aggregates.factorised_records import (
    BOUND,
    COUNTER,
    COUNTERS,
    HEAD,
    LOCATED_ROWS,
    NEXT,
    NUMBER,
    PREVIOUS,
    ROWS,
    SNAP,
    TERM,
    find_entries,
    prefetch_rows,
)
from cqels_py.kernels.aggregates.factorised_state import (
    FLUSHED,
    HEAP,
    HEAP_META,
    LOCATED,
    LOCATED_TO,
    MADE,
    NEXT_ROW,
    ROW,
    SNAPS,
    TICK,
    VISITED,
    WIDE,
    Terms,
    open_common_plan,
    open_contributions,
    open_narrow_contributions,
    open_plan,
    open_records,
    open_snaps,
    open_step,
)
from cqels_py.kernels.aggregates.group_records import Numbers
from cqels_py.kernels.aggregates.weighted_sums import (
    DIFFERENCE_WORDS,
    Accumulator,
    find_difference,
    is_no_difference,
    put_argument,
    put_difference,
    put_times,
    take_argument,
    times,
)
from cqels_py.kernels.compiler.jit import jit_flat, jit_inline
from cqels_py.kernels.primitives.select import select_branchless
from cqels_py.kernels.primitives.state_record import int64s
from cqels_py.kernels.structures.heaps import bag_first
from cqels_py.kernels.structures.key_index import count_entry, open_index
from cqels_py.kernels.structures.monotonic_queue import extreme_put, extreme_room

# Why a kernel stopped, in addition to the reasons of accumulators.py; ENOUGH: at the end of a tick. KEYS_FULL: there
# is no room for the keys and rows of the next LOCATED_ROWS rows.
TERMS_FULL, SNAPS_FULL, CONTRIBUTIONS_FULL, ENOUGH, KEYS_FULL = range(6, 11)

_ENOUGH_CONTRIBUTIONS = 7_900
"""The number of contributions that are aggregated together."""


@jit_inline
def _is_extreme(kind, wide):
    """Is an aggregate MIN or MAX? Where nothing is summed all are."""
    return wide is None or kind == TERM


@jit_inline
def _others(words, at, other_inputs, wide):
    """The product of the counters of all inputs but the carrier, in the key's record at `at`; -1: too large.

    Where nothing is counted, 1 stands for any number but 0.
    """
    product = np.int64(1)
    for i in range(len(other_inputs)):
        count = words[at + COUNTERS + other_inputs[i]]
        if wide is None:
            product &= np.int64(count != 0)
        elif count == 0:
            return count
        else:
            product = times(product, count)
    return product


@jit_inline
def _put_extreme(before, after, lived, lives, column, k, out):
    """Write the change of an extreme in a contribution. Returns whether there is one."""
    differs = (before != after) | (not lived) | (not lives)
    out[column, k] = select_branchless(lived & differs, before, np.int64(0))
    out[column + 1, k] = select_branchless(lives & differs, after, np.int64(0))
    return differs


@jit_inline
def _put_count(difference, appears, column, k, out):
    out[column, k] = difference
    out[column + 1, k] = appears
    out[column + 2, k] = 0


@jit_inline
def _contributions_full(cursor, aggregates, out, wide):
    """Is there no room for one more row's contribution?"""
    if wide is None:
        return cursor[MADE] == len(out.tick)
    return cursor[MADE] == len(out.tick) or REAL_WORDS * (cursor[WIDE] + aggregates) > len(out.wide_apart)


@jit_inline
def _end_contribution(appears, row, plan, cursor, records, out):
    """Complete a row's contribution."""
    k = cursor[MADE]
    out.tick[k] = cursor[TICK]
    out.sign[k] = appears
    for c in range(len(plan.group_columns)):
        out.columns[c, k] = records.row_keys[row * records.row_width + plan.group_columns[c]]
    cursor[MADE] = k + 1
    cursor[VISITED] += 1


@jit_inline
def _take_snapshot(key, plan, cursor, records, snaps, heap, wide):
    """Copy a key's record before the tick's first change by an input other than the carrier."""
    snap, key_at = cursor[SNAPS], key * records.key_size
    snap_at = snap * records.key_size
    snaps.key[snap] = key
    for i in range(len(plan.other_inputs)):
        counter = COUNTERS + plan.other_inputs[i]
        snaps.words[snap_at + counter] = records.key_words[key_at + counter]
    for a in range(len(plan.kinds)):
        if plan.ports[a] == plan.carrier or plan.kinds[a] == ROWS:
            continue
        at = plan.local[a]
        if _is_extreme(plan.kinds[a], wide):
            snaps.words[snap_at + at] = bag_first(records.key_words, key_at + at, heap)
        elif wide is not None:
            for w in range(at, at + (1 if plan.kinds[a] == BOUND else SUM_WORDS)):
                snaps.words[snap_at + w] = records.key_words[key_at + w]
    if wide is not None:
        apart_n = records.key_apart_n
        for w in range(0, apart_n, REAL_WORDS):
            copy_reals(snaps.apart, snap * apart_n + w, records.key_apart, key * apart_n + w)
    records.key_words[key_at + SNAP] = snap + 1
    cursor[SNAPS] = snap + 1


@jit_inline
def _apply_row(row, key, plan, step, keys, records, terms, wide):
    """Apply a row of an input other than the carrier to its key's record."""
    kinds, ports, local = plan.kinds, plan.ports, plan.local
    arguments, key_words, key_at = step.arguments, records.key_words, key * records.key_size
    port, delta = step.port[row], step.sign[row]
    for a in range(len(kinds)):
        if ports[a] == port and _is_extreme(kinds[a], wide) and arguments[a, row] != 0:
            if not extreme_room(plan.expires_fifo[a], key_words, key_at + local[a], delta, terms.heap, terms.heap_meta):
                return TERMS_FULL
    count_entry(keys, key, delta)
    left = key_words[key_at + COUNTERS + port] + delta
    key_words[key_at + COUNTERS + port] = left
    for a in range(len(kinds)):
        if ports[a] != port or kinds[a] == ROWS:
            continue
        at, term = key_at + local[a], arguments[a, row]
        if _is_extreme(kinds[a], wide):
            if term != 0 and not extreme_put(
                plan.expires_fifo[a], key_words, at, delta, term, terms.heap, plan.functions[a] == MAX, terms.texts,
                terms.spans,
            ):  # fmt: skip
                return NOT_THERE
        elif wide is not None:
            if kinds[a] == BOUND:
                key_words[at] += delta * np.int64(term != 0)
                continue
            of_key = key * records.key_apart_n + plan.local_apart[a]
            if not take_argument(
                key_words, at, records.key_apart, of_key, term, delta, terms.hashed_kind, terms.hashed_words, terms.hashed_real
            ):  # fmt: skip
                return OVERFLOW
            if left == 0:
                key_words[at + SCALE] = 0
    return DONE


@jit_inline
def _count_row(row, entry, key, others, counter, plan, step, records, terms, out, wide):
    """Apply a row of the carrier to the counts and sums of its record, which counted `counter`, and write the change of
    its contribution."""
    if wide is None:
        return True
    arguments, local, delta = step.arguments, plan.local, step.sign[row]
    row_words, row_at, key_words, key_at = (
        records.row_words, entry * records.row_size, records.key_words, key * records.key_size,
    )  # fmt: skip
    born, dies, k = counter == 0, counter + delta == 0, step.cursor[MADE]
    appears, ok = np.int64(born) - np.int64(dies), True
    for a in range(len(plan.kinds)):
        kind, at, column = plan.kinds[a], local[a], plan.columns[a]
        if kind == ROWS:
            if others > 0:
                _put_count(delta * others, appears, column, k, out.columns)
        elif kind == BOUND:
            weight = delta * others
            if plan.ports[a] == plan.carrier:
                bound = np.int64(arguments[a, row] != 0)
                row_words[row_at + at] += delta * bound
            else:
                bound = key_words[key_at + at]
                weight = weight // key_words[key_at + COUNTERS + plan.ports[a]] if others > 0 else np.int64(0)
            if others > 0:
                _put_count(bound * weight, appears, column, k, out.columns)
        elif kind == NUMBER and plan.ports[a] == plan.carrier:
            mine, of_row, term = row_at + at, entry * records.row_apart_n + plan.local_apart[a], arguments[a, row]
            ok = ok and take_argument(
                row_words, mine, records.row_apart, of_row, term, delta, terms.hashed_kind, terms.hashed_words, terms.hashed_real
            )  # fmt: skip
            if dies:
                row_words[mine + SCALE] = 0
            if others > 0:
                ok = ok and put_argument(
                    term, delta, others, column, k, out.columns, step.slots, wide, out.wide_apart,
                    Accumulator(records.change, a * DIFFERENCE_WORDS, records.change_apart, REAL_WORDS * a),
                    Numbers(terms.hashed_kind, terms.hashed_words, terms.hashed_real),
                )  # fmt: skip
        elif kind == NUMBER and others > 0:
            weight = others // key_words[key_at + COUNTERS + plan.ports[a]] * delta
            ok = ok and put_times(
                key_words, key_at + at, records.key_apart, key * records.key_apart_n + plan.local_apart[a], weight, column, k,
                out.columns, step.slots, wide, out.wide_apart,
            )  # fmt: skip
    return ok


@jit_inline
def _take_row(row, entry, key, plan, step, keys, own, records, terms, out, wide):
    """Apply a row of the carrier to its record, and write the change of its contribution."""
    cursor, delta, kinds, local = step.cursor, step.sign[row], plan.kinds, plan.local
    row_words, key_words = records.row_words, records.key_words
    row_at, key_at = entry * records.row_size, key * records.key_size
    others = _others(key_words, key_at, plan.other_inputs, wide)
    counter = row_words[row_at + COUNTER]
    born, dies = counter == 0, counter + delta == 0
    if born and delta < 0:
        return NOT_THERE
    if wide is not None and (others < 0 or times(others, counter + 1) < 0):
        return TOO_MANY
    for a in range(len(kinds)):
        if _is_extreme(kinds[a], wide) and plan.ports[a] == plan.carrier and step.arguments[a, row] != 0:
            if not extreme_room(plan.expires_fifo[a], row_words, row_at + local[a], delta, terms.heap, terms.heap_meta):
                return TERMS_FULL
    # From here on only errors stop the row.
    count_entry(keys, key, delta)
    row_words[row_at + COUNTER] = counter + delta
    if len(plan.row_places) > len(plan.key_places) and (born or dies):
        count_entry(own, entry, delta)
    if born:
        _link(entry, row_at, key_at, records)
    elif dies:
        _unlink(entry, row_at, key_at, records)
    k, moves, counted = cursor[MADE], born or dies, False
    for a in range(len(kinds)):
        counted = counted or not _is_extreme(kinds[a], wide)
        if not _is_extreme(kinds[a], wide):
            continue
        if plan.ports[a] == plan.carrier:
            mine, term = row_at + local[a], step.arguments[a, row]
            before = bag_first(row_words, mine, terms.heap)
            if term != 0 and not extreme_put(
                plan.expires_fifo[a], row_words, mine, delta, term, terms.heap, plan.functions[a] == MAX, terms.texts,
                terms.spans,
            ):  # fmt: skip
                return NOT_THERE
            after = bag_first(row_words, mine, terms.heap)
        else:
            before = after = bag_first(key_words, key_at + local[a], terms.heap)
        if others > 0:
            moves |= _put_extreme(before, after, not born, not dies, plan.columns[a], k, out.columns)
    ok = _count_row(row, entry, key, others, counter, plan, step, records, terms, out, wide)
    if others > 0 and (moves or counted):
        _end_contribution(np.int64(born) - np.int64(dies), entry, plan, cursor, records, out)
    return DONE if ok else OVERFLOW


@jit_inline
def _link(row, row_at, key_at, records):
    """Insert a new row as its key's first."""
    row_words, row_size = records.row_words, records.row_size
    first = records.key_words[key_at + HEAD]
    # Without a branch, here and below: where there is no other row, a field of this row that does not matter is
    # written.
    row_words[select_branchless(first > 0, first - 1, row) * row_size + PREVIOUS] = row + 1
    row_words[row_at + PREVIOUS] = 0
    row_words[row_at + NEXT] = first
    records.key_words[key_at + HEAD] = row + 1


@jit_inline
def _unlink(row, row_at, key_at, records):
    row_words, row_size = records.row_words, records.row_size
    previous, following = row_words[row_at + PREVIOUS], row_words[row_at + NEXT]
    head = records.key_words[key_at + HEAD]
    row_words[select_branchless(previous > 0, previous - 1, row) * row_size + NEXT] = following
    row_words[select_branchless(following > 0, following - 1, row) * row_size + PREVIOUS] = previous
    records.key_words[key_at + HEAD] = select_branchless(previous > 0, head, following)


@jit_inline
def _find_changes(snap, before, after, plan, records, snaps, heap, wide):
    """The differences for a key's rows since the snapshot, into `change`. 1: there is one, 0: there is none, -1: a sum
    is too large."""
    kinds, local, key = plan.kinds, plan.local, snaps.key[snap]
    key_words, change, change_apart = records.key_words, records.change, records.change_apart
    key_at, snap_at = key * records.key_size, snap * records.key_size
    differs = (after > 0) != (before > 0)
    for a in range(len(kinds)):
        kind, port, at = kinds[a], plan.ports[a], a * DIFFERENCE_WORDS
        new, old = key_at + local[a], snap_at + local[a]
        if port == plan.carrier:
            # For the carrier's extremes it matters only whether a row has results.
            differs = differs or (not _is_extreme(kind, wide) and after != before)
            continue
        if _is_extreme(kind, wide):
            change[at] = snaps.words[old]
            change[at + 1] = bag_first(key_words, new, heap)
            differs = differs or (change[at] != change[at + 1] and before > 0 and after > 0)
            continue
        if wide is None:
            continue
        # Where there are results, each counter divides their number; where there are none nothing counts.
        weight = after // key_words[key_at + COUNTERS + port] if after > 0 else np.int64(0)
        old_weight = before // snaps.words[snap_at + COUNTERS + port] if before > 0 else np.int64(0)
        if kind == BOUND:
            change[at] = key_words[new] * weight - snaps.words[old] * old_weight
            differs = differs or change[at] != 0
            continue
        now = Accumulator(key_words, new, records.key_apart, key * records.key_apart_n + plan.local_apart[a])
        then = Accumulator(snaps.words, old, snaps.apart, snap * records.key_apart_n + plan.local_apart[a])
        if not find_difference(change, at, change_apart, REAL_WORDS * a, now, weight, then, old_weight):
            return -1
        differs = differs or not is_no_difference(change, at, change_apart, REAL_WORDS * a)
    return 1 if differs else 0


@jit_inline
def _count_change(row, before, after, plan, step, records, out, wide):
    """The effect of `change` on the counts and sums of a row's contribution."""
    if wide is None:
        return True
    change, change_apart, k = records.change, records.change_apart, step.cursor[MADE]
    row_words, row_at = records.row_words, row * records.row_size
    n, ok = row_words[row_at + COUNTER], True
    appears = np.int64(after > 0) - np.int64(before > 0)
    for a in range(len(plan.kinds)):
        kind, column, mine = plan.kinds[a], plan.columns[a], row_at + plan.local[a]
        if kind == ROWS:
            _put_count(n * (after - before), appears, column, k, out.columns)
        elif kind == BOUND and plan.ports[a] == plan.carrier:
            _put_count(row_words[mine] * (after - before), appears, column, k, out.columns)
        elif kind == BOUND:
            _put_count(change[a * DIFFERENCE_WORDS] * n, appears, column, k, out.columns)
        elif kind == NUMBER and plan.ports[a] == plan.carrier:
            ok = ok and put_times(
                row_words, mine, records.row_apart, row * records.row_apart_n + plan.local_apart[a], after - before, column, k,
                out.columns, step.slots, wide, out.wide_apart,
            )  # fmt: skip
        elif kind == NUMBER:
            ok = ok and put_difference(
                change, a * DIFFERENCE_WORDS, change_apart, REAL_WORDS * a, n, column, k, out.columns, step.slots, wide,
                out.wide_apart,
            )  # fmt: skip
    return ok


@jit_inline
def _put_row_contributions(following, before, after, plan, step, records, heap, out, wide):
    """The contributions of a key's rows, from `following` - 1 on, changed by `change`. If the output is full,
    cursor[NEXT_ROW] is the next row; 0 after the last one."""
    cursor, change, row_words, row_size = step.cursor, records.change, records.row_words, records.row_size
    aggregates, lived, lives = len(plan.kinds), before > 0, after > 0
    if following > 0 and row_words[(following - 1) * row_size + NEXT] > 0:
        prefetch_rows(following, records)
    while following > 0:
        row = following - 1
        row_at = row * row_size
        if wide is not None and times(max(after, before), row_words[row_at + COUNTER]) < 0:
            return TOO_MANY
        if _contributions_full(cursor, aggregates, out, wide):
            cursor[NEXT_ROW] = following
            return CONTRIBUTIONS_FULL
        for a in range(aggregates):
            if _is_extreme(plan.kinds[a], wide):
                old, new = change[a * DIFFERENCE_WORDS], change[a * DIFFERENCE_WORDS + 1]
                if plan.ports[a] == plan.carrier:
                    old = new = bag_first(row_words, row_at + plan.local[a], heap)
                _put_extreme(old, new, lived, lives, plan.columns[a], cursor[MADE], out.columns)
        if not _count_change(row, before, after, plan, step, records, out, wide):
            return OVERFLOW
        _end_contribution(np.int64(lives) - np.int64(lived), row, plan, cursor, records, out)
        following = row_words[row_at + NEXT]
    cursor[NEXT_ROW] = 0
    return DONE


@jit_inline
def _change_key(row, key, plan, step, keys, records, snaps, terms, out, wide):
    """Apply a row of an input other than the carrier to its key's record; the effect is determined at the tick's end.

    Or at once, without a snapshot, if no other row may change contributions at that tick's end and nothing is counted.
    """
    cursor, tick, change, key_words = step.cursor, step.tick, records.change, records.key_words
    alone = cursor[SNAPS] == 0 and (row + 1 == len(tick) or tick[row + 1] != tick[row])
    key_at = key * records.key_size
    following, before = key_words[key_at + HEAD], np.int64(0)
    if wide is None and alone:
        before = _others(key_words, key_at, plan.other_inputs, wide)
        for a in range(len(plan.kinds)):
            if plan.ports[a] != plan.carrier:
                change[a * DIFFERENCE_WORDS] = bag_first(key_words, key_at + plan.local[a], terms.heap)
    # Without rows no contribution changes: the carrier's changes of the tick have been applied.
    elif following > 0 and key_words[key_at + SNAP] == 0:
        if cursor[SNAPS] == len(snaps.key):
            return SNAPS_FULL
        _take_snapshot(key, plan, cursor, records, snaps, terms.heap, wide)
    status = _apply_row(row, key, plan, step, keys, records, terms, wide)
    if wide is not None or not alone or status != DONE:
        return status
    after = _others(key_words, key_at, plan.other_inputs, wide)
    differs = after != before
    for a in range(len(plan.kinds)):
        if plan.ports[a] != plan.carrier:
            at = a * DIFFERENCE_WORDS
            change[at + 1] = bag_first(key_words, key_at + plan.local[a], terms.heap)
            differs |= (change[at] != change[at + 1]) & (after > 0)
    if not differs or following == 0:
        return DONE
    status = _put_row_contributions(following, before, after, plan, step, records, terms.heap, out, wide)
    if status == CONTRIBUTIONS_FULL:
        # The row has been applied: the remaining contributions are found from a snapshot of the record before it.
        cursor[ROW] += 1
        _take_snapshot(key, plan, cursor, records, snaps, terms.heap, wide)
        snaps.words[COUNTERS + step.port[row]] -= step.sign[row]
        for a in range(len(plan.kinds)):
            if plan.ports[a] != plan.carrier:
                snaps.words[plan.local[a]] = change[a * DIFFERENCE_WORDS]
    return status


@jit_inline
def _flush(snap, plan, step, records, snaps, heap, out, wide):
    """The contributions of a key's rows after the changes of the inputs other than the carrier at this tick. Resumable
    at a row."""
    key_at, cursor = snaps.key[snap] * records.key_size, step.cursor
    after = _others(records.key_words, key_at, plan.other_inputs, wide)
    before = _others(snaps.words, snap * records.key_size, plan.other_inputs, wide)
    if after < 0 or before < 0:
        return TOO_MANY
    found = _find_changes(snap, before, after, plan, records, snaps, heap, wide)
    if found < 0:
        return OVERFLOW
    if found == 0:
        return DONE
    following = cursor[NEXT_ROW] if cursor[NEXT_ROW] > 0 else records.key_words[key_at + HEAD]
    return _put_row_contributions(following, before, after, plan, step, records, heap, out, wide)


@jit_inline
def _end_tick(plan, step, records, snaps, heap, out, wide):
    """The contributions of all keys that have a snapshot. Returns DONE, or why it stopped at one of them."""
    cursor = step.cursor
    while cursor[FLUSHED] < cursor[SNAPS]:
        snap = cursor[FLUSHED]
        status = _flush(snap, plan, step, records, snaps, heap, out, wide)
        if status != DONE:
            return status
        records.key_words[snaps.key[snap] * records.key_size + SNAP] = 0
        cursor[FLUSHED] = snap + 1
    cursor[SNAPS] = 0
    cursor[FLUSHED] = 0
    return DONE


@jit_inline
def _put_contributions(rows, plan, step, located, keys, own, records, snaps, terms, out, wide):
    """Apply the rows of all inputs from cursor[ROW] on, and write the contributions that change, those of a tick
    together.

    Resumable, for whatever reason it stopped.
    """
    cursor, tick = step.cursor, step.tick
    while True:
        row = cursor[ROW]
        ended = row == len(tick)
        if ended or tick[row] != cursor[TICK]:
            status = _end_tick(plan, step, records, snaps, terms.heap, out, wide)
            if status != DONE or ended:
                return status
            cursor[TICK] = tick[row]
            if cursor[MADE] >= _ENOUGH_CONTRIBUTIONS:
                return ENOUGH
        if row == cursor[LOCATED_TO]:
            last = min(row + LOCATED_ROWS, len(tick))
            if not find_entries(rows, row, last, plan, located, keys, own, records, terms.heap):
                return KEYS_FULL
            cursor[LOCATED_TO] = last
        key = located[row % LOCATED_ROWS]
        if key < 0:
            return NOT_THERE
        if step.port[row] != plan.carrier:
            status = _change_key(row, key, plan, step, keys, records, snaps, terms, out, wide)
        else:
            entry = located[LOCATED_ROWS + row % LOCATED_ROWS]
            if entry < 0:
                return NOT_THERE
            if _contributions_full(cursor, len(plan.kinds), out, wide):
                return CONTRIBUTIONS_FULL
            status = _take_row(row, entry, key, plan, step, keys, own, records, terms, out, wide)
        if status != DONE:
            return status
        cursor[ROW] = row + 1


@jit_inline
def _put_extremes(rows, plan, operator, state, keys, own, terms, contributions):
    own_index = open_index(own)
    return _put_contributions(
        rows, plan, open_step(rows, plan, operator), int64s(operator, LOCATED), open_index(keys), own_index,
        open_records(state, plan, own_index), open_snaps(state), terms, open_narrow_contributions(contributions), None,
    )  # fmt: skip


@jit_inline
def _put_with_sums(rows, plan, operator, state, keys, own, terms, contributions):
    own_index, out = open_index(own), open_contributions(contributions)
    return _put_contributions(
        rows, plan, open_step(rows, plan, operator), int64s(operator, LOCATED), open_index(keys), own_index,
        open_records(state, plan, own_index), open_snaps(state), terms, out, out.wide,
    )  # fmt: skip


@jit_flat
def put_extremes(rows, operator, state, keys, own, contributions, texts, spans):
    """`put_all` where all aggregates are MIN or MAX."""
    terms = Terms(int64s(state, HEAP), int64s(state, HEAP_META), texts, spans, None, None, None)
    return _put_extremes(rows, open_plan(operator), operator, state, keys, own, terms, contributions)


@jit_flat
def put_extreme_of_two(rows, operator, state, keys, own, contributions, texts, spans):
    """`put_extremes` in the most common shape (factorised_state.py)."""
    terms = Terms(int64s(state, HEAP), int64s(state, HEAP_META), texts, spans, None, None, None)
    return _put_extremes(rows, open_common_plan(operator), operator, state, keys, own, terms, contributions)


@jit_flat
def put_sums(rows, operator, state, keys, own, contributions, hashed_kind, hashed_words, hashed_real):
    """`put_all` where no aggregate is MIN or MAX."""
    terms = Terms(None, None, None, None, hashed_kind, hashed_words, hashed_real)
    return _put_with_sums(rows, open_plan(operator), operator, state, keys, own, terms, contributions)


@jit_flat
def put_sum_of_two(rows, operator, state, keys, own, contributions, hashed_kind, hashed_words, hashed_real):
    """`put_sums` in the most common shape (factorised_state.py)."""
    terms = Terms(None, None, None, None, hashed_kind, hashed_words, hashed_real)
    return _put_with_sums(rows, open_common_plan(operator), operator, state, keys, own, terms, contributions)


@jit_flat
def put_all(rows, operator, state, keys, own, contributions, texts, spans, hashed_kind, hashed_words, hashed_real):
    """Apply the rows of all inputs to the state, and write the contributions that change; see `_put_contributions`.

    `operator`, `state`, `keys`, `own`, `contributions`: the addresses of their records; `own`: the index of the rows.
    Arguments with tag 15 refer to `hashed_*`.
    """
    terms = Terms(int64s(state, HEAP), int64s(state, HEAP_META), texts, spans, hashed_kind, hashed_words, hashed_real)
    return _put_with_sums(rows, open_plan(operator), operator, state, keys, own, terms, contributions)
