"""rdflib's property paths → ours; those that only abbreviate triple patterns become triple patterns.

A sequence becomes a chain with fresh variables, an inverse a triple the other way round, an alternative a union: this
is how SPARQL 1.1 defines them (18.2.2.4, 18.4). Repetitions and negations stay paths.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from rdflib import URIRef, Variable
from rdflib.paths import AlternativePath, InvPath, MulPath, NegatedPath, SequencePath

from cqels_py.algebra import nodes
from cqels_py.algebra.nodes import BGP, PathPattern, Pattern, TermOrVariable, TriplePattern
from cqels_py.parser.source import unsupported


def path_of(path: Any) -> nodes.Path:
    """A path as it is written."""
    match path:
        case InvPath():
            return nodes.PathInverse(path_of(path.arg))
        case SequencePath():
            return nodes.PathSequence(tuple(path_of(part) for part in path.args))
        case AlternativePath():
            return nodes.PathAlternative(tuple(path_of(part) for part in path.args))
        case MulPath():
            return nodes.PathRepeat(path_of(path.path), 0 if path.zero else 1, path.more)
        case NegatedPath():
            forward = tuple(URIRef(str(part)) for part in path.args if not isinstance(part, InvPath))
            backward = tuple(URIRef(str(part.arg)) for part in path.args if isinstance(part, InvPath))
            return nodes.PathNegated(forward, backward)
        case URIRef():
            return URIRef(path)
    raise unsupported(f"property paths of the form {type(path).__name__} are not supported", str(path))


def patterns_of(
    subject: TermOrVariable, path: Any, object_: TermOrVariable, fresh: Callable[[], Variable]
) -> Iterator[Pattern]:
    """Patterns whose join is the path pattern: BGPs of one triple, unions, and paths that repeat or negate."""
    match path:
        case URIRef():
            yield BGP((TriplePattern(subject, URIRef(path), object_),))
        case InvPath():
            yield from patterns_of(object_, path.arg, subject, fresh)
        case SequencePath():
            ends = [subject, *(fresh() for _ in path.args[1:]), object_]
            for number, part in enumerate(path.args):
                yield from patterns_of(ends[number], part, ends[number + 1], fresh)
        case AlternativePath():
            yield nodes.Union(tuple(join(list(patterns_of(subject, part, object_, fresh))) for part in path.args))
        case _:
            yield PathPattern(subject, path_of(path), object_)


def join(patterns: list[Pattern]) -> Pattern:
    """The join of a basic graph pattern's parts: its triple patterns in one BGP, then the rest."""
    triples = tuple(triple for pattern in patterns if isinstance(pattern, BGP) for triple in pattern.triples)
    parts = [BGP(triples)] if triples else []
    joined, *others = [*parts, *(pattern for pattern in patterns if not isinstance(pattern, BGP))] or [BGP(())]
    for other in others:
        joined = nodes.Join(joined, other)
    return joined
