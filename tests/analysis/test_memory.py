"""The memory verdict: its words, and that it is true: what is measured grows where the verdict says so, and nowhere else.

A stream that is made to let memory grow: each element has a subject and values that were never seen before, and one of a few
subjects that come again and again with the same few values.
"""

from __future__ import annotations

import random

import pytest

import cqels_py as cqels
from cqels_py.analysis.memory import Level

PREFIX = "PREFIX : <http://ex.org/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "
S, T = "<http://ex.org/s>", "<http://ex.org/t>"
ONE_MORE = "Bounded with a window on <http://ex.org/s>, such as [RANGE 10m]"


def verdict(text: str) -> str:
    return str(cqels.analyse(PREFIX + text).memory)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "SELECT * { STREAM :s [RANGE 5s] { ?a :p ?b } }",
            f"bounded by what comes in 5s (constant if the rate is) on {S}",
        ),
        (
            "SELECT * { STREAM :s [FROM NOW-2h TO NOW-1h] { ?a :p ?b } }",
            f"bounded by what comes in 2h (constant if the rate is) on {S}",
        ),
        (
            "SELECT * { STREAM :s [RANGE 5s] { ?a :p ?b } STREAM :t [RANGE 1m STEP 10s] { ?a :q ?c } }",
            f"bounded by what comes in 1m (constant if the rate is) on {T}, and waits 10s for the window to move, and in 5s "
            f"(constant if the rate is) on {S}",
        ),
        (
            "SELECT * { STREAM :s [SESSION 5s] { ?a :p ?b } }",
            f"bounded by what comes in 5s (constant if the rate is) on {S}, in sessions: each is kept until nothing comes for 5s, "
            "and grows until then",
        ),
        ("SELECT * { STREAM :s [COUNT 5] { ?a :p ?b } }", f"bounded: the last 5 elements of {S}"),
        ("SELECT * { STREAM :s [TRIPLES 1] { ?a :p ?b } }", f"bounded: the last triple of {S}"),
        (
            "SELECT * { STREAM :s [COUNT 5] { ?a :p ?b } STREAM :t [RANGE 5s] { ?a :q ?c } }",
            f"bounded by what comes in 5s (constant if the rate is) on {T}, and the last 5 elements of {S}",
        ),
        ("SELECT * { STREAM :s [ALL] { ?a :p ?b } }", "bounded: keeps nothing"),
        ("ASK { STREAM :s [ALL] { ?a :p ?b } }", "bounded: keeps nothing"),
        ("SELECT (COUNT(*) AS ?n) { STREAM :s [ALL] { ?a :p ?b } }", "bounded: one group"),
        (
            "SELECT ?a (COUNT(*) AS ?n) { STREAM :s [ALL] { ?a :p ?b FILTER(?a = :x || ?a IN (:y, :z)) } } GROUP BY ?a",
            "bounded: one entry for each value of ?a (at most 3)",
        ),
        (
            "SELECT ?b (COUNT(*) AS ?n) { STREAM :s [ALL] "
            "{ ?a :p ?b FILTER(DATATYPE(?b) = xsd:integer && ?b > 0 && 5 > ?b) } } GROUP BY ?b",
            "bounded: one entry for each value of ?b (at most 4), and for each way of writing it",
        ),
        (
            "SELECT DISTINCT ?h { STREAM :s [ALL] { ?a :p ?b BIND(HOURS(?b) AS ?h) } }",
            "bounded: one entry for each value of ?h (at most 25)",
        ),
        (
            "SELECT ?s { MATCH WITHIN 5m { EVENT ON :s { ?s :p ?v } SEQ EVENT ON :t { ?s :q ?w } } }",
            f"bounded by what comes in 5m (constant if the rate is) on {S}, and in 5m (constant if the rate is) on {T}",
        ),
        (
            "SELECT * { STREAM :s [ALL] { ?a :p ?b } STREAM :t [RANGE 5s] { ?a :q ?c } }",
            f"not bounded, the join keeps all of {S}. {ONE_MORE}",
        ),
        (
            "SELECT * { STREAM :s [ALL] { ?a :p ?b } STREAM :t [ALL] { ?a :q ?c } }",
            f"not bounded, the join keeps all of {S}; the join keeps all of {T}. {ONE_MORE} and a window on {T}, such as "
            "[RANGE 10m]",
        ),
        ("SELECT * { STREAM :s [ALL] { ?a :p+ ?b } }", f"not bounded, the path keeps all of {S}. {ONE_MORE}"),
        (
            "SELECT DISTINCT ?b { STREAM :s [ALL] { ?a :p ?b } }",
            f"not bounded, DISTINCT keeps one entry for each value of ?b ever seen on {S}. Bounded with bounds for ?b "
            "(FILTER(?b IN (…)), VALUES)",
        ),
        (
            # Decimals between two numbers are not bounded.
            "SELECT ?b (COUNT(*) AS ?n) { STREAM :s [ALL] { ?a :p ?b FILTER(?b > 0 && ?b < 5) } } GROUP BY ?b",
            f"not bounded, GROUP BY keeps one entry for each value of ?b ever seen on {S}. Bounded with bounds for ?b "
            "(FILTER(?b IN (…)), VALUES)",
        ),
        (
            "SELECT * { STREAM :s [COUNT 1 PARTITION BY ?a] { ?a :p ?b } }",
            f"not bounded, PARTITION BY keeps one entry for each value of ?a ever seen on {S}. {ONE_MORE}",
        ),
    ],
)
def test_the_words_of_a_verdict(text: str, expected: str) -> None:
    assert verdict(text) == expected


