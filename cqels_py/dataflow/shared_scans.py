"""What queries over the same streams and windows do alike, done once: the clock, the numbers of arrivals, and routing.

Queries that were registered with nothing processed in between, and whose windows move at the same instants, sit on shared scans.
Each routed is made once. All their patterns are matched together, equal ones once, and by predicate: what a triple costs follows the
patterns that it matches, not the number of queries. Nor do queries take part in steps at which nothing happens to them: those take
it that read a scan with a match, or one whose oldest mapping leaves, and those that want to know of every routed.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from cqels_py.batches.elements import ElementBatch
from cqels_py.batches.rearrange import counted_triples
from cqels_py.dictionary import Dictionary
from cqels_py.event_time.clock import ClockedWindow, Step, TickClock
from cqels_py.event_time.windows import NEVER, Measure
from cqels_py.kernels.primitives.array_table import Standing
from cqels_py.kernels.primitives.dtypes import INT64
from cqels_py.kernels.structures.hashing import mix
from cqels_py.kernels.windows import match as kernel
from cqels_py.operators.s2r.arrivals import ArrivalCounter, Arrivals
from cqels_py.operators.s2r.window import Timer
from cqels_py.plan.nodes import PatternText, is_variable

Int64 = npt.NDArray[np.int64]
_NONE = np.empty(0, np.int64)
_ROOM = 16
"""Matches beyond one a triple for which there is room at once."""
StreamPattern = tuple[PatternText, int]
"""A triple pattern, and the number of its stream within the query."""


@dataclass(slots=True)
class RoutedBatch:
    """One step. Pattern j matches triples[first[j] : first[j + 1]] of the batch."""

    batch: ElementBatch
    step: Step
    arrivals: Arrivals
    first: Int64
    triples: Int64

    def matches(self, pattern: int) -> Int64:
        """The triples that match, in order."""
        start, end = self.first.item(pattern), self.first.item(pattern + 1)
        return self.triples[start:end] if start < end else _NONE


class Scanning(Protocol):
    """A scan, as shared scans see it: the number of its pattern, its stream, and when it moves though nothing arrives."""

    pattern: int
    stream: int

    @property
    def next_timer(self) -> Timer: ...


class StepCache(Protocol):
    def forget(self) -> None: ...


@dataclass(eq=False, slots=True)
class ScanReader:
    """One query's place on shared scans."""

    number: int
    scans: tuple[Scanning, ...]


@dataclass(eq=False, slots=True)
class _ReadScan:
    """A scan that readers read. `waits`: it is among those that wait for a point."""

    scan: Scanning
    readers: dict[int, ScanReader] = field(default_factory=dict)
    waits: bool = False


