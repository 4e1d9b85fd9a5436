"""The oracle's expressions against values worked out by hand from SPARQL 1.1, section 17."""

from __future__ import annotations

from decimal import Decimal

import pytest
from rdflib import XSD, URIRef, Variable

from cqels_py.algebra import nodes
from tests.oracle import naive_values as values
from tests.oracle.naive_expressions import evaluate
from tests.oracle.naive_values import ExpressionError, Number, typed
from tests.support import traces

ERROR = "error"
UNBOUND = "?unbound"


def value(function: str, *arguments: str | nodes.Expression) -> str:
    """The short form of a call's value; arguments in short form, `?unbound` is unbound."""
    try:
        return traces.short(evaluate(expression(function, *arguments), {}, 0, lambda *_: False))
    except ExpressionError:
        return ERROR


def expression(function: str, *arguments: str | nodes.Expression) -> nodes.Call:
    return nodes.Call(function, tuple(_argument(argument) for argument in arguments))


def _argument(argument: str | nodes.Expression) -> nodes.Expression:
    if not isinstance(argument, str):
        return argument
    if argument.startswith("?"):
        return nodes.VariableRef(Variable(argument[1:]))
    if "^^" in argument:
        lexical, _, datatype = argument.partition("^^")
        return nodes.Constant(typed(lexical, XSD[datatype]))
    return nodes.Constant(traces.term(argument))  # type: ignore[arg-type]


T, F = "true^^boolean", "false^^boolean"


@pytest.mark.parametrize(
    ("left", "right", "disjunction", "conjunction"),
    [
        (T, T, "true", "true"),
        (T, F, "true", "false"),
        (F, F, "false", "false"),
        (T, UNBOUND, "true", ERROR),
        (UNBOUND, T, "true", ERROR),
        (F, UNBOUND, ERROR, "false"),
        (UNBOUND, F, ERROR, "false"),
        (UNBOUND, UNBOUND, ERROR, ERROR),
    ],
)
def test_three_valued_logic(left: str, right: str, disjunction: str, conjunction: str) -> None:
    assert value("||", left, right) == disjunction
    assert value("&&", left, right) == conjunction


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("0", "true"),
        ("0.0", "true"),
        ("NaN^^double", "true"),
        ("''", "true"),
        ("'x'", "false"),
        ("'x'@en", "false"),
        ("7", "false"),
        ("abc^^integer", "true"),
        ("2000-01-01^^date", ERROR),
        ("iri", ERROR),
        (UNBOUND, ERROR),
    ],
)
def test_not_takes_the_effective_boolean_value(argument: str, expected: str) -> None:
    assert value("!", argument) == expected


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (("+", "1", "2"), "3"),
        (("+", "1", "2.50"), "3.5"),
        (("+", "0.5", "0.5"), "1"),
        (("*", "0.1", "0.1"), "0.01"),
        (("+", "1.5", "1e0"), "2.5E0"),
        (("-", "1", "'1'"), ERROR),
        (("/", "4", "2"), "2"),
        (("/", "1", "3"), "0.3333333333333333333"),
        (("/", "2", "3"), "0.6666666666666666667"),
        (("/", "1", "0"), ERROR),
        (("/", "1e0", "0"), "INF"),
        (("unary-", "2.50"), "-2.5"),
        (("ABS", "-3"), "3"),
        (("ROUND", "2.5"), "3"),
        (("ROUND", "-2.5"), "-2"),
        (("CEIL", "1.2"), "2"),
        (("FLOOR", "-1.2"), "-2"),
        (("ROUND", "2.5e0"), "3.0E0"),
        (("+", "1^^byte", "1^^byte"), "2"),
        (("+", "300^^byte", "1"), ERROR),
        (("+", "-1^^unsignedLong", "1"), ERROR),
        (("+", "0^^positiveInteger", "1"), ERROR),
        (("+", "-5^^negativeInteger", "255^^unsignedByte"), "250"),
        (("+", " 5 ^^integer", "1"), ERROR),
        (("+", "NaN^^double", "1"), "NaN"),
        (("ROUND", "0.49999999999999994^^double"), "0.0E0"),
        (("ROUND", "-0.4e0"), "-0.0E0"),
        (("CEIL", "-0.5e0"), "-0.0E0"),
        (("FLOOR", "-0.0^^double"), "-0.0E0"),
    ],
)
def test_arithmetic(call: tuple[str, ...], expected: str) -> None:
    assert value(*call) == expected