def test_optional_over_all_names_the_stream() -> None:
    text = verdict("SELECT * { STREAM :s [ALL] { ?a :p ?b OPTIONAL { ?a :q ?c } } }")
    assert text.startswith("not bounded, ") and f"keeps all of {S}" in text


def test_a_verdict_has_parts_for_programs() -> None:
    memory = cqels.analyse(PREFIX + "SELECT DISTINCT ?b { STREAM :s [ALL] { ?a :p ?b } }").memory
    assert (memory.kind, memory.bound, memory.level) == ("not bounded", "", Level.UNBOUNDED)
    assert memory.blame == (f"DISTINCT keeps one entry for each value of ?b ever seen on {S}",)
    assert memory.repair == "Bounded with bounds for ?b (FILTER(?b IN (…)), VALUES)"
    assert not memory.within("window")


def test_registered_queries_have_the_verdict_too() -> None:
    query = cqels.Engine().register(PREFIX + "SELECT * { STREAM :s [COUNT 5] { ?a :p ?b } }")
    assert str(query.memory) == f"bounded: the last 5 elements of {S}"
    assert f"memory: {query.memory}" in query.explain().splitlines()


# --- measured ---------------------------------------------------------------------------------------------------------

_INTEGER = "<http://www.w3.org/2001/XMLSchema#integer>"
BATCH = 50
EXTENTS = ("ALL", "ALL", "ALL", "RANGE 5s", "COUNT 6", "TRIPLES 9", "RANGE 4s STEP 2s", "COUNT 1 PARTITION BY ?a")
FILTERS = (
    "",
    "FILTER(?a = :x1)",
    "FILTER(?v IN (1, 2, 3))",
    "FILTER(?a IN (:x1, :x2) && ?v IN (1, 2))",
    "FILTER(DATATYPE(?v) = xsd:integer && ?v >= 0 && ?v < 4)",
    "FILTER(?v > 0)",
)
SHAPES = (
    "SELECT ?a ?v {{ {w} }}",
    "SELECT DISTINCT ?v {{ {w} }}",
    "SELECT DISTINCT ?a ?v {{ {w} }}",
    "SELECT (COUNT(*) AS ?n) (SUM(?v) AS ?t) {{ {w} }}",
    "SELECT ?v (COUNT(*) AS ?n) (AVG(?v) AS ?t) {{ {w} }} GROUP BY ?v",
    "SELECT ?a (COUNT(DISTINCT ?v) AS ?n) {{ {w} }} GROUP BY ?a",
    "SELECT (MAX(?v) AS ?m) {{ {w} }}",
    "SELECT ?h (COUNT(*) AS ?n) {{ {w} BIND(?v > 2 AS ?h) }} GROUP BY ?h",
    "SELECT ?a ?v ?u {{ {w} {u} }}",
    "SELECT ?a (COUNT(*) AS ?n) {{ {w} {u} }} GROUP BY ?a",
    "SELECT ?a ?v {{ {w} FILTER NOT EXISTS {{ {u} }} }}",
    "SELECT ?a ?v ?u {{ {w} OPTIONAL {{ {u} }} }}",
    "SELECT DISTINCT ?v {{ {{ {w} }} UNION {{ {u} }} }}",
    "SELECT ?v ?n ?u {{ {{ SELECT ?v (COUNT(*) AS ?n) {{ {w} }} GROUP BY ?v }} {u} }}",
    "SELECT ?v {{ {w} }} ORDER BY ?v LIMIT 2",
)


