"""A case's query as text: in its dialect for the engine, and as plain SPARQL over named graphs for pyoxigraph.

In plain SPARQL each window is a graph (C-SPARQL's are merged into the default graph). Three things have no plain form
and are translated:

* A window that is a bag and holds a triple twice: each occurrence has a predicate of its own, `urn:K:p`, which the graph OF links
  to p, and a pattern `s p o` becomes `s ?n o . GRAPH OF { ?n OF p }`.
* Elements' named graphs: each is a graph of the store whose name begins with its window's.
* Alternatives and negated property sets, where pyoxigraph gives sets (`deviations`): unions and filters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import count

from bench.suites.fuzz.case import (
    EX,
    AnyWindow,
    Bind,
    Block,
    Case,
    Clause,
    Clauses,
    Column,
    ElementGraph,
    Expression,
    Filter,
    Minus,
    Nested,
    Optional,
    Select,
    StaticGraph,
    Sub,
    Triple,
    Triples,
    Union,
    Values,
    Window,
)  # fmt: skip

PREFIXES = f"PREFIX : <{EX}>\nPREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n"
OF = "<urn:of>"
_PREDICATE = re.compile(r":\w+|\?\w+|<[^>]*>|a")
_CLOSURE = re.compile(r"[*+?]$")


class Writer:
    """Writes the parts that both texts have in common."""

    def select(self, query: Select) -> str:
        return f"{self.head(query)}\nWHERE {{ {self.group(query.where)} }} {self.tail(query)}".rstrip()

    def head(self, query: Select) -> str:
        if query.form == "ASK":
            return "ASK"
        if query.form == "CONSTRUCT":
            return f"CONSTRUCT {{ {' '.join(f'{s} {p} {o} .' for s, p, o in query.template)} }}"
        return " ".join(["SELECT", query.modifier, *map(self.column, query.columns)]).replace("  ", " ")

    def column(self, column: Column) -> str:
        if column.value is None:
            return column.variable
        return f"({self.expression(column.value)} AS {column.variable})"

    def tail(self, query: Select) -> str:
        return f"{self.grouping(query)} {self.slice(query)}".strip()

    def grouping(self, query: Select) -> str:
        parts = [f"GROUP BY {' '.join(map(self.column, query.grouped))}"] if query.grouped else []
        parts += [f"HAVING {' '.join(f'({self.expression(each)})' for each in query.having)}"] if query.having else []
        return " ".join(parts)

    def slice(self, query: Select) -> str:
        keys = [f"{'DESC' if key.descending else 'ASC'}({self.expression(key.value)})" for key in query.order]
        parts = [f"ORDER BY {' '.join(keys)}"] if keys else []
        parts += [f"LIMIT {query.limit}"] if query.limit is not None else []
        parts += [f"OFFSET {query.offset}"] if query.offset is not None else []
        return " ".join(parts)

    def expression(self, expression: Expression) -> str:
        text = expression.text
        for number, group in enumerate(expression.groups):
            text = text.replace(f"%{number}%", f"{{ {self.group(group)} }}")
        return text

    def group(self, clauses: Iterable[Clause]) -> str:
        return " ".join(self.clause(clause) for clause in clauses)

    def clause(self, clause: Clause) -> str:
        match clause:
            case Triples(patterns):
                return self.triples(patterns)
            case Block(window, inner):
                return self.block(window, inner)
            case AnyWindow(variable, inner):
                return self.any_window(variable, inner)
            case ElementGraph(name, inner):
                return self.element_graph(name, inner)
            case StaticGraph(name, inner):
                return self.static_graph(name, inner)
            case Filter(condition):
                return f"FILTER ({self.expression(condition)})"
            case Bind(value, variable):
                return f"BIND ({self.expression(value)} AS {variable})"
            case Optional(inner):
                return f"OPTIONAL {{ {self.group(inner)} }}"
            case Minus(inner):
                return f"MINUS {{ {self.group(inner)} }}"
            case Nested(inner):
                return f"{{ {self.group(inner)} }}"
            case Union(branches):
                return " UNION ".join(f"{{ {self.group(branch)} }}" for branch in branches)
            case Values(variables, rows):
                listed = " ".join(f"({' '.join(row)})" for row in rows)
                return f"VALUES ({' '.join(variables)}) {{ {listed} }}"
            case Sub(query):
                return f"{{ {self.select(query)} }}".replace("\n", " ")
        raise AssertionError(clause)

    def triples(self, patterns: Sequence[Triple]) -> str:
        return " ".join(f"{s} {p} {o} ." for s, p, o in patterns)

    def block(self, window: str, inner: Clauses) -> str:
        raise NotImplementedError

    def any_window(self, variable: str, inner: Clauses) -> str:
        raise NotImplementedError

    def element_graph(self, name: str, inner: Clauses) -> str:
        raise NotImplementedError

    def static_graph(self, name: str, inner: Clauses) -> str:
        raise NotImplementedError


# --- the engine's -----------------------------------------------------------------------------------


def continuous(case: Case) -> str:
    """The query in the case's dialect."""
    return _Continuous(case).text()


