"""Hypothesis strategies: small streams, static data and continuous queries over them, as text.

    @given(scenarios({"join", "filter"}, {"range", "count"}))
    def test_something(scenario: Scenario) -> None:
        text = scenario.texts[Dialect.CQELS_QL]

A query is a group of window blocks joined by common variables; each feature adds a clause, more often than not.
It is written in every dialect that has its windows. Data is drawn for the predicates that the query asks for,
from few subjects and values, so that answers are seldom empty. Queries that the contract leaves
open (LIMIT without a total order, sums of inexact doubles) are never generated.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeVar

from hypothesis import reject, settings
from hypothesis import strategies as st
from rdflib import XSD, URIRef

from cqels_py.algebra.nodes import Dialect
from cqels_py.errors import UnsupportedQuery
from tests.oracle.naive import Element, Static
from tests.oracle.naive_algebra import TooManyPairs, Triple
from tests.oracle.naive_values import Term, date_time_literal, typed
from tests.support import traces
from tests.support.amount import ALL
from tests.support.clauses import CLAUSES
from tests.support.drawn_modifiers import MODIFIERS, any_slice, sampled, timed
from tests.support.drawn_windows import C_SPARQL_WINDOWS, RSP_QL_WINDOWS, TIME, WINDOWS, WindowUse, draw_use
from tests.support.traces import EX, STREAMS

T = TypeVar("T")
Wanted: TypeAlias = tuple[str, str, str]
"""A triple pattern to match: subject and object in SPARQL, the predicate's name."""

FEATURES = frozenset(
    {
        *("join", "filter", "aggregate", "distinct", "minus", "not_exists", "union", "bind", "static"),
        *("optional", "path", "order", "subquery", "values", "graph", "window_graph", "ask"),
        *CLAUSES,
        *MODIFIERS,
    }
)

SOAKING = settings().max_examples > 100
FEW = settings() if SOAKING else settings(max_examples=15 if ALL else 5)
"""For a test that runs once for each of many parameters."""


@contextmanager
def answerable(*refusals: type[Exception]) -> Iterator[None]:
    """A generated query that the engine refuses, or whose answer the oracle cannot enumerate, is discarded."""
    try:
        yield
    except (UnsupportedQuery, TooManyPairs, *refusals):
        reject()


NODES = ("a", "b", "c")
GRAPHS = tuple(URIRef(EX + name) for name in ("g", "g", "h", "a"))
"""The names of elements' graphs; repeated names are more likely."""
LINK = "link"
LABEL = "label"
VALUES = {
    "int": ("0", "1", "2", "3"),
    "dec": ("0.1", "1.5", "-2.25"),
    "dbl": ("0.25e0", "-1.5e0", "2.0e0"),
    "num": ("1", "1.5", "0.5e0", "7"),
    "str": ("'x'", "'y'", "'xy'"),
    "lang": ("'x'@en", "'x'@fr", "'y'@en"),
    "when": ("2024-01-01T00:00:00Z", "2024-01-01T00:00:00.5Z", "2024-03-01T12:30:00Z"),
    "same": ("1", "1.0", "1.00", "10e-1", "2", "2.0"),
    "instant": (
        "2024-01-01T00:00:00Z",
        "2024-01-01T00:00:00.0Z",
        "2024-01-01T01:00:00+01:00",
        "2024-01-01T00:00:00.5Z",
    ),
}
"""The predicates with literal values: each has its own kind of value, so that comparisons are defined."""
EQUAL_VALUES = frozenset({"same", "instant"})
"""Predicates with several terms of one value, which ORDER BY does not distinguish, for tests of the order of terms."""
NUMERIC = ("int", "dec", "dbl", "num")


@dataclass(frozen=True, repr=False)
class Scenario:
    """A query in each dialect that can express it, the elements of its streams, and static data."""

    texts: dict[Dialect, str]
    elements: tuple[Element, ...]
    static: Static

    def __repr__(self) -> str:
        lines = [f"--- {dialect.value}\n{text}" for dialect, text in self.texts.items()]
        lines += ["--- elements", *(_element_line(element) for element in self.elements)]
        lines += ["--- static", *(_triple_text(triple) for triple in self.static.default)]
        for name, triples in self.static.named.items():
            lines += [f"--- static {name}", *(_triple_text(triple) for triple in triples)]
        return "\n".join(lines)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Hypothesis's text for a falsifying example."""
        printer.text(f"\n{self!r}\n")


