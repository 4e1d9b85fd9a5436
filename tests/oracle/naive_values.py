"""Values of literals, for the oracle: numbers, instants, truth, SPARQL's comparisons and order.

Written from the SPARQL 1.1 and XPath specifications alone. Literals are made with `normalize=False`: lexical forms are
kept.
"""

from __future__ import annotations

import datetime
import math
import re
import struct
from dataclasses import dataclass
from decimal import Context, Decimal, Inexact
from fractions import Fraction
from typing import Any, TypeAlias

import numpy
from rdflib import RDF, XSD, BNode, Literal, URIRef
from rdflib.term import Node

Term: TypeAlias = Node

INTEGER, DECIMAL, FLOAT, DOUBLE = range(4)
KIND_TYPES = (XSD.integer, XSD.decimal, XSD.float, XSD.double)
_DERIVED_TYPES = (
    *("int", "long", "short", "byte", "nonNegativeInteger", "positiveInteger", "nonPositiveInteger"),
    *("negativeInteger", "unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte"),
)
_BITS = {"byte": 8, "short": 16, "int": 32, "long": 64}
_NOT_NEGATIVE = ("nonNegativeInteger", *(f"unsigned{name.capitalize()}" for name in _BITS))
_LEAST = {name: -(2 ** (bits - 1)) for name, bits in _BITS.items()} | dict.fromkeys(_NOT_NEGATIVE, 0)
_LEAST["positiveInteger"] = 1
_MOST = {name: 2 ** (bits - 1) - 1 for name, bits in _BITS.items()}
_MOST |= {f"unsigned{name.capitalize()}": 2**bits - 1 for name, bits in _BITS.items()}
_MOST |= {"nonPositiveInteger": 0, "negativeInteger": -1}
INTEGER_TYPES = frozenset([XSD.integer, *(XSD[name] for name in _DERIVED_TYPES)])
KINDS = {XSD.decimal: DECIMAL, XSD.float: FLOAT, XSD.double: DOUBLE} | dict.fromkeys(INTEGER_TYPES, INTEGER)

EXACT = Context(prec=5000, traps=[Inexact])
LONGEST_QUOTIENT, QUOTIENT_DIGITS = 37, 19
"""Significant digits of a quotient that ends, and of any other, which is rounded."""

_INTEGER_FORM = re.compile(r"[+-]?[0-9]+")
_DECIMAL_FORM = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)")
_DOUBLE_FORM = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?INF|NaN")
_DAY_FORM = r"(-?(?:[1-9]\d{3,}|0\d{3}))-(\d\d)-(\d\d)"
_ZONE_FORM = r"(Z|[+-](?:(?:0\d|1[0-3]):[0-5]\d|14:00))?"
_DATE_TIME_FORM = re.compile(_DAY_FORM + r"T(\d\d):(\d\d):(\d\d(?:\.\d+)?)" + _ZONE_FORM, re.ASCII)
_DATE_FORM = re.compile(_DAY_FORM + _ZONE_FORM, re.ASCII)
WHITESPACE = " \t\r\n"
"""The whitespace that casts from strings ignore at both ends; the forms of literals have none."""


class ExpressionError(Exception):
    """SPARQL's type error: a filter fails, a BIND or an aggregate is unbound."""


@dataclass(frozen=True, slots=True)
class Number:
    """`kind` decides promotion; `value` is an int (INTEGER), a Decimal (DECIMAL) or a float."""

    kind: int
    value: Any


def canonical(term: Term) -> Term:
    """RDF 1.1: a plain literal is an xsd:string, so both get the same form."""
    if isinstance(term, Literal) and term.datatype == XSD.string:
        return Literal(str(term))
    return term


def typed(lexical: str, datatype: URIRef) -> Literal:
    return Literal(lexical, datatype=datatype, normalize=False)


def boolean(value: bool) -> Literal:
    return typed("true" if value else "false", XSD.boolean)


def is_string(term: Term) -> bool:
    """A simple literal or xsd:string."""
    return isinstance(term, Literal) and not term.language and term.datatype in (None, XSD.string)


