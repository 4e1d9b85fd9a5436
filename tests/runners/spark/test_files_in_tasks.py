"""`cqels_py.spark.parquet`: Spark hands out the names of files, and the tasks that route their rows read them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cqels_py.algebra.nodes import Output
from cqels_py.checkpoints.locations import file_at
from cqels_py.errors import DataError, UsageError
from cqels_py.runners.spark import stage
from cqels_py.spark import prepare
from tests.runners.spark import simulation
from tests.runners.spark.test_simulated import DIVIDED, EX, STATIC, STREAMS, drawn

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TEXT = f"PREFIX : <{EX}> {DIVIDED['optional']}"


def write(folder: Path, elements: list[Any], first: int) -> dict[str, Path]:
    """A file for each stream."""
    found = {}
    rows = simulation.rows_of(elements, STREAMS, [f"g{first + n}" for n in range(len(elements))])
    for number, stream in enumerate(STREAMS):
        mine = pa.Table.from_batches([rows])
        mine = mine.filter(pa.compute.equal(mine.column("stream"), number)).drop_columns(["stream"])
        mine = mine.set_column(0, "time", mine.column("time").cast(pa.timestamp("us", "UTC")))
        path = folder / f"in {number}" / f"part%20{first}.parquet"
        path.parent.mkdir(exist_ok=True)
        pq.write_table(mine.append_column("other", pa.array([1.5] * len(mine))), path)
        found[stream] = path
    return found


def names_of(paths: dict[str, Path]) -> pa.RecordBatch:
    """The rows that a task gets of Spark."""
    rows = [{"stream": STREAMS.index(stream), "graph": f"file:{path}"} for stream, path in paths.items()]
    return pa.RecordBatch.from_pylist(rows, simulation.ROWS)


def test_rows_of_files_are_those_of_data_frames(tmp_path: Path) -> None:
    elements, of_files = drawn(5, 60), frozenset(range(len(STREAMS)))
    rows: list[dict[str, Any]] = []
    with simulation.scratch() as place:
        job, plan = prepare(TEXT, state=place, partitions=3, changelog=True)
        assert plan.streams == STREAMS
        cluster = simulation.Cluster(job)
        for number, start in enumerate(range(0, 60, 20)):
            task = names_of(write(tmp_path, elements[start : start + 20], start))
            routed = [
                pa.RecordBatch.from_pylist(each.to_pylist(), each.schema)
                for each in stage.route(job, [task], number, 0, of_files=of_files)
            ]
            rows += cluster.evaluate(number, routed, final=start == 40)
    assert simulation.counted(rows) == simulation.expected(TEXT, elements, STATIC, Output.CHANGELOG)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    (tmp_path / "damaged.parquet").write_bytes(b"PAR1 and nothing else PAR1")
    pq.write_table(pa.table({"time": [1], "subject": [f"<{EX}a>"]}), tmp_path / "short.parquet")
    pq.write_table(
        pa.table({"time": [1], "subject": ["a"], "predicate": [f"<{EX}v>"], "object": ['"1"']}),
        tmp_path / "terms.parquet",
    )
    with simulation.scratch() as place:
        job, _ = prepare(TEXT, state=place, partitions=2, changelog=True)
        for name, message in (
            ("damaged", "damaged.parquet cannot be read as a Parquet file"),
            ("missing", "missing.parquet cannot be read as a Parquet file"),
            ("short", "there is no column predicate"),
            ("terms", "terms.parquet, row:1: the subject"),
        ):
            task = names_of({STREAMS[0]: tmp_path / f"{name}.parquet"})
            with pytest.raises(DataError, match=message):
                list(stage.route(job, [task], 0, 0, of_files=frozenset([0])))


def test_paths_as_hadoop_writes_them() -> None:
    for uri in ("file:/data/a b%20c?.parquet", "file:///data/a b%20c?.parquet", "/data/a b%20c?.parquet"):
        assert file_at(uri)[1] == "/data/a b%20c?.parquet"


@pytest.mark.xdist_group("spark")
def test_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    """Files of two streams, one a micro-batch."""
    from cqels_py.spark import constructed, continuous, parquet

    elements = drawn(6, 40)
    for start in (0, 20):
        write(tmp_path, elements[start : start + 20], start)
    with pytest.raises(UsageError, match="files_a_batch is 1 or more"):
        parquet(str(tmp_path), files_a_batch=0)
    one = parquet(str(tmp_path / "in 0"), session=spark)
    with pytest.raises(UsageError, match="have no columns of partitions"):
        continuous(dict.fromkeys(STREAMS, one), TEXT, state=tmp_path / "refused", partition="p")
    with pytest.raises(UsageError, match="give both queries `idle`"):
        constructed({STREAMS[0]: one}, TEXT, state=tmp_path / "refused", beside=[one])
    frames = {iri: parquet(str(tmp_path / f"in {n}"), session=spark, files_a_batch=1) for n, iri in enumerate(STREAMS)}
    answers = continuous(frames, TEXT, state=tmp_path / "state", changelog=True)
    rows: list[dict[str, Any]] = []

    def keep(each: DataFrame, batch: int) -> None:
        rows.extend(each.toArrow().to_pylist())

    writer = answers.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.foreachBatch(keep).trigger(availableNow=True).start()
    query.awaitTermination()
    wanted = simulation.expected(TEXT, elements, STATIC, Output.CHANGELOG)
    found = simulation.counted(rows)
    # The last expiries are not told: the streams do not end.
    assert found
    assert not found - wanted
    assert sum((wanted - found).values()) < sum(wanted.values()) / 2
