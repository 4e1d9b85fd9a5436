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
them is not compiled. `other_inputs` (the inputs other than the carrier), `key_places` and `row_places` (of the ids of a key
and of a row), `group_columns` and `of_aggregates` are arrays, or tuples: the kernel is compiled for the length of
these, and then has no loops over one or two.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.aggregates.accumulators import DONE, MAX, NOT_THERE, OVERFLOW, SCALE, SUM_WORDS, TOO_MANY
from cqels_py.kernels.aggregates.exact_float_sums import REAL_WORDS, copy_reals
from cqels_py.kernels.aggregates.factorised_records import (
    BOUND,
    COLUMNS,
    COUNTER,
    COUNTERS,
    EXPIRES_FIFO,
    FIRST,
    FUNCTIONS,
    HEAD,
    KINDS,
    LOCAL,
    LOCAL_APART,
    LOCATED_ROWS,
    NEXT,
    NUMBER,
    PORTS,
    PREVIOUS,
    ROW_PORT,
    ROW_SIGN,
    ROW_TICK,
    ROWS,
    SNAP,
    TERM,
    find_entries,
    prefetch_rows,
)
from cqels_py.kernels.aggregates.weighted_sums import (
    DIFFERENCE_WORDS,
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
from cqels_py.kernels.structures.hash_table import ZERO
from cqels_py.kernels.structures.heaps import bag_first
from cqels_py.kernels.structures.monotonic_queue import extreme_put, extreme_room

# Why a kernel stopped, in addition to the reasons of accumulators.py; ENOUGH: at the end of a tick.
TERMS_FULL, SNAPS_FULL, CONTRIBUTIONS_FULL, ENOUGH = range(6, 10)

# Cursor. MADE and WIDE: the number of contributions written, and of accumulators of `wide` used; VISITED is kept from
# step to step and counts the contributions.
TICK, ROW, LOCATED, SNAPS, FLUSHED, NEXT_ROW, MADE, WIDE, VISITED = range(9)
FIELDS = VISITED + 1

_ENOUGH_CONTRIBUTIONS = 7_900
"""The number of contributions that are aggregated together."""


@jit_inline
def _is_extreme(kind, wide):
    """Is an aggregate MIN or MAX? Where nothing is summed all are."""
    return wide is None or kind == TERM


@jit_inline
def _count(counts, entry, step, meta):
    """Change an index's counter."""
    before = counts[entry]
    counts[entry] = before + step
    meta[ZERO] += np.int64(before + step == 0) - np.int64(before == 0)


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
def _contributions_full(cursor, aggregates, out_tick, wide_apart):
    """Is there no room for one more row's contribution?"""
    if wide_apart is None:
        return cursor[MADE] == len(out_tick)
    return cursor[MADE] == len(out_tick) or REAL_WORDS * (cursor[WIDE] + aggregates) > len(wide_apart)


@jit_inline
def _end_contribution(appears, row, row_keys, row_width, group_columns, cursor, out_tick, out_sign, out):
    """Complete a row's contribution."""
    k = cursor[MADE]
    out_tick[k] = cursor[TICK]
    out_sign[k] = appears
    for c in range(len(group_columns)):
        out[c, k] = row_keys[row * row_width + group_columns[c]]
    cursor[MADE] = k + 1
    cursor[VISITED] += 1


@jit_inline
def _take_snapshot(
    key, other_inputs, carrier, of_aggregates, cursor, key_size, key_words, key_apart_n, key_apart, snap_key, snap_words, snap_apart,
    heap, wide
):  # fmt: skip
    """Copy a key's record before the tick's first change by an input other than the carrier."""
    kinds, ports, local = of_aggregates[KINDS], of_aggregates[PORTS], of_aggregates[LOCAL]
    snap, key_at = cursor[SNAPS], key * key_size
    snap_at = snap * key_size
    snap_key[snap] = key
    for i in range(len(other_inputs)):
        counter = COUNTERS + other_inputs[i]
        snap_words[snap_at + counter] = key_words[key_at + counter]
    for a in range(len(kinds)):
        if ports[a] == carrier or kinds[a] == ROWS:
            continue
        at = local[a]
        if _is_extreme(kinds[a], wide):
            snap_words[snap_at + at] = bag_first(key_words, key_at + at, heap)
        elif wide is not None:
            for w in range(at, at + (1 if kinds[a] == BOUND else SUM_WORDS)):
                snap_words[snap_at + w] = key_words[key_at + w]
    if wide is not None:
        for w in range(0, key_apart_n, REAL_WORDS):
            copy_reals(snap_apart, snap * key_apart_n + w, key_apart, key * key_apart_n + w)
    key_words[key_at + SNAP] = snap + 1
    cursor[SNAPS] = snap + 1


@jit_inline
def _apply_row(
    row, key, port, delta, of_aggregates, arguments, k_counts, k_meta, key_size, key_words, key_apart_n, key_apart, heap, heap_meta,
    texts, spans, hashed_kind, hashed_words, hashed_real, wide,
):  # fmt: skip
    """Apply a row of an input other than the carrier to its key's record."""
    kinds, ports, local, local_apart, functions = (
        of_aggregates[KINDS], of_aggregates[PORTS], of_aggregates[LOCAL], of_aggregates[LOCAL_APART], of_aggregates[FUNCTIONS],
    )  # fmt: skip
    key_at, expires_fifo = key * key_size, of_aggregates[EXPIRES_FIFO]
    for a in range(len(kinds)):
        if ports[a] == port and _is_extreme(kinds[a], wide) and arguments[a, row] != 0:
            if not extreme_room(expires_fifo[a], key_words, key_at + local[a], delta, heap, heap_meta):
                return TERMS_FULL
    _count(k_counts, key, delta, k_meta)
    left = key_words[key_at + COUNTERS + port] + delta
    key_words[key_at + COUNTERS + port] = left
    for a in range(len(kinds)):
        if ports[a] != port or kinds[a] == ROWS:
            continue
        at, term = key_at + local[a], arguments[a, row]
        if _is_extreme(kinds[a], wide):
            if term != 0 and not extreme_put(
                expires_fifo[a], key_words, at, delta, term, heap, functions[a] == MAX, texts, spans
            ):
                return NOT_THERE
        elif wide is not None:
            if kinds[a] == BOUND:
                key_words[at] += delta * np.int64(term != 0)
                continue
            of_key = key * key_apart_n + local_apart[a]
            if not take_argument(key_words, at, key_apart, of_key, term, delta, hashed_kind, hashed_words, hashed_real):
                return OVERFLOW
            if left == 0:
                key_words[at + SCALE] = 0
    return DONE


@jit_inline
def _count_row(
    row, entry, key, delta, others, born, dies, carrier, of_aggregates, arguments, slots, k, row_at, row_words, row_apart_n,
    row_apart, key_at, key_words, key_apart_n, key_apart, change, change_apart, hashed_kind, hashed_words, hashed_real, out,
    wide, wide_apart,
):  # fmt: skip
    """Apply a row of the carrier to the counts and sums of its record, and of its contribution, which is written at
    `k`."""
    if wide is None:
        return True
    kinds, ports, local, local_apart, columns = (
        of_aggregates[KINDS], of_aggregates[PORTS], of_aggregates[LOCAL], of_aggregates[LOCAL_APART], of_aggregates[COLUMNS],
    )  # fmt: skip
    appears, ok = np.int64(born) - np.int64(dies), True
    for a in range(len(kinds)):
        kind, at, column = kinds[a], local[a], columns[a]
        if kind == ROWS:
            if others > 0:
                _put_count(delta * others, appears, column, k, out)
        elif kind == BOUND:
            weight = delta * others
            if ports[a] == carrier:
                bound = np.int64(arguments[a, row] != 0)
                row_words[row_at + at] += delta * bound
            else:
                bound = key_words[key_at + at]
                weight = weight // key_words[key_at + COUNTERS + ports[a]] if others > 0 else np.int64(0)
            if others > 0:
                _put_count(bound * weight, appears, column, k, out)
        elif kind == NUMBER and ports[a] == carrier:
            mine, of_row, term = row_at + at, entry * row_apart_n + local_apart[a], arguments[a, row]
            ok = ok and take_argument(
                row_words, mine, row_apart, of_row, term, delta, hashed_kind, hashed_words, hashed_real
            )
            if dies:
                row_words[mine + SCALE] = 0
            if others > 0:
                ok = ok and put_argument(
                    term, delta, others, column, k, out, slots, wide, wide_apart, change, a * DIFFERENCE_WORDS, change_apart,
                    REAL_WORDS * a, hashed_kind, hashed_words, hashed_real,
                )  # fmt: skip
        elif kind == NUMBER and others > 0:
            weight = others // key_words[key_at + COUNTERS + ports[a]] * delta
            ok = ok and put_times(
                key_words, key_at + at, key_apart, key * key_apart_n + local_apart[a], weight, column, k, out, slots, wide,
                wide_apart,
            )  # fmt: skip
    return ok


@jit_inline
def _take_row(
    row, entry, key, delta, others, carrier, of_aggregates, arguments, cursor, slots, k_counts, k_meta, key_size, key_words,
    key_apart_n, key_apart, is_row_counted, r_counts, r_meta, row_size, row_words, row_apart_n, row_apart, row_keys, row_width,
    group_columns, change, change_apart, heap, heap_meta, texts, spans, hashed_kind, hashed_words, hashed_real, out_tick,
    out_sign, out, wide, wide_apart,
):  # fmt: skip
    """Apply a row of the carrier to its record, and write the change of its contribution."""
    kinds, ports, local, functions, columns = (
        of_aggregates[KINDS], of_aggregates[PORTS], of_aggregates[LOCAL], of_aggregates[FUNCTIONS], of_aggregates[COLUMNS],
    )  # fmt: skip
    aggregates, expires_fifo = len(kinds), of_aggregates[EXPIRES_FIFO]
    row_at, key_at = entry * row_size, key * key_size
    counter = row_words[row_at + COUNTER]
    born, dies = counter == 0, counter + delta == 0
    if born and delta < 0:
        return NOT_THERE
    if wide is not None and (others < 0 or times(others, counter + 1) < 0):
        return TOO_MANY
    for a in range(aggregates):
        if _is_extreme(kinds[a], wide) and ports[a] == carrier and arguments[a, row] != 0:
            if not extreme_room(expires_fifo[a], row_words, row_at + local[a], delta, heap, heap_meta):
                return TERMS_FULL
    # From here on only errors stop the row.
    _count(k_counts, key, delta, k_meta)
    row_words[row_at + COUNTER] = counter + delta
    if is_row_counted and (born or dies):
        _count(r_counts, entry, delta, r_meta)
    if born:
        _link(entry, row_at, key_at, row_size, row_words, key_words)
    elif dies:
        _unlink(entry, row_at, key_at, row_size, row_words, key_words)
    k, moves, counted = cursor[MADE], born or dies, False
    for a in range(aggregates):
        counted = counted or not _is_extreme(kinds[a], wide)
        if not _is_extreme(kinds[a], wide):
            continue
        if ports[a] == carrier:
            mine, term = row_at + local[a], arguments[a, row]
            before = bag_first(row_words, mine, heap)
            if term != 0 and not extreme_put(
                expires_fifo[a], row_words, mine, delta, term, heap, functions[a] == MAX, texts, spans
            ):
                return NOT_THERE
            after = bag_first(row_words, mine, heap)
        else:
            before = after = bag_first(key_words, key_at + local[a], heap)
        if others > 0:
            moves |= _put_extreme(before, after, not born, not dies, columns[a], k, out)
    ok = _count_row(
        row, entry, key, delta, others, born, dies, carrier, of_aggregates, arguments, slots, k, row_at, row_words, row_apart_n,
        row_apart, key_at, key_words, key_apart_n, key_apart, change, change_apart, hashed_kind, hashed_words, hashed_real, out,
        wide, wide_apart,
    )  # fmt: skip
    if others > 0 and (moves or counted):
        appears = np.int64(born) - np.int64(dies)
        _end_contribution(appears, entry, row_keys, row_width, group_columns, cursor, out_tick, out_sign, out)
    return DONE if ok else OVERFLOW


@jit_inline
def _link(row, row_at, key_at, row_size, row_words, key_words):
    """Insert a new row as its key's first."""
    first = key_words[key_at + HEAD]
    # Without a branch, here and below: where there is no other row, a field of this row that does not matter is
    # written.
    row_words[select_branchless(first > 0, first - 1, row) * row_size + PREVIOUS] = row + 1
    row_words[row_at + PREVIOUS] = 0
    row_words[row_at + NEXT] = first
    key_words[key_at + HEAD] = row + 1


@jit_inline
def _unlink(row, row_at, key_at, row_size, row_words, key_words):
    previous, following, head = row_words[row_at + PREVIOUS], row_words[row_at + NEXT], key_words[key_at + HEAD]
    row_words[select_branchless(previous > 0, previous - 1, row) * row_size + NEXT] = following
    row_words[select_branchless(following > 0, following - 1, row) * row_size + PREVIOUS] = previous
    key_words[key_at + HEAD] = select_branchless(previous > 0, head, following)


@jit_inline
def _find_changes(
    key, snap, before, after, carrier, of_aggregates, key_size, key_words, key_apart_n, key_apart, snap_words, snap_apart, change,
    change_apart, heap, wide,
):  # fmt: skip
    """The differences for a key's rows since the snapshot, into `change`. 1: there is one, 0: there is none, -1: a sum
    is too large."""
    kinds, ports, local, local_apart = (
        of_aggregates[KINDS], of_aggregates[PORTS], of_aggregates[LOCAL], of_aggregates[LOCAL_APART],
    )  # fmt: skip
    key_at, snap_at = key * key_size, snap * key_size
    differs = (after > 0) != (before > 0)
    for a in range(len(kinds)):
        kind, port, at = kinds[a], ports[a], a * DIFFERENCE_WORDS
        new, old = key_at + local[a], snap_at + local[a]
        if port == carrier:
            # For the carrier's extremes it matters only whether a row has results.
            differs = differs or (not _is_extreme(kind, wide) and after != before)
            continue
        if _is_extreme(kind, wide):
            change[at] = snap_words[old]
            change[at + 1] = bag_first(key_words, new, heap)
            differs = differs or (change[at] != change[at + 1] and before > 0 and after > 0)
            continue
        if wide is None:
            continue
        # Where there are results, each counter divides their number; where there are none nothing counts.
        weight = after // key_words[key_at + COUNTERS + port] if after > 0 else np.int64(0)
        old_weight = before // snap_words[snap_at + COUNTERS + port] if before > 0 else np.int64(0)
        if kind == BOUND:
            change[at] = key_words[new] * weight - snap_words[old] * old_weight
            differs = differs or change[at] != 0
            continue
        if not find_difference(
            change, at, change_apart, REAL_WORDS * a, key_words, new, key_apart, key * key_apart_n + local_apart[a], weight,
            snap_words, old, snap_apart, snap * key_apart_n + local_apart[a], old_weight,
        ):  # fmt: skip
            return -1
        differs = differs or not is_no_difference(change, at, change_apart, REAL_WORDS * a)
    return 1 if differs else 0


@jit_inline
def _count_change(
    row, row_at, n, before, after, appears, carrier, of_aggregates, slots, k, row_words, row_apart_n, row_apart, change,
    change_apart, out, wide, wide_apart,
):  # fmt: skip
    """The effect of `change` on the counts and sums of a row's contribution, which is written at `k`; the row counts
    `n` times."""
    if wide is None:
        return True
    kinds, ports, local, local_apart, columns = (
        of_aggregates[KINDS], of_aggregates[PORTS], of_aggregates[LOCAL], of_aggregates[LOCAL_APART], of_aggregates[COLUMNS],
    )  # fmt: skip
    ok = True
    for a in range(len(kinds)):
        kind, column = kinds[a], columns[a]
        if kind == ROWS:
            _put_count(n * (after - before), appears, column, k, out)
        elif kind == BOUND and ports[a] == carrier:
            _put_count(row_words[row_at + local[a]] * (after - before), appears, column, k, out)
        elif kind == BOUND:
            _put_count(change[a * DIFFERENCE_WORDS] * n, appears, column, k, out)
        elif kind == NUMBER and ports[a] == carrier:
            ok = ok and put_times(
                row_words, row_at + local[a], row_apart, row * row_apart_n + local_apart[a], after - before, column, k, out, slots,
                wide, wide_apart,
            )  # fmt: skip
        elif kind == NUMBER:
            ok = ok and put_difference(
                change, a * DIFFERENCE_WORDS, change_apart, REAL_WORDS * a, n, column, k, out, slots, wide, wide_apart
            )  # fmt: skip
    return ok


@jit_inline
def _put_row_contributions(
    following, before, after, carrier, of_aggregates, cursor, slots, row_size, row_words, row_apart_n, row_apart, row_keys,
    row_width, group_columns, change, change_apart, heap, out_tick, out_sign, out, wide, wide_apart,
):  # fmt: skip
    """The contributions of a key's rows, from `following` - 1 on, changed by `change`. If the output is full,
    cursor[NEXT_ROW] is the next row; 0 after the last one."""
    kinds, ports, local, columns = (
        of_aggregates[KINDS], of_aggregates[PORTS], of_aggregates[LOCAL], of_aggregates[COLUMNS],
    )  # fmt: skip
    aggregates = len(kinds)
    lived, lives = before > 0, after > 0
    appears = np.int64(lives) - np.int64(lived)
    if following > 0 and row_words[(following - 1) * row_size + NEXT] > 0:
        prefetch_rows(following, row_words, row_size, row_keys, row_width)
    while following > 0:
        row = following - 1
        row_at = row * row_size
        n = row_words[row_at + COUNTER]
        if wide is not None and times(max(after, before), n) < 0:
            return TOO_MANY
        k = cursor[MADE]
        if _contributions_full(cursor, aggregates, out_tick, wide_apart):
            cursor[NEXT_ROW] = following
            return CONTRIBUTIONS_FULL
        for a in range(aggregates):
            if _is_extreme(kinds[a], wide):
                old, new = change[a * DIFFERENCE_WORDS], change[a * DIFFERENCE_WORDS + 1]
                if ports[a] == carrier:
                    old = new = bag_first(row_words, row_at + local[a], heap)
                _put_extreme(old, new, lived, lives, columns[a], k, out)
        if not _count_change(
            row, row_at, n, before, after, appears, carrier, of_aggregates, slots, k, row_words, row_apart_n, row_apart, change,
            change_apart, out, wide, wide_apart,
        ):  # fmt: skip
            return OVERFLOW
        _end_contribution(appears, row, row_keys, row_width, group_columns, cursor, out_tick, out_sign, out)
        following = row_words[row_at + NEXT]
    cursor[NEXT_ROW] = 0
    return DONE


@jit_inline
def _change_key(
    row, key, port, delta, alone, other_inputs, carrier, of_aggregates, arguments, cursor, slots, k_counts, k_meta, key_size,
    key_words, key_apart_n, key_apart, row_size, row_words, row_apart_n, row_apart, row_keys, row_width, group_columns,
    snap_key, snap_words, snap_apart, change, change_apart, heap, heap_meta, texts, spans, hashed_kind, hashed_words,
    hashed_real, out_tick, out_sign, out, wide, wide_apart,
):  # fmt: skip
    """Apply a row of an input other than the carrier to its key's record; the effect is determined at the tick's end.

    Or at once, without a snapshot, if no other row may change contributions at that tick's end (`alone`) and nothing is
    counted.
    """
    kinds, ports, local = of_aggregates[KINDS], of_aggregates[PORTS], of_aggregates[LOCAL]
    key_at = key * key_size
    following, before = key_words[key_at + HEAD], np.int64(0)
    if wide is None and alone:
        before = _others(key_words, key_at, other_inputs, wide)
        for a in range(len(kinds)):
            if ports[a] != carrier:
                change[a * DIFFERENCE_WORDS] = bag_first(key_words, key_at + local[a], heap)
    # Without rows no contribution changes: the carrier's changes of the tick have been applied.
    elif following > 0 and key_words[key_at + SNAP] == 0:
        if cursor[SNAPS] == len(snap_key):
            return SNAPS_FULL
        _take_snapshot(
            key, other_inputs, carrier, of_aggregates, cursor, key_size, key_words, key_apart_n, key_apart, snap_key, snap_words,
            snap_apart, heap, wide,
        )  # fmt: skip
    status = _apply_row(
        row, key, port, delta, of_aggregates, arguments, k_counts, k_meta, key_size, key_words, key_apart_n, key_apart, heap,
        heap_meta, texts, spans, hashed_kind, hashed_words, hashed_real, wide,
    )  # fmt: skip
    if wide is not None or not alone or status != DONE:
        return status
    after = _others(key_words, key_at, other_inputs, wide)
    differs = after != before
    for a in range(len(kinds)):
        if ports[a] != carrier:
            at = a * DIFFERENCE_WORDS
            change[at + 1] = bag_first(key_words, key_at + local[a], heap)
            differs |= (change[at] != change[at + 1]) & (after > 0)
    if not differs or following == 0:
        return DONE
    status = _put_row_contributions(
        following, before, after, carrier, of_aggregates, cursor, slots, row_size, row_words, row_apart_n, row_apart, row_keys,
        row_width, group_columns, change, change_apart, heap, out_tick, out_sign, out, wide, wide_apart,
    )  # fmt: skip
    if status == CONTRIBUTIONS_FULL:
        # The row has been applied: the remaining contributions are found from a snapshot of the record before it.
        cursor[ROW] += 1
        _take_snapshot(
            key, other_inputs, carrier, of_aggregates, cursor, key_size, key_words, key_apart_n, key_apart, snap_key, snap_words,
            snap_apart, heap, wide,
        )  # fmt: skip
        snap_words[COUNTERS + port] -= delta
        for a in range(len(kinds)):
            if ports[a] != carrier:
                snap_words[local[a]] = change[a * DIFFERENCE_WORDS]
    return status


@jit_inline
def _flush(
    snap, other_inputs, carrier, of_aggregates, cursor, slots, snap_key, key_size, key_words, key_apart_n, key_apart, row_size,
    row_words, row_apart_n, row_apart, row_keys, row_width, group_columns, snap_words, snap_apart, change, change_apart, heap,
    out_tick, out_sign, out, wide, wide_apart,
):  # fmt: skip
    """The contributions of a key's rows after the changes of the inputs other than the carrier at this tick. Resumable
    at a row."""
    key = snap_key[snap]
    after = _others(key_words, key * key_size, other_inputs, wide)
    before = _others(snap_words, snap * key_size, other_inputs, wide)
    if after < 0 or before < 0:
        return TOO_MANY
    found = _find_changes(
        key, snap, before, after, carrier, of_aggregates, key_size, key_words, key_apart_n, key_apart, snap_words, snap_apart,
        change, change_apart, heap, wide,
    )  # fmt: skip
    if found < 0:
        return OVERFLOW
    if found == 0:
        return DONE
    following = cursor[NEXT_ROW] if cursor[NEXT_ROW] > 0 else key_words[key * key_size + HEAD]
    return _put_row_contributions(
        following, before, after, carrier, of_aggregates, cursor, slots, row_size, row_words, row_apart_n, row_apart, row_keys,
        row_width, group_columns, change, change_apart, heap, out_tick, out_sign, out, wide, wide_apart,
    )  # fmt: skip


@jit_flat
def put_contributions(
    rows, cursor, located, other_inputs, carrier, key_places, row_places, group_columns, of_aggregates,
    k_table, k_keys, k_counts, k_free, k_meta, key_size, key_words, key_apart_n, key_apart,
    r_table, r_keys, r_counts, r_free, r_meta, row_size, row_words, row_apart_n, row_apart,
    snap_key, snap_words, snap_apart, change, change_apart, heap, heap_meta, texts, spans, hashed_kind, hashed_words, hashed_real,
    out_tick, out_sign, out, wide, wide_apart,
):  # fmt: skip
    """Process rows of all inputs, from cursor[ROW] on, and write the contributions that change, those of a tick
    together.

    Arguments with tag 15 refer to `hashed_*`. Resumable, for whatever reason it stopped.
    """
    tick, sign, row_port = rows[ROW_TICK], rows[ROW_SIGN], rows[ROW_PORT]
    key_width, row_width, aggregates = len(key_places), len(row_places), len(of_aggregates[KINDS])
    arguments, slots = rows[FIRST + row_width :], cursor[WIDE : WIDE + 1]
    while True:
        row = cursor[ROW]
        ended = row == len(tick)
        if ended or tick[row] != cursor[TICK]:
            while cursor[FLUSHED] < cursor[SNAPS]:
                snap = cursor[FLUSHED]
                status = _flush(
                    snap, other_inputs, carrier, of_aggregates, cursor, slots, snap_key, key_size, key_words, key_apart_n, key_apart,
                    row_size, row_words, row_apart_n, row_apart, r_keys, row_width, group_columns, snap_words, snap_apart, change,
                    change_apart, heap, out_tick, out_sign, out, wide, wide_apart,
                )  # fmt: skip
                if status != DONE:
                    return status
                key_words[snap_key[snap] * key_size + SNAP] = 0
                cursor[FLUSHED] = snap + 1
            cursor[SNAPS] = 0
            cursor[FLUSHED] = 0
            if ended:
                return DONE
            cursor[TICK] = tick[row]
            if cursor[MADE] >= _ENOUGH_CONTRIBUTIONS:
                return ENOUGH
        if row == cursor[LOCATED]:
            cursor[LOCATED] = min(row + LOCATED_ROWS, len(tick))
            find_entries(
                rows, row, cursor[LOCATED], carrier, key_places, row_places, of_aggregates, located,
                k_table, k_keys, k_counts, k_free, k_meta, key_size, key_words, r_table, r_keys, r_counts, r_free, r_meta, row_size,
                row_words, heap,
            )  # fmt: skip
        key, port, delta = located[row % LOCATED_ROWS], row_port[row], sign[row]
        if key < 0:
            return NOT_THERE
        if port != carrier:
            alone = cursor[SNAPS] == 0 and (row + 1 == len(tick) or tick[row + 1] != tick[row])
            status = _change_key(
                row, key, port, delta, alone, other_inputs, carrier, of_aggregates, arguments, cursor, slots, k_counts, k_meta,
                key_size, key_words, key_apart_n, key_apart, row_size, row_words, row_apart_n, row_apart, r_keys, row_width,
                group_columns, snap_key, snap_words, snap_apart, change, change_apart, heap, heap_meta, texts, spans,
                hashed_kind, hashed_words, hashed_real, out_tick, out_sign, out, wide, wide_apart,
            )  # fmt: skip
        else:
            entry = located[LOCATED_ROWS + row % LOCATED_ROWS]
            if entry < 0:
                return NOT_THERE
            if _contributions_full(cursor, aggregates, out_tick, wide_apart):
                return CONTRIBUTIONS_FULL
            status = _take_row(
                row, entry, key, delta, _others(key_words, key * key_size, other_inputs, wide), carrier, of_aggregates, arguments,
                cursor, slots, k_counts, k_meta, key_size, key_words, key_apart_n, key_apart, row_width > key_width, r_counts,
                r_meta, row_size, row_words, row_apart_n, row_apart, r_keys, row_width, group_columns, change, change_apart, heap,
                heap_meta, texts, spans, hashed_kind, hashed_words, hashed_real, out_tick, out_sign, out, wide, wide_apart,
            )  # fmt: skip
        if status != DONE:
            return status
        cursor[ROW] = row + 1
