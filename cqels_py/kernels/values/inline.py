"""Terms with inline ids (terms/layout.py): from N-Triples bytes to ids and back, exact to the lexical form."""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat, jit_inline
from cqels_py.kernels.values.quotients import decimal_fraction_id, quotient_decimal
from cqels_py.kernels.values.values import civil
from cqels_py.kernels.values.words import same
from cqels_py.terms.layout import (
    INTEGER_DATATYPES,
    TAG_BOOLEAN,
    TAG_DATE,
    TAG_DATETIME,
    TAG_DATETIME_MICROS,
    TAG_DECIMAL,
    TAG_DOUBLE,
    TAG_FLOAT,
    TAG_INTEGER,
    TAG_QUOTIENT,
    TAG_SHIFT,
    XSD,
)

_TYPED = np.frombuffer(b'"^^<' + XSD.encode(), np.uint8).copy()
DATATYPES = [*INTEGER_DATATYPES, "decimal", "double", "float", "boolean", "dateTime", "date"]
_NAMES = np.frombuffer("".join(DATATYPES).encode(), np.uint8).copy()
_NAME_FIRST = np.cumsum([0, *(len(name) for name in DATATYPES)]).astype(np.int64)
_BY_LENGTH = np.argsort([len(name) for name in DATATYPES], kind="stable").astype(np.int64)
_LONGEST = max(map(len, DATATYPES))
_OF_LENGTH = np.array([sum(len(name) < length for name in DATATYPES) for length in range(_LONGEST + 2)], np.int64)
"""The start in _BY_LENGTH of the datatypes with names of a length."""
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
_WIDEST_MICROS = np.int64(1 << 56)
"""About 2,283 years on either side of the epoch."""


@jit_inline
def tagged(tag, payload):
    """The signed id: tags from 8 on are negative."""
    top = np.int64(tag if tag < 8 else tag - 16)
    return (top << TAG_SHIFT) | payload


@jit_inline
def tag_of(identifier):
    return (identifier >> TAG_SHIFT) & 15


@jit_inline
def value_of(identifier):
    """The signed number in the low 56 bits: the value of an integer, the unscaled value of a decimal, double or float."""
    return (identifier << 8) >> 8


@jit_inline
def scale_of(identifier):
    """Fraction digits of a decimal, double or float; the datatype of an integer."""
    return (identifier >> 56) & 15


@jit_inline
def make_scaled(tag, unscaled, scale):
    """The inline id of unscaled / 10**scale; 0 if it has none."""
    if unscaled > _WIDEST or unscaled < -_WIDEST - 1 or scale < 0 or scale > 15:
        return np.int64(0)
    return tagged(np.int64(tag), (np.int64(scale) << 56) | (np.int64(unscaled) & _VALUE_MASK))


@jit_inline
def datetime_micros(identifier):
    """The instant of an inline dateTime in microseconds."""
    if tag_of(identifier) == TAG_DATETIME:
        return ((identifier << 13) >> 13) * 1000
    return (identifier << 7) >> 7


@jit_inline
def zone_of(identifier):
    """The zone of an inline dateTime or date, as a number of the layout."""
    tag = tag_of(identifier)
    if tag == TAG_DATETIME:
        return (identifier >> 51) & 127
    if tag == TAG_DATETIME_MICROS:
        return (identifier >> 57) & 1
    return (identifier >> 53) & 127


@jit_flat
def _digits(data, start, count):
    """The number of the `count` digits from `start` on, or -1."""
    value = np.int64(0)
    for i in range(start, start + count):
        c = data[i]
        if c < _ZERO or c > _NINE:
            return np.int64(-1)
        value = value * 10 + np.int64(c - _ZERO)
    return value


@jit_flat
def _scaled(data, start, end, tag):
    """The id of a number in plain notation; 0 where the form is not canonical or does not fit."""
    at = start
    negative = at < end and data[at] == _MINUS
    if negative:
        at += 1
    # At most 18 digits and a point: nothing below overflows.
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
    if (point and scale == 0) or whole == 0 or whole + scale > 18 or (negative and value == 0):
        return np.int64(0)
    return make_scaled(tag, -value if negative else value, scale)


