"""Named graphs of static data: GRAPH, FROM and FROM NAMED, as the oracle has them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rdflib import URIRef

import cqels_py
from cqels_py.algebra.nodes import Output
from cqels_py.errors import UsageError
from tests.oracle.naive import Element, Static
from tests.support import harness, traces

EX = traces.EX
STREAM = URIRef(traces.STREAMS + "s")
ELEMENTS = [
    Element(n * 1_000_000, STREAM, ((traces.term(s), traces.term("p"), traces.term(str(n))),))
    for n, s in enumerate("abca")
]


def _triples(*texts: str) -> list[tuple[URIRef, URIRef, URIRef]]:
    return [tuple(map(traces.term, text.split())) for text in texts]  # type: ignore[misc]


G, H, EMPTY = (URIRef(EX + name) for name in ("g", "h", "empty"))
DATA = {G: _triples("a name 'A'", "b name 'B'", "a knows g"), H: _triples("a name 'Z'", "c name 'C'"), EMPTY: []}
DEFAULT = _triples("a name 'D'", "g label 'G'")

GROUPS = [
    "GRAPH ?g { ?s :name ?name }",
    "GRAPH :g { ?s :name ?name }",
    "GRAPH :absent { ?s :name ?name }",
    "GRAPH ?g {}",
    "GRAPH :g {}",
    "GRAPH :empty {}",
    "GRAPH :absent {}",
    "GRAPH :absent { VALUES ?v { 1 } }",
    "GRAPH :empty { VALUES ?v { 1 } }",
    "GRAPH :absent { BIND (1 AS ?v) }",
    "OPTIONAL { GRAPH :absent { { ?x :name ?name } UNION { VALUES ?v { 1 } } } }",
    "GRAPH :absent { SELECT (COUNT(*) AS ?v) { ?x :name ?name } }",
    "GRAPH :empty { SELECT (COUNT(*) AS ?v) { ?x :name ?name } }",
    "OPTIONAL { GRAPH ?g { ?s :name ?name } }",
    "MINUS { GRAPH ?g { ?s :name ?name } }",
    "FILTER EXISTS { GRAPH ?g {} FILTER(?g = :empty) }",
    "FILTER NOT EXISTS { GRAPH :absent {} }",
    "GRAPH ?s { ?x :name ?name }",
    "GRAPH ?g { ?s :knows ?g }",
    "GRAPH ?g { ?s :name ?name } ?g :label ?label",
    "GRAPH ?g { ?s :name ?a } GRAPH ?g { ?other :name ?b }",
    "GRAPH ?g { { ?s :name ?name } UNION { ?s :knows ?t } }",
    "?s :name ?name GRAPH ?g {}",
    "GRAPH ?g { { SELECT ?x ?name { ?x :name ?name } ORDER BY DESC(?name) LIMIT 1 } }",
    "GRAPH ?g { { SELECT ?x { ?x :name ?name } ORDER BY DESC(?name) OFFSET 1 } ?x :name ?s }",
    "GRAPH ?g { { SELECT DISTINCT ?x { ?x ?p ?name } ORDER BY DESC(?name) LIMIT 1 } }",
    "GRAPH ?g { { SELECT (COUNT(*) AS ?v) { ?x :name ?name } } }",
    "GRAPH ?g { { SELECT (SUM(?name) AS ?v) (AVG(1) AS ?w) (MAX(?name) AS ?k) { ?x :name ?name } } FILTER(!BOUND(?k)) }",
    "GRAPH ?g { { SELECT (GROUP_CONCAT(?name) AS ?v) (COUNT(DISTINCT *) AS ?w) { ?x :name ?name } HAVING(COUNT(*) != 1) } }",
    "GRAPH ?g { { SELECT (AVG(?c) AS ?v) { { SELECT ?x (COUNT(*) AS ?c) { ?x ?p ?name } GROUP BY ?x } } } }",
    "GRAPH ?g { VALUES ?v { 1 } }",
    "GRAPH ?g { BIND(1 AS ?v) }",
    "GRAPH ?g { OPTIONAL { ?s :name ?name } }",
    "GRAPH ?g { { } UNION { ?s :name ?name } }",
    "GRAPH ?g { VALUES ?v { 1 } MINUS { VALUES ?w { 1 } } }",
    "GRAPH ?g { ?s :name ?name MINUS { ?x :knows ?y } }",
    "GRAPH ?g { ?x :name ?name OPTIONAL { ?x :knows ?y } MINUS { ?z :name 'Z' OPTIONAL { ?z :knows ?y } } }",
    "GRAPH ?g { ?x :name ?name OPTIONAL { ?x :knows ?g } }",
    "GRAPH ?g { { SELECT ?x { ?x :name ?name } LIMIT 1 } FILTER EXISTS { { SELECT ?x { ?x ?p ?y } OFFSET 1 } } }",
    "GRAPH ?g { { SELECT ?x { ?x :name ?name } LIMIT 1 } GRAPH ?g { ?x ?p ?y } }",
    "GRAPH ?g { { SELECT ?x { ?x :name ?name } LIMIT 1 } OPTIONAL { GRAPH ?g { ?x :knows ?y } } }",
    "GRAPH ?g { { SELECT ?x { ?x :name ?name } LIMIT 1 } OPTIONAL { GRAPH ?h { { SELECT ?z { ?x :name ?z } LIMIT 1 } } } }",
    "GRAPH ?g { ?x :name ?name FILTER(?name != 'B') { SELECT ?x { ?x ?p ?y } ORDER BY ?p LIMIT 2 } }",
    "FILTER EXISTS { GRAPH ?g { { SELECT ?s ?name { ?s :name ?name } LIMIT 1 } FILTER(?n > 0) } }",
    "FILTER NOT EXISTS { GRAPH ?g { { SELECT ?s { ?s :name ?name } OFFSET 1 } } }",
    "FILTER EXISTS { GRAPH ?g { { SELECT (COUNT(*) AS ?v) { ?s :name ?name } } FILTER(?v > ?n) } }",
    "GRAPH ?g {} FILTER EXISTS { GRAPH ?g { { SELECT (COUNT(*) AS ?v) { ?x :name ?name } } FILTER(?v > ?n) } }",
    "GRAPH ?g {} FILTER EXISTS { GRAPH ?g { ?s :name ?name FILTER(?g = :g) } }",
    "FILTER EXISTS { GRAPH ?g { ?s :knows* ?x FILTER(?g != :h) } }",
    "FILTER EXISTS { GRAPH ?g { ?s :knows* ?g } }",
    "FILTER NOT EXISTS { GRAPH ?s { ?s :knows* ?x } }",
    "GRAPH ?g { :a :knows* ?x }",
    "GRAPH ?g { ?x :knows? :b }",
    # A variable that is named inside and bound only outside has an unbound column there.
    "GRAPH ?g { ?x :name ?name MINUS { ?n :knows ?y } }",
    "GRAPH ?g { ?x :name ?name FILTER(!BOUND(?g) && !BOUND(?n)) }",
    "GRAPH ?g { ?x :name ?name BIND(COALESCE(?n, ?g, 'none') AS ?v) }",
    "OPTIONAL { GRAPH ?g { ?x :name ?name OPTIONAL { ?x :knows ?y FILTER(!BOUND(?n)) } } }",
]


@pytest.mark.parametrize("group", GROUPS)
def test_named_graphs(group: str) -> None:
    text = f"PREFIX : <{EX}> SELECT * {{ STREAM <{STREAM}> [RANGE 2s] {{ ?s :p ?n }} {group} }}"
    harness.assert_engine_right(text, ELEMENTS, Static(DEFAULT, DATA), Output.CHANGELOG, batches=(1, None))


@pytest.mark.parametrize(
    "group",
    [
        "GRAPH ?g { ?s ?p ?o }",
        "GRAPH ?g { ?s :p ?n } ?s :name ?name",
        "?s :name ?name FILTER NOT EXISTS { GRAPH ?g { ?s ?p ?o } }",
        "GRAPH ?g { { SELECT (COUNT(*) AS ?k) { ?s ?p ?o } } }",
        "GRAPH ?g { { SELECT ?s { ?s ?p ?o } ORDER BY DESC(?o) LIMIT 1 } ?s :p ?n }",
    ],
)
def test_windows_are_named_graphs_of_c_sparql(group: str) -> None:
    """GRAPH ?g ranges over the named windows and static graphs, except static graphs with a window's name."""
    streams = f"FROM NAMED STREAM <{STREAM}> [RANGE 2s STEP 1s] FROM NAMED STREAM <{STREAM}2> [RANGE 1s STEP 1s]"
    elements = [replace(each, stream=URIRef(f"{STREAM}2")) if i % 3 == 2 else each for i, each in enumerate(ELEMENTS)]
    static = Static(DEFAULT, DATA | {STREAM: _triples("a name 'hidden'")})
    text = f"REGISTER QUERY q AS PREFIX : <{EX}> SELECT * {streams} {{ {group} }}"
    harness.assert_engine_right(text, elements, static, None)


