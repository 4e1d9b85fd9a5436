"""The order of values for ORDER BY, and the total order of terms for MIN, MAX and ties of ORDER BY.

Unbound, blank nodes, IRIs, then literals: numbers by value, booleans, dateTimes, dates, durations, strings, strings
with a language, all others by text. A double or float counts as the shortest decimal that is parsed as it, so that
numbers of all kinds are in one order. Numeric promotion, as for `<`, is not transitive: of 0.1 as a decimal, a float
and a double, the decimal equals both others, which differ. All NaNs are equal here. Where values are equal,
`order_values` returns 0, and `order_terms` goes on:

* numbers ("1" and "1.0"): the decimal as which they are written, the kind of number (integer, decimal, float, double),
  plain forms first (without signs, zeros or exponents that could be omitted), fewer fraction digits, the datatype, the
  length of the text, the text;
* dateTimes and dates: fewer fraction digits, then no zone, Z, any other zone by its offset, the length of the text, the
  text;
* durations: the length of the text, the text;
* booleans: words first.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat, jit_inline
from cqels_py.kernels.values.compare import order_class, sign_of
from cqels_py.kernels.values.datetimes import read_datetime
from cqels_py.kernels.values.dictionary import is_hashed, place_of
from cqels_py.kernels.values.durations import duration_type, read_duration
from cqels_py.kernels.values.inline import (
    DATATYPES,
    datatype_number,
    datetime_micros,
    scale_of,
    tag_of,
    value_of,
    zone_of,
)
from cqels_py.kernels.values.nearest import is_settled, settled
from cqels_py.kernels.values.numerals import LEADING, NOT_A_NUMBER, compare_rest, inline_numeral, read_numeral
from cqels_py.kernels.values.quotients import quotient_decimal
from cqels_py.kernels.values.values import DATE, DATETIME, DECIMAL, DOUBLE, FLOAT, INTEGER, KIND_OF_TAG
from cqels_py.terms.layout import INTEGER_DATATYPES, TAG_DATETIME_MICROS, TAG_INTEGER, TAG_QUOTIENT

_IRI, _NUMBER, _BOOLEAN, _DATETIME, _DATE, _DURATION, _STRING, _LANGUAGE, _OTHER = 2, 3, 4, 5, 6, 7, 8, 9, 10
_QUOTE, _BACKSLASH, _AT, _POINT, _MINUS, _ZERO, _NINE = (ord(c) for c in '"\\@.-09')
_OF_DATATYPE = {"decimal": DECIMAL, "double": DOUBLE, "float": FLOAT, "dateTime": DATETIME, "date": DATE}
_KINDS = np.array([INTEGER if name in INTEGER_DATATYPES else _OF_DATATYPE.get(name, 0) for name in DATATYPES], np.int64)
"""By number of the datatype; 0: a literal without an inline form is no valid literal of the datatype."""
_NOT_PLAIN = 1 << 40
_MICROS = 1_000_000
_MICROS_LEADING = 10**12
"""A microsecond's first 18 fraction digits."""


@jit_inline
def same_kind(a, b):
    """Do the ids alone give the order? Integers of one datatype; decimals, doubles or floats with the same number of
    fraction digits."""
    return a >> 56 == b >> 56 and (a >> 60 == 5 or a >> 60 == 6 or a >> 60 == 7 or a >> 60 == -8)


@jit_inline
def _surely_differ(a, b):
    """Do two terms for which `same_kind` holds have different values?

    Doubles and floats may be written with more digits than distinguish their values; such numbers are close to each
    other.
    """
    if a >> 60 == 5 or a >> 60 == 6:
        return True
    one, other = value_of(a), value_of(b)
    return abs(one - other) > max(abs(one), abs(other)) >> np.int64(51 if a >> 60 == 7 else 22)


@jit_inline
def order_values(a, b, texts, spans):
    """-1, 0 (neither value is before the other) or 1. `texts`, `spans`: the dictionary's arena and table."""
    if a == b:
        return np.int64(0)
    if same_kind(a, b) and _surely_differ(a, b):
        return np.int64(-1 if (a << 8) < (b << 8) else 1)
    return _order_slowly(a, b, False, texts, spans)


@jit_inline
def order_terms(a, b, texts, spans):
    """-1, 0 (the same term) or 1. `texts`, `spans`: the dictionary's arena and table."""
    if a == b:
        return np.int64(0)
    if same_kind(a, b):
        return np.int64(-1 if (a << 8) < (b << 8) else 1)
    return _order_slowly(a, b, True, texts, spans)


