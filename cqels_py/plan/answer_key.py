"""The columns by which the rows of an answer differ."""

from __future__ import annotations

from cqels_py.plan.nodes import (
    ExtendRows,
    FactorisedGroups,
    FilterRows,
    GroupRows,
    Node,
    Plan,
    ProjectRows,
    Shared,
    TopRows,
)

_OF_THE_SAME_GROUPS = (ProjectRows, FilterRows, ExtendRows, TopRows, Shared)


def answer_key(plan: Plan) -> tuple[str, ...] | None:
    """The columns with the variables of GROUP BY, of which each row has other values; None where an answer may have equal rows."""
    node: Node = plan.root
    copies: dict[str, str] = {}
    while isinstance(node, _OF_THE_SAME_GROUPS):
        if isinstance(node, ExtendRows) and node.expression.instructions == (("variable", 0),):
            copies.setdefault(node.expression.inputs[0], node.variable)
        node = node.input
    if not isinstance(node, GroupRows | FactorisedGroups) or not node.keys:
        return None
    columns = [name if name in plan.variables else copies.get(name) for name in node.keys]
    return tuple(str(name) for name in columns) if set(columns) <= set(plan.variables) else None
