"""In which order the mappings of a plan's node come and leave, which operators above it make use of."""

from __future__ import annotations

from cqels_py.plan.nodes import (
    DistinctRowsOf,
    ExtendRows,
    FilterRows,
    GraphNames,
    JoinAll,
    Negate,
    Node,
    Once,
    ProjectRows,
    Rows,
    Scan,
    Shared,
    StaticScan,
    UnionRows,
    inputs_of,
)


def is_timed(node: Node) -> bool:
    """Does a node evaluate all its rows at every tick?"""
    match node:
        case FilterRows(_, program) | ExtendRows(_, _, program):
            return not program.deterministic
        case _:
            return False


def expires_fifo(node: Node) -> bool:
    """Do the negative mappings of a node come in the order of the positive ones? Those of static data that is replaced do not."""
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


def is_monotone(node: Node) -> bool:
    """Where all that a plan reads comes at a tick, and nothing goes, is it so with its mappings, and the other way round?"""
    match node:
        case Scan() | Rows() | Once() | StaticScan() | GraphNames():
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
