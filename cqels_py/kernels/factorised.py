"""Aggregation below a join: inputs that share a key are summed up by that key, and never joined row by row.

One input is the carrier: it has those of the group's variables that are not in the key. Its mappings are kept as rows, one for each
key and values of these variables, with a counter and, for aggregates of its own variables, accumulators (of kernels/aggregate.py).
Of each other input a key keeps just a counter and accumulators. A row stands for counter * product of the other inputs' counters
results of the join, and adds to its group's accumulators what these results would: sums times counters, and for MIN and MAX the
one extreme of its key.

At each tick the carrier's changes come first, against the other inputs as they were; they concern one row each. Then the other
inputs' changes are taken in by key, with what stood there before them in a snapshot; the difference that they make together is
added to the groups of the key's rows, and nothing is done where there is none.

By key:   `key_words`: HEAD its first row + 1, SNAP its snapshot + 1, a counter for each input, accumulators; `key_apart`
By row:   `row_words`: GROUP + 1, 0 until it first has results, NEXT and PREVIOUS of its key's rows, + 1, COUNTER, accumulators;
          `row_apart`
By group: as in kernels/aggregate.py; a COUNT is a sum of ones. `live`: the group's rows that have results
`kinds`, `ports`, `local`, `local_apart`: by aggregate, what it needs, the input of its argument, and where its accumulator is there
Rows:     the columns of a step's rows of all inputs: ROW_TICK, ROW_SIGN, ROW_PORT; ORDER, the rows by tick, the carrier's first; the
          hashes of the key and of all of (key, the carrier's own variables of the group), these themselves from FIRST on, and then
          the aggregates' arguments
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.aggregate import (
    APART,
    AVG,
    CURSOR_FIELDS,
    DECIMALS,
    ERRORS,
    HI,
    LATE,
    LO,
    MAX,
    OUT,
    ROW,
    SCALE,
    SUM_WORDS,
    TICK,
    TOUCHED,
    N,
    _add_apart,
    _add_scaled,
    _take_number,
    _take_odd,
    finish_tick,
)
from cqels_py.kernels.decimals import exact_product, negate128, sum128
from cqels_py.kernels.heaps import bag_first, bag_put, bag_room, expect_first
from cqels_py.kernels.jit import jit_flat, jit_inline
from cqels_py.kernels.key_table import FREE, USED, ZERO, add, find, hash_row
from cqels_py.kernels.prefetch import prefetch

# What an aggregate needs of its argument: nothing, whether it is bound, its number, the term.
ROWS, BOUND, NUMBER, TERM = range(4)

# Why a run stopped.
DONE, HEAP_FULL, OVERFLOW, NOT_THERE, SNAPS_FULL, OUT_FULL, TOO_MANY, GROUPS_FULL = range(8)

# cursor, after the fields of kernels/aggregate.py; VISITED counts the rows whose groups a change was added to.
SNAPS = CURSOR_FIELDS
FLUSHED, NEXT_ROW, LOCATED, VISITED = range(SNAPS + 1, SNAPS + 5)
FIELDS = SNAPS + 5
LOCATED_ROWS = 128
"""So many rows are located together."""

# Records: of a key, before its counters; of a row, before its accumulators.
HEAD, SNAP, COUNTERS = range(3)
GROUP, NEXT, PREVIOUS, COUNTER, ROW_WORDS = range(5)
ROW_TICK, ROW_SIGN, ROW_PORT, ORDER, KEY_HASH, ROW_HASH, FIRST = range(7)

# What is known by aggregate, as rows of one array.
KINDS, PORTS, LOCAL, LOCAL_APART, FUNCTIONS, PLACES = range(6)

_PROVISIONAL_INDEX = np.int64((1 << 60) - 1)
_MOST_RESULTS = 2.0**61
_MOST_AVERAGED = 1 << 53
_SAFE_PRODUCT = 4.0e18
_LARGEST_SPLIT = 1e290
_ENTRY_AHEAD, _LINE, _FEW_ROWS = 6, 8, 64


@jit_flat
def times128(hi, lo, factor):
    """(hi, lo) * factor -> (hi, lo, ok); ok is False where 128 bits do not hold it."""
    value = np.int64(lo)
    if (value >> 63) == hi and abs(np.float64(value) * np.float64(factor)) < _SAFE_PRODUCT:
        product = value * factor
        return product >> 63, np.uint64(product), True
    negative = factor < 0
    if negative:
        factor = -factor
    total_hi, total_lo = np.int64(0), np.uint64(0)
    ok = True
    while factor > 0 and ok:
        if factor & 1:
            new_hi, new_lo = sum128(total_hi, total_lo, hi, lo)
            ok = (total_hi ^ hi) < 0 or (total_hi ^ new_hi) >= 0
            total_hi, total_lo = new_hi, new_lo
        factor = factor >> 1
        if factor > 0:
            new_hi, new_lo = sum128(hi, lo, hi, lo)
            ok = ok and (hi ^ new_hi) >= 0
            hi, lo = new_hi, new_lo
    if negative:
        total_hi, total_lo = negate128(total_hi, total_lo)
    return total_hi, total_lo, ok


@jit_inline
def _times(count, other):
    """Of counters; -1 where there are too many results to be counted, which stays so."""
    if count < 0 or np.float64(count) * np.float64(other) >= _MOST_RESULTS:
        return np.int64(-1)
    return count * other


@jit_flat
def _add_apart_times(apart, at, value, weight):
    """Compensated addition of value * weight, whose own rounding is added too."""
    factor = np.float64(weight)
    if abs(value) > _LARGEST_SPLIT:
        _add_apart(apart, at, value * factor, 1)
        return
    product, error = exact_product(value, factor)
    _add_apart(apart, at, product, 1)
    _add_apart(apart, at, error, 1)


@jit_inline
def _settle(words, at, apart, apart_at):
    """A sum of no doubles leaves no rounding behind."""
    if words[at + APART] == 0:
        apart[apart_at] = 0.0
        apart[apart_at + 1] = 0.0


@jit_flat
def _add_wide(words, at, hi, lo, scale, weight):
    """Add (hi, lo) / 10**scale times the weight. False on overflow of 128 bits."""
    hi, lo, ok = times128(hi, lo, weight)
    return ok and _add_scaled(words, at, hi, lo, scale, 1)


@jit_inline
def _add_times(words, at, apart, apart_at, other, place, other_apart, apart_place, weight):
    """Add another accumulator, times the weight. False on overflow of 128 bits.

    All words of an accumulator are sums over its members, but for the scale of HI and LO.
    """
    words[at + N] += other[place + N] * weight
    words[at + ERRORS] += other[place + ERRORS] * weight
    for w in range(DECIMALS, SUM_WORDS):
        words[at + w] += other[place + w] * weight
    hi, lo = other[place + HI], np.uint64(other[place + LO])
    if (hi != 0 or lo != 0) and not _add_wide(words, at, hi, lo, other[place + SCALE], weight):
        return False
    if other_apart[apart_place] != 0.0:
        _add_apart_times(apart, apart_at, other_apart[apart_place], weight)
    if other_apart[apart_place + 1] != 0.0:
        _add_apart_times(apart, apart_at, other_apart[apart_place + 1], weight)
    return True


@jit_inline
def _add_count(words, at, count, weight):
    """Add count * weight ones to a sum. False on overflow of 128 bits."""
    words[at + N] = 1
    return _add_wide(words, at, count >> 63, np.uint64(count), np.int64(0), weight)


@jit_inline
def _take(words, at, apart, apart_at, identifier, sign, odd_kind, odd_words, odd_real):
    """An argument of SUM or AVG comes or goes. False on overflow of 128 bits."""
    if (identifier >> 60) == -1:
        return _take_odd(
            words, at, apart, apart_at, identifier & _PROVISIONAL_INDEX, sign, odd_kind, odd_words, odd_real
        )  # fmt: skip
    return _take_number(words, at, identifier, sign)


@jit_inline
def _clear(words, at, apart, apart_at):
    for w in range(SUM_WORDS):
        words[at + w] = 0
    apart[apart_at] = 0.0
    apart[apart_at + 1] = 0.0


@jit_inline
def _is_nothing(words, at, apart, apart_at):
    for w in range(SUM_WORDS):
        if w != SCALE and words[at + w] != 0:
            return False
    return apart[apart_at] == 0.0 and apart[apart_at + 1] == 0.0


@jit_inline
def _countable(words, at, function):
    """Few enough results for what is counted beside a sum."""
    return words[at + N] < (_MOST_AVERAGED if function == AVG else np.int64(_MOST_RESULTS))


@jit_inline
def _touch(group, cursor, touched, in_touched):
    """Have a group's row made anew at the end of the tick."""
    if not in_touched[group]:
        in_touched[group] = True
        touched[cursor[TOUCHED]] = group
        cursor[TOUCHED] += 1


