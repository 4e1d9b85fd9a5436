"""Results as whole lines: from ids, times and signs to bytes in one pass.

Both kernels write as many lines as fit and return where to continue. The constant parts of a line are given as fixed
texts: text i is texts[bounds[i]:bounds[i + 1]]. `table`, `arena`: the dictionary's; `scratch`: LONGEST_INLINE bytes.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat, jit_inline
from cqels_py.kernels.text.rendering import FULL, JSON_OBJECT, LONGEST_TIME, NTRIPLES_TERM, put_time, write_id
from cqels_py.kernels.values.words import copy

OPENING, BEFORE_SIGN, BEFORE_TERMS, CLOSING, FIRST_COLUMN = range(5)
"""The fixed texts of a result's line; from FIRST_COLUMN on, the text before the term of each column."""

NAME, BEFORE_TIME, AFTER_TIME, GRAPH_OPENING, BEFORE_TRIPLE, BEFORE_NAME, AFTER_NAME, AFTER_TRIPLE, GRAPH_CLOSING = (
    range(9)
)
"""The fixed texts of graphs. A graph's name is NAME and a number."""

N_QUADS, TRIG, TURTLE = range(3)
"""Forms of graphs: with the name in each line, in blocks after the name, or with the name only above the triples."""

_LONGEST_NUMBER = 20
_ZERO, _SPACE, _PLUS, _COMMA, _MINUS = 48, 32, 43, 44, 45


@jit_inline
def _put_fixed(texts, bounds, number, out, at):
    return copy(texts, bounds[number], bounds[number + 1], out, at)


@jit_flat
def write_lines(form, row, time, sign, columns, texts, bounds, table, arena, scratch, out):
    """A line for each result from number `row` on -> (next row, end of the bytes, known).

    `time` (n) in microseconds, `sign` (n), `columns` (width, n): ids. For an unbound id JSON gets neither a term nor
    the text before it, the other forms no term. `known` is False if a term of the next row is not in the dictionary.
    """
    at = np.int64(0)
    fixed = bounds[len(bounds) - 1] + columns.shape[0] + LONGEST_TIME + 1
    room = len(out) - fixed
    while row < len(time):
        begin = at
        if at > room:
            return row, begin, True
        at = _put_fixed(texts, bounds, OPENING, out, at)
        at = put_time(time[row], out, at)
        at = _put_fixed(texts, bounds, BEFORE_SIGN, out, at)
        out[at] = _PLUS if sign[row] > 0 else _MINUS
        at = _put_fixed(texts, bounds, BEFORE_TERMS, out, at + 1)
        separated = form != JSON_OBJECT
        for c in range(columns.shape[0]):
            identifier = columns[c, row]
            if identifier == 0:
                if form != JSON_OBJECT:
                    at = _put_fixed(texts, bounds, FIRST_COLUMN + c, out, at)
                continue
            if not separated:
                separated = True
            elif form == JSON_OBJECT:
                out[at] = _COMMA
                at += 1
            at = _put_fixed(texts, bounds, FIRST_COLUMN + c, out, at)
            at = write_id(form, identifier, table, arena, scratch, out, at, room)
            if at < 0:
                return row, begin, at == FULL
        at = _put_fixed(texts, bounds, CLOSING, out, at)
        row += 1
    return row, at, True


@jit_inline
def _put_name(number, texts, bounds, out, at):
    at = _put_fixed(texts, bounds, NAME, out, at)
    digits = 1
    rest = number // 10
    while rest > 0:
        digits += 1
        rest //= 10
    for k in range(digits - 1, -1, -1):
        out[at + k] = _ZERO + number % 10
        number //= 10
    return at + digits


@jit_inline
def _put_opening(number, time, form, texts, bounds, out, at):
    at = _put_name(number, texts, bounds, out, at)
    at = _put_fixed(texts, bounds, BEFORE_TIME, out, at)
    at = put_time(time, out, at)
    at = _put_fixed(texts, bounds, AFTER_TIME, out, at)
    if form == TRIG:
        at = _put_name(number, texts, bounds, out, at)
        at = _put_fixed(texts, bounds, GRAPH_OPENING, out, at)
    return at


@jit_flat
def write_graphs(form, cursor, number, time, first, triples, texts, bounds, table, arena, scratch, out):
    """Graphs as lines of text -> (end of the bytes, known).

    `cursor`: the number of the next triple and that of its graph, moved on past all that has been written. `time` (graphs);
    the triples of graph i, at least one, are columns first[i] to first[i + 1] of `triples` (3, n). Its name contains
    number + i. `form`: N_QUADS, TRIG or TURTLE.
    """
    at, known = np.int64(0), True
    row, graph = cursor[0], cursor[1]
    fixed = 2 * bounds[len(bounds) - 1] + 2 * _LONGEST_NUMBER + LONGEST_TIME + 3
    room = len(out) - fixed
    while row < triples.shape[1] and at <= room:
        begin = at
        if row == first[graph]:
            at = _put_opening(number + graph, time[graph], form, texts, bounds, out, at)
        at = _put_fixed(texts, bounds, BEFORE_TRIPLE, out, at)
        for c in range(3):
            if c > 0:
                out[at] = _SPACE
                at += 1
            at = write_id(NTRIPLES_TERM, triples[c, row], table, arena, scratch, out, at, room)
            if at < 0:
                break
        if at < 0:
            known, at = at == FULL, begin
            break
        if form == N_QUADS:
            at = _put_fixed(texts, bounds, BEFORE_NAME, out, at)
            at = _put_name(number + graph, texts, bounds, out, at)
            at = _put_fixed(texts, bounds, AFTER_NAME, out, at)
        at = _put_fixed(texts, bounds, AFTER_TRIPLE, out, at)
        row += 1
        if row == first[graph + 1]:
            graph += 1
            at = _put_fixed(texts, bounds, GRAPH_CLOSING, out, at)
    cursor[0], cursor[1] = row, graph
    return at, known
