"""The project's own cases, in cases/*.toml, which also run without W3C's files."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from rdflib import Graph, URIRef

from tests.conformance.answers import Answer, Row
from tests.conformance.files import triples_of
from tests.conformance.results import graph_answer
from tests.conformance.running import CHECKS, Asked, Graphs, check_order
from tests.oracle.naive_algebra import Triple

BASE = "http://example.org/"
PREFIXES = f"PREFIX : <{BASE}> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n"


def _load() -> list[Any]:
    """Each case with the common settings of its file."""
    found = []
    for path in sorted((Path(__file__).parent / "cases").glob("*.toml")):
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        shared = {key: value for key, value in document.items() if key != "case"}
        found += [pytest.param(shared | case, id=f"{path.stem}: {case['name']}") for case in document["case"]]
    return found


CASES = _load()


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("case", CASES)
def test_case(case: dict[str, Any], check: str) -> None:
    CHECKS[check](_asked(case))


@pytest.mark.parametrize("case", [case for case in CASES if case.values[0].get("ordered")])
def test_order(case: dict[str, Any]) -> None:
    check_order(_asked(case))


def _asked(case: dict[str, Any]) -> Asked:
    graphs: dict[str, str] = case.get("graphs", {})
    named: Graphs = {URIRef(iri): _triples(text) for iri, text in graphs.items()}
    return Asked(PREFIXES + case["query"], _triples(case["data"]), _expected(case), named)


def _expected(case: dict[str, Any]) -> Answer:
    if "boolean" in case:
        return Answer(boolean=case["boolean"])
    if "graph" in case:
        graph = Graph()
        for triple in _triples(case["graph"]):
            graph.add(triple)
        return graph_answer(graph)
    return Answer([_row(row) for row in case["rows"]], ordered=bool(case.get("ordered")))


def _row(row: dict[str, str]) -> Row:
    """Terms as in Turtle, by the name of their variable."""
    triples = _triples("".join(f"<urn:row> <urn:{name}> {term} . " for name, term in row.items()))
    return {str(predicate).removeprefix("urn:"): term for _, predicate, term in triples}


def _triples(text: str) -> list[Triple]:
    return triples_of((PREFIXES + text).encode(), BASE)
