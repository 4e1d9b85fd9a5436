"""The state of a stage's partitions between micro-batches, and how they process a micro-batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import ClassVar, Protocol, cast

import numpy as np
import pyarrow as pa

from cqels_py.batches.elements import ElementBatch, Ids
from cqels_py.batches.results import ResultBatch
from cqels_py.checkpoints.state_file import State
from cqels_py.dataflow import Dataflow
from cqels_py.dataflow.saved_state import dictionary_state
from cqels_py.dictionary import Dictionary
from cqels_py.errors import RunError
from cqels_py.formats.construction import Construction
from cqels_py.operators.r2s.changelog_output import ChangelogOutput
from cqels_py.plan.nodes import TemplateTriple
from cqels_py.runners.local import LocalRunner
from cqels_py.runners.spark.exchange import Changes, Exchange, received, sent
from cqels_py.runners.spark.frequent import Sampled
from cqels_py.runners.spark.net_changes import NetChanges
from cqels_py.runners.spark.own_rows import OwnRows
from cqels_py.runners.spark.routing import PartitionSlice, Promise, combine
from cqels_py.runners.spark.rows import GRAPH_COLUMNS, cuts, graph_rows, solution_rows, triple_rows
from cqels_py.runners.spark.watermarks import BEFORE_ALL, Watermarks
from cqels_py.runners.statistics import Counters, Statistics
from cqels_py.state.named_values import NamedValues, restore, values_of

_COLLECT_FROM = 100_000
_TERMS, _PART, _OTHERS, _DATAFLOW, _RUNNER = "terms", "part", "others", "dataflow/", "runner/"
_WATERMARKS = "watermarks"
ROUTED = pa.schema([("part", pa.int32()), ("task", pa.int32()), ("data", pa.binary())])
"""Rows for the partitions of a stage, from a task of the one before."""


_MOST_BYTES = (1 << 31) - (1 << 16)
"""Java's arrays of bytes, in which Spark has each value, are shorter than 2 GB."""


def routed_rows(task: int, packed: Sequence[bytes]) -> list[pa.RecordBatch]:
    """A row for each partition, with its input from one task, in batches of about BYTES.

    RunError for an input that is longer than a value of a row may be.
    """
    sizes = np.array([len(each) for each in packed])
    if (longest := int(sizes.max())) > _MOST_BYTES:
        raise RunError(
            f"in a micro-batch a task has {longest / 1e9:.1f} GB for one partition, and Spark sends less than 2: let micro-batches "
            "have fewer rows (maxFilesPerTrigger or maxOffsetsPerTrigger of the source, files_a_batch, --batch), or the query have "
            "more partitions"
        )
    found = []
    for first, last in pairwise([0, *cuts(sizes), len(packed)]):
        columns = [
            pa.array(np.arange(first, last), pa.int32()),
            pa.array(np.full(last - first, task), pa.int32()),
            pa.array(packed[first:last], pa.binary()),
        ]
        found.append(pa.record_batch(columns, schema=ROUTED))
    return found


