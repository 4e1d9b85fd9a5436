"""The tokenizer of N-Triples and N-Quads: from bytes to columns of ids and the bounds of elements, in one pass.

It reads whole lines and stops where Python has to act (a table that is full, an escape, a malformed line), always at
the start of a statement of which nothing has been written. Called again, it continues there.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat, jit_inline
from cqels_py.kernels.values.dictionary import DONE, NOT_WRITTEN_SO, encode_term
from cqels_py.kernels.values.iris import is_iri
from cqels_py.kernels.values.murmur import murmur64
from cqels_py.kernels.values.syntax import (
    HASH,
    LESS,
    MALFORMED,
    NEWLINE,
    NO_QUOTE,
    NOT_CANONICAL,
    POINT,
    QUOTE,
    RETURN,
    SPACE,
    TAB,
    UNDERSCORE,
    term_end,
)
from cqels_py.kernels.values.words import same

# Why `scan` stopped, in addition to the statuses of the dictionary's kernels (0 to 4).
ROWS_FULL, DECLARED_FULL, BAD_LINE, PENDING_FULL = 5, 6, 7, 8

# How statements form elements. BY_LINE: all statements until the element is closed from outside.
NO_ELEMENTS, BY_SUBJECT, BY_GRAPH, BY_LINE = range(4)

# The cells of `state`. GRAPHS: may a statement name a graph; LINE: number of the current line, and LINE_STEP its
# increment; ROWS, ELEMENTS: how many are in the output; KEY: hash of the subject or graph of the last element, 0 when
# it is closed; DOCUMENT: the scope of blank nodes; TIME_INSIDE: the predicate of an element's triples that gives its
# time, TIME_AHEAD: that of triples before it, KNOWN_AHEAD: another one allowed there (ids, 0: none); DECLARED: entries
# of `declared`; NAMED: are the ids of graphs needed, GRAPH_ID: that of the last element; ABOUT: how many statements of
# the default graph were added to elements; PENDING, FREE: places of `pending` ever used, and the first free one (from
# 1, 0: none); OFFSET: the position of an error in a malformed line, EXPECTED the token expected there; TERM_START,
# TERM_END, TERM_ID: the term of a collision; GIVEN: how many ids of terms are given by the caller, each as (start, end,
# id) from GIVEN + 1 on.
FORM, GRAPHS, LINE, LINE_STEP, ROWS, ELEMENTS, KEY, DOCUMENT = range(8)
TIME_INSIDE, TIME_AHEAD, KNOWN_AHEAD, DECLARED, OFFSET, EXPECTED, TERM_START, TERM_END, TERM_ID = range(8, 17)
NAMED, GRAPH_ID, ABOUT, PENDING, FREE, GIVEN = range(17, 23)
STATE_CELLS = GIVEN + 1 + 4 * 3

# Rows of `elements`.
FIRST_ROW, TIME_ID, START_LINE = 0, 1, 2
CONFLICT = -1
"""The time's id of an element with two different times."""

# The token expected where a line is malformed.
AS_SUBJECT, AS_PREDICATE, AS_OBJECT, AS_GRAPH, AS_POINT, AS_END, AS_TERM, AS_TIME = range(8)

# Cells of an entry of `declared`: the graph's hash (0: none), the id of its time (0: none yet), and of its statements
# in `pending` the last one (from 1) and the count.
DECLARED_CELLS = 4
_GRAPH, _TIME, _LAST, _COUNT = range(DECLARED_CELLS)
PENDING_ROWS, _BEFORE = 4, 3
"""Rows of `pending`: subject, predicate, object, and the statement before it of the same graph, or the next free place
(from 1)."""

IN_A_GRAPH = 1
"""Instead of a graph's id where it is not needed."""

_RECENT = 16
_REPEATED = -2
"""Instead of the position of a closing quote: the term equals the one remembered for its position."""

