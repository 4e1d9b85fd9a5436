"""RDF 1.2 is refused where it stands in the user's text, at every entrance."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import cqels_py as cqels
from cqels_py.dictionary import Dictionary
from cqels_py.errors import DataError
from cqels_py.formats.json_ld import JsonLd
from cqels_py.formats.omissions import Omissions
from cqels_py.formats.static import load_static
from cqels_py.sources.documents import document_elements
from cqels_py.sources.files import open_source
from cqels_py.sources.ldes.pages import read_page
from cqels_py.sources.live import Message, MessageColumns
from cqels_py.sources.messages import MessageDecoder, MessageFormat
from cqels_py.sources.protocol import Opening
from tests.formats.reading import TIME, Source, iri

INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
FIRST = f'{iri("s")} <{TIME}> "1"^^<{INTEGER}> .\n'
TRIPLE = f"{iri('a')} {iri('b')} {iri('c')}"
STATEMENTS = {
    "<<(": (
        f"{iri('s')} {iri('p')} <<( {TRIPLE} )>> .",
        "'<<(' is a triple term of RDF 1.2, which is not supported yet",
    ),
    "<<": (f"<< {TRIPLE} >> {iri('p')} {iri('c')} .", "'<<' is a reifier of RDF 1.2"),
    "@en--ltr": (f'{iri("s")} {iri("p")} "a"@en--ltr .', "'@en--ltr' is a base direction of RDF 1.2"),
}
OF_TURTLE = {
    "~": (f"{iri('s')} {iri('p')} {iri('o')} ~ {iri('r')} .", "'~' is a reifier of RDF 1.2"),
    "{|": (f"{iri('s')} {iri('p')} {iri('o')} {{| {iri('q')} 1 |}} .", "'{|' is an annotation of RDF 1.2"),
}
LINES, TURTLE = ("nt", "nq"), ("ttl", "trig")


def opening() -> Opening:
    return Opening(stream="http://ex.org/s", number=0, dictionary=Dictionary(), time_predicate=TIME)


def entrances(form: str, text: str, folder: Path) -> dict[str, Callable[[], object]]:
    path = folder / f"x.{form}"
    path.write_text(text)
    found: dict[str, Callable[[], object]] = {
        f"{path}:": lambda: list(open_source(str(path), opening())),
        f"{path}: ": lambda: load_static(str(path), Dictionary(), 1),
        "<body>:": lambda: document_elements(text.encode(), form, opening(), source="<body>", arrival=5),
    }
    decoder = MessageDecoder(opening(), "mqtt://b/t", MessageFormat(form, True))
    found["mqtt://b/t:1: line "] = lambda: decoder.elements(MessageColumns.of([Message(text.encode(), "t", None, 5)]))
    if form == "ttl":
        found["http://b/:"] = lambda: read_page(text.encode(), "text/turtle", "http://b/", JsonLd(), None)
    return found


@pytest.mark.parametrize("form", [*LINES, *TURTLE])
def test_statements_are_refused_with_their_place(form: str, tmp_path: Path) -> None:
    kinds = STATEMENTS if form in LINES else {**STATEMENTS, **OF_TURTLE}
    for token, (statement, message) in kinds.items():
        column = statement.index(token) + 1
        for start, read in entrances(form, f"# <<\n{FIRST}{statement}\n", tmp_path).items():
            with pytest.raises(DataError) as raised:
                read()
            at = f"{start}3, column {column} of the message: " if "line" in start else f"{start.strip()}3:{column}: "
            assert str(raised.value).startswith(at)
            assert message in str(raised.value)


@pytest.mark.parametrize("form", [*LINES, *TURTLE])
def test_an_announcement_is_refused(form: str, tmp_path: Path) -> None:
    for start, read in entrances(form, f'# VERSION\nVERSION "1.2"\n{FIRST}', tmp_path).items():
        with pytest.raises(DataError) as raised:
            read()
        assert str(raised.value).startswith(start.strip())
        assert "'VERSION' is an announcement of RDF 1.2, which is not supported yet" in str(raised.value)


def test_lines_that_are_skipped(source: Source) -> None:
    text = "".join(f"{statement}\n" for statement, _ in STATEMENTS.values())
    read = source("s.nt", FIRST + text, time_predicate=TIME, on_error="skip")
    assert len(read.elements) == 1
    assert ["RDF 1.2" in error for error in read.reported] == [True] * 3


def test_what_only_looks_like_it_is_read(tmp_path: Path) -> None:
    texts = ("<<( a )>>", "{| ~ |}", "@en--ltr", 'VERSION "1.2"', 'x"@en--ltr .')
    statements = "".join(f"{iri('s')} {iri('p~q')} {json.dumps(text)} .\n" for text in texts)
    for form in ("nt", "ttl"):
        for start, read in entrances(form, f"# VERSION '1' << ~ @en--ltr\n{FIRST}{statements}", tmp_path).items():
            if start != "http://b/:":
                read()


@pytest.mark.parametrize("term", [f"<<( {TRIPLE} )>>", '"a"@en--ltr'])
def test_pushed_terms_are_refused(term: str) -> None:
    with cqels.Engine() as engine:
        engine.register("SELECT * { STREAM <http://ex.org/s> [ALL] { ?s ?p ?o } }")
        with pytest.raises(DataError, match=r"of RDF 1\.2, which is not supported yet"):
            engine.push("http://ex.org/s", [(iri("s"), iri("p"), term)], time=1)


def test_directions_of_json_ld_are_left_out_and_told(tmp_path: Path) -> None:
    directed = {"@value": "a", "@language": "en", "@direction": "ltr"}
    told = list[str]()
    quads = JsonLd(omissions=Omissions(told.append, told.append)).quads(
        json.dumps({"@id": "http://ex.org/s", "http://ex.org/p": directed}).encode(), "<text>"
    )
    assert [str(quad.object) for quad in quads] == ['"a"@en']
    assert any('"@direction"' in each for each in told)


def test_rdf_xml_of_version_1_2_is_refused(source: Source) -> None:
    inside = (
        f'<e:time rdf:datatype="{INTEGER}">1</e:time><e:p its:dir="rtl" its:version="2.0" xml:lang="ar">x</e:p>'
        '<e:t rdf:parseType="Triple"><rdf:Description rdf:about="http://ex.org/s"><e:p>o</e:p></rdf:Description></e:t>'
    )
    text = (
        '<rdf:RDF rdf:version="1.2" xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://ex.org/" '
        f'xmlns:its="http://www.w3.org/2005/11/its"><rdf:Description rdf:about="http://ex.org/s">{inside}</rdf:Description></rdf:RDF>'
    )
    assert "of RDF 1.2, which is not supported yet" in str(source("s.rdf", text, time_predicate=TIME).error)
    read = source("s.rdf", text, time_predicate=TIME, on_error="skip")
    assert [(time, len(triples)) for time, triples in read.elements] == [(1, 1)]
    assert len(read.reported) == 2
