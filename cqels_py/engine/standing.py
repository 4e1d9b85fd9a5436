"""The answer of a query that stands, as programs see it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cqels_py.batches.results import ResultBatch
from cqels_py.dataflow.dataflow import Dataflow
from cqels_py.dataflow.standing_answer import standing_answer
from cqels_py.dictionary import Dictionary
from cqels_py.engine.result import KnownTerms, Result, decoded
from cqels_py.errors import UsageError
from cqels_py.formats.construction import Construction
from cqels_py.terms.rdf import to_rdflib

if TYPE_CHECKING:
    from rdflib import Graph


def answer_of(dataflow: Dataflow | None, dictionary: Dictionary) -> list[ResultBatch]:
    """The answer. UsageError for a query that is no longer registered, and for one that has none."""
    if dataflow is None:
        raise UsageError("this query is no longer registered: it has no answer")
    return standing_answer(dataflow, dictionary)


def as_results(batches: list[ResultBatch], dictionary: Dictionary, form: str) -> list[Result]:
    """The results, without numbers: they are not delivered."""
    known = KnownTerms(dictionary)
    found = [result for batch in batches for result in decoded(batch, known, form)]
    return [Result(each.time, each.sign, each.bindings, each.boolean) for each in found]


def as_graph(batches: list[ResultBatch], dictionary: Dictionary, template: Any) -> Graph:
    """The triples that CONSTRUCT makes of them."""
    from rdflib import Graph

    graph, construction = Graph(), Construction(template, dictionary)
    for batch in batches:
        elements, _ = construction.graphs(batch)
        columns = [dictionary.decode(column) for column in (elements.subject, elements.predicate, elements.object)]
        for triple in zip(*columns, strict=True):
            subject, predicate, object_ = (to_rdflib(text or "") for text in triple)
            graph.add((subject, predicate, object_))
    return graph