# Rows of `scratch`, four cells each: the terms of the current statement (start, end, closing quote, id), an IRI
# remembered for each position (start, length, id; of a graph: its key), and recent predicates in the same form.
_TERMS, _SEEN, _PREDICATES = 0, 4, 8
_START, _END, _CLOSING, _ID = range(4)
_LENGTH, _STANDS_FOR = 1, 2
SCRATCH_ROWS = _PREDICATES + _RECENT


@jit_inline
def _skip_blanks(data, at, end):
    while at < end and (data[at] == SPACE or data[at] == TAB):
        at += 1
    return at


@jit_inline
def _repeats(data, at, end, start, length):
    """Are `length` bytes from `at` on equal to those from `start` on?"""
    return at + length <= end and same(data, start, data, at, length)


@jit_inline
def _fits(data, at, term):
    """May the term that starts at `at` be term number `term` (0 subject, 1 predicate, 2 object, 3 graph)?"""
    c = data[at]
    return c == LESS or (c == UNDERSCORE and term != 1) or (c == QUOTE and term == 2)


@jit_inline
def _line_end(data, at, end):
    """After a statement's point: blanks and a comment -> (start of the next line or end, ok)."""
    at = _skip_blanks(data, at, end)
    if at < end and data[at] == HASH:
        while at < end and data[at] != NEWLINE and data[at] != RETURN:
            at += 1
    return at, at >= end or data[at] == NEWLINE or data[at] == RETURN


@jit_inline
def _split(data, at, end, scratch, state):
    """The bounds of the terms of the statement at `at`, into `scratch` -> (next, terms, written)."""
    terms = np.int64(0)
    escaped = False
    while True:
        at = _skip_blanks(data, at, end)
        if at >= end or data[at] == POINT or data[at] == NEWLINE or data[at] == RETURN or data[at] == HASH:
            break
        if terms == 4 or (terms == 3 and state[GRAPHS] == 0):
            break
        state[OFFSET] = at
        state[EXPECTED] = terms
        if not _fits(data, at, terms):
            return at, terms, MALFORMED
        scratch[terms, _START] = at
        length = scratch[_SEEN + terms, _LENGTH]
        if length > 0 and _repeats(data, at, end, scratch[_SEEN + terms, _START], length):
            scratch[terms, _CLOSING] = _REPEATED
            at += length
        else:
            state[EXPECTED] = AS_TERM
            stop, quote, written = term_end(data, at, end)
            if written == MALFORMED:
                state[OFFSET] = stop
                return at, terms, MALFORMED
            if written == NOT_CANONICAL:
                escaped = True
            scratch[terms, _CLOSING] = quote
            at = stop
        scratch[terms, _END] = at
        terms += 1
    state[OFFSET] = at
    if terms < 3 or at >= end or data[at] != POINT:
        state[EXPECTED] = terms if terms < 3 else (AS_GRAPH if terms == 3 and state[GRAPHS] else AS_POINT)
        return at, terms, MALFORMED
    at, ended = _line_end(data, at + 1, end)
    if not ended:
        state[OFFSET] = at
        state[EXPECTED] = AS_END
        return at, terms, MALFORMED
    return at, terms, NOT_CANONICAL if escaped else 0


@jit_inline
def _key(data, start, end):
    """The hash that tells subjects or graphs apart; never 0."""
    found = np.int64(murmur64(data, start, end))
    return found if found != 0 else np.int64(1)


@jit_inline
def _place(declared, key):
    """The first cell of a graph's entry, or where it would be."""
    mask = np.int64(len(declared) - 1)
    at = key * DECLARED_CELLS & mask
    while declared[at] != 0 and declared[at] != key:
        at = (at + DECLARED_CELLS) & mask
    return at


@jit_inline
def _entry(declared, key):
    """The first cell of a graph's entry, which is inserted if it is missing."""
    at = _place(declared, key)
    if declared[at] == 0:
        declared[at] = key
        for cell in range(1, DECLARED_CELLS):
            declared[at + cell] = 0
    return at


