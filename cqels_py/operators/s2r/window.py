"""Windows (stream to relation): the mappings that a step inserts, and those that expire in it."""

from __future__ import annotations

from typing import ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from cqels_py.batches.delta import Delta, empty
from cqels_py.batches.elements import Ids
from cqels_py.event_time.windows import BEFORE_ALL, NEVER, Bounds, Measure, Points
from cqels_py.kernels.primitives.dtypes import INT8, INT32, INT64
from cqels_py.kernels.primitives.state_record import StateArray
from cqels_py.kernels.primitives.status import DONE, OUTPUT_FULL
from cqels_py.kernels.windows import arrivals as kernel
from cqels_py.kernels.windows import sliding
from cqels_py.operators.s2r.arrivals import Arrivals
from cqels_py.state.leaf_buffer import LeafBuffer

TickColumn = npt.NDArray[np.int32]
_NONE, _NO_IDS = np.empty(0, np.int64), np.empty((0, 0), np.int64)
Timer: TypeAlias = tuple[Measure, int] | None
"""When a window changes though nothing arrives: once this measure has reached this point. None: perhaps at any time."""
_FEW = 4
_FEWEST_CHANGES = 8
_KEPT_SCRATCH = 256
"""Changes for which a window keeps its work memory from step to step: 4 kB."""


def make_window(bounds: Bounds, width: int, *, keep_ids: bool, stream: int, index: int) -> Window:
    """The window of one scan. `width`: columns of its mappings; `stream`, `index`: numbers of its stream and of the window within
    the query.

    `keep_ids`: a negative mapping carries its ids; otherwise (a join that keeps its own leaves) it only says that the oldest one
    expires, and its ids are 0.
    """
    if bounds.size is None:
        return UnboundedWindow(bounds.measure, width)
    if bounds.eager and bounds.delay == 0 and bounds.measure is not Measure.SESSION:
        return SlidingWindow(bounds, width, keep_ids=keep_ids, stream=stream)
    return WaitingWindow(bounds, width, keep_ids=keep_ids, stream=stream, index=index)


class UnboundedWindow:
    """A window from which nothing expires; it keeps nothing, and passes the columns that it gets on in its deltas."""

    STATE: ClassVar[tuple[str, ...]] = ()
    copies = False
    nbytes = 0

    def __init__(self, measure: Measure, width: int) -> None:
        self.next_timer: Timer = (measure, NEVER)
        self._nothing = empty(width)

    def advance(self, arrivals: Arrivals, points: Points, element: npt.NDArray[np.int64], columns: Ids) -> Delta:
        """One step; see `SlidingWindow`."""
        if not len(points):
            return self._nothing
        tick = arrivals.step.element_tick[element]
        return Delta(tick, np.ones(len(tick), np.int8), columns)

    def live_ids(self) -> Ids:
        return _NONE


class SlidingWindow(LeafBuffer):
    """A sliding window, RANGE, COUNT or TRIPLES without STEP: mappings enter when they arrive, and expire a fixed size later.

    Its state is a queue of its mappings, which expire in the order of their arrival.
    """

    STATE = (*LeafBuffer.STATE, "_expires_at")
    copies = True
    _expiring_points = StateArray[np.int64](sliding.EXPIRING_POINTS)
    _ticks = StateArray[np.int32](sliding.TICKS)

    def __init__(self, bounds: Bounds, width: int, *, keep_ids: bool, stream: int) -> None:
        assert bounds.size is not None
        super().__init__(width if keep_ids else 0)
        self._measure = bounds.measure
        self._timed = bounds.of_time
        self.counters[sliding.SIZE] = bounds.size
        self.counters[sliding.TIMED] = bounds.of_time
        self._expires_at = NEVER
        self._stream = stream
        self._width = width
        self._nothing = empty(width)
        self._changes = 1
        self.make_scratch(_FEWEST_CHANGES)

    @property
    def _expires_at(self) -> int:
        """The point at which the oldest mapping expires."""
        return self.counters.item(sliding.NEXT_EXPIRY)

    @_expires_at.setter
    def _expires_at(self, point: int) -> None:
        self.counters[sliding.NEXT_EXPIRY] = point

    @property
    def next_timer(self) -> Timer:
        """When the oldest mapping expires."""
        return self._measure, self._expires_at

    def advance(self, arrivals: Arrivals, points: Points, element: npt.NDArray[np.int64], columns: Ids) -> Delta:
        """One step. `points` (n) in the window's measure, not falling; `element` (n): positions of the elements in the batch.

        `columns` (width, n) are copied.
        """
        step, arrived = arrivals.step, len(points)
        if self._timed:
            units, before, reached = _NONE, 0, step.expired_through
        else:
            counts = arrivals.streams[self._stream]
            units, before = counts.counted(self._measure)
            reached = before + len(units)
        if not arrived and self._expires_at > reached:
            return self._nothing
        # Room for two changes an arrival: usually one mapping expires for each that arrives. For single elements, room for as many
        # changes as in the last step.
        room = self._changes if arrived < _FEW else 2 * arrived + _FEWEST_CHANGES
        while True:
            tick, sign, changed = np.empty(room, INT32), np.empty(room, INT8), np.empty((self._width, room), INT64)
            if room + arrived > len(self._expiring_points):
                self.make_scratch(room + arrived)
            status = sliding.slide(
                self.address, points, reached, step.ticks.time, units, before, element, step.element_tick, columns, tick, sign,
                changed,
            )  # fmt: skip
            if status == DONE:
                break
            if status == OUTPUT_FULL:
                room = self._changes = arrived + self.counters.item(sliding.EXPIRED)
            else:
                self.reserve(points)
        if len(self._expiring_points) > _KEPT_SCRATCH:
            self.make_scratch(_FEWEST_CHANGES)
        made = self.counters.item(sliding.MADE)
        if made == room:
            return Delta(tick, sign, changed)
        self._changes = made or 1
        changed = changed.reshape(-1)[: self._width * made].reshape(self._width, made)
        return Delta(tick[:made], sign[:made], changed)

    def inside(self) -> Ids:
        """The ids (width, n) of the mappings in the window, if it keeps ids."""
        return self.ids(self.start, self.end)

    def make_scratch(self, changes: int) -> None:
        """Make the work memory for steps of so many changes."""
        self._expiring_points, self._ticks = np.empty(changes, INT64), np.empty(2 * changes, INT32)


