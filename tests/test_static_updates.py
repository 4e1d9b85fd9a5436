"""Static data is replaced while the query runs: the engine agrees with the oracle before, at and after each update."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rdflib import Graph, Literal, URIRef

import cqels_py
from cqels_py.algebra.nodes import Dialect, Output
from cqels_py.dataflow.static_data import StaticData
from cqels_py.engine import static_updates
from cqels_py.errors import DataError, UsageError
from tests.oracle.naive import Element, Static
from tests.support import harness, traces
from tests.support.generators import FEATURES, FEW, WINDOWS, Scenario, answerable, scenarios, static_data

EX = "http://ex.org/"
TEXT = f"PREFIX : <{EX}> SELECT ?s ?n ?name {{ STREAM <{EX}stream> [RANGE 10s] {{ ?s :p ?n }} ?s :name ?name }}"
NAMED = f"PREFIX : <{EX}> SELECT * {{ STREAM <{EX}stream> [RANGE 10s] {{ ?s :p ?n }} GRAPH ?g {{ ?s :name ?name }} }}"


def agree(scenario: Scenario, updates: list[tuple[int, Static]], output: Output | None = Output.CHANGELOG) -> None:
    with answerable():
        harness.assert_engine_right(
            scenario.texts[Dialect.CQELS_QL], scenario.elements, scenario.static, output, updates=updates
        )


@st.composite
def drawn_updates(draw: st.DrawFn, elements: int) -> list[tuple[int, Static]]:
    places = draw(st.lists(st.integers(0, elements), min_size=1, max_size=3))
    return [(place, draw(static_data())) for place in sorted(places)]


@given(st.data(), scenarios(FEATURES - {"ask"}, WINDOWS, most_elements=10))
def test_everything_with_static_data(data: st.DataObject, scenario: Scenario) -> None:
    agree(scenario, data.draw(drawn_updates(len(scenario.elements))))


@pytest.mark.parametrize(
    "feature", ["static", "graph", "optional", "minus", "not_exists", "union", "path", "aggregate"]
)
def test_each_feature(feature: str) -> None:
    @FEW
    @given(st.data(), scenarios({"join", "static", feature}, {"range", "count"}, most_elements=10))
    def check(data: st.DataObject, scenario: Scenario) -> None:
        agree(scenario, data.draw(drawn_updates(len(scenario.elements))))

    check()


STATIC = [
    "SELECT * { %w { ?s :p ?n } MINUS { ?s :name ?name } }",
    "SELECT * { %w { ?s :p ?n } OPTIONAL { ?s :name ?name } }",
    "SELECT * { %w { ?s :p ?n } ?s :link+ ?t }",
    "SELECT * { %w { ?s :p ?n } { SELECT (COUNT(*) AS ?k) { ?t :name ?name } } }",
    "SELECT * { %w { ?s :p ?n } ?s :name ?a FILTER NOT EXISTS { ?t :name ?b FILTER(?a < ?b) } }",
    "SELECT ?s (COUNT(?name) AS ?k) (MIN(?name) AS ?least) { %w { ?s :p ?n } ?s :name ?name } GROUP BY ?s",
    "SELECT DISTINCT ?name { %w { ?s :p ?n } ?s :name ?name }",
    "SELECT ?s ?name { %w { ?s :p ?n } ?s :name ?name } ORDER BY ?name ?s LIMIT 2",
    "SELECT (COUNT(*) AS ?k) { %w { ?s :p ?n } ?s :name ?name }",
    "ASK { %w { ?s :p ?n } ?s :name 'B' }",
    "SELECT * { ?s :name ?name OPTIONAL { %w { ?s :p ?n } } }",
    # The left side is read twice, also by another static sub-plan.
    "SELECT * { ?s :name ?name FILTER NOT EXISTS { %w { ?t :p ?n } FILTER(?t != ?s) } }",
    "SELECT * { ?s :link ?t FILTER EXISTS { %w { ?s :p ?n } MINUS { ?t :name ?name } } }",
    "SELECT * { ?s :link ?t OPTIONAL { ?t :name ?name } MINUS { %w { ?x :p ?n } ?x :name ?name } }",
]


def _static(*triples: str) -> Static:
    return Static([tuple(map(traces.term, triple.split())) for triple in triples])  # type: ignore[misc]


@pytest.mark.parametrize("window", ["[RANGE 2s]", "[RANGE 4s STEP 2s]"])
@pytest.mark.parametrize("text", STATIC)
def test_kinds_of_static_sub_plans(text: str, window: str) -> None:
    stream = URIRef(traces.STREAMS + "s")
    subjects = ["a", "b", "a", "c", "b", "a"]
    elements = [
        Element(n * 1_000_000, stream, ((traces.term(s), traces.term("p"), traces.term(str(n))),))
        for n, s in enumerate(subjects)
    ]
    before = _static("a name 'A'", "b name 'B'", "a link c", "b link a")
    after = _static("a name 'A'", "a name 'Z'", "c name 'B'", "a link b", "b link c")
    query = f"PREFIX : <{traces.EX}> " + text.replace("%w", f"STREAM <{stream}> {window}")
    updates = [(0, after), (2, before), (4, after), (4, Static()), (6, before)]
    harness.assert_engine_right(
        query, elements, before, None if text.startswith("ASK") else Output.CHANGELOG, updates=updates
    )


CORRELATED = [
    "SELECT ?s { ?s :link ?x FILTER NOT EXISTS { %w { ?w :p ?x } FILTER(?w != ?s) } }",
    "SELECT ?s { ?s :link ?x FILTER EXISTS { %w { ?w :p ?x } FILTER(?w != ?s) } }",
    "SELECT ?s { ?s :link ?x FILTER NOT EXISTS { %w { ?w :p ?x } MINUS { ?w :link ?x FILTER(?w != ?s) } } }",
    "SELECT ?s { ?s :link ?x FILTER EXISTS { %w { ?w :p ?x } OPTIONAL { ?w :link ?v } FILTER(?v != ?s) } }",
    "SELECT ?s { ?s :link ?x FILTER NOT EXISTS { { %w { ?w :p ?x } } UNION { ?s :name ?w } FILTER(?w != ?s) } }",
    "SELECT ?s { ?s :link ?x FILTER EXISTS { { SELECT ?x (COUNT(*) AS ?k) { %w { ?w :p ?x } } GROUP BY ?x } FILTER(?s != ?x) } }",
    "SELECT ?s { { ?s :link ?x OPTIONAL { ?x :name ?z } } MINUS { %w { ?w :p ?z } } }",
    # The inner static part is answered from the outer one, which stands behind it in the plan.
    "SELECT * { ?s :link ?x OPTIONAL { %w { ?w :p ?x } ?x :name ?v FILTER(?v = ?v) } }",
    "SELECT * { ?s :link ?x OPTIONAL { %w { ?w :p ?y } ?x :name ?v FILTER(?u != ?x) } }",
]


@pytest.mark.parametrize("text", CORRELATED)
def test_static_parts_that_read_other_static_parts(text: str) -> None:
    stream = URIRef(traces.STREAMS + "s")
    elements = [
        Element(n * 1_000_000, stream, ((traces.term(s), traces.term("p"), traces.term(o)),))
        for n, (s, o) in enumerate(["ab", "bc", "ca", "bb"])
    ]
    full = _static("a link b", "b link b", "c link a", "a name b", "b name c")
    query = f"PREFIX : <{traces.EX}> " + text.replace("%w", f"STREAM <{stream}> [ALL]")
    for before, after in ((full, Static()), (Static(), full), (full, _static("b link c", "c name a"))):
        for updates in ([(0, after)], [(2, after)], [(1, after), (3, before)]):
            harness.assert_engine_right(query, elements, before, Output.CHANGELOG, updates=updates)


# --- the interface --------------------------------------------------------------------------------------------------


def _name(text: str, subject: str = "a") -> tuple[URIRef, URIRef, Literal]:
    return URIRef(EX + subject), URIRef(EX + "name"), Literal(text)


def _running(text: str = TEXT, **options: object) -> tuple[cqels_py.Engine, cqels_py.Query]:
    engine = cqels_py.Engine()
    query = engine.register(text, changelog=True, **options)  # type: ignore[arg-type]
    engine.push(EX + "stream", [(URIRef(EX + "a"), URIRef(EX + "p"), Literal(1))], time=5)
    return engine, query


def _told(query: cqels_py.Query) -> list[tuple[int, int, str]]:
    return [(result.time, result.sign, str(result.bindings["name"])) for result in query.results()]


def test_subscribers_see_the_change_at_once_at_the_time_of_the_last_element() -> None:
    _, query = _running(static=[[_name("old"), _name("same")]])
    list(query.results())
    query.update_static(static=[[_name("same"), _name("new")]])
    assert _told(query) == [(5, -1, "old"), (5, 1, "new")]


def test_the_time_moves_on_with_a_promise() -> None:
    engine, query = _running(static=[[_name("old")]])
    list(query.results())
    engine.advance(7)
    query.update_static(static=Graph().add(_name("new")))
    assert _told(query) == [(7, -1, "old"), (7, 1, "new")]


def test_an_update_without_data_leaves_none() -> None:
    _, query = _running(static=[[_name("old")]])
    query.update_static()
    assert [sign for _, sign, _ in _told(query)] == [1, -1]


def test_named_graphs_are_replaced_too() -> None:
    _, query = _running(NAMED, static_graphs={EX + "g": [_name("old")]})
    query.update_static(static_graphs={EX + "h": [_name("old")]})
    assert [(r.sign, str(r.bindings["g"])) for r in query.results()] == [(1, EX + "g"), (-1, EX + "g"), (1, EX + "h")]


def test_an_update_with_malformed_data_changes_nothing() -> None:
    _, query = _running(static=[[_name("old")]])
    list(query.results())
    with pytest.raises(DataError):
        query.update_static(static=b"<http://ex.org/a> <http://ex.org/name> .\n")
    query.update_static(static=[[_name("new")]])
    assert _told(query) == [(5, -1, "old"), (5, 1, "new")]


def test_other_queries_keep_their_data() -> None:
    engine, query = _running(static=[[_name("old")]])
    other = engine.register(TEXT, static=[[_name("own")]])
    query.update_static(static=[[_name("new")]])
    engine.push(EX + "stream", [(URIRef(EX + "a"), URIRef(EX + "p"), Literal(1))], time=6)
    assert [str(result.bindings["name"]) for result in other.results()] == ["own"]


def test_a_query_that_is_gone_cannot_be_updated() -> None:
    engine, query = _running()
    engine.unregister(query)
    with pytest.raises(UsageError, match="not registered here"):
        query.update_static()


def test_a_query_that_another_thread_unregisters_while_the_data_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, query = _running()
    other = engine.register(TEXT, static=[[_name("own")]])
    delivering, reading, gone = threading.Event(), threading.Event(), threading.Event()
    load = static_updates.load_static_data

    def read(*given: Any) -> StaticData:
        reading.set()
        assert gone.wait(60)
        return load(*given)

    def unregister(_: object) -> None:
        if delivering.is_set():
            return
        delivering.set()
        assert reading.wait(60)
        engine.unregister(query)
        gone.set()

    monkeypatch.setattr(static_updates, "load_static_data", read)
    other.subscribe(unregister)
    thread = threading.Thread(target=_push, args=(engine, 6))
    thread.start()
    assert delivering.wait(60)
    with pytest.raises(UsageError, match="no longer"):
        query.update_static(static=[[_name("new")]])
    thread.join()
    _push(engine, 7)
    assert engine.statistics.elements == 3


def test_a_query_with_rules_refuses_other_data_and_the_engine_goes_on() -> None:
    engine, query = _running(static=[[_name("old")]])
    asked = engine.register_rules("P(X):-Q(X)").state("P")
    with pytest.raises(UsageError, match="with rules cannot be replaced"):
        asked.update_static(static=[[_name("new")]])
    list(query.results())
    _push(engine, 6)
    assert len(list(query.results())) == 1


def _push(engine: cqels_py.Engine, time: int) -> None:
    engine.push(EX + "stream", [(URIRef(EX + "a"), URIRef(EX + "p"), Literal(time))], time=time)


def test_a_subscriber_cannot_update_in_the_middle_of_results() -> None:
    engine, query = _running(static=[[_name("old")]])
    list(query.results())
    query.subscribe(lambda _: query.update_static())
    with pytest.raises(UsageError, match="while results are delivered"):
        engine.push(EX + "stream", [(URIRef(EX + "a"), URIRef(EX + "p"), Literal(1))], time=6)
