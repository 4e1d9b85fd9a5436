"""The latency of results while elements arrive at a steady pace, below the highest rate that the query can process.

Elements are pushed as texts from memory; those that are due together are pushed together. The first elements of the
stream are pushed before that at full speed, to fill the windows. An element's latency runs from the moment at which it
is due, not from when it is pushed, until all results of its push are rendered.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import numpy.typing as npt

from cqels_py.batches.elements import ElementBatch
from cqels_py.batches.rearrange import concatenate_elements, slice_elements
from cqels_py.batches.results import ResultBatch
from cqels_py.dataflow import Dataflow
from cqels_py.dictionary import Dictionary
from cqels_py.errors import RunError
from cqels_py.formats.ntriples import ELEMENT_BITS
from cqels_py.plan.nodes import Plan
from cqels_py.runners.local import LocalRunner
from cqels_py.runners.running import RunningQuery
from cqels_py.sources.batches import BatchSource
from cqels_py.sources.static import load_static_data
from cqels_py.sources.time_merge import TimeMerge
from cqels_py.suites.running import compiled, null_sink, sources
from cqels_py.suites.task import Measured, Task

SHARE_OF_MOST = 0.8
SECONDS = 3.0
_FEWEST = 20
_SETTLING = 0.1
_AT_ONCE = 1 << 16
_NAP = 0.0002

Seconds = npt.NDArray[np.float64]
Push = Callable[[int, int], None]


def measure(task: Task, measured: Measured, *, seconds: float = SECONDS) -> None:
    """Fill in the latencies at `SHARE_OF_MOST` of the measured rate, over about `seconds` seconds at the end of the stream."""
    assert measured.triples_per_second is not None
    rate = SHARE_OF_MOST * measured.triples_per_second
    paced = int(min(measured.elements / 2, rate * seconds * measured.elements / max(measured.triples, 1)))
    if paced < _FEWEST:
        return
    with ExitStack() as cleanup:
        plan = compiled(task.text, task.source).plan
        texts = _Texts(_tail(task, plan, measured.elements - paced))
        target = _Target(task, plan, cleanup)
        target.fill(measured.elements - paced)
        found = pace(texts.due(rate), lambda start, end: target.push(texts, start, end))
    latencies = found[int(len(found) * _SETTLING) :] * 1e6
    measured.latency_rate = rate
    measured.latency_quantiles = np.percentile(latencies, np.arange(101)).round(1).tolist()
    measured.latency_p50_us, measured.latency_p99_us = (measured.latency_quantiles[at] for at in (50, 99))


def pace(due: Seconds, push: Push, clock: Callable[[], float] = time.perf_counter) -> Seconds:
    """Push elements when they are due (seconds from now, ascending). Returns how long after that each was done."""
    latency = np.empty(len(due))
    at, started = 0, clock()
    while at < len(due):
        passed = clock() - started
        through = min(int(np.searchsorted(due, passed, side="right")), at + _AT_ONCE)
        if through <= at:
            # `sleep` overshoots, so the last moments are spent polling the clock.
            if due[at] - passed > _NAP:
                time.sleep(due[at] - passed - _NAP)
            continue
        push(at, through)
        latency[at:through] = clock() - started - due[at:through]
        at = through
    return latency


class _Texts:
    """Elements as texts in one buffer: term k of triple i is data[offsets[3 i + k]:offsets[3 i + k + 1]]."""

    def __init__(self, read: tuple[ElementBatch, Dictionary]) -> None:
        elements, dictionary = read
        self.time, self.stream, self.first = elements.time, elements.stream, elements.first
        terms = np.stack([elements.subject, elements.predicate, elements.object], axis=1)
        data, self.offsets = dictionary.decode_bytes(terms.ravel())
        self.data = np.frombuffer(data.tobytes() or b"\0", np.uint8)

    def due(self, rate: float) -> Seconds:
        """The times at which elements are due, at `rate` triples per second."""
        return self.first[1:] / rate


class _Target:
    """The query in an engine, for elements of all its streams together."""

    def __init__(self, task: Task, plan: Plan, cleanup: ExitStack) -> None:
        self._task, self._plan = task, plan
        self._dictionary = Dictionary()
        static = load_static_data(plan, [Path(task.static)], {}, self._dictionary)
        dataflow = Dataflow(plan, self._dictionary, static)
        self._sink = cleanup.enter_context(null_sink(plan, self._dictionary))
        self._runner = LocalRunner(self._dictionary, 0)
        self._runner.queries = [RunningQuery(dataflow, range(len(plan.streams)), self)]
        self._scope = 0

    def deliver(self, batch: ResultBatch) -> None:
        self._sink.write(batch)

    def share(self, batch: ResultBatch, others: Sequence[object]) -> Sequence[object]:
        return others

    def fail(self, error: RunError) -> None:
        raise error

    def fill(self, elements: int) -> None:
        """Push the first elements of the files."""
        left = elements
        merged = _merged(self._task, self._plan, self._dictionary)
        with self._dictionary.holding(merged.live_ids):
            for batch in merged:
                self._runner.push(slice_elements(batch, 0, min(left, len(batch))))
                left -= len(batch)
                if left <= 0:
                    break
        self._scope = self._dictionary.next_document() << ELEMENT_BITS

    def push(self, texts: _Texts, start: int, end: int) -> None:
        a, b = int(texts.first[start]), int(texts.first[end])
        first = texts.first[start : end + 1]
        scopes = np.repeat(self._scope + np.arange(start, end), 3 * np.diff(first))
        ids = self._dictionary.encode_bytes(texts.data, texts.offsets[3 * a : 3 * b + 1], scopes)
        terms = ids.reshape(-1, 3).T.copy()
        self._runner.push(ElementBatch(texts.time[start:end], texts.stream[start:end], first - a, *terms))


def _merged(task: Task, plan: Plan, dictionary: Dictionary) -> TimeMerge:
    return TimeMerge([BatchSource(batches) for batches in sources(task, plan, dictionary)])


def _tail(task: Task, plan: Plan, skipped: int) -> tuple[ElementBatch, Dictionary]:
    """The elements after the first ones, and the dictionary with their terms."""
    dictionary = Dictionary()
    kept, passed = [], 0
    for batch in _merged(task, plan, dictionary):
        start = min(max(skipped - passed, 0), len(batch))
        kept.append(slice_elements(batch, start, len(batch)))
        passed += len(batch)
    return concatenate_elements(kept), dictionary
