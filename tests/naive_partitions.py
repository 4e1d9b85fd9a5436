"""The oracle's PARTITION BY: which elements and triples have which values, and which of them a window keeps.

The triple patterns of a window are those asked of it anywhere in the query: in OPTIONAL, EXISTS and subqueries too,
for RSP-QL in any of its blocks, for C-SPARQL's merged windows in the whole default graph. Their filters do not matter.

* Where some of them have all the variables of PARTITION BY: an element has the values that any of its triples gives
  them in any of these patterns. A triple likewise.
* Where none has them all: an element has the values that its triples give them by matching, together, all the patterns
  that have any of the variables. Triples cannot be counted then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import TypeAlias

from rdflib import URIRef, Variable

from cqels_py.algebra import nodes
from tests.naive_algebra import Triple
from tests.naive_values import Term, canonical

Values: TypeAlias = tuple[Term, ...]
Solution: TypeAlias = dict[Variable, Term]


def kept(pattern: nodes.Pattern, window: nodes.WindowDefinition, arrived: Sequence[Sequence[Triple]]) -> list[Triple]:
    """The triples that the window keeps of all that has arrived on its stream, element by element."""
    patterns = list(dict.fromkeys(asked(pattern, window.name)))
    variables = window.partition_by
    if isinstance(window.extent, nodes.TripleCount):
        arrived = [[triple] for element in arrived for triple in element]
    else:
        assert isinstance(window.extent, nodes.ElementCount)
        assert window.extent.step is None
    values = [values_of(patterns, variables, triples) for triples in arrived]
    found: list[Triple] = []
    for number, triples in enumerate(arrived):
        if any(sum(value in later for later in values[number + 1 :]) < window.extent.count for value in values[number]):
            found += triples
    return found


def values_of(
    patterns: Sequence[nodes.TriplePattern], variables: Sequence[Variable], triples: Sequence[Triple]
) -> set[Values]:
    whole = [pattern for pattern in patterns if set(variables) <= _variables(pattern)]
    if whole:
        solutions = [
            found for pattern in whole for triple in triples if (found := _match(pattern, triple, {})) is not None
        ]
    else:
        partial = [pattern for pattern in patterns if set(variables) & _variables(pattern)]
        assert set(variables) <= {variable for pattern in partial for variable in _variables(pattern)}
        solutions = [{}]
        for pattern in partial:
            solutions = [
                found
                for given in solutions
                for triple in triples
                if (found := _match(pattern, triple, given)) is not None
            ]
    return {tuple(solution[variable] for variable in variables) for solution in solutions}


def asked(node: object, window: URIRef, active: bool = False) -> Iterator[nodes.TriplePattern]:
    """The triple patterns that are asked of a window; `active`: those found here are."""
    match node:
        case nodes.TriplePattern():
            if active:
                yield node
            return
        case nodes.Window(names):
            active = window in names
        case nodes.WindowVariable():
            active = True
        case nodes.Graph() | nodes.Service():
            active = False
    children = node if isinstance(node, tuple) else ()
    if is_dataclass(node):
        children = tuple(getattr(node, field.name) for field in fields(node))
    for child in children:
        yield from asked(child, window, active)


def _variables(pattern: nodes.TriplePattern) -> set[Variable]:
    return {part for part in _parts(pattern) if isinstance(part, Variable)}


def _parts(pattern: nodes.TriplePattern) -> tuple[nodes.TermOrVariable, ...]:
    return pattern.subject, pattern.predicate, pattern.object


def _match(pattern: nodes.TriplePattern, triple: Triple, given: Mapping[Variable, Term]) -> Solution | None:
    found = dict(given)
    for part, term in zip(_parts(pattern), triple, strict=True):
        if (found.setdefault(part, term) if isinstance(part, Variable) else canonical(part)) != term:
            return None
    return found
