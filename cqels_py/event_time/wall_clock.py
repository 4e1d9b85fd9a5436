"""The computer's clock as event time."""

from __future__ import annotations

import time
from collections import deque
from typing import Protocol

SECOND = 1_000_000
_JUMP = 60 * SECOND


class Clock(Protocol):
    """A clock in microseconds since the epoch."""

    def now(self) -> int:
        """The time, not before any that was told."""
        ...

    def hold(self, time: int | None = None) -> int:
        """For a while it is this time, or that of now."""
        ...


class WallClock:
    """The computer's clock in microseconds since the epoch. It never goes back: a step backward is waited out.

    `delay`: microseconds that elements take to arrive, so that `passed` is so long ago. A step by more than a minute against the
    monotonic clock is noted in `jumps` (microseconds): one backward, and one forward beyond all times of before.

    >>> clock = WallClock(200_000)
    >>> before = clock.now()
    >>> before - 200_000 <= clock.passed() < clock.now()
    True
    """

    def __init__(self, delay: int) -> None:
        self._delay = delay
        self._apart: float | None = None
        self._furthest = 0.0
        self._latest = 0
        self._held: int | None = None
        self.jumps: deque[int] = deque(maxlen=1)

    def now(self) -> int:
        """The time, not before any that was told."""
        if self._held is not None:
            return self._held
        seconds, monotonic = self._read()
        apart = seconds - monotonic
        if self._apart is None:
            self._apart = self._furthest = apart
        # A clock that is set back and put right again has not gone forward.
        step = max(0.0, apart - self._furthest) if apart > self._apart else apart - self._apart
        if abs(step) * SECOND > _JUMP:
            self.jumps.append(round(step * SECOND))
        self._apart, self._furthest = apart, max(self._furthest, apart)
        self._latest = max(self._latest, round(seconds * SECOND))
        return self._latest

    def hold(self, time: int | None = None) -> int:
        """From here to the next call of `hold` or `passed` it is this time, or that of now: one for all decisions of a step."""
        self._held = None
        if time is None:
            time = self.now()
        self._held = self._latest = max(self._latest, time)
        return time

    def passed(self) -> int:
        """No element of before this instant is still on its way."""
        self._held = None
        return self.now() - self._delay

    def _read(self) -> tuple[float, float]:
        """Seconds since the epoch, which may be set, and seconds that always go on."""
        return time.time(), time.monotonic()
