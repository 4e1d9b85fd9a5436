"""The values of terms: literals, effective boolean values, `=` and `<`."""

from __future__ import annotations

from functools import lru_cache
from typing import TypeAlias

from cqels_py.functions.dates import DateTime, parse_datetime
from cqels_py.functions.durations import DURATIONS, Duration, compare_durations, parse_duration
from cqels_py.functions.numbers import NUMERIC_DATATYPES, Number, compare_numbers, parse_number
from cqels_py.functions.terms import (
    RDF_LANG_STRING,
    XSD_BOOLEAN,
    XSD_DATE,
    XSD_DATETIME,
    XSD_STRING,
    ExpressionError,
    Term,
)

Value: TypeAlias = Number | DateTime | Duration | bool | str

_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


@lru_cache(maxsize=8192)
def value_of(term: Term) -> Value | None:
    """The value of a literal of a known datatype. None for other datatypes, ill-typed literals and language strings."""
    datatype = term.datatype
    if datatype == XSD_STRING:
        return term.text
    if datatype in NUMERIC_DATATYPES:
        return parse_number(term.text, datatype)
    if datatype == XSD_BOOLEAN:
        return _BOOLEANS.get(term.text)
    if datatype in (XSD_DATETIME, XSD_DATE):
        return parse_datetime(term.text, datatype == XSD_DATE)
    return parse_duration(term.text, datatype) if datatype in DURATIONS else None


def number_of(term: Term) -> Number:
    value = value_of(term)
    if not isinstance(value, Number):
        raise ExpressionError("a number was expected")
    return value


def truth_of(term: Term) -> bool:
    """The effective boolean value (SPARQL 1.1, 17.2.2)."""
    value = value_of(term)
    if isinstance(value, bool):
        return value
    if term.is_string:
        return term.text != ""
    if isinstance(value, Number):
        return bool(value.value) and value.value == value.value
    if value is None and (term.datatype in NUMERIC_DATATYPES or term.datatype == XSD_BOOLEAN):
        return False
    raise ExpressionError("this term has no effective boolean value")


def compare(a: Term, b: Term) -> int | None:
    """-1, 0, 1, or None if NaN is involved. An error if the values have no order."""
    first, second = value_of(a), value_of(b)
    if isinstance(first, Number) and isinstance(second, Number):
        return compare_numbers(first, second)
    if isinstance(first, DateTime) and isinstance(second, DateTime) and first.is_date == second.is_date:
        return (first.instant > second.instant) - (first.instant < second.instant)
    if isinstance(first, Duration) and isinstance(second, Duration):
        return compare_durations(first, second)
    if isinstance(first, bool) and isinstance(second, bool):
        return first - second
    if isinstance(first, str) and isinstance(second, str):
        return (first > second) - (first < second)
    raise ExpressionError("these terms have no order")


def equal(a: Term, b: Term) -> bool:
    """`=`: an error for different literals if the value of one is unknown, unless a language tag distinguishes them."""
    if not (a.is_literal and b.is_literal):
        return a == b
    if RDF_LANG_STRING in (a.datatype, b.datatype):
        return a.datatype == b.datatype and a.text == b.text and a.language.lower() == b.language.lower()
    first, second = value_of(a), value_of(b)
    known, same = first is not None and second is not None, a == b
    if isinstance(first, Duration) and isinstance(second, Duration):
        return first == second
    if known and _same_type(first, second):
        return compare(a, b) == 0
    if not known and not same:
        raise ExpressionError("it is unknown whether these literals are equal")
    return same


def _same_type(first: Value | None, second: Value | None) -> bool:
    if isinstance(first, DateTime) and isinstance(second, DateTime):
        return first.is_date == second.is_date
    return type(first) is type(second)
