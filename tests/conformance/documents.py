"""W3C's tests of RDF's syntaxes: documents, with the quads that they stand for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pyoxigraph as ox
from rdflib import RDF, Graph

from tests.conformance.files import FOLDER, SYNTAXES, fetched, iri_of, path_of
from tests.conformance.manifest import MF, members

NEGATIVE = "Negative"

_FORMATS = {
    "nt": ox.RdfFormat.N_TRIPLES,
    "nq": ox.RdfFormat.N_QUADS,
    "ttl": ox.RdfFormat.TURTLE,
    "trig": ox.RdfFormat.TRIG,
    "rdf": ox.RdfFormat.RDF_XML,
}


@dataclass(frozen=True)
class Document:
    """One test: its text, of the syntax `form`, is to be read, or refused (`result` and `well_formed` False).

    `name`: its suite and fragment, as in "turtle/IRI_subject". `base`: the IRI of its text. `result`: the file with its quads, None
    where the suite has none.
    """

    name: str
    form: str
    text: bytes
    base: str
    well_formed: bool
    result: Path | None

    @property
    def expected(self) -> Any:
        """The quads that pyoxigraph reads: of the expected file, or of the text itself."""
        if self.result is None:
            return quads_of(self.text, self.form, self.base)
        return quads_of(self.result.read_bytes(), self.result.suffix[1:])


@cache
def documents() -> tuple[Document, ...]:
    """All of them; none where the files have not been fetched."""
    return tuple(each for suite in SYNTAXES if fetched(SYNTAXES) for each in _read(FOLDER / suite / "manifest.ttl"))


def _read(manifest: Path) -> list[Document]:
    graph = Graph().parse(manifest, publicID=iri_of(manifest))
    found = []
    for entry in members(graph, MF.entries):
        action = path_of(str(graph.value(entry, MF.action)))
        result = graph.value(entry, MF.result)
        found.append(
            Document(
                name=f"{manifest.parent.name}/{str(entry).rpartition('#')[2]}",
                form=action.suffix[1:],
                text=action.read_bytes(),
                base=iri_of(action),
                well_formed=NEGATIVE not in str(graph.value(entry, RDF.type)),
                result=None if result is None else path_of(str(result)),
            )
        )
    return found


def quads_of(text: bytes, form: str, base: str | None = None) -> Any:
    """A dataset of quads, language tags in lower case, whose blank nodes have canonical labels."""
    relative = {"base_iri": base} if form in ("ttl", "trig", "rdf") else {}
    found = ox.Dataset(_lower(quad) for quad in ox.parse(text, format=_FORMATS[form], lenient=True, **relative))
    found.canonicalize(ox.CanonicalizationAlgorithm.UNSTABLE)
    return found


def _lower(quad: Any) -> Any:
    """RDF 1.1 has language tags compared without case."""
    if not isinstance(quad.object, ox.Literal) or quad.object.language is None:
        return quad
    tagged = ox.Literal(quad.object.value, language=quad.object.language.lower())
    return ox.Quad(quad.subject, quad.predicate, tagged, quad.graph_name)
