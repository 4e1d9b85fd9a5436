"""Numbers and instants of any length and form, through whole queries: extremes, sums, averages, order."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rdflib import XSD, URIRef

from tests.oracle.naive import Element
from tests.oracle.naive_values import Term, typed
from tests.support import harness
from tests.support.generators import FEW
from tests.support.traces import EX, STREAMS

PREFIX = f"PREFIX : <{EX}> "
WINDOW = f"STREAM <{STREAMS}one> [COUNT 3] {{ ?s :v ?v }}"
OTHER = f"STREAM <{STREAMS}one> [COUNT 2] {{ ?s :v ?w }}"
QUERIES = {
    "extremes": f"SELECT (MIN(?v) AS ?least) (MAX(?v) AS ?most) {{ {WINDOW} }}",
    "sums": f"SELECT ?s (SUM(?v) AS ?sum) (AVG(?v) AS ?mean) {{ {WINDOW} }} GROUP BY ?s",
    "distinct sums": f"SELECT (SUM(DISTINCT ?v) AS ?sum) (AVG(DISTINCT ?v) AS ?mean) {{ {WINDOW} }}",
    "sums below a join": f"SELECT (SUM(?v) AS ?sum) (AVG(?v) AS ?mean) {{ {WINDOW} {OTHER} }}",
    "first": f"SELECT ?v ?s {{ {WINDOW} }} ORDER BY ?v ?s LIMIT 2",
    "last": f"SELECT ?v ?s {{ {WINDOW} }} ORDER BY DESC(?v) ?s LIMIT 2",
    "quotients": f"SELECT ?v ?q {{ {WINDOW} BIND(?v / 3 AS ?q) }}",
    "comparison": f"SELECT ?v {{ {WINDOW} FILTER(?v > 12345678901234567890) }}",
}

WHOLE = ("1", "-7", "36028797018963968", "12345678901234567890", "12345678901234567891", "-99999999999999999999")
FRACTIONS = ("0.5", "-0.25", "3.140", "12345678901234567890.5", "0.000000000000000001", "-1.10")
EXACT = [typed(text, XSD.integer) for text in WHOLE] + [typed(text, XSD.decimal) for text in (*WHOLE, *FRACTIONS)]
# Three of the others fit the 128 bits of a sum with all of their digits; of this one two do not.
SUMMABLE = [term for term in EXACT if str(term) != WHOLE[-1]] + [typed("-29999999999999999999", XSD.integer)]
# No numbers, as these are no forms of their types: with them there is no sum.
SUMMABLE += [typed("300", XSD.byte), typed(" 5 ", XSD.integer)]
# Quotients have as many digits behind the point: 1/3600 has 19 of them.
LONG = ("0.0002777777777777778", "-0.00000000000000000000000125", "3000", "7", "0.5", "1.0000000000000000001")
SUMMABLE_LONG = [typed(text, XSD.decimal) for text in LONG]
HUGE = [typed(text, XSD.double) for text in ("1.7e308", "-1.7e308", "1.7976931348623157E308", "1e0", "2.5", "INF")]
# Whatever the powers of ten between them, a retracted value changes no digit of the others.
SIZES = ("1e300", "-1e150", "3e43", "7.25e16", "1e0", "-1.37e-174", "2e-91", "5e-324", "-1.7976931348623157e308")
ALL_SIZES = [typed(text, XSD.double) for text in SIZES] + [
    typed(text, XSD.float) for text in ("3e38", "1.4e-45", "-7e10")
]
# Not every float literal is exactly a number of 32 bits.
FLOATS = [typed(text, XSD.float) for text in ("16777217", "0.1", "3.1e38", "-3.1e38", "1.5", "2E1", "1")]
REALS = [*HUGE, *FLOATS, typed("0", XSD.double), typed("1", XSD.integer), typed("0.25", XSD.decimal)]
MIXED = [*EXACT, *(typed(text, XSD.double) for text in ("1E0", "1.5", "1.0E300", "INF", "NaN", "-2e-3"))]
MIXED += [typed(text, XSD.float) for text in ("1.5", "2E1")] + [typed("-7", XSD.long), typed("01", XSD.integer)]
MIXED += [typed("300", XSD.byte), typed(" 5 ", XSD.integer)]
TIMES = [
    typed(f"2024-01-01T00:00:00{rest}", XSD.dateTime)
    for rest in ("Z", "", ".5Z", ".123456Z", ".1234567Z", ".123456789Z", ".1234560001Z", "+02:00", "-00:01", ".500Z")
]
FAR_DAYS = ("0000-02-29", "-0044-03-15", "12345-12-31", "-12345-12-31")
TIMES += [typed(f"{day}T{hours}:00:00Z", XSD.dateTime) for day in FAR_DAYS for hours in ("00", "24")]


def streams(values: Sequence[Term]) -> st.SearchStrategy[list[Element]]:
    one = st.tuples(st.sampled_from("ab"), st.sampled_from(values))
    return st.lists(one, min_size=1, max_size=8).map(
        lambda rows: [
            Element(number, URIRef(STREAMS + "one"), ((URIRef(EX + s), URIRef(EX + "v"), value),))
            for number, (s, value) in enumerate(rows)
        ]
    )


@pytest.mark.parametrize("name", QUERIES)
def test_exact_numbers(name: str) -> None:
    @FEW
    @given(streams(SUMMABLE if "sums" in name else EXACT))
    def check(elements: list[Element]) -> None:
        harness.assert_engine_right(PREFIX + QUERIES[name], elements, batches=(1, 3, None))

    check()


@pytest.mark.parametrize("name", ["sums", "distinct sums", "sums below a join"])
@pytest.mark.parametrize(
    "values", [SUMMABLE_LONG, HUGE, ALL_SIZES, FLOATS, REALS], ids=["long", "huge", "all sizes", "floats", "mixed"]
)
def test_sums(values: Sequence[Term], name: str) -> None:
    @FEW
    @given(streams(values))
    def check(elements: list[Element]) -> None:
        harness.assert_engine_right(PREFIX + QUERIES[name], elements, batches=(1, 3, None))

    check()


@pytest.mark.parametrize("name", ["extremes", "first", "last"])
@pytest.mark.parametrize("values", [MIXED, TIMES, [*MIXED, *TIMES]], ids=["numbers", "times", "both"])
def test_orders(values: Sequence[Term], name: str) -> None:
    @FEW
    @given(streams(values))
    def check(elements: list[Element]) -> None:
        harness.assert_engine_right(PREFIX + QUERIES[name], elements, batches=(1, 3, None))

    check()


@pytest.mark.parametrize("keys", ["", "GROUP BY ?s", "GROUP BY ?nothing"])
@pytest.mark.parametrize("window", ["TRIPLES 5", "TRIPLES 5 STEP 3", "COUNT 2", "RANGE 3us"])
def test_an_average_alone_of_numbers_of_several_types(window: str, keys: str) -> None:
    """Some have their value in their id and some do not, and several rows of one step belong to one group."""
    numbers = (typed("1.5", XSD.decimal), typed("7", XSD.int), typed("1", XSD.decimal), typed("8", XSD.integer))

    @FEW
    @given(st.lists(st.lists(st.sampled_from(numbers), min_size=1, max_size=4), min_size=2, max_size=6))
    def check(drawn: list[list[Term]]) -> None:
        subjects = (URIRef(EX + "a"), URIRef(EX + "b"))
        elements = [
            Element(
                time,
                URIRef(STREAMS + "one"),
                tuple((subjects[n % 2], URIRef(EX + "v"), v) for n, v in enumerate(values)),
            )
            for time, values in enumerate(drawn)
        ]
        query = f"{PREFIX} SELECT (AVG(?v) AS ?mean) {{ STREAM <{STREAMS}one> [{window}] {{ ?s :v ?v }} }} {keys}"
        harness.assert_engine_right(query, elements, batches=(1, 3, None))

    check()
