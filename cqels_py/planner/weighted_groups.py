"""Aggregates over joins of events: each row comes once, with its number as a weight, however many combinations it stands for.

    COUNT(*)  →  SUM(?weight)          COUNT(?x)  →  SUM(IF(BOUND(?x), ?weight, 0))
    SUM(?x)   →  SUM(?x * ?weight)     AVG(?x)    →  SUM(?x * ?weight) / SUM(?weight)

MIN, MAX, SAMPLE and aggregates of DISTINCT values need no weights. A row whose ?x is no integer or decimal comes as often as it
counts, each time with the weight 1: products of floats and doubles are rounded.
"""

from __future__ import annotations

from dataclasses import replace

from rdflib import Literal, Variable

from cqels_py.algebra.nodes import (
    AggregateCall,
    Call,
    Constant,
    EventJoin,
    Expression,
    Extend,
    Filter,
    Group,
    Pattern,
    Union,
    VariableRef,
)
from cqels_py.algebra.variables import possible_variables
from cqels_py.plan.nodes import ExtendRows, GroupRows, Node, PlannedAggregate
from cqels_py.planner.expressions import compile_expression
from cqels_py.planner.planning import Planning
from cqels_py.planner.rows import project, with_columns

_EXTREMES = ("MIN", "MAX", "SAMPLE")
_ZERO, _ONE = Constant(Literal(0)), Constant(Literal(1))


def weighted_groups(planner: Planning, group: Group) -> Node | None:
    """The groups of rows with weights; None where the rows have none, or an aggregate needs each row."""
    leaves = list(_joins(group.pattern))
    if not leaves or not all(_is_weighted(call, leaves) for _, call in group.aggregates):
        return None
    found = _WeightedGroups(planner, group)
    planner.weights.add(found.weight)
    for variable, call in group.aggregates:
        found.add(str(variable), call)
    return found.node()


def _joins(pattern: Pattern) -> list[EventJoin]:
    """The joins of events whose rows are those of the pattern, filtered and extended one by one; none if there are others."""
    match pattern:
        case EventJoin():
            return [pattern]
        case Union(parts):
            each = list(map(_joins, parts))
            return [leaf for leaves in each for leaf in leaves] if all(each) else []
        case Filter(inner) | Extend(inner):
            return _joins(inner)
        case _:
            return []


def _is_weighted(call: AggregateCall, leaves: list[EventJoin]) -> bool:
    if call.distinct or call.function in _EXTREMES:
        return call.argument is not None
    if call.function in ("SUM", "AVG"):
        # Only a variable of the events themselves says which rows are numbers with exact products.
        argument = call.argument
        return isinstance(argument, VariableRef) and all(
            argument.variable in possible_variables(leaf) for leaf in leaves
        )
    return call.function == "COUNT"


class _WeightedGroups:
    def __init__(self, planner: Planning, group: Group) -> None:
        self._planner = planner
        self._group = group
        self._pattern = group.pattern
        self.weight = planner.fresh("weight")
        self._aggregates: list[PlannedAggregate] = []
        self._arguments = {self.weight}
        self._quotients: list[tuple[str, Expression]] = []

    def add(self, name: str, call: AggregateCall) -> None:
        """One aggregate of the group."""
        weight = VariableRef(self.weight)
        if call.argument is None:
            self._aggregate(name, "SUM", self.weight)
            return
        argument = call.argument.variable if isinstance(call.argument, VariableRef) else self._extended(call.argument)
        if call.distinct or call.function in _EXTREMES:
            self._aggregate(name, call.function, argument, distinct=True, separator=call.separator)
            return
        counted = Call("IF", (Call("BOUND", (VariableRef(argument),)), weight, _ZERO))
        if call.function == "COUNT":
            self._aggregate(name, "SUM", self._extended(counted))
            return
        self._planner.summed.add(argument)
        product = self._extended(Call("*", (VariableRef(argument), weight)))
        if call.function == "SUM":
            self._aggregate(name, "SUM", product)
            return
        total, count = self._planner.fresh("total"), self._planner.fresh("count")
        self._aggregate(str(total), "SUM", product)
        self._aggregate(str(count), "SUM", self.weight)
        empty = Call("=", (VariableRef(count), _ZERO))
        quotient = Call("IF", (empty, _ZERO, Call("/", (VariableRef(total), VariableRef(count)))))
        self._quotients.append((name, quotient))

    def _extended(self, expression: Expression) -> Variable:
        variable = self._planner.fresh("argument")
        self._pattern = Extend(self._pattern, variable, expression)
        return variable

    def _aggregate(
        self, name: str, function: str, argument: Variable, *, distinct: bool = False, separator: str | None = None
    ) -> None:
        self._arguments.add(argument)
        planned = PlannedAggregate(name, function, str(argument), distinct)
        self._aggregates.append(planned if separator is None else replace(planned, separator=separator))

    def node(self) -> Node:
        """The groups, with the columns of the group."""
        keys = tuple(map(str, self._group.keys))
        columns = tuple(dict.fromkeys((*keys, *sorted(map(str, self._arguments)))))
        rows = self._planner.plan(self._pattern, frozenset(self._group.keys) | self._arguments)
        found: Node = GroupRows(project(with_columns(rows, columns), columns), keys, tuple(self._aggregates))
        for name, quotient in self._quotients:
            found = ExtendRows(found, name, compile_expression(quotient))
        return project(found, (*keys, *(str(variable) for variable, _ in self._group.aggregates)))


def with_weights(node: Node, weights: list[str]) -> Node:
    """Rows that come as often as they count, with the weight 1 each."""
    for name in weights:
        node = ExtendRows(node, name, compile_expression(_ONE))
    return node
