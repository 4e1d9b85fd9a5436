"""Windows: what enters and what leaves (stream to relation)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cqels_py.batches.delta import Delta, empty
from cqels_py.batches.elements import Ids
from cqels_py.event_time.windows import NEVER, Bounds, Measure, Points
from cqels_py.kernels.primitives.dtypes import INT8, INT32, INT64
from cqels_py.kernels.windows import arrivals as kernel
from cqels_py.kernels.windows.sliding import merge, slide
from cqels_py.operators.s2r.arrivals import Arrivals
from cqels_py.state.leaf_buffer import LeafBuffer

TickColumn = npt.NDArray[np.int32]
_NONE, _NO_IDS = np.empty(0, np.int64), np.empty((0, 0), np.int64)
Timer: TypeAlias = tuple[Measure, int] | None
"""When a window moves though nothing arrives: once this measure has reached this point. None: perhaps at any time."""
_BEFORE_ALL = np.iinfo(np.int64).min // 2
_FEW = 4
_FEWEST_CHANGES = 8


def _scratch_for(changes: int, arrived: int) -> tuple[Points, TickColumn]:
    """As `slide` needs it."""
    return np.empty(changes, INT64), np.empty(2 * (changes + arrived), INT32)


class Window:
    """One window over the leaf mappings of one pattern.

    Mappings leave in the order in which they arrived. `keep_ids`: a negative mapping carries its ids; otherwise (a join that
    keeps its own leaves) it only says that the oldest one leaves, and its ids are 0. `stream`, `index`: numbers of its stream
    and of the window within the query.
    """

    def __init__(self, bounds: Bounds, width: int, *, keep_ids: bool, stream: int, index: int) -> None:
        self._bounds = bounds
        self._stream = stream
        self._width = width
        self._nothing = empty(width)
        self._keep_ids = keep_ids
        self._index = index
        # Mappings that wait for a boundary or for their time must be kept with their ids in any case.
        self._waiting = not bounds.eager or bounds.delay > 0
        self._buffer = LeafBuffer(width if keep_ids or self._waiting else 0)
        self._changes = 1
        self._scratch = _scratch_for(_FEWEST_CHANGES, 0)
        # Then it only has to be known what leaves.
        self._slides = not self._waiting and bounds.measure is not Measure.SESSION and bounds.size is not None
        # Kernels get a number sooner than a truth value.
        self._timed = int(bounds.of_time)
        self._size = bounds.size or 0
        # Then: the point at which the oldest mapping leaves.
        self._leaves_at = NEVER

    @property
    def copies(self) -> bool:
        """Is nothing that it is given part of its deltas, or kept?"""
        return self._bounds.size is not None

    @property
    def next_timer(self) -> Timer:
        """When it next moves though nothing arrives."""
        if self._bounds.size is None:
            return self._bounds.measure, NEVER
        return (self._bounds.measure, self._leaves_at) if self._slides else None

    def advance(self, arrivals: Arrivals, points: Points, element: npt.NDArray[np.int64], columns: Ids) -> Delta:
        """One step. `points` (n) in the window's measure, not falling; `element` (n): positions of the elements in the batch."""
        if not self._slides:
            return self._advance_waiting(arrivals, points, element, columns)
        buffer, step, arrived = self._buffer, arrivals.step, len(points)
        if self._timed:
            units, before, reached = _NONE, 0, step.expired_through
        else:
            units, before = arrivals.counted.streams[self._stream].counted(self._bounds.measure)
            reached = self._counted(arrivals)
        if arrived:
            buffer.reserve(points)
        elif self._leaves_at > reached:
            return self._nothing
        # One mapping mostly leaves for each that comes; where they come one by one, mostly as many change as did before.
        room = self._changes if arrived < _FEW else 2 * arrived + _FEWEST_CHANGES
        while True:
            tick, sign, changed = np.empty(room, INT32), np.empty(room, INT8), np.empty((self._width, room), INT64)
            leaving, ticks = self._scratch if room + arrived <= _FEWEST_CHANGES else _scratch_for(room, arrived)
            left, made, self._leaves_at = slide(
                buffer.standing.where, buffer.start, buffer.end, points, reached, self._size, self._timed, step.ticks.time, units,
                before, element, step.element_tick, columns, leaving, ticks, tick, sign, changed,
            )  # fmt: skip
            if made >= 0:
                break
            room = self._changes = arrived + left
        buffer.end += arrived
        buffer.start += left
        if made == room:
            return Delta(tick, sign, changed)
        self._changes = made or 1
        changed = changed.reshape(-1)[: self._width * made].reshape(self._width, made)
        return Delta(tick[:made], sign[:made], changed)

    def _advance_waiting(
        self, arrivals: Arrivals, points: Points, element: npt.NDArray[np.int64], columns: Ids
    ) -> Delta:
        """The step of a window into which not everything enters at once, or that nothing leaves one by one."""
        if not len(points) and self._rests(arrivals):
            return self._nothing
        bounds, step = self._bounds, arrivals.step
        if bounds.size is None:
            tick = step.element_tick[element]
            return Delta(tick, np.ones(len(tick), np.int8), columns)
        buffer = self._buffer
        if len(points):
            buffer.append(points, columns)
        through = self._passed(arrivals) - bounds.delay
        start, entered = buffer.start, buffer.entered if self._waiting else buffer.end - len(points)
        leave_tick = self._leave_ticks(arrivals, buffer.leave(self._left_through(arrivals, through)))
        if self._waiting:
            enter_tick = self._ticks(arrivals, bounds.entry(buffer.enter(through)))
            entering = buffer.ids(entered, buffer.entered).copy()
        else:
            enter_tick, entering = step.element_tick[element], columns
        ids = buffer.columns if self._keep_ids else _NO_IDS
        first = start % max(ids.shape[1], 1)
        tick, sign, changed = merge(leave_tick, enter_tick, entered - start, ids, first, entering)
        return Delta(tick, sign, changed)

    def _rests(self, arrivals: Arrivals) -> bool:
        """Would a step in which nothing arrives here change nothing, though not everything enters at once?"""
        bounds, buffer = self._bounds, self._buffer
        if bounds.size is None or buffer.start == buffer.end:
            return True
        through = self._passed(arrivals) - bounds.delay
        if self._waiting and buffer.entered < buffer.end and buffer.first_to_enter <= through:
            return False
        return buffer.oldest > self._left_through(arrivals, through)

    def _counted(self, arrivals: Arrivals) -> int:
        """The number of the last element or triple so far."""
        return arrivals.counted.streams[self._stream].reached(self._bounds.measure)

    def _passed(self, arrivals: Arrivals) -> int:
        """The last point up to which exits (and with STEP, entries) have happened."""
        bounds, step = self._bounds, arrivals.step
        if not bounds.of_time:
            return bounds.passed(self._counted(arrivals))
        return step.expired_through if bounds.eager else bounds.passed(step.boundary_through[self._index])

    def _left_through(self, arrivals: Arrivals, passed: int) -> int:
        """The point at or before which what arrived has left."""
        bounds = self._bounds
        assert bounds.size is not None
        if bounds.measure is not Measure.SESSION:
            return passed - bounds.size
        ends = arrivals.step.session_ends[self._index]
        return int(ends[-1]) - bounds.size if len(ends) else _BEFORE_ALL

    def _ticks(self, arrivals: Arrivals, points: Points) -> TickColumn:
        if not self._bounds.of_time:
            return arrivals.counted.streams[self._stream].ticks_of(self._bounds.measure, points)
        # At a boundary the last tick of its instant.
        place = np.empty(len(points), np.int32)
        kernel.places_of(arrivals.step.ticks.time, points, int(not self._bounds.eager), place)
        return place if self._bounds.eager else place - np.int32(1)

    def _leave_ticks(self, arrivals: Arrivals, leaving: Points) -> TickColumn:
        bounds = self._bounds
        if bounds.measure is not Measure.SESSION:
            return self._ticks(arrivals, bounds.exit(leaving))
        assert bounds.size is not None
        ends, time = arrivals.step.session_ends[self._index], arrivals.step.ticks.time
        mine = bounds.boundary(ends[np.searchsorted(ends, leaving + bounds.size, side="left")])
        # The end is the last tick of its instant; one without a tick happens at the next tick.
        following = np.searchsorted(time, mine, side="right")
        at_end = time[np.maximum(following - 1, 0)] == mine
        ticks: TickColumn = (following - at_end).astype(np.int32)
        return ticks

    def live_ids(self) -> Iterable[Ids]:
        return (self._buffer.live_ids(),)

    @property
    def nbytes(self) -> int:
        return self._buffer.nbytes
