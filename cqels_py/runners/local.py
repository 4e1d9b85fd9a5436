"""The local runner: elements in order of time to the dataflow of every query, in this process."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Protocol

import numpy as np
import numpy.typing as npt

from cqels_py.batches.elements import ElementBatch, Ids
from cqels_py.batches.rearrange import concatenate_elements, slice_elements, take_elements
from cqels_py.batches.results import ResultBatch
from cqels_py.dataflow import Dataflow
from cqels_py.dataflow.router import RoutedBatch
from cqels_py.dataflow.shared_scans import SharedScansPool
from cqels_py.dataflow.static_data import StaticData
from cqels_py.dictionary import Dictionary
from cqels_py.errors import RunError
from cqels_py.event_time.ahead import AheadGuard
from cqels_py.event_time.watermark import Watermark
from cqels_py.event_time.windows import Bounds
from cqels_py.runners.chaining import ConstructedStream, last_time
from cqels_py.runners.early import EarlyElements
from cqels_py.runners.protocol import Runner
from cqels_py.runners.spans import Spans
from cqels_py.runners.statistics import Counters
from cqels_py.runners.step_waiting import WaitingElements
from cqels_py.runners.stream_views import NO_ARRIVALS, NOTHING, ElementTicks, StepElements, StreamView
from cqels_py.state.arrays import keep_freed_memory
from cqels_py.state.named_values import NamedValues, restore, values_of

LATE, AHEAD = "late", "ahead"
"""Why elements are dropped: older than the watermark, or too far ahead of the elements before them."""
_COLLECT_FROM = 100_000


class ResultReceiver(Protocol):
    """The receiver of a query's results."""

    def deliver(self, batch: ResultBatch) -> None:
        """Results of the current step, in order."""
        ...

    def fail(self, error: RunError) -> None:
        """The query has lost its state, and is detached: no more results follow."""
        ...


class DroppedReceiver(Protocol):
    """The receiver of elements that are dropped because of their times."""

    def dropped(self, reason: str, elements: ElementBatch, numbers: Ids) -> None:
        """Elements of the current step (n >= 1), and their numbers (n) among all elements, from 1. `reason`: LATE or AHEAD."""
        ...


class Feed(Protocol):
    """The output of a query that other queries read later in the same step. `watched`: the streams that advance its event time."""

    watched: frozenset[int]

    def take(self, results: ResultBatch, view: StreamView, element_tick: ElementTicks) -> None:
        """Results of the current step, which follow from the elements of `view`."""
        ...

    def merged_into(self, elements: ElementBatch) -> ElementBatch:
        """The step's elements, with those that this query has constructed."""
        ...


class RunningQuery:
    """A dataflow, the engine's numbers of its streams, and the receiver of its results."""

    def __init__(self, dataflow: Dataflow, streams: Sequence[int], receiver: ResultReceiver) -> None:
        self.dataflow = dataflow
        self.streams = tuple(streams)
        self._receiver = receiver
        self._detached = False
        self.feed: Feed | None = None

    def detach(self) -> None:
        """Unregister the query. If its own receiver causes this, it gets no more results of the current step."""
        self._detached = True
        self.dataflow.detach()

    def process(self, routed: RoutedBatch, view: StreamView) -> int:
        """Take part in a step of the elements of `view`; returns the number of results."""
        return self._deliver(self.dataflow.process(routed), view, routed.step.element_tick)

    def update_static(self, static: StaticData) -> int:
        """Replace the static data; returns the number of results."""
        return self._deliver(self.dataflow.update_static(static), _NO_ELEMENTS, NO_ARRIVALS)

    def _deliver(self, results: Iterable[ResultBatch], view: StreamView, element_tick: ElementTicks) -> int:
        count = 0
        try:
            for batch in results:
                if rows := len(batch.time):
                    count += rows
                    if self.feed is not None:
                        self.feed.take(batch, view, element_tick)
                    self._receiver.deliver(batch)
                    if self._detached:
                        break
        except MemoryError as error:
            self._out_of_memory(error)
        return count

    def _out_of_memory(self, error: MemoryError) -> None:
        """Detach the query, whose state is lost. Other queries continue, unless they read the operator that failed."""
        title = self.dataflow.plan.title
        failure = RunError(f"{title} has run out of memory, and gets no more results")
        failure.__cause__ = error
        if self.dataflow.is_shared:
            raise failure
        self.detach()
        self._receiver.fail(failure)


