"""Numbers: parsing literals, exact arithmetic, and the canonical text of computed results."""

from __future__ import annotations

import math
import re
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, DecimalException
from decimal import Inexact as InexactDecimal
from fractions import Fraction
from typing import NamedTuple, TypeAlias

import numpy as np

from cqels_py.functions.terms import (
    XSD,
    XSD_DECIMAL,
    XSD_DOUBLE,
    XSD_FLOAT,
    XSD_INTEGER,
    ExpressionError,
    Term,
    literal,
)
from cqels_py.terms.layout import INTEGER_DATATYPES

INTEGER, DECIMAL, FLOAT, DOUBLE = range(4)
"""In the order of XPath's numeric promotion."""

EXACT_DIGITS, QUOTIENT_DIGITS = 37, 19
"""Significant digits of quotients that end, and of rounded ones; as in kernels/decimals.py."""
_LONGEST = 4000

Real: TypeAlias = int | Decimal | float


class Number(NamedTuple):
    """`value` is an int, a Decimal or, for FLOAT (rounded to 32 bits) and DOUBLE, a float."""

    kind: int
    value: Real


_BOUND = 10**_LONGEST
_EXACT = Context(prec=_LONGEST, traps=[InexactDecimal, *Context().traps])
_DATATYPES = (XSD_INTEGER, XSD_DECIMAL, XSD_FLOAT, XSD_DOUBLE)
_INTEGER_FORM = re.compile(r"[+-]?[0-9]+")
_DECIMAL_FORM = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
_REAL_FORM = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?INF|NaN")
_BOUNDS: dict[str, tuple[int | None, int | None]] = {
    "integer": (None, None),
    "int": (-(1 << 31), (1 << 31) - 1),
    "long": (-(1 << 63), (1 << 63) - 1),
    "short": (-(1 << 15), (1 << 15) - 1),
    "byte": (-128, 127),
    "nonNegativeInteger": (0, None),
    "positiveInteger": (1, None),
    "nonPositiveInteger": (None, 0),
    "negativeInteger": (None, -1),
    "unsignedLong": (0, (1 << 64) - 1),
    "unsignedInt": (0, (1 << 32) - 1),
    "unsignedShort": (0, (1 << 16) - 1),
    "unsignedByte": (0, 255),
}
INTEGER_BOUNDS = {XSD + name: _BOUNDS[name] for name in INTEGER_DATATYPES}
NUMERIC_DATATYPES = frozenset(INTEGER_BOUNDS) | {XSD_DECIMAL, XSD_FLOAT, XSD_DOUBLE}


def single(value: float) -> float:
    """Rounded to 32 bits."""
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def parse_number(text: str, datatype: str) -> Number | None:
    """The value of a lexical form of a numeric datatype; None if it is not valid."""
    if len(text) > _LONGEST:
        return None
    if datatype == XSD_DECIMAL:
        return Number(DECIMAL, Decimal(text)) if _DECIMAL_FORM.fullmatch(text) else None
    if datatype in (XSD_FLOAT, XSD_DOUBLE):
        if not _REAL_FORM.fullmatch(text):
            return None
        value = float(text)
        return Number(DOUBLE, value) if datatype == XSD_DOUBLE else Number(FLOAT, single(value))
    if not _INTEGER_FORM.fullmatch(text):
        return None
    whole = int(text)
    low, high = INTEGER_BOUNDS[datatype]
    if (low is not None and whole < low) or (high is not None and whole > high):
        return None
    return Number(INTEGER, whole)


