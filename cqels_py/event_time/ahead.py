"""The guard against clocks that run ahead: an element much later than those before it in its stream does not move event time."""

from __future__ import annotations

from collections import deque
from typing import Protocol

import numpy as np
import numpy.typing as npt

from cqels_py.event_time.wall_clock import Clock
from cqels_py.kernels.windows import ahead as kernel

_NOTHING_YET = int(np.iinfo(np.int64).min)
_YEAR = 366 * 24 * 3600 * 1_000_000


class Guard(Protocol):
    """Decides in order of arrival which elements are too far ahead."""

    def admit(self, time: npt.NDArray[np.int64], stream: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_] | None:
        """Which of the elements (n times, n numbers of streams) are not too far ahead; None: all of them."""
        ...


class ClockGuard:
    """Elements are too far ahead that are more than `ahead` microseconds ahead of the clock."""

    def __init__(self, clock: Clock, ahead: int) -> None:
        self.clock = clock
        self._ahead = ahead

    def by(self, clock: Clock) -> ClockGuard:
        """A guard with this limit by another clock."""
        return ClockGuard(clock, self._ahead)

    def admit(self, time: npt.NDArray[np.int64], stream: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_] | None:
        """Which of the elements (n times) are not too far ahead; None: all of them."""
        admitted: npt.NDArray[np.bool_] = time <= self.clock.now() + self._ahead
        return None if admitted.all() else admitted


class AheadGuard:
    """Decides, stream by stream in order of arrival, which elements are too far ahead.

    An element is, if it is more than `ahead` microseconds later than the latest one before it in its stream, or than the last
    `advance`. The first one of a stream never is, and elements that are do not count for those after them. The decision does not
    depend on how elements are batched. `ahead` None: none is, and where one is more than a year later, `jumps` gets the number of
    the stream and the time.
    """

    STATE = ("greatest",)

    def __init__(self, ahead: int | None) -> None:
        self._ahead = ahead
        self._most = _YEAR if ahead is None else ahead
        self.jumps: deque[tuple[int, int]] = deque()
        # By the stream's number. In a list: elements that come one by one read and change it one by one.
        self._greatest: list[int] = []

    @property
    def greatest(self) -> npt.NDArray[np.int64]:
        """The times from which later elements are judged, as they are saved."""
        return np.array(self._greatest, np.int64)

    @greatest.setter
    def greatest(self, times: npt.NDArray[np.int64]) -> None:
        self._greatest = times.tolist()

    def admit(self, time: npt.NDArray[np.int64], stream: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_] | None:
        """Which of the elements (n times, n numbers of streams) are not too far ahead; None: all of them."""
        if not len(time):
            return None
        first = stream.item(0)
        if len(time) == 1:
            # On a live stream elements come one by one.
            if self.moves_to(first, time.item(0)):
                return None
        elif not (stream == first).all():
            return self._admit_each(time, stream)
        return self._admit(time, first)

    def moves_to(self, stream: int, time: int, *, moves: bool = True) -> bool:
        """Take in an element that is near those before it in its stream. False, with nothing done, if `admit` has to decide.

        Without `moves` only tell.
        """
        all_greatest = self._greatest
        if stream >= len(all_greatest):
            return False
        greatest = all_greatest[stream]
        if time <= greatest:
            return True
        # Where nothing has come yet, every time is.
        if time - greatest > self._most:
            return False
        if moves:
            all_greatest[stream] = time
        return True

    def latest(self, stream: int) -> int:
        """The time from which later elements of a stream are judged; `go_on` takes it."""
        return self._of(stream)

    def go_on(self, stream: int, latest: int) -> None:
        """Judge the elements of a stream from a time on which `latest` has returned."""
        self._of(stream)
        self._greatest[stream] = latest

    def advance(self, time: int) -> None:
        """No element before `time` will come: later ones are judged from there."""
        self._greatest = [each if each == _NOTHING_YET else max(each, time) for each in self._greatest]

    def _admit_each(self, time: npt.NDArray[np.int64], stream: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_] | None:
        admitted = np.ones(len(time), np.bool_)
        for number in np.unique(stream).tolist():
            mine = np.flatnonzero(stream == number)
            of_stream = self._admit(np.ascontiguousarray(time[mine]), number)
            if of_stream is not None:
                admitted[mine] = of_stream
        return None if admitted.all() else admitted

    def _admit(self, time: npt.NDArray[np.int64], number: int) -> npt.NDArray[np.bool_] | None:
        """`admit` for the elements of one stream."""
        greatest = self._of(number)
        if greatest == _NOTHING_YET:
            greatest = time.item(0)
        latest = int(time.max())
        # Mostly not even the latest one is far from those before all of these.
        if latest - greatest <= self._most:
            self._greatest[number] = max(greatest, latest)
            return None
        admitted = np.empty(len(time), np.bool_)
        self._greatest[number] = int(kernel.admit(time, greatest, self._most, admitted))
        if admitted.all():
            return None
        if self._ahead is not None:
            return admitted
        self.jumps.append((number, time.item(int(np.argmin(admitted)))))
        self._greatest[number] = latest
        return None

    def _of(self, number: int) -> int:
        self._greatest += [_NOTHING_YET] * (number + 1 - len(self._greatest))
        return self._greatest[number]
