"""GRAPH inside of windows: the graphs that elements name, against the oracle at any batch size."""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rdflib import URIRef

from tests.oracle.naive import Element, Static
from tests.support import harness, traces
from tests.support.generators import FEW
from tests.support.traces import EX, STREAMS

TRIPLES = traces.triples("a p 1, a p 2, b p 1, a q b, b q a, b q c, g q a, c p 1, a q g, g label 'G'")
NAMES = (None, "g", "g", "h", "a")
STATIC = Static(traces.triples("a label 'A'"), {URIRef(EX + "g"): traces.triples("z p 1, a p 7")})

GROUPS = (
    "GRAPH ?g { ?s :p ?n }",
    "GRAPH :g { ?s :p ?n }",
    "GRAPH :absent { ?s :p ?n }",
    "GRAPH ?g { ?s :p ?n . ?s :q ?o }",
    "GRAPH ?g { ?s ?x ?g }",
    "GRAPH ?g { ?g ?x ?o }",
    "GRAPH ?g { ?s ?x ?o } ?g :q ?y",
    "GRAPH ?g { ?s :q ?o } GRAPH ?g { ?o :p ?n }",
    "GRAPH ?g { ?s :q ?o } GRAPH ?h { ?o :p ?n }",
    "?s :p ?n GRAPH ?g { ?s :q ?o }",
    "?s :p ?n FILTER NOT EXISTS { GRAPH ?g { ?s :p ?n } }",
    "?s :p ?n FILTER EXISTS { GRAPH :g { ?s :q ?o } }",
    "?s :q ?o FILTER EXISTS { GRAPH ?s { ?o :p ?n } }",
    "?s :p ?n OPTIONAL { GRAPH ?g { ?s :q ?o } }",
    "?s :p ?n OPTIONAL { GRAPH ?g { ?s :q ?o FILTER(?n > 1) } }",
    "?s :p ?n MINUS { GRAPH ?g { ?s :p ?n } }",
    "{ GRAPH ?g { ?s :p ?n } } UNION { ?s :q ?g }",
    "GRAPH ?g { { ?s :p ?n } UNION { ?s :q ?o } }",
    "GRAPH ?g { ?s :p ?n OPTIONAL { ?s :q ?o } }",
    "GRAPH ?g { ?s :p ?n OPTIONAL { ?s :q ?g } }",
    "GRAPH ?g { ?s :p ?n MINUS { ?s :q ?o } }",
    "GRAPH ?g { ?s :p ?n MINUS { ?x :q ?o } }",
    "GRAPH ?g { ?s :p ?n FILTER(?g = :g) }",
    "GRAPH ?g { ?s :p ?n FILTER EXISTS { ?x :q ?s } }",
    "GRAPH ?g { ?s :p ?n FILTER NOT EXISTS { GRAPH ?h { ?s :q ?o } } }",
    "GRAPH ?g { ?s :p ?n } FILTER NOT EXISTS { GRAPH ?g { ?s :q ?o } }",
    "GRAPH ?g { ?s :p ?n BIND(?n + 1 AS ?m) }",
    "GRAPH ?g { ?s :p ?n GRAPH ?h { ?s :q ?o } }",
    "GRAPH ?g { GRAPH ?h { ?s :q ?o } }",
    "GRAPH :g { GRAPH ?h { ?s :q ?o } }",
    "GRAPH ?g { ?s :p ?n GRAPH :g { ?x :q ?o } }",
    "GRAPH ?g { ?s :q/:p ?n }",
    "GRAPH ?g { ?s :q+ ?o }",
    "GRAPH ?g { ?s :q* ?o }",
    "GRAPH ?g { ?s :q? ?o }",
    "GRAPH :g { ?s :q* ?o }",
    "GRAPH ?g { :b :q* ?o }",
    "GRAPH :g { :nowhere :q* ?o }",
    "GRAPH ?g { ?g :q+ ?o }",
    "GRAPH ?g { ?s (:q|^:q)+ ?o }",
    "GRAPH ?g { ?s !:p ?o }",
    "GRAPH ?g {}",
    "GRAPH :g {}",
    "GRAPH :absent {}",
    "?s :p ?n GRAPH ?g {}",
    "?s :q ?o GRAPH ?s {}",
    "GRAPH ?g { VALUES ?v { 1 } }",
    "GRAPH :g { VALUES ?v { 1 2 } }",
    "GRAPH ?g { BIND(1 AS ?v) }",
    "GRAPH ?g { OPTIONAL { ?s :q ?o } }",
    "GRAPH :g { OPTIONAL { ?s :q ?o } }",
    "GRAPH ?g { { SELECT ?s { ?s :p ?n } } }",
    "GRAPH ?g { { SELECT ?s ?n { ?s :p ?n } ORDER BY DESC(?n) LIMIT 1 } }",
    "GRAPH ?g { { SELECT (COUNT(*) AS ?k) { ?s :p ?n } } }",
    "GRAPH ?g { { SELECT ?s (MAX(?n) AS ?k) { ?s :p ?n } GROUP BY ?s } }",
    "GRAPH ?g { { SELECT DISTINCT ?s { ?s ?x ?o } } }",
    "{ SELECT ?g (COUNT(*) AS ?k) { GRAPH ?g { ?s ?x ?o } } GROUP BY ?g }",
    "{ SELECT ?g (SUM(?n) AS ?k) (COUNT(?o) AS ?l) { GRAPH ?g { ?s :p ?n . ?s :q ?o } } GROUP BY ?g }",
    "{ SELECT DISTINCT ?g { GRAPH ?g { ?s ?x ?o } } }",
    "GRAPH ?g { { SELECT (COUNT(*) AS ?k) { ?s :p ?n } } } FILTER(?k > 1)",
)