class Rendered:
    """Collects results as rows, at once, while their terms are known. Numbers them consecutively.

    `ticks`: rows include the order of ticks of equal time. `own`: those of the part; others are left out. `net`: they are
    rendered when they are fetched, if they do not cancel each other.
    """

    def __init__(
        self,
        dictionary: Dictionary,
        columns: tuple[str, ...],
        template: tuple[TemplateTriple, ...],
        part: int,
        *,
        ticks: bool = False,
        own: OwnRows | None = None,
        net: bool = False,
    ) -> None:
        self._dictionary = dictionary
        self._columns = columns
        self._template = template
        self._part = part
        self.delivered = 0
        self._rows: list[pa.RecordBatch] = []
        self._step: int | None = 0 if ticks else None
        self._own = own
        self.left_out = 0
        self.wanted = True
        self._changes = NetChanges() if net else None
        if self._changes is not None:
            dictionary.hold(self._changes.live_ids)

    def deliver(self, batch: ResultBatch) -> None:
        if self._own is not None:
            made = len(batch)
            batch = self._own.results(batch)
            self.left_out += made - len(batch)
        if self._changes is None:
            self._render(batch)
        else:
            self._changes.add(batch)

    def _render(self, batch: ResultBatch) -> None:
        first = self.delivered
        self.delivered += len(batch)
        if not self.wanted:
            return
        if not self._template:
            self._rows.extend(solution_rows(batch, self._dictionary, self._columns, self._step))
            return
        numbers = pa.array([f"{self._part}x{n}" for n in range(first, self.delivered)], pa.large_string())
        self._rows.extend(triple_rows(batch, self._dictionary, self._template, numbers))

    def share(self, batch: ResultBatch, others: Sequence[object]) -> Sequence[object]:
        return others

    def fail(self, error: RunError) -> None:
        raise error

    def next_step(self) -> None:
        """The following results are of another step."""
        if self._step is not None:
            self._step += 1

    def fetch(self) -> list[pa.RecordBatch]:
        if self._changes is not None:
            left, left_out = self._changes.fetch()
            self.left_out += left_out
            if left is not None:
                self._render(left)
        rows, self._rows = self._rows, []
        if self._step is not None:
            self._step = 0
        return rows


class RenderedGraphs(Rendered):
    """Collects the graphs of results as rows: those of a tick are an element of a stream. `scope`: of its blank nodes."""

    def __init__(self, dictionary: Dictionary, template: tuple[TemplateTriple, ...], scope: int) -> None:
        super().__init__(dictionary, GRAPH_COLUMNS, template, 0)
        self._construction = Construction([(t.subject, t.predicate, t.object) for t in template], dictionary, scope)

    def deliver(self, batch: ResultBatch) -> None:
        first = self.delivered
        self.delivered += len(batch)
        if self.wanted:
            # A restored state has the number of results, but not the template's.
            self._construction.go_on_after(first)
            graphs, opening = self._construction.graphs(batch)
            self._rows.extend(graph_rows(graphs, first + opening, self._dictionary))


class Handover:
    """Collects the changelog of a stage as rows for the partitions of the next one. `own_ticks`: its parts have different ticks.
    `own`: the rows of the part; others are left out."""

    def __init__(
        self,
        dictionary: Dictionary,
        changelog: ChangelogOutput,
        exchange: Exchange,
        part: int,
        *,
        own_ticks: bool = False,
        own: OwnRows | None = None,
    ) -> None:
        self._dictionary = dictionary
        self._changelog = changelog
        self._exchange = exchange
        self._part = part
        self._sends_ticks = own_ticks or part == 0
        self._own = own
        self.delivered = self.left_out = 0
        self.wanted = True

    def deliver(self, batch: ResultBatch) -> None:
        raise AssertionError("a stage that another one follows has no results")

    def share(self, batch: ResultBatch, others: Sequence[object]) -> Sequence[object]:
        return others

    def fail(self, error: RunError) -> None:
        raise error

    def next_step(self) -> None:
        """Nothing to do: the changelog numbers the ticks of all steps consecutively."""

    def fetch(self) -> list[pa.RecordBatch]:
        changelog = self._changelog.fetch()
        if not self.wanted:
            return []
        if self._own is not None:
            changelog = replace(changelog, delta=self._own.changes(changelog.delta))
        changes = sent(changelog, self._exchange, self._dictionary, with_ticks=self._sends_ticks)
        return routed_rows(self._part, [each.pack() for each in changes])


class PartState(Protocol):
    """The state of one partition, and how it processes its input of a micro-batch."""

    results: Rendered | Handover

    @property
    def rows(self) -> int:
        """The number of triples or changes received so far: the partition's load."""
        ...

    def take(self, slice_data: list[bytes], *, final: bool, in_order: bool) -> None:
        """Process a micro-batch; the output is fetched from `results`."""
        ...

    @property
    def statistics(self) -> Statistics:
        """The partition's counts."""
        ...

    @property
    def watermark(self) -> int | None:
        """Elements before this instant are late from now on; None before the first, and where the partition reads no elements."""
        ...

    def state(self) -> State:
        """The state between two micro-batches as data, for `restore`. Arrays are not copies."""
        ...

    def restore(self, state: State) -> None:
        """Continue from the state of a part of the same stage; the dictionary has its terms already."""
        ...


