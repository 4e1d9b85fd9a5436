"""On Spark a query gives the local results: with any number of partitions, tasks and micro-batches, whichever worker
has the state."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from rdflib import XSD, Literal, URIRef

import cqels_py
from cqels_py.algebra.nodes import Dialect, Output
from cqels_py.distribution.stages import stages_of
from cqels_py.engine.compile import compile_query
from cqels_py.errors import UnsupportedQuery
from cqels_py.spark import statistics
from tests.oracle.naive import Element, Static
from tests.oracle.naive_values import canonical, date_time_literal
from tests.runners.spark import simulation
from tests.support.generators import C_SPARQL_WINDOWS, FEATURES, RSP_QL_WINDOWS, SOAKING, WINDOWS, Scenario, scenarios

VERY_FEW = settings() if SOAKING else settings(max_examples=5)
"""Every example is run on the file system too, and once for each of many parameters."""
CUTS = st.lists(st.integers(0, 40), max_size=5)


def agree(scenario: Scenario, dialect: Dialect, data: st.DataObject, changelog: bool) -> None:
    if dialect not in scenario.texts:
        reject()
    text = scenario.texts[dialect]
    try:
        plan = compile_query(text, changelog=changelog).plan
        streams = plan.streams
        elements = [each for each in scenario.elements if str(each.stream) in streams]
        # With one task the rows of one stream come after those of another.
        elements = simulation.in_spark_order(elements, streams)
        if any(plan.graphs):
            if any(plan.time_predicates):
                # Only their graphs distinguish these elements.
                reject()
            elements = simulation.merged(elements)
        found = simulation.run(
            text,
            elements,
            scenario.static,
            changelog=changelog,
            cuts=data.draw(CUTS, "cuts") if len({e.time for e in elements}) == len(elements) else [],
            tasks=1,
            parts=data.draw(st.sampled_from([1, 2, 5]), "parts"),
            seed=data.draw(st.integers(0, 3), "seed"),
        )
    except UnsupportedQuery:
        reject()
    output = Output.CHANGELOG if changelog else None
    assert found == simulation.expected(text, elements, scenario.static, output)


@pytest.mark.parametrize("feature", sorted(FEATURES))
def test_each_feature(feature: str) -> None:
    @VERY_FEW
    @given(scenarios({"join", feature}, {"range", "count"}, most_elements=10), st.data())
    def check(scenario: Scenario, data: st.DataObject) -> None:
        agree(scenario, Dialect.CQELS_QL, data, changelog=True)

    check()


@pytest.mark.parametrize("window", sorted(WINDOWS))
def test_each_window(window: str) -> None:
    @VERY_FEW
    @given(scenarios({"join", "aggregate"}, {window}, most_elements=10), st.data())
    def check(scenario: Scenario, data: st.DataObject) -> None:
        agree(scenario, Dialect.CQELS_QL, data, changelog=True)

    check()


@VERY_FEW
@given(scenarios(FEATURES, RSP_QL_WINDOWS, most_elements=10), st.data())
def test_rsp_ql(scenario: Scenario, data: st.DataObject) -> None:
    agree(scenario, Dialect.RSP_QL, data, changelog=False)


@VERY_FEW
@given(scenarios({"join", "filter", "aggregate"}, C_SPARQL_WINDOWS, most_elements=10), st.data())
def test_c_sparql(scenario: Scenario, data: st.DataObject) -> None:
    agree(scenario, Dialect.C_SPARQL, data, changelog=False)


# --- queries whose state is divided -----------------------------------------------------------------------------------

EX = "http://ex.org/"
STREAMS = (EX + "s", EX + "t")
DIVIDED = {
    "range": "SELECT ?c ?v WHERE { STREAM :s [RANGE 40us] { ?c :v ?v } }",
    "join of windows": "SELECT ?c ?v ?w WHERE { STREAM :s [RANGE 40us] { ?c :v ?v } STREAM :t [COUNT 5] { ?c :w ?w } }",
    "three patterns": "SELECT ?c ?v ?w ?u WHERE { STREAM :s [RANGE 60us] { ?c :v ?v . ?c :w ?w . ?c :link ?u } }",
    "by the object": "SELECT ?c ?a ?v WHERE { STREAM :s [RANGE 50us] { ?a :link ?c . ?c :v ?v } }",
    "step": "SELECT ?c (SUM(?v) AS ?n) WHERE { STREAM :s [RANGE 60us STEP 20us] { ?c :v ?v } } GROUP BY ?c",
    "tumbling": "SELECT ?c (MAX(?v) AS ?n) WHERE { STREAM :s [RANGE 30us TUMBLING] { ?c :v ?v } } GROUP BY ?c",
    "count": "SELECT ?c (COUNT(*) AS ?n) (AVG(?v) AS ?a) WHERE { STREAM :s [COUNT 12] { ?c :v ?v } } GROUP BY ?c",
    "count step": "SELECT ?c (MIN(?v) AS ?n) WHERE { STREAM :s [COUNT 12 STEP 5] { ?c :v ?v } } GROUP BY ?c",
    "now": "SELECT ?c ?v ?w WHERE { STREAM :s [NOW] { ?c :v ?v } STREAM :t [RANGE 99us] { ?c :w ?w } }",
    "all": "SELECT DISTINCT ?c ?v WHERE { STREAM :s [ALL] { ?c :v ?v } }",
    "not exists": """SELECT ?c ?v WHERE { STREAM :s [RANGE 40us] { ?c :v ?v }
                     FILTER NOT EXISTS { STREAM :t [RANGE 15us] { ?c :w ?w } } }""",
    "minus": "SELECT ?c WHERE { STREAM :s [RANGE 40us] { ?c :v ?v } MINUS { STREAM :t [COUNT 3] { ?c :w ?w } } }",
    "optional": """SELECT ?c ?v ?w WHERE { STREAM :s [RANGE 40us] { ?c :v ?v }
                   OPTIONAL { STREAM :t [RANGE 20us] { ?c :w ?w } } }""",
    "union": """SELECT ?c ?x WHERE { { STREAM :s [RANGE 40us] { ?c :v ?x } }
                UNION { STREAM :t [RANGE 25us] { ?c :w ?x } } }""",
    "filter, bind": """SELECT ?c ?d WHERE { STREAM :s [RANGE 40us] { ?c :v ?v } FILTER(?v > 2)
                       BIND(CONCAT('v', STR(?v * 2)) AS ?d) }""",
    "static": "SELECT ?c ?v ?l WHERE { STREAM :s [RANGE 40us] { ?c :v ?v } ?c :label ?l }",
    "values": "SELECT ?c ?v WHERE { STREAM :s [RANGE 40us] { ?c :v ?v } VALUES ?c { :c0 :c1 :c7 } }",
    "values, perhaps unbound": """SELECT ?c ?v ?x WHERE { STREAM :s [RANGE 40us] { ?c :v ?v }
                                  VALUES (?c ?x) { (UNDEF 1) (:c0 2) } }""",
    "having": """SELECT ?c (SUM(?v) AS ?n) WHERE { STREAM :s [RANGE 60us] { ?c :v ?v } }
                 GROUP BY ?c HAVING(SUM(?v) > 5)""",
    "subquery": """SELECT ?c ?n ?w WHERE {
                   { SELECT ?c (COUNT(*) AS ?n) WHERE { STREAM :s [RANGE 60us] { ?c :v ?v } } GROUP BY ?c }
                   STREAM :t [RANGE 20us] { ?c :w ?w } }""",
    "rstream": """REGISTER RSTREAM <o> AS SELECT ?c (SUM(?v) AS ?n) FROM NAMED WINDOW <w> ON :s [RANGE PT0.00006S STEP PT0.00002S]
                  WHERE { WINDOW <w> { ?c :v ?v } } GROUP BY ?c""",
    "dstream": """REGISTER DSTREAM <o> AS SELECT ?c ?v FROM NAMED WINDOW <w> ON :s [RANGE PT0.00006S]
                  WHERE { WINDOW <w> { ?c :v ?v } }""",
}
STATIC = Static(
    default=tuple((URIRef(f"{EX}c{n}"), URIRef(EX + "label"), Literal(f"label {n}")) for n in range(0, 8, 2)), named={}
)


def drawn(seed: int, count: int = 60, disorder: int = 0, subjects: int = 8) -> list[Element]:
    """Elements of two streams about some subjects, up to `disorder` microseconds late.

    Their times are different: ties are in no order where several tasks read them.
    """
    chance = random.Random(seed)
    found, time = [], 0
    for _ in range(count):
        time += chance.randrange(1, 9)
        stream = chance.choice(STREAMS)
        triples = []
        for _ in range(chance.randrange(1, 4)):
            subject = URIRef(f"{EX}c{chance.randrange(subjects)}")
            predicate = chance.choice(["v", "w", "link"])
            value = Literal(str(chance.randrange(6)), datatype=XSD.integer)
            triples.append(
                (
                    subject,
                    URIRef(EX + predicate),
                    URIRef(f"{EX}c{chance.randrange(subjects)}") if predicate == "link" else value,
                )
            )
        found.append(Element(time, URIRef(stream), tuple(dict.fromkeys(triples))))
    return sorted(found, key=lambda element: element.time + chance.randrange(disorder + 1))


def axes_of(text: str, parts: int, *, changelog: bool) -> list[tuple[tuple[str, int], ...]]:
    """By what the stages of a query are divided; nothing where all is in one part."""
    stages = stages_of(compile_query(text, changelog=changelog).plan, parts)
    return [stage.shares.axes if stage.shares else tuple((name, stage.parts) for name in stage.by) for stage in stages]


@pytest.mark.parametrize("name", DIVIDED)
def test_divided_queries(name: str) -> None:
    text = f"PREFIX : <{EX}> {DIVIDED[name]}"
    changelog = name not in ("rstream", "dstream")
    assert axes_of(text, 3, changelog=changelog) == [(("c", 3),)]
    for seed, parts, tasks in ((1, 2, 1), (2, 3, 2), (3, 5, 4)):
        elements = drawn(seed)
        found = simulation.run(
            text,
            elements,
            STATIC,
            changelog=changelog,
            cuts=range(seed, 60, 5 * seed),
            tasks=tasks,
            parts=parts,
            seed=seed,
        )
        wanted = simulation.expected(text, elements, STATIC, Output.CHANGELOG if changelog else None)
        assert wanted, "a query that never answers shows nothing"
        assert found == wanted


@pytest.mark.parametrize("name", DIVIDED)
def test_elements_with_the_same_times(name: str) -> None:
    """The first element at an instant lets expire, and a row that another one brings back is then a change of its own."""
    text = f"PREFIX : <{EX}> {DIVIDED[name]}"
    changelog = name not in ("rstream", "dstream")
    streams = compile_query(text, changelog=changelog).plan.streams
    for seed in range(2):
        coarse = [replace(each, time=each.time // 10 * 10) for each in drawn(seed, subjects=4)]
        elements = simulation.in_spark_order([e for e in coarse if str(e.stream) in streams], streams)
        found = simulation.run(text, elements, STATIC, changelog=changelog, cuts=[], tasks=1, parts=3, seed=seed)
        assert found == simulation.expected(text, elements, STATIC, Output.CHANGELOG if changelog else None)


@pytest.mark.parametrize("name", DIVIDED)
def test_states_that_grow_after_they_were_restored(name: str) -> None:
    """Views stay views after unpickling: enough elements for every table to grow, and windows as long."""
    text = f"PREFIX : <{EX}> {DIVIDED[name]}"
    text = text.replace("us]", "00us]").replace("us STEP", "00us STEP").replace("us TUMBLING", "00us TUMBLING")
    elements = drawn(9, 1200, subjects=200)
    changelog = name not in ("rstream", "dstream")
    found = simulation.run(
        text, elements, STATIC, changelog=changelog, cuts=range(200, 1200, 200), tasks=1, parts=2, chance=0
    )
    assert found == simulation.expected(text, elements, STATIC, Output.CHANGELOG if changelog else None)


@pytest.mark.parametrize("lateness", [0, 10, 40])
def test_lateness_is_the_time_late_elements_are_waited_for(lateness: int) -> None:
    text = f"PREFIX : <{EX}> {DIVIDED['join of windows']}"
    elements, cuts = drawn(7, disorder=30), [10, 20, 30, 40, 50]
    # Each micro-batch is processed in the order of its times.
    arriving = [e for start in range(0, 60, 10) for e in sorted(elements[start : start + 10], key=lambda e: e.time)]
    engine = cqels_py.Engine(lateness=lateness, on_error="skip", report=lambda error: None)
    query = engine.register(text, changelog=True)
    for element in arriving:
        engine.push(str(element.stream), list(element.triples), time=element.time)
    engine.finish()
    wanted = Counter(
        (result.time, result.sign, frozenset((name, canonical(term)) for name, term in result.bindings.items()))
        for result in query.results()
    )
    with simulation.scratch() as folder:
        found = simulation.run(
            text, elements, STATIC, changelog=True, cuts=cuts, tasks=3, parts=3, lateness=lateness, folder=folder
        )
        assert found == wanted
        counted = statistics(folder)
    assert (counted.elements, counted.late) == (60, engine.statistics.late)
    assert (engine.statistics.late > 0) == (lateness < 40)
    assert counted.results == wanted.total()
    assert counted.event_time == engine.statistics.event_time


GRAPHS = {
    "by the graph": ("SELECT ?c ?v ?w WHERE { STREAM :s [RANGE 60us] { GRAPH ?c { ?x :v ?v . ?y :w ?w } } }", "c"),
    "by the subject": ("SELECT ?c ?g ?v WHERE { STREAM :s [COUNT 9] { GRAPH ?g { ?c :v ?v } ?c :w ?w } }", "c"),
    "of a graph": ("SELECT ?c ?v WHERE { STREAM :s [RANGE 60us] { GRAPH :g1 { ?c :v ?v } } }", "c"),
    "graphs alone": ("SELECT ?c WHERE { STREAM :s [RANGE 30us STEP 10us] { GRAPH ?c {} } }", "c"),
    "group by graph": (
        "SELECT ?c (SUM(?v) AS ?n) WHERE { STREAM :s [RANGE 60us] { GRAPH ?c { ?x :v ?v } } } GROUP BY ?c",
        "c",
    ),
    "of two windows": (
        "SELECT ?c ?v WHERE { STREAM :s [RANGE 60us] { GRAPH ?c { ?x :v ?v } } STREAM :t [RANGE 60us] { GRAPH ?c { ?x :w ?w } } }",
        "c",
    ),
    "counted": ("SELECT ?c ?v WHERE { STREAM :s [TRIPLES 9] { GRAPH ?c { ?x :v ?v } } }", None),
    "partitioned": ("SELECT ?c ?v WHERE { STREAM :s [COUNT 2 PARTITION BY ?c] { GRAPH ?c { ?x :v ?v } } }", None),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_graphs_of_windows(name: str) -> None:
    query, divided = GRAPHS[name]
    text = f"PREFIX : <{EX}> {query}"
    assert axes_of(text, 3, changelog=True)[0] == (((divided, 3),) if divided else ())
    for seed, parts, tasks in ((1, 2, 1), (2, 3, 2)):
        elements = [
            replace(each, graph=None if n % 5 == 4 else URIRef(f"{EX}g{(n * 7 + seed) % 4}"))
            for n, each in enumerate(drawn(seed))
        ]
        elements = simulation.merged(elements)
        cuts = range(seed, 60, 5 * seed)
        found = simulation.run(text, elements, STATIC, changelog=True, cuts=cuts, tasks=tasks, parts=parts, seed=seed)
        wanted = simulation.expected(text, elements, STATIC, Output.CHANGELOG)
        assert wanted, "a query that never answers shows nothing"
        assert found == wanted


def test_a_query_that_cannot_be_partitioned_runs_in_one_partition() -> None:
    text = f"PREFIX : <{EX}> SELECT ?a ?b WHERE {{ STREAM :s [RANGE 40us] {{ ?a :link+ ?b }} }}"
    assert axes_of(text, 4, changelog=True) == [()]
    elements = drawn(4)
    found = simulation.run(text, elements, STATIC, changelog=True, cuts=[7, 30], tasks=2, parts=4)
    assert found == simulation.expected(text, elements, STATIC, Output.CHANGELOG)


def test_an_element_whose_time_is_inside() -> None:
    text = f"PREFIX : <{EX}> SELECT ?c ?v WHERE {{ STREAM :s [RANGE 2s] @ :when {{ ?c :v ?v }} }}"
    elements = [
        Element(
            second * 1_000_000,
            URIRef(STREAMS[0]),
            (
                (URIRef(f"{EX}c{second % 3}"), URIRef(EX + "v"), Literal(str(second), datatype=XSD.integer)),
                (URIRef(f"{EX}c{second % 3}"), URIRef(EX + "when"), date_time_literal(second * 1_000_000)),
            ),
        )
        for second in range(12)
    ]
    found = simulation.run(text, elements, STATIC, changelog=True, cuts=[3, 8], tasks=2, parts=2)
    wanted = simulation.expected(text, elements, STATIC, Output.CHANGELOG)
    assert wanted
    assert found == wanted
