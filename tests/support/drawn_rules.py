"""Random programs of temporal rules and facts, in MeTeoR's syntax."""

from __future__ import annotations

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
