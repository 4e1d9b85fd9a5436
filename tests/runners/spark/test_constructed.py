"""CONSTRUCT queries whose results are elements for other queries: as in an engine that has all of them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from rdflib import BNode, URIRef

import cqels_py
from cqels_py.distribution.stages import stages_of
from cqels_py.engine.compile import compile_query
from cqels_py.errors import UsageError
from cqels_py.runners.spark.describe import describe
from cqels_py.runners.spark.stage import PARTITION, PLANNED, TIME, told_of
from cqels_py.runners.spark.watermarks import LatestTimes, Waiting, Watermarks
from cqels_py.spark import constructed, continuous, counts_in, loads, migrate, prepare, statistics
from tests.oracle.naive import Element
from tests.oracle.naive_values import canonical
from tests.runners.spark import simulation
from tests.runners.spark.simulation import Answers, Cluster
from tests.runners.spark.test_simulated import EX, STREAMS, drawn
from tests.runners.spark.test_streaming import ELEMENTS, Setting

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FED = EX + "fed"
PREFIX = f"PREFIX : <{EX}> "
FIRST = {
    "a filter": "CONSTRUCT { ?c :high ?v } WHERE { STREAM :s [RANGE 40us] { ?c :v ?v FILTER(?v > 1) } }",
    "a join": """CONSTRUCT { ?c :both ?v . ?c :both ?w . ?v :is ?c } WHERE {
                 STREAM :s [RANGE 60us] { ?c :v ?v } STREAM :t [RANGE 90us] { ?c :w ?w } }""",
    "a chain": "CONSTRUCT { ?a :far ?d } WHERE { STREAM :s [RANGE 50us] { ?a :link ?b . ?b :link ?c . ?c :link ?d } }",
    "groups": """CONSTRUCT { ?c :seen ?n } WHERE {
                 SELECT ?c (COUNT(*) AS ?n) WHERE { STREAM :s [RANGE 90us] { ?c :v ?x } } GROUP BY ?c }""",
    "counts": "CONSTRUCT { ?c :high ?v } WHERE { STREAM :s [COUNT 7] { ?c :v ?v } }",
    "blank nodes": "CONSTRUCT { [] :of ?c ; :value ?v } WHERE { STREAM :s [RANGE 40us] { ?c :v ?v . ?c :w ?w } }",
    "whole answers": """REGISTER RSTREAM <o> AS CONSTRUCT { ?c :high ?v }
                        FROM NAMED WINDOW <w> ON :s [RANGE PT0.00006S STEP PT0.00002S] WHERE { WINDOW <w> { ?c :v ?v } }""",
    "extremes": """CONSTRUCT { :all :most ?m } WHERE {
                   SELECT (MAX(?v) AS ?m) WHERE { STREAM :s [RANGE 60us] { ?c :v ?v } } }""",
}
SECOND = {
    "triples": "SELECT ?s ?p ?o WHERE { STREAM :fed [RANGE 25us] { ?s ?p ?o } }",
    "the number": "SELECT (COUNT(*) AS ?n) WHERE { STREAM :fed [RANGE 35us] { ?s ?p ?o } }",
    "elements": "SELECT ?s (COUNT(*) AS ?n) WHERE { STREAM :fed [COUNT 3] { ?s ?p ?o } } GROUP BY ?s",
    "with the source": "SELECT ?s ?w WHERE { STREAM :fed [RANGE 50us] { ?s ?p ?o } STREAM :t [RANGE 50us] { ?s :w ?w } }",
    "boundaries": "SELECT ?s (COUNT(*) AS ?n) WHERE { STREAM :fed [RANGE 60us STEP 20us] { ?s ?p ?o } } GROUP BY ?s",
}


def in_an_engine(first: str, second: str, elements: Sequence[Element]) -> list[Any]:
    engine = cqels_py.Engine()
    feeding, reading = engine.register(PREFIX + first), engine.register(PREFIX + second, changelog=True)
    engine.connect(feeding, FED)
    last = 0
    for each in elements:
        if str(each.stream) in {*feeding.streams, *reading.streams}:
            engine.push(str(each.stream), list(each.triples), time=each.time)
            last = each.time
    # Without a later element of its streams a query in an engine does not tell what follows from time alone.
    engine.advance(last)
    return list(reading.results())


def answers(results: Sequence[Any]) -> Answers:
    return Counter(
        (r.time, r.sign, frozenset((name, canonical(term)) for name, term in r.bindings.items())) for r in results
    )


def in_stages(first: str, second: str, elements: Sequence[Element], parts: int, seed: int) -> list[dict[str, Any]]:
    """The rows of the second query, of micro-batches whose sizes are drawn."""
    chance = random.Random(seed)
    rows: list[dict[str, Any]] = []
    with ExitStack() as stack:
        folders = [stack.enter_context(simulation.scratch()) for _ in range(2)]
        job, plan = prepare(PREFIX + first, state=folders[0], partitions=parts, graphs=True)
        document = {FED: "constructed"}
        after, reads = prepare(PREFIX + second, state=folders[1], partitions=parts, changelog=True, document=document)
        one, other = Cluster(job, seed=seed, snapshots=0.5), Cluster(after, seed=seed + 1, snapshots=0.5)
        start = batch = 0
        while start < len(elements):
            piece = elements[start : start + chance.randrange(1, 12)]
            tasks = [rows_of(piece, plan.streams, start)]
            if others := [each.time for each in piece if str(each.stream) in reads.streams]:
                tasks.append(pa.RecordBatch.from_pylist([{"stream": TIME, "time": max(others)}], simulation.ROWS))
            made = one.run(batch, tasks)
            assert all(row["sign"] == 1 for row in made)
            mine = [rows_of(piece, reads.streams, start), graphs_of(made, reads.streams.index(FED), one.watermark)]
            rows += other.run(batch, mine)
            start, batch = start + len(piece), batch + 1
    return rows


def rows_of(piece: Sequence[Element], streams: Sequence[str], start: int) -> pa.RecordBatch:
    read = [each for each in piece if str(each.stream) in streams]
    return simulation.rows_of(read, streams, [f"g{start}x{n}" for n in range(len(read))])


def graphs_of(rows: Sequence[dict[str, Any]], stream: int, watermark: int | None) -> pa.RecordBatch:
    """As the pipeline hands the first query's rows to the routing of the second."""
    made = [
        {
            **{name: row[name] for name in ("subject", "predicate", "object")},
            "stream": stream,
            "time": round(row["time"].timestamp() * 1_000_000),
            "graph": row["element"],
        }
        for row in rows
    ]
    told = [] if watermark is None else [{"stream": TIME, "time": watermark}]
    return pa.RecordBatch.from_pylist([*made, *told], simulation.ROWS)


