"""Which streams and queries of an engine follow the computer's clock."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from cqels_py.engine.clock_thread import ClockThread, Following
from cqels_py.engine.options import CLOCK_AHEAD, EVENTS, WALL, Options
from cqels_py.errors import UsageError
from cqels_py.event_time.ahead import ClockGuard
from cqels_py.event_time.wall_clock import WallClock


class Clocks:
    """The clock of an engine, and who follows it.

    A query that says its clock has that one, others that of their streams. `by_events`: the numbers of streams that do not follow
    the clock. `followed`: does anything follow it? `unseen`: a query that does has not got the time yet, as none has looked at the
    clock since it was registered. `left_to_run`: a run sees to it, since its sources may have elements of before.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self.wall = WallClock(options.clock_delay)
        self.guard = ClockGuard(self.wall, options.ahead or CLOCK_AHEAD)
        self.by_events: set[int] = set()
        self.followed = options.clock == WALL
        self.unseen = self.left_to_run = False
        self._thread: ClockThread | None = None

    def know(self, numbers: Iterable[int], streams: Iterable[str]) -> None:
        """Streams have these numbers from now on."""
        for number, iri in zip(numbers, streams, strict=True):
            if self._options.follows_clock(iri):
                self.by_events.discard(number)
            else:
                self.by_events.add(number)

    def follows(self, asked: str | None, streams: Iterable[str]) -> bool:
        """Does a query follow the clock that asked for this one and reads these streams? If so, time is kept from now on."""
        follows = asked == WALL if asked is not None else all(map(self._options.follows_clock, streams))
        self.followed = self.followed or follows
        self.unseen = self.unseen or follows
        return follows

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Inside, sources are read, and queries get the time when these have been."""
        self.left_to_run = True
        try:
            yield
        finally:
            self.left_to_run = False

    def keep_time(self, engine: Following) -> None:
        """Let a thread look at the clock, if anything follows it and none does yet."""
        if self.followed and self._thread is None:
            self._thread = ClockThread(engine)

    def stop(self) -> None:
        """Nothing follows any more."""
        if self._thread is not None:
            self._thread.stop()


def check_clock(clock: object) -> None:
    """UsageError for a clock that is none."""
    if clock not in (EVENTS, WALL, None):
        raise UsageError(f"clock is {EVENTS!r} or {WALL!r}, not {clock!r}")
