"""The records of aggregation below a join (factorised.py): their layout, and how a step finds them.

By key: `key_words`: HEAD its first row + 1, SNAP its snapshot + 1, a counter for each input, accumulators; `key_apart`.

By row: `row_words`: NEXT and PREVIOUS of its key's rows, + 1, COUNTER, accumulators; `row_apart`.

Rows: the columns of a step's rows of all inputs by tick, the carrier's first: ROW_TICK, ROW_SIGN, ROW_PORT; the hashes
of the key and, for the carrier, of the row's whole identity (key, the carrier's own variables of the group); these
variables from FIRST on, and then the aggregates' arguments.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat, jit_inline
from cqels_py.kernels.primitives.prefetch import prefetch
from cqels_py.kernels.structures.hash_table import FREE, add, find, find_in_first_slots
from cqels_py.kernels.structures.heaps import prefetch_bag, prefetch_first

# The part of its argument that an aggregate needs: none, whether it is bound, its number, or the term.
ROWS, BOUND, NUMBER, TERM = range(4)

# Records: of a key, before its counters; of a row, before its accumulators.
HEAD, SNAP, COUNTERS = range(3)
NEXT, PREVIOUS, COUNTER, ROW_WORDS = range(4)
ROW_TICK, ROW_SIGN, ROW_PORT, KEY_HASH, ROW_HASH, FIRST = range(6)

# Properties by aggregate, as rows of one array: the kind of its argument, the input of its argument, the position of
# its accumulator there, its function, its column in a contribution, and whether its input is FIFO.
KINDS, PORTS, LOCAL, LOCAL_APART, FUNCTIONS, COLUMNS, EXPIRES_FIFO = range(7)

LOCATED_ROWS = 128
"""Rows whose entries are looked up together."""
_KEY_AHEAD, _ENTRY_AHEAD, _LINE, _FEW_ROWS = 8, 6, 8, 64
_LOWER = np.int64((1 << 32) - 1)


@jit_inline
def _prefetch_record(entry, words, size, counts):
    """Prefetch an entry's record and counter."""
    prefetch(counts, entry)
    prefetch(words, entry * size)
    if size > _LINE:
        prefetch(words, entry * size + _LINE)


@jit_inline
def _prefetch_new(row_words, row_size, row_keys, row_width, free, meta):
    """Prefetch the records of rows to be inserted: those freed last are reused first."""
    following = meta[FREE] - _ENTRY_AHEAD // 2
    if following >= 0:
        prefetch(row_words, free[following] * row_size)
        prefetch(row_keys, free[following] * row_width)


@jit_inline
def _prefetch_key(hashed, table, mask, keys, width):
    """Prefetch the key of the entry that a hash refers to; the table's slot should be in the cache already."""
    word = table[hashed & mask]
    prefetch(keys, ((word & _LOWER) - 1) * width)


@jit_inline
def _list_rows_of(carrier, row_port, sign, first, last, carried):
    """List the carrier's rows: insertions from the start on, retractions from the end on. Returns the ends of both
    lists. Without a branch, as their order is unpredictable."""
    inserts, retractions = np.int64(0), np.int64(LOCATED_ROWS)
    for row in range(first, last):
        # Written unconditionally, and overwritten if the row is of another input.
        carried[inserts] = carried[retractions - 1] = row
        mine, is_insert = row_port[row] == carrier, sign[row] > 0
        inserts += np.int64(mine & is_insert)
        retractions -= np.int64(mine & (not is_insert))
    return inserts, retractions


@jit_inline
def _find_or_add(columns, row, hashed, delta, width, table, mask, keys, counts, free, meta):
    """The entry of a row's key, which is added for an insertion; -1 for a retraction if there is none."""
    entry = np.int64(-1)
    if width == 1:
        entry = find_in_first_slots(hashed, columns[0, row], table, np.uint64(mask), keys)
    if entry < 0:
        entry = find(table, mask, keys, width, columns, row, hashed)
    if entry < 0 and delta > 0:
        entry = add(table, mask, keys, width, columns, row, hashed, counts, free, meta)
    return entry


@jit_flat
def _find_row_entries(
    first, end, carried, sign, columns, row_hashes, row_width, located, r_table, r_keys, r_counts, r_free, r_meta, row_size,
    row_words,
):  # fmt: skip
    """Find the own records of the rows carried[first:end], as `find_entries` does."""
    r_mask = np.int64(len(r_table) - 1)
    for i in range(first, end):
        prefetch(r_table, row_hashes[carried[i]] & r_mask)
    for i in range(first, end):
        row = carried[i]
        if i + _KEY_AHEAD < end:
            _prefetch_key(row_hashes[carried[i + _KEY_AHEAD]], r_table, r_mask, r_keys, row_width)
        if sign[row] > 0:
            _prefetch_new(row_words, row_size, r_keys, row_width, r_free, r_meta)
        entry = _find_or_add(
            columns, row, row_hashes[row], sign[row], row_width, r_table, r_mask, r_keys, r_counts, r_free, r_meta
        )
        _prefetch_record(entry, row_words, row_size, r_counts)
        located[LOCATED_ROWS + row % LOCATED_ROWS] = entry


