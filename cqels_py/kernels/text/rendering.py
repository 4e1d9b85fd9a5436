"""Terms and times as bytes of JSON, CSV, TSV and N-Triples.

Terms are rendered from their canonical N-Triples texts (terms/canonical.py), which makes it fast: between a literal's
quotes `"`, backslash, newline and carriage return are escaped, exactly as in JSON, and nothing else is. IRIs, language
tags and labels of blank nodes contain nothing that a format escapes, except for the comma of CSV.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat, jit_inline
from cqels_py.kernels.values.dictionary import is_hashed, place_of, write_blank
from cqels_py.kernels.values.inline import tag_of, write_inline
from cqels_py.kernels.values.values import civil
from cqels_py.kernels.values.words import copy
from cqels_py.terms.layout import TAG_BLANK

JSON_OBJECT, CSV_VALUE, TSV_TERM, NTRIPLES_TERM = range(4)
"""The form in which a term is rendered."""

LONGEST_INLINE = 96
LONGEST_TIME = 40
"""Upper bounds of the N-Triples bytes of a term that is not in the dictionary, and of a time."""

_FRAME = 64
"""An upper bound of the bytes around the value in a JSON object."""

_WIDEST_BYTE = 6
r"""The most bytes that one byte is escaped to: \u0001."""

FULL, UNKNOWN = -1, -2
"""Returned instead of the end of a term: the output is full, or the term is not in the dictionary."""

_URI = np.frombuffer(b'{"type":"uri","value":"', np.uint8).copy()
_BNODE = np.frombuffer(b'{"type":"bnode","value":"', np.uint8).copy()
_LITERAL = np.frombuffer(b'{"type":"literal","value":"', np.uint8).copy()
_LANGUAGE = np.frombuffer(b'","xml:lang":"', np.uint8).copy()
_DATATYPE = np.frombuffer(b'","datatype":"', np.uint8).copy()
_END = np.frombuffer(b'"}', np.uint8).copy()

_TAB, _NEWLINE, _RETURN, _SPACE, _QUOTE, _PLUS, _COMMA, _MINUS, _POINT = 9, 10, 13, 32, 34, 43, 44, 45, 46
_ZERO, _COLON, _LESS, _AT, _T, _Z, _BACKSLASH, _UNDERSCORE, _N, _R, _LOWER_T, _U = (
    48,
    58,
    60,
    64,
    84,
    90,
    92,
    95,
    110,
    114,
    116,
    117,
)

_SHORT = np.zeros(32, np.uint8)
"""The letter of a control character's short escape in JSON; 0: it has none."""
for _code, _letter in zip(b"\b\t\n\f\r", b"btnfr", strict=True):
    _SHORT[_code] = _letter

_SECOND, _DAY = np.int64(1_000_000), np.int64(86_400_000_000)


@jit_inline
def _put(text, out, at):
    return copy(text, 0, len(text), out, at)


# --- times ------------------------------------------------------------------------------------------------------------


@jit_inline
def _put_two(value, out, at):
    out[at] = _ZERO + value // 10
    out[at + 1] = _ZERO + value % 10
    return at + 2


@jit_inline
def _put_year(year, out, at):
    """At least four digits; a year before 0 has a sign."""
    width = 1
    if year < 0:
        out[at] = _MINUS
        at += 1
        year = -year
    rest = year // 10
    while rest > 0:
        rest //= 10
        width += 1
    width = max(width, 4)
    for k in range(width - 1, -1, -1):
        out[at + k] = _ZERO + year % 10
        year //= 10
    return at + width


