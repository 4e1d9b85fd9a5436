"""What queries over the same streams and windows do alike, done once: the clock, the numbers of arrivals, and routing.

Queries that were registered with nothing processed in between, and whose windows move at the same instants, sit at one front.
Each of them takes the same turns in the same order; whoever is first makes a turn, the others find it made. All their patterns
are matched at once, equal ones once, and by predicate: what a triple costs follows the patterns that it matches, not the number
of queries.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cqels_py.batches.elements import ElementBatch
from cqels_py.dictionary.dictionary import Dictionary
from cqels_py.event_time.clock import ClockedWindow, Step, TickClock
from cqels_py.kernels import match as kernel
from cqels_py.kernels.dtypes import INT64
from cqels_py.kernels.hashing import mix
from cqels_py.operators.s2r.arrivals import ArrivalCounter, Arrivals
from cqels_py.plan.nodes import PatternText, is_variable

Int64 = npt.NDArray[np.int64]
_NONE = np.empty(0, np.int64)
_ROOM = 16
"""Matches beyond one a triple for which there is room at once."""
StreamPattern = tuple[PatternText, int]
"""A triple pattern, and the number of its stream within the query."""


@dataclass(slots=True)
class Turn:
    """One step of a front. Pattern j matches triples[first[j] : first[j + 1]] of the batch. `awaited`: seats yet to take it."""

    batch: ElementBatch
    step: Step
    arrivals: Arrivals
    first: list[int]
    triples: Int64
    awaited: int


class Front:
    """The clock, the counters and the router of the queries that sit here."""

    def __init__(
        self, windows: Sequence[ClockedWindow], streams: int, dictionary: Dictionary, *, every_boundary: bool
    ) -> None:
        self._clock = TickClock(windows, streams, every_boundary=every_boundary)
        self._counter = ArrivalCounter(streams)
        self._router = Router(dictionary)
        self._seats = 0
        self._turns: deque[Turn] = deque()
        self._forgotten = 0

    @property
    def now(self) -> int | None:
        """The time of the last element; None before the first."""
        return self._clock.now

    def sit(self, patterns: Sequence[StreamPattern]) -> Seat:
        """A place for a query with these patterns, before the first turn."""
        assert not self._forgotten
        assert not self._turns
        self._seats += 1
        return Seat(self, [self._router.add(pattern) for pattern in patterns])

    def take(self, number: int, batch: ElementBatch, move: Callable[[TickClock], Step]) -> Turn:
        """The turn of this number; `batch` and `move` make it if nobody has yet."""
        place = number - self._forgotten
        if place == len(self._turns):
            step = move(self._clock)
            arrivals = self._counter.take(batch, step)
            first, triples = self._router.match(batch, arrivals.element)
            made = Turn(batch, step, arrivals, first, triples, self._seats)
            if self._seats == 1:
                # Nobody else will ask for it.
                self._forgotten += 1
                return made
            self._turns.append(made)
        turn = self._turns[place]
        self._release(turn)
        return turn

    def leave(self, number: int, patterns: Sequence[int]) -> None:
        """A query goes, which has taken the turns before this number."""
        for turn in list(self._turns)[number - self._forgotten :]:
            self._release(turn)
        self._seats -= 1
        self._router.remove(patterns)

    def _release(self, turn: Turn) -> None:
        turn.awaited -= 1
        while self._turns and self._turns[0].awaited <= 0:
            self._turns.popleft()
            self._forgotten += 1


class Seat:
    """One query's place at a front."""

    def __init__(self, front: Front, patterns: list[int]) -> None:
        self._front = front
        self._patterns = patterns
        self._taken = 0
        self.left = False

    @property
    def now(self) -> int | None:
        return self._front.now

    def take(self, batch: ElementBatch, move: Callable[[TickClock], Step]) -> Turn:
        turn = self._front.take(self._taken, batch, move)
        self._taken += 1
        return turn

    def matches(self, turn: Turn) -> list[Int64]:
        """For each of the query's patterns the triples that match, in order."""
        first, triples = turn.first, turn.triples
        return [triples[first[j] : first[j + 1]] if first[j] < first[j + 1] else _NONE for j in self._patterns]

    def leave(self) -> None:
        """The query takes no more turns."""
        if not self.left:
            self._front.leave(self._taken, self._patterns)
            self.left = True