class SharedScans:
    """The clock, the counters and the router of the queries that sit here."""

    def __init__(
        self, windows: Sequence[ClockedWindow], streams: int, dictionary: Dictionary, *, every_boundary: bool
    ) -> None:
        self._clock = TickClock(windows, streams, every_boundary=every_boundary)
        self._counter = ArrivalCounter(streams)
        self._router = Router(dictionary)
        self._numbers = count()
        self._readers: dict[int, ScanReader] = {}
        self._at_every_step: dict[int, ScanReader] = {}
        self._read_scans: dict[Scanning, _ReadScan] = {}
        self._by_pattern: dict[int, list[_ReadScan]] = {}
        self._timers: dict[tuple[Measure, int], TimerQueue] = {}
        self._moving: list[_ReadScan] = []
        self.alone = True
        """Does one query sit here, or none?"""
        self.shared_subplans: dict[Hashable, Any] = {}
        self.caches: list[StepCache] = []

    @property
    def now(self) -> int | None:
        """The time of the last element; None before the first."""
        return self._clock.now

    # --- who is here ----------------------------------------------------------------------------------------------

    def add_pattern(self, pattern: StreamPattern) -> int:
        """The number of a pattern, whose matches are found from now on."""
        return self._router.add(pattern)

    def remove_patterns(self, patterns: Sequence[int]) -> None:
        self._router.remove(patterns)

    def attach(self, scans: Iterable[Scanning]) -> ScanReader:
        """A place for a query that reads these scans, before the first routed. It takes every step until it is `idle`."""
        reader = ScanReader(next(self._numbers), tuple(scans))
        self._readers[reader.number] = self._at_every_step[reader.number] = reader
        self.alone = len(self._readers) == 1
        for scan in reader.scans:
            read_scan = self._read_scans.get(scan)
            if read_scan is None:
                read_scan = self._read_scans[scan] = _ReadScan(scan)
                self._by_pattern.setdefault(scan.pattern, []).append(read_scan)
            read_scan.readers[reader.number] = reader
        return reader

    def park(self, reader: ScanReader) -> None:
        """From now on the query only takes steps at which one of its scans moves."""
        if all(scan.next_timer is not None for scan in reader.scans):
            self._at_every_step.pop(reader.number, None)

    def detach(self, reader: ScanReader) -> None:
        """The query takes no more steps."""
        if self._readers.pop(reader.number, None) is None:
            return
        self._at_every_step.pop(reader.number, None)
        for scan in reader.scans:
            read_scan = self._read_scans[scan]
            del read_scan.readers[reader.number]
            if not read_scan.readers:
                del self._read_scans[scan]
                self._by_pattern[scan.pattern].remove(read_scan)
                for timers in self._timers.values():
                    timers.forget(read_scan)

    # --- steps ----------------------------------------------------------------------------------------------------

    def step(self, batch: ElementBatch) -> RoutedBatch:
        """Elements of the streams, in order; `batch.stream` are positions in the streams."""
        first = batch.first if batch.counted is None else counted_triples(batch).first
        return self._routed(batch, self._clock.step(batch.time, batch.stream, first))

    def advance(self, time: int) -> RoutedBatch:
        """No element before `time` (microseconds) will come any more."""
        return self._routed(_NOTHING, self._clock.advance(time))

    def finish(self) -> RoutedBatch:
        """The streams have ended."""
        return self._routed(_NOTHING, self._clock.finish())

    def _routed(self, batch: ElementBatch, step: Step) -> RoutedBatch:
        arrivals = self._counter.take(batch, step)
        first, triples = self._router.match(batch, arrivals.element)
        return RoutedBatch(batch, step, arrivals, first, triples)

    def affected(self, routed: RoutedBatch) -> list[ScanReader]:
        """Who is to take part in a routed, in the order in which they came."""
        if self.alone:
            return list(self._readers.values())
        moving = self._matched(routed)
        for (measure, stream), timers in self._timers.items():
            if measure is Measure.TIME:
                moving += timers.through(routed.step.expired_through)
            else:
                moving += timers.through(routed.arrivals.counted.streams[stream].reached(measure))
        readers = dict(self._at_every_step)
        for read_scan in moving:
            readers.update(read_scan.readers)
        self._moving = moving
        return [readers[number] for number in sorted(readers)]

    def end(self) -> None:
        """All who are affected have taken the routed."""
        for read_scan in self._moving:
            self._wait_for(read_scan)
        self._moving = []
        for each in self.caches:
            each.forget()
        self.caches.clear()

    def _matched(self, routed: RoutedBatch) -> list[_ReadScan]:
        patterns = np.flatnonzero(routed.first[1:] > routed.first[:-1]).tolist()
        return [read_scan for pattern in patterns for read_scan in self._by_pattern.get(pattern, ())]

    def _wait_for(self, read_scan: _ReadScan) -> None:
        next_timer = read_scan.scan.next_timer
        if not read_scan.readers or read_scan.waits or next_timer is None or next_timer[1] == NEVER:
            return
        measure, point = next_timer
        key = measure, -1 if measure is Measure.TIME else read_scan.scan.stream
        if key not in self._timers:
            self._timers[key] = TimerQueue()
        self._timers[key].add(point, read_scan)


