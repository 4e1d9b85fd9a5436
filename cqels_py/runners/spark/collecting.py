"""The results of a run over finite streams on Spark, which come to the driver micro-batch by micro-batch."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkException

from cqels_py.batches.elements import Ids
from cqels_py.batches.results import ResultBatch
from cqels_py.checkpoints.locations import Location
from cqels_py.dictionary import Dictionary
from cqels_py.errors import CqelsError, DataError, RunError
from cqels_py.plan.nodes import Plan
from cqels_py.runners.spark.describe import heavy_in_words, loads_in_words
from cqels_py.runners.spark.pipeline import Frame
from cqels_py.runners.spark.reaching import StateFolder
from cqels_py.runners.spark.rows import TICK
from cqels_py.runners.spark.session import Session
from cqels_py.runners.spark.stage import Job
from cqels_py.runners.statistics import Counters, Statistics
from cqels_py.sinks.protocol import Sink
from cqels_py.terms.layout import TAG_BLANK, TAG_SHIFT

_LOG = logging.getLogger("cqels_py.spark")
_BLANK = "_:b"


class Collecting:
    """The common part of runs whose results the driver writes: sinks, counts, and how rows become results.

    The job's rows are solutions (`prepare(…, solutions=True)`). `report` gets late elements, as warnings.
    """

    def __init__(self, session: Session, job: Job, plan: Plan, report: Callable[[CqelsError], None] | None) -> None:
        self.plan = plan
        self.dictionary = Dictionary(strict=True)
        self._session = session
        self._job = job
        self._folder = StateFolder(Location(job.folder), session)
        self._report = report or _log
        self._sinks: list[Sink] = []
        self._stopped = False
        self._counters = Counters()

    @property
    def statistics(self) -> Statistics:
        """A snapshot of the counts up to the last micro-batch."""
        return self._counters.snapshot()

    def details(self) -> str:
        """How evenly the state is partitioned, and by which values it is not."""
        told = [loads_in_words(self._folder.loads()), heavy_in_words(self._folder.heavy_values())]
        return "\n".join(filter(None, told))

    def write_to(self, sink: Sink) -> None:
        """Write all results to a sink, which is flushed after each micro-batch, and committed at the end of the streams."""
        self._sinks.append(sink)

    def stop(self) -> None:
        """End the run after the current micro-batch."""
        self._stopped = True

    def _deliver(self, micro_batches: Iterable[ResultBatch], progress: Callable[[Statistics], None] | None) -> bool:
        """Write the results of all micro-batches to the sinks, and commit these; False if the run was stopped before the end."""
        for results in micro_batches:
            for sink in self._sinks:
                sink.write(results)
                sink.flush()
            if progress is not None:
                progress(self.statistics)
            if self._stopped:
                return False
        for sink in self._sinks:
            sink.commit()
        return True

    def _answers(self, rows: Frame) -> tuple[ResultBatch, Statistics]:
        """The results of a micro-batch, evaluated now, and the counts of the state after it."""
        try:
            found = rows.toArrow()
        except PySparkException as error:
            raise RunError(_cause(str(error))) from error
        counted = self._folder.statistics()
        counters = self._counters
        counters.results += len(found)
        if counted.late > counters.late:
            more = counted.late - counters.late
            self._report(DataError(f"late elements were dropped, {more:,} more: a greater --lateness waits longer"))
        counters.late, counters.event_time, counters.no_numbers = counted.late, counted.event_time, counted.no_numbers
        return self._results(found), counted

    def _results(self, rows: pa.Table) -> ResultBatch:
        """Rows of all partitions in the order of their ticks, retractions first, or of their times where ticks have no order."""
        time, sign = rows.column("time").cast(pa.int64()).to_numpy(), rows.column("sign").to_numpy()
        order = np.lexsort((sign, time, rows.column(TICK).to_numpy()) if self._job.in_order else (time,))
        columns = tuple(self._encode(rows.column(name))[order] for name in self._job.columns)
        return ResultBatch(self.plan.variables, time[order], sign[order], columns)

    def _encode(self, column: pa.ChunkedArray) -> Ids:
        coded = column.combine_chunks().dictionary_encode()
        texts = coded.dictionary.to_pylist()
        # The label of a blank node is its id.
        blank = [text.startswith(_BLANK) for text in texts]
        plain = [None if b else text for b, text in zip(blank, texts, strict=True)]
        ids = self.dictionary.encode(plain, existing=True)
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
