"""Timers in event time: instants at which an operator wants to be called though nothing arrives."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

import numpy as np

from cqels_py.event_time.windows import NEVER, Points


class EventTimers:
    """The timers that the operators of a dataflow have set. Each becomes a tick at the end of its instant.

    That tick comes once all elements of the instant are known, behind those of their arrivals, however the elements are batched.
    `least_delay`: the microseconds, 1 at least, by which every timer is later than the tick at which it is set. Elements within
    this time are processed together: those of one instant if it is 1. None: timers are only set between two steps.
    """

    STATE = ("instants", "_passed")

    def __init__(self, least_delay: int | None = 1) -> None:
        assert least_delay is None or least_delay >= 1
        self.least_delay = least_delay
        self._waiting: list[int] = []
        self._passed: int | None = None

    def set(self, instant: int) -> None:
        """Ask for a tick at the end of an instant, in microseconds; asking twice for one gives one."""
        assert self._passed is None or instant > self._passed, "a timer is set for an instant that has passed"
        heappush(self._waiting, instant)

    @property
    def next_instant(self) -> int:
        """The instant of the first timer; NEVER if there is none."""
        return self._waiting[0] if self._waiting else NEVER

    @property
    def last_instant(self) -> int | None:
        """The instant of the last timer, if there is any."""
        return max(self._waiting, default=None)

    def due(self, through: int) -> Points:
        """Remove and return the timers at or before an instant, in order, each once."""
        self._passed = through
        found: list[int] = []
        while self._waiting and self._waiting[0] <= through:
            instant = heappop(self._waiting)
            if not found or found[-1] != instant:
                found.append(instant)
        return np.array(found, np.int64)

    @property
    def instants(self) -> Points:
        """The timers that are set."""
        return np.array(sorted(self._waiting), np.int64)

    @instants.setter
    def instants(self, instants: Points) -> None:
        self._waiting = instants.tolist()
        heapify(self._waiting)
