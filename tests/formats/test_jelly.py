"""Jelly files as streams, written by its own library."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cqels_py.dictionary import Dictionary
from cqels_py.errors import CqelsError, DataError
from cqels_py.formats import jelly
from cqels_py.sources.files import open_source
from cqels_py.sources.protocol import Opening
from tests.support.servers import needed_module

GENERATED = "http://www.w3.org/ns/prov#generatedAtTime"
DATE = "http://www.w3.org/2001/XMLSchema#dateTime"
Found = list[tuple[int, set[tuple[str, ...]]]]


@pytest.fixture(autouse=True)
def package() -> None:
    needed_module("pyjelly", "jelly")


def iri(name: str) -> Any:
    from pyjelly.integrations.generic.generic_sink import IRI

    return IRI(f"http://ex.org/{name}")


def literal(text: str, language: str | None = None, datatype: str | None = None) -> Any:
    from pyjelly.integrations.generic.generic_sink import Literal

    return Literal(text, langtag=language, datatype=datatype)


def time_of(subject: Any, second: int) -> tuple[Any, ...]:
    from pyjelly.integrations.generic.generic_sink import IRI

    return subject, IRI(GENERATED), literal(f"1970-01-01T00:00:0{second}Z", datatype=DATE)


def options(logical: str, physical: str) -> Any:
    from pyjelly import jelly as pb
    from pyjelly.options import StreamParameters
    from pyjelly.serialize.streams import SerializerOptions

    flows = needed_module("pyjelly.serialize.flows", "jelly")
    kind = getattr(pb, f"LOGICAL_STREAM_TYPE_{logical}")
    return SerializerOptions(
        flow=flows.flow_for_type(kind)(logical_type=kind),
        logical_type=kind,
        params=StreamParameters(generalized_statements=False, rdf_star=False),
    )


def written(path: Path, groups: Sequence[Sequence[tuple[Any, ...]]], logical: str | None) -> Path:
    """A file with each group in a frame; a flat one if no logical type is given."""
    from pyjelly.integrations.generic.generic_sink import GenericStatementSink, Quad, Triple
    from pyjelly.integrations.generic.serialize import flat_stream_to_file, grouped_stream_to_file

    made = [[(Triple if len(each) == 3 else Quad)(*each) for each in group] for group in groups]
    with path.open("wb") as file:
        if logical is None:
            flat_stream_to_file((each for group in made for each in group), file)
        else:

            def sinks() -> Iterator[Any]:
                for group in made:
                    sink = GenericStatementSink()
                    for each in group:
                        sink.add(each)
                    yield sink

            grouped_stream_to_file(sinks(), file, options=options(logical, ""))
    return path


def read(path: Path, **how: Any) -> Found:
    dictionary = Dictionary()
    found: Found = []
    for batch in open_source(str(path), Opening(stream="", number=0, dictionary=dictionary, **how)):
        columns = [dictionary.decode(column) for column in (batch.subject, batch.predicate, batch.object)]
        bounds = batch.first.tolist()
        for e, time in enumerate(batch.time.tolist()):
            triples = zip(*(column[bounds[e] : bounds[e + 1]] for column in columns), strict=True)
            found.append((time // 1_000_000, {tuple(map(str, triple)) for triple in triples}))
    return found


def test_flat_quads_are_grouped_by_graph(tmp_path: Path) -> None:
    from pyjelly.integrations.generic.generic_sink import BlankNode, DefaultGraph

    quads = []
    for n in range(1, 4):
        graph = iri(f"g{n}")
        quads.append((*time_of(graph, n), DefaultGraph))
        quads.append((iri("a"), iri("p"), literal('größer "x"\n', "de"), graph))
        quads.append((iri("a"), iri("q"), BlankNode("b"), graph))
    found = read(written(tmp_path / "a.jelly", [quads], None))
    assert [time for time, _ in found] == [1, 2, 3]
    assert ("<http://ex.org/a>", "<http://ex.org/p>", '"größer \\"x\\"\\n"@de') in found[0][1]
    nodes = {object_ for _, triples in found for _, predicate, object_ in triples if predicate.endswith("q>")}
    assert len(nodes) == 1, "a label is one node in its file"


def test_flat_triples_are_grouped_by_subject(tmp_path: Path) -> None:
    triples = []
    for n in range(1, 4):
        triples += [time_of(iri(f"s{n}"), n), (iri(f"s{n}"), iri("p"), literal(str(n)))]
    found = read(written(tmp_path / "a.jelly", [triples], None), time_predicate=GENERATED)
    assert [(time, len(found)) for time, found in found] == [(1, 2), (2, 2), (3, 2)]


@pytest.mark.parametrize("logical", ["GRAPHS", "DATASETS"])
def test_a_frame_of_a_grouped_stream_is_an_element(tmp_path: Path, logical: str) -> None:
    """Also where two subjects, or frames with the same ones, would be other elements in a flat stream."""
    from pyjelly.integrations.generic.generic_sink import DefaultGraph

    end = () if logical == "GRAPHS" else (DefaultGraph,)
    groups = [
        [
            (*time_of(iri("s"), n), *end),
            (iri("s"), iri("p"), literal(str(n)), *end),
            (iri("t"), iri("p"), literal("x"), *end),
        ]
        for n in (1, 2, 3)
    ]
    found = read(written(tmp_path / "a.jelly", groups, logical))
    assert [(time, len(found)) for time, found in found] == [(1, 3), (2, 3), (3, 3)]


def test_named_graphs_with_timestamps_are_read_as_quads_are(tmp_path: Path) -> None:
    """A graph may come again with another time, the time may stand behind it, and labels are those of the file."""
    from pyjelly.integrations.generic.generic_sink import BlankNode, DefaultGraph

    graph, inner = iri("g"), time_of(iri("s"), 9)
    groups = [
        [(*time_of(graph, 1), DefaultGraph), (BlankNode("b"), iri("p"), literal("1"), graph), (*inner, graph)],
        [(BlankNode("b"), iri("p"), literal("2"), graph), (*time_of(graph, 2), DefaultGraph)],
    ]
    found = read(written(tmp_path / "a.jelly", groups, "TIMESTAMPED_NAMED_GRAPHS"))
    assert [(time, len(triples)) for time, triples in found] == [(1, 2), (2, 1)]
    assert len({subject for _, triples in found for subject, predicate, _ in triples if predicate.endswith("p>")}) == 1


def test_an_empty_file_has_no_elements(tmp_path: Path) -> None:
    (tmp_path / "a.jelly").write_bytes(b"")
    assert read(tmp_path / "a.jelly") == []


def test_compressed(tmp_path: Path) -> None:
    import gzip

    path = written(tmp_path / "a.jelly", [[time_of(iri("s"), 1)]], None)
    packed = tmp_path / "b.jelly.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert read(packed, time_predicate=GENERATED) == read(path, time_predicate=GENERATED)


@settings(max_examples=30, deadline=None)
@given(cut=st.integers(0, 400), change=st.one_of(st.none(), st.binary(min_size=1, max_size=3)))
def test_damaged_files_are_data_errors(tmp_path_factory: Any, cut: int, change: bytes | None) -> None:
    folder = tmp_path_factory.mktemp("jelly")
    data = bytearray(
        written(folder / "a.jelly", [[time_of(iri(f"s{n}"), n)] for n in range(1, 6)], "GRAPHS").read_bytes()
    )
    if change is None:
        data = data[:cut]
    else:
        data[cut : cut + len(change)] = change
    (folder / "b.jelly").write_bytes(data)
    try:
        found = read(folder / "b.jelly", time_predicate=GENERATED)
    except DataError as error:
        assert "b.jelly" in str(error)
    else:
        assert len(found) <= 5


def test_what_is_wrong_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.jelly"
    path.write_bytes(b"no frames at all, but text")
    with pytest.raises(DataError, match=r"a\.jelly: frame 1 is not valid Jelly"):
        read(path)
    good = written(tmp_path / "b.jelly", [[(iri("s"), iri("p"), literal("x"))]], "GRAPHS")
    with pytest.raises(DataError, match="has no time"):
        read(good)
    tagged = written(tmp_path / "c.jelly", [[(iri("s"), iri("p"), literal("x", "en-a"))]], "GRAPHS")
    with pytest.raises(DataError, match=r"c\.jelly: frame 1 is"):
        read(tagged)
    monkeypatch.setattr(jelly, "MOST_BYTES", 10)
    with pytest.raises(DataError, match="is longer than 0 MiB"):
        read(good)
    monkeypatch.setitem(sys.modules, "pyjelly.jelly", None)
    with pytest.raises(CqelsError, match=r"needs the package pyjelly: pip install 'cqels_py\[jelly\]'"):
        read(good)


def test_generalized_statements_are_refused(tmp_path: Path) -> None:
    from pyjelly.integrations.generic.generic_sink import BlankNode

    for place, statement in (
        ("subject", (literal("x"), iri("p"), iri("o"), iri("g"))),
        ("predicate", (iri("s"), BlankNode("b"), iri("o"), iri("g"))),
        ("predicate", (iri("s"), literal("p"), iri("o"), iri("g"))),
        ("graph", (iri("s"), iri("p"), iri("o"), literal("g"))),
    ):
        path = written(tmp_path / "g.jelly", [[statement]], None)
        with pytest.raises(
            DataError, match=rf"frame 1 is .*: the {place} of a statement is .*generalized statements are not"
        ):
            read(path)
