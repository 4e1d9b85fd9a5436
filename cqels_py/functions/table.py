"""The functions, by the names that expressions use."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from cqels_py.functions import casts, durations, numbers, strings
from cqels_py.functions.dates import DateTime, duration_text, zone_text
from cqels_py.functions.durations import Duration
from cqels_py.functions.numbers import Number, number_term
from cqels_py.functions.terms import (
    XSD,
    XSD_BOOLEAN,
    XSD_DATE,
    XSD_DATETIME,
    XSD_DECIMAL,
    XSD_DOUBLE,
    XSD_FLOAT,
    XSD_INTEGER,
    XSD_STRING,
    ExpressionError,
    Term,
    TermKind,
    boolean,
    literal,
)
from cqels_py.functions.values import compare, equal, number_of, truth_of, value_of


class Function(NamedTuple):
    """A function of terms that are not errors. `most` None: any number of arguments.

    `grows`: its result may be much longer than its arguments. It is called with `max_text` (bytes), to stop in time.
    """

    call: Callable[..., Term]
    least: int
    most: int | None
    grows: bool = False


def _arithmetic(operator: str) -> Callable[[Term, Term], Term]:
    def function(a: Term, b: Term) -> Term:
        first, second = value_of(a), value_of(b)
        if isinstance(first, Number) and isinstance(second, Number):
            return number_term(numbers.arithmetic(operator, first, second))
        return durations.calculated(operator, a, first, b, second)

    return function


def _signed(sign: str) -> Callable[[Term], Term]:
    def function(term: Term) -> Term:
        value = value_of(term)
        if isinstance(value, Duration):
            return durations.signed(sign, term, value)
        number = number_of(term)
        return number_term(numbers.negated(number) if sign == "-" else number)

    return function


def _rounded(function: str) -> Callable[[Term], Term]:
    return lambda term: number_term(numbers.rounded(function, number_of(term)))


def _ordered(*orders: int) -> Callable[[Term, Term], Term]:
    return lambda a, b: boolean(compare(a, b) in orders)


def _part(name: str) -> Callable[[Term], Term]:
    """A part of a dateTime as written; year, month and day also of a date."""

    def function(term: Term) -> Term:
        value = value_of(term)
        if not isinstance(value, DateTime) or (value.is_date and name not in ("year", "month", "day")):
            raise ExpressionError("an xsd:dateTime was expected")
        part = getattr(value, name)
        return number_term(Number(numbers.DECIMAL if name == "seconds" else numbers.INTEGER, part))

    return function


def _datetime(term: Term) -> DateTime:
    value = value_of(term)
    if not isinstance(value, DateTime) or value.is_date:
        raise ExpressionError("an xsd:dateTime was expected")
    return value


def _timezone(term: Term) -> Term:
    zone = _datetime(term).zone
    if zone is None:
        raise ExpressionError("TIMEZONE of a dateTime without a zone")
    return literal(duration_text(zone), XSD + "dayTimeDuration")


def _tz(term: Term) -> Term:
    _datetime(term)
    return literal(zone_text(term.text))


def _is_kind(kind: TermKind) -> Callable[[Term], Term]:
    return lambda term: boolean(term.kind is kind)


def _unary(call: Callable[[Term], Term]) -> Function:
    return Function(call, 1, 1)


def _binary(call: Callable[[Term, Term], Term]) -> Function:
    return Function(call, 2, 2)


FUNCTIONS: dict[str, Function] = {
    "!": _unary(lambda term: boolean(not truth_of(term))),
    "=": _binary(lambda a, b: boolean(equal(a, b))),
    "!=": _binary(lambda a, b: boolean(not equal(a, b))),
    "<": _binary(_ordered(-1)),
    ">": _binary(_ordered(1)),
    "<=": _binary(_ordered(-1, 0)),
    ">=": _binary(_ordered(1, 0)),
    **{operator: _binary(_arithmetic(operator)) for operator in "+-*/"},
    "unary-": _unary(_signed("-")),
    "unary+": _unary(_signed("+")),
    **{name: _unary(_rounded(name)) for name in ("ABS", "CEIL", "FLOOR", "ROUND")},
    **{name.upper(): _unary(_part(name)) for name in ("year", "month", "day", "hours", "minutes", "seconds")},
    "TIMEZONE": _unary(_timezone),
    "TZ": _unary(_tz),
    "SAMETERM": _binary(lambda a, b: boolean(a == b)),
    "ISIRI": _unary(_is_kind(TermKind.IRI)),
    "ISURI": _unary(_is_kind(TermKind.IRI)),
    "ISBLANK": _unary(_is_kind(TermKind.BLANK)),
    "ISLITERAL": _unary(_is_kind(TermKind.LITERAL)),
    "ISNUMERIC": _unary(lambda term: boolean(isinstance(value_of(term), Number))),
    "STR": _unary(strings.to_text),
    "LANG": _unary(strings.language),
    "LANGMATCHES": _binary(strings.language_matches),
    "DATATYPE": _unary(strings.datatype),
    "IRI": Function(strings.to_iri, 1, 2),
    "URI": Function(strings.to_iri, 1, 2),
    "STRDT": _binary(strings.with_datatype),
    "STRLANG": _binary(strings.with_language),
    "STRLEN": _unary(strings.length),
    "SUBSTR": Function(strings.substring, 2, 3),
    "UCASE": _unary(strings.upper),
    "LCASE": _unary(strings.lower),
    "STRSTARTS": _binary(strings.starts),
    "STRENDS": _binary(strings.ends),
    "CONTAINS": _binary(strings.contains),
    "STRBEFORE": _binary(strings.before),
    "STRAFTER": _binary(strings.after),
    "ENCODE_FOR_URI": Function(strings.encode_for_uri, 1, 1, grows=True),
    "CONCAT": Function(strings.concatenated, 0, None, grows=True),
    "REGEX": Function(strings.matches, 2, 3),
    "REPLACE": Function(strings.replaced, 3, 4, grows=True),
    **{name: _unary(strings.hashed(name.lower())) for name in ("MD5", "SHA1", "SHA256", "SHA384", "SHA512")},
    XSD_BOOLEAN: _unary(casts.to_boolean),
    XSD_INTEGER: _unary(casts.to_integer),
    XSD_DECIMAL: _unary(casts.to_decimal),
    XSD_FLOAT: _unary(casts.to_float),
    XSD_DOUBLE: _unary(casts.to_double),
    XSD_STRING: _unary(casts.to_string),
    XSD_DATETIME: _unary(casts.to_datetime),
    XSD_DATE: _unary(casts.to_date),
    **{datatype: _unary(casts.to_duration(datatype)) for datatype in durations.DURATIONS},
}
