"""Event patterns and streams for MATCH, drawn by a random generator."""

from __future__ import annotations

from random import Random

from rdflib import RDF, Literal, URIRef

from tests.oracle.naive import Element

EX = "http://ex.org/"
SECOND = 1_000_000
START = 1_704_067_200 * SECOND
TYPES = ("A", "B", "C")
_STREAMS = ("s0", "s1")


def drawn_elements(random: Random, count: int) -> list[Element]:
    """Elements of two streams with ties of time, some of them with several values, or with a triple twice."""
    time, found = START, []
    for number in range(count):
        time += random.choice((0, 0, 1, 1, 2, 3)) * SECOND
        subject = URIRef(f"{EX}e{number}")
        triples = [(subject, RDF.type, URIRef(EX + random.choice(TYPES)))]
        triples += [(subject, URIRef(EX + "k"), URIRef(f"{EX}k{random.randrange(3)}"))]
        triples += [
            (subject, URIRef(EX + "v"), Literal(random.randrange(6))) for _ in range(random.choice((0, 1, 1, 1, 2)))
        ]
        if random.random() < 0.1:
            triples.append(triples[-1])
        stream = URIRef(EX + random.choice((_STREAMS[0], _STREAMS[0], _STREAMS[1])))
        found.append(Element(time, stream, tuple(triples)))
    return found


class MatchDrawer:
    """Draws one query. `events`: at most so many in its pattern."""

    def __init__(self, random: Random, events: int = 4) -> None:
        self._random = random
        self._left = events
        self._number = 0
        self._visible: list[str] = []
        self._repeated = False

    def text(self, *, policy: str = "", consume: bool = False, strict: bool | None = None) -> str:
        """A query that selects some of the variables."""
        random = self._random
        pattern = self._pattern(2)
        strict = random.random() < 0.2 if strict is None else strict
        words = (
            "MATCH",
            policy,
            "WITHIN",
            self._within(),
            "STRICT TIME" if strict else "",
            "CONSUME" if consume else "",
        )
        head = " ".join(word for word in words if word)
        names = sorted(set(self._visible))
        chosen = random.sample(names, random.randint(1, min(4, len(names)))) if names else []
        select = " ".join(f"?{name}" for name in chosen) or "(1 AS ?one)"
        return f"PREFIX : <{EX}>\nSELECT {select}\nWHERE {{\n  {head} {{ {pattern} }}\n}}"

    def _within(self) -> str:
        random = self._random
        duration, events = f"{random.randint(0, 8)}s", f"{random.randint(0, 7)} EVENTS"
        return random.choice((duration, events, f"{duration} {events}"))

    def _pattern(self, depth: int) -> str:
        random = self._random
        word = random.choice(("SEQ", "SEQ", "SEQ", "AND", "OR"))
        parts = [self._unit(depth)]
        while self._left > 0 and len(parts) < 3 and (len(parts) == 1 or random.random() < 0.5):
            if word == "SEQ" and random.random() < 0.3:
                parts.append(f"NOT {self._event(absent=True)}")
            parts.append(self._unit(depth))
        return f" {word} ".join(parts)

    def _unit(self, depth: int) -> str:
        random = self._random
        before = len(self._visible)
        nested = depth and self._left > 1 and random.random() < 0.4
        text = f"{{ {self._pattern(depth - 1)} }}" if nested else self._event()
        if not self._repeated and random.random() < 0.15:
            self._repeated = True
            del self._visible[before:]
            return f"{text}+"
        return text

    def _event(self, *, absent: bool = False) -> str:
        random = self._random
        self._number += 1
        self._left -= not absent
        me = self._number
        names, parts = [f"p{me}"], []
        if random.random() < 0.7:
            parts.append(f"a :{random.choice(TYPES)}")
        if random.random() < 0.6:
            key = random.choice(("?k", "?k", "?k", "?j", ":k1"))
            parts.append(f":k {key}")
            names += [key[1:]] if key[0] == "?" else []
        if random.random() < 0.6 or not parts:
            value = random.choice((f"?v{me}", f"?v{me}", "?v"))
            parts.append(f":v {value}")
            names.append(value[1:])
            if random.random() < 0.4:
                parts[-1] += f" FILTER({value} {random.choice(('<', '>=', '!='))} {random.randrange(6)})"
            if random.random() < 0.2:
                parts[-1] += f" BIND({value} + 1 AS ?w{me})"
                names.append(f"w{me}")
        time = ""
        if random.random() < 0.2:
            name = random.choice((f"t{me}", f"t{me}", "t"))
            time = f" AT ?{name}"
            names.append(name)
        if not absent:
            self._visible += names
        stream = random.choice((_STREAMS[0], _STREAMS[0], _STREAMS[1]))
        return f"EVENT ON :{stream}{time} {{ ?p{me} {' ; '.join(parts)} }}"
