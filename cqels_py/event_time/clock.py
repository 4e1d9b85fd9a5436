"""The clock of a query: which instants are ticks, in which order (DESIGN: ticks).

At one instant the ticks are, in this order: an expiry (unless an element arrives at that instant, then the expiry is part of
that arrival's tick), the arrivals one by one, the boundary of windows with STEP together with the ends of sessions.

    time      10        12        15
    ticks     a a a     x         a   b        a: an arrival · x: something expires, or enters late · b: a boundary

A boundary, and an expiry where nothing arrives, is only a tick when the stream has moved past that instant: until then an
element may still come at it. So the ticks do not depend on how the elements were batched. A session ends at the end of the
instant last + gap, as an element that comes at that very instant continues it. Where each value has sessions of its own the clock
does not know them: the end of every instant t + gap is a tick.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cqels_py.event_time.windows import Bounds, Measure, Points
from cqels_py.kernels import arrivals as kernel

_BEFORE_ALL = np.iinfo(np.int64).min

_NONE = np.empty(0, np.int64)
_NO_RANK = np.empty(0, np.int32)


@dataclass(frozen=True, slots=True)
class Ticks:
    """The ticks of one step, in order; a delta's tick is a position in `time` (microseconds).

    `first`: the first of them is the query's first tick.
    """

    time: npt.NDArray[np.int64]
    first: bool

    def __len__(self) -> int:
        return len(self.time)


@dataclass(frozen=True, slots=True)
class ClockedWindow:
    """A window as the clock sees it: the number of its stream within the query, its bounds, and whether it has PARTITION BY."""

    stream: int
    bounds: Bounds
    partitioned: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """What one batch of elements means for the windows.

    `element_tick` (n elements): the tick of an arrival, -1 where it is none. `number` (n): the element's number in its stream,
    from 1. `expired_through`: eager time windows have let go of what leaves at or before this instant.
    `boundary_through`: for each window, the instant through whose end boundaries have passed. `session_ends`: for each window,
    the instants at whose ends its sessions have ended (with STEP: through the last boundary; with PARTITION BY: may have), in
    order; an end without a tick of its own belongs to the next tick. `ended_through`: the instant through whose end sessions
    have ended.
    """

    ticks: Ticks
    element_tick: npt.NDArray[np.int32]
    number: npt.NDArray[np.int64]
    expired_through: int
    boundary_through: tuple[int, ...]
    session_ends: tuple[Points, ...]
    ended_through: int


def _each_once(instants: Points) -> Points:
    """Instants in order, each once."""
    new = np.empty(len(instants), np.bool_)
    new[:1] = True
    np.not_equal(instants[1:], instants[:-1], out=new[1:])
    return instants[new]


def _merged(runs: Sequence[Points]) -> Points:
    """Runs of instants as one, each instant once."""
    if not runs:
        return np.empty(0, np.int64)
    # Runs are in order: this sort merges them.
    return _each_once(runs[0] if len(runs) == 1 else np.sort(np.concatenate(runs), kind="stable"))


class _Instants:
    """Instants to come, in order: what a window has promised to do."""

    def __init__(self) -> None:
        self._chunks: deque[Points] = deque()

    def add(self, instants: Points) -> None:
        if len(instants):
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


class _Sessions:
    """Where the sessions of a window end: a gap after its stream's last element, unless another comes within it."""

    def __init__(self, gap: int) -> None:
        self._gap = gap
        self._last: int | None = None
        self._ended: list[Points] = []

    def add(self, time: Points) -> None:
        if len(time) == 0:
            return
        if self._last is not None:
            time = np.concatenate([[self._last], time])
        self._ended.append(time[:-1][np.diff(time) > self._gap] + self._gap)
        self._last = int(time[-1])

    def take_through(self, limit: int) -> Points:
        """The ends at or before `limit`; no element at or before it will come any more."""
        if self._last is not None and self._last + self._gap <= limit:
            self._ended.append(np.array([self._last + self._gap]))
            self._last = None
        if not self._ended:
            return _NONE
        ended = np.concatenate(self._ended)
        cut = int(np.searchsorted(ended, limit, side="right"))
        self._ended = [ended[cut:]] if cut < len(ended) else []
        return ended[:cut]


