"""Runs a query over finite folders of files on Spark: the tasks that route triples read them, and the driver gets the results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
from pyspark.sql import functions as F

from cqels_py.batches.results import ResultBatch
from cqels_py.errors import CqelsError, UsageError
from cqels_py.formats.times import FAR
from cqels_py.plan.nodes import Plan
from cqels_py.runners.spark.collecting import Collecting
from cqels_py.runners.spark.files import FILE, files_below
from cqels_py.runners.spark.pipeline import Frame, Timing, transform
from cqels_py.runners.spark.reaching import asked
from cqels_py.runners.spark.session import Session, cores_of
from cqels_py.runners.spark.stage import Job
from cqels_py.runners.statistics import Statistics
from cqels_py.sources.opened import StreamSource

BYTES_A_TASK = 64 << 20
"""Of files in a micro-batch: a task reads about so many. A file is never divided."""
FOR_ALL = FAR - 1
"""The `idle` with which streams wait for each other as long as they have files."""
_KEEP_TERMS_BELOW = 100_000


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """The files of a micro-batch by the number of their stream, and the streams that have no more files behind it."""

    files: Mapping[int, Sequence[str]]
    ended: frozenset[int]


def micro_batches(streams: Mapping[int, Sequence[tuple[str, int]]], most: int) -> list[MicroBatch]:
    """Divide the files (name, bytes) of streams into micro-batches of about so many bytes, each with the same fraction of each
    stream, in the order of the files.

    >>> [each.files for each in micro_batches({0: [("a", 5), ("b", 5)], 1: [("c", 2)]}, 6)]
    [{0: ['a'], 1: ['c']}, {0: ['b']}]
    """
    totals = {stream: sum(size for _, size in files) for stream, files in streams.items()}
    count = max(1, -(-sum(totals.values()) // most))
    found: list[dict[int, list[str]]] = [{} for _ in range(count)]
    for stream, files in streams.items():
        before = 0
        for name, size in files:
            found[min(before * count // max(totals[stream], 1), count - 1)].setdefault(stream, []).append(name)
            before += size
    there = [each for each in found if each]
    last = {stream: number for number, each in enumerate(there) for stream in each}
    return [
        MicroBatch(each, frozenset(stream for stream, end in last.items() if end <= number))
        for number, each in enumerate(there)
    ]


class FilesRun(Collecting):
    """One run of a query over folders, as a job whose rows are solutions, and whose streams wait for each other (`FOR_ALL`).

    Elements are taken in order of time within a micro-batch; files in the order of their names. `bytes_a_task`: about how many bytes
    of files a task reads in a micro-batch. `keep_terms`: see `SparkRun`.
    """

    def __init__(
        self,
        session: Session,
        job: Job,
        plan: Plan,
        *,
        report: Callable[[CqelsError], None] | None = None,
        keep_terms: bool = False,
        bytes_a_task: int | None = None,
    ) -> None:
        super().__init__(session, job, plan, report)
        self._keep_terms = keep_terms
        self._bytes_a_task = bytes_a_task or BYTES_A_TASK

    def run(
        self,
        sources: Mapping[str, StreamSource],
        *,
        time_predicates: Mapping[str, str] | None = None,
        progress: Callable[[Statistics], None] | None = None,
        threads: int | None = None,
    ) -> Statistics:
        """Read the folders of all streams, by path or URI, to their ends. UsageError if one cannot be listed; the rest as of
        `SparkRun`."""
        streams = self.plan.streams
        given = time_predicates or {}
        predicates = tuple(given.get(iri, own) for iri, own in zip(streams, self.plan.time_predicates, strict=True))
        self._job = replace(self._job, time_predicates=predicates)
        cores = cores_of(self._session)
        files = {streams.index(iri): self._files(iri, source) for iri, source in sources.items()}
        planned = micro_batches(files, cores * self._bytes_a_task)
        self._deliver(self._results_of(planned, cores), progress)
        return self.statistics

    def _files(self, iri: str, source: StreamSource) -> list[tuple[str, int]]:
        if not isinstance(source, str):
            raise UsageError(f"<{iri}> is a folder by its path or URI, not {source!r}")
        return [(name, size) for name, size in asked(self._session, partial(files_below, source))]

    def _results_of(self, planned: Sequence[MicroBatch], cores: int) -> Iterator[ResultBatch]:
        """The results of each micro-batch."""
        job, several = self._job, len(self.plan.streams) > 1
        for number, each in enumerate(planned):
            frames = {stream: self._frame(names, cores) for stream, names in each.files.items()}
            timing = Timing(ended=each.ended if several else frozenset())
            final = number == len(planned) - 1
            results, counted = self._answers(transform(job, frames, number, final=final, timing=timing))
            counters = self._counters
            counters.elements, counters.triples = counted.elements, counted.triples
            counters.malformed = counted.malformed
            yield results
            if not self._keep_terms and len(self.dictionary) > _KEEP_TERMS_BELOW:
                self.dictionary.collect([])

    def _frame(self, names: Sequence[str], cores: int) -> Frame:
        """A frame of the names, in a task for each, or for several if there are more than cores."""
        tasks = min(len(names), cores)
        task = pa.array([number % tasks for number in range(len(names))], pa.int32())
        frame = self._session.createDataFrame(pa.table({"task": task, FILE: pa.array(names, pa.string())}))
        return frame.repartitionById(tasks, F.col("task")).select(FILE)