def _element_line(element: Element) -> str:
    content = ", ".join(_triple_text(triple) for triple in element.triples)
    graph = "" if element.graph is None else f" {traces.short(element.graph)}"
    return f"{element.time} {element.stream.removeprefix(STREAMS)}{graph} {content}"


def _triple_text(triple: Triple) -> str:
    return " ".join(traces.short(term) for term in triple)


# --- queries --------------------------------------------------------------------------------------


@dataclass
class DrawnQuery:
    """A query under construction.

    `kinds`: the kinds of values of variables that are certainly bound; `maybe`: those that may be unbound. `pool`: the
    predicates with literals that it uses. `wanted`: by stream, the plain triple patterns that an answer needs.
    """

    draw: Callable[[st.SearchStrategy[Any]], Any]
    features: frozenset[str]
    window_kinds: frozenset[str]
    uses: list[WindowUse] = field(default_factory=list)
    kinds: dict[str, str] = field(default_factory=dict)
    maybe: dict[str, str] = field(default_factory=dict)
    pool: list[str] = field(default_factory=list)
    predicates: set[str] = field(default_factory=set)
    pending: list[Wanted] = field(default_factory=list)
    wanted: dict[str, list[Wanted]] = field(default_factory=dict)
    made: int = 0

    def chance(self, percent: int) -> bool:
        return bool(self.draw(st.integers(0, 99)) < percent)

    def wants(self, feature: str, percent: int = 70) -> bool:
        return feature in self.features and self.chance(percent)

    def pick(self, choices: Sequence[T]) -> T:
        chosen: T = self.draw(st.sampled_from(list(choices)))
        return chosen

    def fresh(self, kind: str) -> str:
        self.made += 1
        name = f"?v{self.made}"
        self.kinds[name] = kind
        return name

    def known(self, *kinds: str) -> list[str]:
        return [name for name, kind in self.kinds.items() if kind in kinds]

    @contextmanager
    def hidden(self, keep_as_maybe: bool = False) -> Iterator[None]:
        """Variables made inside are not visible (or only perhaps bound) after it."""
        before = dict(self.kinds)
        yield
        if keep_as_maybe:
            self.maybe |= {name: kind for name, kind in self.kinds.items() if name not in before}
        self.kinds = before

    def triple(self, subject: str | None = None) -> str:
        """A triple pattern whose subject is a known node if there is one."""
        nodes = self.known("node")
        subject = subject or (self.pick(nodes) if nodes else self.fresh("node"))
        if self.chance(40):
            self.predicates.add(LINK)
            path, node = self.path(), self.node()
            self.pending.append((subject, LINK, node))
            return f"{subject} {path} {node} ."
        predicate = self.pick(self.pool)
        self.predicates.add(predicate)
        value = self.value(predicate)
        self.pending.append((subject, predicate, value))
        return f"{subject} :{predicate} {value} ."

    def path(self) -> str:
        if not self.wants("path"):
            return f":{LINK}"
        self.predicates.add("other")
        return self.pick(
            [
                ":link+",
                ":link*",
                ":link?",
                ":link/:link",
                "^:link",
                ":link|:other",
                "(:link|^:other)/:link?",
                "!:link",
                "!(:link|^:other)",
                "(:link/:link)+",
                "(:link|^:other)*",
                "(:link/:other?)+",
            ]
        )

    def node(self) -> str:
        if self.chance(10):
            return ":" + self.pick(NODES)
        nodes = self.known("node")
        return self.pick(nodes) if nodes and self.chance(25) else self.fresh("node")

    def value(self, kind: str) -> str:
        if self.chance(10):
            return sparql(self.pick(VALUES[kind]))
        same = self.known(kind)
        return self.pick(same) if same and self.chance(30) else self.fresh(kind)

    def block(self, body: str, needed: bool = True) -> str:
        """A window over the body; the text's %n% is replaced by the dialect's words.

        `needed`: an answer needs matches of the triple patterns generated since the last block.
        """
        fitting = [number for number, use in enumerate(self.uses) if use.fits(body)]
        if fitting and (self.chance(20) or len(self.uses) >= 3):
            number = self.pick(fitting)
        else:
            number = len(self.uses)
            self.uses.append(draw_use(self, body))
        if needed:
            self.wanted.setdefault(self.uses[number].stream, []).extend(self.pending)
        self.pending = []
        return f"%{number}% {{ {self.within_graph(body) if self.wants('window_graph', 50) else body} }}"

    def within_graph(self, body: str) -> str:
        """The body inside of GRAPH, over the graphs of the window's elements."""
        name = self.pick([":g", "?named", "?named"])
        if name == "?named":
            self.maybe[name] = "node"
        return f"GRAPH {name} {{ {body} }}"

    def triples(self) -> str:
        """One to three connected triple patterns, perhaps with a filter."""
        most = 3 if "join" in self.features else 1
        body = " ".join(self.triple() for _ in range(self.pick([1, 1, 2, 2, 3][: 2 * most - 1])))
        if not self.wants("filter", 30):
            return body
        everything, self.kinds = self.kinds, {name: k for name, k in self.kinds.items() if f"{name} " in body}
        condition = self.filter()
        self.kinds = everything
        return f"{body} {condition}"

    def filter(self) -> str:
        return f"FILTER ({self.condition()})"

    def condition(self) -> str:
        """A condition on known variables; in a block only its own variables are in scope."""
        numbers = self.known(*NUMERIC)
        forms: list[str] = []
        if numbers:
            one, other = self.pick(numbers), self.pick(numbers)
            forms += [
                f"{one} > {self.pick(['0', '1', '1.5', '1.0e0'])}",
                f"{one} + {other} <= 3",
                f"{one} = {other}",
            ]
            forms += [
                f"{one} * 2 != {other} / 2",
                f"!({one} < 1)",
                f"{one} IN (1, 1.5, 2.0e0)",
                f"-{one} < {other}",
            ]
        forms += [f"STRSTARTS({name}, 'x') || {name} = 'y'" for name in self.known("str")[:1]]
        forms += [f"LANG({name}) = 'en'" for name in self.known("lang")[:1]]
        forms += [f'{name} > "2024-01-01T00:00:00Z"^^xsd:dateTime' for name in self.known("when")[:1]]
        nodes = self.known("node")
        forms += [f"{self.pick(nodes)} != {self.pick(nodes)}", f"{self.pick(nodes)} != :a"] if nodes else []
        forms += [f"!BOUND({name})" for name in list(self.maybe)[:1]]
        return self.pick(forms) if forms else "true"

    def body(self) -> str:
        """The group graph pattern: window blocks, then the clauses of the features."""
        most = 3 if "join" in self.features else 1
        parts = [self.block(self.triples()) for _ in range(self.pick([1, 2, 2, 2, 3][: 2 * most - 1]))]
        for feature, clause in (
            ("static", self.static),
            ("graph", self.graph),
            ("subquery", self.subquery),
            ("union", self.union),
            ("values", self.inline_values),
            ("optional", self.optional),
            ("bind", self.bind),
            ("minus", self.minus),
            ("not_exists", self.not_exists),
            ("filter", self.filter),
        ):
            if self.wants(feature):
                parts.append(clause())
        parts += [clause(self) for feature, clause in CLAUSES.items() if self.wants(feature)]
        parts += [timed(self)] if self.wants("now") else []
        return "\n  ".join(parts)

    def shared_node(self) -> str:
        nodes = self.known("node")
        return self.pick(nodes) if nodes else ":a"

    def static(self) -> str:
        return f"{self.shared_node()} :label {self.fresh('str')} ."

    def graph(self) -> str:
        name = self.pick([":g", ":h", "?graph"])
        if name == "?graph":
            self.maybe[name] = "node"
        return f"GRAPH {name} {{ {self.shared_node()} :label {self.fresh('str')} }}"

    def union(self) -> str:
        subject = self.shared_node()
        with self.hidden(keep_as_maybe=True):
            left = self.block(self.triple(subject))
        with self.hidden(keep_as_maybe=True):
            right = self.block(self.triple(subject))
        return f"{{ {left} }} UNION {{ {right} }}"

    def optional(self) -> str:
        with self.hidden(keep_as_maybe=True):
            body = self.block(self.triple(self.shared_node()))
            condition = self.filter() if self.wants("filter", 40) else ""
        return f"OPTIONAL {{ {body} {condition} }}"

    def minus(self) -> str:
        with self.hidden():
            return f"MINUS {{ {self.block(self.triple(self.shared_node()), needed=False)} }}"

    def not_exists(self) -> str:
        word = self.pick(["NOT EXISTS", "NOT EXISTS", "EXISTS"])
        with self.hidden():
            body = self.block(self.triple(self.shared_node()), needed=False)
            condition = self.filter() if self.chance(30) else ""
        return f"FILTER {word} {{ {body} {condition} }}"

    def subquery(self) -> str:
        subject = self.shared_node()
        with self.hidden():
            body = self.block(self.triple(subject))
        if not subject.startswith("?"):
            return body
        counted = self.fresh("int")
        return f"{{ SELECT {subject} (COUNT(*) AS {counted}) WHERE {{ {body} }} GROUP BY {subject} }}"

    def inline_values(self) -> str:
        subject = self.shared_node()
        if not subject.startswith("?"):
            return ""
        return f"VALUES {subject} {{ :a :b }}"

    def bind(self) -> str:
        numbers, texts = self.known(*NUMERIC), self.known("str")
        forms = [f"{name} + 1" for name in numbers[:1]] + [f"{name} / 4" for name in numbers[-1:]]
        forms += [f"CONCAT({name}, '!')" for name in texts[:1]] + [
            f"IF({name} > 1, 'high', 'low')" for name in numbers[:1]
        ]
        forms += [f"STR({name})" for name in self.known("node")[:1]] + [
            f"COALESCE({name}, 0)" for name in list(self.maybe)[:1]
        ]
        expression = self.pick(forms) if forms else "1"
        self.made += 1
        name = f"?b{self.made}"
        self.maybe[name] = "bound"
        return f"BIND ({expression} AS {name})"

    def visible(self) -> list[str]:
        return [*self.kinds, *self.maybe]

    def select(self) -> tuple[str, str]:
        """The text before WHERE and after the group."""
        body_variables = self.visible()
        if self.wants("ask", 30):
            return "ASK", ""
        if self.features & {"aggregate", "samples"}:
            return self.grouped()
        count = self.draw(st.integers(1, max(1, len(body_variables))))
        columns = body_variables[:count] if body_variables else ["*"]
        distinct = "DISTINCT " if self.wants("distinct", 100) else ""
        hidden = [] if distinct or columns == ["*"] else body_variables[count:]
        return f"SELECT {distinct}{' '.join(columns)}", self.order(columns, hidden)

    def grouped(self) -> tuple[str, str]:
        keys = [name for name in self.visible()[:3] if self.chance(40)][:2]
        names = [f"?n{number}" for number in range(self.draw(st.integers(1, 3)))]
        calls = [self.aggregate() for _ in names]
        columns = [*keys, *(f"({call} AS {name})" for call, name in zip(calls, names, strict=True))]
        after = f"GROUP BY {' '.join(keys)}" if keys else ""
        if self.chance(20):
            after += " HAVING (COUNT(*) > 1)"
        distinct = "DISTINCT " if self.wants("distinct", 50) else ""
        return f"SELECT {distinct}{' '.join(columns)}", f"{after}\n{self.order([*keys, *names])}"

    def aggregate(self) -> str:
        if self.wants("samples"):
            return sampled(self)
        numbers = self.known(*NUMERIC)
        forms = ["COUNT(*)", *(f"COUNT({name})" for name in self.visible()[-1:])]
        forms += [f"COUNT(DISTINCT {name})" for name in self.visible()[:1]]
        for name in [self.pick(numbers)] * 2 if numbers else []:
            forms += [f"{word}({name})" for word in ("SUM", "AVG", "MIN", "MAX")]
            forms += [f"SUM(DISTINCT {name})", f"AVG({name} * 2)"]
        forms += [f"MAX({name})" for name in self.known("str", "when")[:1]]
        forms += [f"GROUP_CONCAT({name}; SEPARATOR=',')" for name in self.known("str")[:1]]
        return self.pick(forms)

    def order(self, columns: list[str], hidden: Sequence[str] = ()) -> str:
        """A total order of the rows, so that LIMIT is determined; or any slice."""
        if columns != ["*"] and self.wants("slice"):
            return any_slice(self, columns, hidden)
        if not self.wants("order", 100) or columns == ["*"]:
            return ""
        keys = [f"DESC({name})" if self.chance(40) else name for name in self.draw(st.permutations(columns))]
        offset = f" OFFSET {self.draw(st.integers(1, 2))}" if self.chance(30) else ""
        return f"ORDER BY {' '.join(keys)} LIMIT {self.draw(st.integers(1, 4))}{offset}"


