"""The same micro-batches under Spark and under the local runner: the time of each, from files to rows of results."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

import cqels_py
from bench.suites.on_spark.floor import Idle, frame_of
from bench.suites.on_spark.readings import COLUMNS, PIECES, STREAM
from cqels_py.batches.results import ResultBatch
from cqels_py.runners.spark.folder import PartLoad
from cqels_py.runners.spark.rows import solution_rows
from cqels_py.spark import continuous, loads, parquet, session, statistics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from cqels_py.runners.spark.session import Session

_SETTINGS = {"spark.driver.memory": "4g", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


@dataclass(frozen=True, slots=True)
class Taken:
    """Seconds of each micro-batch, the number of results, and (on Spark) the rows of each partition of the state."""

    seconds: list[float]
    results: int
    parts: list[PartLoad]


@contextmanager
def spark_session(cores: int) -> Iterator[Session]:
    """A session on so many cores, stopped afterwards."""
    found = session(f"local[{cores}]", _SETTINGS)
    found.sparkContext.setLogLevel("OFF")
    try:
        yield found
    finally:
        found.stop()


def on_spark(spark: Session, folder: Path, query: str, parts: int, *, net: bool = False) -> Taken:
    """A Structured Streaming job over the folder's files: a micro-batch from its trigger until it is committed.

    Its results are made and discarded. `net`: of changes the net ones, from files that the tasks read.
    """
    with tempfile.TemporaryDirectory(prefix="cqels-bench-") as scratch:
        if net:
            frame = parquet(str(folder), session=spark, files_a_batch=PIECES)
        else:
            frame = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", PIECES).parquet(str(folder))
        state = Path(scratch) / "state"
        answers = continuous({STREAM: frame}, query, state=state, partitions=parts, changelog=net, net=net)
        seconds = _seconds(spark, answers, Path(scratch))
        return Taken(seconds, statistics(state).results, loads(state)[0])


def idly(spark: Session, folder: Path, idle: Idle) -> Taken:
    """Micro-batches of equal size by tasks that do nothing."""
    with tempfile.TemporaryDirectory(prefix="cqels-bench-") as scratch:
        return Taken(_seconds(spark, frame_of(spark, folder, idle), Path(scratch)), 0, [])


def _seconds(spark: Session, answers: DataFrame, scratch: Path) -> list[float]:
    """Of each micro-batch, whose results are made and discarded."""
    writer = answers.writeStream.format("noop").option("checkpointLocation", f"{scratch}/checkpoint")
    spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", "1000")
    running = writer.trigger(availableNow=True).start()
    try:
        running.awaitTermination()
    finally:
        running.stop()
    return [each["durationMs"]["triggerExecution"] / 1000 for each in running.recentProgress if each["numInputRows"]]


def locally(batches: Sequence[Sequence[Path]], query: str) -> Taken:
    """One engine in this process, which makes the same rows of results."""
    engine = cqels_py.Engine()
    asked = engine.register(query)
    results = 0

    def take(batch: ResultBatch) -> None:
        nonlocal results
        results += sum(each.num_rows for each in solution_rows(batch, engine.dictionary, asked.variables))

    asked.subscribe_batches(take, ids=True)
    seconds = []
    for files in batches:
        started = time.perf_counter()
        engine.push_batch(STREAM, pq.read_table(list(map(str, files))))
        seconds.append(time.perf_counter() - started)
    return Taken(seconds, results, [])
