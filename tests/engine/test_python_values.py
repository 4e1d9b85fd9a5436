"""Values of Python wherever the engine takes terms, times and durations."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from rdflib import Literal, URIRef

from cqels_py import DataError, Engine, UsageError

S = "http://ex.org/readings"
EX = "http://ex.org/"
QUERY = f"SELECT ?s ?p ?o {{ STREAM <{S}> [RANGE 5m] {{ ?s ?p ?o }} }}"
NOON = 1_714_564_800_000_000
DOUBLE = "^^<http://www.w3.org/2001/XMLSchema#double>"


def rows(query: Any) -> list[tuple[int, str, str]]:
    return [(r.time, r.bindings["s"].n3(), r.bindings["o"].n3()) for r in query.results()]


def pushed(element: Any, **how: Any) -> list[tuple[int, str, str]]:
    engine = Engine(contexts={"urn:c": {"@context": {"@vocab": EX}}})
    query = engine.register(QUERY)
    engine.push(S, element, **how)
    return sorted(rows(query))


TIMES = [
    NOON,
    np.int64(NOON),
    "2024-05-01T12:00:00Z",
    "2024-05-01T14:00:00+02:00",
    datetime(2024, 5, 1, 12, tzinfo=UTC),
    np.datetime64("2024-05-01T12:00:00"),
    np.datetime64("2024-05-01T12:00:00.000000999"),
    pd.Timestamp("2024-05-01T12:00:00"),
    pd.Timestamp("2024-05-01T14:00:00", tz="Europe/Berlin"),
]


@pytest.mark.parametrize("time", TIMES, ids=repr)
def test_a_time_in_any_form(time: Any) -> None:
    engine = Engine()
    query = engine.register(QUERY)
    engine.push(S, [(EX + "s", EX + "p", 1.5)], time=time)
    assert rows(query) == [(NOON, f"<{EX}s>", f'"1.5"{DOUBLE}')]
    engine.advance(time)
    with pytest.raises(UsageError, match="no time zone"):
        engine.advance(datetime(2024, 5, 1, 12))


@pytest.mark.parametrize(
    "lateness", [10_000_000, "10s", "PT10S", timedelta(seconds=10), np.timedelta64(10, "s")], ids=repr
)
def test_a_duration_in_any_form(lateness: Any) -> None:
    for how in ({"lateness": lateness}, {"lateness_of": {S: lateness}}):
        engine = Engine(**how)
        query = engine.register(QUERY)
        for time in (NOON, NOON - 10_000_000, NOON - 11_000_000):
            engine.push(S, [(EX + "s", EX + "p", "<urn:o>")], time=time)
        engine.finish()
        assert [time - NOON for time, *_ in rows(query)] == [-10_000_000, 0]


def test_static_data_of_values() -> None:
    engine = Engine()
    query = engine.register(
        f"SELECT ?s ?o {{ STREAM <{S}> [RANGE 5m] {{ ?s <{EX}p> ?x }} ?s <{EX}limit> ?o }}",
        static=[[(EX + "s", URIRef(EX + "limit"), Decimal("1.5")), (EX + "other", EX + "limit", 3)]],
    )
    engine.push(S, [(EX + "s", EX + "p", True)], time=NOON)
    assert rows(query) == [(NOON, f"<{EX}s>", '"1.5"^^<http://www.w3.org/2001/XMLSchema#decimal>')]


def test_values_join_whichever_way_they_came() -> None:
    engine = Engine()
    query = engine.register(f"SELECT ?s ?o {{ STREAM <{S}> [RANGE 5m] {{ ?s <{EX}a> ?o . ?s <{EX}b> ?o }} }}")
    table = {"time": [NOON] * 2, "subject": [EX + "s"] * 2, "predicate": [EX + "a"] * 2, "object": [20.0, 1e-5]}
    engine.push_batch(S, pa.table(table))
    engine.push(S, [(EX + "s", EX + "b", 20.0)], time=NOON)
    engine.push(S, {"@id": EX + "s", EX + "b": 1e-5}, time=NOON)
    assert [row[2] for row in rows(query)] == [f'"20"{DOUBLE}', f'"0.00001"{DOUBLE}']


@pytest.mark.parametrize("make", [pa.table, pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("once", [False, True])
def test_tables_of_values(make: Any, once: bool) -> None:
    """Objects by their type, and IRIs of which some have angle brackets."""
    engine = Engine()
    query = engine.register(QUERY)
    frame = make(
        {"time": [NOON, NOON], "subject": [EX + "a", f"<{EX}b>"], "predicate": [EX + "p"] * 2, "object": [1, 2]}
    )
    engine.push_batch(S, pa.RecordBatchReader.from_stream(frame) if once else frame)
    assert [row[1:] for row in rows(query)] == [
        (f"<{EX}a>", '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'),
        (f"<{EX}b>", '"2"^^<http://www.w3.org/2001/XMLSchema#integer>'),
    ]
    with pytest.raises(DataError, match="row:1: the subject: words is not a term"):
        engine.push_batch(S, make({"time": [NOON], "subject": ["words"], "predicate": [EX + "p"], "object": [1]}))


# --- dicts ------------------------------------------------------------------------------------------------------------


def test_a_dict_is_an_element() -> None:
    given = {
        "@id": EX + "s",
        EX + "p": [21.5, 3, True, "text", URIRef(EX + "o"), Literal("a", lang="en"), 1 << 60, None],
    }
    objects = [row[2] for row in pushed(given, time=NOON)]
    assert objects == sorted(
        [f'"21.5"{DOUBLE}', '"3"^^<http://www.w3.org/2001/XMLSchema#integer>', '"true"^^<http://www.w3.org/2001/XMLSchema#boolean>',
         '"text"', f"<{EX}o>", '"a"@en', f'"{1 << 60}"^^<http://www.w3.org/2001/XMLSchema#integer>']
    )  # fmt: skip


@pytest.mark.parametrize("context", [{"@vocab": EX}, "urn:c"])
def test_a_dict_with_a_context_and_its_own_time(context: Any) -> None:
    given = {
        "@context": [context, {"time": {"@id": "http://www.w3.org/ns/prov#generatedAtTime"}}],
        "@id": EX + "s",
        "temperature": np.float64(21.5),
        "time": datetime(2024, 5, 1, 12, tzinfo=UTC),
    }
    found = pushed(given)
    assert (NOON, f"<{EX}s>", f'"21.5"{DOUBLE}') in found
    assert {row[0] for row in pushed(given, time=NOON + 5)} == {NOON + 5}


def test_nested_dicts_have_blank_nodes_of_their_own() -> None:
    engine = Engine()
    query = engine.register(f"SELECT ?s ?o {{ STREAM <{S}> [RANGE 5m] {{ ?s <{EX}at> [ <{EX}x> ?o ] }} }}")
    for number in (1, 2):
        engine.push(S, {"@id": f"{EX}{number}", EX + "at": {EX + "x": number}}, time=NOON)
    assert [(row[1], row[2][1]) for row in rows(query)] == [(f"<{EX}1>", "1"), (f"<{EX}2>", "2")]


def test_a_dict_with_a_graph() -> None:
    engine = Engine()
    query = engine.register(f"SELECT ?s ?o {{ STREAM <{S}> [RANGE 5m] {{ GRAPH ?s {{ ?x <{EX}p> ?o }} }} }}")
    engine.push(
        S,
        {
            "@id": EX + "g", "http://www.w3.org/ns/prov#generatedAtTime": datetime(2024, 5, 1, 12, tzinfo=UTC),
            "@graph": [{"@id": EX + "s", EX + "p": 1.5}],
        },
    )  # fmt: skip
    assert rows(query) == [(NOON, f"<{EX}g>", f'"1.5"{DOUBLE}')]


WRONG: list[tuple[Any, str]] = [
    ({"@id": EX + "s", "temperature": 1}, r"'temperature' is no property: write its IRI, as in .*@vocab"),
    ({EX + "p": 1j}, "a term is an rdflib term"),
    ({EX + "p": {"@value": 1j}}, "a dict of JSON-LD such as"),
    ({"@context": "urn:other", "p": 1}, "the context <urn:other> is named by its IRI"),
    ({EX + "p": 1}, "time is an integer of microseconds"),
    ({"http://www.w3.org/ns/prov#generatedAtTime": "soon"}, 'the dict has the time "soon"'),
    ({"http://www.w3.org/ns/prov#generatedAtTime": [1, 2]}, "two different times"),
]


@pytest.mark.parametrize(("element", "message"), WRONG)
def test_dicts_that_are_no_elements(element: Any, message: str) -> None:
    with pytest.raises((UsageError, DataError), match=message):
        pushed(element)