@jit_flat
def put_time(micros, out, at):
    """ISO 8601 in UTC, with as many fraction digits of a second as needed."""
    days = micros // _DAY
    rest = micros - days * _DAY
    year, month, day = civil(days)
    at = _put_year(year, out, at)
    out[at] = _MINUS
    at = _put_two(month, out, at + 1)
    out[at] = _MINUS
    at = _put_two(day, out, at + 1)
    seconds = rest // _SECOND
    fraction = rest - seconds * _SECOND
    out[at] = _T
    at = _put_two(seconds // 3600, out, at + 1)
    out[at] = _COLON
    at = _put_two(seconds // 60 % 60, out, at + 1)
    out[at] = _COLON
    at = _put_two(seconds % 60, out, at + 1)
    if fraction > 0:
        digits = 6
        while fraction % 10 == 0:
            fraction //= 10
            digits -= 1
        out[at] = _POINT
        for k in range(digits, 0, -1):
            out[at + k] = _ZERO + fraction % 10
            fraction //= 10
        at += digits + 1
    out[at] = _Z
    return at + 1


# --- terms ------------------------------------------------------------------------------------------------------------


@jit_inline
def _closing_quote(data, end):
    """The closing quote of the literal that ends at `end`: no quote follows it."""
    at = end - 1
    while data[at] != _QUOTE:
        at -= 1
    return at


@jit_flat
def _put_json_value(data, start, end, out, at):
    """The value of a literal between quotes in JSON: control characters are escaped, the rest is copied."""
    first, plain = np.uint64(start), True
    for k in range(np.uint64(end - start)):
        plain &= data[first + k] >= _SPACE
    if plain:
        return copy(data, start, end, out, at)
    for k in range(start, end):
        c = data[k]
        if c >= _SPACE:
            out[at] = c
            at += 1
            continue
        out[at] = _BACKSLASH
        if _SHORT[c] != 0:
            out[at + 1] = _SHORT[c]
            at += 2
            continue
        out[at + 1] = _U
        out[at + 2] = _ZERO
        out[at + 3] = _ZERO
        out[at + 4] = _ZERO + c // 16
        digit = c % 16
        out[at + 5] = _ZERO + digit if digit < 10 else 87 + digit
        at += 6
    return at


@jit_flat
def _put_json(data, start, end, out, at):
    """A term's object in SPARQL 1.1 Query Results JSON Format."""
    if data[start] == _LESS:
        at = _put(_URI, out, at)
        at = copy(data, start + 1, end - 1, out, at)
        return _put(_END, out, at)
    if data[start] == _UNDERSCORE:
        at = _put(_BNODE, out, at)
        at = copy(data, start + 2, end, out, at)
        return _put(_END, out, at)
    quote = _closing_quote(data, end)
    at = _put(_LITERAL, out, at)
    at = _put_json_value(data, start + 1, quote, out, at)
    if quote + 1 < end:
        if data[quote + 1] == _AT:
            at = _put(_LANGUAGE, out, at)
            at = copy(data, quote + 2, end, out, at)
        else:
            at = _put(_DATATYPE, out, at)
            at = copy(data, quote + 4, end - 1, out, at)
    return _put(_END, out, at)


@jit_inline
def _needs_quotes(data, start, end):
    """Does a value contain a comma, a quote or a line end, or is it empty?"""
    found = start == end
    k = start
    while k < end:
        c = data[k]
        if c == _BACKSLASH:
            k += 1
            found |= data[k] != _BACKSLASH
        else:
            found |= c == _COMMA
        k += 1
    return found


@jit_inline
def _put_unescaped(data, start, end, out, at):
    """A value without N-Triples escapes; quotes are doubled."""
    k = start
    while k < end:
        c = data[k]
        if c == _BACKSLASH:
            k += 1
            c = data[k]
            if c == _QUOTE:
                out[at] = c
                at += 1
            elif c == _N:
                c = np.uint8(_NEWLINE)
            elif c == _R:
                c = np.uint8(_RETURN)
        out[at] = c
        at += 1
        k += 1
    return at


@jit_flat
def _put_csv(data, start, end, out, at):
    """The value alone, quoted where necessary (and where it is empty, to distinguish it from unbound)."""
    if data[start] == _UNDERSCORE:
        return copy(data, start, end, out, at)
    end = _closing_quote(data, end) if data[start] == _QUOTE else end - 1
    start += 1
    first, plain = np.uint64(start), start < end
    for k in range(np.uint64(end - start)):
        plain &= data[first + k] != _COMMA and data[first + k] != _BACKSLASH
    if plain:
        return copy(data, start, end, out, at)
    quoted = _needs_quotes(data, start, end)
    if quoted:
        out[at] = _QUOTE
        at += 1
    at = _put_unescaped(data, start, end, out, at)
    if quoted:
        out[at] = _QUOTE
        at += 1
    return at


@jit_flat
def _put_tsv(data, start, end, out, at):
    """The term in Turtle syntax, on one line and without tabs."""
    first, plain = np.uint64(start), True
    for k in range(np.uint64(end - start)):
        plain &= data[first + k] != _TAB
    if plain:
        return copy(data, start, end, out, at)
    for k in range(start, end):
        c = data[k]
        if c == _TAB:
            out[at] = _BACKSLASH
            at += 1
            c = np.uint8(_LOWER_T)
        out[at] = c
        at += 1
    return at


@jit_flat
def write_term(form, data, start, end, out, at):
    """Write the term with the canonical N-Triples text data[start:end] in one of the forms. Returns the position after
    it."""
    if form == JSON_OBJECT:
        return _put_json(data, start, end, out, at)
    if form == CSV_VALUE:
        return _put_csv(data, start, end, out, at)
    if form == TSV_TERM:
        return _put_tsv(data, start, end, out, at)
    return copy(data, start, end, out, at)


@jit_flat
def write_id(form, identifier, table, arena, scratch, out, at, room):
    """Write the term with this id, which is bound -> the position after it, at most `room`; or FULL, or UNKNOWN.

    `table` and `arena`: the dictionary's. `scratch`: LONGEST_INLINE bytes.
    """
    if is_hashed(identifier):
        place = place_of(table, identifier)
        if table[place] == 0:
            return np.int64(UNKNOWN)
        start, end = table[place + 1], table[place + 1] + table[place + 2]
        if at + _WIDEST_BYTE * (end - start) + _FRAME > room:
            return np.int64(FULL)
        return write_term(form, arena, start, end, out, at)
    end = np.int64(0)
    if tag_of(identifier) == TAG_BLANK:
        end = write_blank(identifier, scratch, end)
    else:
        end = write_inline(identifier, scratch, end)
    if at + end + _FRAME > room:
        return np.int64(FULL)
    return write_term(form, scratch, np.int64(0), end, out, at)
