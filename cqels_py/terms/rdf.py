"""Conversion between rdflib's terms and N-Triples texts, exact to the lexical form."""

from __future__ import annotations

import copyreg
from functools import lru_cache, partial
from typing import Any

from rdflib import BNode, Literal, URIRef

from cqels_py.errors import UsageError
from cqels_py.terms.canonical import canonical, escape, unescape
from cqels_py.terms.layout import XSD

Term = URIRef | Literal | BNode
_CHANGED = (None, *(URIRef(XSD + name) for name in ("normalizedString", "token")))
"""Datatypes whose lexical forms rdflib's constructor changes. It also refuses language tags that may be in data."""


def exact_literal(lexical: str, language: str | None = None, datatype: str | None = None) -> Literal:
    """The literal of rdflib with this lexical form.

    Its constructor changes that of some datatypes, as xsd:token, even with normalize=False.

    >>> str(exact_literal(" a  b", datatype=XSD + "token"))
    ' a  b'
    """
    of_type = None if datatype is None else URIRef(datatype)
    if of_type not in _CHANGED:
        return Literal(lexical, datatype=of_type, normalize=False)
    found = Literal(lexical)
    found.__setstate__((None, {"language": language, "datatype": of_type}))
    return found


def _parts_of(literal: Literal) -> tuple[Any, ...]:
    """For pickles, as those of plans: rdflib's own give another lexical form, "1" for "01"^^xsd:integer."""
    if literal.datatype in _CHANGED:
        return Literal, (str(literal),), (None, {"language": literal.language, "datatype": literal.datatype})
    return partial(Literal, normalize=False), (str(literal), None, literal.datatype)


copyreg.pickle(Literal, _parts_of)


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
        return exact_literal(lexical, language=rest[1:])
    return exact_literal(lexical, datatype=rest[3:-1] if rest else None)


__all__ = ["Term", "canonical", "exact_literal", "from_rdflib", "to_rdflib"]
