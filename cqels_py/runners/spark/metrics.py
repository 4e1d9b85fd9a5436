"""Counts of each micro-batch in Spark's own progress, which its listeners get.

Each part of a stage counts its work. The counts of a task are a row beside its output: rows of `ROUTED` go to the next stage,
which adds its own, and the last stage makes rows of results of them. `observe` adds up these rows, and a filter removes them:

    time                        sign  c
    2026-01-01T00:00:07         +1    <http://ex.org/a>     a result
    1970-01-01T00:00:00.000120  2     null                  the first count is 120
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from cqels_py.runners.spark.frequent import Frequent
from cqels_py.runners.spark.parts import ROUTED
from cqels_py.runners.spark.rows import row_schema
from cqels_py.runners.statistics import Statistics

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.streaming.listener import StreamingQueryProgress

Progress: TypeAlias = "StreamingQueryProgress"

METRICS = "cqels"
"""The name of the counts in Spark's progress, if no other is given."""
_COUNTS = -1
"""The part of rows with counts."""
_FIRST_SIGN = 2
"""That of rows with the first count; results have the signs 1 and -1."""


@dataclass(frozen=True, slots=True)
class BatchCounts:
    """The work of parts in a micro-batch: `elements` and `triples` that they took in, `results`, `late` elements that were dropped,
    `malformed` rows that were skipped, values that are `no_numbers`; `rows` that the parts of the first stage got, copies included,
    and `busiest_part`, those of the one that got most; `read_backs`, the parts whose state was restored from its store; `caught_up`,
    those whose state on this host was older, so that only the inputs since were read.
    `event_time`: microseconds of the latest element so far; `watermark`: earlier elements are late from now on; None before the
    first. `heavy`: the values that have been in very many triples so far, as JSON (`heavy_values`); None: there are none.
    """

    elements: int = 0
    triples: int = 0
    results: int = 0
    late: int = 0
    malformed: int = 0
    no_numbers: int = 0
    rows: int = 0
    busiest_part: int = 0
    read_backs: int = 0
    caught_up: int = 0
    event_time: int | None = None
    watermark: int | None = None
    heavy: str | None = None

    @property
    def heavy_values(self) -> Frequent:
        """The values in very many triples so far by variable, with the fractions of these, which `heavy=` takes.

        >>> BatchCounts(heavy='{"sensor": {"<http://ex.org/s1>": 0.5}}').heavy_values
        {'sensor': {'<http://ex.org/s1>': 0.5}}
        """
        return dict(json.loads(self.heavy)) if self.heavy else {}

    def plus(self, other: BatchCounts) -> BatchCounts:
        """Those of all parts of both.

        >>> one, two = BatchCounts(results=3, busiest_part=7), BatchCounts(results=1, busiest_part=5, event_time=9)
        >>> both = one.plus(two)
        >>> both.results, both.busiest_part, both.event_time
        (4, 7, 9)
        """
        found: dict[str, Any] = {}
        for name in _NAMES:
            given = [value for value in (getattr(self, name), getattr(other, name)) if value is not None]
            found[name] = None if not given else max(given) if name in _LARGEST else sum(given)
        return BatchCounts(**found)


_NAMES = tuple(each.name for each in fields(BatchCounts))
_LARGEST = ("busiest_part", "event_time", "watermark", "heavy")
"""Counts of which the largest is that of all; others are added."""
_TEXTS = ("heavy",)
"""They stand in the first column of a result's text."""


