"""Each documented option takes part in a query that is started: few queries, each with many of them, one of them constructed.

The clauses of the queries name the constructed stream last.
"""

from __future__ import annotations

import inspect
import json
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rdflib import XSD, Literal, URIRef

import cqels_py
import cqels_py.spark
from cqels_py.spark import constructed, continuous, counts_in, heavy_values, migrate, parse, statistics, warm
from tests.runners.spark.simulation import Answers
from tests.runners.spark.test_constructed import FED, answers
from tests.runners.spark.test_messages import KAFKA, kafka
from tests.runners.spark.test_simulated import EX, STREAMS
from tests.runners.spark.test_streaming import ELEMENTS, Setting

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Options = dict[str, Any]
HOUR = 3_600_000_000
LATENESS = 5
AGES = 1 << 52
"""Microseconds that the clock is behind, so that it comes to no element of a test."""

THINGS = "?c a :Thing . GRAPH :rooms { ?c :in ?r }"
ONE = f"""PREFIX : <{EX}> CONSTRUCT {{ ?c :high ?v }} WHERE {{
    STREAM :s [RANGE 160us] {{ ?c :v ?v }} STREAM :t [RANGE 190us] {{ ?c :w ?w }} {THINGS} }}"""
TWO = f"""PREFIX : <{EX}> SELECT ?c ?w ?o ?r WHERE {{
    STREAM :t [RANGE 120us] {{ ?c :w ?w }} STREAM :fed [RANGE 120us] {{ ?c :high ?o }} {THINGS} }}"""
ROOMS = "".join(f"<{EX}c{n}> <{EX}in> <{EX}room{n % 2}> .\n" for n in range(8)).encode()

MAP = f"PREFIX : <{EX}> CONSTRUCT {{ ?s :value ?value ; :of ?topic }} WHERE {{ BIND(IRI(CONCAT(STR(:), ?sensor)) AS ?s) }}"
PARSED = (
    f'PREFIX : <{EX}> CONSTRUCT {{ ?s :high ?v }} WHERE {{ STREAM :m [ALL] {{ ?s :value ?v . ?s :of "readings" }} }}'
)
JOINED = f"""PREFIX : <{EX}> SELECT ?s ?v ?o WHERE {{
    STREAM :n [ALL] {{ ?s :other ?o }} STREAM :fed [ALL] {{ ?s :high ?v }} }}"""


def contexts(folder: Path) -> Options:
    path = folder / "context.json"
    names = {"a": "@type", "sub": "http://www.w3.org/2000/01/rdf-schema#subClassOf", "other": f"{EX}other"}
    at = {"@id": f"{EX}at", "@type": str(XSD.integer)}
    path.write_text(json.dumps({"@context": {"@vocab": EX, "@base": EX, **names, "at": at}}))
    return {f"{EX}context": path}


def of_static_data(folder: Path) -> Options:
    """Of eight subjects six are things, by RDFS."""
    path = folder / "things.jsonld"
    nodes = [{"@id": f"{EX}Kind", "sub": {"@id": f"{EX}Thing"}}, *({"@id": f"{EX}c{n}", "a": "Kind"} for n in range(6))]
    path.write_text(json.dumps({"@context": f"{EX}context", "@graph": nodes}))
    return {
        "static": path,
        "static_graphs": {f"{EX}rooms": ROOMS},
        "entailment": "rdfs",
        "contexts": contexts(folder),
    }


def of_lateness(folder: Path) -> Options:
    common = {"partitions": 2, "heavy": {"c": [f"<{EX}c0>"]}, "document": "things"}
    return {**common, "lateness": LATENESS, "lateness_of": {STREAMS[1]: LATENESS}, **of_static_data(folder)}


CLOCK: Options = {"clock": "wall", "clock_delay": AGES, "tasks": 1, "on_error": "skip", "metrics": "fed", "retain": 9}
EVENTS: Options = {
    "clock": "events",
    "clock_delay": 9,
    "tasks": 2,
    "on_error": "skip",
    "metrics": "two",
    "net": True,
    "retain": 9,
}
WAITING: Options = {"idle": HOUR, "partition": "partition"}
WARM: Options = {"partitions": 2, "changelog": True, "tasks": 2}
OF_A_MAP: Options = {"format": "auto", "map": None, "column": "value", "arrival": "timestamp", "topic": "topic"}
OF_JSON_LD: Options = {"format": "jsonld", "time_predicate": f"{EX}at", "contexts": None}
OF_PARTITIONS: Options = {"partition": "partition", "on_error": "stop"}


def test_all_options_are_tried(tmp_path: Path) -> None:
    lateness = {*of_lateness(tmp_path)}
    tried: Mapping[Callable[..., Any], set[str]] = {
        constructed: {*lateness, *CLOCK, *WAITING, "state", "beside"},
        continuous: {*lateness, *EVENTS, *WAITING, "state", "changelog"},
        migrate: {*lateness, *WAITING, "to", "changelog", "session"},
        parse: {*OF_A_MAP, *OF_JSON_LD, *OF_PARTITIONS},
        heavy_values: {"session"},
        warm: {*WARM, "session"},
    }
    for function, options in tried.items():
        parameters = inspect.signature(function).parameters.values()
        offered = {each.name for each in parameters if each.kind == each.KEYWORD_ONLY or each.default != each.empty}
        assert options == offered, function.__name__


def engine_answers(
    queries: Sequence[str], pushed: Sequence[tuple[str, Any, int]], options: Options, folder: Path
) -> list[Any]:
    engine = cqels_py.Engine(contexts=contexts(folder))
    feeding = engine.register(queries[0], **options)
    reading = engine.register(queries[1], changelog=True, **options)
    engine.connect(feeding, FED)
    for iri, triples, time in pushed:
        engine.push(iri, triples, time=time)
    engine.advance(max(time for _, _, time in pushed))
    return list(reading.results())


