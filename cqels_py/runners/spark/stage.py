"""The steps of a micro-batch in Spark's Python workers: routing, and one stage of the plan or several."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cqels_py.batches.elements import ElementBatch
from cqels_py.batches.rearrange import concatenate_elements
from cqels_py.checkpoints.locations import Location
from cqels_py.checkpoints.state_file import from_bytes
from cqels_py.checkpoints.store import Attempt, PartStore, Reached, Saved, SetBack, Start
from cqels_py.dictionary import Dictionary
from cqels_py.errors import DataError, RunError
from cqels_py.formats.contexts import Contexts
from cqels_py.formats.scopes import ELEMENT, SOURCE, scope_of_document
from cqels_py.formats.tabular import elements_from_arrow
from cqels_py.formats.times import FAR, unit_question
from cqels_py.plan.nodes import TemplateTriple
from cqels_py.runners.spark.blueprint import blueprint_of
from cqels_py.runners.spark.exchange import Exchange
from cqels_py.runners.spark.files import elements_of, is_parquet, rows_of
from cqels_py.runners.spark.frequent import Sampled, noted, noted_values
from cqels_py.runners.spark.hot import HotCopy, HotFolders
from cqels_py.runners.spark.metrics import BatchCounts, counted
from cqels_py.runners.spark.packing import packed_list, unpacked_list
from cqels_py.runners.spark.parts import PartState, ReadingState, routed_rows
from cqels_py.runners.spark.routing import Promise, Routing, slices
from cqels_py.runners.spark.watermarks import LatestTimes, Waiting
from cqels_py.sources.files import handling
from cqels_py.sources.protocol import Opening

_ROW_BITS, _TASK_BITS, _BATCH_BITS = 26, 11, 26
"""Scopes of blank nodes are made of batch, task, and row of a task, so that those of different elements differ."""

_FINAL = "final"
_LOG = logging.getLogger("cqels_py.spark")


@dataclass(frozen=True, slots=True)
class Job:
    """The description of a query for the workers: where the state is, and how triples are partitioned.

    `mark` distinguishes this state from any other one that the folder may have held. `columns`: those of the results that hold
    text. `streams`: their IRIs; `time_predicates`: by stream; `documents`: the scope of a stream's blank nodes, None: that of its
    elements; `graphs`: are the names of its elements' graphs needed? `exchanges`: how the changes of each stage but the last are
    partitioned for the next. `in_order`: elements are processed in order of arrival, not by their times, and results include the
    order of their ticks: for a single reader of all streams. `skip_malformed`: rows with malformed terms are left out and counted.
    `run`: how many times a driver has opened the state, this one included. `folder`: a path or a URI; `blueprint`: packed, from
    which states are made. `tasks`: the most of a stage, each of which evaluates several parts where there are more; None: one a
    part. `waiting`: how elements wait for others, None: they do not. `by_file`: where tasks read files, a label denotes one node in
    its file, not in its element. `contexts`: those that JSON-LD in files may name. `retained`: so many micro-batches before the last
    one can be gone back to.
    """

    folder: str
    mark: str
    columns: tuple[str, ...]
    template: tuple[TemplateTriple, ...]
    streams: tuple[str, ...]
    time_predicates: tuple[str | None, ...]
    routing: Routing
    blueprint: bytes = b""
    exchanges: tuple[Exchange, ...] = ()
    in_order: bool = False
    skip_malformed: bool = False
    run: int = 1
    documents: tuple[int | None, ...] = ()
    graphs: tuple[bool, ...] = ()
    tasks: int | None = None
    waiting: Waiting | None = None
    by_file: bool = False
    retained: int = 0
    contexts: Contexts = field(default_factory=dict)

    @property
    def parts(self) -> tuple[int, ...]:
        """The number of partitions of each stage."""
        return (self.routing.parts, *(exchange.parts for exchange in self.exchanges))


def route(
    job: Job,
    batches: Iterable[pa.RecordBatch],
    batch: int,
    task: int,
    integers: frozenset[int] = frozenset(),
    of_files: frozenset[int] = frozenset(),
    ended: frozenset[int] = frozenset(),
) -> Iterator[pa.RecordBatch]:
    """The input of each partition from the rows (stream, time, graph, subject, predicate, object) of one task.

    `integers`: the streams whose times came as integers or texts, not as timestamps; `of_files`: those whose rows have the URI of a
    file instead of a graph's name, which is read here; `ended`: those of which no more rows will come, so that others do not wait
    for them.
    """
    scope = (batch % (1 << _BATCH_BITS) << _TASK_BITS | task % (1 << _TASK_BITS)) << _ROW_BITS
    dictionary = Dictionary(strict=True)
    skipped: list[DataError] = []
    latest: dict[tuple[int, int], int] = {}
    rows, promise, now = _without_clock(batches, latest)
    reader = _Reader(job, dictionary, skipped, integers | of_files)
    read = []
    for part in _parts(rows, of_files):
        for partition, elements in reader.elements(part, scope):
            if len(elements):
                last = int(elements.time.max())
                latest[part.stream, partition] = max(latest.get((part.stream, partition), last), last)
            read.append(elements)
        scope += len(part.rows)
    elements = concatenate_elements(read)
    latest |= {(stream, 0): FAR for stream in ended}
    reached = None if job.waiting is None else LatestTimes.of(latest, now)
    if skipped:
        _LOG.warning("micro-batch %d: %d malformed rows skipped, the first: %s", batch, len(skipped), skipped[0])
    yield from routed(job, elements, dictionary, task, len(skipped), promise, reached)


def routed(
    job: Job,
    elements: ElementBatch,
    dictionary: Dictionary,
    task: int,
    skipped: int = 0,
    promise: Promise | None = None,
    reached: LatestTimes | None = None,
) -> list[pa.RecordBatch]:
    """A row for each partition, with its input from the elements. `skipped`: malformed rows that were left out; `reached`: how far
    the elements go."""
    found = slices(elements, job.routing, dictionary, skipped, promise, reached)
    return routed_rows(task, [each.pack() for each in found])


CLOCK, TIME = -1, -2
"""The streams of rows that only have a time, before which no element will come: that of a clock, with which time begins; or that of
another query or stream."""
_TOLD = -3
PARTITION, PLANNED = "partition", "planned"
"""Where streams wait for each other, the columns with the partition of a row, and when Spark planned the micro-batch."""


def told_of(stream: int) -> int:
    """The number of rows that say how far the query has come whose results are this stream, where others wait for it."""
    return _TOLD - stream


def _without_clock(
    batches: Iterable[pa.RecordBatch], latest: dict[tuple[int, int], int]
) -> tuple[list[pa.RecordBatch], Promise | None, int | None]:
    """The rows of streams, the promises of the others, and when Spark planned the micro-batch.

    `latest`: gets how far queries have come, by stream and partition.
    """
    rows: list[pa.RecordBatch] = []
    told: list[Promise | None] = []
    now: int | None = None
    for batch in batches:
        if batch.num_rows and PLANNED in batch.schema.names:
            now = int(batch.column(PLANNED)[0].as_py())
        for stream in (CLOCK, TIME):
            is_time = pc.equal(batch.column("stream"), stream)
            if batch.num_rows and pc.any(is_time).as_py():
                until = pc.max(batch.filter(is_time).column("time").cast(pa.int64())).as_py()
                if until is not None:
                    # A row of `beside` whose time is null is malformed for the query that reads it.
                    told.append(Promise(int(until), stream == CLOCK))
                batch = batch.filter(pc.invert(is_time))
        is_told = pc.less_equal(batch.column("stream"), _TOLD)
        if pc.any(is_told).as_py():
            tells = batch.filter(is_told)
            times = tells.column("time").cast(pa.int64())
            for stream, time in zip(tells.column("stream").to_pylist(), times.to_pylist(), strict=True):
                key = _TOLD - stream, 0
                latest[key] = max(latest.get(key, time), time)
            batch = batch.filter(pc.invert(is_told))
        rows.append(batch)
    return rows, Promise.of_all(told), now


@dataclass(frozen=True, slots=True)
class _Part:
    """Rows of a stream, or a file of it by its URI."""

    stream: int
    rows: pa.Table
    file: str | None = None


def _parts(batches: Iterable[pa.RecordBatch], of_files: frozenset[int]) -> Iterator[_Part]:
    """The rows of each stream, or each of its files."""
    rows = [batch for batch in batches if batch.num_rows]
    if not rows:
        return
    table = pa.Table.from_batches(rows)
    streams = sorted(table.column("stream").unique().to_pylist())
    for stream in streams:
        mine = table if len(streams) == 1 else table.filter(pc.equal(table.column("stream"), stream))
        if stream not in of_files:
            yield _Part(stream, mine)
            continue
        for uri in mine.column("graph").to_pylist():
            parquet = is_parquet(uri)
            yield _Part(stream, rows_of(uri) if parquet else mine.slice(0, 0), uri)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Makes elements of the rows and files of a task. `skipped` gets malformed ones, if they are skipped; `integers`: the streams
    whose times may be integers in another unit."""

    job: Job
    dictionary: Dictionary
    skipped: list[DataError]
    integers: frozenset[int]

    def elements(self, part: _Part, scope: int) -> Iterator[tuple[int, ElementBatch]]:
        """With the numbers of their partitions. `scope`: that of the first element's blank nodes."""
        job, stream = self.job, part.stream
        document = job.documents[stream] if job.documents else None
        per_element = document is None and not (job.by_file and part.file is not None)
        if part.file is not None:
            scope = scope_of_document(part.file) >> 1
        scope = scope if document is None else document
        if part.file is None or is_parquet(part.file):
            yield from self._of_rows(part, scope, per_element=per_element)
            return
        for elements in elements_of(part.file, self._opening(stream, per_element=per_element), scope):
            yield 0, elements

    def _opening(self, stream: int, *, per_element: bool) -> Opening:
        job = self.job
        return Opening(
            stream=job.streams[stream],
            number=stream,
            dictionary=self.dictionary,
            time_predicate=job.time_predicates[stream],
            on_error="skip" if job.skip_malformed else "stop",
            report=self.skipped.append,
            blank_nodes=ELEMENT if per_element else SOURCE,
            graphs=bool(job.graphs) and job.graphs[stream],
            contexts=job.contexts,
            on_questionable_time=partial(_ask, job, stream),
        )

    def _of_rows(self, part: _Part, scope: int, *, per_element: bool) -> Iterator[tuple[int, ElementBatch]]:
        job, stream, rows = self.job, part.stream, part.rows
        unused = {"stream", PARTITION, PLANNED, *([] if job.time_predicates[stream] is None else ["time"])}
        where = f"<{job.streams[stream]}>{'' if part.file is None else f' in {part.file}'}, row"
        opening = self._opening(stream, per_element=per_element)
        if stream not in self.integers:
            opening = replace(opening, on_questionable_time=None)
        malformed = handling(opening.on_error, opening.report)
        for partition, places in _partitions(rows):
            mine = (rows if places is None else rows.take(places)).drop_columns([*(unused & {*rows.column_names})])
            numbers = None if places is None else places + 1
            reading = opening.reading(where, scope=scope)
            for elements in elements_from_arrow(mine, self.dictionary, reading, malformed, numbers=numbers):
                yield partition, elements
            if per_element:
                scope += len(mine)


