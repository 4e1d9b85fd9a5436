"""The records of aggregation below a join (kernels/factorised.py): what they are made of, and how a step finds them.

By key:   `key_words`: HEAD its first row + 1, SNAP its snapshot + 1, a counter for each input, accumulators; `key_apart`
By row:   `row_words`: NEXT and PREVIOUS of its key's rows, + 1, COUNTER, accumulators; `row_apart`
Rows:     the columns of a step's rows of all inputs by tick, the carrier's first: ROW_TICK, ROW_SIGN, ROW_PORT; the hashes of the
          key and, of the carrier's, of all of (key, the carrier's own variables of the group), these themselves from FIRST on, and
          then the aggregates' arguments
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat, jit_inline
from cqels_py.kernels.primitives.prefetch import prefetch
from cqels_py.kernels.structures.hash_table import FREE, add, find, find_nearby
from cqels_py.kernels.structures.heaps import expect_bag, expect_first

# What an aggregate needs of its argument: nothing, whether it is bound, its number, the term.
ROWS, BOUND, NUMBER, TERM = range(4)

# Records: of a key, before its counters; of a row, before its accumulators.
HEAD, SNAP, COUNTERS = range(3)
NEXT, PREVIOUS, COUNTER, ROW_WORDS = range(4)
ROW_TICK, ROW_SIGN, ROW_PORT, KEY_HASH, ROW_HASH, FIRST = range(6)

# What is known by aggregate, as rows of one array: what it needs, the input of its argument, where its accumulator is there, its
# function, its column in a share, and whether its input's mappings leave in the order in which they came.
KINDS, PORTS, LOCAL, LOCAL_APART, FUNCTIONS, COLUMNS, IN_ORDER = range(7)

LOCATED_ROWS = 128
"""So many rows are located together."""
_KEY_AHEAD, _ENTRY_AHEAD, _LINE, _FEW_ROWS = 8, 6, 8, 64
_LOWER = np.int64((1 << 32) - 1)


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
def _expect_key(hashed, table, mask, keys, width):
    """Have the key of the entry to which a hash leads come nearer; the table's word should be near already."""
    word = table[hashed & mask]
    prefetch(keys, ((word & _LOWER) - 1) * width)


@jit_inline
def _list_rows_of(carrier, row_port, sign, first, last, carried):
    """Put down which rows are the carrier's: those that come from the start on, those that go from the end on. Returns where these
    and those end: which come next cannot be foreseen."""
    come, go = np.int64(0), np.int64(LOCATED_ROWS)
    for row in range(first, last):
        # Written in any case, and over again if it is not there.
        carried[come] = carried[go - 1] = row
        mine, comes = row_port[row] == carrier, sign[row] > 0
        come += np.int64(mine & comes)
        go -= np.int64(mine & (not comes))
    return come, go


@jit_inline
def _find_or_add(columns, row, hashed, way, width, table, mask, keys, counts, free, meta):
    """The entry of a row's key; of one that goes -1 if there is none."""
    entry = np.int64(-1)
    if width == 1:
        entry = find_nearby(hashed, columns[0, row], table, np.uint64(mask), keys)
    if entry < 0:
        entry = find(table, mask, keys, width, columns, row, hashed)
    if entry < 0 and way > 0:
        entry = add(table, mask, keys, width, columns, row, hashed, counts, free, meta)
    return entry


@jit_flat
def _locate_rows(
    first, end, carried, sign, columns, row_hashes, row_width, located, r_table, r_keys, r_counts, r_free, r_meta, row_size,
    row_words,
):  # fmt: skip
    """Find where the rows carried[first:end] have their own record: as `locate` says."""
    r_mask = np.int64(len(r_table) - 1)
    for i in range(first, end):
        prefetch(r_table, row_hashes[carried[i]] & r_mask)
    for i in range(first, end):
        row = carried[i]
        if i + _KEY_AHEAD < end:
            _expect_key(row_hashes[carried[i + _KEY_AHEAD]], r_table, r_mask, r_keys, row_width)
        if sign[row] > 0:
            _expect_new(row_words, row_size, r_keys, row_width, r_free, r_meta)
        entry = _find_or_add(
            columns, row, row_hashes[row], sign[row], row_width, r_table, r_mask, r_keys, r_counts, r_free, r_meta
        )
        _expect_record(entry, row_words, row_size, r_counts)
        located[LOCATED_ROWS + row % LOCATED_ROWS] = entry


