"""The elements of one step as each query sees them: only those of its streams, which it numbers from 0."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cqels_py.batches.elements import ElementBatch
from cqels_py.batches.rearrange import empty_elements, take_elements, with_streams
from cqels_py.batches.results import ResultBatch

Positions = npt.NDArray[np.int64]
ElementTicks = npt.NDArray[np.int32]

NOTHING = empty_elements()
NO_ARRIVALS: ElementTicks = np.empty(0, np.int32)
_NONE = np.empty(0, np.int64)


class StreamView:
    """`batch`: the elements of some streams, under the numbers of the queries that read these.

    `elements`: all elements of the step. `positions`: those of the batch's elements among them; None: they are the same ones.
    """

    __slots__ = ("batch", "elements", "positions")

    def __init__(self, elements: ElementBatch, batch: ElementBatch, positions: Positions | None = None) -> None:
        self.elements = elements
        self.batch = batch
        self.positions = positions

    def preceding(self, results: ResultBatch, element_tick: ElementTicks) -> Positions:
        """The position among `elements` of the last one before each result; -1: the result precedes all.

        `element_tick`: the tick of the arrival of each of the batch's elements, -1 where it is none. A result follows the element
        whose arrival is its tick, else the last element of its instant.
        """
        found: Positions = np.searchsorted(self.elements.time, results.time, side="right") - 1
        arrivals = np.flatnonzero(element_tick >= 0)
        if results.tick is not None and len(arrivals):
            ticks = element_tick[arrivals]
            at = np.minimum(np.searchsorted(ticks, results.tick), len(ticks) - 1)
            known = ticks[at] == results.tick
            element = arrivals[at] if self.positions is None else self.positions[arrivals[at]]
            found[known] = element[known]
        return found


class StepElements(StreamView):
    """All elements of one step, under the runner's numbers; each other view is made once, for all queries of the same streams."""

    __slots__ = ("_views",)

    def __init__(self, elements: ElementBatch) -> None:
        # Without `super().__init__`, for speed: one is made for every pushed element.
        self.elements = self.batch = elements
        self.positions = None
        self._views: dict[tuple[int, ...], StreamView] = {}

    def view(self, streams: tuple[int, ...]) -> StreamView:
        """The elements of these streams, which get the numbers 0, 1, …"""
        batch = self.elements
        if len(batch.time) == 1:
            # On a live stream elements come one by one, mostly of a stream that has that number already.
            number = batch.stream.item(0)
            if number < len(streams) and streams[number] == number:
                return self
        view = self._views.get(streams)
        if view is None:
            view = self._views[streams] = self._make(streams)
        return view

    def _make(self, streams: tuple[int, ...]) -> StreamView:
        batch = self.elements
        count = len(batch.time)
        if not count:
            return self
        if count == 1:
            number = batch.stream.item(0)
            if number not in streams:
                return StreamView(batch, NOTHING, _NONE)
            place = streams.index(number)
            return StreamView(batch, batch if place == number else with_streams(batch, np.array([place], np.int32)))
        local = np.full(max((*streams, int(batch.stream.max()))) + 1, -1, np.int32)
        local[list(streams)] = np.arange(len(streams), dtype=np.int32)
        stream = local[batch.stream]
        if (stream >= 0).all():
            return StreamView(batch, with_streams(batch, stream))
        chosen = np.flatnonzero(stream >= 0)
        return StreamView(batch, with_streams(take_elements(batch, chosen), stream[chosen]), chosen)
