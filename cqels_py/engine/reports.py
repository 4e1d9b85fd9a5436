"""Reports of data that are left out, for callers that gave no `report`: a logger gets them."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial

from cqels_py.engine.options import CLOCK_AHEAD, WALL, Options
from cqels_py.engine.rejects import MALFORMED, SPLIT, Record, Rejects
from cqels_py.errors import CqelsError, DataError, RunError
from cqels_py.formats.json_ld import JsonLd
from cqels_py.formats.omissions import Omissions
from cqels_py.formats.times import unit_question
from cqels_py.plan.nodes import Plan
from cqels_py.runners.statistics import Counters
from cqels_py.sources.time_merge import Piece

_LOG = logging.getLogger("cqels_py")
IN_FULL = 10
"""The number of reports that are shown in full, as they come."""
STATIC_DATA = "static data"
EVERY = 60.0
"""Seconds between those that are shown afterwards."""


def report_for(plan: Plan, report: Callable[[CqelsError], None]) -> Callable[[str], None]:
    """Reports of a query: to be called with messages. Spark sends it to its workers, pickled."""
    return partial(_report_data_error, plan.title, report)


def _report_data_error(title: str, report: Callable[[CqelsError], None], message: str) -> None:
    report(DataError(f"{title}: {message}"))


class Reports:
    """The first few reports in full, then one a minute with the count: a stream can be late for hours.

    `show` gets the messages. `clock`: seconds.
    """

    def __init__(self, show: Callable[[str], object], clock: Callable[[], float] = time.monotonic) -> None:
        self._show = show
        self._clock = clock
        self._count = 0
        self._shown = 0
        self._next = 0.0

    def __call__(self, report: object) -> None:
        self._count += 1
        if self._count <= IN_FULL:
            self._show_in_full(str(report))
        elif self._count == IN_FULL + 1:
            self._show("… further reports are counted, not shown, but for one a minute")
        elif self._clock() >= self._next:
            self._show_in_full(
                f"{report} ({self._count:,} reports in all, {self._not_shown:,} since the last one shown)"
            )

    def close(self) -> None:
        """Show how many there were, if some have not been shown."""
        if self._not_shown:
            self._show_in_full(f"{self._count:,} reports in all, {self._not_shown:,} since the last one shown")

    @property
    def _not_shown(self) -> int:
        return self._count - self._shown

    def _show_in_full(self, message: str) -> None:
        self._show(message)
        self._shown = self._count
        self._next = self._clock() + EVERY


def logged(log: logging.Logger) -> Reports:
    """Reports as warnings of a logger. They can be pickled."""
    return Reports(log.warning)


class EngineReports:
    """The reports of an engine: input that was left out, failed subscribers, warnings of queries.

    Reports about a step are `due` when it is complete, and are given to `report` outside of the engine's lock.
    """

    STATE = ("_asked", "_jumped")

    def __init__(self, options: Options, counters: Counters, rejects: Rejects) -> None:
        self._options = options
        self._counters = counters
        self._rejects = rejects
        self.report = options.report if options.report is not None else logged(_LOG)
        self.due: deque[DataError] = deque()
        # Streams whose times seem to be meant in another unit.
        self._asked: list[str] = []
        self._jumped: list[str] = []
        self._omissions: dict[str, Omissions] = {}
        self.known: dict[str, int] = {}
        """By stream, how many malformed pieces of a file that is read again have been told by an earlier process."""
        self.left_out: Callable[[Record], object] = lambda record: None
        """Is called with input that is left out."""

    def warn(self, plan: Plan) -> None:
        """The warnings of a query, to the logger, unless reports go elsewhere."""
        if self._options.report is None:
            for warning in plan.warnings:
                _LOG.warning("%s%s", f"{plan.name}: " if plan.name else "", warning)

    def late(self, dropped: int) -> None:
        """Count elements of the current step that were dropped as late."""
        elements = "1 element was" if dropped == 1 else f"{dropped} elements were"
        allowed = "" if self._options.lateness_of else f" of {self._options.lateness:,} microseconds"
        self.due.append(
            DataError(
                f"{elements} dropped as late data: older than the newest element by more than the lateness"
                f"{allowed}; a greater lateness accepts them"
            )
        )

    def ahead(self, dropped: int) -> None:
        """Count elements of the current step that were dropped as too far ahead."""
        elements = "1 element was" if dropped == 1 else f"{dropped} elements were"
        ahead = self._options.ahead
        if ahead is None or self._options.clock == WALL:
            later = f"more than {ahead or CLOCK_AHEAD:,} microseconds ahead of this computer's clock; a greater ahead accepts it"
        else:
            later = (
                f"more than {ahead:,} microseconds later than the element before it in its stream, as if by a wrong clock; if it "
                "was a pause, a greater ahead accepts it"
            )
        self.due.append(DataError(f"{elements} dropped: {later}"))

    def ask_jump(self, stream: str, time: int) -> None:
        """Ask once about a stream whose time has jumped by more than a year."""
        if stream not in self._jumped:
            self._jumped.append(stream)
            self.due.append(
                DataError(
                    f"<{stream}>: the time has jumped by more than a year, to {time} microseconds since the epoch, and "
                    "earlier elements are late from now on; if a clock is wrong, ahead drops its elements (--ahead 1h)"
                )
            )

    def clock_jumped(self, by: int) -> None:
        """Tell that the computer's clock was set, by microseconds."""
        seconds = f"{abs(by) / 1_000_000:,.0f} seconds"
        if by > 0:
            told = f"forward by {seconds}: elements of before are late now"
        else:
            told = f"back by {seconds}: its time stands still until it is later than before"
        self.due.append(DataError(f"the clock was set {told}"))

    def ask_unit(self, stream: str, time: int) -> None:
        """Ask once a stream whether an integer time was meant in another unit; perhaps in a thread that reads ahead."""
        if stream not in self._asked and (question := unit_question(time)) is not None:
            self._asked.append(stream)
            self.due.append(DataError(f"<{stream}>: {question}"))

    def omissions(self, source: str) -> Omissions:
        """Those of a stream, or of the static data; perhaps for a thread that reads ahead."""
        found = self._omissions.get(source)
        if found is None:
            shown = source if source == STATIC_DATA else f"<{source}>"
            found = self._omissions[source] = Omissions(
                lambda message: self.due.append(DataError(f"{shown}: {message}")),
                lambda reason: self._counters.reject(source, reason, 1),
            )
        return found

    def json_ld(self, source: str = STATIC_DATA) -> JsonLd:
        """How documents of JSON-LD of a stream, or of the static data, are read."""
        return JsonLd(self._options.contexts, self.omissions(source))

    def report_due(self, failures: list[BaseException]) -> None:
        """Make the reports that are due; exceptions of `report` are added to `failures`."""
        try:
            self._rejects.write_dropped()
            while (due := self._next_due()) is not None:
                self.report(due)
        except BaseException as error:
            failures.append(error)

    def _next_due(self) -> DataError | None:
        # Another thread may take the last one at any time.
        try:
            return self.due.popleft()
        except IndexError:
            return None

    def malformed(self, *errors: DataError, beside: BaseException | None = None) -> None:
        """Raise, or count and report. `beside`: an error that is about to be raised, and gets these as notes."""
        if not errors:
            return
        if self.skips:
            for error in errors:
                if self._is_known(error):
                    continue
                self.left_out(self._rejects.left_out(MALFORMED, error))
                self.report(error)
            return
        raised, *others = errors if beside is None else (beside, *errors)
        for other in others:
            raised.add_note(f"also: {other}")
        if beside is None:
            raise raised

    @property
    def skips(self) -> bool:
        """Is malformed input left out?"""
        return self._options.on_error == "skip"

    def tell(self, pieces: Iterable[Piece]) -> None:
        """Count and report input that is left out, and is in the log."""
        for reason, error in pieces:
            self._rejects.left_out(reason, error)
            self.report(error)

    def _is_known(self, error: DataError) -> bool:
        """Has an earlier process told it? Pushed elements, which have no place, are new."""
        stream = error.stream or ""
        if error.place is None or not self.known.get(stream):
            return False
        self.known[stream] -= 1
        return True

    def split(self, error: DataError) -> None:
        """Count and report triples of an element that was complete before they came."""
        self.left_out(self._rejects.left_out(SPLIT, error))
        self.report(error)

    def subscriber_failed(self, error: RunError) -> None:
        """An exception of a subscriber that is only reported."""
        self._counters.subscriber_errors += 1
        self.report(error)

    def close(self) -> None:
        """Nothing more follows."""
        self._rejects.close()
        if isinstance(self.report, Reports):
            self.report.close()
