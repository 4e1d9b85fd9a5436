"""Terms and triple patterns as the plan writes them."""

from __future__ import annotations

from rdflib import URIRef, Variable

from cqels_py.algebra.nodes import TermOrVariable, TriplePattern
from cqels_py.plan.nodes import PatternText
from cqels_py.terms.rdf import from_rdflib


def position_text(position: TermOrVariable) -> str:
    if isinstance(position, Variable):
        return f"?{position}"
    text: str = from_rdflib(position)
    return text


def pattern_text(triple: TriplePattern, graph: URIRef | Variable | None = None) -> PatternText:
    positions = (triple.subject, triple.predicate, triple.object)
    return tuple(map(position_text, positions if graph is None else (*positions, graph)))
