"""Generates cases: a query with any of the features, and data for its patterns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import TypeVar

from bench.suites.fuzz.case import (
    EX,
    AnyWindow,
    Bind,
    Block,
    Case,
    Clause,
    Clauses,
    Column,
    Element,
    ElementGraph,
    Expression,
    Filter,
    Key,
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
from bench.suites.fuzz.expressions import Expressions
from bench.suites.fuzz.texts import lexical_date_time
from bench.suites.fuzz.vocabulary import BLANKS, EXACT, LINKS, NODES, POOLS, REAL, ntriples

T = TypeVar("T")

FEATURES = {
    "optional": 25, "union": 15, "minus": 15, "exists": 18, "filter": 35, "bind": 25, "values": 12, "subquery": 18,
    "aggregate": 25, "having": 30, "distinct": 15, "slice": 20, "path": 15, "static": 30, "static-graph": 15,
    "element-graph": 12, "any-window": 5, "construct": 10, "ask": 5, "blank": 20, "late": 15, "partition": 12,
    "event-time": 8, "now": 8, "nested": 6, "duplicates": 30, "variable-predicate": 6,
}  # fmt: skip
"""The percentage of cases with each feature."""
_DIALECTS = ("CQELS-QL", "RSP-QL", "C-SPARQL")
_PATHS = (
    ":link+", ":link*", ":link?", ":link/:link", "^:link", ":link|:other", "(:link|^:other)/:link?", "!:link",
    "!(:link|^:other)", "(:link/:link)+", "(:link|^:other)*", "(:link/:other?)+", "^(:link/:other)",
)  # fmt: skip
_DATA = ("int", "dec", "dbl", "num", "str", "lang", "when", "bool", "mix")


_MOST_PATTERNS = 6
"""If a query has so many patterns, its further blocks have one each: pyoxigraph evaluates OPTIONAL in nested loops."""
DATA_SETS = 4
"""So many consecutive seeds use the same query with other data: parsing a query takes longer than answering it."""


def draw(seed: int, features: Iterable[str]) -> Case:
    """The case of this seed, with some of the features."""
    return _Drawing(seed, sorted(set(features) & set(FEATURES))).case()


class _Drawing:
    """A case under construction. `kinds`: the kinds of values of variables that are certainly bound; `maybe`: those of
    others.
    """

    def __init__(self, seed: int, features: Sequence[str]) -> None:
        self.random = Random(f"query {seed // DATA_SETS}")
        self.seed = seed
        self.features = frozenset(name for name in features if self.random.random() * 100 < FEATURES[name])
        self.used: set[str] = set()
        self.dialect = self.random.choice(_DIALECTS)
        self.pool = self.random.sample(_DATA, 2)
        self.windows: list[Window] = []
        self.kinds: dict[str, str] = {}
        self.maybe: dict[str, str] = {}
        self.wanted: dict[str, list[Triple]] = {}
        self.predicates: set[str] = {"link"}
        self.made = 0
        self.in_exists = False
        self.nesting = 0
        self.written = 0

    # --- small choices ---

    def chance(self, percent: float) -> bool:
        return self.random.random() * 100 < percent

    def wants(self, feature: str, percent: float = 100) -> bool:
        if feature not in self.features or not self.chance(percent):
            return False
        self.used.add(feature)
        return True

    def pick(self, choices: Sequence[T]) -> T:
        return self.random.choice(choices)

    def fresh(self, kind: str) -> str:
        self.made += 1
        name = f"?v{self.made}"
        self.kinds[name] = kind
        return name

    def known(self, *kinds: str) -> list[str]:
        return [name for name, kind in self.kinds.items() if kind in kinds]

    def expressions(self) -> Expressions:
        return Expressions(self.random, self.kinds, self.maybe, now=self.wants("now", 60))

    @contextmanager
    def hidden(self, *, keep_as_maybe: bool = False) -> Iterator[None]:
        """Variables made inside are not visible (or only perhaps bound) behind it."""
        kinds, maybe = dict(self.kinds), dict(self.maybe)
        yield
        new = {name: kind for name, kind in {**self.maybe, **self.kinds}.items() if name not in kinds}
        self.kinds = kinds
        self.maybe = {**maybe, **new} if keep_as_maybe else maybe

    @contextmanager
    def only(self, names: set[str]) -> Iterator[None]:
        """Only these variables are in scope, as in a block."""
        kinds, maybe = self.kinds, self.maybe
        self.kinds = {name: kind for name, kind in kinds.items() if name in names}
        self.maybe = {}
        yield
        self.kinds, self.maybe = kinds, maybe

    # --- patterns ---

    def shared(self) -> str:
        nodes = self.known("node")
        return self.pick(nodes) if nodes and self.chance(92) else self.fresh("node")

    def node(self) -> str:
        if self.chance(8):
            return self.pick(NODES)
        if self.wants("blank", 15):
            self.made += 1
            return f"_:b{self.made}"
        nodes = self.known("node")
        return self.pick(nodes) if nodes and self.chance(20) else self.fresh("node")

    def pattern(self, subject: str) -> Triple:
        if self.wants("variable-predicate", 50):
            return subject, self.fresh("node"), self.fresh("mix")
        if self.chance(40):
            predicate = self.pick(LINKS) if self.chance(30) else "link"
            self.predicates.add(predicate)
            if self.wants("path", 60):
                self.predicates |= set(LINKS)
                # Paths of length 0 have constants and blank nodes for ends only in one of the two meanings
                # (`deviations`).
                ends = [*self.known("node"), self.fresh("node")]
                if subject.startswith("?"):
                    return subject, self.pick(_PATHS), self.pick(ends)
            return subject, f":{predicate}", self.node()
        predicate = self.pick(self.pool)
        self.predicates.add(predicate)
        same = self.known(predicate)
        if self.chance(10):
            return subject, f":{predicate}", self.pick(POOLS[predicate])
        return subject, f":{predicate}", self.pick(same) if same and self.chance(25) else self.fresh(predicate)

    def patterns(self, subject: str | None = None, most: int = 3) -> tuple[Triple, ...]:
        found = []
        for _ in range(self.pick([1, 1, 2, 3][: most + 1]) if self.written < _MOST_PATTERNS else 1):
            found.append(self.pattern(subject or self.shared()))
            subject = None
        self.written += len(found)
        return tuple(found)

    def block(self, subject: str | None = None, *, needed: bool = True, most: int = 3) -> Clause:
        """A window over some patterns."""
        patterns = self.patterns(subject, most)
        inner: list[Clause] = [Triples(patterns)]
        if self.dialect != "C-SPARQL" and self.wants("element-graph", 70):
            inner = self.with_graph(inner)
        names = {part for pattern in patterns for part in pattern if part.startswith("?")}
        if self.wants("filter", 15):
            with self.only(names):
                inner.append(Filter(Expression(self.expressions().condition())))
        window = self.window(patterns)
        if needed:
            self.wanted.setdefault(window.stream, []).extend(patterns)
        return Block(window.name, tuple(inner))

    def with_graph(self, inner: list[Clause]) -> list[Clause]:
        name = self.pick([":m0", ":m1", "?g", "?g", "?g"])
        if name == "?g":
            name = self.fresh("node")
        if self.chance(50):
            return [ElementGraph(name, tuple(inner))]
        return [*inner, ElementGraph(name, (Triples(self.patterns(self.shared(), 1)),))]

    # --- windows ---

    def window(self, patterns: Sequence[Triple]) -> Window:
        if self.windows and (len(self.windows) > 2 or self.chance(20)):
            plain = [window for window in self.windows if not window.partition]
            if plain:
                return self.pick(plain)
        streams = ["s0", "s1"] if self.dialect != "C-SPARQL" else [f"s{len(self.windows)}"]
        window = self.extent(f"w{len(self.windows)}", self.pick(streams), patterns)
        self.windows.append(window)
        return window

    def extent(self, name: str, stream: str, patterns: Sequence[Triple]) -> Window:
        size, count = self.pick([1000, 1500, 3000, 5000, 8000, 8000]), self.pick([1, 2, 3, 5, 8])
        step, start = self.pick([500, 1000, 2000, 3000, 7000]), self.pick([None, None, 250, -750])
        delay, few = self.pick([500, 1000, 2000, 4000]), self.pick([1, 2, 3])
        timed = self.wants("event-time", 50)
        kinds = ["range", "step", "tumbling", "count", "session", "past", "count-step", "triples", "now", "all"]
        kinds += ["triples-step", "session-step", "past-step"]
        if self.dialect == "RSP-QL":
            kinds = ["range", "step", "tumbling", "count", "session", "past", "count-step", "session-step", "past-step"]
        if self.dialect == "C-SPARQL":
            kinds = ["step", "tumbling", "triples", "session-step", "past-step"]
        by = self.partition(patterns) if self.dialect != "C-SPARQL" and self.wants("partition") else ()
        if by:
            kinds = ["count", "count-step", "session", *(["triples"] if self.dialect == "CQELS-QL" else [])]
        match self.pick(kinds):
            case "range":
                return Window(name, stream, "RANGE", size, timed=timed)
            case "step":
                return Window(name, stream, "RANGE", size, step, start=start, timed=timed)
            case "tumbling":
                return Window(name, stream, "RANGE", size, size, timed=timed)
            case "past":
                return Window(name, stream, "RANGE", size, delay=delay, timed=timed)
            case "past-step":
                return Window(name, stream, "RANGE", size, step, delay, timed=timed)
            case "session":
                return Window(name, stream, "SESSION", self.pick([500, 1000, 2000]), partition=by, timed=timed)
            case "session-step":
                return Window(name, stream, "SESSION", self.pick([500, 1000, 2000]), step, timed=timed)
            case "count":
                return Window(name, stream, "COUNT", count, partition=by, timed=timed)
            case "count-step":
                return Window(name, stream, "COUNT", count, few, partition=by, timed=timed)
            case "triples":
                size = count if by else count + len(patterns)
                return Window(name, stream, "TRIPLES", size, partition=by, timed=timed)
            case "triples-step":
                return Window(name, stream, "TRIPLES", count + len(patterns), few, timed=timed)
            case "now":
                return Window(name, stream, "NOW", timed=timed)
        return Window(name, stream, "ALL", timed=timed)

    def partition(self, patterns: Sequence[Triple]) -> tuple[str, ...]:
        """Variables of one pattern, if all patterns are plain: the number of patterns of a path is undefined."""
        plain = list(patterns) if all(p[1].startswith(":") and p[1][1:].isalnum() for p in patterns) else []
        names = [part for part in self.pick(plain) if part.startswith("?")] if plain else []
        return tuple(dict.fromkeys(self.random.sample(names, self.pick([1, 1, len(names)])))) if names else ()

    # --- the group ---

    def where(self) -> Clauses:
        parts = [self.block() for _ in range(self.pick([1, 1, 2, 2, 3]))]
        clauses = (
            ("static", self.static), ("static-graph", self.static_graph), ("subquery", self.subquery),
            ("union", self.union), ("values", self.values), ("any-window", self.any_window), ("nested", self.nested),
            ("optional", self.optional), ("bind", self.bind), ("minus", self.minus), ("exists", self.exists),
            ("optional", self.optional), ("filter", self.filter),
        )  # fmt: skip
        if len(parts) > 1:
            clauses = tuple(self.random.sample(clauses, 6))
        for feature, clause in clauses:
            if self.wants(feature, 80):
                parts.append(clause())
        return tuple(parts)

    def static(self) -> Clause:
        patterns: tuple[Triple, ...] = ((self.shared(), ":label", self.fresh("label")),)
        if self.chance(30):
            patterns = ((self.shared(), ":link", self.fresh("node")), *patterns)
        self.wanted.setdefault("static", []).extend(patterns)
        return Triples(patterns)

    def static_graph(self) -> Clause:
        name = self.pick([":g", ":h", "?g"])
        patterns = ((self.shared(), ":label", self.fresh("label")),)
        self.wanted.setdefault("named", []).extend(patterns)
        inner = Triples(patterns)
        return StaticGraph(self.fresh("node") if name == "?g" else name, (inner,))

    def subquery(self) -> Clause:
        subject = self.shared()
        with self.only({subject}):
            block = self.block(subject)
            other = [name for name in self.kinds if self.kinds[name] in ("int", "str", "label", "dec")]
        form = self.pick(["count", "distinct", "sliced", "plain"])
        if form == "count" or "blank" in self.features:
            counted = Column(self.fresh("int"), Expression(self.pick(["COUNT(*)", f"COUNT({subject})"])))
            having = (Expression("COUNT(*) > 1"),) if self.chance(30) else ()
            return Sub(Select((block,), (Column(subject), counted), grouped=(Column(subject),), having=having))
        modifier = "DISTINCT" if form == "distinct" else self.pick(["", "REDUCED"]) if form == "plain" else ""
        shown = [subject, *(name for name in other[-1:] if name != subject and f"'{name}'" in repr(block))]
        for name in shown[1:]:
            self.kinds.setdefault(name, "int")
        columns = tuple(map(Column, shown))
        if modifier == "REDUCED":
            modifier = ""
        if form != "sliced":
            return Sub(Select((block,), columns, modifier=modifier))
        keys = tuple(Key(Expression(name), self.chance(50)) for name in shown)
        return Sub(Select((block,), columns, order=keys, limit=self.pick([1, 2, 3]), offset=self.pick([None, 1])))

    def branch(self, subject: str) -> Clauses:
        with self.hidden(keep_as_maybe=True):
            found = [self.block(subject)]
            if self.chance(20):
                found.append(self.filter())
        return tuple(found)

    def union(self) -> Clause:
        subject = self.shared()
        return Union(tuple(self.branch(subject) for _ in range(self.pick([2, 2, 3]))))

    def values(self) -> Clause:
        rows = [(":a",), (":b",), (":c",), ("UNDEF",), (":d",), (":a",)]
        return Values((self.shared(),), tuple(self.random.sample(rows, self.pick([2, 3, 4]))))

    def any_window(self) -> Clause:
        if self.dialect != "RSP-QL":
            return self.filter()
        inner = Triples((self.pattern(self.shared()),))
        return AnyWindow(self.fresh("node"), (inner,))

    def nested(self) -> Clause:
        return Nested((self.block(self.shared()), self.optional()))

    def optional(self) -> Clause:
        subject = self.shared()
        with self.hidden(keep_as_maybe=True):
            inner: list[Clause] = [self.block(subject)]
            if self.chance(20) and not (self.in_exists or self.nesting):
                self.nesting += 1
                inner.append(self.optional())
                self.nesting -= 1
            if self.chance(30):
                inner.append(self.filter())
        return Optional(tuple(inner))

    def bind(self) -> Clause:
        drawn = self.expressions()
        kind, text = self.pick(
            [
                ("exact", drawn.exact()),
                ("real", drawn.real()),
                ("str", drawn.string()),
                ("bool", drawn.condition()),
                ("ratio", f"({drawn.exact(1)} / 3)"),
                ("node", f"IF({drawn.condition()}, {drawn.node()}, {drawn.node()})"),
            ]
        )
        self.made += 1
        name = f"?b{self.made}"
        # The lexical form and further arithmetic of a computed number may differ in the last digit.
        self.maybe[name] = {"exact": "value", "real": "value", "node": "computed"}.get(kind, kind)
        return Bind(Expression(text), name)

    def minus(self) -> Clause:
        subject = self.shared()
        with self.hidden():
            inner: list[Clause] = [self.block(subject, needed=False)]
            if self.chance(25):
                inner.append(self.filter_inside(inner))
        return Minus(tuple(inner))

    def filter_inside(self, clauses: Sequence[Clause]) -> Clause:
        """A filter on variables that the clauses alone bind."""
        text = repr(clauses)
        with self.only({name for name in self.kinds if f"'{name}'" in text}):
            return Filter(Expression(self.expressions().condition()))

    def filter(self) -> Clause:
        if self.wants("exists", 20) and not self.in_exists:
            return self.exists()
        drawn = self.expressions()
        condition = drawn.condition()
        return Filter(Expression(condition if self.chance(50) else f"{condition} || {drawn.condition()}"))

    def exists(self) -> Clause:
        condition = self.expressions().condition(1)
        self.in_exists = True
        subject = self.shared()
        with self.hidden():
            inner: list[Clause] = [self.block(subject, needed=False)]
            if self.chance(30):
                inner.append(self.filter())
            if self.chance(15):
                inner.append(self.optional())
        self.in_exists = False
        test = f"{self.pick(['NOT EXISTS', 'EXISTS'])} %0%"
        form = self.pick([test] * 4 + [f"{condition} || {test}", f"!({test}) && {condition}"])
        return Filter(Expression(form, (tuple(inner),)))

    # --- the head ---

    def visible(self) -> list[str]:
        return [*self.kinds, *self.maybe]

    def query(self) -> Select:
        where = self.where()
        names = self.visible()
        if self.wants("ask"):
            return Select(where, (), "ASK")
        if self.wants("construct") and names:
            return self.construct(where)
        if self.wants("aggregate"):
            return self.grouped(where)
        if not names:
            return Select(where, (Column("?none"),))
        shown = self.random.sample(names, self.random.randint(1, min(4, len(names))))
        columns = [Column(name) for name in shown]
        if self.chance(20):
            columns.append(Column("?computed", Expression(self.expressions().number())))
        modifier = "DISTINCT" if self.wants("distinct") else ""
        query = Select(where, tuple(columns), modifier=modifier)
        return self.sliced(query, shown if modifier else names)

    def construct(self, where: Clauses) -> Select:
        names = self.visible()
        nodes = self.known("node") or [":a"]
        template = []
        for _ in range(self.pick([1, 2, 3])):
            subject = self.pick([*nodes, *nodes, "_:n", self.pick(names)])
            template.append((subject, self.pick([":says", ":knows"]), self.pick([*names, "_:n", '"x"'])))
        if not any(part.startswith("?") for triple in template for part in triple):
            template.append((":a", ":says", names[0]))
        return Select(where, (), "CONSTRUCT", template=tuple(template))

    def grouped(self, where: Clauses) -> Select:
        drawn = self.expressions()
        keys = [
            Column(name) for name in self.random.sample(self.visible(), min(2, len(self.visible()))) if self.chance(45)
        ]
        keys = [key for key in keys if {**self.maybe, **self.kinds}[key.variable] not in ("value", "ratio")]
        if self.chance(12):
            keys.append(Column("?key", Expression(self.pick([drawn.string(1), drawn.condition(1), drawn.exact(1)]))))
        values = [Column(f"?n{n}", Expression(self.aggregate(drawn))) for n in range(self.pick([1, 1, 2, 3]))]
        # HAVING does not see the expressions of SELECT.
        tests = ["COUNT(*) > 1", "COUNT(*) < 3", "COUNT(*) > 1", "?n0 > 1", "!BOUND(?n0)"]
        having = (Expression(self.pick(tests)),) if self.wants("having") else ()
        shown = [Column(key.variable) for key in keys if self.chance(85)]
        modifier = "DISTINCT" if self.wants("distinct", 50) else ""
        query = Select(where, (*shown, *values), modifier=modifier, grouped=tuple(keys), having=having)
        return self.sliced(query, [column.variable for column in query.columns])

    def aggregate(self, drawn: Expressions) -> str:
        forms = ["COUNT(*)"]
        forms += [f"COUNT({name})" for name in self.visible()[-2:]]
        forms += [f"COUNT(DISTINCT {name})" for name in self.visible()[:2]]
        for name in self.known(*EXACT, "dbl"):
            forms += [f"{word}({name})" for word in ("SUM", "AVG", "MIN", "MAX", "SUM", "AVG")]
            forms += [f"SUM(DISTINCT {name})", f"AVG(DISTINCT {name})", f"({self.pick(['SUM', 'AVG'])}({name}) + 1)"]
        for name in self.known("num"):
            forms += [f"SUM({name})", f"AVG({name})"]
        if self.known(*EXACT):
            forms += [f"{self.pick(['SUM', 'AVG'])}({drawn.exact(1)})"]
        if self.known(*REAL):
            forms += [f"{self.pick(['SUM', 'AVG'])}({drawn.real(1)})"]
        for name in self.known("str", "label"):
            forms += [f"MIN({name})", f"MAX({name})", f"STRLEN(GROUP_CONCAT({name}; SEPARATOR=','))"]
            forms += [f"STRLEN(GROUP_CONCAT(DISTINCT {name}))"]
        return self.pick(forms)

    def sliced(self, query: Select, names: Sequence[str]) -> Select:
        """ORDER BY, LIMIT, OFFSET. The order of blank nodes differs between stores."""
        if "blank" in self.features or not self.wants("slice"):
            return query
        kinds = {**self.maybe, **self.kinds}
        usable = [name for name in names if kinds.get(name) not in ("value", "ratio", "real")]
        keys = [
            Key(
                Expression(f"STRLEN(STR({name}))" if kinds.get(name) == "node" and self.chance(30) else name),
                self.chance(40),
            )
            for name in self.random.sample(usable, min(len(usable), self.pick([0, 1, 1, 2, 2, 3])))
        ]
        limit, offset = self.pick([None, 1, 2, 3, 4, 0]), self.pick([None, None, 1, 2])
        return Select(
            query.where, query.columns, query.form, query.modifier, query.template, query.grouped, query.having,
            tuple(keys), limit, offset,
        )  # fmt: skip

    # --- data ---

    def case(self) -> Case:
        query = self.query()
        output = self.pick(["ISTREAM", "DSTREAM", "RSTREAM", "CHANGELOG"])
        if query.form == "CONSTRUCT" and output in ("DSTREAM", "CHANGELOG"):
            output = self.pick(["ISTREAM", "RSTREAM"])
        self.random = Random(f"data {self.seed}")
        lateness = self.pick([0, 500_000, 1_000_000, 2_500_000]) if self.wants("late") else 0
        solutions = [self.solution() for _ in range(3 if self.dialect == "CQELS-QL" else self.pick([1, 2]))]
        static = self.graph("static", solutions) if self.features & {"static", "path"} or self.chance(10) else ()
        graphs = "gh" if "static-graph" in self.used else ""
        named = tuple((EX + name, self.graph("named", solutions)) for name in graphs)
        return Case(
            self.seed, self.dialect, output, query, tuple(self.windows), self.elements(solutions), static, named, lateness,
            frozenset(self.used) | {self.dialect, output} | {window.kind for window in self.windows},
        )  # fmt: skip

    def graph(self, wanted: str, solutions: Sequence[dict[str, str]]) -> tuple[Triple, ...]:
        found = self.planted(self.wanted.get(wanted, ()), self.pick(solutions)) if self.chance(80) else []
        found += [
            (ntriples(node), f"<{EX}label>", ntriples(self.pick(POOLS["label"]))) for node in NODES if self.chance(75)
        ]
        others = ["label", "link", "other", self.pool[0]]
        found += [self.triple(self.pick(others)) for _ in range(self.pick([0, 1, 2, 3]))]
        return tuple(dict.fromkeys(found))

    def triple(self, predicate: str) -> Triple:
        object_ = self.some_node() if predicate in LINKS else ntriples(self.pick(POOLS[predicate]))
        return self.some_node(), f"<{EX}{predicate}>", object_

    def some_node(self) -> str:
        return ntriples(self.pick(BLANKS if self.wants("blank", 30) else NODES))

    def elements(self, solutions: Sequence[dict[str, str]]) -> tuple[Element, ...]:
        predicates = sorted(self.predicates)
        streams = sorted({window.stream for window in self.windows})
        timed = {window.stream for window in self.windows if window.timed}
        time = self.pick([1_700_000_000_000_000, 1_700_000_000_250_000])
        found = []
        stream, solution = self.pick(streams), self.pick(solutions)
        for _ in range(self.pick([16, 16, 16, 12, 8, 1])):
            time += 1000 * self.pick([1000, 0, 0, 500, 500, 1000, 2000, 7000])
            # Often the next stream has a match for the element before.
            goes_on = len(streams) > 1 and self.chance(60)
            stream = streams[(streams.index(stream) + 1) % len(streams)] if goes_on else self.pick(streams)
            solution = solution if goes_on else self.pick(solutions)
            planted = self.planted(self.wanted.get(stream, ()), solution)
            if planted and self.chance(80):
                triples = planted[self.random.randrange(len(planted)) :] if self.chance(30) else planted
            else:
                triples = [self.triple(self.pick(predicates)) for _ in range(self.pick([1, 2, 3, 4]))]
            if not self.wants("duplicates", 20):
                triples = list(dict.fromkeys(triples))
            came = time - 1000 * self.pick([0, 0, 500, 1000, 3000]) if "late" in self.features else time
            if stream in timed:
                triples = [*triples, (f"<{EX}a>", f"<{EX}at>", ntriples(f'"{lexical_date_time(came)}"^^xsd:dateTime'))]
            graph = EX + self.pick(["m0", "m1", "m2"]) if "element-graph" in self.features and self.chance(75) else None
            found.append(Element(came, stream, tuple(triples), graph))
        return tuple(found)

    def solution(self) -> dict[str, str]:
        """A value for every variable of the patterns that an answer needs."""
        chosen: dict[str, str] = {}
        for subject, path, object_ in (pattern for wanted in self.wanted.values() for pattern in wanted):
            chosen.setdefault(subject, self.some_node())
            predicate = path[1:] if path[1:].isalnum() else "link"
            pool = POOLS.get(predicate)
            chosen.setdefault(object_, ntriples(self.pick(pool)) if pool else self.some_node())
        return chosen

    def planted(self, wanted: Iterable[Triple], chosen: dict[str, str]) -> list[Triple]:
        found = []
        for subject, path, object_ in wanted:
            predicate = path[1:] if path.startswith(":") and path[1:].isalnum() else self.pick(LINKS)
            ends = [chosen[end] if end[0] in "?_" else ntriples(end) for end in (subject, object_)]
            if not ends[0].startswith('"'):
                found.append((ends[0], f"<{EX}{predicate}>", ends[1]))
        return found
