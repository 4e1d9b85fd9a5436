"""Reports of data that are left out, for callers that gave no `report`: a logger gets them."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from functools import partial

from cqels_py.engine.options import Options
from cqels_py.errors import CqelsError, DataError, RunError
from cqels_py.formats.times import doubt
from cqels_py.plan.nodes import Plan
from cqels_py.runners.statistics import Counters

_LOG = logging.getLogger("cqels_py")
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


class EngineReports:
    """The reports of an engine: input that was left out, failed subscribers, warnings of queries.

    Reports about a step are `due` when it is complete, and are told outside of the engine's lock.
    """

    def __init__(self, options: Options, counters: Counters) -> None:
        self._options = options
        self._counters = counters
        self.report = options.report if options.report is not None else logged(_LOG)
        self.due: deque[DataError] = deque()
        # Streams whose times seem to be meant in another unit.
        self._doubted: set[str] = set()

    def warn(self, plan: Plan) -> None:
        """The warnings of a query, to the logger, unless reports go elsewhere."""
        if self._options.report is None:
            for warning in plan.warnings:
                _LOG.warning("%s%s", f"{plan.name}: " if plan.name else "", warning)

    def late(self, dropped: int) -> None:
        """So many late elements of the step at hand were dropped."""
        elements = "1 element was" if dropped == 1 else f"{dropped} elements were"
        self.due.append(
            DataError(
                f"{elements} dropped as late data: older than the newest element by more than the lateness of "
                f"{self._options.lateness:,} microseconds; a greater lateness accepts them"
            )
        )

    def doubt(self, stream: str, time: int) -> None:
        """Ask once a stream whether an integer time was meant in another unit; perhaps in a thread that reads ahead."""
        if stream not in self._doubted and (question := doubt(time)) is not None:
            self._doubted.add(stream)
            self.due.append(DataError(f"<{stream}>: {question}"))

    def report_due(self, failures: list[BaseException]) -> None:
        """Tell the reports of steps; exceptions of the report are added to `failures`."""
        try:
            while self.due:
                self.report(self.due.popleft())
        except BaseException as error:
            failures.append(error)

    def malformed(self, *errors: DataError, beside: BaseException | None = None) -> None:
        """Raise, or count and report. `beside`: an error that is about to be raised, and gets these as notes."""
        if not errors:
            return
        if self._options.on_error == "skip":
            self._counters.malformed += len(errors)
            for error in errors:
                self.report(error)
            return
        raised, *others = errors if beside is None else (beside, *errors)
        for other in others:
            raised.add_note(f"also: {other}")
        if beside is None:
            raise raised

    def subscriber_failed(self, error: RunError) -> None:
        """An exception of a subscriber that is only reported."""
        self._counters.subscriber_errors += 1
        self.report(error)

    def close(self) -> None:
        """Nothing more follows."""
        if isinstance(self.report, Reports):
            self.report.close()
