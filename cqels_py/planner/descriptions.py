"""DESCRIBE: the triples about some resources, over all windows of the query and the static default graph, as one graph.

The description of a resource has the triples whose subject it is, and those of each blank node that is reached from there
through blank nodes alone (the concise bounded description, without reification): their names mean nothing elsewhere.
It is a CONSTRUCT with a triple a solution: `?subject ?predicate ?object`.
"""

from __future__ import annotations

from dataclasses import replace

from rdflib import Variable

from cqels_py.algebra.nodes import (
    BGP,
    Call,
    ContinuousQuery,
    Distinct,
    Extend,
    Filter,
    NaryJoin,
    Pattern,
    Project,
    TermOrVariable,
    TriplePattern,
    Union,
    Values,
    VariableRef,
    Window,
)
from cqels_py.plan.nodes import ClosureRows
from cqels_py.planner.planning import Planning
from cqels_py.planner.rows import project

TRIPLE = TriplePattern(Variable("subject"), Variable("predicate"), Variable("object"))
COLUMNS = (Variable("subject"), Variable("predicate"), Variable("object"))


def as_construct(query: ContinuousQuery) -> ContinuousQuery:
    """The form that a DESCRIBE query's results have; its pattern is `description`."""
    return replace(query, form="CONSTRUCT", variables=COLUMNS, template=(TRIPLE,))


def description(planner: Planning, query: ContinuousQuery) -> Pattern:
    """The pattern of the descriptions' triples, each once."""
    resource, reached, subject = planner.fresh("resource"), planner.fresh("reached"), COLUMNS[0]
    resources = planner.share(Distinct(_resources(planner, query, resource)), (resource,))
    edge = (resource, planner.fresh("property"), reached)
    blank = Filter(_everything(query, TriplePattern(*edge)), Call("ISBLANK", (VariableRef(reached),)))
    pair = (str(resource), str(reached))
    edges = project(planner.plan(blank, frozenset((resource, reached))), pair)
    closure = planner.planned(ClosureRows(edges, pair, pair), frozenset((resource, reached)))
    ways = (
        Extend(resources, subject, VariableRef(resource)),
        Extend(NaryJoin((resources, closure)), subject, VariableRef(reached)),
    )
    subjects = Distinct(Project(Union(tuple(Project(way, (subject,)) for way in ways)), (subject,)))
    return NaryJoin((subjects, _everything(query, TRIPLE)))


def _resources(planner: Planning, query: ContinuousQuery, resource: Variable) -> Pattern:
    """The resources to describe: the named terms, and all values of the variables."""
    found: list[Pattern] = []
    named = [term for term in query.describe if not isinstance(term, Variable)]
    if named:
        found.append(Values((resource,), tuple((term,) for term in named)))
    variables = [term for term in query.describe if isinstance(term, Variable)]
    if variables:
        solutions = planner.share(query.pattern, variables)
        found += [_value(solutions, variable, resource) for variable in variables]
    parts = tuple(Project(part, (resource,)) for part in found)
    return parts[0] if len(parts) == 1 else Union(parts)


def _value(solutions: Pattern, variable: TermOrVariable, resource: Variable) -> Pattern:
    assert isinstance(variable, Variable)
    extended = Extend(Project(solutions, (variable,)), resource, VariableRef(variable))
    return Filter(extended, Call("BOUND", (VariableRef(resource),)))


def _everything(query: ContinuousQuery, triple: TriplePattern) -> Pattern:
    return Window(tuple(window.name for window in query.windows), BGP((triple,)), with_static=True)
