"""EXISTS where its pattern sees outer variables in slices, groups, MINUS, BIND and paths, against the oracle at any batch size."""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rdflib import URIRef

from tests.oracle.naive import Element
from tests.support import harness, traces
from tests.support.generators import FEW
from tests.support.traces import STREAMS
from tests.test_patterns_against_oracle import ELEMENTS, PREFIX, WINDOW

ONE = "?s :p ?n"
"""Outer variables that are always bound."""
MAYBE = "?s :p ?n OPTIONAL { ?s :q ?o }"
"""?o may be unbound."""

INSIDE = {
    "more than one": (ONE, "SELECT ?s { ?s :r ?m } OFFSET 1"),
    "more than one, of some, in order": (
        ONE,
        "SELECT ?s ?n { ?s ?x ?m FILTER(?m > ?n) } ORDER BY ?m LIMIT 2 OFFSET 1",
    ),
    "more than one different": (ONE, "SELECT DISTINCT ?s ?o { ?s :q ?o } OFFSET 1"),
    "more than one different term": (ONE, "SELECT DISTINCT ?s ?m { ?s ?x ?m } LIMIT 1 OFFSET 1"),
    "more than one group": (ONE, "SELECT ?s ?x { ?s ?x ?m } GROUP BY ?s ?x OFFSET 1"),
    "more than one reduced": (ONE, "SELECT REDUCED ?n { ?t :r ?m FILTER(?m >= ?n) } OFFSET 1"),
    "more than one in a subquery": (ONE, "SELECT ?s { { SELECT ?s { ?s :r ?m } OFFSET 1 } }"),
    "more than one, hidden": (ONE, "SELECT ?t { ?t :r ?n } OFFSET 1"),
    "never": (ONE, "SELECT ?s { ?s :q ?o } LIMIT 0"),
    "never, with an offset": (ONE, "SELECT ?s { ?s :q ?o } LIMIT 0 OFFSET 3"),
    "the first of each": (ONE, "{ SELECT ?s ?m { ?s :r ?m } ORDER BY DESC(?m) LIMIT 1 } FILTER(?m > ?n)"),
    "the second of each": (ONE, "{ SELECT ?s ?n ?m { ?s :r ?m FILTER(?m >= ?n) } ORDER BY ?m LIMIT 1 OFFSET 1 } ?s :q ?o"),
    "the first of each without an order": (ONE, "{ SELECT ?s ?m { ?s ?x ?m } LIMIT 1 } FILTER(?m = ?n)"),
    "the first different": (ONE, "{ SELECT DISTINCT ?s ?o { ?s :q ?o . ?s :r ?m } ORDER BY ?m LIMIT 1 } ?o :p ?n"),
    "the first of two, of each": (
        ONE,
        "{ SELECT ?s ?m { { SELECT ?s ?m { ?s ?x ?m } ORDER BY ?m LIMIT 2 } FILTER(?m != 1) } LIMIT 1 } FILTER(?m >= ?n)",
    ),
    "more than one of what may be unbound": (MAYBE, "SELECT ?o { ?o :r ?m } OFFSET 1"),
    "the first of what may be unbound": (
        MAYBE,
        "{ SELECT ?o ?m { ?o :r ?m } ORDER BY DESC(?m) LIMIT 1 } FILTER(?m > ?n)",
    ),
    "different where it may be unbound": (MAYBE, "SELECT DISTINCT ?o ?t { ?t :r ?m OPTIONAL { ?t :q ?o } } OFFSET 1"),
    "different where it is bound, unbound inside": (ONE, "SELECT DISTINCT ?n ?t { ?t :r ?m OPTIONAL { ?t :p ?n } } OFFSET 1"),
    "groups by what may be unbound": (
        MAYBE,
        "SELECT ?o { ?t :r ?m OPTIONAL { ?t :q ?o } } GROUP BY ?o HAVING(COUNT(*) > 1)",
    ),
    "more than one group by what may be unbound": (
        MAYBE,
        "SELECT ?o { ?t :r ?m OPTIONAL { ?t :q ?o } } GROUP BY ?o OFFSET 1",
    ),
    "different rows counted": (
        ONE,
        "{ SELECT ?s (COUNT(DISTINCT *) AS ?k) { ?s :r ?m OPTIONAL { ?s :q ?o } } GROUP BY ?s } FILTER(?k >= ?n)",
    ),
    "minus by outer variables alone": (ONE, "?s :q ?o MINUS { ?s :r ?m }"),
    "minus by others too": (ONE, "?s :q ?o MINUS { ?s :q ?o . ?t :r ?m FILTER(?m >= ?n) }"),
    "minus by others that may be unbound": (ONE, "?s :r ?m OPTIONAL { ?s :q ?o } MINUS { ?t :q ?o FILTER(?n > 1) }"),
    "minus by what may be unbound": (MAYBE, "?o :r ?m MINUS { ?o :p ?z FILTER(?z > ?n) }"),
    "minus by what may be unbound on all sides": (
        MAYBE,
        "?t :r ?m OPTIONAL { ?t :q ?o } MINUS { ?u :p ?z OPTIONAL { ?u :q ?o } FILTER(?z > ?n) }",
    ),
    "minus by what may be unbound, and others": (
        MAYBE,
        "?t :r ?m OPTIONAL { ?t :q ?o } MINUS { ?t :p ?z OPTIONAL { ?t :q ?o } FILTER(?z > ?n) }",
    ),
    "minus, more than one": (ONE, "SELECT ?s ?o ?n { ?t :q ?o MINUS { ?t :r ?n } } OFFSET 1"),
    "a value that has to agree": (ONE, "{ ?s :r ?m FILTER(?m >= ?n) } BIND(?m AS ?n)"),
    "a value of itself": (MAYBE, "?t :r ?m BIND(?o AS ?o)"),
    "a value that may be none": (
        "?s :p ?n OPTIONAL { ?s :r ?m }",
        "?s :q ?o BIND(?m + 0 AS ?m) FILTER(!BOUND(?m) || ?m < 3)",
    ),
    "a value where there was none": ("?s :p ?n OPTIONAL { ?s :r ?m }", "?s :q ?o BIND(COALESCE(?m, ?n) AS ?m) FILTER(?m < 3)"),
    "a path to what may be unbound": (MAYBE, "?s :q* ?o"),
    "a path from what may be unbound to itself": (MAYBE, "?o :q? ?o"),
    "a path between what may be unbound": ("?s :p ?n OPTIONAL { ?s :q ?o } OPTIONAL { ?o :q ?t }", "?t :q? ?o FILTER(?o != ?s)"),
    "more than one path": (ONE, "SELECT ?s { ?s :q*/:q? ?o } OFFSET 2"),
    "more than one path to what may be unbound": (MAYBE, "SELECT ?s ?o { ?s (:q*|^:q?) ?o } OFFSET 1"),
    "paths one after the other, of no steps": (ONE, "?n :q*/:q* ?o"),
}  # fmt: skip


