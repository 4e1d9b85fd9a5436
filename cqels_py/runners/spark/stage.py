"""What a micro-batch goes through, as it runs in Spark's Python workers: routing, and one stage of the plan or several."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from cqels_py.batches.elements import ElementBatch
from cqels_py.batches.rearrange import concatenate_elements
from cqels_py.checkpoints.store import Attempt, PartStore, Saved, Start
from cqels_py.dictionary import Dictionary
from cqels_py.errors import DataError
from cqels_py.formats.tabular import elements_from_arrow
from cqels_py.formats.times import doubt
from cqels_py.plan.nodes import TemplateTriple
from cqels_py.runners.spark.exchange import Exchange
from cqels_py.runners.spark.hot import HotCopy
from cqels_py.runners.spark.parts import PartState, routed_rows
from cqels_py.runners.spark.routing import Routing, shares
from cqels_py.runners.spark.rows import row_schema

_ROW_BITS, _TASK_BITS, _BATCH_BITS = 26, 11, 26
"""Blank nodes of different elements are different: by batch, task, and rows of a task."""

_LOG = logging.getLogger("cqels_py.spark")


@dataclass(frozen=True, slots=True)
class Job:
    """What the workers need to know: where the state is, and who gets which triple.

    `mark` tells this state from any other one that the folder may have held. `columns`: those of the results that hold text.
    `streams`: their IRIs; `time_predicates`: by stream; `documents`: the scope of a stream's blank nodes, None: its elements have
    their own; `graphs`: are the names of its elements' graphs asked for? `exchanges`: how the changes of each stage but the last
    find the parts of the next. `in_order`: elements are taken as they arrive, not by their times, and results say the order of
    their ticks: for one reader of all streams. `skip_malformed`: rows with terms that are none are left out and counted. `run`:
    how many times a driver has taken the state up, this one included.
    """

    folder: str
    mark: str
    columns: tuple[str, ...]
    template: tuple[TemplateTriple, ...]
    streams: tuple[str, ...]
    time_predicates: tuple[str | None, ...]
    routing: Routing
    exchanges: tuple[Exchange, ...] = ()
    in_order: bool = False
    skip_malformed: bool = False
    run: int = 1
    documents: tuple[int | None, ...] = ()
    graphs: tuple[bool, ...] = ()

    @property
    def result_schema(self) -> pa.Schema:
        return row_schema(self.columns, ticks=self.in_order)

    @property
    def parts(self) -> tuple[int, ...]:
        """How many there are of each stage."""
        return (self.routing.parts, *(exchange.parts for exchange in self.exchanges))


def route(
    job: Job, batches: Iterable[pa.RecordBatch], batch: int, task: int, integers: frozenset[int] = frozenset()
) -> Iterator[pa.RecordBatch]:
    """Rows (stream, time, graph, subject, predicate, object) of one task: what each part gets of them.

    `integers`: the streams whose times came as integers or texts, not as timestamps.
    """
    scope = (batch % (1 << _BATCH_BITS) << _TASK_BITS | task % (1 << _TASK_BITS)) << _ROW_BITS
    dictionary = Dictionary(strict=True)
    skipped: list[DataError] = []
    elements = concatenate_elements(list(_elements(job, batches, dictionary, scope, skipped, integers)))
    if skipped:
        _LOG.warning("micro-batch %d: %d malformed rows skipped, the first: %s", batch, len(skipped), skipped[0])
    yield routed(job, elements, dictionary, task, len(skipped))


def routed(job: Job, elements: ElementBatch, dictionary: Dictionary, task: int, skipped: int = 0) -> pa.RecordBatch:
    """A row for each part, with its share of the elements. `skipped`: rows that were left out."""
    return routed_rows(task, [share.pack() for share in shares(elements, job.routing, dictionary, skipped)])


def _elements(
    job: Job,
    batches: Iterable[pa.RecordBatch],
    dictionary: Dictionary,
    scope: int,
    skipped: list[DataError],
    integers: frozenset[int],
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
        malformed = skipped.append if job.skip_malformed else None
        where = f"<{job.streams[stream]}>, row"
        document = job.documents[stream] if job.documents else None
        yield from elements_from_arrow(
            mine,
            dictionary,
            stream,
            predicate,
            malformed,
            scope=scope if document is None else document,
            where=where,
            per_element=document is None,
            graphs=bool(job.graphs) and job.graphs[stream],
            doubt=partial(_ask, job, stream) if stream in integers else None,
        )
        scope += len(mine)


_DOUBTED: set[tuple[str, int]] = set()
"""Streams, by mark and number, that this worker has asked about whether their times are microseconds."""


def _ask(job: Job, stream: int, time: int) -> None:
    if (job.mark, stream) not in _DOUBTED:
        _DOUBTED.add((job.mark, stream))
        _LOG.warning("<%s>: %s", job.streams[stream], doubt(time))


_HOT: dict[tuple[str, int, int], tuple[str, PartState]] = {}
"""States that this worker still has, by mark, stage and part, each with its name in the store."""
_MOST_HOT = 64


def store_of(folder: Path, stage: int, part: int) -> PartStore[PartState]:
    """Where a part's state is kept: that of a later stage in a folder of its stage."""
    return PartStore(folder / f"stage{stage}" if stage else folder, part)


