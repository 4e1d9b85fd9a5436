"""Queries whose patterns share no variable, and queries that combine the output of partitions: as on one machine."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

import cqels_py
from cqels_py.algebra.nodes import Output
from cqels_py.distribution.stages import stages_of
from cqels_py.engine.compile import compile_query
from cqels_py.errors import DataError, UsageError
from cqels_py.spark import loads, prepare, statistics
from tests.oracle.naive_values import canonical
from tests.runners.spark import simulation
from tests.runners.spark.test_simulated import EX, STATIC, drawn

S, T = "STREAM :s [RANGE 50us]", "STREAM :t [COUNT 5]"
LINKS = f"{{ {S} {{ ?a :link ?b }} {S} {{ ?b :link ?c }} {T} {{ ?c :v ?d }} }}"
STAR = f"{{ {S} {{ ?c :v ?v . ?c :w ?w }} }}"
BY_SHARES = {
    "chain": f"SELECT ?a ?b ?c ?d WHERE {LINKS}",
    "ends of a chain": f"SELECT ?a ?d WHERE {LINKS}",
    "one end": f"SELECT ?d WHERE {LINKS}",
    "triangle": "SELECT ?a ?b ?c WHERE { STREAM :s [RANGE 150us] { ?a :link ?b . ?b :link ?c . ?c :link ?a } }",
    "triangle of the same": "SELECT ?a WHERE { STREAM :s [ALL] { ?a :link ?b . ?b :link ?c . ?c :link ?a } }",
    "product": f"SELECT ?a ?b ?x WHERE {{ {T} {{ ?a :link ?b }} STREAM :s [NOW] {{ ?c :v ?x }} }}",
    "chain without": f"""SELECT ?a ?b ?c WHERE {{ {S} {{ ?a :link ?b . ?b :link ?c }}
                         FILTER NOT EXISTS {{ {T} {{ ?b :v ?d }} }} }}""",
    "chain minus": f"SELECT ?a ?b ?c WHERE {{ {S} {{ ?a :link ?b . ?b :link ?c }} MINUS {{ {T} {{ ?c :v ?d }} }} }}",
    "chain perhaps": f"""SELECT ?a ?b ?c ?d WHERE {{ {S} {{ ?a :link ?b . ?b :link ?c }}
                         OPTIONAL {{ {T} {{ ?c :v ?d }} }} }}""",
    "chain to static data": f"SELECT ?a ?b ?c ?l WHERE {{ {S} {{ ?a :link ?b . ?b :link ?c }} ?c :label ?l }}",
    "groups of a chain": f"SELECT ?a ?d (COUNT(*) AS ?n) WHERE {LINKS} GROUP BY ?a ?d",
    "chain at boundaries": """SELECT ?a ?c WHERE { STREAM :s [RANGE 60us STEP 20us] { ?a :link ?b }
                              STREAM :t [RANGE 60us STEP 30us] { ?b :link ?c } }""",
    "rstream of a chain": """REGISTER RSTREAM <o> AS SELECT ?a ?d FROM NAMED WINDOW <w> ON :s [RANGE PT0.00006S STEP PT0.00002S]
                             WHERE { WINDOW <w> { ?a :link ?b . ?b :link ?c . ?c :v ?d } }""",
    "dstream of ends": """REGISTER DSTREAM <o> AS SELECT ?a ?c FROM NAMED WINDOW <w> ON :s [RANGE PT0.00005S]
                          WHERE { WINDOW <w> { ?a :link ?b . ?b :link ?c } }""",
}
MERGED = {
    "count": f"SELECT (COUNT(*) AS ?n) WHERE {STAR}",
    "aggregates": f"SELECT (SUM(?v) AS ?s) (AVG(?v) AS ?a) (MIN(?w) AS ?l) (MAX(?w) AS ?m) (COUNT(?v) AS ?n) WHERE {STAR}",
    "extremes": f"SELECT (MIN(?v) AS ?l) (MAX(?v) AS ?m) (SAMPLE(?v) AS ?any) WHERE {{ {T} {{ ?c :v ?v }} }}",
    "groups": f"SELECT ?v (AVG(?w) AS ?a) (SUM(?w) AS ?s) WHERE {STAR} GROUP BY ?v",
    "counts of groups": f"SELECT ?v (COUNT(*) AS ?n) (MAX(?w) AS ?m) WHERE {STAR} GROUP BY ?v",
    "distinct in groups": f"SELECT ?v (COUNT(DISTINCT ?w) AS ?n) WHERE {STAR} GROUP BY ?v",
    "texts of groups": f"SELECT ?v (GROUP_CONCAT(?c; separator=' ') AS ?l) WHERE {STAR} GROUP BY ?v",
    "different rows": f"SELECT (COUNT(DISTINCT *) AS ?n) WHERE {STAR}",
    "having": f"SELECT ?v WHERE {STAR} GROUP BY ?v HAVING(SUM(?w) > 4)",
    "of a static label": f"SELECT ?l (SUM(?v) AS ?n) WHERE {{ {S} {{ ?c :v ?v }} ?c :label ?l }} GROUP BY ?l",
    "computed": f"SELECT ?x (COUNT(*) AS ?n) WHERE {{ {S} {{ ?c :v ?v }} BIND(CONCAT('v', STR(?v)) AS ?x) }} GROUP BY ?x",
    "distinct": f"SELECT DISTINCT ?v ?w WHERE {STAR}",
    "projected": f"SELECT ?v ?w WHERE {STAR}",
    "top": f"SELECT ?v ?c WHERE {{ {S} {{ ?c :v ?v }} }} ORDER BY DESC(?v) LIMIT 3 OFFSET 1",
    "rest": f"SELECT ?v ?c WHERE {{ {S} {{ ?c :v ?v }} }} ORDER BY ?v OFFSET 2",
    "top groups": f"SELECT ?v (SUM(?w) AS ?n) WHERE {STAR} GROUP BY ?v ORDER BY DESC(?n) LIMIT 2",
    "groups of groups": f"""SELECT ?n (COUNT(?c) AS ?m) WHERE {{
                            {{ SELECT ?c (COUNT(*) AS ?n) WHERE {{ {S} {{ ?c :v ?v }} }} GROUP BY ?c }} }} GROUP BY ?n""",
    "ask": "ASK { STREAM :s [RANGE 10us] { ?c :v ?v . ?c :w ?w } }",
    "ask of a chain": "ASK { STREAM :s [RANGE 20us] { ?a :link ?b . ?b :link ?c . ?c :link ?d } }",
    "at boundaries": "SELECT (SUM(?v) AS ?n) WHERE { STREAM :s [RANGE 60us STEP 20us] { ?c :v ?v } }",
    "rstream of one group": """REGISTER RSTREAM <o> AS SELECT (SUM(?v) AS ?n)
                               FROM NAMED WINDOW <w> ON :s [RANGE PT0.00006S STEP PT0.00002S] WHERE { WINDOW <w> { ?c :v ?v } }""",
    "rstream in order": """REGISTER RSTREAM <o> AS SELECT ?v ?c FROM NAMED WINDOW <w> ON :s [RANGE PT0.00006S STEP PT0.00002S]
                           WHERE { WINDOW <w> { ?c :v ?v } } ORDER BY ?v""",
    "by the clock": """SELECT (COUNT(*) AS ?n) WHERE { STREAM :s [RANGE 60us STEP 10us] { ?c :v ?v }
                       FILTER(?v > SECONDS(NOW())) }""",
}


def check(text: str, parts: int, chance: random.Random) -> None:
    """Three ways to cut the elements into micro-batches and tasks."""
    text = f"PREFIX : <{EX}> {text}"
    changelog = "REGISTER" not in text
    elements = drawn(chance.randrange(99), 40, subjects=4)
    found = simulation.run(
        text,
        elements,
        STATIC,
        changelog=changelog,
        cuts=[chance.randrange(40) for _ in range(chance.randrange(8))],
        tasks=chance.randrange(1, 4),
        parts=parts,
        seed=chance.randrange(99),
    )
    wanted = simulation.expected(text, elements, STATIC, Output.CHANGELOG if changelog else None)
    assert wanted, "a query that never answers shows nothing"
    assert found == wanted


def plan_of(text: str) -> Any:
    return compile_query(f"PREFIX : <{EX}> {text}", changelog="REGISTER" not in text).plan


@pytest.mark.parametrize("parts", [1, 2, 5])
@pytest.mark.parametrize("name", BY_SHARES)
def test_patterns_without_a_common_variable(name: str, parts: int) -> None:
    first, *_ = stages_of(plan_of(BY_SHARES[name]), parts)
    assert (first.shares is not None) == (parts > 1)
    check(BY_SHARES[name], parts, random.Random(f"{name} {parts}"))


@pytest.mark.parametrize("parts", [1, 2, 5])
@pytest.mark.parametrize("name", MERGED)
def test_the_output_of_partitions_is_combined(name: str, parts: int) -> None:
    assert (len(stages_of(plan_of(MERGED[name]), parts)) > 1) == (parts > 1)
    check(MERGED[name], parts, random.Random(f"{name} {parts}"))


@pytest.mark.parametrize("name", ["triangle", "top groups", "texts of groups", "rstream of one group"])
def test_later_stages_grow_after_they_were_restored(name: str) -> None:
    text = f"PREFIX : <{EX}> {(BY_SHARES | MERGED)[name]}".replace("50us]", "2000us]")
    changelog = "REGISTER" not in text
    elements = drawn(9, 600, subjects=100)
    found = simulation.run(
        text, elements, STATIC, changelog=changelog, cuts=range(150, 600, 150), tasks=1, parts=2, chance=0
    )
    assert found == simulation.expected(text, elements, STATIC, Output.CHANGELOG if changelog else None)


def test_statistics_of_stages() -> None:
    """Each triple that is needed once, however many partitions have it; results once, though two stages have rows."""
    text = f"PREFIX : <{EX}> {BY_SHARES['ends of a chain']}"
    elements = drawn(3, 40, subjects=4)
    needed = [
        (element.stream, triple)
        for element in elements
        for triple in element.triples
        if str(triple[1]) == EX + ("link" if str(element.stream) == EX + "s" else "v")
    ]
    with simulation.scratch() as folder:
        found = simulation.run(text, elements, STATIC, changelog=True, cuts=[10, 25], tasks=2, parts=5, folder=folder)
        counted = statistics(folder)
    assert (counted.elements, counted.triples) == (40, len(needed))
    assert counted.results == found.total()


def test_terms_of_later_stages_are_released(monkeypatch: pytest.MonkeyPatch) -> None:
    """The terms that a row was computed from may be released everywhere by the time a result refers to it."""
    from cqels_py.dictionary import Dictionary
    from cqels_py.runners import local
    from cqels_py.runners.spark import parts

    monkeypatch.setattr(local, "_COLLECT_FROM", 1)
    monkeypatch.setattr(parts, "_COLLECT_FROM", 1)
    monkeypatch.setattr(parts.LaterState, "collect_at", 1)
    released = []
    collect = Dictionary.collect
    monkeypatch.setattr(Dictionary, "collect", lambda self, live: released.append(collect(self, live)))
    text = f"""PREFIX : <{EX}> SELECT ?x (GROUP_CONCAT(?y) AS ?n) WHERE {{ STREAM :s [RANGE 20us] {{ ?c :v ?v . ?c :w ?w }}
               BIND(CONCAT('v', STR(?v)) AS ?x) BIND(CONCAT('w', STR(?w)) AS ?y) }} GROUP BY ?x"""
    elements = drawn(12, 60, subjects=4)
    found = simulation.run(text, elements, STATIC, changelog=True, cuts=range(0, 60, 6), tasks=1, parts=2)
    assert found == simulation.expected(text, elements, STATIC, Output.CHANGELOG)
    assert sum(released) > 0


def test_entailed_triples_are_partitioned_too() -> None:
    """Under entailment patterns become unions, whose branches are partitioned by their common variables."""
    schema = f"""<{EX}link> <http://www.w3.org/2000/01/rdf-schema#subPropertyOf> <{EX}near> .
    <{EX}link> <http://www.w3.org/2000/01/rdf-schema#domain> <{EX}Node> ."""
    text = f"PREFIX : <{EX}> SELECT ?a ?b WHERE {{ {S} {{ ?a a :Node . ?a :near ?b }} }}"
    elements = [each for each in drawn(8, 40, subjects=4) if str(each.stream) == EX + "s"]
    engine = cqels_py.Engine(batch=len(elements))
    query = engine.register(text, changelog=True, static=[schema.encode()], entailment="rdfs")
    for element in elements:
        engine.push(str(element.stream), list(element.triples), time=element.time)
    engine.finish()
    wanted = Counter(
        (result.time, result.sign, frozenset((name, canonical(term)) for name, term in result.bindings.items()))
        for result in query.results()
    )
    assert wanted
    with simulation.scratch() as folder:
        job, plan = prepare(
            text, state=folder, partitions=3, changelog=True, static=[schema.encode()], entailment="rdfs"
        )
        assert job.parts == (3,)
        rows = simulation.rows_of(elements, plan.streams, [f"g{i}" for i in range(len(elements))])
        assert simulation.counted(simulation.Cluster(job).run(0, [rows], final=True)) == wanted
        with pytest.raises(UsageError, match="made with another entailment"):
            prepare(text, state=folder, partitions=3, changelog=True, static=[schema.encode()])