def sparql(short: str) -> str:
    """A value for VALUES in SPARQL's syntax. Negative numbers are quoted, because rdflib's parser negates their values."""
    if short.startswith("-"):
        return f'"{short}"^^xsd:{"double" if "e" in short else "decimal"}'
    return f'"{short}"^^xsd:dateTime' if short.startswith("2024") else short


PREFIXES = f"PREFIX : <{EX}>\nPREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n"


def _texts(uses: Sequence[WindowUse], head: str, body: str, tail: str) -> dict[Dialect, str]:
    """The query in every dialect that has its windows."""
    kinds = {use.extent.kind for use in uses}
    texts = {Dialect.CQELS_QL: _cqels(uses, head, body, tail)}
    if kinds <= RSP_QL_WINDOWS:
        texts[Dialect.RSP_QL] = _rsp(uses, head, body, tail)
    if kinds <= C_SPARQL_WINDOWS and len({use.stream for use in uses}) == len(uses) and "GRAPH" not in body:
        texts[Dialect.C_SPARQL] = _csparql(uses, head, body, tail)
    return texts


def _cqels(uses: Sequence[WindowUse], head: str, body: str, tail: str) -> str:
    blocks = [f"STREAM <{STREAMS}{use.stream}> {use.text(Dialect.CQELS_QL)}" for use in uses]
    return f"{PREFIXES}{head}\nWHERE {{\n  {_fill(body, blocks)}\n}}\n{tail}".strip()


