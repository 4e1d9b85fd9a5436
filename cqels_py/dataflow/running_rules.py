"""The rules of a query at work: triples become facts, and facts that begin and cease to hold become changes at their instants."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from cqels_py.batches.elements import ElementBatch, Ids
from cqels_py.dataflow.own_facts import OwnFacts
from cqels_py.dataflow.ownership import Condition
from cqels_py.dataflow.shared_scans import SharedScans
from cqels_py.dataflow.static_data import StaticData
from cqels_py.dataflow.work import Work
from cqels_py.dictionary import Dictionary
from cqels_py.distribution.rule_keys import CLASS, TYPE, given_predicates
from cqels_py.errors import RunError
from cqels_py.event_time.windows import NEVER, Points
from cqels_py.kernels.primitives.state_record import ArrayTable
from cqels_py.kernels.rules import records
from cqels_py.kernels.steps import rules as entries
from cqels_py.operators.r2r.expressions import Evaluator
from cqels_py.plan.nodes import StateRows, StaticScan
from cqels_py.plan.temporal_rules import PlannedRules, RuleProgram, RuleTest
from cqels_py.state.kept_rows import KeptRows
from cqels_py.state.temporal_rules import RuleState, RuleTables

Int64 = npt.NDArray[np.int64]
_MOST_STEPS = 100_000_000
_BEFORE_ALL = np.iinfo(np.int64).min // 2


class FactPatterns:
    """The predicates whose triples are facts: those that a rule asks for. Their numbers in the program, by ids."""

    def __init__(self, program: RuleProgram, dictionary: Dictionary) -> None:
        named = [(program.predicates[n].name, n) for n in given_predicates(program)]
        self._width = program.width
        self.type = dictionary.encode_one(TYPE)
        self.classes = _by_id(
            [(dictionary.encode_one(f"<{name.removeprefix(CLASS)}>"), n) for name, n in named if name.startswith(CLASS)]
        )
        self.properties = _by_id(
            [(dictionary.encode_one(f"<{name}>"), n) for name, n in named if not name.startswith(CLASS)]
        )

    def live_ids(self) -> Iterator[Ids]:
        yield from (np.array([self.type], np.int64), self.classes[:, 0], self.properties[:, 0])

    def facts(self, subject: Ids, predicate: Ids, object_: Ids, lo: Int64, hi: Int64) -> Int64:
        """Rows (predicate's number, ids, lo, hi) of the triples that are facts, in their order."""
        number = _numbers(self.properties, predicate)
        is_property = number >= 0
        typed = np.flatnonzero(predicate == self.type)
        number[typed] = _numbers(self.classes, object_[typed])
        kept = np.flatnonzero(number >= 0)
        rows = np.zeros((len(kept), self._width + 3), np.int64)
        rows[:, 0], rows[:, 1] = number[kept], subject[kept]
        if self._width > 1:
            rows[:, 2] = np.where(is_property[kept], object_[kept], 0)
        rows[:, -2], rows[:, -1] = lo[kept], hi[kept]
        return rows

    def static_facts(self, static: StaticData) -> Int64:
        """The triples of the default graph: they hold always."""
        scan = StaticScan("", ("?s", "?p", "?o"), ("s", "p", "o"))
        subject, predicate, object_ = static.mappings(scan, (0, 0, 0), 0)
        ends = np.full((2, len(subject)), records.FOREVER, np.int64)
        return self.facts(subject, predicate, object_, -ends[0], ends[1])


def _by_id(pairs: Sequence[tuple[int, int]]) -> Int64:
    """Rows of an id and its number, in order."""
    return np.array(sorted(pairs), np.int64).reshape(-1, 2)


def _numbers(table: Int64, ids: Ids) -> Int64:
    """The numbers of ids, -1 for those that have none."""
    keys, numbers = table[:, 0], table[:, 1]
    if not len(keys):
        return np.full(len(ids), -1, np.int64)
    place = np.minimum(np.searchsorted(keys, ids), len(keys) - 1)
    return np.where(keys[place] == ids, numbers[place], -1)


class RuleTests:
    """The FILTERs and BINDs of rules. `evaluators`: of the rules' expressions, by number."""

    def __init__(self, rules: PlannedRules, evaluators: Sequence[Evaluator]) -> None:
        self._rules = rules
        self.evaluators = tuple(evaluators)

    def values(self, keys: Int64) -> Int64:
        """See `Tests` of state/temporal_rules.py."""
        found = np.full(len(keys), records.FAILED, np.int64)
        for test in self._rules.program.tests:
            rows = np.flatnonzero(keys[:, 0] == test.predicate)
            if not len(rows):
                continue
            program, evaluator = self._rules.expressions[test.number], self.evaluators[test.number]
            column = dict(test.columns)
            columns = [np.ascontiguousarray(keys[rows, 1 + column[name]]) for name in program.inputs]
            now = np.zeros(len(rows), np.int64)
            if test.condition:
                found[rows[evaluator.test(columns, now)]] = 1
            else:
                value = evaluator.evaluate(columns, now)
                found[rows] = np.where(value == 0, records.FAILED, value)
        return found

    def records(self) -> list[ArrayTable]:
        """Those of the tests as kernels/steps/rules.py has them."""
        return [self._record(test) for test in self._rules.program.tests]

    def _record(self, test: RuleTest) -> ArrayTable:
        column, names = dict(test.columns), self._rules.expressions[test.number].inputs
        places = np.array([1 + column[name] for name in names], np.int64)
        of_test, now, value = (
            np.array([test.predicate, test.condition], np.int64),
            np.zeros(1, np.int64),
            np.empty(1, np.int64),
        )
        program = self.evaluators[test.number].program
        return ArrayTable(of_test, *program, places, np.empty(len(places), np.int64), now, value)


class RunningRules:
    """The state of a query's rules, which all of its STATEs read: `states`.

    `every_instant`: something is reported at each instant of an element, and at each multiple of the steps. Before the clock makes
    the ticks of a step, it sets timers for the instants at which the answers change.
    """

    STATE = ("_state", "_waiting", "_first", "_reported", "_instants", "changes")

    def __init__(
        self,
        rules: PlannedRules,
        dictionary: Dictionary,
        static: StaticData,
        evaluators: Sequence[Evaluator],
        shared_scans: SharedScans,
        *,
        states: Sequence[StateRows],
        every_instant: bool,
    ) -> None:
        self._rules = rules
        self.work = Work()
        self.evaluators = tuple(evaluators)
        self._patterns = FactPatterns(rules.program, dictionary)
        self._tests = RuleTests(rules, evaluators)
        self._tables = _tables(rules.program, dictionary)
        width = self._tables.width + 3
        self.facts_to_come, self.told_changes, self.tick_instants = KeptRows(width), KeptRows(width), KeptRows(1)
        """The records of `_waiting`, `changes` and `_instants`."""
        self.numbers = np.array([NEVER, _BEFORE_ALL, entries.READY, 0, 0, every_instant], np.int64)
        """As kernels/steps/rules.py has them."""
        self._state = RuleState(self._tables, tests=self._tests)
        self._streams = np.array(rules.streams, np.int32)
        self._scans = shared_scans
        self._states = tuple(states)
        self._steps = tuple(dict.fromkeys(each.step for each in states))
        self._own: OwnFacts | None = None
        self._every_instant = every_instant
        self._waiting = self._in_order(
            np.concatenate([self._patterns.static_facts(static), self._given_facts(dictionary)])
        )
        self._reported: int | None = None
        shared_scans.foreseeing.append(self)

    def answer(self, number: int) -> int:
        """The predicate of the rows of a STATE."""
        return self._rules.program.answers[number]

    def keep_to(self, cell: Sequence[Condition]) -> None:
        """Leave facts, and the rules' conclusions, to other parts of a divided state; before the first step."""
        self._own = OwnFacts(self._rules, self._states, cell)
        self._waiting = self._waiting[self._own.mine(self._waiting)]

    @property
    def changes(self) -> Int64:
        """Rows (answer's predicate, ids, instant, sign) in order of time, of the step to come."""
        return self.told_changes.rows

    @changes.setter
    def changes(self, rows: Int64) -> None:
        self.told_changes.rows = rows

    @property
    def _waiting(self) -> Int64:
        """Rows (predicate's number, ids, lo, hi) of facts that are not to be derived from yet, in order of their beginnings."""
        return self.facts_to_come.rows

    @_waiting.setter
    def _waiting(self, rows: Int64) -> None:
        self.facts_to_come.rows = rows

    @property
    def _instants(self) -> Int64:
        """The instants to come at whose ends there are ticks, in order."""
        return self.tick_instants.rows.reshape(-1)

    @_instants.setter
    def _instants(self, instants: Int64) -> None:
        self.tick_instants.rows = instants.reshape(-1, 1)

    @property
    def _first(self) -> int | None:
        """The time at which the streams have begun."""
        first = self.numbers.item(entries.FIRST)
        return None if first == NEVER else first

    @_first.setter
    def _first(self, time: int | None) -> None:
        self.numbers[entries.FIRST] = NEVER if time is None else time

    @property
    def is_plain(self) -> bool:
        """See `Foreseeing`."""
        # Multiples of a STEP at which nothing changes are told by calls.
        return self._own is None and (not self._every_instant or self._steps == (None,))

    def entry_arrays(self, streams: int) -> tuple[Int64, ...]:
        """Those of the record of `tell_time` in kernels/steps/rules.py, of a query with so many streams."""
        facts = np.zeros(streams, np.int64)
        facts[self._streams] = 1
        steps = np.array([each or 0 for each in self._steps], np.int64)
        return self.numbers, facts, self._patterns.properties, self._patterns.classes, steps

    @property
    def entry_links(self) -> tuple[int, ...]:
        """Those of its LINKS from PROGRAM on to INSTANTS."""
        kept = self.facts_to_come, self.told_changes, self.tick_instants
        return *self._state.records, *(each.address for each in kept)

    @property
    def type(self) -> int:
        """The id of rdf:type."""
        return self._patterns.type

    def entry_tests(self) -> list[ArrayTable]:
        """The records of the tests."""
        return self._tests.records()

    def settle(self) -> None:
        """Count the facts and the changes of compiled steps."""
        self.work.rows_in += self.numbers.item(entries.FACTS_TAKEN)
        self.work.rows_out += self.numbers.item(entries.CHANGES_MADE)
        self.numbers[[entries.FACTS_TAKEN, entries.CHANGES_MADE]] = 0

    def begin(self, time: int) -> None:
        """See `Foreseeing`: facts that hold always are reported from this instant on."""
        if self._first is None:
            self._first = time

    @property
    def told_through(self) -> int:
        """The last instant of which all is known, in microseconds."""
        return int(self.numbers[entries.TOLD])

    @property
    def may_change(self) -> bool:
        """See `Foreseeing`."""
        kept = len(self._waiting) > 0 or self._state.live_intervals > 0 or self._every_instant
        return self._first is not None and kept

    def foresee(self, batch: ElementBatch, through: int, last: int) -> None:
        """See `Foreseeing`. An entry may have begun (kernels/steps/rules.py)."""
        waiting, begun = self._waiting, self.numbers[entries.STAGE] == entries.DERIVING
        self.numbers[entries.STAGE] = entries.READY
        if len(batch) and not begun:
            waiting = self._take(batch)
        self._derive(waiting, through, last, begun=begun)
        self.numbers[entries.TOLD] = through

    def _derive(self, waiting: Int64, through: int, last: int, *, begun: bool) -> None:
        # Nothing is reported before the end of the first instant, also of facts that have held before it.
        if self._first is None or through < self._first:
            self._waiting = waiting
            return
        until = 2 * through + 1
        known = int(np.searchsorted(waiting[:, -2], until, side="right"))
        told = np.concatenate(list(self._state.derive(np.ascontiguousarray(waiting[:known]), until, begun=begun)))
        self._waiting = waiting[known:]
        if self._own is not None:
            told = told[self._own.mine(told)]
        # By time, then by predicate and ids: entries are in an order that depends on how elements are batched.
        told = told[np.lexsort((*told[:, -3::-1].T, told[:, -2]))]
        np.maximum(told[:, -2], self._first, out=told[:, -2])
        self.changes = told
        self.work.rows_out += len(told)
        self._set_timers(through, last)

    def _take(self, batch: ElementBatch) -> Int64:
        """The facts that wait, and those of the elements."""
        element = np.repeat(np.arange(len(batch)), np.diff(batch.first))
        mine = np.isin(batch.stream, self._streams)
        kept = mine[element]
        times = 2 * batch.time[element[kept]]
        facts = self._patterns.facts(batch.subject[kept], batch.predicate[kept], batch.object[kept], times, times)
        if self._own is not None:
            facts = facts[self._own.mine(facts)]
        self.work.rows_in += len(facts)
        # Facts that have held before are reported from the first element of the streams on, whatever it says.
        if self._first is None and mine.any():
            self._first = batch.time[mine].item(0)
        if self._every_instant and None in self._steps:
            self._instants = np.union1d(self._instants, batch.time[mine])
        return self._in_order(np.concatenate([self._waiting, facts])) if len(self._waiting) else facts

    def _given_facts(self, dictionary: Dictionary) -> Int64:
        """Those that come with the rules."""
        rows = np.zeros((len(self._rules.facts), self._tables.width + 3), np.int64)
        for row, (predicate, terms, lo, hi) in zip(rows, self._rules.facts, strict=True):
            row[0], row[-2], row[-1] = predicate, lo, hi
            row[1 : 1 + len(terms)] = [dictionary.encode_one(term) for term in terms]
        return rows

    def _in_order(self, facts: Int64) -> Int64:
        """By their beginnings; elements come in order, but given facts may be later."""
        return facts[np.argsort(facts[:, -2], kind="stable")] if self._rules.facts else facts

    def _set_timers(self, through: int, last: int) -> None:
        instants = [self._instants, *(boundaries(self.changes[:, -2], step) for step in self._steps)]
        if self._every_instant:
            instants += [self._multiples(step, last) for step in self._steps]
            self._reported = last
        asked = np.unique(np.concatenate(instants))
        due = int(np.searchsorted(asked, last, side="right"))
        for instant in asked[:due].tolist():
            self._scans.set_timer(instant)
        self._instants = asked[due:]

    def _multiples(self, step: int | None, through: int) -> Points:
        """The multiples of a step that have come to be known."""
        assert self._first is not None
        after = self._first - 1 if self._reported is None else self._reported
        if step is None or through <= after:
            return np.empty(0, np.int64)
        first = -(-(after + 1) // step) * step
        if (through - first) // step >= _MOST_STEPS:
            raise RunError(
                f"the time of the stream has gone to {through} (microseconds since the epoch) at once, past more than "
                f"{_MOST_STEPS:,} steps of STATE: is the last time one of another unit?"
            )
        return np.arange(first, through + 1, step, dtype=np.int64)

    def live_ids(self) -> Iterator[Ids]:
        """Ids of facts, of computed values and in expressions."""
        yield from self._patterns.live_ids()
        yield from self._state.live_ids()
        yield self._waiting[:, 1:-2].reshape(-1)
        yield self.changes[:, 1:-2].reshape(-1)
        for evaluator in self.evaluators:
            yield from evaluator.live_ids()

    @property
    def nbytes(self) -> int:
        kept = self.facts_to_come, self.told_changes, self.tick_instants
        return self._state.nbytes + sum(each.nbytes for each in kept)


def boundaries(times: Points, step: int | None) -> Points:
    """The instants at which changes are seen: the next multiples of the step."""
    return times if step is None else -(-times // step) * step


def _tables(program: RuleProgram, dictionary: Dictionary) -> RuleTables:
    answers, tested = set(program.answers), {test.predicate for test in program.tests}
    return RuleTables(
        [
            (each.arity, each.delayed, records.LIVE if n in answers else records.HIDDEN, n in tested)
            for n, each in enumerate(program.predicates)
        ],
        [
            (
                r.kind, r.body, r.head, r.lo, r.hi, r.index or 0, r.head_columns, r.probe_columns, sum(r.checks, ()), r.level,
                r.body_index or 0,
            )
            for r in program.rules
        ],
        [(index.predicate, index.columns) for index in program.indexes],
        [dictionary.encode_one(text) for text in program.constants],
    )  # fmt: skip
