"""Trying again, ever more slowly, while the other side is away."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final

FIRST, MOST = 0.1, 30.0
"""The shortest and the longest pause between two tries, in seconds."""
_RANDOM: Final = Random()
"""Of its own: a program that seeds Python's generator gets the numbers that it expects, whatever is tried again meanwhile."""


@dataclass(slots=True)
class Backoff:
    """Pauses that double, each shortened by up to a half so that many clients do not come back at one moment.

    `patience`: seconds from the first failure after which no more tries are made.
    """

    patience: float = float("inf")
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], object] = time.sleep
    _pause: float = FIRST
    _since: float | None = None

    def wait(self) -> bool:
        """Wait before the next try; False, at once, when patience is at its end."""
        seconds = self.pause()
        if seconds is None:
            return False
        self.sleep(seconds)
        return True

    def pause(self) -> float | None:
        """The seconds to wait before the next try, for those who wait in their own way; None when patience is at its end."""
        now = self.clock()
        if self._since is None:
            self._since = now
        if now - self._since >= self.patience:
            return None
        seconds = min(self._pause * _RANDOM.uniform(0.5, 1), max(0.0, self._since + self.patience - now))
        self._pause = min(2 * self._pause, MOST)
        return seconds

    def reset(self) -> None:
        """The other side is back."""
        self._pause, self._since = FIRST, None