def held(found: Answers) -> Counter[Any]:
    """A sink after these changes."""
    kept: Counter[Any] = Counter()
    for (_, sign, mapping), count in found.items():
        kept[mapping] += sign * count
    return +kept


@pytest.mark.xdist_group("spark")
def test_lateness_static_data_and_the_clock(spark: SparkSession, tmp_path: Path) -> None:
    setting = Setting(spark, tmp_path)
    options = of_lateness(tmp_path)
    frames = setting.frames()
    wanted = answers(
        engine_answers(
            (ONE, TWO),
            [(str(each.stream), list(each.triples), each.time) for each in ELEMENTS],
            {name: options[name] for name in ("static", "static_graphs", "entailment")},
            tmp_path,
        )
    )

    def run(state: Path, partitions: int) -> list[Any]:
        fed = constructed(frames, ONE, state=tmp_path / "fed", beside=[frames[STREAMS[1]]], **options, **CLOCK)
        more = {**options, "partitions": partitions}
        found = continuous(
            {FED: fed, STREAMS[1]: frames[STREAMS[1]]}, TWO, state=state, changelog=True, **more, **EVENTS
        )
        return setting.run(found)

    assert sum(warm(TWO, session=spark, **WARM).values()) >= 0
    setting.arrive(ELEMENTS[:30])
    malformed = {
        "time": [ELEMENTS[29].time],
        "graph": ["g"],
        "subject": ["no"],
        "predicate": ["<p>"],
        "object": ["<o>"],
    }
    path = setting.folder / "in0" / "malformed.parquet"
    pq.write_table(pa.table(malformed), path)
    # Spark leaves out files that are weeks older than the newest.
    os.utime(path, (1_700_000_000 + 29,) * 2)
    run(setting.state, 2)
    assert heavy_values(setting.state, session=spark).keys() <= {"c"}
    assert statistics(tmp_path / "fed").malformed == 1
    more = tmp_path / "more"
    migrate(setting.state, TWO, to=more, changelog=True, session=spark, **{**options, "partitions": 4})
    setting.arrive(ELEMENTS[30:], 30)
    progress = run(more, 4)
    told = [counts for each in progress if (counts := counts_in(each, "two")) is not None]
    until = max(each.watermark or 0 for each in told)
    assert until == ELEMENTS[-1].time - LATENESS
    found = held(setting.results())
    assert found
    assert found == held(Counter({each: count for each, count in wanted.items() if each[0] <= until}))
    assert (statistics(more).late, statistics(tmp_path / "fed").late) == (0, 0)


@pytest.mark.xdist_group("spark")
def test_messages_whose_partitions_wait(spark: SparkSession, tmp_path: Path) -> None:
    setting = Setting(spark, tmp_path)
    readings = [json.dumps({"sensor": f"s{n % 4}", "value": n}).encode() for n in range(40)]
    others = [
        json.dumps({"@context": f"{EX}context", "@id": f"{EX}s{n % 5}", "other": n, "at": 1_000 + n}).encode()
        for n in range(40)
    ]
    where = contexts(tmp_path)

    def parsed(name: str, **options: Any) -> DataFrame:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        if not list(folder.iterdir()):
            pq.write_table(kafka(*readings[:0]), folder / "none.parquet")
        schema = spark.read.parquet(str(folder)).schema
        reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        return parse(reader.parquet(str(folder)), **options, **OF_PARTITIONS).triples

    def arrive(first: int, last: int) -> None:
        for name, values in (("m", readings), ("n", others)):
            table = kafka(*values).slice(first, last - first).cast(KAFKA)
            pq.write_table(table, tmp_path / name / f"{first}.parquet")

    def run(state: Path, partitions: int) -> list[Any]:
        own = {**OF_A_MAP, "map": cqels_py.mappings.mapping.Mapping.of(MAP)}
        fed = constructed({f"{EX}m": parsed("m", **own)}, PARSED, state=tmp_path / "fed", metrics="fed", **WAITING)
        other = parsed("n", **{**OF_JSON_LD, "contexts": where})
        waiting = {**WAITING, "partition": {f"{EX}n": "partition"}}
        frames = {f"{EX}n": other, FED: fed}
        return setting.run(
            continuous(frames, JOINED, state=state, partitions=partitions, changelog=True, metrics="two", **waiting)
        )

    for name in ("m", "n"):
        (tmp_path / name).mkdir()
    arrive(0, 20)
    run(setting.state, 2)
    waiting = {**WAITING, "partition": {f"{EX}n": "partition"}}
    migrate(setting.state, JOINED, to=tmp_path / "more", partitions=4, changelog=True, **waiting)
    arrive(20, 40)
    progress = run(tmp_path / "more", 4)
    (*_, last) = (counts for each in progress if (counts := counts_in(each, "two")) is not None)
    pushed = []
    for n in range(40):
        of = [(URIRef(f"{EX}s{n % 4}"), URIRef(EX + "value"), Literal(n))]
        of.append((of[0][0], URIRef(EX + "of"), Literal("readings")))
        pushed.append((f"{EX}m", of, 1_000 + n))
        pushed.append((f"{EX}n", [(URIRef(f"{EX}s{n % 5}"), URIRef(EX + "other"), Literal(n))], 1_000 + n))
    wanted = answers(engine_answers((PARSED, JOINED), pushed, {}, tmp_path))
    found = setting.results()
    assert last.watermark is not None
    assert last.watermark >= 1_035
    before = {each: count for each, count in wanted.items() if each[0] < last.watermark}
    assert held(found) == held(Counter(before))