@pytest.mark.parametrize(
    "group", ["GRAPH ?g { ?s :name ?name }", "GRAPH ?g {}", "?s :name ?name", "GRAPH :g { ?s :name ?name }"]
)
@pytest.mark.parametrize(
    ("default", "named"), [([], ["h"]), (["g"], []), (["g", "h"], []), (["g"], ["h", "empty"]), (["g"], ["g"])]
)
def test_from_and_from_named_choose(group: str, default: list[str], named: list[str]) -> None:
    window = f"STREAM <{STREAM}> [RANGE 2s] {{ ?s :p ?n }}"
    clauses = " ".join([*(f"FROM :{name}" for name in default), *(f"FROM NAMED :{name}" for name in named)])
    text = f"PREFIX : <{EX}> SELECT * {clauses} {{ {window} {group} }}"
    chosen = Static(
        [triple for name in default for triple in DATA[URIRef(EX + name)]],
        {URIRef(EX + name): DATA[URIRef(EX + name)] for name in named},
    )
    expected = harness.expected_changes(harness.parse(text), ELEMENTS, chosen, Output.CHANGELOG)
    engine = cqels_py.Engine()
    given = {EX + name: DATA[URIRef(EX + name)] for name in {*default, *named}}
    query = engine.register(text, static_graphs=given, changelog=True)
    for element in ELEMENTS:
        engine.push(str(STREAM), list(element.triples), time=element.time)
    engine.finish()
    harness.check_equal(expected, [harness._result(result) for result in query.results()])


def test_a_graph_that_from_does_not_name_is_not_taken_in_silence() -> None:
    text = f"PREFIX : <{EX}> SELECT * FROM NAMED :g {{ STREAM <{STREAM}> [NOW] {{ ?s :p ?n }} GRAPH ?g {{}} }}"
    with pytest.raises(UsageError, match="FROM clauses leave it out"):
        cqels_py.Engine().register(text, static_graphs={EX + "g": DATA[G], EX + "h": DATA[H]})


def test_an_update_changes_which_graphs_there_are() -> None:
    text = f"PREFIX : <{EX}> SELECT * {{ STREAM <{STREAM}> [ALL] {{ ?s :p ?n }} GRAPH ?g {{}} }}"
    updates = [(1, Static([], {H: DATA[H]})), (2, Static([], {EMPTY: [], G: []}))]
    harness.assert_engine_right(text, ELEMENTS[:3], Static([], {G: DATA[G]}), Output.CHANGELOG, (1, None), updates)
