"""The records of aggregation below a join (factorised.py): their layout, and how a step finds them.

By key: `key_words`: HEAD its first row + 1, SNAP its snapshot + 1, a counter for each input, accumulators; `key_apart`.

By row: `row_words`: NEXT and PREVIOUS of its key's rows, + 1, COUNTER, accumulators; `row_apart`.

Rows: the columns of a step's rows of all inputs by tick, the carrier's first: ROW_TICK, ROW_SIGN, ROW_PORT; the hashes
of the key and, for the carrier, of the row's whole identity (key, the carrier's own variables of the group); these
variables from FIRST on, and then the aggregates' arguments.

Kernels open all of this from records into NamedTuples: factorised_state.py.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat, jit_inline
from cqels_py.kernels.primitives.prefetch import prefetch
from cqels_py.kernels.structures.hash_table import FREE, find_in_first_slots
from cqels_py.kernels.structures.heaps import prefetch_bag, prefetch_first
from cqels_py.kernels.structures.key_index import add_key, find_key, has_room

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
def _prefetch_new(records, own):
    """Prefetch the records of rows to be inserted: those freed last are reused first."""
    following = own.meta[FREE] - _ENTRY_AHEAD // 2
    if following >= 0:
        prefetch(records.row_words, own.free[following] * records.row_size)
        prefetch(records.row_keys, own.free[following] * records.row_width)


@jit_inline
def _prefetch_key(hashed, index, width):
    """Prefetch the key of the entry that a hash refers to; the table's slot should be in the cache already."""
    word = index.table[hashed & np.int64(len(index.table) - 1)]
    prefetch(index.keys, ((word & _LOWER) - 1) * width)


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
def _count_insertions(sign, first, last):
    insertions = np.int64(0)
    for row in range(first, last):
        insertions += np.int64(sign[row] > 0)
    return insertions


@jit_inline
def _find_or_add(columns, row, hashed, delta, width, index):
    """The entry of a row's key, which is added for an insertion; -1 for a retraction if there is none."""
    entry = np.int64(-1)
    if width == 1:
        places = np.uint64(len(index.table) - 1)
        entry = find_in_first_slots(hashed, columns[0, row], index.table, places, index.keys)
    if entry < 0:
        entry = find_key(index, width, columns, row, hashed)
    if entry < 0 and delta > 0:
        entry = add_key(index, width, columns, row, hashed)
    return entry


@jit_flat
def _find_row_entries(first, end, carried, sign, columns, row_hashes, row_width, located, own, records):
    """Find the own records of the rows carried[first:end], as `find_entries` does."""
    mask = np.int64(len(own.table) - 1)
    for i in range(first, end):
        prefetch(own.table, row_hashes[carried[i]] & mask)
    for i in range(first, end):
        row = carried[i]
        if i + _KEY_AHEAD < end:
            _prefetch_key(row_hashes[carried[i + _KEY_AHEAD]], own, row_width)
        if sign[row] > 0:
            _prefetch_new(records, own)
        entry = _find_or_add(columns, row, row_hashes[row], sign[row], row_width, own)
        _prefetch_record(entry, records.row_words, records.row_size, own.counts)
        located[LOCATED_ROWS + row % LOCATED_ROWS] = entry


@jit_flat
def find_entries(rows, first, last, plan, located, keys, own, records, heap):
    """Find the records of the keys of rows `first` to `last` - 1 and, for rows of the carrier, their own.

    An insertion gets a record if it has none; -1: a retraction has none. Those of row i are at i % LOCATED_ROWS, and
    LOCATED_ROWS further on; after these are the rows of the carrier, as listed by `_list_rows_of`. Everything that the
    records refer to is prefetched in turn, so that many loads are in flight at once. False: there is no room for so many
    new keys or rows, and nothing has changed.
    """
    key_width, row_width = len(plan.key_places), len(plan.row_places)
    sign, row_port = rows[ROW_SIGN], rows[ROW_PORT]
    key_hashes, row_hashes, columns = rows[KEY_HASH], rows[ROW_HASH], rows[FIRST : FIRST + row_width]
    mask = np.int64(len(keys.table) - 1)
    apart, carried = row_width > key_width, located[2 * LOCATED_ROWS :]
    inserts, retractions = _list_rows_of(plan.carrier, row_port, sign, first, last, carried)
    if not has_room(keys, key_width, _count_insertions(sign, first, last)):
        return False
    if apart and not has_room(own, row_width, inserts):
        return False
    for row in range(first, last):
        prefetch(keys.table, key_hashes[row] & mask)
    for row in range(first, last):
        if row + _KEY_AHEAD < last:
            _prefetch_key(key_hashes[row + _KEY_AHEAD], keys, key_width)
        key = _find_or_add(columns, row, key_hashes[row], sign[row], key_width, keys)
        located[row % LOCATED_ROWS] = key
        _prefetch_record(key, records.key_words, records.key_size, keys.counts)
    if apart:
        # Inserted rows are mostly new, and retracted ones never: in separate passes the branch is predictable.
        _find_row_entries(np.int64(0), inserts, carried, sign, columns, row_hashes, row_width, located, own, records)
        _find_row_entries(
            retractions, np.int64(LOCATED_ROWS), carried, sign, columns, row_hashes, row_width, located, own, records
        )
    else:
        for row in range(first, last):
            located[LOCATED_ROWS + row % LOCATED_ROWS] = located[row % LOCATED_ROWS]
    _prefetch_linked(first, last, inserts, retractions, plan, located, records, heap)
    return True


@jit_inline
def _prefetch_linked(first, last, inserts, retractions, plan, located, records, heap):
    """Prefetch the bags of the records found, and the first row of a key. `inserts`, `retractions`: the ends of the lists of
    `_list_rows_of`."""
    kinds, ports, local = plan.kinds, plan.ports, plan.local
    for row in range(first, last):
        key = located[row % LOCATED_ROWS]
        if key < 0:
            continue
        for a in range(len(kinds)):
            if kinds[a] == TERM and ports[a] != plan.carrier:
                prefetch_bag(records.key_words, key * records.key_size + local[a], heap)
        # Without a row this is an arbitrary address, which does no harm.
        head = records.key_words[key * records.key_size + HEAD] - 1
        prefetch(records.row_words, head * records.row_size)
        prefetch(records.row_keys, head * records.row_width)
    for a in range(len(kinds)):
        if kinds[a] == TERM and ports[a] == plan.carrier:
            for i in range(inserts + LOCATED_ROWS - retractions):
                row = located[2 * LOCATED_ROWS + (i if i < inserts else i - inserts + retractions)]
                entry = located[LOCATED_ROWS + row % LOCATED_ROWS]
                if entry >= 0:
                    prefetch_first(records.row_words, entry * records.row_size + local[a], heap)


@jit_inline
def prefetch_rows(head, records):
    """Prefetch the first rows of a key, where there are several."""
    following, rows = head, 0
    while following > 0 and rows < _FEW_ROWS:
        prefetch(records.row_keys, (following - 1) * records.row_width)
        following = records.row_words[(following - 1) * records.row_size + NEXT]
        rows += 1
