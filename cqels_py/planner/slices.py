"""Sub-selects' columns; ORDER BY with LIMIT and OFFSET."""

from __future__ import annotations

from rdflib import Variable

from cqels_py.algebra.nodes import Distinct, Expression, Extend, OrderBy, Pattern, Project, Reduced, VariableRef
from cqels_py.algebra.variables import expression_variables, possible_variables
from cqels_py.errors import UnsupportedQuery
from cqels_py.plan.nodes import DistinctRowsOf, Node, TopRows
from cqels_py.planner.planning import Needed, Planning
from cqels_py.planner.rows import project


def columns_of(pattern: Pattern) -> tuple[Variable, ...]:
    """The columns of a sub-select, in order."""
    match pattern:
        case Project(_, variables):
            return variables
        case Distinct(inner) | Reduced(inner):
            return columns_of(inner)
        case _:
            return tuple(sorted(possible_variables(pattern)))


def projection(planner: Planning, pattern: Project, needed: Needed) -> Node:
    node = planner.plan(pattern.pattern, frozenset(pattern.variables))
    return project(node, tuple(str(v) for v in pattern.variables if v in needed))


def distinct_rows(planner: Planning, inner: Pattern) -> Node:
    # Which rows are equal depends on all columns, needed or not.
    columns = columns_of(inner)
    return DistinctRowsOf(project(planner.plan(inner, frozenset(columns)), tuple(map(str, columns))))


def sliced_projection(
    planner: Planning,
    inner: Pattern,
    conditions: tuple[tuple[Expression, bool], ...],
    variables: tuple[Variable, ...],
    offset: int,
    limit: int | None,
    *,
    distinct: bool,
) -> Node:
    """ORDER BY stands below the projection; its keys go through the projection, and are dropped after the slice."""
    hidden = frozenset().union(*(expression_variables(e) for e, _ in conditions)) - frozenset(variables)
    if distinct and hidden:
        raise UnsupportedQuery(f"DISTINCT with ORDER BY ?{min(hidden)}, which is not selected, has no defined order")
    pattern: Pattern = Project(inner, (*variables, *sorted(hidden)))
    node = top(planner, OrderBy(Distinct(pattern) if distinct else pattern, conditions), offset, limit)
    return project(node, tuple(map(str, variables)))


def top(planner: Planning, ordered: OrderBy, offset: int, limit: int | None) -> Node:
    if limit is None:
        raise UnsupportedQuery("OFFSET without LIMIT is not supported yet: add a LIMIT")
    pattern = ordered.pattern
    order: list[tuple[str, bool]] = []
    columns = columns_of(pattern)
    for expression, descending in ordered.conditions:
        if isinstance(expression, VariableRef):
            if expression.variable in possible_variables(pattern):
                order.append((str(expression.variable), descending))
            continue
        key = planner.fresh("order")
        pattern = Extend(pattern, key, expression)
        order.append((str(key), descending))
    kept = (*columns, *(Variable(name) for name, _ in order if Variable(name) not in columns))
    node = project(planner.plan(pattern, frozenset(kept)), tuple(map(str, kept)))
    return project(TopRows(node, tuple(order), offset, limit), tuple(map(str, columns)))
