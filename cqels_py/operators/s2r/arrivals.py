"""One step's arrivals: the elements of a query's streams with their numbers, ticks and triples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from cqels_py.batches.elements import ElementBatch
from cqels_py.batches.rearrange import counted_triples
from cqels_py.event_time.clock import Step
from cqels_py.event_time.windows import Measure, Points
from cqels_py.kernels.windows import arrivals as kernel

_MOST_POSITIONS = 1 << 16
_NONE = np.empty(0, np.int64)
_FIRST = np.zeros(1, np.int64)


@cache
def _many_positions() -> npt.NDArray[np.int64]:
    return np.arange(_MOST_POSITIONS)


def _positions(count: int) -> npt.NDArray[np.int64]:
    """From 0; nobody changes them, so that most steps take the same ones."""
    return _many_positions()[:count] if count <= _MOST_POSITIONS else np.arange(count)


@dataclass(slots=True)
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
        units, before = self.counted(measure)
        return self.step.element_tick[units[numbers - before - 1]]

    def counted(self, measure: Measure) -> tuple[npt.NDArray[np.int64], int]:
        """The elements of the batch that are counted, or those of counted triples; and how many came before."""
        if measure is Measure.ELEMENTS:
            return self.elements, self.first_element
        return self.triple_element, self.first_triple


class Counted:
    """What windows that count ask for: each stream's part, and for each triple of the batch its number in its stream."""

    __slots__ = ("_count", "_number", "streams")

    def __init__(self, streams: tuple[StreamArrivals, ...], count: Callable[[], npt.NDArray[np.int64]]) -> None:
        self.streams = streams
        self._count = count
        self._number: npt.NDArray[np.int64] | None = None

    @property
    def number(self) -> npt.NDArray[np.int64]:
        """From 1."""
        if self._number is None:
            self._number = self._count()
        return self._number


class Arrivals:
    """A step's arrivals: `element` (m), for each triple of the batch the position of its element."""

    __slots__ = ("_count", "_counted", "element", "step")

    def __init__(self, step: Step, element: npt.NDArray[np.int64], count: Callable[[], Counted]) -> None:
        self.step = step
        self.element = element
        self._count = count
        self._counted: Counted | None = None

    @property
    def counted(self) -> Counted:
        """By stream and number; asked for within the step, or not at all."""
        if self._counted is None:
            self._counted = self._count()
        return self._counted


class ArrivalCounter:
    """Counts a query's elements and triples by stream, step by step."""

    def __init__(self, streams: int) -> None:
        self._elements = [0] * streams
        self._triples = [0] * streams

    def take(self, batch: ElementBatch, step: Step) -> Arrivals:
        if batch.counted is not None:
            return self._take_counted(batch, batch.counted, step)
        if len(batch.time) == 1:
            # As they come on a live stream.
            of, count = batch.stream.item(0), len(batch.subject)
            its_triples = _FIRST if count == 1 else np.zeros(count, np.int64)
            self._elements[of] += 1
            self._triples[of] += count
            self._one = step, of, its_triples
            return Arrivals(step, its_triples, self._counted_one)
        streams, triples = len(self._elements), batch.triples
        alone = triples == len(batch) and kernel.all_of_one_triple(batch.first)
        if streams == 1:
            return self._take_one_stream(batch, step, alone=alone)
        if alone:
            return self._take_triples(batch, step)
        before, after = self._triples, np.array(self._triples, np.int64)
        starts = np.zeros((2, streams + 1), np.int64)
        elements = np.empty(len(batch), np.int64)
        element, by_stream, number = np.empty((3, triples), np.int64)
        kernel.split_by_stream(
            batch.first, batch.stream, starts[0], starts[1], elements, element, by_stream, number, after
        )
        self._triples = after.tolist()
        ends = starts.tolist()
        found: list[StreamArrivals] = []
        for stream in range(streams):
            mine = elements[ends[0][stream] : ends[0][stream + 1]]
            of_triples = by_stream[ends[1][stream] : ends[1][stream + 1]]
            found.append(StreamArrivals(step, mine, self._elements[stream], of_triples, before[stream]))
            self._elements[stream] += len(mine)
        return Arrivals(step, element, lambda: Counted(tuple(found), lambda: number))

    def _take_counted(self, batch: ElementBatch, counted: npt.NDArray[np.int64], step: Step) -> Arrivals:
        """The same where some triples are not counted: they have the number of the last one of their element that is."""
        arrivals = self.take(counted_triples(batch), step)
        sizes = np.diff(batch.first)
        element = np.repeat(np.arange(len(batch)), sizes)
        first = np.concatenate([[0], np.cumsum(counted)])
        within = np.arange(batch.triples) - batch.first[element]
        place = first[element] + np.minimum(within, counted[element] - 1)
        found = arrivals.counted
        return Arrivals(step, element, lambda: Counted(found.streams, lambda: found.number[place]))

    def _take_triples(self, batch: ElementBatch, step: Step) -> Arrivals:
        """The same where each element has one triple, and so what counts elements counts triples."""
        elements, before = np.empty(len(batch), np.int64), np.array(self._elements, np.int64)
        start = np.zeros(len(before) + 1, np.int64)
        kernel.split_numbered(batch.stream, step.number, before, start, elements)
        further, ends = self._further(), start.tolist()
        found: list[StreamArrivals] = []
        for stream, came in enumerate(self._elements):
            mine = elements[ends[stream] : ends[stream + 1]]
            found.append(StreamArrivals(step, mine, came, mine, self._triples[stream]))
            self._elements[stream] += len(mine)
            self._triples[stream] += len(mine)
        count = (lambda: step.number) if further is None else lambda: step.number + further[batch.stream]
        return Arrivals(step, _positions(len(batch)), lambda: Counted(tuple(found), count))

    def _further(self) -> npt.NDArray[np.int64] | None:
        """By stream, how many more triples than elements there have been; None if there were as many everywhere."""
        return None if self._triples == self._elements else np.array(self._triples, np.int64) - self._elements

    def _take_one_stream(self, batch: ElementBatch, step: Step, *, alone: bool) -> Arrivals:
        """The same where there is nothing to sort by stream."""
        before, came = self._triples[0], self._elements[0]
        elements = element = _positions(len(batch))
        if not alone:
            element = np.empty(batch.triples, np.int64)
            kernel.elements_of_triples(batch.first, element)
        self._elements[0] += len(batch)
        self._triples[0] += len(element)
        mine = StreamArrivals(step, elements, came, element, before)
        numbers = range(before + 1, before + 1 + len(element))
        return Arrivals(step, element, lambda: Counted((mine,), lambda: np.arange(numbers.start, numbers.stop)))

    def _counted_one(self) -> Counted:
        """After a single element, and before the next one is taken."""
        step, mine, element = self._one
        counted = zip(self._elements, self._triples, strict=True)
        found = [StreamArrivals(step, _NONE, elements, _NONE, triples) for elements, triples in counted]
        elements, triples = self._elements[mine] - 1, self._triples[mine] - len(element)
        found[mine] = StreamArrivals(step, _FIRST, elements, element, triples)
        return Counted(tuple(found), lambda: np.arange(triples + 1, triples + 1 + len(element)))