@jit_flat
def declare(declared, key, time):
    """Store the time's id of a graph that has not come yet; 1 if the graph is a new entry."""
    new = declared[_place(declared, key)] == 0
    declared[_entry(declared, key) + _TIME] = time
    return 1 if new else 0


@jit_flat
def declare_all(old, declared):
    """Insert all of `old` into a larger, empty table."""
    for i in range(0, len(old), DECLARED_CELLS):
        if old[i] != 0:
            at = _entry(declared, old[i])
            for cell in range(1, DECLARED_CELLS):
                declared[at + cell] = old[i + cell]


@jit_flat
def take_declared(declared, key):
    """Remove a graph's entry and return its time's id; 0 if there is none."""
    mask = np.int64(len(declared) - 1)
    hole = _place(declared, key)
    if declared[hole] == 0:
        return np.int64(0)
    time = declared[hole + _TIME]
    at = hole
    while True:
        at = (at + DECLARED_CELLS) & mask
        other = declared[at]
        if other == 0:
            break
        # An entry is shifted back into the hole unless its home slot is between the two.
        if ((at - other * DECLARED_CELLS) & mask) >= ((at - hole) & mask):
            for cell in range(DECLARED_CELLS):
                declared[hole + cell] = declared[at + cell]
            hole = at
    declared[hole] = 0
    return time


@jit_flat
def keep_pending(declared, key, pending, state, subject, predicate, object_):
    """Store a statement about a graph that has not come yet; there is a free place."""
    place = state[FREE] - 1
    if place >= 0:
        state[FREE] = pending[_BEFORE, place]
    else:
        place = state[PENDING]
        state[PENDING] = place + 1
    if declared[_place(declared, key)] == 0:
        state[DECLARED] += 1
    at = _entry(declared, key)
    pending[0, place], pending[1, place], pending[2, place] = subject, predicate, object_
    pending[_BEFORE, place] = declared[at + _LAST]
    declared[at + _LAST] = place + 1
    declared[at + _COUNT] += 1


@jit_flat
def take_pending(last, count, pending, state, rows, row):
    """Write the `count` pending statements about a graph, which end with `last`, from a row on, and free their places."""
    at = row + count
    while last > 0:
        place, at = last - 1, at - 1
        for k in range(3):
            rows[k, at] = pending[k, place]
            pending[k, place] = 0
        rows[3, at] = 0
        last = pending[_BEFORE, place]
        pending[_BEFORE, place] = state[FREE]
        state[FREE] = place + 1
    state[ABOUT] += count


@jit_flat
def left_pending(declared, pending):
    """Of the graphs that never came, and have pending statements: how many there are, and the place of one such
    statement, or -1."""
    graphs, place = np.int64(0), np.int64(-1)
    for i in range(0, len(declared), DECLARED_CELLS):
        if declared[i] != 0 and declared[i + _COUNT] > 0:
            graphs += 1
            place = declared[i + _LAST] - 1
    return graphs, place


@jit_inline
def _set_time(elements, element, time):
    if elements[TIME_ID, element] == 0:
        elements[TIME_ID, element] = time
    elif elements[TIME_ID, element] != time:
        elements[TIME_ID, element] = CONFLICT


@jit_inline
def _remember(scratch, row, start, stop, stands_for):
    """Store an IRI's position and its id (or key)."""
    scratch[row, _START], scratch[row, _LENGTH], scratch[row, _STANDS_FOR] = start, stop - start, stands_for


@jit_inline
def _given(state, start, end):
    """The id of data[start:end] if the caller gave it, or 0."""
    for k in range(state[GIVEN]):
        at = GIVEN + 1 + 3 * k
        if state[at] == start and state[at + 1] == end:
            return state[at + 2]
    return np.int64(0)


@jit_inline
def _recent(data, end, start, length, scratch):
    """The number of a recent predicate with these bytes, or -1."""
    for k in range(_RECENT):
        row = _PREDICATES + k
        if scratch[row, _LENGTH] == length and _repeats(data, start, end, scratch[row, _START], length):
            return k
    return -1


