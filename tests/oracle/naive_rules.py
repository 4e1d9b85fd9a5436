"""What DatalogMTL programs derive, from the definition alone: time is cut into points and open cells between them.

All endpoints of a program and its facts are multiples of one unit, so truth is uniform at each point k and in each open
cell (k, k+1). Cell 2k is the point k and cell 2k+1 the open cell after it. The set of cells at which a ground atom holds
is an integer used as a bit mask; bit 0 is the first cell. Rules are applied to all bindings of their variables until
nothing changes.

Programs and facts are texts in MeTeoR's syntax, which is read here a second time. `Not P(X)` in a body, which MeTeoR does not
have, holds where P(X) does not; rules with it are applied when those before them derive nothing more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from math import lcm

Interval = tuple[Fraction | None, bool, Fraction | None, bool]
"""Lower end (None: without), whether it is closed, upper end, whether it is closed."""
Ground = tuple[str, tuple[str, ...]]


@dataclass(frozen=True)
class Atom:
    name: str
    terms: tuple[str, ...]


@dataclass(frozen=True)
class Unary:
    operator: str
    interval: Interval
    inner: Formula


@dataclass(frozen=True)
class Since:
    left: Formula
    interval: Interval
    right: Formula


Formula = Atom | Unary | Since


@dataclass(frozen=True)
class Rule:
    head: Atom
    spans: tuple[Interval, ...]
    body: tuple[Formula, ...]


_TOKEN = re.compile(
    r"(Boxminus|Boxplus|Diamondminus|Since|Not(?=[A-Z])|[A-Za-z]\w*?(?=Since[\[(]|\W|$)|[-+]?(?:inf|\d+(?:\.\d+)?)|[\[\](),@])"
)


@dataclass
class _Reader:
    tokens: list[str]
    at: int = 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1]

    def number(self) -> Fraction | None:
        text = self.take()
        return None if "inf" in text else Fraction(text)

    def interval(self) -> Interval:
        if self.peek() not in ("[", "("):
            point = self.number()
            return point, True, point, True
        closed = self.take() == "["
        low = high = self.number()
        if self.peek() == ",":
            self.take()
            high = self.number()
        return low, closed, high, self.take() == "]"

    def atom(self) -> Atom:
        name, terms = self.take(), []
        if self.peek() == "(":
            while self.take() != ")":
                terms.append(self.take())
        return Atom(name, tuple(terms))

    def prefixed(self) -> Formula:
        if self.peek() == "Not":
            self.take()
            return Unary("Not", (None, True, None, True), self.prefixed())
        if self.peek() in ("Boxminus", "Diamondminus", "Boxplus"):
            operator = self.take()
            return Unary(operator, self.interval(), self.prefixed())
        return self.atom()

    def literal(self) -> Formula:
        left = self.prefixed()
        if self.peek() != "Since":
            return left
        self.take()
        return Since(left, self.interval(), self.prefixed())


def read_rule(text: str) -> Rule:
    head_text, body_text = text.replace(" ", "").split(":-")
    head, spans = _Reader(_TOKEN.findall(head_text)).prefixed(), []
    while isinstance(head, Unary):
        spans.append(head.interval)
        head = head.inner
    assert isinstance(head, Atom)
    reader, body = _Reader(_TOKEN.findall(body_text)), []
    while reader.peek():
        body.append(reader.literal())
        if reader.peek() == ",":
            reader.take()
    return Rule(head, tuple(spans), tuple(body))


def read_fact(text: str) -> tuple[Ground, Interval]:
    atom, interval = text.replace(" ", "").split("@")
    read = _Reader(_TOKEN.findall(atom)).atom()
    return (read.name, read.terms), _Reader(_TOKEN.findall(interval)).interval()


def atoms_of(formula: Formula) -> Iterator[Atom]:
    if isinstance(formula, Atom):
        yield formula
    elif isinstance(formula, Unary):
        yield from atoms_of(formula.inner)
    else:
        yield from atoms_of(formula.left)
        yield from atoms_of(formula.right)


def _intervals(formula: Formula) -> Iterator[Interval]:
    if isinstance(formula, Unary):
        if formula.operator != "Not":
            yield formula.interval
        yield from _intervals(formula.inner)
    elif isinstance(formula, Since):
        yield formula.interval
        yield from _intervals(formula.left)
        yield from _intervals(formula.right)


def is_variable(term: str) -> bool:
    return term[:1].isupper()


@dataclass
class Timeline:
    """The cells from `first` (in units) to `last`.

    Without an upper end, facts reach the last cell. `endless`: some fact has no beginning. Then cell 0 stands for all
    time up to it, in which nothing changes, as all ends of facts are later.
    """

    unit: Fraction
    first: int
    last: int
    endless: bool = False
    masks: dict[tuple[Interval, int], int] = field(default_factory=dict)

    @property
    def cells(self) -> int:
        return 2 * (self.last - self.first) + 1

    def offsets(self, interval: Interval) -> tuple[int, int]:
        """The cells of an interval of distances, from 2 * lower end to 2 * upper end, less open ends."""
        low, closed_low, high, closed_high = interval
        first = -4 * self.cells if low is None else 2 * int(low / self.unit) + (not closed_low)
        last = 4 * self.cells if high is None else 2 * int(high / self.unit) - (not closed_high)
        return first, last

    def cells_of(self, interval: Interval) -> int:
        first, last = self.offsets(interval)
        return sum(1 << cell for cell in range(self.cells) if first <= cell + 2 * self.first <= last)

    def looked_at(self, interval: Interval, cell: int) -> int:
        """The cells with a time t' such that t - t' is in `interval`, for a time t of `cell`."""
        if (interval, cell) not in self.masks:
            self.masks[interval, cell] = sum(
                1 << other for other in range(self.cells) if self.near(interval, cell, other)
            )
        return self.masks[interval, cell]

    def near(self, interval: Interval, cell: int, other: int) -> bool:
        first, last = self.offsets(interval)
        distance = cell - other
        # Two times of two open cells differ by less than one unit more or less than the cells' beginnings.
        spread = 1 if cell % 2 and other % 2 else 0
        if self.endless and other == 0:
            return distance <= last
        return first <= distance + spread and distance - spread <= last

    def complete(self, interval: Interval, cell: int) -> bool:
        """Whether all times that ALWAYS looks at are at or after the first cell; before it nothing holds."""
        _, last = self.offsets(interval)
        return self.endless or cell - last - (1 if cell % 2 else 0) >= 0

    def always(self, interval: Interval, held: int) -> int:
        return sum(
            1 << cell
            for cell in range(self.cells)
            if self.complete(interval, cell) and held & self.looked_at(interval, cell) == self.looked_at(interval, cell)
        )

    def sometime(self, interval: Interval, held: int) -> int:
        return sum(1 << cell for cell in range(self.cells) if held & self.looked_at(interval, cell))

    def since(self, left: int, interval: Interval, right: int) -> int:
        return sum(1 << cell for cell in range(self.cells) if self._since_at(cell, left, interval, right))

    def _since_at(self, cell: int, left: int, interval: Interval, right: int) -> bool:
        first, _ = self.offsets(interval)
        if first <= 0 and right >> cell & 1:
            return True
        between = True
        for other in range(cell, -1, -1):
            # (t', t) touches the open cells of t and t' and all cells between, not the points t and t'.
            if other != cell:
                passed = other + 1
                if (passed != cell or cell % 2) and not left >> passed & 1:
                    between = False
            if not between:
                return False
            endless = self.endless and other == 0
            if other == cell and cell % 2 == 0 and not endless:
                continue
            open_end = other % 2 == 1 or endless
            reaches = (not open_end or left >> other & 1) and (cell % 2 == 0 or left >> cell & 1)
            if reaches and right >> other & 1 and self._earlier(interval, cell, other):
                return True
        return False

    def _earlier(self, interval: Interval, cell: int, other: int) -> bool:
        """Whether a time t' < t of `other` has t - t' in the interval."""
        if cell != other:
            return self.near(interval, cell, other)
        first, last = self.offsets(interval)
        return last >= 1 if self.endless and cell == 0 else first <= 1 <= last


class Model:
    """The least model of a program and facts up to `until`."""

    def __init__(self, program: Iterable[str], facts: Iterable[str], until: Fraction) -> None:
        self.rules = [read_rule(line) for line in program]
        given = [read_fact(line) for line in facts]
        intervals = [interval for _, interval in given]
        for rule in self.rules:
            intervals += [*rule.spans, *(each for formula in rule.body for each in _intervals(formula))]
        ends = [end for low, _, high, _ in intervals for end in (low, high) if end is not None]
        unit = Fraction(1, lcm(*(end.denominator for end in [*ends, until])))
        starts = [end for _, (low, _, high, _) in given for end in (low, high) if end is not None]
        endless = any(low is None for _, (low, *_) in given)
        first = min([*starts, until, Fraction(0)]) - unit * endless
        self.time = Timeline(unit, int(first / unit), int(until / unit), endless)
        self.held: dict[Ground, int] = {}
        for ground, interval in given:
            self.held[ground] = self.held.get(ground, 0) | self.time.cells_of(interval)
        self.constants = sorted(
            {term for _, terms in self.held for term in terms}
            | {
                t
                for r in self.rules
                for f in (r.head, *r.body)
                for a in atoms_of(f)
                for t in a.terms
                if not is_variable(t)
            }
        )
        below: list[Rule] = []
        for rule in self.rules:
            if any(isinstance(formula, Unary) and formula.operator == "Not" for formula in rule.body):
                self._close(below)
            below.append(rule)
        self._close(below)

    def _close(self, rules: list[Rule]) -> None:
        while self._apply_all(rules):
            pass

    def _apply_all(self, rules: list[Rule]) -> bool:
        changed = False
        for rule in rules:
            variables = sorted(
                {t for f in (rule.head, *rule.body) for a in atoms_of(f) for t in a.terms if is_variable(t)}
            )
            for values in product(self.constants, repeat=len(variables)):
                changed |= self._apply(rule, dict(zip(variables, values, strict=True)))
        return changed

    def _apply(self, rule: Rule, binding: dict[str, str]) -> bool:
        held = -1
        for formula in rule.body:
            held &= self._at(formula, binding)
        for span in reversed(rule.spans):
            held = self.time.sometime(span, held)
        ground = self._ground(rule.head, binding)
        before = self.held.get(ground, 0)
        self.held[ground] = before | held
        return self.held[ground] != before

    def _ground(self, atom: Atom, binding: dict[str, str]) -> Ground:
        return atom.name, tuple(binding.get(term, term) for term in atom.terms)

    def _at(self, formula: Formula, binding: dict[str, str]) -> int:
        if isinstance(formula, Atom):
            return self.held.get(self._ground(formula, binding), 0)
        if isinstance(formula, Since):
            return self.time.since(self._at(formula.left, binding), formula.interval, self._at(formula.right, binding))
        inner = self._at(formula.inner, binding)
        if formula.operator == "Not":
            return (1 << self.time.cells) - 1 & ~inner
        if formula.operator == "Boxminus":
            return self.time.always(formula.interval, inner)
        return self.time.sometime(formula.interval, inner)

    def changes(self) -> list[tuple[int, int, Ground]]:
        """When each ground atom begins (1) and ceases (-1) to hold: the first whole microsecond (times are seconds) of either. An
        atom that holds at no whole microsecond, or to the last cell, has no such change."""
        found = []
        for ground, held in self.held.items():
            points = [(self._micros(cell), bool(held >> cell & 1)) for cell in range(self.time.cells)]
            before = False
            for micros, holds in points:
                if holds != before:
                    found.append((micros, 1 if holds else -1, ground))
                before = holds
        return sorted(found)

    def _micros(self, cell: int) -> int:
        """The first whole microsecond of a cell: the point, or the next one after it."""
        place = cell + 2 * self.time.first
        return int(Fraction(place // 2) * self.time.unit * 1_000_000) + place % 2

    def lines(self) -> list[str]:
        """All that holds as maximal intervals in MeTeoR's syntax, sorted. What reaches the last cell ends there."""
        return sorted(line for ground, held in self.held.items() for line in self._lines(ground, held))

    def _lines(self, ground: Ground, held: int) -> Iterator[str]:
        name, terms = ground
        atom = f"{name}({','.join(terms)})" if terms else name
        cell = 0
        while cell < self.time.cells:
            if held >> cell & 1:
                start = cell
                while held >> (cell + 1) & 1:
                    cell += 1
                yield f"{atom}@{self._left(start)},{self._right(cell)}"
            cell += 1

    def _left(self, cell: int) -> str:
        if self.time.endless and cell == 0:
            return "(-inf"
        place = cell + 2 * self.time.first
        return f"{'(' if place % 2 else '['}{_decimal(Fraction(place // 2) * self.time.unit)}"

    def _right(self, cell: int) -> str:
        place = cell + 2 * self.time.first
        return f"{_decimal(Fraction((place + 1) // 2) * self.time.unit)}{')' if place % 2 else ']'}"


def _decimal(value: Fraction) -> str:
    text = f"{value.numerator / value.denominator:.6f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text
