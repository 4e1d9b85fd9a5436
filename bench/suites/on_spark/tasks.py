"""CPU time of the package's part of Spark's tasks, called here one after another, so that other processes hardly matter."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from rich.table import Table

from bench.suites.on_spark.readings import Course, query, write
from cqels_py.runners.spark import stage
from cqels_py.runners.spark.files import rows_of
from cqels_py.runners.spark.stage import Job
from cqels_py.spark import prepare

EVERY, NET = "all changes, rows of a data frame", "net changes, files read in tasks"
PARTS = 2


@dataclass(frozen=True, slots=True)
class TaskCost:
    """CPU microseconds a row of `routing` and `evaluation` (with the log and snapshots), bytes a row that are sent between them,
    and `results` a row."""

    name: str
    routing: float
    evaluation: float
    bytes: float
    results: float


def measure(course: Course) -> list[TaskCost]:
    """Of the course's largest micro-batches, after the others."""
    with tempfile.TemporaryDirectory(prefix="cqels-bench-") as scratch:
        batches = write(Path(scratch) / "in", course)
        return [_measured(Path(scratch) / str(net), course, batches, net=net) for net in (False, True)]


def _measured(folder: Path, course: Course, batches: Sequence[Sequence[Path]], *, net: bool) -> TaskCost:
    # Without net, the results are those that the suite's query has: additions.
    job, _ = prepare(query(course.fill), state=folder, partitions=PARTS, changelog=net, net=net)
    largest = max(course.measured)
    rows = sent = results = 0
    routing = evaluation = 0.0
    for number, (files, (size, measured)) in enumerate(zip(batches, course.sizes(), strict=True)):
        given = [list(_given(path, names=net)) for path in files]
        started = time.process_time()
        of_files = frozenset([0]) if net else frozenset[int]()
        routed = [
            made for task, each in enumerate(given) for made in stage.route(job, each, number, task, of_files=of_files)
        ]
        between = time.process_time()
        made = sum(_results(job, routed, number, part) for part in range(PARTS))
        ended = time.process_time()
        if measured and size == largest:
            rows += size
            sent += sum(each.column("data").nbytes for each in routed)
            results += made
            routing += between - started
            evaluation += ended - between
    return TaskCost(NET if net else EVERY, routing / rows * 1e6, evaluation / rows * 1e6, sent / rows, results / rows)


def _given(path: Path, *, names: bool) -> Iterator[pa.RecordBatch]:
    """What Spark hands to the task of a file: its name, or its rows."""
    if names:
        row = {"stream": [0], "time": pa.nulls(1, pa.int64()), "graph": [str(path)]}
        yield pa.record_batch({**row, **dict.fromkeys(("subject", "predicate", "object"), pa.nulls(1, pa.string()))})
        return
    table = rows_of(str(path))
    # Texts, as they come from the JVM.
    table = table.cast(
        pa.schema([(name, pa.int64() if name == "time" else pa.string()) for name in table.column_names])
    )
    table = table.add_column(0, "stream", pa.array(np.zeros(len(table), np.int64)))
    table = table.add_column(2, "graph", pa.array([""] * len(table)))
    yield from table.to_batches(max_chunksize=200_000)


def _results(job: Job, routed: list[pa.RecordBatch], batch: int, part: int) -> int:
    """How many results a part has; it makes the rows of all."""
    made = stage.evaluate(job, routed, batch, part, False, execution=batch, number=batch * PARTS + part)
    return sum(each.num_rows for each in made)


def table_of(costs: Sequence[TaskCost]) -> Table:
    """The costs by kind of run."""
    made = Table("results and input", title="CPU time of the tasks' part in Python, two parts", title_justify="left")
    for heading in ("routing µs a row", "evaluation µs a row", "bytes a row sent", "results a row"):
        made.add_column(heading, justify="right")
    for each in costs:
        made.add_row(
            each.name, f"{each.routing:.2f}", f"{each.evaluation:.2f}", f"{each.bytes:.1f}", f"{each.results:.2g}"
        )
    return made
