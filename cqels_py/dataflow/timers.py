"""Timers: scans whose window changes once a measure of the streams reaches a point, though nothing arrives for them."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from itertools import count
from typing import Generic, Protocol, TypeVar

from cqels_py.dataflow.router import Routed
from cqels_py.event_time.windows import NEVER, Measure
from cqels_py.operators.s2r.window import Timer


class Timed(Protocol):
    """`next_timer`: when it next changes though nothing arrives; `stream`: the one whose elements or triples are counted then."""

    @property
    def next_timer(self) -> Timer: ...

    @property
    def stream(self) -> int: ...


Waiting = TypeVar("Waiting", bound=Timed)


class Timers(Generic[Waiting]):
    """Waiting scans with the points they wait for: a heap for time, one for ends of sessions, and one for each stream whose elements
    or triples are counted.

    Each stands there once, and perhaps too early, as `next_timer` moves on while it waits: then it is put back when it is due.
    """

    def __init__(self) -> None:
        self._heaps: dict[tuple[Measure, int], list[tuple[int, int, Waiting]]] = {}
        self._numbers = count()
        self.waiting: set[Waiting] = set()

    def set(self, timed: Waiting) -> None:
        """Add a scan, if it has a next timer and is not waiting already."""
        timer = timed.next_timer
        if timer is None or timer[1] == NEVER or timed in self.waiting:
            return
        measure, point = timer
        of_stream = measure in (Measure.ELEMENTS, Measure.TRIPLES)
        heap = self._heaps.setdefault((measure, timed.stream if of_stream else -1), [])
        self._push(heap, point, timed)

    def _push(self, heap: list[tuple[int, int, Waiting]], point: int, timed: Waiting) -> None:
        self.waiting.add(timed)
        heappush(heap, (point, next(self._numbers), timed))

    def cancel(self, timed: Waiting) -> None:
        """Remove a scan."""
        if timed in self.waiting:
            self.waiting.remove(timed)
            for heap in self._heaps.values():
                heap[:] = [entry for entry in heap if entry[2] is not timed]
                heapify(heap)

    def due(self, routed: Routed) -> list[Waiting]:
        """Remove and return the scans whose points have been reached with this step."""
        found: list[Waiting] = []
        for (measure, stream), heap in self._heaps.items():
            reached = routed.reached(measure, stream)
            while heap and heap[0][0] <= reached:
                _, _, timed = heappop(heap)
                self.waiting.remove(timed)
                timer = timed.next_timer
                if timer is None or timer[1] == NEVER:
                    continue
                if timer[1] > reached:
                    self._push(heap, timer[1], timed)
                else:
                    found.append(timed)
        return found