@pytest.mark.parametrize(("outer", "inside"), INSIDE.values(), ids=INSIDE.keys())
def test_inside_of_exists(outer: str, inside: str) -> None:
    for group in (f"{outer} FILTER EXISTS {{ {inside} }}", f"{outer} BIND(NOT EXISTS {{ {inside} }} AS ?e)"):
        harness.assert_engine_right(f"{PREFIX}SELECT * {{ {WINDOW} {{ {group} }} }}", ELEMENTS)


TRIPLES = traces.triples(", ".join(f"{s} {p} {n}" for s in "abc" for p in "pr" for n in (1, 2, 3))) + traces.triples(
    "a q a, a q b, a q b, b q c, b q a, c q a, c q b, a q 1, b q 2"
)


@FEW
@given(st.data())
def test_random_graphs(data: st.DataObject) -> None:
    outer, inside = data.draw(st.sampled_from([*INSIDE.values()]))
    word = data.draw(st.sampled_from(["EXISTS", "NOT EXISTS"]))
    extent = data.draw(st.sampled_from(["[RANGE 3s]", "[COUNT 4]", "[TRIPLES 9]", "[RANGE 4s STEP 3s]"]))
    arriving = data.draw(
        st.lists(st.tuples(st.integers(0, 2), st.lists(st.sampled_from(TRIPLES), min_size=1, max_size=4)), max_size=12)
    )
    times = accumulate(seconds for seconds, _ in arriving)
    elements = [
        Element(time * 1_000_000, URIRef(STREAMS + "s"), tuple(triples))
        for time, (_, triples) in zip(times, arriving, strict=True)
    ]
    text = f"{PREFIX}SELECT * {{ STREAM <{STREAMS}s> {extent} {{ {outer} FILTER {word} {{ {inside} }} }} }}"
    harness.assert_engine_right(text, elements, batches=(1, 3, None))