@jit_flat
def locate(
    rows, first, last, carrier, key_places, row_places, of_aggregates, located,
    k_table, k_keys, k_counts, k_free, k_meta, key_size, key_words, r_table, r_keys, r_counts, r_free, r_meta, row_size, row_words,
    heap,
):  # fmt: skip
    """Find where the rows `first` to `last` - 1 have their key's record and, those of the carrier, their own.

    What comes gets one if it has none; -1: what goes has none. Those of row i are at i % LOCATED_ROWS, and LOCATED_ROWS further
    on; behind these are the rows of the carrier, as `_list_rows_of` has them. What the records lead to is asked for
    in turn, so that much is under way at once.
    """
    key_width, row_width = len(key_places), len(row_places)
    sign, row_port = rows[ROW_SIGN], rows[ROW_PORT]
    key_hashes, row_hashes, columns = rows[KEY_HASH], rows[ROW_HASH], rows[FIRST : FIRST + row_width]
    k_mask = np.int64(len(k_table) - 1)
    apart, carried = row_width > key_width, located[2 * LOCATED_ROWS :]
    come, go = _list_rows_of(carrier, row_port, sign, first, last, carried)
    for row in range(first, last):
        prefetch(k_table, key_hashes[row] & k_mask)
    for row in range(first, last):
        if row + _KEY_AHEAD < last:
            _expect_key(key_hashes[row + _KEY_AHEAD], k_table, k_mask, k_keys, key_width)
        key = _find_or_add(
            columns, row, key_hashes[row], sign[row], key_width, k_table, k_mask, k_keys, k_counts, k_free, k_meta
        )
        located[row % LOCATED_ROWS] = key
        _expect_record(key, key_words, key_size, k_counts)
    if apart:
        # Those that come are mostly new, and those that go never: apart from each other that can be foreseen.
        _locate_rows(
            np.int64(0), come, carried, sign, columns, row_hashes, row_width, located, r_table, r_keys, r_counts, r_free, r_meta,
            row_size, row_words,
        )  # fmt: skip
        _locate_rows(
            go, np.int64(LOCATED_ROWS), carried, sign, columns, row_hashes, row_width, located, r_table, r_keys, r_counts, r_free,
            r_meta, row_size, row_words,
        )  # fmt: skip
    else:
        for row in range(first, last):
            located[LOCATED_ROWS + row % LOCATED_ROWS] = located[row % LOCATED_ROWS]
    _expect_what_follows(
        first, last, carrier, come, go, of_aggregates, located, key_size, key_words, row_size, row_words, r_keys, row_width, heap
    )  # fmt: skip


@jit_inline
def _expect_what_follows(
    first, last, carrier, come, go, of_aggregates, located, key_size, key_words, row_size, row_words, row_keys, row_width, heap
):  # fmt: skip
    """Have the bags of located records come nearer, and the first row of a key. `come`, `go`: as `_list_rows_of` has it."""
    kinds, ports, local = of_aggregates[KINDS], of_aggregates[PORTS], of_aggregates[LOCAL]
    for row in range(first, last):
        key = located[row % LOCATED_ROWS]
        if key < 0:
            continue
        for a in range(len(kinds)):
            if kinds[a] == TERM and ports[a] != carrier:
                expect_bag(key_words, key * key_size + local[a], heap)
        # Without one it is some other place, which does no harm.
        head = key_words[key * key_size + HEAD] - 1
        prefetch(row_words, head * row_size)
        prefetch(row_keys, head * row_width)
    for a in range(len(kinds)):
        if kinds[a] == TERM and ports[a] == carrier:
            for i in range(come + LOCATED_ROWS - go):
                row = located[2 * LOCATED_ROWS + (i if i < come else i - come + go)]
                entry = located[LOCATED_ROWS + row % LOCATED_ROWS]
                if entry >= 0:
                    expect_first(row_words, entry * row_size + local[a], heap)


@jit_inline
def expect_rows(head, row_words, row_size, row_keys, row_width):
    """The same for the first rows of a key, where there are several."""
    following, rows = head, 0
    while following > 0 and rows < _FEW_ROWS:
        prefetch(row_keys, (following - 1) * row_width)
        following = row_words[(following - 1) * row_size + NEXT]
        rows += 1
