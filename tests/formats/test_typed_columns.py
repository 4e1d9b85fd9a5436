"""Typed columns against one value after the other, as rdflib's terms say it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqels_py.dictionary import Dictionary
from cqels_py.errors import UsageError
from cqels_py.formats.typed_columns import TypedColumn, TypedShape, typed_column, typed_columns
from cqels_py.terms.rdf import to_rdflib
from cqels_py.terms.values import text_of

XSD = "http://www.w3.org/2001/XMLSchema#"


def typed(text: object, name: str) -> str:
    return f'"{text}"^^<{XSD}{name}>'


INTEGERS = st.one_of(st.integers(-9, 9), st.integers(-(1 << 70), 1 << 70)).map(text_of)
OTHER_INTEGERS = st.integers(-9, 9).map(lambda n: typed(f"{n:+03d}", "int"))
DOUBLES = st.floats(allow_nan=False).map(text_of)
DECIMALS = st.decimals(-(10**9), 10**9, places=3).map(text_of)
BOOLEANS = st.sampled_from([typed(text, "boolean") for text in ("true", "false", "0", "1")])
INSTANTS = st.datetimes(datetime(1000, 1, 1), datetime(3000, 1, 1), timezones=st.sampled_from([UTC])).map(text_of)
LOCAL = st.datetimes(datetime(1000, 1, 1), datetime(3000, 1, 1)).map(text_of)
DATES = st.dates(date(1000, 1, 1)).map(text_of)
NODES = st.sampled_from(["<http://ex.org/a>", "<urn:ü>", "_:b"])
STRINGS = st.text('ab"\\\n\r\t\x00é<@^', max_size=5).map(lambda t: to_text(t))
OTHERS = st.sampled_from(
    ['"a"@en', '"b"@de-at', typed("PT5S", "duration"), typed("x", "integer"), typed("24:61", "dateTime")]
)
KINDS = [INTEGERS, OTHER_INTEGERS, DOUBLES, DECIMALS, BOOLEANS, INSTANTS, LOCAL, DATES, NODES, STRINGS, OTHERS]
COLUMNS = st.one_of(
    *(st.lists(st.one_of(st.none(), kind)) for kind in KINDS),
    st.lists(st.one_of(st.none(), *KINDS)),
)


def to_text(text: str) -> str:
    from rdflib import Literal

    return text_of(Literal(text))


def column(texts: Sequence[str | None], kind: pa.DataType | None = None) -> tuple[TypedColumn, list[str | None]]:
    dictionary = Dictionary()
    ids = dictionary.encode(texts)
    return typed_column(ids, dictionary, kind), dictionary.decode(ids)


def assert_same(value: Any, term: Any, kind: pa.DataType) -> None:
    if isinstance(value, datetime):
        found = datetime.fromisoformat(str(term))
        assert (value.replace(tzinfo=UTC), kind.tz is None) == (found.replace(tzinfo=UTC), found.tzinfo is None)
    elif isinstance(value, date):
        assert value.isoformat() == str(term)
    elif isinstance(value, bool):
        assert value is (str(term) in ("true", "1"))
    elif isinstance(value, float):
        assert value == np.float64(str(term).replace("INF", "inf"))
    elif isinstance(value, int | Decimal):
        assert value == Decimal(str(term))
    else:
        assert value == (term.n3() if term.n3().startswith("_:") else str(term))


@given(COLUMNS)
def test_each_value_is_that_of_its_term(texts: list[str | None]) -> None:
    found, terms = column(texts)
    assert found.misfits == 0
    for row, (value, text) in enumerate(zip(found.values.to_pylist(), terms, strict=True)):
        if text is None:
            assert value is None
            continue
        term = to_rdflib(text)
        assert_same(value, term, found.values.type)
        if found.datatypes is not None:
            given_ = found.datatypes[row].as_py()
            datatype = getattr(term, "datatype", None)
            language = getattr(term, "language", None)
            node = {"_": "blank", "<": "iri"}.get(text[0])
            assert given_ == (f"@{language}" if language else node or str(datatype or XSD + "string"))


TYPES: list[tuple[list[str | None], str]] = [
    ([typed(1, "integer"), None, typed("07", "int")], "int64"),
    ([typed(1, "integer"), typed(1 << 63, "integer")], "large_string"),
    ([typed("1.5", "double"), typed("1e400", "double")], "double"),
    ([typed("1.5", "float")], "float"),
    ([typed("1.50", "decimal"), typed(3, "integer")], "decimal128(38, 2)"),
    ([typed("true", "boolean")], "bool"),
    (
        [typed("2024-05-01T12:00:00Z", "dateTime"), typed("2024-05-01T12:00:00.1234Z", "dateTime")],
        "timestamp[us, tz=UTC]",
    ),
    ([typed("2024-05-01T12:00:00", "dateTime")], "timestamp[us]"),
    ([typed("2024-05-01", "date")], "date32[day]"),
    (["<urn:a>", "_:b"], "large_string"),
    ([None], "large_string"),
]


@pytest.mark.parametrize(("texts", "kind"), TYPES)
def test_a_column_is_of_the_type_of_its_values(texts: list[str | None], kind: str) -> None:
    found, _ = column(texts)
    assert str(found.values.type) == kind
    assert found.datatypes is None


def test_mixed_columns_are_texts_with_their_datatypes() -> None:
    found, _ = column([typed(1, "integer"), typed("1.5", "double"), '"a"@en', "<urn:a>", None])
    assert found.values.to_pylist() == ["1", "1.5", "a", "urn:a", None]
    assert found.datatypes is not None
    assert found.datatypes.to_pylist() == [XSD + "integer", XSD + "double", "@en", "iri", None]


@pytest.mark.parametrize("digits", [39, 45, 1200])
def test_decimals_with_more_digits_than_a_column_has_are_texts(digits: int) -> None:
    most = "0." + "1" * 38
    text = "-0." + "1" * digits
    found, _ = column([typed(text, "decimal"), typed(1, "integer")])
    assert found.values.to_pylist() == [text, "1"]
    found, _ = column([typed(most, "decimal")])
    assert found.values.to_pylist() == [Decimal(most)]


FITTING: list[tuple[str, Any, Any]] = [
    (typed(127, "integer"), "int8", 127),
    (typed(128, "integer"), "int8", None),
    (typed("5.00", "decimal"), "int64", 5),
    (typed("5.5", "decimal"), "int64", None),
    (typed("5", "double"), "int64", None),
    (typed(-1, "integer"), "uint64", None),
    (typed((1 << 64) - 1, "integer"), "uint64", (1 << 64) - 1),
    (typed(1 << 200, "integer"), "int64", None),
    (typed(5, "integer"), "float64", 5.0),
    (typed("INF", "double"), "float64", math.inf),
    ('"5"', "float64", None),
    (typed("2.50", "decimal"), pa.decimal128(3, 1), Decimal("2.5")),
    (typed("2.55", "decimal"), pa.decimal128(3, 1), None),
    (typed("255.5", "decimal"), pa.decimal128(3, 1), None),
    (typed("+007", "integer"), pa.decimal128(3, 1), Decimal(7)),
    (typed("0", "boolean"), "bool", False),
    ("<urn:a>", "string", "urn:a"),
    (typed("2024-05-01T14:00:00+02:00", "dateTime"), pa.timestamp("s", "UTC"), datetime(2024, 5, 1, 12, tzinfo=UTC)),
    (typed("2024-05-01T14:00:00.5Z", "dateTime"), pa.timestamp("s", "UTC"), None),
    (typed("2024-05-01T14:00:00", "dateTime"), pa.timestamp("s", "UTC"), None),
    (typed("2024-02-30T14:00:00Z", "dateTime"), pa.timestamp("us", "UTC"), None),
    (typed("1600-01-01T00:00:00Z", "dateTime"), pa.timestamp("ns", "UTC"), None),
    (typed("2500-01-01T00:00:00", "dateTime"), pa.timestamp("ns"), None),
    (typed("2262-04-11T23:47:16.854775", "dateTime"), pa.timestamp("ns"), datetime(2262, 4, 11, 23, 47, 16, 854775)),
    (typed("1677-09-21T00:12:43.145225", "dateTime"), pa.timestamp("ns"), datetime(1677, 9, 21, 0, 12, 43, 145225)),
    (typed("2262-04-11T23:47:16.854776", "dateTime"), pa.timestamp("ns"), None),
    (typed("0.00012", "decimal"), pa.decimal128(2, 5), Decimal("0.00012")),
    (typed("0.0", "decimal"), pa.decimal128(2, 5), Decimal(0)),
    (typed("0.00120", "decimal"), pa.decimal128(2, 5), None),
    (typed("2024-05-01", "date"), "date32", date(2024, 5, 1)),
    (typed("2024-02-30", "date"), "date32", None),
]


@pytest.mark.parametrize(("text", "kind", "value"), FITTING)
def test_a_given_type_takes_what_it_has_a_place_for(text: str, kind: Any, value: Any) -> None:
    shape = TypedShape.of(["x"], "time", "sign", {"x": kind})
    dictionary = Dictionary()
    columns, misfits = typed_columns(["x"], [dictionary.encode([text, None, text])], dictionary, shape)
    assert columns["x"].to_pylist() == [value, None, value]
    assert misfits == ({"x": 2} if value is None else {})


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"time_column": "x"}, 'the query has a variable .x: .*time_column="result_x"'),
    ({"sign_column": ""}, "sign_column is the name of a column"),
    ({"sign_column": "time"}, "both 'time'"),
    ({"schema": {"y": "int64"}}, "schema has the column 'y'; the variables are 'x'"),
    ({"schema": {"x": "number"}}, "the type of 'x' is int64 .*not 'number'"),
    ({"schema": {"x": pa.list_(pa.int64())}}, "the type of 'x' is int64"),
    ({"schema": "int64"}, "schema is a mapping"),
]


@pytest.mark.parametrize(("given_", "message"), WRONG)
def test_wrong_names_and_types(given_: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        TypedShape.of(["x"], **{"time_column": "time", "sign_column": "sign", "schema": None, **given_})


def test_a_column_of_datatypes_takes_no_name_from_another() -> None:
    dictionary = Dictionary()
    ids = dictionary.encode(["<urn:a>", '"a"'])
    with pytest.raises(UsageError, match="rename the variable, or give schema"):
        typed_columns(
            ["x", "x_datatype"], [ids, ids], dictionary, TypedShape.of(["x", "x_datatype"], "time", "sign", None)
        )
