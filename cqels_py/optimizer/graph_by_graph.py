"""GRAPH ?g around a group that must not see ?g, or a subquery: answered graph by graph, with the graph as one more column.

    Graph(?g, Project(BGP a, ?x))  →  Project(Extend(Project(Graph(?h, BGP a), ?x ?h), ?g := ?h), ?x ?g)

A ?g inside of a subquery is another variable, unless it is selected: then it has to be the graph.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from rdflib import Variable

from cqels_py.algebra.mentions import aggregate_arguments
from cqels_py.algebra.nodes import (
    Call,
    Distinct,
    Extend,
    Filter,
    Graph,
    Group,
    Pattern,
    Project,
    Reduced,
    VariableRef,
)
from cqels_py.algebra.variables import certain_variables, has_exists, possible_variables

Push = Callable[[Graph], Pattern | None]
"""The pattern with its graph pushed down to what asks it; None where that would make a difference."""


def graph_by_graph(pattern: Pattern, name: Variable, push: Push) -> Pattern | None:
    """Graph(name, pattern) by graphs around what asks them alone; None where that cannot be told apart so."""
    possible = possible_variables(pattern)
    if name in possible - certain_variables(pattern):
        return None
    # Only what this makes begins so, and a subquery hides what is inside of it.
    graph = Variable(f"_:graph {name}")
    inside = _by_graph(pattern, graph, push)
    if inside is None:
        return None
    if name in possible:
        same = Call("SAMETERM", (VariableRef(name), VariableRef(graph)))
        return Project(Filter(inside, same), tuple(sorted(possible)))
    return Project(Extend(inside, name, VariableRef(graph)), tuple(sorted(possible | {name})))


def _by_graph(pattern: Pattern, graph: Variable, push: Push) -> Pattern | None:
    """The pattern's solutions in each graph, with the graph."""
    pushed = push(Graph(graph, pattern))
    if pushed is not None:
        return pushed
    match pattern:
        case Project(inner, variables):
            inside = _by_graph(inner, graph, push)
            return None if inside is None else Project(inside, (*variables, graph))
        case Group(inner, keys, aggregates):
            # Without keys there is a group in a graph without solutions too.
            inside = _by_graph(inner, graph, push)
            alone = not keys or any(map(has_exists, aggregate_arguments(aggregates)))
            return None if inside is None or alone else Group(inside, (*keys, graph), aggregates)
        case Filter(inner, expression) | Extend(inner, _, expression):
            inside = _by_graph(inner, graph, push)
            return None if inside is None or has_exists(expression) else replace(pattern, pattern=inside)
        case Distinct(inner) | Reduced(inner):
            inside = _by_graph(inner, graph, push)
            return None if inside is None else replace(pattern, pattern=inside)
        case _:
            return None
