"""UUID, STRUUID, BNODE and RAND in RSTREAM queries: new values in each result as it is delivered, and refusals."""

from __future__ import annotations

import uuid
from collections import Counter
from typing import Any

import pytest
from rdflib import BNode, Literal, URIRef

import cqels_py
from cqels_py.engine.compile import compile_query
from cqels_py.engine.query import Result
from cqels_py.errors import UnsupportedQuery
from cqels_py.spark import stages
from tests.oracle.naive import Element
from tests.support import harness, traces
from tests.support.traces import EX, STREAMS

SECOND = 1_000_000
PREFIX = f"PREFIX : <{EX}> "
REPORTS = f"{PREFIX}REGISTER RSTREAM :reports AS "
WINDOW = f"STREAM <{STREAMS}s> [RANGE 3s]"
BATCHES = [1, 3, None]


def pushed() -> list[Element]:
    rows = [(0, "a", 1), (0, "b", 1), (1, "a", 1), (1, "c", 7), (2, "a", 2), (5, "b", 2), (6, "b", 2), (12, "c", 1)]
    return [
        Element(time * SECOND, URIRef(f"{STREAMS}s"), ((traces.term(s), traces.term("p"), traces.term(str(n))),))
        for time, s, n in rows
    ]


def delivered(*texts: str, batch: int | None = None) -> list[Result]:
    """Results of the last of these queries."""
    engine = cqels_py.Engine(batch=batch or 100)
    queries = [engine.register(text) for text in texts]
    results: list[Result] = []
    queries[-1].subscribe(results.append)
    for element in pushed():
        engine.push(str(element.stream), list(element.triples), time=element.time)
    engine.finish()
    return results


def without(results: list[Result], *names: str) -> Counter[Any]:
    return Counter(
        (r.time, frozenset((name, term) for name, term in r.bindings.items() if name not in names)) for r in results
    )


def values(results: list[Result], name: str) -> list[Any]:
    return [result.bindings[name] for result in results]


@pytest.mark.parametrize("batch", BATCHES)
def test_each_result_has_values_of_its_own(batch: int | None) -> None:
    body = f"{{ {WINDOW} {{ ?s :p ?n }} BIND(?n * 2 AS ?m) {{}} }}"
    plain = delivered(f"{REPORTS} SELECT ?s ?m {body}", batch=batch)
    selected = "?s (UUID() AS ?u) (STRUUID() AS ?t) (RAND() AS ?r) (BNODE() AS ?b) (BNODE() AS ?c) ?m"
    results = delivered(f"{REPORTS} SELECT {selected} {body}", batch=batch)
    assert without(results, *"utrbc") == without(plain)
    assert len(results) > 15
    for name in "utrbc":
        assert len(set(values(results, name))) == len(results)
    assert not set(values(results, "b")) & set(values(results, "c"))
    for iri, text in zip(values(results, "u"), values(results, "t"), strict=True):
        assert isinstance(iri, URIRef)
        assert isinstance(text, Literal)
        assert text.datatype is None
        found = [uuid.UUID(str(iri)), uuid.UUID(str(text))]
        assert [each.version for each in found] == [4, 4]
        assert [each.urn for each in found] == [str(iri), f"urn:uuid:{text}"]
    assert all(isinstance(node, BNode) for node in values(results, "b"))
    assert all(0 <= number.toPython() < 1 for number in values(results, "r"))


@pytest.mark.parametrize("batch", BATCHES)
def test_equal_solutions_have_different_values(batch: int | None) -> None:
    """The answer is a bag: ?n is 1 in two solutions of a second."""
    results = delivered(f"{REPORTS} SELECT ?n (UUID() AS ?u) {{ {WINDOW} {{ ?s :p ?n }} }}", batch=batch)
    plain = delivered(f"{REPORTS} SELECT ?n {{ {WINDOW} {{ ?s :p ?n }} }}", batch=batch)
    assert without(results, "u") == without(plain)
    assert max(without(plain).values()) > 1
    assert len(set(values(results, "u"))) == len(results)


def test_a_label_is_one_node_within_a_solution() -> None:
    text = (
        f"{REPORTS} SELECT * {{ {WINDOW} {{ ?s :p ?n }} BIND(BNODE('x') AS ?a) BIND(BNODE(CONCAT('', 'x')) AS ?b) "
        "BIND(BNODE(STR(?s)) AS ?c) BIND(BNODE(?s) AS ?iri) BIND(BNODE(STRLANG('x', 'en')) AS ?tagged) }"
    )
    results = delivered(text)
    assert values(results, "a") == values(results, "b")
    assert len({*values(results, "a"), *values(results, "c")}) == 2 * len(results)
    assert not any({"iri", "tagged"} & set(result.bindings) for result in results)


