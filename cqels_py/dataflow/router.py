"""Matches triples with patterns: all patterns of the queries on shared scans are matched in one pass, equal ones once.

Triples are routed by their predicate, so that the cost of a triple follows the patterns that it matches, not the number of queries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from cqels_py.batches.elements import ElementBatch
from cqels_py.dictionary import Dictionary
from cqels_py.event_time.clock import Step
from cqels_py.event_time.windows import Measure
from cqels_py.kernels.primitives.dtypes import INT64
from cqels_py.kernels.primitives.state_record import ArrayTable
from cqels_py.kernels.structures.hashing import mix
from cqels_py.kernels.windows import match as kernel
from cqels_py.operators.s2r.arrivals import ArrivalCounter, Arrivals
from cqels_py.plan.nodes import PatternText, is_variable

Int64 = npt.NDArray[np.int64]
_NONE = np.empty(0, np.int64)
_ROOM = 16
"""Matches beyond one a triple for which there is room at first."""
StreamPattern = tuple[PatternText, int]
"""A triple pattern, and the number of its stream within the query."""


@dataclass(slots=True)
class RoutedBatch:
    """The elements of one step with their arrivals and ticks; pattern j matches triples[first[j] : first[j + 1]] of the batch.

    `first` (patterns + 1) is the router's own, which the next step overwrites.
    """

    batch: ElementBatch
    step: Step
    arrivals: Arrivals
    first: Int64
    triples: Int64

    def matches(self, pattern: int) -> Int64:
        """The triples that match a pattern, by its number, in order."""
        start, end = self.first.item(pattern), self.first.item(pattern + 1)
        return self.triples[start:end] if start < end else _NONE

    def reached(self, measure: Measure, stream: int) -> int:
        """The point that a measure has reached with this step: expiries have happened through that time, or number in the stream.

        SESSION: the last instant at which a session of a window has ended, or with PARTITION BY may have.
        """
        if measure is Measure.TIME:
            return self.step.expired_through
        if measure is Measure.SESSION:
            return self.step.last_session_end
        return self.arrivals.streams[stream].reached(measure)

    def matched_patterns(self) -> list[int]:
        """The numbers of the patterns that match a triple, in order."""
        return _matched(self.first)


class Routed(Protocol):
    """A step whose triples are routed."""

    def reached(self, measure: Measure, stream: int) -> int:
        """See `RoutedBatch`."""
        ...

    def matched_patterns(self) -> list[int]:
        """See `RoutedBatch`."""
        ...


@dataclass(frozen=True, slots=True)
class RoutedElement:
    """The step of one element that a program has routed. `counter` has counted it."""

    router: Router
    due_through: int
    last_session_end: int
    counter: ArrivalCounter

    def reached(self, measure: Measure, stream: int) -> int:
        if measure is Measure.TIME:
            return self.due_through
        if measure is Measure.SESSION:
            return self.last_session_end
        return (self.counter.elements if measure is Measure.ELEMENTS else self.counter.triples)[stream]

    def matched_patterns(self) -> list[int]:
        return _matched(self.router.first)


def _matched(first: Int64) -> list[int]:
    found: list[int] = np.flatnonzero(first[1:] > first[:-1]).tolist()
    return found


class Router:
    """The patterns by number, each with a count of its scans, and a hash table from predicates to patterns."""

    def __init__(self, dictionary: Dictionary) -> None:
        self._dictionary = dictionary
        self._numbers: dict[StreamPattern, int] = {}
        self._patterns: list[StreamPattern | None] = []
        self._constants: list[tuple[int, ...]] = []
        self._scans: list[int] = []
        self._free: list[int] = []
        self.laid_out = False
        """Is the layout that of the patterns? Otherwise `lay_out` comes before programs read it."""
        self._patterns_table = ArrayTable(*[None] * kernel.ARRAYS)

    def add(self, pattern: StreamPattern) -> int:
        """The number of a pattern, which is matched from now on; equal ones have one number."""
        if pattern not in self._numbers:
            constants = [0 if is_variable(text) else self._dictionary.encode_one(text) for text in pattern[0]]
            self._dictionary.pin(np.array(constants, np.int64))
            number = self._free.pop() if self._free else len(self._patterns)
            if number == len(self._patterns):
                self._patterns.append(None)
                self._constants.append(_NO_CONSTANTS)
                self._scans.append(0)
            self._patterns[number], self._constants[number] = pattern, (*constants, 0)[: len(_NO_CONSTANTS)]
            self._numbers[pattern] = number
            self.laid_out = False
        number = self._numbers[pattern]
        self._scans[number] += 1
        return number

    @property
    def table(self) -> ArrayTable:
        """The patterns as the kernel reads them, if they have changed laid out anew."""
        if not self.laid_out:
            self.lay_out()
        return self._patterns_table

    @property
    def first(self) -> Int64:
        """`RoutedBatch.first` of the element that was routed last."""
        return self._first

    def remove(self, number: int) -> None:
        """Remove a scan from a pattern; a pattern without scans is no longer matched."""
        self._scans[number] -= 1
        if not self._scans[number]:
            pattern = self._patterns[number]
            assert pattern is not None
            del self._numbers[pattern]
            self._patterns[number] = None
            self._free.append(number)
            self.laid_out = False

    def route(self, batch: ElementBatch, step: Step, arrivals: Arrivals) -> RoutedBatch:
        """Match the triples of a step with all patterns."""
        table = self.table
        triples = np.empty(len(arrivals.element) + _ROOM, INT64)
        while True:
            found = kernel.match(
                batch.subject,
                batch.predicate,
                batch.object,
                batch.graph,
                arrivals.element,
                batch.stream,
                table.address,
                triples,
            )
            if found <= len(triples):
                return RoutedBatch(batch, step, arrivals, self._first, triples)
            triples = np.empty(found, INT64)

    def lay_out(self) -> None:
        """The patterns as the kernel reads them, once they have changed; the address of their table stays."""
        ids = np.array(self._constants, np.int64).reshape(-1, len(_NO_CONSTANTS))
        self._first = np.empty(len(ids) + 1, np.int64)
        patterns = [pattern or _NO_PATTERN for pattern in self._patterns]
        same = np.array([_same_positions(text) for text, _ in patterns], np.int64)
        streams = np.array([stream for _, stream in patterns], np.int64)
        size = 8
        while size < 4 * len(patterns):
            size *= 2
        self._routes = np.zeros(size, np.int64)
        lists: list[list[int]] = [[] for _ in range(size + 1)]
        for number, pattern in enumerate(self._patterns):
            if pattern is not None:
                lists[self._slot(self._constants[number][1], size)].append(number)
        route_first = np.cumsum([0, *map(len, lists)], dtype=np.int64)
        route_patterns = np.array([number for numbers in lists for number in numbers], np.int64)
        arrays = ids, same, streams, self._routes, route_first, route_patterns, self._first
        for number, array in enumerate(arrays):
            self._patterns_table.replace(number, array)
        self.laid_out = True

    def _slot(self, predicate: int, size: int) -> int:
        """The slot that lists the patterns with this predicate; those with a variable there are behind all others."""
        if predicate == 0:
            return size
        slot = int(mix(predicate)) & (size - 1)
        while self._routes[slot] not in (0, predicate):
            slot = (slot + 1) & (size - 1)
        self._routes[slot] = predicate
        return slot


_NO_PATTERN: StreamPattern = (("?s", "?p", "?o"), -1)
_NO_CONSTANTS = (0, 0, 0, 0)


def _same_positions(pattern: PatternText) -> int:
    """The positions of a pattern that have to be the same term, as they are the same variable, as the kernel's bits."""
    subject, predicate, object_, *graph = (text if is_variable(text) else None for text in pattern)
    same = 0
    if graph:
        same |= kernel.IN_GRAPH
        bits = (kernel.SUBJECT_GRAPH, kernel.PREDICATE_GRAPH, kernel.OBJECT_GRAPH)
        for position, bit in zip((subject, predicate, object_), bits, strict=True):
            if position and position == graph[0]:
                same |= bit
    if subject and subject == predicate:
        same |= kernel.SUBJECT_PREDICATE
    if subject and subject == object_:
        same |= kernel.SUBJECT_OBJECT
    if predicate and predicate == object_:
        same |= kernel.PREDICATE_OBJECT
    return same