def test_malformed_rows_are_skipped_and_counted_if_asked() -> None:
    text = f"PREFIX : <{EX}> SELECT ?a ?d WHERE {LINKS}"
    elements = drawn(3, 40, subjects=4)
    rows = simulation.rows_of(elements, [EX + "s", EX + "t"], [f"g{i}" for i in range(40)]).to_pylist()
    wrong = [{**rows[n], "object": "nonsense"} for n in (8, -1)]
    table = pa.RecordBatch.from_pylist([*rows[:9], wrong[0], *rows[9:], wrong[1]], simulation.ROWS)
    with simulation.scratch() as folder:
        job, _ = prepare(text, state=folder, partitions=4, changelog=True, on_error="skip")
        found = simulation.Cluster(job).run(0, [table], final=True)
        assert simulation.counted(found) == simulation.expected(text, elements, STATIC, Output.CHANGELOG)
        counted = statistics(folder)
    assert (counted.elements, counted.malformed) == (40, 2)
    with simulation.scratch() as folder, pytest.raises(DataError, match=rf"<{EX}s>, row:\d+: .*nonsense"):
        job, _ = prepare(text, state=folder, partitions=4, changelog=True)
        simulation.Cluster(job).run(0, [table], final=True)
    with simulation.scratch() as folder, pytest.raises(UsageError, match="on_error is 'stop' or 'skip', not 'ignore'"):
        prepare(text, state=folder, partitions=4, on_error="ignore")


