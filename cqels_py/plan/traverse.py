"""Walks over plans."""

from __future__ import annotations

from collections.abc import Iterator

from cqels_py.plan.nodes import Node, Scan, Shared, inputs_of


def nodes_of(node: Node, visited: set[int] | None = None) -> Iterator[Node]:
    """A node and all below it; what several nodes share, once."""
    visited = set() if visited is None else visited
    if isinstance(node, Shared):
        if node.number in visited:
            return
        visited.add(node.number)
    yield node
    for child in inputs_of(node):
        yield from nodes_of(child, visited)


def scans_of(node: Node) -> Iterator[Scan]:
    """The triple patterns over streams in a plan's node."""
    return (each for each in nodes_of(node) if isinstance(each, Scan))
