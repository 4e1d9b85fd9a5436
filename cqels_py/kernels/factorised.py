"""Aggregation below a join: inputs that share a key are summed up by that key, and never joined row by row.

One input is the carrier: it has those of the group's variables that are not in the key. Its mappings are kept as rows, one for each
key and values of these variables, with a counter and, for aggregates of its own variables, accumulators (of kernels/aggregate.py).
Of each other input a key keeps just a counter and accumulators. A row stands for counter * product of the other inputs' counters
results of the join, and adds to its group's accumulators what these results would: sums times counters, and for MIN and MAX the
one extreme of its key.

At each tick the carrier's changes come first, against the other inputs as they were; they concern one row each. Then the other
inputs' changes are taken in by key, with what stood there before them in a snapshot; the difference that they make together is
added to the groups of the key's rows, and nothing is done where there is none.

Records by key and by row, and the rows of a step, are those of kernels/joined_records.py.

By group: as in kernels/aggregate.py; a COUNT is a sum of ones. `live`: the group's rows that have results
`kinds`, `ports`, `local`, `local_apart`: by aggregate, what it needs, the input of its argument, and where its accumulator is there
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.aggregate import CURSOR_FIELDS, LATE, MAX, OUT, ROW, SCALE, SUM_WORDS, TICK, TOUCHED, finish_tick
from cqels_py.kernels.heaps import bag_first, bag_put, bag_room
from cqels_py.kernels.jit import jit_flat, jit_inline
from cqels_py.kernels.joined_records import (
    BOUND,
    COUNTER,
    COUNTERS,
    FIRST,
    FUNCTIONS,
    GROUP,
    HEAD,
    KINDS,
    LOCAL,
    LOCAL_APART,
    LOCATED_ROWS,
    NEXT,
    NUMBER,
    ORDER,
    PLACES,
    PORTS,
    PREVIOUS,
    ROW_PORT,
    ROW_SIGN,
    ROW_TICK,
    ROWS,
    SNAP,
    TERM,
    expect_rows,
    locate,
)
from cqels_py.kernels.key_table import FREE, USED, ZERO, add, find, hash_row
from cqels_py.kernels.weighted_sums import (
    add_count,
    add_times,
    clear_sum,
    is_countable,
    is_nothing,
    settle,
    take_argument,
    times,
)

# Why a run stopped.
DONE, HEAP_FULL, OVERFLOW, NOT_THERE, SNAPS_FULL, OUT_FULL, TOO_MANY, GROUPS_FULL = range(8)

# cursor, after the fields of kernels/aggregate.py; VISITED counts the rows whose groups a change was added to.
SNAPS = CURSOR_FIELDS
FLUSHED, NEXT_ROW, LOCATED, VISITED = range(SNAPS + 1, SNAPS + 5)
FIELDS = SNAPS + 5


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
            product = times(product, words[at + COUNTERS + p])
    return product


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
        clear_sum(change, at, change_apart, 2 * a)
        ok = add_times(
            change, at, change_apart, 2 * a, key_words, new, key_apart, key * key_apart_n + local_apart[a], new_weight
        )
        ok = ok and add_times(
            change, at, change_apart, 2 * a, snap_words, old, snap_apart, snap * key_apart_n + local_apart[a], -old_weight
        )  # fmt: skip
        if not ok:
            return OVERFLOW
        differs = differs or not is_nothing(change, at, change_apart, 2 * a)
    if not differs:
        return DONE
    following = cursor[NEXT_ROW] if cursor[NEXT_ROW] > 0 else key_words[key_at + HEAD]
    if following > 0 and row_words[(following - 1) * row_size + NEXT] > 0:
        expect_rows(following, row_words, row_size, words, group_words, places, kinds, heap)
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
        if times(max(after, before), n) < 0:
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
                ok = add_count(words, at, n, after - before)
            elif ports[a] == carrier:
                mine = row_at + local[a]
                if kind == BOUND:
                    ok = add_count(words, at, row_words[mine], after - before)
                else:
                    ok = add_times(
                        words, at, apart, of_group, row_words, mine, row_apart, row * row_apart_n + local_apart[a],
                        after - before,
                    )  # fmt: skip
            elif kind == BOUND:
                ok = add_count(words, at, change[2 * aggregates + a * SUM_WORDS], n)
            else:
                ok = add_times(
                    words, at, apart, of_group, change, 2 * aggregates + a * SUM_WORDS, change_apart, 2 * a, n
                )  # fmt: skip
            if not ok:
                return OVERFLOW
            if kind == NUMBER:
                settle(words, at, apart, of_group)
                if not is_countable(words, at, functions[a]):
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
            locate(
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
                    if not take_argument(
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
        if others < 0 or times(others, row_words[row_at + COUNTER] + 1) < 0:
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
                    ok = add_count(words, at, way, others)
            elif ports[a] == carrier:
                mine = row_at + local[a]
                if kind == NUMBER:
                    place = 2 * aggregates + a * SUM_WORDS
                    clear_sum(change, place, change_apart, 2 * a)
                    of_row = entry * row_apart_n + local_apart[a]
                    ok = take_argument(
                        change, place, change_apart, 2 * a, arguments[a, row], way, odd_kind, odd_words, odd_real
                    ) and add_times(
                        row_words, mine, row_apart, of_row, change, place, change_apart, 2 * a, np.int64(1)
                    )  # fmt: skip
                    settle(row_words, mine, row_apart, of_row)
                    if dies:
                        row_words[mine + SCALE] = 0
                    if ok and others > 0:
                        ok = add_times(words, at, apart, of_group, change, place, change_apart, 2 * a, others)
                elif arguments[a, row] != 0:
                    if kind == BOUND:
                        row_words[mine] += way
                        if others > 0:
                            ok = add_count(words, at, way, others)
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
                        ok = add_count(words, at, key_words[theirs], weight)
                    else:
                        ok = add_times(
                            words, at, apart, of_group, key_words, theirs, key_apart, key * key_apart_n + local_apart[a],
                            weight,
                        )  # fmt: skip
            if not ok:
                return OVERFLOW
            if kind == NUMBER:
                settle(words, at, apart, of_group)
                if not is_countable(words, at, functions[a]):
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
