"""Answers as tables: Arrow, Polars, pandas, and in the callback."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from cqels_py import Engine, UsageError

S = "http://ex.org/readings"
EX = "http://ex.org/"
QUERY = f"SELECT ?s ?t {{ STREAM <{S}> [RANGE 5m] {{ ?s <{EX}t> ?t }} }}"
NOON = 1_714_564_800_000_000


def engine_and_query(text: str = QUERY, **how: Any) -> tuple[Engine, Any]:
    engine = Engine()
    return engine, engine.register(text, **how)


def push(engine: Engine, *values: Any, at: int = NOON) -> None:
    for number, value in enumerate(values):
        engine.push(S, [(f"{EX}s{number}", EX + "t", value)], time=at + number)


def test_what_came_since_the_last_call() -> None:
    engine, query = engine_and_query()
    push(engine, 1.5, 2)
    assert next(query.results()).bindings["t"].toPython() == 1.5
    push(engine, 2.5, at=NOON + 10)
    table = query.to_arrow(schema={"t": "float64"})
    assert table.schema.names == ["time", "sign", "s", "t"]
    assert table["time"].cast(pa.int64()).to_pylist() == [NOON + 1, NOON + 10]
    assert table["t"].to_pylist() == [2.0, 2.5]
    assert table["s"].to_pylist() == [EX + "s1", EX + "s0"]
    empty = query.to_arrow()
    assert (empty.num_rows, empty.schema.names, query.waiting) == (0, ["time", "sign", "s", "t"], 0)
    push(engine, "<urn:no-number>", at=NOON + 20)
    assert query.to_arrow(schema={"t": "float64"})["t"].to_pylist() == [None]
    assert query.misfits == {"t": 1}


def test_data_frames() -> None:
    engine, query = engine_and_query(
        f"SELECT ?s ?t ?u {{ STREAM <{S}> [RANGE 5m] {{ ?s <{EX}t> ?t OPTIONAL {{ ?s <{EX}u> ?u }} }} }}"
    )
    push(engine, 1.5)
    engine.push(S, [(EX + "s7", EX + "t", 2.5), (EX + "s7", EX + "u", (1 << 53) + 1)], time=NOON + 5)
    polars = pytest.importorskip("polars")
    frame = query.to_polars()
    assert frame.schema["t"] == polars.Float64
    assert frame["u"].to_list() == [None, (1 << 53) + 1]
    engine, query = engine_and_query(query.compiled)
    push(engine, 1.5)
    engine.push(S, [(EX + "s7", EX + "t", 2.5), (EX + "s7", EX + "u", (1 << 53) + 1)], time=NOON + 5)
    frame = query.to_pandas()
    assert list(frame["t"]) == [1.5, 2.5]
    assert frame["u"][1] == (1 << 53) + 1
    assert frame["time"].dt.tz is not None


def test_an_error_takes_nothing() -> None:
    engine, query = engine_and_query(QUERY.replace("?t", "?time"))
    push(engine, 1)
    with pytest.raises(UsageError, match="time_column"):
        query.to_arrow()
    assert query.to_arrow(time_column="at").schema.names == ["at", "sign", "s", "time"]


def test_subscribers_get_typed_tables_or_ids() -> None:
    engine, query = engine_and_query()
    push(engine, 1)
    tables: list[Any] = []
    batches: list[Any] = []
    query.subscribe_batches(tables.append, schema={"t": "int32"})
    query.subscribe_batches(batches.append, ids=True)
    push(engine, 2, at=NOON + 1)
    assert [table["t"].to_pylist() for table in tables] == [[1], [2]]
    assert str(tables[0].schema.field("t").type) == "int32"
    assert [engine.dictionary.decode(batch.columns[0]) for batch in batches] == [[f"<{EX}s0>"]]
    with pytest.raises(UsageError, match="subscribe"):
        query.to_arrow()
    with pytest.raises(UsageError, match="ids is True or False"):
        query.subscribe_batches(print, ids=1)


def test_an_ask_query_has_a_column_of_truth_values() -> None:
    engine, query = engine_and_query(f"ASK {{ STREAM <{S}> [RANGE 5m] {{ ?s <{EX}t> 7 }} }}")
    push(engine, 1, 7)
    assert query.to_arrow()["boolean"].to_pylist() == [False, True]


def test_no_code_of_python_runs_for_a_row() -> None:
    def calls(rows: int) -> int:
        engine, query = engine_and_query()
        numbers = np.arange(rows)
        values = [numbers / 7, numbers, np.where(numbers % 2, "a", "b")]
        for at, each in enumerate(values):
            frame = pa.table({"time": NOON + numbers + at * rows, "id": numbers, "t": pa.array(each)})
            engine.push_frame(S, frame, subject=EX + "{id}", time="time", columns={"t": EX + "t"})
        count = 0

        def one(*_: object) -> None:
            nonlocal count
            count += 1

        sys.setprofile(one)
        try:
            assert query.to_arrow().num_rows == 3 * rows
        finally:
            sys.setprofile(None)
        return count

    calls(1000)
    assert calls(8000) < calls(1000) + 200
