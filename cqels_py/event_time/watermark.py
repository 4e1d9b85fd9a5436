"""The watermark: elements out of order by no more than the allowed lateness are sorted; late data is dropped and counted."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_BEFORE_ALL = np.iinfo(np.int64).min // 2
_LATE = np.zeros(1, np.bool_)


class Watermark:
    """Decides, element by element in order of arrival, which are late and which are complete.

    The watermark is the greatest time seen minus `lateness` (microseconds). An element before it is late; those at or before it are
    complete and can be processed. The decision does not depend on how arrivals are batched.
    """

    STATE = ("_greatest",)

    def __init__(self, lateness: int) -> None:
        self._lateness = lateness
        self._greatest = _BEFORE_ALL

    @property
    def time(self) -> int:
        """No element before this instant will be accepted any more."""
        return self._greatest - self._lateness

    def is_complete_at(self, time: int) -> bool:
        """Is an element of this time complete at once, as none before it is later?"""
        return not self._lateness and time >= self._greatest

    def move_to(self, time: int) -> None:
        """Move to the time of an element that is complete at once."""
        self._greatest = time

    def admit(self, time: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_] | None:
        """Which of the arriving elements (n times) are not late; None: all of them. Moves the watermark."""
        if len(time) == 0:
            return None
        if len(time) == 1:
            # On a live stream elements come one by one.
            instant = time.item(0)
            if instant >= self._greatest:
                self._greatest = instant
                return None
            return _LATE if instant < self._greatest - self._lateness else None
        greatest = np.maximum.accumulate(np.concatenate([[self._greatest], time]))
        self._greatest = int(greatest[-1])
        admitted: npt.NDArray[np.bool_] = time >= greatest[:-1] - self._lateness
        return None if admitted.all() else admitted

    def advance(self, time: int) -> None:
        """Advance to `time`: the caller promises that no element before it will come."""
        self._greatest = max(self._greatest, time + self._lateness)
