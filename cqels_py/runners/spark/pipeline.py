"""A continuous query as a transformation of data frames, batch or streaming."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
from pyspark import SparkFiles, TaskContext
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, FloatType, IntegralType, StringType, TimestampType

from cqels_py.errors import UsageError
from cqels_py.runners.spark import stage
from cqels_py.runners.spark.hot import HotFolders, folder_of_host
from cqels_py.runners.spark.metrics import BatchCounts, observed, received_counts, rows_of_counts, sent_counts
from cqels_py.runners.spark.rows import TICK
from cqels_py.runners.spark.stage import PARTITION, PLANNED, Job
from cqels_py.runners.spark.watermarks import Waiting

Frame: TypeAlias = DataFrame

_BATCH_ID = "streaming.sql.batchId"
ROUTED = "part int, task int, data binary"
_TERMS = ("subject", "predicate", "object")
_ELEMENT = "element"
"""A column that differs between elements which follow each other, where the names of graphs do not matter."""


def transform(
    job: Job,
    frames: Mapping[int, Frame],
    batch: int | None = None,
    *,
    final: bool = False,
    clock_delay: int | None = None,
    metrics: str | None = None,
) -> Frame:
    """Result rows (time, sign, text columns) of rows of streams, by the streams' numbers in the plan.

    In a streaming query Spark numbers the micro-batches; otherwise `batch` is the number, and `final` says that it is
    the last one. `clock_delay`: time also goes on with the clock, so many microseconds behind it. `metrics`: the name of the counts
    that Spark observes, None: it observes none.
    """

    integers = frozenset(number for number, frame in frames.items() if _has_integers(frame))

    def route(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = _context()
        return stage.route(job, batches, _batch(context, batch), context.partitionId(), integers)

    parts = [_rows(job, frame, number) for number, frame in sorted(frames.items())]
    if clock_delay is not None:
        parts.append(_clock(job, next(iter(frames.values())), clock_delay))
    rows = reduce(lambda one, other: one.unionByName(other), parts)
    return answers(job, rows.mapInArrow(route, ROUTED), batch, final=final, metrics=metrics)


def answers(
    job: Job, routed: Frame, batch: int | None = None, *, final: bool = False, metrics: str | None = None
) -> Frame:
    """Result rows of input that has been routed: a shuffle for each stage of the plan."""
    tick = [f"{TICK} long"] if job.in_order else []
    columns = ", ".join(["time timestamp", "sign byte", *(f"`{name}` string" for name in job.columns), *tick])
    for number, parts in enumerate(job.parts):
        made = columns if number == len(job.exchanges) else ROUTED
        tasks = min(parts, job.tasks or parts)
        task = F.pmod(F.col("part"), F.lit(tasks))
        work = _stage(job, number, tasks, batch, final, counting=metrics is not None)
        routed = routed.repartitionById(tasks, task).mapInArrow(work, made)
    return routed if metrics is None else observed(routed, metrics)


def _stage(
    job: Job, number: int, tasks: int, batch: int | None, final: bool, *, counting: bool
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def evaluate(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = _context()
        near = HotFolders(Path(SparkFiles.getRootDirectory()), folder_of_host())
        current, execution, attempt = _batch(context, batch), context.stageId(), context.taskAttemptId()
        rows = list(batches)
        told: list[BatchCounts] | None = [received_counts(rows)] if counting else None
        tell = None if told is None else told.append
        for part in range(context.partitionId(), job.parts[number], tasks):
            yield from stage.evaluate(job, rows, current, part, final, number, near, execution, attempt, tell)
        if told is not None:
            counts = reduce(BatchCounts.plus, told)
            yield rows_of_counts(counts, job.columns) if number == len(job.exchanges) else sent_counts(counts)

    return evaluate


def session_of(frames: Mapping[str, Frame]) -> SparkSession | None:
    """The session of the frames, None if these are no frames."""
    return next((frame.sparkSession for frame in frames.values() if isinstance(frame, DataFrame)), None)


def check_frames(
    frames: Mapping[int, Frame], time_predicates: Sequence[str | None], partitions: Sequence[str | None]
) -> None:
    """UsageError for a frame that is not streaming, or lacks a required column.

    `partitions`: by stream the column with the partitions.
    """
    for stream, frame in frames.items():
        if not isinstance(getattr(frame, "isStreaming", None), bool):
            raise UsageError(f"a stream is a data frame of Spark, not {type(frame).__name__}")
        if not frame.isStreaming:
            raise UsageError("a continuous query needs streaming data frames: read them with spark.readStream")
        _check_columns(frame, inside=time_predicates[stream] is not None)
        name = partitions[stream]
        if name is not None and name not in frame.columns:
            raise UsageError(
                f"partition names the column {name!r}, which the data frame does not have; it has {_listed(frame)}"
            )


def _listed(frame: Frame) -> str:
    return ", ".join(frame.columns)


def _check_columns(frame: Frame, *, inside: bool) -> None:
    """`inside`: a property of the elements gives their time."""
    missing = [name for name in (*_TERMS, "graph" if inside else "time") if name not in frame.columns]
    if missing:
        needed = "graph, subject, predicate, object" if inside else "time, subject, predicate, object"
        may = "" if inside else " and may have graph"
        raise UsageError(
            f"the stream's data frame has no column {missing[0]!r}: it needs {needed} (terms in N-Triples syntax){may}; it "
            f"has {_listed(frame)}"
        )
    if not inside and isinstance(kind := frame.schema["time"].dataType, FloatType | DoubleType):
        type_ = kind.simpleString()
        raise UsageError(
            f"the column time is of type {type_}: give a timestamp, or an integer of microseconds since 1970"
        )


def _rows(job: Job, frame: Frame, stream: int) -> Frame:
    inside = job.time_predicates[stream] is not None
    _check_columns(frame, inside=inside)
    name = _ELEMENT if _ELEMENT in frame.columns and not (job.graphs and job.graphs[stream]) else "graph"
    graph = F.coalesce(F.col(name), F.lit("")) if name in frame.columns else F.lit("")
    time = F.lit(None).cast("bigint") if inside else _time(frame)
    more = _watermark_columns(job, None if job.waiting is None else _partition(job.waiting, frame, stream))
    return frame.select(F.lit(stream).alias("stream"), time.alias("time"), graph.alias("graph"), *_TERMS, *more)


def _partition(waiting: Waiting, frame: Frame, stream: int) -> Column | None:
    """The number of a row's partition; None: there is one."""
    name = waiting.columns[stream] if waiting.columns else None
    if name is None:
        return None
    return number_of_partition(frame, name)


