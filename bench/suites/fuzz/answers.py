"""The answer of pyoxigraph at each tick, and the result stream that follows from it.

ORDER BY with LIMIT and OFFSET of the whole query are applied here, to pyoxigraph's rows and its values of the keys:
rows with equal values are put in the order of their terms, column by column, as the engine documents.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any, TypeAlias

import pyoxigraph as ox

from bench.suites.fuzz.case import (
    EX,
    Block,
    Case,
    Column,
    Element,
    ElementGraph,
    Select,
    StaticGraph,
    Sub,
    Triple,
    Triples,
)  # fmt: skip
from bench.suites.fuzz.texts import OF, PREFIXES, Plain, date_time, graph_prefix
from bench.suites.fuzz.tree import inside
from bench.suites.fuzz.windows import Tick, content, in_order, ticks
from cqels_py.suites.answers import Cell, cell

Row: TypeAlias = tuple[Cell, ...]
_XSD = "http://www.w3.org/2001/XMLSchema#"
_MOST_ROWS = 20_000


@dataclass(frozen=True)
class Report:
    """The signed rows that a tick delivers. `ordered`: they come in this order."""

    time: int
    rows: tuple[tuple[int, Row], ...]
    ordered: bool = False


def expected(case: Case) -> list[Report]:
    """The results of each tick, by pyoxigraph's answers. SyntaxError if pyoxigraph rejects the query."""
    before: Counter[Row] = Counter()
    reports = []
    for tick, rows in answers(case):
        answer = Counter(rows)
        signed: list[tuple[int, Row]] = []
        if case.output == "RSTREAM":
            signed = [(1, row) for row in rows]
        if case.output in ("DSTREAM", "CHANGELOG"):
            signed += [(-1, row) for row in (before - answer).elements()]
        if case.output in ("ISTREAM", "CHANGELOG"):
            signed += [(1, row) for row in (answer - before).elements()]
        ordered = case.output == "RSTREAM" and bool(case.query.order)
        reports.append(Report(tick.time, tuple(signed), ordered))
        before = answer
    return reports


def answers(case: Case) -> Iterator[tuple[Tick, list[Row]]]:
    """The ticks, and the rows of the answer at each."""
    streams = {window.stream for window in case.windows}
    arrived = [element for element in in_order(case.elements, case.lateness) if element.stream in streams]
    terms = _Terms(case)
    asked = patterns(case)
    known: dict[Any, list[Row]] = {}
    moments = ticks(case.windows, arrived)
    held = [[content(window, arrived, tick, asked) for window in case.windows] for tick in moments]
    numbered = case.bags and any(len(set(_triples(each))) < len(each) for windows in held for each in windows)
    if numbered:
        _check_size(case, held)
    question = _Question(case, numbered=numbered)
    for tick, windows in zip(moments, held, strict=True):
        text = question.at(tick.time)
        quads = terms.quads(windows, numbered=numbered)
        key = (text, frozenset(quads))
        if key not in known:
            known[key] = question.rows(text, quads)
        yield tick, known[key]


class TooLarge(Exception):
    """Triples are repeated so often that a join of them would take minutes."""


def _check_size(case: Case, held: Sequence[Sequence[Sequence[tuple[Element, Triple]]]]) -> None:
    """Of a bag: the number of rows if each pattern matches its window's most repeated triple."""
    names = [window.name for window in case.windows]
    most = dict.fromkeys(names, 1)
    for windows in held:
        for name, each in zip(names, windows, strict=True):
            most[name] = max([most[name], *Counter(_triples(each)).values()])
    asked = patterns(case)
    if math.prod(most[name] ** len(asked[name]) for name in names) > _MOST_ROWS:
        raise TooLarge("a join of repeated triples is too large")


def _triples(held: Sequence[tuple[Element, Triple]]) -> list[tuple[int, Triple]]:
    """Blank nodes differ between elements."""
    return [(id(element) if "_:" in "".join(triple) else 0, triple) for element, triple in held]


