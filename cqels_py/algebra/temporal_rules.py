"""Temporal rules (DatalogMTL): a head that holds where a body does, with operators that look back in time.

Times are on a dense line whose endpoints are whole microseconds. They are stored doubled: 2k is the point k, 2k + 1 the
open cell between k and k + 1. A closed or open end is thus the parity, and two intervals touch if one begins at most one
after the other's end.
"""

from __future__ import annotations

from dataclasses import dataclass

from cqels_py.errors import Place

FOREVER = 1 << 61
"""The upper end of an interval without end; its negative is the lower end of one without beginning."""


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


Formula = Atom | Always | Sometime | Since


@dataclass(frozen=True, slots=True)
class Rule:
    """`head` holds at all times t + d with d in the sum of `spans` if all of `body` holds at t."""

    head: Atom
    spans: tuple[Interval, ...]
    body: tuple[Formula, ...]
    place: Place


def variables_of(formula: Formula) -> tuple[Variable, ...]:
    """Without duplicates, in the order of the text."""
    if isinstance(formula, Atom):
        return formula.variables
    if isinstance(formula, Since):
        return tuple(dict.fromkeys((*variables_of(formula.left), *variables_of(formula.right))))
    return variables_of(formula.inner)
