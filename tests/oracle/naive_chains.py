"""The oracle for queries that read the results of CONSTRUCT queries: their elements, from the changes at each tick."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from rdflib import BNode, Literal, URIRef, Variable

from cqels_py.algebra import nodes
from tests.oracle import naive
from tests.oracle.naive import Element, Mapping, Static
from tests.oracle.naive_algebra import Triple


def constructed(
    query: nodes.ContinuousQuery, elements: Sequence[Element], stream: URIRef, static: Static | None = None
) -> list[tuple[int, Element]]:
    """The results of the CONSTRUCT query, one element per tick; each with the number of elements before it."""
    arrived = naive.relevant(query, elements)
    moments = naive.moments(query, arrived)
    changes = naive.output(query, naive.ticks(query, elements, static))
    found = []
    for tick, group in itertools.groupby(changes, key=lambda change: change.tick):
        triples = [triple for change in group if change.sign > 0 for triple in filled(query, change.mapping)]
        if triples:
            moment = moments[tick]
            seen = [i for i, e in enumerate(elements, 1) if e in arrived][: moment.seen]
            place = seen[-1] if moment.phase is naive.Phase.ARRIVAL else sum(e.time <= moment.time for e in elements)
            found.append((place, Element(moment.time, stream, tuple(dict.fromkeys(triples)))))
    return found


def filled(query: nodes.ContinuousQuery, mapping: Mapping) -> list[Triple]:
    """The template's triples for one solution, without invalid ones. Templates with blank nodes are not supported."""
    values = dict(mapping)
    triples = []
    for triple in query.template:
        positions = (triple.subject, triple.predicate, triple.object)
        assert not any(isinstance(p, Variable) and p.startswith("_:") for p in positions)
        subject, predicate, object_ = (values.get(p) if isinstance(p, Variable) else p for p in positions)
        if subject is None or predicate is None or object_ is None:
            continue
        if not isinstance(subject, Literal) and not isinstance(predicate, Literal | BNode):
            triples.append((subject, predicate, object_))
    return triples


def merged(elements: Sequence[Element], made: Sequence[tuple[int, Element]]) -> list[Element]:
    """Source elements, with constructed ones inserted at their positions."""
    together = [(number, 0, element) for number, element in enumerate(elements, 1)]
    together += [(place, 1, element) for place, element in made]
    return [element for _, _, element in sorted(together, key=lambda each: each[:2])]
