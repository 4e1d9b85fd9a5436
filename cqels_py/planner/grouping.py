"""GROUP BY and aggregates."""

from __future__ import annotations

from rdflib import Variable

from cqels_py.algebra.nodes import AggregateCall, Extend, Group, Pattern, VariableRef
from cqels_py.algebra.variables import possible_variables
from cqels_py.errors import UnsupportedQuery
from cqels_py.plan.nodes import GroupRows, Node, NumberRows, PlannedAggregate
from cqels_py.planner.planning import Planning
from cqels_py.planner.rows import project, with_columns
from cqels_py.planner.weighted_groups import weighted_groups

_AGGREGATES = ("COUNT", "SUM", "AVG", "MIN", "MAX", "SAMPLE", "GROUP_CONCAT")


def grouped(planner: Planning, group: Group) -> Node:
    weighted = weighted_groups(planner, group)
    if weighted is not None:
        return weighted
    pattern = group.pattern
    number = planner.fresh("number") if any(_counts_rows(call) for _, call in group.aggregates) else None
    aggregates: list[PlannedAggregate] = []
    for variable, call in group.aggregates:
        pattern, aggregate = aggregated(planner, pattern, str(variable), call, number)
        aggregates.append(aggregate)
    arguments = {Variable(a.argument) for a in aggregates if a.argument is not None} - {number}
    if number is None:
        node = planner.plan(pattern, frozenset(group.keys) | arguments)
    else:
        # Blank nodes of a pattern are not part of its solutions.
        visible = frozenset(v for v in possible_variables(group.pattern) if not v.startswith("_:"))
        found = with_columns(planner.plan(pattern, frozenset(group.keys) | arguments | visible), map(str, visible))
        node = NumberRows(found, tuple(sorted(map(str, visible))), str(number))
    columns = [*group.keys, *sorted(arguments), *([] if number is None else [number])]
    node = project(node, tuple(str(v) for v in dict.fromkeys(columns)))
    return GroupRows(node, tuple(str(v) for v in group.keys), tuple(aggregates))


def _counts_rows(call: AggregateCall) -> bool:
    """COUNT(DISTINCT *)"""
    return call.argument is None and call.distinct


def aggregated(
    planner: Planning, pattern: Pattern, name: str, call: AggregateCall, number: Variable | None
) -> tuple[Pattern, PlannedAggregate]:
    """The aggregate over a variable, and the pattern that has it. `number` tells different rows apart."""
    if call.function not in _AGGREGATES:
        raise UnsupportedQuery(f"unknown aggregate {call.function}: there are {', '.join(_AGGREGATES)}")
    if call.argument is None:
        if call.distinct:
            return pattern, PlannedAggregate(name, "COUNT", str(number), True)
        return pattern, PlannedAggregate(name, "COUNT(*)", None, False)
    if isinstance(call.argument, VariableRef):
        argument = call.argument.variable
    else:
        argument = planner.fresh("argument")
        pattern = Extend(pattern, argument, call.argument)
    distinct = call.distinct and call.function not in ("MIN", "MAX", "SAMPLE")
    separator = " " if call.separator is None else call.separator
    return pattern, PlannedAggregate(name, call.function, str(argument), distinct, separator)