def _partitions(rows: pa.Table) -> Iterator[tuple[int, npt.NDArray[np.int64] | None]]:
    """The partitions of a stream's rows, each with the places of its own; None: all of them."""
    numbers = rows.column(PARTITION).to_numpy() if PARTITION in rows.column_names else np.zeros(1, np.int64)
    found = np.unique(numbers).tolist()
    for number in found:
        yield number, None if len(found) == 1 else np.flatnonzero(numbers == number)


_ASKED: set[tuple[str, int]] = set()
"""Streams, by mark and number, for which this worker has warned that their times may not be microseconds."""


def _ask(job: Job, stream: int, time: int) -> None:
    if (job.mark, stream) not in _ASKED:
        _ASKED.add((job.mark, stream))
        _LOG.warning("<%s>: %s", job.streams[stream], unit_question(time))


VALUES = "values"
"""The note on frequent values among the counts of a part."""

BEGINNING = "beginning"
"""The object with the static data and its terms, which is in the query's folder."""


class _Hot(NamedTuple):
    """A state, its name in its store, and the blueprint of which it was made."""

    name: str
    state: PartState
    blueprint: bytes


_HOT: dict[tuple[str, int, int], _Hot] = {}
"""States in this worker's memory, by mark, stage and part."""
_MOST_HOT = 64


