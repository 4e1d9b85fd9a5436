"""The graph patterns that property paths stand for, over the active graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rdflib import URIRef, Variable

from cqels_py.algebra.nodes import (
    BGP,
    Call,
    Constant,
    Filter,
    Graph,
    Path,
    PathAlternative,
    PathInverse,
    PathNegated,
    PathPattern,
    PathRepeat,
    PathSequence,
    Pattern,
    TermOrVariable,
    TriplePattern,
    Union,
    VariableRef,
    Window,
)
from cqels_py.planner.joins import joined
from cqels_py.planner.planning import Planning


@dataclass(frozen=True, slots=True)
class ActiveGraph:
    """The active graph of a path: a window or its named graphs, static named graphs, or (None) the static default graph."""

    clause: Window | Graph | None

    def asked(self, pattern: BGP | PathPattern) -> Pattern:
        return pattern if self.clause is None else replace(self.clause, pattern=pattern)

    @property
    def name(self) -> Variable | None:
        """The variable that each graph's name is bound to."""
        match self.clause:
            case Graph(Variable() as name) | Window(graph=Variable() as name):
                return name
            case _:
                return None

    def under(self, name: Variable) -> ActiveGraph:
        """The named graphs with another variable for their names."""
        if isinstance(self.clause, Window):
            return ActiveGraph(replace(self.clause, graph=name))
        assert isinstance(self.clause, Graph)
        return ActiveGraph(replace(self.clause, name=name))


def between(
    planner: Planning, graph: ActiveGraph, subject: TermOrVariable, path: Path, object_: TermOrVariable
) -> Pattern:
    """The pattern that a path stands for (18.2.2.4); repetitions stay paths."""
    match path:
        case PathInverse(inner):
            return between(planner, graph, object_, inner, subject)
        case PathSequence(parts):
            ends = [subject, *(planner.fresh("via") for _ in parts[1:]), object_]
            return joined(*(between(planner, graph, ends[i], part, ends[i + 1]) for i, part in enumerate(parts)))
        case PathAlternative(parts):
            return Union(tuple(between(planner, graph, subject, part, object_) for part in parts))
        case PathNegated(forward, backward):
            there = [_other_than(planner, graph, subject, forward, object_)] if forward or not backward else []
            back = [_other_than(planner, graph, object_, backward, subject)] if backward else []
            return Union((*there, *back)) if there and back else (there + back)[0]
        case PathRepeat():
            return graph.asked(PathPattern(subject, path, object_))
        case _:
            return graph.asked(BGP((TriplePattern(subject, path, object_),)))


def _other_than(
    planner: Planning, graph: ActiveGraph, subject: TermOrVariable, forbidden: Sequence[URIRef], object_: TermOrVariable
) -> Pattern:
    """Triples with any predicate but these."""
    predicate = planner.fresh("predicate")
    triple = graph.asked(BGP((TriplePattern(subject, predicate, object_),)))
    if not forbidden:
        return triple
    return Filter(triple, Call("NOT-IN", (VariableRef(predicate), *map(Constant, forbidden))))
