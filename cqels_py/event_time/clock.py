"""The clock of a query: it decides which instants are ticks, and their order.

At one instant the ticks are, in this order: an expiry (unless an element arrives at that instant: then the expiry is part of
that arrival's tick), the arrivals one by one, the boundary of windows with STEP together with the ends of sessions.

    time      10        12        15
    ticks     a a a     x         a   b        a: an arrival · x: something expires, or enters late · b: a boundary

A boundary, and an expiry where nothing arrives, is only a tick when the stream has moved past that instant: until then an
element may still come at it. So the ticks do not depend on how the elements were batched. A session ends at the end of the
instant last + gap, as an element that arrives at that very instant continues it. Where each value has sessions of its own the
clock does not know them: the end of every instant t + gap is a tick.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cqels_py.errors import RunError
from cqels_py.event_time.timers import EventTimers
from cqels_py.event_time.windows import BEFORE_ALL, NEVER, Bounds, Measure, Points
from cqels_py.kernels.primitives.dtypes import INT32, INT64
from cqels_py.kernels.primitives.state_record import StateArray, StateRecord
from cqels_py.kernels.windows import clock as kernel
from cqels_py.kernels.windows import varint_queue as queue

_BEFORE_ALL = np.iinfo(np.int64).min // 2

_NONE = np.empty(0, np.int64)
_NO_STREAMS = np.empty(0, np.int32)
_NO_TRIPLES = np.zeros(1, np.int64)
_FIRST_ROOM = 256
_SHRINK_FROM = 4
_MORE = 128
"""Bytes of varints from this one on say that more follow."""
_MOST_KEPT = 1 << 16
"""The most ticks whose arrays are kept from step to step."""
_MOST_BOUNDARIES = 100_000_000
"""The most boundaries that one step may pass of a window that reports at each of them."""


@dataclass(slots=True)
class Ticks:
    """The ticks of one step, in order; a delta's tick is a position in `time` (microseconds).

    `first`: the first of them is the query's first tick. `known_through`: the watermark, the instant through whose end all elements
    are known, with those of this step. More elements may arrive at a later instant, also at that of the last tick.
    """

    time: npt.NDArray[np.int64]
    first: bool
    known_through: int = NEVER

    def __len__(self) -> int:
        return len(self.time)


@dataclass(frozen=True, slots=True)
class ClockedWindow:
    """A window as the clock sees it: the number of its stream within the query, its bounds, and whether it has PARTITION BY."""

    stream: int
    bounds: Bounds
    partitioned: bool = False


@dataclass(slots=True)
class Step:
    """One step of the clock: which elements are ticks, and how far the windows have moved.

    `element_tick` (n elements): the tick of an arrival, -1 where it is none. `number` (n): the element's number in its stream, from
    1. `expired_through`: expiries of eager time windows have happened through this instant. `boundary_through`: where windows
    have boundaries, for each the instant through whose end they have passed. `session_ends`: for each window, the instants at whose
    ends its sessions have ended (with STEP: through the last boundary; with PARTITION BY: may have), in order; an end without a
    tick of its own belongs to the next tick. `ended_through`: the instant through whose end sessions have ended.
    """

    ticks: Ticks
    element_tick: npt.NDArray[np.int32]
    number: npt.NDArray[np.int64]
    expired_through: int
    boundary_through: tuple[int, ...]
    session_ends: tuple[Points, ...]
    ended_through: int

    @property
    def last_session_end(self) -> int:
        """The last instant at which a session of a window has ended, or with PARTITION BY may have; before all if none has."""
        return max([ends.item(-1) for ends in self.session_ends if len(ends)], default=BEFORE_ALL)


def _each_once(instants: Points) -> Points:
    """Instants in order, each once."""
    new = np.empty(len(instants), np.bool_)
    new[:1] = True
    np.not_equal(instants[1:], instants[:-1], out=new[1:])
    return instants[new]


def _joined(chunks: Iterable[Points]) -> Points:
    return np.concatenate([_NONE, *chunks])


def _merged(runs: Sequence[Points]) -> Points:
    """Runs of instants as one, each instant once."""
    if not runs:
        return np.empty(0, np.int64)
    # Runs are in order: this sort merges them.
    return _each_once(runs[0] if len(runs) == 1 else np.sort(np.concatenate(runs), kind="stable"))


class _Schedule:
    """Instants to come, in order, at which a window with STEP changes."""

    STATE = ("instants",)

    def __init__(self) -> None:
        self._chunks: deque[Points] = deque()

    @property
    def next_instant(self) -> int:
        return int(self._chunks[0][0]) if self._chunks else NEVER

    @property
    def last(self) -> int:
        """The last of them; before all where there is none."""
        return self._chunks[-1].item(-1) if self._chunks else _BEFORE_ALL

    @property
    def instants(self) -> Points:
        return _joined(self._chunks)

    @instants.setter
    def instants(self, instants: Points) -> None:
        self._chunks = deque([instants] if len(instants) else [])

    @property
    def to_come(self) -> list[int]:
        """The instants, each once."""
        return list(map(int, _each_once(self.instants)))

    def add(self, instants: Points) -> None:
        # Elements that come one by one mostly set the same instant.
        if len(instants) and instants.item(-1) != self.last:
            self._chunks.append(_each_once(instants))

    def take_through(self, limit: int) -> list[Points]:
        taken: list[Points] = []
        while self._chunks:
            chunk = self._chunks[0]
            cut = int(np.searchsorted(chunk, limit, side="right"))
            if cut == 0:
                break
            taken.append(chunk[:cut])
            if cut < len(chunk):
                self._chunks[0] = chunk[cut:]
                break
            self._chunks.popleft()
        return taken


class _OpenInstant:
    """The last instant of a stream's elements, until it has ended: a window that changes at the end of each changes then.

    `opened` (1): it, or NEVER, where kernels find it between two steps.
    """

    STATE = ("instants",)

    def __init__(self, opened: Points) -> None:
        self._opened = opened
        self._added: list[Points] = []

    @property
    def next_instant(self) -> int:
        return self._opened.item()

    @property
    def instants(self) -> Points:
        found: Points = self._opened[self._opened != NEVER]
        return found

    @instants.setter
    def instants(self, instants: Points) -> None:
        self._opened[:] = NEVER
        # Of a step only one is left: the time of its last element.
        self._opened[: len(instants)] = instants

    @property
    def to_come(self) -> list[int]:
        """The instants, each once."""
        return list(map(int, self.instants))

    def add(self, instants: Points) -> None:
        self._added.append(instants)

    def take_through(self, limit: int) -> list[Points]:
        instants = _each_once(_joined([self.instants, *self._added]))
        cut = int(np.searchsorted(instants, limit, side="right"))
        self._added, self.instants = [], instants[cut:]
        return [instants[:cut]] if cut else []


class _Sessions:
    """When the sessions of a window end: a gap after its stream's last element, unless another arrives within it.

    `last` (1): the time of that element while its session is open, or NEVER, where kernels find and set it.
    """

    STATE = ("_last", "ended")

    def __init__(self, gap: int, last: Points) -> None:
        self._gap = gap
        self._last_of = last
        self._ended: list[Points] = []

    @property
    def _last(self) -> int | None:
        last = self._last_of.item()
        return None if last == NEVER else last

    @_last.setter
    def _last(self, time: int | None) -> None:
        self._last_of[0] = NEVER if time is None else time

    @property
    def next_instant(self) -> int:
        """The instant of the first end, if no more elements arrive."""
        ended = self.ended
        if len(ended):
            return int(ended[0])
        return NEVER if self._last is None else self._last + self._gap

    @property
    def has_ended(self) -> bool:
        """Are there ends that have not been taken yet?"""
        return bool(self._ended)

    @property
    def ended(self) -> Points:
        """The ends that have not been taken yet."""
        return _joined(self._ended)

    @ended.setter
    def ended(self, ended: Points) -> None:
        self._ended = [ended] if len(ended) else []

    @property
    def to_come(self) -> tuple[int | None, list[int]]:
        """All that decides the ends to come, beside the elements that come."""
        return self._last, self.ended.tolist()

    def add(self, time: Points) -> None:
        if len(time) == 0:
            return
        if self._last is not None:
            time = np.concatenate([[self._last], time])
        self._ended.append(time[:-1][np.diff(time) > self._gap] + self._gap)
        self._last = int(time[-1])

    def take_through(self, limit: int) -> Points:
        """The ends at or before `limit`; no element at or before it will arrive any more."""
        if self._last is not None and self._last + self._gap <= limit:
            self._ended.append(np.array([self._last + self._gap]))
            self._last = None
        ended = self.ended
        cut = int(np.searchsorted(ended, limit, side="right"))
        self._ended = [ended[cut:]] if cut < len(ended) else []
        return ended[:cut]


class _PossibleSessionEnds:
    """When sessions of single values may end: a gap after each element."""

    STATE = ("_schedule",)
    has_ended = True

    def __init__(self, gap: int) -> None:
        self._gap = gap
        self._schedule = _Schedule()

    @property
    def next_instant(self) -> int:
        return self._schedule.next_instant

    @property
    def to_come(self) -> list[int]:
        """All that decides the ends to come, beside the elements that come."""
        return self._schedule.to_come

    def add(self, time: Points) -> None:
        self._schedule.add(time + self._gap)

    def take_through(self, limit: int) -> Points:
        return _merged(self._schedule.take_through(limit))


class TickClock(StateRecord):
    """Turns batches of elements into ticks.

    `every_boundary`: each boundary is a tick (RSTREAM reports at it); otherwise only those at which a window may change.
    `timers`: those of operators, which become ticks too.
    """

    _eager = StateArray[np.bool_](kernel.EAGER)
    _steps = StateArray[np.int64](kernel.STEPS)
    _counts = StateArray[np.int64](kernel.COUNTS)
    _delays = StateArray[np.int64](kernel.OFFSETS)
    _delayed = StateArray[np.bool_](kernel.PROMISING)
    _queues = StateArray[np.uint8](kernel.VARINTS)
    _ends = StateArray[np.int64](kernel.PLACES)
    _due = StateArray[np.int64](kernel.DUE)
    _instants = StateArray[np.int64](kernel.INSTANTS)
    _quiet = StateArray[np.int64](kernel.QUIET)
    _open = StateArray[np.int64](kernel.OPEN)
    _opened_by = StateArray[np.int64](kernel.OPENED_BY)
    _gaps = StateArray[np.int64](kernel.SESSIONS)
    _last_of = StateArray[np.int64](kernel.LAST_OF)

    STATE = (
        *("_counts", "_entries", "_exits", "_sessions", "_next_boundary"),
        *("_now", "_started", "_ticked", "_through", "_queues", "_ends", "timers"),
    )

    def __init__(
        self,
        windows: Sequence[ClockedWindow],
        streams: int,
        *,
        every_boundary: bool,
        timers: EventTimers | None = None,
    ) -> None:
        self._windows = tuple(windows)
        self.timers = timers
        self._every_boundary = every_boundary
        self.streams = streams
        """How many there are."""
        self._counts = np.zeros((2, streams), np.int64)
        by_instant = [index for index, window in enumerate(self._windows) if window.bounds.by_instant]
        self._open = np.full(len(by_instant), NEVER, np.int64)
        self._opened_by = np.array([self._windows[index].stream for index in by_instant], np.int64)
        opened = {index: self._open[place : place + 1] for place, index in enumerate(by_instant)}
        self._entries = [
            _OpenInstant(opened[index]) if index in opened else _Schedule() for index in range(len(self._windows))
        ]
        self._exits = [_Schedule() for _ in windows]
        self._sessions = self._make_sessions()
        self._next_boundary: list[int | None] = [None] * len(self._windows)
        self._now = _BEFORE_ALL
        self._started = False
        self._ticked = False
        # The instant at which time stands, when sources have ended and nothing has followed; all that is due by then is known.
        self._through = _BEFORE_ALL
        self._eager = np.zeros(streams, np.bool_)
        steps: list[tuple[int, int, int]] = []
        for window in self._windows:
            bounds = window.bounds
            if bounds.step is None:
                self._eager[window.stream] = True
            elif not bounds.of_time:
                counted = kernel.ELEMENTS if bounds.measure is Measure.ELEMENTS else kernel.TRIPLES
                steps.append((window.stream, bounds.step, counted))
        self._steps = np.array(steps, np.int64).reshape(-1, 3)
        # Most queries' windows change at arrivals, and a fixed time after them.
        self._plain = timers is None and not self._sessions and not any(map(self._timed_step, self._windows))
        self._quiet = np.full(streams, NEVER if self._plain else _BEFORE_ALL)
        self._no_ends = (_NONE,) * len(self._windows)
        streams_by_delay = _streams_by_delay(self._windows)
        self._delays = np.array(list(streams_by_delay), np.int64)
        self._delayed = np.zeros((len(self._delays), streams), np.bool_)
        for q, delayed in enumerate(streams_by_delay.values()):
            self._delayed[q, list(delayed)] = True
        # For each delay a queue of the instants that are to come: their differences, and its two ends.
        self._queues = np.zeros((len(self._delays), _FIRST_ROOM), np.uint8)
        self._ends = np.zeros((len(self._delays), kernel.ENDS), np.int64)
        self._ends[:, [queue.NEWEST, queue.EXPIRING + queue.PASSED]] = _BEFORE_ALL
        self._make_tick_room(_FIRST_ROOM, _FIRST_ROOM)

    @property
    def now(self) -> int | None:
        """The time of the last element; None before the first."""
        return self._now if self._started else None

    def _make_sessions(self) -> dict[int, _Sessions | _PossibleSessionEnds]:
        """Those of windows of sessions, by window."""
        gaps = {
            index: window.bounds.size
            for index, window in enumerate(self._windows)
            if window.bounds.measure is Measure.SESSION and window.bounds.size is not None
        }
        told = [index for index in gaps if not self._windows[index].partitioned]
        self._gaps = np.array([(self._windows[index].stream, gaps[index]) for index in told], np.int64).reshape(-1, 2)
        self._last_of = np.full(len(told), NEVER, np.int64)
        last = {index: self._last_of[place : place + 1] for place, index in enumerate(told)}
        return {
            index: _Sessions(gap, last[index]) if index in last else _PossibleSessionEnds(gap)
            for index, gap in gaps.items()
        }

    @property
    def _has_timers(self) -> bool:
        return self.timers is not None and self.timers.next_instant != NEVER

    def next_instant(self) -> int:
        """Before this instant nothing but an arrival is a tick; NEVER where no tick is to come."""
        waiting = self._ends[:, queue.END] != self._ends[:, queue.EXPIRING + queue.AT]
        found = self._ends[waiting, queue.EXPIRING + queue.NEXT].tolist()
        found += [each.next_instant for each in (*self._entries, *self._exits, *self._sessions.values())]
        found += [boundary for boundary in self._next_boundary if boundary is not None and self._every_boundary]
        return min(found, default=NEVER) if self.timers is None else min([*found, self.timers.next_instant])

    @property
    def through(self) -> int:
        """The instant through whose end all has been told."""
        return max(self._now - 1, self._through)

    def step(self, time: Points, stream: npt.NDArray[np.int32], first: Points) -> Step:
        """Take in elements: `time` (n) not falling and not before `now`, `stream` (n) numbers within the query.

        `first` (n + 1): where the triples of each begin among those of all.
        """
        if len(time):
            self._now = time.item(-1)
            if not self._plain:
                self._schedule(time, stream)
            self._started = True
        through = self.through
        return self._make(time, stream, first, through, () if self._plain else (through,) * len(self._windows))

    @property
    def takes_single(self) -> bool:
        """May `kernels.windows.clock.step` alone take in most single elements, those up to QUIET?"""
        return self.timers is None or (self.timers.least_delay is None and not self._sessions)

    def set_timers(self, instants: Points) -> None:
        """Ask for ticks at the ends of these instants, which are to come in the next step."""
        for instant in instants.tolist():
            assert self.timers is not None
            self.timers.set(instant)

    def _know_quiet(self) -> None:
        """The steps of elements up to which times pass no boundary, and set none that is not noted, by stream."""
        if not self.takes_single:
            return
        schedules = [each for each in (*self._entries, *self._exits) if isinstance(each, _Schedule)]
        following = [boundary for boundary in self._next_boundary if boundary is not None and self._every_boundary]
        # With STEP, sessions that have ended wait for a boundary.
        following += [each.next_instant for each in self._sessions.values() if each.has_ended]
        if self.timers is not None:
            following.append(self.timers.next_instant)
        self._quiet[:] = min([*following, *(each.next_instant for each in schedules)], default=NEVER)
        for index, window in enumerate(self._windows):
            bounds, stream, entries = window.bounds, window.stream, self._entries[index]
            if isinstance(self._sessions.get(index), _PossibleSessionEnds):
                # Each element sets another one.
                self._quiet[stream] = _BEFORE_ALL
            if not self._timed_step(window) or isinstance(entries, _OpenInstant):
                continue
            noted = entries.last - bounds.delay
            if bounds.size is not None and index not in self._sessions:
                noted = min(noted, self._exits[index].last - bounds.delay - bounds.size)
            self._quiet[stream] = min(self._quiet.item(stream), noted)

    @property
    def counts(self) -> tuple[list[int], list[int]]:
        """How many elements have come, and how many triples, by stream."""
        elements, triples = self._counts.tolist()
        return elements, triples

    @property
    def has_ticked(self) -> bool:
        """Has there been a tick?"""
        return self._ticked

    @property
    def can_merge(self) -> bool:
        """May a clock that began earlier take its place as soon as both stand together?

        Otherwise only where they also have the same ticks to come.
        """
        return not self._sessions and not self._every_boundary

    def number_as(self, other: TickClock) -> None:
        """Before the first element: the next one has the number that it has for a clock of the same streams."""
        assert not self._started
        self._counts[:] = other._counts

    def stands_with(self, other: TickClock) -> bool:
        """Have both had a tick, and stand at the same instant and the same elements?"""
        at, others = (self._ticked, self._now, self.through), (other._ticked, other._now, other.through)
        return self._ticked and at == others and bool((self._counts == other._counts).all())

    def has_ticks_of(self, other: TickClock) -> bool:
        """Are the ticks to come those of another clock with the same windows, beside which it stands, whatever comes?"""
        return self.next_instant() == other.next_instant() and self._to_come() == other._to_come()

    def _to_come(self) -> list[object]:
        """All that decides the ticks to come, beside the elements that come."""
        changes = [each.to_come for each in (*self._entries, *self._exits, *self._sessions.values())]
        # Only where each boundary is a tick these go on.
        boundaries = self._next_boundary if self._every_boundary else ()
        return [*changes, boundaries, *map(self._waiting_instants, range(len(self._delays)))]

    def _waiting_instants(self, q: int) -> tuple[int, int, bytes]:
        """Those in a queue: the first one, the last one, and the differences between them."""
        ends, room = self._ends[q], self._queues.shape[1]
        start = ends.item(queue.EXPIRING + queue.AT)
        used = (ends.item(queue.END) - start) % room
        if not used:
            return NEVER, NEVER, b""
        waiting = np.roll(self._queues[q], -start)[:used]
        # The first difference is to an instant that has passed; its last byte says that no more follow.
        first = int(np.argmax(waiting < _MORE))
        return ends.item(queue.EXPIRING + queue.NEXT), ends.item(queue.NEWEST), waiting[first + 1 :].tobytes()

    def told_before(self, time: int) -> int:
        """The instant through whose end all is told where the next element has this time."""
        return time - 1 if time > self._through else self._through

    def took_in(self, time: int) -> None:
        """`kernels.windows.clock.step` has taken in an element by this record."""
        self._now = time

    def step_of_one(
        self, time: int, ticks: int, through: int, element_tick: npt.NDArray[np.int32], number: Points
    ) -> Step:
        """The step of an element that the kernel has taken in, not at the first tick: its status and rows."""
        made = self.ticks_of_one(time, ticks)
        self._now, told = time, made.known_through
        limits = () if self._plain else (told,) * len(self._windows)
        return Step(made, element_tick, number, through, limits, self._no_ends, told)

    def tell(self, ticks: Ticks) -> bool:
        """Let entries of programs read the ticks of the current step. False: there is no room for them."""
        if len(ticks) > len(self._instants):
            return False
        self._instants[: len(ticks)] = ticks.time
        return True

    def ticks_of_one(self, time: int, ticks: int) -> Ticks:
        """So many ticks that the kernel has written for an element, of which none is the first."""
        return Ticks(self._instants[:ticks].copy(), False, self.told_before(time))

    def instant(self, tick: int) -> int:
        """The time of a tick of the current step."""
        return self._instants.item(tick)

    @property
    def may_begin(self) -> bool:
        """Has nothing come yet, and are there windows, or rules?"""
        # Other operators that set timers see nothing before the first element.
        told = bool(self._windows) if self.timers is None else self.timers.least_delay is None
        return not self._started and told

    def begin(self, time: int) -> Step:
        """Time begins at this instant, before all its elements: with eager windows it is the first tick.

        Windows with STEP have their first tick at the first boundary at or after it.
        """
        assert self.may_begin
        self._now, self._started, first = time, True, np.array([time])
        for index, window in enumerate(self._windows):
            if self._timed_step(window):
                boundary = window.bounds.boundary(first)
                self._entries[index].add(boundary)
                self._next_boundary[index] = int(boundary[0])
        own = first if any(window.bounds.eager for window in self._windows) else _NONE
        return self._make(_NONE, _NO_STREAMS, _NO_TRIPLES, time - 1, (time - 1,) * len(self._windows), own=own)

    def advance(self, time: int) -> Step:
        """No element before `time` will arrive any more."""
        if time > self._now and (self._started or self._has_timers):
            self._now, self._started = time, True
        through = self.through
        return self._make(_NONE, _NO_STREAMS, _NO_TRIPLES, through, (through,) * len(self._windows))

    def finish(self) -> Step:
        """The sources have ended: the boundary at or after the last element is still a tick, later expiries are not.

        Of windows with different STEPs all boundaries are ticks up to the latest of theirs: then the answer is complete for all.
        Time stands there until later elements come, or `advance`; a second call tells nothing more.
        """
        if self._through >= self._now:
            return self.advance(self._now)
        if (
            self.timers is not None
            and self.timers.least_delay is None
            and (last := self.timers.last_instant) is not None
        ):
            # Other windows have moved on to this instant.
            self._now, self._started = max(self._now, last), True
        end = self.last_instant()
        limits = tuple(end if self._timed_step(w) else self._now for w in self._windows)
        # Mappings that expire between the last element and a later boundary are gone at that boundary, without ticks of their own.
        step = self._make(_NONE, _NO_STREAMS, _NO_TRIPLES, self._now, limits, last=end)
        if self._started:
            self._stand_at(end)
        return step

    def _stand_at(self, instant: int) -> None:
        """All is told through the end of this instant: one that was due by then, without a tick of its own, gets none later."""
        passed, self._now, self._through = self._now, instant, instant
        if instant == passed:
            return
        if self.timers is not None:
            self.timers.due(instant)
        self._make(_NONE, _NO_STREAMS, _NO_TRIPLES, instant, (instant,) * len(self._windows))

    def last_instant(self) -> int:
        """That through which `finish` goes: of the last element, or of a boundary that follows it."""
        if not self._started:
            return self._now
        return max([self._now, *(self._last_boundary(w) for w in self._windows if self._timed_step(w))])

    def _last_boundary(self, window: ClockedWindow) -> int:
        """The first boundary at or after the last element."""
        return int(window.bounds.boundary(np.array([self._now]))[0])

    @staticmethod
    def _timed_step(window: ClockedWindow) -> bool:
        return window.bounds.of_time and not window.bounds.eager

    def _schedule(self, time: Points, stream: npt.NDArray[np.int32]) -> None:
        """Note when windows with STEP change, and sessions end, because of these elements."""
        first = time[:1]
        for index, window in enumerate(self._windows):
            bounds = window.bounds
            if not bounds.of_time or (bounds.eager and index not in self._sessions):
                continue
            mine = time if self.streams == 1 else time[stream == window.stream]
            if index in self._sessions:
                self._sessions[index].add(mine)
            if bounds.eager:
                continue
            if self._next_boundary[index] is None:
                self._entries[index].add(bounds.boundary(first))
                self._next_boundary[index] = int(bounds.boundary(first)[0])
            self._entries[index].add(bounds.entry(mine))
            if bounds.size is not None and index not in self._sessions:
                self._exits[index].add(bounds.exit(mine))

    def _ended_sessions(self, ended_through: int, limits: Sequence[int]) -> tuple[Points, ...]:
        """The ended sessions of each window; with STEP those that had ended at its last boundary."""
        found: list[Points] = []
        for index, (window, limit) in enumerate(zip(self._windows, limits, strict=True)):
            through = ended_through if window.bounds.eager else window.bounds.passed(limit)
            found.append(self._sessions[index].take_through(through) if index in self._sessions else _NONE)
        return tuple(found)

    def _boundaries(self, limits: Sequence[int]) -> list[Points]:
        found: list[Points] = []
        for index, (window, limit) in enumerate(zip(self._windows, limits, strict=True)):
            if not self._timed_step(window):
                continue
            found += self._entries[index].take_through(limit)
            found += self._exits[index].take_through(limit)
            following = self._next_boundary[index]
            if self._every_boundary and following is not None and following <= limit:
                step = window.bounds.step
                assert step is not None
                if (limit - following) // step >= _MOST_BOUNDARIES:
                    raise _too_far(limit, following, step)
                every = np.arange(following, limit + 1, step, dtype=np.int64)
                self._next_boundary[index] = int(every[-1]) + step
                found.append(every)
        return found

    def _make(
        self,
        time: Points,
        stream: npt.NDArray[np.int32],
        first: Points,
        expired_through: int,
        limits: tuple[int, ...],
        last: int | None = None,
        own: Points = _NONE,
    ) -> Step:
        """`last`: the streams have ended, and this is the last instant of all. `own`: a tick, behind those of expiries."""
        ended_through = expired_through if last is None else last
        boundary, ended = _NONE, self._no_ends
        if not self._plain:
            boundary, ended = self._boundary(ended_through, limits, at_end=last is not None)
        if len(own):
            boundary = _merged([boundary, own])
        elements = len(time)
        number, element_tick = np.empty(elements, INT64), np.empty(elements, INT32)
        while True:
            count, through = kernel.step(
                time, stream, first, boundary, expired_through, self.address, number, element_tick
            )
            if count >= 0:
                break
            if count == kernel.VARINTS_FULL:
                self._lay_out_queues(self._room_for(elements))
            else:
                # Mostly as many instants are due as elements arrive.
                self._make_tick_room(max(2 * self._due.shape[1], elements + 1), elements + len(boundary))
        ticks = Ticks(self._instants[:count].copy(), count > 0 and not self._ticked, ended_through)
        if len(self._instants) > _MOST_KEPT:
            self._make_tick_room(_FIRST_ROOM, _FIRST_ROOM)
            # Programs with room for the ticks go on with the step.
            self.tell(ticks)
        if count:
            self._ticked = True
        if not self._plain:
            self._know_quiet()
        return Step(ticks, element_tick, number, through if last is None else last, limits, ended, ended_through)

    def _boundary(
        self, ended_through: int, limits: Sequence[int], *, at_end: bool
    ) -> tuple[Points, tuple[Points, ...]]:
        """The boundaries and the ends of sessions that have passed, and these ends by window."""
        boundaries = self._boundaries(limits)
        ended = self._ended_sessions(ended_through, limits)
        for window, ends in zip(self._windows, ended, strict=True):
            boundaries.append(ends[ends <= self._now] if window.bounds.eager else window.bounds.boundary(ends))
        if at_end and self._started:
            boundaries += [
                self._last_boundaries(w, limits[i]) for i, w in enumerate(self._windows) if self._timed_step(w)
            ]
        if self.timers is not None:
            boundaries.append(self.timers.due(min(ended_through, self._now)))
        return _merged(boundaries), ended

    def _last_boundaries(self, window: ClockedWindow, limit: int) -> Points:
        """Boundaries at or after the last element: they report mappings of other windows that have expired since then."""
        bounds, first = window.bounds, self._last_boundary(window)
        assert bounds.step is not None
        if not any(w.bounds.of_time and w.bounds.eager for w in self._windows):
            return np.array([bounds.passed(limit)])
        if (limit - first) // bounds.step >= _MOST_BOUNDARIES:
            raise _too_far(limit, first, bounds.step)
        return np.arange(first, limit + 1, bounds.step, dtype=np.int64)

    def shrink(self) -> None:
        """Give back room, between two steps, after instants that are waited for have become much fewer."""
        if self._queues.size:
            room = max(_FIRST_ROOM, self._room_for(0))
            if _SHRINK_FROM * room <= self._queues.shape[1]:
                self._lay_out_queues(room)

    def _room_for(self, elements: int) -> int:
        """Bytes of a queue with the instants of the next elements."""
        used = (self._ends[:, queue.END] - self._ends[:, queue.EXPIRING + queue.AT]) % self._queues.shape[1]
        return (int(used.max()) + queue.MOST_BYTES * elements + 1) * 9 // 8

    def _lay_out_queues(self, larger: int) -> None:
        room = self._queues.shape[1]
        first = self._ends[:, queue.EXPIRING + queue.AT].copy()
        used = (self._ends[:, queue.END] - first) % room
        queues = np.zeros((len(used), larger), np.uint8)
        for q, (start, size) in enumerate(zip(first.tolist(), used.tolist(), strict=True)):
            queues[q, :size] = np.roll(self._queues[q], -start)[:size]
        self._queues = queues
        self._ends[:, queue.END], self._ends[:, queue.EXPIRING + queue.AT] = used, 0

    def _make_tick_room(self, due: int, others: int) -> None:
        """Make room for the ticks of a step: the due instants of each delay, and other ticks."""
        self._due = np.empty((len(self._delays), due), np.int64)
        self._instants = np.empty(self._due.size + others, np.int64)


def _too_far(limit: int, following: int, step: int) -> RunError:
    return RunError(
        f"the time of the stream has gone from {following} to {limit} (microseconds since the epoch) at once, past more than"
        f" {_MOST_BOUNDARIES:,} steps of {step} microseconds, each of which would be reported: is the last time in another unit?"
    )


def _streams_by_delay(windows: Sequence[ClockedWindow]) -> dict[int, set[int]]:
    """How long after an arrival a mapping enters or leaves eager windows, each once, and the streams of these windows.

    Instants that follow arrivals by the same delay come in the order of the arrivals, so that one queue keeps them for all streams.
    """
    found: dict[int, set[int]] = {}
    for window in windows:
        bounds = window.bounds
        if bounds.of_time and bounds.eager:
            if bounds.delay:
                found.setdefault(bounds.delay, set()).add(window.stream)
            if bounds.size is not None and bounds.measure is not Measure.SESSION:
                found.setdefault(bounds.delay + bounds.size, set()).add(window.stream)
    return found
