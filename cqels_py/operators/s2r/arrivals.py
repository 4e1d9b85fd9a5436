"""One step's arrivals: the elements of a query's streams with their numbers, ticks and triples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from cqels_py.batches.elements import ElementBatch
from cqels_py.batches.rearrange import counted_triples
from cqels_py.event_time.clock import Step
from cqels_py.event_time.windows import Measure, Points
from cqels_py.kernels.windows import arrivals as kernel

Int64 = npt.NDArray[np.int64]
_MOST_POSITIONS = 1 << 16
_NONE = np.empty(0, np.int64)
_FIRST = np.zeros(1, np.int64)


@cache
def _many_positions() -> Int64:
    return np.arange(_MOST_POSITIONS)


def _positions(count: int) -> Int64:
    """The numbers from 0 on: one array, never changed, serves most steps."""
    return _many_positions()[:count] if count <= _MOST_POSITIONS else np.arange(count)


@dataclass(slots=True)
class StreamArrivals:
    """A stream's part of a step; maps numbers of elements and triples (from 1, per stream) to ticks.

    `elements`: positions of the stream's elements in the batch; `first_element`, `first_triple`: how many came before.
    `triple_element`: for each of its triples the position of its element in the batch.
    """

    step: Step
    elements: Int64
    first_element: int
    triple_element: Int64
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

    def counted(self, measure: Measure) -> tuple[Int64, int]:
        """The elements of the batch that are counted, or those of counted triples; and the number of those before."""
        if measure is Measure.ELEMENTS:
            return self.elements, self.first_element
        return self.triple_element, self.first_triple


class Arrivals:
    """A step's arrivals. `element` (m): for each triple of the batch the position of its element.

    `streams`: each stream's part. `number` (m): for each triple of the batch its number in its stream, from 1. Only windows that
    count ask for these two: within the step, or not at all.
    """

    __slots__ = ("_number", "_streams", "element", "step")

    def __init__(
        self,
        step: Step,
        element: Int64,
        streams: Sequence[StreamArrivals] | None = None,
        number: Int64 | None = None,
    ) -> None:
        self.step = step
        self.element = element
        self._streams = streams
        self._number = number

    @property
    def streams(self) -> Sequence[StreamArrivals]:
        if self._streams is None:
            self._streams = self._find_streams()
        return self._streams

    @property
    def number(self) -> Int64:
        if self._number is None:
            self._number = self._find_number()
        return self._number

    def _find_streams(self) -> Sequence[StreamArrivals]:
        raise NotImplementedError

    def _find_number(self) -> Int64:
        raise NotImplementedError


class _OneArrival(Arrivals):
    """A single element, after which its counter has counted no other. `stream`: its stream."""

    __slots__ = ("_counter", "_stream")

    def __init__(self, step: Step, element: Int64, stream: int, counter: ArrivalCounter) -> None:
        # Without `super().__init__`: one more call would double the time of this constructor.
        self.step = step
        self.element = element
        self._streams = None
        self._number = None
        self._stream = stream
        self._counter = counter

    def _find_streams(self) -> Sequence[StreamArrivals]:
        counter = self._counter
        counts = zip(counter.elements, counter.triples, strict=True)
        found = [StreamArrivals(self.step, _NONE, elements, _NONE, triples) for elements, triples in counts]
        mine = found[self._stream]
        mine.elements, mine.triple_element = _FIRST, self.element
        mine.first_element -= 1
        mine.first_triple -= len(self.element)
        return found

    def _find_number(self) -> Int64:
        return _numbers_after(self.streams[self._stream])


class _OneStreamArrivals(Arrivals):
    """Elements of the only stream."""

    __slots__ = ()

    def _find_number(self) -> Int64:
        return _numbers_after(self.streams[0])


class _OneTripleArrivals(Arrivals):
    """Elements of one triple each: a triple's number is its element's, and more if elements had several triples before.

    `further`: by stream, how many more triples than elements there have been; None if there were as many everywhere.
    """

    __slots__ = ("_further", "_stream")

    def __init__(
        self,
        step: Step,
        element: Int64,
        streams: Sequence[StreamArrivals],
        stream: npt.NDArray[np.int32],
        further: Int64 | None,
    ) -> None:
        super().__init__(step, element, streams)
        self._stream = stream
        self._further = further

    def _find_number(self) -> Int64:
        return self.step.number if self._further is None else self.step.number + self._further[self._stream]


class _PartlyCountedArrivals(Arrivals):
    """Elements with triples that are not counted: these have the number of the last one of their element that is.

    `counted`: the arrivals of the counted triples alone; `place` (m): for each triple that of its number among them.
    """

    __slots__ = ("_counted", "_place")

    def __init__(self, step: Step, element: Int64, counted: Arrivals, place: Int64) -> None:
        super().__init__(step, element)
        self._counted = counted
        self._place = place

    def _find_streams(self) -> Sequence[StreamArrivals]:
        return self._counted.streams

    def _find_number(self) -> Int64:
        return self._counted.number[self._place]


def _numbers_after(arrivals: StreamArrivals) -> Int64:
    """The numbers of all triples of a stream's part."""
    first = arrivals.first_triple + 1
    return np.arange(first, first + len(arrivals.triple_element))