@jit_flat
def find_entries(
    rows, first, last, carrier, key_places, row_places, of_aggregates, located,
    k_table, k_keys, k_counts, k_free, k_meta, key_size, key_words, r_table, r_keys, r_counts, r_free, r_meta, row_size, row_words,
    heap,
):  # fmt: skip
    """Find the records of the keys of rows `first` to `last` - 1 and, for rows of the carrier, their own.

    An insertion gets a record if it has none; -1: a retraction has none. Those of row i are at i % LOCATED_ROWS, and
    LOCATED_ROWS further on; after these are the rows of the carrier, as listed by `_list_rows_of`. Everything that the
    records refer to is prefetched in turn, so that many loads are in flight at once.
    """
    key_width, row_width = len(key_places), len(row_places)
    sign, row_port = rows[ROW_SIGN], rows[ROW_PORT]
    key_hashes, row_hashes, columns = rows[KEY_HASH], rows[ROW_HASH], rows[FIRST : FIRST + row_width]
    k_mask = np.int64(len(k_table) - 1)
    apart, carried = row_width > key_width, located[2 * LOCATED_ROWS :]
    inserts, retractions = _list_rows_of(carrier, row_port, sign, first, last, carried)
    for row in range(first, last):
        prefetch(k_table, key_hashes[row] & k_mask)
    for row in range(first, last):
        if row + _KEY_AHEAD < last:
            _prefetch_key(key_hashes[row + _KEY_AHEAD], k_table, k_mask, k_keys, key_width)
        key = _find_or_add(
            columns, row, key_hashes[row], sign[row], key_width, k_table, k_mask, k_keys, k_counts, k_free, k_meta
        )
        located[row % LOCATED_ROWS] = key
        _prefetch_record(key, key_words, key_size, k_counts)
    if apart:
        # Inserted rows are mostly new, and retracted ones never: in separate passes the branch is predictable.
        _find_row_entries(
            np.int64(0), inserts, carried, sign, columns, row_hashes, row_width, located, r_table, r_keys, r_counts, r_free, r_meta,
            row_size, row_words,
        )  # fmt: skip
        _find_row_entries(
            retractions, np.int64(LOCATED_ROWS), carried, sign, columns, row_hashes, row_width, located, r_table, r_keys,
            r_counts, r_free, r_meta, row_size, row_words,
        )  # fmt: skip
    else:
        for row in range(first, last):
            located[LOCATED_ROWS + row % LOCATED_ROWS] = located[row % LOCATED_ROWS]
    _prefetch_linked(
        first, last, carrier, inserts, retractions, of_aggregates, located, key_size, key_words, row_size, row_words, r_keys,
        row_width, heap
    )  # fmt: skip


@jit_inline
def _prefetch_linked(
    first, last, carrier, inserts, retractions, of_aggregates, located, key_size, key_words, row_size, row_words, row_keys,
    row_width, heap
):  # fmt: skip
    """Prefetch the bags of the records found, and the first row of a key. `inserts`, `retractions`: the ends of the lists of
    `_list_rows_of`."""
    kinds, ports, local = of_aggregates[KINDS], of_aggregates[PORTS], of_aggregates[LOCAL]
    for row in range(first, last):
        key = located[row % LOCATED_ROWS]
        if key < 0:
            continue
        for a in range(len(kinds)):
            if kinds[a] == TERM and ports[a] != carrier:
                prefetch_bag(key_words, key * key_size + local[a], heap)
        # Without a row this is an arbitrary address, which does no harm.
        head = key_words[key * key_size + HEAD] - 1
        prefetch(row_words, head * row_size)
        prefetch(row_keys, head * row_width)
    for a in range(len(kinds)):
        if kinds[a] == TERM and ports[a] == carrier:
            for i in range(inserts + LOCATED_ROWS - retractions):
                row = located[2 * LOCATED_ROWS + (i if i < inserts else i - inserts + retractions)]
                entry = located[LOCATED_ROWS + row % LOCATED_ROWS]
                if entry >= 0:
                    prefetch_first(row_words, entry * row_size + local[a], heap)


@jit_inline
def prefetch_rows(head, row_words, row_size, row_keys, row_width):
    """Prefetch the first rows of a key, where there are several."""
    following, rows = head, 0
    while following > 0 and rows < _FEW_ROWS:
        prefetch(row_keys, (following - 1) * row_width)
        following = row_words[(following - 1) * row_size + NEXT]
        rows += 1
