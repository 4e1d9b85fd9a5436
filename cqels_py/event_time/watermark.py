"""The watermark: elements out of order by no more than the allowed lateness are sorted; late data is dropped and counted."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cqels_py.event_time.wall_clock import Clock

_BEFORE_ALL = np.iinfo(np.int64).min // 2
AFTER_ALL = np.iinfo(np.int64).max
"""Of a stream that others do not wait for: it has no element before this."""
_LATE = np.zeros(1, np.bool_)


class Watermark:
    """Decides, element by element in order of arrival, which are late and which are complete.

    The watermark is the greatest time seen minus `lateness` (microseconds). An element before it is late; those at or before it are
    complete and can be processed. The decision does not depend on how arrivals are batched. With a `clock`, elements
    that are ahead of it do not move the watermark: they wait for their times, and are to be admitted again then. So do those at or
    behind `frontier`, if there is one: before it all elements are there.
    """

    STATE = ("greatest",)

    def __init__(self, lateness: int, clock: Clock | None = None) -> None:
        self._lateness = lateness
        self.clock = clock
        self.greatest = _BEFORE_ALL
        """The greatest time seen, or promised."""
        self.frontier: int | None = None

    @property
    def time(self) -> int:
        """No element before this instant will be accepted any more."""
        return self.greatest - self._lateness

    @property
    def has_begun(self) -> bool:
        """Has there been an element, or a promise?"""
        return self.greatest > _BEFORE_ALL

    def is_complete_at(self, time: int) -> bool:
        """Is an element of this time complete at once, as none before it is later?"""
        if self._lateness or time < self.greatest:
            return False
        if self.frontier is None and self.clock is None:
            return True
        limit = self._limit()
        return limit is None or time <= limit

    def move_to(self, time: int) -> None:
        """Move to the time of an element that is complete at once."""
        self.greatest = time

    def admit(self, time: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_] | None:
        """Which of the arriving elements (n times) are not late; None: all of them. Moves the watermark."""
        if len(time) == 0:
            return None
        limit = self._limit()
        if limit is not None:
            return self._admit(time, np.where(time > limit, _BEFORE_ALL, time))
        if len(time) == 1:
            # On a live stream elements come one by one.
            instant = time.item(0)
            if instant >= self.greatest:
                self.greatest = instant
                return None
            return _LATE if instant < self.greatest - self._lateness else None
        return self._admit(time, time)

    def _admit(self, time: npt.NDArray[np.int64], moving: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_] | None:
        """`admit`, where elements (n times) move the watermark to other times (n)."""
        greatest = np.maximum.accumulate(np.concatenate([[self.greatest], moving]))
        self.greatest = int(greatest[-1])
        admitted: npt.NDArray[np.bool_] = time >= greatest[:-1] - self._lateness
        return None if admitted.all() else admitted

    def _limit(self) -> int | None:
        """The last instant to which elements move the watermark."""
        if self.frontier is None:
            return None if self.clock is None else self.clock.now()
        before = max(self.frontier - 1, _BEFORE_ALL)
        return before if self.clock is None else min(before, self.clock.now())

    def advance(self, time: int) -> None:
        """Advance to `time`: the caller promises that no element before it will come."""
        self.greatest = max(self.greatest, time + self._lateness)
