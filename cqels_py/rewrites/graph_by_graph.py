"""GRAPH ?g around a group that must not see ?g, or a subquery: answered graph by graph, with the graph as one more column.

    Graph(?g, Project(BGP a, ?x))  →  Project(Extend(Project(Graph(?h, BGP a), ?x ?h), ?g := ?h), ?x ?g)

SPARQL joins the graph's name around the group. Windows and graphs are pushed down to basic graph patterns (push_windows), which then
bind the name; this rewrite stands where that would make a difference. A ?g inside of a subquery is another variable, unless it is
selected: then it has to be the graph. The graphs of a window's elements are asked in the same way.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
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
    PathPattern,
    Pattern,
    Project,
    Service,
    Slice,
    Union,
    Values,
    VariableRef,
    Window,
)
from cqels_py.algebra.traverse import map_children
from cqels_py.algebra.variables import certain_variables, exists_patterns, graph_variable, possible_variables

Named: TypeAlias = Graph | Window
"""A pattern over named graphs, static ones or those of a window."""

_OF_NOTHING: dict[str, Literal] = {
    "COUNT": Literal(0),
    "SUM": Literal(0),
    "AVG": Literal(0),
    "GROUP_CONCAT": Literal(""),
}
"""Aggregates that have a value where there is nothing to aggregate."""
_MEMBERS = Variable("_:members")


def graph_by_graph(pattern: Pattern) -> Pattern:
    """Rewrite each GRAPH ?g into which its name must not be pushed.

    >>> from rdflib import URIRef
    >>> graph = Graph(Variable("g"), Values((), ((),)))
    >>> isinstance(graph_by_graph(graph), Project), graph_by_graph(Graph(URIRef("g"), BGP(()))) == Graph(URIRef("g"), BGP(()))
    (True, True)
    """
    return _rewritten(pattern, None)


def _rewritten(pattern: Pattern, window: Window | None) -> Pattern:
    """`window`: that in which the pattern stands."""
    match pattern:
        case Window():
            return map_children(pattern, lambda child: _rewritten(child, pattern))
        case Graph(Variable() as name, inner, in_window) if not _may_bind_inside(inner, name):
            if not in_window:
                return _each_graph(pattern, name, window)
            assert window is not None
            return _each_graph(replace(window, graph=name, pattern=inner), name, window)
        case Service():
            # Its pattern is asked elsewhere.
            return pattern
        case _:
            return map_children(pattern, lambda child: _rewritten(child, window))


def _named(around: Named, name: Variable, pattern: Pattern) -> Named:
    """Another pattern over the same graphs, whose names another variable has."""
    if isinstance(around, Window):
        return replace(around, graph=name, pattern=pattern)
    return replace(around, name=name, pattern=pattern)


def _each_graph(around: Named, name: Variable, window: Window | None) -> Pattern:
    """The pattern over each graph, with the graph's name in the variable; the graphs stand around the parts that may bind it."""
    pattern = around.pattern
    # Not the variable itself: a subquery hides its variables.
    graph = graph_variable(name)
    inside = _ByGraph(around, graph, window).rewritten(pattern)
    possible = possible_variables(pattern)
    if name not in possible:
        found: Pattern = Extend(inside, name, VariableRef(graph))
    elif name in certain_variables(pattern):
        found = Filter(inside, Call("SAMETERM", (VariableRef(name), VariableRef(graph))))
    else:
        found = Join(inside, Extend(_named(around, name, BGP(())), graph, VariableRef(name)))
    # Expressions inside may read variables of the solution around an EXISTS.
    return Project(found, tuple(sorted(possible | mentioned_variables(pattern) | {name})))


class _ByGraph:
    """Rewrites patterns so that their solutions are those in each graph, with the graph."""

    def __init__(self, around: Named, graph: Variable, window: Window | None) -> None:
        self._around = around
        self._graph = graph
        self._window = window

    def rewritten(self, pattern: Pattern) -> Pattern:
        if _may_bind_inside(pattern, self._graph):
            return _named(self._around, self._graph, pattern)
        match pattern:
            case Values() | Service():
                return self._in_each(pattern)
            case Window() | Graph():
                return self._in_each(_rewritten(pattern, self._window))
            case Project(inner, variables):
                return Project(self.rewritten(inner), (*variables, self._graph))
            case Slice(inner):
                return replace(pattern, pattern=self.rewritten(inner), by=(*pattern.by, self._graph))
            case Minus():
                # The graph has to agree, but does not count as a variable in common.
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
        return _named(self._around, self._graph, BGP(()))

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


def _may_bind_inside(pattern: Pattern, name: Variable) -> bool:
    """Is Graph(name, pattern) the same when every basic graph pattern in it binds the name?

    Not where something inside sees the name, forgets it (a subquery, a group), or has no graph to ask (VALUES alone).
    """
    match pattern:
        case BGP() | PathPattern():
            return True
        case Join(left, right):
            asking = [part for part in (left, right) if not isinstance(part, Values)]
            return bool(asking) and all(_may_bind_inside(part, name) for part in asking)
        case Union(parts):
            return all(_may_bind_inside(part, name) for part in parts)
        case Filter(inner, condition):
            hidden = name in certain_variables(inner) or not _mentions(pattern, name)
            return hidden and _all_may(name, inner, *exists_patterns(condition))
        case Extend(inner, _, expression):
            return not _mentions(pattern, name) and _all_may(name, inner, *exists_patterns(expression))
        case LeftJoin(left, right, condition):
            inside = _patterns_of(condition)
            return not _mentions(pattern, name) and _all_may(name, left, right, *inside)
        case Minus(left, right):
            # The name in common does not make solutions compatible that had nothing in common.
            related = certain_variables(left) & certain_variables(right)
            return bool(related) and not _mentions(pattern, name) and _all_may(name, left, right)
        case _:
            return False


def _all_may(name: Variable, *patterns: Pattern) -> bool:
    return all(_may_bind_inside(pattern, name) for pattern in patterns)


def _patterns_of(condition: Expression | None) -> tuple[Pattern, ...]:
    return () if condition is None else exists_patterns(condition)


def _mentions(node: object, variable: Variable) -> bool:
    """Does the variable stand anywhere in a tree of patterns and expressions?"""
    if isinstance(node, tuple):
        return any(_mentions(each, variable) for each in node)
    if is_dataclass(node):
        return any(_mentions(getattr(node, field.name), variable) for field in fields(node))
    return isinstance(node, Variable) and node == variable
