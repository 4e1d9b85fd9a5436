"""The local runner: elements in order of time to the dataflow of every query, in this process."""

from __future__ import annotations

import json
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from typing import Protocol, cast

import numpy as np
import numpy.typing as npt

from cqels_py.batches.elements import ElementBatch, Ids
from cqels_py.batches.rearrange import take_elements
from cqels_py.dataflow.shared_scans import SharedScansPool
from cqels_py.dataflow.static_data import StaticData
from cqels_py.dictionary import Dictionary
from cqels_py.event_time.ahead import AheadGuard, ClockGuard, Guard
from cqels_py.event_time.frontiers import Frontiers
from cqels_py.runners.event_time_group import EventTimeGroup, Key, groups_of
from cqels_py.runners.joining import AHEAD, DUPLICATE, LATE, Joining
from cqels_py.runners.protocol import Runner
from cqels_py.runners.running import BEFORE_ALL, RunningQuery
from cqels_py.runners.single_elements import SingleElements
from cqels_py.runners.statistics import Counters
from cqels_py.state.arrays import keep_freed_memory
from cqels_py.state.named_values import NamedValues, restore, values_of

_COLLECT_FROM = 100_000
_MOST_EARLY = 1_000_000
"""So many elements wait for those of other streams; then their sources wait."""
_BETWEEN_LOOKS = 1_000
"""Elements between two looks at the sizes of states."""
_MOST_IN_A_LOOK = 32
"""Queries whose states are looked at; the next look is at the next ones."""
Mask = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.int64]
_GROUP = "group."


class DroppedReceiver(Protocol):
    """The receiver of elements that are dropped because of their times."""

    def dropped(self, reason: str, elements: ElementBatch, numbers: Ids) -> None:
        """Elements of the current step (n >= 1), and their numbers (n) among all elements, from 1. `reason`: LATE, AHEAD or
        DUPLICATE.
        """
        ...


