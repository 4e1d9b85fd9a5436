"""`clock="wall"`: rows of a clock let time go on where no element comes."""

from __future__ import annotations

import random
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cqels_py
from cqels_py.errors import UsageError
from cqels_py.runners.spark.stage import CLOCK, TIME
from cqels_py.spark import continuous, prepare, statistics
from tests.oracle.naive_values import canonical
from tests.runners.spark import simulation
from tests.runners.spark.test_simulated import DIVIDED, EX, drawn
from tests.runners.spark.test_stages import MERGED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

QUERIES = {
    name: {**DIVIDED, **MERGED}[name]
    for name in ("three patterns", "step", "join of windows", "having", "groups", "top")
}


def ticks(*times: int) -> pa.RecordBatch:
    rows = [{"stream": CLOCK, "time": each} for each in times]
    return pa.RecordBatch.from_pylist(rows, simulation.ROWS)


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("name", QUERIES)
def test_time_goes_on_between_elements(name: str, parts: int) -> None:
    """As an engine is told by `advance`; the rows of the clock come in any task, and never in order."""
    text, chance = f"PREFIX : <{EX}> {QUERIES[name]}", random.Random(f"{name}{parts}")
    elements, engine = drawn(len(name), 70), cqels_py.Engine(on_error="skip", report=lambda error: None)
    query = engine.register(text, changelog=True)
    rows: list[dict[str, Any]] = []
    with simulation.scratch() as place:
        job, plan = prepare(text, state=place, partitions=parts, changelog=True)
        cluster = simulation.Cluster(job, seed=parts)
        for batch in range(7):
            piece = elements[10 * batch : 10 * batch + 10] if batch != 4 else []
            read = [each for each in piece if str(each.stream) in plan.streams]
            for each in read:
                engine.push(str(each.stream), list(each.triples), time=each.time)
            tasks = [simulation.rows_of(read, plan.streams, [f"g{batch}x{n}" for n in range(len(read))])]
            if batch % 3:
                now = 10 + max(each.time for each in elements[: 10 * batch + 10])
                told = [now - chance.randrange(9) for _ in range(3)] + [now]
                chance.shuffle(told)
                tasks[0] = pa.Table.from_batches([ticks(told[0]), tasks[0]]).combine_chunks().to_batches()[0]
                tasks.append(ticks(*told[1:]))
                engine.advance(now)
            rows += cluster.run(batch, tasks)
    wanted = Counter(
        (r.time, r.sign, frozenset((name, canonical(term)) for name, term in r.bindings.items()))
        for r in query.results()
    )
    assert wanted
    assert simulation.counted(rows) == wanted


def test_rows_beside_whose_time_is_null_move_nothing() -> None:
    """They are alone in a task."""
    beside = pa.RecordBatch.from_pylist([{"stream": TIME, "time": None}], simulation.ROWS)
    text = f"PREFIX : <{EX}> {QUERIES['three patterns']}"
    with simulation.scratch() as place:
        job, _ = prepare(text, state=place, partitions=2, changelog=True)
        assert simulation.Cluster(job).run(0, [beside]) == []
        assert statistics(place).event_time is None


@pytest.mark.xdist_group("spark")
def test_silence_is_told(spark: SparkSession, tmp_path: Path) -> None:
    """One element, then nothing: its mapping expires by the clock."""
    (tmp_path / "in").mkdir()
    now = datetime.now(UTC)
    row = {"time": now, "subject": f"<{EX}a>", "predicate": f"<{EX}v>", "object": '"1"'}
    schema = pa.schema([("time", pa.timestamp("us", "UTC")), *((name, pa.string()) for name in list(row)[1:])])
    pq.write_table(pa.Table.from_pylist([row], schema), tmp_path / "in" / "one.parquet")
    frame = spark.readStream.schema(spark.read.parquet(str(tmp_path / "in")).schema).parquet(str(tmp_path / "in"))
    text = f"SELECT ?a WHERE {{ STREAM <{EX}s> [RANGE 1s] {{ ?a <{EX}v> ?v }} }}"
    frames = {f"{EX}s": frame}
    for options, message in (
        ({"clock": "sun"}, "clock is 'events' or 'wall'"),
        ({"clock_delay": -1}, "clock_delay is 0"),
    ):
        with pytest.raises(UsageError, match=message):
            continuous(frames, text, state=tmp_path / "state", **options)  # type: ignore[arg-type]
    answers = continuous(frames, text, state=tmp_path / "state", changelog=True, clock="wall")
    signs: list[int] = []

    def keep(each: DataFrame, batch: int) -> None:
        signs.extend(each.toArrow().column("sign").to_pylist())

    writer = answers.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.foreachBatch(keep).trigger(processingTime="1 second").start()
    deadline = time.monotonic() + 180
    while len(signs) < 2 and time.monotonic() < deadline:
        query.awaitTermination(1)
    query.stop()
    assert signs == [1, -1]
