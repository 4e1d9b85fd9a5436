"""OPTIONAL as a union of the join with an anti-join."""

from __future__ import annotations

from cqels_py.algebra.mentions import mentioned_in
from cqels_py.algebra.nodes import BGP, Filter, LeftJoin
from cqels_py.algebra.variables import possible_variables
from cqels_py.plan.nodes import Node, UnionRows
from cqels_py.planner.joins import joined
from cqels_py.planner.keys import with_exact_key
from cqels_py.planner.negation import semi_anti_join
from cqels_py.planner.planning import Needed, Planning
from cqels_py.planner.rows import once, project


def left_join(planner: Planning, optional: LeftJoin, needed: Needed) -> Node:
    """The join of both sides where the condition holds, and the left mappings without a result in it.

    Left mappings that are equal in all variables of the right side and the condition have the same matches: these variables are the
    key of the anti-join, which keeps multiplicities.
    """
    outer = possible_variables(optional.left)
    seen = possible_variables(optional.right)
    if optional.condition is not None:
        seen |= mentioned_in(optional.condition)
    keyed, columns_of_key = with_exact_key(planner, optional.left, outer & seen)
    key = frozenset(columns_of_key.values())
    # Both the join and the anti-join keep left mappings themselves.
    is_joined = joined(optional.right) != BGP(())
    left = planner.share(keyed, (needed & outer) | (outer & seen) | key, leaves=is_joined)
    matches = joined(left, optional.right)
    if optional.condition is not None:
        matches = Filter(matches, optional.condition)
    matched = planner.share(matches, (needed & possible_variables(optional)) | key)
    missing = semi_anti_join(
        planner, planner.node_of(left), matched, key, exists=False, word="OPTIONAL without a match"
    )
    columns = tuple(str(v) for v in sorted(needed & possible_variables(optional)))
    return once(UnionRows((project(planner.node_of(matched), columns), project(missing, columns)), columns))
