"""How far the sources of streams have been read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Frontiers:
    """By stream, an instant before which all its elements are there; `AFTER_ALL`: nothing is waited for. Without any, elements come
    in one order of time.

    `by_clock`: for queries that follow the clock, by which a silent source has got further than by its elements.

    >>> Frontiers({1: 5}).plain(), Frontiers({1: 5}, {1: 7}).of(follows_clock=True)
    ([[1, 5]], {1: 7})
    """

    by_events: Mapping[int, int] = field(default_factory=dict)
    by_clock: Mapping[int, int] | None = None

    def __bool__(self) -> bool:
        return bool(self.by_events)

    def of(self, *, follows_clock: bool) -> Mapping[int, int]:
        """Those of queries that follow the clock, or of others."""
        return self.by_clock if follows_clock and self.by_clock is not None else self.by_events

    def plain(self) -> Any:
        """Plain data, from which `from_plain` makes the frontiers."""
        own = [[*each] for each in self.by_events.items()]
        return own if self.by_clock is None else {"events": own, "clock": [[*each] for each in self.by_clock.items()]}

    @staticmethod
    def from_plain(given: Any) -> Frontiers:
        """The frontiers."""
        if isinstance(given, list):
            return Frontiers(dict(given))
        return Frontiers(dict(given["events"]), dict(given["clock"]))
