"""DESCRIBE: the engine's descriptions equal the oracle's, at every tick."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from hypothesis import given, reject
from rdflib import BNode, Literal, URIRef

import cqels_py
from cqels_py.algebra.nodes import Dialect, Output
from cqels_py.errors import UnsupportedQuery
from cqels_py.sinks.files import open_sink
from tests.oracle import naive, naive_describe
from tests.oracle.naive import Element, Static
from tests.support import harness, traces
from tests.support.generators import FEW, RSP_QL_WINDOWS, Scenario, answerable, scenarios

EX = traces.EX
PREFIX = f"PREFIX : <{EX}> "
S, T = (URIRef(traces.STREAMS + name) for name in "st")


def check(text: str, elements: list[Element], static: Static | None = None) -> None:
    query = harness.parse(text)
    elements = [element for element in elements if element.stream in {window.stream for window in query.windows}]
    asked = replace(query, output=Output.CHANGELOG)
    expected = naive.output(asked, naive_describe.ticks(asked, elements, static))
    for batch in (1, 3, None):
        results = harness.run_engine(text, elements, static, batch, Output.CHANGELOG)
        harness.check_equal(expected, results, f"batch {batch}")


def _element(second: int, stream: URIRef, *triples: str) -> Element:
    return Element(second * 1_000_000, stream, tuple(tuple(map(traces.term, t.split())) for t in triples))  # type: ignore[misc]


ELEMENTS = [
    _element(0, S, "a p 1", "a link b"),
    _element(1, T, "b q 1", "a q 2"),
    _element(2, S, "b p 2", "b p 2"),
    _element(3, S, "a p 1"),
    _element(3, T, "c q 1", "c link a"),
    _element(6, S, "c p 3"),
    _element(9, T, "b q 2"),
]
STATIC = Static([tuple(map(traces.term, t.split())) for t in ("a name 'A'", "b name 'B'", "b link a", "d name 'D'")])  # type: ignore[misc]

TEXTS = [
    f"DESCRIBE ?s {{ STREAM <{S}> [RANGE 2s] {{ ?s :p ?n }} }}",
    f"DESCRIBE ?s ?t {{ STREAM <{S}> [RANGE 3s] {{ ?s :link ?t }} }}",
    f"DESCRIBE * {{ STREAM <{S}> [RANGE 3s] {{ ?s :p ?n }} STREAM <{T}> [COUNT 2] {{ ?s :q ?m }} }}",
    f"DESCRIBE ?s :d {{ STREAM <{S}> [RANGE 2s] {{ ?s :p ?n }} }}",
    f"DESCRIBE :a {{ STREAM <{S}> [RANGE 4s STEP 2s] {{ ?s :p ?n }} }}",
    f"DESCRIBE :a FROM STREAM <{S}> [RANGE 2s] FROM STREAM <{T}> [RANGE 2s]",
    f"DESCRIBE ?s FROM STREAM <{S}> [RANGE 2s] {{ ?s :p ?n }}",
    f"DESCRIBE ?t {{ STREAM <{S}> [RANGE 2s] {{ ?s :p ?n }} OPTIONAL {{ ?s :link ?t }} }}",
    f"DESCRIBE ?subject {{ STREAM <{S}> [RANGE 2s] {{ ?subject :p ?object }} }}",
    f"DESCRIBE ?predicate {{ STREAM <{S}> [RANGE 2s] {{ ?predicate :p ?subject }} }}",
    f"DESCRIBE ?s {{ STREAM <{S}> [RANGE 5s] {{ ?s :p ?n }} }} ORDER BY DESC(?n) ?s LIMIT 1",
    f"REGISTER ISTREAM :o AS DESCRIBE ?s FROM NAMED WINDOW :w ON <{S}> [RANGE PT3S] {{ WINDOW :w {{ ?s :p ?n }} }}",
]


@pytest.mark.parametrize("text", TEXTS)
def test_descriptions(text: str) -> None:
    check(PREFIX + text, ELEMENTS, STATIC)


@FEW
@given(scenarios({"join", "filter", "optional", "union", "static"}, RSP_QL_WINDOWS, most_elements=8))
def test_drawn_patterns_are_described(scenario: Scenario) -> None:
    text = scenario.texts[Dialect.CQELS_QL]
    if "SELECT" not in text:
        reject()
    with answerable():
        check(
            text.replace("SELECT DISTINCT", "SELECT").replace("SELECT", "DESCRIBE", 1),
            list(scenario.elements),
            scenario.static,
        )


def test_blank_nodes_are_described_as_far_as_they_lead() -> None:
    engine = cqels_py.Engine()
    query = engine.register(f"{PREFIX}DESCRIBE ?s {{ STREAM <{S}> [RANGE 10s] {{ ?s :p ?n }} }}", changelog=True)
    a, b, p, q = (URIRef(EX + name) for name in "abpq")
    one, two, three = BNode("one"), BNode("two"), BNode("three")
    chain = [(a, p, one), (one, q, two), (two, q, one), (two, q, b), (b, q, Literal(1)), (three, q, a)]
    engine.push(str(S), chain, time=0)
    found = [(r.sign, type(r.bindings["subject"]), r.bindings["predicate"]) for r in query.results()]
    assert sorted(found, key=str) == sorted([(1, URIRef, p), (1, BNode, q), (1, BNode, q), (1, BNode, q)], key=str)
    engine.push(str(S), [(b, q, Literal(2))], time=20_000_000)
    assert [r.sign for r in query.results()] == [-1] * 4


def test_results_are_graphs() -> None:
    engine = cqels_py.Engine()
    query = engine.register(f"{PREFIX}DESCRIBE ?s {{ STREAM <{S}> [RANGE 10s] {{ ?s :p ?n }} }}")
    assert (query.form, query.variables) == ("CONSTRUCT", ("subject", "predicate", "object"))
    file = io.StringIO()
    sink = open_sink(
        "nquads",
        file,
        dictionary=engine.dictionary,
        form=query.form,
        variables=query.variables,
        template=query.template,
    )
    query.subscribe_batches(sink.write, ids=True)
    engine.push(str(S), list(ELEMENTS[0].triples), time=0)
    assert file.getvalue().count("<urn:cqels:result:0>") == 3


def test_entailed_triples_are_not_described() -> None:
    with pytest.raises(UnsupportedQuery, match="write a CONSTRUCT"):
        cqels_py.Engine().register(f"{PREFIX}DESCRIBE ?s {{ STREAM <{S}> [NOW] {{ ?s :p ?n }} }}", entailment="rdfs")