def evaluate(
    job: Job,
    rows: Iterable[pa.RecordBatch],
    batch: int,
    part: int,
    final: bool,
    stage: int = 0,
    near: Path | None = None,
    execution: int = 0,
) -> Iterator[pa.RecordBatch]:
    """What one part of a stage makes of one micro-batch: results, or rows for the next stage's parts.

    Running a batch again gives the same, and the same state. `near`: a folder of this host for hot states. `execution`: Spark's
    number of the stage: attempts that share it make the same of the micro-batch, whatever rows they got (`store`).
    """
    found = sorted((row["task"], row["share"]) for each in rows for row in each.to_pylist() if row["part"] == part)
    share_data = [share for _, share in found]
    data = pickle.dumps((share_data, final), pickle.HIGHEST_PROTOCOL)
    attempt = Attempt(batch, job.run, execution)
    store = store_of(Path(job.folder), stage, part)
    copy: HotCopy[PartState] | None = None if near is None else HotCopy(near, job.mark, stage, part)
    saved: Saved | None = None
    while saved is None:
        start = store.start(attempt)
        if start.settled is not None and start.settled != data:
            data = start.settled
            share_data, final = pickle.loads(data)
        state, read_back = _state_before(store, copy, start, (job.mark, stage, part), in_order=job.in_order)
        late, had = state.statistics.late, state.rows
        state.take(share_data, final=final, in_order=job.in_order)
        results = state.results.fetch()
        rebuilt = start.counts.get("rebuilt", 0) + read_back
        load = {"rows": state.rows, "rows_of_batch": state.rows - had, "rebuilt": rebuilt}
        saved = store.save(attempt, start, data, state, {"batch": batch, **load, **asdict(state.statistics)})
    if not saved.late:
        _keep_hot((job.mark, stage, part), saved.name, state)
        # Where all micro-batches go to one worker, none needs a copy; the first one is always read.
        if copy is not None and rebuilt > 1:
            copy.leave(saved.name, state)
    if part == 0 and not job.in_order and (dropped := state.statistics.late - late):
        _LOG.warning(
            "micro-batch %d: late elements were dropped, %d in number; a greater lateness waits longer", batch, dropped
        )
    yield from results


def _keep_hot(key: tuple[str, int, int], name: str, state: PartState) -> None:
    while len(_HOT) >= _MOST_HOT:
        del _HOT[next(iter(_HOT))]
    _HOT[key] = name, state


def _state_before(
    store: PartStore[PartState],
    copy: HotCopy[PartState] | None,
    start: Start,
    key: tuple[str, int, int],
    *,
    in_order: bool,
) -> tuple[PartState, bool]:
    """The state that the batch starts from, and whether it was read back.

    It is this worker's no longer: what fails half-way leaves nothing behind. A late attempt leaves another one's state alone.
    """
    name, hot = _HOT.get(key, (None, None))
    if name == start.name or not start.late:
        _HOT.pop(key, None)
    if hot is not None and name == start.name:
        return hot, False
    if copy is not None and (taken := copy.take(start.name)) is not None:
        return taken, False
    state, inputs = store.load(start)
    for data in inputs:
        share_data, final = pickle.loads(data)
        _replay(state, share_data, final=final, in_order=in_order)
    return state, True


def _replay(state: PartState, share_data: list[bytes], *, final: bool, in_order: bool) -> None:
    """Take in a micro-batch whose results are known."""
    state.results.wanted = False
    state.take(share_data, final=final, in_order=in_order)
    state.results.fetch()
    state.results.wanted = True
