"""Rates of counters that are looked at about once a second."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Rates:
    """Events a second by name, between the last two looks.

    >>> rates = Rates()
    >>> rates.of("results", 100, 10.0), rates.of("results", 160, 12.0)
    (0.0, 30.0)
    """

    _before: dict[str, tuple[int, float]] = field(default_factory=dict)

    def of(self, name: str, count: int, seconds: float) -> float:
        """The rate of a counter that is `count` now. 0 at the first look, and where the counter began anew."""
        before, at = self._before.get(name, (count, seconds))
        self._before[name] = count, seconds
        return max(0.0, (count - before) / (seconds - at)) if seconds > at else 0.0
