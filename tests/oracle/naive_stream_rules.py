"""The stream reasoning algorithms of "Stream reasoning with DatalogMTL" (Wałęga, Kaminski, Wang, Cuenca Grau), literally.

Algorithm 1 keeps a window W of the facts of the last t_Π, and a set H of ground atoms that held before it. At each instant it
applies the rules (Algorithm 2) in the area between the last instant and this one, and forgets (Algorithm 3). Algorithm 6 does the
same with Algorithms 4 and 5: beside W there is a set S of facts that hold "so often" in an interval that no gap is as long as the
shortest operator, and W forgets short intervals. It is for programs without punctual intervals.

Intervals are pairs of cells in a unit that divides all times: cell 2k is the point k, cell 2k+1 the open interval after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from math import lcm

from tests.oracle.naive_rules import Atom, Formula, Ground, Rule, Unary, is_variable, read_fact, read_rule

Cells = tuple[int, int]
ENDLESS = 1 << 40
"""The upper end of an interval without one."""


@dataclass(frozen=True)
class NormalRule:
    """A rule of Definition 5: `operator` (Boxminus or Diamondminus) of one atom, or without one the conjunction of some."""

    head: Atom
    body: tuple[Atom, ...]
    operator: str = ""
    distance: Cells = (0, 0)


def normal_rules(rules: Iterable[Rule], unit: Fraction) -> list[NormalRule]:
    """The normal form; names of new predicates end with "'"."""
    found: list[NormalRule] = []

    def fresh(formula: Formula | Atom, terms: Iterable[str]) -> Atom:
        return Atom(f"N{len(found)}'", tuple(dict.fromkeys(term for term in terms if is_variable(term))))

    def atom(formula: Formula) -> Atom:
        if isinstance(formula, Atom):
            return formula
        assert isinstance(formula, Unary), "the paper has no SINCE"
        inner = atom(formula.inner)
        head = fresh(formula, inner.terms)
        found.append(NormalRule(head, (inner,), formula.operator, cells(formula.interval, unit)))
        return head

    for rule in rules:
        body = tuple(atom(formula) for formula in rule.body)
        head = rule.head
        for span in rule.spans:
            inner = fresh(head, head.terms)
            # Box-plus in a head is box-minus's inverse: the head held at some time of the span before.
            found.append(NormalRule(head, (inner,), "Diamondminus", cells(span, unit)))
            head = inner
        found.append(NormalRule(head, body))
    return found


def cells(interval: tuple[Fraction | None, bool, Fraction | None, bool], unit: Fraction) -> Cells:
    low, closed_low, high, closed_high = interval
    assert low is not None
    first = 2 * int(low / unit) + (not closed_low)
    return first, ENDLESS if high is None else 2 * int(high / unit) - (not closed_high)


def endpoints(distance: Cells) -> list[int]:
    """The finite ends of an interval, in units."""
    return [(distance[0]) >> 1, *([] if distance[1] >= ENDLESS else [(distance[1] + 1) >> 1])]


def shifted(held: Cells, distance: Cells) -> Cells | None:
    """+ of the paper: the ends are added; an end is closed if both are."""
    low = (held[0] >> 1) + (distance[0] >> 1)
    closed_low = not (held[0] & 1 or distance[0] & 1)
    if distance[1] >= ENDLESS:
        return 2 * low + (not closed_low), ENDLESS
    high = ((held[1] + 1) >> 1) + ((distance[1] + 1) >> 1)
    closed_high = not (held[1] & 1 or distance[1] & 1)
    return 2 * low + (not closed_low), 2 * high - (not closed_high)


def narrowed(held: Cells, distance: Cells) -> Cells | None:
    """⊕ of the paper: the times at which all of the distance before was in the interval."""
    low = (held[0] >> 1) + ((distance[1] + 1) >> 1)
    high = ((held[1] + 1) >> 1) + (distance[0] >> 1)
    closed_low = not held[0] & 1 or bool(distance[1] & 1)
    closed_high = not held[1] & 1 or bool(distance[0] & 1)
    found = 2 * low + (not closed_low), 2 * high - (not closed_high)
    return found if found[0] <= found[1] else None


def common(one: Cells, other: Cells) -> Cells | None:
    found = max(one[0], other[0]), min(one[1], other[1])
    return found if found[0] <= found[1] else None


@dataclass
class Facts:
    """Ground atoms with disjoint maximal intervals, in order. Gaps shorter than `gap` cells are closed (0: none)."""

    gap: int = 0
    held: dict[Ground, list[Cells]] = field(default_factory=dict)

    def add(self, ground: Ground, interval: Cells) -> Cells | None:
        """The interval that it has become part of; None if it was known."""
        known = self.held.setdefault(ground, [])
        if any(low <= interval[0] and interval[1] <= high for low, high in known):
            return None
        low, high = interval
        apart = []
        for other in known:
            # Touching intervals differ by one cell; a gap between two points k and k + n has the length n, 2n cells apart.
            if other[0] - high <= self._reach(high, other[0]) and low - other[1] <= self._reach(other[1], low):
                low, high = min(low, other[0]), max(high, other[1])
            else:
                apart.append(other)
        self.held[ground] = sorted([*apart, (low, high)])
        return low, high

    def _reach(self, end: int, start: int) -> int:
        """How many cells apart two intervals may be and still are one: the gap's length is between their endpoints."""
        length = (start >> 1) - ((end + 1) >> 1)
        return start - end if 0 <= length < self.gap else 1

    def cut(self, first: int, last: int) -> set[Ground]:
        """Keep only the cells from `first` to `last`; the atoms that began earlier."""
        earlier = {ground for ground, known in self.held.items() if known and known[0][0] < first}
        for ground, known in list(self.held.items()):
            kept = [part for part in (common(each, (first, last)) for each in known) if part is not None]
            self.held[ground] = kept
            if not kept:
                del self.held[ground]
        return earlier

    @property
    def count(self) -> int:
        return sum(map(len, self.held.values()))


