"""The options of an engine."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from cqels_py.connections.reach import Reach
from cqels_py.errors import CqelsError, UsageError
from cqels_py.formats.contexts import Contexts, read_contexts
from cqels_py.formats.python_times import Duration, duration
from cqels_py.formats.scopes import check_blank_nodes
from cqels_py.formats.times import FAR
from cqels_py.validation import by_iri, check_callable, whole

FLUSH_AFTER = 200_000
"""Microseconds without input after which an element that has begun is complete, unless the user says otherwise."""


EVENTS, WALL = "events", "wall"
KEEP, DROP = "keep", "drop"
"""What becomes of elements that come again."""
CLOCK_DELAY = 200_000
"""Microseconds that elements take to arrive, where time follows the clock."""
CLOCK_AHEAD = 3_600_000_000
"""Microseconds that elements may be ahead of the clock."""
IDLE = 30_000_000
"""Microseconds without input after which other live inputs do not wait for one."""


@dataclass(frozen=True, slots=True)
class Options:
    """The arguments of `Engine`, which documents them; UsageError for those that make no sense."""

    lateness: int
    batch: int | None
    on_error: str
    report: Callable[[CqelsError], None] | None
    service_timeout: float
    blank_nodes: str
    contexts: Contexts
    max_text: int
    max_waiting: int
    ahead: int | None = None
    flush_after: int = FLUSH_AFTER
    clock: str = EVENTS
    clock_delay: int = CLOCK_DELAY
    idle: int = IDLE
    max_state: int | None = None
    lateness_of: MutableMapping[str, int] = field(default_factory=dict)
    rejects: str | os.PathLike[str] | None = None
    clock_of: MutableMapping[str, str] = field(default_factory=dict)
    duplicates: str = KEEP
    duplicates_of: MutableMapping[str, str] = field(default_factory=dict)
    reach: Reach | None = None

    def __post_init__(self) -> None:
        _check_lateness(self.lateness, "lateness")
        for iri, lateness in self.lateness_of.items():
            _check_lateness(lateness, f"lateness_of <{iri}>")
        if self.ahead is not None and whole(self.ahead, "ahead", "microseconds") < 1:
            raise UsageError(f"ahead is 1 or more microseconds, not {self.ahead}")
        if whole(self.flush_after, "flush_after", "microseconds") < 0:
            raise UsageError(f"flush_after is 0 (never) or more microseconds, not {self.flush_after}")
        if self.clock not in (EVENTS, WALL):
            raise UsageError(f"clock is {EVENTS!r} or {WALL!r}, not {self.clock!r}")
        for iri, clock in self.clock_of.items():
            if clock not in (EVENTS, WALL):
                raise UsageError(f"clock_of <{iri}> is {EVENTS!r} or {WALL!r}, not {clock!r}")
            if clock == WALL != self.clock:
                raise UsageError(
                    f"clock_of names streams that do not follow the clock of the engine: give clock={WALL!r}, and {EVENTS!r} for "
                    f"others than <{iri}>"
                )
        check_duplicates(self.duplicates)
        if whole(self.clock_delay, "clock_delay", "microseconds") < 0:
            raise UsageError(f"clock_delay is 0 or more microseconds, not {self.clock_delay}")
        if self.max_state is not None and whole(self.max_state, "max_state", "bytes") < 1:
            raise UsageError(f"max_state is 1 or more bytes, not {self.max_state}")
        if whole(self.idle, "idle", "microseconds") < 1:
            raise UsageError(f"idle is 1 or more microseconds, not {self.idle}")
        if self.batch is not None and whole(self.batch, "batch", "elements") < 1:
            raise UsageError(f"batch is 1 or more elements, not {self.batch}")
        seconds = self.service_timeout
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds <= 0:
            raise UsageError(f"service_timeout is a number of seconds above 0, not {seconds!r}")
        if whole(self.max_text, "max_text", "bytes") < 1:
            raise UsageError(f"max_text is 1 or more bytes, not {self.max_text}")
        if whole(self.max_waiting, "max_waiting", "results") < 1:
            raise UsageError(f"max_waiting is 1 or more results, not {self.max_waiting}")
        if self.on_error not in ("stop", "skip"):
            raise UsageError(f"on_error is 'stop' or 'skip', not {self.on_error!r}")
        if self.report is not None:
            check_callable(self.report, "report", "a DataError")
        check_blank_nodes(self.blank_nodes)

    def declare(self, stream: str, lateness: int, clock: str, duplicates: str) -> None:
        """From now on these are the options of a stream. UsageError for those that make no sense."""
        self.check_declared(stream, lateness, clock, duplicates)
        self.lateness_of[stream], self.clock_of[stream], self.duplicates_of[stream] = lateness, clock, duplicates

    def check_declared(self, stream: str, lateness: int, clock: str, duplicates: str) -> None:
        """UsageError for options of a stream that make no sense."""
        check_duplicates(duplicates)
        _check_lateness(lateness, f"the lateness of <{stream}>")
        if clock not in (EVENTS, self.clock):
            raise UsageError(
                f"the clock of <{stream}> is {EVENTS!r} or that of the engine ({self.clock!r}), not {clock!r}"
            )

    def declared(self, stream: str) -> tuple[int, str, str]:
        """The lateness, the clock and the duplicates of a stream, as `declare` takes them."""
        return (
            self.lateness_at(stream),
            self.clock_of.get(stream, self.clock),
            self.duplicates_of.get(stream, self.duplicates),
        )

    def decisive(self, *, own_rejects: bool) -> dict[str, object]:
        """The options that decide results, with which alone an engine goes on from a checkpoint.

        `own_rejects`: the file of rejects is one of them, as no program beside the engine has an identity of its own.
        """
        return {
            "lateness": self.lateness,
            "lateness_of": dict(self.lateness_of),
            "ahead": self.ahead,
            "clock": self.clock,
            **({"clock_of": dict(self.clock_of)} if self.clock_of else {}),
            "blank_nodes": self.blank_nodes,
            **({"duplicates": self.duplicates} if self.duplicates != KEEP else {}),
            "max_text": self.max_text,
            **({"rejects": os.path.abspath(self.rejects)} if own_rejects and self.rejects is not None else {}),
        }

    def lateness_at(self, stream: str) -> int:
        """Microseconds that elements of a stream may come out of order."""
        return self.lateness_of.get(stream, self.lateness)

    def drops_duplicates(self, stream: str) -> bool:
        """Is an element of a stream that comes again dropped?"""
        return self.duplicates_of.get(stream, self.duplicates) == DROP

    def follows_clock(self, stream: str) -> bool:
        """Does the time of a stream go on with the computer's clock?"""
        return self.clock_of.get(stream, self.clock) == WALL


