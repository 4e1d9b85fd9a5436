"""GRAPH <name> { … } has no solutions if there is no graph of that name (18.6), even if the group matches no triples.

    Graph(<g>, Values)  →  Join(Graph(<g>, BGP()), Graph(<g>, Values))

A group that has to match triples stays as it is. In a window a graph exists while it has triples.
"""

from __future__ import annotations

from dataclasses import replace

from rdflib import URIRef

from cqels_py.algebra.nodes import (
    BGP,
    Distinct,
    Extend,
    Filter,
    Graph,
    Group,
    Join,
    LeftJoin,
    Minus,
    NaryJoin,
    OrderBy,
    Pattern,
    Project,
    Reduced,
    Slice,
    Union,
)
from cqels_py.algebra.traverse import map_children


def absent_graphs(pattern: Pattern) -> Pattern:
    """Ask whether there is such a graph, wherever a pattern over it could have solutions without one.

    >>> from cqels_py.algebra.nodes import Values
    >>> graph, values = URIRef("g"), Values((), ((),))
    >>> absent_graphs(Graph(graph, values)) == Join(Graph(graph, BGP(())), Graph(graph, values))
    True
    """
    rewritten = map_children(pattern, absent_graphs)
    match pattern:
        case Graph(URIRef(), inner) if inner != BGP(()) and not _needs_triples(inner):
            return Join(replace(pattern, pattern=BGP(())), rewritten)
        case _:
            return rewritten


def _needs_triples(pattern: Pattern) -> bool:
    """Has the group no solution over an empty graph, for certain?"""
    match pattern:
        case BGP(triples):
            return bool(triples)
        case Join(left, right):
            return _needs_triples(left) or _needs_triples(right)
        case NaryJoin(parts):
            return any(map(_needs_triples, parts))
        case Union(parts):
            return all(map(_needs_triples, parts))
        case LeftJoin(left, _) | Minus(left, _):
            return _needs_triples(left)
        case (
            Filter(inner)
            | Extend(inner)
            | Project(inner)
            | Distinct(inner)
            | Reduced(inner)
            | OrderBy(inner)
            | Slice(inner)
        ):
            return _needs_triples(inner)
        case Group(inner, keys):
            return bool(keys) and _needs_triples(inner)
        case _:
            return False
