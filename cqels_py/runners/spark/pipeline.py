"""A continuous query as a transformation of data frames, batch or streaming."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import functions as F

from cqels_py.errors import UsageError
from cqels_py.runners.spark import stage
from cqels_py.runners.spark.stage import Job

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_BATCH_ID = "streaming.sql.batchId"
_ROUTED = "part int, task int, share binary"
_TERMS = ("subject", "predicate", "object")


def transform(job: Job, frames: Mapping[int, DataFrame], batch: int | None = None, *, final: bool = False) -> DataFrame:
    """Result rows (time, sign, one text column a variable) of rows of streams, by the streams' numbers in the plan.

    In a streaming query Spark says which micro-batch it is; otherwise `batch` does, and `final` that nothing will follow.
    """
    rows = reduce(lambda one, other: one.unionByName(other), [_rows(frame, n) for n, frame in sorted(frames.items())])

    def route(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = _context()
        return stage.route(job, batches, _batch(context, batch), context.partitionId())

    def evaluate(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = _context()
        return stage.evaluate(job, batches, _batch(context, batch), context.partitionId(), final)

    columns = ", ".join(["time timestamp", "sign byte", *(f"`{name}` string" for name in job.variables)])
    routed = rows.mapInArrow(route, _ROUTED).repartitionById(job.routing.parts, F.col("part"))
    return routed.mapInArrow(evaluate, columns)


def _rows(frame: DataFrame, stream: int) -> DataFrame:
    missing = [name for name in ("time", *_TERMS) if name not in frame.columns]
    if missing:
        raise UsageError(
            f"the stream's data frame has no column {missing[0]!r}: it needs time, subject, predicate, object (terms in "
            f"N-Triples syntax) and may have graph; it has {', '.join(frame.columns)}"
        )
    graph = F.coalesce(F.col("graph"), F.lit("")) if "graph" in frame.columns else F.lit("")
    return frame.select(F.lit(stream).alias("stream"), "time", graph.alias("graph"), *_TERMS)


def _context() -> TaskContext:
    context = TaskContext.get()
    assert context is not None, "only Spark's workers call this"
    return context


def _batch(context: TaskContext, given: int | None) -> int:
    if given is not None:
        return given
    found = context.getLocalProperty(_BATCH_ID)
    if found is None:
        raise UsageError("a continuous query needs streaming data frames: read them with spark.readStream")
    return int(found)