@jit_inline
def _count(counts, entry, step, meta):
    """Change an index's counter."""
    if counts[entry] == 0:
        meta[ZERO] -= 1
    counts[entry] += step
    if counts[entry] == 0:
        meta[ZERO] += 1


@jit_inline
def _others(words, at, n_ports, carrier):
    """The product of the counters of all inputs but the carrier, in the key's record that starts at `at`."""
    product = np.int64(1)
    for p in range(n_ports):
        if p != carrier:
            product = _times(product, words[at + COUNTERS + p])
    return product


@jit_inline
def _expect_record(entry, words, size, counts):
    """Have an entry's record and counter come nearer."""
    prefetch(counts, entry)
    prefetch(words, entry * size)
    if size > _LINE:
        prefetch(words, entry * size + _LINE)


@jit_inline
def _expect_new(row_words, row_size, row_keys, row_width, free, meta):
    """The same for the places of rows that are not there yet: those that were left last are taken first."""
    following = meta[FREE] - _ENTRY_AHEAD // 2
    if following >= 0:
        prefetch(row_words, free[following] * row_size)
        prefetch(row_keys, free[following] * row_width)


@jit_inline
def _expect_group(row, row_words, row_size, words, group_words, places, kinds, heap, is_next):
    """Have the group of a row (-1: none) come nearer, then what keeps its extremes."""
    group = row_words[row * row_size + GROUP] - 1 if row >= 0 else np.int64(-1)
    if group >= 0:
        if not is_next:
            prefetch(words, group * group_words)
        else:
            for a in range(len(kinds)):
                if kinds[a] == TERM:
                    expect_first(words, group * group_words + places[a], heap)


