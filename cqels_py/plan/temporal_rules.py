"""The physical plan of temporal rules: numbered predicates, and rules as rows that kernels interpret."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from cqels_py.plan.expressions import ExpressionProgram

FOREVER = 1 << 61
"""The upper end of an interval without end, in doubled microseconds."""
BEGINNING = -1
"""A column that is the beginning of an interval of the left side of SINCE, or the value of a test."""


def constant(number: int) -> int:
    """A column that is a constant, by the constant's number."""
    return -2 - number


class Kind(IntEnum):
    """How the head follows from a part of the body; SINCE_LEFT to PARTS_OF_LEFT belong to SINCE."""

    SOMETIME = 0
    ALWAYS = 1
    JOIN = 2
    SINCE_LEFT = 3
    SINCE_RIGHT = 4
    PARTS = 5
    PARTS_OF_LEFT = 6
    NOT = 7
    TEST = 8


@dataclass(frozen=True, slots=True)
class Predicate:
    """A predicate and its number of arguments.

    `delayed`: a recursion with a delay goes through it, so that its parts wait for their beginning. `shown`: it is of the
    program, not hidden.
    """

    name: str
    arity: int
    delayed: bool
    shown: bool


@dataclass(frozen=True, slots=True)
class Index:
    """Entries of a predicate by some of their columns."""

    predicate: int
    columns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RuleRow:
    """A rule, as seen from one atom of its body: predicates by number.

    `lo`, `hi`: the interval of its operator, doubled. `head_columns`: for each argument of the head a column of the body,
    a column of the partner plus the body's arity, or BEGINNING or a constant. `index`: the index of the partner, or None;
    `probe_columns`: the key to it. `checks`: pairs of a column and the term or column that has to be equal to it.
    `level`: the stratum of NOT, from 1, whose body has the index `body_index` of all its entries.
    """

    kind: Kind
    body: int
    head: int
    lo: int
    hi: int
    head_columns: tuple[int, ...]
    index: int | None = None
    probe_columns: tuple[int, ...] = ()
    checks: tuple[tuple[int, int], ...] = ()
    level: int = 0
    body_index: int | None = None


@dataclass(frozen=True, slots=True)
class RuleTest:
    """The expression of a number is evaluated for each entry of `predicate`, over columns by the names of variables.

    `condition`: it is a condition; else its value counts.
    """

    predicate: int
    number: int
    columns: tuple[tuple[str, int], ...]
    condition: bool


@dataclass(frozen=True, slots=True)
class RuleProgram:
    """Indexes are in order of their predicates, rules in order of their bodies.

    `answers`: predicates whose entries are reported while they hold.
    """

    predicates: tuple[Predicate, ...]
    rules: tuple[RuleRow, ...]
    indexes: tuple[Index, ...]
    constants: tuple[str, ...]
    tests: tuple[RuleTest, ...] = ()
    answers: tuple[int, ...] = ()

    @property
    def width(self) -> int:
        """The greatest number of arguments."""
        return max((predicate.arity for predicate in self.predicates), default=0)

    @property
    def has_delays(self) -> bool:
        """Is there a recursion that moves facts in time, so that a fact may be continued for ever?"""
        return any(predicate.delayed for predicate in self.predicates)


@dataclass(frozen=True, slots=True)
class PlannedRules:
    """The rules of a query. `streams`: numbers of those whose triples are facts; so are those of the static default graph.

    `program.answers` are the predicates of the STATE nodes, by their numbers; `expressions`: those of tests, by theirs.
    `facts`: given ones, as the predicate's number, the texts of terms, and the ends of the interval, doubled.
    """

    program: RuleProgram
    streams: tuple[int, ...]
    expressions: tuple[ExpressionProgram, ...]
    facts: tuple[tuple[int, tuple[str, ...], int, int], ...] = ()