class WaitingWindow(LeafBuffer):
    """A window with STEP, with a delay or of sessions: mappings wait to enter it, or it is not known at arrival when they expire.

    Its state is a queue of its mappings, which enter and expire in the order of their arrival.
    """

    copies = True
    _points = StateArray[np.int64](sliding.EXPIRING_POINTS)
    _tick_of_point = StateArray[np.int32](sliding.TICKS)

    def __init__(self, bounds: Bounds, width: int, *, keep_ids: bool, stream: int, index: int) -> None:
        assert bounds.size is not None
        # Mappings that wait to enter are kept with their ids in any case.
        self._enters_later = not bounds.eager or bounds.delay > 0
        super().__init__(width if keep_ids or self._enters_later else 0)
        self._bounds = bounds
        self._size = bounds.size
        self.keeps_ids = keep_ids
        self._stream = stream
        self._index = index
        self._nothing = empty(width)
        self.make_scratch(0)

    def make_scratch(self, changes: int) -> None:
        """Make the work memory of kernels that advance the window by so many changes at most."""
        self._points, self._tick_of_point = np.empty(changes, INT64), np.empty(changes, INT32)

    def advance(self, arrivals: Arrivals, points: Points, element: npt.NDArray[np.int64], columns: Ids) -> Delta:
        """One step; see `SlidingWindow`."""
        if not len(points) and self._is_unchanged(arrivals):
            return self._nothing
        bounds = self._bounds
        if len(points):
            self.append(points, columns)
        through = self._passed(arrivals) - bounds.delay
        start, entered = self.start, self.entered if self._enters_later else self.end - len(points)
        expiry_tick = self._expiry_ticks(arrivals, self.expire(self._expired_through(arrivals, through)))
        if self._enters_later:
            entry_tick = self._ticks(arrivals, bounds.entry(self.enter(through)))
            entering = self.ids(entered, self.entered).copy()
        else:
            entry_tick, entering = arrivals.step.element_tick[element], columns
        ids = self.columns if self.keeps_ids else _NO_IDS
        first = start % max(ids.shape[1], 1)
        tick, sign, changed = sliding.merge(expiry_tick, entry_tick, entered - start, ids, first, entering)
        return Delta(tick, sign, changed)

    @property
    def next_timer(self) -> Timer:
        """The first instant at which a session with the oldest mapping can end, if nothing waits to enter."""
        if self._enters_later or self._bounds.measure is not Measure.SESSION:
            return None
        return Measure.SESSION, self.oldest + self._size if self.start < self.end else NEVER

    def inside(self) -> Ids:
        """The ids (width, n) of the mappings in the window, if it keeps ids."""
        return self.ids(self.start, self.entered if self._enters_later else self.end)

    def _is_unchanged(self, arrivals: Arrivals) -> bool:
        """Does nothing enter or expire at a step in which nothing arrives here?"""
        if self.start == self.end:
            return True
        through = self._passed(arrivals) - self._bounds.delay
        if self._enters_later and self.entered < self.end and self.first_to_enter <= through:
            return False
        return self.oldest > self._expired_through(arrivals, through)

    def _passed(self, arrivals: Arrivals) -> int:
        """The last point up to which expiries (and with STEP, entries) have happened."""
        bounds, step = self._bounds, arrivals.step
        if not bounds.of_time:
            return bounds.passed(arrivals.streams[self._stream].reached(bounds.measure))
        return step.expired_through if bounds.eager else bounds.passed(step.boundary_through[self._index])

    def _expired_through(self, arrivals: Arrivals, passed: int) -> int:
        """Mappings that arrived at or before this point have expired."""
        if self._bounds.measure is not Measure.SESSION:
            return passed - self._size
        ends = arrivals.step.session_ends[self._index]
        return int(ends[-1]) - self._size if len(ends) else BEFORE_ALL

    def _ticks(self, arrivals: Arrivals, points: Points) -> TickColumn:
        """The ticks at which the window's measure reaches these points."""
        if not self._bounds.of_time:
            return arrivals.streams[self._stream].ticks_of(self._bounds.measure, points)
        # At a boundary the last tick of its instant.
        place = np.empty(len(points), np.int32)
        kernel.places_of(arrivals.step.ticks.time, points, int(not self._bounds.eager), place)
        return place if self._bounds.eager else place - np.int32(1)

    def _expiry_ticks(self, arrivals: Arrivals, expiring: Points) -> TickColumn:
        """The ticks at which mappings expire that arrived at these points."""
        bounds = self._bounds
        if bounds.measure is not Measure.SESSION:
            return self._ticks(arrivals, bounds.exit(expiring))
        ends, time = arrivals.step.session_ends[self._index], arrivals.step.ticks.time
        mine = bounds.boundary(ends[np.searchsorted(ends, expiring + self._size, side="left")])
        # The end is the last tick of its instant; one without a tick happens at the next tick.
        following = np.searchsorted(time, mine, side="right")
        at_end = time[np.maximum(following - 1, 0)] == mine
        ticks: TickColumn = (following - at_end).astype(np.int32)
        return ticks


Window = UnboundedWindow | SlidingWindow | WaitingWindow