def _rsp(uses: Sequence[WindowUse], head: str, body: str, tail: str) -> str:
    named = [
        f"FROM NAMED WINDOW :w{number} ON <{STREAMS}{use.stream}> {use.text(Dialect.RSP_QL)}"
        for number, use in enumerate(uses)
    ]
    blocks = [f"WINDOW :w{number}" for number in range(len(uses))]
    start = f"{PREFIXES}REGISTER ISTREAM <{EX}out> AS\n{head}\n" + "\n".join(named)
    return f"{start}\nWHERE {{\n  {_fill(body, blocks)}\n}}\n{tail}".strip()


def _csparql(uses: Sequence[WindowUse], head: str, body: str, tail: str) -> str:
    """One merged graph: the blocks become plain groups."""
    sources = [f"FROM STREAM <{STREAMS}{use.stream}> {use.text(Dialect.C_SPARQL)}" for use in uses]
    start = f"REGISTER QUERY q AS\n{PREFIXES}{head}\n" + "\n".join(sources)
    return f"{start}\nWHERE {{\n  {_fill(body, [''] * len(uses))}\n}}\n{tail}".strip()


def _fill(body: str, blocks: Iterable[str]) -> str:
    for number, block in enumerate(blocks):
        body = body.replace(f"%{number}%", block)
    return body


