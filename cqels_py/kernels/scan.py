"""The scanner of N-Triples and N-Quads: bytes to columns of ids and to the bounds of elements, in one pass.

It takes whole lines and stops where Python must help (a table that is full, an escape, a malformed line), each time at the
start of a statement with nothing of it written; called again, it goes on.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.dictionary import DONE, NOT_WRITTEN_SO, encode_term
from cqels_py.kernels.jit import jit_flat, jit_inline
from cqels_py.kernels.murmur import murmur64
from cqels_py.kernels.syntax import (
    HASH,
    LESS,
    MALFORMED,
    NEWLINE,
    NOT_CANONICAL,
    POINT,
    QUOTE,
    RETURN,
    SPACE,
    TAB,
    UNDERSCORE,
    has_scheme,
    term_end,
)
from cqels_py.kernels.words import same

# Why `scan` stopped, beside the statuses of the dictionary's kernels (0 to 4).
ROWS_FULL, DECLARED_FULL, BAD_LINE = 5, 6, 7

# What makes an element.
NO_ELEMENTS, BY_SUBJECT, BY_GRAPH = 0, 1, 2

# The cells of `state`. GRAPHS: may a statement name a graph; LINE: number of the line at hand, and LINE_STEP what the next
# one has more; ROWS, ELEMENTS: how many are in the output; KEY: hash of what the last element is made by, 0 when it is
# closed; DOCUMENT: the scope of blank nodes; TIME_INSIDE: the predicate of an element's triples that gives its time,
# TIME_AHEAD: that of triples before it, KNOWN_AHEAD: one that may stand there too (ids, 0: none); DECLARED: entries of
# `declared`; OFFSET: where a malformed line goes wrong, EXPECTED what was expected there; TERM_START, TERM_END, TERM_ID: the
# term of a collision; GIVEN: how many ids of terms are given from outside, each as (start, end, id) from GIVEN + 1 on.
FORM, GRAPHS, LINE, LINE_STEP, ROWS, ELEMENTS, KEY, DOCUMENT = range(8)
TIME_INSIDE, TIME_AHEAD, KNOWN_AHEAD, DECLARED, OFFSET, EXPECTED, TERM_START, TERM_END, TERM_ID, GIVEN = range(8, 18)
STATE_CELLS = GIVEN + 1 + 4 * 3

# Rows of `elements`.
FIRST_ROW, TIME_ID, START_LINE = 0, 1, 2
CONFLICT = -1
"""The time's id of an element with two of them."""

# What was expected where a line goes wrong.
AS_SUBJECT, AS_PREDICATE, AS_OBJECT, AS_GRAPH, AS_POINT, AS_END, AS_TERM, AS_ABSOLUTE, AS_TIME = range(9)

_RECENT = 16
_REPEATED = -2
"""In place of a closing quote: the term is the one seen before."""

# Rows of `scratch`, four cells each: the terms of the statement at hand (start, end, closing quote, id), an IRI seen before
# in each position (start, length, id; of a graph: its key), and recent predicates likewise.
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
    """Do `length` bytes from `at` on equal those from `start` on?"""
    return at + length <= end and same(data, start, data, at, length)


@jit_inline
def _fits(data, at, term):
    """May what starts at `at` be term number `term` (0 subject, 1 predicate, 2 object, 3 graph)?"""
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
    """Where the terms of the statement at `at` are -> (next, terms, written)."""
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
            elif data[at] == LESS and not has_scheme(data, at, stop):
                state[EXPECTED] = AS_ABSOLUTE
                return at, terms, MALFORMED
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
    """What tells subjects or graphs apart; never 0."""
    found = np.int64(murmur64(data, start, end))
    return found if found != 0 else np.int64(1)


