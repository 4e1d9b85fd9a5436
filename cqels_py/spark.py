"""Continuous queries inside Spark Structured Streaming jobs.

import cqels_py.spark
answers = cqels_py.spark.continuous({"http://ex.org/stream": frame}, query_text, state="/shared/folder", partitions=8)
answers.writeStream.option("checkpointLocation", …).foreachBatch(…).start()
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from cqels_py.dataflow import Dataflow
from cqels_py.dataflow.ownership import Ownership
from cqels_py.dictionary.dictionary import Dictionary
from cqels_py.engine import compile_query
from cqels_py.errors import UnsupportedQuery, UsageError
from cqels_py.plan.nodes import Plan
from cqels_py.planner.partitioning import partition_variable
from cqels_py.runners.local import LocalRunner, RunningQuery
from cqels_py.runners.spark.routing import routing_of
from cqels_py.runners.spark.stage import Collected, Job, PartState
from cqels_py.runners.spark.store import PartStore
from cqels_py.static_sources import StaticSource, load_static_data

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FORMAT = 1
"""Raised when the form of the state changes: an older one is then refused."""


def continuous(
    frames: Mapping[str, DataFrame],
    query: str,
    *,
    state: str | Path,
    partitions: int = 2,
    static: Iterable[StaticSource] | StaticSource = (),
    static_graphs: Mapping[str, StaticSource] | None = None,
    changelog: bool = False,
    lateness: int = 0,
) -> DataFrame:
    """The results of a query over streaming data frames, as a data frame: `time`, `sign`, and each variable as N-Triples text.

    `frames`: for each stream's IRI rows of `time` (timestamp, integer microseconds or ISO 8601), `subject`, `predicate`,
    `object` (N-Triples syntax) and perhaps `graph`; rows of one task with the same time and graph, one after another, are an
    element, and an element lies in one micro-batch. Within a micro-batch elements are taken in the order of their times.
    `state`: a folder that all workers reach, of this query alone, kept beside the checkpoint: a query that is restarted goes on
    from there. `partitions`: parts of the state, if the query can be divided (`explain` says by which variable).
    `lateness`: microseconds that elements may be late.
    """
    from cqels_py.runners.spark.pipeline import transform

    job, plan = prepare(
        query,
        state=state,
        partitions=partitions,
        static=static,
        static_graphs=static_graphs,
        changelog=changelog,
        lateness=lateness,
    )
    return transform(job, numbered(frames, plan))


def numbered(frames: Mapping[str, DataFrame], plan: Plan) -> dict[int, DataFrame]:
    """The data frames by the streams' numbers in the plan. UsageError for one that is missing, or not read."""
    for iri in frames:
        if iri not in plan.streams:
            raise UsageError(f"the query does not read the stream <{iri}>; it reads {_listed(plan.streams)}")
    for iri in plan.streams:
        if iri not in frames:
            raise UsageError(f"the query reads the stream <{iri}>: give a data frame for it")
    return {plan.streams.index(iri): frame for iri, frame in frames.items()}


def prepare(
    query: str,
    *,
    state: str | Path,
    partitions: int,
    source: str | None = None,
    static: Iterable[StaticSource] | StaticSource = (),
    static_graphs: Mapping[str, StaticSource] | None = None,
    changelog: bool = False,
    lateness: int = 0,
) -> tuple[Job, Plan]:
    """Compile a query, and lay out the state of its parts unless it is there from an earlier run."""
    if partitions < 1:
        raise UsageError(f"partitions is 1 or more, not {partitions}")
    plan = compile_query(query, source=source, changelog=changelog)
    if plan.form not in ("SELECT", "ASK"):
        raise UnsupportedQuery(f"{plan.form} is not supported on Spark yet: select the variables of its template")
    if any(plan.time_predicates):
        raise UnsupportedQuery("on Spark the time of an element is the column `time`: leave the `@` clause out")
    dictionary = Dictionary(strict=True)
    data = load_static_data(plan, static, static_graphs or {}, dictionary)
    variable = partition_variable(plan)
    folder = Path(state).absolute()
    parts = partitions if variable is not None else 1
    _check_same_query(folder, f"{query.strip()} changelog: {changelog}", parts, lateness)
    routing = routing_of(plan, variable, parts, dictionary)
    for part in range(parts):
        store: PartStore[PartState] = PartStore(folder, part)
        ownership = None if variable is None else Ownership(variable, part, parts)
        dataflow = Dataflow(plan, dictionary, data, ownership=ownership)
        runner, results = LocalRunner(dictionary, lateness), Collected()
        runner.queries = [RunningQuery(dataflow, list(range(len(plan.streams))), results)]
        store.begin(PartState(dictionary, runner, results))
    return Job(str(folder), plan.variables, routing), plan


def _check_same_query(folder: Path, query: str, parts: int, lateness: int) -> None:
    """A folder belongs to one query, divided in one way."""
    mark = {
        "format": _FORMAT,
        "query": hashlib.sha256(query.encode()).hexdigest(),
        "partitions": parts,
        "lateness": lateness,
    }
    path = folder / "query.json"
    if path.exists():
        found = json.loads(path.read_text())
        changed = [name for name, value in mark.items() if found.get(name) != value]
        if changed:
            raise UsageError(
                f"the state in {folder} was made with another {changed[0]}: give the query a new folder (and a new checkpoint)"
            )
        return
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"{folder} is not empty, and holds no state of a query")
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(mark))


def _listed(streams: Iterable[str]) -> str:
    return ", ".join(f"<{iri}>" for iri in streams)
