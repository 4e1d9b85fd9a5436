"""Streams of JSON-LD: one object a line is one element.

Its time is the value of the time predicate, or of prov:generatedAtTime when no predicate is given, in the object. An object
with "@graph" and "@id" is a named graph: then its triples are those of the graph, and its own property gives the time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pyoxigraph

from cqels_py.batches.elements import ElementBatch
from cqels_py.connectors.lines import Malformed
from cqels_py.connectors.ntriples import ElementReader, Reading
from cqels_py.connectors.times import GENERATED_AT
from cqels_py.connectors.turtle import PARSER_ERRORS, BlankNames, syntax_error, to_nquads
from cqels_py.dictionary.dictionary import Dictionary
from cqels_py.errors import DataError, Place

_DEFAULT = pyoxigraph.DefaultGraph()


def json_elements(
    blocks: Iterable[tuple[bytes, int]], dictionary: Dictionary, reading: Reading, malformed: Malformed
) -> Iterator[ElementBatch]:
    """The elements of blocks of whole lines. A line is a document: its blank nodes are its own."""
    predicate = reading.time_predicate or GENERATED_AT
    reader = ElementReader(dictionary, replace(reading, time_predicate=predicate, per_element=True), malformed)
    lines = ((number, line) for text, first in blocks for number, line in enumerate(text.split(b"\n"), first))
    return reader.read(_one_graph_each(lines, predicate[1:-1], reading.source, malformed), line_step=0)


def _one_graph_each(
    lines: Iterable[tuple[int, bytes]], predicate: str, source: str, malformed: Malformed
) -> Iterator[tuple[bytes, int]]:
    """Every line as N-Quads with a graph of its own."""
    time = pyoxigraph.NamedNode(predicate)
    names = BlankNames()
    for number, line in lines:
        if not line.strip():
            continue
        try:
            quads = list(pyoxigraph.parse(line, format=pyoxigraph.RdfFormat.JSON_LD))
        except PARSER_ERRORS as error:
            malformed(syntax_error(error, source, number))
            continue
        graph = pyoxigraph.NamedNode(f"urn:line:{number}")
        ahead, inside = _split(quads, time)
        if not inside:
            malformed(DataError("the object has no triples", Place(number, None, source)))
            continue
        element = [pyoxigraph.Quad(graph, time, quad.object) for quad in ahead]
        element += [pyoxigraph.Quad(quad.subject, quad.predicate, quad.object, graph) for quad in inside]
        yield names.rename(to_nquads(element)), number


def _split(quads: list[Any], time: Any) -> tuple[list[Any], list[Any]]:
    """The times that stand beside named graphs, and the element's triples."""
    graphs = {quad.graph_name for quad in quads} - {_DEFAULT}
    ahead = [q for q in quads if q.graph_name == _DEFAULT and q.subject in graphs and q.predicate == time]
    return ahead, [quad for quad in quads if quad not in ahead]
