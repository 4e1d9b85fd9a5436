"""Results are a frame like any other: others may be united with it, and sinks may evaluate it in any way.

Spark then numbers the tasks anew, so the rows themselves say of which part of the state they are.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cqels_py.checkpoints import store
from cqels_py.errors import RunError
from cqels_py.runners.spark import stage
from cqels_py.runners.spark.packing import unpacked_list
from cqels_py.spark import continuous, prepare, statistics
from tests.runners.spark import simulation
from tests.runners.spark.test_metrics import TWO_STAGES
from tests.runners.spark.test_streaming import ELEMENTS, QUERY, STREAMS, Setting, local

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SECOND = TWO_STAGES.replace("?v (COUNT(*) AS ?n)", "(?v AS ?c) (COUNT(*) AS ?n)")
"""With a column of the first query's, in two stages."""


def fewer_files(frame: DataFrame) -> pa.Table:
    return frame.coalesce(1).toArrow()


def other_tasks(frame: DataFrame) -> pa.Table:
    return frame.repartition(3).toArrow()


def kept_and_read_twice(frame: DataFrame) -> pa.Table:
    frame.persist()
    count = frame.count()
    found = frame.coalesce(2).toArrow()
    frame.unpersist()
    assert len(found) == count
    return found


def with_itself(frame: DataFrame) -> pa.Table:
    """Each row twice, and of these one."""
    found = frame.union(frame).toArrow().to_pylist()
    rows = sorted(found, key=repr)
    assert rows[::2] == rows[1::2]
    return pa.Table.from_pylist(rows[::2], schema=frame.toArrow().schema)


def in_order(frame: DataFrame) -> pa.Table:
    return frame.orderBy("time", "sign").toArrow()


def joined_in_a_view(frame: DataFrame) -> pa.Table:
    frame.createOrReplaceTempView("answers_of_a_batch")
    session = frame.sparkSession
    return session.sql(
        "SELECT a.* FROM answers_of_a_batch a JOIN (SELECT DISTINCT which FROM answers_of_a_batch) b ON a.which = b.which"
    ).toArrow()


USES = [fewer_files, other_tasks, kept_and_read_twice, with_itself, in_order, joined_in_a_view]


@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("parts", [1, 2, 3])
def test_a_frame_is_a_frame(spark: SparkSession, tmp_path: Path, parts: int) -> None:
    """Two queries and a plain frame are united; each micro-batch is evaluated in another way."""
    from pyspark.sql import functions as F

    setting = Setting(spark, tmp_path)
    setting.arrive(ELEMENTS)
    frames = setting.frames()
    queries = [QUERY, SECOND]
    plain = frames[STREAMS[0]].select(F.timestamp_micros("time").alias("time"), F.col("subject").alias("c"))
    answers = plain.withColumn("which", F.lit(-1))
    for number, text in enumerate(queries):
        found = continuous(
            frames, text, state=tmp_path / f"state{number}", partitions=parts, changelog=True, metrics=f"of {number}"
        )
        answers = answers.unionByName(found.withColumn("which", F.lit(number)), allowMissingColumns=True)
    if parts == 3:
        answers = answers.coalesce(1)
    used: list[int] = []

    def keep(frame: DataFrame, batch: int) -> None:
        used.append(batch)
        pq.write_table(USES[batch % len(USES)](frame), tmp_path / f"{batch}.arrow")

    setting.run(answers, keep)
    assert len({batch % len(USES) for batch in used}) == len(USES)
    rows = [row for batch in used for row in pq.read_table(tmp_path / f"{batch}.arrow").to_pylist()]
    for number, text in enumerate(queries):
        wanted = local(text, ELEMENTS)
        assert wanted
        assert simulation.counted(of(rows, number)) == wanted
        assert statistics(tmp_path / f"state{number}").results == wanted.total()
    assert len(of(rows, -1)) == sum(len(each.triples) for each in ELEMENTS if str(each.stream) == STREAMS[0])


def of(rows: Sequence[dict[str, Any]], number: int) -> list[dict[str, Any]]:
    return [{name: row[name] for name in row if name != "which"} for row in rows if row["which"] == number]