def drawn_query(seed: int) -> str:
    draw = random.Random(seed)
    w = f"STREAM :s [{draw.choice(EXTENTS)}] {{ ?a :v ?v {draw.choice(FILTERS)} }}"
    u = f"STREAM :s [{draw.choice(EXTENTS)}] {{ ?a :u ?u {draw.choice(('', 'FILTER(?a = :x1)'))} }}"
    return PREFIX + draw.choice(SHAPES).format(w=w, u=u)


def sizes(text: str, elements: int, *after: int) -> list[int]:
    """Bytes of the query's state after so many elements of the adversarial stream."""
    engine = cqels.Engine(batch=BATCH)
    query = engine.register(text)
    query.subscribe_batches(lambda batch: None, ids=True)
    found = []
    for number in range(1, elements + 1):
        new, old = f"<http://ex.org/n{number}>", f"<http://ex.org/x{number % 3}>"
        values = [(new, number + 10), (old, number % 5), (old, number + 10), (new, number % 5)]
        triples = [
            (subject, f"<http://ex.org/{predicate}>", f'"{value}"^^{_INTEGER}')
            for subject, value in values
            for predicate in "vu"
        ]
        engine.push("http://ex.org/s", triples, time=number * 250_000)
        if number in after:
            engine.flush()
            found.append(query.nbytes)
    return found


@pytest.mark.parametrize("seed", range(60))
def test_a_verdict_is_what_is_measured(seed: int) -> None:
    text = drawn_query(seed)
    memory = cqels.analyse(text).memory
    if memory.level is Level.UNBOUNDED:
        early, late = sizes(text, 900, 150, 900)
        if early == late:
            # Few elements pass the filters: the arrays were large enough for all of them.
            _, late = sizes(text, 9000, 150, 9000)
        assert early < late, (text, str(memory))
    else:
        # Small tables of joins are purged after some 500 keys that have come and gone.
        warm, *later = sizes(text, 1300, 700, 900, 1100, 1300)
        assert later == [warm] * 3, (text, str(memory))


@pytest.mark.parametrize("aggregate", ["COUNT(*)", "COUNT(?v)", "SUM(?v)", "AVG(?v)", "COUNT(DISTINCT ?w)"])
def test_counters_over_all_elements_do_not_grow(aggregate: str) -> None:
    text = PREFIX + f"SELECT ({aggregate} AS ?n) {{ STREAM :s [ALL] {{ ?a :v ?v BIND(?v > 5 AS ?w) }} }}"
    warm, late = sizes(text, 600, 150, 600)
    assert warm == late