@st.composite
def arriving(draw: st.DrawFn, streams: str = "s") -> list[Element]:
    one = st.tuples(
        st.sampled_from([0, 1, 1, 2, 3]),
        st.sampled_from(streams),
        st.sampled_from(NAMES),
        st.lists(st.sampled_from(TRIPLES), max_size=3),
    )
    drawn = draw(st.lists(one, max_size=10))
    times = accumulate(halves for halves, *_ in drawn)
    return [
        Element(time * 500_000, URIRef(STREAMS + stream), tuple(triples), name and URIRef(EX + name))
        for time, (_, stream, name, triples) in zip(times, drawn, strict=True)
    ]


def bag(group: str, extent: str, select: str = "*") -> str:
    return f"PREFIX : <{EX}> SELECT {select} {{ STREAM <{STREAMS}s> [{extent}] {{ {group} }} }}"


def of_sets(group: str, extent: str) -> str:
    """In RSP-QL a window is a set."""
    declared = f"FROM NAMED WINDOW :w ON <{STREAMS}s> [{extent}]"
    return f"PREFIX : <{EX}> REGISTER RSTREAM :r AS SELECT * {declared} {{ WINDOW :w {{ {group} }} }}"


@pytest.mark.parametrize("group", GROUPS)
def test_groups(group: str) -> None:
    @FEW
    @given(arriving())
    def check(elements: list[Element]) -> None:
        harness.assert_engine_right(bag(group, "RANGE 2s"), elements, STATIC, batches=(1, 3, None))
        harness.assert_engine_right(of_sets(group, "RANGE PT2S STEP PT1S"), elements, STATIC, batches=(1, None))

    check()


EXTENTS = (
    *("NOW", "ALL", "COUNT 3", "COUNT 4 STEP 2", "TRIPLES 3", "TRIPLES 4 STEP 3", "SESSION 1s", "SESSION 1s STEP 2s"),
    *("RANGE 2s TUMBLING", "FROM NOW-3s TO NOW-1s"),
)
SHAPES = ("GRAPH ?g { ?s :p ?n }", "GRAPH ?g { ?s :q ?o . ?o ?x ?y }", "?s :p ?n GRAPH :g { ?s :q ?o }", "GRAPH ?g {}")


