"""Reads the suites' manifests: queries, their data, and the files with the answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rdflib import RDF, Graph, Namespace, URIRef
from rdflib.collection import Collection
from rdflib.term import Node

from tests.conformance.files import FOLDER, SPARQL, fetched, iri_of, path_of

MF = Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#")
QT = Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-query#")
DAWGT = Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-dawg#")

EVALUATION = frozenset({"QueryEvaluationTest", "CSVResultFormatTest"})
POSITIVE_SYNTAX = frozenset({"PositiveSyntaxTest", "PositiveSyntaxTest11"})
NEGATIVE_SYNTAX = frozenset({"NegativeSyntaxTest", "NegativeSyntaxTest11"})

_UPDATE = ".ru"
_STARTS = ("dawg-data-r2/manifest-evaluation.ttl", "dawg-data-r2/manifest-syntax.ttl", "sparql11/manifest-all.ttl")


@dataclass(frozen=True)
class Case:
    """One test. `name` is its folder and fragment, as in "bind/bind01"; `base` is the query's IRI.

    `default`: files of the default graph; `named`: those of named graphs; `result` None for a syntax test.
    """

    name: str
    kind: str
    text: str
    base: str
    default: tuple[Path, ...]
    named: tuple[Path, ...]
    result: Path | None


@cache
def cases() -> tuple[Case, ...]:
    """All tests of queries, the withdrawn ones left out; none where the files have not been fetched."""
    found = {case.name: case for start in _STARTS if fetched(SPARQL) for case in _read(FOLDER / start)}
    return tuple(found.values())


def of_kinds(kinds: frozenset[str]) -> list[Case]:
    return [case for case in cases() if case.kind in kinds]


def _read(path: Path) -> Iterator[Case]:
    graph = Graph().parse(path, publicID=iri_of(path))
    for included in members(graph, MF.include):
        other = path_of(str(included))
        if other.is_file():
            yield from _read(other)
    for entry in members(graph, MF.entries):
        kind = str(graph.value(entry, RDF.type)).removeprefix(str(MF))
        withdrawn = graph.value(entry, DAWGT.approval) == DAWGT.Withdrawn
        if kind in EVALUATION | POSITIVE_SYNTAX | NEGATIVE_SYNTAX and not withdrawn:
            case = _case(graph, entry, kind, path)
            if not case.base.endswith(_UPDATE):
                yield case


def members(graph: Graph, predicate: Node) -> Iterator[Node]:
    """The members of the lists that are values of a property."""
    for head in graph.objects(None, predicate):
        yield from Collection(graph, head)


def _case(graph: Graph, entry: Node, kind: str, path: Path) -> Case:
    action = graph.value(entry, MF.action)
    assert action is not None, entry
    query = action if isinstance(action, URIRef) else graph.value(action, QT.query)
    result = graph.value(entry, MF.result)
    return Case(
        name=f"{_folder(path)}/{str(entry).rpartition('#')[2]}",
        kind=kind,
        text=path_of(str(query)).read_text(encoding="utf-8"),
        base=str(query),
        default=tuple(path_of(str(data)) for data in graph.objects(action, QT.data)),
        named=tuple(path_of(str(data)) for data in graph.objects(action, QT.graphData)),
        result=None if result is None else path_of(str(result)),
    )


def _folder(path: Path) -> str:
    """The older suite's have a mark, as some are called alike."""
    suite = path.relative_to(FOLDER).parts[0]
    return path.parent.name if suite == "sparql11" else f"1.0/{path.parent.name}"
