"""Rules in normal form (Definition 5 of "Stream reasoning with DatalogMTL"): one operator a rule, over plain atoms.

Hidden predicates stand for the operand of an operator, and for the joins of a body's first atoms; their names begin with
HIDDEN, which no predicate of a program does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from cqels_py.algebra.temporal_rules import (
    Always,
    Atom,
    Computed,
    Condition,
    Conjunction,
    Formula,
    Interval,
    Not,
    Rule,
    Since,
    Sometime,
    Variable,
    exported_by,
    variables_of,
)

HIDDEN = "@"
NOW = Interval(0, 0)
_BEGINNING = Variable("@beginning")


@dataclass(frozen=True, slots=True)
class Shift:
    """`head` from the intervals of one atom: all times at which it held always, or at some time, in `interval`."""

    head: Atom
    body: Atom
    interval: Interval
    always: bool = False


@dataclass(frozen=True, slots=True)
class Join:
    """`head` where both atoms hold. Their terms are different variables."""

    head: Atom
    left: Atom
    right: Atom


@dataclass(frozen=True, slots=True)
class SinceParts:
    """`parts`: for each maximal interval J of `left`, the conclusions from the right side's times in J's closure; the
    last term of `parts` is the beginning of J. `head` holds at the times of `parts` in J's closure.

    The terms of `left` and `right` are different variables.
    """

    head: Atom
    parts: Atom
    left: Atom
    right: Atom
    interval: Interval


@dataclass(frozen=True, slots=True)
class Tested:
    """`head` where `body` holds and a condition is true; or with `variable`, the value of an expression, where it has one."""

    head: Atom
    body: Atom
    number: int
    variables: tuple[Variable, ...]
    variable: Variable | None = None


@dataclass(frozen=True, slots=True)
class Without:
    """`head` where `body` holds and `absent` does not, whose terms are different variables of the body."""

    head: Atom
    body: Atom
    absent: Atom


NormalRule = Shift | Join | SinceParts | Tested | Without


@dataclass(slots=True)
class _Normaliser:
    found: list[NormalRule] = field(default_factory=list)
    hidden: int = 0

    def fresh(self, variables: Iterable[Variable]) -> Atom:
        self.hidden += 1
        return Atom(f"{HIDDEN}{self.hidden}", tuple(variables))

    def rule(self, rule: Rule) -> None:
        target = rule.head
        for span in rule.spans:
            inner = self.fresh(target.variables)
            self.found.append(Shift(target, inner, span))
            target = inner
        self.conjunction(target, rule.body)

    def conjunction(self, target: Atom, body: tuple[Formula, ...]) -> None:
        """`target` where all of the body holds."""
        for parts in _without_zero_distance(body):
            joined = [part for part in parts if not isinstance(part, Not | Condition | Computed)]
            tests: list[Not | Condition | Computed] = [p for p in parts if isinstance(p, Computed)]
            tests += [part for part in parts if isinstance(part, Condition)]
            tests += [part for part in parts if isinstance(part, Not)]
            if not tests:
                self.joined(target, joined)
                continue
            bound = dict.fromkeys(variable for part in joined for variable in exported_by(part))
            body_atom = self.fresh(bound)
            self.joined(body_atom, joined)
            for place, each in enumerate(tests, 1):
                if isinstance(each, Computed):
                    bound[each.variable] = None
                head = target if place == len(tests) else self.fresh(bound)
                self.test(head, body_atom, each)
                body_atom = head

    def test(self, head: Atom, body: Atom, test: Not | Condition | Computed) -> None:
        if isinstance(test, Not):
            shared = [variable for variable in variables_of(test) if variable in body.variables]
            absent = self.fresh(shared)
            self.joined(absent, list(test.atoms))
            self.found.append(Without(head, body, absent))
        else:
            # An entry has one value: those of each test are entries of their own.
            own = self.fresh(body.variables)
            self.found.append(Shift(own, body, NOW))
            variable = test.variable if isinstance(test, Computed) else None
            self.found.append(Tested(head, own, test.number, test.variables, variable))

    def joined(self, target: Atom, body: Sequence[Formula]) -> None:
        if len(body) == 1:
            self.derive(target, body[0])
            return
        atoms = [self.plain(self.atom(formula)) for formula in body]
        joined = atoms.pop(0)
        while atoms:
            known = set(joined.variables)
            # Atoms that share a variable come first, so that products are the last resort.
            position = next((i for i, atom in enumerate(atoms) if known & set(atom.variables)), 0)
            following = atoms.pop(position)
            needed = {*target.variables, *(variable for atom in atoms for variable in atom.variables)}
            variables = dict.fromkeys((*joined.variables, *following.variables))
            head = self.fresh(variable for variable in variables if variable in needed) if atoms else target
            self.found.append(Join(head, joined, following))
            joined = head

    def derive(self, target: Atom, formula: Formula) -> None:
        if isinstance(formula, Atom):
            self.found.append(Shift(target, formula, NOW))
        elif isinstance(formula, Since):
            self.since(target, formula)
        elif isinstance(formula, Conjunction):
            self.conjunction(target, formula.parts)
        else:
            assert isinstance(formula, Always | Sometime)
            inner = self.atom(formula.inner)
            self.found.append(Shift(target, inner, formula.interval, isinstance(formula, Always)))

    def since(self, target: Atom, formula: Since) -> None:
        left, right = self.plain(self.atom(formula.left)), self.plain(self.atom(formula.right))
        variables = dict.fromkeys((*left.variables, *right.variables))
        if formula.interval.contains_zero:
            # Then the left side has no variables of its own.
            self.found.append(Shift(target, right, NOW))
        parts = self.fresh((*variables, _BEGINNING))
        self.found.append(SinceParts(target, parts, left, right, formula.interval))

    def atom(self, formula: Formula) -> Atom:
        """An atom that holds where the formula does."""
        if isinstance(formula, Atom):
            return formula
        atom = self.fresh(exported_by(formula))
        self.conjunction(atom, (formula,))
        return atom

    def plain(self, atom: Atom) -> Atom:
        """An atom whose terms are different variables."""
        if len(atom.variables) == len(atom.terms):
            return atom
        selected = self.fresh(atom.variables)
        self.found.append(Shift(selected, atom, NOW))
        return selected


def _without_zero_distance(body: tuple[Formula, ...]) -> list[tuple[Formula, ...]]:
    """At distance zero SINCE asks nothing of its left side, whose variables then have any value: such bodies become two,
    one with the right side alone."""
    for position, formula in enumerate(body):
        if isinstance(formula, Since) and formula.interval.contains_zero:
            if set(variables_of(formula.left)) <= set(variables_of(formula.right)):
                continue
            before, after = body[:position], body[position + 1 :]
            bodies = _without_zero_distance((*before, formula.right, *after))
            if formula.interval.hi > 0:
                later = Since(formula.left, Interval(1, formula.interval.hi), formula.right)
                bodies += _without_zero_distance((*before, later, *after))
            return bodies
    return [body]


def normal_form(rules: Iterable[Rule]) -> tuple[NormalRule, ...]:
    """Rules that derive the same facts for all predicates that are not hidden.

    Their number is linear in the size of the program, but for SINCE over variables that only its left side has, which
    doubles a rule. SOMETIME, FOR and selections of constants become `Shift`s.
    """
    normaliser = _Normaliser()
    for rule in rules:
        normaliser.rule(rule)
    return tuple(normaliser.found)
