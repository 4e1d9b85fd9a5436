"""Queries that mix clauses which the other generators draw apart, over terms of all kinds, drawn by a random generator.

MATCH beside windows, OPTIONAL and subqueries; subqueries with LIMIT inside of MINUS; VALUES with UNDEF; HAVING over any aggregate;
paths, EXISTS, PARTITION BY and STEP in one query; expressions that fail, over ill-formed literals, languages, time zones, long
numbers and characters beyond the basic plane. Expressions are drawn without regard to types.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

from rdflib import XSD, Literal, URIRef

from tests.oracle.naive import Element, Static
from tests.oracle.naive_algebra import Triple
from tests.oracle.naive_values import Term, typed

T = TypeVar("T")
EX = "http://ex.org/"
_PREFIXES = f"PREFIX : <{EX}>\nPREFIX xsd: <{XSD}>\n"
_NODES = (":a", ":b", ":c")
_WHOLE = ("0", "1", "2", "3")
_NUMBERS = (*_WHOLE, "1.5", "0.5", "2.0", "1e0", "2.5e0", '"2"^^xsd:int', '"1.5"^^xsd:float', '"-1"^^xsd:integer')
_TEXTS = ("'x'", "'y'", "'xy'", "'x'@en", "'X'", "'😀b'", "''")
_ANY = (
    *_NUMBERS, *_TEXTS, *_NODES, "true", "'1'", "'x'@fr", "'x'@en-GB", "'😀'@en", "12345678901234567890", "0.000000000000000001",
    '"01"^^xsd:integer', '"300"^^xsd:byte', '"x"^^xsd:integer', '"NaN"^^xsd:double', '"-INF"^^xsd:float', '"1"^^xsd:boolean',
    '"2024-01-01T00:00:00Z"^^xsd:dateTime', '"2024-01-01T01:00:00+01:00"^^xsd:dateTime', '"2024-01-01T00:00:00"^^xsd:dateTime',
    '"2024-02-30T00:00:00Z"^^xsd:dateTime', '"2024-01-01"^^xsd:date', '"PT60M"^^xsd:dayTimeDuration', '"P1M"^^xsd:duration',
    '"q"^^:odd',
)  # fmt: skip
_VALUES = {"n": _WHOLE, "m": _NUMBERS, "t": _TEXTS, "v": _ANY}
"""The values of each property; `:l` and `:k` link nodes."""
_EXTENTS = (
    "RANGE 3s", "RANGE 10s", "RANGE 2500ms", "RANGE 4s STEP 2s", "RANGE 1s STEP 2s", "RANGE 3s TUMBLING", "COUNT 3",
    "COUNT 3 STEP 2", "TRIPLES 4", "TRIPLES 3 STEP 2", "NOW", "ALL", "SESSION 2s", "SESSION 2s STEP 1s", "FROM NOW-4s TO NOW-1s",
    "FROM NOW-3s TO NOW-1s STEP 2s",
)  # fmt: skip
_PARTITIONED = ("COUNT 2", "TRIPLES 2", "SESSION 2s", "COUNT 2 STEP 3", "SESSION 3s STEP 2s")
_PATHS = (
    ":l+",
    ":l*",
    ":l?",
    ":l/:l",
    "^:l",
    ":l|:k",
    "!:l",
    "!(:l|^:k)",
    "(:l/:l)+",
    "(:l|^:k)*",
    "(:l/:k?)+",
    ":l*/:n",
    "^:l/:v",
)
_UNARY = (
    "STR", "LANG", "DATATYPE", "STRLEN", "UCASE", "ABS", "CEIL", "ROUND", "ENCODE_FOR_URI", "MD5", "YEAR", "SECONDS", "TZ",
    "TIMEZONE", "xsd:integer", "xsd:decimal", "xsd:double", "xsd:string", "xsd:boolean", "xsd:dateTime", "xsd:float", "xsd:date",
    "IRI", "isNumeric", "-", "!",
)  # fmt: skip
_OF_TWO = (
    "CONCAT({}, {})",
    "STRBEFORE({}, {})",
    "STRAFTER({}, {})",
    "CONTAINS({}, {})",
    "COALESCE({}, {})",
    "SUBSTR({}, {})",
)
_OF_ONE = ("REPLACE({}, '[xb]', '-$0-')", "SUBSTR({}, 0, 2)", "STRLANG(STR({}), 'en')", "STRDT(STR({}), xsd:integer)")
_AGGREGATES = ("COUNT", "SUM", "AVG", "MIN", "MAX", "SAMPLE", "GROUP_CONCAT")


class MixtureDrawer:
    """Draws one query. `most`: about so many groups below the outermost."""

    def __init__(self, random: Random, most: int = 5) -> None:
        self._random = random
        self._left = most
        self._made = 0
        self._within_exists = False
        self._properties = random.sample(sorted(_VALUES), random.randint(1, 3))

    def text(self) -> str:
        """The query; what it reports is drawn, too."""
        body, visible = self._group(0, inside=False)
        if "STREAM" not in body and "MATCH" not in body:
            block, more = self._block()
            body, visible = f"{body} {block}", visible | more
        head, tail = self._select(visible)
        # ISTREAM of MATCH delivers each match, which is no difference of answers.
        output = self._pick(("", "", "", "RSTREAM") if "MATCH" in body else ("", "", "", "RSTREAM", "DSTREAM"))
        register = f"REGISTER {output} :out AS\n" if output else ""
        return f"{_PREFIXES}{register}{head}\nWHERE {{\n  {body}\n}}\n{tail}"

    def _pick(self, choices: Sequence[T]) -> T:
        return self._random.choice(choices)

    def _chance(self, percent: int) -> bool:
        return self._random.random() * 100 < percent

    def _fresh(self) -> str:
        self._made += 1
        return f"?x{self._made}"

    # --- patterns ---

    def _group(self, depth: int, *, inside: bool, outer: frozenset[str] = frozenset()) -> tuple[str, frozenset[str]]:
        """A group, in a window's block if `inside`, and its variables. `outer`: variables that it may share."""
        self._left -= 1
        first, visible = self._leaf(inside)
        parts = [first]
        for _ in range(self._pick((0, 0, 1, 1, 2)) if depth < 3 else 0):
            part, more = self._part(depth, inside, outer | visible)
            parts.append(part)
            visible |= more
        if self._chance(12):
            parts.append(f"FILTER({self._condition(visible | (outer if self._within_exists else frozenset()))})")
        if self._chance(20):
            name = self._fresh()
            parts.append(f"BIND({self._expression(visible)} AS {name})")
            visible |= {name}
        return " ".join(parts), visible

    def _part(self, depth: int, inside: bool, visible: frozenset[str]) -> tuple[str, frozenset[str]]:
        kind = (
            self._pick(("leaf", "optional", "optional", "union", "minus", "exists", "subquery", "values"))
            if self._left > 0
            else "leaf"
        )
        if kind == "leaf":
            return self._leaf(inside)
        if kind == "values":
            return self._inline_values()
        if kind == "exists":
            return self._exists(depth, inside, visible), frozenset()
        one, names = self._group(depth + 1, inside=inside, outer=visible)
        if kind == "optional":
            return f"OPTIONAL {{ {one} }}", names
        if kind == "minus":
            return f"MINUS {{ {one} }}", frozenset()
        if kind == "union":
            other, more = self._group(depth + 1, inside=inside, outer=visible)
            return f"{{ {one} }} UNION {{ {other} }}", names | more
        head, tail = self._select(names)
        return f"{{ {head} WHERE {{ {one} }} {tail} }}", names

    def _exists(self, depth: int, inside: bool, visible: frozenset[str]) -> str:
        before, self._within_exists = self._within_exists, True
        one, _ = self._group(max(depth + 1, 2), inside=inside, outer=visible)
        self._within_exists = before
        return f"FILTER {self._pick(('EXISTS', 'NOT EXISTS'))} {{ {one} }}"

    def _leaf(self, inside: bool) -> tuple[str, frozenset[str]]:
        if inside or self._chance(12):
            return self._triples()
        return self._match() if self._chance(15) and not self._within_exists else self._block()

    def _block(self) -> tuple[str, frozenset[str]]:
        if self._chance(30) and self._left > 0:
            body, names = self._group(2, inside=True)
            return f"STREAM :{self._stream()} [{self._pick(_EXTENTS)}] {{ {body} }}", names
        body, names = self._triples()
        extent = self._pick(_EXTENTS)
        if self._chance(12) and "?s :" in body:
            extent = f"{self._pick(_PARTITIONED)} PARTITION BY ?s"
        return f"STREAM :{self._stream()} [{extent}] {{ {body} }}", names

    def _stream(self) -> str:
        return self._pick(("s1", "s1", "s1", "s2"))

    def _triples(self) -> tuple[str, frozenset[str]]:
        found = [self._triple() for _ in range(self._pick((1, 1, 1, 2)))]
        return " ".join(found), frozenset(word for each in found for word in each.split() if word.startswith("?"))

    def _triple(self) -> str:
        subject = self._pick(("?s", "?s", "?s", "?o", ":a"))
        if self._chance(30):
            path = self._pick(_PATHS) if self._chance(30) else self._pick((":l", ":l", ":k"))
            return f"{subject} {path} {self._pick(('?o', '?o', '?s', '?u', ':a'))} ."
        name = self._pick(self._properties)
        return (
            f"{subject} :{name} {self._pick(('?' + name, '?' + name, '?' + name, '?w', self._pick(_VALUES[name])))} ."
        )

    def _match(self) -> tuple[str, frozenset[str]]:
        events = []
        for _ in range(2):
            name = self._pick(self._properties)
            condition = self._pick(("", "", f"FILTER(?{name} != 1)"))
            events.append(f"EVENT ON :{self._stream()} {{ ?s :{name} ?{name} {condition} }}")
        between = self._pick(("SEQ", "SEQ", "AND", "OR"))
        within = self._pick(("2s", "4s", "3 EVENTS", "5s 2 EVENTS"))
        policy = self._pick(("", "", "LATEST ", "EARLIEST "))
        return f"MATCH {policy}WITHIN {within} {{ {events[0]} {between} {events[1]} }}", frozenset({"?s"})

    def _inline_values(self) -> tuple[str, frozenset[str]]:
        names = self._random.sample(("s", "o", "n", "v", "t"), self._random.randint(1, 2))
        rows = [
            " ".join("UNDEF" if self._chance(20) else self._pick(_VALUES.get(name, _NODES)) for name in names)
            for _ in range(self._random.randint(1, 3))
        ]
        variables = [f"?{name}" for name in names]
        return f"VALUES ({' '.join(variables)}) {{ {' '.join(f'({row})' for row in rows)} }}", frozenset(variables)

    # --- expressions ---

    def _variable(self, visible: frozenset[str]) -> str:
        return self._pick(sorted(visible)) if visible else "1"

    def _expression(self, visible: frozenset[str], depth: int = 2) -> str:
        if depth == 0 or self._chance(35):
            return self._variable(visible) if self._chance(70) else self._pick(_ANY)
        one, other = self._expression(visible, depth - 1), self._expression(visible, depth - 1)
        return self._pick(
            (
                f"({one} {self._pick('+-*/')} {other})",
                f"{self._pick(_UNARY)}({one})",
                self._pick(_OF_TWO).format(one, other),
                self._pick(_OF_ONE).format(one),
                f"IF(BOUND({self._variable(visible) if visible else '?x'}), {one}, {other})",
            )
        )

    def _condition(self, visible: frozenset[str]) -> str:
        one, other, third = (self._expression(visible, 1) for _ in range(3))
        bound = f"BOUND({self._variable(visible)})" if visible else "true"
        return self._pick(
            (
                f"{one} {self._pick(('=', '!=', '!=', '<', '>='))} {other}",
                f"{one} {self._pick(('IN', 'NOT IN'))} ({other}, {third})",
                f"{bound} || {one} > {other}",
                f"!{bound}",
                f"STRSTARTS({one}, {other}) || sameTerm({other}, {third})",
                f"LANGMATCHES(LANG({one}), '*') || REGEX(STR({other}), '^[x1]')",
            )
        )

    # --- selections ---

    def _select(self, visible: frozenset[str]) -> tuple[str, str]:
        """The text before WHERE, and that behind the group. `visible` stay names of columns or of nothing."""
        names = sorted(visible)
        if not names:
            return "SELECT (COUNT(*) AS ?all)", ""
        if self._chance(40):
            return self._grouped(visible)
        columns = self._random.sample(names, self._random.randint(1, min(4, len(names))))
        words = self._pick(("SELECT", "SELECT", "SELECT DISTINCT", "SELECT REDUCED"))
        return f"{words} {' '.join(columns)}", self._slice(columns)

    def _grouped(self, visible: frozenset[str]) -> tuple[str, str]:
        keys = self._random.sample(sorted(visible), min(len(visible), self._pick((0, 1, 1, 2))))
        made = [self._fresh() for _ in range(self._random.randint(1, 2))]
        columns = [*keys, *(f"({self._aggregate(visible)} AS {name})" for name in made)]
        tail = f"GROUP BY {' '.join(keys)} " if keys else ""
        if self._chance(25):
            tail += f"HAVING({self._aggregate(visible)} {self._pick(('>', '<=', '!='))} {self._pick(('0', '1', chr(39) * 2))}) "
        return f"SELECT {' '.join(columns)}", tail + self._slice([*keys, *made])

    def _aggregate(self, visible: frozenset[str]) -> str:
        name = self._pick(_AGGREGATES)
        argument = self._variable(visible) if self._chance(70) else self._expression(visible, 1)
        separator = "; SEPARATOR=','" if name == "GROUP_CONCAT" and self._chance(50) else ""
        return f"{name}({self._pick(('', '', 'DISTINCT '))}{argument}{separator})"

    def _slice(self, columns: Sequence[str]) -> str:
        if self._chance(70):
            return ""
        key = self._pick(columns)
        order = f"ORDER BY {self._pick((key, f'DESC({key})', f'DESC(STRLEN(STR({key})))'))}"
        return f"{order} LIMIT {self._random.randint(0, 3)} {self._pick(('', '', 'OFFSET 1'))}"