@pytest.mark.parametrize("batch", BATCHES)
def test_an_expression_of_a_drawn_value_uses_the_same_value(batch: int | None) -> None:
    text = (
        f"{REPORTS} SELECT ?s ?u ?t ?k ?x ?before ?now {{ {WINDOW} {{ ?s :p ?n }} BIND(COALESCE(?k, 0) AS ?before) "
        "BIND(UUID() AS ?u) BIND(STR(?u) AS ?t) BIND(?n + 1 AS ?k) BIND(IF(?n > 1, ?u, ?s) AS ?x) "
        "BIND(COALESCE(?late, STRUUID()) AS ?y) BIND(CONCAT(?y, '!') AS ?late) BIND(CONCAT(STR(NOW()), ?t) AS ?now) "
        "FILTER(?n < 7) }"
    )
    results = delivered(text, batch=batch)
    assert results
    for found in (result.bindings for result in results):
        assert str(found["u"]) == str(found["t"])
        assert found["x"] == (found["u"] if found["k"].toPython() > 2 else found["s"])
        assert found["before"] == Literal(0)
        assert str(found["now"]).startswith("1970-")
        assert str(found["now"]).endswith(str(found["t"]))


def test_values_go_with_groups_slices_and_subqueries_below_them() -> None:
    for body in (
        f"SELECT ?s (COUNT(*) AS ?k) (UUID() AS ?u) {{ {WINDOW} {{ ?s :p ?n }} }} GROUP BY ?s",
        f"SELECT ?s ?u {{ {{ SELECT ?s ?n {{ {WINDOW} {{ ?s :p ?n }} }} ORDER BY ?n LIMIT 2 }} BIND(UUID() AS ?u) }}",
        f"SELECT ?s ?u {{ {{ SELECT DISTINCT ?s {{ {WINDOW} {{ ?s :p ?n }} }} }} BIND(UUID() AS ?u) }}",
    ):
        plain = delivered(REPORTS + body.replace("UUID()", "1"))
        results = delivered(REPORTS + body)
        assert without(results, "u") == without(plain, "u")
        assert len(set(values(results, "u"))) == len(results)


def test_a_hidden_value_is_not_there() -> None:
    inner = f"SELECT ?s ?u {{ {WINDOW} {{ ?s :p ?n }} BIND(UUID() AS ?u) BIND(STR(?u) AS ?hidden) }}"
    results = delivered(f"{REPORTS} CONSTRUCT {{ ?s :id ?u ; :not ?hidden }} {{ {{ {inner} }} }}")
    assert {frozenset(result.bindings) for result in results} == {frozenset("su")}


@pytest.mark.parametrize("batch", BATCHES)
def test_constructed_graphs_feed_other_queries(batch: int | None) -> None:
    first = (
        f"{REPORTS} CONSTRUCT {{ ?u a :Report ; :of ?s ; :part ?b . ?b :number ?n }} "
        f"{{ {WINDOW} {{ ?s :p ?n }} BIND(UUID() AS ?u) BIND(BNODE('part') AS ?b) }}"
    )
    second = (
        f"{PREFIX}SELECT ?u ?s ?n {{ STREAM :reports [NOW] {{ ?u a :Report ; :of ?s ; :part ?b . ?b :number ?n }} }}"
    )
    plain = delivered(f"{REPORTS} SELECT ?s ?n {{ {WINDOW} {{ ?s :p ?n }} }}", batch=batch)
    results = [result for result in delivered(first, second, batch=batch) if result.sign > 0]
    assert without(results, "u") == without(plain)
    assert len(set(values(results, "u"))) == len(results)


def test_windows_of_triples_see_other_values_in_one_order() -> None:
    first = f"{REPORTS} CONSTRUCT {{ ?s :id ?zz }} {{ {WINDOW} {{ ?s :p ?n }} BIND(UUID() AS ?zz) }}"
    second = f"{PREFIX}SELECT ?s {{ STREAM :reports [TRIPLES 2] {{ ?s :id ?u }} }}"
    found = [Counter((r.time, r.sign, r.bindings["s"]) for r in delivered(first, second, batch=b)) for b in BATCHES * 2]
    assert found[0]
    assert all(each == found[0] for each in found)


