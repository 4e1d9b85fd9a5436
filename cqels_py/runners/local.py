"""The local runner: elements in order of time to the dataflow of every query, in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cqels_py.batches.elements import ElementBatch
from cqels_py.batches.rearrange import concatenate_elements, slice_elements, take_elements, with_streams
from cqels_py.batches.results import ResultBatch
from cqels_py.dataflow import Dataflow
from cqels_py.dataflow.shared_scans import RoutedBatch, SharedScansPool
from cqels_py.dataflow.static_data import StaticData
from cqels_py.dictionary import Dictionary
from cqels_py.errors import RunError
from cqels_py.event_time.watermark import Watermark
from cqels_py.runners.chaining import NOTHING, ConstructedStream, PlacesOf, last_time, places_by_tick, places_by_time
from cqels_py.runners.statistics import Counters
from cqels_py.state.arrays import keep_freed_memory

Deliver = Callable[[ResultBatch], None]

_COLLECT_FROM = 100_000


View = tuple[ElementBatch, npt.NDArray[np.int64] | None]
"""Elements, and their positions among others; None where it is all of them."""
_NONE = np.empty(0, np.int64)


class Views:
    """Elements as the queries of some streams see them, made once for all that read the same ones."""

    def __init__(self, elements: ElementBatch) -> None:
        self.elements = elements
        self._made: dict[tuple[int, ...], View] = {}

    def of(self, streams: tuple[int, ...]) -> View:
        """The elements of these streams, which get the numbers 0, 1, …"""
        batch = self.elements
        if len(batch.time) == 1:
            # As they come on a live stream: mostly it has that number already.
            number = batch.stream.item(0)
            if number < len(streams) and streams[number] == number:
                return batch, None
        made = self._made.get(streams)
        if made is None:
            made = self._made[streams] = self._make(streams)
        return made

    def _make(self, streams: tuple[int, ...]) -> View:
        batch = self.elements
        count = len(batch.time)
        if not count:
            return batch, None
        if count == 1:
            number = batch.stream.item(0)
            if number not in streams:
                return NOTHING, _NONE
            place = streams.index(number)
            return batch if place == number else with_streams(batch, np.array([place], np.int32)), None
        local = np.full(max(*streams, int(batch.stream.max())) + 1, -1, np.int32)
        local[list(streams)] = np.arange(len(streams), dtype=np.int32)
        stream = local[batch.stream]
        if (stream >= 0).all():
            return with_streams(batch, stream), None
        chosen = np.flatnonzero(stream >= 0)
        return with_streams(take_elements(batch, chosen), stream[chosen]), chosen


class RunningQuery:
    """A dataflow, the engine's numbers of its streams, and where its results go."""

    def __init__(self, dataflow: Dataflow, streams: list[int], deliver: Deliver) -> None:
        self.dataflow = dataflow
        self.streams = tuple(streams)
        self._deliver = deliver
        self._left = False
        self.feed: ConstructedStream | None = None
        self.failure: RunError | None = None

    def detach(self) -> None:
        """The query has been taken away, perhaps by who gets its results: nothing more follows, also of the step at hand."""
        self._left = True
        self.dataflow.detach()

    def places(self, elements: ElementBatch, chosen: npt.NDArray[np.int64] | None) -> PlacesOf:
        return places_by_tick(elements, chosen, self.dataflow.element_tick)

    def update_static(self, static: StaticData) -> int:
        return self.hand_out(self.dataflow.update_static(static), places_by_time, NOTHING)

    def hand_out(self, results: Iterable[ResultBatch], places: Callable[..., PlacesOf], *of: Any) -> int:
        """Results to whom they go; returns how many. `places`(`of`), asked when there are some: behind which elements they come."""
        count = 0
        try:
            for batch in results:
                if rows := len(batch.time):
                    count += rows
                    if self.feed is not None:
                        self.feed.take(batch, places(*of))
                    self._deliver(batch)
                    if self._left:
                        break
        except MemoryError as error:
            self._out_of_memory(error)
        return count

    def _out_of_memory(self, error: MemoryError) -> None:
        """The query has no state to go on from, and leaves; others go on, if they do not read what it was at work on."""
        title = self.dataflow.plan.title
        self.failure = RunError(f"{title} needs more memory than there is, and gets no more results")
        self.failure.__cause__ = error
        if self.dataflow.is_shared:
            raise self.failure
        self.detach()


