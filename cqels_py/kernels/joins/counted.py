"""The join of events by counters: each row of a source makes of the counters that agree with it counters of larger sets.

A counter is an entry of a set: its values and how many combinations of rows have them. Entries of all sets lie in one array. A set
has one or more indexes over its entries, each by some of its columns; index 0 is by all. Entries with the same hash of an index's
values are linked, from the newest to the oldest; a link is entry * MOST_INDEXES + index + 1, 0 ends the list.

Where only the best values of some columns matter (`BETTER`, behind the columns of index 0), an entry that another one with the same
key dominates makes no result that the other does not make: it is overwritten, or marked by a counter of 0. Marked entries stay in
their lists, for a new one with the same key.

Rows of one instant come with later sources first: where a source has to be earlier, a row finds counters of earlier instants only.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat, jit_inline
from cqels_py.kernels.primitives.state_record import int64_rows, int64s
from cqels_py.kernels.structures.hashing import combine, mix

MOST_INDEXES = 16
# The program's arrays.
STEPS, STEPS_OF, EQUAL, COMPARED, COPIED, SETS, INDEXES, INDEX_COLUMNS, BETTER, UNTIL = range(10)
# The state's arrays.
ENTRIES, LINKS, BUCKETS, SIZES, META, KEY, OUT = range(7)
# A step. INDEX: that of the start by the columns of EQUAL.
START, TARGET, INDEX, EQUAL_FROM, EQUAL_TO, COMPARED_FROM, COMPARED_TO, COPIED_FROM, COPIED_TO, STEP_FIELDS = range(10)
# A set: its indexes are rows of INDEXES, which hold where their columns lie in INDEX_COLUMNS.
# KEYED: so many columns are no best values.
WIDTH, INDEXES_FROM, INDEXES_TO, BETTER_FROM, KEYED, SET_FIELDS = range(6)
# A copied value: from the row (0) or the counter (1), the column, and the places beyond which all values are one.
ORIGIN, COLUMN, LOW, HIGH = range(4)
# An entry: its set, the counter, and the values.
SET, COUNT, VALUES = range(3)
# A row of a source: its number, the time, and the values.
SOURCE, TIME, ROW_VALUES = range(3)
# A row of output: the time, how often, and the values.
OUT_TIME, OUT_COUNT, OUT_VALUES = range(3)
USED, MADE, ONCE, META_FIELDS = range(4)
OVERFLOW = -1
LESS, LESS_EQUAL, EQUALS, DIFFERS, GREATER, GREATER_EQUAL = range(6)


@jit_inline
def _holds(operator, left, right):
    if operator == LESS:
        return left < right
    if operator == LESS_EQUAL:
        return left <= right
    if operator == EQUALS:
        return left == right
    if operator == DIFFERS:
        return left != right
    if operator == GREATER:
        return left > right
    return left >= right


@jit_flat
def _find(program, state, set_, index):
    """The first link of the list of entries that have the values in KEY as those of an index; others may be in it too."""
    return int64s(state, BUCKETS)[_bucket(program, state, set_, index)]


@jit_flat
def _bucket(program, state, set_, index):
    key, indexes = int64s(state, KEY), int64_rows(program, INDEXES)
    first = int64_rows(program, SETS)[set_, INDEXES_FROM] + index
    hashed = mix(set_ * MOST_INDEXES + index + 1)
    for c in range(indexes[first, 1] - indexes[first, 0]):
        hashed = combine(hashed, key[c])
    return hashed & np.int64(len(int64s(state, BUCKETS)) - 1)


@jit_flat
def _link(program, state, entry):
    """Put a new entry into the lists of all indexes of its set."""
    entries, links, buckets, key = (
        int64_rows(state, ENTRIES),
        int64_rows(state, LINKS),
        int64s(state, BUCKETS),
        int64s(state, KEY),
    )
    indexes, columns = int64_rows(program, INDEXES), int64s(program, INDEX_COLUMNS)
    set_ = entries[entry, SET]
    first = int64_rows(program, SETS)[set_, INDEXES_FROM]
    for index in range(int64_rows(program, SETS)[set_, INDEXES_TO] - first):
        begin = indexes[first + index, 0]
        for c in range(indexes[first + index, 1] - begin):
            key[c] = entries[entry, VALUES + columns[begin + c]]
        bucket = _bucket(program, state, set_, index)
        links[entry, index] = buckets[bucket]
        buckets[bucket] = entry * MOST_INDEXES + index + 1


@jit_flat
def relink(program, state):
    """Put all entries into new, empty lists."""
    for entry in range(int64s(state, META)[USED]):
        _link(program, state, entry)


@jit_flat
def _dominates(program, state, set_, entry, reverse):
    """Are the best values of an entry as good as those in KEY, or (`reverse`) those in KEY as good as the entry's?"""
    entries, key, better = int64_rows(state, ENTRIES), int64s(state, KEY), int64s(program, BETTER)
    sets = int64_rows(program, SETS)
    for c in range(sets[set_, KEYED], sets[set_, WIDTH]):
        ahead = (entries[entry, VALUES + c] - key[c]) * better[sets[set_, BETTER_FROM] + c]
        if (ahead > 0) if reverse else (ahead < 0):
            return False
    return True


@jit_flat
def _write(entries, entry, set_, count, key, width):
    entries[entry, SET], entries[entry, COUNT] = set_, count
    for c in range(width):
        entries[entry, VALUES + c] = key[c]