REFUSED = [
    "SELECT DISTINCT (UUID() AS ?u) { W { ?s :p ?n } }",
    "SELECT (RAND() AS ?u) { W { ?s :p ?n } } ORDER BY ?u",
    "SELECT ?s (UUID() AS ?u) { W { ?s :p ?n } } LIMIT 3",
    "SELECT ?u (COUNT(*) AS ?k) { W { ?s :p ?n } BIND(UUID() AS ?u) } GROUP BY ?u",
    "SELECT (MAX(RAND()) AS ?k) { W { ?s :p ?n } }",
    "SELECT * { W { ?s :p ?n } BIND(RAND() AS ?u) FILTER(?u < 0.5) }",
    "SELECT * { W { ?s :p ?n } FILTER(RAND() < 0.5) }",
    "SELECT * { { W { ?s :p ?n } BIND(UUID() AS ?u) } W { ?s :q ?m } }",
    "SELECT * { W { ?s :p ?n } OPTIONAL { W { ?s :q ?m } BIND(BNODE() AS ?u) } }",
    "SELECT * { { W { ?s :p ?n } BIND(STRUUID() AS ?u) } UNION { W { ?s :q ?n } } }",
    "SELECT * { W { ?s :p ?n } BIND(UUID() AS ?u) BIND(EXISTS { W { ?s :q ?u } } AS ?e) }",
]


@pytest.mark.parametrize("text", REFUSED)
def test_values_that_would_be_kept_are_refused(text: str) -> None:
    with pytest.raises(UnsupportedQuery, match=r"gives another value each time .* RSTREAM"):
        compile_query(REPORTS + text.replace("W ", f"{WINDOW} "))


@pytest.mark.parametrize("output", ["ISTREAM", "DSTREAM"])
def test_changes_have_no_such_values(output: str) -> None:
    text = f"CONSTRUCT {{ ?u :of ?s }} {{ {WINDOW} {{ ?s :p ?n }} BIND(UUID() AS ?u) }}"
    with pytest.raises(
        UnsupportedQuery, match=r"UUID gives another value each time .* a BIND at the end of an RSTREAM query"
    ):
        compile_query(f"{PREFIX}REGISTER {output} :reports AS {text}")
    with pytest.raises(UnsupportedQuery, match="UUID gives another value"):
        compile_query(REPORTS + text, changelog=True)


def test_spark_refuses_values_that_it_could_not_deliver_again() -> None:
    with pytest.raises(UnsupportedQuery, match="UUID BNODE: another value each time, and Spark, which repeats"):
        stages(f"{REPORTS} SELECT ?s (UUID() AS ?u) (BNODE() AS ?b) {{ {WINDOW} {{ ?s :p ?n }} }}", 2)


def test_explain_names_the_columns() -> None:
    text = f"{REPORTS} SELECT ?s (UUID() AS ?u) (STR(?u) AS ?t) {{ {WINDOW} {{ ?s :p ?n }} }}"
    assert "?u ?t evaluated for each result when it is delivered" in cqels_py.Engine().register(text).explain()


def test_released_terms_leave_values_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The dictionary releases ids and reuses them: memoized values of these ids are void."""
    monkeypatch.setattr("cqels_py.runners.local._COLLECT_FROM", 8)
    text = f"{REPORTS} SELECT ?s (UUID() AS ?u) (CONCAT(STR(?u), STR(?s)) AS ?t) {{ {WINDOW} {{ ?s :p ?n }} }}"
    results = delivered(text, batch=1)
    for found in (result.bindings for result in results):
        assert str(found["t"]) == f"{found['u']}{found['s']}"
    plain = delivered(f"{REPORTS} SELECT ?s {{ {WINDOW} {{ ?s :p ?n }} }}")
    assert without(results, "u", "t") == without(plain)


def test_the_rest_is_as_the_oracle_has_it() -> None:
    plain = f"{REPORTS} SELECT ?s ?n {{ {WINDOW} {{ ?s :p ?n }} }}"
    results = delivered(f"{REPORTS} SELECT ?s ?n (RAND() AS ?r) {{ {WINDOW} {{ ?s :p ?n }} }}")
    expected = harness.expected_changes(harness.parse(plain), pushed())
    for result in results:
        del result.bindings["r"]
    harness.check_equal(expected, [harness._result(result) for result in results])