@jit_flat
def _fraction(data, start, end):
    """The id of a decimal that is a rounded fraction; 0 if it is none, or not in canonical form."""
    negative = start < end and data[start] == _MINUS
    if negative:
        start += 1
    # 18 or 19 digits and a point, and possibly a zero before it.
    if end - start < 19 or end - start > 21 or data[end - 1] == _ZERO:
        return np.int64(0)
    below_one = data[start] == _ZERO
    if below_one and (data[start + 1] != _POINT or data[start + 2] == _ZERO):
        return np.int64(0)
    unscaled, digits, point = np.uint64(0), np.int64(0), np.int64(-1)
    for at in range(start + np.int64(below_one), end):
        c = data[at]
        if c == _POINT and point < 0 and (digits > 0 or below_one):
            point = digits
        elif c >= _ZERO and c <= _NINE and digits < 19:
            unscaled = unscaled * np.uint64(10) + np.uint64(c - _ZERO)
            digits += 1
        else:
            return np.int64(0)
    return decimal_fraction_id(negative, unscaled, digits - point) if point >= 0 else np.int64(0)


@jit_flat
def _integer(data, start, end, datatype):
    found = _scaled(data, start, end, TAG_INTEGER)
    if found == 0 or scale_of(found) != 0:
        return np.int64(0)
    value = value_of(found)
    if value < _LEAST[datatype] or value > _MOST[datatype]:
        return np.int64(0)
    return found | (np.int64(datatype) << 56)


@jit_inline
def days_of(year, month, day):
    """Days since the epoch of a date of the proleptic Gregorian calendar."""
    y = year - (1 if month <= 2 else 0)
    era = y // 400
    year_of_era = y - era * 400
    shifted = month - 3 if month > 2 else month + 9
    day_of_year = (153 * shifted + 2) // 5 + day - 1
    return era * 146097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719468


@jit_flat
def _date_days(data, start):
    """Days since the epoch of YYYY-MM-DD at `start`, or a large negative number if it is no date."""
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


@jit_flat
def _zone(data, start, end):
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


@jit_flat
def _datetime(data, start, end):
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
    if zone > 1 or micros >= _WIDEST_MICROS or micros < -_WIDEST_MICROS:
        return np.int64(0)
    return tagged(
        np.int64(TAG_DATETIME_MICROS), ((digits - 4) << 58) | (zone << 57) | (micros & np.int64((1 << 57) - 1))
    )


@jit_flat
def _date(data, start, end):
    if end - start < 10:
        return np.int64(0)
    days = _date_days(data, start)
    zone = _zone(data, start + 10, end)
    if days == -(1 << 62) or zone < 0:
        return np.int64(0)
    return tagged(np.int64(TAG_DATE), (zone << 53) | (days & np.int64((1 << 53) - 1)))


@jit_flat
def _boolean(data, start, end):
    for word in range(4):
        first = _WORD_FIRST[word]
        length = _WORD_FIRST[word + 1] - first
        if end - start == length and same(data, start, _WORDS, first, length):
            return tagged(np.int64(TAG_BOOLEAN), np.int64(word))
    return np.int64(0)


@jit_inline
def datatype_number(data, quote, end):
    """The XSD datatype of the literal that ends at `end` and whose closing quote is at `quote`: an index into
    DATATYPES, or -1."""
    prefix = len(_TYPED)
    name = quote + prefix
    length = end - 1 - name
    if length < 3 or length > _LONGEST or data[end - 1] != 62 or not same(data, quote, _TYPED, 0, prefix):
        return -1
    for i in range(_OF_LENGTH[length], _OF_LENGTH[length + 1]):
        k = _BY_LENGTH[i]
        if same(data, name, _NAMES, _NAME_FIRST[k], length):
            return k
    return -1


@jit_flat
def inline_id(data, start, quote, end):
    """The inline id of the literal data[start:end], whose closing quote is at `quote`; 0 if it has none."""
    datatype = datatype_number(data, quote, end)
    start += 1
    if datatype < 0:
        return np.int64(0)
    if datatype < _INTEGERS:
        return _integer(data, start, quote, datatype)
    if datatype == _DECIMAL:
        found = _scaled(data, start, quote, TAG_DECIMAL)
        return found if found != 0 else _fraction(data, start, quote)
    if datatype == _DOUBLE:
        return _scaled(data, start, quote, TAG_DOUBLE)
    if datatype == _FLOAT:
        return _scaled(data, start, quote, TAG_FLOAT)
    if datatype == _BOOLEAN:
        return _boolean(data, start, quote)
    if datatype == _DATETIME:
        return _datetime(data, start, quote)
    return _date(data, start, quote)


# --- event times ---------------------------------------------------------------------------------------------------