def without_nodes(found: Answers) -> Answers:
    """Their blank nodes all become one."""
    changed: Answers = Counter()
    for (time, sign, mapping), count in found.items():
        changed[time, sign, frozenset((k, BNode("one") if isinstance(v, BNode) else v) for k, v in mapping)] += count
    return changed


def nodes_in(found: Answers) -> int:
    return len({term for _, _, mapping in found for _, term in mapping if isinstance(term, BNode)})


def pairs() -> list[tuple[str, str, int]]:
    """Each of the first with one of the second, in one part or several."""
    others = list(SECOND)
    return [(one, others[n % len(others)], 1 if n % 4 == 3 else 3) for n, one in enumerate(FIRST)]


@pytest.mark.parametrize(("first", "second", "parts"), pairs(), ids=[", ".join(each[:2]) for each in pairs()])
def test_as_an_engine_with_both(first: str, second: str, parts: int) -> None:
    elements = drawn(len(first) * len(second), 60, subjects=5)
    wanted = answers(in_an_engine(FIRST[first], SECOND[second], elements))
    found = simulation.counted(in_stages(FIRST[first], SECOND[second], elements, parts, seed=parts))
    assert wanted
    if first == "blank nodes":
        # Their names differ from those in an engine.
        assert without_nodes(found) == without_nodes(wanted)
        assert nodes_in(found) == nodes_in(wanted) > 1
    else:
        assert found == wanted


