"""What is left out of a stream, told to those who did not ask for it."""

from __future__ import annotations

import logging
from collections.abc import Callable

from cqels_py.errors import CqelsError, DataError
from cqels_py.plan.nodes import Plan

LOGGED_AT_MOST = 10
"""Reports of one engine that are logged; all are counted."""


def told_of(plan: Plan, report: Callable[[CqelsError], None]) -> Callable[[str], None]:
    """Reports of a query: to be called with messages."""
    return lambda message: report(DataError(f"{plan.title}: {message}"))


class LoggedReports:
    """The first few as warnings, each in full, then once that there are more: a stream can be late for hours."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._told = 0

    def __call__(self, error: CqelsError) -> None:
        self._told += 1
        if self._told <= LOGGED_AT_MOST:
            self._log.warning("%s", error)
        elif self._told == LOGGED_AT_MOST + 1:
            self._log.warning("… further reports are counted in the engine's statistics, not logged")
