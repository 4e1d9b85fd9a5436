"""Queries over the same streams: they have one event time, which elements of other streams do not touch."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import fields
from typing import TypeAlias, cast

import numpy as np
import numpy.typing as npt

from cqels_py.batches.elements import ElementBatch, Ids
from cqels_py.batches.rearrange import concatenate_elements, slice_elements, take_elements
from cqels_py.dataflow.shared_scans import SharedScansPool
from cqels_py.dataflow.static_data import StaticData
from cqels_py.event_time.ahead import ClockGuard
from cqels_py.event_time.frontiers import Frontiers
from cqels_py.event_time.watermark import AFTER_ALL, Watermark
from cqels_py.event_time.windows import Bounds
from cqels_py.runners.duplicates import Duplicates
from cqels_py.runners.early import EarlyElements
from cqels_py.runners.running import QueriesOnScans, RunningQuery
from cqels_py.runners.single_elements import SingleElements, TakesSingles
from cqels_py.runners.spans import Spans
from cqels_py.runners.statistics import Counters
from cqels_py.runners.step_waiting import WaitingElements
from cqels_py.runners.stream_views import NOTHING, StepElements
from cqels_py.state.named_values import NamedValues

Key: TypeAlias = tuple[frozenset[int], bool]
"""The streams of a group, and whether its time follows the clock."""


class EventTimeGroup:
    """Queries that read the same streams by the same clock, or construct streams for one another, and the elements that wait for
    their watermark.

    `streams`: the runner's numbers of all that they read. `lateness`, in microseconds: how far their elements may be out of order.
    `drops`: the streams of which an element that comes again is left out. `guard`: time follows its clock; elements that are ahead
    of that wait for their time, and those that it does not admit are left out. Where their sources are not read in one order of
    time, elements wait until those of all other streams are there (`hold`). An element is an element of each group that reads its
    stream, and may be late for one and not for another.
    """

    def __init__(
        self,
        streams: frozenset[int],
        lateness: int,
        counters: Counters,
        pool: SharedScansPool,
        drops: Collection[int] = (),
        guard: ClockGuard | None = None,
    ) -> None:
        self.streams = streams
        self._lateness = lateness
        self._counters = counters
        self._pool = pool
        self._queries: list[RunningQuery] = []
        self._on_scans: list[QueriesOnScans] = []
        self._watermark = Watermark(lateness, None if guard is None else guard.clock)
        self._guard = guard
        self._duplicates = Duplicates(drops)
        self._early = EarlyElements()
        self._waiting = WaitingElements({})
        self._spans: Spans | None = None
        self._alone: QueriesOnScans | None = None
        # Those that wait for their first tick, each with earlier ones to whose scans they move then.
        self._newcomers: list[tuple[QueriesOnScans, QueriesOnScans]] = []
        self._order: list[int] = []

    def set_queries(self, queries: list[RunningQuery], *, may_wait: bool) -> None:
        """From now on the group has these queries, none of which reads a stream that a later one constructs.

        `may_wait`: where all windows have a STEP, elements wait for the next boundary. None may be waiting for one now.
        """
        self._queries = queries
        by_scans: dict[int, list[RunningQuery]] = {}
        for query in queries:
            by_scans.setdefault(id(query.dataflow.shared_scans), []).append(query)
        self._on_scans = [QueriesOnScans(each) for each in by_scans.values()]
        scans = [query.dataflow.shared_scans for query in queries]
        self._spans = Spans(scans) if any(each.least_delay is not None for each in scans) else None
        self._know_alone()
        self._newcomers = [] if self._spans is not None else self._numbered_newcomers()
        self._waiting = WaitingElements(_bounds_of(queries) if may_wait and self._spans is None else {})

    def add(self, query: RunningQuery) -> bool:
        """One query more, behind the others; False if all have to be set anew."""
        scans = query.dataflow.shared_scans
        # One that had elements of before is there already.
        if query in self._queries or not self._queries:
            return False
        if self._spans is not None or scans.least_delay is not None or self._waiting.may_wait:
            return False
        self._queries = [*self._queries, query]
        there = next((each for each in reversed(self._on_scans) if each.are_on(scans)), None)
        if there is not None:
            there.add(query)
        else:
            self._on_scans.append(QueriesOnScans([query]))
        self._newcomers = self._numbered_newcomers()
        self._know_alone()
        return True

    def _know_alone(self) -> None:
        # No others are fed, and windows whose elements wait have no programs.
        self._alone = self._on_scans[0] if len(self._on_scans) == 1 and self._spans is None else None

    def _numbered_newcomers(self) -> list[tuple[QueriesOnScans, QueriesOnScans]]:
        first: dict[Hashable, QueriesOnScans] = {}
        found = []
        for queries in self._on_scans:
            if queries.key is None:
                continue
            earlier = first.setdefault(queries.key, queries)
            if earlier is not queries and queries.can_move:
                queries.number_as(earlier)
                found.append((queries, earlier))
        return found

    def _join_newcomers(self) -> None:
        """Those whose ticks are those of others take part in the steps of these from now on."""
        waiting = []
        for queries, earlier in self._newcomers:
            if not queries.has_ticked or queries.waits_for(earlier):
                waiting.append((queries, earlier))
            elif queries.join(earlier):
                self._on_scans.remove(queries)
        self._newcomers = waiting
        self._know_alone()

    @property
    def follows_clock(self) -> bool:
        """Does time go on with the clock?"""
        return self._guard is not None

    @property
    def key(self) -> Key:
        """The common properties of queries that are in one group."""
        return self.streams, self.follows_clock

    @property
    def queries(self) -> list[RunningQuery]:
        """The queries, none of which reads a stream that a later one constructs."""
        return self._queries

    @property
    def time(self) -> int:
        """No element before this instant is accepted any more."""
        return self._watermark.time

    @property
    def has_begun(self) -> bool:
        """Has there been an element of its streams, or a promise?"""
        return self._watermark.has_begun

    def begin(self, time: int) -> None:
        """No element before this instant will be accepted; nothing is evaluated for that."""
        self._watermark.advance(time)

    def go_on_as(self, group: EventTimeGroup) -> None:
        """Be where another group of these streams is: the elements that wait there also wait here."""
        self._watermark.advance(group.time)
        self._duplicates.take_over(group._duplicates)
        self._early.keep(group._early.elements)

    def hold_as(self, group: EventTimeGroup) -> None:
        """Wait for the same frontier as another group of these streams."""
        self._watermark.frontier = group._watermark.frontier
        self._order = group._order

    def settle(self, guard: ClockGuard | None, pool: SharedScansPool) -> None:
        """From now on time follows this guard's clock, and other queries may share scans with those of the group."""
        self._guard, self._watermark.clock = guard, None if guard is None else guard.clock
        self._pool = pool

    def beside(self, group: EventTimeGroup) -> EventTimeGroup:
        """A new group of these streams that goes on from where the further of the two is, for the queries of both."""
        merged = EventTimeGroup(
            self.streams, self._lateness, self._counters, self._pool, self._duplicates.streams, self._guard
        )
        merged.set_queries([*self.queries, *group.queries], may_wait=False)
        merged.hold_as(self)
        merged.inherit([self, group], None)
        return merged

    def __contains__(self, query: RunningQuery) -> bool:
        return query in self._queries

    def inherit(self, groups: Sequence[EventTimeGroup], advanced: int | None) -> None:
        """Continue the event time of the groups whose queries this one gets, and of the last promise (`advanced`).

        It goes on from where the furthest of them is. Elements that wait are taken over, those of a stream from one group.
        """
        begin = [group._watermark.time for group in groups if group._watermark.has_begun]
        begin += [] if advanced is None else [advanced]
        if begin:
            if len(groups) > 1:
                for group in groups:
                    group.advance(max(begin))
            self._watermark.advance(max(begin))
        for group in groups:
            self._duplicates.take_over(group._duplicates)
        waiting = [each for group in groups if (each := group._early.elements) is not None]
        parts = []
        for stream in sorted(self.streams):
            of_stream = [np.flatnonzero(each.stream == stream) for each in waiting]
            most = max(range(len(waiting)), key=lambda at: len(of_stream[at]), default=None)
            if most is not None:
                parts.append(take_elements(waiting[most], of_stream[most]))
        together = concatenate_elements(parts)
        self._early.keep(
            take_elements(together, np.argsort(together.time, kind="stable")) if len(together.time) else None
        )

    # --- elements -------------------------------------------------------------------------------------------------

    def near(self, batch: ElementBatch) -> npt.NDArray[np.bool_] | None:
        """Which of the arriving elements (n) are not too far ahead of the clock; None: all of them."""
        return None if self._guard is None else self._guard.admit(batch.time, batch.stream)

    def admit(self, batch: ElementBatch) -> npt.NDArray[np.bool_] | None:
        """Which of the arriving elements (n) are not late for these queries; None: all of them. Moves the watermark."""
        return self._watermark.admit(batch.time)

    def new(self, batch: ElementBatch) -> npt.NDArray[np.bool_] | None:
        """Which of the elements that are not late (n) have not been taken in before; None: all of them."""
        return self._duplicates.admit(batch, self._watermark.time)

    def take(self, batch: ElementBatch) -> None:
        """Take in elements that are not late and `new`, in order of arrival."""
        complete = self._complete(batch)
        if complete is None or not len(complete.time):
            return
        processed = self._waiting.add(complete)
        if processed is None:
            self._counters.move_to(complete.time.item(-1))
        else:
            self._process(processed)
            if self._waiting.singly and (self._alone is None or not self._alone.takes_singly):
                self._waiting.singly = False

    def single_elements(self, runner: TakesSingles, stream: int) -> SingleElements | None:
        """The short way of a stream's elements, where all queries are on the same scans; else None."""
        if self._alone is None or stream in self._duplicates.streams:
            return None
        return SingleElements(stream, self._alone, self._early, self._waiting, self._watermark, self._pool, runner)

    @property
    def may_wait(self) -> bool:
        """Have all windows a STEP, so that elements may wait for the next boundary?"""
        return self._waiting.may_wait

    def can_wait(self, stream: int, time: int) -> bool:
        """May an element wait for the boundary of a window whose terms are not known yet?"""
        if self._early or stream in self._duplicates.streams:
            return False
        return self._waiting.takes(stream, time) and self._watermark.is_complete_at(time)

    def move_to(self, time: int) -> None:
        """Move the watermark to an element that `can_wait`."""
        self._watermark.move_to(time)

    def keep(self, batch: ElementBatch) -> None:
        """Elements that can wait, in that order, before any other is taken in."""
        self._waiting.keep(batch)

    @property
    def is_waiting(self) -> bool:
        """Are there elements that wait for the boundary of a window?"""
        return len(self._waiting) > 0

    def process_waiting(self) -> None:
        """Process the elements that wait for the boundary of a window, which gives no results."""
        if self.is_waiting:
            self._process(self._waiting.take())

    # --- time -----------------------------------------------------------------------------------------------------

    def advance(self, time: int, *, begin: bool = True) -> None:
        """No element before `time` will come: mappings that expire before it do so now. `begin`: the time of queries that have had
        no element begins there."""
        self.process_waiting()
        self._watermark.advance(time)
        self._process(self._complete(None))
        for instant in () if self._spans is None else self._spans.advances(self._watermark.time):
            self._advance_to(instant)
        self._advance_to(self._watermark.time, begin=begin)

    def hold(self, frontiers: Frontiers) -> None:
        """The streams whose sources are read have all their elements before these instants; later ones wait for each other.

        Elements of one time come in the order of these streams.
        """
        told = frontiers.of(follows_clock=self.follows_clock)
        own = {stream: time for stream, time in told.items() if stream in self.streams}
        self._order = list(own) if len(own) > 1 else []
        waited_for = [time for time in own.values() if time < AFTER_ALL]
        frontier = min(waited_for) if waited_for and self._order else None
        if frontier == self._watermark.frontier:
            return
        self.process_waiting()
        self._watermark.frontier = frontier
        self._readmit()
        self._process(self._complete(None))

    @property
    def early(self) -> int:
        """How many elements wait for the watermark."""
        return len(self._early)

    def _readmit(self) -> None:
        """Of the elements that wait, those whose time has come move the watermark now."""
        if self._early:
            self._watermark.admit(self._early.times)

    def follow(self, time: int) -> None:
        """No element before `time` is still on its way, but by their lateness: results that are due by then are told."""
        time -= self._lateness
        self.process_waiting()
        self._readmit()
        time = max(time, self._watermark.time)
        if self._next_due() <= time:
            self.advance(time)
        else:
            self._watermark.advance(time)

    def is_due(self, time: int, now: int) -> bool:
        """May `follow` change more than the watermark, where it is `now` by the clock?"""
        latest = now if self._early else time
        return self.is_waiting or self._next_due() <= max(latest - self._lateness, self._watermark.time)

    def _next_due(self) -> int:
        """The first instant at which something changes without another element."""
        found = [queries.next_instant for queries in self._on_scans]
        if self._early:
            found.append(int(self._early.times.min()))
        return min(found)

    def complete(self) -> None:
        """No element follows that is earlier than any before: those that wait are processed."""
        rest = self._early.with_others(None)
        self._early.keep(None)
        if rest is not None and len(rest.time):
            self._watermark.advance(int(rest.time.max()))
        self._process(rest)

    def finish(self, until: int | None) -> None:
        """The streams have ended: see `LocalRunner.finish`."""
        self.process_waiting()
        self.complete()
        last = self._now
        if until is not None and (last is None or until >= last):
            # Queries that have had no element begin at that instant, not behind it.
            self.advance(until)
            self.advance(until + 1)
            return
        elements = self._start_step(NOTHING)
        for queries in self._on_scans:
            self._counters.results += queries.finish(elements)
            elements = queries.feed_into(elements)
        if self._newcomers:
            self._join_newcomers()
        told = self._now
        if told is not None:
            self._watermark.advance(told + 1)

    @property
    def _now(self) -> int | None:
        """The event time of these queries; None before the first element."""
        return max((now for queries in self._on_scans if (now := queries.now) is not None), default=None)

    def update_static(self, query: RunningQuery, static: StaticData) -> None:
        """Replace the static data of one of the queries."""
        self.process_waiting()
        elements = self._start_step(NOTHING)
        for queries in self._on_scans:
            self._counters.results += queries.push(elements)
            if query in queries:
                self._counters.results += query.update_static(static)
            elements = queries.feed_into(elements)

    # --- steps ----------------------------------------------------------------------------------------------------

    def _process(self, batch: ElementBatch | None) -> None:
        """Process elements in order of time; no earlier ones will follow."""
        if batch is None or not len(batch.time):
            return
        self._counters.move_to(batch.time.item(-1))
        if self._spans is None:
            self._step(batch)
            return
        # In parts that are shorter than the delays of the timers that operators set.
        for part in self._spans.parts(batch):
            if isinstance(part, int):
                self._advance_to(part)
            else:
                self._step(part)

    def _step(self, batch: ElementBatch) -> None:
        elements = self._start_step(batch)
        for queries in self._on_scans:
            self._counters.results += queries.push(elements)
            elements = queries.feed_into(elements)
        if self._newcomers:
            self._join_newcomers()

    def _advance_to(self, time: int, *, begin: bool = False) -> None:
        elements = self._start_step(NOTHING)
        for queries in self._on_scans:
            self._counters.results += queries.advance(elements, time, begin=begin)
            elements = queries.feed_into(elements)
        if self._newcomers:
            self._join_newcomers()

    def _start_step(self, batch: ElementBatch) -> StepElements:
        """Process the elements of a step; queries that are registered afterwards do not see them."""
        self._pool.close()
        return StepElements(batch)

    def _complete(self, batch: ElementBatch | None) -> ElementBatch | None:
        """The elements up to the watermark, in order of time; the others wait."""
        if batch is not None and len(batch.time) == 1 and not self._order:
            if not self._early and batch.time.item(0) <= self._watermark.time:
                return batch
            if self._early.add_one(batch):
                taken = self._early.take_through(self._watermark.time)
                return concatenate_elements(taken) if taken else None
        together = self._early.with_others(batch)
        if together is None:
            return None
        count = len(together.time)
        if not count:
            return None
        if count > 1 and (self._order or np.any(np.diff(together.time) < 0)):
            together = take_elements(together, self._in_order(together))
        if together.time.item(-1) <= self._watermark.time:
            self._early.keep(None)
            return together
        cut = int(np.searchsorted(together.time, self._watermark.time, side="right"))
        self._early.keep(slice_elements(together, cut, count))
        return slice_elements(together, 0, cut)

    def _in_order(self, batch: ElementBatch) -> npt.NDArray[np.int64]:
        """The elements' positions (n) by time; those of one time as they came, or else in the order of their streams."""
        if not self._order:
            return np.argsort(batch.time, kind="stable")
        places = np.zeros(max(self.streams) + 1, np.int64)
        places[self._order] = range(len(self._order))
        return np.lexsort((places[batch.stream], batch.time))

    # --- state ----------------------------------------------------------------------------------------------------

    @property
    def nbytes(self) -> int:
        """Bytes of the elements that wait, or of as many as have ever waited."""
        return self._early.nbytes + self._waiting.nbytes

    def live_ids(self) -> Iterator[Ids]:
        """Ids of the elements that wait."""
        yield from self._early.live_ids()
        yield from self._waiting.live_ids()

    def state(self) -> NamedValues:
        """The streams, the watermark, and the elements that wait, for the watermark or a boundary. Arrays are no copies."""
        early = self._early.elements
        waiting = concatenate_elements([*self._waiting.batches, *([] if early is None else [early])])
        columns = ((each.name, getattr(waiting, each.name)) for each in fields(waiting))
        return {
            "streams": [*sorted(self.streams)],
            "clock": self.follows_clock,
            "watermark": self._watermark.time,
            "frontier": self._watermark.frontier,
            **{f"waiting.{name}": column for name, column in columns if column is not None},
            **self._duplicates.state(),
        }

    def restore(self, state: NamedValues) -> None:
        """Continue from the state of a group with the same streams and lateness."""
        watermark = state["watermark"]
        assert isinstance(watermark, int)
        self._watermark.advance(watermark)
        self._watermark.frontier = cast("int | None", state.get("frontier"))
        self._duplicates.restore(state)
        columns = {
            name.removeprefix("waiting."): np.array(each) for name, each in state.items() if name.startswith("waiting.")
        }
        waiting = ElementBatch(**columns)
        self._early.keep(waiting if len(waiting) else None)