def term_of(text: str) -> Term:
    """A term from its spelling in a query."""
    if text.startswith(":"):
        return URIRef(EX + text[1:])
    if text.startswith("'"):
        content, _, language = text[1:].rpartition("'")
        return Literal(content, lang=language[1:] or None)
    if text.startswith('"'):
        content, _, name = text[1:].partition('"^^')
        return typed(content, URIRef(XSD + name[4:]) if name.startswith("xsd:") else URIRef(EX + name[1:]))
    if text == "true":
        return typed(text, XSD.boolean)
    return typed(text, XSD.double if "e" in text else XSD.decimal if "." in text else XSD.integer)


def drawn_elements(random: Random, text: str, count: int) -> list[Element]:
    """Elements of the query's streams, with ties of time, of few values of its properties; some have a triple twice."""
    values = {name: random.sample(each, min(len(each), random.choice((2, 3, 3, 8)))) for name, each in _VALUES.items()}
    streams = [name for name in ("s1", "s2") if f":{name}" in text]
    time, found = random.choice((0, 250_000, 1_700_000_000_000_000)), []
    for _ in range(count):
        time += 1000 * random.choice((0, 0, 500, 500, 1000, 1000, 2000))
        triples = [_drawn_triple(random, text, values) for _ in range(random.randint(1, 5))]
        triples = list(dict.fromkeys(triples)) if random.random() < 0.85 else triples
        found.append(Element(time, URIRef(EX + random.choice(streams)), tuple(triples)))
    return found


def drawn_static(random: Random, text: str) -> Static:
    """Triples of the query's properties."""
    return Static(list(dict.fromkeys(_drawn_triple(random, text, _VALUES) for _ in range(6))))


def _drawn_triple(random: Random, text: str, values: dict[str, Sequence[str]] | dict[str, list[str]]) -> Triple:
    name = random.choice([name for name in "nmvtlk" if f":{name}" in text] or ["l"])
    return term_of(random.choice(_NODES)), URIRef(EX + name), term_of(random.choice(values.get(name, _NODES)))