class QueriesOnScans:
    """The queries that sit on shared scans, and take its steps together. One with a feed sits alone."""

    def __init__(self, queries: Sequence[RunningQuery]) -> None:
        self.queries = {query.dataflow.reader.number: query for query in queries}
        self._shared_scans = queries[0].dataflow.shared_scans
        self._streams = queries[0].streams
        self.feed = queries[0].feed

    def step(self, views: Views) -> int:
        """Take in the elements of their streams; returns the number of results."""
        batch, chosen = views.of(self._streams)
        if not len(batch.time):
            return 0
        routed, results = self._shared_scans.step(batch), 0
        for reader in self._shared_scans.affected(routed):
            query = self.queries[reader.number]
            results += query.hand_out(query.dataflow.process(routed), query.places, views.elements, chosen)
        self._shared_scans.end()
        return results

    def catch_up(self, elements: ElementBatch) -> int:
        """Let time move on with that of the streams that a feed's readers read; returns the number of results."""
        if self.feed is None:
            return 0
        time = last_time(elements, self.feed.watched)
        return 0 if time is None else self.advance(time, elements)

    def advance(self, time: int, elements: ElementBatch = NOTHING) -> int:
        return self._pass(self._shared_scans.advance(time), elements)

    def finish(self, elements: ElementBatch = NOTHING) -> int:
        return self._pass(self._shared_scans.finish(), elements)

    def _pass(self, routed: RoutedBatch, elements: ElementBatch) -> int:
        queries = [self.queries[reader.number] for reader in self._shared_scans.affected(routed)]
        results = sum(query.hand_out(query.dataflow.process(routed), places_by_time, elements) for query in queries)
        self._shared_scans.end()
        return results


class LocalRunner:
    """Drives all queries of an engine. `lateness` in microseconds; one thread pushes at a time."""

    def __init__(self, dictionary: Dictionary, lateness: int) -> None:
        self._queries: list[RunningQuery] = []
        self._groups: list[QueriesOnScans] = []
        self.pool = SharedScansPool()
        self._dictionary = dictionary
        self._watermark = Watermark(lateness)
        self._early: ElementBatch | None = None
        self._collect_at = _COLLECT_FROM
        self.counters = Counters()
        keep_freed_memory()

    @property
    def queries(self) -> list[RunningQuery]:
        """None reads what a later one constructs."""
        return self._queries

    @queries.setter
    def queries(self, queries: list[RunningQuery]) -> None:
        # New lists: the runner may be in the middle of the old ones.
        self._queries = queries
        by_front: dict[int, list[RunningQuery]] = {}
        for query in queries:
            by_front.setdefault(id(query.dataflow.shared_scans), []).append(query)
        self._groups = [QueriesOnScans(those) for those in by_front.values()]

    def push(self, batch: ElementBatch) -> None:
        """Take in elements in order of arrival."""
        admitted = self._watermark.admit(batch.time)
        counters, elements, triples = self.counters, len(batch.time), len(batch.subject)
        counters.elements += elements
        counters.triples += triples
        if admitted is not None:
            counters.late += int(np.count_nonzero(~admitted))
            batch = take_elements(batch, np.flatnonzero(admitted))
        self._process(self._complete(batch))

    def advance(self, time: int) -> None:
        """No element before `time` will come: what expires before it does so now."""
        self._watermark.advance(time)
        self._process(self._complete(None))
        self._drive(NOTHING, lambda group, elements: group.advance(self._watermark.time, elements))

    def finish(self) -> None:
        """The streams have ended."""
        if self._early is not None:
            rest, self._early = self._early, None
            self._process(rest)
        self._drive(NOTHING, QueriesOnScans.finish)

    def update_static(self, query: RunningQuery, static: StaticData) -> None:
        """Other static data for one of the queries, from now on."""
        self._drive(NOTHING, lambda group, _: query.update_static(static) if query in group.queries.values() else 0)
        self._release_terms()

    def _drive(self, elements: ElementBatch, then: Callable[[QueriesOnScans, ElementBatch], int]) -> None:
        """The elements to all queries, and to each what those ahead of it construct; `then`: what else each is to do."""
        self.pool.close()
        views, counters = Views(elements), self.counters
        for group in self._groups:
            counters.results += group.step(views) + then(group, views.elements)
            if group.feed is not None:
                views = Views(group.feed.merged_into(views.elements))

    def _complete(self, batch: ElementBatch | None) -> ElementBatch | None:
        """In order of time, the elements up to the watermark; the others wait."""
        together = batch
        if self._early is not None:
            together = self._early if batch is None else concatenate_elements([self._early, batch])
        if together is None:
            return None
        count = len(together.time)
        if not count:
            return None
        if count > 1 and np.any(np.diff(together.time) < 0):
            together = take_elements(together, np.argsort(together.time, kind="stable"))
        if together.time.item(-1) <= self._watermark.time:
            self._early = None
            return together
        cut = int(np.searchsorted(together.time, self._watermark.time, side="right"))
        self._early = slice_elements(together, cut, count)
        return slice_elements(together, 0, cut)

    def _process(self, batch: ElementBatch | None) -> None:
        if batch is None or not len(batch.time):
            return
        self.counters.event_time = batch.time.item(-1)
        self._drive(batch, QueriesOnScans.catch_up)
        self._release_terms()

    def _release_terms(self) -> None:
        """Let go of terms that nothing refers to, whenever the dictionary has doubled since the last time."""
        if len(self._dictionary) < self._collect_at:
            return
        visited: set[int] = set()
        live = [ids for query in self.queries for ids in query.dataflow.live_ids(visited)]
        if self._early is not None:
            live += self._early.live_ids()
        self._dictionary.collect(live)
        for query in self.queries:
            query.dataflow.forget_evaluations()
        self._collect_at = max(_COLLECT_FROM, 2 * len(self._dictionary))
