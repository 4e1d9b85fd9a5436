"""Turtle, TriG, RDF/XML and JSON-LD as streams and as static data; JSON objects by line."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import numpy as np
import pytest

from cqels_py.dictionary import Dictionary
from cqels_py.errors import DataError, UsageError
from cqels_py.formats import xml
from cqels_py.formats.static import load_static
from tests.formats.reading import GENERATED, TIME, XSD, Source, instant, iri

PREFIXES = f"@prefix : <http://ex.org/> .\n@prefix prov: <http://www.w3.org/ns/prov#> .\n@prefix xsd: <{XSD}> .\n"
TURTLE = PREFIXES + (
    ':a :time "1970-01-01T00:00:01Z"^^xsd:dateTime ; :p 5, 1.50, "é"@EN, true .\n'
    '[] :time "1970-01-01T00:00:02Z"^^xsd:dateTime ; :p _:x .\n'
    ":a :p _:x ; :time 3000000 .\n"
)
ELEMENTS = [
    (
        1_000_000,
        [
            (iri("a"), iri("time"), instant(1)),
            (iri("a"), iri("p"), f'"5"^^<{XSD}integer>'),
            (iri("a"), iri("p"), f'"1.50"^^<{XSD}decimal>'),
            (iri("a"), iri("p"), '"é"@en'),
            (iri("a"), iri("p"), f'"true"^^<{XSD}boolean>'),
        ],
    ),
    (2_000_000, [("_:0", iri("time"), instant(2)), ("_:0", iri("p"), "_:1")]),
    (3_000_000, [(iri("a"), iri("p"), "_:1"), (iri("a"), iri("time"), f'"3000000"^^<{XSD}integer>')]),
]


def test_subjects_of_turtle_are_elements(source: Source) -> None:
    read = source("s.ttl", TURTLE, time_predicate=TIME)
    assert read.error is None
    assert read.elements == ELEMENTS
    assert source("s.ttl.gz", gzip.compress(TURTLE.encode()), time_predicate=TIME).elements == ELEMENTS
    for size in (1, 7, 64):
        assert source("s.ttl", TURTLE, time_predicate=TIME, chunk_bytes=size).elements == ELEMENTS


TRIG = PREFIXES + (
    ':g prov:generatedAtTime "1970-01-01T00:00:01Z"^^xsd:dateTime .\n'
    ":g { :a :p [ :q 1 ] . :b :p :c }\n"
    ':h prov:generatedAtTime "1970-01-01T00:00:02Z"^^xsd:dateTime .\n'
    ":h { :a :p [ :q 1 ] }\n"
)


def test_graphs_of_trig_are_elements(source: Source) -> None:
    read = source("s.trig", TRIG)
    assert [(time, len(triples)) for time, triples in read.elements] == [(1_000_000, 3), (2_000_000, 2)]
    nodes = {term for triples in read.triples for triple in triples for term in triple if term.startswith("_:")}
    assert len(nodes) == 2


def test_ids_are_the_same_from_run_to_run(tmp_path: Path) -> None:
    path = tmp_path / "s.trig"
    path.write_text(TRIG)
    first, second = (np.stack(load_static(str(path), Dictionary(), 5)).tolist() for _ in range(2))
    assert first == second


@pytest.mark.parametrize("name", ["s.ttl", "s.trig"])
def test_malformed_turtle_is_placed(source: Source, name: str) -> None:
    text = TURTLE + ":b :time oops .\n" if name == "s.ttl" else TRIG + ":i { :a oops :b }\n"
    time_predicate = TIME if name == "s.ttl" else None
    read = source(name, text, time_predicate=time_predicate)
    line = text.count("\n")
    assert f"{name}:{line}:" in str(read.error)
    assert len(read.elements) >= (2 if name == "s.ttl" else 1)


def test_malformed_turtle_is_skipped(source: Source) -> None:
    text = TURTLE + ":b :time oops .\n:c :time 4000000 .\n"
    read = source("s.ttl", text, time_predicate=TIME, on_error="skip")
    assert read.error is None
    assert len(read.reported) >= 1
    assert [time for time, _ in read.elements] == [1_000_000, 2_000_000, 3_000_000, 4_000_000]


@pytest.mark.parametrize(("name", "text"), [("s.rdf", "<rdf:RDF"), ("s.jsonld", '{"@id": '), ("s.rdf", "not XML")])
def test_other_formats_that_are_broken_end(source: Source, name: str, text: str) -> None:
    for on_error in ("stop", "skip"):
        read = source(name, text, time_predicate=TIME, on_error=on_error)
        assert read.elements == []
        assert name in str(read.error) + "".join(read.reported)


RDF_XML = (
    '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://ex.org/">'
    '<rdf:Description rdf:about="http://ex.org/a"><p rdf:resource="http://ex.org/b"/><q>é</q></rdf:Description></rdf:RDF>'
)
JSON_LD = json.dumps({"@id": "http://ex.org/a", "http://ex.org/p": {"@id": "http://ex.org/b"}, "http://ex.org/q": "é"})
STATIC = {
    "d.nt": f'{iri("a")} {iri("p")} {iri("b")} .\n{iri("a")} {iri("q")} "\\u00e9" .\n',
    "d.nq": f'{iri("a")} {iri("p")} {iri("b")} .\n{iri("a")} {iri("q")} "é" .',
    "d.ttl": '@prefix : <http://ex.org/> . :a :p :b ; :q "é" .',
    "d.trig": '@prefix : <http://ex.org/> . { :a :p :b ; :q "é" . }',
    "d.rdf": RDF_XML,
    "d.jsonld": JSON_LD,
}


@pytest.mark.parametrize("name", sorted(STATIC))
@pytest.mark.parametrize("compressed", [False, True])
def test_static_data_of_every_format(tmp_path: Path, name: str, compressed: bool) -> None:
    path = tmp_path / (name + ".gz" * compressed)
    content = STATIC[name].encode()
    path.write_bytes(gzip.compress(content) if compressed else content)
    dictionary = Dictionary()
    subject, predicate, object_, graph = load_static(str(path), dictionary, 1)
    found = set(zip(*map(dictionary.decode, (subject, predicate, object_)), strict=True))
    assert found == {(iri("a"), iri("p"), iri("b")), (iri("a"), iri("q"), '"é"')}
    assert graph.tolist() == [0, 0]


def test_static_graphs_and_blank_nodes(tmp_path: Path) -> None:
    (tmp_path / "d.nq").write_text(f"_:a {iri('p')} _:b {iri('g')} .\n_:b {iri('p')} _:a .\n")
    dictionary = Dictionary()
    columns = load_static(str(tmp_path / "d.nq"), dictionary, 1)
    assert dictionary.decode(columns[3]) == [iri("g"), None]
    assert columns[0].tolist() == columns[2].tolist()[::-1]
    other = load_static(str(tmp_path / "d.nq"), dictionary, 2)
    assert not set(columns[0].tolist()) & set(other[0].tolist())


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("d.ttl", "<a> <http://ex.org/p> 1 ."),
        (
            "d.rdf",
            '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://ex.org/">'
            '<rdf:Description rdf:about="a"><e:p>1</e:p></rdf:Description></rdf:RDF>',
        ),
    ],
)
def test_a_relative_iri_of_static_data_is_explained(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=rf"{name}.*relative IRI needs a base before it"):
        load_static(str(tmp_path / name), Dictionary(), 1)


def test_static_data_that_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "d.nt").write_text(f"{iri('a')} {iri('p')} {iri('b')} .\noops\n")
    with pytest.raises(DataError, match=r"d\.nt:2:1: "):
        load_static(str(tmp_path / "d.nt"), Dictionary(), 1)
    (tmp_path / "d.ttl").write_text("@prefix : <http://ex.org/> .\n:a :p .\n")
    with pytest.raises(DataError, match=r"d\.ttl:2:"):
        load_static(str(tmp_path / "d.ttl"), Dictionary(), 1)
    with pytest.raises(UsageError, match=r"missing\.ttl"):
        load_static(str(tmp_path / "missing.ttl"), Dictionary(), 1)
    (tmp_path / "d.csv").write_text("")
    with pytest.raises(UsageError, match=r"d\.csv.*\.ttl"):
        load_static(str(tmp_path / "d.csv"), Dictionary(), 1)
    (tmp_path / "empty.ttl").write_text("")
    assert [len(column) for column in load_static(str(tmp_path / "empty.ttl"), Dictionary(), 1)] == [0] * 4


# --- JSON objects by line --------------------------------------------------------------------------------------------


def line(name: str, seconds: int, key: str = GENERATED[1:-1]) -> str:
    time = {"@value": f"1970-01-01T00:00:{seconds:02}Z", "@type": f"{XSD}dateTime"}
    return json.dumps({"@id": f"http://ex.org/{name}", key: time, "http://ex.org/p": {"http://ex.org/q": 5}}) + "\n"


def test_json_objects_are_elements(source: Source) -> None:
    text = line("a", 1) + "\n" + line("a", 2)
    read = source("s.ndjson", text)
    assert read.error is None
    assert [(time, len(triples)) for time, triples in read.elements] == [(1_000_000, 3), (2_000_000, 3)]
    assert (iri("a"), GENERATED, instant(1)) in read.triples[0]
    assert len({term for triples in read.triples for t in triples for term in t if term.startswith("_:")}) == 2
    other = source("s.ndjson", line("a", 7, TIME), time_predicate=TIME)
    assert [time for time, _ in other.elements] == [7_000_000]


def test_json_objects_with_a_graph(source: Source) -> None:
    time = {"@value": "1970-01-01T00:00:01Z", "@type": f"{XSD}dateTime"}
    inside = [{"@id": "http://ex.org/a", "http://ex.org/p": {"@id": "http://ex.org/b"}}]
    read = source("s.ndjson", json.dumps({"@id": "http://ex.org/g", GENERATED[1:-1]: time, "@graph": inside}) + "\n")
    assert read.elements == [(1_000_000, [(iri("a"), iri("p"), iri("b"))])]


@pytest.mark.parametrize("bad", ['{"@id": ', "words", "[", '{"@id": "http://ex.org/a", "http://ex.org/p": 5}'])
def test_malformed_objects_are_named_by_line(source: Source, bad: str) -> None:
    text = line("a", 1) + f"{bad}\n" + line("b", 3)
    assert "s.ndjson:2" in str(source("s.ndjson", text).error)
    read = source("s.ndjson", text, on_error="skip")
    assert read.error is None
    assert [time for time, _ in read.elements] == [1_000_000, 3_000_000]
    assert len(read.reported) == 1
    assert "s.ndjson:2" in read.reported[0]


def rdf_xml(inside: str, before: str = "") -> str:
    """RDF/XML of the nodes in it, with a document type before it."""
    return f'{before}<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://ex.org/">{inside}</rdf:RDF>'


def xml_node(number: int, inside: str = "") -> str:
    time = f'<e:time rdf:datatype="{XSD}dateTime">1970-01-01T00:00:0{number}Z</e:time>'
    return f'<rdf:Description rdf:about="http://ex.org/a{number}">{time}{inside}</rdf:Description>\n'


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("empty", ['xml:lang=""', "xml:lang = ''"])
def test_an_empty_language_takes_the_language_away(tmp_path: Path, empty: str, encoding: str) -> None:
    inside = f'<e:a xml:lang="en">one</e:a><e:a {empty}>two"@ .&#10;</e:a><e:a>three</e:a><e:b {empty} e:c="four"/>'
    text = rdf_xml(f'<rdf:Description rdf:about="http://ex.org/a" xml:lang="de">{inside}</rdf:Description>')
    (tmp_path / "s.rdf").write_text(text, encoding)
    dictionary = Dictionary()
    found = dictionary.decode(load_static(str(tmp_path / "s.rdf"), dictionary, 1)[2])
    assert [term for term in found if not term.startswith("_:")] == [
        '"one"@en',
        '"two\\"@ .\\n"',
        '"three"@de',
        '"four"',
    ]


def test_an_empty_language_is_found_in_the_beginning(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    text = rdf_xml(xml_node(1, '<e:p xml:lang="">two</e:p>') + xml_node(2))
    for chunk_bytes in (1, 7, 64, 1 << 20):
        read = source("s.rdf", text, time_predicate=TIME, chunk_bytes=chunk_bytes)
        assert (iri("a1"), iri("p"), '"two"') in read.triples[0], (chunk_bytes, read.error)
    monkeypatch.setattr(xml, "LANGUAGES_WITHIN", 64)
    read = source("s.rdf", text, time_predicate=TIME, on_error="skip", chunk_bytes=32)
    assert 'xml:lang="" is read in documents in whose first' in read.reported[0]


@pytest.mark.parametrize(
    "lost", ["</rdf:RDF>", "</rdf:Description>\n</rdf:RDF>", 'cription rdf:about="http://ex.org/a3"']
)
def test_rdf_xml_that_ends_early_is_said(source: Source, lost: str) -> None:
    text = rdf_xml(xml_node(1) + xml_node(2) + xml_node(3))
    text = text[: text.index(lost)]
    for on_error in ("stop", "skip"):
        read = source("s.rdf", text, time_predicate=TIME, on_error=on_error)
        sure = 2 if on_error == "skip" else 1
        # The last element could continue in the malformed part.
        assert [time for time, _ in read.elements][:sure] == [1_000_000, 2_000_000][:sure]
        said = [str(read.error)] if on_error == "stop" else read.reported
        assert len(said) == 1 and "s.rdf:" in said[0] and "not well-formed XML" in said[0]
        assert (read.error is None) == (on_error == "skip")


def test_elements_before_broken_xml_are_read(source: Source, tmp_path: Path) -> None:
    text = rdf_xml(xml_node(1) + xml_node(2) + "</e:b>" + xml_node(3))
    for chunk_bytes in (50, 1 << 20):
        read = source("s.rdf", text, time_predicate=TIME, on_error="skip", chunk_bytes=chunk_bytes)
        assert [time for time, _ in read.elements] == [1_000_000, 2_000_000]
        assert len(read.reported) == 1 and "s.rdf:3:3: not well-formed XML: mismatched tag" in read.reported[0]
    with pytest.raises(DataError, match="mismatched tag"):
        load_static(str(tmp_path / "s.rdf"), Dictionary(), 1)


def test_entities_are_expanded(source: Source) -> None:
    text = rdf_xml(xml_node(1, "<e:p>&two;</e:p>"), '<!DOCTYPE r [<!ENTITY one "1"><!ENTITY two "&one;&one;&#50;">]>')
    assert '"112"' in str(source("s.rdf", text, time_predicate=TIME).triples)


def test_entities_that_grow_are_refused(source: Source) -> None:
    """Each ten times the one before: the last would have 3 GB, and is not even used."""
    declared = "".join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 10}">' for i in range(1, 10))
    before = f'<!DOCTYPE r [<!ENTITY e0 "lol">\n{declared}]>'
    read = source("s.rdf", rdf_xml(xml_node(1), before), time_predicate=TIME)
    assert re.search(r"s\.rdf:2:\d+: the entity &e\d; expands to too much", str(read.error))


def test_texts_of_xml_have_a_limit(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xml, "LINE_LIMIT", 1 << 20)
    text = rdf_xml(xml_node(1) + xml_node(2, f"<e:p>{'x' * (3 << 20)}</e:p>"))
    read = source("s.rdf", text, time_predicate=TIME, chunk_bytes=1 << 16)
    assert "is longer than 1 MiB" in str(read.error)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("s.ttl", f'<http://ex.org/a> <{TIME}> {instant(1)} ; <http://ex.org/p> "'),
        ("s.jsonld", '{"@id": "http://ex.org/'),
    ],
)
def test_a_term_that_the_parser_has_no_room_for_is_an_error_of_the_data(source: Source, name: str, text: str) -> None:
    read = source(name, text + "x" * (17 << 20), time_predicate=TIME)
    assert "s." in str(read.error) and "longer than 16 MiB" in str(read.error)
    skipped = source(name, text + "x" * (17 << 20), time_predicate=TIME, on_error="skip")
    assert skipped.error is None and len(skipped.reported) == 1
