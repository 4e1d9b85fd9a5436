"""DISTINCT pushed below a join: where a join's results are made distinct, duplicates in its inputs only multiply them.

Duplicates come from variables that are not selected: many people like one photo, a user is tracked many times in one place. So a
scan whose subject is not selected is made distinct before the join; scans of one window that are linked by such a variable are
joined first and made distinct without it. An input that is left with one variable (the photos that people like) is a condition: it
is joined first with the scans that describe the variable, so that other inputs are joined only with mappings that satisfy it.
"""

from __future__ import annotations

from dataclasses import replace

from cqels_py.plan.nodes import DistinctRowsOf, ExtendRows, FilterRows, JoinAll, Node, ProjectRows, Scan, is_variable
from cqels_py.plan.order import expires_fifo
from cqels_py.planner.rows import without_ids

_REASON = "duplicates would multiply the join's results"


def drop_duplicates(node: Node) -> Node:
    """DISTINCT over a join, with its inputs made distinct where that changes no result; any other node as it is."""
    return replace(node, input=_met_once(node.input)) if isinstance(node, DistinctRowsOf) else node


def _met_once(node: Node) -> Node:
    """The node for a reader to whom the multiplicity of rows makes no difference."""
    match node:
        case ProjectRows(inner) | FilterRows(inner) | ExtendRows(inner):
            return replace(node, input=_met_once(inner))
        case JoinAll(inputs, asked, maybe_unbound=uncertain) if not uncertain:
            inputs = tuple(_without_copies(each) for each in _linked_joined(inputs, asked))
            inputs = _conditions_joined(inputs, asked)
            return replace(node, inputs=inputs, expires_fifo=tuple(map(expires_fifo, inputs)))
        case _:
            return node


def _without_copies(node: Node) -> Node:
    match node:
        case Scan(_, (subject, *_), variables) if variables and is_variable(subject) and subject[1:] not in variables:
            return DistinctRowsOf(replace(node, keep_ids=True), _REASON)
        case _:
            return _met_once(node)


def _linked_joined(inputs: tuple[Node, ...], asked: tuple[str, ...]) -> tuple[Node, ...]:
    """The inputs, with those joined first that are linked by subjects which are not selected."""
    groups: list[list[Node]] = [[node] for node in inputs]
    for variable in dict.fromkeys(v for node in inputs for v in node.variables):
        having = [node for node in inputs if variable in node.variables]
        if variable not in asked and _describe_in_one_window(having, variable):
            linked = [group for group in groups if any(node in having for node in group)]
            groups = [group for group in groups if group not in linked]
            groups.append([node for group in linked for node in group])
    if len(groups) == 1:
        return inputs
    return tuple(group[0] if len(group) == 1 else _joined(group, inputs, asked) for group in groups)


def _conditions_joined(inputs: tuple[Node, ...], asked: tuple[str, ...]) -> tuple[Node, ...]:
    """The inputs, with conditions on a variable joined first with the scans that describe it."""
    for condition in inputs:
        if isinstance(condition, DistinctRowsOf) and len(condition.variables) == 1:
            described = [node for node in inputs if node is condition or _describes(node, condition.variables[0])]
            others = tuple(node for node in inputs if node not in described)
            if len(described) > 1 and len(others) > 1:
                return _conditions_joined((*others, _joined(described, inputs, asked)), asked)
    return inputs


def _describes(node: Node, variable: str) -> bool:
    return isinstance(node, Scan) and node.pattern[0] == f"?{variable}"


def _describe_in_one_window(nodes: list[Node], variable: str) -> bool:
    """Are these several scans of one window, with a variable that is a subject in one of them?"""
    scans = [node for node in nodes if isinstance(node, Scan)]
    return (
        1 < len(scans) == len(nodes)
        and len({scan.window for scan in scans}) == 1
        and any(scan.pattern[0] == f"?{variable}" for scan in scans)
    )


def _joined(group: list[Node], inputs: tuple[Node, ...], asked: tuple[str, ...]) -> Node:
    outside = {*asked, *(v for node in inputs if node not in group for v in node.variables)}
    names = dict.fromkeys(v for node in group for v in node.variables)
    columns = tuple(v for v in names if v in outside)
    mine = tuple(without_ids(node) for node in group)
    joined = JoinAll(mine, columns, tuple(map(expires_fifo, mine)))
    return DistinctRowsOf(joined, _REASON) if columns and len(columns) < len(names) else joined
