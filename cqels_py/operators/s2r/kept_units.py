"""PARTITION BY: which elements (or triples) a window keeps, and at which ticks they enter and leave it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cqels_py.batches.elements import Ids
from cqels_py.event_time.windows import Bounds, Measure, Points
from cqels_py.operators.s2r.arrivals import StreamArrivals
from cqels_py.operators.s2r.partition import Kept, Ticks
from cqels_py.state.last_by_value import LastByValue
from cqels_py.state.sessions_by_value import SessionsByValue

Int64 = npt.NDArray[np.int64]


class KeptUnits:
    """The units that one window keeps for each value: the last ones, or those of its session.

    `width`: how many variables a value has; `index`: the window's number. With STEP all happens at the window's boundaries.
    """

    def __init__(self, width: int, bounds: Bounds, index: int) -> None:
        assert bounds.size is not None
        self._bounds = bounds
        self._index = index
        self._sessions = SessionsByValue(width, bounds.size) if bounds.measure is Measure.SESSION else None
        self._last = LastByValue(width, bounds.size) if self._sessions is None else None
        self._entering, self._leaving = _Awaited(), _Awaited()

    def advance(self, arrivals: StreamArrivals, unit: Int64, element: Int64, time: Points, values: Ids) -> Kept:
        """One step. `unit` (n), not falling: a row for each value (n columns) of each; `element` (n): positions in the batch,
        `time` (n): when they came.
        """
        bounds, step = self._bounds, arrivals.step
        accepted, row = np.unique(unit, return_index=True)
        if self._sessions is not None:
            through = step.ended_through if bounds.eager else bounds.passed(step.boundary_through[self._index])
            limit = through
            left, left_at = self._sessions.keep(unit, time, values, through)
            came_at = time[row]
        else:
            assert self._last is not None
            limit = bounds.passed(arrivals.reached(bounds.measure))
            left, left_row = self._last.keep(unit, values)
            left_at, came_at = unit[left_row], accepted
        left, left_point = self._leaving.through(limit, left, bounds.boundary(left_at))
        left_tick = self._ticks(arrivals, left_point)
        if bounds.eager:
            entered, entered_tick = accepted, step.element_tick[element[row]]
        else:
            entered, entered_point = self._entering.through(limit, accepted, bounds.boundary(came_at))
            entered_tick = self._ticks(arrivals, entered_point)
        return _kept(accepted, entered, entered_tick, left, left_tick)

    def _ticks(self, arrivals: StreamArrivals, points: Points) -> Ticks:
        if not self._bounds.of_time:
            return arrivals.ticks_of(self._bounds.measure, points)
        if len(points) == 0:
            return np.empty(0, np.int32)
        # The last tick of its instant; what has none happens at the next tick.
        time = arrivals.step.ticks.time
        following = np.searchsorted(time, points, side="right")
        at_end = time[np.maximum(following - 1, 0)] == points
        ticks: Ticks = (following - at_end).astype(np.int32)
        return ticks

    def live_ids(self) -> Ids:
        return self._state.live_ids()

    @property
    def nbytes(self) -> int:
        return self._state.nbytes + self._entering.nbytes + self._leaving.nbytes

    @property
    def _state(self) -> LastByValue | SessionsByValue:
        state = self._last or self._sessions
        assert state is not None
        return state


def _kept(accepted: Int64, entered: Int64, entered_tick: Ticks, left: Int64, left_tick: Ticks) -> Kept:
    order = np.argsort(left)
    left, left_tick = left[order], left_tick[order]
    both, coming, going = np.intersect1d(entered, left, assume_unique=True, return_indices=True)
    at_once = entered_tick[coming] == left_tick[going]
    unseen, coming, going = both[at_once], coming[at_once], going[at_once]
    return Kept(
        accepted,
        np.delete(entered, coming),
        np.delete(entered_tick, coming),
        np.delete(left, going),
        np.delete(left_tick, going),
        unseen,
    )


class _Awaited:
    """Units with the points at which something happens to them, neither falling."""

    def __init__(self) -> None:
        self._units = np.empty(0, np.int64)
        self._points = np.empty(0, np.int64)

    def through(self, limit: int, units: Int64, points: Points) -> tuple[Int64, Points]:
        """Take in more; those whose points are at the limit at most."""
        if len(self._units):
            units, points = np.concatenate([self._units, units]), np.concatenate([self._points, points])
        cut = int(np.searchsorted(points, limit, side="right"))
        self._units, self._points = units[cut:].copy(), points[cut:].copy()
        return units[:cut], points[:cut]

    @property
    def nbytes(self) -> int:
        return self._units.nbytes + self._points.nbytes
