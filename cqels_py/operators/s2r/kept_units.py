"""PARTITION BY: the elements (or triples) that a window keeps, and the ticks at which they enter and expire."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cqels_py.batches.elements import Ids
from cqels_py.event_time.windows import NEVER, Bounds, Measure, Points
from cqels_py.operators.s2r.arrivals import StreamArrivals
from cqels_py.operators.s2r.partition import Kept, Ticks
from cqels_py.operators.s2r.window import Timer
from cqels_py.state.last_by_value import LastByValue
from cqels_py.state.sessions_by_value import SessionsByValue

Int64 = npt.NDArray[np.int64]
_NONE = np.empty(0, np.int64)


class KeptUnits:
    """The units that one window keeps for each value: the last ones, or those of its session.

    `width`: how many variables a value has; `index`: the window's number. With STEP all happens at the window's boundaries.
    """

    STATE = ("_sessions", "_last", "_entering", "_expiring")

    def __init__(self, width: int, bounds: Bounds, index: int) -> None:
        assert bounds.size is not None
        self._bounds = bounds
        self._index = index
        self._sessions = SessionsByValue(width, bounds.size) if bounds.measure is Measure.SESSION else None
        self._last = LastByValue(width, bounds.size) if self._sessions is None else None
        self._entering, self._expiring = _WaitingUnits(), _WaitingUnits()

    def advance(self, arrivals: StreamArrivals, unit: Int64, element: Int64, time: Points, values: Ids) -> Kept:
        """One step. `unit` (n), not falling: a row for each value (n columns) of each; `element` (n): positions in the batch,
        `time` (n): when they came.
        """
        bounds, step = self._bounds, arrivals.step
        accepted, row = np.unique(unit, return_index=True)
        if self._sessions is not None:
            through = step.ended_through if bounds.eager else bounds.passed(step.boundary_through[self._index])
            limit = through
            expired, expired_at = self._sessions.keep(unit, time, values, through)
            arrived_at = time[row]
        else:
            assert self._last is not None
            limit = bounds.passed(arrivals.reached(bounds.measure))
            expired, by_row = self._last.keep(unit, values)
            expired_at, arrived_at = unit[by_row], accepted
        expired, expiry = self._expiring.through(limit, expired, bounds.boundary(expired_at))
        expired_tick = self._ticks(arrivals, expiry)
        if bounds.eager:
            entered, entered_tick = accepted, step.element_tick[element[row]]
        else:
            entered, entry = self._entering.through(limit, accepted, bounds.boundary(arrived_at))
            entered_tick = self._ticks(arrivals, entry)
        return _kept(accepted, entered, entered_tick, expired, expired_tick)

    @property
    def last(self) -> LastByValue | None:
        """The last units of each value, if they change at each arrival, and by nothing else."""
        return self._last if self._bounds.eager else None

    def expire_all(self, reached: int) -> None:
        """Between two steps: the window loses all at the next point at which it can, after `reached` units; nothing more enters.

        Sessions end in time anyway.
        """
        if self._last is None:
            return
        inside = np.setdiff1d(np.union1d(self._last.units(), self._expiring.units), self._entering.units)
        points = self._bounds.boundary(np.full(len(inside), reached + 1))
        self._entering, self._expiring = _WaitingUnits(), _WaitingUnits(inside, points)

    def _ticks(self, arrivals: StreamArrivals, points: Points) -> Ticks:
        if not self._bounds.of_time:
            return arrivals.ticks_of(self._bounds.measure, points)
        if len(points) == 0:
            return np.empty(0, np.int32)
        # The last tick of its instant; a point without a tick belongs to the next one.
        time = arrivals.step.ticks.time
        following = np.searchsorted(time, points, side="right")
        at_end = time[np.maximum(following - 1, 0)] == points
        ticks: Ticks = (following - at_end).astype(np.int32)
        return ticks

    @property
    def next_timer(self) -> Timer:
        """When units next enter or expire though none arrives; perhaps too early. None: perhaps at any time."""
        bounds = self._bounds
        if self._sessions is not None:
            return (bounds.measure, self._sessions.first_end) if bounds.eager else None
        return bounds.measure, min(self._entering.next_point, self._expiring.next_point)

    @property
    def waiting(self) -> Int64:
        """The numbers of the units that wait to enter."""
        return self._entering.units

    def live_ids(self) -> Ids:
        return self._state.live_ids()

    @property
    def nbytes(self) -> int:
        return self._state.nbytes + self._entering.nbytes + self._expiring.nbytes

    @property
    def _state(self) -> LastByValue | SessionsByValue:
        state = self._last or self._sessions
        assert state is not None
        return state


def _kept(accepted: Int64, entered: Int64, entered_tick: Ticks, expired: Int64, expired_tick: Ticks) -> Kept:
    order = np.argsort(expired)
    expired, expired_tick = expired[order], expired_tick[order]
    both, entering, expiring = np.intersect1d(entered, expired, assume_unique=True, return_indices=True)
    at_once = entered_tick[entering] == expired_tick[expiring]
    unseen, entering, expiring = both[at_once], entering[at_once], expiring[at_once]
    return Kept(
        accepted,
        np.delete(entered, entering),
        np.delete(entered_tick, entering),
        np.delete(expired, expiring),
        np.delete(expired_tick, expiring),
        unseen,
    )


class _WaitingUnits:
    """Units with the points at which something happens to them, neither falling."""

    STATE = ("_units", "_points")

    def __init__(self, units: Int64 = _NONE, points: Points = _NONE) -> None:
        self._units = units
        self._points = points

    def through(self, limit: int, units: Int64, points: Points) -> tuple[Int64, Points]:
        """Add units, then remove and return those whose points are at most the limit."""
        if len(self._units):
            units, points = np.concatenate([self._units, units]), np.concatenate([self._points, points])
        cut = int(np.searchsorted(points, limit, side="right"))
        self._units, self._points = units[cut:].copy(), points[cut:].copy()
        return units[:cut], points[:cut]

    @property
    def next_point(self) -> int:
        """That of the first of them."""
        return self._points.item(0) if len(self._points) else NEVER

    @property
    def units(self) -> Int64:
        """Their numbers."""
        return self._units

    @property
    def nbytes(self) -> int:
        return self._units.nbytes + self._points.nbytes
