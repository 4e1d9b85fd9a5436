"""Triples per second of a query, from files to rendered results, and its memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from cqels_py.batches.results import ResultBatch
from cqels_py.engine.compile import compile_query
from cqels_py.runners.statistics import Statistics
from cqels_py.suites import memory
from cqels_py.suites.running import StopEarly, null_sink, ready
from cqels_py.suites.task import Measured, Task

if TYPE_CHECKING:
    from cqels_py.runners.spark.session import Session

SAMPLES = 200
"""The approximate number of memory samples that are kept."""
_SAMPLE_SECONDS = 0.02
_WARMING_TRIPLES = 50_000

Tell = Callable[[str, int], None]


def warm_up(task: Task, session: Session | None) -> None:
    """Load all kernels that the query needs; the first run on a machine compiles them here.

    It runs over the first elements, where many results are joined, and over a sample of all, so that elements expire.
    """

    def stop(statistics: Statistics) -> None:
        raise StopEarly

    def go_on(statistics: Statistics) -> None:
        pass

    for look, thin in ((stop, 1), (go_on, task.triples // _WARMING_TRIPLES + 1)):
        with ready(task, session) as run, null_sink(run.plan, run.dictionary) as sink:
            run.run(sink.write, look, thin=thin)


def measure(task: Task, session: Session | None, tell: Tell) -> Measured:
    """One run to the end of the files."""
    samples = _Samples(tell, all_processes=session is not None)
    results = 0

    def take(batch: ResultBatch) -> None:
        nonlocal results
        results += len(batch)
        sink.write(batch)

    began = time.perf_counter()
    # Compiled anew: the time to register a query begins with its text.
    query = compile_query(task.text, source=task.source)
    with ready(task, session, query=query) as run, null_sink(run.plan, run.dictionary) as sink:
        started = time.perf_counter()
        samples.start()
        statistics = run.run(take, samples.look)
        sink.commit()
        seconds = time.perf_counter() - started
    samples.take(seconds, statistics.triples)
    if session is None:
        samples.greatest = memory.peak()
    return Measured(
        task.id,
        title=task.title,
        window=task.window or None,
        runner=task.runner,
        triples=statistics.triples,
        elements=statistics.elements,
        results=results,
        seconds=seconds,
        triples_per_second=statistics.triples / seconds,
        peak_rss_mb=samples.greatest,
        register_seconds=started - began,
        memory=samples.kept,
    )


class _Samples:
    """Memory samples; when there are too many, every second one is dropped."""

    def __init__(self, tell: Tell, *, all_processes: bool) -> None:
        self._tell = tell
        self._size = memory.of_all if all_processes else memory.now
        self._apart = _SAMPLE_SECONDS
        self._due = self._started = 0.0
        self.kept: list[tuple[float, int, float]] = []
        self.greatest = 0.0

    def start(self) -> None:
        self._started = time.perf_counter()

    def look(self, statistics: Statistics) -> None:
        passed = time.perf_counter() - self._started
        if passed >= self._due:
            self.take(passed, statistics.triples)

    def take(self, passed: float, triples: int) -> None:
        """Take a sample, `passed` seconds after the start."""
        size = self._size()
        self.greatest = max(self.greatest, size)
        self.kept.append((round(passed, 4), triples, round(size, 1)))
        if len(self.kept) > SAMPLES:
            self.kept, self._apart = self.kept[::2], 2 * self._apart
        self._due = passed + self._apart
        self._tell("running", triples)
