"""The records of aggregation below a join (kernels/factorised.py): what they are made of, and how a step finds them.

By key:   `key_words`: HEAD its first row + 1, SNAP its snapshot + 1, a counter for each input, accumulators; `key_apart`
By row:   `row_words`: GROUP + 1, 0 until it first has results, NEXT and PREVIOUS of its key's rows, + 1, COUNTER, accumulators;
          `row_apart`
Rows:     the columns of a step's rows of all inputs: ROW_TICK, ROW_SIGN, ROW_PORT; ORDER, the rows by tick, the carrier's first; the
          hashes of the key and of all of (key, the carrier's own variables of the group), these themselves from FIRST on, and then
          the aggregates' arguments
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.heaps import expect_first
from cqels_py.kernels.jit import jit_flat, jit_inline
from cqels_py.kernels.key_table import FREE, add, find
from cqels_py.kernels.prefetch import prefetch

# What an aggregate needs of its argument: nothing, whether it is bound, its number, the term.
ROWS, BOUND, NUMBER, TERM = range(4)

# Records: of a key, before its counters; of a row, before its accumulators.
HEAD, SNAP, COUNTERS = range(3)
GROUP, NEXT, PREVIOUS, COUNTER, ROW_WORDS = range(5)
ROW_TICK, ROW_SIGN, ROW_PORT, ORDER, KEY_HASH, ROW_HASH, FIRST = range(7)

# What is known by aggregate, as rows of one array.
KINDS, PORTS, LOCAL, LOCAL_APART, FUNCTIONS, PLACES = range(6)

LOCATED_ROWS = 128
"""So many rows are located together."""
_ENTRY_AHEAD, _LINE, _FEW_ROWS = 6, 8, 64


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
def locate(
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
def expect_rows(head, row_words, row_size, words, group_words, places, kinds, heap):
    """The same for the first rows of a key, where there are several."""
    for is_next in range(2):
        following = head
        rows = 0
        while following > 0 and rows < _FEW_ROWS:
            _expect_group(following - 1, row_words, row_size, words, group_words, places, kinds, heap, is_next == 1)
            following = row_words[(following - 1) * row_size + NEXT]
            rows += 1
