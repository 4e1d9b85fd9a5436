"""Reads the expected answers: SPARQL results in XML, JSON, CSV and TSV, result sets written as RDF, and graphs."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import pyoxigraph as ox
from rdflib import RDF, BNode, Graph, Literal, Namespace
from rdflib.term import Node

from tests.conformance.answers import Answer, Row
from tests.conformance.files import read_graph, to_rdflib

RS = Namespace("http://www.w3.org/2001/sw/DataAccess/tests/result-set#")

_FORMATS = {
    ".srx": ox.QueryResultsFormat.XML,
    ".srj": ox.QueryResultsFormat.JSON,
    ".tsv": ox.QueryResultsFormat.TSV,
}


def read_answer(path: Path) -> Answer:
    """The answer that a file of the suites holds; its rows in their order where it has one."""
    if path.suffix == ".csv":
        return _csv(path)
    if path.suffix in _FORMATS:
        found = ox.parse_query_results(path.read_bytes(), format=_FORMATS[path.suffix])
        if isinstance(found, ox.QueryBoolean):
            return Answer(boolean=bool(found))
        names = [variable.value for variable in found.variables]
        rows = [{n: to_rdflib(each[n]) for n in names if each[n] is not None} for each in found]
        return Answer(rows, ordered=True, by_value=path.suffix == ".tsv")
    graph = Graph()
    for triple in read_graph(path):
        graph.add(triple)
    node = graph.value(None, RDF.type, RS.ResultSet)
    if node is None:
        return graph_answer(graph)
    boolean = graph.value(node, RS.boolean)
    if boolean is not None:
        return Answer(boolean=str(boolean) in ("true", "1"))
    solutions = sorted(graph.objects(node, RS.solution), key=lambda each: _index(graph, each))
    ordered = all(graph.value(solution, RS.term("index")) is not None for solution in solutions)
    return Answer([dict(_bindings(graph, solution)) for solution in solutions], ordered=ordered)


def graph_answer(triples: Graph) -> Answer:
    return Answer([dict(zip("spo", triple, strict=True)) for triple in triples])


def _index(graph: Graph, solution: Node) -> int:
    return int(str(graph.value(solution, RS.term("index")) or 0))


def _bindings(graph: Graph, solution: Node) -> Iterator[tuple[str, Node]]:
    for binding in graph.objects(solution, RS.binding):
        value = graph.value(binding, RS.term("value"))
        assert value is not None, f"a binding without a value in {solution}"
        yield str(graph.value(binding, RS.variable)), value


def _csv(path: Path) -> Answer:
    header, *lines = csv.reader(io.StringIO(path.read_text(encoding="utf-8"), newline=""))
    rows: list[Row] = [dict(zip(header, map(_csv_term, line), strict=True)) for line in lines]
    return Answer(rows, plain=True, ordered=True, variables=tuple(header))


def _csv_term(text: str) -> Node:
    return BNode(text[2:]) if text.startswith("_:") else Literal(text)