class Others:
    """Elements of which a partition has only the times, to count them as if it had them all."""

    STATE = ("waiting",)

    def __init__(self) -> None:
        self.waiting = np.empty(0, np.int64)

    def arrive(self, times: list[Ids], runner: LocalRunner) -> None:
        """Elements of a micro-batch (n times each), before the runner gets those of the partition."""
        if not times:
            return
        together = np.concatenate(times)
        # Within a micro-batch none is late, as they are taken in order of their times.
        in_time = together[together >= runner.accepts_from]
        runner.counters.elements += len(together)
        runner.counters.late += len(together) - len(in_time)
        self.waiting = np.concatenate([self.waiting, in_time])

    def follow(self, runner: LocalRunner, before: int, *, final: bool) -> None:
        """The runner has got the partition's elements: others before this instant are complete, and at the end all are."""
        if not len(self.waiting):
            return
        complete = self.waiting < before
        if final:
            complete[:] = True
        if complete.any():
            runner.counters.move_to(int(self.waiting[complete].max()))
            self.waiting = self.waiting[~complete]


@dataclass
class ReadingState:
    """A partition of the stage that reads the streams: a local runner with the one query, and its dictionary.

    `watermarks`: what elements wait for; None: they do not. `sampled`: values of the triples of the last micro-batch.
    """

    dictionary: Dictionary
    runner: LocalRunner
    results: Rendered | Handover
    needed: int = 0
    skipped: int = 0
    others: Others = field(default_factory=Others)
    watermarks: Watermarks | None = None
    sampled: list[Sampled] = field(default_factory=list)

    @property
    def rows(self) -> int:
        return self.runner.counters.triples

    def take(self, slice_data: list[bytes], *, final: bool, in_order: bool) -> None:
        parts = [PartitionSlice.unpack(data) for data in slice_data]
        self.needed += sum(slice_.needed for slice_ in parts)
        self.skipped += sum(slice_.skipped for slice_ in parts)
        self.sampled = [each for slice_ in parts for each in slice_.sampled]
        self.others.arrive([each.others for each in parts if each.others is not None], self.runner)
        promise = Promise.of_all(slice_.promise for slice_ in parts)
        elements = combine(parts, self.dictionary, in_order=in_order)
        if self.watermarks is None:
            self.runner.push(elements)
            self.others.follow(self.runner, self.runner.accepts_from + 1, final=final)
        else:
            until = None if promise is None else promise.time
            self.watermarks.move([each.reached for each in parts if each.reached is not None], until, final=final)
            self._push_complete(elements, self.watermarks, final=final)
            self.others.follow(self.runner, self.watermarks.time, final=final)
        if promise is not None:
            # A step of its own: results are ordered by it.
            self.results.next_step()
            self.runner.advance(promise.time, begin=promise.begins)
        if final:
            self.results.next_step()
            self.runner.finish()

    def _push_complete(self, arrived: ElementBatch, watermarks: Watermarks, *, final: bool) -> None:
        """The runner gets the elements before the watermark, and goes on to that; all others are counted as they arrive."""
        complete, counters = watermarks.complete(arrived), self.runner.counters
        counters.elements += len(arrived) - len(complete)
        counters.triples += arrived.triples - complete.triples
        self.runner.push(complete)
        if watermarks.time > BEFORE_ALL and not final:
            self.runner.advance(watermarks.time, begin=False)

    @property
    def statistics(self) -> Statistics:
        counted = self.runner.counters.snapshot()
        results = counted.results - self.results.left_out
        return replace(counted, triples=self.needed, malformed=self.skipped, results=results)

    @property
    def watermark(self) -> int | None:
        reached = self.runner.accepts_from
        return None if reached <= BEFORE_ALL else reached

    @property
    def _dataflow(self) -> Dataflow:
        (query,) = self.runner.queries
        return query.dataflow

    def state(self) -> State:
        self.runner.shrink()
        self.runner.release_terms()
        part: NamedValues = {
            "needed": self.needed,
            "skipped": self.skipped,
            "delivered": self.results.delivered,
            "left_out": self.results.left_out,
        }
        return {
            _TERMS: dictionary_state(self.dictionary),
            _PART: part,
            _OTHERS: values_of(self.others),
            **({} if self.watermarks is None else {_WATERMARKS: self.watermarks.state()}),
            **_within(_RUNNER, self.runner.state()),
            **_within(_DATAFLOW, self._dataflow.state()),
        }

    def restore(self, state: State) -> None:
        part = state[_PART]
        self.needed, self.skipped = cast(int, part["needed"]), cast(int, part["skipped"])
        self.results.delivered = cast(int, part["delivered"])
        self.results.left_out = cast(int, part.get("left_out", 0))
        restore(self.others, state[_OTHERS])
        if self.watermarks is not None:
            self.watermarks.restore(dict(state[_WATERMARKS]))
        self.runner.restore(_below(_RUNNER, state))
        self.runner.end_restore()
        self._dataflow.restore(_below(_DATAFLOW, state))


