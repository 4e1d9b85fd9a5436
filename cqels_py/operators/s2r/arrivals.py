"""One step's arrivals: the elements of a query's streams with their numbers, ticks and triples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cqels_py.batches.elements import ElementBatch
from cqels_py.event_time.clock import Step
from cqels_py.event_time.windows import Measure, Points


@dataclass(frozen=True, slots=True)
class StreamArrivals:
    """A stream's part of a step: how to get from element and triple numbers (from 1, per stream) to ticks.

    `elements`: positions of the stream's elements in the batch; `first_element`, `first_triple`: how many came before.
    `triple_element`: for each of its triples the position of its element in the batch.
    """

    step: Step
    elements: npt.NDArray[np.int64]
    first_element: int
    triple_element: npt.NDArray[np.int64]
    first_triple: int

    def reached(self, measure: Measure) -> int:
        """The number of the last element or triple so far."""
        if measure is Measure.ELEMENTS:
            return self.first_element + len(self.elements)
        return self.first_triple + len(self.triple_element)

    def ticks_of(self, measure: Measure, numbers: Points) -> npt.NDArray[np.int32]:
        """The ticks at which these elements, or the elements of these triples, arrived; all are of this step."""
        if measure is Measure.ELEMENTS:
            element = self.elements[numbers - self.first_element - 1]
        else:
            element = self.triple_element[numbers - self.first_triple - 1]
        return self.step.element_tick[element]


class ArrivalCounter:
    """Counts a query's elements and triples by stream, step by step."""

    def __init__(self, streams: int) -> None:
        self._elements = [0] * streams
        self._triples = [0] * streams

    def take(self, batch: ElementBatch, step: Step) -> tuple[list[StreamArrivals], npt.NDArray[np.int64]]:
        """The arrivals by stream, and for each triple of the batch its number in its stream."""
        sizes = np.diff(batch.first)
        triple_element = np.repeat(np.arange(len(batch), dtype=np.int64), sizes)
        arrivals: list[StreamArrivals] = []
        if len(self._elements) == 1:
            numbers = np.arange(self._triples[0] + 1, self._triples[0] + 1 + batch.triples, dtype=np.int64)
            arrivals.append(self._count(0, np.arange(len(batch), dtype=np.int64), triple_element, step))
            return arrivals, numbers
        numbers = np.empty(batch.triples, np.int64)
        triple_stream = batch.stream[triple_element]
        for stream in range(len(self._elements)):
            mine = np.flatnonzero(triple_stream == stream)
            numbers[mine] = np.arange(self._triples[stream] + 1, self._triples[stream] + 1 + len(mine))
            arrivals.append(self._count(stream, np.flatnonzero(batch.stream == stream), triple_element[mine], step))
        return arrivals, numbers

    def _count(
        self, stream: int, elements: npt.NDArray[np.int64], triple_element: npt.NDArray[np.int64], step: Step
    ) -> StreamArrivals:
        arrivals = StreamArrivals(step, elements, self._elements[stream], triple_element, self._triples[stream])
        self._elements[stream] += len(elements)
        self._triples[stream] += len(triple_element)
        return arrivals
