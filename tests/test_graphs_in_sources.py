"""Named graphs of elements in files and tables, and statements of the default graph about them, as in the oracle."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rdflib import XSD, BNode, Literal, URIRef

import cqels_py
from cqels_py.algebra.nodes import Output
from cqels_py.errors import DataError
from cqels_py.terms.rdf import from_rdflib
from tests.oracle.naive import Element
from tests.oracle.naive_values import date_time_literal
from tests.support import harness, traces
from tests.support.traces import EX, STREAMS

STREAM = URIRef(STREAMS + "s")
TIME = URIRef("http://www.w3.org/ns/prov#generatedAtTime")
TRIPLES = traces.triples("a p b, a p c, b p c, b q a, c q a, c p g, g p a")
BY, ROOM = URIRef(EX + "by"), URIRef(EX + "room")
FEW = settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
Writer = Callable[[Path, Sequence[Element]], Path]


@st.composite
def arriving(draw: st.DrawFn) -> list[Element]:
    """Each with a graph, and perhaps triples about it."""
    drawn = draw(
        st.lists(
            st.tuples(
                st.sampled_from([0, 1, 1, 2]),
                st.sampled_from(["g", "g", "h", "k"]),
                st.lists(st.sampled_from(TRIPLES), min_size=1, max_size=3, unique=True),
                st.lists(
                    st.sampled_from([(BY, URIRef(EX + "a")), (BY, URIRef(EX + "b")), (ROOM, Literal("R"))]),
                    max_size=2,
                    unique=True,
                ),
            ),
            max_size=8,
        )
    )
    times = accumulate(seconds for seconds, *_ in drawn)
    return [
        Element(
            time * 1_000_000, STREAM, tuple(triples), URIRef(EX + name), tuple((URIRef(EX + name), *po) for po in about)
        )
        for time, (_, name, triples, about) in zip(times, drawn, strict=True)
    ]


def line(*terms: object) -> str:
    return " ".join(str(from_rdflib(term)) for term in terms) + " .\n"


def time_of(element: Element) -> Literal:
    return Literal(date_time_literal(element.time), datatype=XSD.dateTime)


def nquads(path: Path, elements: Sequence[Element]) -> Path:
    """Statements about the graph stand before, among or after its triples."""
    lines = []
    for number, each in enumerate(elements):
        inside = [line(*triple, each.graph) for triple in each.triples]
        about = [line(*triple) for triple in each.about]
        lines.append(line(each.graph, TIME, time_of(each)))
        lines += [about + inside, inside + about, inside[:1] + about + inside[1:]][number % 3]
    return written(path.with_suffix(".nq"), "".join(lines))


def trig(path: Path, elements: Sequence[Element]) -> Path:
    blocks = []
    for each in elements:
        about = [line(each.graph, TIME, time_of(each)), *(line(*triple) for triple in each.about)]
        inside = "".join(line(*triple) for triple in each.triples)
        blocks.append(f"{''.join(about)}{from_rdflib(each.graph)} {{\n{inside}}}\n")
    return written(path.with_suffix(".trig"), "".join(blocks))


def ndjson(path: Path, elements: Sequence[Element]) -> Path:
    lines = []
    for each in elements:
        nodes = [{"@id": str(s), str(p): value(o)} for s, p, o in each.triples]
        when = {"@value": str(time_of(each)), "@type": str(XSD.dateTime)}
        about: dict[str, object] = {}
        for _, p, o in each.about:
            about.setdefault(str(p), []).append(value(o))  # type: ignore[attr-defined]
        lines.append(json.dumps({"@id": str(each.graph), str(TIME): when, **about, "@graph": nodes}) + "\n")
    return written(path.with_suffix(".ndjson"), "".join(lines))


def value(term: object) -> dict[str, str]:
    return {"@value": str(term)} if isinstance(term, Literal) else {"@id": str(term)}


def table_rows(elements: Sequence[Element]) -> list[tuple[object, ...]]:
    return [
        (each.time, "" if each.graph is None else from_rdflib(each.graph), *map(from_rdflib, triple))
        for each in elements
        for triple in each.triples
    ]


COLUMNS = ("time", "graph", "subject", "predicate", "object")


def comma_separated(path: Path, elements: Sequence[Element]) -> Path:
    with path.with_suffix(".csv").open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([COLUMNS, *table_rows(elements)])
    return path.with_suffix(".csv")


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


QUERIES = (
    "[RANGE 2s] { GRAPH ?g { ?s :p ?o } }",
    "[RANGE 2s] { GRAPH :g { ?s :p ?o } ?s :q ?x }",
    "[RANGE 2s] { GRAPH ?g { ?s ?x ?o } ?g :by ?sensor }",
    "[RANGE 3s] { GRAPH ?g { ?s :p ?o } OPTIONAL { ?g :room ?r } FILTER NOT EXISTS { GRAPH ?g { ?g :by ?b } } }",
    "[TRIPLES 3] { GRAPH ?g { ?s ?x ?o } }",
    "[TRIPLES 3] { ?s ?x ?o }",
    "[TRIPLES 2] { ?g :by ?b }",
    "[TRIPLES 4 STEP 3] { ?g ?x ?b }",
    "[COUNT 2] { ?g :by ?b }",
    "[COUNT 2] { ?s ?x ?o }",
    "[TRIPLES 2 PARTITION BY ?s] { ?s ?x ?o }",
    "[COUNT 1 PARTITION BY ?b] { ?g :by ?b GRAPH ?g { ?s :p ?o } }",
    "[RANGE 2s STEP 2s] { GRAPH ?g { ?s :p ?o } ?g ?x ?b }",
)


def text_of(group: str) -> str:
    return f"PREFIX : <{EX}> SELECT * {{ STREAM <{STREAM}> {group} }}"


def assert_right(text: str, source: object, elements: Sequence[Element], batch: int | None = None) -> None:
    expected = harness.expected_changes(harness.parse(text), elements, None, Output.CHANGELOG)
    engine = cqels_py.Engine(batch=batch)
    results: list[harness.Result] = []
    engine.register(text, changelog=True).subscribe(lambda result: results.append(harness._result(result)))
    engine.run({str(STREAM): source})
    harness.check_equal(expected, results)


@pytest.mark.parametrize("write", [nquads, trig, ndjson])
@pytest.mark.parametrize("group", QUERIES)
def test_files(write: Writer, group: str, tmp_path: Path) -> None:
    @FEW
    @given(arriving())
    def check(elements: list[Element]) -> None:
        assert_right(text_of(group), str(write(tmp_path / "file", elements)), elements, random.choice([None, 1]))

    check()


@pytest.mark.parametrize(
    "group", ["[RANGE 2s] { GRAPH ?g { ?s :p ?o } }", "[TRIPLES 3] { ?s ?x ?o GRAPH ?g { ?s ?y ?o } }"]
)
def test_tables(group: str, tmp_path: Path) -> None:
    @FEW
    @given(arriving())
    def check(elements: list[Element]) -> None:
        drawn = [replace(each, about=(), graph=None if n % 4 == 3 else each.graph) for n, each in enumerate(elements)]
        # Rows of one time and graph are one element.
        mine: list[Element] = []
        for each in drawn:
            if mine and (mine[-1].time, mine[-1].graph) == (each.time, each.graph):
                mine[-1] = replace(mine[-1], triples=mine[-1].triples + each.triples)
            else:
                mine.append(each)
        assert_right(text_of(group), str(comma_separated(tmp_path / "file", mine)), mine)
        rows = list(zip(*table_rows(mine), strict=True)) or [[]] * len(COLUMNS)
        types = [pa.int64(), *[pa.string()] * 4]
        columns = [pa.array(column, type=kind) for column, kind in zip(rows, types, strict=True)]
        assert_right(text_of(group), pa.table(columns, names=list(COLUMNS)), mine)

    check()


def answers(text: str, source: object, **options: object) -> list[tuple[str, ...]]:
    engine = cqels_py.Engine(**options)  # type: ignore[arg-type]
    query = engine.register(text)
    engine.run({str(STREAM): source})
    return [tuple(map(str, result.bindings.values())) for result in query.results()]


def test_all_that_is_said_of_graphs_may_stand_ahead_of_them(tmp_path: Path) -> None:
    graphs = [URIRef(f"{EX}g{n}") for n in range(300)]
    said = [
        line(g, TIME, Literal(f"2024-05-01T12:{n // 60:02}:{n % 60:02}Z", datatype=XSD.dateTime))
        for n, g in enumerate(graphs)
    ]
    said += [line(g, ROOM, Literal(f"room {n % 7} {k}")) for k in range(3) for n, g in enumerate(graphs)]
    inside = [line(URIRef(EX + "s"), BY, Literal(f"{n}"), g) for n, g in enumerate(graphs)]
    path = written(tmp_path / "file.nq", "".join(said + inside))
    found = answers(text_of("[NOW] { GRAPH ?g { ?s :by ?n } ?g :room ?r }"), str(path))
    assert len(found) == 900
    assert {(g, n, r) for g, _, n, r in found} == {
        (str(g), str(n), f"room {n % 7} {k}") for k in range(3) for n, g in enumerate(graphs)
    }


def test_the_triple_that_gives_the_time_matches_nothing(tmp_path: Path) -> None:
    elements = [Element(1_000_000, STREAM, TRIPLES[:1], URIRef(EX + "g"))]
    for write in (nquads, trig, ndjson):
        assert answers(text_of("[ALL] { ?g ?p ?time }"), str(write(tmp_path / "file", elements))) == [
            (EX + "a", EX + "p", EX + "b")
        ]


def test_a_blank_node_names_a_graph(tmp_path: Path) -> None:
    text = "".join(
        [
            line(BNode("g"), TIME, Literal("2024-05-01T12:00:00Z", datatype=XSD.dateTime)),
            line(BNode("g"), BY, Literal("s1")),
            line(URIRef(EX + "a"), ROOM, BNode("g"), BNode("g")),
        ]
    )
    path = str(written(tmp_path / "file.nq", text))
    query = text_of("[ALL] { GRAPH ?g { ?s :room ?g } ?g :by ?b }")
    assert [row[1:] for row in answers(query, path)] == [(EX + "a", "s1")]
    assert [row[1:] for row in answers(query, path, blank_nodes="element")] == [(EX + "a", "s1")]
    engine = cqels_py.Engine()
    asked = engine.register(text_of("[ALL] { GRAPH ?g { ?s :room ?g } }"))
    engine.push(str(STREAM), [(f"<{EX}a>", f"<{ROOM}>", "_:g")], time=1, graph="_:g")
    engine.push(str(STREAM), [(URIRef(EX + "b"), ROOM, BNode("h"))], time=2, graph=BNode("h"))
    engine.push(str(STREAM), [(URIRef(EX + "c"), ROOM, BNode("h"))], time=3)
    assert [str(result.bindings["s"]) for result in asked.results()] == [EX + "a", EX + "b"]


def test_lines_with_several_graphs(tmp_path: Path) -> None:
    def node(name: str) -> dict[str, object]:
        return {"@id": EX + name, str(BY): {"@id": EX + "x"}}

    when = {str(TIME): {"@value": "2024-05-01T12:00:00Z", "@type": str(XSD.dateTime)}}
    graphs = [{"@id": EX + "g", **when, "@graph": [node("a")]}, {"@id": EX + "h", "@graph": [node("b")]}, node("c")]
    nameless = {"@id": EX + "d", str(BY): {"@id": EX + "x"}, **when}
    path = str(written(tmp_path / "file.ndjson", f"{json.dumps(graphs)}\n{json.dumps(nameless)}\n"))
    assert set(answers(text_of("[ALL] { GRAPH ?g { ?s :by ?x } }"), path)) == {
        (EX + "g", EX + "a", EX + "x"),
        (EX + "h", EX + "b", EX + "x"),
    }
    assert [row[0] for row in answers(text_of("[ALL] { ?s :by ?x }"), path)] == [EX + name for name in "abcd"]


G_TIME = line(URIRef(EX + "g"), TIME, Literal("2024-05-01T12:00:00Z", datatype=XSD.dateTime))
SAID, INSIDE = line(URIRef(EX + "g"), BY, Literal("x")), line(*TRIPLES[0], URIRef(EX + "g"))
OTHER = line(URIRef(EX + "h"), TIME, Literal("2024-05-01T12:00:01Z", datatype=XSD.dateTime)) + line(
    *TRIPLES[0], URIRef(EX + "h")
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (G_TIME + INSIDE + line(URIRef(EX + "a"), BY, Literal("x")), "or is about the graph of the current element"),
        (G_TIME + INSIDE + OTHER + SAID, "or is about the graph of the current element"),
        (SAID + G_TIME + INSIDE, "or is about the graph of the current element"),
        (G_TIME + SAID + OTHER, f"about <{EX}g> belong to no element"),
        (
            G_TIME + SAID + OTHER.replace("/h>", "/k>") + OTHER.replace("/h>", "/i>").split("\n")[0] + "\n",
            "belong to no element",
        ),
    ],
)
def test_triples_without_an_element_are_reported(text: str, message: str, tmp_path: Path) -> None:
    path = str(written(tmp_path / "file.nq", text))
    query = text_of("[ALL] { ?s :p ?o }")
    with pytest.raises(DataError, match=message):
        answers(query, path)
    told: list[str] = []
    found = answers(query, path, on_error="skip", report=lambda error: told.append(str(error)))
    assert found
    assert len(told) == 1


def test_with_a_time_predicate_triples_about_a_graph_may_stand_anywhere_before_it(tmp_path: Path) -> None:
    at = line(
        URIRef(EX + "s"), URIRef(EX + "at"), Literal("2024-05-01T12:00:00Z", datatype=XSD.dateTime), URIRef(EX + "g")
    )
    path = str(written(tmp_path / "file.nq", SAID + at + INSIDE))
    query = text_of("[ALL @ :at] { GRAPH ?g { ?s :p ?o } ?g :by ?b }")
    assert answers(query, path) == [(EX + "g", EX + "a", EX + "b", "x")]


@pytest.mark.parametrize("graph", ["not an iri>", '"text"', "<relative iri>", Literal("x"), "\ud800"])
def test_names_that_are_none(graph: object) -> None:
    engine = cqels_py.Engine()
    engine.register(text_of("[ALL] { GRAPH ?g { ?s :p ?o } }"))
    with pytest.raises(DataError, match="graph"):
        engine.push(str(STREAM), list(TRIPLES[:1]), time=1, graph=graph)
    with pytest.raises(cqels_py.UsageError, match="graph must name the element's graph"):
        engine.push(str(STREAM), list(TRIPLES[:1]), time=1, graph=7)


def test_invalid_graph_names_in_tables_are_refused_where_graphs_are_needed() -> None:
    table = pa.table([[1], ["g1"], [f"<{EX}a>"], [f"<{EX}p>"], [f"<{EX}b>"]], names=list(COLUMNS))
    assert answers(text_of("[ALL] { ?s :p ?o }"), table) == [(EX + "a", EX + "b")]
    with pytest.raises(DataError, match=r"the graph is .*a query asks for it: expected <iri> or _:label, or nothing"):
        answers(text_of("[ALL] { GRAPH ?g { ?s :p ?o } }"), table)


def test_names_of_graphs_are_released_with_their_elements() -> None:
    engine = cqels_py.Engine()
    query = engine.register(text_of("[COUNT 10] { GRAPH ?g { ?s :p ?o } }"))
    query.subscribe_batches(lambda batch: None, ids=True)
    for start in range(0, 400_000, 40_000):
        n = 40_000
        names = [f"<{EX}g{i}>" for i in range(start, start + n)]
        columns = [list(range(start, start + n)), names, [f"<{EX}a>"] * n, [f"<{EX}p>"] * n, [f"<{EX}b>"] * n]
        engine.push_batch(str(STREAM), pa.table(columns, names=list(COLUMNS)))
    assert len(engine.dictionary) < 300_000


def test_nobody_asks_so_no_name_is_kept() -> None:
    engine = cqels_py.Engine()
    engine.register(text_of("[COUNT 10] { ?s :p ?o }"))
    before = len(engine.dictionary)
    engine.push(str(STREAM), [(f"<{EX}a>", f"<{EX}p>", f"<{EX}b>")], time=1, graph=f"<{EX}unheard>")
    assert len(engine.dictionary) <= before + 2
