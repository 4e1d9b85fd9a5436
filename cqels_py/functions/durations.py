"""xsd:duration and its two derived types: parsing, order, and arithmetic with dates and numbers (F&O 8 and 9)."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from cqels_py.functions.dates import DateTime, date_of, date_text, days_of
from cqels_py.functions.numbers import DECIMAL, Number, arithmetic, decimal_text, number_term
from cqels_py.functions.terms import XSD, XSD_DATE, XSD_DATETIME, ExpressionError, Term, literal

XSD_DURATION = XSD + "duration"
XSD_DAY_TIME = XSD + "dayTimeDuration"
XSD_YEAR_MONTH = XSD + "yearMonthDuration"
DURATIONS = (XSD_DURATION, XSD_DAY_TIME, XSD_YEAR_MONTH)

FRACTION_DIGITS = 18
"""Fraction digits of a second in a literal, at most. The numbers before have at most nine digits."""

_FORM = re.compile(
    r"(-)?P(?=.)(?:([0-9]{1,9})Y)?(?:([0-9]{1,9})M)?(?:([0-9]{1,9})D)?"
    r"(?:T(?=.)(?:([0-9]{1,9})H)?(?:([0-9]{1,9})M)?(?:([0-9]{1,9}(?:\.[0-9]{1,18})?)S)?)?"
)
_DAY = 86_400
_REFERENCES = ((1696, 9), (1697, 2), (1903, 3), (1903, 7))
"""The months at whose beginnings XML Schema compares durations (part 2, 3.3.6.2)."""
_LARGEST_YEAR = 999_999_999


class Duration(NamedTuple):
    """In a literal, both parts have the same sign."""

    months: int
    seconds: Fraction


def parse_duration(text: str, datatype: str) -> Duration | None:
    """The value of a lexical form; None if it is not valid for the datatype."""
    match = _FORM.fullmatch(text)
    if not match:
        return None
    sign, years, months, days, hours, minutes, seconds = match.groups()
    if (datatype == XSD_DAY_TIME and (years or months)) or (datatype == XSD_YEAR_MONTH and (days or "T" in text)):
        return None
    whole = ((int(days or 0) * 24 + int(hours or 0)) * 60 + int(minutes or 0)) * 60
    value = Duration(int(years or 0) * 12 + int(months or 0), whole + Fraction(seconds or 0))
    return _negative(value) if sign else value


def _negative(value: Duration) -> Duration:
    return Duration(-value.months, -value.seconds)


def compare_durations(a: Duration, b: Duration) -> int:
    """-1, 0, 1. An error if the result depends on the month in which the durations begin."""
    orders = {(x > y) - (x < y) for x, y in zip(_from_references(a), _from_references(b), strict=True)}
    if len(orders) > 1 or (orders == {0} and a != b):
        raise ExpressionError("months and days have no order that holds whenever they begin")
    return orders.pop()


def _from_references(value: Duration) -> list[Fraction]:
    """The seconds of the duration from each reference month."""
    return [_days_after(year, month, value.months) * _DAY + value.seconds for year, month in _REFERENCES]


def _days_after(year: int, month: int, months: int) -> int:
    """Days from the beginning of one month to that of another."""
    later = year * 12 + month - 1 + months
    return days_of(later // 12, later % 12 + 1, 1) - days_of(year, month, 1)


def duration_term(value: Duration, datatype: str) -> Term:
    """The literal of a computed duration, in canonical form."""
    if value.months * value.seconds < 0:
        raise ExpressionError("months and seconds of different signs make no duration")
    sign = "-" if value.months < 0 or value.seconds < 0 else ""
    years, months = divmod(abs(value.months), 12)
    minutes, seconds = divmod(abs(value.seconds), 60)
    days, minutes = divmod(minutes, 1440)
    of_date = _parts((years, "Y"), (months, "M"), (days, "D"))
    of_time = _parts((minutes // 60, "H"), (minutes % 60, "M"), (seconds, "S"))
    if max(years, days) > _LARGEST_YEAR:
        raise ExpressionError("a duration beyond nine digits")
    text = of_date + (f"T{of_time}" if of_time else "")
    return literal(f"{sign}P{text or ('0M' if datatype == XSD_YEAR_MONTH else 'T0S')}", datatype)


def _parts(*parts: tuple[Fraction | int, str]) -> str:
    return "".join(_plain(number) + unit for number, unit in parts if number)


def _plain(number: Fraction | int) -> str:
    """A number with finitely many digits."""
    if number.denominator == 1:
        return str(int(number))
    scaled = number * 10**FRACTION_DIGITS
    return decimal_text(Decimal(round(scaled)).scaleb(-FRACTION_DIGITS))


def _rounded(seconds: Fraction) -> Fraction:
    """Rounded half to even to the last digit that a literal has."""
    return Fraction(round(seconds * 10**FRACTION_DIGITS), 10**FRACTION_DIGITS)


def rounded_duration(months: Fraction, seconds: Fraction, datatype: str) -> Term:
    """The literal of a computed duration: months are rounded half up to whole months, seconds to their last digit."""
    return duration_term(Duration(math.floor(months + Fraction(1, 2)), _rounded(seconds)), datatype)


def signed(sign: str, term: Term, value: Duration) -> Term:
    """Unary plus or minus of a duration."""
    return duration_term(_negative(value) if sign == "-" else value, term.datatype)


def calculated(operator: str, a: Term, first: object, b: Term, second: object) -> Term:
    """``+ - * /`` of two terms with these values, of which one is a duration or both are dates."""
    match first, second:
        case DateTime(), DateTime() if operator == "-" and first.is_date == second.is_date:
            return duration_term(Duration(0, _rounded(first.instant - second.instant)), XSD_DAY_TIME)
        case DateTime(), Duration() if operator in "+-":
            return _moved(a, first, second if operator == "+" else _negative(second))
        case Duration(), DateTime() if operator == "+":
            return _moved(b, second, first)
        case Duration(), Duration():
            return _of_durations(operator, a, first, b, second)
        case Duration(), Number() if operator in "*/":
            return _scaled(a, first, second, operator == "/")
        case Number(), Duration() if operator == "*":
            return _scaled(b, second, first, False)
    raise ExpressionError(f"these terms have no {operator}")


def _of_durations(operator: str, a: Term, first: Duration, b: Term, second: Duration) -> Term:
    """Sums and differences; of different types, an xsd:duration. The quotient of two durations of one type is a decimal."""
    if operator == "*":
        raise ExpressionError("a product of durations")
    if operator in "+-":
        other = second if operator == "+" else _negative(second)
        datatype = a.datatype if a.datatype == b.datatype else XSD_DURATION
        return duration_term(Duration(first.months + other.months, first.seconds + other.seconds), datatype)
    if a.datatype != b.datatype or a.datatype == XSD_DURATION:
        raise ExpressionError("a quotient of durations of different types")
    parts = (first.months, second.months) if a.datatype == XSD_YEAR_MONTH else (first.seconds, second.seconds)
    dividend, divisor = (Number(DECIMAL, Decimal(_plain(Fraction(part)))) for part in parts)
    return number_term(arithmetic("/", dividend, divisor))


def _scaled(term: Term, value: Duration, number: Number, divides: bool) -> Term:
    if term.datatype == XSD_DURATION:
        raise ExpressionError("an xsd:duration times or by a number: it must be all months, or all days and seconds")
    if isinstance(number.value, float) and not math.isfinite(number.value):
        if number.value != number.value or not divides:
            raise ExpressionError("a duration times or by NaN, or times INF")
        return duration_term(Duration(0, Fraction(0)), term.datatype)
    if divides and not number.value:
        raise ExpressionError("division by zero")
    factor = 1 / Fraction(number.value) if divides else Fraction(number.value)
    return rounded_duration(value.months * factor, value.seconds * factor, term.datatype)


def _moved(term: Term, datetime: DateTime, value: Duration) -> Term:
    """The date or dateTime moved by a duration, in its zone: first by months, at most to the target month's last day,
    then by seconds.
    """
    month = datetime.year * 12 + datetime.month - 1 + value.months
    year, month = month // 12, month % 12 + 1
    last = days_of(year + month // 12, month % 12 + 1, 1) - days_of(year, month, 1)
    days = days_of(year, month, min(datetime.day, last))
    clock = (datetime.hours * 60 + datetime.minutes) * 60 + Fraction(datetime.seconds)
    more, clock = divmod(clock + value.seconds, _DAY)
    date = date_of(days + int(more))
    if abs(date[0]) > _LARGEST_YEAR:
        raise ExpressionError("a date beyond nine digits of a year")
    zone = term.text[-1:] if term.text.endswith("Z") else ("" if datetime.zone is None else term.text[-6:])
    if datetime.is_date:
        return literal(date_text(*date) + zone, XSD_DATE)
    minutes, seconds = divmod(clock, 60)
    whole, _, fraction = decimal_text(_decimal(seconds)).partition(".")
    clock_text = f"{minutes // 60:02}:{minutes % 60:02}:{whole:0>2}" + (f".{fraction}" if fraction else "")
    return literal(f"{date_text(*date)}T{clock_text}{zone}", XSD_DATETIME)


def _decimal(seconds: Fraction) -> Decimal:
    """Exact, with all the digits of a dateTime's text."""
    digits = 0
    while (seconds * 10**digits).denominator != 1:
        digits += 1
    return Decimal(int(seconds * 10**digits)).scaleb(-digits)
