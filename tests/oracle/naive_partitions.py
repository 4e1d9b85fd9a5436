"""The oracle's PARTITION BY: the values of elements and triples, and the units that a window keeps.

The triple patterns of a window are those anywhere in the query: in OPTIONAL, EXISTS and subqueries too, for RSP-QL in
any of its blocks, for C-SPARQL's merged windows in the whole default graph. Their filters are ignored. A pattern inside
of GRAPH has the graph as a fourth part, and is matched by triples that are in a graph.

An element has the values that its triples give to the variables of PARTITION BY by matching, together, a smallest
connected set of these patterns that has all the variables; there may be several such sets, and each gives values.
Connected patterns share variables. Mostly that is one pattern; only then can triples be counted.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Protocol, TypeAlias, TypeVar

from rdflib import URIRef, Variable

from cqels_py.algebra import nodes
from tests.oracle.naive_algebra import Quad
from tests.oracle.naive_values import Term, canonical

Parts: TypeAlias = tuple[nodes.TermOrVariable, ...]
"""The parts of a pattern: three, or four inside of GRAPH."""
Values: TypeAlias = tuple[Term, ...]
Solution: TypeAlias = dict[Variable, Term]


class Unit(Protocol):
    """A unit that the window keeps or drops: an element, or one triple."""

    @property
    def quads(self) -> Sequence[Quad]: ...


U = TypeVar("U", bound=Unit)


def kept(
    pattern: nodes.Pattern, window: nodes.WindowDefinition, arrived: Sequence[U], last: Callable[[Sequence[U]], list[U]]
) -> list[U]:
    """The units that the window keeps of all arrivals on its stream; `last`: selects those of one value."""
    patterns = list(dict.fromkeys(asked(pattern, window.name)))
    values = [values_of(patterns, window.partition_by, unit.quads) for unit in arrived]
    found: set[int] = set()
    for value in set().union(*values):
        numbers = {id(unit): number for number, unit in enumerate(arrived) if value in values[number]}
        found |= {numbers[id(unit)] for unit in last([arrived[number] for number in numbers.values()])}
    return [arrived[number] for number in sorted(found)]


def values_of(patterns: Sequence[Parts], variables: Sequence[Variable], quads: Sequence[Quad]) -> set[Values]:
    for size in range(1, len(patterns) + 1):
        sets = [each for each in itertools.combinations(patterns, size) if _has(each, variables)]
        if sets:
            solutions = [found for each in sets for found in _solutions(each, quads)]
            return {tuple(solution[variable] for variable in variables) for solution in solutions}
    raise AssertionError("no connected patterns have the variables")


def _has(patterns: Sequence[Parts], variables: Sequence[Variable]) -> bool:
    """Whether the patterns are connected and have the variables."""
    reached = _variables(patterns[0])
    for _ in patterns:
        for pattern in patterns:
            if reached & _variables(pattern):
                reached |= _variables(pattern)
    return set(variables) <= reached and all(_variables(pattern) & reached for pattern in patterns)


def _solutions(patterns: Sequence[Parts], quads: Sequence[Quad]) -> list[Solution]:
    solutions: list[Solution] = [{}]
    for pattern in patterns:
        matches = (_match(pattern, triple, given) for given in solutions for triple in quads)
        solutions = [found for found in matches if found is not None]
    return solutions


def asked(node: object, window: URIRef, active: bool = False, graph: Parts = ()) -> Iterator[Parts]:
    """The triple patterns of a window; `active`: whether patterns found here belong to it, in this `graph` if any."""
    match node:
        case nodes.TriplePattern(subject, predicate, object_):
            if active:
                yield (subject, predicate, object_, *graph)
            return
        case nodes.Window(names):
            active = window in names
        case nodes.WindowVariable():
            active = True
        case nodes.Graph(name, in_window=True):
            graph = (name,)
        case nodes.Graph() | nodes.Service():
            active = False
    children = node if isinstance(node, tuple) else ()
    if is_dataclass(node):
        children = tuple(getattr(node, field.name) for field in fields(node))
    for child in children:
        yield from asked(child, window, active, graph)


def _variables(pattern: Parts) -> set[Variable]:
    return {part for part in pattern if isinstance(part, Variable)}


def _match(pattern: Parts, quad: Quad, given: Mapping[Variable, Term]) -> Solution | None:
    found = dict(given)
    for part, term in zip(pattern, quad, strict=False):
        if term is None:
            return None
        if (found.setdefault(part, term) if isinstance(part, Variable) else canonical(part)) != term:
            return None
    return found
