"""Queries that read streams which other queries of the same runner construct.

The graphs that a query constructs at its ticks are elements of other streams. They are merged with the source's elements as if
elements had come one by one: the graphs of an arrival's tick follow that arrival, and those of a tick without an arrival follow all
elements of its instant. So the results of chained queries do not depend on batches either.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from cqels_py.batches.elements import ElementBatch
from cqels_py.batches.rearrange import concatenate_elements, take_elements, with_streams
from cqels_py.batches.results import ResultBatch
from cqels_py.formats.construction import Construction
from cqels_py.runners.stream_views import ElementTicks, Positions, StreamView

Name = TypeVar("Name")


class ConstructedStream:
    """The graphs that a CONSTRUCT query feeds to streams of its runner.

    `streams`: the runner's numbers of those. `watched`: of all streams that their readers read, and that these come from; as their
    time moves on, so does that of the feeding query, or its graphs would come late.
    """

    def __init__(self, construction: Construction) -> None:
        self.construction = construction
        self.streams: tuple[int, ...] = ()
        self.watched: frozenset[int] = frozenset()
        self._graphs: list[ElementBatch] = []
        self._positions: list[Positions] = []

    def take(self, results: ResultBatch, view: StreamView, element_tick: ElementTicks) -> None:
        """Results of the current step, which follow from the elements of `view`."""
        if not self.streams:
            return
        graphs, opening = self.construction.graphs(results)
        if len(graphs):
            self._graphs.append(graphs)
            self._positions.append(view.preceding(results, element_tick)[opening])

    def merged_into(self, elements: ElementBatch) -> ElementBatch:
        """The step's elements with the constructed graphs among them."""
        if not self._graphs:
            return elements
        graphs, positions = concatenate_elements(self._graphs), np.concatenate(self._positions)
        self._graphs, self._positions = [], []
        copies = [with_streams(graphs, np.full(len(graphs), stream, np.int32)) for stream in self.streams]
        together = concatenate_elements([elements, *copies])
        behind = np.concatenate([np.arange(len(elements)), np.tile(positions, len(copies))])
        number = np.concatenate([np.full(len(elements), -1), np.tile(np.arange(len(graphs)), len(copies))])
        return take_elements(together, np.lexsort((number, behind)))


def last_time(elements: ElementBatch, streams: frozenset[int]) -> int | None:
    """The time of the last element of these streams."""
    of_them = elements.time[np.isin(elements.stream, list(streams))]
    return int(of_them[-1]) if len(of_them) else None


def topological_order(reads: Sequence[set[Name]], feeds: Sequence[set[Name]]) -> list[int] | None:
    """Positions of queries such that none reads a stream that a later one feeds; otherwise in their order. None: there is a cycle.

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