@dataclass
class StreamReasoner:
    """Algorithm 1, and with `often` Algorithm 6. `now` and times are in units; `log`: the facts that Algorithm 2 adds."""

    rules: list[NormalRule]
    constants: list[str]
    now: int
    often: bool = False
    window: Facts = field(default_factory=Facts)
    history: set[Ground] = field(default_factory=set)
    log: list[tuple[Ground, Cells]] = field(default_factory=list)
    peak: int = 0

    def __post_init__(self) -> None:
        distances = [rule.distance for rule in self.rules if rule.operator]
        self.reach = max((end for each in distances for end in endpoints(each)), default=0)
        lengths = [ends[1] - ends[0] for ends in map(endpoints, distances) if len(ends) == 2]
        self.least = min(lengths, default=1)
        assert not self.often or self.least > 0, "Algorithm 6 is for programs without punctual intervals"
        self.frequent = Facts(gap=self.least if self.often else 0)

    def step(self, to: int, facts: Iterable[Ground] = ()) -> dict[Ground, list[Cells]]:
        """One turn of the loop: what holds in the area (now, to]."""
        area = 2 * self.now + 1, 2 * to
        for ground in facts:
            self._add(ground, (2 * to, 2 * to))
        while sum(self._apply(rule, area) for rule in self.rules):
            pass
        self.peak = max(self.peak, self.window.count + (self.frequent.count if self.often else 0))
        output = {
            ground: [part for part in (common(each, area) for each in known) if part is not None]
            for ground, known in self.window.held.items()
        }
        self.now = to
        self._forget()
        return output

    def _add(self, ground: Ground, interval: Cells) -> bool:
        whole = self.window.add(ground, interval)
        if whole is None:
            return False
        self.log.append((ground, interval))
        if whole != interval:
            self.log.append((ground, whole))
        if self.often:
            self.frequent.add(ground, whole)
        return True

    def _apply(self, rule: NormalRule, area: Cells) -> bool:
        """Algorithms 2 and 4: whether something is new."""
        changed = False
        variables = sorted({term for atom in rule.body for term in atom.terms if is_variable(term)})
        for values in product(self.constants, repeat=len(variables)):
            binding = dict(zip(variables, values, strict=True))
            body = [(atom.name, tuple(binding.get(term, term) for term in atom.terms)) for atom in rule.body]
            head = rule.head.name, tuple(binding.get(term, term) for term in rule.head.terms)
            for interval in list(self._consequences(rule, body, area)):
                changed |= self._add(head, interval)
        return changed

    def _consequences(self, rule: NormalRule, body: list[Ground], area: Cells) -> Iterator[Cells]:
        if not rule.operator:
            parts: list[Cells] = [area]
            for ground in body:
                known = self.window.held.get(ground, ())
                parts = [each for part in parts for other in known if (each := common(part, other)) is not None]
            yield from parts
            return
        (ground,) = body
        looks_often = self.often and rule.operator == "Diamondminus"
        for interval in (self.frequent if looks_often else self.window).held.get(ground, ()):
            moved = (shifted if rule.operator == "Diamondminus" else narrowed)(interval, rule.distance)
            inside = None if moved is None else common(moved, area)
            if inside is not None:
                yield inside
        if rule.operator == "Diamondminus" and rule.distance[1] >= ENDLESS and ground in self.history:
            yield area

    def _forget(self) -> None:
        """Algorithms 3 and 5."""
        first, last = 2 * (self.now - self.reach), 2 * self.now
        self.history |= self.window.cut(first, last)
        if not self.often:
            return
        self.history |= self.frequent.cut(first, last)
        for ground, known in list(self.window.held.items()):
            self.window.held[ground] = [
                each for each in known if each[1] >= last or ((each[1] + 1) >> 1) - (each[0] >> 1) >= self.least
            ]


