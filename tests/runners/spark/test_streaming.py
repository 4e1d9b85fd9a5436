"""Structured Streaming for real: files arrive, micro-batches run, workers die, queries are stopped and started again."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cqels_py
from cqels_py.runners.spark.stage import Job
from cqels_py.spark import continuous, loads, migrate, numbered, prepare, statistics
from tests.oracle.naive import Element
from tests.oracle.naive_values import canonical
from tests.runners.spark.faults import Faulty
from tests.runners.spark.simulation import Answers, counted, rows_of
from tests.runners.spark.test_simulated import EX, STREAMS, drawn

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    Sink = Callable[[DataFrame, int], None]
    """Gets the results of a micro-batch, and its number."""

pytestmark = pytest.mark.xdist_group("spark")

QUERY = f"""PREFIX : <{EX}>
SELECT ?c (SUM(?v) AS ?n) (COUNT(*) AS ?m)
WHERE {{ STREAM :s [RANGE 60us] {{ ?c :v ?v }} STREAM :t [COUNT 9] {{ ?c :w ?w }} }}
GROUP BY ?c"""
ROWS = "time long, graph string, subject string, predicate string, object string"
ELEMENTS = drawn(11, 60)
PIECE = 10
"""Elements of a micro-batch."""


class Setting:
    """Folders of one streaming query: what comes in, the state, the checkpoint, and what came out by micro-batch."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        self.out = folder / "out"
        self.out.mkdir(exist_ok=True)
        for number in range(len(STREAMS)):
            (folder / f"in{number}").mkdir(exist_ok=True)

    def arrive(self, elements: Sequence[Element], first: int = 0) -> None:
        """Files with so many elements that each micro-batch takes one file of each stream."""
        for start in range(0, len(elements), PIECE):
            piece = elements[start : start + PIECE]
            rows = rows_of(piece, STREAMS, [f"g{first + start + i}" for i in range(len(piece))])
            for number in range(len(STREAMS)):
                table = pa.Table.from_batches([rows])
                table = table.filter(pa.compute.equal(table.column("stream"), number)).drop_columns(["stream"])
                path = self.folder / f"in{number}" / f"{first + start:04}.parquet"
                pq.write_table(table, path)
                # Spark takes files by age, to the millisecond.
                os.utime(path, (1_700_000_000 + first + start,) * 2)

    def frames(self) -> dict[str, DataFrame]:
        reader = self.spark.readStream.schema(ROWS).option("maxFilesPerTrigger", 1)
        return {iri: reader.parquet(str(self.folder / f"in{number}")) for number, iri in enumerate(STREAMS)}

    def keep(self, frame: DataFrame, batch: int) -> None:
        """A sink that is idempotent by micro-batch."""
        written = self.out / f".{batch}"
        pq.write_table(frame.toArrow(), written)
        written.rename(self.out / f"{batch}.parquet")

    def run(self, answers: DataFrame, sink: Sink | None = None) -> list[Any]:
        """Everything that is there, into a sink, `keep` if it is left out; gives Spark's progress."""
        writer = answers.writeStream.option("checkpointLocation", str(self.folder / "checkpoint"))
        query = writer.foreachBatch(sink or self.keep).trigger(availableNow=True).start()
        try:
            query.awaitTermination()
        finally:
            query.stop()
        return list(query.recentProgress)

    @property
    def state(self) -> Path:
        return self.folder / "state"

    def results(self) -> Answers:
        files = sorted(self.out.glob("*.parquet"))
        return counted([row for file in files for row in pq.read_table(file).to_pylist()])

    def batches(self) -> int:
        return len(list(self.out.glob("*.parquet")))


@pytest.fixture
def setting(spark: SparkSession, tmp_path: Path) -> Setting:
    return Setting(spark, tmp_path)


def local(text: str, elements: Sequence[Element]) -> Answers:
    """The local runner's results; its streams do not end either."""
    engine = cqels_py.Engine()
    query = engine.register(text, changelog=True)
    for element in elements:
        engine.push(str(element.stream), list(element.triples), time=element.time)
    engine.flush()
    return Counter(
        (r.time, r.sign, frozenset((name, canonical(term)) for name, term in r.bindings.items()))
        for r in query.results()
    )


def test_streams_of_files_give_the_local_results(setting: Setting) -> None:
    setting.arrive(ELEMENTS)
    setting.run(continuous(setting.frames(), QUERY, state=setting.state, changelog=True))
    assert setting.batches() == len(ELEMENTS) // PIECE
    assert setting.results() == local(QUERY, ELEMENTS)
    found = statistics(setting.state)
    assert (found.elements, found.late, found.results) == (60, 0, setting.results().total())