def options_of(
    *,
    lateness: Duration,
    lateness_of: Mapping[str, Duration] | None,
    ahead: Duration | None,
    flush_after: Duration,
    clock_of: Mapping[str, str] | None,
    clock_delay: Duration,
    idle: Duration,
    contexts: Mapping[str, Any] | None,
    **others: Any,
) -> Options:
    """The options, read from arguments of `Engine`: durations of each form, streams by IRI, files of contexts."""
    each_lateness = by_iri(lateness_of or {}, "lateness_of", "microseconds")
    return Options(
        lateness=duration(lateness, "lateness"),
        lateness_of={iri: duration(each, f"lateness_of <{iri}>") for iri, each in each_lateness.items()},
        ahead=None if ahead is None else duration(ahead, "ahead"),
        flush_after=duration(flush_after, "flush_after"),
        clock_of=by_iri(clock_of or {}, "clock_of", "clock"),
        clock_delay=duration(clock_delay, "clock_delay"),
        idle=duration(idle, "idle"),
        contexts=read_contexts(contexts),
        **others,
    )


def check_duplicates(given: str) -> None:
    """UsageError for anything but KEEP and DROP."""
    if given not in (KEEP, DROP):
        raise UsageError(f"duplicates is {KEEP!r} or {DROP!r}, not {given!r}")


def _check_lateness(lateness: int, name: str) -> None:
    if whole(lateness, name, "microseconds") < 0:
        raise UsageError(f"{name} is 0 or more microseconds, not {lateness}")
    if lateness >= FAR:
        raise UsageError(f"{name} is less than {FAR} microseconds, not {lateness}")
