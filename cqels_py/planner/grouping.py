"""GROUP BY and aggregates."""

from __future__ import annotations

from rdflib import Variable

from cqels_py.algebra.nodes import AggregateCall, Extend, Group, Pattern, VariableRef
from cqels_py.errors import UnsupportedQuery
from cqels_py.plan.nodes import GroupRows, Node, PlannedAggregate
from cqels_py.planner.planning import Planning
from cqels_py.planner.rows import project

_AGGREGATES = ("COUNT", "SUM", "AVG", "MIN", "MAX")


def grouped(planner: Planning, group: Group) -> Node:
    pattern = group.pattern
    aggregates: list[PlannedAggregate] = []
    for variable, call in group.aggregates:
        pattern, aggregate = aggregated(planner, pattern, str(variable), call)
        aggregates.append(aggregate)
    arguments = {a.argument for a in aggregates if a.argument is not None}
    needed = frozenset(group.keys) | frozenset(Variable(a) for a in arguments)
    node = planner.plan(pattern, needed)
    columns = tuple(str(v) for v in dict.fromkeys([*group.keys, *(Variable(a) for a in sorted(arguments))]))
    return GroupRows(project(node, columns), tuple(str(v) for v in group.keys), tuple(aggregates))


def aggregated(planner: Planning, pattern: Pattern, name: str, call: AggregateCall) -> tuple[Pattern, PlannedAggregate]:
    if call.function not in _AGGREGATES:
        raise UnsupportedQuery(
            f"the aggregate {call.function} is not supported yet; there are {', '.join(_AGGREGATES)}"
        )
    if call.argument is None:
        if call.distinct:
            raise UnsupportedQuery("COUNT(DISTINCT *) is not supported yet: name the variables in a subquery")
        return pattern, PlannedAggregate(name, "COUNT(*)", None, False)
    if isinstance(call.argument, VariableRef):
        argument = call.argument.variable
    else:
        argument = planner.fresh("argument")
        pattern = Extend(pattern, argument, call.argument)
    distinct = call.distinct and call.function not in ("MIN", "MAX")
    return pattern, PlannedAggregate(name, call.function, str(argument), distinct)