@jit_inline
def _expect_key(
    key, port, key_words, key_size, row_words, row_size, words, group_words, kinds, ports, local, heap, is_next
):  # fmt: skip
    """The same for a key (-1: none) of an input beside the carrier: its bags and its first row, then the row's group."""
    if key < 0:
        return
    first = key_words[key * key_size + HEAD] - 1
    if not is_next:
        for a in range(len(kinds)):
            if kinds[a] == TERM and ports[a] == port:
                expect_first(key_words, key * key_size + local[a], heap)
        if first >= 0:
            prefetch(row_words, first * row_size)
    elif first >= 0 and row_words[first * row_size + GROUP] > 0:
        prefetch(words, (row_words[first * row_size + GROUP] - 1) * group_words)


@jit_inline
def _find_or_add(columns, row, hashed, way, width, table, mask, keys, counts, free, meta):
    """The entry of a row's key; of one that goes -1 if there is none."""
    entry = find(table, mask, keys, width, columns, row, hashed)
    if entry < 0 and way > 0:
        entry = add(table, mask, keys, width, columns, row, hashed, counts, free, meta)
    return entry


@jit_flat
def _locate(
    rows, first, last, carrier, key_width, row_width, of_aggregates, located,
    k_table, k_keys, k_counts, k_free, k_meta, key_size, key_words, r_table, r_keys, r_counts, r_free, r_meta, row_size, row_words,
    group_words, words, heap,
):  # fmt: skip
    """Find where the rows `first` to `last` - 1 in order have their key's record and, those of the carrier, their own.

    What comes gets one if it has none; -1: what goes has none. Those of the row at position i are at i % LOCATED_ROWS, and
    LOCATED_ROWS further on. What the records lead to is asked for in turn, so that much is under way at once.
    """
    order, sign, row_port = rows[ORDER], rows[ROW_SIGN], rows[ROW_PORT]
    key_hashes, row_hashes, columns = rows[KEY_HASH], rows[ROW_HASH], rows[FIRST : FIRST + row_width]
    kinds, ports, local, places = (
        of_aggregates[KINDS], of_aggregates[PORTS], of_aggregates[LOCAL], of_aggregates[PLACES],
    )  # fmt: skip
    k_mask, r_mask = np.int64(len(k_table) - 1), np.int64(len(r_table) - 1)
    apart = row_width > key_width
    for position in range(first, last):
        prefetch(k_table, key_hashes[order[position]] & k_mask)
        if apart and row_port[order[position]] == carrier:
            prefetch(r_table, row_hashes[order[position]] & r_mask)
    for position in range(first, last):
        row = order[position]
        key = _find_or_add(
            columns, row, key_hashes[row], sign[row], key_width, k_table, k_mask, k_keys, k_counts, k_free, k_meta
        )
        located[position % LOCATED_ROWS] = key
        _expect_record(key, key_words, key_size, k_counts)
        if row_port[row] == carrier:
            entry = key
            if apart:
                if sign[row] > 0:
                    _expect_new(row_words, row_size, r_keys, row_width, r_free, r_meta)
                entry = _find_or_add(
                    columns,
                    row,
                    row_hashes[row],
                    sign[row],
                    row_width,
                    r_table,
                    r_mask,
                    r_keys,
                    r_counts,
                    r_free,
                    r_meta,
                )
                _expect_record(entry, row_words, row_size, r_counts)
            located[LOCATED_ROWS + position % LOCATED_ROWS] = entry
    for is_next in range(2):
        for position in range(first, last):
            port = row_port[order[position]]
            if port == carrier:
                entry = located[LOCATED_ROWS + position % LOCATED_ROWS]
                _expect_group(entry, row_words, row_size, words, group_words, places, kinds, heap, is_next == 1)
            else:
                _expect_key(
                    located[position % LOCATED_ROWS], port, key_words, key_size, row_words, row_size, words, group_words, kinds,
                    ports, local, heap, is_next == 1,
                )  # fmt: skip