class LocalRunner(Runner):
    """Drives all queries of an engine; one thread pushes at a time.

    Queries over the same streams by the same clock have one event time, which elements of other streams do not move. `lateness`, in
    microseconds, is that of all streams but those in `lateness_of`, by number; the event time of several streams waits as long as
    the greatest of theirs. `waiting`: where all windows have a STEP, elements wait for the next boundary, or for `process_waiting`.
    `guard`: drops elements that are too far ahead of those before them. `clock`: for queries that follow it elements wait until it
    reaches their times, those that are too far ahead of it are dropped, and `follow` lets time go on. They are those that say so;
    of others those that read no stream `by_events`; one such query decides for those that it feeds, or that feed it. `max_state`: a
    query whose state has more bytes is detached, and fails; the others go on. `drops`: the streams in which an element that comes
    again is dropped. An element that is late for several queries is
    dropped and counted once.
    """

    def __init__(
        self,
        dictionary: Dictionary,
        lateness: int,
        *,
        lateness_of: Mapping[int, int] | None = None,
        waiting: bool = False,
        guard: AheadGuard | None = None,
        clock: ClockGuard | None = None,
        by_events: Collection[int] = (),
        max_state: int | None = None,
        drops: Collection[int] = (),
    ) -> None:
        self._queries: list[RunningQuery] = []
        self.pool = SharedScansPool()
        self._dictionary = dictionary
        self._lateness = lateness
        self._lateness_of = {} if lateness_of is None else lateness_of
        self._guard = guard
        self.drops = drops
        self.clock = clock
        self._by_events = by_events
        self._may_wait = waiting
        self._groups: list[EventTimeGroup] = []
        self._reading = _GroupsByStream(())
        self._singles: dict[int, SingleElements] = {}
        self._some_wait = False
        self._restored: list[NamedValues] = []
        self._advanced: int | None = None
        self.joining: Joining | None = None
        """A query that is given elements of before, if there is one."""
        self.frontiers = Frontiers()
        self._collect_at = _COLLECT_FROM
        self.max_state = max_state
        self._look_at_state = self._looked_at = 0
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
        former, self._queries = self._queries, queries
        self._end_singles()
        if queries and queries[:-1] == former and self._added(queries[-1]):
            return
        there = {group.key: group for group in self._groups}
        groups = []
        for key, members in groups_of(queries, self._follow).items():
            group = there.get(key) or self._new_group(key, members)
            group.set_queries(members, may_wait=self._may_wait)
            group.hold(self.frontiers)
            groups.append(group)
        self._groups = groups
        self._reading = _GroupsByStream(groups)
        self._some_wait = any(group.may_wait for group in groups)

    def stop(self, query: RunningQuery) -> None:
        """Evaluate a query no further. For any thread, also in a step, which ends soon for it; its state is lost then."""
        query.stop(self)

    def wants(self, source: object) -> bool:
        """Does a query read this source that nobody has asked to stop?"""
        return any(
            not (query.is_stopping or query.is_detached) and query.dataflow.reads(source) for query in self._queries
        )

    def _added(self, query: RunningQuery) -> bool:
        """Is it enough that its group has one query more?"""
        if any(each.feeds for each in self._queries):
            return False
        key = frozenset(query.streams), self._follow([query])
        group = next((each for each in self._groups if each.key == key), None)
        return group is not None and group.add(query)

    def _new_group(self, key: Key, members: Sequence[RunningQuery]) -> EventTimeGroup:
        streams, follows = key
        group = EventTimeGroup(
            streams,
            self._lateness_over(streams),
            self.counters,
            self.pool,
            self.drops,
            self.clock if follows else None,
        )
        if (state := self._restored_of(key)) is not None:
            group.restore(state)
        else:
            former = [each for each in self._groups if any(query in each for query in members)]
            group.inherit(former, self._advanced)
        return group

    def _follow(self, queries: Sequence[RunningQuery]) -> bool:
        """Does the time of queries that have one follow the clock?"""
        if self.clock is None:
            return False
        said = [query.by_clock for query in queries if query.by_clock is not None]
        return (
            any(said) if said else not any(stream in self._by_events for query in queries for stream in query.streams)
        )

    def clocks_of(self, stream: int) -> set[bool]:
        """Whether the queries that read a stream follow the clock: True and False, or both."""
        return {group.follows_clock for group, _ in self._reading.of(stream)}

    @property
    def all_follow(self) -> bool:
        """Are there queries, and do all follow the clock?"""
        return bool(self._groups) and all(group.follows_clock for group in self._groups)

    def _lateness_over(self, streams: Iterable[int]) -> int:
        """Microseconds that elements may come out of order where several streams are read: the most of any of them."""
        return max((self._lateness_of.get(stream, self._lateness) for stream in streams), default=self._lateness)

    def push(self, batch: ElementBatch) -> None:
        """Take in elements in order of arrival."""
        counters, before = self.counters, self.counters.elements
        if self.joining is not None:
            self.joining.hold_clock()
        counters.elements += len(batch.time)
        counters.triples += len(batch.subject)
        numbers: Ids | None = None
        guarded = None if self._guard is None else self._guard.admit(batch.time, batch.stream)
        if guarded is not None:
            numbers = np.arange(before + 1, counters.elements + 1)
            self._drop(AHEAD, batch, ~guarded, numbers)
            batch, numbers = take_elements(batch, np.flatnonzero(guarded)), numbers[guarded]
        left_out: dict[str, Mask] = {}
        taken: list[tuple[EventTimeGroup, ElementBatch]] = []
        for group, positions in self._reading.parts(batch):
            part = batch if positions is None else take_elements(batch, positions)
            # Each decides about the elements that those before it admit.
            for reason, admits in ((AHEAD, group.near), (LATE, group.admit), (DUPLICATE, group.new)):
                if (admitted := admits(part)) is not None:
                    left_out[reason] = _with_dropped(left_out.get(reason), len(batch.time), positions, admitted)
                    kept = np.flatnonzero(admitted)
                    part, positions = take_elements(part, kept), kept if positions is None else positions[kept]
            taken.append((group, part))
        if numbers is None and left_out:
            numbers = np.arange(before + 1, counters.elements + 1)
        for reason, dropped in left_out.items():
            assert numbers is not None
            self._drop(reason, batch, dropped, numbers)
        if self.joining is not None:
            self.joining.note_elements(batch, np.logical_or.reduce([*left_out.values()]) if left_out else None)
        for group, part in taken:
            group.take(part)
        self._end_push()

    def _end_push(self) -> None:
        self.release_terms()
        if self.max_state is not None and self.counters.elements >= self._look_at_state:
            self._look_at_state = self.counters.elements + _BETWEEN_LOOKS
            self._looked_at = 0 if self._looked_at >= len(self._queries) else self._looked_at
            first, self._looked_at = self._looked_at, self._looked_at + _MOST_IN_A_LOOK
            for query in self._queries[first : self._looked_at]:
                query.stop_beyond(self.max_state)

    def push_one(self, stream: int, time: int, lines: bytes, triples: int, scope: int) -> bool:
        """Take in an element without a graph as one compiled call. `lines`: the terms of its triples, each a line.

        False: nothing has happened, and it has to be encoded and pushed.
        """
        single = self.single(stream)
        return single is not None and single.take(time, lines, triples, scope)

    def single(self, stream: int) -> SingleElements | None:
        """The short way of a stream's elements, while it `stands`; None if there is none, or not yet."""
        single = self._singles.get(stream)
        if single is not None:
            return single
        groups = self._reading.of(stream)
        if (
            self.joining is not None
            or len(groups) != 1
            or (single := groups[0][0].single_elements(self, stream)) is None
        ):
            return None
        self._singles[stream] = single
        return single

    def _end_singles(self) -> None:
        """Queries come or go: elements take the short way no more, until it has been made anew."""
        for single in self._singles.values():
            single.stands = False
        self._singles.clear()

    @property
    def guard(self) -> AheadGuard | None:
        """That which drops elements that are too far ahead of those before them."""
        return self._guard

    def end_singles(self) -> None:
        """Elements have been taken in one by one: terms that nothing refers to may be released."""
        self._end_push()

    def begin_backfill(self, query: RunningQuery, guard: Guard | None) -> Joining:
        """A query that is to be added, and is given elements of before, but those that `guard` drops, while the others go on."""
        assert self.joining is None, "one query at a time is given elements of before"
        self.process_waiting()
        self._end_singles()
        streams = frozenset(query.streams)
        key = streams, self._follow([query])
        there = next((each for each in self._groups if each.key == key and each.has_begun), None)
        self.joining = Joining(self, query, key, self._lateness_over(streams), there, guard, self._advanced)
        if there is None:
            self.joining.group.hold(self.frontiers)
        return self.joining

    def backfill(self, joining: Joining, batch: ElementBatch) -> None:
        """Elements of before for a query, in order of arrival."""
        joining.backfill(batch)
        self.release_terms()

    def complete_backfill(self, joining: Joining) -> None:
        """No more elements of before follow: the query takes in the elements of meanwhile."""
        joining.complete()

    def catch_up(self, joining: Joining, most: int | None = None) -> bool:
        """Let the query take in so many of these elements; does none wait any more?"""
        caught_up = joining.catch_up(most)
        self.release_terms()
        return caught_up

    def end_backfill(self, joining: Joining) -> None:
        """The query can be added: it has had all."""
        self.process_waiting()
        joining.catch_up()
        self._groups = joining.joined(self._groups)
        self._end_singles()
        self.joining = None

    def give_up_backfill(self) -> None:
        """The query that is given elements of before will not be added."""
        self.joining = None

    def drop_of_before(self, reason: str, batch: ElementBatch, dropped: Mask) -> None:
        """Count and hand out elements that are dropped for a query that is given elements of before."""
        if dropped.any():
            self._drop(reason, batch, dropped, np.zeros(len(batch.time), np.int64))

    @property
    def nbytes(self) -> int:
        """Bytes of the elements that wait, or of as many as have ever waited."""
        return sum(group.nbytes for group in self._groups) + (0 if self.joining is None else self.joining.nbytes)

    @property
    def may_wait(self) -> bool:
        """Are there streams whose elements may wait for the boundary of a window?"""
        return self._some_wait

    def waits(self, stream: int, time: int, triples: int) -> bool:
        """Take in an element whose terms are looked up later, with others: `keep` then gets it. False if it cannot wait."""
        groups = self._reading.of(stream)
        for group, _ in groups:
            if not group.can_wait(stream, time):
                return False
        if not groups or (self._guard is not None and not self._guard.moves_to(stream, time)):
            return False
        for group, _ in groups:
            group.move_to(time)
        self.counters.elements += 1
        self.counters.triples += triples
        self.counters.move_to(time)
        return True

    def keep(self, batch: ElementBatch) -> None:
        """Elements that `waits` has taken in, in that order, before any other is pushed."""
        if self.joining is not None:
            self.joining.note_elements(batch, None)
        for group, positions in self._reading.parts(batch):
            group.keep(batch if positions is None else take_elements(batch, positions))

    def _drop(self, reason: str, batch: ElementBatch, dropped: Mask, numbers: Ids) -> None:
        """Count and hand out the elements that are dropped."""
        places = np.flatnonzero(dropped)
        self.counters.ahead += len(places) if reason == AHEAD else 0
        self.counters.late += len(places) if reason == LATE else 0
        if self.rejects is not None:
            self.rejects.dropped(reason, take_elements(batch, places), numbers[places])

    @property
    def accepts_from(self) -> int:
        """Elements before this instant (microseconds) are late for all queries; those up to it are complete for all."""
        return min((group.time for group in self._groups), default=BEFORE_ALL)

    @property
    def is_waiting(self) -> bool:
        """Are there elements that wait for the boundary of a window?"""
        return any(group.is_waiting for group in self._groups)

    def process_waiting(self) -> None:
        """Process the elements that wait for the boundary of a window, which gives no results."""
        for group in self._groups:
            group.process_waiting()

    def advance(self, time: int, *, begin: bool = True) -> None:
        """No element before `time` will come: mappings that expire before it do so now.

        `begin`: queries that have had no element are evaluated at that instant: their windows are empty.
        """
        if self._guard is not None:
            self._guard.advance(time)
        self._advanced = time if self._advanced is None else max(self._advanced, time)
        if self.joining is not None:
            self.joining.note(lambda group: group.advance(time))
        for group in self._groups:
            group.advance(time, begin=begin)
        self.release_terms()

    @property
    def can_part(self) -> bool:
        """Are there queries that need not wait for each other's streams, and room for the elements that wait meanwhile?"""
        return len(self._groups) > 1 and sum(group.early for group in self._groups) < _MOST_EARLY

    def hold(self, frontiers: Frontiers) -> None:
        """How far the sources of streams are: queries over several streams do not go beyond the least."""
        self.frontiers = frontiers
        if self.joining is not None:
            self.joining.hold_clock()
            self.joining.note(lambda group: group.hold(frontiers))
        for group in self._groups:
            group.hold(frontiers)
        self.release_terms()

    def is_due(self, time: int, behind: Container[int], now: int) -> bool:
        """May `follow` change more than watermarks, where it is `now` by the clock?"""
        return any(group.is_due(time, now) for group in self._following(behind))

    def follow(self, time: int, behind: Container[int] = ()) -> None:
        """No element before `time` (microseconds of the clock) is still on its way, but by their lateness: time goes on.

        It stands still for queries that read a stream that is `behind`: there are earlier elements that have not been read.
        """
        joining = self.joining
        if joining is not None and joining.key[1] and not any(stream in behind for stream in joining.key[0]):
            joining.hold_clock()
            joining.note(lambda group: group.follow(time))
        for group in self._following(behind):
            group.follow(time)
        self.release_terms()

    def _following(self, behind: Container[int]) -> Iterator[EventTimeGroup]:
        for group in self._groups:
            if group.follows_clock and not any(stream in behind for stream in group.streams):
                yield group

    def finish(self, until: int | None = None, *, ended: bool = False) -> None:
        """The sources have ended. Time stands at the last instant that is told; elements up to it are late from now on.

        `until`: queries whose last element is not later go on to the end of that instant, instead of their next boundary. Without
        it, and if not all has `ended`, time goes on with the clock for those that follow it: a boundary ahead of it would make the
        elements that come later late.
        """
        if until is not None:
            self._advanced = until + 1 if self._advanced is None else max(self._advanced, until + 1)
            if self._guard is not None:
                self._guard.advance(until + 1)
        if self.joining is not None and (until is not None or not self.joining.key[1]):
            self.joining.note(lambda group: group.finish(until))
        for group in self._groups:
            if ended or until is not None or not group.follows_clock:
                group.finish(until)
        self.release_terms()

    def update_static(self, query: RunningQuery, static: StaticData) -> None:
        """Replace the static data of one of the queries."""
        for group in self._groups:
            if query in group:
                group.update_static(query, static)
        self.release_terms()

    def state(self) -> dict[str, NamedValues]:
        """The event times, the counters, and the elements that wait (for the watermark or a boundary), for `restore`.

        Dataflows and dictionary have states of their own. Arrays are no copies: write them before the next element.
        """
        return {
            "event_time": {"advanced": self._advanced, "frontiers": json.dumps(self.frontiers.plain())},
            **({} if self._guard is None else {"ahead": values_of(self._guard)}),
            "counters": values_of(self.counters),
            **{f"{_GROUP}{number}": group.state() for number, group in enumerate(self._groups)},
        }

    def restore(self, state: dict[str, NamedValues]) -> None:
        """Continue from the state of a runner with the same lateness, whose streams had the same numbers.

        Its queries may come before or after this, but none of theirs elements.
        """
        self._advanced = cast("int | None", state["event_time"]["advanced"])
        self.frontiers = Frontiers.from_plain(json.loads(str(state["event_time"].get("frontiers", "[]"))))
        if self._guard is not None:
            restore(self._guard, state["ahead"])
        restore(self.counters, state["counters"])
        self._restored = [values for name, values in state.items() if name.startswith(_GROUP)]
        for group in self._groups:
            if (found := self._restored_of(group.key)) is not None:
                group.restore(found)

    def _restored_of(self, key: Key) -> NamedValues | None:
        streams, follows = key
        for each in self._restored:
            # States of earlier versions have one group for each set of streams.
            if frozenset(cast("list[int]", each["streams"])) == streams and each.get("clock", follows) == follows:
                return each
        return None

    def end_restore(self) -> None:
        """All queries that the state was of are there: later ones begin anew, also where they read the same streams."""
        self._restored = []

    def shrink(self) -> None:
        """Give back the room that states need no more; terms that they no longer have are released at the end of the next step.

        Results within a tick may come in another order afterwards, so an engine, whose results have numbers, never calls this.
        """
        # The state of one whose step has failed is not whole.
        shrunk = [query.dataflow.shrink() for query in self._queries if not query.is_detached]
        if any(shrunk):
            self._collect_at = 0

    def release_terms(self) -> None:
        """Release terms that nothing refers to, whenever the dictionary has doubled since the last time, or states have shrunk."""
        if len(self._dictionary) < self._collect_at:
            return
        visited: set[int] = set()
        joining = self.joining
        groups = self._groups if joining is None else [*self._groups, joining.group]
        queries = [query for group in groups for query in group.queries]
        live = [ids for query in queries for ids in query.dataflow.live_ids(visited)]
        for group in groups:
            live += group.live_ids()
        if joining is not None:
            live += joining.live_ids()
        self._dictionary.collect(live)
        for query in queries:
            query.dataflow.forget_evaluations()
        self._collect_at = max(_COLLECT_FROM, 2 * len(self._dictionary))


