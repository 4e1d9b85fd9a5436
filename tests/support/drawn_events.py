"""EVENT blocks without windows and streams for them, drawn by a random generator."""

from __future__ import annotations

from random import Random

from rdflib import XSD, Literal, URIRef

from tests.oracle.naive import Element, Static

EX = "http://ex.org/"
SECOND = 1_000_000
START = 1_704_067_200 * SECOND
STREAMS = ("s", "t", "u", "v")
_PREFIXES = f"PREFIX : <{EX}>\nPREFIX xsd: <{XSD}>\n"
AGGREGATES = (
    *("COUNT(*)", "COUNT(?n0)", "SUM(?n0)", "AVG(?n0)", "MIN(?n0)", "MAX(?n1)", "SUM(?n1)", "COUNT(?name)"),
    *("COUNT(DISTINCT ?n0)", "SUM(DISTINCT ?n1)", "SUM(?n0 * 2)", "SAMPLE(?n0)", "GROUP_CONCAT(?n0)"),
)
KEYS = ("k0", "k1", "k2")
STATIC = Static(
    [
        (URIRef(f"{EX}k0"), URIRef(f"{EX}name"), Literal("zero")),
        (URIRef(f"{EX}k1"), URIRef(f"{EX}name"), Literal("one")),
        (URIRef(f"{EX}k1"), URIRef(f"{EX}name"), Literal("uno")),
        (URIRef(f"{EX}k0"), URIRef(f"{EX}limit"), Literal(2)),
        (URIRef(f"{EX}k1"), URIRef(f"{EX}limit"), Literal(4)),
    ]
)


def drawn_elements(random: Random, count: int, *, wide: bool = False) -> list[Element]:
    """Elements of the streams with a number and a key each, with ties of time; some numbers are decimals, or no numbers."""
    time, found = START, []
    for number in range(count):
        time += random.choice((0, 0, 1, 1, 2)) * SECOND
        subject = URIRef(f"{EX}e{number}")
        value = Literal(random.randrange(-1, 7) if not wide else random.randrange(1_000_000))
        if random.random() < 0.15:
            value = random.choice(
                (Literal("2.5", datatype=XSD.decimal), Literal("03", datatype=XSD.integer), Literal("x"))
            )
        triples = [(subject, URIRef(f"{EX}n"), value), (subject, URIRef(f"{EX}k"), URIRef(EX + random.choice(KEYS)))]
        found.append(Element(time, URIRef(EX + random.choice(STREAMS)), tuple(triples)))
    return found


class EventDrawer:
    """Draws one query with up to so many blocks. `all_rows`: its blocks say [ALL]."""

    def __init__(self, random: Random, most: int = 4, *, all_rows: bool = True) -> None:
        self._random = random
        self._most = most
        self._all = " [ALL]" if all_rows else ""

    def aggregates(self) -> str:
        """A query with aggregates over groups, or over all rows."""
        random = self._random
        body = self.text().partition("WHERE")[2]
        keys = " ".join(name for name in ("?n1", "?k", "?k1", "?name") if f"{name} " in body and random.random() < 0.4)
        chosen = random.sample(AGGREGATES, random.randint(1, 3))
        columns = " ".join(f"({each} AS ?a{number})" for number, each in enumerate(chosen))
        having = " HAVING (COUNT(*) > 1)" if random.random() < 0.1 else ""
        return f"{_PREFIXES}SELECT {keys} {columns} WHERE{body}{f' GROUP BY {keys}' if keys else ''}{having}"

    def text(self) -> str:
        """A query that selects some of the variables."""
        random = self._random
        if random.random() < 0.1:
            pattern = f"{{ {self._group(2)} }} UNION {{ {self._group(2)} }}"
        else:
            pattern = self._group(random.randint(1, self._most))
        names = [f"?n{i}" for i in range(4)] + ["?k", "?k1", "?name", "?limit"]
        selected = [name for name in names if f"{name} " in pattern and random.random() < 0.4]
        distinct = "DISTINCT " if random.random() < 0.3 else ""
        if not selected:
            return f"{_PREFIXES}SELECT {distinct}(1 AS ?one) WHERE {{ {pattern} }}"
        return f"{_PREFIXES}SELECT {distinct}{' '.join(selected)} WHERE {{ {pattern} }}"

    def _group(self, count: int) -> str:
        random = self._random
        parts = []
        key_bound = random.choice(("", " FILTER(?k IN (:k0, :k1))", " FILTER(?k = :k1)"))
        for i in range(count):
            inside = f"?e{i} :n ?n{i} ; :k {random.choice(('?k', f'?k{i}', ':k0', '[]'))} "
            tests = []
            if random.random() < 0.75:
                tests.append(f"DATATYPE(?n{i}) = xsd:integer")
            if random.random() < 0.6:
                tests += [f"?n{i} > {random.randint(-1, 2)}", f"?n{i} < {random.randint(3, 6)}"]
            elif random.random() < 0.3:
                tests.append(f"?n{i} {random.choice(('>', '<', '<=', '>=', '=', '!='))} {random.choice((2, 3, 2.5))}")
            if "?k " in inside and random.random() < 0.5:
                inside += key_bound
            test = f" FILTER({' && '.join(tests)})" if tests else ""
            stream = STREAMS[i] if random.random() < 0.9 else STREAMS[0]
            parts.append(f"EVENT ON :{stream}{self._all} AT ?i{i} {{ {inside}{test} }}")
        if "?k " in "".join(parts):
            if random.random() < 0.3:
                parts.append(random.choice(("VALUES ?k { :k0 :k1 :k1 }", "VALUES ?k { :k1 }")))
            if random.random() < 0.3:
                parts.append("?k :name ?name . ")
            if random.random() < 0.3:
                parts.append("?k :limit ?limit . ")
                if random.random() < 0.5:
                    parts.append(f"FILTER(?n0 {random.choice(('>', '<='))} ?limit )")
        for i in range(count):
            for j in range(i):
                if random.random() < 0.6:
                    times = random.choice((">", ">", ">", "<", "=", ">=", "!="))
                    parts.append(f"FILTER(?i{j} {times} ?i{i})")
                if random.random() < 0.3:
                    parts.append(f"FILTER(?n{j} {random.choice(('<', '>', '<=', '>=', '=', '!='))} ?n{i})")
        if random.random() < 0.15:
            instant = f'"2024-01-01T00:00:0{random.randint(1, 9)}Z"^^xsd:dateTime'
            parts.append(f"FILTER(?i{random.randrange(count)} {random.choice(('<', '<=', '>', '='))} {instant})")
        return " ".join(parts)
