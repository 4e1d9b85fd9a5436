"""Rebuilding a tree of patterns with other children."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from cqels_py.algebra.nodes import (
    BGP,
    AggregateCall,
    Call,
    Constant,
    Distinct,
    EventJoin,
    Exists,
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

Rewrite = Callable[[Pattern], Pattern]


def map_children(pattern: Pattern, rewrite: Rewrite) -> Pattern:
    """The node with rewritten child patterns; patterns inside EXISTS are children too."""
    match pattern:
        case BGP() | PathPattern() | Values() | Planned() | Match() | State():
            return pattern
        case EventJoin(others=others):
            return replace(pattern, others=tuple(map(rewrite, others)))
        case Join(left, right):
            return Join(rewrite(left), rewrite(right))
        case Minus(left, right):
            return replace(pattern, left=rewrite(left), right=rewrite(right))
        case LeftJoin(left, right, condition):
            inner = None if condition is None else map_exists(condition, rewrite)
            return LeftJoin(rewrite(left), rewrite(right), inner)
        case NaryJoin(parts):
            return NaryJoin(tuple(rewrite(part) for part in parts))
        case Union(parts):
            return Union(tuple(rewrite(part) for part in parts))
        case Filter(inner_pattern, condition):
            return Filter(rewrite(inner_pattern), map_exists(condition, rewrite))
        case Extend(inner_pattern, variable, expression):
            return Extend(rewrite(inner_pattern), variable, map_exists(expression, rewrite))
        case OrderBy(inner_pattern, conditions):
            mapped = tuple((map_exists(expression, rewrite), descending) for expression, descending in conditions)
            return OrderBy(rewrite(inner_pattern), mapped)
        case Group(inner_pattern, keys, aggregates):
            calls = tuple((variable, _map_argument(call, rewrite)) for variable, call in aggregates)
            return Group(rewrite(inner_pattern), keys, calls)
        case Graph() | Window() | WindowVariable() | Service() | Project() | Distinct() | Reduced() | Slice():
            return replace(pattern, pattern=rewrite(pattern.pattern))


def _map_argument(call: AggregateCall, rewrite: Rewrite) -> AggregateCall:
    return call if call.argument is None else replace(call, argument=map_exists(call.argument, rewrite))


def map_exists(expression: Expression, rewrite: Rewrite) -> Expression:
    """The expression with rewritten patterns of EXISTS."""
    match expression:
        case Exists(pattern, negated):
            return Exists(rewrite(pattern), negated)
        case Call(function, arguments):
            mapped = (a if isinstance(a, Constant) else map_exists(a, rewrite) for a in arguments)
            return Call(function, tuple(mapped))
        case _:
            return expression


def bottom_up(pattern: Pattern, rule: Rewrite) -> Pattern:
    """Apply `rule` to every node, children first."""
    return rule(map_children(pattern, lambda child: bottom_up(child, rule)))