Part = tuple[EventTimeGroup, "Positions | None"]


class _GroupsByStream:
    """Which groups read the elements of a batch."""

    def __init__(self, groups: Iterable[EventTimeGroup]) -> None:
        self._groups = tuple(groups)
        streams = sorted(set().union(*(group.streams for group in self._groups)))
        self._of: dict[int, tuple[Part, ...]] = {
            stream: tuple((group, None) for group in self._groups if stream in group.streams) for stream in streams
        }
        # By number; the last place is for streams that no query reads.
        self._reads = np.zeros((len(self._groups), max(streams, default=-1) + 2), np.bool_)
        for group, reads in zip(self._groups, self._reads, strict=True):
            reads[list(group.streams)] = True

    def of(self, stream: int) -> tuple[Part, ...]:
        """Those that read a stream, as `parts` gives them."""
        return self._of.get(stream, ())

    def parts(self, batch: ElementBatch) -> Sequence[Part]:
        """The groups that read elements of a batch, each with the positions of these; None: all of the batch."""
        count = len(batch.time)
        if not count:
            return ()
        first = batch.stream.item(0)
        # Mostly the elements of a batch are of one stream.
        return self.of(first) if count == 1 or (batch.stream == first).all() else self._divided(batch)

    def _divided(self, batch: ElementBatch) -> list[Part]:
        stream = np.minimum(batch.stream, self._reads.shape[1] - 1)
        found: list[Part] = []
        for group, reads in zip(self._groups, self._reads, strict=True):
            is_read = reads[stream]
            if is_read.all():
                found.append((group, None))
            elif is_read.any():
                found.append((group, np.flatnonzero(is_read)))
        return found


def _with_dropped(others: Mask | None, count: int, positions: Positions | None, admitted: Mask) -> Mask:
    """Which of the batch's elements (count) are dropped for a group, besides those that are for others."""
    found = np.zeros(count, np.bool_) if others is None else others
    dropped = np.flatnonzero(~admitted)
    found[dropped if positions is None else positions[dropped]] = True
    return found
