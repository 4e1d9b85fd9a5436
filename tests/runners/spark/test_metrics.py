"""Spark's own progress has the counts of each micro-batch, and results have no rows of them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from cqels_py.runners.spark import frequent, parts, stage
from cqels_py.runners.spark.metrics import (
    BatchCounts,
    aggregates,
    received_counts,
    results_in,
    rows_of_counts,
    sent_counts,
)
from cqels_py.spark import continuous, counts_in, heavy_values, loads, prepare, statistics
from tests.runners.spark.simulation import rows_of
from tests.runners.spark.test_simulated import EX
from tests.runners.spark.test_streaming import ELEMENTS, Setting, local

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PIECE = 10
SKEWED = f"PREFIX : <{EX}> SELECT ?c ?v WHERE {{ STREAM :s [RANGE 60us] {{ ?c :v ?v }} }}"
TWO_STAGES = f"""PREFIX : <{EX}> SELECT ?v (COUNT(*) AS ?n)
    WHERE {{ STREAM :s [RANGE 90us] {{ ?c :v ?v }} STREAM :t [RANGE 90us] {{ ?c :w ?w }} }} GROUP BY ?v"""


def counts_of(state: Path, query: str, partitions: int) -> list[BatchCounts]:
    """Those of micro-batches of the tests' elements, with functions called as tasks call them."""
    job, plan = prepare(query, state=state, partitions=partitions, changelog=True)
    read = [each for each in ELEMENTS if str(each.stream) in plan.streams]
    found = []
    for batch, start in enumerate(range(0, len(read), PIECE)):
        piece = read[start : start + PIECE]
        rows = rows_of(piece, plan.streams, [f"g{start + i}" for i in range(len(piece))])
        routed = list(stage.route(job, [rows], batch, 0))
        told: list[BatchCounts] = []
        for number, count in enumerate(job.parts):
            routed = [
                pa.RecordBatch.from_pylist(each.to_pylist(), each.schema)
                for part in range(count)
                for each in list(stage.evaluate(job, routed, batch, part, False, number, tell=told.append))
            ]
        found.append(reduce(BatchCounts.plus, told))
    return found


@pytest.mark.parametrize("query", [SKEWED, TWO_STAGES], ids=["one stage", "two stages"])
@pytest.mark.parametrize("partitions", [1, 3])
def test_the_counts_of_all_micro_batches_are_those_of_the_query(query: str, partitions: int, tmp_path: Path) -> None:
    state = tmp_path / "state"
    counts = counts_of(state, query, partitions)
    total, told = reduce(BatchCounts.plus, counts), statistics(state)
    assert (total.elements, total.triples, total.results) == (told.elements, told.triples, told.results)
    assert total.results > 0
    assert total.event_time == told.event_time
    first, *_ = found = loads(state)
    assert total.rows == sum(part.rows for part in first)
    assert counts[-1].busiest_part == max(part.rows_of_batch for part in first)
    assert total.read_backs == sum(part.rebuilt for each in found for part in each)


def test_read_backs_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [each.read_backs for each in counts_of(tmp_path / "one", SKEWED, 2)][:3] == [2, 0, 0]
    monkeypatch.setattr(stage, "_keep_hot", lambda *_: None)
    assert {each.read_backs for each in counts_of(tmp_path / "two", SKEWED, 2)} == {2}


def test_heavy_values_are_told_with_each_micro_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frequent, "_LEAST", 1)
    state = tmp_path / "state"
    *_, last = counts_of(state, SKEWED, 2)
    assert last.heavy_values == heavy_values(state) != {}
    assert list(last.heavy_values) == ["c"]
    assert last.plus(BatchCounts(results=2)).heavy_values == last.heavy_values


@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("columns", [("a b", "c"), ("boolean",)])
def test_spark_adds_up_the_rows_of_tasks(columns: tuple[str, ...], spark: SparkSession) -> None:
    told = [
        BatchCounts(results=3, rows=7, busiest_part=4, event_time=9, heavy='{"c": {"<x>": 0.5}}'),
        BatchCounts(results=1, rows=5, busiest_part=5),
    ]
    rows = spark.createDataFrame(pa.Table.from_batches([rows_of_counts(each, columns) for each in told]))
    (row,) = rows.agg(*aggregates(rows)).collect()
    assert BatchCounts(**row.asDict()) == told[0].plus(told[1])
    assert results_in(rows).count() == 0


def test_counts_pass_through_the_next_stage_unseen_by_its_parts() -> None:
    counts = BatchCounts(results=3, busiest_part=5, event_time=7)
    (mine,) = parts.routed_rows(0, [b"x", b"y"])
    rows = [mine, sent_counts(counts), sent_counts(BatchCounts(results=1, busiest_part=4))]
    assert received_counts(rows) == BatchCounts(results=4, busiest_part=5, event_time=7)
    assert received_counts([mine]) == BatchCounts()


def test_rows_of_counts_have_no_sign_of_a_result() -> None:
    rows = rows_of_counts(BatchCounts(elements=120), ("a", "b"))
    assert rows.schema.names == ["time", "sign", "a", "b"]
    assert set(rows.column("sign").to_pylist()).isdisjoint({-1, 1})
    assert rows.column("a").null_count == rows.num_rows == 10, "there is no time yet"


@pytest.fixture
def heard(spark: SparkSession) -> Iterator[list[Any]]:
    """The progress that a listener got."""
    from pyspark.sql.streaming import StreamingQueryListener

    found: list[Any] = []

    class Listener(StreamingQueryListener):
        def onQueryStarted(self, event: Any) -> None:
            pass

        def onQueryProgress(self, event: Any) -> None:
            found.append(event.progress)

        def onQueryTerminated(self, event: Any) -> None:
            pass

    listener = Listener()
    spark.streams.addListener(listener)
    yield found
    spark.streams.removeListener(listener)


@pytest.mark.xdist_group("spark")
def test_spark_reports_them_with_each_micro_batch(spark: SparkSession, tmp_path: Path, heard: list[Any]) -> None:
    setting = Setting(spark, tmp_path)
    setting.arrive(ELEMENTS)
    answers = continuous(setting.frames(), TWO_STAGES, state=setting.state, changelog=True, tasks=1, metrics="sensors")
    progress = setting.run(answers)
    assert setting.results() == local(TWO_STAGES, ELEMENTS)
    told = [found for each in progress if (found := counts_in(each, "sensors")) is not None]
    total = reduce(BatchCounts.plus, told)
    found = statistics(setting.state)
    assert (total.elements, total.results, total.late) == (found.elements, found.results, found.late)
    assert found.elements == len(ELEMENTS)
    assert total.event_time == found.event_time
    # A listener hears of a micro-batch some time after its end.
    deadline = time.monotonic() + 60
    while len([each for each in heard if each.observedMetrics]) < len(told) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [counts_in(each, "sensors") for each in heard if each.observedMetrics] == told
    assert counts_in(heard[0]) is None, "no query has the name that is used without another one"