def patterns(case: Case) -> Mapping[str, list[tuple[str, ...]]]:
    """By window: its triple patterns. C-SPARQL's merged windows have all patterns outside of GRAPH."""
    if case.dialect == "C-SPARQL":
        everything = [each for clause in case.query.where for each in _asked(clause)]
        return {window.name: everything for window in case.windows}
    found: dict[str, list[tuple[str, ...]]] = {window.name: [] for window in case.windows}
    for clause in inside(case.query):
        if isinstance(clause, Block):
            found[clause.window] += [each for inner in clause.inner for each in _asked(inner)]
    return found


def _asked(node: Any, graph: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The patterns in a tree; those inside of GRAPH with the graph as a fourth part."""
    match node:
        case Triples(found):
            yield from ((*each, *graph) for each in found)
        case tuple():
            for each in node:
                yield from _asked(each, graph)
        case ElementGraph(name, inner):
            yield from _asked(inner, (name,))
        case _ if is_dataclass(node) and not isinstance(node, StaticGraph):
            yield from _asked(tuple(getattr(node, each.name) for each in fields(node)), graph)


# --- the store's content -----------------------------------------------------------------------------


class _Terms:
    """Terms of N-Triples as pyoxigraph's; blank nodes are distinguished by their element or graph."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._merged = case.dialect == "C-SPARQL"
        self._scopes = {id(element): f"e{number}" for number, element in enumerate(case.elements)}
        self._terms: dict[tuple[str, str], Any] = {}
        self._static = [quad for triple in case.static for quad in [self._quad(triple, "s", ox.DefaultGraph())]]
        for number, (name, triples) in enumerate(case.named):
            self._static += [self._quad(triple, f"s{number}", ox.NamedNode(name)) for triple in triples]

    def quads(self, windows: Sequence[Sequence[tuple[Element, Triple]]], *, numbered: bool) -> list[ox.Quad]:
        """The static data, and the content of each window."""
        found = list(self._static)
        for window, held in zip(self._case.windows, windows, strict=True):
            graph = ox.DefaultGraph() if self._merged else ox.NamedNode(EX + window.name)
            occurrences: Counter[Any] = Counter()
            for element, triple in held:
                scope = self._scopes[id(element)]
                graphs = [graph]
                if element.graph is not None and not self._merged:
                    graphs.append(ox.NamedNode(graph_prefix(window.name) + element.graph))
                for each in graphs:
                    quad = self._quad(triple, scope, each)
                    found.append(quad)
                    if numbered:
                        occurrences[quad] += 1
                        found += _occurrence(quad, occurrences[quad])
        return found

    def _quad(self, triple: Triple, scope: str, graph: Any) -> ox.Quad:
        return ox.Quad(*(self._term(term, scope) for term in triple), graph)

    def _term(self, text: str, scope: str) -> Any:
        key = (text, scope if text.startswith("_:") else "")
        if key not in self._terms:
            self._terms[key] = ox.BlankNode(f"{scope}{text[2:]}") if key[1] else parse_term(text)
        return self._terms[key]


def _occurrence(quad: ox.Quad, number: int) -> list[ox.Quad]:
    own = ox.NamedNode(f"urn:{number}:{quad.predicate.value}")
    of = ox.NamedNode(OF[1:-1])
    return [ox.Quad(quad.subject, own, quad.object, quad.graph_name), ox.Quad(own, of, quad.predicate, of)]


def parse_term(text: str) -> Any:
    """A term in N-Triples syntax."""
    return next(iter(ox.parse(f"<x:s> <x:p> {text} .", format=ox.RdfFormat.N_TRIPLES))).object


# --- the question ------------------------------------------------------------------------------------


class _Question:
    """The case's query as SPARQL for pyoxigraph; the last columns are the keys of ORDER BY."""

    def __init__(self, case: Case, *, numbered: bool) -> None:
        self._query = query = case.query
        self._names = columns(query)
        sliced = replace(query, order=(), limit=None, offset=None)
        keys = tuple(Column(f"?key_{number}", key.value) for number, key in enumerate(query.order))
        writer = Plain(case, numbered=numbered)
        if query.form == "ASK":
            text = writer.select(sliced)
        elif query.form == "CONSTRUCT":
            shown = tuple(map(Column, self._names))
            text = writer.select(replace(sliced, form="SELECT", columns=(*shown, *keys)))
        elif query.modifier or query.grouped is not None:
            # The keys of such queries refer to their columns.
            shown = tuple(map(Column, self._names))
            text = writer.select(Select((Sub(sliced),), (*shown, *keys)))
        else:
            text = writer.select(replace(sliced, columns=(*query.columns, *keys)))
        self.text = PREFIXES + text
        self._keys = [key.variable[1:] for key in keys]

    def at(self, time: int) -> str:
        return self.text.replace("NOW()", date_time(time)) if "NOW()" in self.text else self.text

    def rows(self, text: str, quads: list[ox.Quad]) -> list[Row]:
        store = ox.Store()
        store.extend(quads)
        found: Any = store.query(text)
        if self._query.form == "ASK":
            return [row_of([ox.Literal(bool(found))])]
        solutions = [([each[name[1:]] for name in self._names], [each[key] for key in self._keys]) for each in found]
        if self._query.order or self._query.limit is not None or self._query.offset is not None:
            descending = [key.descending for key in self._query.order]
            solutions.sort(key=lambda each: [term_key(term) for term in each[0]])
            for at in reversed(range(len(descending))):
                solutions.sort(key=lambda each: value_key(each[1][at]), reverse=descending[at])
            start = self._query.offset or 0
            end = None if self._query.limit is None else start + self._query.limit
            solutions = solutions[start:end]
        return [row_of(terms) for terms, _ in solutions]


def columns(query: Select) -> list[str]:
    """The variables of a result; for CONSTRUCT those of its template."""
    if query.form == "ASK":
        return ["?boolean"]
    if query.form == "CONSTRUCT":
        return list(dict.fromkeys(part for triple in query.template for part in triple if part.startswith("?")))
    return [column.variable for column in query.columns]


def row_of(terms: Sequence[Any]) -> Row:
    """Comparable cells; blank nodes with their labels."""
    return tuple(("blank", term.value) if isinstance(term, ox.BlankNode) else cell(term) for term in terms)


def unlabelled(row: Row) -> Row:
    """Blank nodes numbered by their first position in the row: two stores have different labels."""
    labels: dict[object, int] = {}
    return tuple(
        ("blank", str(labels.setdefault(each[1], len(labels)))) if each is not None and each[0] == "blank" else each
        for each in row
    )


# --- order -------------------------------------------------------------------------------------------

_KINDS = ("decimal", "float", "double")


def value_key(term: Any) -> tuple[Any, ...]:
    """The position of a value in ORDER BY: unbound, blank nodes, IRIs, numbers, booleans, instants, strings, texts in a
    language.
    """
    if term is None:
        return (0,)
    if isinstance(term, ox.BlankNode):
        return (1,)
    if isinstance(term, ox.NamedNode):
        return (2, term.value)
    datatype = term.datatype.value.removeprefix(_XSD)
    if datatype in ("integer", *_KINDS):
        return (3, *_number_key(term.value))
    if datatype == "boolean":
        return (4, term.value in ("true", "1"))
    if datatype == "dateTime":
        return (5, _instant(term.value))
    if datatype == "string":
        return (7, term.value)
    if term.language:
        return (8, term.value, term.language)
    return (9, term.value, datatype)


def term_key(term: Any) -> tuple[Any, ...]:
    """The order of terms: by value, then numbers by type, instants by digits of a second, then by zone with Z first."""
    key = value_key(term)
    if key[0] == 3:
        datatype = term.datatype.value.removeprefix(_XSD)
        return (*key, _KINDS.index(datatype) + 1 if datatype in _KINDS else 0)
    if key[0] == 5:
        digits = re.search(r"\.(\d+)", term.value)
        offset = datetime.fromisoformat(term.value).utcoffset() or timedelta(0)
        return (*key, len(digits[1]) if digits else 0, not term.value.endswith("Z"), offset)
    return key


def _number_key(text: str) -> tuple[Any, ...]:
    value = float(text)
    if math.isfinite(value):
        return (2, Fraction(text))
    return (0, 0) if math.isnan(value) else (1, 0) if value < 0 else (3, 0)


def _instant(text: str) -> Fraction:
    at = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return Fraction(at.timestamp()).limit_denominator(10**6)
