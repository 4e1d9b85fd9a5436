"""Duplicates dropped below a join: where its results are made distinct, copies of an input's mapping only multiply them.

Copies come from scans whose subject nobody asks for: many people like one photo, while a thing has as a rule one value of a
property. Such a scan's mappings are made distinct before the join meets them.
"""

from __future__ import annotations

from dataclasses import replace

from cqels_py.plan.nodes import DistinctRowsOf, ExtendRows, FilterRows, JoinAll, Node, ProjectRows, Scan, is_variable
from cqels_py.planner.rows import expires_in_order


def distinct(node: Node) -> DistinctRowsOf:
    """DISTINCT over a node."""
    return DistinctRowsOf(_met_once(node) if _joins(node) else node)


def _joins(node: Node) -> bool:
    match node:
        case ProjectRows(inner) | FilterRows(inner) | ExtendRows(inner):
            return _joins(inner)
        case _:
            return isinstance(node, JoinAll)


def _met_once(node: Node) -> Node:
    """The same node for somebody who only asks which rows there are, not how many of each."""
    match node:
        case ProjectRows(inner) | FilterRows(inner) | ExtendRows(inner):
            return replace(node, input=_met_once(inner))
        case JoinAll(inputs):
            inputs = tuple(_met_once(each) for each in inputs)
            return replace(node, inputs=inputs, in_order=tuple(map(expires_in_order, inputs)))
        case Scan(_, (subject, _, _), variables) if variables and is_variable(subject) and subject[1:] not in variables:
            return DistinctRowsOf(replace(node, keep_ids=True), "copies would multiply the join's results")
        case _:
            return node