class _Continuous(Writer):
    def __init__(self, case: Case) -> None:
        self._case = case
        self._windows = {window.name: window for window in case.windows}

    def text(self) -> str:
        case, query = self._case, self._case.query
        name = f"REGISTER {case.output} :out AS\n" if case.output != "CHANGELOG" else ""
        if case.dialect == "C-SPARQL":
            name = "REGISTER QUERY out AS\n" if case.output == "RSTREAM" else name
        declared = "".join(f"\n{self._declared(window)}" for window in case.windows)
        body = f"WHERE {{ {self.group(query.where)} }}"
        return f"{PREFIXES}{name}{self.head(query)}{declared}\n{body}\n{self.tail(query)}".rstrip()

    def _declared(self, window: Window) -> str:
        match self._case.dialect:
            case "RSP-QL":
                return f"FROM NAMED WINDOW :{window.name} ON :{window.stream} {_extent(window, self._case.dialect)}"
            case "C-SPARQL":
                return f"FROM STREAM :{window.stream} {_extent(window, self._case.dialect)}"
        return ""

    def block(self, window: str, inner: Clauses) -> str:
        found = self._windows[window]
        before = {
            "RSP-QL": f"WINDOW :{window} ",
            "CQELS-QL": f"STREAM :{found.stream} {_extent(found, self._case.dialect)} ",
            "C-SPARQL": "",
        }[self._case.dialect]
        return f"{before}{{ {self.group(inner)} }}"

    def any_window(self, variable: str, inner: Clauses) -> str:
        return f"WINDOW {variable} {{ {self.group(inner)} }}"

    def element_graph(self, name: str, inner: Clauses) -> str:
        return f"GRAPH {name} {{ {self.group(inner)} }}"

    static_graph = element_graph


def _extent(window: Window, dialect: str) -> str:
    duration = _rsp_duration if dialect == "RSP-QL" else _duration
    words: list[str] = []
    match window.kind:
        case "RANGE" if window.delay:
            words = [f"FROM NOW-{duration(window.delay + window.size)} TO NOW-{duration(window.delay)}"]
        case "RANGE" | "SESSION":
            words = [f"{window.kind} {duration(window.size)}"]
        case "COUNT":
            words = [f"{'ELEMENTS' if dialect == 'RSP-QL' else 'COUNT'} {window.size}"]
        case "TRIPLES":
            words = [f"{'RANGE TRIPLES' if dialect == 'C-SPARQL' else 'TRIPLES'} {window.size}"]
        case _:
            words = [window.kind]
    if window.step:
        words.append(f"STEP {window.step if window.kind in ('COUNT', 'TRIPLES') else duration(window.step)}")
    if window.start is not None:
        words.append(f'STARTING AT "{window.start}"^^xsd:integer' if dialect == "RSP-QL" else _start(window.start))
    if window.partition:
        words.append(f"PARTITION BY {' '.join(window.partition)}")
    if window.timed:
        words.append("@ :at")
    return f"[{' '.join(words)}]"


def _duration(milliseconds: int) -> str:
    return f"{milliseconds // 1000}s" if milliseconds % 1000 == 0 else f"{milliseconds}ms"


def _rsp_duration(milliseconds: int) -> str:
    return f"PT{milliseconds / 1000:g}S"


def _start(milliseconds: int) -> str:
    return f"START {date_time(milliseconds * 1000)}"


def date_time(microseconds: int) -> str:
    """An instant in quotes with its type, as XSD's canonical form has it."""
    return f'"{lexical_date_time(microseconds)}"^^xsd:dateTime'


def lexical_date_time(microseconds: int) -> str:
    from datetime import UTC, datetime, timedelta

    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)
    fraction = f".{at.microsecond:06}".rstrip("0") if at.microsecond else ""
    return f"{at:%Y-%m-%dT%H:%M:%S}{fraction}Z"


# --- pyoxigraph's ------------------------------------------------------------------------------------


