"""Programs of temporal rules over files of facts: the facts that hold, with maximal intervals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from cqels_py.algebra.temporal_rules import FOREVER, Atom, Interval
from cqels_py.errors import UsageError
from cqels_py.parser.meteor import read_meteor_fact, read_meteor_rules
from cqels_py.plan.temporal_rules import RuleProgram
from cqels_py.planner.temporal_rules.compile import compile_rules
from cqels_py.state.temporal_rules import RuleState, RuleTables

_MICROS = 1_000_000
_MORE = 4
"""So many times as far as all rules together look is a recursion followed beyond the facts."""


@dataclass(slots=True)
class _Facts:
    """Facts as rows of numbers."""

    predicates: dict[tuple[str, int], int]
    constants: dict[str, int]
    rows: list[tuple[int, tuple[int, ...], Interval]] = field(default_factory=list)

    def add(self, atom: Atom, interval: Interval) -> None:
        predicate = self.predicates.setdefault((atom.predicate, len(atom.terms)), len(self.predicates))
        ids = tuple(self.constants.setdefault(str(term), len(self.constants)) for term in atom.terms)
        self.rows.append((predicate, ids, interval))

    @property
    def last_end(self) -> int:
        """The greatest endpoint, doubled."""
        ends = [end + (end & 1) * sign for _, _, i in self.rows for end, sign in ((i.lo, -1), (i.hi, 1))]
        return max((end for end in ends if -FOREVER < end < FOREVER), default=0)

    def table(self, width: int) -> npt.NDArray[np.int64]:
        """Rows (predicate, ids, lo, hi) in order of their beginnings."""
        rows = [(p, *ids, *(0,) * (width - len(ids)), i.lo, i.hi) for p, ids, i in self.rows]
        table = np.array(rows, np.int64).reshape(len(rows), width + 3)
        return np.ascontiguousarray(table[np.argsort(table[:, -2], kind="stable")])


def derived_facts(
    program: str,
    facts: Iterable[str],
    until: int | None = None,
    *,
    program_name: str | None = None,
    facts_name: str | None = None,
) -> list[str]:
    """The given and derived facts in MeTeoR's syntax, as maximal intervals, sorted as text.

    `facts`: lines. `until`: microseconds; intervals end there that go on. By default it is the last endpoint of the
    facts, and an interval that never ends is written with `inf`. Raises QueryError for the program and DataError for the
    facts, with line and column; UsageError if only `until` can tell where to stop: a recursion may go on for ever.
    """
    plan = compile_rules(read_meteor_rules(program, program_name))
    names = {(predicate.name, predicate.arity): number for number, predicate in enumerate(plan.predicates)}
    given = _Facts(names, {text: number for number, text in enumerate(plan.constants)})
    for number, line in enumerate(facts, 1):
        if line.strip():
            given.add(*read_meteor_fact(line, number, facts_name))
    end = given.last_end if until is None else 2 * until
    return sorted(_lines(plan, given, end, unending=until is None))


def _lines(plan: RuleProgram, facts: _Facts, end: int, *, unending: bool) -> Iterator[str]:
    tables = _tables(plan, facts)
    state = RuleState(tables)
    # A recursion is followed further, to see whether the facts that it keeps going come to an end.
    look = end + _MORE * _reach(plan) if unending and plan.has_delays else end
    names, constants = [name for name, _ in facts.predicates], list(facts.constants)
    arities = [arity for _, arity in facts.predicates]
    for batch in (*state.derive(facts.table(tables.width), look), *state.rest()):
        for predicate, *ids, lo, hi in batch.tolist():
            if lo <= end:
                if end < look < hi < FOREVER:
                    raise _endless(names[predicate], end, look)
                terms = ",".join(constants[number] for number in ids[: arities[predicate]])
                last = hi if hi <= end or (unending and hi >= FOREVER) else end
                yield f"{names[predicate]}{f'({terms})' if terms else ''}@{_interval(lo, last)}"


def _reach(plan: RuleProgram) -> int:
    """How far all rules together move facts in time at most, doubled; endless operators aside."""
    return sum(rule.hi for rule in plan.rules if rule.hi < FOREVER) + 2 * _MICROS


def _endless(predicate: str, end: int, look: int) -> UsageError:
    return UsageError(
        f"{predicate} still holds at {_seconds(look >> 1)}, long after {_seconds(end >> 1)}, the last endpoint of the facts: a"
        f" recursion may keep it going for ever. Say how far to look, as in --until {_seconds(end >> 1)}"
    )


def _tables(plan: RuleProgram, facts: _Facts) -> RuleTables:
    """The program's tables, with the predicates that only the facts have."""
    predicates = [(p.arity, p.delayed, int(p.shown), False) for p in plan.predicates]
    predicates += [(arity, False, 1, False) for _, arity in [*facts.predicates][len(predicates) :]]
    rules = [
        (r.kind, r.body, r.head, r.lo, r.hi, r.index or 0, r.head_columns, r.probe_columns, sum(r.checks, ()), 0, 0)
        for r in plan.rules
    ]
    return RuleTables(
        predicates, rules, [(index.predicate, index.columns) for index in plan.indexes], range(len(plan.constants))
    )


def _interval(lo: int, hi: int) -> str:
    begin = "(-inf" if lo <= -FOREVER else f"{'(' if lo & 1 else '['}{_seconds(lo >> 1)}"
    end = "inf)" if hi >= FOREVER else f"{_seconds((hi + 1) >> 1)}{')' if hi & 1 else ']'}"
    return f"{begin},{end}"


def _seconds(micros: int) -> str:
    """As short as it is exact."""
    whole, part = divmod(abs(micros), _MICROS)
    fraction = f".{part:06d}".rstrip("0") if part else ""
    return f"{'-' if micros < 0 else ''}{whole}{fraction}"
