"""Queries that read what other queries of the same runner construct.

The graphs that a query constructs at its ticks are elements of other streams. They take their places among the source's elements,
as if elements had come one by one: what an arrival brings about follows it, and what time alone brings about follows
all elements of that instant. So chained queries do not depend on batches either.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from cqels_py.batches.elements import ElementBatch
from cqels_py.batches.rearrange import concatenate_elements, empty_elements, take_elements, with_streams
from cqels_py.batches.results import ResultBatch
from cqels_py.formats.construction import Construction

Places = npt.NDArray[np.int64]
Name = TypeVar("Name")
PlacesOf = Callable[[ResultBatch], Places]
"""Behind which of a step's elements results come; -1: ahead of all."""


class ConstructedStream:
    """What a CONSTRUCT query tells streams of its runner.

    `streams`: the runner's numbers of those it feeds. `watched`: of all that their readers read, and all
    that this comes from; as their time moves on, so does that of the feeding query, or what it says would come late.
    """

    def __init__(self, construction: Construction) -> None:
        self._construction = construction
        self.streams: tuple[int, ...] = ()
        self.watched: frozenset[int] = frozenset()
        self._graphs: list[ElementBatch] = []
        self._places: list[Places] = []

    def take(self, results: ResultBatch, places: PlacesOf) -> None:
        """Results of the step at hand."""
        if not self.streams:
            return
        graphs, opening = self._construction.graphs(results)
        if len(graphs):
            self._graphs.append(graphs)
            self._places.append(places(results)[opening])

    def merged_into(self, elements: ElementBatch) -> ElementBatch:
        """The step's elements with what was constructed among them."""
        if not self._graphs:
            return elements
        graphs, places = concatenate_elements(self._graphs), np.concatenate(self._places)
        self._graphs, self._places = [], []
        copies = [with_streams(graphs, np.full(len(graphs), stream, np.int32)) for stream in self.streams]
        together = concatenate_elements([elements, *copies])
        behind = np.concatenate([np.arange(len(elements)), np.tile(places, len(copies))])
        number = np.concatenate([np.full(len(elements), -1), np.tile(np.arange(len(graphs)), len(copies))])
        return take_elements(together, np.lexsort((number, behind)))


def places_by_time(elements: ElementBatch) -> PlacesOf:
    """Behind the last element of the tick's instant."""

    def places(results: ResultBatch) -> Places:
        found: Places = np.searchsorted(elements.time, results.time, side="right") - 1
        return found

    return places


def places_by_tick(elements: ElementBatch, mine: Places | None, element_tick: npt.NDArray[np.int32]) -> PlacesOf:
    """Behind the element whose arrival the tick is, else by time. `mine`: the elements that `element_tick` is about."""

    def places(results: ResultBatch) -> Places:
        found = places_by_time(elements)(results)
        arrivals = np.flatnonzero(element_tick >= 0)
        if results.tick is not None and len(arrivals):
            ticks = element_tick[arrivals]
            at = np.minimum(np.searchsorted(ticks, results.tick), len(ticks) - 1)
            known = ticks[at] == results.tick
            element = arrivals[at] if mine is None else mine[arrivals[at]]
            found[known] = element[known]
        return found

    return places


def last_time(elements: ElementBatch, streams: frozenset[int]) -> int | None:
    """When the last element of these streams is."""
    of_them = elements.time[np.isin(elements.stream, list(streams))]
    return int(of_them[-1]) if len(of_them) else None


NOTHING = empty_elements()


def topological_order(reads: Sequence[set[Name]], feeds: Sequence[set[Name]]) -> list[int] | None:
    """Positions of queries such that none reads what a later one feeds; otherwise in their order. None: they go in circles.

    >>> topological_order([{1}, {0}], [set(), {1}]), topological_order([{1}], [{1}])
    ([1, 0], None)
    """
    order: list[int] = []
    waiting = list(range(len(reads)))
    while waiting:
        ready = next((q for q in waiting if not any(feeds[other] & reads[q] for other in waiting)), None)
        if ready is None:
            return None
        waiting.remove(ready)
        order.append(ready)
    return order
