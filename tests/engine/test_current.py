"""The answer that stands, against the oracle at drawn ticks."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rdflib import Graph, URIRef

import cqels_py
from cqels_py import Engine, UsageError
from tests.oracle import naive
from tests.oracle.naive import Element
from tests.support import harness, traces
from tests.support.generators import FEW
from tests.support.traces import EX, STREAMS

S = STREAMS + "s"
TRIPLES = traces.triples("a p 1, a p 2, b p 1, b p 2, c p 1, c q b, a q b, a q a, b q c")
EXTENTS = (
    *(
        "RANGE 1s",
        "RANGE 2s STEP 1s",
        "RANGE 3s STEP 2s",
        "SESSION 1s",
        "SESSION 1s STEP 2s",
        "COUNT 2",
        "COUNT 3 STEP 2",
    ),
    *("TRIPLES 3", "TRIPLES 4 STEP 2", "FROM NOW-3s TO NOW-1s"),
    *("COUNT 2 PARTITION BY ?s", "TRIPLES 1 PARTITION BY ?s", "COUNT 1 STEP 2 PARTITION BY ?s"),
    *("SESSION 1s PARTITION BY ?s", "SESSION 1s STEP 2s PARTITION BY ?s"),
)
BODIES = (
    "SELECT ?s ?n {{ {w} {{ ?s :p ?n }} }}",
    "SELECT ?s ?o {{ {w} {{ ?s :p ?n . ?s :q ?o }} }}",
    "SELECT (COUNT(*) AS ?k) {{ {w} {{ ?s :p ?n }} }}",
    "SELECT ?s (MAX(?n) AS ?k) (AVG(?n) AS ?m) {{ {w} {{ ?s :p ?n }} }} GROUP BY ?s",
    "SELECT DISTINCT ?s {{ {w} {{ ?s :p ?n }} FILTER(?n > 1) }}",
    "SELECT ?s ?n {{ {w} {{ ?s :p ?n OPTIONAL {{ ?s :q ?o }} }} }} ORDER BY ?n LIMIT 2",
    "SELECT ?s {{ {w} {{ ?s :p ?n FILTER NOT EXISTS {{ ?s :q ?o }} }} }}",
    "ASK {{ {w} {{ ?s :q ?o }} }}",
    "SELECT ?s ?o {{ {w} {{ ?s :q+ ?o }} }}",
)


@st.composite
def arriving(draw: st.DrawFn) -> list[Element]:
    one = st.tuples(st.sampled_from([0, 1, 1, 2, 3, 8]), st.lists(st.sampled_from(TRIPLES), max_size=4))
    drawn = draw(st.lists(one, max_size=10))
    times = accumulate(halves for halves, _ in drawn)
    return [Element(time * 500_000, URIRef(S), tuple(triples)) for time, (_, triples) in zip(times, drawn, strict=True)]


@pytest.mark.parametrize("extent", EXTENTS)
@pytest.mark.parametrize("output", ["", "REGISTER RSTREAM :o AS ", "REGISTER DSTREAM :o AS "])
def test_the_answer_that_stands(extent: str, output: str) -> None:
    """It is that of the oracle's last tick, and asking changes nothing."""

    # A path is no triple pattern, which PARTITION BY asks for.
    bodies = BODIES[:-1] if "PARTITION" in extent else BODIES

    @FEW
    @given(st.sampled_from(bodies), arriving(), st.integers(0, 10))
    def check(body: str, elements: list[Element], asked: int) -> None:
        text = body.format(w=f"STREAM <{S}> [{extent}]")
        if "RSTREAM" not in output:
            text = text.partition(" ORDER")[0]
        compiled = harness.compiled(f"PREFIX : <{EX}> {output}{text}")
        engine, delivered = Engine(), list[Any]()
        query = engine.register(compiled)
        query.subscribe(lambda result: delivered.append(harness._result(result)))
        for number, element in enumerate(elements):
            engine.push(S, list(element.triples), time=element.time)
            if number == asked:
                engine.flush()
                compare(query, elements[: number + 1], ended=False)
        compare(query, elements, ended=False)
        engine.finish()
        compare(query, elements, ended=True)
        harness.check_equal(harness.expected_changes(compiled.asked, elements), delivered)

    check()


