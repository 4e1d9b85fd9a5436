"""The total order of terms behind ORDER BY, MIN and MAX, with the dictionary's texts where ids do not decide.

Unbound, blank nodes, IRIs, then literals: numbers by value, booleans, dateTimes, dates, strings, strings with a language, all
others by text. Terms of equal value ("1" and "1.0") are told apart by the kind of number (integer, decimal, float, double), those
with an inline id first, then by id, or by the length of the text and the text: the order is total.
"""

from __future__ import annotations

import numpy as np

from cqels_py.dictionary.layout import INTEGER_DATATYPES
from cqels_py.kernels.compare import UNORDERED, compare_values, order_class, sign_of
from cqels_py.kernels.decimals import POWERS, REAL_POWERS
from cqels_py.kernels.dictionary import is_hashed, place_of
from cqels_py.kernels.jit import jit_flat, jit_inline
from cqels_py.kernels.terms import datatype_number
from cqels_py.kernels.values import DECIMAL, DOUBLE, FLOAT, INTEGER, decode

_NUMBER, _STRING, _LANGUAGE, _OTHER = 3, 7, 8, 9
_QUOTE = 34
_LAST_NUMBER = len(INTEGER_DATATYPES) + 2
_KINDS = np.array([INTEGER] * len(INTEGER_DATATYPES) + [DECIMAL, DOUBLE, FLOAT], np.int64)
"""By number of the datatype."""
_EXACT_LIMIT = np.int64(1) << 53
_MOST_DIGITS = 18


@jit_inline
def _same_kind(a, b):
    """Integers of one datatype, or decimals, doubles or floats with the same number of fraction digits."""
    return a >> 56 == b >> 56 and (a >> 60 == 5 or a >> 60 == 6 or a >> 60 == 7 or a >> 60 == -8)


@jit_inline
def order_terms(a, b, texts, spans):
    """-1, 0 (the same term) or 1. `texts`, `spans`: the dictionary's arena and table."""
    if a == b:
        return np.int64(0)
    if _same_kind(a, b):
        return np.int64(-1 if (a << 8) < (b << 8) else 1)
    return _order_slowly(a, b, texts, spans)


@jit_flat
def _span(identifier, spans):
    """Where the N-Triples bytes of a hashed term stand: start and end."""
    at = place_of(spans, identifier)
    return spans[at + 1], spans[at + 1] + spans[at + 2]


@jit_flat
def _closing_quote(text, end):
    at = end - 1
    while text[at] != _QUOTE:
        at -= 1
    return at


@jit_flat
def _parse_real(text, start, end):
    """(value, ok) of the number text[start:end]; exact wherever 18 digits and a small exponent say it all."""
    at = start
    negative = False
    if at < end and (text[at] == 43 or text[at] == 45):
        negative = text[at] == 45
        at += 1
    if end - at == 3 and text[at] == 73 and text[at + 1] == 78 and text[at + 2] == 70:
        return (-np.inf if negative else np.inf), True
    if end - start == 3 and text[start] == 78 and text[start + 1] == 97 and text[start + 2] == 78:
        return np.nan, True
    value = np.int64(0)
    exponent = np.int64(0)
    digits = 0
    point = False
    seen = False
    while at < end and text[at] != 69 and text[at] != 101:
        c = text[at]
        if c == 46 and not point:
            point = True
        elif c >= 48 and c <= 57:
            seen = True
            if digits < _MOST_DIGITS:
                value = value * 10 + np.int64(c - 48)
                if value > 0:
                    digits += 1
                exponent -= 1 if point else 0
            else:
                exponent += 0 if point else 1
        else:
            return 0.0, False
        at += 1
    if at < end:
        at += 1
        minus = at < end and text[at] == 45
        if at < end and (text[at] == 43 or text[at] == 45):
            at += 1
        seen = seen and at < end
        power = np.int64(0)
        while at < end:
            if text[at] < 48 or text[at] > 57:
                return 0.0, False
            power = min(power * 10 + np.int64(text[at] - 48), np.int64(100_000))
            at += 1
        exponent += -power if minus else power
    real = np.float64(value)
    if value < _EXACT_LIMIT and exponent >= -22 and exponent <= 22:
        real = real * REAL_POWERS[exponent] if exponent >= 0 else real / REAL_POWERS[-exponent]
    else:
        real = real * np.power(10.0, np.float64(exponent))
    return (-real if negative else real), seen


