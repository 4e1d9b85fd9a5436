"""One SPARQL query over N-Quads, as a process of its own, which can open no file and no connection once it has its input.

Standard input: a line of JSON, then N-Quads. Standard output: a line of JSON, {"kind": media type} or {"error": …, "detail": …},
then the answer. It imports nothing of this package, so that it starts fast.
"""

from __future__ import annotations

import json
import resource
import sys
from itertools import islice
from typing import Any

import pyoxigraph as ox

_SOLUTIONS = {
    "application/sparql-results+json": ox.QueryResultsFormat.JSON,
    "application/json": ox.QueryResultsFormat.JSON,
    "application/sparql-results+xml": ox.QueryResultsFormat.XML,
    "application/xml": ox.QueryResultsFormat.XML,
    "text/csv": ox.QueryResultsFormat.CSV,
    "text/tab-separated-values": ox.QueryResultsFormat.TSV,
}
_GRAPHS = {
    "text/turtle": ox.RdfFormat.TURTLE,
    "application/n-triples": ox.RdfFormat.N_TRIPLES,
    "application/ld+json": ox.RdfFormat.JSON_LD,
    "application/rdf+xml": ox.RdfFormat.RDF_XML,
    "application/n-quads": ox.RdfFormat.N_QUADS,
}


class TooManyRows(Exception):
    """More rows than may be sent."""


class NotAccepted(Exception):
    """The client accepts no form of the answer."""


def main() -> None:
    """Answer."""
    asked = json.loads(sys.stdin.buffer.readline())
    data = sys.stdin.buffer.read()
    _confine(asked["memory"], asked["seconds"])
    try:
        kind, answer = _answer(asked, data)
    except SyntaxError as error:
        _tell({"error": "syntax", "detail": error.msg})
    except TooManyRows:
        _tell({"error": "rows", "detail": ""})
    except MemoryError:
        _tell({"error": "memory", "detail": ""})
    except NotAccepted:
        _tell({"error": "accept", "detail": ""})
    except OSError as error:
        # It has tried to open something.
        _tell({"error": "connection", "detail": str(error)})
    except (RuntimeError, ValueError) as error:
        _tell({"error": "query", "detail": str(error)})
    else:
        _tell({"kind": kind}, answer)


def _confine(memory: int, seconds: int) -> None:
    """From now on nothing can be opened, neither a file nor a socket: there are no more descriptors."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds + 1, seconds + 1))
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


def _answer(asked: dict[str, Any], data: bytes) -> tuple[str, bytes]:
    store = ox.Store()
    store.load(data, format=ox.RdfFormat.N_QUADS, lenient=True)
    del data
    default, named = asked["default"], asked["named"]
    found = store.query(
        asked["query"],
        base_iri=asked["base"],
        default_graph=None if default is None else [ox.NamedNode(iri) for iri in default],
        named_graphs=None if named is None else [ox.NamedNode(iri) for iri in named],
    )
    most = asked["rows"]
    if isinstance(found, ox.QueryTriples):
        triples = list(islice(found, most + 1))
        if len(triples) > most:
            raise TooManyRows
        kind = _kind(asked["graphs"])
        return kind, ox.serialize(triples, format=_GRAPHS[kind]) or b""
    kind = _kind(asked["solutions"])
    if isinstance(found, ox.QueryBoolean):
        return kind, found.serialize(format=_SOLUTIONS[kind]) or b""
    text = _as_json(found, most)
    if _SOLUTIONS[kind] == ox.QueryResultsFormat.JSON:
        return kind, text
    solutions = ox.parse_query_results(text, format=ox.QueryResultsFormat.JSON)
    return kind, solutions.serialize(format=_SOLUTIONS[kind]) or b""


def _kind(kind: str | None) -> str:
    if kind is None:
        raise NotAccepted
    return kind


def _as_json(solutions: ox.QuerySolutions, most: int) -> bytes:
    """All solutions, counted on the way."""
    names = [variable.value for variable in solutions.variables]
    rows: list[dict[str, Any]] = []
    for solution in solutions:
        if len(rows) == most:
            raise TooManyRows
        rows.append({name: _term(term) for name, term in zip(names, solution, strict=True) if term is not None})
    found = {"head": {"vars": names}, "results": {"bindings": rows}}
    return json.dumps(found, ensure_ascii=False, separators=(",", ":")).encode()


def _term(term: Any) -> dict[str, Any]:
    if isinstance(term, ox.NamedNode):
        return {"type": "uri", "value": term.value}
    if isinstance(term, ox.BlankNode):
        return {"type": "bnode", "value": term.value}
    if isinstance(term, ox.Triple):
        parts = {"subject": term.subject, "predicate": term.predicate, "object": term.object}
        return {"type": "triple", "value": {name: _term(part) for name, part in parts.items()}}
    found = {"type": "literal", "value": term.value}
    if term.language:
        found["xml:lang"] = term.language
    elif term.datatype.value != "http://www.w3.org/2001/XMLSchema#string":
        found["datatype"] = term.datatype.value
    return found


def _tell(told: dict[str, Any], answer: bytes = b"") -> None:
    sys.stdout.buffer.write(json.dumps(told).encode() + b"\n" + answer)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