@dataclass
class LaterState:
    """A partition of a stage that reads the changelog of the one before. `width`: its columns; `counted`: by the
    dataflow."""

    STATE: ClassVar = ("rows", "delivered", "ticked", "counted")

    dictionary: Dictionary
    dataflow: Dataflow
    results: Rendered | Handover
    width: int
    counted: Counters
    rows: int = 0
    delivered: int = 0
    collect_at: int = _COLLECT_FROM
    ticked: bool = False

    def take(self, slice_data: list[bytes], *, final: bool, in_order: bool) -> None:
        if not slice_data:
            # A micro-batch without rows.
            return
        changes = received([Changes.unpack(data) for data in slice_data], self.width, self.dictionary)
        self.rows += len(changes.delta)
        # The first tick of a partition of the stage before need not be the first of all.
        ticks = replace(changes.ticks, first=not self.ticked)
        self.ticked = self.ticked or len(ticks) > 0
        for batch in self.dataflow.receive(ticks, changes.delta):
            self.delivered += len(batch)
            self.results.deliver(batch)
        self._release_terms()

    def _release_terms(self) -> None:
        """Release terms that nothing refers to, whenever the dictionary has doubled since the last time, or the state has shrunk."""
        if len(self.dictionary) >= self.collect_at:
            self.dictionary.collect(list(self.dataflow.live_ids()))
            self.dataflow.forget_evaluations()
            self.collect_at = max(_COLLECT_FROM, 2 * len(self.dictionary))

    @property
    def statistics(self) -> Statistics:
        return replace(self.counted.snapshot(), results=self.delivered - self.results.left_out)

    @property
    def watermark(self) -> int | None:
        return None

    def state(self) -> State:
        if self.dataflow.shrink():
            self.collect_at = 0
            self._release_terms()
        return {
            _TERMS: dictionary_state(self.dictionary),
            _PART: {**values_of(self), "rendered": self.results.delivered, "left_out": self.results.left_out},
            **_within(_DATAFLOW, self.dataflow.state()),
        }

    def restore(self, state: State) -> None:
        part = dict(state[_PART])
        self.results.delivered = cast(int, part.pop("rendered"))
        self.results.left_out = cast(int, part.pop("left_out", 0))
        restore(self, part)
        self.dataflow.restore(_below(_DATAFLOW, state))


def _within(prefix: str, state: State) -> State:
    return {prefix + part: values for part, values in state.items()}


def _below(prefix: str, state: State) -> dict[str, NamedValues]:
    return {part.removeprefix(prefix): values for part, values in state.items() if part.startswith(prefix)}