OF_ALL = (
    "SELECT ?s (COUNT(*) AS ?k) {{ {a} {{ ?s :p ?n }} }} GROUP BY ?s",
    "SELECT (COUNT(*) AS ?k) (MAX(?n) AS ?m) {{ {a} {{ ?s :p ?n }} }}",
    "SELECT ?s (AVG(?n) AS ?m) {{ {a} {{ ?s :p ?n }} }} GROUP BY ?s HAVING(COUNT(*) > 1) ORDER BY ?m ?s LIMIT 2",
    "SELECT DISTINCT ?s {{ {a} {{ ?s :q ?n }} }}",
    "SELECT ?s ?n ?o {{ {w} {{ ?s :p ?n }} {a} {{ ?s :q ?o }} }}",
    "SELECT ?s ?n ?o {{ {w} {{ ?s :p ?n }} OPTIONAL {{ {a} {{ ?s :q ?o }} }} }}",
    "SELECT ?s ?n {{ {w} {{ ?s :p ?n }} MINUS {{ {a} {{ ?s :q ?o }} }} }}",
    "SELECT ?s (COUNT(*) AS ?k) {{ {w} {{ ?s :p ?n }} {a} {{ ?s :q ?o }} }} GROUP BY ?s",
    "SELECT ?s (COUNT(*) AS ?k) (SUM(?n) AS ?m) {{ {a} {{ ?s :p ?n }} {a} {{ ?s :q ?o }} }} GROUP BY ?s",
    "SELECT ?o (COUNT(*) AS ?k) (SUM(?n) AS ?m) {{ {a} {{ ?s :p ?n }} {a} {{ ?s :q ?o }} }} GROUP BY ?o",
    "SELECT ?s ?k ?n {{ {w} {{ ?s :p ?n }} {{ SELECT ?s (COUNT(*) AS ?k) {{ {a} {{ ?s :q ?o }} }} GROUP BY ?s }} }}",
    "SELECT ?s (MIN(?n) AS ?m) {{ {{ {a} {{ ?s :p ?n }} }} UNION {{ {w} {{ ?s :q ?n }} }} }} GROUP BY ?s",
)


@pytest.mark.parametrize("body", OF_ALL)
@pytest.mark.parametrize("extent", ["RANGE 1s", "COUNT 2"])
def test_windows_that_never_run_empty(body: str, extent: str) -> None:
    text = f"PREFIX : <{EX}> " + body.format(w=f"STREAM <{S}> [{extent}]", a=f"STREAM <{S}> [ALL]")
    compiled = harness.compiled(text)

    @FEW
    @given(arriving())
    def check(elements: list[Element]) -> None:
        engine = Engine()
        query = engine.register(compiled)
        for number, element in enumerate(elements):
            engine.push(S, list(element.triples), time=element.time)
            compare(query, elements[: number + 1], ended=False)

    check()


def compare(query: Any, elements: list[Element], *, ended: bool) -> None:
    ticks = naive.ticks(query.compiled.asked, elements, ended=ended)
    found = [harness._result(result) for result in query.current()]
    if not ticks:
        assert found == []
        return
    wanted = [(1, row) for row in ticks[-1].rows]
    assert harness.unmatched(wanted, [(result.sign, result.mapping) for result in found]) == ([], [])
    assert {result.time for result in found} <= {ticks[-1].time}


def test_asking_takes_nothing_and_needs_nobody_to_listen() -> None:
    engine = Engine(batch=10)
    query = engine.register(f"PREFIX : <{EX}> SELECT ?s ?n {{ STREAM <{S}> [RANGE 2s] {{ ?s :p ?n }} }}")
    assert query.current() == []
    for second in range(5):
        engine.push(S, [(EX + "a", EX + "p", second)], time=second * 1_000_000)
    assert [(r.time, r.sign, r.bindings["n"].toPython()) for r in query.current()] == [
        (4_000_000, 1, 3),
        (4_000_000, 1, 4),
    ]
    table = query.current_arrow(time_column="at", schema={"n": "int8"})
    assert (table["n"].to_pylist(), table.schema.names) == ([3, 4], ["at", "sign", "s", "n"])
    assert query.waiting == 5
    engine.advance(5_500_000)
    assert [r.bindings["n"].toPython() for r in query.current()] == [4]
    engine.unregister(query)
    with pytest.raises(UsageError, match="no longer registered"):
        query.current()