@jit_flat
def _is_plain(text, start, end, point):
    """Is the number text[start:end] written without exponent or letters, and without a `point` unless it may have one?"""
    for at in range(start, end):
        if text[at] > 57 or (text[at] == 46 and not point):
            return False
    return True


@jit_flat
def _literal_place(text, start, end):
    """(class, kind, value) of the literal text[start:end], which has no inline form."""
    quote = _closing_quote(text, end)
    rest = end - quote - 1
    if rest == 0:
        return _STRING, 0, 0.0
    if text[quote + 1] == 64:
        return _LANGUAGE, 0, 0.0
    datatype = datatype_number(text, quote, end)
    if datatype < 0 or datatype > _LAST_NUMBER:
        return _OTHER, 0, 0.0
    kind = _KINDS[datatype]
    real, ok = _parse_real(text, start + 1, quote)
    if ok and (kind > DECIMAL or _is_plain(text, start + 1, quote, kind == DECIMAL)):
        return _NUMBER, kind, real
    return _OTHER, 0, 0.0


@jit_flat
def _place(identifier, texts, spans):
    """(class, kind of number, value as float64) of a term."""
    if is_hashed(identifier):
        start, end = _span(identifier, spans)
        if texts[start] != _QUOTE:
            return np.int64(2), np.int64(0), 0.0
        found, kind, real = _literal_place(texts, start, end)
        return np.int64(found), np.int64(kind), real
    kind, number, scale, real = decode(identifier)
    if kind == INTEGER or kind == DECIMAL:
        real = np.float64(number) / np.float64(POWERS[scale])
    return np.int64(order_class(kind)), np.int64(kind), real


@jit_flat
def _compare_texts(texts, a, a_end, b, b_end):
    """Two runs of bytes, a to a_end and b to b_end."""
    for i in range(min(a_end - a, b_end - b)):
        if texts[a + i] != texts[b + i]:
            return sign_of(np.int64(texts[a + i]), np.int64(texts[b + i]))
    return sign_of(a_end - a, b_end - b)


@jit_flat
def _order_texts(a, b, texts, spans):
    """The order where at least one of the terms is hashed."""
    a_class, a_kind, a_real = _place(a, texts, spans)
    b_class, b_kind, b_real = _place(b, texts, spans)
    if a_class != b_class:
        return sign_of(a_class, b_class)
    if a_class == _NUMBER:
        # NaN comes before all other numbers.
        order = sign_of(np.int64(a_real == a_real), np.int64(b_real == b_real))
        if order == 0 and a_real == a_real:
            order = sign_of(a_real, b_real)
        if order == 0:
            order = sign_of(a_kind, b_kind)
        if order == 0:
            order = sign_of(np.int64(is_hashed(a)), np.int64(is_hashed(b)))
        if order != 0:
            return order
    a_start, a_end = _span(a, spans)
    b_start, b_end = _span(b, spans)
    if a_class == _NUMBER and a_end - a_start != b_end - b_start:
        return sign_of(a_end - a_start, b_end - b_start)
    if a_class == _STRING or a_class == _LANGUAGE:
        a_quote, b_quote = _closing_quote(texts, a_end), _closing_quote(texts, b_end)
        order = _compare_texts(texts, a_start + 1, a_quote, b_start + 1, b_quote)
        if order != 0:
            return order
    return _compare_texts(texts, a_start, a_end, b_start, b_end)


@jit_flat
def _order_slowly(a, b, texts, spans):
    order = compare_values(a, b)
    return order if order != UNORDERED else _order_texts(a, b, texts, spans)