class QueriesOnScans:
    """The queries on the same shared scans, which take part in their steps together. A query with a feed is alone on its scans."""

    def __init__(self, queries: Sequence[RunningQuery]) -> None:
        self._queries = {query.dataflow.reader.number: query for query in queries}
        self._shared_scans = queries[0].dataflow.shared_scans
        self._streams = queries[0].streams
        self.feed = queries[0].feed

    def __contains__(self, query: RunningQuery) -> bool:
        return query in self._queries.values()

    def push(self, elements: StepElements) -> int:
        """Take in the elements of their streams; returns the number of results."""
        results = self._take(elements)
        if self.feed is not None:
            # The readers' streams advance this query's event time too.
            time = last_time(elements.elements, self.feed.watched)
            if time is not None:
                results += self._advance(elements, time)
        return results

    def advance(self, elements: StepElements, time: int, *, begin: bool = False) -> int:
        """No element before `time` (microseconds) will come after these; returns the number of results.

        `begin`: the time of queries that have had no element begins there.
        """
        return self._take(elements) + self._advance(elements, time, begin=begin)

    def finish(self, elements: StepElements) -> int:
        """The streams end with these elements; returns the number of results."""
        results = self._take(elements)
        return results + self._process(self._shared_scans.finish(), StreamView(elements.elements, NOTHING))

    @property
    def now(self) -> int | None:
        """The event time of these queries; None before the first element."""
        return self._shared_scans.now

    def feed_into(self, elements: StepElements) -> StepElements:
        """The elements with the graphs that these queries have constructed from them."""
        return elements if self.feed is None else StepElements(self.feed.merged_into(elements.elements))

    def _take(self, elements: StepElements) -> int:
        view = elements.view(self._streams)
        return self._process(self._shared_scans.step(view.batch), view) if len(view.batch.time) else 0

    def _advance(self, elements: StepElements, time: int, *, begin: bool = False) -> int:
        routed = self._shared_scans.advance(time, begin=begin)
        return self._process(routed, StreamView(elements.elements, NOTHING))

    def _process(self, routed: RoutedBatch, view: StreamView) -> int:
        results = 0
        for reader in self._shared_scans.affected(routed):
            results += self._queries[reader.number].process(routed, view)
        self._shared_scans.end_step()
        return results


