"""The constructor functions xsd:integer(…) and so on (SPARQL 1.1, 17.5; XPath's casting rules)."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from cqels_py.functions.dates import DateTime, date_text, parse_datetime
from cqels_py.functions.durations import XSD_DAY_TIME, XSD_YEAR_MONTH, Duration, duration_term, parse_duration
from cqels_py.functions.numbers import (
    DOUBLE,
    FLOAT,
    INTEGER,
    Number,
    number_term,
    parse_number,
    plain_text,
    to_exact,
    truncated,
)
from cqels_py.functions.numbers import to_float as promoted
from cqels_py.functions.terms import (
    XSD_BOOLEAN,
    XSD_DATE,
    XSD_DATETIME,
    XSD_DECIMAL,
    XSD_DOUBLE,
    XSD_FLOAT,
    XSD_INTEGER,
    ExpressionError,
    Term,
    TermKind,
    boolean,
    literal,
)
from cqels_py.functions.values import Value, truth_of, value_of

_WHITESPACE = " \t\n\r"


def _source(term: Term) -> Value | None:
    """The value to cast. Whitespace around a string is removed, as in XPath's casts."""
    value = value_of(term)
    return value.strip(_WHITESPACE) if isinstance(value, str) else value


def _number(term: Term, datatype: str) -> Number:
    """The number of a numeric term, a boolean, or a string in a lexical form of the target type."""
    value = _source(term)
    if isinstance(value, Number):
        return value
    if isinstance(value, bool):
        return Number(INTEGER, int(value))
    number = parse_number(value, datatype) if isinstance(value, str) else None
    if number is None:
        raise ExpressionError(f"this term cannot be cast to {datatype}")
    return number


def to_integer(term: Term) -> Term:
    return number_term(truncated(_number(term, XSD_INTEGER)))


def to_decimal(term: Term) -> Term:
    return number_term(to_exact(_number(term, XSD_DECIMAL)))


def to_double(term: Term) -> Term:
    return number_term(Number(DOUBLE, promoted(_number(term, XSD_DOUBLE), DOUBLE)))


def to_float(term: Term) -> Term:
    return number_term(Number(FLOAT, promoted(_number(term, XSD_FLOAT), FLOAT)))


def to_boolean(term: Term) -> Term:
    value = _source(term)
    if isinstance(value, str):
        value = value_of(literal(value, XSD_BOOLEAN))
    if not isinstance(value, Number | bool):
        raise ExpressionError("this term cannot be cast to xsd:boolean")
    return boolean(value if isinstance(value, bool) else truth_of(term))


def to_string(term: Term) -> Term:
    """IRIs: their text. Numbers and booleans: the canonical form. Other literals: the lexical form."""
    if term.kind is TermKind.BLANK or term.language:
        raise ExpressionError("this term cannot be cast to xsd:string")
    value = value_of(term)
    if isinstance(value, Number):
        return literal(plain_text(value))
    return literal(str(value).lower() if isinstance(value, bool) else term.text)


def to_datetime(term: Term) -> Term:
    """Dates: their first instant. Strings: a dateTime with this text."""
    value = _source(term)
    if isinstance(value, DateTime):
        if not value.is_date:
            return term
        zone_start = term.text.index("-", 1) + 6
        return literal(f"{term.text[:zone_start]}T00:00:00{term.text[zone_start:]}", XSD_DATETIME)
    if isinstance(value, str) and parse_datetime(value, False):
        return literal(value, XSD_DATETIME)
    raise ExpressionError("this term cannot be cast to xsd:dateTime")


def to_date(term: Term) -> Term:
    """DateTimes: their date, in their zone. Strings: a date with this text."""
    value = _source(term)
    if isinstance(value, DateTime):
        if value.is_date:
            return term
        zone = term.text[-1:] if term.text.endswith("Z") else ("" if value.zone is None else term.text[-6:])
        return literal(date_text(value.year, value.month, value.day) + zone, XSD_DATE)
    if isinstance(value, str) and parse_datetime(value, True):
        return literal(value, XSD_DATE)
    raise ExpressionError("this term cannot be cast to xsd:date")


def to_duration(datatype: str) -> Callable[[Term], Term]:
    """The cast to one of the three duration types. Durations: the part that the type has. Strings: a duration with this
    text.
    """

    def cast(term: Term) -> Term:
        value = _source(term)
        if isinstance(value, Duration):
            months = 0 if datatype == XSD_DAY_TIME else value.months
            seconds = Fraction(0) if datatype == XSD_YEAR_MONTH else value.seconds
            return term if term.datatype == datatype else duration_term(Duration(months, seconds), datatype)
        if isinstance(value, str) and parse_duration(value, datatype):
            return literal(value, datatype)
        raise ExpressionError(f"this term cannot be cast to {datatype}")

    return cast