def store_of(folder: str, stage: int, part: int) -> PartStore:
    """The store of a partition's state: that of a later stage is in a folder of its stage."""
    place = Location(folder).below(*([f"stage{stage}"] if stage else []), str(part))
    return PartStore(place.open(), str(place))


def parts_of(rows: Sequence[pa.RecordBatch], parts: int, tasks: int) -> range:
    """The partitions of a stage whose input these rows of one of its tasks are; none where the micro-batch has no rows at all.

    Spark's number of a task does not say it: `coalesce` and `union` of results change that. But each task before sends a row to
    every partition. RunError if the rows are those of another task.
    """
    found = sorted({part for each in rows for part in each.column("part").unique().to_pylist() if part >= 0})
    mine = range(found[0], parts, tasks) if found else range(0)
    if found != [*mine]:
        raise RunError(
            f"a task has rows for the partitions {found}, and not for {[*mine]}: rows have been lost on the way"
        )
    return mine


def pass_over(
    job: Job,
    batch: int,
    final: bool,
    stage: int,
    near: HotFolders | None = None,
    execution: int = 0,
    number: int = 0,
) -> None:
    """A micro-batch without any row, as of data frames without partitions: each task of the stage says so to all parts.

    None of the tasks knows which parts are its own. The arguments are those of `evaluate`. RunError if there are results
    nevertheless, as each task would deliver them.
    """
    last = job.parts[stage] - 1
    if store_of(job.folder, stage, last).start(Attempt(batch, job.run, execution, number)).settled is not None:
        # Another task was faster: all begin with the first part.
        return
    for part in range(last + 1):
        made = list(evaluate(job, [], batch, part, final, stage, near, execution, number))
        if stage == len(job.exchanges) and any(each.num_rows for each in made):
            raise RunError(
                f"micro-batch {batch} has no rows, and yet results: its data frames give other rows when they are read again"
            )