def test_a_construct_query_has_a_graph() -> None:
    engine = Engine()
    query = engine.register(
        f"PREFIX : <{EX}> CONSTRUCT {{ ?s :is [ :n ?n ] }} {{ STREAM <{S}> [RANGE 2s] {{ ?s :p ?n }} ?s :kind :k }}",
        static=[[(EX + "a", EX + "kind", f"<{EX}k>")]],
    )
    engine.push(S, [(EX + "a", EX + "p", 1), (EX + "b", EX + "p", 1)], time=0)
    graph = query.current()
    assert isinstance(graph, Graph)
    assert len(graph) == 2
    assert str(next(graph.subjects(URIRef(EX + "is")))) == EX + "a"


REFUSED = [
    ("SELECT * { STREAM <{S}> [ALL] { ?s :p ?n } }", "which never runs empty"),
    ("SELECT * { STREAM <{S}> [COUNT 100000000] { ?s :p ?n } }", "takes too long"),
    ("SELECT * { STREAM <{S}> [RANGE 30d STEP 1ms] { ?s :p ?n } }", "takes too long"),
    (
        "SELECT * { STREAM <{S}> [ALL] { ?s :p ?n } MINUS { STREAM <{S}> [RANGE 1s] { ?s :q ?o } } }",
        "which never runs empty",
    ),
    (
        "SELECT * { { STREAM <{S}> [RANGE 1s] { ?s :p ?n } } UNION { STREAM <{S}> [ALL] { ?s :q ?n } } }",
        "never runs empty",
    ),
    ("SELECT * { STREAM <{S}> [RANGE 2s] { ?s :p ?n FILTER(NOW() > ?n) } }", r"NOW\(\)"),
    ("SELECT * { STREAM <{S}> [TRIPLES 2] { ?s ?p ?n } }", "a pattern of variables alone"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_queries_without_an_answer_that_could_be_computed(text: str, message: str) -> None:
    engine = Engine()
    query = engine.register(f"PREFIX : <{EX}> " + text.replace("{S}", S))
    with pytest.raises(UsageError, match=f"{message}.*changelog=True"):
        query.current()


def test_a_subscriber_cannot_ask() -> None:
    engine = Engine()
    query = engine.register(f"PREFIX : <{EX}> SELECT ?s {{ STREAM <{S}> [RANGE 2s] {{ ?s :p ?n }} }}")
    query.subscribe(lambda _: query.current())
    with pytest.raises(UsageError, match="by a subscriber"):
        engine.push(S, [(EX + "a", EX + "p", 1)], time=0)


def test_one_line_for_a_file(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text(
        "time,subject,predicate,object\n1,<urn:s>,<urn:p>,<urn:o>\n2,<urn:s>,<urn:p>,<urn:o>\n"
    )
    text = f"SELECT (COUNT(*) AS ?n) {{ STREAM <{S}> [RANGE 2s] {{ ?s <urn:p> ?o }} }}"
    found = cqels_py.query(text, streams={S: tmp_path / "s.csv"}, changelog=True, lateness="1s")
    assert [(row.sign, row.bindings["n"].toPython()) for row in found] == [(1, 1), (-1, 1), (1, 2)]
    with pytest.raises(UsageError, match="streams is a mapping of IRIs to sources"):
        cqels_py.query(text, streams="s.csv")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="no source was given"):
        cqels_py.query(text, streams={})


def test_asking_a_construct_again_and_again_keeps_nothing_more() -> None:
    engine = Engine()
    query = engine.register("CONSTRUCT { ?s <urn:q> ?o } { STREAM <urn:s> [RANGE 1h] { ?s <urn:p> ?o } }")
    engine.push("urn:s", [("urn:a", "urn:p", 1)], time=0)
    query.current()
    kept = len(engine.dictionary._pinned)
    for _ in range(3):
        query.current()
    assert len(engine.dictionary._pinned) == kept
