"""GRAPH <name> { … } has no solutions where there is no graph of that name (18.6), whatever the group needs.

    Graph(<g>, Values)  →  Join(Graph(<g>, BGP()), Values)

A group that has solutions only where there are triples needs nothing more. In a window a graph is there while it has triples.
"""

from __future__ import annotations

from dataclasses import replace

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
    Window,
)


def where_there_is(asked: Graph | Window, pushed: Pattern) -> Pattern:
    """What `asked`, a pattern over the graph of one name, has become, `pushed`, asked only if there is such a graph.

    >>> from rdflib import URIRef
    >>> asked = Graph(URIRef("g"), BGP(()))
    >>> where_there_is(asked, BGP(())) == Join(asked, BGP(()))
    True
    """
    return pushed if _needs_triples(asked.pattern) else Join(replace(asked, pattern=BGP(())), pushed)


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
