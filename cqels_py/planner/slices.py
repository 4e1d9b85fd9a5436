"""Sub-selects' columns; ORDER BY, LIMIT and OFFSET."""

from __future__ import annotations

from rdflib import Variable

from cqels_py.algebra.mentions import mentioned_in
from cqels_py.algebra.nodes import Distinct, Expression, Extend, OrderBy, Pattern, Project, Reduced, Slice, VariableRef
from cqels_py.algebra.variables import possible_variables
from cqels_py.plan.nodes import DistinctRowsOf, Node, ReportOrder, TopRows
from cqels_py.planner.planning import Needed, Planning
from cqels_py.planner.rows import once, project


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


def unordered(planner: Planning, ordered: OrderBy, needed: Needed) -> Node:
    planner.warnings.append(
        "ORDER BY without LIMIT has no effect here: only the reports of a SELECT with RSTREAM are in order"
    )
    return planner.plan(ordered.pattern, needed)


def sliced(planner: Planning, pattern: Slice) -> Node:
    """LIMIT and OFFSET, with ORDER BY or without: then the first rows in term order are kept."""
    node, columns = _slice(planner, pattern)
    return project(node, columns)


def reported(planner: Planning, pattern: Pattern, needed: Needed) -> tuple[Node, ReportOrder | None]:
    """The results of a SELECT with RSTREAM, with the columns of their order."""
    match pattern:
        case Reduced(inner):
            return reported(planner, inner, needed)
        case Slice(inner):
            top, _ = _slice(planner, pattern)
            return top, ReportOrder(top.order) if top.order else None
        case Distinct(Project(OrderBy() as ordered, variables) as inner) if _hidden(ordered, variables):
            node, _, order = _ordered(planner, inner)
            return node, ReportOrder(order, distinct=True)
        case Project(OrderBy()) | Distinct(Project(OrderBy())):
            node, _, order = _ordered(planner, pattern)
            return node, ReportOrder(order)
        case _:
            return planner.plan(pattern, needed), None


def _slice(planner: Planning, pattern: Slice) -> tuple[TopRows, tuple[str, ...]]:
    node, columns, order = _ordered(planner, pattern.pattern)
    return TopRows(node, order, pattern.offset, pattern.limit, tuple(map(str, pattern.by))), columns


def _ordered(planner: Planning, pattern: Pattern) -> tuple[Node, tuple[str, ...], tuple[tuple[str, bool], ...]]:
    """A node with the pattern's columns, then other columns of its order; the pattern's columns; and the order."""
    columns = columns_of(pattern)
    match pattern:
        case Reduced(inner):
            return _ordered(planner, inner)
        case OrderBy(inner, conditions):
            return _keyed(planner, inner, conditions, columns)
        case Project(OrderBy(inner, conditions) as ordered, variables):
            selected = Project(inner, (*variables, *sorted(_hidden(ordered, variables))))
            return _keyed(planner, selected, conditions, columns)
        case Distinct(Project(OrderBy(inner, conditions) as ordered, variables)):
            hidden = _hidden(ordered, variables)
            if not hidden:
                return _keyed(planner, Distinct(Project(inner, variables)), conditions, columns)
            # Of equal rows the first in the order stays.
            selected = Project(inner, (*variables, *sorted(hidden)))
            node, names, order = _keyed(planner, selected, conditions, columns)
            return once(TopRows(node, order, 0, 1, names)), names, order
        case _:
            return _keyed(planner, pattern, (), columns)


def _hidden(ordered: OrderBy, variables: tuple[Variable, ...]) -> frozenset[Variable]:
    """Variables that an order needs and that are not selected."""
    mentioned = frozenset().union(*(mentioned_in(expression) for expression, _ in ordered.conditions))
    return (mentioned & possible_variables(ordered.pattern)) - frozenset(variables)


def _keyed(
    planner: Planning,
    pattern: Pattern,
    conditions: tuple[tuple[Expression, bool], ...],
    columns: tuple[Variable, ...],
) -> tuple[Node, tuple[str, ...], tuple[tuple[str, bool], ...]]:
    order: list[tuple[str, bool]] = []
    for expression, descending in conditions:
        if isinstance(expression, VariableRef):
            if expression.variable in possible_variables(pattern):
                order.append((str(expression.variable), descending))
            continue
        key = planner.fresh("order")
        pattern = Extend(pattern, key, expression)
        order.append((str(key), descending))
    kept = (*columns, *(Variable(name) for name, _ in order if Variable(name) not in columns))
    kept = tuple(dict.fromkeys(kept))
    node = once(project(planner.plan(pattern, frozenset(kept)), tuple(map(str, kept))))
    return node, tuple(map(str, columns)), tuple(order)
