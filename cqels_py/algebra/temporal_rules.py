"""Temporal rules (DatalogMTL): a head that holds where a body does, with operators that look back in time.

Times are on a dense line whose endpoints are whole microseconds. They are stored doubled: 2k is the point k, 2k + 1 the
open cell between k and k + 1. A closed or open end is thus the parity, and two intervals touch if one begins at most one
after the other's end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cqels_py.errors import Place

FOREVER = 1 << 61
"""The upper end of an interval without end; its negative is the lower end of one without beginning."""

CLASS = "a "
"""In rules over triples the predicate of `?x a <c>` is this and the class; that of `?x <p> ?y` is the property."""


@dataclass(frozen=True, slots=True)
class Interval:
    """The cells from `lo` to `hi`, in doubled microseconds."""

    lo: int
    hi: int

    @property
    def contains_zero(self) -> bool:
        return self.lo <= 0 <= self.hi


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of a rule."""

    name: str


Term = Variable | str
"""A variable, or the text of a constant."""


@dataclass(frozen=True, slots=True)
class Atom:
    """A predicate applied to terms."""

    predicate: str
    terms: tuple[Term, ...]

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Without duplicates, in the order of the terms."""
        return tuple(dict.fromkeys(term for term in self.terms if isinstance(term, Variable)))


@dataclass(frozen=True, slots=True)
class Always:
    """Holds where `inner` held at all times of an interval of the past."""

    interval: Interval
    inner: Formula


@dataclass(frozen=True, slots=True)
class Sometime:
    """Holds where `inner` held at some time of an interval of the past."""

    interval: Interval
    inner: Formula


@dataclass(frozen=True, slots=True)
class Since:
    """Holds where `right` held at some time of an interval of the past, and `left` at all times between then and now."""

    left: Formula
    interval: Interval
    right: Formula


@dataclass(frozen=True, slots=True)
class Not:
    """Holds where no values of the variables that only it has make all of `atoms` hold."""

    atoms: tuple[Atom, ...]


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on the values of variables: that of a number, in a list that whoever made the rule keeps."""

    number: int
    variables: tuple[Variable, ...]


@dataclass(frozen=True, slots=True)
class Computed:
    """`variable` is the value of an expression: that of a number, as for Condition."""

    number: int
    variables: tuple[Variable, ...]
    variable: Variable


@dataclass(frozen=True, slots=True)
class Conjunction:
    """All of the parts hold. The values of `Computed` are there before conditions are tested; each of both and each NOT has
    only variables that the other parts bind."""

    parts: tuple[Formula, ...]


Formula = Atom | Always | Sometime | Since | Not | Condition | Computed | Conjunction


@dataclass(frozen=True, slots=True)
class Rule:
    """`head` holds at all times t + d with d in the sum of `spans` if all of `body` holds at t."""

    head: Atom
    spans: tuple[Interval, ...]
    body: tuple[Formula, ...]
    place: Place


def parts_of(formula: Formula) -> tuple[Formula, ...]:
    """The parts of a conjunction, or the formula alone."""
    return formula.parts if isinstance(formula, Conjunction) else (formula,)


def atoms_of(formula: Formula) -> Iterator[Atom]:
    """All atoms, those of NOT too, in the order of the text."""
    match formula:
        case Atom():
            yield formula
        case Always(_, inner) | Sometime(_, inner):
            yield from atoms_of(inner)
        case Since(left, _, right):
            yield from atoms_of(left)
            yield from atoms_of(right)
        case Conjunction(parts) | Not(parts):
            for part in parts:
                yield from atoms_of(part)
        case _:
            pass


def all_parts(parts: Sequence[Formula]) -> list[Formula]:
    """The parts of a body and, behind each, those inside of it."""
    found: list[Formula] = []
    for part in parts:
        found.append(part)
        match part:
            case Conjunction(inner):
                found += all_parts(inner)
            case Always(_, formula) | Sometime(_, formula):
                found += all_parts((formula,))
            case Since(left, _, right):
                found += all_parts((left, right))
            case _:
                pass
    return found


def variables_of(formula: Formula) -> tuple[Variable, ...]:
    """Without duplicates, in the order of the text."""
    match formula:
        case Atom():
            return formula.variables
        case Condition(_, variables):
            return variables
        case Computed(_, variables, variable):
            return tuple(dict.fromkeys((*variables, variable)))
        case Since(left, _, right):
            parts: tuple[Formula, ...] = (left, right)
        case Not(atoms):
            parts = atoms
        case Conjunction(parts):
            pass
        case Always(_, inner) | Sometime(_, inner):
            parts = (inner,)
    return tuple(dict.fromkeys(variable for part in parts for variable in variables_of(part)))


def bound_by(formula: Formula) -> tuple[Variable, ...]:
    """The variables that have a value wherever the formula holds.

    Those of the left side of SINCE are not among them: at distance zero nothing is asked of it.
    """
    match formula:
        case Since(_, _, right):
            return bound_by(right)
        case Not() | Condition():
            return ()
        case Computed(_, _, variable):
            return (variable,)
        case Conjunction(parts):
            return tuple(dict.fromkeys(variable for part in parts for variable in bound_by(part)))
        case Always(_, inner) | Sometime(_, inner):
            return bound_by(inner)
        case Atom():
            return formula.variables


def exported_by(formula: Formula) -> tuple[Variable, ...]:
    """The variables whose values matter outside of the formula: all but those that only NOT has, and those that only the left
    side of a SINCE has that may be at distance zero."""
    match formula:
        case Since(left, interval, right):
            inner = exported_by(right)
            return inner if interval.contains_zero else tuple(dict.fromkeys((*exported_by(left), *inner)))
        case Not() | Condition():
            return ()
        case Conjunction(parts):
            return tuple(dict.fromkeys(variable for part in parts for variable in exported_by(part)))
        case Always(_, inner) | Sometime(_, inner):
            return exported_by(inner)
        case _:
            return bound_by(formula)
