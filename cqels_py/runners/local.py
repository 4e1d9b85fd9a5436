"""The local runner: elements in order of time to the dataflow of every query, in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from cqels_py.batches.elements import ElementBatch
from cqels_py.batches.rearrange import concatenate_elements, slice_elements, take_elements, with_streams
from cqels_py.batches.results import ResultBatch
from cqels_py.dataflow import Dataflow
from cqels_py.dataflow.static_data import StaticData
from cqels_py.dictionary.dictionary import Dictionary
from cqels_py.event_time.watermark import Watermark

Deliver = Callable[[ResultBatch], None]

_COLLECT_FROM = 100_000


@dataclass(slots=True)
class Statistics:
    """What an engine has seen so far. `event_time`: microseconds of the last element, None before the first."""

    elements: int = 0
    triples: int = 0
    results: int = 0
    late: int = 0
    malformed: int = 0
    event_time: int | None = None


class RunningQuery:
    """A dataflow, the engine's numbers of its streams, and where its results go."""

    def __init__(self, dataflow: Dataflow, streams: list[int], deliver: Deliver) -> None:
        self.dataflow = dataflow
        self._local = np.full(max(streams) + 1, -1, np.int32)
        self._local[streams] = np.arange(len(streams), dtype=np.int32)
        self._deliver = deliver

    def step(self, batch: ElementBatch) -> int:
        """Take in the elements of its streams; returns the number of results."""
        known = np.minimum(batch.stream, len(self._local) - 1)
        stream = np.where(batch.stream < len(self._local), self._local[known], -1).astype(np.int32)
        mine = stream >= 0
        if not mine.all():
            chosen = np.flatnonzero(mine)
            if len(chosen) == 0:
                return 0
            batch, stream = take_elements(batch, chosen), stream[chosen]
        return self._hand_out(self.dataflow.step(with_streams(batch, stream)))

    def advance(self, time: int) -> int:
        return self._hand_out(self.dataflow.advance(time))

    def finish(self) -> int:
        return self._hand_out(self.dataflow.finish())

    def update_static(self, static: StaticData) -> int:
        return self._hand_out(self.dataflow.update_static(static))

    def _hand_out(self, results: Iterator[ResultBatch]) -> int:
        count = 0
        for batch in results:
            count += len(batch)
            if len(batch):
                self._deliver(batch)
        return count


class LocalRunner:
    """Drives all queries of an engine. `lateness` in microseconds; one thread pushes at a time."""

    def __init__(self, dictionary: Dictionary, lateness: int) -> None:
        self._dictionary = dictionary
        self._watermark = Watermark(lateness)
        self._early: ElementBatch | None = None
        self._collect_at = _COLLECT_FROM
        self.queries: list[RunningQuery] = []
        self.statistics = Statistics()

    def push(self, batch: ElementBatch) -> None:
        """Take in elements in order of arrival."""
        admitted = self._watermark.admit(batch.time)
        self.statistics.elements += len(batch)
        self.statistics.triples += batch.triples
        if not admitted.all():
            self.statistics.late += int(np.count_nonzero(~admitted))
            batch = take_elements(batch, np.flatnonzero(admitted))
        self._process(self._complete(batch))

    def advance(self, time: int) -> None:
        """No element before `time` will come: what expires before it does so now."""
        self._watermark.advance(time)
        self._process(self._complete(None))
        for query in self.queries:
            self.statistics.results += query.advance(self._watermark.time)

    def finish(self) -> None:
        """The streams have ended."""
        if self._early is not None:
            rest, self._early = self._early, None
            self._process(rest)
        for query in self.queries:
            self.statistics.results += query.finish()

    def update_static(self, query: RunningQuery, static: StaticData) -> None:
        """Other static data for one of the queries, from now on."""
        self.statistics.results += query.update_static(static)
        self._release_terms()

    def _complete(self, batch: ElementBatch | None) -> ElementBatch | None:
        """In order of time, the elements up to the watermark; the others wait."""
        waiting = [part for part in (self._early, batch) if part is not None and len(part)]
        if not waiting:
            return None
        together = concatenate_elements(waiting)
        if np.any(np.diff(together.time) < 0):
            together = take_elements(together, np.argsort(together.time, kind="stable"))
        cut = int(np.searchsorted(together.time, self._watermark.time, side="right"))
        self._early = slice_elements(together, cut, len(together)) if cut < len(together) else None
        return slice_elements(together, 0, cut)

    def _process(self, batch: ElementBatch | None) -> None:
        if batch is None or not len(batch):
            return
        self.statistics.event_time = int(batch.time[-1])
        for query in self.queries:
            self.statistics.results += query.step(batch)
        self._release_terms()

    def _release_terms(self) -> None:
        """Let go of terms that nothing refers to, whenever the dictionary has doubled since the last time."""
        if len(self._dictionary) < self._collect_at:
            return
        live = [ids for query in self.queries for ids in query.dataflow.live_ids()]
        if self._early is not None:
            live += [self._early.subject, self._early.predicate, self._early.object]
        self._dictionary.collect(live)
        for query in self.queries:
            query.dataflow.forget_evaluations()
        self._collect_at = max(_COLLECT_FROM, 2 * len(self._dictionary))
