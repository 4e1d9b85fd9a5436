"""Values of terms in registers: decoding an id, arithmetic, and the id of a computed value.

A value is (kind, number, scale, real):

| kind | number | scale | real |
| --- | --- | --- | --- |
| BOOLEAN | 0 or 1 | | |
| INTEGER, DECIMAL | unscaled value | fraction digits, up to 36 | |
| FLOAT, DOUBLE | | | the value (a float is rounded to 32 bits) |
| DATETIME | microseconds of the instant since the epoch | zone as in the ids | |
| DATE | days since the epoch, as written | zone as in the ids | |

SLOW marks a value that is not computed exactly here: the row is evaluated with the terms' texts.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit, jit_inline
from cqels_py.kernels.values.decimals import (
    LIMIT,
    MAX_SCALE,
    POWERS,
    REAL_POWERS,
    add128,
    decimal_quotient,
    decimal_to_id,
    double_to_id,
    float_to_id,
    integer_to_id,
    scale128,
    shortest,
    trim,
)
from cqels_py.kernels.values.quotients import decimal_fraction_id, quotient_decimal
from cqels_py.terms.layout import (
    FALSE,
    TAG_BLANK,
    TAG_BOOLEAN,
    TAG_DATE,
    TAG_DATETIME,
    TAG_DATETIME_MICROS,
    TAG_DECIMAL,
    TAG_DOUBLE,
    TAG_FLOAT,
    TAG_INTEGER,
    TAG_IRI,
    TAG_LITERAL,
    TAG_OVERFLOW,
    TAG_QUOTIENT,
    TAG_SHIFT,
    ZONE_UTC_OFFSET,
    ZONE_Z,
)

ERROR = 0
SLOW = 1
BOOLEAN = 2
INTEGER = 3
DECIMAL = 4
FLOAT = 5
DOUBLE = 6
DATETIME = 7
DATE = 8
IRI = 9
BLANK = 10
LITERAL = 11
"""A literal without an inline form: its datatype is known from its text only."""
UNKNOWN = 12
"""An overflow id: any kind of term."""

KIND_OF_TAG = np.full(16, ERROR, np.int64)
for _tag, _kind in (
    (TAG_IRI, IRI),
    (TAG_LITERAL, LITERAL),
    (TAG_BLANK, BLANK),
    (TAG_OVERFLOW, UNKNOWN),
    (TAG_INTEGER, INTEGER),
    (TAG_DECIMAL, DECIMAL),
    (TAG_QUOTIENT, DECIMAL),
    (TAG_DOUBLE, DOUBLE),
    (TAG_FLOAT, FLOAT),
    (TAG_BOOLEAN, BOOLEAN),
    (TAG_DATETIME, DATETIME),
    (TAG_DATETIME_MICROS, DATETIME),
    (TAG_DATE, DATE),
):
    KIND_OF_TAG[_tag] = _kind

ADD, SUBTRACT, MULTIPLY, DIVIDE = 0, 1, 2, 3
ABSOLUTE, CEILING, FLOOR, ROUND, NEGATE, SAME = 0, 1, 2, 3, 4, 5

TRUTH_ERROR = -1
TRUTH_SLOW = -2

SECOND = 1_000_000
DAY = 86_400 * SECOND
QUARTER = 900 * SECOND

_YEAR_1, _YEAR_10000 = -719_162 * DAY, 2_932_897 * DAY
"""Between these instants a year in UTC has the four digits of the inline form."""

_EXACT = 1 << 53
_PRODUCT_LIMIT = 4.0e18
_SUM_LIMIT = 9.0e18
_MOST, _MOST_SCALE = (1 << 63) - 1, 36
"""Limits of a decimal. Quotients may have nineteen digits, and more fraction digits than other results."""


@jit_inline
def _value56(identifier):
    return (identifier << 8) >> 8


@jit_inline
def to_real(kind, number, scale, real, single):
    """A numeric value as a floating-point number -> (real, ok); `single`: rounded to 32 bits."""
    ok = True
    if kind == INTEGER:
        real = np.float64(number)
    elif kind == DECIMAL:
        # Both operands are exact, so the division rounds correctly.
        ok = scale == 0 or (scale < len(REAL_POWERS) and number <= _EXACT and number >= -_EXACT)
        real = np.float64(number) / REAL_POWERS[scale if ok else 0]
    if single:
        real = np.float64(np.float32(real))
    return real, ok


@jit
def decode(identifier):
    """The value of a term -> (kind, number, scale, real). Unbound is ERROR."""
    kind = KIND_OF_TAG[(identifier >> TAG_SHIFT) & 15]
    number = np.int64(0)
    scale = np.int64(0)
    real = 0.0
    if kind == INTEGER:
        number = _value56(identifier)
    elif kind == DECIMAL:
        if (identifier >> TAG_SHIFT) & 15 == TAG_DECIMAL:
            number = _value56(identifier)
            scale = (identifier >> 56) & 15
        else:
            negative, unscaled, scale = quotient_decimal(identifier)
            number = np.int64(unscaled)
            if number < 0:
                # Nineteen digits that do not fit a register.
                kind, number = np.int64(SLOW), np.int64(0)
            number = -number if negative else number
    elif kind in (DOUBLE, FLOAT):
        real, ok = to_real(DECIMAL, _value56(identifier), (identifier >> 56) & 15, 0.0, kind == FLOAT)
        if not ok:
            kind = np.int64(SLOW)
    elif kind == BOOLEAN:
        number = identifier & 1
    elif kind == DATETIME:
        if (identifier >> TAG_SHIFT) & 15 == TAG_DATETIME:
            number = ((identifier << 13) >> 13) * 1000
            scale = (identifier >> 51) & 127
        else:
            number = (identifier << 7) >> 7
            scale = (identifier >> 57) & 1
    elif kind == DATE:
        number = (identifier << 11) >> 11
        scale = (identifier >> 53) & 127
    return kind, number, scale, real


@jit_inline
def datetime_to_id(micros):
    """The id of an instant with zone Z and no superfluous fraction digits; 0 if it has no inline form."""
    if micros < _YEAR_1 or micros >= _YEAR_10000:
        return np.int64(0)
    fraction, digits = micros % SECOND, np.int64(6)
    if fraction == 0:
        digits = np.int64(0)
    while digits > 0 and fraction % 10 == 0:
        fraction = fraction // 10
        digits -= 1
    if digits <= 3:
        payload = (digits << 58) | (np.int64(ZONE_Z) << 51) | ((micros // 1000) & np.int64((1 << 51) - 1))
        return (np.int64(TAG_DATETIME - 16) << TAG_SHIFT) | payload
    if micros < -(1 << 56) or micros >= 1 << 56:
        return np.int64(0)
    payload = ((digits - 4) << 58) | (np.int64(1) << 57) | (micros & np.int64((1 << 57) - 1))
    return (np.int64(TAG_DATETIME_MICROS - 16) << TAG_SHIFT) | payload


@jit
def encode(kind, number, scale, real):
    """The id of a computed value in its canonical form; 0 if it has no inline form (or is no value)."""
    if kind == BOOLEAN:
        return np.int64(FALSE + number)
    if kind == INTEGER:
        return integer_to_id(number)
    if kind == DECIMAL:
        found = decimal_to_id(number, scale)
        if found == 0:
            number, scale = trim(number, scale)
            found = decimal_fraction_id(number < 0, np.uint64(abs(number)), scale)
        return found
    if kind == FLOAT:
        return float_to_id(real)
    if kind == DOUBLE:
        return double_to_id(real)
    if kind == DATETIME and scale == ZONE_Z:
        return datetime_to_id(number)
    return np.int64(0)


@jit_inline
def is_numeric(kind):
    return kind >= INTEGER and kind <= DOUBLE


@jit_inline
def has_text_only(kind):
    """Is the value known only to the dictionary?"""
    return kind == SLOW or kind >= LITERAL


@jit_inline
def truth(kind, number, real):
    """Effective boolean value: 1 true, 0 false, TRUTH_ERROR or TRUTH_SLOW."""
    if kind in (BOOLEAN, INTEGER, DECIMAL):
        return np.int64(number != 0)
    if kind in (FLOAT, DOUBLE):
        return np.int64(real != 0.0 and real == real)
    return np.int64(TRUTH_SLOW if has_text_only(kind) else TRUTH_ERROR)


@jit_inline
def zone_micros(zone):
    """The offset of a zone from UTC; without a zone: UTC."""
    return np.int64(0) if zone <= ZONE_Z else (zone - ZONE_UTC_OFFSET) * np.int64(QUARTER)


@jit_inline
def civil(days):
    """Days since the epoch -> (year, month, day) in the proleptic Gregorian calendar."""
    shifted = days + 719468
    era = shifted // 146097
    day_of_era = shifted - era * 146097
    year = (day_of_era - day_of_era // 1460 + day_of_era // 36524 - day_of_era // 146096) // 365
    day_of_year = day_of_era - (365 * year + year // 4 - year // 100)
    part = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * part + 2) // 5 + 1
    month = part + 3 if part < 10 else part - 9
    return year + era * 400 + (1 if month <= 2 else 0), month, day


@jit_inline
def _scale_up(number, digits):
    """number * 10**digits -> (number, ok)."""
    if digits > MAX_SCALE or abs(np.float64(number)) * REAL_POWERS[digits] > _PRODUCT_LIMIT:
        return number, False
    return number * POWERS[digits], True


@jit_inline
def _divide(a, a_scale, b, b_scale):
    """Decimal division -> (unscaled, scale, ok); b is not zero."""
    hi, lo = add128(np.int64(0), np.uint64(0), -a if b < 0 else a)
    scale = a_scale - b_scale
    if scale < 0:
        hi, lo, ok = scale128(hi, lo, -scale)
        scale = np.int64(0)
        if not ok:
            return np.int64(0), np.int64(0), False
    hi, lo, scale, ok = decimal_quotient(hi, lo, scale, abs(b))
    number = np.int64(lo)
    return number, scale, ok and hi == number >> 63 and number > -_MOST and scale <= _MOST_SCALE


@jit_inline
def _decimal_arithmetic(operation, a, a_scale, b, b_scale):
    """-> (unscaled, scale, ok), exact."""
    if operation == MULTIPLY:
        if abs(np.float64(a)) * abs(np.float64(b)) > _PRODUCT_LIMIT:
            return np.int64(0), np.int64(0), False
        number, scale = a * b, a_scale + b_scale
        if scale > 0:
            number, scale = trim(number, scale)
        return number, scale, scale <= MAX_SCALE
    scale = max(a_scale, b_scale)
    ok = True
    if a_scale < scale:
        a, ok = _scale_up(a, scale - a_scale)
    elif b_scale < scale:
        b, ok = _scale_up(b, scale - b_scale)
    if not ok or abs(np.float64(a)) + abs(np.float64(b)) > _SUM_LIMIT:
        return a, scale, False
    number = a + b if operation == ADD else a - b
    return number, scale, number < LIMIT and number > -LIMIT


@jit_inline
def _may_be_temporal(a_kind, b_kind):
    """May two kinds, not both numbers, be dates, or a duration and an operand that it can be combined with?"""
    a_date, b_date = a_kind == DATETIME or a_kind == DATE, b_kind == DATETIME or b_kind == DATE
    a_text, b_text = has_text_only(a_kind), has_text_only(b_kind)
    if a_text and b_text:
        return True
    if a_text:
        return b_date or is_numeric(b_kind)
    return (a_date and (b_date or b_text)) or (is_numeric(a_kind) and b_text)


@jit
def arithmetic(operation, a_kind, a, a_scale, a_real, b_kind, b, b_scale, b_real):
    """ADD, SUBTRACT, MULTIPLY or DIVIDE of two values -> value.

    Numeric promotion as in XPath: integer < decimal < float < double.
    """
    zero = np.int64(0)
    if a_kind == ERROR or b_kind == ERROR:
        return np.int64(ERROR), zero, zero, 0.0
    a_numeric, b_numeric = is_numeric(a_kind), is_numeric(b_kind)
    if not (a_numeric and b_numeric):
        return np.int64(SLOW if _may_be_temporal(a_kind, b_kind) else ERROR), zero, zero, 0.0
    kind = max(a_kind, b_kind)
    if kind >= FLOAT:
        a_real, a_ok = to_real(a_kind, a, a_scale, a_real, kind == FLOAT)
        b_real, b_ok = to_real(b_kind, b, b_scale, b_real, kind == FLOAT)
        if not (a_ok and b_ok):
            return np.int64(SLOW), zero, zero, 0.0
        if operation == ADD:
            real = a_real + b_real
        elif operation == SUBTRACT:
            real = a_real - b_real
        elif operation == MULTIPLY:
            real = a_real * b_real
        else:
            real = a_real / b_real
        return kind, zero, zero, np.float64(np.float32(real)) if kind == FLOAT else real
    if operation == DIVIDE:
        if b == 0:
            return np.int64(ERROR), zero, zero, 0.0
        number, scale, ok = _divide(a, a_scale, b, b_scale)
        kind = np.int64(DECIMAL)
    else:
        number, scale, ok = _decimal_arithmetic(operation, a, a_scale, b, b_scale)
    if not ok:
        return np.int64(SLOW), zero, zero, 0.0
    return kind, number, scale, 0.0


@jit_inline
def _round_real(operation, real):
    if operation == ABSOLUTE:
        return abs(real)
    if operation == NEGATE:
        return -real
    if operation == CEILING:
        return np.ceil(real)
    if operation == FLOOR:
        return np.floor(real)
    if operation == ROUND:
        # Half is rounded up (towards positive infinity); a result of zero keeps its sign.
        low = np.floor(real)
        return np.copysign(low + 1.0 if real - low >= 0.5 else low, real)
    return real


@jit
def rounding(operation, kind, number, scale, real):
    """ABSOLUTE, CEILING, FLOOR, ROUND, NEGATE or SAME (unary plus) of a value -> value of the same type."""
    if not is_numeric(kind):
        return np.int64(SLOW if has_text_only(kind) else ERROR), np.int64(0), np.int64(0), 0.0
    if kind >= FLOAT:
        return kind, number, scale, _round_real(operation, real)
    if operation == NEGATE or (operation == ABSOLUTE and number < 0):
        return kind, -number, scale, real
    if scale == 0 or operation in (ABSOLUTE, SAME):
        return kind, number, scale, real
    if scale > MAX_SCALE:
        return np.int64(SLOW), np.int64(0), np.int64(0), 0.0
    whole = number // POWERS[scale]
    rest = number - whole * POWERS[scale]
    if (operation == CEILING and rest > 0) or (operation == ROUND and rest * 2 >= POWERS[scale]):
        whole += 1
    return kind, whole, np.int64(0), real


@jit
def cast(target, kind, number, scale, real):
    """The constructors xsd:boolean, integer, decimal, float, double and dateTime (by kind) of a value -> value."""
    zero = np.int64(0)
    target = np.int64(target)
    if kind in (ERROR, IRI, BLANK):
        return np.int64(ERROR), zero, zero, 0.0
    if has_text_only(kind):
        return np.int64(SLOW), zero, zero, 0.0
    if target == DATETIME or kind in (DATETIME, DATE):
        if kind == target:
            return kind, number, scale, real
        # A date can be cast to a dateTime, by its text.
        return np.int64(SLOW if kind == DATE and target == DATETIME else ERROR), zero, zero, 0.0
    source = np.int64(INTEGER) if kind == BOOLEAN else kind
    if target == BOOLEAN:
        return target, truth(kind, number, real), zero, 0.0
    if target in (DOUBLE, FLOAT):
        real, ok = to_real(source, number, scale, real, target == FLOAT)
        return (target if ok else np.int64(SLOW)), zero, zero, real
    if source >= FLOAT:
        if not abs(real) <= 1.7976931348623157e308:
            return np.int64(ERROR), zero, zero, 0.0
        if target == INTEGER:
            ok = abs(real) < _PRODUCT_LIMIT
            number, scale = np.int64(real) if ok else zero, zero
        else:
            number, scale, ok = shortest(real, False)
        return (target if ok else np.int64(SLOW)), number, scale, 0.0
    if target == INTEGER and scale > 0:
        if scale > MAX_SCALE:
            return np.int64(SLOW), zero, zero, 0.0
        power = POWERS[scale]
        number = number // power if number >= 0 else -(-number // power)
        scale = zero
    return target, number, scale, 0.0


@jit
def date_part(part, kind, number, zone):
    """YEAR 0, MONTH 1, DAY 2 (also of a date), HOURS 3, MINUTES 4, SECONDS 5 of a dateTime as written."""
    zero = np.int64(0)
    if kind != DATETIME and not (kind == DATE and part <= 2):
        return np.int64(SLOW if has_text_only(kind) else ERROR), zero, zero, 0.0
    if kind == DATE:
        days, rest = number, zero
    else:
        local = number + zone_micros(zone)
        days = local // DAY
        rest = local - days * DAY
    if part <= 2:
        year, month, day = civil(days)
        value = year if part == 0 else (month if part == 1 else day)
        return np.int64(INTEGER), np.int64(value), zero, 0.0
    if part == 3:
        return np.int64(INTEGER), rest // (3600 * SECOND), zero, 0.0
    if part == 4:
        return np.int64(INTEGER), rest // (60 * SECOND) % 60, zero, 0.0
    seconds, scale = trim(rest % (60 * SECOND), np.int64(6))
    return np.int64(DECIMAL), seconds, scale, 0.0
