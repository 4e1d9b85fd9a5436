"""Terms as bytes of N-Triples and as inline ids (dictionary/layout.py): in both directions, exact to the lexical form."""

from __future__ import annotations

import numpy as np

from cqels_py.dictionary.layout import (
    INTEGER_DATATYPES,
    TAG_BOOLEAN,
    TAG_DATE,
    TAG_DATETIME,
    TAG_DATETIME_MICROS,
    TAG_DECIMAL,
    TAG_DOUBLE,
    TAG_FLOAT,
    TAG_INTEGER,
    TAG_SHIFT,
    XSD,
)
from cqels_py.kernels.jit import jit, jit_inline
from cqels_py.kernels.values import civil

_TYPED = np.frombuffer(b'"^^<' + XSD.encode(), np.uint8).copy()
_NAMES_TEXT = [*INTEGER_DATATYPES, "decimal", "double", "float", "boolean", "dateTime", "date"]
_NAMES = np.frombuffer("".join(_NAMES_TEXT).encode(), np.uint8).copy()
_NAME_FIRST = np.cumsum([0, *(len(name) for name in _NAMES_TEXT)]).astype(np.int64)
_INTEGERS = len(INTEGER_DATATYPES)
_DECIMAL, _DOUBLE, _FLOAT, _BOOLEAN, _DATETIME, _DATE = range(_INTEGERS, _INTEGERS + 6)

_WIDEST = (1 << 55) - 1
_RANGES = {
    "int": (-(1 << 31), (1 << 31) - 1),
    "short": (-(1 << 15), (1 << 15) - 1),
    "byte": (-128, 127),
    "nonNegativeInteger": (0, _WIDEST),
    "positiveInteger": (1, _WIDEST),
    "nonPositiveInteger": (-_WIDEST - 1, 0),
    "negativeInteger": (-_WIDEST - 1, -1),
    "unsignedLong": (0, _WIDEST),
    "unsignedInt": (0, (1 << 32) - 1),
    "unsignedShort": (0, (1 << 16) - 1),
    "unsignedByte": (0, 255),
}
_LEAST = np.array([_RANGES.get(name, (-_WIDEST - 1, 0))[0] for name in INTEGER_DATATYPES], np.int64)
_MOST = np.array([_RANGES.get(name, (0, _WIDEST))[1] for name in INTEGER_DATATYPES], np.int64)
_WORDS = np.frombuffer(b"falsetrue01", np.uint8).copy()
_WORD_FIRST = np.array([0, 5, 9, 10, 11], np.int64)
_MONTH_DAYS = np.array([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31], np.int64)

_ZERO, _NINE, _MINUS, _PLUS, _POINT, _QUOTE, _COLON = 48, 57, 45, 43, 46, 34, 58
_VALUE_MASK = np.int64((1 << 56) - 1)
_DAY = np.int64(86_400_000_000)


@jit_inline
def tagged(tag, payload):  # type: ignore[no-untyped-def]
    """The signed id: tags from 8 on are negative."""
    top = np.int64(tag if tag < 8 else tag - 16)
    return (top << TAG_SHIFT) | payload


@jit_inline
def tag_of(identifier):  # type: ignore[no-untyped-def]
    return (identifier >> TAG_SHIFT) & 15


@jit_inline
def _same(data, start, other, other_start, length):  # type: ignore[no-untyped-def]
    for i in range(length):
        if data[start + i] != other[other_start + i]:
            return False
    return True


@jit_inline
def _digits(data, start, count):  # type: ignore[no-untyped-def]
    """The number of `count` digits from `start`, or -1."""
    value = np.int64(0)
    for i in range(start, start + count):
        c = data[i]
        if c < _ZERO or c > _NINE:
            return np.int64(-1)
        value = value * 10 + np.int64(c - _ZERO)
    return value


