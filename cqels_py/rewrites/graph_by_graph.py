"""GRAPH ?g around a group that must not see ?g, or a subquery: answered graph by graph, with the graph as one more column.

    Graph(?g, Project(BGP a, ?x))  →  Project(Extend(Project(Graph(?h, BGP a), ?x ?h), ?g := ?h), ?x ?g)

A ?g inside of a subquery is another variable, unless it is selected: then it has to be the graph. The graphs of a window's
elements are asked in the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from rdflib import Literal, Variable

from cqels_py.algebra.mentions import mentioned_variables
from cqels_py.algebra.nodes import (
    BGP,
    AggregateCall,
    Call,
    Constant,
    Expression,
    Extend,
    Filter,
    Graph,
    Group,
    Join,
    LeftJoin,
    Minus,
    Pattern,
    Project,
    Service,
    Slice,
    Values,
    VariableRef,
    Window,
)
from cqels_py.algebra.traverse import map_children
from cqels_py.algebra.variables import certain_variables, graph_variable, possible_variables

Named: TypeAlias = Graph | Window
"""A pattern over named graphs, static ones or those of a window."""
Push = Callable[[Named], Pattern | None]
"""The pattern with its graph pushed down to what asks it; None where that would make a difference."""
Rewrite = Callable[[Pattern], Pattern]
"""What becomes of clauses that choose another graph."""

_OF_NOTHING: dict[str, Literal] = {
    "COUNT": Literal(0),
    "SUM": Literal(0),
    "AVG": Literal(0),
    "GROUP_CONCAT": Literal(""),
}
"""Aggregates that have a value where there is nothing to aggregate."""
_MEMBERS = Variable("_:members")


def named(around: Named, name: Variable, pattern: Pattern) -> Named:
    """Another pattern over the same graphs, whose names another variable has."""
    if isinstance(around, Window):
        return replace(around, graph=name, pattern=pattern)
    return replace(around, name=name, pattern=pattern)


def graph_by_graph(around: Named, name: Variable, push: Push, elsewhere: Rewrite) -> Pattern:
    """A pattern over each graph, whose name the variable has, by graphs around what asks them alone."""
    pattern = around.pattern
    # A subquery hides what is inside of it.
    graph = graph_variable(name)
    inside = _ByGraph(around, graph, push, elsewhere).rewritten(pattern)
    possible = possible_variables(pattern)
    if name not in possible:
        found: Pattern = Extend(inside, name, VariableRef(graph))
    elif name in certain_variables(pattern):
        found = Filter(inside, Call("SAMETERM", (VariableRef(name), VariableRef(graph))))
    else:
        found = Join(inside, Extend(named(around, name, BGP(())), graph, VariableRef(name)))
    # Expressions inside may see what EXISTS has from outside.
    return Project(found, tuple(sorted(possible | mentioned_variables(pattern) | {name})))


class _ByGraph:
    """Rewrites patterns so that their solutions are those in each graph, with the graph."""

    def __init__(self, around: Named, graph: Variable, push: Push, elsewhere: Rewrite) -> None:
        self._around = around
        self._graph = graph
        self._push = push
        self._elsewhere = elsewhere

    def rewritten(self, pattern: Pattern) -> Pattern:
        pushed = self._push(named(self._around, self._graph, pattern))
        if pushed is not None:
            return pushed
        match pattern:
            case Values() | Service():
                return self._in_each(pattern)
            case Window() | Graph():
                return self._in_each(self._elsewhere(pattern))
            case Project(inner, variables):
                return Project(self.rewritten(inner), (*variables, self._graph))
            case Slice(inner):
                return replace(pattern, pattern=self.rewritten(inner), by=(*pattern.by, self._graph))
            case Minus():
                # That both sides are of one graph is nothing that they have in common.
                counting = replace(pattern, uncounted=pattern.uncounted | {self._graph})
                return map_children(counting, self.rewritten)
            case Group(_, ()):
                return self._whole(pattern)
            case Group(keys=keys):
                return map_children(replace(pattern, keys=(*keys, self._graph)), self.rewritten)
            case _:
                return map_children(pattern, self.rewritten)

    def _in_each(self, pattern: Pattern) -> Pattern:
        return Join(self._names(), pattern)

    def _names(self) -> Pattern:
        """Each graph's name."""
        return named(self._around, self._graph, BGP(()))

    def _whole(self, group: Group) -> Pattern:
        """The group without keys, which there is in a graph without solutions too."""
        hidden = {v: Variable(f"_:all {v}") for v, call in group.aggregates if call.function in _OF_NOTHING}
        aggregates = tuple((hidden.get(variable, variable), call) for variable, call in group.aggregates)
        aggregates = (*aggregates, (_MEMBERS, AggregateCall("COUNT", None)))
        grouped = replace(group, keys=(self._graph,), aggregates=aggregates)
        found: Pattern = LeftJoin(self._names(), map_children(grouped, self.rewritten), None)
        for variable, call in group.aggregates:
            if variable in hidden:
                value = _or_else(call.function, VariableRef(hidden[variable]), _OF_NOTHING[call.function])
                found = Extend(found, variable, value)
        return found


def _or_else(function: str, value: VariableRef, otherwise: Literal) -> Expression:
    """An aggregate's value; where there is no group, that of nothing."""
    if function == "COUNT":
        return Call("COALESCE", (value, Constant(otherwise)))
    # A group may be there and have no value.
    there = Call("BOUND", (VariableRef(_MEMBERS),))
    return Call("IF", (there, value, Constant(otherwise)))