@jit_flat
def instants(ids, out):
    """Microseconds since the epoch of dateTimes, of integers (unchanged) and of dates (midnight) -> `out`.

    Returns how many ids are none of these; for them `out` is the smallest int64.
    """
    others = 0
    for i in range(len(ids)):
        tag = tag_of(ids[i])
        if tag == TAG_DATETIME or tag == TAG_DATETIME_MICROS:
            out[i] = datetime_micros(ids[i])
        elif tag == TAG_INTEGER:
            out[i] = value_of(ids[i])
        elif tag == TAG_DATE:
            zone = zone_of(ids[i])
            out[i] = ((ids[i] << 11) >> 11) * _DAY
            if zone > 1:
                out[i] -= (zone - 58) * 900_000_000
        else:
            out[i] = np.int64(-(1 << 63))
            others += 1
    return others


@jit_flat
def read_instants(data, offsets, out):
    """Parse the texts data[offsets[i]:offsets[i + 1]] as microseconds -> `out`: ISO 8601 dateTimes, or integers of
    microseconds.

    Returns how many have another form; for them `out` is the smallest int64.
    """
    others = 0
    for i in range(len(out)):
        start, end = offsets[i], offsets[i + 1]
        found = _scaled(data, start, end, TAG_INTEGER) if end > start else np.int64(0)
        if found != 0 and scale_of(found) == 0:
            out[i] = value_of(found)
            continue
        found = _datetime(data, start, end)
        if found != 0:
            out[i] = datetime_micros(found)
        else:
            out[i] = np.int64(-(1 << 63))
            others += 1
    return others


# --- back to bytes --------------------------------------------------------------------------------------------------


@jit_flat
def _put_digits(out, at, value, width):
    """Write `value` with at least `width` digits."""
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


@jit_flat
def _put_scaled(out, at, value, scale):
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


@jit_flat
def _put_fraction(out, at, identifier):
    negative, unscaled, scale = quotient_decimal(identifier)
    if negative:
        out[at] = _MINUS
        at += 1
    power = np.uint64(1)
    for _ in range(scale):
        power *= np.uint64(10)
    whole = unscaled // power
    at = _put_digits(out, at, np.int64(whole), 1)
    out[at] = _POINT
    # The first of nineteen digits is written separately, as all may not fit a signed word.
    rest = unscaled - whole * power
    first = rest // (power // np.uint64(10))
    out[at + 1] = _ZERO + first
    return (
        _put_digits(out, at + 2, np.int64(rest - first * (power // np.uint64(10))), scale - 1) if scale > 1 else at + 2
    )


@jit_flat
def _put_zone(out, at, zone):
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


@jit_flat
def _put_date(out, at, days):
    year, month, day = civil(days)
    at = _put_digits(out, at, year, 4)
    out[at] = _MINUS
    at = _put_digits(out, at + 1, month, 2)
    out[at] = _MINUS
    return _put_digits(out, at + 1, day, 2)


@jit_flat
def _put_datetime(out, at, micros, digits, zone):
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


@jit_flat
def write_inline(identifier, out, at):
    """Write the N-Triples bytes of an inline id from out[at] on (at most 80). Returns the position after them."""
    tag = tag_of(identifier)
    value = value_of(identifier)
    out[at] = _QUOTE
    at += 1
    name = np.int64(0)
    if tag == TAG_INTEGER:
        name = scale_of(identifier)
        at = _put_scaled(out, at, value, 0)
    elif tag == TAG_DECIMAL or tag == TAG_DOUBLE or tag == TAG_FLOAT:
        name = np.int64(_DECIMAL + tag - TAG_DECIMAL)
        at = _put_scaled(out, at, value, scale_of(identifier))
    elif tag == TAG_QUOTIENT:
        name = np.int64(_DECIMAL)
        at = _put_fraction(out, at, identifier)
    elif tag == TAG_BOOLEAN:
        name = np.int64(_BOOLEAN)
        word = identifier & 3
        for i in range(_WORD_FIRST[word], _WORD_FIRST[word + 1]):
            out[at] = _WORDS[i]
            at += 1
    elif tag == TAG_DATETIME:
        name = np.int64(_DATETIME)
        at = _put_datetime(out, at, datetime_micros(identifier), (identifier >> 58) & 3, zone_of(identifier))
    elif tag == TAG_DATETIME_MICROS:
        name = np.int64(_DATETIME)
        at = _put_datetime(out, at, datetime_micros(identifier), ((identifier >> 58) & 3) + 4, zone_of(identifier))
    else:
        name = np.int64(_DATE)
        at = _put_date(out, at, (identifier << 11) >> 11)
        at = _put_zone(out, at, zone_of(identifier))
    for i in range(len(_TYPED)):
        out[at + i] = _TYPED[i]
    at += len(_TYPED)
    for i in range(_NAME_FIRST[name], _NAME_FIRST[name + 1]):
        out[at] = _NAMES[i]
        at += 1
    out[at] = 62
    return at + 1
