"""Tables in order of time: refused as a whole where they are not, unless lateness covers it or they are to be sorted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqels_py.engine.engine import Engine
from cqels_py.errors import DataError, UsageError
from cqels_py.formats.table_order import OrderCheck, order_of
from cqels_py.formats.times import NO_TIME
from tests.engine.test_engine import EX, PREFIX, ROWS, STREAM, VALUES, seen, table, texts

MIXED = [(1, "a", 1), (7, "b", 2), (2, "c", 3), (7, "d", 4), (5, "e", 5)]
INSIDE = PREFIX + "SELECT ?s ?v { STREAM :s [RANGE 4us @ :at] { ?s :v ?v } }"


def with_times(times: pa.Array) -> pa.Table:
    return table([(0, "a", value) for value in range(len(times))]).set_column(0, "time", times)


def inside(rows: list[tuple[int, str, int]]) -> pa.Table:
    """Each row as an element of its own with its time."""
    triples = [
        triple
        for time, subject, value in rows
        for triple in (texts(subject, value), (f"<{EX}{subject}>", f"<{EX}at>", texts("", time)[2]))
    ]
    columns = {name: [triple[k] for triple in triples] for k, name in enumerate(("subject", "predicate", "object"))}
    return pa.table({"graph": [f"g{k // 2}" for k in range(len(triples))], **columns})


def test_the_first_row_out_of_order_is_named_and_nothing_taken() -> None:
    engine = Engine()
    query = engine.register(VALUES)
    engine.push(STREAM, [texts("z", 0)], time=0)
    with pytest.raises(DataError) as refused:
        engine.push_batch(STREAM, table(MIXED))
    assert str(refused.value) == (
        "row:3: the time 2 (1970-01-01T00:00:00.000002Z) is before that of row 2, 7 (1970-01-01T00:00:00.000007Z): a table is in "
        "order of time. sort=True sorts it; Engine(lateness=…) accepts late rows. Nothing was taken from the table"
    )
    assert (engine.statistics.elements, engine.statistics.late, engine.statistics.event_time) == (1, 0, 0)
    engine.push_batch(STREAM, table(ROWS))
    assert [row[2] for row in seen(query.results())] == ["z", "a", "b", "c", "a"]


@pytest.mark.parametrize(("lateness", "at"), [(0, 3), (1, 3), (4, 3), (5, None), (50, None)])
def test_lateness_may_cover_it(lateness: int, at: int | None) -> None:
    engine = Engine(lateness=lateness)
    query = engine.register(VALUES)
    if at is not None:
        with pytest.raises(DataError, match=f"^row:{at}: the time 2 .* before that of row 2, 7"):
            engine.push_batch(STREAM, table(MIXED))
        assert engine.statistics.elements == 0
        return
    engine.push_batch(STREAM, table(MIXED))
    engine.finish()
    assert engine.statistics.late == 0
    assert [row[2] for row in seen(query.results())] == ["a", "c", "e", "b", "d"]


@pytest.mark.parametrize("on_error", ["stop", "skip"])
def test_a_table_out_of_order_is_not_skipped_row_by_row(on_error: str) -> None:
    engine = Engine(on_error=on_error)
    engine.register(VALUES)
    with pytest.raises(DataError, match="row:3"):
        engine.push_batch(STREAM, table(MIXED))
    assert engine.statistics.malformed == 0


TIMES: dict[str, Callable[[list[int]], pa.Array]] = {
    "integers": pa.array,
    "unsigned": lambda times: pa.array(times, pa.uint64()),
    "timestamps": lambda times: pa.array(times, pa.timestamp("us")),
    "nanoseconds": lambda times: pa.array([time * 1_000 for time in times], pa.timestamp("ns", "UTC")),
    "texts": lambda times: pa.array([f"1970-01-01T00:00:00.{time:06}Z" for time in times]),
    "few texts": lambda times: pa.array([f"1970-01-01T00:00:00.{time:06}Z" for time in times]).dictionary_encode(),
}


@pytest.mark.parametrize("kind", TIMES)
def test_times_of_any_kind(kind: str) -> None:
    engine = Engine()
    query = engine.register(VALUES)
    with pytest.raises(DataError, match=r"row:4: the time 3 .* before that of row 3, 9"):
        engine.push_batch(STREAM, with_times(TIMES[kind]([1, 5, 9, 3])))
    engine.push_batch(STREAM, with_times(TIMES[kind]([1, 5, 9, 3])), sort=True)
    assert [row[::3] for row in seen(query.results())] == [(1, 0), (3, 3), (5, 1), (9, 2)]


def test_sorting_is_stable() -> None:
    engine = Engine()
    query = engine.register(VALUES)
    engine.push_batch(STREAM, table(MIXED), sort=True)
    assert [row[2] for row in seen(query.results())] == ["a", "c", "e", "b", "d"]
    with pytest.raises(UsageError, match="sort is True or False, not 1"):
        engine.push_batch(STREAM, table(MIXED), sort=1)  # type: ignore[arg-type]


def test_rows_of_a_sorted_table_keep_their_numbers_in_messages() -> None:
    reports: list[DataError] = []
    engine = Engine(on_error="skip", report=reports.append)
    query = engine.register(VALUES)
    wrong = table(MIXED).set_column(3, "object", pa.array([texts("", 1)[2]] * 4 + ["words"]))
    engine.push_batch(STREAM, wrong, sort=True)
    assert [str(report).split(" is ")[0] for report in reports] == ["row:5: the object: words"]
    assert [row[2] for row in seen(query.results())] == ["a", "c", "b", "d"]


def test_an_invalid_time_is_malformed_not_out_of_order() -> None:
    wrong = with_times(pa.array(["1", None, "x", "2", "3"]))
    engine = Engine(on_error="skip", report=lambda error: None)
    query = engine.register(VALUES)
    for sort in (False, True):
        engine.push_batch(STREAM, wrong, sort=sort)
    assert engine.statistics.malformed == 4
    assert [row[0] for row in seen(query.results())][:3] == [1, 2, 3]


def test_a_time_that_is_not_utf_8_is_malformed() -> None:
    column = pa.Array.from_buffers(
        pa.string(), 3, [None, pa.py_buffer(np.array([0, 1, 2, 3], np.int32)), pa.py_buffer(b"1\xff2")]
    )
    engine = Engine()
    engine.register(VALUES)
    with pytest.raises(DataError, match="row:2: the time: the byte 0xff is not UTF-8"):
        engine.push_batch(STREAM, with_times(column))


def test_rows_older_than_pushed_elements_are_late() -> None:
    engine = Engine(report=lambda error: None)
    query = engine.register(VALUES)
    engine.push(STREAM, [texts("z", 0)], time=4)
    engine.push_batch(STREAM, table([(1, "a", 1), (3, "b", 2), (4, "c", 3), (5, "d", 4)]))
    assert engine.statistics.late == 2
    assert [row[2] for row in seen(query.results())] == ["z", "c", "d"]


def test_a_reader_is_consumed_as_it_goes() -> None:
    engine = Engine()
    query = engine.register(VALUES)
    rows = table([(time, f"x{time}", time) for time in (1, 2, 3, 9, 4, 10)])
    reader = pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches(max_chunksize=2))
    with pytest.raises(
        DataError, match=r"row:5: the time 4 .* before that of row 4, 9 .*The elements that ended before it were taken"
    ):
        engine.push_batch(STREAM, reader)
    assert [row[0] for row in seen(query.results())] == [1, 2, 3]
    again = pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches(max_chunksize=2))
    other = Engine()
    query = other.register(VALUES)
    other.push_batch(STREAM, again, sort=True)
    assert [row[0] for row in seen(query.results())] == [1, 2, 3, 4, 9, 10]


@pytest.mark.parametrize("package", ["polars", "pandas", "duckdb"])
def test_data_frames_are_tables(package: str) -> None:
    module = pytest.importorskip(package)
    rows = table(MIXED)
    frame = {
        "polars": lambda: module.from_arrow(rows),
        "pandas": rows.to_pandas,
        "duckdb": lambda: module.connect().from_arrow(rows),
    }[package]()
    engine = Engine()
    query = engine.register(VALUES)
    with pytest.raises(DataError, match=r"row:3: .*Nothing was taken"):
        engine.push_batch(STREAM, frame)
    assert engine.statistics.elements == 0
    engine.push_batch(STREAM, frame, sort=True)
    assert [row[2] for row in seen(query.results())] == ["a", "c", "e", "b", "d"]


def test_elements_that_carry_their_times() -> None:
    engine = Engine()
    query = engine.register(INSIDE)
    with pytest.raises(DataError, match=r"element:3: the time 2 .* before that of element 2, 7 .*Nothing was taken"):
        engine.push_batch(STREAM, inside(MIXED))
    assert engine.statistics.elements == 0
    engine.push_batch(STREAM, inside(MIXED), sort=True)
    assert [row[2] for row in seen(query.results())] == ["a", "c", "e", "b", "d"]
    reader: Any = inside([(8, "f", 6), (9, "g", 7), (8, "h", 8)]).to_reader()
    with pytest.raises(DataError, match=r"element:3: .*The elements that ended before it were taken"):
        engine.push_batch(STREAM, reader)


def test_a_sorted_table_whose_elements_carry_their_times_ends_with_its_error() -> None:
    engine = Engine()
    query = engine.register(INSIDE)
    rows = inside([(3, "a", 1), (1, "b", 2), (5, "c", 3)])
    broken = rows.set_column(3, "object", pa.array([*rows["object"].to_pylist()[:5], '"never"']))
    with pytest.raises(DataError, match="has the time"):
        engine.push_batch(STREAM, broken, sort=True)
    assert [row[2] for row in seen(query.results())] == ["b", "a"]


@given(st.lists(st.integers(0, 9) | st.just(NO_TIME), max_size=30), st.integers(0, 5), st.integers(1, 7))
def test_against_a_plain_look(times: list[int], lateness: int, size: int) -> None:
    expected, newest = None, None
    for row, time in enumerate(times, 1):
        if time == NO_TIME:
            continue
        if newest is not None and time < newest - lateness:
            expected = row
            break
        newest = time if newest is None else max(newest, time)
    check, found = OrderCheck(lateness, "row", ""), None
    try:
        for start in range(0, len(times), size):
            check.look(np.array(times[start : start + size], np.int64))
    except DataError as error:
        assert error.place is not None
        found = error.place.line
        named = int(str(error).split("that of row ")[1].split(",")[0])
        assert times[named - 1] == newest
    assert found == expected


@given(st.lists(st.integers(0, 5) | st.just(NO_TIME), max_size=30))
def test_rows_without_a_time_stay_behind_the_row_before(times: list[int]) -> None:
    groups: list[list[int]] = []
    for row, time in enumerate(times):
        if time == NO_TIME and groups:
            groups[-1].append(row)
        else:
            groups.append([row])
    expected = [row for group in sorted(groups, key=lambda group: times[group[0]]) for row in group]
    order = order_of(np.array(times, np.int64))
    assert (list(range(len(times))) if order is None else order.tolist()) == expected