def test_types_of_results() -> None:
    for arguments, datatype in (
        (("1", "2"), XSD.integer),
        (("1", "2.0"), XSD.decimal),
        (("1.0", "2^^float"), XSD.float),
        (("2^^float", "2e0"), XSD.double),
    ):
        found = evaluate(expression("+", *arguments), {}, 0, lambda *_: False)
        assert found.datatype == datatype  # type: ignore[attr-defined]
    halves = evaluate(expression("/", "1", "2"), {}, 0, lambda *_: False)
    assert halves.datatype == XSD.decimal  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("dividend", "divisor", "expected"),
    [
        ("2.000000000000001", "2", "1.0000000000000005"),
        ("1", "1073741824", "0.000000000931322574615478515625"),
        ("1", "3", "0.3333333333333333333"),
        ("-2", "3", "-0.6666666666666666667"),
        ("1714564800123456789", "1000000000", "1714564800.123456789"),
        ("100000000000000000000", "3", "33333333333333333333"),
        ("0.12345678901234567890123456789012345678901", "1", "0.12345678901234567890123456789012345678901"),
        # It ends, with 41 digits.
        ("1.00000000000000000050000000000000000001", "8", "0.1250000000000000001"),
    ],
)
def test_a_quotient_that_ends_is_exact_and_any_other_has_nineteen_digits(
    dividend: str, divisor: str, expected: str
) -> None:
    a, b = (Number(values.DECIMAL, Decimal(text)) for text in (dividend, divisor))
    assert str(values.number_literal(values.arithmetic("/", a, b))) == expected


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (("=", "1", "1.0"), "true"),
        (("=", "1", "01^^int"), "true"),
        (("<", "1", "1.5"), "true"),
        (("<", "9", "10"), "true"),
        (("<", "'9'", "'10'"), "false"),
        (("<", "1", "'2'"), ERROR),
        (("=", "iri", "iri"), "true"),
        (("=", "iri", "1"), "false"),
        (("!=", "'a'@en", "'b'@en"), "true"),
        (("!=", "'a'@en", "'a'"), "true"),
        (("=", "'1'", "1"), "false"),
        (("!=", "2000-01-01^^date", "2000-01-01T00:00:00Z^^dateTime"), "true"),
        (("!=", "'a'@en", "x^^integer"), "true"),
        (("=", "x^^integer", "x^^integer"), "true"),
        (("=", "x^^integer", "1"), ERROR),
        (("=", "300^^byte", "300"), ERROR),
        (("=", "300^^byte", "300^^byte"), "true"),
        (("<", "NaN^^double", "1"), "false"),
        (("=", "2000-01-01T12:00:00Z^^dateTime", "2000-01-01T13:00:00+01:00^^dateTime"), "true"),
        (("<", "2000-01-01T12:00:00Z^^dateTime", "2000-01-01T12:00:00.001^^dateTime"), "true"),
        (("<", F, T), "true"),
        (("SAMETERM", "1", "1.0"), "false"),
        (("IN", "1", "2", "1.0"), "true"),
        (("IN", "1", "'x'", "2"), "false"),
        (("IN", "1", "x^^integer", "2"), ERROR),
        (("IN", "1", UNBOUND, "1"), "true"),
        (("NOT-IN", "1", "2", "3"), "true"),
        (("IF", UNBOUND, "1", "2"), ERROR),
        (("IF", "0", "1", "2"), "2"),
        (("COALESCE", UNBOUND, "7"), "7"),
        (("BOUND", UNBOUND), "false"),
    ],
)
def test_comparison_and_choice(call: tuple[str, ...], expected: str) -> None:
    assert value(*call) == expected


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (("STR", "iri"), "'http://ex.org/iri'"),
        (("STR", "2.50"), "'2.50'"),
        (("LANG", "'x'@en"), "'en'"),
        (("LANGMATCHES", "'en-gb'", "'EN'"), "true"),
        (("LANGMATCHES", "''", "'*'"), "false"),
        (("CONCAT", "'a'@en", "'b'@en"), "'ab'@en"),
        (("CONCAT", "'a'@en", "'b'"), "'ab'"),
        (("CONCAT", "'a'", "1"), ERROR),
        (("STRLEN", "'añ'"), "2"),
        (("UCASE", "'ab'@en"), "'AB'@en"),
        (("SUBSTR", "'motor car'", "6"), "' car'"),
        (("SUBSTR", "'metadata'", "4", "3"), "'ada'"),
        (("SUBSTR", "'12345'", "1.5", "2.6"), ERROR),
        (("SUBSTR", "'12345'", "0", "3"), "'12'"),
        (("STRBEFORE", "'abc'@en", "'b'"), "'a'@en"),
        (("STRBEFORE", "'abc'@en", "'z'"), "''"),
        (("STRBEFORE", "'abc'@en", "''"), "''@en"),
        (("STRAFTER", "'abc'", "'b'"), "'c'"),
        (("STRAFTER", "'abc'", "'b'@en"), ERROR),
        (("STRAFTER", "'abc'@en", "''"), "'abc'@en"),
        (("CONTAINS", "'abc'", "'bc'"), "true"),
        (("STRSTARTS", "'abc'@fr", "'a'@en"), ERROR),
        (("STRENDS", "'abc'", "'bc'"), "true"),
        (("REGEX", "'Alice'", "'^ali'", "'i'"), "true"),
        (("REPLACE", "'abcd'", "'b(.)'", "'[$1]'"), "'a[c]d'"),
        (("REPLACE", "'abcd'", "'x*'", "'-'"), ERROR),
        (("REPLACE", "'abcd'", "'b(.)'", "'[$11]'"), "'a[c1]d'"),
        (("REPLACE", "'abcd'", "'b(.)'", "'$2'"), "'ad'"),
        (("REPLACE", "'abcd'", "'b'", "'$'"), ERROR),
        (("REPLACE", "'abcd'", "'b'", "'g<0>'"), "'ag<0>cd'"),
        (("REGEX", "a\n^^string", "'a$'"), "false"),
        (("REGEX", "a\n^^string", "'a$'", "'m'"), "true"),
        (("REGEX", "'a$'", "'a[$]$'"), "true"),
        (("ENCODE_FOR_URI", "'a b/é'"), "'a%20b%2F%C3%A9'"),
        (("MD5", "'abc'"), "'900150983cd24fb0d6963f7d28e17f72'"),
        (("ISNUMERIC", "x^^integer"), "false"),
        (("ISIRI", "iri"), "true"),
        (("YEAR", "2011-01-10T14:45:13.815-05:00^^dateTime"), "2011"),
        (("SECONDS", "2011-01-10T14:45:13.815-05:00^^dateTime"), "13.815"),
        (("TZ", "2011-01-10T14:45:13.815-05:00^^dateTime"), "'-05:00'"),
        (("HOURS", "2011-01-10T14:45:13.815-05:00^^dateTime"), "14"),
        (("YEAR", "0000-02-29T00:00:00Z^^dateTime"), "0"),
        (("YEAR", "-0044-03-15T00:00:00Z^^dateTime"), "-44"),
        (("DAY", "12345-12-31T24:00:00Z^^dateTime"), "1"),
        (("YEAR", "12345-12-31T24:00:00Z^^dateTime"), "12346"),
        (("HOURS", "2011-01-10T24:00:01Z^^dateTime"), ERROR),
        (("YEAR", "02011-01-10T00:00:00Z^^dateTime"), ERROR),
        (("YEAR", " 2011-01-10T00:00:00Z^^dateTime"), ERROR),
        (("<", "-0001-12-31T23:59:59Z^^dateTime", "0000-01-01T00:00:00Z^^dateTime"), "true"),
        (("=", "9999-12-31T24:00:00Z^^dateTime", "10000-01-01T00:00:00Z^^dateTime"), "true"),
        (("NOW",), '"1970-01-01T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'),
        ((str(XSD.integer), "'12'"), "12"),
        ((str(XSD.integer), "2.9"), "2"),
        ((str(XSD.integer), "-2.9"), "-2"),
        ((str(XSD.integer), "'2.9'"), ERROR),
        ((str(XSD.decimal), "1.5e0"), "1.5"),
        ((str(XSD.boolean), "0.0"), "false"),
        ((str(XSD.boolean), "'true'"), "true"),
        ((str(XSD.integer), "' 5 '"), "5"),
        ((str(XSD.boolean), "' 1 '"), "true"),
        ((str(XSD.boolean), " 1 ^^boolean"), ERROR),
        (
            (str(XSD.dateTime), "' 2000-01-01T00:00:00Z '"),
            '"2000-01-01T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>',
        ),
        ((str(XSD.decimal), "1.1^^float"), "1.100000023841858"),
        ((str(XSD.decimal), "0.1^^double"), "0.1"),
        ((str(XSD.string), "1"), "'1'"),
        ((str(XSD.string), "1e0"), "'1'"),
        ((str(XSD.string), "05^^integer"), "'5'"),
        ((str(XSD.string), "0.1^^float"), "'0.1'"),
        ((str(XSD.string), "1.5e7"), "'1.5E7'"),
        ((str(XSD.string), "-INF^^double"), "'-INF'"),
        ((str(XSD.string), "1^^boolean"), "'true'"),
        ((str(XSD.dateTime), "'nonsense'"), ERROR),
    ],
)
def test_functions(call: tuple[str, ...], expected: str) -> None:
    assert value(*call) == expected


def test_the_order_of_terms_is_total() -> None:
    """Ascending, no two equal."""
    ascending = [
        None,
        URIRef("http://ex.org/a"),
        typed("-INF", XSD.double),
        traces.term("1"),
        traces.term("1.5"),
        traces.term("10"),
        typed("false", XSD.boolean),
        typed("2000-01-01T00:00:00Z", XSD.dateTime),
        traces.term("'10'"),
        traces.term("'9'"),
        traces.term("'9'@en"),
    ]
    keys = [values.order_key(term) for term in ascending]
    assert keys == sorted(keys)
    assert len(set(keys)) == len(keys)
    assert values.order_key(traces.term("1")) != values.order_key(traces.term("1.0"))


@pytest.mark.parametrize(
    ("number", "text"),
    [(1.0, "1.0E0"), (0.0, "0.0E0"), (1500.0, "1.5E3"), (0.001, "1.0E-3"), (-2.25, "-2.25E0")],
)
def test_canonical_doubles(number: float, text: str) -> None:
    assert values.double_text(number) == text
