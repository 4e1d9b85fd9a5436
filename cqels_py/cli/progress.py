"""The progress of a run: a line on a terminal while it runs, statistics at its end. All on standard error."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import fields

from cqels_py.cli.failures import say
from cqels_py.engine.reports import Reports
from cqels_py.functions.dates import instant_text
from cqels_py.runners.statistics import Statistics

REFRESH_SECONDS = 0.125


def instant(microseconds: int | None) -> str:
    """Such as 2013-01-01 15:18:10 UTC; also for years beyond 9999, with which Python's dates end."""
    if microseconds is None:
        return "no event yet"
    date, _, clock = instant_text(microseconds // 1_000_000 * 1_000_000).partition("T")
    return f"{date} {clock.removesuffix('Z')} UTC"


class Progress:
    """Called with the engine's statistics after each batch; calls `show` with a line about them a few times a second.

    If the run is slowed down to a given speed, its rate means nothing and is left out.
    """

    def __init__(
        self,
        show: Callable[[str], None] | None,
        clock: Callable[[], float] = time.monotonic,
        held_back: bool = False,
    ) -> None:
        self._show = show
        self._held_back = held_back
        self._clock = clock
        self._started = clock()
        self._shown = self._started

    def update(self, statistics: Statistics) -> None:
        """Cheap, unless it is time to show something."""
        now = self._clock()
        if self._show is not None and now - self._shown >= REFRESH_SECONDS:
            self._shown = now
            self._show(self.line(statistics))

    def line(self, statistics: Statistics) -> str:
        """Event time, counts, elements a second, and the data that were left out."""
        parts = [
            instant(statistics.event_time),
            f"{statistics.elements:,} elements",
            f"{statistics.results:,} results",
        ]
        if not self._held_back:
            parts.append(f"{statistics.elements / self._seconds():,.0f} elements/s")
        return " · ".join(parts + omissions(statistics))

    def summary(self, statistics: Statistics) -> str:
        """Everything the engine counted, a line each."""
        seconds = self._seconds()
        rows = (
            ("elements", f"{statistics.elements:,}"),
            ("triples", f"{statistics.triples:,}"),
            ("results", f"{statistics.results:,}"),
            ("late elements dropped", f"{statistics.late:,}"),
            *((("too far ahead dropped", f"{statistics.ahead:,}"),) if statistics.ahead else ()),
            ("malformed skipped", f"{statistics.malformed:,}"),
            *((f"  {reason} in <{iri}>", f"{count:,}") for (iri, reason), count in statistics.rejected.items()),
            ("no numbers in SUM, AVG", f"{statistics.no_numbers:,}"),
            ("event time", instant(statistics.event_time)),
            ("seconds", f"{seconds:,.2f}"),
            ("triples a second", f"{statistics.triples / seconds:,.0f}"),
        )
        return "\n".join(f"{name:<22} {value:>24}" for name, value in rows)

    def figures(self, statistics: Statistics) -> dict[str, object]:
        """Everything the engine counted, by name; `event_time` in microseconds."""
        counted = {field.name: getattr(statistics, field.name) for field in fields(statistics)}
        rejected = [
            {"stream": stream, "reason": reason, "count": count}
            for (stream, reason), count in statistics.rejected.items()
        ]
        return {**counted, "rejected": rejected, "seconds": round(self._seconds(), 3)}

    def _seconds(self) -> float:
        return max(self._clock() - self._started, 1e-6)


def omissions(statistics: Statistics) -> list[str]:
    """The input that was left out, in words; empty if all of it was processed."""
    words = []
    if statistics.late:
        words.append(f"{statistics.late:,} late element{'s' if statistics.late > 1 else ''} dropped")
    if statistics.ahead:
        words.append(f"{statistics.ahead:,} element{'s' if statistics.ahead > 1 else ''} too far ahead dropped")
    if statistics.malformed:
        words.append(f"{statistics.malformed:,} malformed skipped")
    if statistics.subscriber_errors:
        # The command has no other subscriber.
        refused = statistics.subscriber_errors
        words.append(f"{refused:,} result{'s' if refused > 1 else ''} refused by the output")
    return words


def reports() -> Reports:
    """The engine's reports while it runs (a skipped line, a late element), as warnings."""
    return Reports(lambda message: say(f"warning: {message}"))


class Pace:
    """Slows a run down to `speed` seconds of event time a second."""

    def __init__(self, speed: float, sleep: Callable[[float], None] = time.sleep) -> None:
        self._speed = speed
        self._sleep = sleep
        self._origin: tuple[float, int] | None = None

    def wait(self, event_time: int | None) -> None:
        """Until it is time for `event_time`; the first one is due at once."""
        if event_time is None:
            return
        if self._origin is None:
            self._origin = (time.monotonic(), event_time)
        started, first = self._origin
        ahead = started + (event_time - first) / 1e6 / self._speed - time.monotonic()
        if ahead > 0:
            self._sleep(ahead)