def reasoner(
    program: Iterable[str], facts: Iterable[str], until: int, step: Fraction, *, often: bool
) -> tuple[StreamReasoner, list[str]]:
    """What Algorithm 1 or 6 derives up to `until`, from facts at points, as lines like those of `Model.lines`."""
    rules = [read_rule(line) for line in program]
    given = [(ground, interval[0]) for ground, interval in map(read_fact, facts)]
    assert all(time is not None for _, time in given)
    unit = Fraction(1, lcm(step.denominator, *(time.denominator for _, time in given if time is not None), 2))
    normal = normal_rules(rules, unit)
    terms = {term for _, terms in (ground for ground, _ in given) for term in terms}
    terms |= {t for rule in normal for atom in (rule.head, *rule.body) for t in atom.terms if not is_variable(t)}
    stream: dict[int, list[Ground]] = {}
    for ground, time in given:
        assert time is not None
        stream.setdefault(int(time / unit), []).append(ground)
    length, end = int(step / unit), int(until / unit)
    algorithm = StreamReasoner(normal, sorted(terms), -length, often=often)
    found = Facts()
    while algorithm.now < end:
        upcoming = min([time for time in stream if time > algorithm.now], default=end)
        to = min(upcoming, algorithm.now + length, end)
        for ground, intervals in algorithm.step(to, stream.get(to, ())).items():
            for interval in intervals:
                found.add(ground, interval)
    return algorithm, sorted(
        _line(g, each, unit) for g, known in found.held.items() if "'" not in g[0] for each in known
    )


def _line(ground: Ground, interval: Cells, unit: Fraction) -> str:
    name, terms = ground
    low, high = float((interval[0] >> 1) * unit), float(((interval[1] + 1) >> 1) * unit)
    opening, closing = "(" if interval[0] & 1 else "[", ")" if interval[1] & 1 else "]"
    atom = f"{name}({','.join(terms)})".replace("()", "")
    return f"{atom}@{opening}{low:g},{high:g}{closing}"