@jit_inline
def _expect_rows(head, row_words, row_size, words, group_words, places, kinds, heap):
    """The same for the first rows of a key, where there are several."""
    for is_next in range(2):
        following = head
        rows = 0
        while following > 0 and rows < _FEW_ROWS:
            _expect_group(following - 1, row_words, row_size, words, group_words, places, kinds, heap, is_next == 1)
            following = row_words[(following - 1) * row_size + NEXT]
            rows += 1


@jit_flat
def _swap_room(words, at, before, after, heap, heap_meta):
    """Room in a group's bag for one extreme in the place of another; 0 is none."""
    if before == after:
        return True
    if before != 0 and not bag_room(words, at, -1, heap, heap_meta):
        return False
    return after == 0 or bag_room(words, at, 1, heap, heap_meta)


@jit_flat
def _swap(words, at, before, after, heap, largest, texts, spans):
    if before != after:
        if before != 0:
            bag_put(words, at, -1, before, heap, largest, texts, spans)
        if after != 0:
            bag_put(words, at, 1, after, heap, largest, texts, spans)


@jit_inline
def _is_as_before(words, at, snap_words, snap_at, n_ports, carrier, kinds, ports, local, heap):
    """Is it seen at once that a key means to its rows what it did? A call that finds this out would cost several times as much."""
    counted = False
    for a in range(len(kinds)):
        if kinds[a] != TERM:
            counted = True
        elif ports[a] != carrier and snap_words[snap_at + local[a]] != bag_first(words, at + local[a], heap):
            return False
    for p in range(n_ports):
        if p != carrier and (counted or (words[at + COUNTERS + p] > 0) != (snap_words[snap_at + COUNTERS + p] > 0)):
            return False
    return True


@jit_flat
def _group_of(
    row, row_words, row_at, row_keys, row_width, group_columns, group_key, table, keys, counts, free, meta, shown, live
):  # fmt: skip
    """The group of a row that first has results, which is new if need be; -1 if there is no room for it."""
    n_keys = len(group_columns)
    mask = np.int64(len(table) - 1)
    for c in range(n_keys):
        group_key[c, 0] = row_keys[row * row_width + group_columns[c]]
    hashed = hash_row(group_key, 0, n_keys)
    group = find(table, mask, keys, n_keys, group_key, 0, hashed)
    if group < 0:
        if meta[FREE] == 0 and meta[USED] == len(counts):
            return np.int64(-1)
        group = add(table, mask, keys, n_keys, group_key, 0, hashed, counts, free, meta)
        shown[group] = False
        live[group] = 0
    _count(counts, group, np.int64(1), meta)
    row_words[row_at + GROUP] = group + 1
    return group