def groups_of(
    queries: Sequence[RunningQuery], follows: Callable[[Sequence[RunningQuery]], bool]
) -> dict[Key, list[RunningQuery]]:
    """The queries, in their order, by the streams that move their event time: those they read, and those of queries they feed.

    `follows`: does the time of queries that feed each other follow the clock?
    """
    members: list[list[RunningQuery]] = [[query] for query in queries]
    for query in queries:
        if query.feed is not None and query.feed.streams:
            fed = frozenset(query.feed.streams)
            joined = [each for each in members if query in each or any(fed & set(other.streams) for other in each)]
            members = [each for each in members if each not in joined]
            members.append([other for each in joined for other in each])
    found: dict[Key, list[RunningQuery]] = {}
    for each in members:
        streams = frozenset(stream for query in each for stream in _moving(query))
        found.setdefault((streams, follows(each)), []).extend(each)
    place = {query: at for at, query in enumerate(queries)}
    return {key: sorted(each, key=place.__getitem__) for key, each in found.items()}


def _moving(query: RunningQuery) -> Iterable[int]:
    """The streams whose elements move the event time of a query."""
    return query.streams if query.feed is None else {*query.streams, *query.feed.watched}


def _bounds_of(queries: Iterable[RunningQuery]) -> dict[tuple[int, ...], list[Bounds]]:
    """The bounds of all windows, by the streams of their queries; none if a query has no window, or is an input of another one."""
    bounds: dict[tuple[int, ...], list[Bounds]] = {}
    for query in queries:
        of_query = [window.bounds for window in query.dataflow.plan.windows]
        # Rules change between boundaries, too. Where each instant is one, programs take in elements one by one.
        changes_between = query.dataflow.plan.rules is not None or any(each.by_instant for each in of_query)
        if not of_query or changes_between or query.feeds:
            return {}
        bounds.setdefault(query.streams, []).extend(of_query)
    return bounds
