"""The SPARQL query for pyoxigraph that stands for a continuous query."""

from __future__ import annotations

import pyoxigraph as ox
import pytest

from cqels_py.suites.peer_query import aggregates, order, peer_query, reason_not_to_compare
from tests.support.harness import parse

P = "PREFIX : <http://ex.org/>\n"
CQELS = P + "SELECT ?s ?v { STREAM :s [RANGE 5s] { ?s :p ?v } ?s :q ?w }"
RSP = P + (
    "REGISTER RSTREAM :out AS SELECT ?s ?v FROM NAMED WINDOW :w ON :s [RANGE PT5S STEP PT1S]\n"
    "WHERE { WINDOW :w { ?s :p ?v } ?s :q ?w }"
)
C_SPARQL = (
    P + "REGISTER QUERY q AS SELECT ?s ?v FROM STREAM <http://ex.org/s> [RANGE 5s STEP 1s] { ?s :p ?v . ?s :q ?w }"
)


def store_for(text: str) -> ox.Store:
    """:a has :q in the static data, and :p in the query's window, where :b has it too."""
    store = ox.Store()
    a, b, p, q = (ox.NamedNode(f"http://ex.org/{name}") for name in "abpq")
    store.add(ox.Quad(a, q, a))
    window = ox.NamedNode(str(parse(text).windows[0].name))
    store.extend([ox.Quad(a, p, ox.Literal(1), window), ox.Quad(b, p, ox.Literal(2), window)])
    return store


def rows(text: str, **options: bool) -> list[tuple[str, ...]]:
    return [tuple(term.value for term in row) for row in peer_query(text).rows(store_for(text), **options)]


@pytest.mark.parametrize("text", [CQELS, RSP, C_SPARQL], ids=["CQELS-QL", "RSP-QL", "C-SPARQL"])
def test_windows_are_named_graphs_and_the_rest_is_the_users(text: str) -> None:
    assert rows(text) == [("http://ex.org/a", "1")]


def test_a_construct_gives_its_templates_variables() -> None:
    text = P + "CONSTRUCT { ?s :high ?v . ?v :of ?s } WHERE { STREAM :s [RANGE 5s] { ?s :p ?v } }"
    assert peer_query(text).columns == ("s", "v")
    assert sorted(rows(text)) == [("http://ex.org/a", "1"), ("http://ex.org/b", "2")]


@pytest.mark.parametrize(("least", "answer"), [(3, "true"), (4, "false")])
def test_ask_with_an_aggregate(least: int, answer: str) -> None:
    text = P + f"ASK {{ STREAM :s [RANGE 5s] {{ ?s :p ?row0 }} }} HAVING (SUM(?row0) >= {least})"
    assert rows(text) == [(answer,)]


def test_the_same_without_limit() -> None:
    text = P + "SELECT ?v { STREAM :s [RANGE 5s] { ?s :p ?v } OPTIONAL { ?s :q ?w } } ORDER BY ?v LIMIT 1 OFFSET 1"
    assert (rows(text), rows(text, unlimited=True)) == ([("2",)], [("1",), ("2",)])
    assert order(parse(text)) == ("v",)
    assert peer_query(CQELS).unlimited is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT (NOW() AS ?n) { STREAM :s [RANGE 5s] { ?s :p ?v } }", r"NOW\(\)"),
        ("SELECT (SAMPLE(?v) AS ?x) { STREAM :s [RANGE 5s] { ?s :p ?v } }", "SAMPLE"),
        ("SELECT ?v { STREAM :s [COUNT 5 PARTITION BY ?s] { ?s :p ?v } }", "PARTITION BY"),
        ("SELECT ?v { STREAM :s [RANGE 5s] { ?s :p ?v } GRAPH ?g { ?s ?x ?y } }", "variable"),
        ("DESCRIBE ?s { STREAM :s [RANGE 5s] { ?s :p ?v } }", "DESCRIBE"),
    ],
)
def test_queries_that_cannot_be_compared_have_a_reason(text: str, reason: str) -> None:
    assert reason in (reason_not_to_compare(parse(P + text)) or "").replace("NOW()", r"NOW\(\)")


def test_aggregates_are_found_in_subqueries() -> None:
    assert aggregates(parse(P + "SELECT ?n { STREAM :s [RANGE 5s] { { SELECT (COUNT(*) AS ?n) { ?s :p ?v } } } }"))
    assert not aggregates(parse(CQELS))
    assert reason_not_to_compare(parse(CQELS)) is None
