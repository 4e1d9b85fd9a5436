"""The ways by which documents come into the engine: each gives the quads that it reads, as N-Quads, or raises DataError."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyoxigraph as ox

from cqels_py.batches.elements import ElementBatch
from cqels_py.dictionary import Dictionary
from cqels_py.formats.static import load_static
from cqels_py.formats.triples import PushedElement, elements_of_pushed, triple_texts
from cqels_py.sources.documents import document_elements
from cqels_py.sources.live import MessageColumns
from cqels_py.sources.messages import MessageDecoder, MessageFormat
from cqels_py.sources.protocol import Opening
from tests.conformance.documents import Document
from tests.conformance.files import to_rdflib

STREAM = "http://stream.example/documents"
Entrance = Callable[[Document, Dictionary, Path], bytes]

_TERM = re.compile(rb'<[^<>]*>|"(?:[^"\\]|\\.)*"[^\s<.]*(?:<[^<>]*>)?|[^\s<"]+(?<!\.)')
_ROOT = re.compile(rb"<[A-Za-z][\w:]*(?=[\s>])")


def static(document: Document, dictionary: Dictionary, folder: Path) -> bytes:
    """A file of static data."""
    path = folder / f"document.{document.form}"
    path.write_bytes(with_base(document))
    return _text(load_static(str(path), dictionary, -dictionary.next_document()), dictionary)


def body(document: Document, dictionary: Dictionary, folder: Path) -> bytes:
    """The body of a request to the service."""
    batch = document_elements(with_base(document), document.form, _opening(dictionary), source="the body", arrival=0)
    return _of_batch(batch, dictionary)


def message(document: Document, dictionary: Dictionary, folder: Path) -> bytes:
    """A broker's message."""
    decoder = MessageDecoder(_opening(dictionary), "the broker", MessageFormat(document.form, arrival=True))
    return _of_batch(decoder.elements(MessageColumns([with_base(document)], [""], [None], [0])), dictionary)


def pushed(document: Document, dictionary: Dictionary, folder: Path) -> bytes:
    """An element of texts, which are those of the document."""
    texts = texts_of(document)
    assert texts is not None
    return _of_pushed(texts, dictionary)


def _of_pushed(texts: Sequence[bytes], dictionary: Dictionary) -> bytes:
    element = PushedElement(STREAM, 0, 0, None, texts)
    batch, errors = elements_of_pushed([element], dictionary, dictionary.next_document() << 40)
    for error in errors:
        raise error
    return _of_batch(batch, dictionary)


def terms(document: Document, dictionary: Dictionary, folder: Path) -> bytes:
    """An element of rdflib's terms, which are those of the document."""
    triples = [(quad.subject, quad.predicate, quad.object) for quad in document.expected]
    texts = triple_texts([tuple(map(to_rdflib, triple)) for triple in triples])
    return _of_pushed(texts, dictionary)


ENTRANCES: dict[str, Entrance] = {each.__name__: each for each in (static, body, message, pushed, terms)}


def takes(name: str, document: Document) -> bool:
    """Is the entrance one for the document's form?"""
    if name == "pushed":
        return texts_of(document) is not None
    if name == "terms":
        return document.well_formed and all(quad.graph_name == ox.DefaultGraph() for quad in document.expected)
    return name == "static" or document.form != "rdf"


def texts_of(document: Document) -> Sequence[bytes] | None:
    """The terms of an N-Triples document as they are written; None where its fault, if any, is not that of a term."""
    found: list[bytes] = []
    if document.form != "nt":
        return None
    for line in document.text.splitlines():
        statement = line.partition(b". #")[0].strip()
        if not statement or statement.startswith(b"#"):
            continue
        terms = _TERM.findall(statement)
        if len(terms) != 3 or _without_blanks(statement) != _without_blanks(b"".join(terms)):
            return None
        found += terms
    return found or None


def _without_blanks(text: bytes) -> bytes:
    return re.sub(rb"[\s.]", b"", text)


def with_base(document: Document) -> bytes:
    """The text with the IRI of its file as the base of its relative ones."""
    if document.form in ("ttl", "trig"):
        return b"@base <%b> . %b" % (document.base.encode(), document.text)
    if document.form == "rdf":
        return _with_xml_base(document)
    return document.text


def _with_xml_base(document: Document) -> bytes:
    root = _ROOT.search(document.text)
    assert root is not None
    start, end = document.text[: root.end()], document.text[root.end() :]
    if b"xml:base" in end.partition(b">")[0]:
        return document.text
    return start + b' xml:base="%b"' % document.base.encode() + end


def _opening(dictionary: Dictionary) -> Opening:
    return Opening(stream=STREAM, number=0, dictionary=dictionary, graphs=True)


def _of_batch(batch: ElementBatch, dictionary: Dictionary) -> bytes:
    graph = np.zeros(len(batch.subject), np.int64) if batch.graph is None else batch.graph
    return _text((batch.subject, batch.predicate, batch.object, graph), dictionary)


def _text(columns: Sequence[Any], dictionary: Dictionary) -> bytes:
    lines = zip(*(dictionary.decode(column) for column in columns), strict=True)
    return "".join(f"{' '.join(term for term in line if term is not None)} .\n" for line in lines).encode()
