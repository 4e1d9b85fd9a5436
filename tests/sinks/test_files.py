"""Results as text: each format read back by another reader, and every kind of term in it."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import numpy as np
import pyoxigraph
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqels_py.batches.results import ResultBatch
from cqels_py.dictionary import Dictionary
from cqels_py.errors import UsageError
from cqels_py.sinks.files import GRAPH_FORMATS, open_sink
from cqels_py.terms.canonical import escape
from tests.formats.reading import Element, iri, read_source

XSD = "http://www.w3.org/2001/XMLSchema#"
BEGIN = 1_357_053_490_000_000
"""2013-01-01T15:18:10Z"""

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
TERMS = st.one_of(
    st.none(),
    st.sampled_from([iri("a"), iri("é"), f'"5"^^<{XSD}integer>', f'"05"^^<{XSD}integer>', f'"1.50"^^<{XSD}decimal>']),
    TEXTS.map(lambda text: f'"{escape(text)}"'),
    TEXTS.map(lambda text: f'"{escape(text)}"@de'),
)
Row = tuple[int, str, tuple[str | None, ...]]
ROWS = st.lists(st.tuples(st.integers(0, 3), st.sampled_from("+-"), st.tuples(TERMS, TERMS)), max_size=8)
Template = tuple[tuple[str, str, str], ...]


def write(
    format_: str,
    rows: list[Row],
    *,
    form: str | None = None,
    variables: tuple[str, ...] = ("a", "b"),
    template: Template = (),
    batches: int = 1,
) -> str:
    """The output of the sink for rows of (seconds after BEGIN, sign, terms), in so many batches."""
    dictionary = Dictionary()
    file = io.StringIO()
    form = form or ("CONSTRUCT" if format_ in GRAPH_FORMATS else "SELECT")
    sink = open_sink(format_, file, dictionary=dictionary, form=form, variables=variables, template=template)
    size = -(-len(rows) // batches) or 1
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        columns = tuple(dictionary.encode([terms[k] for *_, terms in part]) for k in range(len(variables)))
        times = np.array([BEGIN + 1_000_000 * seconds for seconds, *_ in part], np.int64)
        signs = np.array([1 if sign == "+" else -1 for _, sign, _ in part], np.int8)
        sink.write(ResultBatch(variables, times, signs, columns))
    sink.commit()
    return file.getvalue()


def stamp(seconds: int) -> str:
    return f"2013-01-01T15:18:{10 + seconds}Z"


# --- json -------------------------------------------------------------------------------------------------------------


def test_json_is_as_designed() -> None:
    rows: list[Row] = [(0, "+", ("<http://ex.org/a>", f'"12.5"^^<{XSD}decimal>')), (1, "-", ('"hallo"@de', None))]
    assert write("json", rows).splitlines() == [
        '{"time":"2013-01-01T15:18:10Z","sign":"+","bindings":{"a":{"type":"uri","value":"http://ex.org/a"},'
        '"b":{"type":"literal","value":"12.5","datatype":"http://www.w3.org/2001/XMLSchema#decimal"}}}',
        '{"time":"2013-01-01T15:18:11Z","sign":"-","bindings":{"a":{"type":"literal","value":"hallo","xml:lang":"de"}}}',
    ]


def term_of(binding: dict[str, str]) -> str:
    if binding["type"] == "uri":
        return f"<{binding['value']}>"
    body = f'"{escape(binding["value"])}"'
    if "xml:lang" in binding:
        return f"{body}@{binding['xml:lang']}"
    return f"{body}^^<{binding['datatype']}>" if "datatype" in binding else body


@given(ROWS, st.integers(1, 3))
def test_json_holds_every_term(rows: list[Row], batches: int) -> None:
    found = [json.loads(line) for line in write("json", rows, batches=batches).split("\n")[:-1]]
    assert [(r["time"], r["sign"]) for r in found] == [(stamp(seconds), sign) for seconds, sign, _ in rows]
    for result, (*_, terms) in zip(found, rows, strict=True):
        expected = {name: term for name, term in zip("ab", terms, strict=True) if term is not None}
        assert {name: term_of(binding) for name, binding in result["bindings"].items()} == expected


def test_json_blank_nodes_have_one_label_each() -> None:
    [first, second] = map(json.loads, write("json", [(0, "+", ("_:x", "_:x")), (0, "+", ("_:x", "_:y"))]).splitlines())
    assert first["bindings"]["a"] == first["bindings"]["b"] == second["bindings"]["a"] != second["bindings"]["b"]
    assert first["bindings"]["a"]["type"] == "bnode"
    assert not first["bindings"]["a"]["value"].startswith("_:")


def test_json_without_variables() -> None:
    assert write("json", [(0, "+", ())], variables=()) == '{"time":"2013-01-01T15:18:10Z","sign":"+","bindings":{}}\n'


def test_ask_has_a_boolean() -> None:
    rows: list[Row] = [(0, "+", (f'"{answer}"^^<{XSD}boolean>',)) for answer in ("false", "true")]
    found = [json.loads(line) for line in write("json", rows, form="ASK", variables=("boolean",)).splitlines()]
    assert [result["boolean"] for result in found] == [False, True]
    assert "bindings" not in found[0]


def test_a_variable_may_be_called_boolean() -> None:
    text = write("json", [(0, "+", (iri("a"),))], variables=("boolean",))
    assert json.loads(text)["bindings"]["boolean"]["value"] == "http://ex.org/a"


# --- csv and tsv ------------------------------------------------------------------------------------------------------


@given(ROWS, st.integers(1, 3))
def test_csv_holds_the_values(rows: list[Row], batches: int) -> None:
    text = write("csv", rows, batches=batches)
    heading, *found = csv.reader(io.StringIO(text, newline=""))
    assert heading == ["time", "sign", "a", "b"]
    expected = [[stamp(seconds), sign, *map(value_of, terms)] for seconds, sign, terms in rows]
    assert found == expected


def value_of(term: str | None) -> str:
    if term is None:
        return ""
    if term.startswith("<"):
        return term[1:-1]
    return pyoxigraph.parse(f"<a:a> <a:a> {term} .", format=pyoxigraph.RdfFormat.N_TRIPLES).__next__().object.value


def test_csv_tells_nothing_from_an_empty_text() -> None:
    assert write("csv", [(0, "+", ('""', None))]).splitlines()[1].endswith(',+,"",')


@pytest.mark.parametrize("name", ["time", "sign"])
def test_csv_has_no_two_columns_of_one_name(name: str) -> None:
    with pytest.raises(UsageError, match=rf"\?{name}.*another name"):
        write("csv", [], variables=("a", name))
    assert write("tsv", [], variables=("a", name)) == f"time\tsign\t?a\t?{name}\n"


@given(ROWS)
def test_tsv_holds_every_term_on_one_line(rows: list[Row]) -> None:
    lines = write("tsv", rows).split("\n")[:-1]
    found = [line.split("\t") for line in lines[1:]]
    assert lines[0] == "time\tsign\t?a\t?b"
    assert [line[:2] for line in found] == [[stamp(seconds), sign] for seconds, sign, _ in rows]
    for line, (*_, terms) in zip(found, rows, strict=True):
        expected = ["" if term is None else term.replace("\t", "\\t") for term in terms]
        assert line[2:] == expected


# --- graphs -----------------------------------------------------------------------------------------------------------

TEMPLATE: Template = (
    ("?a", iri("p"), "?b"),
    ("_:x", iri("q"), "?a"),
    ("_:x", iri("r"), "_:y"),
    ("?a", iri("p"), '"c"'),
)
FILES = {"nquads": "results.nq", "trig": "results.trig"}


@pytest.mark.parametrize("format_", FILES)
def test_what_is_written_can_be_read_as_a_stream(format_: str, tmp_path: Path) -> None:
    rows: list[Row] = [(0, "+", (iri("a"), '"t\\t"@en')), (0, "-", (iri("b"), iri("c"))), (1, "+", (iri("d"), None))]
    path = tmp_path / FILES[format_]
    path.write_text(write(format_, rows, template=TEMPLATE))
    read = read_source(path)
    assert read.error is None
    expected: list[Element] = [
        (BEGIN, [(iri("a"), iri("p"), '"t\t"@en'), ("_:0", iri("q"), iri("a")), ("_:0", iri("r"), "_:1"),
                 (iri("a"), iri("p"), '"c"')]),
        (BEGIN + 1_000_000, [("_:2", iri("q"), iri("d")), ("_:2", iri("r"), "_:3"), (iri("d"), iri("p"), '"c"')]),
    ]  # fmt: skip
    assert read.elements == expected


@given(ROWS, st.integers(1, 3), st.sampled_from(GRAPH_FORMATS))
def test_graphs_do_not_depend_on_batches(rows: list[Row], batches: int, format_: str) -> None:
    # A batch holds whole ticks.
    rows = [(number, sign, terms) for number, (_, sign, terms) in enumerate(rows)]
    assert write(format_, rows, template=TEMPLATE, batches=batches) == write(format_, rows, template=TEMPLATE)


def test_the_results_of_a_tick_are_one_graph() -> None:
    rows: list[Row] = [(0, "+", (iri("a"), iri("b"))), (0, "+", (iri("a"), iri("b"))), (0, "-", (iri("c"), iri("b")))]
    template: Template = (("?a", iri("p"), "?b"), ("_:x", iri("q"), "?b"))
    lines = write("nquads", [*rows, (1, "+", (iri("a"), iri("b")))], template=template).splitlines()
    graphs = [line.split()[-2] for line in lines]
    # The triple of both results once, and a blank node for each.
    assert [graphs.count(f"<urn:cqels:result:{number}>") for number in (0, 1)] == [3, 2]
    assert len({line.split()[0] for line in lines if iri("q") in line}) == 3


def test_two_ticks_of_one_instant_are_two_graphs() -> None:
    dictionary = Dictionary()
    file = io.StringIO()
    sink = open_sink(
        "nquads",
        file,
        dictionary=dictionary,
        form="CONSTRUCT",
        variables=("a",),
        template=((iri("s"), iri("p"), "?a"),),
    )
    ids = dictionary.encode([iri("a"), iri("b"), iri("a")])
    tick = np.array([4, 4, 5], np.int32)
    sink.write(ResultBatch(("a",), np.zeros(3, np.int64), np.ones(3, np.int8), (ids,), tick))
    names = [line.split()[-2] for line in file.getvalue().splitlines() if iri("s") in line]
    assert names == [f"<urn:cqels:result:{number}>" for number in (0, 0, 1)]


def test_triples_that_cannot_be_are_left_out() -> None:
    template: Template = (("?a", iri("p"), "?b"), (iri("s"), "?a", "?b"), ("?missing", iri("p"), "?b"))
    assert write("nquads", [(0, "+", ('"text"', iri("o")))], template=template) == ""
    text = write("nquads", [(0, "+", ("_:b", iri("o")))], template=template)
    assert text.count(iri("p")) == 1
    assert iri("s") not in text


@pytest.mark.parametrize("format_", FILES)
def test_graphs_are_well_formed(format_: str) -> None:
    form = pyoxigraph.RdfFormat.N_QUADS if format_ == "nquads" else pyoxigraph.RdfFormat.TRIG
    rows: list[Row] = [(n, "+", (iri("a"), f'"{n}\\n\\"\\\\"')) for n in range(4)]
    quads = list(pyoxigraph.parse(write(format_, rows, template=TEMPLATE), format=form))
    graphs = {quad.graph_name for quad in quads}
    assert len(graphs) == 5
    assert len(quads) == 4 * 5


@given(ROWS)
def test_turtle_is_turtle(rows: list[Row]) -> None:
    form = pyoxigraph.RdfFormat.TURTLE
    template: Template = (("?a", iri("p"), "?b"), (iri("s"), iri("q"), "?a"), (iri("s"), iri("q"), "?b"))
    read = list(pyoxigraph.parse(write("turtle", rows, template=template), format=form))
    quads = pyoxigraph.parse(write("nquads", rows, template=template), format=pyoxigraph.RdfFormat.N_QUADS)
    assert read == [
        pyoxigraph.Quad(quad.subject, quad.predicate, quad.object)
        for quad in quads
        if quad.graph_name != pyoxigraph.DefaultGraph()
    ]


# --- times ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("micros", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (10_000_000, "1970-01-01T00:00:10Z"),
        (1, "1970-01-01T00:00:00.000001Z"),
        (1_500_000, "1970-01-01T00:00:01.5Z"),
        (-1, "1969-12-31T23:59:59.999999Z"),
        (-62_135_596_800_000_000, "0001-01-01T00:00:00Z"),
    ],
)
@pytest.mark.parametrize("format_", ["csv", "nquads"])
def test_times_have_the_digits_they_need(format_: str, micros: int, text: str) -> None:
    dictionary, file = Dictionary(), io.StringIO()
    form, template = ("SELECT", ()) if format_ == "csv" else ("CONSTRUCT", ((iri("s"), iri("p"), "?a"),))
    sink = open_sink(format_, file, dictionary=dictionary, form=form, variables=("a",), template=template)
    sink.write(ResultBatch(("a",), np.array([micros]), np.ones(1, np.int8), (dictionary.encode([iri("a")]),)))
    assert text in re.split('[,"]|\n', file.getvalue())


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(UsageError, match="there are json, csv, tsv, nquads, turtle, trig"):
        open_sink("xml", io.StringIO(), dictionary=Dictionary(), form="SELECT", variables=("a",))