@jit_flat
def _order_slowly(a, b, of_terms, texts, spans):
    """`order_terms` or, if not `of_terms`, `order_values`."""
    a_class, a_kind = _class_of(a, texts, spans)
    b_class, b_kind = _class_of(b, texts, spans)
    if a_class != b_class:
        return sign_of(a_class, b_class)
    if a_class == _NUMBER:
        order = _order_numbers(a, a_kind, b, b_kind, of_terms, texts, spans)
    elif a_class == _DATETIME or a_class == _DATE:
        order = _order_datetimes(a, b, a_class == _DATE, of_terms, texts, spans)
    elif a_class == _DURATION:
        order = _order_durations(a, b, texts, spans)
    elif a_class == _BOOLEAN:
        order = sign_of(a & 1, b & 1)
    else:
        # The value is the text.
        order = np.int64(0)
        of_terms = True
    if order != 0 or not of_terms:
        return order
    if not (is_hashed(a) and is_hashed(b)):
        # Inline forms come first, in the order of the other fields of their ids.
        order = sign_of(np.int64(is_hashed(a)), np.int64(is_hashed(b)))
        return sign_of(a, b) if order == 0 else order
    return _order_texts(a, b, a_class, texts, spans)


# --- classes of terms -----------------------------------------------------------------------------------------------


@jit_flat
def _span(identifier, spans):
    """The position of the N-Triples bytes of a hashed term: start and end."""
    at = place_of(spans, identifier)
    return spans[at + 1], spans[at + 1] + spans[at + 2]


@jit_flat
def _closing_quote(text, end):
    at = end - 1
    while text[at] != _QUOTE:
        at -= 1
    return at


@jit_flat
def _class_of(identifier, texts, spans):
    """(class, kind) of a term."""
    if not is_hashed(identifier):
        kind = KIND_OF_TAG[tag_of(identifier)]
        return order_class(kind), kind
    start, end = _span(identifier, spans)
    if texts[start] != _QUOTE:
        return np.int64(_IRI), np.int64(0)
    quote = _closing_quote(texts, end)
    if end - quote == 1:
        return np.int64(_STRING), np.int64(0)
    if texts[quote + 1] == _AT:
        return np.int64(_LANGUAGE), np.int64(0)
    datatype = datatype_number(texts, quote, end)
    kind = _KINDS[datatype] if datatype >= 0 else np.int64(0)
    found = np.int64(_OTHER)
    if datatype < 0:
        of_durations = duration_type(texts, quote, end)
        if of_durations >= 0 and read_duration(texts, start + 1, quote, of_durations)[0]:
            return np.int64(_DURATION), np.int64(0)
    if kind >= INTEGER and kind <= DOUBLE:
        if read_numeral(texts, start + 1, quote, kind)[0]:
            found = np.int64(_NUMBER)
    elif kind > 0 and read_datetime(texts, start + 1, quote, kind == DATE)[0] >= 0:
        found = np.int64(_DATE if kind == DATE else _DATETIME)
    return found, kind


# --- values ---------------------------------------------------------------------------------------------------------


@jit_flat
def _numeral(identifier, kind, texts, spans):
    """(sign, exponent, leading, rest, stop, fraction digits, datatype) of a number; the last two break ties between
    equal values.

    For a fraction `rest` is -1 - its nineteenth digit, which is in no text. The fraction digits are those of a plain
    form; other forms have more than any plain one.
    """
    none = np.int64(0)
    if is_hashed(identifier):
        start, end = _span(identifier, spans)
        quote = _closing_quote(texts, end)
        _, sign, exponent, leading, rest, stop = read_numeral(texts, start + 1, quote, kind)
        digits, datatype = _fraction_digits(texts, start + 1, quote), np.int64(datatype_number(texts, quote, end))
        return sign, exponent, leading, rest, stop, digits, datatype
    nibble = scale_of(identifier)
    if tag_of(identifier) == TAG_QUOTIENT:
        return _fraction_numeral(identifier)
    if tag_of(identifier) == TAG_INTEGER:
        sign, exponent, leading = inline_numeral(value_of(identifier), none)
        return sign, exponent, leading, none, none, none, nibble
    sign, exponent, leading = inline_numeral(value_of(identifier), nibble)
    return sign, exponent, leading, none, none, nibble, none


@jit_flat
def _fraction_numeral(identifier):
    negative, unscaled, scale = quotient_decimal(identifier)
    sign, rest, digits = np.int64(-1 if negative else 1), np.int64(0), np.int64(LEADING)
    if unscaled >= np.uint64(10**LEADING):
        rest, digits = -1 - np.int64(unscaled % np.uint64(10)), digits + 1
        unscaled //= np.uint64(10)
    return sign, digits - scale, np.int64(unscaled), rest, np.int64(0), scale, np.int64(0)