@pytest.mark.xdist_group("spark")
def test_micro_batches_without_partitions(spark: SparkSession, tmp_path: Path) -> None:
    """Of empty files Spark makes no task at all: those of the stages have no rows, and none knows its part."""
    setting = Setting(spark, tmp_path)
    names = [f"{place:03}.json" for place in range(6)]
    for number, iri in enumerate(STREAMS):
        for place, name in enumerate(names):
            path = tmp_path / f"in{number}" / name
            piece = [] if place in (0, 3) else ELEMENTS[place * 10 : place * 10 + 10]
            path.write_text("".join(line(each) for each in piece if str(each.stream) == iri))
            os.utime(path, (1_700_000_000 + place,) * 2)
    reader = spark.readStream.schema("time long, graph string, subject string, predicate string, object string")
    frames = {
        iri: reader.option("maxFilesPerTrigger", 1).json(str(tmp_path / f"in{n}")) for n, iri in enumerate(STREAMS)
    }
    answers = continuous(frames, TWO_STAGES, state=setting.state, partitions=3, tasks=2, changelog=True)
    setting.run(answers.coalesce(1))
    assert setting.batches() == len(names)
    read = [each for place in (1, 2, 4, 5) for each in ELEMENTS[place * 10 : place * 10 + 10]]
    assert setting.results() == local(TWO_STAGES, read)
    assert [slices_of(setting.state, batch) for batch in range(len(names))] == [False, True, True, False, True, True]


def slices_of(state: Path, batch: int) -> bool:
    """Has any part got rows in a micro-batch?"""
    inputs = [path for path in state.rglob("*.input") if path.name.startswith(f"{batch}-")]
    assert len({path.parent for path in inputs}) == 6
    return any(unpacked_list(path.read_bytes()[store._DIGEST + store._ID :])[0] for path in inputs)


def line(element: Any) -> str:
    rows = simulation.rows_of([element], STREAMS, [f"g{element.time}"]).drop_columns(["stream"]).to_pylist()
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_rows_say_their_part() -> None:
    rows = simulation.rows_of(ELEMENTS[:9], STREAMS, [f"g{number}" for number in range(9)])
    with simulation.scratch() as state:
        job, _ = prepare(QUERY, state=state, partitions=5, changelog=True)
        routed = list(stage.route(job, [rows], 0, 0))

    def of_task(*parts: int) -> list[pa.RecordBatch]:
        return [each.filter(pa.compute.is_in(each.column("part"), pa.array(parts, pa.int32()))) for each in routed]

    assert list(stage.parts_of(of_task(0, 2, 4), 5, 2)) == [0, 2, 4]
    assert list(stage.parts_of(of_task(1, 3), 5, 2)) == [1, 3]
    assert list(stage.parts_of(of_task(), 5, 2)) == []
    assert list(stage.parts_of([], 5, 2)) == []
    for lost in ((0, 4), (1,), (0, 1)):
        with pytest.raises(RunError, match="lost on the way"):
            stage.parts_of(of_task(*lost), 5, 2)


@pytest.mark.parametrize("faster", [0, 1, 2])
def test_all_tasks_pass_over_a_micro_batch_without_rows(faster: int) -> None:
    """So many of them after another one has."""
    pieces = ELEMENTS[:9], [], ELEMENTS[9:30]
    found: list[dict[str, Any]] = []
    with simulation.scratch() as state:
        job, plan = prepare(TWO_STAGES, state=state, partitions=3, changelog=True)
        cluster = simulation.Cluster(job)
        for batch, piece in enumerate(pieces):
            if piece:
                names = [f"g{batch}x{n}" for n in range(len(piece))]
                found += cluster.run(batch, [simulation.rows_of(piece, plan.streams, names)])
                continue
            for number in range(len(job.parts)):
                for task in range(faster + 1):
                    stage.pass_over(job, batch, False, number, None, 0, task)
        assert statistics(state).elements == 30
    assert simulation.counted(found) == local(TWO_STAGES, ELEMENTS[:30])
