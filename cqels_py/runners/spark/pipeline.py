"""A continuous query as a transformation of data frames, batch or streaming."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
from pyspark import SparkFiles, TaskContext
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, FloatType, IntegralType, StringType, TimestampType

from cqels_py.errors import UsageError
from cqels_py.plan.nodes import Plan
from cqels_py.runners.spark import stage
from cqels_py.runners.spark.files import FILE, FORMAT, SCHEMA
from cqels_py.runners.spark.hot import HotFolders, folder_of_executor, folder_of_host
from cqels_py.runners.spark.metrics import (
    BatchCounts,
    observed,
    observing,
    received_counts,
    rows_of_counts,
    sent_counts,
    sign_of,
)
from cqels_py.runners.spark.rows import ELEMENT, TICK
from cqels_py.runners.spark.stage import PARTITION, PLANNED, Job
from cqels_py.runners.spark.watermarks import Waiting

Frame: TypeAlias = DataFrame

_BATCH_ID = "streaming.sql.batchId"
ROUTED = "part int, task int, data binary"
_TERMS = ("subject", "predicate", "object")
_FED = "cqels_py constructed"
"""The mark of the column `element` of a frame, if a CONSTRUCT query makes its elements."""
_EVENTS, _WALL = "events", "wall"
"""With the clock by which the time of that query goes on."""
_WAITS = "cqels_py waits"
"""Whether its streams wait for each other."""
_SIGN = "sign"
_UNTIL = "until"
"""Where other rows of such a frame have the number of an element: before its time none will come."""


@dataclass(frozen=True, slots=True)
class Timing:
    """How the time of a query goes on beside its elements.

    `clock_delay`: with the clock, so many microseconds behind it; None: not with the clock. `lateness`: that of the query, by which
    elements of other frames, and of other queries, are ahead of it. `beside`: frames whose elements move it on. `ended`: the streams
    that have ended, for which others do not wait.
    """

    clock_delay: int | None = None
    lateness: int = 0
    beside: Sequence[Frame] = ()
    ended: frozenset[int] = frozenset()


_BY_ELEMENTS = Timing()


def transform(
    job: Job,
    frames: Mapping[int, Frame],
    batch: int | None = None,
    *,
    final: bool = False,
    timing: Timing = _BY_ELEMENTS,
    metrics: str | None = None,
) -> Frame:
    """Result rows (time, sign, text columns) of rows of streams, by the streams' numbers in the plan.

    In a streaming query Spark numbers the micro-batches; otherwise `batch` is the number, and `final` says that it is
    the last one. `metrics`: the name of the counts that Spark observes, None: it observes none.
    """
    rows = answers(job, _routed(job, frames, batch, timing), batch, final=final, counting=metrics is not None)
    return rows if metrics is None else observed(rows, metrics)


def constructed(job: Job, frames: Mapping[int, Frame], timing: Timing, metrics: str | None) -> Frame:
    """The elements that a CONSTRUCT query makes, as a frame for another query (`is_fed`).

    Beside their triples it has rows that say how far its time has come.
    """
    rows = answers(job, _routed(job, frames, None, timing), counting=True)
    if metrics is not None:
        rows = observing(rows, metrics)
    by_clock = timing.clock_delay is not None or any(_fed_by(frame) == _WALL for frame in frames.values())
    mark = {_FED: _WALL if by_clock else _EVENTS, _WAITS: _is_waiting(job)}
    tells = F.col("sign") == sign_of("watermark")
    element = F.when(tells, F.lit(_UNTIL)).otherwise(F.col(ELEMENT)).alias(ELEMENT, metadata=mark)
    return rows.where(tells | (F.col("sign") == 1)).select("time", *_TERMS, element)


def is_fed(frame: Frame) -> bool:
    """Do the elements of a frame come from a CONSTRUCT query?"""
    return _fed_by(frame) is not None


def waits(frame: Frame) -> bool:
    """Do the streams of the query that it comes from wait for each other?"""
    return bool(frame.schema[ELEMENT].metadata.get(_WAITS, False)) if ELEMENT in frame.columns else False


def _is_waiting(job: Job) -> bool:
    return job.waiting is not None and job.waiting.idle is not None


def _fed_by(frame: Frame) -> str | None:
    """The clock of the query that a frame comes from; None: from none."""
    return frame.schema[ELEMENT].metadata.get(_FED) if ELEMENT in frame.columns else None


def _routed(job: Job, frames: Mapping[int, Frame], batch: int | None, timing: Timing) -> Frame:
    """The input of the parts of a query's first stage."""

    integers = frozenset(number for number, frame in frames.items() if _has_integers(frame))
    of_files = frozenset(number for number, frame in frames.items() if _is_of_files(frame))
    # Tasks get the function with the values that it names, and frames cannot be sent.
    ended = timing.ended

    def route(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = _context()
        # A shuffle follows at once, so that no other frame changes the numbers of these tasks.
        return stage.route(job, batches, _batch(context, batch), context.partitionId(), integers, of_files, ended)

    parts = [_rows(job, frame, number, timing.lateness) for number, frame in sorted(frames.items())]
    parts += [_times(job, _time(frame) - timing.lateness, stage.TIME, frame) for frame in timing.beside]
    if timing.clock_delay is not None:
        parts.append(_clock(job, next(iter(frames.values())), timing.clock_delay))
    if any(map(_has_texts, frames.values())):
        # Beside integers Spark would take the texts for such, which times in ISO 8601 are not.
        parts = [each.withColumn("time", F.col("time").cast("string")) for each in parts]
    rows = reduce(lambda one, other: one.unionByName(other), parts)
    return rows.mapInArrow(route, ROUTED)


def answers(job: Job, routed: Frame, batch: int | None = None, *, final: bool = False, counting: bool = False) -> Frame:
    """Result rows of input that has been routed: a shuffle for each stage of the plan. `counting`: with rows of counts."""
    tick = [f"{TICK} long"] if job.in_order else []
    columns = ", ".join(["time timestamp", "sign byte", *(f"`{name}` string" for name in job.columns), *tick])
    for number, parts in enumerate(job.parts):
        made = columns if number == len(job.exchanges) else ROUTED
        tasks = min(parts, job.tasks or parts)
        task = F.pmod(F.col("part"), F.lit(tasks))
        work = _stage(job, number, tasks, batch, final, counting=counting)
        routed = routed.repartitionById(tasks, task).mapInArrow(work, made)
    return routed


def _stage(
    job: Job, number: int, tasks: int, batch: int | None, final: bool, *, counting: bool
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def evaluate(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = _context()
        near = HotFolders(folder_of_executor(Path(SparkFiles.getRootDirectory())), folder_of_host())
        current, execution, attempt = _batch(context, batch), context.stageId(), context.taskAttemptId()
        rows = list(batches)
        parts = stage.parts_of(rows, job.parts[number], tasks)
        if not parts:
            stage.pass_over(job, current, final, number, near, execution, attempt)
            return
        told: list[BatchCounts] | None = [received_counts(rows)] if counting else None
        tell = None if told is None else told.append
        if number == len(job.exchanges):
            stage.check_ended(job, number, tasks, parts[0], current - 1)
        for part in parts:
            yield from stage.evaluate(job, rows, current, part, final, number, near, execution, attempt, tell)
        if told is not None:
            counts = reduce(BatchCounts.plus, told)
            yield rows_of_counts(counts, job.columns) if number == len(job.exchanges) else sent_counts(counts)

    return evaluate


def session_of(frames: Mapping[str, Frame]) -> SparkSession | None:
    """The session of the frames, None if these are no frames."""
    return next((frame.sparkSession for frame in frames.values() if isinstance(frame, DataFrame)), None)


def check_frames(frames: Mapping[int, Frame], plan: Plan, partitions: Sequence[str | None]) -> None:
    """UsageError for a frame that is not streaming, lacks a required column, or has results instead of elements.

    `partitions`: by stream the column with the partitions.
    """
    for stream, frame in frames.items():
        if not isinstance(getattr(frame, "isStreaming", None), bool):
            raise UsageError(f"a stream is a data frame of Spark, not {type(frame).__name__}")
        if not frame.isStreaming:
            raise UsageError("a continuous query needs streaming data frames: read them with spark.readStream")
        if is_fed(frame):
            _check_fed(plan, stream)
        elif _SIGN in frame.columns:
            raise UsageError(
                f"the data frame of <{plan.streams[stream]}> has a column {_SIGN}, as the results of a query: "
                "cqels_py.spark.constructed makes the elements of a CONSTRUCT query for another one; drop the column if each row is "
                "part of an element"
            )
        _check_columns(frame, inside=plan.time_predicates[stream] is not None)
        name = partitions[stream]
        if name is not None and _is_of_files(frame):
            raise UsageError(
                f"files that are read in the tasks have no columns of partitions, as those of <{plan.streams[stream]}>: give "
                "partition by stream, without this one, or read it with spark.readStream"
            )
        if name is not None and name not in frame.columns:
            raise UsageError(
                f"partition names the column {name!r}, which the data frame does not have; it has {_listed(frame)}"
            )


def _listed(frame: Frame) -> str:
    return ", ".join(frame.columns)


def check_beside(frames: Iterable[Frame]) -> None:
    """UsageError for frames whose elements say no time."""
    for frame in frames:
        if isinstance(frame, DataFrame) and _is_of_files(frame):
            raise UsageError(
                "the times of files that are read in the tasks are not known before: read them with spark.readStream for beside, or "
                "give both queries `idle` instead of it"
            )
        if not isinstance(frame, DataFrame) or not frame.isStreaming or "time" not in frame.columns:
            raise UsageError("beside has streaming data frames with a column time, which the next query reads, too")


def _check_fed(plan: Plan, stream: int) -> None:
    iri, predicate = plan.streams[stream], plan.time_predicates[stream]
    if predicate is not None:
        raise UsageError(
            f"the elements of <{iri}> come from a query and have the times of its ticks: leave out @ <{predicate}>"
        )
    if plan.graphs[stream]:
        raise UsageError(f"the elements of <{iri}> come from a query and are in no named graph: leave out GRAPH")


def frame_of_files(session: SparkSession, folder: str, files_a_batch: int | None, names: str) -> Frame:
    """A streaming data frame of the names of files that match the pattern `names`."""
    reader = session.readStream.format(FORMAT).schema(SCHEMA).option("pathGlobFilter", names)
    if files_a_batch is not None:
        reader = reader.option("maxFilesPerTrigger", files_a_batch)
    return reader.load(folder).select(F.col("path").alias(FILE))


def _is_of_files(frame: Frame) -> bool:
    return frame.columns == [FILE]


def _check_columns(frame: Frame, *, inside: bool) -> None:
    """`inside`: a property of the elements gives their time."""
    if _is_of_files(frame):
        return
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


def _rows(job: Job, frame: Frame, stream: int, lateness: int) -> Frame:
    inside = job.time_predicates[stream] is not None
    _check_columns(frame, inside=inside)
    if _is_of_files(frame):
        nothing = [F.lit(None).cast("string").alias(name) for name in _TERMS]
        numbers = [F.lit(stream).alias("stream"), F.lit(None).cast("bigint").alias("time")]
        return frame.select(*numbers, F.col(FILE).alias("graph"), *nothing, *_watermark_columns(job, None))
    name = ELEMENT if ELEMENT in frame.columns and not (job.graphs and job.graphs[stream]) else "graph"
    graph = F.coalesce(F.col(name), F.lit("")) if name in frame.columns else F.lit("")
    time = F.lit(None).cast("bigint") if inside else _time(frame)
    number: Column = F.lit(stream)
    if (clock := _fed_by(frame)) is not None:
        tells = F.col(ELEMENT) == _UNTIL
        if _is_waiting(job):
            number = F.when(tells, F.lit(stage.told_of(stream))).otherwise(number)
        else:
            number = F.when(tells, F.lit(stage.CLOCK if clock == _WALL else stage.TIME)).otherwise(number)
            time = time - F.when(tells, F.lit(lateness)).otherwise(F.lit(0))
    more = _watermark_columns(job, None if job.waiting is None else _partition(job.waiting, frame, stream))
    return frame.select(number.alias("stream"), time.alias("time"), graph.alias("graph"), *_TERMS, *more)


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
    if not _is_waiting(job):
        return []
    # Spark writes this time into its log: a repeated micro-batch has the same.
    planned = F.unix_micros(F.current_timestamp())
    number = F.lit(0).cast("bigint") if partition is None else partition
    return [number.alias(PARTITION), planned.alias(PLANNED)]


def _clock(job: Job, frame: Frame, delay: int) -> Frame:
    """A row a second with its time, so that time goes on without elements. Spark gives the same rows to a repeated micro-batch."""
    seconds = frame.sparkSession.readStream.format("rate").option("rowsPerSecond", 1).load()
    return _times(job, F.unix_micros("timestamp") - delay, stage.CLOCK, seconds)


def _times(job: Job, time: Column, stream: int, frame: Frame) -> Frame:
    """Rows that have no triple, but a time."""
    nothing = [F.lit(None).cast("string").alias(name) for name in ("graph", *_TERMS)]
    return frame.select(
        F.lit(stream).alias("stream"), time.cast("long").alias("time"), *nothing, *_watermark_columns(job, None)
    )


def _time(frame: Frame) -> Column:
    """Microseconds for timestamps, so that streams with times of several types can be combined."""
    time = F.col("time")
    return F.unix_micros(time) if isinstance(frame.schema["time"].dataType, TimestampType) else time


def _has_integers(frame: Frame) -> bool:
    """Are its times integers, or texts that may be integers?"""
    return "time" in frame.columns and isinstance(frame.schema["time"].dataType, IntegralType | StringType)


def _has_texts(frame: Frame) -> bool:
    """Are its times texts?"""
    return "time" in frame.columns and isinstance(frame.schema["time"].dataType, StringType)


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
