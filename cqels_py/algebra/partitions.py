"""PARTITION BY: which triple patterns say what values an element has.

The patterns of a window are the triple patterns asked of it anywhere in the query. Where some have all the variables, an
element has the values that any of its triples gives them in any of these. Where none has them all, it has the values that its
triples give them by matching, together, all patterns that have any of them; a single triple cannot do that.

    PARTITION BY ?s       { ?s :speed ?v . ?s :at ?place }          each of the two patterns, by itself
    PARTITION BY ?s ?kind { ?o :sensor ?s . ?o :observes ?kind }    both patterns together
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass

from rdflib import URIRef, Variable

from cqels_py.algebra.nodes import (
    Graph,
    Pattern,
    Service,
    TriplePattern,
    Window,
    WindowDefinition,
    WindowVariable,
)


@dataclass(frozen=True, slots=True)
class Partition:
    """The patterns that give the variables of PARTITION BY their values; `together`: only all of them do.

    `missing`: variables that no pattern has.
    """

    patterns: tuple[TriplePattern, ...]
    together: bool
    missing: tuple[Variable, ...] = ()


def partition_of(pattern: Pattern, window: WindowDefinition) -> Partition:
    """What a window's PARTITION BY goes by; `pattern` is the query's."""
    asked = tuple(dict.fromkeys(patterns_asked(pattern, window.name)))
    wanted = frozenset(window.partition_by)
    if whole := tuple(triple for triple in asked if wanted <= _variables(triple)):
        return Partition(whole, together=False)
    partial = tuple(triple for triple in asked if wanted & _variables(triple))
    bound = frozenset().union(*map(_variables, partial))
    return Partition(partial, together=True, missing=tuple(v for v in window.partition_by if v not in bound))


def patterns_asked(node: object, window: URIRef, active: bool = False) -> Iterator[TriplePattern]:
    """The triple patterns asked of a window in a pattern, subqueries and EXISTS included; `active`: those here are."""
    match node:
        case TriplePattern():
            if active:
                yield node
            return
        case Window(names):
            active = window in names
        case WindowVariable():
            active = True
        case Graph() | Service():
            active = False
    children = node if isinstance(node, tuple) else ()
    if is_dataclass(node):
        children = tuple(getattr(node, field.name) for field in fields(node))
    for child in children:
        yield from patterns_asked(child, window, active)


def _variables(triple: TriplePattern) -> frozenset[Variable]:
    positions = (triple.subject, triple.predicate, triple.object)
    return frozenset(position for position in positions if isinstance(position, Variable))
