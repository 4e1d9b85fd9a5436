"""Values of Python, numpy and Arrow become the same terms, whichever way they come."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rdflib import BNode, Literal, URIRef

from cqels_py.dictionary import Dictionary
from cqels_py.errors import UsageError
from cqels_py.mappings.terms import ids_of_column, texts_of_column
from cqels_py.terms.values import double_text, node_text, text_of

XSD = "http://www.w3.org/2001/XMLSchema#"


XSD_FLOAT = URIRef(f"{XSD}float")


def typed(text: str, name: str) -> str:
    return f'"{text}"^^<{XSD}{name}>'


TEXTS: list[tuple[Any, str]] = [
    (3, typed("3", "integer")),
    (np.int8(-3), typed("-3", "integer")),
    (1 << 70, typed(str(1 << 70), "integer")),
    (True, typed("true", "boolean")),
    (np.bool_(False), typed("false", "boolean")),
    (21.5, typed("21.5", "double")),
    (np.float32(0.5), typed("0.5", "double")),
    (float("nan"), typed("NaN", "double")),
    (float("-inf"), typed("-INF", "double")),
    (Decimal("1.50"), typed("1.50", "decimal")),
    (Decimal("1E+3"), typed("1000", "decimal")),
    (date(2024, 5, 1), typed("2024-05-01", "date")),
    (datetime(2024, 5, 1, 12, 0, 0, 500_000), typed("2024-05-01T12:00:00.5", "dateTime")),
    (datetime(2024, 5, 1, 12, tzinfo=UTC), typed("2024-05-01T12:00:00Z", "dateTime")),
    (datetime(2024, 5, 1, 12, tzinfo=timezone(timedelta(hours=2))), typed("2024-05-01T10:00:00Z", "dateTime")),
    (pd.Timestamp("2024-05-01T12:00:00.000000001Z"), typed("2024-05-01T12:00:00.000000001Z", "dateTime")),
    (np.datetime64("2024-05-01T12:00"), typed("2024-05-01T12:00:00", "dateTime")),
    (np.datetime64("2024-05-01T12:00:00.250000000"), typed("2024-05-01T12:00:00.25", "dateTime")),
    (np.datetime64("2024-05"), typed("2024-05-01", "date")),
    (URIRef("http://ex.org/a"), "<http://ex.org/a>"),
    (BNode("b"), "_:b"),
    (Literal(float("inf")), typed("INF", "double")),
    (Literal(float("-inf"), datatype=XSD_FLOAT), typed("-INF", "float")),
    (Literal(float("nan")), typed("NaN", "double")),
    (Literal("inf"), '"inf"'),
    (Literal("a", lang="en"), '"a"@en'),
    ("as it is", "as it is"),
]


@pytest.mark.parametrize(("value", "text"), TEXTS)
def test_each_value_is_its_term(value: Any, text: str) -> None:
    assert text_of(value) == text


NONE: list[Any] = [
    None, pd.NaT, pd.NA, np.datetime64("NaT"), np.timedelta64(1, "ns"), timedelta(1), b"bytes", [1], 1j, Decimal("NaN"), object(),
]  # fmt: skip


@pytest.mark.parametrize("value", NONE, ids=lambda value: repr(value).partition(" at ")[0])
def test_what_is_no_term_is_refused(value: Any) -> None:
    with pytest.raises(UsageError, match=r"a term is an rdflib term, a text|has no NaN"):
        text_of(value)


@pytest.mark.parametrize("iri", ["http://ex.org/a", "urn:x:1", "mqtt://h/t"])
def test_an_iri_needs_no_brackets_where_no_literal_can_be(iri: str) -> None:
    assert node_text(iri) == node_text(f"<{iri}>") == f"<{iri}>"


@pytest.mark.parametrize("text", ["_:b", "ex:a", "words", '"a"', "http://ex.org/a b", ""])
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert node_text(text) == text


DOUBLES = st.one_of(
    st.floats(width=64), st.integers(-(10**17), 10**17).map(float), st.decimals(-1000, 1000, places=3).map(float),
    st.floats(width=32), st.sampled_from([0.0, -0.0, 1e15, 1e-6, 1e-7, 5e-324, 1.7e308]),
)  # fmt: skip


@given(DOUBLES)
def test_doubles_are_written_as_arrow_does_and_read_back(value: float) -> None:
    text = double_text(value)
    assert text == texts_of_column(pa.array([value], pa.float64()), "x")[0].as_py()
    assert repr(float(text)) == repr(value)


COLUMNS = st.one_of(
    st.lists(st.one_of(st.none(), DOUBLES)).map(lambda v: pa.array(v, pa.float64())),
    st.lists(st.one_of(st.none(), st.floats(width=32))).map(lambda v: pa.array(v, pa.float32())),
    st.lists(st.one_of(st.none(), st.integers(-(1 << 63), (1 << 63) - 1), st.integers(-9, 9))).map(
        lambda v: pa.array(v, pa.int64())
    ),
    st.lists(st.one_of(st.none(), st.integers(0, (1 << 64) - 1))).map(lambda v: pa.array(v, pa.uint64())),
    st.lists(st.one_of(st.none(), st.booleans())).map(lambda v: pa.array(v, pa.bool_())),
    st.lists(st.one_of(st.none(), st.decimals(-100, 100, places=10))).map(lambda v: pa.array(v, pa.decimal128(20, 10))),
    st.lists(st.one_of(st.none(), st.dates())).map(lambda v: pa.array(v, pa.date32())),
    st.lists(st.one_of(st.none(), st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1)))).map(
        lambda v: pa.array(v, pa.timestamp("us"))
    ),
    st.lists(st.one_of(st.none(), st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1)))).map(
        lambda v: pa.array(v, pa.timestamp("us", "UTC"))
    ),
)


@given(COLUMNS, st.integers(0, 3))
@example(pa.array([Decimal("1E-8"), None, Decimal("2.5"), Decimal(0)], pa.decimal128(20, 10)), 0)
def test_a_value_of_a_column_is_the_term_of_that_value_alone(column: pa.Array, start: int) -> None:
    dictionary, column = Dictionary(), column.slice(start)
    expected = [None if value is None else text_of(value) for value in column.to_pylist()]
    assert dictionary.decode(ids_of_column(column, "x", dictionary)) == expected
    assert ids_of_column(column, "x", dictionary).tolist() == dictionary.encode(expected).tolist()
