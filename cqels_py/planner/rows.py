"""Small steps on plan nodes: columns and static sub-plans."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from cqels_py.plan.nodes import (
    CountedJoin,
    EventRows,
    JoinAll,
    MatchRows,
    Node,
    Once,
    ProjectRows,
    Rows,
    Scan,
    Shared,
    StateRows,
    StaticScan,
    inputs_of,
)
from cqels_py.plan.order import is_timed


def is_static(node: Node) -> bool:
    """Does a sub-plan always have the same answer? Not if it reads a stream or the time."""
    if isinstance(node, Shared):
        return isinstance(node.input, Once | Rows)
    if is_timed(node):
        return False
    return not isinstance(node, Scan | MatchRows | StateRows | EventRows | CountedJoin) and all(
        is_static(child) for child in inputs_of(node)
    )


def once(node: Node) -> Node:
    """Mark a static sub-plan as evaluated once."""
    return Once(node) if is_static(node) and not isinstance(node, Once | Rows) else node


def without_ids(node: Node) -> Node:
    """A scan for a reader that keeps its mappings: if they expire first in, first out, they are delivered without ids."""
    return replace(node, keep_ids=False) if isinstance(node, Scan) and node.expires_fifo else node


def project(node: Node, variables: tuple[str, ...]) -> Node:
    """The node with these columns in this order."""
    if node.variables == variables:
        return node
    if isinstance(node, JoinAll) and set(variables) <= set(node.variables):
        return replace(node, variables=variables)
    if isinstance(node, Scan | StaticScan) and set(variables) <= set(node.variables):
        return replace(node, variables=variables)
    return ProjectRows(node, variables)


def with_columns(node: Node, variables: Iterable[str]) -> Node:
    """The node with a column for each of these variables, an unbound one where it has none."""
    missing = tuple(sorted(set(variables) - set(node.variables)))
    return ProjectRows(node, (*node.variables, *missing)) if missing else node


def short_text(node: Node) -> str:
    if isinstance(node, Scan | StaticScan):
        return "{ " + " ".join(node.pattern) + " }"
    return "{ " + " ".join(f"?{v}" for v in node.variables) + " }"