def datatype_of(literal: Literal) -> URIRef:
    if literal.language:
        return RDF.langString
    return URIRef(literal.datatype) if literal.datatype is not None else XSD.string


# --- numbers --------------------------------------------------------------------------------------


def number(term: Term | None) -> Number:
    """The number of a term; an error if it is not a number or its lexical form is wrong."""
    if not isinstance(term, Literal) or term.datatype not in KINDS:
        raise ExpressionError(f"{term!r} is not a number")
    kind = KINDS[URIRef(term.datatype)]
    value = parse_number(str(term), kind)
    name = term.datatype.removeprefix(str(XSD))
    if kind == INTEGER and not _LEAST.get(name, value) <= value <= _MOST.get(name, value):
        raise ExpressionError(f"{term!r} is out of bounds")
    return Number(kind, value)


def parse_number(text: str, kind: int) -> int | Decimal | float:
    form = (_INTEGER_FORM, _DECIMAL_FORM, _DOUBLE_FORM, _DOUBLE_FORM)[kind]
    if not form.fullmatch(text):
        raise ExpressionError(f"{text!r} is no lexical form of {KIND_TYPES[kind]}")
    if kind == INTEGER:
        return int(text)
    if kind == DECIMAL:
        return Decimal(text)
    value = float(text.replace("INF", "inf"))
    return to_float32(value) if kind == FLOAT else value


def is_number(term: Term | None) -> bool:
    try:
        number(term)
    except ExpressionError:
        return False
    return True


def to_float32(value: float) -> float:
    if math.isnan(value) or math.isinf(value):
        return value
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def promoted(value: Number, kind: int) -> Any:
    """The Python value of a number as a number of a kind at or above its own."""
    if kind == INTEGER:
        return value.value
    if kind == DECIMAL:
        return Decimal(value.value)
    if value.kind >= FLOAT:
        return to_float32(value.value) if kind == FLOAT else value.value
    # Only floats have a negative zero.
    real = float(value.value) + 0.0
    return to_float32(real) if kind == FLOAT else real


def arithmetic(operator: str, left: Number, right: Number) -> Number:
    """`+ - * /` with promotion; the quotient of integers is a decimal."""
    kind = max(left.kind, right.kind)
    if operator == "/" and kind == INTEGER:
        kind = DECIMAL
    a, b = promoted(left, kind), promoted(right, kind)
    if kind == INTEGER:
        return Number(kind, {"+": a + b, "-": a - b, "*": a * b}[operator])
    if kind == DECIMAL:
        return Number(kind, _decimal_arithmetic(operator, a, b))
    value = _float_arithmetic(operator, a, b)
    return Number(kind, to_float32(value) if kind == FLOAT else value)


def _decimal_arithmetic(operator: str, a: Decimal, b: Decimal) -> Decimal:
    if operator == "/":
        if b == 0:
            raise ExpressionError("division by zero")
        return _quotient(a, b)
    return {"+": EXACT.add, "-": EXACT.subtract, "*": EXACT.multiply}[operator](a, b)


def _quotient(a: Decimal, b: Decimal) -> Decimal:
    """All digits if there are at most 37 or not more than the dividend has, else 19, rounded half to even.

    Never rounded left of the decimal point. Decimal's division rounds like this, and reports whether it did.
    """
    whole = len(str(abs(int(Fraction(a) / Fraction(b)))))
    most = max(LONGEST_QUOTIENT, len(a.as_tuple().digits), whole)
    try:
        return Context(prec=most, traps=[Inexact]).divide(a, b)
    except Inexact:
        return Context(prec=max(QUOTIENT_DIGITS, whole)).divide(a, b)


def _float_arithmetic(operator: str, a: float, b: float) -> float:
    if operator == "/" and b == 0:
        return math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1.0, b)
    if operator == "/":
        return a / b
    return {"+": a + b, "-": a - b, "*": a * b}[operator]


def number_literal(value: Number) -> Literal:
    """The canonical literal: decimals without trailing zeros or point, doubles as in XSD 1.0."""
    if value.kind == INTEGER:
        return typed(str(value.value), XSD.integer)
    if value.kind == DECIMAL:
        return typed(decimal_text(value.value), XSD.decimal)
    return typed(double_text(value.value), KIND_TYPES[value.kind])


