"""The two stages of a micro-batch, as they run in Spark's Python workers."""

from __future__ import annotations

import json
import logging
import pickle
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cqels_py.batches.elements import ElementBatch
from cqels_py.batches.rearrange import concatenate_elements
from cqels_py.batches.results import ResultBatch
from cqels_py.connectors.tabular import elements_from_arrow
from cqels_py.dictionary.dictionary import Dictionary
from cqels_py.plan.nodes import TemplateTriple
from cqels_py.runners.local import LocalRunner
from cqels_py.runners.spark.routing import Routing, Share, combine, shares
from cqels_py.runners.spark.rows import row_schema, solution_rows, triple_rows
from cqels_py.runners.spark.store import PartStore

_ROW_BITS, _TASK_BITS, _BATCH_BITS = 26, 11, 26
"""Blank nodes of different elements are different: by batch, task, and rows of a task."""

ROUTED = pa.schema([("part", pa.int32()), ("task", pa.int32()), ("share", pa.binary())])
_LOG = logging.getLogger("cqels_py.spark")


class Rendered:
    """Takes results and turns them into rows at once, as long as their terms are known. Numbers them through."""

    def __init__(
        self, dictionary: Dictionary, columns: tuple[str, ...], template: tuple[TemplateTriple, ...], part: int
    ) -> None:
        self._dictionary = dictionary
        self._columns = columns
        self._template = template
        self._part = part
        self._delivered = 0
        self._rows: list[pa.RecordBatch] = []
        self.wanted = True

    def __call__(self, batch: ResultBatch) -> None:
        first = self._delivered
        self._delivered += len(batch)
        if not self.wanted:
            return
        if not self._template:
            self._rows.append(solution_rows(batch, self._dictionary, self._columns))
            return
        numbers = pa.array([f"{self._part}x{n}" for n in range(first, self._delivered)], pa.large_string())
        self._rows.extend(triple_rows(batch, self._dictionary, self._template, numbers))

    def fetch(self) -> list[pa.RecordBatch]:
        rows, self._rows = self._rows, []
        return rows


@dataclass
class PartState:
    """All that one part keeps: a local runner with the one query, its dictionary, and what makes rows of results."""

    dictionary: Dictionary
    runner: LocalRunner
    results: Rendered

    def take(self, share_data: list[bytes], *, final: bool, in_order: bool) -> list[pa.RecordBatch]:
        """The results of one micro-batch."""
        batch = combine([Share.unpack(data) for data in share_data], self.dictionary, in_order=in_order)
        self.runner.push(batch)
        if final:
            self.runner.finish()
        return self.results.fetch()

    def replay(self, share_data: list[bytes], *, final: bool, in_order: bool) -> None:
        """Take in a micro-batch whose results are known."""
        self.results.wanted = False
        self.take(share_data, final=final, in_order=in_order)
        self.results.wanted = True


@dataclass(frozen=True, slots=True)
class Job:
    """What the workers need to know: where the state is, and who gets which triple.

    `mark` tells this state from any other one that the folder may have held. `columns`: those of the results that hold text.
    `time_predicates`: by stream. `in_order`: elements are taken as they arrive, not by their times: for one reader of all
    streams.
    """

    folder: str
    mark: str
    columns: tuple[str, ...]
    template: tuple[TemplateTriple, ...]
    time_predicates: tuple[str | None, ...]
    routing: Routing
    in_order: bool = False

    @property
    def result_schema(self) -> pa.Schema:
        return row_schema(self.columns)


def route(job: Job, batches: Iterable[pa.RecordBatch], batch: int, task: int) -> Iterator[pa.RecordBatch]:
    """Rows (stream, time, graph, subject, predicate, object) of one task: what each part gets of them."""
    scope = (batch % (1 << _BATCH_BITS) << _TASK_BITS | task % (1 << _TASK_BITS)) << _ROW_BITS
    dictionary = Dictionary(strict=True)
    yield routed(job, concatenate_elements(list(_elements(job, batches, dictionary, scope))), dictionary, task)


def routed(job: Job, elements: ElementBatch, dictionary: Dictionary, task: int) -> pa.RecordBatch:
    """A row for each part, with its share of the elements."""
    parts = shares(elements, job.routing, dictionary)
    return pa.record_batch(
        [
            pa.array(np.arange(len(parts)), pa.int32()),
            pa.array(np.full(len(parts), task), pa.int32()),
            pa.array([share.pack() for share in parts], pa.binary()),
        ],
        schema=ROUTED,
    )


def _elements(
    job: Job, batches: Iterable[pa.RecordBatch], dictionary: Dictionary, scope: int
) -> Iterator[ElementBatch]:
    rows = [batch for batch in batches if batch.num_rows]
    if not rows:
        return
    table = pa.Table.from_batches(rows)
    for stream in sorted(table.column("stream").unique().to_pylist()):
        predicate = job.time_predicates[stream]
        mine = table.filter(pc.equal(table.column("stream"), stream)).drop_columns(
            ["stream"] if predicate is None else ["stream", "time"]
        )
        yield from elements_from_arrow(mine, dictionary, stream, predicate, scope=scope)
        scope += len(mine)


_HOT: dict[tuple[str, int], tuple[str, PartState]] = {}
"""States that this worker still has, by state and part, each with the name of the input that it came about by."""
_MOST_HOT = 64


def evaluate(job: Job, rows: Iterable[pa.RecordBatch], batch: int, part: int, final: bool) -> Iterator[pa.RecordBatch]:
    """One part's results of one micro-batch. Running a batch again gives the same results, and the same state."""
    found = sorted((row["task"], row["share"]) for each in rows for row in each.to_pylist() if row["part"] == part)
    share_data = [share for _, share in found]
    store: PartStore[PartState] = PartStore(Path(job.folder), part)
    state = _state_before(store, job, batch, part)
    late = state.runner.statistics.late
    results = state.take(share_data, final=final, in_order=job.in_order)
    store.note(json.dumps({"batch": batch, **asdict(state.runner.statistics)}))
    name = store.save(batch, pickle.dumps((share_data, final), pickle.HIGHEST_PROTOCOL), state)
    _HOT[job.mark, part] = (name, state)
    if part == 0 and not job.in_order and (dropped := state.runner.statistics.late - late):
        _LOG.warning("micro-batch %d: %d late elements dropped; a greater lateness waits longer", batch, dropped)
    yield from results


def _state_before(store: PartStore[PartState], job: Job, batch: int, part: int) -> PartState:
    """The state that the batch starts from. It is this worker's no longer: what fails half-way leaves nothing behind."""
    while len(_HOT) >= _MOST_HOT:
        del _HOT[next(iter(_HOT))]
    name, hot = _HOT.pop((job.mark, part), (None, None))
    if hot is not None and name == store.newest(batch - 1):
        return hot
    state, inputs = store.load(batch)
    for data in inputs:
        share_data, final = pickle.loads(data)
        state.replay(share_data, final=final, in_order=job.in_order)
    return state