@pytest.mark.parametrize("partitions", [1, 4])
def test_a_state_that_cannot_be_partitioned_is_reported(partitions: int, caplog: pytest.LogCaptureFixture) -> None:
    whole = f"PREFIX : <{EX}> SELECT ?a ?b WHERE {{ STREAM :s [TRIPLES 5] {{ ?a :link ?b }} }}"
    for text in (whole, whole.replace("TRIPLES 5", "COUNT 5")):
        with simulation.scratch() as folder:
            prepare(text, state=folder, partitions=partitions)
    assert [record.name for record in caplog.records] == ["cqels_py.spark"] * (partitions > 1)
    assert all("in one part, whatever the partitions" in record.getMessage() for record in caplog.records)


def test_loads_of_the_partitions() -> None:
    """All copies of triples, those of the last micro-batch, and how often a state was restored."""
    text = f"PREFIX : <{EX}> SELECT ?v (COUNT(*) AS ?n) WHERE {{ {S} {{ ?c :v ?v }} }} GROUP BY ?v"
    elements = [each for each in drawn(3, 40, subjects=4) if str(each.stream) == EX + "s"]
    needed = sum(str(predicate) == EX + "v" for each in elements for _, predicate, _ in each.triples)
    with simulation.scratch() as folder:
        job, plan = prepare(text, state=folder, partitions=3, changelog=True)
        assert loads(folder) == [[]]
        cluster = simulation.Cluster(job, chance=1)
        rows = simulation.rows_of(elements, plan.streams, [f"g{i}" for i in range(len(elements))])
        cluster.run(0, [rows.slice(0, 9)])
        before = loads(folder)
        cluster.run(1, [rows.slice(9)])
        after = loads(folder)
    assert sum(part.rows for part in after[0]) == needed
    assert len({part.rows for part in after[0]}) > 1
    for one, other in zip(before[0], after[0], strict=True):
        assert (one.rows_of_batch, other.rows_of_batch) == (one.rows, other.rows - one.rows)
        assert (one.rebuilt, other.rebuilt) == (1, 1)