def decimal_text(value: Decimal) -> str:
    text = f"{value:f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def double_text(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "INF" if value > 0 else "-INF"
    if value == 0:
        return "-0.0E0" if math.copysign(1.0, value) < 0 else "0.0E0"
    mantissa, _, exponent = f"{Decimal(repr(value)):E}".partition("E")
    digits = mantissa if "." in mantissa else mantissa + ".0"
    whole, _, fraction = digits.partition(".")
    return f"{whole}.{fraction.rstrip('0') or '0'}E{int(exponent or '0')}"


def plain_text(value: Number) -> str:
    """The result of a cast to xsd:string: floats and doubles from 1e-6 to 1e6 as decimals, others as in XSD 1.0."""
    if value.kind < FLOAT:
        return str(number_literal(value))
    found = float(value.value)
    if value.kind == FLOAT and math.isfinite(found):
        tries = (float(f"{found:.{digits}g}") for digits in range(1, 18))
        found = next(each for each in tries if to_float32(each) == found)
    if found == 0:
        return "-0" if math.copysign(1.0, found) < 0 else "0"
    return decimal_text(Decimal(repr(found))) if 1e-6 <= abs(found) < 1e6 else double_text(found)


# --- instants -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Instant:
    """A dateTime's parts as written, and `seconds` since the epoch; without a time zone it counts as UTC."""

    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: Decimal
    zone: str
    seconds: Fraction


def instant(term: Term | None) -> Instant:
    """The value of an xsd:dateTime; an error for anything else."""
    if not isinstance(term, Literal) or term.datatype != XSD.dateTime:
        raise ExpressionError(f"{term!r} is not a dateTime")
    found = _DATE_TIME_FORM.fullmatch(str(term))
    if found is None:
        raise ExpressionError(f"{term!r} is not a dateTime")
    year, month, day, hour, minute = (int(part) for part in found.groups()[:5])
    return _instant(year, month, day, hour, minute, Decimal(found[6]), found[7] or "")


def date_instant(term: Term | None) -> Instant:
    """The beginning of an xsd:date."""
    if not isinstance(term, Literal) or term.datatype != XSD.date:
        raise ExpressionError(f"{term!r} is not a date")
    found = _DATE_FORM.fullmatch(str(term))
    if found is None:
        raise ExpressionError(f"{term!r} is not a date")
    return _instant(int(found[1]), int(found[2]), int(found[3]), 0, 0, Decimal(0), found[4] or "")


def _instant(year: int, month: int, day: int, hour: int, minute: int, second: Decimal, zone: str) -> Instant:
    # The calendar repeats every 400 years: years are mapped into the range of Python's dates.
    cycle = year // 400 - 4
    try:
        date = datetime.date(year - 400 * cycle, month, day)
    except ValueError as problem:
        raise ExpressionError(str(problem)) from problem
    if (hour, minute, second) == (24, 0, 0):
        hour, date = 0, date + datetime.timedelta(days=1)
    if hour > 23 or minute > 59 or second >= 60:
        raise ExpressionError("no such time of day")
    year, month, day = date.year + 400 * cycle, date.month, date.day
    days = date.toordinal() - datetime.date(1970, 1, 1).toordinal() + 146097 * cycle
    seconds = Fraction(days * 86400 + hour * 3600 + minute * 60) + Fraction(second) - zone_seconds(zone)
    return Instant(year, month, day, hour, minute, second, zone, seconds)


def zone_seconds(zone: str) -> int:
    if zone in ("", "Z"):
        return 0
    sign = -1 if zone[0] == "-" else 1
    return sign * (int(zone[1:3]) * 3600 + int(zone[4:6]) * 60)


# --- durations ------------------------------------------------------------------------------------