@jit_flat
def _add(program, state, set_, count):
    """Add to the counter of a set with the values in KEY. Returns 0, or OVERFLOW."""
    entries, links, key, meta = (
        int64_rows(state, ENTRIES),
        int64_rows(state, LINKS),
        int64s(state, KEY),
        int64s(state, META),
    )
    width, keyed = int64_rows(program, SETS)[set_, WIDTH], int64_rows(program, SETS)[set_, KEYED]
    free = np.int64(-1)
    link = _find(program, state, set_, 0)
    while link != 0:
        entry, index = (link - 1) // MOST_INDEXES, (link - 1) % MOST_INDEXES
        link = links[entry, index]
        if index != 0 or entries[entry, SET] != set_:
            continue
        same = True
        for c in range(keyed):
            if entries[entry, VALUES + c] != key[c]:
                same = False
                break
        if not same:
            continue
        if entries[entry, COUNT] == 0:
            free = entry
        elif keyed < width:
            if _dominates(program, state, set_, entry, False):
                return np.int64(0)
            if _dominates(program, state, set_, entry, True):
                entries[entry, COUNT] = 0
                free = entry
        elif meta[ONCE] != 0:
            return np.int64(0)
        else:
            total = entries[entry, COUNT] + count
            if total < 0:
                return np.int64(OVERFLOW)
            entries[entry, COUNT] = total
            return np.int64(0)
    if free >= 0:
        _write(entries, free, set_, count, key, width)
        return np.int64(0)
    entry = meta[USED]
    meta[USED] += 1
    int64s(state, SIZES)[set_] += 1
    _write(entries, entry, set_, count, key, width)
    _link(program, state, entry)
    return np.int64(0)


@jit_flat
def _agrees(program, state, row, step, entry):
    """Does an entry agree with a row?"""
    entries, steps = int64_rows(state, ENTRIES), int64_rows(program, STEPS)
    equal, compared = int64_rows(program, EQUAL), int64_rows(program, COMPARED)
    if entries[entry, SET] != steps[step, START] or entries[entry, COUNT] == 0:
        return False
    for e in range(steps[step, EQUAL_FROM], steps[step, EQUAL_TO]):
        if row[ROW_VALUES + equal[e, 0]] != entries[entry, VALUES + equal[e, 1]]:
            return False
    for c in range(steps[step, COMPARED_FROM], steps[step, COMPARED_TO]):
        left, right = row[ROW_VALUES + compared[c, 0]], entries[entry, VALUES + compared[c, 2]]
        if not _holds(compared[c, 1], left, right):
            return False
    return True


@jit_flat
def _make(program, state, row, step, entry, out):
    """Make a counter of the target, or a row of output, of a row and an entry (-1: of the row alone). Returns 0, or OVERFLOW."""
    entries, steps, meta = int64_rows(state, ENTRIES), int64_rows(program, STEPS), int64s(state, META)
    copied, key = int64_rows(program, COPIED), int64s(state, KEY)
    count = np.int64(1) if entry < 0 else entries[entry, COUNT]
    target = steps[step, TARGET]
    if target >= 0 and row[TIME] > int64s(program, UNTIL)[target]:
        return np.int64(0)
    first = steps[step, COPIED_FROM]
    for c in range(steps[step, COPIED_TO] - first):
        column = copied[first + c, COLUMN]
        value = row[ROW_VALUES + column] if copied[first + c, ORIGIN] == 0 else entries[entry, VALUES + column]
        value = max(copied[first + c, LOW], min(value, copied[first + c, HIGH]))
        if target >= 0:
            key[c] = value
        else:
            out[meta[MADE], OUT_VALUES + c] = value
    if target >= 0:
        return _add(program, state, target, count)
    out[meta[MADE], OUT_TIME], out[meta[MADE], OUT_COUNT] = row[TIME], count
    meta[MADE] += 1
    return np.int64(0)


@jit_flat
def room_needed(program, state, source):
    """So many new entries, or rows of output, can a row of a source make at most."""
    steps, steps_of, sizes = int64_rows(program, STEPS), int64s(program, STEPS_OF), int64s(state, SIZES)
    needed = np.int64(0)
    for step in range(steps_of[source], steps_of[source + 1]):
        start = steps[step, START]
        needed += 1 if start < 0 else sizes[start]
    return needed


@jit_flat
def take(program, state, rows, start, out):
    """Take in rows from the one at `start`, in order of time, of one instant with later sources first.

    Returns the number of rows taken in, which is less where there is no room for the results of the next one; -1 - r if a counter
    has overflowed at row r.
    """
    steps, steps_of, equal = int64_rows(program, STEPS), int64s(program, STEPS_OF), int64_rows(program, EQUAL)
    links, meta, key = int64_rows(state, LINKS), int64s(state, META), int64s(state, KEY)
    for r in range(start, len(rows)):
        row = rows[r]
        source = row[SOURCE]
        needed = room_needed(program, state, source)
        if meta[USED] + needed > len(links) or meta[MADE] + needed > len(out):
            return np.int64(r)
        for step in range(steps_of[source], steps_of[source + 1]):
            begin = steps[step, START]
            if begin < 0:
                if _make(program, state, row, step, np.int64(-1), out) != 0:
                    return np.int64(-1 - r)
                continue
            first = steps[step, EQUAL_FROM]
            for e in range(steps[step, EQUAL_TO] - first):
                key[e] = row[ROW_VALUES + equal[first + e, 0]]
            index = steps[step, INDEX]
            link = _find(program, state, begin, index)
            while link != 0:
                entry, of = (link - 1) // MOST_INDEXES, (link - 1) % MOST_INDEXES
                link = links[entry, of]
                if of == index and _agrees(program, state, row, step, entry):
                    if _make(program, state, row, step, entry, out) != 0:
                        return np.int64(-1 - r)
    return np.int64(len(rows))