@pytest.mark.parametrize("extent", EXTENTS)
@pytest.mark.parametrize("group", SHAPES)
def test_windows(extent: str, group: str) -> None:
    @FEW
    @given(arriving())
    def check(elements: list[Element]) -> None:
        harness.assert_engine_right(bag(group, extent), elements, batches=(1, 2, None))

    check()


PARTITIONS = (
    *(("GRAPH ?g { ?s :p ?n }", "?s"), ("GRAPH ?g { ?s :p ?n }", "?g"), ("GRAPH ?g { ?s :p ?n }", "?s ?g")),
    *(("GRAPH :g { ?s :p ?n }", "?s"), ("?s :p ?n GRAPH ?g { ?s :q ?o }", "?s"), ("GRAPH ?g { ?s :q ?g }", "?s")),
    *(("GRAPH ?g { ?s :p ?n . ?s :q ?o }", "?n ?o"), ("GRAPH ?g { ?s :p ?n } GRAPH ?g { ?x :q ?o }", "?n ?o")),
    ("GRAPH ?g { { SELECT ?s { ?s :p ?n } } ?s :q ?o }", "?g"),
)


@pytest.mark.parametrize(("group", "by"), PARTITIONS)
@pytest.mark.parametrize("extent", ["COUNT 2", "TRIPLES 2", "COUNT 1 STEP 2", "SESSION 1s"])
def test_partitions(group: str, by: str, extent: str) -> None:
    if extent.startswith("TRIPLES") and by == "?n ?o":
        pytest.skip("no triple has both")

    @FEW
    @given(arriving())
    def check(elements: list[Element]) -> None:
        harness.assert_engine_right(bag(group, f"{extent} PARTITION BY {by}"), elements, batches=(1, 3, None))

    check()


@FEW
@given(arriving("st"), st.sampled_from(["GRAPH ?g { ?s :p ?n }", "GRAPH ?g { ?s ?x ?o } ?s :p ?n", "GRAPH ?g {}"]))
def test_every_window(elements: list[Element], group: str) -> None:
    declared = " ".join(f"FROM NAMED WINDOW :{s} ON <{STREAMS}{s}> [RANGE PT2S STEP PT1S]" for s in "st")
    text = f"PREFIX : <{EX}> REGISTER RSTREAM :r AS SELECT * {declared} {{ WINDOW ?w {{ {group} }} }}"
    harness.assert_engine_right(text, elements, STATIC)


@FEW
@given(arriving("st"))
def test_graphs_of_two_windows_are_joined_by_name(elements: list[Element]) -> None:
    windows = " ".join(f"STREAM <{STREAMS}{s}> [RANGE 2s] {{ GRAPH ?g {{ ?s :p ?{s} }} }}" for s in "st")
    text = f"PREFIX : <{EX}> SELECT * {{ {windows} OPTIONAL {{ GRAPH ?g {{ ?z :p ?n }} }} }}"
    harness.assert_engine_right(text, elements, STATIC)


@FEW
@given(arriving())
def test_graph_beside_a_window_asks_static_data(elements: list[Element]) -> None:
    text = f"PREFIX : <{EX}> SELECT * {{ STREAM <{STREAMS}s> [RANGE 2s] {{ ?s :p ?n }} GRAPH ?g {{ ?s :p ?m }} }}"
    harness.assert_engine_right(text, elements, STATIC)


@FEW
@given(arriving())
def test_c_sparql_has_no_block_around_graph(elements: list[Element]) -> None:
    stream = f"FROM STREAM <{STREAMS}s> [RANGE 2s STEP 1s]"
    text = f"REGISTER QUERY q AS PREFIX : <{EX}> SELECT * {stream} {{ ?s :p ?n GRAPH ?g {{ ?s :p ?m }} }}"
    harness.assert_engine_right(text, elements, STATIC, None)
