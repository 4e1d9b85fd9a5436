"""In which order the mappings of a plan's node leave, which operators above it make use of."""

from __future__ import annotations

from cqels_py.plan.nodes import ExtendRows, FilterRows, Node, ProjectRows, Rows, Scan, Shared


def is_timed(node: Node) -> bool:
    """Does a node evaluate all its rows at every tick?"""
    match node:
        case FilterRows(_, program) | ExtendRows(_, _, program):
            return not program.deterministic
        case _:
            return False


def expires_in_order(node: Node) -> bool:
    """Do the negative mappings of a node come in the order of the positive ones? Those of static data that is replaced do not."""
    if is_timed(node):
        return False
    match node:
        case Scan():
            return node.in_order
        case Rows():
            return True
        case FilterRows(inner) | ProjectRows(inner):
            return expires_in_order(inner)
        case ExtendRows(inner) | Shared(_, inner):
            return expires_in_order(inner)
        case _:
            return False
