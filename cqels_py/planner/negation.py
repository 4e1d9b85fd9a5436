"""EXISTS, NOT EXISTS and MINUS."""

from __future__ import annotations

from rdflib import Variable

from cqels_py.algebra.nodes import Exists, Extend, Filter, Join, LeftJoin, Minus, NaryJoin, Pattern, Union
from cqels_py.algebra.variables import certain_variables, expression_variables, possible_variables
from cqels_py.errors import UnsupportedQuery
from cqels_py.plan.nodes import Negate, Node
from cqels_py.planner.planning import Needed, Planning
from cqels_py.planner.rows import expires_in_order, project, without_ids


def mentioned(pattern: Pattern) -> frozenset[Variable]:
    """Variables of a pattern and of every filter and expression inside it, where EXISTS substitutes outer values."""
    match pattern:
        case Filter(inner, condition):
            nested = mentioned(condition.pattern) if isinstance(condition, Exists) else expression_variables(condition)
            return mentioned(inner) | nested
        case Extend(inner, variable, expression):
            return mentioned(inner) | expression_variables(expression) | {variable}
        case Join(left, right) | Minus(left, right) | LeftJoin(left, right):
            return mentioned(left) | mentioned(right)
        case NaryJoin(parts) | Union(parts):
            return frozenset().union(*(mentioned(part) for part in parts))
        case _:
            return possible_variables(pattern)


def exists_filter(planner: Planning, inner: Pattern, exists: Exists, needed: Needed) -> Node:
    word = "NOT EXISTS" if exists.negated else "EXISTS"
    shared = possible_variables(inner) & mentioned(exists.pattern)
    outer_only = shared - possible_variables(exists.pattern)
    if outer_only:
        raise UnsupportedQuery(
            f"{word}: its pattern uses ?{min(outer_only)} of the outer pattern in a filter or expression without "
            "binding it; that is not supported yet"
        )
    return negate(planner, inner, exists.pattern, shared, needed, exists=not exists.negated, word=word)


def without(planner: Planning, minus: Minus, needed: Needed) -> Node:
    shared = possible_variables(minus.left) & possible_variables(minus.right)
    if not shared:
        planner.warnings.append("MINUS shares no variable with what it is taken from: it removes nothing")
        return planner.plan(minus.left, needed)
    return negate(planner, minus.left, minus.right, shared, needed, exists=False, word="MINUS")


def negate(
    planner: Planning, left: Pattern, right: Pattern, shared: Needed, needed: Needed, *, exists: bool, word: str
) -> Node:
    loose = shared - (certain_variables(left) & certain_variables(right))
    if loose:
        raise UnsupportedQuery(f"{word} over ?{min(loose)}, which may be unbound, is not supported yet")
    left_node = planner.plan(left, needed | shared)
    key = tuple(v for v in left_node.variables if Variable(v) in shared)
    right_node = project(planner.plan(right, shared), key)
    return Negate(
        without_ids(left_node),
        without_ids(right_node),
        key,
        (expires_in_order(left_node), expires_in_order(right_node)),
        exists,
        word,
    )
