"""PARTITION BY: the triple patterns that give an element its values of the variables.

The patterns of a window are the triple patterns over it anywhere in the query; those inside of GRAPH have the graph as one more
position. An element has the values that its triples give the variables by matching, together, a smallest connected set of these
patterns that has all the variables.

    PARTITION BY ?s       { ?s :speed ?v . ?s :at ?place }          each of the two patterns, by itself
    PARTITION BY ?s ?kind { ?o :sensor ?s . ?o :observes ?kind }    both patterns together, of one ?o
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from itertools import combinations

from rdflib import URIRef, Variable

from cqels_py.algebra.nodes import (
    Graph,
    Pattern,
    Service,
    TermOrVariable,
    TriplePattern,
    Window,
    WindowDefinition,
    WindowVariable,
)
from cqels_py.algebra.variables import written_variable

Variables = frozenset[Variable]


@dataclass(frozen=True, slots=True)
class AskedPattern:
    """A triple pattern, and the graph in which it is asked; None: wherever its triples are."""

    triple: TriplePattern
    graph: URIRef | Variable | None = None

    @property
    def positions(self) -> tuple[TermOrVariable, ...]:
        found = (self.triple.subject, self.triple.predicate, self.triple.object)
        return found if self.graph is None else (*found, self.graph)


@dataclass(frozen=True, slots=True)
class Partition:
    """The smallest sets of patterns that give the variables of PARTITION BY their values, each connected from left to right.

    Where there are none: `missing` are variables that no pattern has; without these, no patterns connect the variables.
    """

    alternatives: tuple[tuple[AskedPattern, ...], ...]
    missing: tuple[Variable, ...] = ()


def partition_of(pattern: Pattern, window: WindowDefinition) -> Partition:
    """The triple patterns by which a window is partitioned; `pattern` is the query's."""
    asked = tuple(dict.fromkeys(patterns_asked(pattern, window.name)))
    wanted = frozenset(window.partition_by)
    if missing := wanted - _variables(asked):
        return Partition((), tuple(v for v in window.partition_by if v in missing))
    if not any(wanted <= _variables(_connected(asked, first)) for first in asked):
        return Partition(())
    for size in range(1, len(asked) + 1):
        sets = (_connected(each, each[0]) for each in combinations(asked, size))
        if found := tuple(each for each in sets if len(each) == size and wanted <= _variables(each)):
            return Partition(found)
    raise AssertionError("a connected set has all the variables")


def _connected(patterns: Sequence[AskedPattern], first: AskedPattern) -> tuple[AskedPattern, ...]:
    """Those of the patterns that shared variables connect with the first, each with one before it."""
    found = [first]
    rest = [pattern for pattern in patterns if pattern != first]
    while following := next((p for p in rest if _variables((p,)) & _variables(found)), None):
        found.append(following)
        rest.remove(following)
    return tuple(found)


def patterns_asked(
    node: object, window: URIRef, active: bool = False, graph: URIRef | Variable | None = None
) -> Iterator[AskedPattern]:
    """The triple patterns over a window in a pattern, subqueries and EXISTS included.

    `active`: those here are, in this `graph`.
    """
    match node:
        case TriplePattern():
            if active:
                yield AskedPattern(node, written_variable(graph) if isinstance(graph, Variable) else graph)
            return
        case Window(names, graph=within):
            active, graph = window in names, within
        case WindowVariable():
            active, graph = True, None
        case Graph(name, in_window=True):
            graph = name
        case Graph() | Service():
            active = False
    children = node if isinstance(node, tuple) else ()
    if is_dataclass(node):
        children = tuple(getattr(node, field.name) for field in fields(node))
    for child in children:
        yield from patterns_asked(child, window, active, graph)


def _variables(patterns: Iterable[AskedPattern]) -> Variables:
    positions = (position for pattern in patterns for position in pattern.positions)
    return frozenset(position for position in positions if isinstance(position, Variable))