@jit_flat
def _flush_key(
    snap, cursor, n_ports, carrier, of_aggregates, group_words, words, apart, live,
    key_size, key_words, key_apart_n, key_apart, row_size, row_words, row_apart_n, row_apart, snap_key, snap_words, snap_apart,
    change, change_apart, touched, in_touched, heap, heap_meta, texts, spans, row_keys, row_width, group_columns, group_key,
    g_table, g_keys, g_counts, g_free, g_meta, shown,
):  # fmt: skip
    """Add what the inputs beside the carrier changed at this tick to the groups of a key's rows. Resumable at a row."""
    kinds, ports, local, local_apart = (
        of_aggregates[KINDS], of_aggregates[PORTS], of_aggregates[LOCAL], of_aggregates[LOCAL_APART],
    )  # fmt: skip
    functions, places = of_aggregates[FUNCTIONS], of_aggregates[PLACES]
    aggregates = len(functions)
    key = snap_key[snap]
    key_at, snap_at = key * key_size, snap * key_size
    after = _others(key_words, key_at, n_ports, carrier)
    before = _others(snap_words, snap_at, n_ports, carrier)
    if after < 0 or before < 0:
        return TOO_MANY
    differs = (after > 0) != (before > 0)
    for a in range(aggregates):
        kind, port = kinds[a], ports[a]
        new, old = key_at + local[a], snap_at + local[a]
        if port == carrier:
            # Of a row's extreme only matters whether it has results.
            differs = differs or (kind != TERM and after != before)
            continue
        if kind == TERM:
            change[2 * a] = snap_words[old] if before > 0 else 0
            change[2 * a + 1] = bag_first(key_words, new, heap) if after > 0 else 0
            differs = differs or change[2 * a] != change[2 * a + 1]
            continue
        # Where there are results each counter is a divisor; where there are none nothing counts.
        new_weight = after // key_words[key_at + COUNTERS + port] if after > 0 else np.int64(0)
        old_weight = before // snap_words[snap_at + COUNTERS + port] if before > 0 else np.int64(0)
        at = 2 * aggregates + a * SUM_WORDS
        if kind == BOUND:
            change[at] = key_words[new] * new_weight - snap_words[old] * old_weight
            differs = differs or change[at] != 0
            continue
        _clear(change, at, change_apart, 2 * a)
        ok = _add_times(
            change, at, change_apart, 2 * a, key_words, new, key_apart, key * key_apart_n + local_apart[a], new_weight
        )
        ok = ok and _add_times(
            change, at, change_apart, 2 * a, snap_words, old, snap_apart, snap * key_apart_n + local_apart[a], -old_weight
        )  # fmt: skip
        if not ok:
            return OVERFLOW
        differs = differs or not _is_nothing(change, at, change_apart, 2 * a)
    if not differs:
        return DONE
    following = cursor[NEXT_ROW] if cursor[NEXT_ROW] > 0 else key_words[key_at + HEAD]
    if following > 0 and row_words[(following - 1) * row_size + NEXT] > 0:
        _expect_rows(following, row_words, row_size, words, group_words, places, kinds, heap)
    while following > 0:
        row = following - 1
        row_at = row * row_size
        group = row_words[row_at + GROUP] - 1
        if group < 0:
            group = _group_of(
                row, row_words, row_at, row_keys, row_width, group_columns, group_key, g_table, g_keys, g_counts, g_free, g_meta,
                shown, live,
            )  # fmt: skip
        if group < 0:
            cursor[NEXT_ROW] = following
            return GROUPS_FULL
        base = group * group_words
        n = row_words[row_at + COUNTER]
        if _times(max(after, before), n) < 0:
            return TOO_MANY
        for a in range(aggregates):
            if kinds[a] == TERM:
                if ports[a] == carrier:
                    extreme = bag_first(row_words, row_at + local[a], heap)
                    old, new = extreme if before > 0 else np.int64(0), extreme if after > 0 else np.int64(0)
                else:
                    old, new = change[2 * a], change[2 * a + 1]
                if not _swap_room(words, base + places[a], old, new, heap, heap_meta):
                    cursor[NEXT_ROW] = following
                    return HEAP_FULL
        cursor[VISITED] += 1
        results = live[group]
        live[group] += np.int64(after > 0) - np.int64(before > 0)
        # A group whose extremes stay as they are has the same row; that is most of the changes where there are no other aggregates.
        moves = (results > 0) != (live[group] > 0)
        for a in range(aggregates):
            kind, at = kinds[a], base + places[a]
            of_group = (group * aggregates + a) * 2
            ok = True
            if kind == TERM:
                if ports[a] == carrier:
                    extreme = bag_first(row_words, row_at + local[a], heap)
                    old, new = extreme if before > 0 else np.int64(0), extreme if after > 0 else np.int64(0)
                else:
                    old, new = change[2 * a], change[2 * a + 1]
                first = bag_first(words, at, heap)
                _swap(words, at, old, new, heap, functions[a] == MAX, texts, spans)
                moves = moves or bag_first(words, at, heap) != first
            elif kind == ROWS:
                ok = _add_count(words, at, n, after - before)
            elif ports[a] == carrier:
                mine = row_at + local[a]
                if kind == BOUND:
                    ok = _add_count(words, at, row_words[mine], after - before)
                else:
                    ok = _add_times(
                        words, at, apart, of_group, row_words, mine, row_apart, row * row_apart_n + local_apart[a],
                        after - before,
                    )  # fmt: skip
            elif kind == BOUND:
                ok = _add_count(words, at, change[2 * aggregates + a * SUM_WORDS], n)
            else:
                ok = _add_times(
                    words, at, apart, of_group, change, 2 * aggregates + a * SUM_WORDS, change_apart, 2 * a, n
                )  # fmt: skip
            if not ok:
                return OVERFLOW
            if kind == NUMBER:
                _settle(words, at, apart, of_group)
                if not _countable(words, at, functions[a]):
                    return TOO_MANY
            moves = moves or kind != TERM
        if moves:
            _touch(group, cursor, touched, in_touched)
        following = row_words[row_at + NEXT]
    cursor[NEXT_ROW] = 0
    return DONE


