"""Temporal rules → their physical plan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from cqels_py.algebra.temporal_rules import Atom, Rule, Term, Variable
from cqels_py.plan.temporal_rules import BEGINNING, Index, Kind, Predicate, RuleProgram, RuleRow, RuleTest, constant
from cqels_py.planner.temporal_rules.normal_form import (
    HIDDEN,
    Join,
    NormalRule,
    Shift,
    SinceParts,
    Tested,
    Without,
    normal_form,
)
from cqels_py.planner.temporal_rules.recursion import Key, delayed_predicates, key_of, strata

_NUMBERS = tuple[int, tuple[int, ...]]


def compile_rules(rules: Iterable[Rule], answers: Sequence[Atom] = ()) -> RuleProgram:
    """The plan of a program; predicates that only facts have are not in it. `answers`: heads that are reported while they hold.

    There is no cycle through NOT."""
    normal = normal_form(rules)
    return _Compiler(delayed_predicates(normal), strata(normal)).compile(normal, answers)


@dataclass(slots=True)
class _Compiler:
    delayed: frozenset[Key]
    strata: dict[Key, int]
    predicates: dict[Key, int] = field(default_factory=dict)
    constants: dict[str, int] = field(default_factory=dict)
    indexes: dict[_NUMBERS, int] = field(default_factory=dict)
    rows: list[RuleRow] = field(default_factory=list)
    tests: dict[int, RuleTest] = field(default_factory=dict)

    def compile(self, rules: Sequence[NormalRule], answers: Sequence[Atom]) -> RuleProgram:
        for rule in rules:
            if isinstance(rule, Shift):
                self.shift(rule)
            elif isinstance(rule, Join):
                self.join(rule)
            elif isinstance(rule, SinceParts):
                self.since(rule)
            elif isinstance(rule, Tested):
                self.test(rule)
            else:
                self.negation(rule)
        answer_predicates = tuple(self.number(atom) for atom in answers)
        predicates = tuple(
            Predicate(name, arity, (name, arity) in self.delayed, not name.startswith(HIDDEN))
            for name, arity in self.predicates
        )
        in_order = sorted(self.indexes)
        new_number = {self.indexes[key]: number for number, key in enumerate(in_order)}
        rows = sorted((_with_index(row, new_number) for row in self.rows), key=lambda row: row.body)
        indexes = tuple(Index(predicate, columns) for predicate, columns in in_order)
        return RuleProgram(
            predicates,
            tuple(rows),
            indexes,
            tuple(self.constants),
            tuple(self.tests[number] for number in sorted(self.tests)),
            answer_predicates,
        )

    def shift(self, rule: Shift) -> None:
        first = _columns(rule.body.terms)
        checks = tuple(
            (column, first[term] if isinstance(term, Variable) else self.constant(term))
            for column, term in enumerate(rule.body.terms)
            if first.get(term) != column
        )
        kind = Kind.ALWAYS if rule.always else Kind.SOMETIME
        interval = rule.interval
        columns = self.mapped(rule.head.terms, first)
        self.rows.append(
            RuleRow(
                kind, self.number(rule.body), self.number(rule.head), interval.lo, interval.hi, columns, checks=checks
            )
        )

    def join(self, rule: Join) -> None:
        for body, partner in ((rule.left, rule.right), (rule.right, rule.left)):
            self.pair(Kind.JOIN, rule.head, body, partner)

    def since(self, rule: SinceParts) -> None:
        ends = rule.interval.lo, rule.interval.hi
        self.pair(Kind.PARTS, rule.head, rule.parts, rule.left)
        self.pair(Kind.PARTS_OF_LEFT, rule.head, rule.left, rule.parts)
        self.pair(Kind.SINCE_LEFT, rule.parts, rule.left, rule.right, *ends)
        self.pair(Kind.SINCE_RIGHT, rule.parts, rule.right, rule.left, *ends)

    def pair(self, kind: Kind, head: Atom, body: Atom, partner: Atom, lo: int = 0, hi: int = 0) -> None:
        """A rule with a partner that is found by the terms that both have.

        The beginning of an interval of the left side is a term of the parts, and known for the left side itself.
        """
        body_columns, partner_columns = _columns(body.terms), _columns(partner.terms)
        beginning = partner.terms[-1] if kind is Kind.PARTS_OF_LEFT else None
        shared = [term for term in partner_columns if term in body_columns or term == beginning]
        index = (self.number(partner), tuple(partner_columns[term] for term in shared))
        number = self.index(*index)
        probe = tuple(body_columns.get(term, BEGINNING) for term in shared)
        known = {term: len(body.terms) + column for term, column in partner_columns.items()} | body_columns
        if kind in (Kind.SINCE_LEFT, Kind.SINCE_RIGHT):
            known[head.terms[-1]] = BEGINNING
        columns = self.mapped(head.terms, known)
        self.rows.append(RuleRow(kind, self.number(body), self.number(head), lo, hi, columns, number, probe))

    def test(self, rule: Tested) -> None:
        known = _columns(rule.body.terms)
        body = self.number(rule.body)
        self.tests[body] = RuleTest(
            body, rule.number, tuple((v.name, known[v]) for v in rule.variables), rule.variable is None
        )
        if rule.variable is not None:
            known[rule.variable] = BEGINNING
        self.rows.append(RuleRow(Kind.TEST, body, self.number(rule.head), 0, 0, self.mapped(rule.head.terms, known)))

    def negation(self, rule: Without) -> None:
        known = _columns(rule.body.terms)
        body, absent = self.number(rule.body), self.number(rule.absent)
        columns = tuple(range(len(rule.absent.terms)))
        self.rows.append(
            RuleRow(
                Kind.NOT,
                body,
                self.number(rule.head),
                0,
                0,
                self.mapped(rule.head.terms, known),
                self.index(absent, columns),
                tuple(known[term] for term in rule.absent.terms),
                level=self.strata[key_of(rule.absent)] + 1,
                body_index=self.index(body, ()),
            )
        )

    def index(self, predicate: int, columns: tuple[int, ...]) -> int:
        return self.indexes.setdefault((predicate, columns), len(self.indexes))

    def number(self, atom: Atom) -> int:
        return self.predicates.setdefault((atom.predicate, len(atom.terms)), len(self.predicates))

    def constant(self, text: str) -> int:
        return constant(self.constants.setdefault(text, len(self.constants)))

    def mapped(self, terms: Iterable[Term], known: dict[Term, int]) -> tuple[int, ...]:
        return tuple(known[term] if isinstance(term, Variable) else self.constant(term) for term in terms)


def _columns(terms: Sequence[Term]) -> dict[Term, int]:
    """The first column of each variable."""
    found: dict[Term, int] = {}
    for column, term in enumerate(terms):
        if isinstance(term, Variable):
            found.setdefault(term, column)
    return found


def _with_index(row: RuleRow, numbers: dict[int, int]) -> RuleRow:
    def renumbered(index: int | None) -> int | None:
        return None if index is None else numbers[index]

    return replace(row, index=renumbered(row.index), body_index=renumbered(row.body_index))
