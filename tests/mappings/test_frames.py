"""Wide tables: `push_frame` makes the same elements as pushing row by row, without any code of Python for a row."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqels_py import CqelsError, DataError, Engine, UsageError

S = "http://ex.org/readings"
EX = "http://ex.org/"
QUERY = f"SELECT ?s ?p ?o {{ STREAM <{S}> [RANGE 5m] {{ ?s ?p ?o }} }}"
START = 1_714_564_800_000_000
Row = tuple[str | None, float | None, int | None]


def engine_and_query() -> tuple[Engine, Any]:
    engine = Engine(on_error="skip", report=lambda _: None)
    return engine, engine.register(QUERY)


def answers(query: Any) -> list[Any]:
    return sorted((r.time, r.sign, *(r.bindings[name].n3() for name in "spo")) for r in query.results())


def triples(row: Row) -> list[Any]:
    sensor, temperature, room = row
    assert sensor is not None
    subject = EX + "".join(quote(c, safe="-._~") if c.isascii() else c for c in sensor)
    return [
        *([] if temperature is None else [(subject, f"{EX}t", temperature)]),
        *([] if room is None else [(subject, f"{EX}in", f"<{EX}room/{room}>")]),
    ]


KINDS: list[Callable[[dict[str, Any]], Any]] = [
    lambda columns: pa.table(columns),
    lambda columns: pa.table(columns).to_pandas(),
    lambda columns: pl.DataFrame(pa.table(columns)),
    lambda columns: pa.table({**columns, "sensor": columns["sensor"].dictionary_encode()}),
]
ROWS = st.lists(
    st.tuples(
        st.one_of(st.none(), st.text("aü %/<\\\"{}'", min_size=1, max_size=3)),
        st.one_of(st.none(), st.floats(-50, 50), st.integers(-50, 50).map(float)),
        st.one_of(st.none(), st.integers(0, 3)),
    ),
    max_size=20,
)


@given(ROWS, st.sampled_from(KINDS))
def test_a_frame_is_the_same_as_its_rows_pushed_one_by_one(rows: list[Row], kind: Callable[[Any], Any]) -> None:
    """Rows without a subject, or without any value, are left out and counted."""
    by_row, expected = engine_and_query()
    for number, row in enumerate(rows):
        if row[0] is not None and triples(row):
            by_row.push(S, triples(row), time=START + number)
    frame = kind(
        {
            "at": pa.array(range(START, START + len(rows)), pa.timestamp("us", "UTC")),
            "sensor": pa.array([row[0] for row in rows], pa.string()),
            "t": pa.array([row[1] for row in rows], pa.float64()),
            "room": pa.array([row[2] for row in rows], pa.int64()),
        }
    )
    engine, query = engine_and_query()
    engine.push_frame(
        S, frame, subject=EX + "{sensor}", time="at", columns={"t": EX + "t", "room": (f"<{EX}in>", EX + "room/{room}")}
    )
    assert answers(query) == answers(expected)
    assert engine.statistics.elements == by_row.statistics.elements
    assert engine.statistics.malformed == len(rows) - by_row.statistics.elements


def test_no_code_of_python_runs_for_a_row() -> None:
    def calls(rows: int) -> int:
        engine = Engine()
        engine.register(QUERY.replace("?s ?p ?o {", "(COUNT(*) AS ?n) {", 1).replace("5m", "5m STEP 1m"))
        numbers = np.arange(rows)
        frame = pd.DataFrame(
            {"at": START + numbers, "id": numbers, "x": numbers / 7, "y": numbers % 9, "z": numbers.astype(str)}
        )
        count = 0

        def one(*_: object) -> None:
            nonlocal count
            count += 1

        columns = {name: EX + name for name in "xyz"}
        sys.setprofile(one)
        try:
            engine.push_frame(S, frame, subject=EX + "{id}", time="at", columns=columns)
        finally:
            sys.setprofile(None)
        return count

    calls(1000)
    # Room for hash tables that grow, and no call a row.
    assert calls(16_000) < calls(1000) + 2000


FRAME = {"time": ["2024-05-01T12:00:00Z"], "sensor": ["s1"], "t": [1.5]}
WRONG: list[tuple[dict[str, Any], type[CqelsError], str]] = [
    ({"columns": {}}, UsageError, "columns is a mapping of columns to properties, not {}: push_frame"),
    ({"columns": {"x": EX}}, UsageError, "the frame has no column 'x'; its columns are 'time', 'sensor', 't'"),
    ({"columns": {"t": "t"}}, UsageError, "the property of the column 't' is an IRI, not 't': push_frame"),
    ({"columns": {"t": (EX, "{t")}}, UsageError, "the object of the column 't' is an IRI with columns in braces"),
    ({"columns": {"t": (EX, EX, EX)}}, UsageError, "columns is a mapping of columns to properties"),
    ({"subject": "sensor"}, UsageError, "subject is an IRI with columns in braces, such as .* not 'sensor'"),
    ({"subject": EX + "{s}"}, UsageError, "the frame has no column 's'"),
    ({"time": 5}, UsageError, "time is the name of the column with the times, not 5"),
    ({"time": "sensor"}, DataError, "the table:1: the row has no time; expected a time like"),
    ({"subject": "{sensor}"}, DataError, "the table:1: the row has no subject"),
    ({"frame": [1]}, UsageError, "an Arrow table or reader, not list"),
    ({"frame": pd.DataFrame({**FRAME, "t": [[1]]})}, DataError, "the column t of type list.* has no terms"),
    (
        {"frame": pd.DataFrame({**FRAME, "t": [["warm"]]})},
        DataError,
        "the column t of type list.*string.* has no terms",
    ),
]


@pytest.mark.parametrize(("given_", "kind", "message"), WRONG)
def test_wrong_arguments_say_what_they_take(given_: dict[str, Any], kind: type[CqelsError], message: str) -> None:
    engine = Engine()
    query = engine.register(QUERY)
    right = {"frame": pd.DataFrame(FRAME), "subject": EX + "{sensor}", "time": "time", "columns": {"t": EX + "t"}}
    with pytest.raises(kind, match=message):
        engine.push_frame(S, **{**right, **given_})
    engine.push_frame(S, **right)  # type: ignore[arg-type]
    assert answers(query) == [(START, 1, f"<{EX}s1>", f"<{EX}t>", '"1.5"^^<http://www.w3.org/2001/XMLSchema#double>')]


def test_whole_iris_in_a_column_and_rows_out_of_order() -> None:
    engine, query = engine_and_query()
    frame = pl.DataFrame(
        {
            "time": [datetime(2024, 5, 1, 13, tzinfo=UTC), datetime(2024, 5, 1, 12, tzinfo=UTC)],
            "s": [EX + "a?x=1", EX + "b"],
            "v": [1, 2],
        }
    )
    with pytest.raises(DataError, match="sort=True"):
        engine.push_frame(S, frame, subject="{s}", time="time", columns={"v": EX + "v"})
    engine.push_frame(S, frame, subject="{s}", time="time", columns={"v": EX + "v"}, sort=True)
    assert [(row[0] - START, row[2]) for row in answers(query)] == [(0, f"<{EX}b>"), (3_600_000_000, f"<{EX}a?x=1>")]
