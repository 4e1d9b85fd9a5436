"""Where W3C's files are, and how they are read: exact terms, IRIs as on W3C's server."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyoxigraph as ox
from rdflib import BNode, Literal, URIRef
from rdflib.term import Node

from tests.oracle.naive_algebra import Triple
from tests.oracle.naive_values import canonical

FOLDER = Path(
    os.environ.get("CQELS_CONFORMANCE")
    or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cqels_py" / "conformance"
)
"""The folder that scripts/fetch_conformance fills."""

HOMES = {
    "dawg-data-r2": "http://www.w3.org/2001/sw/DataAccess/tests/data-r2/",
    "sparql11": "http://www.w3.org/2009/sparql/docs/tests/data-sparql11/",
    "ntriples": "http://www.w3.org/2013/N-TriplesTests/",
    "nquads": "http://www.w3.org/2013/N-QuadsTests/",
    "turtle": "http://www.w3.org/2013/TurtleTests/",
    "trig": "http://www.w3.org/2013/TriGTests/",
    "rdf-xml": "http://www.w3.org/2013/RDFXMLTests/",
}
"""The suites' folders, and the IRIs that their relative IRIs are resolved against."""

SPARQL, SYNTAXES = ("dawg-data-r2", "sparql11"), ("ntriples", "nquads", "turtle", "trig", "rdf-xml")

_FORMATS = {
    ".ttl": ox.RdfFormat.TURTLE,
    ".n3": ox.RdfFormat.TURTLE,
    ".nt": ox.RdfFormat.N_TRIPLES,
    ".rdf": ox.RdfFormat.RDF_XML,
}


def fetched(suites: Iterable[str]) -> bool:
    """Whether W3C's files of these suites are here."""
    return all((FOLDER / suite).is_dir() for suite in suites)


def path_of(iri: str) -> Path:
    """The file behind an IRI of W3C's server."""
    for suite, home in HOMES.items():
        if iri.startswith(home):
            return FOLDER / suite / iri.removeprefix(home)
    raise ValueError(f"{iri} is no file of the suites")


def iri_of(path: Path) -> str:
    """The IRI of a file on W3C's server."""
    suite, _, rest = path.relative_to(FOLDER).as_posix().partition("/")
    return HOMES[suite] + rest


def read_graph(path: Path) -> list[Triple]:
    """The triples of an RDF file; blank nodes are its own."""
    return triples_of(path.read_bytes(), iri_of(path), _FORMATS[path.suffix])


def triples_of(text: bytes, base: str, kind: ox.RdfFormat = ox.RdfFormat.TURTLE) -> list[Triple]:
    quads = ox.parse(text, format=kind, base_iri=base, rename_blank_nodes=True)
    return [(to_rdflib(quad.subject), to_rdflib(quad.predicate), to_rdflib(quad.object)) for quad in quads]


def to_rdflib(term: Any) -> Node:
    """An rdflib term with the lexical form as it was written."""
    if isinstance(term, ox.NamedNode):
        return URIRef(term.value)
    if isinstance(term, ox.BlankNode):
        return BNode(term.value)
    if term.language:
        return Literal(term.value, lang=term.language)
    return canonical(Literal(term.value, datatype=URIRef(term.datatype.value), normalize=False))