def decimal_text(value: Decimal) -> str:
    """Plain notation without trailing zeros; no decimal point for an integral value."""
    text = format(value, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def real_text(value: float, is_single: bool) -> str:
    """The shortest form that reads as the same value: 23.0, 0.1, 1.0E22, INF, NaN."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "INF" if value > 0 else "-INF"
    text = np.format_float_scientific(np.float32(value), trim="-") if is_single else repr(value)
    mantissa, _, exponent = text.partition("e")
    if exponent and (value == 0.0 or 1e-4 <= abs(value) < 1e16):
        # 32 bits: the shortest digits, in the notation that Python chooses for 64-bit floats.
        mantissa, exponent = ("-" if text.startswith("-") else "") + format(abs(Decimal(text)), "f"), ""
    if "." not in mantissa:
        mantissa += ".0"
    return f"{mantissa}E{int(exponent)}" if exponent else mantissa


def _too_long() -> ExpressionError:
    return ExpressionError(f"a number of more than {_LONGEST} digits")


def integer_text(value: int) -> str:
    """The digits of an integer. An error if there are more than a number may have: Python writes and reads a few more."""
    if abs(value) >= _BOUND:
        raise _too_long()
    return str(value)


def _count_of_digits(value: int) -> int:
    """Of an integer of any size, which may be too large to be written."""
    return Decimal(value).adjusted() + 1


def number_term(number: Number) -> Term:
    """The literal of a computed number, in its canonical form."""
    kind, value = number
    if isinstance(value, float):
        text = real_text(value, kind == FLOAT)
    else:
        text = integer_text(value) if isinstance(value, int) else decimal_text(value)
    if len(text) > _LONGEST:
        raise _too_long()
    return literal(text, _DATATYPES[kind])


def to_float(number: Number, kind: int) -> float:
    """The value promoted to DOUBLE or FLOAT."""
    value = number.value
    if not isinstance(value, float):
        try:
            # A decimal has no negative zero, though Decimal has.
            value = float(value) + 0.0
        except OverflowError:
            value = math.inf if value > 0 else -math.inf
    return single(value) if kind == FLOAT else value


def to_decimal(value: int | Decimal) -> Decimal:
    return value if isinstance(value, Decimal) else Decimal(value)


def quotient(dividend: int | Decimal, divisor: int | Decimal) -> Decimal:
    """Exact if it ends within 37 significant digits, or as many as the dividend has; otherwise rounded half to even to
    19.

    Rounding never affects digits left of the decimal point. The divisor must not be zero.
    """
    exact = Fraction(dividend) / Fraction(divisor)
    scale = _ending_digits(exact.denominator)
    if scale is not None:
        unscaled = exact.numerator * 10**scale // exact.denominator
        if _count_of_digits(unscaled) <= max(EXACT_DIGITS, len(to_decimal(dividend).as_tuple().digits)):
            return Decimal(unscaled).scaleb(-scale, _EXACT)
    size, divisor_size = abs(exact.numerator), exact.denominator
    scale = max(0, _count_of_digits(divisor_size) - _count_of_digits(size) + QUOTIENT_DIGITS - 1)
    while size * 10**scale < divisor_size * 10 ** (QUOTIENT_DIGITS - 1):
        scale += 1
    return Decimal(round(exact * 10**scale)).scaleb(-scale, _EXACT)


def _ending_digits(denominator: int) -> int | None:
    """The number of fraction digits of a fraction in its lowest terms; None if they do not end."""
    twos = (denominator & -denominator).bit_length() - 1
    rest, fives = denominator >> twos, 0
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    return max(twos, fives) if rest == 1 else None


def _real_arithmetic(operator: str, a: float, b: float) -> float:
    with np.errstate(all="ignore"):
        first, second = np.float64(a), np.float64(b)
        if operator == "+":
            return float(first + second)
        if operator == "-":
            return float(first - second)
        return float(first * second if operator == "*" else first / second)


def _exact_arithmetic(operator: str, a: Decimal, b: Decimal) -> Decimal:
    try:
        if operator == "+":
            return _EXACT.add(a, b)
        return _EXACT.subtract(a, b) if operator == "-" else _EXACT.multiply(a, b)
    except DecimalException as error:
        raise _too_long() from error


def arithmetic(operator: str, a: Number, b: Number) -> Number:
    """``+ - * /`` with XPath's numeric promotion. The quotient of integers is a decimal."""
    kind = max(a.kind, b.kind)
    if kind >= FLOAT:
        value = _real_arithmetic(operator, to_float(a, kind), to_float(b, kind))
        return Number(kind, single(value) if kind == FLOAT else value)
    assert not isinstance(a.value, float)
    assert not isinstance(b.value, float)
    if operator == "/":
        if b.value == 0:
            raise ExpressionError("division by zero")
        try:
            return Number(DECIMAL, quotient(a.value, b.value))
        except DecimalException as error:
            raise _too_long() from error
    if isinstance(a.value, int) and isinstance(b.value, int):
        if operator == "+":
            return Number(INTEGER, a.value + b.value)
        return Number(INTEGER, a.value - b.value if operator == "-" else a.value * b.value)
    return Number(DECIMAL, _exact_arithmetic(operator, to_decimal(a.value), to_decimal(b.value)))


def compare_numbers(a: Number, b: Number) -> int | None:
    """-1, 0, 1; None if NaN is involved."""
    kind = max(a.kind, b.kind)
    first, second = (to_float(a, kind), to_float(b, kind)) if kind >= FLOAT else (a.value, b.value)
    if first != first or second != second:
        return None
    return (first > second) - (first < second)


def _round_real(function: str, value: float) -> float:
    if function == "ABS":
        return abs(value)
    if math.isnan(value) or math.isinf(value):
        return value
    if function == "CEIL":
        rounded = math.ceil(value)
    else:
        rounded = math.floor(value)
        if function == "ROUND" and value - rounded >= 0.5:
            rounded += 1
    return math.copysign(float(rounded), value)


def rounded(function: str, number: Number) -> Number:
    """ABS, CEIL, FLOOR or ROUND (half up); the type stays the same."""
    kind, value = number
    if isinstance(value, float):
        return Number(kind, _round_real(function, value))
    if function == "ABS":
        return Number(kind, value.copy_abs() if isinstance(value, Decimal) else abs(value))
    if isinstance(value, int):
        return number
    if function == "ROUND":
        # Adding a half is exact in this context; only cutting at the units rounds.
        value = _EXACT.add(value, Decimal("0.5"))
    direction = ROUND_CEILING if function == "CEIL" else ROUND_FLOOR
    return Number(kind, value.to_integral_value(direction, _EXACT))


def negated(number: Number) -> Number:
    kind, value = number
    return Number(kind, value.copy_negate() if isinstance(value, Decimal) else -value)


def truncated(number: Number) -> Number:
    """Truncated towards zero, as an integer."""
    value = number.value
    if isinstance(value, float) and not math.isfinite(value):
        raise ExpressionError("INF and NaN are not integers")
    return Number(INTEGER, int(value))


def to_exact(number: Number) -> Number:
    """As a decimal. For a floating-point number: the shortest that reads as the same double, whose digits sums can hold."""
    value = number.value
    if not isinstance(value, float):
        return Number(DECIMAL, to_decimal(value))
    if not math.isfinite(value):
        raise ExpressionError("INF and NaN are not decimals")
    return Number(DECIMAL, Decimal(real_text(value, False)))


def plain_text(number: Number) -> str:
    """The text that a cast to xsd:string gives: XPath writes floating-point numbers between 1e-6 and 1e6 as decimals."""
    kind, value = number
    if not isinstance(value, float):
        return integer_text(value) if isinstance(value, int) else decimal_text(value)
    if value == 0.0:
        return "-0" if math.copysign(1.0, value) < 0 else "0"
    if 1e-6 <= abs(value) < 1e6:
        return decimal_text(Decimal(real_text(value, kind == FLOAT)))
    text = real_text(value, kind == FLOAT)
    if "E" in text or not math.isfinite(value):
        return text
    return _with_exponent(Decimal(text))


def _with_exponent(value: Decimal) -> str:
    sign, digits, exponent = value.normalize(_EXACT).as_tuple()
    assert isinstance(exponent, int)
    rest = "".join(map(str, digits[1:])) or "0"
    return f"{'-' if sign else ''}{digits[0]}.{rest}E{exponent + len(digits) - 1}"
