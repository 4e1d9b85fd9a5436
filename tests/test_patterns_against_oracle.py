"""OPTIONAL, EXISTS, MINUS and WINDOW ?w where they are hardest, each by a query of its own, against the oracle at any batch size."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, reject
from rdflib import URIRef

from cqels_py.algebra.nodes import Dialect, Output
from tests.oracle.naive import Element, Static
from tests.support import harness, traces
from tests.support.generators import RSP_QL_WINDOWS, Scenario, answerable, scenarios
from tests.support.traces import EX, STREAMS

PREFIX = f"PREFIX : <{EX}>\n"
WINDOW = f"STREAM <{STREAMS}s> [RANGE 4s]"


def _elements(lines: str) -> list[Element]:
    """One element a line: seconds, then triples, between commas."""
    found = []
    for line in lines.strip().splitlines():
        seconds, triples = line.strip().split(" ", 1)
        terms = [tuple(traces.term(word) for word in triple.split()) for triple in triples.split(",")]
        found.append(Element(int(float(seconds) * 1_000_000), URIRef(STREAMS + "s"), tuple(terms)))
    return found


ELEMENTS = _elements("""
    1 a p 1, a q b
    2 b p 2
    2 b q c, b r 2
    3 c p 2, c r 1
    4 a r 1, a r 3
    5.5 b p 1, c q a
    6 a p 3
    8 c p 3, b q b
    9 b r 3, c q a, c q a
    12 a q a, a p 1
    12.5 a r 1
    13 b p 1, a q b, b r 1
