"""The element that programs take in: its record, which Python writes and the first rows of a program complete."""

from __future__ import annotations

import numpy as np

from cqels_py.batches.elements import ElementBatch
from cqels_py.dataflow.program_parts import MOST_MATCHES, StepTicks, view_of
from cqels_py.event_time.clock import Step, TickClock
from cqels_py.event_time.windows import BEFORE_ALL
from cqels_py.kernels.primitives.state_record import ArrayTable
from cqels_py.kernels.steps import element
from cqels_py.operators.s2r.arrivals import ArrivalCounter, Arrivals

MOST_TRIPLES = 16
"""Of one element. Larger ones are left to the calls."""
_MOST_BYTES = 1 << 12
_MOST_TICKS = 1 << 10
"""Of a step whose rows programs do."""

_TIME = element.STEP + 1
_FIRST, _LAST, _NUMBERS = _TIME + 1, _TIME + 2, _TIME + 3
"""Where the element's time and its first and last triple are, in one array with its words."""


class ElementRecord:
    """Room for one element of the streams of a clock. `address`: the argument for entries; `ticks`: of the current step."""

    def __init__(self, clock: TickClock) -> None:
        self._clock = clock
        # The step, if Python has made it.
        self._made: Step | None = None
        # Numbers are written one by one, for which a memoryview takes a third of the time that an array takes.
        numbers, self._stream = np.zeros(_NUMBERS, np.int64), np.empty(1, np.int32)
        self._words, self._number = numbers[:_TIME], np.empty(1, np.int64)
        self._time, self._first = numbers[_TIME:_FIRST], numbers[_FIRST:_NUMBERS]
        self._columns, self._matches = np.empty(3 * MOST_TRIPLES, np.int64), np.empty(MOST_MATCHES, np.int64)
        self._element_tick, texts = np.empty(1, np.int32), np.empty(_MOST_BYTES, np.uint8)
        of_triple = np.zeros(MOST_TRIPLES, np.int64)
        self._boundaries = np.empty(_MOST_TICKS, np.int64)
        self._table = ArrayTable(
            self._words, self._time, self._stream, self._first, self._columns, of_triple, self._number, self._element_tick,
            self._matches, texts, self._boundaries,
        )  # fmt: skip
        self.address = self._table.address
        self.ticks = StepTicks(clock, self._time, self._words)
        self._to_numbers, self._to_stream, self._to_texts = view_of(numbers), view_of(self._stream), view_of(texts)
        self._to_columns = view_of(self._columns)

    def put_lines(self, stream: int, time: int, lines: bytes, triples: int, scope: int) -> bool:
        """Write an element, which begins a step: the terms of its triples, a line each, and the scope of its blank nodes.

        False: there is no room for them.
        """
        length = len(lines)
        if triples > MOST_TRIPLES or length > _MOST_BYTES:
            return False
        self._to_texts[:length], to = lines, self._to_numbers
        self._to_stream[0], self._made = stream, None
        to[element.LENGTH], to[element.SCOPE], to[element.TRIPLES] = length, scope, triples
        to[_TIME], to[_LAST], to[element.THROUGH] = time, triples, self._clock.told_before(time)
        to[element.STEP] += 1
        return True

    def put_ids(self, batch: ElementBatch) -> int:
        """Write the only element of a batch, which begins a step. Returns how many triples it has; 0: there is no room for them."""
        triples, time = len(batch.subject), batch.time.item(0)
        if triples == 1:
            to = self._to_columns
            to[0], to[1], to[2] = batch.subject.item(0), batch.predicate.item(0), batch.object.item(0)
        elif triples <= MOST_TRIPLES:
            columns = self._columns[: 3 * triples].reshape(3, triples)
            columns[0], columns[1], columns[2] = batch.subject, batch.predicate, batch.object
        else:
            return 0
        self._made = None
        self._to_stream[0], to = batch.stream.item(0), self._to_numbers
        to[element.TRIPLES], to[_TIME], to[_LAST], to[element.THROUGH] = (
            triples,
            time,
            triples,
            self._clock.told_before(time),
        )
        to[element.STEP] += 1
        return triples

    def take_time(self) -> bool:
        """Let the clock take in the element, as its entry has stopped. False: there are too many ticks for a program."""
        to = self._to_numbers
        if self._clock.timers is not None:
            self._clock.set_timers(self._boundaries[: to[element.DUE_BOUNDARIES]])
        made = self._clock.step(self._time.copy(), self._stream.copy(), self._first.copy())
        to[element.TICKS], to[element.DUE_THROUGH] = len(made.ticks), made.expired_through
        if any(map(len, made.session_ends)):
            to[element.ENDED] = to[element.STEP]
        self._number[:], self._element_tick[:], self._made = made.number, made.element_tick, made
        return len(made.ticks) <= _MOST_TICKS

    @property
    def stream(self) -> int:
        """The number of its stream within the query."""
        return self._to_stream[0]

    @property
    def time(self) -> int:
        """Its time."""
        return self._to_numbers[_TIME]

    @property
    def triples(self) -> int:
        """How many triples it has."""
        return self._to_numbers[element.TRIPLES]

    @property
    def number(self) -> int:
        """That of the step."""
        return self._to_numbers[element.STEP]

    @property
    def due_through(self) -> int:
        """The instant through which everything due has happened, once the clock has taken it in."""
        return self._to_numbers[element.DUE_THROUGH]

    @property
    def last_tick(self) -> int | None:
        """The time of the step's last tick; None: it has none."""
        ticks = self._to_numbers[element.TICKS]
        if not ticks:
            return None
        # Of more than a program has room for, the clock may have kept none.
        return self._clock.instant(ticks - 1) if self._made is None else self._made.ticks.time.item(-1)

    @property
    def last_session_end(self) -> int:
        """As of the current step."""
        return BEFORE_ALL if self._made is None else self._made.last_session_end

    def batch(self) -> ElementBatch:
        """The element, whose terms have ids."""
        columns = self._columns[: 3 * self.triples].reshape(3, -1).copy()
        return ElementBatch(self._time.copy(), self._stream.copy(), self._first.copy(), *columns)

    def arrivals(self) -> Arrivals:
        """That of the element, which the clock has taken in: the arrivals of a step by calls."""
        counter = ArrivalCounter(0)
        counter.elements, counter.triples = self._clock.counts
        return counter.of_one(self.batch(), self.step())

    def matches(self, count: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """The first matches that were routed."""
        return self._matches[:count].copy()

    def step(self) -> Step:
        """The step of the element that the clock has taken in; the clock goes on to its time."""
        if self._made is not None:
            return self._made
        words = self._to_numbers
        return self._clock.step_of_one(
            self.time, words[element.TICKS], words[element.DUE_THROUGH], self._element_tick.copy(), self._number.copy()
        )