@jit_flat
def _next_digit(text, rest, stop):
    """(the nineteenth digit, are there more that are not zero?) of a numeral."""
    if rest < 0:
        return -1 - rest, False
    if rest < stop and text[rest] == _POINT:
        rest += 1
    return (np.int64(text[rest]) - _ZERO if rest < stop else np.int64(0)), rest + 1 < stop


@jit_flat
def _order_rests(a_rest, a_stop, b_rest, b_stop, texts):
    """Compare the digits after the first eighteen."""
    if a_rest >= 0 and b_rest >= 0:
        return compare_rest(texts, a_rest, a_stop, texts, b_rest, b_stop)
    a_digit, a_more = _next_digit(texts, a_rest, a_stop)
    b_digit, b_more = _next_digit(texts, b_rest, b_stop)
    return sign_of(a_digit, b_digit) if a_digit != b_digit else np.int64(a_more) - np.int64(b_more)


@jit_flat
def _fraction_digits(text, start, end):
    """The number of digits after the point of a number in plain form; for another form more than any."""
    not_plain = np.int64(_NOT_PLAIN)
    if text[start] == _MINUS:
        start += 1
    if (
        start == end
        or text[start] == _POINT
        or (text[start] == _ZERO and start + 1 < end and text[start + 1] != _POINT)
    ):
        return not_plain
    point = np.int64(end - 1)
    for at in range(start, end):
        if text[at] == _POINT:
            point = np.int64(at)
        elif text[at] < _ZERO or text[at] > _NINE:
            return not_plain
    return not_plain if text[end - 1] == _POINT else end - 1 - point


@jit_flat
def _order_numerals(
    a_sign, a_exponent, a_leading, a_rest, a_stop, b_sign, b_exponent, b_leading, b_rest, b_stop, texts
):  # fmt: skip
    """NaN comes before all other numbers."""
    if a_sign != b_sign or a_sign == NOT_A_NUMBER:
        return sign_of(a_sign, b_sign)
    order = sign_of(a_exponent, b_exponent)
    if order == 0:
        order = sign_of(a_leading, b_leading)
    if order == 0:
        order = _order_rests(a_rest, a_stop, b_rest, b_stop, texts)
    return order * a_sign


@jit_flat
def _settled(kind, sign, exponent, leading, rest, stop, texts):
    """The numeral by which a number is ordered: for a double or float the shortest decimal that is parsed as it."""
    single = kind == FLOAT
    if kind < FLOAT or abs(sign) != 1 or is_settled(exponent, leading, rest, stop, single):
        return sign, exponent, leading, rest, stop
    sign, exponent, leading = settled(sign, exponent, leading, texts, rest, stop, single)
    return sign, exponent, leading, np.int64(0), np.int64(0)


@jit_flat
def _may_meet(kind, a_exponent, a_leading, b_exponent, b_leading):
    """May two numerals of the same sign be parsed as the same number, if one is a double or a float of this kind?"""
    most = np.int64(36 if kind == FLOAT else 300)
    if abs(a_exponent) > most or abs(b_exponent) > most:
        return True
    if a_exponent != b_exponent:
        return abs(a_exponent - b_exponent) == 1
    return abs(a_leading - b_leading) <= a_leading >> np.int64(22 if kind == FLOAT else 50)


@jit_flat
def _order_numbers(a, a_kind, b, b_kind, of_terms, texts, spans):
    a_sign, a_exponent, a_leading, a_rest, a_stop, a_digits, a_datatype = _numeral(a, a_kind, texts, spans)
    b_sign, b_exponent, b_leading, b_rest, b_stop, b_digits, b_datatype = _numeral(b, b_kind, texts, spans)
    written = _order_numerals(
        a_sign, a_exponent, a_leading, a_rest, a_stop, b_sign, b_exponent, b_leading, b_rest, b_stop, texts
    )
    order = written
    kind = np.int64(FLOAT if a_kind == FLOAT or b_kind == FLOAT else max(a_kind, b_kind))
    if kind >= FLOAT and _may_meet(kind, a_exponent, a_leading, b_exponent, b_leading):
        a_sign, a_exponent, a_leading, a_rest, a_stop = _settled(
            a_kind, a_sign, a_exponent, a_leading, a_rest, a_stop, texts
        )
        b_sign, b_exponent, b_leading, b_rest, b_stop = _settled(
            b_kind, b_sign, b_exponent, b_leading, b_rest, b_stop, texts
        )
        order = _order_numerals(
            a_sign, a_exponent, a_leading, a_rest, a_stop, b_sign, b_exponent, b_leading, b_rest, b_stop, texts
        )
    if order != 0 or not of_terms:
        return order
    order = written
    if order == 0:
        order = sign_of(a_kind, b_kind)
    if order == 0:
        order = sign_of(a_digits, b_digits)
    return sign_of(a_datatype, b_datatype) if order == 0 else order


