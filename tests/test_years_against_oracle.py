"""Years before 1 and after 9999, which neither an inline dateTime nor Python's dates have: times of elements and values."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from rdflib import XSD, URIRef

from cqels_py import Engine
from tests.formats.plain_rendering import time_text
from tests.oracle.naive import Element
from tests.oracle.naive_values import Term, typed
from tests.support import harness
from tests.support.generators import FEW
from tests.support.traces import EX, STREAMS

YEAR = 31_556_952_000_000
STREAM = STREAMS + "one"
DATES = ("-9999-01-01", "-1000-12-31", "-0999-02-28", "-0044-03-15", "-0001-01-01", "0000-02-29", "0001-01-01")
DATES += ("0999-06-01", "9999-12-31", "10000-01-01", "-12345-07-08")
VALUES = [
    typed(f"{day}T{clock}", XSD.dateTime) for day in DATES for clock in ("12:00:00Z", "24:00:00", "00:30:00.5+14:00")
]
VALUES += [typed(day + zone, XSD.date) for day in DATES for zone in ("", "Z", "-05:00")]
VALUES += [typed(day + zone, XSD.string) for day in DATES for zone in ("", "Z")]
QUERY = f"""
PREFIX xsd: <{XSD}>
SELECT (NOW() AS ?now) (YEAR(NOW()) AS ?n) (xsd:date(NOW()) AS ?today) (YEAR(?v) AS ?year)
       (xsd:date(?v) AS ?day) (xsd:dateTime(?v) AS ?instant) (?v < NOW() AS ?before)
WHERE {{ STREAM <{STREAM}> [NOW] {{ ?s <{EX}v> ?v }} }}
"""


def elements(rows: Sequence[tuple[int, Term]]) -> list[Element]:
    subject, predicate = URIRef(EX + "a"), URIRef(EX + "v")
    return [Element(time, URIRef(STREAM), ((subject, predicate, value),)) for time, value in rows]


TIMES = st.integers(-12_000 * YEAR, 9_000 * YEAR) | st.sampled_from(
    [-62_135_596_800_000_000, -62_135_596_800_000_001, 253_402_300_799_999_999, 253_402_300_800_000_000]
)


@FEW
@given(st.lists(st.tuples(TIMES, st.sampled_from(VALUES)), min_size=1, max_size=6))
def test_now_parts_and_casts(rows: list[tuple[int, Term]]) -> None:
    in_order = sorted(rows, key=lambda row: row[0])
    harness.assert_engine_right(QUERY, elements(in_order), batches=(1, None))


@given(st.integers(-(1 << 62) + 1, (1 << 62) - 1))
def test_now_is_the_time_that_results_have(time: int) -> None:
    engine = Engine()
    query = engine.register(f"SELECT (NOW() AS ?now) WHERE {{ STREAM <{STREAM}> [NOW] {{ ?s ?p ?o }} }}")
    engine.push(STREAM, [("<s:s>", "<p:p>", "<o:o>")], time=time)
    (result,) = query.results()
    assert str(result.bindings["now"]) == time_text(time)
