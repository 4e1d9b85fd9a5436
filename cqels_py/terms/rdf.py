"""Conversion between rdflib's terms and N-Triples texts, exact to the lexical form."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from rdflib import BNode, Literal, URIRef

from cqels_py.errors import UsageError
from cqels_py.terms.canonical import canonical, escape, unescape
from cqels_py.terms.layout import XSD

Term = URIRef | Literal | BNode


def from_rdflib(term: Any) -> str:
    """The canonical N-Triples text of an rdflib term."""
    if isinstance(term, URIRef):
        return f"<{term}>"
    if isinstance(term, BNode):
        return f"_:{term}"
    if isinstance(term, Literal):
        body = f'"{escape(str(term))}"'
        if term.language:
            return f"{body}@{term.language.lower()}"
        datatype = None if term.datatype is None else str(term.datatype)
        return body if datatype in (None, XSD + "string") else f"{body}^^<{datatype}>"
    raise UsageError(f"{term!r} is not an RDF term (URIRef, Literal or BNode of rdflib)")


@lru_cache(maxsize=1 << 13)
def to_rdflib(text: str) -> Term:
    """The rdflib term of a canonical N-Triples text, with its lexical form.

    Terms are immutable and slow to construct, so recent ones are cached.
    """
    if text.startswith("<"):
        return URIRef(text[1:-1])
    if text.startswith("_:"):
        return BNode(text[2:])
    end = text.rindex('"')
    lexical = text[1:end] if "\\" not in text else unescape(text[1:end])
    rest = text[end + 1 :]
    if rest.startswith("@"):
        return Literal(lexical, lang=rest[1:])
    datatype = URIRef(rest[3:-1]) if rest else None
    return Literal(lexical, datatype=datatype, normalize=False)


__all__ = ["Term", "canonical", "from_rdflib", "to_rdflib"]
