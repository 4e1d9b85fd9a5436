"""The oracle of EVENT blocks outside of MATCH: at the end of an instant, the rows of all elements so far.

A block has a row for each solution over the set of triples of one element, with the element's time. A group of blocks, static
patterns and filters is what SPARQL says of their rows, as bags. Ticks are the ends of the instants of the streams' elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rdflib import Variable

from cqels_py.algebra import nodes
from tests.oracle import naive_algebra, naive_values
from tests.oracle.naive_values import Term

if TYPE_CHECKING:
    from tests.oracle.naive import Element

Solution = dict[Variable, Term]


def rows(
    query: nodes.ContinuousQuery, arrived: Sequence[Element], event: nodes.Event, dataset: naive_algebra.Dataset
) -> list[Solution]:
    """The rows of an event over all elements that have arrived."""
    (stream,) = {window.stream for window in query.windows if window.name == event.window}
    return [row for each in arrived if each.stream == stream for row in _rows_of(event, each, dataset)]


def _rows_of(event: nodes.Event, element: Element, dataset: naive_algebra.Dataset) -> list[Solution]:
    scope = naive_algebra.Scope(
        replace(dataset, now=element.time), list(dict.fromkeys((*element.triples, *element.about)))
    )
    found = naive_algebra.evaluate(nodes.BGP(event.triples), scope)
    if event.time is not None:
        found = [row | {event.time: naive_values.date_time_literal(element.time)} for row in found]
    for variable, expression in event.bindings:
        found = naive_algebra._extend(found, variable, expression, scope)
    return [row for row in found if all(naive_algebra._holds(each, row, scope) for each in event.conditions)]
