"""Runs a query over finite streams on Spark: the driver reads them, micro-batch by micro-batch, and gets the results back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkException

from cqels_py.batches.elements import ElementBatch, Ids
from cqels_py.batches.rearrange import concatenate_elements, slice_elements
from cqels_py.batches.results import ResultBatch
from cqels_py.dictionary import Dictionary
from cqels_py.errors import RunError
from cqels_py.runners.spark import folder, stage
from cqels_py.runners.spark.pipeline import answers
from cqels_py.runners.spark.rows import TICK
from cqels_py.runners.spark.session import Session
from cqels_py.runners.spark.stage import Job
from cqels_py.runners.statistics import Counters, Statistics
from cqels_py.terms.layout import TAG_BLANK, TAG_SHIFT

_BLANK = "_:b"
_COLLECT_FROM = 100_000


class SparkRun:
    """One run of a job whose rows are solutions (`prepare(…, solutions=True, in_order=True)`).

    `dictionary` (strict) is that of the elements, and of the results; it lets go of terms between micro-batches if `release`.
    """

    def __init__(
        self, session: Session, job: Job, variables: tuple[str, ...], dictionary: Dictionary, *, release: bool
    ) -> None:
        self._session = session
        self._job = job
        self._variables = variables
        self._dictionary = dictionary
        self._release = release
        self._waiting: list[ElementBatch] = []
        self.counters = Counters()

    @property
    def statistics(self) -> Statistics:
        """A snapshot of the counts up to the last micro-batch."""
        return self.counters.snapshot()

    def run(self, elements: Iterable[ElementBatch], size: int) -> Iterator[ResultBatch]:
        """The results of the elements, `size` of them in a micro-batch, one batch of results for each."""
        number = 0
        with self._dictionary.holding(self._live_ids):
            for batch in self._pieces(elements, size):
                yield self._step(number, batch, final=False)
                number += 1
                self._let_go()
            yield self._step(number, self._rest(), final=True)

    def _pieces(self, elements: Iterable[ElementBatch], size: int) -> Iterator[ElementBatch]:
        """All but the last, which is what then waits: up to `size` elements."""
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

    def _let_go(self) -> None:
        if self._release and len(self._dictionary) > _COLLECT_FROM:
            self._dictionary.collect([])

    def _step(self, number: int, batch: ElementBatch, *, final: bool) -> ResultBatch:
        shares = stage.routed(self._job, batch, self._dictionary, 0)
        frame = self._session.createDataFrame(pa.Table.from_batches([shares]))
        try:
            rows = answers(self._job, frame, number, final=final).toArrow()
        except PySparkException as error:
            raise RunError(_cause(str(error))) from error
        counted = folder.statistics(Path(self._job.folder))
        counters = self.counters
        counters.elements += len(batch)
        counters.triples += batch.triples
        counters.results += len(rows)
        counters.late, counters.event_time, counters.no_numbers = counted.late, counted.event_time, counted.no_numbers
        return self._results(rows)

    def _results(self, rows: pa.Table) -> ResultBatch:
        """Rows of all parts in the order of their ticks."""
        time = rows.column("time").cast(pa.int64()).to_numpy()
        order = np.lexsort((rows.column(TICK).to_numpy(), time))
        sign = rows.column("sign").to_numpy()[order]
        columns = tuple(self._encode(rows.column(name))[order] for name in self._job.columns)
        return ResultBatch(self._variables, time[order], sign, columns)

    def _encode(self, column: pa.ChunkedArray) -> Ids:
        coded = column.combine_chunks().dictionary_encode()
        texts = coded.dictionary.to_pylist()
        # The label of a blank node is its id.
        blank = [text.startswith(_BLANK) for text in texts]
        ids = self._dictionary.encode([None if b else text for b, text in zip(blank, texts, strict=True)])
        for place in np.flatnonzero(blank).tolist():
            ids[place] = TAG_BLANK << TAG_SHIFT | int(texts[place][len(_BLANK) :], 16)
        places: Ids = pc.fill_null(coded.indices, len(ids)).to_numpy(zero_copy_only=False)
        return np.append(ids, 0)[places]


def _cause(message: str) -> str:
    """The last line of the worker's traceback that names an error, or the first line of the message."""
    named = re.findall(r"^(?:[\w.]+\.)?(\w*(?:Error|Exception|Collision|Exit): .*)$", message, re.MULTILINE)
    return f"a task on Spark failed: {named[-1] if named else message.strip().partition(chr(10))[0]}"
