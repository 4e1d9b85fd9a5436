"""Kernels compiled on the hosts of a cluster before a query starts, so that no micro-batch waits for a compiler."""

from __future__ import annotations

import fcntl
import os
import socket
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from cqels_py.dataflow.kernel_calls import calls_of
from cqels_py.distribution.stages import PlannedStage
from cqels_py.errors import RunError
from cqels_py.formats.kernel_calls import calls_to_read, calls_to_write
from cqels_py.kernels.compiler.manifest import KernelCall
from cqels_py.kernels.compiler.prepare import prepare
from cqels_py.plan.nodes import Plan
from cqels_py.runners.spark.reaching import NEEDED, cause_of
from cqels_py.runners.spark.session import Session

_FORMATS = ("arrow", "nq", "ndjson")
"""Rows of data frames, and messages."""
_HOST, _KERNELS = "host", "kernels"
_SCHEMA = pa.schema([(_HOST, pa.string()), (_KERNELS, pa.int32())])


def calls_of_tasks(plan: Plan, stages: Sequence[PlannedStage]) -> tuple[KernelCall, ...]:
    """The part of the manifest that tasks need: for routing, and for all stages."""
    own = [call for stage in stages for call in calls_of(replace(plan, root=stage.root), pushed=False)]
    reading = [call for form in _FORMATS for call in calls_to_read(form)]
    return tuple(dict.fromkeys([*own, *reading, *calls_to_write("json")]))


def warm_hosts(session: Session, calls: tuple[KernelCall, ...], tasks: int) -> dict[str, int]:
    """Compile kernels wherever one of so many tasks runs; returns how many were compiled, by host.

    RunError if the workers' Python does not have the package.
    """
    rows = session.range(0, tasks, 1, tasks).mapInArrow(partial(compiled_here, calls), "host string, kernels int")
    found: dict[str, int] = {}
    try:
        done = rows.toArrow()
    except (PySparkException, Py4JJavaError) as error:
        raise RunError(f"the workers cannot run tasks of cqels_py: {cause_of(str(error))}. {NEEDED}") from error
    for row in done.to_pylist():
        found[row[_HOST]] = found.get(row[_HOST], 0) + row[_KERNELS]
    return found


def compiled_here(calls: tuple[KernelCall, ...], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A task: compile the kernels that are not there yet, while the host's other tasks wait for it."""
    for _ in batches:
        # All rows are read, or Spark would say that the worker has ended early.
        pass
    with _alone_on_host():
        kernels = prepare(calls)
    yield pa.record_batch([[socket.gethostname()], [kernels]], schema=_SCHEMA)


@contextmanager
def _alone_on_host() -> Iterator[None]:
    path = Path(tempfile.gettempdir(), f"cqels-warm-{os.geteuid()}.lock")
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