class ArrivalCounter:
    """Counts a query's elements and triples by stream, step by step."""

    STATE = ("elements", "triples")

    def __init__(self, streams: int) -> None:
        self.elements = [0] * streams
        self.triples = [0] * streams

    def number_as(self, other: ArrivalCounter) -> None:
        """From now on elements get the numbers that they have for another counter of the same streams."""
        self.elements, self.triples = list(other.elements), list(other.triples)

    def stands_with(self, other: ArrivalCounter) -> bool:
        """Does the next element get the same number?"""
        return self.elements == other.elements and self.triples == other.triples

    def take(self, batch: ElementBatch, step: Step) -> Arrivals:
        """Count the elements of a step."""
        if batch.counted is not None:
            return self._take_partly_counted(batch, batch.counted, step)
        if len(batch.time) == 1:
            # On a live stream elements come one by one.
            self.count_one(batch.stream.item(0), len(batch.subject))
            return self.of_one(batch, step)
        one_triple_each = batch.triples == len(batch) and kernel.all_of_one_triple(batch.first)
        if len(self.elements) == 1:
            return self._take_one_stream(batch, step, one_triple_each=one_triple_each)
        if one_triple_each:
            return self._take_triples(batch, step)
        return self._take_by_stream(batch, step)

    def of_one(self, batch: ElementBatch, step: Step) -> Arrivals:
        """The arrival of the only element of a batch, which was counted last."""
        count = len(batch.subject)
        return _OneArrival(step, _FIRST if count == 1 else np.zeros(count, np.int64), batch.stream.item(0), self)

    def count_one(self, stream: int, triples: int) -> None:
        """Count an element with so many triples."""
        self.elements[stream] += 1
        self.triples[stream] += triples

    def _take_by_stream(self, batch: ElementBatch, step: Step) -> Arrivals:
        streams, triples = len(self.elements), batch.triples
        before, after = self.triples, np.array(self.triples, np.int64)
        starts = np.zeros((2, streams + 1), np.int64)
        elements = np.empty(len(batch), np.int64)
        element, by_stream, number = np.empty((3, triples), np.int64)
        kernel.split_by_stream(
            batch.first, batch.stream, starts[0], starts[1], elements, element, by_stream, number, after
        )
        self.triples = after.tolist()
        ends = starts.tolist()
        found: list[StreamArrivals] = []
        for stream in range(streams):
            mine = elements[ends[0][stream] : ends[0][stream + 1]]
            of_triples = by_stream[ends[1][stream] : ends[1][stream + 1]]
            found.append(StreamArrivals(step, mine, self.elements[stream], of_triples, before[stream]))
            self.elements[stream] += len(mine)
        return Arrivals(step, element, found, number)

    def _take_partly_counted(self, batch: ElementBatch, counted: Int64, step: Step) -> Arrivals:
        arrivals = self.take(counted_triples(batch), step)
        sizes = np.diff(batch.first)
        element = np.repeat(np.arange(len(batch)), sizes)
        first = np.concatenate([[0], np.cumsum(counted)])
        within = np.arange(batch.triples) - batch.first[element]
        return _PartlyCountedArrivals(
            step, element, arrivals, first[element] + np.minimum(within, counted[element] - 1)
        )

    def _take_triples(self, batch: ElementBatch, step: Step) -> Arrivals:
        elements, before = np.empty(len(batch), np.int64), np.array(self.elements, np.int64)
        start = np.zeros(len(before) + 1, np.int64)
        kernel.split_numbered(batch.stream, step.number, before, start, elements)
        further = None if self.triples == self.elements else np.array(self.triples, np.int64) - self.elements
        ends = start.tolist()
        found: list[StreamArrivals] = []
        for stream, came in enumerate(self.elements):
            mine = elements[ends[stream] : ends[stream + 1]]
            found.append(StreamArrivals(step, mine, came, mine, self.triples[stream]))
            self.elements[stream] += len(mine)
            self.triples[stream] += len(mine)
        return _OneTripleArrivals(step, _positions(len(batch)), found, batch.stream, further)

    def _take_one_stream(self, batch: ElementBatch, step: Step, *, one_triple_each: bool) -> Arrivals:
        """The arrivals of a query with a single stream, for which nothing is sorted."""
        elements = element = _positions(len(batch))
        if not one_triple_each:
            element = np.empty(batch.triples, np.int64)
            kernel.elements_of_triples(batch.first, element)
        mine = StreamArrivals(step, elements, self.elements[0], element, self.triples[0])
        self.elements[0] += len(batch)
        self.triples[0] += len(element)
        return _OneStreamArrivals(step, element, (mine,))