# --- data -----------------------------------------------------------------------------------------


def _object(predicate: str) -> st.SearchStrategy[str]:
    if predicate == LABEL:
        return st.sampled_from(list(VALUES["str"]))
    return st.sampled_from(list(VALUES.get(predicate, NODES)))


@st.composite
def triple_of(draw: st.DrawFn, predicates: Sequence[str]) -> Triple:
    predicate = draw(st.sampled_from(list(predicates)))
    value = draw(_object(predicate))
    subject = traces.term(draw(st.sampled_from(NODES)))
    return subject, traces.term(predicate), _term(value)


def _term(short: str) -> Term:
    if short.startswith("2024"):
        return typed(short, XSD.dateTime)
    return traces.term(short)


@st.composite
def assignments(draw: st.DrawFn, wanted: Iterable[Wanted]) -> dict[str, Term]:
    """A value for every variable: a possible answer."""
    chosen: dict[str, Term] = {}
    for subject, predicate, object_ in wanted:
        chosen.setdefault(subject, traces.term(draw(st.sampled_from(["a", *NODES]))))
        chosen.setdefault(object_, _term(draw(_object(predicate))))
    return chosen


def planted(wanted: Iterable[Wanted], chosen: Mapping[str, Term]) -> list[Triple]:
    """The triples that make the patterns match with this assignment."""
    return [(_filled(s, chosen), traces.term(p), _filled(o, chosen)) for s, p, o in wanted]


