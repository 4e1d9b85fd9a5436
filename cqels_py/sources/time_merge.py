"""Merges several sources into one sequence of elements, by time; ties in the order in which the sources were given.

Elements of a source wait until all others have reached their time, except those that are idle. Where not every query reads all of
them, that is left to the queries, if there are live sources: see `TimeMerge.parting`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from cqels_py.batches.elements import ElementBatch, Ids
from cqels_py.batches.rearrange import concatenate_elements, slice_elements, take_elements
from cqels_py.errors import DataError
from cqels_py.event_time.ahead import AheadGuard
from cqels_py.event_time.frontiers import Frontiers
from cqels_py.event_time.wall_clock import WallClock
from cqels_py.event_time.watermark import AFTER_ALL
from cqels_py.sources.batches import BatchSource
from cqels_py.sources.partitions import Returned
from cqels_py.sources.protocol import Partitioned, Source

_BEFORE_ALL = np.iinfo(np.int64).min


@dataclass(frozen=True, slots=True)
class Timing:
    """By which time the elements of a source are put in order: with a `clock` none is later than now, and silence passes, too.

    `other`: the clock, if it is not that of the order, but of some queries that read the source; `both`: there are queries of
    both kinds in the run.
    """

    clock: WallClock | None = None
    other: WallClock | None = None
    both: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """A position, and how many elements behind it have been taken. `numbers`: of several partitions, those of these elements, and of
    some that come after them. `order`: the times that decide about the places of elements behind the position; see `TimeMerge`."""

    position: object
    taken: int
    numbers: Sequence[int] = ()
    order: Sequence[int] | None = None


Piece = tuple[str, DataError]
"""Input that is left out, with the reason."""


@dataclass(slots=True)
class LeftOut:
    """The input of a source that is left out: it is `told` once the elements that were polled beside it have been taken, and the
    position that is logged is behind it.

    `polled`: by the current poll.
    """

    polled: list[Piece] = field(default_factory=list)
    _waiting: deque[tuple[int, list[Piece]]] = field(default_factory=deque)
    _passed: list[Piece] = field(default_factory=list)

    def add(self, reason: str, error: DataError) -> None:
        """A report of the source."""
        self.polled.append((reason, error))

    def polled_with(self, count: int) -> None:
        """The poll is over, after which the source has had so many elements."""
        if self.polled:
            self._waiting.append((count, self.polled))
            self.polled = []

    def passed(self, taken: int) -> None:
        """So many elements have been taken, and the position is behind them."""
        while self._waiting and self._waiting[0][0] <= taken:
            self._passed += self._waiting.popleft()[1]

    def told(self) -> list[Piece]:
        """The pieces that the position has passed, once."""
        told, self._passed = self._passed, []
        return told


class _MergedSource:
    """A source with the elements that were polled ahead.

    `keys`: the greatest time so far, element by element: an element out of order keeps its place behind its predecessors, so that
    lateness does not depend on the other sources. Elements with keys before `greatest` are all there. `live`: its elements come
    while it is read. One that is too far `ahead` keeps its place likewise: it will be dropped, and those behind it are not to wait
    for its time. With a `clock` none has a later place than now. `beside`: `greatest` for queries whose time is not that of this
    order.

    `_polled` and `_taken` count elements; `_positions`: the position after each poll whose elements have not all been taken, with
    their count; `_reached`: the last position up to which all have been taken; `_processed`: that of those which were
    processed, and may be committed.
    """

    def __init__(
        self, source: Source, ahead: int | None, timing: Timing, order: Sequence[int] | None, left_out: LeftOut
    ) -> None:
        self._source = source
        self._left_out = left_out
        self.partitions = source if isinstance(source, Partitioned) else None
        self._guard = None if ahead is None or timing.clock is not None else AheadGuard(ahead)
        self._in_order = timing.clock
        self.clock = timing.clock or timing.other
        self._both = timing.both
        self.beside = _BEFORE_ALL
        self.had_nothing = self.caught_up = False
        self.live = not isinstance(source, BatchSource) or source.live
        self.pending: list[ElementBatch] = []
        self.greatest = _BEFORE_ALL
        if order is not None:
            self.greatest, latest = order
            if self._guard is not None:
                self._guard.go_on(0, latest)
        self.ended = False
        self.keys = np.empty(0, np.int64)
        self._polled = self._taken = 0
        self._positions: deque[tuple[int, object, Sequence[int] | None]] = deque()
        self._reached: object = None
        self._processed: object = None
        self._resumes = bool(getattr(source, "resumes", False))
        # The last position that was reached, how many elements there were before it, and the order there.
        self._place: tuple[object, int, Sequence[int] | None] | None = (
            (source.position(), 0, self._order()) if self._resumes else None
        )
        # Polls of several partitions that have not been taken whole: how many elements came before, and up to their ends.
        self._returned: deque[tuple[int, int, Returned]] = deque()

    @property
    def place(self) -> Place | None:
        """Where another source can begin; None if there is no such place."""
        if self._place is None or self._place[0] is None:
            return None
        while self._returned and self._returned[0][1] <= self._taken:
            self._returned.popleft()
        if not self._returned:
            position, count, order = self._place
            return Place(position, self._taken - count, order=order)
        start, _, returned = self._returned[0]
        for _, _, later in islice(self._returned, 1, None):
            returned = returned.followed_by(later)
        return Place(returned.before, self._taken - start, returned.numbers)

    def _order(self) -> Sequence[int] | None:
        """The greatest key, and the latest time by which the guard judges; of a source that is no file, none is kept."""
        if self.live:
            return None
        return self.greatest, self.greatest if self._guard is None else self._guard.latest(0)

    def told(self) -> list[Piece]:
        """The input that was left out before `place`, and is to be told now."""
        return self._left_out.told()

    @property
    def idle(self) -> bool:
        return self._source.idle

    def keeps_before(self, time: int) -> bool:
        """Does the source keep back elements of before `time`?"""
        return self.partitions is not None and self.partitions.holds_before(time)

    def is_behind(self, time: int) -> bool:
        """May elements before `time` follow those that were taken?"""
        if not (self.caught_up or self.ended) or self.keeps_before(time):
            return True
        if self._both:
            return any(int(batch.time.min()) < time for batch in self.pending)
        return bool(len(self.keys) and self.keys.item(0) < time)

    def read(self) -> None:
        """Poll one more batch."""
        batch = self._source.poll()
        if batch is None:
            self.ended = True
            if self._left_out.polled:
                self._end_poll()
            return
        self.had_nothing = not len(batch)
        behind = bool(getattr(self._source, "behind", False))
        self.caught_up = self.had_nothing and not behind and (self.partitions is None or self.partitions.caught_up)
        if self._resumes and self.partitions is not None and len(batch) and (found := self.partitions.returned):
            self._returned.append((self._polled, self._polled + len(batch), found))
        self._polled += len(batch)
        if len(batch):
            time = batch.time
            if (
                self._guard is not None
                and (admitted := self._guard.admit(time, np.zeros(len(time), np.int32))) is not None
            ):
                time = np.where(admitted, time, self.greatest)
            if self._both:
                latest = int(time.max())
                by_clock = self.clock is not None and self._in_order is None
                self.beside = max(self.beside, min(latest, self.clock.now()) if self.clock and by_clock else latest)
            if self._in_order is not None:
                time = np.minimum(time, self._in_order.now())
            keys = np.maximum.accumulate(np.maximum(time, self.greatest))
            self.greatest = int(keys[-1])
            self.pending.append(batch)
            self.keys = np.concatenate([self.keys, keys])
        self._end_poll()

    def _end_poll(self) -> None:
        """The position is now behind all that the source has had."""
        if self._positions and self._positions[-1][0] == self._polled:
            self._positions.pop()
        position = self._source.position()
        beginning = getattr(self._source, "beginning", None)
        if beginning is not None and position is not None and self._place is not None and self._place[0] is None:
            # It is a place once the source turns out to have some.
            self._place = beginning, 0, self._place[2]
        self._positions.append((self._polled, position, self._order()))
        self._left_out.polled_with(self._polled)

    def take_before(self, frontier: int | None) -> tuple[ElementBatch, np.ndarray[tuple[int], np.dtype[np.int64]]]:
        """Elements with keys before the frontier, and their keys."""
        batch = concatenate_elements(self.pending)
        cut = len(batch) if frontier is None else int(np.searchsorted(self.keys, frontier, side="left"))
        keys = self.keys[:cut]
        self.pending = [slice_elements(batch, cut, len(batch))] if cut < len(batch) else []
        self.keys = self.keys[cut:]
        self._taken += cut
        while self._positions and self._positions[0][0] <= self._taken:
            count, self._reached, order = self._positions.popleft()
            if self._resumes:
                self._place = self._reached, count, order
        self._left_out.passed(self._taken)
        return slice_elements(batch, 0, cut), keys

    def advance(self, time: int) -> None:
        """By the clock it is this time: if the source has caught up, it has no element of before."""
        if self.clock is None:
            return
        if self.partitions is not None and self._in_order is not None:
            self.partitions.advance(time)
        if self.caught_up and not self.keeps_before(time):
            if self._in_order is None:
                self.beside = max(self.beside, time)
            else:
                self.greatest = max(self.greatest, time)

    def frontier(self, *, by_clock: bool) -> int:
        """Its elements before this instant have been returned, for queries that follow the clock, or others."""
        if self.ended or self.idle:
            return AFTER_ALL
        own = self._in_order is not None if self.clock is not None else by_clock
        return self.greatest if own == by_clock or not self._both else self.beside

    def commit(self) -> None:
        """Commit the elements that have been processed, if there are more of them than at the last commit."""
        if self._processed is not None:
            self._source.commit(self._processed)
            self._processed = None

    def mark_processed(self) -> None:
        """The elements that were taken have been processed."""
        if self._reached is not None:
            self._processed, self._reached = self._reached, None


class TimeMerge:
    """Iterates over the elements of all sources in one order, in batches; an empty one where nothing comes for now.

    `ahead`: as of `AheadGuard`. `timings`: of each source. While `parting` is set,
    elements of live sources are returned as they come, those of each source in its order, and whoever takes them has to wait for
    the others: `frontiers` says how far each is, and `before` how far it was before the batch. `streams`: the numbers of the
    sources' streams, for these. `parted`: elements of earlier sources of these streams have been taken so already. `orders`: of
    sources that begin at a position, the `Place.order` there: an element out of order has its place behind those before it, which
    are not read again. `left_out`: of each source, what its reports are added to if they are to be `told` with the places.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        ahead: int | None = None,
        timings: Sequence[Timing] = (),
        streams: Sequence[int] = (),
        *,
        parted: bool = False,
        orders: Sequence[Sequence[int] | None] = (),
        left_out: Sequence[LeftOut] = (),
    ) -> None:
        count = len(sources)
        given = zip(
            sources,
            timings or [Timing()] * count,
            orders or [None] * count,
            left_out or [LeftOut() for _ in sources],
            strict=True,
        )
        self._sources = [_MergedSource(source, ahead, timing, order, own) for source, timing, order, own in given]
        # No order suits all queries.
        self._both = any(timing.both for timing in timings)
        self._streams = streams
        self.parted = parted
        self.parting = False
        self.before = Frontiers()
        self.places_before: list[Place | None] = []
        self.told_before: list[list[Piece]] = []

    def places(self) -> list[Place | None]:
        """Of each source, how far its elements have been returned; see `_MergedSource.place`."""
        return [source.place for source in self._sources]

    def told(self) -> list[list[Piece]]:
        """Of each source, the input that was left out before its place, and has not been told."""
        return [source.told() for source in self._sources]

    def frontiers(self) -> Frontiers:
        """How far the elements of streams have been returned; none as long as all come in one order of time."""
        if not self.parted:
            return Frontiers()
        by_events, by_clock = (
            {
                stream: source.frontier(by_clock=each)
                for stream, source in zip(self._streams, self._sources, strict=True)
            }
            for each in (False, True)
        )
        return Frontiers(by_events, None if by_events == by_clock else by_clock)

    def behind(self, time: int) -> frozenset[int]:
        """The streams of which elements before `time` may follow: in this round their sources had some, or were not asked."""
        pairs = zip(self._streams, self._sources, strict=True)
        found = frozenset(stream for stream, source in pairs if source.is_behind(time))
        return found if self.parted or not found else frozenset(self._streams)

    def advance(self, time: int) -> None:
        """The sources with a clock that have caught up have no element before `time`: others do not wait for them."""
        for source in self._sources:
            source.advance(time)

    def live_ids(self) -> Iterator[Ids]:
        """Ids of elements that were read, but wait for those of another source."""
        for source in self._sources:
            for batch in source.pending:
                yield from batch.live_ids()
            if source.partitions is not None:
                yield from source.partitions.live_ids()

    def __iter__(self) -> Iterator[ElementBatch]:
        while unfinished := [source for source in self._sources if not source.ended]:
            self.parted = self.parted or (self.parting and (self._both or any(source.live for source in unfinished)))
            self.before = self.frontiers()
            self._ask(unfinished)
            self.places_before, self.told_before = self.places(), self.told()
            merged = self._merge(None if self.parted and self.parting else self._frontier())
            if len(merged) or any(source.had_nothing for source in unfinished):
                yield merged

    def _ask(self, unfinished: Sequence[_MergedSource]) -> None:
        """Poll the sources that hold up others, or may have had elements meanwhile."""
        lowest = min([source.greatest for source in unfinished if not source.idle], default=_BEFORE_ALL)
        # Those that are behind have nothing: whoever does not wait for them can have more of the others.
        stuck = all(source.had_nothing for source in unfinished if source.greatest == lowest)
        for source in unfinished:
            # With a clock, one that had nothing is asked again: only those that are asked in this round have caught up.
            asked_again = source.caught_up and source.clock is not None
            parted = self.parted and self.parting and (source.live or stuck)
            source.had_nothing = source.caught_up = False
            if source.idle or source.greatest == lowest or asked_again or parted:
                source.read()

    def _frontier(self) -> int | None:
        """No source that others wait for has elements before this instant that were not read; None: nothing is waited for."""
        frontiers = [source.greatest for source in self._sources if not source.ended and not source.idle]
        # A single source has nothing to wait for.
        return min(frontiers) if frontiers and len(self._sources) > 1 else None

    def mark_processed(self) -> None:
        """The elements of all batches that this has returned have been processed, and may be committed."""
        for source in self._sources:
            source.mark_processed()

    def commit(self) -> None:
        """Commit, in each source, the elements that have been processed. Sources without a position have nothing to commit."""
        for source in self._sources:
            source.commit()

    def _merge(self, frontier: int | None) -> ElementBatch:
        taken = [source.take_before(frontier) for source in self._sources]
        batches = [batch for batch, _ in taken if len(batch)]
        if len(batches) <= 1:
            return concatenate_elements(batches)
        keys = np.concatenate([keys for batch, keys in taken if len(batch)])
        return take_elements(concatenate_elements(batches), np.argsort(keys, kind="stable"))