def number_of_partition(frame: Frame, name: str) -> Column:
    """A number of the value in the column of partitions."""
    is_number = isinstance(frame.schema[name].dataType, IntegralType)
    return F.coalesce(F.col(name).cast("bigint"), F.lit(-1)) if is_number else F.xxhash64(name)


def _watermark_columns(job: Job, partition: Column | None) -> list[Column]:
    """The columns by which streams and partitions wait for each other."""
    if job.waiting is None or job.waiting.idle is None:
        return []
    # Spark writes this time into its log: a repeated micro-batch has the same.
    planned = F.unix_micros(F.current_timestamp())
    number = F.lit(0).cast("bigint") if partition is None else partition
    return [number.alias(PARTITION), planned.alias(PLANNED)]


def _clock(job: Job, frame: Frame, delay: int) -> Frame:
    """A row a second with its time, so that time goes on without elements. Spark gives the same rows to a repeated micro-batch."""
    seconds = frame.sparkSession.readStream.format("rate").option("rowsPerSecond", 1).load()
    time = F.unix_micros("timestamp") - delay
    nothing = [F.lit(None).cast("string").alias(name) for name in ("graph", *_TERMS)]
    more = _watermark_columns(job, None)
    return seconds.select(F.lit(stage.CLOCK).alias("stream"), time.alias("time"), *nothing, *more)


def _time(frame: Frame) -> Column:
    """Microseconds for timestamps, so that streams with times of several types can be combined."""
    time = F.col("time")
    return F.unix_micros(time) if isinstance(frame.schema["time"].dataType, TimestampType) else time


def _has_integers(frame: Frame) -> bool:
    """Are its times integers, or texts that may be integers?"""
    return "time" in frame.columns and isinstance(frame.schema["time"].dataType, IntegralType | StringType)


def _context() -> TaskContext:
    context = TaskContext.get()
    assert context is not None, "only Spark's workers call this"
    return context


def _batch(context: TaskContext, given: int | None) -> int:
    if given is not None:
        return given
    found = context.getLocalProperty(_BATCH_ID)
    assert found is not None, "streaming queries have micro-batches"
    return int(found)
