"""Window bounds: when a mapping enters a window and when it expires. Arithmetic only.

A window is measured in points: microseconds for RANGE, element numbers for COUNT, triple numbers for TRIPLES (both from 1, per
stream). A mapping that arrived at point x enters at `entry(x)` and expires at `exit(x)`:

    RANGE d            ──x━━━━━━━━━━━━━━○────   enters at x, expires at x + d
    RANGE d STEP s     ──x──┃━━━━━━━━━━━━━━━○   both moved to the next boundary at or after (┃: a boundary)
    FROM NOW-a TO NOW-b ─x─────┃━━━━━━━━━━━━○   enters at x + b, expires at x + a; with STEP both moved likewise
    COUNT n            likewise with element numbers: element x expires when element x + n arrives
    SESSION d          points are microseconds; when a mapping expires depends on later elements: the clock finds it.
                       With STEP both moved to the next boundary at or after
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
import numpy.typing as npt

Points = npt.NDArray[np.int64]

NEVER = np.iinfo(np.int64).max
BEFORE_ALL = -(1 << 62)
"""The clock's time before the first element: no boundary is before it."""


class Measure(Enum):
    """The unit of a window's size."""

    TIME = "time"
    ELEMENTS = "elements"
    TRIPLES = "triples"
    SESSION = "session"


@dataclass(frozen=True, slots=True)
class Bounds:
    """Size and step of a window in points; `size` None: nothing expires; `step` None: the window is eager and changes at once.

    `delay`: how long ago the window ends. The size of a session is the gap that ends it.
    """

    measure: Measure
    size: int | None
    step: int | None = None
    start: int = 0
    delay: int = 0

    @property
    def eager(self) -> bool:
        return self.step is None

    @property
    def of_time(self) -> bool:
        """Are points microseconds?"""
        return self.measure in (Measure.TIME, Measure.SESSION)

    @property
    def by_instant(self) -> bool:
        """Does the window change at the ends of its elements' instants, and at no others? So do EVENT blocks."""
        return self.of_time and self.step == 1 and self.size is None and not self.delay

    def passed(self, limit: int) -> int:
        """The last boundary at or before the limit."""
        limit = max(limit, BEFORE_ALL)
        return limit if self.step is None else (limit - self.start) // self.step * self.step + self.start

    def boundary(self, points: Points) -> Points:
        """The first boundary at or after each point."""
        if self.step is None:
            return points
        return -((self.start - points) // self.step) * self.step + self.start

    def entry(self, points: Points) -> Points:
        return self.boundary(points + self.delay)

    def exit(self, points: Points) -> Points:
        if self.size is None:
            return np.full(len(points), NEVER, np.int64)
        return self.boundary(points + (self.delay + self.size))
