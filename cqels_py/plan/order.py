"""Properties of the order in which a node's mappings are inserted and retracted, which operators above it use."""

from __future__ import annotations

from cqels_py.plan.nodes import (
    CountedJoin,
    DistinctRowsOf,
    EventRows,
    ExtendRows,
    FilterRows,
    GraphNames,
    JoinAll,
    MatchRows,
    Negate,
    Node,
    Once,
    ProjectRows,
    Rows,
    Scan,
    Shared,
    StateRows,
    StaticScan,
    UnionRows,
    inputs_of,
)


def is_timed(node: Node) -> bool:
    """Does a node evaluate all of its rows at every tick? It does if its expression has NOW."""
    match node:
        case FilterRows(_, program) | ExtendRows(_, _, program):
            return not program.deterministic
        case _:
            return False


def expires_fifo(node: Node) -> bool:
    """Are the mappings of a node retracted in the order of their insertion? Those of static data that is replaced are not."""
    if is_timed(node):
        return False
    match node:
        case Scan():
            return node.expires_fifo
        case Rows():
            return True
        case FilterRows(inner) | ProjectRows(inner):
            return expires_fifo(inner)
        case ExtendRows(inner) | Shared(_, inner):
            return expires_fifo(inner)
        case _:
            return False


def never_expires(node: Node) -> bool:
    """Is a mapping of a node never retracted? Only True is certain."""
    if is_timed(node):
        return False
    match node:
        case Scan():
            return not node.expires
        case Rows() | EventRows() | CountedJoin():
            return True
        case FilterRows() | ExtendRows() | ProjectRows() | Shared():
            return never_expires(node.input)
        case _:
            return False


def is_monotone(node: Node) -> bool:
    """If a tick's inputs are insertions only, or retractions only, is this also true of the node's changes?"""
    match node:
        case (
            Scan()
            | MatchRows()
            | StateRows()
            | EventRows()
            | CountedJoin()
            | Rows()
            | Once()
            | StaticScan()
            | GraphNames()
        ):
            return True
        case FilterRows() | ExtendRows() if is_timed(node):
            return False
        case Negate(exists=False):
            return False
        case (
            FilterRows()
            | ExtendRows()
            | ProjectRows()
            | JoinAll()
            | UnionRows()
            | DistinctRowsOf()
            | Shared()
            | Negate()
        ):
            return all(map(is_monotone, inputs_of(node)))
        case _:
            return False