@jit_inline
def _place(declared, key):
    mask = np.int64(len(declared) // 2 - 1)
    at = key & mask
    while declared[2 * at] != 0 and declared[2 * at] != key:
        at = (at + 1) & mask
    return at


@jit_flat
def declare(declared, key, time):
    """Keep the time's id of a graph that is still to come; 1 if the graph is a new entry."""
    at = _place(declared, key)
    new = declared[2 * at] == 0
    declared[2 * at] = key
    declared[2 * at + 1] = time
    return 1 if new else 0


@jit_flat
def declare_all(old, declared):
    """Enter all of `old` in a larger, empty table."""
    for i in range(0, len(old), 2):
        if old[i] != 0:
            declare(declared, old[i], old[i + 1])


@jit_flat
def take_declared(declared, key):
    """Remove a graph's entry and return its time's id; 0 if there is none."""
    mask = np.int64(len(declared) // 2 - 1)
    hole = _place(declared, key)
    if declared[2 * hole] == 0:
        return np.int64(0)
    time = declared[2 * hole + 1]
    at = hole
    while True:
        at = (at + 1) & mask
        other = declared[2 * at]
        if other == 0:
            break
        # An entry moves back into the hole unless its own place lies between the two.
        if ((at - (other & mask)) & mask) >= ((at - hole) & mask):
            declared[2 * hole] = other
            declared[2 * hole + 1] = declared[2 * at + 1]
            hole = at
    declared[2 * hole] = 0
    return time


@jit_inline
def _set_time(elements, element, time):
    if elements[TIME_ID, element] == 0:
        elements[TIME_ID, element] = time
    elif elements[TIME_ID, element] != time:
        elements[TIME_ID, element] = CONFLICT


@jit_inline
def _remember(scratch, row, start, stop, stands_for):
    """Keep an IRI's place and what it stands for."""
    scratch[row, _START], scratch[row, _LENGTH], scratch[row, _STANDS_FOR] = start, stop - start, stands_for


@jit_inline
def _given(state, start, end):
    """The id of data[start:end] if it is given from outside, or 0."""
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
def scan(data, at, shift, state, scratch, table, arena, meta, declared, rows, elements):
    """Read statements of `data` (uint8, whole lines) from `at` on -> (place, status).

    `scratch`: (SCRATCH_ROWS, 4), whatever is in it. `rows` (4, capacity): ids of subject, predicate, object, graph. `elements`
    (3, capacity): first row, id of the time (0: none yet), line. `declared`: open addressing of (graph's hash, time's id) for
    times that stand before their elements.
    """
    end = len(data)
    # Nothing is known yet: what was remembered may be of other data.
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
        # Predicates tend to come in the same order again.
        guess = (latest + 1) % _RECENT
        for cell in range(3):
            scratch[_SEEN + 1, cell] = scratch[_PREDICATES + guess, cell]
        following, terms, written = _split(data, at, end, scratch, state)
        if written == MALFORMED:
            return at, BAD_LINE
        if written == NOT_CANONICAL:
            return at, NOT_WRITTEN_SO

        ahead = form == BY_GRAPH and terms == 3
        key = np.int64(0)
        if form == BY_GRAPH:
            by = 0 if ahead else 3
            if not ahead and scratch[by, _CLOSING] == _REPEATED:
                key = scratch[_SEEN + by, _STANDS_FOR]
            else:
                key = _key(data, scratch[by, _START], scratch[by, _END])
            # An IRI's end is in its bytes; a blank node's label may be the beginning of another one.
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

        if ahead:
            if scratch[1, _ID] == state[TIME_AHEAD]:
                if 4 * (state[DECLARED] + 1) > len(declared):
                    return at, DECLARED_FULL
                state[DECLARED] += declare(declared, key, scratch[2, _ID])
                if key == state[KEY]:
                    state[KEY] = 0
            elif scratch[1, _ID] != state[KNOWN_AHEAD]:
                state[OFFSET] = scratch[1, _START]
                state[EXPECTED] = AS_TIME
                return at, BAD_LINE
        else:
            if form != NO_ELEMENTS:
                if key != state[KEY]:
                    element = state[ELEMENTS]
                    elements[FIRST_ROW, element] = row
                    elements[TIME_ID, element] = 0
                    elements[START_LINE, element] = state[LINE]
                    if form == BY_GRAPH and state[DECLARED] > 0:
                        elements[TIME_ID, element] = take_declared(declared, key)
                        if elements[TIME_ID, element] != 0:
                            state[DECLARED] -= 1
                    state[ELEMENTS] += 1
                    state[KEY] = key
                if scratch[1, _ID] == state[TIME_INSIDE]:
                    _set_time(elements, state[ELEMENTS] - 1, scratch[2, _ID])
            for k in range(3):
                rows[k, row] = scratch[k, _ID]
            rows[3, row] = scratch[3, _ID] if terms == 4 and form == NO_ELEMENTS else 0
            state[ROWS] = row + 1
        state[GIVEN] = 0
        at = following
