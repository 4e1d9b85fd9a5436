"""Registration warns of variables that nothing binds, and of no others."""

from __future__ import annotations

import pytest

from cqels_py.analysis.unbound import unbound_variables
from cqels_py.parser import parse

STREAM = "STREAM :s [RANGE 5m]"
CASES = [
    (f"SELECT ?s {{ {STREAM} {{ ?s :t ?t }} FILTER(?T > 30) }}", ["nothing in the query binds ?T: is ?t meant?"]),
    (
        f"SELECT (AVG(?temp) AS ?m) {{ {STREAM} {{ ?s :t ?temper }} }}",
        ["nothing in the query binds ?temp: is"],
    ),
    (
        f"SELECT (COUNT(*) AS ?n) {{ {STREAM} {{ ?s :t ?t }} }} GROUP BY ?room",
        ["nothing in the query binds ?room"],
    ),
    (
        f"SELECT ?x {{ {STREAM} {{ ?s :t ?t }} }} ORDER BY ?zz LIMIT 1",
        ["nothing in the query binds ?x", "nothing in the query binds ?zz"],
    ),
    (f"CONSTRUCT {{ ?s :x ?zz }} {{ {STREAM} {{ ?s :t ?t }} }}", ["nothing in the query binds ?zz"]),
    (
        f"SELECT ?s {{ {STREAM} {{ ?s :t ?t }} FILTER NOT EXISTS {{ ?s :x ?x FILTER(?y > ?x) }} }}",
        ["nothing in the query binds ?y"],
    ),
    (
        f"SELECT ?s {{ {STREAM} {{ ?s :t ?t }} OPTIONAL {{ ?s :x ?x FILTER(?u > ?x) }} }}",
        ["nothing in the query binds ?u"],
    ),
]
FINE = [
    f"SELECT * {{ {STREAM} {{ ?s :t ?t }} BIND(?t + 1 AS ?u) VALUES (?u ?w) {{ (1 UNDEF) }} }}",
    f"SELECT ?s (MAX(?t) AS ?m) {{ {STREAM} {{ ?s :t ?t }} }} GROUP BY ?s HAVING (?m > 3) ORDER BY ?m LIMIT 2",
    f"SELECT ?n {{ {STREAM} {{ ?s :t ?t }} {{ SELECT ?s (COUNT(*) AS ?n) {{ ?s :x ?x }} GROUP BY ?s }} FILTER(?t < ?n) }}",
    f"SELECT ?g {{ {STREAM} {{ ?s :t+ ?t }} GRAPH ?g {{ ?t :x [] }} MINUS {{ ?s :y ?only FILTER(?only > 2) }} }}",
    f"CONSTRUCT {{ ?s :x [] }} {{ {STREAM} {{ ?s :t ?t }} FILTER EXISTS {{ ?s :x ?x FILTER(?x > ?t) }} }}",
    f"ASK {{ {STREAM} {{ ?s :t ?t }} }}",
]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_what_is_bound_nowhere(text: str, expected: list[str]) -> None:
    found = unbound_variables(parse("PREFIX : <http://ex.org/> " + text))
    assert [one.startswith(start) for one, start in zip(found, expected, strict=True)] == [True] * len(expected)


@pytest.mark.parametrize("text", FINE)
def test_what_is_bound_somewhere(text: str) -> None:
    assert unbound_variables(parse("PREFIX : <http://ex.org/> " + text)) == ()
