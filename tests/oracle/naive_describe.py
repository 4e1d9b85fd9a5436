"""The oracle for DESCRIBE: at each tick, the triples about the resources and about the blank nodes reached from them.

They are looked for in the merge, as a graph, of all windows' contents and the static default graph.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from rdflib import BNode, Variable

from cqels_py.algebra import nodes
from tests.oracle import naive
from tests.oracle.naive import Element, Mapping, Moment, Static, Tick
from tests.oracle.naive_algebra import Triple
from tests.oracle.naive_values import Term

COLUMNS = (Variable("subject"), Variable("predicate"), Variable("object"))


def ticks(query: nodes.ContinuousQuery, elements: Sequence[Element], static: Static | None = None) -> list[Tick]:
    """The descriptions at all ticks, a row a triple."""
    arrived = naive.relevant(query, elements)
    known = static or Static()
    return [_tick(query, arrived, known, moment) for moment in naive.moments(query, arrived)]


def _tick(query: nodes.ContinuousQuery, arrived: Sequence[Element], static: Static, moment: Moment) -> Tick:
    variables = tuple(term for term in query.describe if isinstance(term, Variable))
    selected = replace(query, form="SELECT", variables=variables)
    resources = {term for term in query.describe if not isinstance(term, Variable)}
    if variables:
        resources |= {term for row in naive.answer(selected, arrived, static, moment).rows for _, term in row}
    triples = [triple for window in query.windows for triple in naive.content(query, window, arrived, moment).triples]
    rows = [_row(triple) for triple in described(resources, dict.fromkeys([*triples, *static.default]))]
    return Tick(moment.time, moment.phase, Counter(rows), tuple(rows))


def described(resources: Iterable[Term], graph: Iterable[Triple]) -> list[Triple]:
    """The triples of the graph about the resources, and about blank nodes reached."""
    subjects = set(resources)
    while True:
        found = [triple for triple in graph if triple[0] in subjects]
        more = {object_ for _, _, object_ in found if isinstance(object_, BNode)} - subjects
        if not more:
            return found
        subjects |= more


def _row(triple: Triple) -> Mapping:
    return frozenset(zip(COLUMNS, triple, strict=True))