@jit_flat
def _deliver(
    cursor, n_keys, keys, live, meta, functions, places, words, group_words, apart, heap, last, shown, touched, in_touched,
    out_tick, out_sign, out, late, late_real, fresh, joined,
):  # fmt: skip
    """The groups touched at a tick. A function of its own: as a part of `step` it would take minutes to compile."""
    finish_tick(
        cursor, n_keys, keys, live, meta, functions, places, words, group_words, apart, heap, last, shown, touched, in_touched,
        out_tick, out_sign, out, late, late_real, fresh, joined,
    )  # fmt: skip


@jit_flat
def step(
    rows, cursor, located, n_ports, carrier, key_width, row_width, group_columns, of_aggregates, group_words,
    k_table, k_keys, k_counts, k_free, k_meta, key_size, key_words, key_apart_n, key_apart,
    r_table, r_keys, r_counts, r_free, r_meta, row_size, row_words, row_apart_n, row_apart,
    g_table, g_keys, g_counts, g_free, g_meta, words, apart, live, last, shown, touched, in_touched,
    snap_key, snap_words, snap_apart, change, change_apart, group_key, heap, heap_meta, texts, spans,
    odd_kind, odd_words, odd_real, out_tick, out_sign, out, late, late_real, fresh, joined,
):  # fmt: skip
    """Rows (see above; n) of all inputs, from cursor[ROW] on in their order; changed groups go out.

    Arguments with tag 15 refer to `odd_*`. Resumable, whatever it stopped for.
    """
    order, tick, sign, row_port = rows[ORDER], rows[ROW_TICK], rows[ROW_SIGN], rows[ROW_PORT]
    arguments = rows[FIRST + row_width :]
    kinds, ports, local, local_apart = (
        of_aggregates[KINDS], of_aggregates[PORTS], of_aggregates[LOCAL], of_aggregates[LOCAL_APART],
    )  # fmt: skip
    functions, places = of_aggregates[FUNCTIONS], of_aggregates[PLACES]
    aggregates = len(functions)
    n_keys = len(group_columns)
    while True:
        position = cursor[ROW]
        ended = position == len(order)
        if ended or tick[order[position]] != cursor[TICK]:
            while cursor[FLUSHED] < cursor[SNAPS]:
                snap = cursor[FLUSHED]
                key_at = snap_key[snap] * key_size
                if _is_as_before(
                    key_words, key_at, snap_words, snap * key_size, n_ports, carrier, kinds, ports, local, heap
                ):
                    key_words[key_at + SNAP] = 0
                    cursor[FLUSHED] += 1
                    continue
                status = _flush_key(
                    snap, cursor, n_ports, carrier, of_aggregates, group_words,
                    words, apart, live, key_size, key_words, key_apart_n, key_apart, row_size, row_words, row_apart_n, row_apart,
                    snap_key, snap_words, snap_apart, change, change_apart, touched, in_touched, heap, heap_meta, texts, spans,
                    r_keys, row_width, group_columns, group_key, g_table, g_keys, g_counts, g_free, g_meta, shown,
                )  # fmt: skip
                if status != DONE:
                    return status
                key_words[key_at + SNAP] = 0
                cursor[FLUSHED] += 1
            cursor[SNAPS] = 0
            cursor[FLUSHED] = 0
            if cursor[TOUCHED] > 0:
                room = cursor[OUT] + 2 * cursor[TOUCHED] <= len(out_tick)
                if not room or cursor[LATE] + cursor[TOUCHED] * aggregates > len(late_real):
                    return OUT_FULL
                _deliver(
                    cursor, n_keys, g_keys, live, g_meta, functions, places, words, group_words, apart, heap, last, shown,
                    touched, in_touched, out_tick, out_sign, out, late, late_real, fresh, joined,
                )  # fmt: skip
            if ended:
                return DONE
            cursor[TICK] = tick[order[position]]
        row = order[position]
        port = row_port[row]
        way = sign[row]
        if position == cursor[LOCATED]:
            cursor[LOCATED] = min(position + LOCATED_ROWS, len(order))
            _locate(
                rows, position, cursor[LOCATED], carrier, key_width, row_width, of_aggregates, located,
                k_table, k_keys, k_counts, k_free, k_meta, key_size, key_words, r_table, r_keys, r_counts, r_free, r_meta, row_size,
                row_words, group_words, words, heap,
            )  # fmt: skip
        key = located[position % LOCATED_ROWS]
        if key < 0:
            return NOT_THERE
        key_at = key * key_size
        if port != carrier:
            # Without rows there is nothing to be changed: the carrier's come first.
            if key_words[key_at + HEAD] > 0 and key_words[key_at + SNAP] == 0:
                snap = cursor[SNAPS]
                if snap == len(snap_key):
                    return SNAPS_FULL
                snap_key[snap] = key
                for w in range(key_size):
                    snap_words[snap * key_size + w] = key_words[key_at + w]
                for w in range(key_apart_n):
                    snap_apart[snap * key_apart_n + w] = key_apart[key * key_apart_n + w]
                for a in range(aggregates):
                    if kinds[a] == TERM and ports[a] != carrier:
                        snap_words[snap * key_size + local[a]] = bag_first(key_words, key_at + local[a], heap)
                key_words[key_at + SNAP] = snap + 1
                cursor[SNAPS] = snap + 1
            for a in range(aggregates):
                if ports[a] == port and kinds[a] == TERM and arguments[a, row] != 0:
                    if not bag_room(key_words, key_at + local[a], way, heap, heap_meta):
                        return HEAP_FULL
            _count(k_counts, key, way, k_meta)
            key_words[key_at + COUNTERS + port] += way
            for a in range(aggregates):
                if ports[a] != port:
                    continue
                at = key_at + local[a]
                if kinds[a] == NUMBER:
                    if not _take(
                        key_words, at, key_apart, key * key_apart_n + local_apart[a], arguments[a, row], way, odd_kind,
                        odd_words, odd_real,
                    ):  # fmt: skip
                        return OVERFLOW
                    if key_words[key_at + COUNTERS + port] == 0:
                        key_words[at + SCALE] = 0
                elif arguments[a, row] != 0:
                    if kinds[a] == BOUND:
                        key_words[at] += way
                    elif not bag_put(key_words, at, way, arguments[a, row], heap, functions[a] == MAX, texts, spans):
                        return NOT_THERE
            cursor[ROW] = position + 1
            continue

        entry = located[LOCATED_ROWS + position % LOCATED_ROWS]
        if entry < 0:
            return NOT_THERE
        row_at = entry * row_size
        born = row_words[row_at + COUNTER] == 0
        if born and way < 0:
            return NOT_THERE
        others = _others(key_words, key_at, n_ports, carrier)
        if others < 0 or _times(others, row_words[row_at + COUNTER] + 1) < 0:
            return TOO_MANY
        group = row_words[row_at + GROUP] - 1
        if others > 0 and group < 0:
            group = _group_of(
                entry, row_words, row_at, r_keys, row_width, group_columns, group_key, g_table, g_keys, g_counts, g_free, g_meta,
                shown, live,
            )  # fmt: skip
            if group < 0:
                return GROUPS_FULL
        base = group * group_words
        dies = row_words[row_at + COUNTER] + way == 0
        for a in range(aggregates):
            if kinds[a] != TERM:
                continue
            at = base + places[a]
            if ports[a] == carrier:
                if arguments[a, row] != 0:
                    ok = bag_room(row_words, row_at + local[a], way, heap, heap_meta)
                    # Which extreme the row will have is not known yet.
                    if others > 0 and ok:
                        ok = bag_room(words, at, 1, heap, heap_meta) and bag_room(words, at, -1, heap, heap_meta)
                    if not ok:
                        return HEAP_FULL
            elif others > 0 and (born or dies):
                extreme = bag_first(key_words, key_at + local[a], heap)
                if extreme != 0 and not bag_room(words, at, way, heap, heap_meta):
                    return HEAP_FULL
        # From here on nothing stops the row but an error.
        _count(k_counts, key, way, k_meta)
        row_words[row_at + COUNTER] += way
        if row_width > key_width and (born or dies):
            _count(r_counts, entry, way, r_meta)
        if born:
            first = key_words[key_at + HEAD]
            row_words[row_at + PREVIOUS] = 0
            row_words[row_at + NEXT] = first
            if first > 0:
                row_words[(first - 1) * row_size + PREVIOUS] = entry + 1
            key_words[key_at + HEAD] = entry + 1
        moves = False
        if others > 0:
            cursor[VISITED] += 1
            results = live[group]
            live[group] += np.int64(born) - np.int64(dies)
            moves = (results > 0) != (live[group] > 0)
        for a in range(aggregates):
            kind, at = kinds[a], base + places[a]
            extreme_before = bag_first(words, at, heap) if others > 0 and kind == TERM else np.int64(0)
            of_group = (group * aggregates + a) * 2
            ok = True
            if kind == ROWS:
                if others > 0:
                    ok = _add_count(words, at, way, others)
            elif ports[a] == carrier:
                mine = row_at + local[a]
                if kind == NUMBER:
                    place = 2 * aggregates + a * SUM_WORDS
                    _clear(change, place, change_apart, 2 * a)
                    of_row = entry * row_apart_n + local_apart[a]
                    ok = _take(
                        change, place, change_apart, 2 * a, arguments[a, row], way, odd_kind, odd_words, odd_real
                    ) and _add_times(
                        row_words, mine, row_apart, of_row, change, place, change_apart, 2 * a, np.int64(1)
                    )  # fmt: skip
                    _settle(row_words, mine, row_apart, of_row)
                    if dies:
                        row_words[mine + SCALE] = 0
                    if ok and others > 0:
                        ok = _add_times(words, at, apart, of_group, change, place, change_apart, 2 * a, others)
                elif arguments[a, row] != 0:
                    if kind == BOUND:
                        row_words[mine] += way
                        if others > 0:
                            ok = _add_count(words, at, way, others)
                    else:
                        before = bag_first(row_words, mine, heap)
                        largest = functions[a] == MAX
                        if not bag_put(row_words, mine, way, arguments[a, row], heap, largest, texts, spans):
                            return NOT_THERE
                        if others > 0:
                            _swap(
                                words, at, before, bag_first(row_words, mine, heap), heap, largest, texts, spans
                            )  # fmt: skip
            elif others > 0:
                theirs = key_at + local[a]
                if kind == TERM:
                    extreme = bag_first(key_words, theirs, heap)
                    if extreme != 0 and (born or dies):
                        bag_put(words, at, way, extreme, heap, functions[a] == MAX, texts, spans)
                else:
                    weight = others // key_words[key_at + COUNTERS + ports[a]] * way
                    if kind == BOUND:
                        ok = _add_count(words, at, key_words[theirs], weight)
                    else:
                        ok = _add_times(
                            words, at, apart, of_group, key_words, theirs, key_apart, key * key_apart_n + local_apart[a],
                            weight,
                        )  # fmt: skip
            if not ok:
                return OVERFLOW
            if kind == NUMBER:
                _settle(words, at, apart, of_group)
                if not _countable(words, at, functions[a]):
                    return TOO_MANY
            if others > 0:
                moves = moves or kind != TERM or bag_first(words, at, heap) != extreme_before
        if moves:
            _touch(group, cursor, touched, in_touched)
        if dies:
            if group >= 0:
                _count(g_counts, group, np.int64(-1), g_meta)
                row_words[row_at + GROUP] = 0
            previous, following = row_words[row_at + PREVIOUS], row_words[row_at + NEXT]
            if previous > 0:
                row_words[(previous - 1) * row_size + NEXT] = following
            else:
                key_words[key_at + HEAD] = following
            if following > 0:
                row_words[(following - 1) * row_size + PREVIOUS] = previous
        cursor[ROW] = position + 1
