"""Properties of property paths that hold for all data."""

from __future__ import annotations

from cqels_py.algebra.nodes import Path, PathAlternative, PathInverse, PathRepeat, PathSequence


def may_have_no_steps(path: Path) -> bool:
    """Does the path lead from every node to itself, whatever the data?

    >>> from rdflib import URIRef
    >>> p = URIRef("http://ex.org/p")
    >>> may_have_no_steps(PathSequence((PathRepeat(p, 0, True), PathRepeat(p, 0, False))))
    True
    >>> may_have_no_steps(PathSequence((PathRepeat(p, 0, True), p)))
    False
    """
    match path:
        case PathInverse(inner):
            return may_have_no_steps(inner)
        case PathSequence(parts):
            return all(map(may_have_no_steps, parts))
        case PathAlternative(parts):
            return any(map(may_have_no_steps, parts))
        case PathRepeat(inner, minimum):
            return minimum == 0 or may_have_no_steps(inner)
        case _:
            return False