def evaluate(
    job: Job,
    rows: Iterable[pa.RecordBatch],
    batch: int,
    part: int,
    final: bool,
    stage: int = 0,
    near: HotFolders | None = None,
    execution: int = 0,
    number: int = 0,
    tell: Callable[[BatchCounts], None] | None = None,
) -> Iterator[pa.RecordBatch]:
    """The output of one partition of a stage for one micro-batch: results, or rows for the next stage's partitions.

    Running a batch again gives the same output and the same state. `near`: folders of this host for hot states.
    `execution`: Spark's number of the stage: attempts that share it have the same output for the micro-batch, whatever
    rows they got (checkpoints/store.py). `number`: Spark's of the attempt. `tell`: gets the part's counts of the micro-batch.
    """
    mine = [each.filter(pc.equal(each.column("part"), part)) for each in rows]
    sent = sorted((row["task"], row["data"]) for each in mine for row in each.to_pylist())
    slice_data = [packed for _, packed in sent]
    data = packed_list(slice_data, {_FINAL: final})
    attempt = Attempt(batch, job.run, execution, number)
    store = store_of(job.folder, stage, part)
    copy = None if near is None else HotCopy(near, job.mark, stage, part)
    saved: Saved | None = None
    while saved is None:
        start = _start(job, store, attempt)
        if start.settled is not None and start.settled != data:
            data = start.settled
            slice_data, final = _input(data)
        found = _state_before(job, store, copy, start, (job.mark, stage, part))
        state = found.state
        before, had = state.statistics, state.rows
        state.take(slice_data, final=final, in_order=job.in_order)
        results = state.results.fetch()
        rebuilt = start.counts.get("rebuilt", 0) + found.read_back
        caught_up = start.counts.get("caught_up", 0) + found.caught_up
        load = {"rows": state.rows, "rows_of_batch": state.rows - had, "rebuilt": rebuilt, "caught_up": caught_up}
        note, frequent = noted(start.counts.get(VALUES, {}), _sampled_by(state), job.routing.cells)
        counts = {"batch": batch, **load, **asdict(state.statistics), **({VALUES: note} if stage == part == 0 else {})}
        saved = store.save(attempt, start, data, state.state, counts, job.retained)
    if not saved.late:
        _keep_hot((job.mark, stage, part), _Hot(saved.name, state, job.blueprint))
        # If all micro-batches go to one worker, no copy is needed; the first state is always restored.
        if copy is not None and rebuilt + caught_up > 1:
            copy.leave(saved.name, state.state())
    if part == 0 and not job.in_order and (dropped := state.statistics.late - before.late):
        _LOG.warning("micro-batch %d: %d late elements were dropped; a greater lateness waits longer", batch, dropped)
    if stage == part == 0 and not job.in_order:
        for variable, values in frequent.items():
            shares = ", ".join(f"{text} {share:.0%}" for text, share in values.items())
            _LOG.warning("?%s has values in very many triples, which heavy= can divide: %s", variable, shares)
    if tell is not None:
        is_last = stage == len(job.exchanges)
        rows_of_batch = load["rows_of_batch"]
        tell(
            counted(
                before,
                state.statistics,
                part=part,
                is_first=stage == 0,
                is_last=is_last,
                rows=rows_of_batch,
                read_back=found.read_back,
                caught_up=found.caught_up,
                watermark=state.watermark if part == 0 else None,
                heavy=noted_values(note) if stage == part == 0 else {},
            )
        )
    yield from results


