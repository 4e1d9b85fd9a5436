"""The answer that stands, in the formats of SPARQL 1.1 and of RDF."""

from __future__ import annotations

import io
import re
from typing import Any

from cqels_py.engine.query import Query
from cqels_py.engine.result import Result
from cqels_py.errors import UsageError
from cqels_py.service.accept import chosen
from cqels_py.service.failures import Conflict, NotAcceptable, TooLarge

SOLUTIONS = {
    "application/sparql-results+json": "json",
    "application/sparql-results+xml": "xml",
    "text/csv": "csv",
    "text/tab-separated-values": "tsv",
    "application/json": "json",
    "application/xml": "xml",
}
GRAPHS = {
    "text/turtle": "turtle",
    "application/n-triples": "nt",
    "application/ld+json": "json-ld",
    "application/rdf+xml": "xml",
    "application/n-quads": "nquads",
}

_NOT_IN_XML = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]|\xef\xbf[\xbe\xbf]")


def answer_in(query: Query, most: int, *, accept: str) -> tuple[bytes, str]:
    """The answer and its media type. Conflict for a query that has none, NotAcceptable, TooLarge."""
    kind = chosen(accept, GRAPHS if query.form == "CONSTRUCT" else SOLUTIONS)
    try:
        current = query.current()
    except UsageError as error:
        raise Conflict(error.message) from None
    if len(current) > most:
        raise TooLarge(f"the answer has {len(current)} rows; at most {most} are sent")
    if not isinstance(current, list):
        form = GRAPHS[kind]
        if form == "nquads":
            # No graph has a name.
            form = "nt"
        try:
            return in_xml(current.serialize(format=form, encoding="utf-8"), kind), kind
        except ValueError as error:
            # RDF/XML abbreviates predicates, and some have no part that is a name.
            raise NotAcceptable(f"the answer cannot be written as {kind} ({error}): accept another form") from None
    if query.form == "ASK":
        boolean = bool(current and current[-1].boolean)
        return _serialized(SOLUTIONS[kind], _ask(boolean)), kind
    if SOLUTIONS[kind] == "tsv":
        return _tsv(query.variables, current), kind
    return in_xml(_serialized(SOLUTIONS[kind], _select(query.variables, current)), kind), kind


def in_xml(body: bytes, kind: str) -> bytes:
    """A body of this media type, as parsers of XML will read it. NotAcceptable for one with characters that XML does not have."""
    if not kind.endswith("xml"):
        return body
    if _NOT_IN_XML.search(body):
        raise NotAcceptable(f"the answer has control characters, which {kind} cannot hold: accept another form")
    # Parsers take a plain one for the end of a line.
    return body.replace(b"\r", b"&#13;")


def _select(variables: tuple[str, ...], rows: list[Result]) -> Any:
    from rdflib import Variable
    from rdflib.query import Result as Solutions

    found = Solutions("SELECT")
    found.vars = [Variable(name) for name in variables]
    found.bindings = [{Variable(name): term for name, term in row.bindings.items()} for row in rows]
    return found


def _ask(boolean: bool) -> Any:
    from rdflib.query import Result as Solutions

    found = Solutions("ASK")
    found.askAnswer = boolean
    return found


def _serialized(form: str, solutions: Any) -> bytes:
    if solutions.type == "ASK" and form in ("csv", "tsv"):
        # The formats have no booleans: a column, as cqels run writes it.
        return b"boolean\n%b\n" % (b"true" if solutions.askAnswer else b"false")
    out = io.BytesIO()
    solutions.serialize(out, format=form)
    return out.getvalue()


def _tsv(variables: tuple[str, ...], rows: list[Result]) -> bytes:
    lines = ["\t".join(f"?{name}" for name in variables)]
    for row in rows:
        terms = [row.bindings.get(name) for name in variables]
        lines.append("\t".join("" if term is None else _in_turtle(term) for term in terms))
    return ("\n".join(lines) + "\n").encode()


def _in_turtle(term: Any) -> str:
    from cqels_py.terms.rdf import from_rdflib

    return from_rdflib(term).replace("\t", "\\t")