class _PerhapsEnds:
    """Where sessions of single values may end: a gap after each element."""

    def __init__(self, gap: int) -> None:
        self._gap = gap
        self._instants = _Instants()

    def add(self, time: Points) -> None:
        self._instants.add(time + self._gap)

    def take_through(self, limit: int) -> Points:
        return _merged(self._instants.take_through(limit))


class TickClock:
    """Turns batches of elements into ticks.

    `every_boundary`: each boundary is a tick (RSTREAM reports at it); otherwise only those at which a window may change.
    """

    def __init__(self, windows: Sequence[ClockedWindow], streams: int, *, every_boundary: bool) -> None:
        self._windows = tuple(windows)
        self._every_boundary = every_boundary
        self._counts = np.zeros(streams, np.int64)
        self._entries = [_Instants() for _ in windows]
        self._exits = [_Instants() for _ in windows]
        self._sessions: dict[int, _Sessions | _PerhapsEnds] = {
            index: _PerhapsEnds(window.bounds.size) if window.partitioned else _Sessions(window.bounds.size)
            for index, window in enumerate(self._windows)
            if window.bounds.measure is Measure.SESSION and window.bounds.size is not None
        }
        self._next_boundary: list[int | None] = [None] * len(self._windows)
        self._now = _BEFORE_ALL
        self._started = False
        self._ticked = False
        self._eager = np.zeros(streams, np.bool_)
        count_steps: list[tuple[int, int]] = []
        self._triples = [0] * streams
        self._triple_steps: list[tuple[int, int]] = []
        for window in self._windows:
            if window.bounds.eager:
                self._eager[window.stream] = True
            elif window.bounds.measure is Measure.ELEMENTS:
                assert window.bounds.step is not None
                count_steps.append((window.stream, window.bounds.step))
            elif window.bounds.measure is Measure.TRIPLES:
                assert window.bounds.step is not None
                self._triple_steps.append((window.stream, window.bounds.step))
        self._step_stream = np.array([stream for stream, _ in count_steps], np.int64)
        self._step_size = np.array([size for _, size in count_steps], np.int64)

    @property
    def now(self) -> int | None:
        """The time of the last element; None before the first."""
        return self._now if self._started else None

    def step(self, time: Points, stream: npt.NDArray[np.int32], first: Points) -> Step:
        """Take in elements: `time` (n) not falling and not before `now`, `stream` (n) numbers within the query.

        `first` (n + 1): where the triples of each begin among those of all.
        """
        number, rank = np.empty(len(stream), np.int64), np.empty(len(stream), np.int32)
        ticks = kernel.number_elements(
            stream, self._counts, self._eager, self._step_stream, self._step_size, number, rank
        )
        if self._triple_steps and len(stream):
            crossing = self._crossing(stream, np.diff(first)) | (rank >= 0)
            ticks = int(crossing.sum())
            rank = np.where(crossing, np.cumsum(crossing) - 1, -1).astype(np.int32)
        if len(time):
            self._promise(time, stream)
            self._now = int(time[-1])
        arrivals = time if ticks == len(time) else time[rank >= 0]
        expired_through = self._now if ticks and arrivals[-1] == self._now else self._now - 1
        return self._make(arrivals, rank, number, expired_through, [self._now - 1] * len(self._windows))

    def advance(self, time: int) -> Step:
        """No element before `time` will come any more."""
        if self._started and time > self._now:
            self._now = time
        limits = [self._now - 1] * len(self._windows)
        return self._make(_NONE, _NO_RANK, _NONE, self._now - 1, limits)

    def finish(self) -> Step:
        """The streams have ended: the boundary at or after the last element is still a tick, later expiries are not."""
        limits = [self._now] * len(self._windows)
        if self._started:
            now = np.array([self._now])
            limits = [int(w.bounds.boundary(now)[0]) if self._timed_step(w) else self._now for w in self._windows]
        # What expires between the last element and a later boundary has gone at that boundary, without ticks of its own.
        return self._make(_NONE, _NO_RANK, _NONE, self._now, limits, last=max([self._now, *limits]))

    def _crossing(self, stream: npt.NDArray[np.int32], triples: Points) -> npt.NDArray[np.bool_]:
        """Which elements bring their stream's number of triples to a boundary, or past it."""
        found = np.zeros(len(stream), np.bool_)
        for number in {number for number, _ in self._triple_steps}:
            mine = np.where(stream == number, triples, 0)
            after = self._triples[number] + np.cumsum(mine)
            self._triples[number] = int(after[-1])
            for each, size in self._triple_steps:
                if each == number:
                    found |= after // size > (after - mine) // size
        return found

    @staticmethod
    def _timed_step(window: ClockedWindow) -> bool:
        return window.bounds.of_time and not window.bounds.eager

    def _promise(self, time: Points, stream: npt.NDArray[np.int32]) -> None:
        first = time[:1]
        for index, window in enumerate(self._windows):
            bounds = window.bounds
            if not bounds.of_time:
                continue
            mine = time if len(self._counts) == 1 else time[stream == window.stream]
            if index in self._sessions:
                self._sessions[index].add(mine)
            if not bounds.eager and not self._started:
                self._entries[index].add(bounds.boundary(first))
                self._next_boundary[index] = int(bounds.boundary(first)[0])
            if not bounds.eager or bounds.delay:
                self._entries[index].add(bounds.entry(mine))
            if bounds.size is not None and index not in self._sessions:
                self._exits[index].add(bounds.exit(mine))
        self._started = True

    def _changes(self, limit: int) -> list[Points]:
        """Instants through `limit` at which something expires, or enters late."""
        found: list[Points] = []
        for index, window in enumerate(self._windows):
            if window.bounds.eager:
                found += self._entries[index].take_through(limit)
                found += self._exits[index].take_through(limit)
        return found

    def _ended_sessions(self, ended_through: int, limits: Sequence[int]) -> tuple[Points, ...]:
        """For each window; with STEP those that its last boundary has seen ended."""
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
                every = np.arange(following, limit + 1, step, dtype=np.int64)
                self._next_boundary[index] = int(every[-1]) + step  # type: ignore[operator]
                found.append(every)
        return found

    def _make(
        self,
        arrivals: Points,
        rank: npt.NDArray[np.int32],
        number: npt.NDArray[np.int64],
        expired_through: int,
        limits: list[int],
        last: int | None = None,
    ) -> Step:
        """`arrivals`: the times of those elements that are ticks; `rank`: for each element its position in them, or -1."""
        expiry = _merged(self._changes(expired_through))
        boundaries = self._boundaries(limits)
        ended_through = self._now - 1 if last is None else last
        ended = self._ended_sessions(ended_through, limits)
        for window, ends in zip(self._windows, ended, strict=True):
            boundaries.append(ends[ends <= self._now] if window.bounds.eager else window.bounds.boundary(ends))
        if last is not None and self._started:
            # Something else may have expired since the last element, which the last boundary of a window has to say.
            boundaries += [np.array([limits[i]]) for i, window in enumerate(self._windows) if self._timed_step(window)]
        boundary = _merged(boundaries)
        instants, element_tick = arrivals, rank
        if len(expiry) or len(boundary):
            instants = np.empty(len(expiry) + len(arrivals) + len(boundary), np.int64)
            place = np.empty(len(arrivals) + 1, np.int32)
            place[-1] = -1
            instants = instants[: kernel.merge_instants(expiry, arrivals, boundary, instants, place)]
            element_tick = place[rank]
        ticks = Ticks(instants, first=not self._ticked and len(instants) > 0)
        self._ticked = self._ticked or len(instants) > 0
        through = expired_through if last is None else last
        return Step(ticks, element_tick, number, through, tuple(limits), ended, ended_through)
