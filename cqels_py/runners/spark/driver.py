"""Runs a query over finite streams on Spark: the driver reads them, micro-batch by micro-batch, and collects the
results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any

import pyarrow as pa

from cqels_py.batches.elements import ElementBatch, Ids
from cqels_py.batches.rearrange import concatenate_elements, slice_elements
from cqels_py.batches.results import ResultBatch
from cqels_py.errors import CqelsError, DataError
from cqels_py.formats.contexts import read_contexts
from cqels_py.formats.scopes import SOURCE
from cqels_py.formats.times import unit_question
from cqels_py.plan.nodes import Plan
from cqels_py.runners.spark import stage
from cqels_py.runners.spark.collecting import Collecting
from cqels_py.runners.spark.pipeline import answers
from cqels_py.runners.spark.session import Session
from cqels_py.runners.spark.stage import Job
from cqels_py.runners.statistics import Statistics
from cqels_py.sources.opened import StreamSource, all_opened
from cqels_py.sources.protocol import Opening
from cqels_py.sources.time_merge import TimeMerge

ELEMENTS_A_MICRO_BATCH = 100_000
_COLLECT_FROM = 100_000


class SparkRun(Collecting):
    """One run of a query over finite streams, as a job whose rows are solutions (`prepare(…, solutions=True,
    in_order=True)`).

    `batch`: elements in a micro-batch. `on_error` "skip": malformed input is counted, given to `report` and skipped;
    "stop": it raises. `blank_nodes`, `contexts`: as for `Engine`. `keep_terms`: the `dictionary` of elements and
    results never releases terms, for a sink that decodes results later.
    """

    def __init__(
        self,
        session: Session,
        job: Job,
        plan: Plan,
        *,
        batch: int | None = None,
        on_error: str = "stop",
        report: Callable[[CqelsError], None] | None = None,
        blank_nodes: str = SOURCE,
        contexts: Mapping[str, Any] | None = None,
        keep_terms: bool = False,
    ) -> None:
        super().__init__(session, job, plan, report)
        self._batch = batch or ELEMENTS_A_MICRO_BATCH
        self._on_error = on_error
        self._blank_nodes = blank_nodes
        self._contexts = read_contexts(contexts)
        self._keep_terms = keep_terms
        self._waiting: list[ElementBatch] = []

    def run(
        self,
        sources: Mapping[str, StreamSource],
        *,
        time_predicates: Mapping[str, str] | None = None,
        progress: Callable[[Statistics], None] | None = None,
        threads: int | None = None,
    ) -> Statistics:
        """Read the sources, one for each stream of the query, to their ends, merged by time. `threads` is ignored:
        Spark has its own.

        `time_predicates`: of streams whose elements carry their times, where the query does not say so. `progress` is
        called with the statistics after each micro-batch; its exceptions end the run.
        """
        predicates = {**dict(zip(self.plan.streams, self.plan.time_predicates, strict=True)), **(time_predicates or {})}
        with ExitStack() as cleanup:
            merged = TimeMerge(all_opened(sources, lambda iri: self._opening(iri, predicates[iri]), cleanup))
            cleanup.enter_context(self.dictionary.holding(merged.live_ids))
            cleanup.enter_context(self.dictionary.holding(self._live_ids))
            if not self._deliver(self._micro_batches(merged), progress):
                return self.statistics
            merged.mark_processed()
            merged.commit()
        return self.statistics

    def _opening(self, stream: str, time_predicate: str | None) -> Opening:
        number = self.plan.streams.index(stream)
        return Opening(
            stream=stream,
            number=number,
            dictionary=self.dictionary,
            time_predicate=time_predicate,
            on_error=self._on_error,
            report=self._malformed,
            blank_nodes=self._blank_nodes,
            graphs=self.plan.graphs[number],
            contexts=self._contexts,
            on_questionable_time=partial(self._ask_unit, stream),
        )

    def _malformed(self, error: DataError) -> None:
        if self._on_error == "stop":
            raise error
        self._counters.malformed += 1
        self._report(error)

    def _ask_unit(self, stream: str, time: int) -> None:
        """Ask whether an integer time was meant in another unit."""
        if (question := unit_question(time)) is not None:
            self._report(DataError(f"<{stream}>: {question}"))

    def _micro_batches(self, elements: Iterable[ElementBatch]) -> Iterator[ResultBatch]:
        """The results of each micro-batch."""
        number = 0
        for batch in self._pieces(elements, self._batch):
            yield self._step(number, batch, final=False)
            number += 1
            if not self._keep_terms and len(self.dictionary) > _COLLECT_FROM:
                self.dictionary.collect([])
        yield self._step(number, self._rest(), final=True)

    def _pieces(self, elements: Iterable[ElementBatch], size: int) -> Iterator[ElementBatch]:
        """Pieces of `size` elements; the last one, of up to `size`, remains waiting."""
        for batch in elements:
            self._waiting.append(batch)
            while sum(map(len, self._waiting)) > size:
                together = self._rest()
                self._waiting = [slice_elements(together, size, len(together))]
                yield slice_elements(together, 0, size)

    def _rest(self) -> ElementBatch:
        waiting, self._waiting = self._waiting, []
        return concatenate_elements(waiting)

    def _live_ids(self) -> Iterator[Ids]:
        for batch in self._waiting:
            yield from batch.live_ids()

    def _step(self, number: int, batch: ElementBatch, *, final: bool) -> ResultBatch:
        slices = stage.routed(self._job, batch, self.dictionary, 0)
        frame = self._session.createDataFrame(pa.Table.from_batches(slices))
        results, _ = self._answers(answers(self._job, frame, number, final=final))
        self._counters.elements += len(batch)
        self._counters.triples += batch.triples
        return results