def at_other_speeds(first: str, second: str, elements: Sequence[Element], parts: int, seed: int) -> tuple[Answers, int]:
    """The results and the number of late elements, where two partitions of each stream are read at speeds that are drawn."""
    chance = random.Random(seed)
    left: dict[tuple[str, int], list[Element]] = {}
    for each in elements:
        left.setdefault((str(each.stream), chance.randrange(2)), []).append(each)
    rows: list[dict[str, Any]] = []
    with ExitStack() as stack:
        folders = [stack.enter_context(simulation.scratch()) for _ in range(2)]
        idle: dict[str, Any] = {"partitions": parts, "idle": 1_000, "partition": "p"}
        job, plan = prepare(PREFIX + first, state=folders[0], graphs=True, **idle)
        after, reads = prepare(PREFIX + second, state=folders[1], changelog=True, fed=(FED,), **idle)
        one, other = Cluster(job, seed=seed, snapshots=0.5), Cluster(after, seed=seed + 1, snapshots=0.5)
        batch = 0
        while True:
            pieces = {}
            for source, mine in left.items():
                count = chance.choice([0, 1, 3, 15]) if batch else 1
                pieces[source], left[source] = mine[:count], mine[count:]
            # At the end one partition of each stream goes on, and the others have been silent for long.
            at_end, now = not any(pieces.values()) and not any(left.values()), 7
            ends: list[dict[str, Any]] = [{"time": max(each.time for each in elements) + 1}] if at_end else []
            now += 2_000 * at_end
            tasks = partitioned(pieces, plan.streams, batch, ends, now)
            made = one.run(batch, tasks)
            number = reads.streams.index(FED)
            told = [] if one.watermark is None else [{"stream": told_of(number), "time": one.watermark}]
            rows_of_fed = [*graphs_of(made, number, None).to_pylist(), *told]
            fed = in_partition(pa.RecordBatch.from_pylist(rows_of_fed, simulation.ROWS), 0, now)
            rows += other.run(batch, [*partitioned(pieces, reads.streams, batch, ends, now), fed])
            batch += 1
            if at_end:
                return simulation.counted(rows), sum(statistics(each).late for each in folders)


def partitioned(
    pieces: dict[tuple[str, int], list[Element]],
    streams: Sequence[str],
    batch: int,
    ends: Sequence[dict[str, Any]],
    now: int,
) -> list[pa.RecordBatch]:
    found = [in_partition(rows_of(piece, streams, 9 * batch + n), n, now) for (_, n), piece in pieces.items()]
    told = [{**end, "stream": told_of(n)} for end in ends for n, iri in enumerate(streams) if iri != FED]
    return [*found, in_partition(pa.RecordBatch.from_pylist(told, simulation.ROWS), 0, now)]


def in_partition(rows: pa.RecordBatch, number: int, now: int) -> pa.RecordBatch:
    """With the columns by which partitions wait for each other."""
    return rows.append_column(PARTITION, pa.array([number] * len(rows), pa.int64())).append_column(
        PLANNED, pa.array([now] * len(rows), pa.int64())
    )


@pytest.mark.parametrize(("first", "second"), [("a filter", "triples"), ("a join", "with the source")])
@pytest.mark.parametrize("parts", [1, 3])
def test_queries_wait_for_each_other_and_for_partitions(first: str, second: str, parts: int) -> None:
    for seed in range(3):
        read = {STREAMS[0], *([STREAMS[1]] if "source" in second else [])}
        elements = [each for each in drawn(seed + 70, 60, subjects=5) if str(each.stream) in read]
        wanted = answers(in_an_engine(FIRST[first], SECOND[second], elements))
        found, late = at_other_speeds(FIRST[first], SECOND[second], elements, parts, seed)
        assert wanted
        assert late == 0
        last = max(each.time for each in elements)
        assert Counter({each: n for each, n in found.items() if each[0] <= last}) == wanted


