"""Runs a query over finite streams on Spark: the driver reads them, micro-batch by micro-batch, and collects the
results."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkException

from cqels_py.batches.elements import ElementBatch, Ids
from cqels_py.batches.rearrange import concatenate_elements, slice_elements
from cqels_py.batches.results import ResultBatch
from cqels_py.checkpoints.locations import Location
from cqels_py.dictionary import Dictionary
from cqels_py.errors import CqelsError, DataError, RunError
from cqels_py.formats.contexts import read_contexts
from cqels_py.formats.scopes import SOURCE
from cqels_py.formats.times import unit_question
from cqels_py.plan.nodes import Plan
from cqels_py.runners.spark import stage
from cqels_py.runners.spark.describe import loads_in_words
from cqels_py.runners.spark.pipeline import answers
from cqels_py.runners.spark.reaching import StateFolder
from cqels_py.runners.spark.rows import TICK
from cqels_py.runners.spark.session import Session
from cqels_py.runners.spark.stage import Job
from cqels_py.runners.statistics import Counters, Statistics
from cqels_py.sinks.protocol import Sink
from cqels_py.sources.opened import StreamSource, all_opened
from cqels_py.sources.protocol import Opening
from cqels_py.sources.time_merge import TimeMerge
from cqels_py.terms.layout import TAG_BLANK, TAG_SHIFT

ELEMENTS_A_MICRO_BATCH = 100_000
_LOG = logging.getLogger("cqels_py.spark")
_BLANK = "_:b"
_COLLECT_FROM = 100_000


class SparkRun:
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
        self.plan = plan
        self.dictionary = Dictionary(strict=True)
        self._session = session
        self._job = job
        self._folder = StateFolder(Location(job.folder), session)
        self._batch = batch or ELEMENTS_A_MICRO_BATCH
        self._on_error = on_error
        self._report = report or _log
        self._blank_nodes = blank_nodes
        self._contexts = read_contexts(contexts)
        self._keep_terms = keep_terms
        self._waiting: list[ElementBatch] = []
        self._sinks: list[Sink] = []
        self._stopped = False
        self._counters = Counters()

    @property
    def statistics(self) -> Statistics:
        """A snapshot of the counts up to the last micro-batch."""
        return self._counters.snapshot()

    def details(self) -> str:
        """How evenly the state is partitioned."""
        return loads_in_words(self._folder.loads())

    def write_to(self, sink: Sink) -> None:
        """Write all results to a sink, which is flushed after each micro-batch, and committed at the end of the streams."""
        self._sinks.append(sink)

    def stop(self) -> None:
        """End the run after the current micro-batch."""
        self._stopped = True

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
            for results in self._micro_batches(merged):
                for sink in self._sinks:
                    sink.write(results)
                    sink.flush()
                if progress is not None:
                    progress(self.statistics)
                if self._stopped:
                    return self.statistics
            for sink in self._sinks:
                sink.commit()
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
        frame = self._session.createDataFrame(pa.Table.from_batches([slices]))
        try:
            rows = answers(self._job, frame, number, final=final).toArrow()
        except PySparkException as error:
            raise RunError(_cause(str(error))) from error
        counted = self._folder.statistics()
        counters = self._counters
        counters.elements += len(batch)
        counters.triples += batch.triples
        counters.results += len(rows)
        if counted.late > counters.late:
            more = counted.late - counters.late
            self._report(DataError(f"late elements were dropped, {more:,} more: a greater --lateness waits longer"))
        counters.late, counters.event_time, counters.no_numbers = counted.late, counted.event_time, counted.no_numbers
        return self._results(rows)

    def _results(self, rows: pa.Table) -> ResultBatch:
        """Rows of all partitions in the order of their ticks."""
        time = rows.column("time").cast(pa.int64()).to_numpy()
        order = np.lexsort((rows.column(TICK).to_numpy(), time))
        sign = rows.column("sign").to_numpy()[order]
        columns = tuple(self._encode(rows.column(name))[order] for name in self._job.columns)
        return ResultBatch(self.plan.variables, time[order], sign, columns)

    def _encode(self, column: pa.ChunkedArray) -> Ids:
        coded = column.combine_chunks().dictionary_encode()
        texts = coded.dictionary.to_pylist()
        # The label of a blank node is its id.
        blank = [text.startswith(_BLANK) for text in texts]
        ids = self.dictionary.encode([None if b else text for b, text in zip(blank, texts, strict=True)])
        for place in np.flatnonzero(blank).tolist():
            ids[place] = TAG_BLANK << TAG_SHIFT | int(texts[place][len(_BLANK) :], 16)
        places: Ids = pc.fill_null(coded.indices, len(ids)).to_numpy(zero_copy_only=False)
        return np.append(ids, 0)[places]


def _log(error: CqelsError) -> None:
    _LOG.warning("%s", error)


def _cause(message: str) -> str:
    """The last line of the worker's traceback that names an error, or the first line of the message."""
    named = re.findall(r"^(?:[\w.]+\.)?(\w*(?:Error|Exception|Collision|Exit): .*)$", message, re.MULTILINE)
    return f"a task on Spark failed: {named[-1] if named else message.strip().partition(chr(10))[0]}"
