"""Random programs of temporal rules and facts, in MeTeoR's syntax."""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random

CONSTANTS = ("a", "b", "c")
VARIABLES = ("X", "Y", "Z")
UNTIL = 9


@dataclass(frozen=True)
class DrawnProgram:
    rules: tuple[str, ...]
    facts: tuple[str, ...]
    until: int


@dataclass
class _Drawing:
    random: Random
    widths: dict[str, int]

    def interval(self, *, unbounded: bool = False) -> str:
        low = self.random.choice((0, 0, 1, 1, 2, 3))
        if self.random.random() < 0.2:
            return self.random.choice((f"[{low},{low}]", f"[{low}]"))
        opening = self.random.choice("[[(")
        if unbounded and self.random.random() < 0.15:
            return f"{opening}{low},inf{self.random.choice('])')}"
        return f"{opening}{low},{low + self.random.choice((1, 1, 2, 3))}{self.random.choice('])]')}"

    def atom(self, name: str, terms: tuple[str, ...]) -> str:
        width = self.widths[name]
        chosen = [self.random.choice(terms) for _ in range(width)]
        return f"{name}({','.join(chosen)})" if chosen else name

    def atom_of(self, name: str, terms: tuple[str, ...]) -> str:
        return f"{name}({','.join(terms)})"

    def predicate(self) -> str:
        return self.random.choice(sorted(self.widths))

    def body_atom(self) -> str:
        terms = VARIABLES if self.random.random() < 0.85 else (*VARIABLES, *CONSTANTS[:2])
        return self.atom(self.predicate(), terms)

    def prefixed(self) -> str:
        prefixes = ""
        for _ in range(self.random.choice((0, 0, 1, 1, 1, 2))):
            operator = self.random.choice(("Boxminus", "Diamondminus"))
            prefixes += operator + self.interval(unbounded=operator == "Diamondminus")
        return prefixes + self.body_atom()

    def literal(self) -> str:
        if self.random.random() < 0.25:
            return f"{self.prefixed()}Since{self.interval(unbounded=True)}{self.prefixed()}"
        return self.prefixed()

    def rule(self) -> str:
        body = [self.literal() for _ in range(self.random.choice((1, 1, 2, 2, 3)))]
        bound = tuple(v for v in VARIABLES if any(v in each.rpartition("Since")[2] for each in body))
        spans = "".join(f"Boxplus{self.interval(unbounded=True)}" for _ in range(self.random.choice((0, 0, 0, 1, 2))))
        head = self.atom(self.random.choice("PQR"), (*bound, *bound, *bound, "a"))
        return f"{spans}{head}:-{','.join(body)}"

    def fact(self) -> str:
        atom = self.atom(self.random.choice("ABBAP"), CONSTANTS)
        low = self.random.randrange(2 * UNTIL) / 2
        kind = self.random.random()
        if kind < 0.6:
            return f"{atom}@{self.random.choice((f'{low:g}', f'[{low:g},{low:g}]'))}"
        if kind < 0.9:
            high = low + self.random.choice((0.5, 1, 2))
            return f"{atom}@{self.random.choice('[(')}{low:g},{high:g}{self.random.choice('])')}"
        return f"{atom}@{f'({low:g},inf)' if kind < 0.96 else f'(-inf,{low:g}]'}"


def draw_program(seed: int) -> DrawnProgram:
    """The program of a seed: recursion, all operators and brackets, joins of widths 0 to 3, facts at points, over intervals
    and without end."""
    random = Random(seed)
    widths = (1, 1, 1, 2) if seed % 3 else (0, 1, 2, 2, 3)
    drawing = _Drawing(random, {name: random.choice(widths) for name in "ABPQR"})
    rules = tuple(drawing.rule() for _ in range(random.choice((1, 2, 3, 4, 5))))
    facts = tuple(drawing.fact() for _ in range(random.choice((3, 6, 10, 15))))
    return DrawnProgram(rules, facts, UNTIL)


def draw_with_negation(seed: int) -> DrawnProgram:
    """As `draw_program`, with predicates of one or two arguments, facts at points, and rules with NOT in up to two strata above."""
    random = Random(seed)
    drawing = _Drawing(random, {name: random.choice((1, 1, 1, 2)) for name in "ABPQR"})
    rules = [drawing.rule() for _ in range(random.choice((1, 2, 3)))]
    variables = ("X", "Y")
    for name in ("N", "O")[: random.choice((0, 1, 1, 2))]:
        absent = "N" if name == "O" and random.random() < 0.7 else random.choice("PQRAB")
        positive = random.choice([p for p in "ABPQR" if drawing.widths[p] == drawing.widths[absent]])
        terms = variables[: drawing.widths[absent]]
        body = [
            (f"Diamondminus{drawing.interval()}" if random.random() < 0.5 else "") + drawing.atom_of(positive, terms),
            f"Not{drawing.atom_of(absent, terms)}",
        ]
        span = f"Boxplus{drawing.interval()}" if random.random() < 0.4 else ""
        drawing.widths[name] = len(terms)
        rules.append(f"{span}{drawing.atom_of(name, terms)}:-{','.join(body)}")
        if random.random() < 0.5:
            rules.append(
                f"{drawing.atom_of(name, terms)}:-Diamondminus{drawing.interval()}{drawing.atom_of(name, terms)}"
            )
    facts = []
    for _ in range(random.choice((4, 8, 14))):
        time = random.randrange(2 * UNTIL) / 2
        facts.append(f"{drawing.atom(random.choice('ABBAP'), CONSTANTS)}@[{time:g},{time:g}]")
    return DrawnProgram(tuple(rules), tuple(facts), UNTIL)