DURATION_TYPES = (XSD.duration, XSD.dayTimeDuration, XSD.yearMonthDuration)
_TYPE_FORMS = {
    XSD.duration: r"-?P[0-9YMD]*(T[0-9HM.S]+)?",
    XSD.dayTimeDuration: r"-?P[0-9D]*(T[0-9HM.S]+)?",
    XSD.yearMonthDuration: r"-?P[0-9YM]+",
}
_PARTS_FORM = re.compile(
    r"-?P((?P<Y>\d+)Y)?((?P<M>\d+)M)?((?P<D>\d+)D)?(T((?P<h>\d+)H)?((?P<m>\d+)M)?((?P<s>\d+(\.\d+)?)S)?)?", re.ASCII
)
_INSTANTS = ((1696, 9), (1697, 2), (1903, 3), (1903, 7))


@dataclass(frozen=True, slots=True)
class Duration:
    """The value of a duration: months and seconds, of one sign."""

    months: int
    seconds: Fraction

    def from_instants(self) -> list[Fraction]:
        """The length of the duration from each of the four instants of XML Schema, part 2, 3.3.6.2, in seconds."""
        return [
            86_400 * (_month_start(year * 12 + month - 1 + self.months) - _month_start(year * 12 + month - 1))
            + self.seconds
            for year, month in _INSTANTS
        ]