def _start(job: Job, store: PartStore, attempt: Attempt) -> Start:
    """The state from which an attempt starts. SetBack says which micro-batches all parts can go on with."""
    try:
        return store.start(attempt)
    except SetBack as error:
        parts = [(stage, part) for stage, count in enumerate(job.parts) for part in range(count)]
        common = set.intersection(*(store_of(job.folder, *each).reachable() for each in parts))
        ways = (
            f"All parts of the state can go on with {min(common)} to {max(common)}"
            if common
            else "There is no way back"
        )
        raise SetBack(
            f"{error}. {ways}: leave those before {min(common, default=0)} in Spark's checkpoint, or begin again"
        ) from None


def check_ended(job: Job, stage: int, tasks: int, task: int, batch: int) -> None:
    """RunError if parts of the last stage have left out a micro-batch, as a sink has not read their results.

    A part itself finds that its input is missing. But Spark would never ask for a part if the sink always takes the first rows: then
    tasks begin with the first one, and a task evaluates its parts in turn. So each looks after its own last part, and the first
    task after the last task.
    """
    parts = job.parts[stage]
    last_of_mine = task + (parts - 1 - task) // tasks * tasks
    others = {last_of_mine, *([tasks - 1] if task == 0 else [])} - {task}
    for part in sorted(others):
        store_of(job.folder, stage, part).check_ended(batch)


def _sampled_by(state: PartState) -> list[Sampled]:
    """The values of the triples of the last micro-batch, if the part was told."""
    return state.sampled if isinstance(state, ReadingState) else []


def _keep_hot(key: tuple[str, int, int], hot: _Hot) -> None:
    while len(_HOT) >= _MOST_HOT:
        del _HOT[next(iter(_HOT))]
    _HOT[key] = hot


@dataclass(frozen=True, slots=True)
class _Found:
    """The state from which a micro-batch starts. `read_back`: it was restored from its store; `caught_up`: this host had an older
    one, to which only the inputs since were applied."""

    state: PartState
    read_back: bool = False
    caught_up: bool = False


def _state_before(job: Job, store: PartStore, copy: HotCopy | None, start: Start, key: tuple[str, int, int]) -> _Found:
    """The state from which the batch starts.

    The state is removed from this worker's memory, so that a failure leaves no half-processed state behind. A late
    attempt does not touch the state of another one. Nor is one taken that was made of another blueprint, when the query had other
    options for its results.
    """
    hot = _HOT.get(key)
    if hot is not None and (hot.name == start.name or not start.late):
        del _HOT[key]
    else:
        hot = None
    if hot is not None and hot.blueprint != job.blueprint:
        hot = None
    name = None if hot is None else hot.name
    if hot is not None and name == start.name:
        return _Found(hot.state)
    left = None if copy is None else copy.latest()
    near = {each for each in (name, None if left is None else left.name) if each is not None}
    loaded = store.load(start, near)
    if hot is not None and loaded.near == name:
        state = hot.state
    else:
        _, stage, part = key
        beginning = from_bytes(Location(job.folder).open().get(BEGINNING))
        saved = left.state if left is not None and loaded.near is not None else loaded.state
        state = blueprint_of(job.blueprint).make(stage, part, beginning, saved)
    for data in loaded.inputs:
        slice_data, final = _input(data)
        _replay(state, slice_data, final=final, in_order=job.in_order)
    return _Found(state, loaded.near is None, loaded.near is not None and len(loaded.inputs) > 0)


def state_after(job: Job, stage: int, part: int, batch: int) -> tuple[Reached, PartState]:
    """The state of a part after a micro-batch that has ended, and its id."""
    store = store_of(job.folder, stage, part)
    start = store.after(batch)
    return start.reached, _state_before(job, store, None, start, (job.mark, stage, part)).state


def _input(data: bytes) -> tuple[list[bytes], bool]:
    """The rows that the tasks before have sent for a micro-batch, and whether it is the last one."""
    slice_data, plain = unpacked_list(data)
    return slice_data, bool(plain[_FINAL])


def _replay(state: PartState, slice_data: list[bytes], *, final: bool, in_order: bool) -> None:
    """Process a micro-batch whose results are known."""
    state.results.wanted = False
    state.take(slice_data, final=final, in_order=in_order)
    state.results.fetch()
    state.results.wanted = True