@jit_flat
def _id_of(data, k, scratch, state, shift, table, arena, meta):
    """(id, status) of the subject or graph, term `k` of the statement; most statements do not need it."""
    start, stop = scratch[k, _START], scratch[k, _END]
    identifier = np.int64(0)
    if k == 0 and scratch[0, _CLOSING] == _REPEATED:
        identifier = scratch[_SEEN, _STANDS_FOR]
    elif state[GIVEN] > 0:
        identifier = _given(state, start, stop)
    if identifier != 0:
        return identifier, DONE
    identifier, status = encode_term(data, start, stop, NO_QUOTE, state[DOCUMENT], shift, table, arena, meta)
    if status != DONE:
        state[TERM_START], state[TERM_END], state[TERM_ID] = start, stop, identifier
    return identifier, status


@jit_flat
def scan(data, at, shift, state, scratch, table, arena, meta, declared, pending, rows, elements):
    """Read statements of `data` (uint8, whole lines) from `at` on -> (position, status).

    `scratch`: (SCRATCH_ROWS, 4), its content does not matter. `rows` (4, capacity): ids of subject, predicate, object,
    graph; elements' triples have IN_A_GRAPH for it unless it is needed, and 0 in the default graph. `elements` (3,
    capacity): first row, id of the time (0: none yet), line. `declared`: a hash table with open addressing, by the
    graph's hash, of the statements before elements: their times, and the number of statements about them, which `pending`
    (PENDING_ROWS, capacity) holds.
    """
    end = len(data)
    # Nothing is remembered yet: the content may be of other data.
    for row in range(SCRATCH_ROWS):
        for cell in range(4):
            scratch[row, cell] = 0
    latest, filled = np.int64(0), np.int64(0)
    form = state[FORM]
    while True:
        while at < end and (data[at] == NEWLINE or data[at] == RETURN or data[at] == SPACE or data[at] == TAB):
            if data[at] == NEWLINE:
                state[LINE] += state[LINE_STEP]
            at += 1
        if at >= end:
            return at, DONE
        if data[at] == HASH:
            at, _ = _line_end(data, at, end)
            continue
        row = state[ROWS]
        if row == rows.shape[1]:
            return at, ROWS_FULL
        # Predicates tend to repeat in the same order.
        guess = (latest + 1) % _RECENT
        for cell in range(3):
            scratch[_SEEN + 1, cell] = scratch[_PREDICATES + guess, cell]
        following, terms, written = _split(data, at, end, scratch, state)
        if written == MALFORMED:
            return at, BAD_LINE
        if written == NOT_CANONICAL:
            return at, NOT_WRITTEN_SO

        ahead = form == BY_GRAPH and terms == 3
        key = np.int64(1 if form == BY_LINE else 0)
        if form == BY_GRAPH:
            by = 0 if ahead else 3
            if not ahead and scratch[by, _CLOSING] == _REPEATED:
                key = scratch[_SEEN + by, _STANDS_FOR]
            else:
                start, stop = scratch[by, _START], scratch[by, _END]
                key = _key(data, start, stop)
                # The dictionary checks IRIs, and it need not get that of a graph.
                new = key != state[KEY] and declared[_place(declared, key)] != key
                if new and data[start] == LESS and not is_iri(data, start, stop):
                    return at, NOT_WRITTEN_SO
            # The bytes of an IRI include its end; a blank node's label may be a prefix of another one.
            if not ahead and data[scratch[by, _START]] == LESS:
                _remember(scratch, _SEEN + by, scratch[by, _START], scratch[by, _END], key)

        for k in range(1 if ahead else 0, terms if form == NO_ELEMENTS else 3):
            start, stop = scratch[k, _START], scratch[k, _END]
            identifier = np.int64(0)
            if scratch[k, _CLOSING] == _REPEATED:
                identifier = scratch[_SEEN + k, _STANDS_FOR]
                if k == 1:
                    latest = guess
            elif state[GIVEN] > 0:
                identifier = _given(state, start, stop)
            if k == 1 and identifier == 0:
                found = _recent(data, end, start, stop - start, scratch)
                if found >= 0:
                    identifier = scratch[_PREDICATES + found, _STANDS_FOR]
                    latest = np.int64(found)
            if identifier == 0:
                identifier, status = encode_term(
                    data, start, stop, scratch[k, _CLOSING], state[DOCUMENT], shift, table, arena, meta
                )
                if status != DONE:
                    state[TERM_START], state[TERM_END], state[TERM_ID] = start, stop, identifier
                    return at, status
                if k == 1:
                    latest = filled
                    _remember(scratch, _PREDICATES + latest, start, stop, identifier)
                    filled = (filled + 1) % _RECENT
            if k == 0:
                if data[start] == LESS:
                    _remember(scratch, _SEEN, start, stop, identifier)
                if form == BY_SUBJECT:
                    key = identifier
            scratch[k, _ID] = identifier

        graph = np.int64(0)
        if terms == 4:
            graph = scratch[3, _ID] if form == NO_ELEMENTS else np.int64(IN_A_GRAPH)
            if state[NAMED] != 0:
                if form == BY_GRAPH and key == state[KEY]:
                    graph = state[GRAPH_ID]
                else:
                    graph, status = _id_of(data, 3, scratch, state, shift, table, arena, meta)
                    if status != DONE:
                        return at, status

        timing = about = False
        if terms == 3 and form >= BY_GRAPH:
            timing = scratch[1, _ID] == state[TIME_AHEAD]
            about = ahead and not timing and scratch[1, _ID] != state[KNOWN_AHEAD]
            if about:
                scratch[0, _ID], status = _id_of(data, 0, scratch, state, shift, table, arena, meta)
                if status != DONE:
                    return at, status

        if timing:
            if 2 * DECLARED_CELLS * (state[DECLARED] + 1) > len(declared):
                return at, DECLARED_FULL
            state[DECLARED] += declare(declared, key, scratch[2, _ID])
            if key == state[KEY]:
                state[KEY] = 0
        elif about and key != state[KEY]:
            if declared[_place(declared, key)] == 0 and state[TIME_INSIDE] == 0:
                state[OFFSET] = scratch[0, _START]
                state[EXPECTED] = AS_TIME
                return at, BAD_LINE
            if 2 * DECLARED_CELLS * (state[DECLARED] + 1) > len(declared):
                return at, DECLARED_FULL
            if state[FREE] == 0 and state[PENDING] == pending.shape[1]:
                return at, PENDING_FULL
            keep_pending(declared, key, pending, state, scratch[0, _ID], scratch[1, _ID], scratch[2, _ID])
        elif about or not ahead:
            if form != NO_ELEMENTS:
                if key != state[KEY]:
                    element, first = state[ELEMENTS], row
                    time = np.int64(0)
                    if form >= BY_GRAPH and state[DECLARED] > 0:
                        entry = _place(declared, key)
                        if declared[entry] != 0:
                            last, count = declared[entry + _LAST], declared[entry + _COUNT]
                            if row + count >= rows.shape[1]:
                                return at, ROWS_FULL
                            if count > 0:
                                take_pending(last, count, pending, state, rows, row)
                                row += count
                            time = take_declared(declared, key)
                            state[DECLARED] -= 1
                    elements[FIRST_ROW, element] = first
                    elements[TIME_ID, element] = time
                    elements[START_LINE, element] = state[LINE]
                    state[ELEMENTS] += 1
                    state[KEY], state[GRAPH_ID] = key, graph
                if scratch[1, _ID] == state[TIME_INSIDE] and not about:
                    _set_time(elements, state[ELEMENTS] - 1, scratch[2, _ID])
                if graph == 0 and form >= BY_GRAPH:
                    state[ABOUT] += 1
            for k in range(3):
                rows[k, row] = scratch[k, _ID]
            rows[3, row] = graph
            state[ROWS] = row + 1
        state[GIVEN] = 0
        at = following
