"""Spark's own floor: the same files, shuffle and rows of results, by tasks in Python that do nothing else.

    files ─ mapInArrow: as many bytes as routing sends ─ shuffle ─ mapInArrow: as many rows of results

What a query takes longer than this is the work of the package.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from bench.suites.on_spark.readings import COLUMNS, PIECES, SENSORS, rows
from cqels_py.runners.spark import stage
from cqels_py.runners.spark.rows import row_schema
from cqels_py.spark import prepare

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from cqels_py.runners.spark.session import Session

_SAMPLE = 200_000
_ROUTED = "part int, data binary"


@dataclass(frozen=True, slots=True)
class Idle:
    """Tasks that do nothing. For a row of the input they send `size` bytes, an equal share to each of so many `parts`, and make as
    many rows of `results`."""

    parts: int
    size: float
    results: float

    def route(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """As many bytes as routing sends, which cannot be compressed any more either."""
        count = sum(batch.num_rows for batch in batches)
        data = np.random.default_rng(1).bytes(round(count * self.size / self.parts))
        yield pa.record_batch(
            [pa.array(range(self.parts), pa.int32()), pa.array([data] * self.parts, pa.binary())], ["part", "data"]
        )

    def evaluate(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """As many rows as the query has results."""
        sent = sum(batch.column("data").nbytes for batch in batches)
        left, made = round(sent / self.size * self.results), _results()
        while left > 0:
            yield made.slice(0, left)
            left -= made.num_rows


def _results() -> pa.RecordBatch:
    """Rows such as those of the query."""
    numbers = np.arange(100_000)
    sensors = pa.array([f"<http://ex.org/sensor/{n}>" for n in range(SENSORS)]).take(pa.array(numbers % SENSORS))
    mean = '"{}"^^<http://www.w3.org/2001/XMLSchema#decimal>'
    means = pa.array([mean.format(n / 1_000_003) for n in range(SENSORS)]).take(pa.array(numbers % SENSORS))
    times = pa.array(numbers, pa.timestamp("us", tz="UTC"))
    return pa.record_batch(
        [times, pa.array(np.where(numbers % 2, 1, -1), pa.int8()), sensors, means], row_schema(("sensor", "mean"))
    )


def bytes_of_row(query: str, parts: int) -> float:
    """Bytes that the query's routing sends for a row of the input."""
    with tempfile.TemporaryDirectory(prefix="cqels-bench-") as scratch:
        job, _ = prepare(query, state=Path(scratch) / "state", partitions=parts)
        sample = rows(0, _SAMPLE)
        given = sample.add_column(0, "stream", pa.array(np.zeros(_SAMPLE, np.int64))).add_column(
            2, "graph", pa.array([""] * _SAMPLE)
        )
        (routed,) = stage.route(job, given.combine_chunks().to_batches(), 0, 0)
    return float(routed.column("data").nbytes) / _SAMPLE


def frame_of(spark: Session, folder: Path, idle: Idle) -> DataFrame:
    """The rows that idle tasks make of the folder's files."""
    from pyspark.sql import functions as F

    files = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", PIECES).parquet(str(folder))
    routed = files.mapInArrow(idle.route, _ROUTED).repartitionById(idle.parts, F.col("part"))
    return routed.mapInArrow(idle.evaluate, "time timestamp, sign byte, sensor string, mean string")