def counted(
    before: Statistics,
    after: Statistics,
    *,
    part: int,
    is_first: bool,
    is_last: bool,
    rows: int,
    read_back: bool,
    caught_up: bool,
    watermark: int | None,
    heavy: Frequent,
) -> BatchCounts:
    """The counts of a part of a stage, from its statistics before and after the micro-batch. `is_first`, `is_last`: is it the first
    stage, the last one?

    All parts of the first stage count all elements.
    """
    everything = is_first and part == 0
    return BatchCounts(
        elements=after.elements - before.elements if everything else 0,
        triples=after.triples - before.triples if is_first else 0,
        results=after.results - before.results if is_last else 0,
        late=after.late - before.late if everything else 0,
        malformed=after.malformed - before.malformed if is_first else 0,
        no_numbers=after.no_numbers - before.no_numbers,
        rows=rows if is_first else 0,
        busiest_part=rows if is_first else 0,
        read_backs=int(read_back),
        caught_up=int(caught_up),
        event_time=after.event_time if everything else None,
        watermark=watermark,
        heavy=json.dumps(heavy) if heavy else None,
    )


def sent_counts(counts: BatchCounts) -> pa.RecordBatch:
    """A row with the counts for the next stage, whose parts do not see it."""
    return pa.record_batch([[_COUNTS], [0], [json.dumps(asdict(counts)).encode()]], schema=ROUTED)


def received_counts(batches: Iterable[pa.RecordBatch]) -> BatchCounts:
    """The counts in a task's rows from the stage before."""
    return reduce(BatchCounts.plus, _counts_in(batches), BatchCounts())


def _counts_in(batches: Iterable[pa.RecordBatch]) -> Iterator[BatchCounts]:
    for batch in batches:
        told = batch.filter(pc.equal(batch.column("part"), _COUNTS)).column("data").to_pylist()
        yield from (BatchCounts(**json.loads(data)) for data in told)


def rows_of_counts(counts: BatchCounts, columns: tuple[str, ...]) -> pa.RecordBatch:
    """Rows beside results with these columns of text, which `observed` takes out."""
    values = {name: value for name in _NAMES if (value := getattr(counts, name)) is not None}
    signs = pa.array([sign_of(name) for name in values], pa.int8())
    times = pa.array([0 if name in _TEXTS else value for name, value in values.items()], pa.timestamp("us", tz="UTC"))
    told = pa.array([value if name in _TEXTS else None for name, value in values.items()], pa.string())
    texts = [told, *[pa.nulls(len(values), pa.string())] * (len(columns) - 1)][: len(columns)]
    return pa.record_batch([times, signs, *texts], schema=row_schema(columns))


def sign_of(count: str) -> int:
    """The sign of the rows with this count."""
    return _FIRST_SIGN + _NAMES.index(count)


def observed(rows: DataFrame, name: str) -> DataFrame:
    """The results alone; the counts are observed under the name."""
    return results_in(observing(rows, name))


def results_in(rows: DataFrame) -> DataFrame:
    """Rows without counts."""
    from pyspark.sql import functions as F

    return rows.where(F.col("sign") < _FIRST_SIGN)


def observing(rows: DataFrame, name: str) -> DataFrame:
    """All rows; the counts are observed under the name."""
    return rows.observe(name, *aggregates(rows))


def aggregates(rows: DataFrame) -> list[Column]:
    """The sums and maxima of counts in rows of results."""
    from pyspark.sql import functions as F

    texts = [name for name in rows.columns if name not in ("time", "sign")]
    found = []
    for count in _NAMES:
        told = F.unix_micros("time")
        if count in _TEXTS:
            told = F.col(f"`{texts[0]}`") if texts else F.lit(None).cast("string")
        value = F.when(F.col("sign") == sign_of(count), told)
        found.append((F.max if count in _LARGEST else F.sum)(value).alias(count))
    return found


def counts_in(progress: Progress, name: str) -> BatchCounts | None:
    """The counts under this name in the progress of a micro-batch; None if it has none, as the query is another one."""
    row = progress.observedMetrics.get(name)
    if row is None:
        return None
    found = row.asDict()
    if "schema" in found:
        # With Spark Connect.
        found = dict(zip((each["name"] for each in found["schema"]["fields"]), found["values"], strict=True))
    return BatchCounts(**found)