def test_a_query_continues_where_it_was_stopped(setting: Setting) -> None:
    """In more parts and fewer tasks."""
    setting.arrive(ELEMENTS[:30])
    setting.run(continuous(setting.frames(), QUERY, state=setting.state, changelog=True, partitions=3))
    more = setting.folder / "more"
    migrate(setting.state, QUERY, to=more, partitions=6, changelog=True)
    setting.arrive(ELEMENTS[30:], 30)
    setting.run(continuous(setting.frames(), QUERY, state=more, changelog=True, partitions=6, tasks=2))
    assert setting.batches() == len(ELEMENTS) // PIECE
    assert setting.results() == local(QUERY, ELEMENTS)


def faulty(setting: Setting, faults: Path, query: str = QUERY, stage: int = 0) -> DataFrame:
    from cqels_py.runners.spark.pipeline import transform

    job, plan = prepare(query, state=setting.state, partitions=2, changelog=True)
    return transform(cast("Job", Faulty(job, 3, faults, stage)), numbered(setting.frames(), plan))


@pytest.mark.parametrize(
    "names", [["exception"], ["kill"], ["exception-1", "kill-2"]], ids=lambda names: "-".join(names)
)
def test_a_micro_batch_that_fails_half_way_is_run_again(setting: Setting, names: list[str]) -> None:
    setting.arrive(ELEMENTS)
    faults = setting.folder / "faults"
    faults.mkdir()
    for name in names:
        (faults / name).touch()
    setting.run(faulty(setting, faults))
    assert list(faults.iterdir()) == [], "what should have happened has not"
    assert setting.results() == local(QUERY, ELEMENTS)


@pytest.mark.parametrize("names", [["exception"], ["kill"]], ids=lambda names: "-".join(names))
def test_a_later_stage_that_fails_half_way_is_run_again(setting: Setting, names: list[str]) -> None:
    """A chain by shares of two variables, then groups and first rows of its output."""
    text = f"""PREFIX : <{EX}> SELECT ?d (AVG(?e) AS ?n) WHERE {{ STREAM :s [RANGE 90us] {{ ?a :link ?b . ?b :v ?d }}
    STREAM :t [COUNT 20] {{ ?a :w ?e }} }} GROUP BY ?d ORDER BY ?n LIMIT 4"""
    setting.arrive(ELEMENTS)
    faults = setting.folder / "faults"
    faults.mkdir()
    for name in names:
        (faults / name).touch()
    setting.run(faulty(setting, faults, text, stage=1))
    assert list(faults.iterdir()) == [], "what should have happened has not"
    assert setting.results() == local(text, ELEMENTS)


def test_a_failed_query_continues_when_it_is_started_again(setting: Setting) -> None:
    from pyspark.errors import StreamingQueryException

    setting.arrive(ELEMENTS)
    faults = setting.folder / "faults"
    faults.mkdir()
    for number in range(20):
        (faults / f"exception-{number}").touch()
    with pytest.raises(StreamingQueryException, match="in the middle of a micro-batch"):
        setting.run(faulty(setting, faults))
    assert setting.batches() == 3
    for fault in faults.iterdir():
        fault.unlink()
    setting.run(faulty(setting, faults))
    assert setting.results() == local(QUERY, ELEMENTS)


def test_construct_writes_triples(setting: Setting) -> None:
    text = f"""PREFIX : <{EX}> CONSTRUCT {{ ?c :twice ?d . [] :of ?c ; :value ?v }}
    WHERE {{ STREAM :s [NOW] {{ ?c :v ?v }} BIND(?v * 2 AS ?d) }}"""
    setting.arrive(ELEMENTS)
    setting.run(continuous({STREAMS[0]: setting.frames()[STREAMS[0]]}, text, state=setting.state))
    rows: list[dict[str, Any]] = [
        row for file in sorted(setting.out.glob("*.parquet")) for row in pq.read_table(file).to_pylist()
    ]
    elements = [element for element in ELEMENTS if str(element.stream) == STREAMS[0]]
    values = [triple for element in elements for triple in element.triples if str(triple[1]) == EX + "v"]
    by_predicate = Counter(row["predicate"] for row in rows)
    assert by_predicate == {f"<{EX}{name}>": len(values) for name in ("twice", "of", "value")}
    nodes = {row["subject"] for row in rows if row["predicate"] == f"<{EX}of>"}
    assert len(nodes) == len(values), "each result has a node of its own"
    assert nodes == {row["subject"] for row in rows if row["predicate"] == f"<{EX}value>"}


