"""Results as Jelly, read back by its own library and as a stream."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyoxigraph
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cqels_py.batches.results import ResultBatch
from cqels_py.dictionary import Dictionary
from cqels_py.errors import MissingExtra, UsageError
from cqels_py.sinks.files import open_sink
from cqels_py.terms.canonical import escape
from tests.formats.reading import iri, read_source
from tests.support.servers import needed_module

XSD = "http://www.w3.org/2001/XMLSchema#"
PROV = "http://www.w3.org/ns/prov#generatedAtTime"
TEMPLATE = (("?a", iri("p"), "?b"), ("_:x", iri("q"), "?a"), ("?a", f"<{PROV}>", '"c"'))
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
SUBJECTS = st.sampled_from([iri("a"), iri("b#c"), "<urn:x>", "<http://é.org/,>", "_:n"])
TERMS = st.one_of(
    st.none(),
    SUBJECTS,
    st.sampled_from([f'"5"^^<{XSD}integer>', f'"05"^^<{XSD}integer>', f'"x"^^<{iri("kind")[1:]}']),
    st.builds(lambda text, end: f'"{escape(text)}"{end}', TEXTS, st.sampled_from(["", "@de", "@en-gb"])),
)
Row = tuple[int, int, str, str | None]
"""Seconds, sign, and the terms of ?a and ?b."""
ROWS = st.lists(st.tuples(st.integers(0, 3), st.sampled_from([1, -1]), SUBJECTS, TERMS), max_size=8).map(
    lambda rows: sorted(rows, key=lambda row: row[0])
)
Quads = set[tuple[str, ...]]


@pytest.fixture(autouse=True)
def package() -> None:
    needed_module("pyjelly", "jelly")


def written(format_: str, rows: list[Row], file: Any, steps: int = 1) -> None:
    """Write the rows to a file in so many batches, each of whole ticks."""
    dictionary = Dictionary()
    sink = open_sink(format_, file, dictionary=dictionary, form="CONSTRUCT", variables=("a", "b"), template=TEMPLATE)
    for step in range(steps):
        part = [row for row in rows if row[0] % steps == step] if steps > 1 else rows
        times = np.array([row[0] * 1_000_000 for row in part], np.int64)
        signs = np.array([row[1] for row in part], np.int8)
        columns = dictionary.encode([row[2] for row in part]), dictionary.encode([row[3] for row in part])
        sink.write(ResultBatch(("a", "b"), times, signs, columns))
    sink.commit()


def bytes_of(rows: list[Row], steps: int = 1) -> bytes:
    file = io.BytesIO()
    written("jelly", rows, file, steps)
    return file.getvalue()


def expected(rows: list[Row], steps: int = 1) -> list[Quads]:
    """The quads of each graph, by N-Quads and another reader."""
    file = io.StringIO()
    written("nquads", rows, file, steps)
    graphs: list[Quads] = []
    for quad in pyoxigraph.parse(file.getvalue(), format=pyoxigraph.RdfFormat.N_QUADS):
        if quad.graph_name == pyoxigraph.DefaultGraph():
            graphs.append(set())
        terms = quad.subject, quad.predicate, quad.object
        name = "" if quad.graph_name == pyoxigraph.DefaultGraph() else str(quad.graph_name)
        graphs[-1].add((*map(str, terms), name))
    return graphs


def found(data: bytes) -> list[Quads]:
    """The quads of each frame, by the library."""
    from pyjelly.integrations.generic.generic_sink import Literal
    from pyjelly.integrations.generic.parse import parse_jelly_grouped

    def text(term: Any) -> str:
        if not isinstance(term, Literal):
            return str(term)
        kind = pyoxigraph.NamedNode(term._datatype) if term._datatype else None
        return str(pyoxigraph.Literal(term._lex, language=term._langtag, datatype=None if term._langtag else kind))

    frames = parse_jelly_grouped(io.BytesIO(data), logical_type_strict=True)
    return [{tuple(map(text, quad)) for quad in frame} for frame in frames]


@settings(max_examples=60, deadline=None)
@given(ROWS, st.sampled_from([1, 2]))
def test_a_frame_has_the_quads_of_a_graph(rows: list[Row], steps: int) -> None:
    data = bytes_of(rows, steps)
    assert (found(data) if data else []) == expected(rows, steps)


@settings(max_examples=40, deadline=None)
@given(rows=ROWS)
def test_what_is_written_is_read_as_a_stream(tmp_path_factory: Any, rows: list[Row]) -> None:
    """As the same results in N-Quads are."""
    folder = tmp_path_factory.mktemp("jelly")
    for name, format_ in (("a.jelly", "jelly"), ("a.nq", "nquads")):
        with (folder / name).open("w", encoding="utf-8", newline="") as file:
            written(format_, rows, file)
    read, same = read_source(folder / "a.jelly"), read_source(folder / "a.nq")
    assert read.error is None
    assert read.elements == same.elements
    assert len(read.elements) == len({seconds for seconds, sign, *_ in rows if sign > 0})


def test_more_terms_than_the_tables_of_a_stream_hold() -> None:
    """Of the names and prefixes of IRIs, and of datatypes, the oldest are replaced."""
    rows: list[Row] = [
        (0, 1, f"<http://ex.org/{n % 700}/{n}>", f'"{n}"^^<http://ex.org/kinds/{n % 70}>') for n in range(9_000)
    ]
    assert found(bytes_of(rows)) == expected(rows)


def test_the_stream_says_that_its_graphs_have_times() -> None:
    from pyjelly import jelly
    from pyjelly.parse.ioutils import get_options_and_frames

    options, frames = get_options_and_frames(io.BytesIO(bytes_of([(0, 1, iri("a"), None), (1, 1, iri("a"), None)])))
    assert options.stream_types.logical_type == jelly.LOGICAL_STREAM_TYPE_TIMESTAMPED_NAMED_GRAPHS
    assert len(list(frames)) == 2


def test_a_commit_says_how_long_the_file_is(tmp_path: Path) -> None:
    path = tmp_path / "a.jelly"
    with path.open("w", encoding="utf-8") as file:
        sink = open_sink(
            "jelly",
            file,
            dictionary=Dictionary(),
            form="CONSTRUCT",
            variables=(),
            template=((iri("s"), iri("p"), iri("o")),),
        )
        assert sink.commit() == 0
        sink.write(ResultBatch((), np.zeros(1, np.int64), np.ones(1, np.int8), ()))
        assert sink.commit() == path.stat().st_size > 0


def test_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="jelly cannot hold the results of SELECT"):
        open_sink("jelly", io.BytesIO(), dictionary=Dictionary(), form="SELECT", variables=("a",))
    with pytest.raises(UsageError, match=r'give a file such as open\("out.jelly", "wb"\)'):
        bytes_in_text = io.StringIO()
        written("jelly", [], bytes_in_text)
    monkeypatch.setitem(sys.modules, "pyjelly.jelly", None)
    with pytest.raises(MissingExtra, match=r"pip install 'cqels_py\[jelly\]'"):
        bytes_of([])