""")

GROUPS = {
    "optional": "?s :p ?n OPTIONAL { ?s :q ?o }",
    "optional of nothing known": "?s :p ?n OPTIONAL { ?t :q ?o }",
    "optional with a filter over both sides": "?s :p ?n OPTIONAL { ?s :r ?m FILTER(?m > ?n) }",
    "optional with a filter over the left alone": "?s :p ?n OPTIONAL { ?t :r ?m FILTER(?n > 1) }",
    "optional alone": "OPTIONAL { ?s :p ?n }",
    "optional empty": "?s :p ?n OPTIONAL { }",
    "optional in optional": "?s :p ?n OPTIONAL { ?s :q ?o OPTIONAL { ?o :r ?m FILTER(?m < 3) } }",
    "the second optional about the first": "?s :p ?n OPTIONAL { ?s :q ?o } OPTIONAL { ?o :r ?m }",
    "one variable in two optionals": "?s :p ?n OPTIONAL { ?s :q ?o } OPTIONAL { ?o :q ?s }",
    "joined on what is perhaps unbound": "?s :p ?n OPTIONAL { ?s :q ?o } { ?o :r ?m }",
    "optional with exists in its filter": "?s :p ?n OPTIONAL { ?s :q ?o FILTER EXISTS { ?o :r ?m FILTER(?m > ?n) } }",
    "optional over a union": "{ { ?s :p ?n } UNION { ?s :q ?o } } OPTIONAL { ?s :r ?n }",
    "optional over a subquery": "?s :p ?n OPTIONAL { SELECT ?s (COUNT(*) AS ?k) { ?s :r ?m } GROUP BY ?s }",
    "minus over an optional": "?s :p ?n OPTIONAL { ?s :q ?o } MINUS { ?s :r ?n . ?t :q ?o }",
    "minus of an optional": "?s :p ?n MINUS { ?s :q ?o OPTIONAL { ?o :r ?n } }",
    "minus that may share nothing": "?s :p ?n OPTIONAL { ?s :q ?o } MINUS { ?o :r ?m }",
    "minus that may share nothing on either side": "?s :p ?n OPTIONAL { ?s :q ?o } MINUS { ?t :p 1 OPTIONAL { ?t :q ?o } }",
    "not exists over outer values": "?s :p ?n FILTER NOT EXISTS { ?t :r ?m FILTER(?m > ?n) }",
    "not exists of what is perhaps unbound": "?s :p ?n OPTIONAL { ?s :q ?o } FILTER NOT EXISTS { ?o :r ?m }",
    "exists in not exists": "?s :p ?n FILTER NOT EXISTS { ?s :q ?o FILTER EXISTS { ?o :r ?m FILTER(?m != ?n) } }",
    "exists with a union": "?s :p ?n FILTER EXISTS { { ?s :q ?o } UNION { ?t :r ?n FILTER(?t != ?s) } }",
    "exists with an optional": "?s :p ?n FILTER EXISTS { ?s :q ?o OPTIONAL { ?o :r ?m FILTER(?m = ?n) } FILTER(!BOUND(?m)) }",
    "exists with minus": "?s :p ?n FILTER EXISTS { ?s :q ?o MINUS { ?o :r ?m FILTER(?m = ?n) } }",
    "exists with minus, by chance": "?s :p ?n FILTER EXISTS { ?s :q ?o MINUS { ?o :r ?n } }",
    "exists with a bound expression": "?s :p ?n FILTER EXISTS { ?t :r ?m BIND(?m + 1 AS ?k) FILTER(?k = ?n) }",
    "exists that binds an outer variable": "?s :p ?n FILTER EXISTS { ?s :r ?m BIND(?m + 0 AS ?n) }",
    "exists that binds an outer variable of outer ones": "?s :p ?n . ?s :r ?k FILTER EXISTS { ?t :q ?o BIND(?k + 0 AS ?n) }",
    "exists with values": "?s :p ?n FILTER EXISTS { ?s :q ?o VALUES (?o ?n) { (:b 1) (:a UNDEF) } }",
    "exists with a count": "?s :p ?n FILTER EXISTS { { SELECT ?s (COUNT(*) AS ?k) { ?s :r ?m } GROUP BY ?s } FILTER(?k >= ?n) }",
    "exists with a group that sees outer values": (
        "?s :p ?n FILTER EXISTS { SELECT ?s ?n { ?s :r ?m FILTER(?m >= ?n) } GROUP BY ?s ?n HAVING(COUNT(*) >= 1) }"
    ),
    "exists with a selection that hides": "?s :p ?n FILTER EXISTS { SELECT ?s { ?s :r ?n } }",
    "exists with a selection that sees": "?s :p ?n FILTER NOT EXISTS { SELECT ?s ?n { ?s :r ?m FILTER(?m > ?n) } LIMIT 1 }",
    "exists with distinct": "?s :p ?n FILTER EXISTS { { SELECT DISTINCT ?n { ?s :r ?m FILTER(?m > ?n) } } ?s :q ?o }",
    "exists with a path of no steps": "?s :p ?n FILTER NOT EXISTS { ?s :q* ?o FILTER(?o != ?s) }",
    "exists with a path of no steps back": "?s :p ?n FILTER EXISTS { ?t :q? ?s . ?t :r ?m FILTER(?m >= ?n) }",
    "exists with a path of no steps to a term": "?s :p ?n FILTER NOT EXISTS { :a :q* ?s }",
    "exists with a path of no steps between outer values": "?s :p ?n . ?t :r ?m FILTER EXISTS { ?s :q* ?t }",
    "exists with a path of no steps to itself": "?s :p ?n FILTER EXISTS { ?s :q* ?s }",
    "exists with a path of no steps that is no node": "?s :p ?n FILTER EXISTS { ?n :q? ?m FILTER(?m > 1) }",
    "exists or": "?s :p ?n FILTER(?n > 2 || EXISTS { ?s :q ?o })",
    "the same exists twice": "?s :p ?n FILTER(EXISTS { ?s :q ?o } || (?n = 2 && !EXISTS { ?s :q ?o }))",
    "exists bound": "?s :p ?n BIND(EXISTS { ?s :q ?o FILTER(?o != ?s) } AS ?e)",
    "exists in if": "?s :p ?n BIND(IF(NOT EXISTS { ?s :q ?o }, ?n, EXISTS { ?s :r ?n }) AS ?e)",
    "a filter over what nothing binds": "?s :p ?n FILTER(?unknown > 1 || ?n > 1)",
    "an expression over what nothing binds": "?s :p ?n BIND(COALESCE(?unknown, ?n) AS ?e)",
    "an expression over its own variable": "?s :p ?n BIND(COALESCE(?e, ?n) AS ?e) BIND(IF(BOUND(?k), 1, 2) AS ?k)",
}


@pytest.mark.parametrize("group", GROUPS.values(), ids=GROUPS.keys())
def test_a_group(group: str) -> None:
    harness.assert_engine_right(f"{PREFIX}SELECT * {{ {WINDOW} {{ {group} }} }}", ELEMENTS)


SELECTIONS = {
    "exists selected": "SELECT ?s (EXISTS { %w { ?s :q ?o } } AS ?e) { %w { ?s :p ?n } }",
    "exists counted": "SELECT (SUM(IF(EXISTS { %w { ?s :q ?o } }, 1, 0)) AS ?e) { %w { ?s :p ?n } }",
    "exists ordered by": "SELECT ?s ?n { %w { ?s :p ?n } } ORDER BY (EXISTS { %w { ?s :q ?o } }) ?s ?n LIMIT 2",
    "exists selected above a group": (
        "SELECT ?s (COUNT(*) AS ?k) (EXISTS { %w { ?s :r ?m FILTER(?m <= ?k) } } AS ?e) { %w { ?s :p ?n } } GROUP BY ?s"
    ),
    "exists in having": (
        "SELECT ?s (SUM(?n) AS ?k) { %w { ?s :p ?n } } GROUP BY ?s "
        "HAVING(SUM(?n) > 2 || EXISTS { { SELECT ?s (MAX(?m) AS ?most) { %w { ?s :r ?m } } GROUP BY ?s } FILTER(?most > 1) })"
    ),
    "exists ordered by above a group": (
        "SELECT ?s (COUNT(*) AS ?k) { %w { ?s :p ?n } } GROUP BY ?s ORDER BY (EXISTS { %w { ?s :q ?n } }) ?s LIMIT 1"
    ),
    "exists in an aggregate in a window": (
        "SELECT * { %w { { SELECT (SUM(IF(EXISTS { ?s :q ?o }, 1, 0)) AS ?k) { ?s :p ?n } } } }"
    ),
    "optional aggregated": "SELECT ?s (COUNT(?o) AS ?k) (COUNT(*) AS ?all) { %w { ?s :p ?n OPTIONAL { ?s :q ?o } } } GROUP BY ?s",
    "optional of static data": "SELECT * { %w { ?s :p ?n } OPTIONAL { ?s :name ?name } }",
    "optional of a stream": "SELECT * { ?s :name ?name OPTIONAL { %w { ?s :p ?n } } }",
    "optional of static data of static data": (
        "SELECT * { %w { ?s :p ?n } ?s :name ?a OPTIONAL { ?s :link ?t OPTIONAL { ?t :name ?b } } }"
    ),
    "a join of an optional, of static data": "SELECT * { %w { ?s :p ?n } { ?s :name ?a OPTIONAL { ?s :link ?t } } { ?t :name ?b } }",
    "a join of a minus, of static data": "SELECT * { %w { ?s :p ?n } { ?s :name ?a MINUS { ?s :link ?s } } { ?t :link ?s } }",
    "not exists in static data": "SELECT * { %w { ?s :p ?n } ?s :name ?a FILTER NOT EXISTS { ?t :name ?b FILTER(?a < ?b) } }",
    "a column that nothing binds": "SELECT * { %w { ?s :p ?n } { SELECT ?n ?t { ?t :link ?u } } }",
    "a distinct column that nothing binds": "SELECT * { { SELECT DISTINCT ?n ?t { ?t :link ?u } } %w { ?s :p ?n } }",
    "a column that nothing binds, of the first ones": (
        "SELECT * { %w { ?s :p ?n } { SELECT ?n ?t { ?t :name ?u } ORDER BY ?u LIMIT 1 } }"
    ),
    "a column of a window that nothing binds": "SELECT * { ?n :link ?u { SELECT ?n ?s ?m { %w { ?s :p ?m } } } }",
    "an optional column that nothing binds": "SELECT * { %w { ?s :p ?n } OPTIONAL { SELECT ?n ?t { ?t :link ?u } } }",
    "a group by what nothing binds": (
        "SELECT * { %w { ?s :p ?n } { SELECT ?n (COUNT(*) AS ?k) { %w { ?t :q ?o } } GROUP BY ?n } }"
    ),
    "a column that a minus names": "SELECT * { %w { ?s :p ?n } { SELECT ?n ?t { ?t :link ?u MINUS { ?t :name ?n } } } }",
    "exists of a column that nothing binds": (
        "SELECT * { %w { ?s :p ?n } FILTER EXISTS { { SELECT ?n ?s { ?s :link ?u } } %w { ?s :r ?n } } }"
    ),
    "ask": "ASK { %w { ?s :p ?n OPTIONAL { ?s :q ?o } FILTER(!BOUND(?o)) } }",
    "two windows' optional": (
        f"SELECT * {{ %w {{ ?s :p ?n }} OPTIONAL {{ STREAM <{STREAMS}s> [COUNT 2] {{ ?s :q ?o }} FILTER(?o != ?s) }} }}"
    ),
}


def _static() -> Static:
    triples = [("a", "name", "'A'"), ("b", "name", "'B'"), ("a", "link", "c"), ("b", "link", "a"), ("b", "link", "b")]
    return Static([(traces.term(s), traces.term(p), traces.term(o)) for s, p, o in triples])


@pytest.mark.parametrize("text", SELECTIONS.values(), ids=SELECTIONS.keys())
def test_a_query(text: str) -> None:
    output = None if text.startswith("ASK") else Output.CHANGELOG
    harness.assert_engine_right(PREFIX + text.replace("%w", WINDOW), ELEMENTS, _static(), output)


@pytest.mark.parametrize(
    "body", ["?s :p ?n", "?s :p ?n OPTIONAL { ?s :q ?w }", "?s :p ?n FILTER NOT EXISTS { ?s :r ?n }"]
)
def test_each_window_by_its_name(body: str) -> None:
    windows = [f"FROM NAMED WINDOW :w{n} ON <{STREAMS}s> [RANGE PT{n}S]" for n in (1, 3)]
    text = f"{PREFIX}REGISTER ISTREAM :o AS SELECT * {' '.join(windows)} {{ WINDOW ?w {{ {body} }} }}"
    harness.assert_engine_right(text, ELEMENTS)


@given(scenarios({"join", "filter", "optional", "union"}, RSP_QL_WINDOWS, most_elements=12))
def test_queries_over_each_window(scenario: Scenario) -> None:
    """Every block ranges over every window: blocks with the same variable over the same window."""
    text = scenario.texts[Dialect.RSP_QL]
    text = re.sub(r"WINDOW :w(\d) \{", lambda found: f"WINDOW ?w{found[1]} {{", text).replace(
        "SELECT ", "SELECT ?w0 ", 1
    )
    if "WINDOW ?w0" not in text:
        reject()
    with answerable():
        harness.assert_engine_right(text, scenario.elements, scenario.static)
