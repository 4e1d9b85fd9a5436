"""The memory of temporal rules: ground atoms with the intervals that reach now or lie ahead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Protocol

import numpy as np
import numpy.typing as npt

from cqels_py.kernels.primitives.state_record import ArrayTable, StateArray, StateRecord
from cqels_py.kernels.rules import propagate as kernel
from cqels_py.kernels.rules import records
from cqels_py.state.key_table import KeyTable

_Array = npt.NDArray[np.int64]
_SMALLEST = 64
_OUTPUT = 4096


RuleTuple = tuple[int, int, int, int, int, int, tuple[int, ...], tuple[int, ...], tuple[int, ...], int, int]


class Tests(Protocol):
    """The conditions and computed values of rules."""

    def values(self, keys: _Array) -> _Array:
        """For keys (n, predicate and ids): FAILED, 1 for a condition that is true, or the id of a value."""
        ...


class RuleTables:
    """A program as arrays.

    `predicates`: rows (arity, delayed, shown, tested). `rules`: rows (kind, body, head, lo, hi, index, head columns, probe
    columns, checks, stratum of NOT, index of the body), where an index that there is not is 0; in order of bodies.
    `indexes`: (predicate, columns), in order of predicates. `constants`: ids by number.
    """

    def __init__(
        self,
        predicates: Sequence[tuple[int, bool, int, bool]],
        rules: Sequence[RuleTuple],
        indexes: Sequence[tuple[int, tuple[int, ...]]],
        constants: Sequence[int] | _Array,
    ) -> None:
        self.width = max((arity for arity, *_ in predicates), default=0)
        self.levels = max((level for *_, level, _ in rules), default=0)
        self.constants = np.array(constants, np.int64)
        self._columns: list[int] = []
        rule_rows = [
            (
                kind,
                head,
                lo,
                hi,
                self._run(head_columns),
                index,
                self._run(probe),
                self._run(checks),
                len(checks) // 2,
                *rest,
            )
            for kind, _, head, lo, hi, index, head_columns, probe, checks, *rest in rules
        ]
        index_rows = [(predicate, len(columns), self._run(columns)) for predicate, columns in indexes]
        rule_counts = np.bincount([body for _, body, *_ in rules], minlength=len(predicates)).tolist()
        index_counts = np.bincount([predicate for predicate, _ in indexes], minlength=len(predicates)).tolist()
        self.links = max(index_counts, default=0)
        first_rules, first_indexes = (list(accumulate(counts, initial=0)) for counts in (rule_counts, index_counts))
        predicate_rows = [
            (arity, first_rules[p], rule_counts[p], delayed, shown, first_indexes[p], index_counts[p], tested)
            for p, (arity, delayed, shown, tested) in enumerate(predicates)
        ]
        self.program = ArrayTable(
            _rows(predicate_rows, records.PREDICATE_FIELDS),
            _rows(rule_rows, records.RULE_FIELDS),
            np.array([*self._columns, 0], np.int64),
            _rows(index_rows, records.INDEX_FIELDS),
            self.constants,
        )

    def _run(self, numbers: tuple[int, ...]) -> int:
        first = len(self._columns)
        self._columns.extend(numbers)
        return first


class RuleState(StateRecord):
    """The state of a program, and its growth. `sweep_least`: entries before the first sweep. `tests`: of conditions."""

    STATE = (
        "_facts",
        "_chains",
        "_ends",
        "_links",
        "_heads",
        "_nodes",
        "_calendar",
        "_counters",
        "_values",
        "_unknown",
    )

    _ends = StateArray[np.int64](records.ENDS_ARRAY)
    _links = StateArray[np.int64](records.LINKS_ARRAY)
    _heads = StateArray[np.int64](records.HEADS_ARRAY)
    _nodes = StateArray[np.int64](records.NODES_ARRAY)
    _queue = StateArray[np.int64](records.QUEUE_ARRAY)
    _calendar = StateArray[np.int64](records.CALENDAR_ARRAY)
    _output = StateArray[np.int64](records.OUTPUT_ARRAY)
    _key = StateArray[np.int64](records.KEY_ARRAY)
    _chain_key = StateArray[np.int64](records.CHAIN_KEY_ARRAY)
    _counters = StateArray[np.int64](records.COUNTERS_ARRAY)
    _values = StateArray[np.int64](records.VALUES_ARRAY)
    _unknown = StateArray[np.int64](records.UNKNOWN_ARRAY)
    _timers = StateArray[np.int64](records.TIMERS_ARRAY)

    def __init__(self, tables: RuleTables, sweep_least: int = 1024, tests: Tests | None = None) -> None:
        self._tables = tables
        self._tests = tests
        width = tables.width + 1
        self._facts, self._chains = KeyTable(width), KeyTable(width)
        self._ends = np.zeros((self._facts.capacity, records.END_FIELDS), np.int64)
        self._links = np.zeros((self._facts.capacity, tables.links), np.int64)
        self._heads = np.zeros(self._chains.capacity, np.int64)
        self._nodes = np.zeros((_SMALLEST, records.NODE_FIELDS), np.int64)
        self._queue = np.zeros((_SMALLEST, records.PART_FIELDS), np.int64)
        self._calendar = np.zeros((_SMALLEST, records.PART_FIELDS), np.int64)
        self._output = np.zeros((_OUTPUT, width + 2), np.int64)
        self._key, self._chain_key = np.zeros((width, 1), np.int64), np.zeros((width, 1), np.int64)
        self._counters = np.zeros(records.COUNTERS, np.int64)
        self._values, self._unknown = np.zeros((2, self._facts.capacity), np.int64)
        self._timers = np.zeros((self._facts.capacity + 1, records.TIMER_FIELDS), np.int64)
        self._counters[[records.NOW, records.FINAL, records.HORIZON]] = -records.FOREVER - 1
        self._counters[[records.FREE_NODE, records.BEGUN]] = -1, 1
        self._counters[[records.LEVEL, records.LEVELS]] = tables.levels
        self._counters[[records.SWEEP_AT, records.SWEEP_LEAST]] = sweep_least

    def after_restore(self) -> None:
        """The timers follow from the intervals."""
        self._timers = np.zeros((self._facts.capacity + 1, records.TIMER_FIELDS), np.int64)
        kernel.set_timers(*self.records)

    @property
    def live_intervals(self) -> int:
        """Intervals that are kept now."""
        return self._counters.item(records.LIVE_NODES)

    @property
    def peak_intervals(self) -> int:
        """The most intervals ever kept at once."""
        return self._counters.item(records.PEAK)

    def derive(self, given: _Array, until: int, *, begun: bool = False) -> Iterator[_Array]:
        """Rows (predicate, ids, lo, hi) of the intervals that are over by `until`, in batches.

        `given`: such rows in order of their beginnings; those after `until` are left out. `begun`: the kernel has been called with
        them already, and goes on.
        """
        if not begun:
            self._counters[records.NEXT_GIVEN] = 0
        while kernel.propagate(*self.records, given, until) == records.NO_ROOM:
            yield from self._make_room()
        yield self._taken()

    def rest(self) -> Iterator[_Array]:
        """The intervals that are left, in such rows; the state is empty then."""
        while kernel.end_all(*self.records) == records.NO_ROOM:
            yield self._taken()
        yield self._taken()

    @property
    def records(self) -> records.RuleRecords:
        """The addresses of the program and of the state, for kernels."""
        return records.RuleRecords(
            self._tables.program.address, self._facts.address, self._chains.address, self.address
        )

    def _taken(self) -> _Array:
        rows = self._output[: self._counters[records.ENDED]].copy()
        self._counters[records.ENDED] = 0
        return rows

    def _make_room(self) -> Iterator[_Array]:
        short = self._counters[records.SHORT]
        if short == records.SHORT_OF_OUTPUT:
            yield self._taken()
        elif short == records.SHORT_OF_FACTS:
            self._facts.ensure(self._facts.capacity)
            self._ends = _grown(self._ends, self._facts.capacity)
            self._links = _grown(self._links, self._facts.capacity)
            self._values = _grown(self._values, self._facts.capacity)
            self._unknown = _grown(self._unknown, self._facts.capacity)
            self._timers = _grown(self._timers, self._facts.capacity + 1)
        elif short == records.SHORT_OF_CHAINS:
            self._chains.ensure(self._chains.capacity)
            self._heads = _grown(self._heads, self._chains.capacity)
        elif short == records.SHORT_OF_NODES:
            self._nodes = _grown(self._nodes, 2 * len(self._nodes))
        elif short == records.SHORT_OF_QUEUE:
            self._queue = _grown(self._queue, 2 * len(self._queue))
        elif short == records.SHORT_OF_VALUES:
            self._test()
        else:
            self._calendar = _grown(self._calendar, 2 * len(self._calendar))

    def _test(self) -> None:
        """Test the entries that wait for it."""
        assert self._tests is not None
        entries = self._unknown[: self._counters[records.UNTESTED]]
        keys = self._facts.keys.reshape(-1, self._tables.width + 1)[entries]
        self._values[entries] = self._tests.values(keys)
        self._counters[records.UNTESTED] = 0

    def live_ids(self) -> Iterator[_Array]:
        """Ids of ground atoms and of computed values."""
        yield self._tables.constants
        yield self._facts.live_ids().reshape(-1, self._tables.width + 1)[:, 1:].reshape(-1)
        yield self._values[self._values != records.FAILED]

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        arrays = (
            self._ends,
            self._links,
            self._heads,
            self._nodes,
            self._queue,
            self._calendar,
            self._output,
            self._values,
            self._timers,
        )
        return self._facts.nbytes + self._chains.nbytes + sum(array.nbytes for array in arrays)


def _rows(rows: Sequence[tuple[int, ...]], width: int) -> _Array:
    return np.array(rows, np.int64).reshape(len(rows), width)


def _grown(array: _Array, length: int) -> _Array:
    return np.concatenate([array, np.zeros((length - len(array), *array.shape[1:]), np.int64)])