@dataclass
class _KeyedDrawing(_Drawing):
    """Atoms in rules have X in the column of their predicate in `keys`, or without one no X."""

    keys: dict[str, int | None]

    def atom(self, name: str, terms: tuple[str, ...]) -> str:
        if "X" not in terms:
            return super().atom(name, terms)
        others, key = tuple(term for term in terms if term != "X"), self.keys[name]
        return self.atom_of(
            name, tuple("X" if c == key else self.random.choice(others) for c in range(self.widths[name]))
        )

    def literal(self) -> str:
        found = super().literal()
        return found if "X" in found.rpartition("Since")[2] else f"{found},{self.atom('A', VARIABLES)}"

    def rule(self) -> str:
        body = [self.literal() for _ in range(self.random.choice((1, 1, 2)))]
        bound = tuple(v for v in VARIABLES if any(v in each.rpartition("Since")[2] for each in body))
        spans = "".join(f"Boxplus{self.interval(unbounded=True)}" for _ in range(self.random.choice((0, 1, 1, 2))))
        return f"{spans}{self.atom(self.random.choice('PQR'), (*bound, *bound, 'a'))}:-{','.join(body)}"

    def negation(self, name: str) -> str:
        """A rule with NOT, whose head is of a predicate that no other rule is about."""
        absent = self.random.choice("PQRAB")
        terms = [self.random.choice("XYZ") if c != self.keys[absent] else "X" for c in range(self.widths[absent])]
        body = [self.prefixed(), f"Diamondminus{self.interval()}{self.atom('A', VARIABLES)}"]
        bound = {v for v in VARIABLES if any(v in each for each in body)}
        body += [self.atom_of("B", (v,) if self.widths["B"] == 1 else (v, v)) for v in terms if v not in bound]
        return f"{name}(X):-{','.join(body)},Not{self.atom_of(absent, tuple(terms))}"


def draw_keyed(seed: int) -> DrawnProgram:
    """As `draw_with_negation`, of rules whose atoms have one variable in common; with even seeds B has it not."""
    random = Random(seed)
    widths = {name: random.choice((1, 1, 1, 2)) for name in "ABPQR"}
    keys: dict[str, int | None] = {name: random.randrange(width) for name, width in widths.items()}
    if seed % 2 == 0:
        keys["B"] = None
    drawing = _KeyedDrawing(random, widths, keys)
    rules = [drawing.rule() for _ in range(random.choice((1, 2, 3)))]
    rules += [drawing.negation("N") for _ in range(random.choice((0, 1)))]
    facts = []
    for _ in range(random.choice((8, 14, 20))):
        time = random.randrange(2 * UNTIL) / 2
        facts.append(f"{drawing.atom(random.choice('AABBP'), CONSTANTS)}@[{time:g},{time:g}]")
    return DrawnProgram(tuple(rules), tuple(facts), UNTIL)


_INTERVAL = re.compile(r"(Boxplus|Boxminus|Diamondminus|Since)([\[(])([\d.]+)(?:,([\d.]+|inf))?([\])])")
_OPERATORS = {"Boxplus": "FOR", "Boxminus": "ALWAYS", "Diamondminus": "SOMETIME", "Since": "SINCE"}


def as_rules(program: DrawnProgram, stream: str = ":s") -> str:
    """A program without atoms of other than one or two arguments as a RULES block."""
    return f"RULES ON {stream} {{ {' '.join(map(_rule_text, program.rules))} }}"


def _rule_text(rule: str) -> str:
    head, body = rule.split(":-")
    spans = " ".join(_interval_text(match) for match in _INTERVAL.finditer(head))
    literals = re.findall(r"(?:(?:Boxminus|Diamondminus|Since)[\[(][^\])]*[\])]|Not|[A-Z]\([^)]*\))+", body)
    return f"RULE {{ {triple_text(_INTERVAL.sub('', head))} }} {spans} WHERE {{ {' '.join(map(_literal_text, literals))} }}"


def _literal_text(literal: str) -> str:
    since = re.search(r"Since[\[(][^\])]*[\])]", literal)
    if since:
        left, right = literal[: since.start()], literal[since.end() :]
        interval = _INTERVAL.fullmatch(since[0])
        assert interval is not None
        return f"{{ {_literal_text(left)} }} {_interval_text(interval)} {{ {_literal_text(right)} }}"
    if literal.startswith("Not"):
        return f"NOT {{ {triple_text(literal.removeprefix('Not'))} }}"
    match = _INTERVAL.match(literal)
    if match:
        return f"{_interval_text(match)} {{ {_literal_text(literal[match.end() :])} }}"
    return triple_text(literal) + " ."


def _interval_text(match: re.Match[str]) -> str:
    operator, opening, low, high, closing = match.groups()
    if high is None:
        return f"{_OPERATORS[operator]} [{low}s]"
    end = "FOREVER" if high == "inf" else f"{high}s"
    return f"{_OPERATORS[operator]} {opening}{low}s, {end}{closing}"


def triple_text(atom: str) -> str:
    """`P(X,a)` as `?x :P :a`, `P(X)` as `?x a :P`."""
    name, _, rest = atom.partition("(")
    terms = [f"?{term}" if term.isupper() else f":{term}" for term in rest.removesuffix(")").split(",")]
    return f"{terms[0]} a :{name}" if len(terms) == 1 else f"{terms[0]} :{name} {terms[1]}"
