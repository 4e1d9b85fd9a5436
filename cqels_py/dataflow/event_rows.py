"""EVENT blocks without windows: the rows of an event's elements, delivered when their instant has ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from cqels_py.batches.delta import Delta, empty
from cqels_py.batches.elements import Ids
from cqels_py.dataflow.match_scan import EventEvaluators, EventScan
from cqels_py.dataflow.ownership import Condition
from cqels_py.dataflow.router import RoutedBatch
from cqels_py.dataflow.shared_scans import SharedScans
from cqels_py.dataflow.step_source import StepSource
from cqels_py.event_time.clock import Ticks
from cqels_py.operators.s2r.window import Timer
from cqels_py.plan.nodes import EventRows
from cqels_py.state.open_instant import OpenInstant
from cqels_py.state.stop import Stop

Int64 = npt.NDArray[np.int64]


def ticks_of(ticks: Ticks, times: Int64) -> npt.NDArray[np.int32]:
    """The ticks at the ends of these instants, which have passed."""
    return np.searchsorted(ticks.time, times, side="right").astype(np.int32) - np.int32(1)


class EventRowsScan(StepSource):
    """The rows of one event. `stream`: the number of its stream. Rows of an instant wait until it has ended."""

    STATE = ("_open",)

    def __init__(self, node: EventRows, stream: int, evaluators: EventEvaluators, shared_scans: SharedScans) -> None:
        super().__init__(shared_scans)
        self.node = node
        self.stream = stream
        self.conditions = evaluators.all
        self._width = len(node.variables)
        self.waiting = OpenInstant(self._width)
        router = shared_scans.router
        self._patterns = [router.add((pattern, stream)) for pattern in node.event.patterns]
        self.scan = EventScan(node.event, stream, self._patterns, evaluators)
        self.patterns = (*self._patterns,)

    @property
    def stops(self) -> tuple[Stop, ...]:
        return (self.scan.stop, *[each.stop for each in self.conditions])

    @property
    def next_timer(self) -> Timer:
        """It takes part in every step: an instant may end at each of them."""
        return None

    @property
    def is_plain(self) -> bool:
        """Are its rows those of its patterns, all of them?"""
        return self.scan.is_plain

    @property
    def _open(self) -> OpenInstant:
        """As saved states name it."""
        return self.waiting

    def _advance(self, routed: RoutedBatch) -> Delta:
        if len(routed.batch) and self.scan.may_match(routed):
            element, values = self.scan.rows(routed)
            self.work.rows_in += len(element)
            self.waiting.add(routed.batch.time[element], values)
        ticks = routed.step.ticks
        times, values = self.waiting.take_through(ticks.known_through)
        if not len(times):
            return empty(self._width)
        return Delta(ticks_of(ticks, times), np.ones(len(times), np.int8), values)

    def keep_to(self, cell: Sequence[Condition]) -> None:
        """Take in only rows that belong to this part of a divided state."""
        self.scan.keep_to(cell)

    def live_ids(self) -> Iterator[Ids]:
        """Ids of waiting rows, and in expressions."""
        yield self.waiting.live_ids()
        for condition in self.conditions:
            yield from condition.live_ids()

    @property
    def nbytes(self) -> int:
        return self.waiting.nbytes

    def _release_inputs(self) -> None:
        for number in self._patterns:
            self._shared_scans.router.remove(number)