@jit_inline
def _scaled(data, start, end, tag):  # type: ignore[no-untyped-def]
    """A number in plain notation: id, or 0 where the form is not the canonical one or does not fit."""
    at = start
    negative = at < end and data[at] == _MINUS
    if negative:
        at += 1
    if at >= end or end - at > 19:
        return np.int64(0)
    if data[at] == _ZERO and at + 1 < end and data[at + 1] != _POINT:
        return np.int64(0)
    value = np.int64(0)
    scale = np.int64(0)
    whole = 0
    point = False
    for i in range(at, end):
        c = data[i]
        if c == _POINT:
            if point or whole == 0:
                return np.int64(0)
            point = True
        elif c >= _ZERO and c <= _NINE:
            value = value * 10 + np.int64(c - _ZERO)
            if point:
                scale += 1
            else:
                whole += 1
        else:
            return np.int64(0)
    if (point and (scale == 0 or scale > 15)) or whole == 0 or value > _WIDEST + negative or (negative and value == 0):
        return np.int64(0)
    if negative:
        value = -value
    return tagged(np.int64(tag), (scale << 56) | (value & _VALUE_MASK))


@jit_inline
def _integer(data, start, end, datatype):  # type: ignore[no-untyped-def]
    found = _scaled(data, start, end, TAG_INTEGER)
    if found == 0 or (found >> 56) & 15 != 0:
        return np.int64(0)
    for i in range(start, end):
        if data[i] == _POINT:
            return np.int64(0)
    value = (found << 8) >> 8
    if value < _LEAST[datatype] or value > _MOST[datatype]:
        return np.int64(0)
    return found | (np.int64(datatype) << 56)


@jit_inline
def days_of(year, month, day):  # type: ignore[no-untyped-def]
    """Days since the epoch of a date of the proleptic Gregorian calendar."""
    y = year - (1 if month <= 2 else 0)
    era = y // 400
    year_of_era = y - era * 400
    shifted = month - 3 if month > 2 else month + 9
    day_of_year = (153 * shifted + 2) // 5 + day - 1
    return era * 146097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719468


@jit_inline
def _date_days(data, start):  # type: ignore[no-untyped-def]
    """Days of YYYY-MM-DD at `start`, or the smallest int64 if it is no date."""
    wrong = np.int64(-(1 << 62))
    if data[start + 4] != _MINUS or data[start + 7] != _MINUS:
        return wrong
    year, month, day = _digits(data, start, 4), _digits(data, start + 5, 2), _digits(data, start + 8, 2)
    if year < 1 or month < 1 or month > 12 or day < 1:
        return wrong
    last = _MONTH_DAYS[month - 1]
    if month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0):
        last = 29
    if day > last:
        return wrong
    return days_of(year, month, day)


@jit_inline
def _zone(data, start, end):  # type: ignore[no-untyped-def]
    """The zone's number in the layout for "", "Z" or ±hh:mm, or -1."""
    if start == end:
        return np.int64(0)
    if end - start == 1 and data[start] == 90:
        return np.int64(1)
    if end - start != 6 or data[start + 3] != _COLON or (data[start] != _PLUS and data[start] != _MINUS):
        return np.int64(-1)
    hours, minutes = _digits(data, start + 1, 2), _digits(data, start + 4, 2)
    if hours < 0 or minutes < 0 or minutes > 59 or minutes % 15 != 0 or hours * 60 + minutes > 840:
        return np.int64(-1)
    quarters = hours * 4 + minutes // 15
    if data[start] == _MINUS:
        if quarters == 0:
            return np.int64(-1)
        quarters = -quarters
    return 58 + quarters