def test_a_query_whose_time_stands_still_is_not_waited_for_any_longer() -> None:
    waiting = Waiting((0, 0), 10, (None, None), frozenset([1]))
    marks = Watermarks(waiting)
    for now, own, told, wanted in ((0, 5, 3, 3), (8, 9, 3, 3), (11, 20, 3, 20), (12, 30, 25, 25)):
        marks.move([LatestTimes.of({(0, 0): own, (1, 0): told}, now)], None, final=False)
        assert marks.time == wanted


def test_the_last_stage_has_one_part() -> None:
    plan = compile_query(PREFIX + FIRST["a filter"]).plan
    first, last = stages_of(plan, 3, graphs=True)
    assert (first.parts, last.parts, last.reason) == (3, 1, "the results of a tick are one element of a stream")
    assert len(stages_of(plan, 3)) == 1
    assert "cqels_py.spark.constructed" in describe(plan, 3)
    assert "cqels_py.spark.constructed" not in describe(compile_query(PREFIX + SECOND["triples"]).plan, 3)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (SECOND["triples"].replace(":fed", ":s"), "fed by a SELECT query"),
        (
            "REGISTER DSTREAM <o> AS CONSTRUCT { ?c :high ?v } FROM NAMED WINDOW <w> ON :s [RANGE PT9S] "
            "WHERE { WINDOW <w> { ?c :v ?v } }",
            "the DSTREAM of a query",
        ),
    ],
)
def test_what_cannot_feed_is_refused(query: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        prepare(PREFIX + query, state=tmp_path / "state", partitions=2, graphs=True)
    assert not (tmp_path / "state").exists()


def test_the_state_is_split(tmp_path: Path) -> None:
    """As another one, by `migrate`, which finds that its results are elements."""
    elements = [each for each in drawn(3, 60) if str(each.stream) == STREAMS[0]]
    wanted = [(row["time"], row["subject"], row["object"]) for row in elements_of(tmp_path / "whole", [elements])]
    halves = elements[:15], elements[15:]
    rows = elements_of(tmp_path / "one", halves[:1])
    migrate(tmp_path / "one", PREFIX + FIRST["a filter"], to=tmp_path / "two", partitions=4)
    rows += elements_of(tmp_path / "two", halves[1:], parts=4, before=1)
    assert sorted((row["time"], row["subject"], row["object"]) for row in rows) == sorted(wanted)
    assert [len(each) for each in loads(tmp_path / "two")] == [4, 1]


def test_the_state_of_the_next_query_is_split(tmp_path: Path) -> None:
    """It goes on as one whose stream has the results of another query."""
    text = PREFIX + "SELECT ?c ?v WHERE { STREAM :fed [RANGE 50us] { ?c :v ?v } }"
    elements = [replace(each, stream=URIRef(FED)) for each in drawn(3, 60) if str(each.stream) == STREAMS[0]]

    def results_of(name: str, parts: int, numbers: range) -> list[dict[str, Any]]:
        job, plan = prepare(text, state=tmp_path / name, partitions=parts, changelog=True, fed=(FED,))
        cluster, found = Cluster(job, chance=0), []
        for number in numbers:
            piece = elements[number * 10 : number * 10 + 10]
            found += cluster.run(number, [rows_of(piece, plan.streams, 100 * number)])
        return found

    wanted = results_of("whole", 2, range(3))
    found = results_of("one", 2, range(1))
    migrate(tmp_path / "one", text, to=tmp_path / "two", partitions=4, changelog=True)
    found += results_of("two", 4, range(1, 3))
    assert wanted
    assert simulation.counted(found) == simulation.counted(wanted)


def elements_of(
    state: Path, pieces: Sequence[Sequence[Element]], *, parts: int = 2, before: int = 0
) -> list[dict[str, Any]]:
    job, plan = prepare(PREFIX + FIRST["a filter"], state=state, partitions=parts, graphs=True)
    cluster = Cluster(job, chance=0)
    return [
        row
        for number, piece in enumerate(pieces, before)
        for row in cluster.run(number, [rows_of(piece, plan.streams, 100 * number)])
    ]


@pytest.mark.xdist_group("spark")
def test_two_queries_in_one_streaming_query(spark: SparkSession, tmp_path: Path) -> None:
    setting = Setting(spark, tmp_path)
    frames = setting.frames()
    one, other = PREFIX + FIRST["a join"], PREFIX + SECOND["with the source"]
    fed = constructed(frames, one, state=tmp_path / "fed", metrics="fed")
    assert fed.columns == ["time", "subject", "predicate", "object", "element"]
    reading = {FED: fed, STREAMS[1]: frames[STREAMS[1]]}
    for text, message in (
        (other.replace("STREAM :fed [RANGE 50us]", "STREAM :fed [RANGE 50us] @ :at"), "leave out @"),
        (other.replace("{ ?s ?p ?o }", "{ GRAPH ?g { ?s ?p ?o } }"), "leave out GRAPH"),
    ):
        with pytest.raises(UsageError, match=message):
            continuous(reading, text, state=tmp_path / "refused")
    with pytest.raises(UsageError, match="give clock='wall' to `constructed`"):
        continuous(reading, other, state=tmp_path / "refused", clock="wall")
    with pytest.raises(UsageError, match="leave out beside"):
        constructed(frames, one, state=tmp_path / "refused", idle=9, beside=[frames[STREAMS[1]]])
    waits = constructed(frames, one, state=tmp_path / "waits", idle=9)
    with pytest.raises(UsageError, match="give this query `idle`, too"):
        continuous({**reading, FED: waits}, other, state=tmp_path / "refused")
    with pytest.raises(UsageError, match="streaming data frames with a column time"):
        constructed(frames, one, state=tmp_path / "refused", beside=[fed.drop("time")])
    with pytest.raises(UsageError, match="as the results of a query"):
        results = continuous(frames, one, state=tmp_path / "plain")
        continuous({**reading, FED: results}, other, state=tmp_path / "refused")
    setting.arrive(ELEMENTS[:20])
    progress = setting.run(continuous(reading, other, state=setting.state, changelog=True))
    setting.arrive(ELEMENTS[20:40], first=20)
    again = constructed(frames, one, state=tmp_path / "fed", metrics="fed")
    progress += setting.run(continuous({**reading, FED: again}, other, state=setting.state, changelog=True))
    wanted = answers(in_an_engine(FIRST["a join"], SECOND["with the source"], ELEMENTS[:40]))
    assert wanted
    assert setting.results() == wanted
    told = [counts for each in progress if (counts := counts_in(each, "fed")) is not None]
    assert told[-1].watermark == max(each.time for each in ELEMENTS[:40])
    assert sum(each.results for each in told) > 0


@pytest.mark.xdist_group("spark")
def test_the_next_query_waits_in_a_streaming_query(spark: SparkSession, tmp_path: Path) -> None:
    setting = Setting(spark, tmp_path)
    frames, hour = setting.frames(), 3_600_000_000
    one, other = PREFIX + FIRST["a join"], PREFIX + SECOND["with the source"]
    fed = constructed(frames, one, state=tmp_path / "fed", metrics="fed", idle=hour)
    reading = {FED: fed, STREAMS[1]: frames[STREAMS[1]]}
    setting.arrive(ELEMENTS[:40])
    progress = setting.run(continuous(reading, other, state=setting.state, changelog=True, idle=hour))
    first, second = ([counts for each in progress if (counts := counts_in(each, name))] for name in ("fed", "cqels"))
    assert first[-1].watermark == second[-1].watermark
    assert sum(each.late for each in (*first, *second)) == 0
    missing = answers(in_an_engine(FIRST["a join"], SECOND["with the source"], ELEMENTS[:40]))
    found = setting.results()
    assert found
    assert not found - missing
    missing.subtract(found)
    # What is not before the watermark waits.
    assert all(time >= (second[-1].watermark or 0) for (time, _, _), count in missing.items() if count)
