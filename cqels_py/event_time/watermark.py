"""The watermark: elements a little out of order are put in order; those too late are dropped and counted."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_BEFORE_ALL = np.iinfo(np.int64).min // 2
_IN_TIME, _LATE = np.ones(1, np.bool_), np.zeros(1, np.bool_)


class Watermark:
    """Decides, element by element in order of arrival, what is late and what can be handed on.

    The watermark is the greatest time seen minus `lateness` (microseconds). An element before it is late; one at or before it
    is complete. The decision does not depend on how arrivals are batched.
    """

    def __init__(self, lateness: int) -> None:
        self._lateness = lateness
        self._greatest = _BEFORE_ALL

    @property
    def time(self) -> int:
        """No element before this instant will be accepted any more."""
        return self._greatest - self._lateness

    def admit(self, time: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Which of the arriving elements (n times) are not late; moves the watermark."""
        if len(time) == 0:
            return np.empty(0, np.bool_)
        if len(time) == 1:
            # As elements come on a live stream.
            instant = time.item(0)
            late = instant < self._greatest - self._lateness
            self._greatest = max(self._greatest, instant)
            return _LATE if late else _IN_TIME
        greatest = np.maximum.accumulate(np.concatenate([[self._greatest], time]))
        self._greatest = int(greatest[-1])
        admitted: npt.NDArray[np.bool_] = time >= greatest[:-1] - self._lateness
        return admitted

    def advance(self, time: int) -> None:
        """A promise from outside: no element before `time` will come."""
        self._greatest = max(self._greatest, time + self._lateness)
