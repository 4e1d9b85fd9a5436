"""The engine's operators, connected as in a dataflow: a window over each input, then operators in a row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from bench.arrivals import Batch
from bench.contest import Competitor
from cqels_py.batches.delta import Delta
from cqels_py.batches.elements import ElementBatch
from cqels_py.event_time.clock import ClockedWindow, TickClock, Ticks
from cqels_py.event_time.windows import Bounds, Measure
from cqels_py.operators.operator import Operator
from cqels_py.operators.s2r.arrivals import ArrivalCounter
from cqels_py.operators.s2r.window import make_window


class WindowedInputs:
    """Each input is a stream of its own with a window: its last `sizes[i]` triples, or (`timed`) `sizes[i]` ticks of
    time.

    Every arrival is a tick, and its time is its number. `widths`: whether each input has the key only, or the value
    too. `keep_ids`: the first operator needs the ids of expired mappings (a join keeps its own).
    """

    def __init__(
        self, sizes: Sequence[int], widths: Sequence[int], *, timed: bool = False, keep_ids: bool = False
    ) -> None:
        self._timed = timed
        self._widths = tuple(widths)
        measure = Measure.TIME if timed else Measure.TRIPLES
        each = [Bounds(measure, size) for size in sizes]
        self._windows = [
            make_window(bounds, width, keep_ids=keep_ids, stream=i, index=i)
            for i, (bounds, width) in enumerate(zip(each, widths, strict=True))
        ]
        self._clock = TickClock(
            [ClockedWindow(i, bounds) for i, bounds in enumerate(each)], len(each), every_boundary=False
        )
        self._counter = ArrivalCounter(len(each))
        self._now = 0

    def deltas(self, batch: Batch) -> tuple[Ticks, list[Delta]]:
        n = len(batch)
        time = np.arange(self._now + 1, self._now + n + 1)
        self._now += n
        key, value = batch.columns
        elements = ElementBatch(time, batch.port, batch.bounds, key, key, value)
        step = self._clock.step(time, batch.port, elements.first)
        arrivals = self._counter.take(elements, step)
        points = time if self._timed else arrivals.number
        made = []
        for port, window in enumerate(self._windows):
            mine = arrivals.streams[port].elements
            ids = batch.columns[: self._widths[port]]
            if len(mine) == n:
                made.append(window.advance(arrivals, points, mine, ids))
            else:
                made.append(window.advance(arrivals, points[mine], mine, np.take(ids, mine, axis=1)))
        return step.ticks, made


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
        return self._deltas(batch)

    def fill(self, batch: Batch) -> None:
        for _ in self._deltas(batch):
            pass
