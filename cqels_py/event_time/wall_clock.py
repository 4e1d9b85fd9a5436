"""The computer's clock as event time."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

SECOND = 1_000_000
_JUMP = 60 * SECOND


class WallClock:
    """The computer's clock in microseconds since the epoch. It never goes back: a step backward is waited out.

    `delay`: microseconds that elements take to arrive, so that `passed` is so long ago. A step forward, by more than a minute
    against the monotonic clock, is noted in `jumps` (microseconds).

    >>> clock = WallClock(200_000, wall=lambda: 5.0, monotonic=lambda: 0.0)
    >>> clock.now(), clock.passed()
    (5000000, 4800000)
    """

    def __init__(
        self,
        delay: int,
        *,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._delay = delay
        self._wall = wall
        self._monotonic = monotonic
        self._begin = wall() - monotonic()
        self._latest = 0
        self.jumps: deque[int] = deque(maxlen=1)

    def now(self) -> int:
        """The time, not before any that was told."""
        seconds, since = self._wall(), self._wall() - self._monotonic()
        jump = round((since - self._begin) * SECOND)
        if jump > _JUMP:
            self.jumps.append(jump)
        self._begin = since
        self._latest = max(self._latest, round(seconds * SECOND))
        return self._latest

    def passed(self) -> int:
        """No element of before this instant is still on its way."""
        return self.now() - self._delay
