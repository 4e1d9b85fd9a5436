"""Property paths that repeat or negate, over windows and static data, against the oracle at any batch size."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rdflib import URIRef

from cqels_py.algebra.nodes import Dialect, Output
from tests.oracle.naive import Element, Static
from tests.support import harness, traces
from tests.support.drawn_windows import RSP_QL_WINDOWS, WINDOWS
from tests.support.generators import FEW, Scenario, answerable, element_lists, scenarios
from tests.support.traces import EX, STREAMS

PREFIX = f"PREFIX : <{EX}>\n"
WINDOW = f"STREAM <{STREAMS}s> [RANGE 4s]"
TRACE = """
    1 a p b
    2 b p c, b q a
    3 c p c
    4 c p a, a q d
    5.5 b p c, c p a
    6 a p b, d q d
    8 c q 3, b p b
    9 d p c, c p a, c p a
    12 a p a, a p d
    12.5 a q d, a p b
    13 d p e, e p b, b q 1, z r z
"""


def elements(trace: str = TRACE) -> list[Element]:
    """One element a line: seconds, then triples."""
    found = []
    for line in trace.strip().splitlines():
        seconds, content = line.strip().split(" ", 1)
        found.append(Element(int(float(seconds) * 1_000_000), URIRef(STREAMS + "s"), traces.triples(content)))
    return found


PATHS = (
    ":p+", ":p*", ":p?", "^:p+", "!:p", "!(:p|:q)", "!(^:p)", "!(:p|^:q)", "!(:p|:q|:r|^:p|^:q|^:r)", "(:p/:q)+", "(:p|:q)*",
    "(:p|^:q)+", "(:p/:q?)+", "(:p+/:q)?", "(:p*/:q*)+", "(:p?/:q?)?", "((:p+)?)*", "((:p?)?)?", "(!:p)+", "(!(:q|^:q))*",
    "((:p/:p)|:q*)+", "(^(:p/:q))*", "(:p|:q)/:p*", ":none*", ":none+",
)  # fmt: skip
ENDS = (
    "?s %p ?o",
    ":a %p ?o",
    "?s %p :c",
    ":a %p :c",
    ":c %p :c",
    "?s %p ?s",
    ":nowhere %p ?o",
    "?s %p :nowhere",
    "?s %p 3",
)


@pytest.mark.parametrize("path", PATHS)
def test_a_path_between_all_kinds_of_ends(path: str) -> None:
    for ends in ENDS:
        text = f"{PREFIX}SELECT * {{ {WINDOW} {{ {ends.replace('%p', path)} }} }}"
        harness.assert_engine_right(text, elements(), batches=(2, None))


GROUPS = {
    "joined": "?s :p+ ?o . ?o :q ?x",
    "joined with a path": "?s :p+ ?m . ?m :q* ?o",
    "filtered": "?s :p* ?o FILTER(?s != ?o)",
    "counted": "{ SELECT ?s (COUNT(?o) AS ?n) { ?s :p+ ?o } GROUP BY ?s }",
    "in one column": "{ SELECT ?s { ?s :p* ?o } }",
    "distinct": "{ SELECT DISTINCT ?o { ?s (:p|:q)+ ?o } }",
    "optional": "?s :q ?x OPTIONAL { ?x :p+ ?o }",
    "removed": "?s :p ?o MINUS { ?o :p+ ?s }",
    "absent": "?s :p ?o FILTER NOT EXISTS { ?o :p+ ?s }",
    "absent, with a repeated path": "?s :p ?o FILTER NOT EXISTS { ?o (:q/:p?)+ ?s }",
    "absent, to itself": "?s :p ?o FILTER NOT EXISTS { ?o :q* ?s }",
    "there, if only itself": "?s :p ?o FILTER EXISTS { ?o (:q|:r)* ?x FILTER(?x != ?s) }",
    "there, from a constant": "?s :p ?o FILTER EXISTS { :c (:p/:p)* ?o }",
    "counted for each": "?s :p ?o FILTER EXISTS { { SELECT ?o (COUNT(*) AS ?n) { ?o :q? ?x } GROUP BY ?o } FILTER(?n > 1) }",
    "in a union": "{ ?s :p+ ?o } UNION { ?s !:p ?o }",
    "the same twice": "?s :p+ ?o . ?s :p+ ?o",
    "both ways": "?s :p+ ?o . ?o :p+ ?s",
    "the predicate left out": "?s !:p ?o . ?o !(^:q) ?x",
}


@pytest.mark.parametrize("group", GROUPS.values(), ids=GROUPS.keys())
def test_a_group(group: str) -> None:
    harness.assert_engine_right(f"{PREFIX}SELECT * {{ {WINDOW} {{ {group} }} }}", elements())


ELSEWHERE = {
    "from an outer value": "?o :p* ?x FILTER(?x != ?s)",
    "to an outer value": "?x :p? ?o FILTER(?x != ?s)",
    "between outer values": "?o (:p|:q)* ?s",
    "from a value to itself": "?o :p* ?o",
    "from a constant": ":z :p* ?o",
    "from a value that may be unbound": "?y :p* ?x FILTER(?x != ?s)",
    "from one that may be unbound to itself": "?y :p* ?y",
}


@pytest.mark.parametrize("word", ["EXISTS", "NOT EXISTS"])
@pytest.mark.parametrize("group", ELSEWHERE.values(), ids=ELSEWHERE.keys())
def test_outer_values_lead_to_themselves_where_the_graph_has_none_of_them(group: str, word: str) -> None:
    now = f"STREAM <{STREAMS}s> [NOW]"
    outer = f"{WINDOW} {{ ?s :p ?o OPTIONAL {{ ?o :q ?y }} }}"
    harness.assert_engine_right(f"{PREFIX}SELECT * {{ {outer} FILTER {word} {{ {now} {{ {group} }} }} }}", elements())
    harness.assert_engine_right(f"{PREFIX}SELECT * {{ {outer} FILTER {word} {{ {group} }} }}", elements(), _static())
    harness.assert_engine_right(
        f"{PREFIX}SELECT * {{ {outer} FILTER {word} {{ GRAPH :h {{ {group} }} }} }}", elements(), _static()
    )


def _static() -> Static:
    default = "a p b, b p c, c p a, c p d, d q d, a q 3, y p y"
    named = {"g": "a p b, b p g, g p h, h q g", "h": "b p c, c p b", "i": "h p i, i p h, i q i"}
    return Static(
        traces.triples(default), {URIRef(EX + name): traces.triples(triples) for name, triples in named.items()}
    )


STATIC = {
    "beside a window": "%w { ?s :q ?o } ?s %p ?x",
    "from a constant": "%w { ?s :q ?o } :a %p ?x",
    "to a constant": "%w { ?s :q ?o } ?s %p :c",
    "of a named graph": "%w { ?s :q ?o } GRAPH :h { ?s %p ?x }",
    "of every named graph": "%w { ?s :q ?o } GRAPH ?g { ?x %p ?y }",
    "of the graph it names": "%w { ?s :q ?o } GRAPH ?g { ?g %p ?x }",
    "to the graph it names": "%w { ?s :q ?o } GRAPH ?g { ?x %p ?g }",
    "round the graph it names": "%w { ?s :q ?o } GRAPH ?g { ?g %p ?g }",
    "from a constant in every named graph": "%w { ?s :q ?o } GRAPH ?g { :b %p ?x }",
    "to a constant in every named graph": "%w { ?s :q ?o } GRAPH ?g { ?x %p :c }",
    "between constants in every named graph": "%w { ?s :q ?o } GRAPH ?g { :b %p :b }",
}


@pytest.mark.parametrize("path", [":p+", ":p*", ":p?", "!:p", "(:p/:q?)+", "(:p|^:q)*", "(:p*/:q*)?"])
def test_a_path_over_static_data(path: str) -> None:
    for group in STATIC.values():
        text = f"{PREFIX}SELECT * {{ {group.replace('%w', WINDOW).replace('%p', path)} }}"
        harness.assert_engine_right(text, elements(), _static(), batches=(3,))


@pytest.mark.parametrize("path", [":p+", ":p*", ":p?", "!:p", "(:p|^:q)*"])
def test_a_window_is_a_graph_or_a_bag(path: str) -> None:
    """In RSP-QL the same triple counts once; in C-SPARQL all windows and static data are one graph."""
    windows = [f"FROM NAMED WINDOW :w{n} ON <{STREAMS}s> [RANGE PT{n}S]" for n in (1, 4)]
    head = f"{PREFIX}REGISTER ISTREAM :o AS SELECT * {' '.join(windows)}"
    harness.assert_engine_right(f"{head} {{ WINDOW :w4 {{ ?s {path} ?o }} WINDOW :w1 {{ ?o :p ?x }} }}", elements())
    harness.assert_engine_right(f"{head} {{ WINDOW ?w {{ ?s {path} ?o }} }}", elements())
    merged = f"REGISTER QUERY q AS {PREFIX} SELECT * FROM STREAM <{STREAMS}s> [RANGE 4s STEP 2s] {{ ?s {path} ?o }}"
    harness.assert_engine_right(merged, elements(), _static(), None)


def test_pairs_through_a_stream_and_static_data() -> None:
    merged = f"REGISTER QUERY q AS {PREFIX} SELECT * FROM STREAM <{STREAMS}s> [RANGE 2s STEP 1s] {{ ?s (:q/:p)+ ?o }}"
    harness.assert_engine_right(merged, elements(), _static(), None)


@pytest.mark.parametrize(
    "extent", ["[NOW]", "[ALL]", "[COUNT 3]", "[TRIPLES 2]", "[RANGE 3s STEP 2s]", "[COUNT 4 STEP 2]"]
)
def test_a_path_over_each_kind_of_window(extent: str) -> None:
    text = f"{PREFIX}SELECT * {{ STREAM <{STREAMS}s> {extent} {{ ?s :p+ ?m . ?m :q* ?o }} }}"
    harness.assert_engine_right(text, elements())


@given(st.data())
def test_random_graphs(data: st.DataObject) -> None:
    """Long paths and cycles come and go."""
    path, ends = data.draw(st.sampled_from(PATHS)), data.draw(st.sampled_from(ENDS))
    extent = data.draw(st.sampled_from(["[RANGE 3s]", "[COUNT 4]", "[TRIPLES 6]", "[RANGE 4s STEP 3s]"]))
    group = ends.replace("%p", path.replace(":p", ":link").replace(":q", ":other"))
    arriving = data.draw(element_lists(["link", "link", "other"], ["s"], {}, 14))
    harness.assert_engine_right(
        f"{PREFIX}SELECT * {{ STREAM <{STREAMS}s> {extent} {{ {group} }} }}", arriving, batches=(1, 3, None)
    )


def _agree(scenario: Scenario, dialect: Dialect) -> None:
    with answerable(KeyError):
        harness.assert_engine_right(scenario.texts[dialect], scenario.elements, scenario.static, Output.CHANGELOG)


@given(scenarios({"path", "join", "filter", "static", "graph", "union", "optional"}, WINDOWS, most_elements=12))
def test_queries_with_paths(scenario: Scenario) -> None:
    _agree(scenario, Dialect.CQELS_QL)


@FEW
@given(scenarios({"path", "join", "minus", "not_exists", "aggregate", "distinct"}, RSP_QL_WINDOWS, most_elements=12))
def test_queries_with_paths_over_graphs(scenario: Scenario) -> None:
    _agree(scenario, Dialect.RSP_QL)
