"""Blank node identity for the oracle: labels are prefixed with the name of their document."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from rdflib import BNode

from tests.oracle.naive import Element
from tests.oracle.naive_values import Term

Document = Callable[[int, Element], str]
"""The document of an element, by its number among all elements."""


def by_element(number: int, element: Element) -> str:
    """Each element is a document: for pushed elements, rows of tables without a document, and with blank_nodes="element"."""
    return f"e{number}"


def by_stream(number: int, element: Element) -> str:
    """Each stream is a document: it reads a file, or a table to its end."""
    return f"s{str(element.stream)[-1]}"


def as_one(number: int, element: Element) -> str:
    """All elements are in one document: they were pushed with the same name."""
    return "one"


def scoped(elements: Sequence[Element], document: Document) -> list[Element]:
    """The elements, with labels that denote a node within their document only."""

    def node(term: Term, scope: str) -> Term:
        return BNode(f"{scope}x{term}") if isinstance(term, BNode) else term

    return [
        replace(
            each,
            triples=tuple((node(s, document(n, each)), p, node(o, document(n, each))) for s, p, o in each.triples),
        )
        for n, each in enumerate(elements)
    ]