def test_frames_without_required_columns_are_refused(
    setting: Setting, refuse: Callable[[dict[str, DataFrame], str], None]
) -> None:
    frames = setting.frames()
    refuse({STREAMS[0]: frames[STREAMS[0]]}, "give a data frame")
    refuse({**frames, EX + "other": frames[STREAMS[0]]}, "does not read the stream")
    refuse({**frames, STREAMS[1]: frames[STREAMS[1]].drop("time")}, "no column 'time'")
    still = setting.spark.createDataFrame([(1, "g", f"<{EX}c>", f"<{EX}v>", '"1"')], ROWS)
    refuse({**frames, STREAMS[1]: still}, "needs streaming data frames")
    numbers = frames[STREAMS[1]].withColumn("time", frames[STREAMS[1]]["time"].cast("double"))
    refuse({**frames, STREAMS[1]: numbers}, "column time is of type double")
    refuse({**frames, STREAMS[1]: still.toPandas()}, "a data frame of Spark, not DataFrame")
    refuse(frames[STREAMS[0]], "give data frames by the IRIs of their streams, not DataFrame")  # type: ignore[arg-type]
    assert not Path(setting.state).exists(), "nothing was written"


@pytest.fixture
def refuse(setting: Setting) -> Callable[[dict[str, DataFrame], str], None]:
    def check(frames: dict[str, DataFrame], message: str) -> None:
        with pytest.raises(cqels_py.UsageError, match=message):
            continuous(frames, QUERY, state=setting.state)

    return check


def test_heavy_values(setting: Setting) -> None:
    """In as many tasks as partitions; a query that is started again keeps those of its state."""
    text = f"""PREFIX : <{EX}> SELECT ?c ?v ?w WHERE {{ STREAM :s [RANGE 60us STEP 10us] {{ ?c :v ?v }}
               STREAM :t [RANGE 90us STEP 10us] {{ ?c :w ?w }} }}"""
    heavy = {"c": [f"<{EX}c0>", f"<{EX}c3>"]}
    setting.arrive(ELEMENTS[:30])
    setting.run(
        continuous(setting.frames(), text, state=setting.state, partitions=3, heavy=heavy, changelog=True, metrics=None)
    )
    assert len(loads(setting.state)[0]) == 9
    setting.arrive(ELEMENTS[30:], 30)
    setting.run(continuous(setting.frames(), text, state=setting.state, partitions=3, changelog=True, metrics=None))
    wanted = local(text, ELEMENTS)
    assert wanted
    assert setting.results() == wanted


def test_times_of_one_stream_are_texts(spark: SparkSession, tmp_path: Path) -> None:
    """Those of another one are timestamps, and those of a third one integers."""
    kinds = {
        "s": (pa.string(), "1970-01-01T00:00:01Z"),
        "t": (pa.timestamp("us", "UTC"), 2_000_000),
        "u": (pa.int64(), 3_000_000),
    }
    frames = {}
    for name, (kind, moment) in kinds.items():
        (tmp_path / name).mkdir()
        columns = {
            "time": pa.array([moment], kind),
            "subject": [f"<{EX}{name}>"],
            "predicate": [f"<{EX}v>"],
            "object": ['"1"'],
        }
        pq.write_table(pa.table(columns), tmp_path / name / "1.parquet")
        schema = spark.read.parquet(str(tmp_path / name)).schema
        frames[EX + name] = spark.readStream.schema(schema).parquet(str(tmp_path / name))
    branches = " UNION ".join(f"{{ STREAM <{EX}{name}> [RANGE 1h] {{ ?a <{EX}v> ?x }} }}" for name in kinds)
    answers = continuous(frames, f"SELECT ?a WHERE {{ {branches} }}", state=tmp_path / "state")
    told: list[tuple[float, str]] = []

    def keep(each: DataFrame, batch: int) -> None:
        told.extend((row["time"].timestamp(), row["a"]) for row in each.toArrow().to_pylist())

    writer = answers.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
    writer.foreachBatch(keep).start().awaitTermination()
    assert sorted(told) == [(1.0, f"<{EX}s>"), (2.0, f"<{EX}t>"), (3.0, f"<{EX}u>")]
