"""Which blank nodes are the same, for the oracle: labels with the name of what they belong to in front."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from rdflib import BNode

from tests.oracle.naive import Element
from tests.oracle.naive_values import Term

Document = Callable[[int, Element], str]
"""The document of an element, by its number among all elements."""


def by_element(number: int, element: Element) -> str:
    """Each element is a document: what is pushed, rows of tables that name none, whatever is read so."""
    return f"e{number}"


def by_stream(number: int, element: Element) -> str:
    """Each stream is one: what it reads is a file, or a table that is read to its end."""
    return f"s{str(element.stream)[-1]}"


def as_one(number: int, element: Element) -> str:
    """All are one: they were given with the same name."""
    return "one"


def scoped(elements: Sequence[Element], document: Document) -> list[Element]:
    """The elements, where a label means a node of its document alone."""

    def node(term: Term, scope: str) -> Term:
        return BNode(f"{scope}x{term}") if isinstance(term, BNode) else term

    return [
        replace(
            each,
            triples=tuple((node(s, document(n, each)), p, node(o, document(n, each))) for s, p, o in each.triples),
        )
        for n, each in enumerate(elements)
    ]