def _month_start(month: int) -> int:
    """A month, counted from January of year 0, to the days before it."""
    cycle, rest = divmod(month, 4800)
    return cycle * 146_097 + datetime.date(2000 + rest // 12, rest % 12 + 1, 1).toordinal()


def duration(term: Term | None) -> Duration:
    """The value of a duration; an error for anything else."""
    if not isinstance(term, Literal) or term.datatype not in DURATION_TYPES:
        raise ExpressionError(f"{term!r} is not a duration")
    found = _PARTS_FORM.fullmatch(str(term)) if re.fullmatch(_TYPE_FORMS[URIRef(term.datatype)], str(term)) else None
    if found is None or not any(found.group(*"YMDhms")) or str(term).endswith("T"):
        raise ExpressionError(f"{term!r} is not a duration")
    parts = {name: Fraction(text or 0) for name, text in found.groupdict().items()}
    digits = [text for text in found.groupdict().values() if text]
    if any(len(text.partition(".")[0]) > 9 or len(text.partition(".")[2]) > 18 for text in digits):
        raise ExpressionError(f"{term!r} has more digits than the engine takes")
    sign = -1 if str(term).startswith("-") else 1
    seconds = ((parts["D"] * 24 + parts["h"]) * 60 + parts["m"]) * 60 + parts["s"]
    return Duration(sign * int(parts["Y"] * 12 + parts["M"]), sign * seconds)


def is_duration(term: Term | None) -> bool:
    try:
        duration(term)
    except ExpressionError:
        return False
    return True


def duration_literal(months: int, seconds: Fraction, datatype: URIRef) -> Literal:
    """The canonical literal (XML Schema, part 2, E.2)."""
    if months * seconds < 0:
        raise ExpressionError("a duration of two signs")
    sign = "-" if months < 0 or seconds < 0 else ""
    months, seconds = abs(months), Fraction(round(abs(seconds) * 10**18), 10**18)
    whole = int(seconds)
    text = "".join(f"{n}{unit}" for n, unit in ((months // 12, "Y"), (months % 12, "M"), (whole // 86_400, "D")) if n)
    fraction = decimal_text(Decimal(int((seconds - whole) * 10**18)).scaleb(-18))[1:]
    of_minute = f"{whole % 60}{fraction}"
    clock = "".join(f"{n}{unit}" for n, unit in ((whole // 3600 % 24, "H"), (whole // 60 % 60, "M")) if n)
    clock += f"{of_minute}S" if of_minute != "0" else ""
    if not text and not clock:
        text, clock = ("0M", "") if datatype == XSD.yearMonthDuration else ("", "0S")
    return typed(f"{sign}P{text}{'T' if clock else ''}{clock}", datatype)


def moved(moment: Literal, months: int, seconds: Fraction) -> Literal:
    """A date or dateTime plus months, at most to the end of the resulting month, plus seconds; in its own zone."""
    is_date = moment.datatype == XSD.date
    parts = date_instant(moment) if is_date else instant(moment)
    month = parts.year * 12 + parts.month - 1 + months
    start = _month_start(month)
    days = start + min(parts.day, _month_start(month + 1) - start) - 1
    clock = Fraction(0) if is_date else Fraction(parts.hour * 3600 + parts.minute * 60) + Fraction(parts.second)
    more, clock = divmod(clock + seconds, 86_400)
    cycle, of_cycle = divmod(days + int(more) - _month_start(0), 146_097)
    date = datetime.date.fromordinal(datetime.date(2000, 1, 1).toordinal() + of_cycle)
    text = date_text(date.year - 2000 + 400 * cycle, date.strftime("-%m-%d"))
    if is_date:
        return typed(text + parts.zone, XSD.date)
    fraction = decimal_text(Decimal(int(clock % 1 * 10**30)).scaleb(-30))[1:]
    whole = int(clock)
    return typed(f"{text}T{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}{fraction}{parts.zone}", XSD.dateTime)


def date_time_literal(microseconds: int) -> Literal:
    """An instant of event time as xsd:dateTime in UTC."""
    # The calendar repeats every 400 years of 146,097 days: Python's dates are used for those after 2000.
    cycle, rest = divmod(microseconds - 946_684_800_000_000, 146_097 * 86_400_000_000)
    moment = datetime.datetime(2000, 1, 1) + datetime.timedelta(microseconds=rest)
    fraction = f".{moment.microsecond:06d}".rstrip("0").rstrip(".")
    return typed(f"{date_text(moment.year + 400 * cycle, moment.strftime('-%m-%dT%H:%M:%S'))}{fraction}Z", XSD.dateTime)


def date_text(year: int, rest: str) -> str:
    """The date's text: the year in XML Schema's lexical mapping (at least four digits, with a sign before them)."""
    return ("-" if year < 0 else "") + str(abs(year)).zfill(4) + rest


# --- truth, comparison, order ---------------------------------------------------------------------


def boolean_value(term: Term) -> bool:
    """The value of an xsd:boolean."""
    if isinstance(term, Literal) and term.datatype == XSD.boolean and str(term) in ("true", "1", "false", "0"):
        return str(term) in ("true", "1")
    raise ExpressionError(f"{term!r} is not a boolean")


def effective_boolean(term: Term | None) -> bool:
    """SPARQL 1.1, 17.2.2."""
    if isinstance(term, Literal):
        if term.datatype == XSD.boolean:
            return str(term) in ("true", "1")
        if term.datatype in KINDS:
            return is_number(term) and number(term).value == number(term).value and number(term).value != 0
        if term.language or is_string(term):
            return str(term) != ""
    raise ExpressionError(f"{term!r} has no truth value")


def compare(left: Term, right: Term) -> int | None:
    """-1, 0 or 1 for operands that `<` orders, None where one of them is NaN; an error for other operands."""
    if is_number(left) and is_number(right):
        a, b = number(left), number(right)
        kind = max(a.kind, b.kind)
        return _sign(promoted(a, kind), promoted(b, kind))
    if is_string(left) and is_string(right):
        return _sign(str(left), str(right))
    if is_duration(left) and is_duration(right):
        signs = {
            _sign(a, b) for a, b in zip(duration(left).from_instants(), duration(right).from_instants(), strict=True)
        }
        if len(signs) > 1:
            raise ExpressionError("these durations have no order")
        return signs.pop()
    if isinstance(left, Literal) and isinstance(right, Literal) and left.datatype == right.datatype:
        if left.datatype == XSD.boolean:
            return _sign(boolean_value(left), boolean_value(right))
        if left.datatype == XSD.dateTime:
            return _sign(instant(left).seconds, instant(right).seconds)
        if left.datatype == XSD.date:
            return _sign(date_instant(left).seconds, date_instant(right).seconds)
    raise ExpressionError(f"{left!r} and {right!r} have no order")


def _sign(a: Any, b: Any) -> int | None:
    if a == b:
        return 0
    if a < b:
        return -1
    return 1 if a > b else None


def equal(left: Term, right: Term) -> bool:
    """`=`: by value if both values are known (values of different types differ), otherwise RDFterm-equal.

    The latter is an error for two different literals; but a literal with a language tag differs from every other term.
    """
    if not (isinstance(left, Literal) and isinstance(right, Literal)):
        return left == right
    if is_duration(left) and is_duration(right):
        return duration(left) == duration(right)
    try:
        return compare(left, right) == 0
    except ExpressionError:
        if canonical(left) == canonical(right):
            return True
        if left.language or right.language or (_has_value(left) and _has_value(right)):
            return False
        raise


def _has_value(literal: Literal) -> bool:
    if literal.datatype in KINDS:
        return is_number(literal)
    try:
        _literal_rank(literal)
    except ExpressionError:
        return False
    return True


def value_key(term: Term | None) -> tuple[Any, ...]:
    """The order of values for ORDER BY: equal for two terms of which neither is before the other.

    Unbound, blank nodes, IRIs, literals; among literals numbers, booleans, dateTimes, dates, durations, strings,
    strings with a language, anything else. All NaNs are equal.
    """
    if term is None:
        return (0,)
    if isinstance(term, BNode):
        return (1, str(term))
    if not isinstance(term, Literal):
        return (2, str(term))
    try:
        return (3, *_literal_rank(term))
    except ExpressionError:
        return (3, 7, str(term), str(datatype_of(term)))


def order_key(term: Term | None) -> tuple[Any, ...]:
    """The total order of terms for MIN, MAX and everything that ORDER BY leaves open.

    By value; equal values are ordered by `_form`, then by the length of the text, then by the text.
    """
    key = value_key(term)
    if key[0] < 3 or key[1] == 7 or not isinstance(term, Literal):
        return key
    text = f'"{term}"^^{datatype_of(term)}'
    return (*key, *_form(term), len(text), text)


def _form(term: Literal) -> tuple[Any, ...]:
    """Numbers: the written decimal, the kind, plain forms first, fraction digits, then the datatype. Others: instants
    by fraction digits and zone (none, Z, others by offset), booleans with words first.
    """
    if term.datatype in KINDS:
        plain = re.fullmatch(r"-?(?:0|[1-9][0-9]*)(?:\.([0-9]+))?", str(term))
        digits = len(plain[1] or "") if plain else 0
        names = (XSD.integer, *(XSD[name] for name in _DERIVED_TYPES))
        rank = names.index(URIRef(term.datatype)) if term.datatype in names else 0
        beyond = {"NaN": -2, "-INF": -1, "INF": 1, "+INF": 1}.get(str(term), 0)
        return (
            beyond,
            Fraction(0) if beyond else Fraction(str(term)),
            KINDS[URIRef(term.datatype)],
            plain is None,
            digits,
            rank,
        )
    if term.datatype in (XSD.dateTime, XSD.date):
        fraction = re.search(r"\.(\d+)", str(term))
        zone = (instant(term) if term.datatype == XSD.dateTime else date_instant(term)).zone
        return (len(fraction[1]) if fraction else 0, min(len(zone), 2), zone_seconds(zone))
    return (str(term) in ("0", "1"),) if term.datatype == XSD.boolean else ()


def _literal_rank(term: Literal) -> tuple[Any, ...]:
    if term.datatype == XSD.boolean:
        return (1, boolean_value(term))
    if term.datatype in KINDS:
        # An integer outside of its type's bounds is ordered by its digits, although it is not a number elsewhere.
        kind = KINDS[URIRef(term.datatype)]
        value = parse_number(str(term), kind)
        if kind < FLOAT:
            return (0, 2, Fraction(value))
        if not math.isfinite(value):
            return (0, 3, Fraction(0)) if value > 0 else (0, 1 if value < 0 else 0, Fraction(0))
        # One order for all kinds: a double or float counts as the shortest decimal that reads as it.
        return (0, 2, Fraction(double_text(value) if kind == DOUBLE else str(numpy.float32(value))))
    if term.datatype == XSD.dateTime:
        return (2, instant(term).seconds)
    if term.datatype == XSD.date:
        return (3, date_instant(term).seconds)
    if term.datatype in DURATION_TYPES:
        # An order that agrees with the comparison from all four instants.
        found = duration(term)
        return (4, sum(found.from_instants()), found.months)
    if is_string(term):
        return (5, str(term))
    if term.language:
        return (6, str(term), term.language)
    raise ExpressionError("a literal of an unknown type")