class TimerQueue:
    """Scans that wait for a measure to reach a point, as a heap. Each stands there once, perhaps too early."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, _ReadScan]] = []
        self._numbers = count()

    def add(self, point: int, read_scan: _ReadScan) -> None:
        read_scan.waits = True
        heappush(self._heap, (point, next(self._numbers), read_scan))

    def forget(self, read_scan: _ReadScan) -> None:
        """Nobody reads the scan any more."""
        if read_scan.waits:
            self._heap = [each for each in self._heap if each[2] is not read_scan]
            heapify(self._heap)

    def through(self, reached: int) -> list[_ReadScan]:
        """Those whose points have been reached; they wait no more."""
        found: list[_ReadScan] = []
        while self._heap and self._heap[0][0] <= reached:
            _, _, read_scan = heappop(self._heap)
            read_scan.waits = False
            next_timer = read_scan.scan.next_timer
            if next_timer is None or next_timer[1] == NEVER:
                continue
            if next_timer[1] > reached:
                self.add(next_timer[1], read_scan)
            else:
                found.append(read_scan)
        return found


class Router:
    """Patterns by number, each with the queries that have it, and a table from predicates to them."""

    def __init__(self, dictionary: Dictionary) -> None:
        self._dictionary = dictionary
        self._numbers: dict[StreamPattern, int] = {}
        self._patterns: list[StreamPattern | None] = []
        self._constants: list[tuple[int, ...]] = []
        self._wanted: list[int] = []
        self._free: list[int] = []
        self._laid_out = False

    def add(self, pattern: StreamPattern) -> int:
        if pattern not in self._numbers:
            constants = [0 if is_variable(text) else self._dictionary.encode_one(text) for text in pattern[0]]
            self._dictionary.pin(np.array(constants, np.int64))
            number = self._free.pop() if self._free else len(self._patterns)
            if number == len(self._patterns):
                self._patterns.append(None)
                self._constants.append(_NO_CONSTANTS)
                self._wanted.append(0)
            self._patterns[number], self._constants[number] = pattern, (*constants, 0)[: len(_NO_CONSTANTS)]
            self._numbers[pattern] = number
            self._laid_out = False
        number = self._numbers[pattern]
        self._wanted[number] += 1
        return number

    def remove(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            self._wanted[number] -= 1
            if not self._wanted[number]:
                pattern = self._patterns[number]
                assert pattern is not None
                del self._numbers[pattern]
                self._patterns[number] = None
                self._free.append(number)
                self._laid_out = False

    def match(self, batch: ElementBatch, element: Int64) -> tuple[Int64, Int64]:
        """Where each pattern's matches start (and the end), and the triples; `element`: that of each triple."""
        if not self._laid_out:
            self._lay_out()
        first, triples = self._first, np.empty(len(element) + _ROOM, INT64)
        while True:
            found = kernel.match(
                batch.subject,
                batch.predicate,
                batch.object,
                batch.graph,
                element,
                batch.stream,
                self._standing.where,
                triples,
            )
            if found <= len(triples):
                return first, triples
            triples = np.empty(found, np.int64)

    def _lay_out(self) -> None:
        ids = np.array(self._constants, np.int64).reshape(-1, len(_NO_CONSTANTS))
        self._first = np.empty(len(ids) + 1, np.int64)
        asked = [pattern or _NO_PATTERN for pattern in self._patterns]
        same = np.array([_same_positions(text) for text, _ in asked], np.int64)
        streams = np.array([stream for _, stream in asked], np.int64)
        size = 8
        while size < 4 * len(asked):
            size *= 2
        self._routes = np.zeros(size, np.int64)
        lists: list[list[int]] = [[] for _ in range(size + 1)]
        for number, pattern in enumerate(self._patterns):
            if pattern is not None:
                lists[self._slot(self._constants[number][1], size)].append(number)
        route_first = np.cumsum([0, *map(len, lists)], dtype=np.int64)
        route_patterns = np.array([number for numbers in lists for number in numbers], np.int64)
        self._standing = Standing(ids, same, streams, self._routes, route_first, route_patterns, self._first)
        self._laid_out = True

    def _slot(self, predicate: int, size: int) -> int:
        """Where the patterns with this predicate are listed; those without one behind all others."""
        if predicate == 0:
            return size
        slot = int(mix(predicate)) & (size - 1)
        while self._routes[slot] not in (0, predicate):
            slot = (slot + 1) & (size - 1)
        self._routes[slot] = predicate
        return slot


class SharedScansPool:
    """The pool at which a query can still sit: those that have had no routed."""

    def __init__(self) -> None:
        self._open: dict[object, SharedScans] = {}

    def join(
        self,
        windows: Sequence[ClockedWindow],
        streams: Sequence[str],
        dictionary: Dictionary,
        *,
        every_boundary: bool,
        alone: bool = False,
    ) -> SharedScans:
        """The scans for these windows over these streams. `alone`: the query takes steps that others do not."""
        # Windows without steps have no boundaries.
        every_boundary = every_boundary and any(not each.bounds.eager and each.bounds.of_time for each in windows)
        key = (tuple(windows), tuple(streams), every_boundary)
        if alone or key not in self._open:
            made = SharedScans(windows, len(streams), dictionary, every_boundary=every_boundary)
            if alone:
                return made
            self._open[key] = made
        return self._open[key]

    def close(self) -> None:
        """Elements are about to be processed: who comes from now on sees others."""
        self._open.clear()


_NOTHING = ElementBatch(
    np.empty(0, np.int64), np.empty(0, np.int32), np.zeros(1, np.int64), *(np.empty(0, np.int64) for _ in range(3))
)
_NO_PATTERN: StreamPattern = (("?s", "?p", "?o"), -1)
_NO_CONSTANTS = (0, 0, 0, 0)


def _same_positions(pattern: PatternText) -> int:
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