@jit_inline
def _datetime(data, start, end):  # type: ignore[no-untyped-def]
    if end - start < 19 or data[start + 10] != 84 or data[start + 13] != _COLON or data[start + 16] != _COLON:
        return np.int64(0)
    days = _date_days(data, start)
    hours, minutes, seconds = _digits(data, start + 11, 2), _digits(data, start + 14, 2), _digits(data, start + 17, 2)
    if days == -(1 << 62) or hours < 0 or hours > 23 or minutes < 0 or minutes > 59 or seconds < 0 or seconds > 59:
        return np.int64(0)
    at = start + 19
    digits = np.int64(0)
    micros = np.int64(0)
    if at < end and data[at] == _POINT:
        at += 1
        while at < end and data[at] >= _ZERO and data[at] <= _NINE:
            if digits == 6:
                return np.int64(0)
            micros = micros * 10 + np.int64(data[at] - _ZERO)
            digits += 1
            at += 1
        if digits == 0:
            return np.int64(0)
        for _ in range(6 - digits):
            micros *= 10
    zone = _zone(data, at, end)
    if zone < 0:
        return np.int64(0)
    micros += (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1_000_000
    if zone > 1:
        micros -= (zone - 58) * 900_000_000
    if digits <= 3:
        return tagged(
            np.int64(TAG_DATETIME), (digits << 58) | (zone << 51) | ((micros // 1000) & np.int64((1 << 51) - 1))
        )
    if zone > 1:
        return np.int64(0)
    return tagged(
        np.int64(TAG_DATETIME_MICROS), ((digits - 4) << 58) | (zone << 57) | (micros & np.int64((1 << 57) - 1))
    )


@jit_inline
def _date(data, start, end):  # type: ignore[no-untyped-def]
    if end - start < 10:
        return np.int64(0)
    days = _date_days(data, start)
    zone = _zone(data, start + 10, end)
    if days == -(1 << 62) or zone < 0:
        return np.int64(0)
    return tagged(np.int64(TAG_DATE), (zone << 53) | (days & np.int64((1 << 53) - 1)))


@jit_inline
def _boolean(data, start, end):  # type: ignore[no-untyped-def]
    for word in range(4):
        first = _WORD_FIRST[word]
        length = _WORD_FIRST[word + 1] - first
        if end - start == length and _same(data, start, _WORDS, first, length):
            return tagged(np.int64(TAG_BOOLEAN), np.int64(word))
    return np.int64(0)


@jit
def inline_id(data, start, quote, end):  # type: ignore[no-untyped-def]
    """The inline id of the literal data[start:end], whose closing quote is at `quote`; 0 if it has none."""
    prefix = len(_TYPED)
    name = quote + prefix
    length = end - 1 - name
    if length < 3 or data[end - 1] != 62 or not _same(data, quote, _TYPED, 0, prefix):
        return np.int64(0)
    datatype = -1
    for k in range(len(_NAME_FIRST) - 1):
        first = _NAME_FIRST[k]
        if _NAME_FIRST[k + 1] - first == length and data[name] == _NAMES[first]:
            if _same(data, name, _NAMES, first, length):
                datatype = k
                break
    start += 1
    if datatype < 0:
        return np.int64(0)
    if datatype < _INTEGERS:
        return _integer(data, start, quote, datatype)
    if datatype == _DECIMAL:
        return _scaled(data, start, quote, TAG_DECIMAL)
    if datatype == _DOUBLE:
        return _scaled(data, start, quote, TAG_DOUBLE)
    if datatype == _FLOAT:
        return _scaled(data, start, quote, TAG_FLOAT)
    if datatype == _BOOLEAN:
        return _boolean(data, start, quote)
    if datatype == _DATETIME:
        return _datetime(data, start, quote)
    return _date(data, start, quote)


# --- back to bytes --------------------------------------------------------------------------------------------------


@jit_inline
def _put_digits(out, at, value, width):  # type: ignore[no-untyped-def]
    """`value` with at least `width` digits."""
    count = 1
    rest = value // 10
    while rest > 0:
        count += 1
        rest //= 10
    count = max(count, width)
    for i in range(count - 1, -1, -1):
        out[at + i] = _ZERO + value % 10
        value //= 10
    return at + count


@jit_inline
def _put_scaled(out, at, value, scale):  # type: ignore[no-untyped-def]
    if value < 0:
        out[at] = _MINUS
        at += 1
        value = -value
    power = np.int64(1)
    for _ in range(scale):
        power *= 10
    at = _put_digits(out, at, value // power, 1)
    if scale > 0:
        out[at] = _POINT
        at = _put_digits(out, at + 1, value % power, scale)
    return at


@jit_inline
def _put_zone(out, at, zone):  # type: ignore[no-untyped-def]
    if zone == 1:
        out[at] = 90
        return at + 1
    if zone > 1:
        quarters = zone - 58
        out[at] = _MINUS if quarters < 0 else _PLUS
        quarters = abs(quarters)
        at = _put_digits(out, at + 1, quarters // 4, 2)
        out[at] = _COLON
        at = _put_digits(out, at + 1, quarters % 4 * 15, 2)
    return at


@jit_inline
def _put_date(out, at, days):  # type: ignore[no-untyped-def]
    year, month, day = civil(days)
    at = _put_digits(out, at, year, 4)
    out[at] = _MINUS
    at = _put_digits(out, at + 1, month, 2)
    out[at] = _MINUS
    return _put_digits(out, at + 1, day, 2)


@jit_inline
def _put_datetime(out, at, micros, digits, zone):  # type: ignore[no-untyped-def]
    if zone > 1:
        micros += (zone - 58) * 900_000_000
    days = micros // _DAY
    rest = micros - days * _DAY
    at = _put_date(out, at, days)
    out[at] = 84
    at = _put_digits(out, at + 1, rest // 3_600_000_000, 2)
    out[at] = _COLON
    at = _put_digits(out, at + 1, rest // 60_000_000 % 60, 2)
    out[at] = _COLON
    at = _put_digits(out, at + 1, rest // 1_000_000 % 60, 2)
    if digits > 0:
        fraction = rest % 1_000_000
        for _ in range(6 - digits):
            fraction //= 10
        out[at] = _POINT
        at = _put_digits(out, at + 1, fraction, digits)
    return _put_zone(out, at, zone)


@jit
def write_inline(identifier, out, at):  # type: ignore[no-untyped-def]
    """The N-Triples bytes of an inline id from out[at] on (at most 80); returns the place after them."""
    tag = tag_of(identifier)
    value = (identifier << 8) >> 8
    out[at] = _QUOTE
    at += 1
    name = np.int64(0)
    if tag == TAG_INTEGER:
        name = (identifier >> 56) & 15
        at = _put_scaled(out, at, value, 0)
    elif tag == TAG_DECIMAL or tag == TAG_DOUBLE or tag == TAG_FLOAT:
        name = np.int64(_DECIMAL + tag - TAG_DECIMAL)
        at = _put_scaled(out, at, value, (identifier >> 56) & 15)
    elif tag == TAG_BOOLEAN:
        name = np.int64(_BOOLEAN)
        word = identifier & 3
        for i in range(_WORD_FIRST[word], _WORD_FIRST[word + 1]):
            out[at] = _WORDS[i]
            at += 1
    elif tag == TAG_DATETIME:
        name = np.int64(_DATETIME)
        millis = (identifier << 13) >> 13
        at = _put_datetime(out, at, millis * 1000, (identifier >> 58) & 3, (identifier >> 51) & 127)
    elif tag == TAG_DATETIME_MICROS:
        name = np.int64(_DATETIME)
        micros = (identifier << 7) >> 7
        at = _put_datetime(out, at, micros, ((identifier >> 58) & 3) + 4, (identifier >> 57) & 1)
    else:
        name = np.int64(_DATE)
        at = _put_date(out, at, (identifier << 11) >> 11)
        at = _put_zone(out, at, (identifier >> 53) & 127)
    for i in range(len(_TYPED)):
        out[at + i] = _TYPED[i]
    at += len(_TYPED)
    for i in range(_NAME_FIRST[name], _NAME_FIRST[name + 1]):
        out[at] = _NAMES[i]
        at += 1
    out[at] = 62
    return at + 1
