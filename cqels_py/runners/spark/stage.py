"""The two stages of a micro-batch, as they run in Spark's Python workers."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cqels_py.batches.elements import ElementBatch
from cqels_py.batches.rearrange import concatenate_elements
from cqels_py.batches.results import ResultBatch
from cqels_py.connectors.tabular import elements_from_arrow
from cqels_py.dictionary.dictionary import Dictionary
from cqels_py.runners.local import LocalRunner
from cqels_py.runners.spark.routing import Routing, Share, combine, shares
from cqels_py.runners.spark.store import PartStore

_ROW_BITS, _TASK_BITS, _BATCH_BITS = 26, 11, 26
"""Blank nodes of different elements are different: by batch, task, and rows of a task."""

ROUTED = pa.schema([("part", pa.int32()), ("task", pa.int32()), ("share", pa.binary())])


class Collected:
    """Takes results until they are fetched."""

    def __init__(self) -> None:
        self._batches: list[ResultBatch] = []

    def __call__(self, batch: ResultBatch) -> None:
        self._batches.append(batch)

    def fetch(self) -> list[ResultBatch]:
        batches, self._batches = self._batches, []
        return batches


@dataclass
class PartState:
    """All that one part keeps: a local runner with the one query, its dictionary, and where its results are put."""

    dictionary: Dictionary
    runner: LocalRunner
    results: Collected

    def take(self, share_data: list[bytes], final: bool) -> list[ResultBatch]:
        """The results of one micro-batch."""
        batch = combine([Share.unpack(data) for data in share_data], self.dictionary)
        self.runner.push(batch)
        if final:
            self.runner.finish()
        return self.results.fetch()


@dataclass(frozen=True, slots=True)
class Job:
    """What the workers need to know: where the state is, and who gets which triple."""

    folder: str
    variables: tuple[str, ...]
    routing: Routing

    @property
    def result_schema(self) -> pa.Schema:
        columns = [(name, pa.string()) for name in self.variables]
        return pa.schema([("time", pa.timestamp("us", tz="UTC")), ("sign", pa.int8()), *columns])


def route(job: Job, batches: Iterable[pa.RecordBatch], batch: int, task: int) -> Iterator[pa.RecordBatch]:
    """Rows (stream, time, graph, subject, predicate, object) of one task: what each part gets of them."""
    scope = (batch % (1 << _BATCH_BITS) << _TASK_BITS | task % (1 << _TASK_BITS)) << _ROW_BITS
    dictionary = Dictionary(strict=True)
    parts = shares(concatenate_elements(list(_elements(batches, dictionary, scope))), job.routing, dictionary)
    yield pa.record_batch(
        [
            pa.array(np.arange(len(parts)), pa.int32()),
            pa.array(np.full(len(parts), task), pa.int32()),
            pa.array([share.pack() for share in parts], pa.binary()),
        ],
        schema=ROUTED,
    )


def _elements(batches: Iterable[pa.RecordBatch], dictionary: Dictionary, scope: int) -> Iterator[ElementBatch]:
    rows = [batch for batch in batches if batch.num_rows]
    if not rows:
        return
    table = pa.Table.from_batches(rows)
    for stream in table.column("stream").unique().to_pylist():
        mine = table.filter(pc.equal(table.column("stream"), stream)).drop_columns(["stream"])
        yield from elements_from_arrow(mine, dictionary, stream, scope=scope)
        scope += len(mine)


_HOT: dict[tuple[str, int], tuple[str | None, PartState]] = {}
"""States that this worker still has, each with the name of the input that it came about by."""


def evaluate(job: Job, rows: Iterable[pa.RecordBatch], batch: int, part: int, final: bool) -> Iterator[pa.RecordBatch]:
    """One part's results of one micro-batch. Running a batch again gives the same results, and the same state."""
    routed = sorted((row["task"], row["share"]) for each in rows for row in each.to_pylist() if row["part"] == part)
    store: PartStore[PartState] = PartStore(Path(job.folder), part)
    state = _state_before(store, job.folder, batch, part)
    data = pickle.dumps(([share for _, share in routed], final), pickle.HIGHEST_PROTOCOL)
    _HOT.pop((job.folder, part), None)
    results = state.take([share for _, share in routed], final)
    tables = [_table(job, result, state.dictionary) for result in results]
    _HOT[job.folder, part] = (store.save(batch, data, state), state)
    yield from tables


def _state_before(store: PartStore[PartState], folder: str, batch: int, part: int) -> PartState:
    name, hot = _HOT.get((folder, part), (None, None))
    if hot is not None and name is not None and name == store.newest(batch - 1):
        return hot
    state, inputs = store.load(batch)
    for data in inputs:
        share_data, final = pickle.loads(data)
        state.take(share_data, final)
    return state


def _table(job: Job, result: ResultBatch, dictionary: Dictionary) -> pa.RecordBatch:
    columns = [pa.array(dictionary.decode(column), pa.string()) for column in result.columns]
    time = pa.array(result.time, pa.timestamp("us", tz="UTC"))
    return pa.record_batch([time, pa.array(result.sign, pa.int8()), *columns], schema=job.result_schema)
