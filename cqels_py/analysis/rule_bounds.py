"""How much rules keep: bounds by the program alone, beside those of "Stream reasoning with DatalogMTL" (Theorems 12 and 15)."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd, log10

from cqels_py.plan.temporal_rules import FOREVER, Kind, RuleProgram, RuleRow

_MOST_DIGITS = 15
_OPERATORS = (Kind.SOMETIME, Kind.ALWAYS, Kind.SINCE_RIGHT)


@dataclass(frozen=True, slots=True)
class RuleBounds:
    """Of a program in normal form, times in microseconds; None where there is no such number.

    `greatest` (t_Π): the greatest endpoint. `shortest` (gran): the length of the shortest bounded interval, 0 with a punctual one.
    `least`: the least endpoint above zero. `unit`: the greatest number that divides all endpoints. `rules`, `predicates`, `arity`:
    the normal form's, without the additions of STATE. `kept`: the most intervals of SOMETIME, ALWAYS and FOR that a ground atom of
    each of their bodies makes it keep at once, all rules together. `punctual`: the delays of punctual intervals, which keep one
    interval for each change of the body within them. `in_paper`: there is neither SINCE nor NOT.
    """

    greatest: int
    shortest: int | None
    least: int | None
    unit: int
    rules: int
    predicates: int
    arity: int
    kept: int
    punctual: tuple[int, ...]
    in_paper: bool

    @property
    def theorem_12(self) -> int:
        """(4 ((t_Π + step) / gcd + 1)² + 1) · P, the factor of |O|^A, for step and gcd = `unit`."""
        steps = (self.greatest + self.unit) // self.unit
        return (4 * (steps + 1) ** 2 + 1) * self.predicates

    @property
    def theorem_15(self) -> str | None:
        """9 (2 (t_Π / gran + 2) · R^((t_Π + step) / K))² · P, the factor of |O|^A, for step = K, the least endpoint above zero.

        As text, since it soon has more digits than a float; None for programs with punctual intervals, or without operators.
        """
        if not self.shortest or not self.least:
            return None
        first = 9 * (2 * (self.greatest / self.shortest + 2)) ** 2 * self.predicates
        digits = log10(first) + 2 * (self.greatest + self.least) / self.least * log10(self.rules)
        return f"{round(10**digits):,}" if digits < _MOST_DIGITS else f"10^{digits:.0f}"


def rule_bounds(program: RuleProgram) -> RuleBounds | None:
    """The bounds of a program; None if it has no operator but NOT."""
    rows = [row for row in program.rules if row.kind in _OPERATORS and (row.lo, row.hi) != (0, 0)]
    if not rows:
        return None
    ends = [end for row in rows for end in _ends(row)]
    lengths = [_ends(row)[1] - _ends(row)[0] for row in rows if row.hi < FOREVER]
    answers = set(program.answers)
    shown = [each for number, each in enumerate(program.predicates) if number not in answers]
    # A join has a row for each side.
    rules = {(row.kind, row.head, 0 if row.kind is Kind.JOIN else number) for number, row in enumerate(program.rules)}
    shifts = [row for row in rows if row.kind is not Kind.SINCE_RIGHT]
    ahead = _ahead(program)
    return RuleBounds(
        greatest=max(ends),
        shortest=min(lengths, default=None),
        least=min((end for end in ends if end), default=None),
        unit=gcd(*ends) or 1,
        rules=len([rule for rule in rules if rule[1] not in answers]),
        predicates=len(shown),
        arity=max((each.arity for each in shown), default=0),
        kept=sum(_kept(row, ahead[row.body]) for row in shifts if row.lo < row.hi),
        punctual=tuple(sorted({row.lo >> 1 for row in shifts if row.lo == row.hi})),
        in_paper=not any(row.kind in (Kind.SINCE_RIGHT, Kind.NOT) for row in program.rules),
    )


def _ends(row: RuleRow) -> tuple[int, ...]:
    """The finite endpoints of an operator, in microseconds."""
    first = row.lo >> 1
    return (first,) if row.hi >= FOREVER else (first, (row.hi + 1) >> 1)


def _kept(row: RuleRow, ahead: int) -> int:
    """Intervals of the head of one ground atom of the body, which are longer than the gaps between them.

    Each of the head's intervals is at least as long as the operator's, or the body's between two of them is: so many fit before
    the time up to which it is known.
    """
    if row.hi >= FOREVER:
        return 1
    first, last = _ends(row)
    look = (first if row.kind is Kind.ALWAYS else last) + ahead
    return look // (last - first) + 2


def _ahead(program: RuleProgram) -> list[int]:
    """How many microseconds ahead of now a predicate is known: 0 for facts, and where a recursion waits for its time."""
    found = [0] * len(program.predicates)
    for _ in program.predicates:
        for row in program.rules:
            if not program.predicates[row.head].delayed:
                found[row.head] = max(found[row.head], found[row.body] + _delay(row))
    return found


def _delay(row: RuleRow) -> int:
    if row.kind not in _OPERATORS or row.hi >= FOREVER:
        return 0
    first, last = _ends(row)
    return first if row.kind is Kind.ALWAYS else last
