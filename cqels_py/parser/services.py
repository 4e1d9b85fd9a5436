"""SERVICE: the query for another endpoint is the user's own text, with the prefixes that it uses.

    SERVICE SILENT ex:endpoint { ?s ex:p ?o }  →  SERVICE SILENT <marker> { ?s ex:p ?o }

A marker is an IRI that the text does not contain; `Remote` has its meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rdflib import URIRef

from cqels_py.parser.prologue import Prologue
from cqels_py.parser.source import Edit, Source
from cqels_py.parser.tokens import Kind, Token


@dataclass(frozen=True, slots=True)
class Remote:
    """An endpoint, and the query for it."""

    endpoint: URIRef
    text: str


def read_services(
    source: Source, tokens: Sequence[Token], prologue: Prologue
) -> tuple[dict[URIRef, Remote], list[Edit]]:
    """The meaning of each marker, and the edits that insert them.

    UnsupportedQuery for an endpoint that is a variable; clauses that are not well-formed are left to the grammar.
    """
    found: dict[URIRef, Remote] = {}
    edits: list[Edit] = []
    for at, token in enumerate(tokens):
        if not token.is_word("SERVICE"):
            continue
        place = at + 2 if tokens[at + 1].is_word("SILENT") else at + 1
        endpoint, opening = (tokens[min(place + ahead, len(tokens) - 1)] for ahead in (0, 1))
        if endpoint.kind is Kind.VARIABLE:
            raise source.refusal(
                f"SERVICE {endpoint.text}: an endpoint is asked once, when the query is registered, so it cannot be a "
                "variable: name it, as in SERVICE <http://example.org/sparql> { … }",
                endpoint.start,
            )
        end = closing(tokens, place + 1)
        if endpoint.kind not in (Kind.IRI, Kind.NAME) or not opening.is_mark("{") or end is None:
            continue
        marker = _marker(source.text, len(found) + 1)
        found[marker] = Remote(prologue.resolve(endpoint), _query(source, tokens[place + 1 : end + 1], prologue))
        edits.append((endpoint.start, endpoint.end, f"<{marker}>"))
    return found, edits


def closing(tokens: Sequence[Token], opening: int) -> int | None:
    """The position of the brace that closes the one at `opening`."""
    depth = 0
    for at in range(opening, len(tokens)):
        depth += tokens[at].is_mark("{") - tokens[at].is_mark("}")
        if depth == 0:
            return at
    return None


def _query(source: Source, group: Sequence[Token], prologue: Prologue) -> str:
    used = {token.text.partition(":")[0] for token in group if token.kind is Kind.NAME}
    lines = [] if prologue.base is None else [f"BASE <{prologue.base}>"]
    lines += [f"PREFIX {prefix}: <{iri}>" for prefix, iri in prologue.prefixes.items() if prefix in used]
    return "\n".join([*lines, f"SELECT * WHERE {source.text[group[0].start : group[-1].end]}"])


def _marker(text: str, number: int) -> URIRef:
    stem = "urn:cqels:service:"
    while stem in text:
        stem += "s:"
    return URIRef(f"{stem}{number}")
