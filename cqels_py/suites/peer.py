"""Re-evaluation as a peer: pyoxigraph answers the query again at each tick, over a store that is kept up to date.

It takes the elements of the check, from the point at which windows are full. A tick is an arrival in a window without
STEP, or a boundary. Expiries between arrivals, and parsing, are left out, in the peer's favour.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from cqels_py.algebra import nodes
from cqels_py.suites.contents import Contents, Element
from cqels_py.suites.peer_query import PeerQuery

SECONDS = 2.0


class Peer:
    """Takes elements instead of the contents, until it has worked for `seconds` seconds."""

    def __init__(self, question: PeerQuery, contents: Contents, seconds: float = SECONDS) -> None:
        self._question = question
        self._contents = contents
        self._left = seconds
        self._spent = 0.0
        self._triples = 0
        self._last: int | None = None
        windows = question.query.windows
        self._eager = {str(window.stream) for window in windows if _is_eager(window.extent)}

    @property
    def rate(self) -> float | None:
        """Triples per second."""
        return self._triples / self._spent if self._triples else None

    def start(self, instant: int) -> None:
        """Start at the end of this instant; the store has its content."""
        self._contents.move(instant)
        self._last = instant + 1

    def take(self, element: Element) -> None:
        """Take an element, and answer at the ticks up to it."""
        if self._last is None or self._spent > self._left:
            self._contents.take(element)
            return
        started = time.perf_counter()
        for boundary in boundaries(self._question.query.windows, self._last, element.time):
            self._answer(boundary, over=True)
        self._contents.take(element)
        if element.stream in self._eager or self._is_full(element):
            self._answer(element.time, over=False)
        self._spent += time.perf_counter() - started
        self._triples += len(element.quads)
        self._last = element.time

    def _answer(self, instant: int, *, over: bool) -> None:
        self._contents.move(instant, over=over)
        for _ in self._question.rows(self._contents.store):
            pass

    def _is_full(self, element: Element) -> bool:
        """Whether a COUNT or TRIPLES window with STEP takes its content now."""
        return any(
            self._passes(window.extent, element)
            for window in self._question.query.windows
            if str(window.stream) == element.stream
        )

    def _passes(self, extent: nodes.Extent, element: Element) -> bool:
        """Whether this element, the last of its stream, brought the count to a multiple of the step."""
        elements, triples = self._contents.seen(element.stream)
        match extent:
            case nodes.ElementCount(_, int(step)):
                return elements % step == 0
            case nodes.TripleCount(_, int(step)):
                return triples // step > (triples - len(element.quads)) // step
            case _:
                return False


def boundaries(windows: Sequence[nodes.WindowDefinition], last: int, now: int) -> list[int]:
    """The boundaries from the instant `last` on, whose arrivals are complete, and before `now`."""
    found: set[int] = set()
    for window in windows:
        extent = window.extent
        if isinstance(extent, nodes.TimeRange | nodes.Session) and extent.step is not None:
            first = extent.start - (extent.start - last) // extent.step * extent.step
            found.update(range(first, now, extent.step))
    return sorted(found)


def _is_eager(extent: nodes.Extent) -> bool:
    return isinstance(extent, nodes.Everything | nodes.EachInstant) or extent.step is None
