"""Variables that a pattern mentions: EXISTS substitutes values of the outer solution for them, wherever they stand."""

from __future__ import annotations

from rdflib import Variable

from cqels_py.algebra.nodes import (
    BGP,
    AggregateCall,
    Distinct,
    EventJoin,
    Expression,
    Extend,
    Filter,
    Graph,
    Group,
    Join,
    LeftJoin,
    Match,
    Minus,
    NaryJoin,
    OrderBy,
    PathPattern,
    Pattern,
    Planned,
    Project,
    Reduced,
    Service,
    Slice,
    State,
    Union,
    Values,
    Window,
    WindowVariable,
)
from cqels_py.algebra.variables import Variables, exists_patterns, expression_variables, possible_variables


def mentioned_variables(pattern: Pattern) -> Variables:
    """Variables of a pattern and of the expressions in it, except those that a subquery keeps to itself."""
    match pattern:
        case BGP() | PathPattern() | Values() | Planned() | Match() | State():
            return possible_variables(pattern)
        case EventJoin(_, others, conditions):
            found = possible_variables(pattern).union(*map(mentioned_variables, others))
            return found.union(*map(mentioned_in, conditions))
        case Join(left, right) | Minus(left, right):
            return mentioned_variables(left) | mentioned_variables(right)
        case LeftJoin(left, right, condition):
            found = mentioned_variables(left) | mentioned_variables(right)
            return found if condition is None else found | mentioned_in(condition)
        case NaryJoin(parts) | Union(parts):
            return frozenset().union(*map(mentioned_variables, parts))
        case Filter(inner, condition):
            return mentioned_variables(inner) | mentioned_in(condition)
        case Extend(inner, variable, expression):
            return mentioned_variables(inner) | mentioned_in(expression) | {variable}
        case OrderBy(inner, conditions):
            return mentioned_variables(inner).union(*(mentioned_in(expression) for expression, _ in conditions))
        case Group(inner, keys, aggregates):
            found = mentioned_variables(inner).union(*(mentioned_in(a) for a in aggregate_arguments(aggregates)))
            return found & frozenset(keys)
        case Project(inner, variables):
            return mentioned_variables(inner) & frozenset(variables)
        case Graph() | Window() | WindowVariable() | Service():
            return mentioned_variables(pattern.pattern) | possible_variables(pattern)
        case Distinct(inner) | Reduced(inner) | Slice(inner):
            return mentioned_variables(inner)


def aggregate_arguments(aggregates: tuple[tuple[Variable, AggregateCall], ...]) -> tuple[Expression, ...]:
    """The expressions that are aggregated."""
    return tuple(call.argument for _, call in aggregates if call.argument is not None)


def mentioned_in(expression: Expression) -> Variables:
    """Variables of an expression and of the patterns of EXISTS in it."""
    return expression_variables(expression).union(*map(mentioned_variables, exists_patterns(expression)))
