"""The elements of a step as programs read them: their record, which Python writes once their triples are routed."""

from __future__ import annotations

import numpy as np

from cqels_py.dataflow.program_parts import CurrentTicks
from cqels_py.dataflow.router import RoutedBatch
from cqels_py.event_time.clock import Ticks
from cqels_py.event_time.windows import Measure
from cqels_py.kernels.primitives.state_record import ArrayTable
from cqels_py.kernels.steps import element
from cqels_py.kernels.steps.scan import OF_TIME
from cqels_py.kernels.windows import clock
from cqels_py.operators.s2r.arrivals import Arrivals

MOST_TRIPLES, MOST_MATCHES = 512, 4096
"""Of a step, and of its triples with patterns."""
_COUNTED = ((clock.ELEMENTS, Measure.ELEMENTS), (clock.TRIPLES, Measure.TRIPLES))


class BatchTicks:
    """Those of the current step."""

    def __init__(self) -> None:
        self.routed: RoutedBatch | None = None

    def ticks(self) -> Ticks:
        assert self.routed is not None
        return self.routed.step.ticks


class BatchRecord:
    """Room for the elements of a step of so many `streams`. `number`: that of the step."""

    def __init__(self, streams: int) -> None:
        most, self._streams = MOST_TRIPLES, streams
        self._words = np.zeros(element.STEP + 1, np.int64)
        self._columns, self._points = np.empty((3, most), np.int64), np.empty((3, most), np.int64)
        self._of_triple, self._number_of_triple = np.empty((2, most), np.int64)
        self._matches, self._element_tick = np.empty(MOST_MATCHES, np.int64), np.empty(most, np.int32)
        self._units, self._before = np.empty((2 * streams, most), np.int64), np.zeros(2 * streams, np.int64)
        self._reached = np.zeros((3, streams), np.int64)
        self._table = ArrayTable(
            self._words, self._columns, self._of_triple, self._matches, self._element_tick, self._points,
            self._number_of_triple, self._units, self._before, self._reached,
        )  # fmt: skip
        self.address = self._table.address
        self._ticks = BatchTicks()
        self._counted: set[Measure] = set()
        self.number = 0
        self.scratch = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(3 * most, np.int64)
        """That of the rows of all scans, as of kernels/steps/batch_scan.py."""

    def count(self, measure: Measure) -> None:
        """Rows read this measure, from the current step on."""
        if measure not in self._counted:
            self._counted.add(measure)
            if self._ticks.routed is not None:
                self._count(self.arrivals())

    def begin(self, routed: RoutedBatch) -> bool:
        """A step begins. False: there is no room for its elements."""
        batch, step, arrivals = routed.batch, routed.step, routed.arrivals
        triples, elements, matches = len(batch.subject), len(batch.time), routed.first.item(-1)
        if triples > MOST_TRIPLES or elements > MOST_TRIPLES or matches > MOST_MATCHES:
            return False
        self._ticks.routed = routed
        self.number += 1
        self._words[element.STEP], self._words[element.TICKS] = self.number, len(step.ticks)
        columns = self._columns
        columns[0, :triples], columns[1, :triples], columns[2, :triples] = batch.subject, batch.predicate, batch.object
        self._of_triple[:triples], self._matches[:matches] = arrivals.element, routed.triples[:matches]
        self._element_tick[:elements] = step.element_tick
        self._points[clock.ELEMENTS, :elements], self._points[OF_TIME, :elements] = step.number, batch.time
        self._reached[OF_TIME] = step.expired_through
        self._count(arrivals)
        return True

    def _count(self, arrivals: Arrivals) -> None:
        """How many elements and triples have come, as far as rows ask for that."""
        for row, measure in _COUNTED:
            if measure not in self._counted:
                continue
            for stream, each in enumerate(arrivals.streams):
                units, before = each.counted(measure)
                at = row * self._streams + stream
                self._units[at, : len(units)], self._before[at] = units, before
                self._reached[row, stream] = before + len(units)
        if Measure.TRIPLES in self._counted:
            self._number_of_triple[: len(arrivals.element)] = arrivals.number

    @property
    def routed(self) -> RoutedBatch:
        """The current step."""
        assert self._ticks.routed is not None
        return self._ticks.routed

    def end(self) -> None:
        """The step has ended."""
        self._ticks.routed = None

    @property
    def ticks(self) -> CurrentTicks:
        """Those of the current step."""
        return self._ticks

    def arrivals(self) -> Arrivals:
        """Those of the current step."""
        return self.routed.arrivals