class LocalRunner(Runner):
    """Drives all queries of an engine. `lateness` in microseconds; one thread pushes at a time.

    `waiting`: where all windows have a STEP, elements wait for the next boundary, or for `process_waiting`. `guard`: drops elements
    that are too far ahead.
    """

    def __init__(
        self, dictionary: Dictionary, lateness: int, *, waiting: bool = False, guard: AheadGuard | None = None
    ) -> None:
        self._queries: list[RunningQuery] = []
        self._groups: list[QueriesOnScans] = []
        self.pool = SharedScansPool()
        self._dictionary = dictionary
        self._guard = guard
        self._watermark = Watermark(lateness)
        self._early = EarlyElements()
        self._may_wait = waiting
        self._waiting = WaitingElements({})
        self._spans: Spans | None = None
        self._collect_at = _COLLECT_FROM
        self.counters = Counters()
        self.rejects: DroppedReceiver | None = None
        keep_freed_memory()

    @property
    def queries(self) -> list[RunningQuery]:
        """None reads a stream that a later one constructs."""
        return self._queries

    @queries.setter
    def queries(self, queries: list[RunningQuery]) -> None:
        # New queries do not see the elements that wait.
        self.process_waiting()
        # New lists: the runner may be iterating over the old ones.
        self._queries = queries
        by_scans: dict[int, list[RunningQuery]] = {}
        for query in queries:
            by_scans.setdefault(id(query.dataflow.shared_scans), []).append(query)
        self._groups = [QueriesOnScans(group) for group in by_scans.values()]
        scans = [query.dataflow.shared_scans for query in queries]
        self._spans = Spans(scans) if any(each.least_delay is not None for each in scans) else None
        self._waiting = WaitingElements(_bounds_of(queries) if self._may_wait and self._spans is None else {})

    def push(self, batch: ElementBatch) -> None:
        """Take in elements in order of arrival."""
        counters, before = self.counters, self.counters.elements
        counters.elements += len(batch.time)
        counters.triples += len(batch.subject)
        numbers: Ids | None = None
        guarded = None if self._guard is None else self._guard.admit(batch.time, batch.stream)
        if guarded is not None:
            numbers = np.arange(before + 1, counters.elements + 1)
            counters.ahead += self._drop(AHEAD, batch, ~guarded, numbers)
            batch, numbers = take_elements(batch, np.flatnonzero(guarded)), numbers[guarded]
        admitted = self._watermark.admit(batch.time)
        if admitted is not None:
            if numbers is None:
                numbers = np.arange(before + 1, counters.elements + 1)
            counters.late += self._drop(LATE, batch, ~admitted, numbers)
            batch = take_elements(batch, np.flatnonzero(admitted))
        complete = self._complete(batch)
        if complete is not None and len(complete.time):
            counters.event_time = complete.time.item(-1)
            self._process(self._waiting.add(complete))

    @property
    def nbytes(self) -> int:
        """Bytes of the elements that wait, or of as many as have ever waited."""
        return self._early.nbytes + self._waiting.nbytes

    def waits(self, stream: int, time: int, triples: int) -> bool:
        """Take in an element whose terms are looked up later, with others: `keep` then gets it. False if it cannot wait."""
        if (
            self._early.elements is not None
            or not self._waiting.takes(stream, time)
            or (self._guard is not None and not self._guard.moves_to(stream, time))
            or not self._watermark.moves_to(time)
        ):
            return False
        self.counters.elements += 1
        self.counters.triples += triples
        self.counters.event_time = time
        return True

    def keep(self, batch: ElementBatch) -> None:
        """Elements that `waits` has taken in, in that order, before any other is pushed."""
        self._waiting.keep(batch)

    def _drop(self, reason: str, batch: ElementBatch, dropped: npt.NDArray[np.bool_], numbers: Ids) -> int:
        """Hand out the elements that are dropped; returns how many."""
        places = np.flatnonzero(dropped)
        if self.rejects is not None:
            self.rejects.dropped(reason, take_elements(batch, places), numbers[places])
        return len(places)

    def process_at_once(self) -> None:
        """From now on no elements wait for the boundary of a window: so a step does not depend on when states are taken."""
        self.process_waiting()
        self._may_wait = False

    @property
    def is_waiting(self) -> bool:
        """Are there elements that wait for the boundary of a window?"""
        return len(self._waiting) > 0

    def process_waiting(self) -> None:
        """Process the elements that wait for the boundary of a window, which gives no results."""
        if self.is_waiting:
            self._process(self._waiting.take())

    def advance(self, time: int) -> None:
        """No element before `time` will come: mappings that expire before it do so now.

        Queries that have had no element are evaluated at that instant: their windows are empty.
        """
        self.process_waiting()
        if self._guard is not None:
            self._guard.advance(time)
        self._watermark.advance(time)
        self._process(self._complete(None))
        for instant in () if self._spans is None else self._spans.advances(self._watermark.time):
            self._advance(instant)
        self._advance(self._watermark.time, begin=True)

    def _advance(self, time: int, *, begin: bool = False) -> None:
        elements = self._start_step(NOTHING)
        for group in self._groups:
            self.counters.results += group.advance(elements, time, begin=begin)
            elements = group.feed_into(elements)

    def finish(self, until: int | None = None) -> None:
        """The sources have ended. Time stands at the last instant that is told; elements up to it are late from now on.

        `until`: if it is not before the last element, time goes on to the end of that instant instead of the next boundary.
        """
        self.process_waiting()
        rest = self._early.with_others(None)
        self._early.keep(None)
        self._process(rest)
        last = self.counters.event_time
        if until is not None and (last is None or until >= last):
            # Queries that have had no element begin at that instant, not behind it.
            self.advance(until)
            self.advance(until + 1)
            return
        elements = self._start_step(NOTHING)
        for group in self._groups:
            self.counters.results += group.finish(elements)
            elements = group.feed_into(elements)
        told = [now for group in self._groups if (now := group.now) is not None]
        if told:
            self._watermark.advance(max(told) + 1)

    def update_static(self, query: RunningQuery, static: StaticData) -> None:
        """Replace the static data of one of the queries."""
        self.process_waiting()
        elements = self._start_step(NOTHING)
        for group in self._groups:
            self.counters.results += group.push(elements)
            if query in group:
                self.counters.results += query.update_static(static)
            elements = group.feed_into(elements)
        self._release_terms()

    def _process(self, batch: ElementBatch | None) -> None:
        """Process elements in order of time; no earlier ones will follow."""
        if batch is None or not len(batch.time):
            return
        self.counters.event_time = batch.time.item(-1)
        if self._spans is not None:
            self._process_by_spans(batch, self._spans)
            return
        elements = self._start_step(batch)
        for group in self._groups:
            self.counters.results += group.push(elements)
            elements = group.feed_into(elements)
        self._release_terms()

    def _process_by_spans(self, batch: ElementBatch, spans: Spans) -> None:
        """Process elements in parts that are shorter than the delays of the timers that operators set."""
        for part in spans.parts(batch):
            if isinstance(part, int):
                self._advance(part)
                continue
            elements = self._start_step(part)
            for group in self._groups:
                self.counters.results += group.push(elements)
                elements = group.feed_into(elements)
        self._release_terms()

    def _start_step(self, batch: ElementBatch) -> StepElements:
        """Process the elements of a step; queries that are registered afterwards do not see them."""
        self.pool.close()
        return StepElements(batch)

    def _complete(self, batch: ElementBatch | None) -> ElementBatch | None:
        """The elements up to the watermark, in order of time; the others wait."""
        together = self._early.with_others(batch)
        if together is None:
            return None
        count = len(together.time)
        if not count:
            return None
        if count > 1 and np.any(np.diff(together.time) < 0):
            together = take_elements(together, np.argsort(together.time, kind="stable"))
        if together.time.item(-1) <= self._watermark.time:
            self._early.keep(None)
            return together
        cut = int(np.searchsorted(together.time, self._watermark.time, side="right"))
        self._early.keep(slice_elements(together, cut, count))
        return slice_elements(together, 0, cut)

    def state(self) -> dict[str, NamedValues]:
        """The watermark, the counters, and the elements that wait (for the watermark or a boundary), for `restore`.

        Dataflows and dictionary have states of their own. Arrays are no copies: write them before the next element.
        """
        waiting = concatenate_elements(
            [*self._waiting.batches, *([] if self._early.elements is None else [self._early.elements])]
        )
        columns = ((each.name, getattr(waiting, each.name)) for each in fields(waiting))
        return {
            "watermark": values_of(self._watermark),
            **({} if self._guard is None else {"ahead": values_of(self._guard)}),
            "counters": values_of(self.counters),
            "waiting": {name: column for name, column in columns if column is not None},
        }

    def restore(self, state: dict[str, NamedValues]) -> None:
        """Continue from the state of a runner with the same lateness, whose streams had the same numbers."""
        restore(self._watermark, state["watermark"])
        if self._guard is not None:
            restore(self._guard, state["ahead"])
        restore(self.counters, state["counters"])
        waiting = ElementBatch(**state["waiting"])  # type: ignore[arg-type]
        self._early.keep(waiting if len(waiting) else None)

    def _release_terms(self) -> None:
        """Release terms that nothing refers to, whenever the dictionary has doubled since the last time."""
        if len(self._dictionary) < self._collect_at:
            return
        visited: set[int] = set()
        live = [ids for query in self.queries for ids in query.dataflow.live_ids(visited)]
        if self._early.elements is not None:
            live += self._early.elements.live_ids()
        live += self._waiting.live_ids()
        self._dictionary.collect(live)
        for query in self.queries:
            query.dataflow.forget_evaluations()
        self._collect_at = max(_COLLECT_FROM, 2 * len(self._dictionary))


def _bounds_of(queries: Iterable[RunningQuery]) -> dict[tuple[int, ...], list[Bounds]]:
    """The bounds of all windows, by the streams of their queries; none if a query has no window, or is an input of another one."""
    bounds: dict[tuple[int, ...], list[Bounds]] = {}
    for query in queries:
        windows = query.dataflow.plan.windows
        # Rules change between boundaries, too.
        if not windows or query.dataflow.plan.rules is not None or _feeds(query):
            return {}
        bounds.setdefault(query.streams, []).extend(window.bounds for window in windows)
    return bounds


def _feeds(query: RunningQuery) -> bool:
    return query.feed is not None and not (isinstance(query.feed, ConstructedStream) and not query.feed.streams)


_NO_ELEMENTS = StreamView(NOTHING, NOTHING)
