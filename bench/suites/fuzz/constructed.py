"""The triples of CONSTRUCT: its template filled with the rows of each tick (SPARQL 1.1, 16.2)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from bench.suites.fuzz.answers import Report, Row, columns, parse_term
from bench.suites.fuzz.case import Case, Select
from bench.suites.fuzz.vocabulary import ntriples
from cqels_py.suites.answers import Cell, cell


def constructed(case: Case, wanted: Sequence[Report]) -> list[Report] | None:
    """The graph of each tick that is not empty. None: rows have blank nodes, which cells do not distinguish."""
    rows = [row for report in wanted for _, row in report.rows]
    if any(each is not None and each[0] == "blank" for row in rows for each in row):
        return None
    reports = []
    for report in wanted:
        graph = list(dict.fromkeys(_filled(case.query, [row for _, row in report.rows])))
        if graph:
            reports.append(Report(report.time, tuple((1, triple) for triple in graph)))
    return reports


def _filled(query: Select, rows: Iterable[Row]) -> Iterator[Row]:
    names = columns(query)
    for number, row in enumerate(rows):
        values = dict(zip(names, row, strict=True))
        for triple in query.template:
            subject, predicate, object_ = (_part(part, values, number) for part in triple)
            if subject is not None and subject[0] in ("iri", "blank") and object_ is not None:
                yield subject, predicate, object_


def _part(part: str, values: dict[str, Cell], row: int) -> Cell:
    if part.startswith("?"):
        return values[part]
    return ("blank", f"{part}{row}") if part.startswith("_:") else cell(parse_term(ntriples(part)))