class Plain(Writer):
    """Plain SPARQL. `numbered`: occurrences of triples in windows are distinguished. NOW() is kept."""

    def __init__(self, case: Case, *, numbered: bool) -> None:
        self._case = case
        self._numbered = numbered
        self._in_window: str | None = None
        self._fresh = count()

    def variable(self) -> str:
        return f"?x_{next(self._fresh)}"

    def block(self, window: str, inner: Clauses) -> str:
        if self._case.dialect == "C-SPARQL":
            return f"{{ {self.group(inner)} }}"
        return f"GRAPH :{window} {{ {self._within(window, inner)} }}"

    def _within(self, window: str | None, inner: Clauses) -> str:
        before, self._in_window = self._in_window, window
        text = self.group(inner)
        self._in_window = before
        return text

    def any_window(self, variable: str, inner: Clauses) -> str:
        names = ", ".join(f":{window.name}" for window in self._case.windows)
        return f"{{ GRAPH {variable} {{ {self._within('any', inner)} }} FILTER({variable} IN ({names})) }}"

    def element_graph(self, name: str, inner: Clauses) -> str:
        prefix = graph_prefix(str(self._in_window))
        if not name.startswith("?"):
            return f"GRAPH <{prefix}{EX}{name[1:]}> {{ {self.group(inner)} }}"
        held = self.variable()
        named = f'FILTER(STRSTARTS(STR({held}), "{prefix}"))'
        bound = f'BIND(IRI(STRAFTER(STR({held}), "{prefix}")) AS {name})'
        return f"{{ GRAPH {held} {{ {self.group(inner)} }} {named} {bound} }}"

    def static_graph(self, name: str, inner: Clauses) -> str:
        if not name.startswith("?"):
            return f"GRAPH {name} {{ {self._within(None, inner)} }}"
        names = ", ".join(f"<{graph}>" for graph, _ in self._case.named) or "<urn:none>"
        return f"{{ GRAPH {name} {{ {self._within(None, inner)} }} FILTER({name} IN ({names})) }}"

    def triples(self, patterns: Sequence[Triple]) -> str:
        return " ".join(self._pattern(_unlabelled(s), p, _unlabelled(o)) for s, p, o in patterns)

    def _pattern(self, subject: str, path: str, object_: str) -> str:
        if path.startswith("!"):
            return self._negated(subject, path[1:].strip("()").split("|"), object_)
        if not _PREDICATE.fullmatch(path) and not _is_closure(path):
            return self._way(subject, path, object_)
        if not (self._numbered and self._in_window is not None) or not _PREDICATE.fullmatch(path):
            return f"{subject} {path} {object_} ."
        occurrence = self.variable()
        return f"{subject} {occurrence} {object_} . GRAPH {OF} {{ {occurrence} {OF} {path} }}"

    def _way(self, subject: str, path: str, object_: str) -> str:
        """Sequences, alternatives and inverses as patterns; every way through them counts."""
        path = path.removeprefix("(").removesuffix(")") if _wrapped(path) else path
        if len(parts := _split(path, "|")) > 1:
            return " UNION ".join(f"{{ {self._pattern(subject, part, object_)} }}" for part in parts)
        if len(parts := _split(path, "/")) > 1:
            nodes = [subject, *(self.variable() for _ in parts[1:]), object_]
            steps = zip(nodes, parts, nodes[1:], strict=False)
            return " ".join(_grouped(self._pattern(*step)) for step in steps)
        if path.startswith("^"):
            return self._pattern(object_, path[1:], subject)
        return self._pattern(subject, path, object_)

    def _negated(self, subject: str, names: Sequence[str], object_: str) -> str:
        forward = [name for name in names if not name.startswith("^")]
        backward = [name[1:] for name in names if name.startswith("^")]
        texts = []
        for excluded, ends in ((forward, (subject, object_)), (backward, (object_, subject))):
            if excluded:
                predicate = self.variable()
                pattern = self._pattern(ends[0], predicate, ends[1])
                texts.append(f"{{ {pattern} FILTER({predicate} NOT IN ({', '.join(excluded)})) }}")
        return " UNION ".join(texts)


def _unlabelled(term: str) -> str:
    """A variable instead of a blank node, whose label must not occur in the several groups that a pattern becomes."""
    return f"?x_{term[2:]}" if term.startswith("_:") else term


def _grouped(text: str) -> str:
    return f"{{ {text} }}" if "UNION" in text or "FILTER" in text else text


def _is_closure(path: str) -> bool:
    """Whether `*`, `+` or `?` applies to the whole path."""
    return bool(_CLOSURE.search(path)) and len(_split(path, "|")) == len(_split(path, "/")) == 1


def _wrapped(path: str) -> bool:
    """Whether it is enclosed by one pair of parentheses."""
    depth = 0
    for at, mark in enumerate(path):
        depth += (mark == "(") - (mark == ")")
        if depth == 0:
            return mark == ")" and at == len(path) - 1
    return False


def _split(path: str, mark: str) -> list[str]:
    """Split at the marks outside of parentheses."""
    parts, depth = [""], 0
    for each in path:
        depth += (each == "(") - (each == ")")
        if each == mark and depth == 0:
            parts.append("")
        else:
            parts[-1] += each
    return parts


def graph_prefix(window: str) -> str:
    """The beginning of the names of elements' graphs in the store."""
    return f"urn:graph:{window}:"
