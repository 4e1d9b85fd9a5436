"""Streams and their partitions wait for each other: results do not depend on how far micro-batches take each of them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from cqels_py.algebra.nodes import Output
from cqels_py.engine.compile import compile_query
from cqels_py.errors import RunError, UsageError
from cqels_py.runners.spark import watermarks
from cqels_py.runners.spark.stage import PARTITION, PLANNED
from cqels_py.spark import prepare, statistics
from tests.oracle.naive import Element
from tests.runners.spark import simulation
from tests.runners.spark.test_own_elements import STAGES
from tests.runners.spark.test_simulated import DIVIDED, EX, STATIC, STREAMS, drawn
from tests.runners.spark.test_stages import MERGED

TWO_STREAMS = {
    name: DIVIDED[name] for name in ("join of windows", "now", "not exists", "optional", "union", "subquery")
} | {"step of several": STAGES["step of several"], "step and range": STAGES["step and range"]}
ONE_STREAM = {name: DIVIDED[name] for name in ("three patterns", "step", "rstream", "count")} | {
    name: MERGED[name] for name in ("groups", "top", "groups of groups", "rstream of one group", "by the clock")
}


@dataclass(frozen=True)
class Row:
    """An element, and the partition of its stream that it is in."""

    element: Element
    partition: int

    @property
    def source(self) -> tuple[str, int]:
        return str(self.element.stream), self.partition


def table(rows: Sequence[Row], streams: Sequence[str], planned: int, first: int) -> pa.RecordBatch:
    """As a task gets them: each in a graph of its own, whose number begins with `first`."""
    found = simulation.rows_of([row.element for row in rows], streams, [f"g{first + n}" for n in range(len(rows))])
    partitions = [row.partition for row in rows for _ in row.element.triples]
    columns = [*found.columns, pa.array(partitions, pa.int64()), pa.array([planned] * len(found), pa.int64())]
    return pa.RecordBatch.from_arrays(columns, names=[*found.schema.names, PARTITION, PLANNED])


def at_different_speeds(rows: Sequence[Row], chance: random.Random) -> Iterator[list[Row]]:
    """Micro-batches that take some of the rows of each partition, in its order; the first some of all, which are then waited for."""
    left: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        left.setdefault(row.source, []).append(row)
    counts = [1, 3, 15]
    while any(left.values()):
        batch: list[Row] = []
        for source, mine in left.items():
            count = chance.choice(counts)
            batch += mine[:count]
            left[source] = mine[count:]
        counts = [0, 1, 3, 15]
        yield batch


def results(
    text: str, batches: Sequence[tuple[int, list[Row]]], parts: int, chance: random.Random, **options: Any
) -> tuple[simulation.Answers, int]:
    """All results and the number of late elements, where micro-batches were planned at these times, each read by two tasks."""
    with simulation.scratch() as place:
        job, plan = prepare(
            text,
            state=place,
            partitions=parts,
            static=[list(STATIC.default)],
            changelog="REGISTER" not in text,
            **options,
        )
        cluster = simulation.Cluster(job, seed=parts, snapshots=0.5)
        found: list[dict[str, Any]] = []
        for number, (planned, rows) in enumerate(batches):
            tasks = [[row for row in rows if row.partition % 2 == task] for task in range(2)]
            chance.shuffle(tasks)
            tables = [table(each, plan.streams, planned, n << 20 | number << 10) for n, each in enumerate(tasks)]
            found += cluster.run(number, tables, final=number == len(batches) - 1)
        return simulation.counted(found), statistics(place).late


def rows_of(text: str, seed: int, partitions: int, chance: random.Random) -> list[Row]:
    """In order of time."""
    streams = compile_query(text, changelog="REGISTER" not in text).plan.streams
    elements = [each for each in drawn(seed, 90) if str(each.stream) in streams]
    return [Row(each, chance.randrange(partitions)) for each in elements]


def wanted(text: str, rows: Sequence[Row]) -> simulation.Answers:
    output = Output.CHANGELOG if "REGISTER" not in text else None
    found = simulation.expected(text, [row.element for row in rows], STATIC, output)
    assert found, "a query that never answers shows nothing"
    return found


@pytest.mark.parametrize("name", [*TWO_STREAMS, *ONE_STREAM])
def test_partitions_that_are_read_at_different_speeds(name: str) -> None:
    """Each is in order of its own: nothing is late, and the results are those of all elements in order of time."""
    text, chance = f"PREFIX : <{EX}> { {**TWO_STREAMS, **ONE_STREAM}[name] }", random.Random(name)
    for parts in (1, 3):
        rows = rows_of(text, chance.randrange(1000), 1 if name in TWO_STREAMS and parts == 1 else 3, chance)
        batches = [(0, each) for each in at_different_speeds(rows, chance)]
        found, late = results(text, batches, parts, chance, idle=1, partition="p")
        assert late == 0
        assert found == wanted(text, rows)


@pytest.mark.parametrize("name", ["top", "groups of groups", "rstream of one group", "by the clock", "three patterns"])
def test_lateness_of_parts_that_another_stage_follows(name: str) -> None:
    """The parts go on to the same instant in each micro-batch, though each has elements of its own only."""
    text, chance = f"PREFIX : <{EX}> {ONE_STREAM[name]}", random.Random(name)
    rows = rows_of(text, chance.randrange(1000), 1, chance)
    out_of_order = sorted(rows, key=lambda row: row.element.time + chance.randrange(30))
    batches = [(0, out_of_order[start : start + 7]) for start in range(0, len(rows), 7)]
    found, late = results(text, batches, 3, chance, lateness=30)
    assert late == 0
    assert found == wanted(text, rows)


class Naive:
    """The watermark, source by source, from the list of all that has come."""

    def __init__(self, streams: Sequence[str], lateness: dict[str, int], idle: int) -> None:
        self.streams, self.lateness, self.idle = streams, lateness, idle
        self.heard: list[tuple[int, Row]] = []
        self.time = -(1 << 60)

    def move(self, planned: int, rows: Sequence[Row], began: int) -> None:
        self.heard += [(planned, row) for row in rows]
        bounds = []
        for stream in self.streams:
            mine = [(when, row) for when, row in self.heard if row.source[0] == stream]
            if not mine and planned - began <= self.idle:
                return
            for partition in {row.partition for _, row in mine}:
                of_it = [(when, row.element.time) for when, row in mine if row.partition == partition]
                if planned - max(when for when, _ in of_it) <= self.idle:
                    bounds.append(max(time for _, time in of_it) - self.lateness.get(stream, 0))
        if bounds:
            self.time = max(self.time, min(bounds))


@pytest.mark.parametrize("seed", range(6))
def test_idle_partitions_are_not_waited_for(seed: int) -> None:
    """Those that speak again have late elements: exactly the ones of a naive watermark; the others give the results."""
    chance = random.Random(seed)
    text = f"PREFIX : <{EX}> {DIVIDED[chance.choice(['union', 'optional', 'not exists', 'now'])]}"
    streams = compile_query(text, changelog=True).plan.streams
    elements = drawn(seed, 150, disorder=chance.choice([0, 10]))
    rows = [Row(each, chance.randrange(2)) for each in elements if str(each.stream) in streams]
    lateness, idle = {STREAMS[0]: chance.choice([0, 15])}, chance.choice([4, 20])
    naive, accepted, now, batches, late = Naive(streams, lateness, idle), [], 1000, [], 0
    silent = chance.choice(rows).source
    for batch in at_different_speeds(rows, chance):
        if 1004 < now < 1040:
            batch = [row for row in batch if row.source != silent] or batch
        in_time = [row for row in batch if row.element.time >= naive.time]
        late += len(batch) - len(in_time)
        accepted += in_time
        batches.append((now, batch))
        if batch:
            naive.move(now, batch, 1000)
        now += chance.randrange(9)
    found, dropped = results(text, batches, 3, chance, idle=idle, partition="p", lateness_of=lateness)
    assert dropped == late
    assert found == wanted(text, sorted(accepted, key=lambda row: row.element.time))


def test_a_stream_that_says_nothing_is_waited_for_until_it_is_idle() -> None:
    text = f"PREFIX : <{EX}> {DIVIDED['union']}"
    rows = [Row(each, 0) for each in drawn(1, 40) if str(each.stream) == STREAMS[0]]
    with simulation.scratch() as place:
        job, plan = prepare(text, state=place, partitions=2, changelog=True, idle=10)
        cluster, told = simulation.Cluster(job), []
        for number, planned in enumerate((100, 110, 111)):
            piece = rows[3 * number : 3 * number + 3]
            told.append(len(cluster.run(number, [table(piece, plan.streams, planned, number << 10)])))
            assert statistics(place).elements == 3 * number + 3
    assert told[:2] == [0, 0]
    assert told[2] > 0


def test_micro_batches_without_rows_do_not_begin_the_time_for_which_streams_are_waited_for() -> None:
    """Such as those of messages that are all malformed: nobody has told when they were planned."""
    text = f"PREFIX : <{EX}> {DIVIDED['union']}"
    rows = [Row(each, 0) for each in drawn(1, 40) if str(each.stream) == STREAMS[0]]
    batches = [(100, []), (100, []), (110, rows[:3]), (120, rows[3:6]), (120, []), (121, rows[6:9])]
    with simulation.scratch() as place:
        job, plan = prepare(text, state=place, partitions=2, changelog=True, idle=10)
        cluster, told = simulation.Cluster(job), []
        for number, (planned, piece) in enumerate(batches):
            told.append(len(cluster.run(number, [table(piece, plan.streams, planned, number << 10)])))
    assert told[:5] == [0] * 5
    assert told[5] > 0


def test_too_many_partitions_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watermarks, "_MOST_PARTITIONS", 20)
    text = f"PREFIX : <{EX}> {DIVIDED['union']}"
    rows = [Row(each, number) for number, each in enumerate(drawn(1, 40))]
    with pytest.raises(RunError, match="more than 20 values"):
        results(text, [(0, rows)], 1, random.Random(0), partition="p")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"idle": 0}, "idle is microseconds, more than 0"),
        ({"lateness_of": {EX + "x": 1}}, "names the stream <http://ex.org/x>, which the query does not read"),
        ({"lateness_of": {STREAMS[0]: -1}}, "lateness_of <http://ex.org/s> is 0 or more"),
        ({"partition": {EX + "x": "p"}}, "partition names the stream <http://ex.org/x>"),
    ],
)
def test_options_that_are_none(options: dict[str, Any], message: str) -> None:
    with simulation.scratch() as place, pytest.raises(UsageError, match=message):
        prepare(f"PREFIX : <{EX}> {DIVIDED['union']}", state=place, partitions=2, **options)


def test_a_state_is_continued_with_the_same_options() -> None:
    text = f"PREFIX : <{EX}> {DIVIDED['union']}"
    with simulation.scratch() as place:
        prepare(text, state=place, partitions=2, idle=5)
        prepare(text, state=place, partitions=2, idle=5)
        with pytest.raises(UsageError, match="another lateness_of, partition or idle"):
            prepare(text, state=place, partitions=2, idle=6)


@pytest.mark.xdist_group("spark")
def test_on_spark(spark: Any, tmp_path: Any) -> None:
    """A stream whose partitions are hours apart in one micro-batch: its rows carry the time at which Spark planned that."""
    import pyarrow.parquet as pq

    from cqels_py.spark import continuous

    frames = {}
    for stream, times in (("s", [1, 50, 20, 60]), ("t", [3, 4, 55])):
        (tmp_path / stream).mkdir()
        rows = [
            {"time": time, "subject": f"<{EX}a{time}>", "predicate": f"<{EX}{'v' if stream == 's' else 'w'}>", "object": '"1"',
             "graph": str(time), "partition": place % 2}
            for place, time in enumerate(times)
        ]  # fmt: skip
        pq.write_table(pa.Table.from_pylist(rows[:2]), tmp_path / stream / "1.parquet")
        pq.write_table(pa.Table.from_pylist(rows[2:]), tmp_path / stream / "2.parquet")
        schema = spark.read.parquet(str(tmp_path / stream)).schema
        reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        frames[EX + stream] = reader.parquet(str(tmp_path / stream))
    text = f"PREFIX : <{EX}> SELECT ?a WHERE {{ {{ STREAM :s [ALL] {{ ?a :v ?x }} }} UNION {{ STREAM :t [ALL] {{ ?a :w ?x }} }} }}"
    with pytest.raises(UsageError, match="partition names the column 'part'"):
        continuous(frames, text, state=tmp_path / "state", partition="part")
    answers = continuous(frames, text, state=tmp_path / "state", partition={EX + "s": "partition"}, idle=10**12)
    told: list[list[str]] = []
    writer = answers.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.foreachBatch(lambda each, batch: told.append(sorted(each.toArrow().column("a").to_pylist()))).start()
    query.processAllAvailable()
    query.stop()
    # First one partition of s is at 1, then the least of 20, 60 and 55 is 20.
    assert [each for each in told if each] == [[f"<{EX}a{time}>" for time in (1, 3, 4)]]
    assert statistics(tmp_path / "state").late == 0
