"""Which variable a plan's state can be divided by, so that no part ever needs to know what another one holds."""

from __future__ import annotations

from collections.abc import Iterator

from cqels_py.event_time.windows import Measure
from cqels_py.plan.nodes import (
    DistinctRowsOf,
    ExtendRows,
    FilterRows,
    GroupRows,
    JoinAll,
    Negate,
    Node,
    Once,
    Plan,
    ProjectRows,
    Rows,
    Scan,
    Shared,
    UnionRows,
    inputs_of,
)


def partition_variable(plan: Plan) -> str | None:
    """A variable that is in every mapping of every operator, up to the results; None: all must be in one place.

    Mappings that differ in it never meet: not in a join, a group, a negation or a DISTINCT; and results that differ in it
    are different, so that what leaves one part and enters another at the same tick is no change that cancels out.
    """
    if plan.form == "ASK" or any(w.partition or w.bounds.measure is Measure.TRIPLES for w in plan.windows):
        # One answer; or a window whose content depends on triples that go elsewhere.
        return None
    candidates: set[str] | None = None
    for scan in _scans(plan.root):
        candidates = set(scan.variables) if candidates is None else candidates & set(scan.variables)
    for variable in plan.variables:
        if variable in (candidates or ()) and _divisible(plan.root, variable):
            return variable
    return None


def _scans(node: Node) -> Iterator[Scan]:
    if isinstance(node, Scan):
        yield node
    for child in inputs_of(node):
        yield from _scans(child)


def _divisible(node: Node, variable: str) -> bool:
    """Does each mapping of the node have the variable, and need only mappings with the same value of it?"""
    if variable not in node.variables:
        return False
    match node:
        case Scan() | Once() | Rows():
            return True
        case JoinAll(inputs):
            # Static inputs without the variable are in every part.
            return variable not in node.loose and all(
                _divisible(child, variable) for child in inputs if not isinstance(child, Once | Rows)
            )
        case Negate(left, right, key):
            return variable in key and _divisible(left, variable) and _divisible(right, variable)
        case GroupRows(inner, keys):
            return variable in keys and _divisible(inner, variable)
        case UnionRows(inputs):
            return all(_divisible(child, variable) for child in inputs)
        case FilterRows() | ExtendRows() | ProjectRows() | DistinctRowsOf() | Shared():
            return all(_divisible(child, variable) for child in inputs_of(node))
        case _:
            return False