@jit_flat
def _datetime(identifier, is_date, texts, spans):
    """The result of `read_datetime` for a term."""
    if is_hashed(identifier):
        start, end = _span(identifier, spans)
        return read_datetime(texts, start + 1, _closing_quote(texts, end), is_date)
    none = np.int64(0)
    zone = zone_of(identifier)
    offset = (zone - 58) * 15 if zone > 1 else none
    rank = min(zone, np.int64(2))
    if is_date:
        return rank, offset, ((identifier << 11) >> 11) * 86_400 - offset * 60, none, none, none, none
    micros = datetime_micros(identifier)
    digits = ((identifier >> 58) & 3) + (4 if tag_of(identifier) == TAG_DATETIME_MICROS else 0)
    seconds = micros // _MICROS
    return rank, offset, seconds, digits, (micros - seconds * _MICROS) * _MICROS_LEADING, none, none


@jit_flat
def _order_datetimes(a, b, is_date, of_terms, texts, spans):
    a_rank, a_offset, a_seconds, a_digits, a_leading, a_rest, a_stop = _datetime(a, is_date, texts, spans)
    b_rank, b_offset, b_seconds, b_digits, b_leading, b_rest, b_stop = _datetime(b, is_date, texts, spans)
    order = sign_of(a_seconds, b_seconds)
    if order == 0:
        order = sign_of(a_leading, b_leading)
    if order == 0:
        order = compare_rest(texts, a_rest, a_stop, texts, b_rest, b_stop)
    if order != 0 or not of_terms:
        return order
    order = sign_of(a_digits, b_digits)
    if order == 0:
        order = sign_of(a_rank, b_rank)
    return sign_of(a_offset, b_offset) if order == 0 else order


@jit_flat
def _duration(identifier, texts, spans):
    """The result of `read_duration` for a term."""
    start, end = _span(identifier, spans)
    quote = _closing_quote(texts, end)
    return read_duration(texts, start + 1, quote, duration_type(texts, quote, end))


@jit_flat
def _order_durations(a, b, texts, spans):
    _, a_key, a_fraction, a_months = _duration(a, texts, spans)
    _, b_key, b_fraction, b_months = _duration(b, texts, spans)
    order = sign_of(a_key, b_key)
    if order == 0:
        order = sign_of(a_fraction, b_fraction)
    return sign_of(a_months, b_months) if order == 0 else order


# --- texts ----------------------------------------------------------------------------------------------------------


@jit_flat
def _character(text, at):
    """(the unescaped byte at the start of text[at:], the position after it)."""
    c = np.int64(text[at])
    if c != _BACKSLASH:
        return c, at + 1
    c = np.int64(text[at + 1])
    # Canonical texts have only the escapes \n, \r, \" and \\.
    if c == 110:
        c = np.int64(10)
    elif c == 114:
        c = np.int64(13)
    return c, at + 2


@jit_flat
def _compare_runs(text, a, a_end, b, b_end):
    """Compare text[a:a_end] with text[b:b_end] by code points."""
    while a < a_end and b < b_end:
        a_character, a = _character(text, a)
        b_character, b = _character(text, b)
        if a_character != b_character:
            return sign_of(a_character, b_character)
    return np.int64(a < a_end) - np.int64(b < b_end)


@jit_flat
def _order_texts(a, b, found, texts, spans):
    """Compare two hashed terms of one class and one value."""
    a_start, a_end = _span(a, spans)
    b_start, b_end = _span(b, spans)
    if found == _NUMBER or found == _DATETIME or found == _DATE or found == _DURATION:
        if a_end - a_start != b_end - b_start:
            return sign_of(a_end - a_start, b_end - b_start)
    elif found != _IRI:
        a_quote, b_quote = _closing_quote(texts, a_end), _closing_quote(texts, b_end)
        order = _compare_runs(texts, a_start + 1, a_quote, b_start + 1, b_quote)
        if order != 0:
            return order
        a_start, b_start = a_quote, b_quote
    return _compare_runs(texts, a_start, a_end, b_start, b_end)
