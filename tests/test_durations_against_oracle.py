"""Durations through whole queries: arithmetic with dates and numbers, comparison, extremes and order."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rdflib import XSD, URIRef, Variable

from cqels_py.algebra.nodes import AggregateCall, VariableRef
from tests.oracle import naive_aggregates, naive_expressions
from tests.oracle.naive import Element
from tests.oracle.naive_values import ExpressionError, Term, typed
from tests.support import harness
from tests.support.generators import FEW
from tests.support.traces import EX, STREAMS
from tests.test_naive_expressions import ERROR, value

STREAM = STREAMS + "one"
DAY_TIME = [
    typed(text, XSD.dayTimeDuration)
    for text in ("PT1H", "PT60M", "P1D", "-PT0.5S", "P365DT12H", "P31D", "PT0S", "PT1.000000000000000001S", "PT", "P1M")
]
YEAR_MONTH = [typed(text, XSD.yearMonthDuration) for text in ("P1Y", "P12M", "P1M", "-P13M", "P0M", "P400Y", "P1D")]
BOTH = [typed(text, XSD.duration) for text in ("PT60M", "P12M", "P1MT1S", "-P1YT1H", "P31D", "P1M1Y")]
DURATIONS = [*DAY_TIME, *YEAR_MONTH, *BOTH]
INSTANTS = [
    typed(text, XSD.dateTime)
    for text in (
        "2024-01-31T23:59:59.75Z",
        "2024-02-29T00:00:00",
        "-0001-12-31T12:00:00+05:30",
        "2024-01-31T24:00:00-11:00",
    )
]
DATES = [typed(text, XSD.date) for text in ("2024-03-31", "0000-02-29Z", "2023-12-31+14:00", "2024-02-30")]
NUMBERS = [typed("2", XSD.integer), typed("-0.3", XSD.decimal), typed("1.5", XSD.double), typed("0", XSD.integer)]
NUMBERS += [typed("INF", XSD.double), typed("NaN", XSD.float), typed("7", XSD.byte)]
ALL = [*DURATIONS, *INSTANTS, *DATES, *NUMBERS, typed("a", XSD.string)]

WINDOW = f"STREAM <{STREAM}> [COUNT 3] {{ ?s <{EX}v> ?v }}"
PAIR = f"STREAM <{STREAM}> [COUNT 2] {{ ?s <{EX}v> ?v . ?s <{EX}w> ?w }}"
DAY_TIME_CAST, YEAR_MONTH_CAST = f"<{XSD.dayTimeDuration}>", f"<{XSD.yearMonthDuration}>"
JOINED = f"{WINDOW} STREAM <{STREAM}> [COUNT 2] {{ ?s <{EX}w> ?w }}"
CROSSED = f"{WINDOW} STREAM <{STREAM}> [COUNT 2] {{ ?t <{EX}w> ?w }}"
QUERIES = {
    "sums": f"SELECT (?v + ?w AS ?plus) (?v - ?w AS ?minus) WHERE {{ {PAIR} }}",
    "products": f"SELECT (?v * ?w AS ?times) (?v / ?w AS ?by) (-?v AS ?negative) WHERE {{ {PAIR} }}",
    "comparison": f"SELECT (?v < ?w AS ?less) (?v >= ?w AS ?most) (?v = ?w AS ?same) (?v IN (?w) AS ?in) WHERE {{ {PAIR} }}",
    "filter": f"SELECT ?v ?w WHERE {{ {PAIR} FILTER(?v + ?w > ?v - ?w) }}",
    "extremes": f"SELECT (MIN(?v) AS ?least) (MAX(?v) AS ?most) WHERE {{ {WINDOW} }}",
    "totals": f"SELECT (SUM(?v) AS ?sum) (AVG(?v) AS ?mean) (AVG(DISTINCT ?v) AS ?different) WHERE {{ {WINDOW} }}",
    "totals by group": f"SELECT ?s (AVG(?v) AS ?mean) WHERE {{ {WINDOW} }} GROUP BY ?s HAVING(BOUND(?mean))",
    "totals of a join": f"SELECT (SUM(?v) AS ?sum) (AVG(?w) AS ?mean) WHERE {{ {JOINED} }}",
    "totals of a join by group": f"SELECT ?s (SUM(?v) AS ?sum) (AVG(?v) AS ?mean) WHERE {{ {JOINED} }} GROUP BY ?s",
    "totals of a cross product": f"SELECT (SUM(?v) AS ?sum) (AVG(?w) AS ?mean) WHERE {{ {CROSSED} }}",
    "casts": f"SELECT ({DAY_TIME_CAST}(?v) AS ?days) ({YEAR_MONTH_CAST}(?v) AS ?months) (<{XSD.duration}>(?v) AS ?any)"
    f" ({DAY_TIME_CAST}(STR(?v)) AS ?read) WHERE {{ {WINDOW} }}",
    "totals of what is cast": f"SELECT (SUM({DAY_TIME_CAST}(?v)) AS ?sum) WHERE {{ {WINDOW} }}",
    "order": f"SELECT ?v ?s WHERE {{ {WINDOW} }} ORDER BY ?v DESC(?s) LIMIT 2",
}


def elements(rows: Sequence[tuple[Term, Term]]) -> list[Element]:
    of = [(URIRef(f"{EX}{number % 2}"), v, w) for number, (v, w) in enumerate(rows)]
    v_property, w_property = URIRef(EX + "v"), URIRef(EX + "w")
    return [
        Element(time, URIRef(STREAM), ((subject, v_property, v), (subject, w_property, w)))
        for time, (subject, v, w) in enumerate(of)
    ]


@pytest.mark.parametrize(
    "values", [DAY_TIME[:8], YEAR_MONTH[:6], DURATIONS, ALL], ids=["days", "months", "durations", "all"]
)
@pytest.mark.parametrize("name", QUERIES)
def test_durations(name: str, values: Sequence[Term]) -> None:
    @FEW
    @given(st.lists(st.tuples(st.sampled_from(values), st.sampled_from(values)), min_size=1, max_size=6))
    def check(rows: list[tuple[Term, Term]]) -> None:
        harness.assert_engine_right(QUERIES[name], elements(rows), batches=(1, None))

    check()


@pytest.mark.parametrize(
    ("function", "left", "right", "expected"),
    [
        ("-", "2024-03-01T00:00:00Z^^dateTime", "2024-02-28T12:00:00.5Z^^dateTime", "P1DT11H59M59.5S^^dayTimeDuration"),
        ("-", "2024-01-01T00:00:00+01:00^^dateTime", "2024-01-01T00:00:00Z^^dateTime", "-PT1H^^dayTimeDuration"),
        ("+", "2024-01-31T10:00:00Z^^dateTime", "P1M^^yearMonthDuration", "2024-02-29T10:00:00Z^^dateTime"),
        ("-", "2024-03-31^^date", "P1M^^yearMonthDuration", "2024-02-29^^date"),
        ("+", "PT25H^^dayTimeDuration", "2024-12-31^^date", "2025-01-01^^date"),
        ("-", "0001-01-01T00:00:00Z^^dateTime", "PT1S^^dayTimeDuration", "0000-12-31T23:59:59Z^^dateTime"),
        ("+", "P1Y^^yearMonthDuration", "PT1H^^dayTimeDuration", "P1YT1H^^duration"),
        ("-", "P1Y^^yearMonthDuration", "PT1H^^dayTimeDuration", ERROR),
        ("*", "PT2H10M^^dayTimeDuration", "2.1^^decimal", "PT4H33M^^dayTimeDuration"),
        ("*", "P2Y11M^^yearMonthDuration", "2.3^^decimal", "P6Y9M^^yearMonthDuration"),
        ("/", "P1DT2H30M10.5S^^dayTimeDuration", "1.5^^double", "PT17H40M7S^^dayTimeDuration"),
        ("/", "P2Y11M^^yearMonthDuration", "1.5^^decimal", "P1Y11M^^yearMonthDuration"),
        ("/", "P3Y4M^^yearMonthDuration", "-P1Y4M^^yearMonthDuration", "-2.5"),
        ("/", "PT1H^^dayTimeDuration", "0^^integer", ERROR),
        ("*", "P1Y^^duration", "2^^integer", ERROR),
        ("<", "P1M^^yearMonthDuration", "P32D^^dayTimeDuration", "true"),
        ("<", "P1M^^yearMonthDuration", "P30D^^dayTimeDuration", ERROR),
        ("=", "PT60M^^duration", "PT1H^^dayTimeDuration", "true"),
        ("=", "P1M^^yearMonthDuration", "P30D^^dayTimeDuration", "false"),
    ],
)
def test_the_oracle_by_the_examples_of_xpath(function: str, left: str, right: str, expected: str) -> None:
    lexical, _, datatype = expected.partition("^^")
    assert value(function, left, right) == (f'"{lexical}"^^<{XSD[datatype]}>' if datatype else expected)


@pytest.mark.parametrize(
    ("target", "given", "expected"),
    [
        ("dayTimeDuration", " PT90S ", "PT90S"),
        ("dayTimeDuration", "P1M", None),
        ("yearMonthDuration", "P14M^^yearMonthDuration", "P14M"),
        ("duration", "P14M^^yearMonthDuration", "P1Y2M"),
        ("dayTimeDuration", "P1Y2MT36H^^duration", "P1DT12H"),
        ("yearMonthDuration", "P1Y2MT36H^^duration", "P1Y2M"),
        ("yearMonthDuration", "PT1H^^dayTimeDuration", "P0M"),
        ("dayTimeDuration", "-P1M^^yearMonthDuration", "PT0S"),
        ("duration", "5^^integer", None),
    ],
)
def test_the_oracle_by_casts_written_out(target: str, given: str, expected: str | None) -> None:
    lexical, _, datatype = given.partition("^^")
    source, wanted = (
        typed(lexical, XSD[datatype or "string"]),
        None if expected is None else typed(expected, XSD[target]),
    )
    try:
        found = naive_expressions.CASTS[XSD[target]](source)
    except ExpressionError:
        found = None
    assert found == wanted
    query = f"SELECT (<{XSD[target]}>(?v) AS ?cast) WHERE {{ {WINDOW} }}"
    harness.assert_engine_right(query, elements([(source, source)]))


@pytest.mark.parametrize(
    ("texts", "datatype", "total", "mean"),
    [
        (["P1DT1H", "-PT2H", "PT0.5S"], XSD.dayTimeDuration, "PT23H0.5S", "PT7H40M0.166666666666666667S"),
        (["P1Y", "P10M"], XSD.yearMonthDuration, "P1Y10M", "P11M"),
        (["P1M", "P0M"], XSD.yearMonthDuration, "P1M", "P1M"),
        (["-P1M", "P0M"], XSD.yearMonthDuration, "-P1M", "P0M"),
        (["P999999999D", "P1D"], XSD.dayTimeDuration, None, "P500000000D"),
        (["P1D", "P999999999D", "-P1D"], XSD.dayTimeDuration, "P999999999D", "P333333333D"),
        (["PT1H"], XSD.duration, None, None),
    ],
)
def test_the_oracle_by_sums_written_out(
    texts: list[str], datatype: URIRef, total: str | None, mean: str | None
) -> None:
    members = [{Variable("v"): typed(text, datatype)} for text in texts]
    for function, expected in (("SUM", total), ("AVG", mean)):
        call = AggregateCall(function, VariableRef(Variable("v")), False)
        found = naive_aggregates.evaluate(call, members, lambda _, solution: solution[Variable("v")])
        assert found == (None if expected is None else typed(expected, datatype))
    harness.assert_engine_right(QUERIES["totals"], elements([(typed(text, datatype), URIRef(EX)) for text in texts]))
