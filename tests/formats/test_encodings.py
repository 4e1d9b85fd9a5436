"""The beginning of files: byte order marks, declared encodings of XML, and the kind of JSON."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from cqels_py.dictionary import Dictionary
from cqels_py.errors import DataError
from cqels_py.formats.static import load_static
from tests.formats.reading import GENERATED, TIME, Source, iri, source

__all__ = ["source"]

MARK = b"\xef\xbb\xbf"
TURTLE = b'@prefix : <http://ex.org/> .\n:a :time 1 ; :name "caf\xc3\xa9" .\n'
TRIG = f"@prefix : <http://ex.org/> .\n:g {GENERATED} 1 .\n:g {{ :a :name 5 }}\n".encode()
JSON = b'{"@id": "http://ex.org/a",\n "http://ex.org/time": 1, "http://ex.org/name": "caf\xc3\xa9"}\n'


def static(path: Path) -> list[tuple[str | None, ...]]:
    dictionary = Dictionary()
    columns = load_static(str(path), dictionary, 1)
    return list(zip(*(dictionary.decode(column) for column in columns[:3]), strict=True))


NAMED = (iri("a"), iri("name"), '"café"')


@pytest.mark.parametrize(("name", "text"), [("d.ttl", TURTLE), ("d.n3", TURTLE), ("d.jsonld", JSON), ("d.json", JSON)])
def test_a_mark_and_endings_do_not_matter(name: str, text: bytes, source: Source, tmp_path: Path) -> None:
    for chunk_bytes in (1, 2, 1000):
        for content in (text, MARK + text):
            read = source(name, content, time_predicate=TIME, chunk_bytes=chunk_bytes)
            assert (read.error, len(read.elements), NAMED in read.triples[0]) == (None, 1, True)
    assert NAMED in static(tmp_path / name)
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(MARK + text))
    assert NAMED in static(tmp_path / f"{name}.gz")


def test_a_mark_before_trig(source: Source, tmp_path: Path) -> None:
    for content in (TRIG, MARK + TRIG):
        assert source("d.trig", content).elements == [(1, [(iri("a"), iri("name"), f'"5"^^<{XSD_INTEGER}>')])]
    assert len(static(tmp_path / "d.trig")) == 2


XSD_INTEGER = "http://www.w3.org/2001/XMLSchema#integer"


def test_a_mark_within_a_file_is_no_mark(source: Source) -> None:
    assert source("d.ttl", MARK + MARK + TURTLE, time_predicate=TIME).error is not None


def test_n3_beyond_turtle_is_refused(source: Source) -> None:
    read = source("d.n3", "@prefix : <http://ex.org/> .\n{ :a :p :b } => { :b :p :a } .\n", time_predicate=TIME)
    assert "only the subset that is Turtle" in str(read.error)
    assert "d.n3:2:" in str(read.error)


def xml(declaration: str) -> str:
    return (
        f'{declaration}<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://ex.org/">\n'
        '<rdf:Description rdf:about="http://ex.org/a"><time>1</time><name>café</name></rdf:Description></rdf:RDF>\n'
    )


def declared(name: str) -> str:
    return xml(f'<?xml version="1.0" encoding="{name}"?>\n')


XML = [
    xml("").encode(),
    MARK + xml("").encode(),
    xml("<?xml version='1.0'?>").encode(),
    declared("utf-8").encode(),
    declared("ISO-8859-1").encode("latin-1"),
    declared("iso-8859-15").encode("iso-8859-15"),
    declared("windows-1252").encode("cp1252"),
    declared("UTF-16").encode("utf-16"),
    xml("").encode("utf-16"),
    declared("UTF-16").encode("utf-16-be"),
]


@pytest.mark.parametrize("content", XML)
def test_xml_is_in_the_encoding_that_it_names(content: bytes, source: Source, tmp_path: Path) -> None:
    for chunk_bytes in (1, 7, 5000):
        read = source("d.rdf", content, time_predicate=TIME, chunk_bytes=chunk_bytes)
        assert (read.error, len(read.elements), NAMED in read.triples[0]) == (None, 1, True)
    assert NAMED in static(tmp_path / "d.rdf")


@pytest.mark.parametrize("name", ["x-klingon", "base64", "rot13"])
def test_xml_in_another_encoding_is_refused(name: str, source: Source) -> None:
    assert f"the encoding {name} is not known" in str(source("d.rdf", declared(name), time_predicate=TIME).error)


def test_xml_with_half_characters_is_refused(source: Source) -> None:
    read = source("d.rdf", declared("unicode_escape").replace("é", "\\ud800"), time_predicate=TIME)
    assert "not in its declared encoding unicode_escape" in str(read.error)


def test_xml_that_does_not_match_its_declaration_is_refused(source: Source) -> None:
    read = source("d.rdf", declared("us-ascii"), time_predicate=TIME)
    assert "not in its declared encoding us-ascii" in str(read.error)


# --- .json ------------------------------------------------------------------------------------------------------------

LINE = (
    '{{"@id": "http://ex.org/{0}", "http://www.w3.org/ns/prov#generatedAtTime": {0}, '
    '"http://ex.org/p": {{"http://ex.org/q": 1}}}}\n'
)
GRAPH = '{"@context": {"@vocab": "http://ex.org/"}, "@graph": [{"@id": "http://ex.org/a", "time": 1}, {"time": 2}]}\n'


@pytest.mark.parametrize(
    ("text", "times"),
    [
        (LINE.format(1) + LINE.format(2), [1, 2]),
        ("\n\n" + LINE.format(1) + "\n" + LINE.format(2).strip(), [1, 2]),
        (LINE.format(3), [3]),
    ],
)
def test_documents_in_lines(text: str, times: list[int], source: Source, tmp_path: Path) -> None:
    for chunk_bytes in (1, 30, 5000):
        read = source("d.json", text, chunk_bytes=chunk_bytes)
        assert (read.error, [(time, len(triples)) for time, triples in read.elements]) == (
            None,
            [(t, 3) for t in times],
        )
    assert len(static(tmp_path / "d.json")) == 3 * len(times)


@pytest.mark.parametrize("text", [GRAPH, GRAPH.replace("[", "[\n"), "\n" + GRAPH.strip()])
def test_a_document_alone(text: str, source: Source, tmp_path: Path) -> None:
    for chunk_bytes in (1, 30, 5000):
        read = source("d.json", text, time_predicate=TIME, chunk_bytes=chunk_bytes)
        assert (read.error, [time for time, _ in read.elements]) == (None, [1, 2])
    assert len(static(tmp_path / "d.json")) == 2


def test_lines_of_static_data_have_nodes_of_their_own(tmp_path: Path) -> None:
    line = '{"@id": "_:n", "http://ex.org/p": "_:n", "http://ex.org/q": {"@id": "_:n"}}\n'
    (tmp_path / "d.json").write_text(2 * line)
    found = static(tmp_path / "d.json")
    assert len({s for s, _, _ in found}) == 2
    assert {s == o for s, p, o in found if p == iri("q")} == {True}


def test_invalid_json_is_reported(source: Source, tmp_path: Path) -> None:
    assert source("d.json", '{"@id": \n', time_predicate=TIME).error is not None
    with pytest.raises(DataError, match=r"d\.json"):
        static(tmp_path / "d.json")


# --- labels -----------------------------------------------------------------------------------------------------------


def test_labels_like_those_of_new_nodes_are_others(source: Source) -> None:
    read = source("d.ttl", "@prefix : <http://ex.org/> . :a :time 1 ; :p _:node.0, [ :q 1 ] .", time_predicate=TIME)
    assert len({o for [triples] in [read.triples] for _, _, o in triples if o.startswith("_:")}) == 2


def test_labels_that_look_random_are_remembered(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    from cqels_py.formats import turtle

    monkeypatch.setattr(turtle, "_NODES_REMEMBERED", 4)
    monkeypatch.setattr(turtle, "_BATCH", 4)
    label = "_:" + "0123456789abcdef" * 2
    many = "".join(f":x{n} :time {n + 2} ; :p [] .\n" for n in range(40))
    text = f"@prefix : <http://ex.org/> .\n:a :time 1 ; :p {label} .\n{many}:b :time 99 ; :p {label} .\n"
    for chunk_bytes in (1, 5000):
        read = source("d.ttl", text, time_predicate=TIME, chunk_bytes=chunk_bytes)
        assert read.triples[0][1][2] == read.triples[-1][1][2]
        assert len({triples[1][2] for triples in read.triples}) == 41
