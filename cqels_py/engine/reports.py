"""What is left out of a stream, told to those who did not ask for it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial

from cqels_py.errors import CqelsError, DataError
from cqels_py.plan.nodes import Plan

IN_FULL = 10
"""So many reports are told as they come."""
EVERY = 60.0
"""Seconds between those that are told afterwards."""


def told_of(plan: Plan, report: Callable[[CqelsError], None]) -> Callable[[str], None]:
    """Reports of a query: to be called with messages. On Spark it is part of a state, and pickled."""
    return partial(_tell, plan.title, report)


def _tell(title: str, report: Callable[[CqelsError], None], message: str) -> None:
    report(DataError(f"{title}: {message}"))


class Reports:
    """The first few reports in full, then one a minute with the count: a stream can be late for hours.

    `tell` gets the messages. `clock`: seconds.
    """

    def __init__(self, tell: Callable[[str], object], clock: Callable[[], float] = time.monotonic) -> None:
        self._tell = tell
        self._clock = clock
        self._count = 0
        self._told = 0
        self._next = 0.0

    def __call__(self, report: object) -> None:
        self._count += 1
        if self._count <= IN_FULL:
            self._say(str(report))
        elif self._count == IN_FULL + 1:
            self._tell("… further reports are counted, not shown, but for one a minute")
        elif self._clock() >= self._next:
            self._say(f"{report} ({self._count:,} reports in all, {self._untold:,} since the last one shown)")

    def close(self) -> None:
        """Tell how many there were, if some have not been told."""
        if self._untold:
            self._say(f"{self._count:,} reports in all, {self._untold:,} since the last one shown")

    @property
    def _untold(self) -> int:
        return self._count - self._told

    def _say(self, message: str) -> None:
        self._tell(message)
        self._told = self._count
        self._next = self._clock() + EVERY


def logged(log: logging.Logger) -> Reports:
    """Reports as warnings of a logger. They can be pickled, as part of a state."""
    return Reports(log.warning)
