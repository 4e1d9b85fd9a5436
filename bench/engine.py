"""The engine's operators as a dataflow wires them: windows over each input, then operators in a row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from bench.arrivals import Batch
from bench.contest import Competitor
from cqels_py.batches.delta import Delta
from cqels_py.event_time.clock import Step, Ticks
from cqels_py.event_time.windows import Bounds, Measure
from cqels_py.operators.operator import Operator
from cqels_py.operators.s2r.arrivals import StreamArrivals
from cqels_py.operators.s2r.window import Window


class WindowedInputs:
    """Each input is a stream of its own with a window: its last `sizes[i]` elements, or (`timed`) `sizes[i]` ticks of time.

    Every arrival is a tick, and time is the number of the arrival. `widths`: how many of key and value each input has.
    `keep_ids`: the first operator wants to see the ids of what leaves (a join keeps its own).
    """

    def __init__(
        self, sizes: Sequence[int], widths: Sequence[int], *, timed: bool = False, keep_ids: bool = False
    ) -> None:
        self._timed = timed
        self._widths = tuple(widths)
        measure = Measure.TIME if timed else Measure.ELEMENTS
        self._windows = [
            Window(Bounds(measure, size), width, keep_ids=keep_ids, index=i)
            for i, (size, width) in enumerate(zip(sizes, widths, strict=True))
        ]
        self._counts = [0] * len(widths)
        self._now = 0

    def deltas(self, batch: Batch) -> tuple[Ticks, list[Delta]]:
        n = len(batch)
        time = np.arange(self._now + 1, self._now + n + 1)
        number = np.empty(n, np.int64)
        mine = [batch.of(port) for port in range(len(self._windows))]
        for port, elements in enumerate(mine):
            number[elements] = np.arange(self._counts[port] + 1, self._counts[port] + len(elements) + 1)
        ticks = Ticks(time, first=self._now == 0)
        self._now += n
        step = Step(ticks, np.arange(n, dtype=np.int32), number, self._now, ())
        made = []
        for port, (window, elements) in enumerate(zip(self._windows, mine, strict=True)):
            arrivals = StreamArrivals(step, elements, self._counts[port], elements, self._counts[port])
            points = time[elements] if self._timed else number[elements]
            made.append(window.advance(arrivals, points, elements, batch.columns[: self._widths[port], elements]))
            self._counts[port] += len(elements)
        return ticks, made


class Engine(Competitor):
    """Windowed inputs into the first operator, its output into the next."""

    def __init__(self, inputs: WindowedInputs, *operators: Operator) -> None:
        self._inputs = inputs
        self._operators = operators

    def _deltas(self, batch: Batch) -> Iterator[Delta]:
        ticks, ports = self._inputs.deltas(batch)
        first, *others = self._operators
        stream: Iterable[Delta] = first.process(ticks, [[delta] for delta in ports])
        for operator in others:
            stream = operator.process(ticks, [stream])
        yield from stream

    def take(self, batch: Batch) -> Iterator[Delta]:
        for delta in self._deltas(batch):
            # A join's output is pointers until somebody asks for the ids: this delivers them.
            _ = delta.columns
            yield delta

    def fill(self, batch: Batch) -> None:
        for _ in self._deltas(batch):
            pass