def _filled(slot: str, chosen: Mapping[str, Term]) -> Term:
    if slot.startswith("?"):
        return chosen[slot]
    found = re.fullmatch(r'"(.*)"\^\^xsd:\w+', slot)
    return _term(found[1] if found else slot.removeprefix(":"))


@st.composite
def element_lists(
    draw: st.DrawFn,
    predicates: Sequence[str],
    streams: Sequence[str],
    wanted: Mapping[str, Sequence[Wanted]],
    most: int = 25,
) -> tuple[Element, ...]:
    """Elements in time order, with ties, gaps and repeated triples; many of them contain the wanted triples."""
    answers = [draw(assignments([w for of_stream in wanted.values() for w in of_stream])) for _ in range(2)]
    time = draw(st.sampled_from([0, 1_700_000_000_000_000, 250_000]))
    found = []
    for _ in range(draw(st.sampled_from([most, most, most // 2, 3, 1, 0]))):
        time += 1000 * draw(st.sampled_from([1000, 0, 0, 500, 1000, 2000, 3000, 7000]))
        stream = draw(st.sampled_from(list(streams)))
        needed = planted(wanted.get(stream, ()), draw(st.sampled_from(answers)))
        if needed and draw(st.integers(0, 9)) < 7:
            triples = needed[draw(st.integers(0, len(needed) - 1)) :][:4] if len(needed) > 4 else needed
        else:
            triples = draw(st.lists(triple_of(predicates), min_size=1, max_size=4))
        graph = draw(st.sampled_from([None, *GRAPHS]))
        found.append(Element(time, URIRef(STREAMS + stream), tuple(dict.fromkeys(triples)), graph))
    return tuple(found)


def carrying_times(elements: Iterable[Element], streams: Iterable[str]) -> tuple[Element, ...]:
    """The elements with their times as properties, in the streams whose windows need them."""
    timed = {URIRef(STREAMS + stream) for stream in streams}
    found = []
    for element in elements:
        if element.stream in timed:
            when = (traces.term("a"), traces.term(TIME), date_time_literal(element.time))
            element = replace(element, triples=(*element.triples, when))
        found.append(element)
    return tuple(found)


@st.composite
def static_data(draw: st.DrawFn) -> Static:
    """Labels of the nodes, in the default graph and in two named ones, and other triples."""

    def graph() -> list[Triple]:
        labelled = draw(st.lists(st.sampled_from(NODES), min_size=2, max_size=3))
        labels = [(traces.term(node), traces.term(LABEL), _term(draw(_object(LABEL)))) for node in labelled]
        return list(dict.fromkeys(labels + draw(st.lists(triple_of([LABEL, LINK]), max_size=2))))

    return Static(graph(), {URIRef(EX + name): graph() for name in ("g", "h")})


@st.composite
def scenarios(
    draw: st.DrawFn,
    features: Iterable[str] = ("join", "filter"),
    windows: Iterable[str] = ("range", "count"),
    most_elements: int = 25,
) -> Scenario:
    """A query with any of the features over windows of these kinds, with data for it.

    `texts` always has CQELS-QL; other dialects where they have such windows (C_SPARQL_WINDOWS, RSP_QL_WINDOWS).
    """
    chosen, kinds = frozenset(features), frozenset(windows)
    assert chosen <= FEATURES, f"unknown features: {sorted(chosen - FEATURES)}"
    assert kinds <= WINDOWS, f"unknown windows: {sorted(kinds - WINDOWS)}"
    others = sorted(VALUES if "slice" in chosen else VALUES.keys() - EQUAL_VALUES)
    pool = [draw(st.sampled_from(NUMERIC)), draw(st.sampled_from(others))]
    query = DrawnQuery(draw, chosen, kinds, pool=pool)
    body = query.body()
    head, tail = query.select()
    predicates = sorted({*query.predicates, "other"} if query.chance(30) else query.predicates)
    streams = sorted({use.stream for use in query.uses})
    elements = draw(element_lists(predicates or [LINK], streams, query.wanted, most_elements))
    elements = carrying_times(elements, {use.stream for use in query.uses if use.timed})
    static = draw(static_data()) if chosen & {"static", "graph"} else Static()
    return Scenario(_texts(query.uses, head, body, tail), elements, static)