class Router:
    """Patterns by number, each with the queries that have it, and a table from predicates to them."""

    def __init__(self, dictionary: Dictionary) -> None:
        self._dictionary = dictionary
        self._numbers: dict[StreamPattern, int] = {}
        self._patterns: list[StreamPattern | None] = []
        self._constants: list[tuple[int, int, int]] = []
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
                self._constants.append((0, 0, 0))
                self._wanted.append(0)
            subject, predicate, object_ = constants
            self._patterns[number], self._constants[number] = pattern, (subject, predicate, object_)
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

    def match(self, batch: ElementBatch, element: Int64) -> tuple[list[int], Int64]:
        """Where each pattern's matches start (and the end), and the triples; `element`: that of each triple."""
        if not self._laid_out:
            self._lay_out()
        first, triples = self._first, np.empty(len(element) + _ROOM, INT64)
        while True:
            found = kernel.match(
                batch.subject, batch.predicate, batch.object, element, batch.stream, self._ids, self._same, self._streams,
                self._routes, self._route_first, self._route_patterns, first, triples,
            )  # fmt: skip
            if found <= len(triples):
                return first.tolist(), triples
            triples = np.empty(found, np.int64)

    def _lay_out(self) -> None:
        self._ids = np.array(self._constants, np.int64).reshape(-1, 3)
        self._first = np.empty(len(self._ids) + 1, np.int64)
        asked = [pattern or _NO_PATTERN for pattern in self._patterns]
        self._same = np.array([_same_positions(text) for text, _ in asked], np.int64)
        self._streams = np.array([stream for _, stream in asked], np.int64)
        size = 8
        while size < 4 * len(asked):
            size *= 2
        self._routes = np.zeros(size, np.int64)
        lists: list[list[int]] = [[] for _ in range(size + 1)]
        for number, pattern in enumerate(self._patterns):
            if pattern is not None:
                lists[self._slot(self._constants[number][1], size)].append(number)
        self._route_first = np.cumsum([0, *map(len, lists)], dtype=np.int64)
        self._route_patterns = np.array([number for numbers in lists for number in numbers], np.int64)
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


class Fronts:
    """The fronts at which a query can still sit: those that have had no turn."""

    def __init__(self) -> None:
        self._open: dict[object, Front] = {}

    def front(
        self,
        windows: Sequence[ClockedWindow],
        streams: Sequence[str],
        dictionary: Dictionary,
        *,
        every_boundary: bool,
        alone: bool = False,
    ) -> Front:
        """The front for these windows over these streams. `alone`: the query takes turns that others do not."""
        key = (tuple(windows), tuple(streams), every_boundary)
        if alone or key not in self._open:
            made = Front(windows, len(streams), dictionary, every_boundary=every_boundary)
            if alone:
                return made
            self._open[key] = made
        return self._open[key]

    def close(self) -> None:
        """Elements are about to be processed: who comes from now on sees others."""
        self._open.clear()


_NO_PATTERN: StreamPattern = (("?s", "?p", "?o"), -1)


def _same_positions(pattern: PatternText) -> int:
    subject, predicate, object_ = (text if is_variable(text) else None for text in pattern)
    same = 0
    if subject and subject == predicate:
        same |= kernel.SUBJECT_PREDICATE
    if subject and subject == object_:
        same |= kernel.SUBJECT_OBJECT
    if predicate and predicate == object_:
        same |= kernel.PREDICATE_OBJECT
    return same
