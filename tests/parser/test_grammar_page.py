"""The page of the grammar: each alternative that it shows is parsed, or refused for another reason than its syntax."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cqels_py.errors import UnsupportedQuery
from cqels_py.parser import parse

PAGE = (Path(__file__).parents[2] / "docs" / "grammar.md").read_text(encoding="utf-8")

EXTENTS = [
    "RANGE 10s", "RANGE 1m30s STEP 1s", "RANGE 10s SLIDE 1s START 2024-01-01T00:00:00Z", "RANGE PT10S TUMBLING",
    "RANGE 10s STEP 5s STARTING AT 0", "RANGE 10s STEP 5s START AT 0", "FROM NOW-2h TO NOW-1h", "FROM NOW-1h TO NOW STEP 1m",
    "SESSION 5m", "SESSION 5m STEP 1m", "COUNT 3", "ELEMENTS 3 STEP 2", "ROWS 3", "COUNT 3 TUMBLING", "TRIPLES 3",
    "RANGE TRIPLES 3", "TRIPLES 3 STEP 2", "NOW", "ALL", "COUNT 3 PARTITION BY ?s", "COUNT 3 PARTITION BY ?s ?v",
    "SESSION 5m PARTITION BY ?s", "RANGE 10s @ :time",
]  # fmt: skip
E = "EVENT ON :s { ?s :p ?a }"
MATCHES = [
    f"MATCH WITHIN 5m {{ {E} SEQ {E} }}", f"MATCH ALL WITHIN 100 EVENTS {{ {E} SEQ NOT {E} SEQ {E} }}",
    f"MATCH LATEST WITHIN 5m 100 EVENTS CONSUME {{ {E} AND {E} }}", f"MATCH EARLIEST WITHIN 5m STRICT TIME {{ {E} SEQ {E}+ }}",
    f"MATCH WITHIN 5m {{ {{ {E} OR {E} }} SEQ EVENT ON :s AT ?t {{ ?s :p ?b FILTER(?b > 2) BIND(?b AS ?c) }} }}",
]  # fmt: skip
RULES = [
    "RULE { ?x a :C } WHERE { ?x :p ?y }", "RULE { ?x :q ?y } FOR [0s, 3s] WHERE { ?x :p ?y FILTER(?y > 2) }",
    "RULE { ?x :q ?y } UNTIL REPLACED BY ?x WITHIN 1h WHERE { ?x :p ?y }",
    "RULE { ?x a :C } WHERE { ALWAYS [0s, 4s] { SOMETIME (0s, 2s] { ?x :p ?y } } }",
    "RULE { ?x a :C } WHERE { { ?x :p ?y } SINCE [0s, FOREVER) { ?x :q ?y } NOT { ?x a :D } }",
    "RULE { ?x a :C } WHERE { SOMETIME [2s] { ?x :p ?y } }",
]  # fmt: skip
QUERIES = [
    *(f"SELECT * {{ STREAM :s [{extent}] {{ ?s :p ?v }} }}" for extent in EXTENTS),
    *(f"SELECT * {{ {match} }}" for match in MATCHES),
    *(f"RULES ON :s, :t {{ {rule} }} SELECT * {{ STATE {{ ?x a :C }} }}" for rule in RULES),
    "RULES ON :s { RULE { ?x a :C } WHERE { ?x :p ?y } } SELECT * { STATE [STEP 1m] { ?x a :C } }",
    "REGISTER RSTREAM :q AS SELECT * FROM NAMED WINDOW :w ON :s [RANGE PT5S] WHERE { WINDOW :w { ?s :p ?v } }",
    "REGISTER ISTREAM :q AS SELECT * FROM NAMED WINDOW ON STREAM :s [RANGE 500] AS :w WHERE { WINDOW ?w { ?s :p ?v } }",
    "REGISTER QUERY q COMPUTED EVERY 1m AS SELECT * FROM STREAM :s [RANGE 5m STEP 1m] WHERE { ?s :p ?v }",
    "REGISTER STREAM q AS CONSTRUCT { ?s :p ?v } FROM NAMED STREAM :s [RANGE 5m STEP 1m] WHERE { GRAPH :s { ?s :p ?v } }",
    "SELECT * { EVENT ON :s [ALL] AT ?t { ?s :p ?v } EVENT ON :t AT ?u { ?s :q ?w } FILTER(?u > ?t) }",
]


@pytest.mark.parametrize("query", QUERIES)
def test_what_the_page_shows_is_syntax(query: str) -> None:
    try:
        parse(f"PREFIX : <http://ex.org/> {query}")
    except UnsupportedQuery as error:
        pytest.fail(f"refused: {error}")


def test_the_page_has_the_words_of_these_queries() -> None:
    words = set(re.findall(r"\b[A-Z]{2,}\b", " ".join(QUERIES))) - {"SELECT", "FILTER", "PREFIX", "PT", "GRAPH"}
    assert sorted(word for word in words if not re.search(rf"\b{word}\b", PAGE)) == []
