"""Work that queries over the same streams and windows share: the clock, the arrivals, matching, and equal sub-plans.

Queries that were registered with nothing processed in between, and whose windows change at the same instants, share their scans.
Those of later ones move to the scans of earlier ones after their first tick (`dataflow/moving.py`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from cqels_py.batches.elements import ElementBatch
from cqels_py.batches.rearrange import counted_triples, empty_elements
from cqels_py.dataflow.router import RoutedBatch, RoutedElement, Router
from cqels_py.dataflow.scan_readers import ReadableScan, ScanReader, ScanReaders
from cqels_py.dataflow.step_memory import StepMemory
from cqels_py.dataflow.work import StepTimer, Work
from cqels_py.dictionary import Dictionary
from cqels_py.event_time.clock import ClockedWindow, Step, TickClock
from cqels_py.event_time.timers import EventTimers
from cqels_py.event_time.windows import Measure
from cqels_py.kernels.primitives import state_record
from cqels_py.operators.s2r.arrivals import ArrivalCounter, Arrivals
from cqels_py.state.stop import Stop


class StepCache(Protocol):
    """Deltas that several readers share during one step."""

    def clear(self) -> None: ...


class SettlesCounts(Protocol):
    """Programs, which count the rows of sources."""

    def settle(self) -> None:
        """Between two steps: give the sources their counts."""
        ...


class ElementRecord(Protocol):
    """An element that the clock has taken in, and whose triples are routed."""

    @property
    def due_through(self) -> int: ...

    @property
    def last_session_end(self) -> int: ...

    def batch(self) -> ElementBatch: ...

    def step(self) -> Step: ...

    def matches(self, count: int) -> npt.NDArray[np.int64]: ...


class Foreseeing(Protocol):
    """Something that knows the instants of its changes before the clock makes the step's ticks, and sets timers for them."""

    work: Work

    def begin(self, time: int) -> None:
        """Time begins at this instant, before all elements."""
        ...

    @property
    def may_change(self) -> bool:
        """May something change without another element? Its instant is not known yet."""
        ...

    @property
    def is_plain(self) -> bool:
        """Is there an entry that does the same for an element?"""
        ...

    def foresee(self, batch: ElementBatch, through: int, last: int) -> None:
        """Take in the elements of the step to come. After it all is known through the end of the instant `through`.

        `last`: no timer may be later.
        """
        ...


class SharedScans:
    """One clock, one router and the sub-plans of the queries that are attached.

    `shared_subplans`: the sources that more than one query may read, by their fingerprint. `caches`: of the current step.
    `foreseeing`: those who see the elements of a step before the clock does. `key`: scans of equal keys have equal windows over the
    same streams; None: nobody else joins them.
    """

    def __init__(
        self,
        windows: Sequence[ClockedWindow],
        streams: int,
        dictionary: Dictionary,
        *,
        every_boundary: bool,
        timers: EventTimers | None = None,
        key: Hashable = None,
        memory: StepMemory | None = None,
    ) -> None:
        self.key = key
        self.memory = memory or StepMemory()
        """That of the programs of all scans of an engine."""
        self.origin: Hashable = (0,) * streams
        """Which elements the windows have seen: of scans with equal keys that move together, those with equal origins the same."""
        self.clock = TickClock(windows, streams, every_boundary=every_boundary, timers=timers)
        self._counter = ArrivalCounter(streams)
        self.router = Router(dictionary)
        self.readers = ScanReaders()
        self.single_reader = True
        """With a single query, steps need not determine the affected queries, nor scans whether they have changed."""
        self._only: tuple[ScanReader, ...] = ()
        self.shared_subplans: dict[Hashable, SharedSource] = {}
        self.caches: list[StepCache] = []
        self.broken: dict[SharedSource, Exception] = {}
        """Sources that have raised an error in the current step."""
        self.foreseeing: list[Foreseeing] = []
        self._counts_steps = any(not each.bounds.eager and not each.bounds.of_time for each in windows)
        self._has_partitions = any(each.partitioned for each in windows)
        self._last_tick: int | None = None
        self.program: SettlesCounts | None = None
        """The programs of the queries' steps of single elements, if there are some."""
        self.batch_programs: SettlesCounts | None = None
        """Those of their steps of more elements."""
        self.steps = StepTimer()
        self.timer: StepTimer | None = None
        """That of the current step, if it is measured."""

    @property
    def now(self) -> int | None:
        """The time of the last element; None before the first."""
        return self.clock.now

    @property
    def through(self) -> int:
        """The instant through whose end all has been told."""
        return self.clock.through

    @property
    def last_tick(self) -> int | None:
        """The time of the last tick, where windows that count have STEP: no arithmetic on times tells it. None: none yet."""
        return self._last_tick

    @property
    def least_delay(self) -> int | None:
        """The least delay, in microseconds, of a timer after the tick at which an operator sets it; None: no operator sets any."""
        return None if self.clock.timers is None else self.clock.timers.least_delay

    @property
    def may_begin(self) -> bool:
        """Can time begin without an element?"""
        return self.clock.may_begin

    @property
    def may_change(self) -> bool:
        """May something change without another element, at an instant that is not known yet?"""
        return any(each.may_change for each in self.foreseeing)

    def arrived(self, stream: int, measure: Measure) -> int:
        """How many elements, or triples, of a stream have arrived."""
        counts = self._counter.triples if measure is Measure.TRIPLES else self._counter.elements
        return counts[stream]

    def next_instant(self) -> int:
        """Before this instant nothing but an arrival is a tick."""
        return self.clock.next_instant()

    def stateful_parts(self) -> dict[str, object]:
        """The clock and the counter, which keep state."""
        return {"clock": self.clock, "arrivals": self._counter}

    def attach(self, scans: Iterable[ReadableScan]) -> ScanReader:
        """A query reads these scans, before the first step."""
        if self.single_reader:
            # A single reader needs no timers.
            for only in self.readers:
                self.readers.resume(only)
        is_first = len(self.readers) == 0
        # Nothing that may fail follows.
        reader = self.readers.attach(scans)
        self.single_reader = is_first
        self._only = (reader,) if self.single_reader else ()
        return reader

    # --- moving to the scans of earlier queries ---------------------------------------------------------------------

    @property
    def can_move(self) -> bool:
        """May the sources on these scans move to others of the same key? Not where steps are counted from the first element on."""
        return self.key is not None and not self.foreseeing and not self._counts_steps

    def number_as(self, others: SharedScans) -> None:
        """Before the first step: elements get the numbers that they have for scans of the same key."""
        self.clock.number_as(others.clock)
        self._counter.number_as(others._counter)
        self.origin = tuple(self._counter.elements)

    def restored(self) -> None:
        """The windows have contents of before, which no others are known to have."""
        self.origin = object()

    def stands_with(self, others: SharedScans) -> bool:
        """Would a step of these scans be one of the others, but for ticks at which nothing changes?"""
        return self.clock.stands_with(others.clock) and self._counter.stands_with(others._counter)

    def has_ticks_of(self, others: SharedScans, *, every: bool) -> bool:
        """Where these stand together: are the ticks to come those of the others? `every`: also those at which nothing changes."""
        return (self.clock.can_merge and not every) or self.clock.has_ticks_of(others.clock)

    # --- steps ----------------------------------------------------------------------------------------------------

    def step(self, batch: ElementBatch) -> RoutedBatch:
        """Elements of the streams, in order; `batch.stream` are positions in the streams."""
        self.timer = self.steps.begin(len(batch))
        if len(batch):
            self._foresee(batch, max(self.clock.through, batch.time.item(-1) - 1))
        first = batch.first if batch.counted is None else counted_triples(batch).first
        return self._route(batch, self.clock.step(batch.time, batch.stream, first))

    @property
    def has_plain_steps(self) -> bool:
        """Is a step of a single element its clock's, and nothing else's? Then programs may do it."""
        # Timers that nobody foresees are set between two steps.
        foreseen = self.clock.timers is None or bool(self.foreseeing)
        return foreseen and all(each.is_plain for each in self.foreseeing) and self.clock.takes_single

    @property
    def may_divide(self) -> bool:
        """May the elements of a step be taken in one by one, with the same results in the same order?

        Not with PARTITION BY and RULES: mappings that leave in any order give their places to others, so that the steps decide the
        order of results within a tick.
        """
        return not (self._has_partitions or self.foreseeing)

    def foresee_one(self, batch: ElementBatch) -> None:
        """Go on where the entry of those who foresee has stopped, before the clock takes in the only element of this batch."""
        self._foresee(batch, max(self.clock.through, batch.time.item(-1) - 1))

    @property
    def is_plain(self) -> bool:
        """May one program do the whole step?"""
        return self.single_reader and self.has_plain_steps

    def took_in(self, stream: int, time: int, triples: int, last_tick: int | None) -> None:
        """A program has done the whole step of one element, which had its last tick at this time."""
        self.begin_one(stream, time, triples, last_tick)
        if state_record.CHECKED:
            state_record.check_replaced()

    def begin_one(self, stream: int, time: int, triples: int, last_tick: int | None) -> None:
        """The clock has taken in an element, in a step that programs do, each for a query."""
        self.clock.took_in(time)
        self._counter.count_one(stream, triples)
        if self._counts_steps and last_tick is not None:
            self._last_tick = last_tick

    def routed_one(self, taken: ElementRecord) -> RoutedElement:
        """How far the step of this element has come, once its triples are routed."""
        return RoutedElement(self.router, taken.due_through, taken.last_session_end, self._counter)

    def routed_by_program(self, taken: ElementRecord) -> RoutedBatch:
        """The step of this element, for calls."""
        batch, step = taken.batch(), taken.step()
        first = self.router.first
        return RoutedBatch(batch, step, self._counter.of_one(batch, step), first, taken.matches(first.item(-1)))

    def routed_anew(self, batch: ElementBatch, step: Step) -> RoutedBatch:
        """As `routed_by_program`, where there was no room for the matches."""
        return self.router.route(batch, step, self._counter.of_one(batch, step))

    def scanned(self, stream: int, triples: int, step: Step) -> RoutedBatch:
        """A program has taken an element into all windows: the rest of the step is the operators'."""
        self._counter.count_one(stream, triples)
        self._note_tick(step)
        return RoutedBatch(_NOTHING, step, Arrivals(step, _NONE), _NONE, _NONE)

    def resume(self, batch: ElementBatch, step: Step) -> RoutedBatch:
        """Go on with the step of one element that the clock has taken in."""
        return self._route(batch, step)

    def advance(self, time: int, *, begin: bool = False) -> RoutedBatch:
        """No element before `time` (microseconds) will come any more. `begin`: time begins there if nothing has come yet."""
        self.timer = self.steps.begin(0)
        if begin and self.clock.may_begin:
            for each in self.foreseeing:
                each.begin(time)
            return self._route(_NOTHING, self.clock.begin(time))
        now = self.clock.now
        if now is not None:
            self._foresee(_NOTHING, max(self.clock.through, time - 1))
        return self._route(_NOTHING, self.clock.advance(time))

    def finish(self) -> RoutedBatch:
        """The sources have ended; time stands at the last instant that is told, until more elements come."""
        self.timer = self.steps.begin(0)
        if (now := self.clock.now) is not None:
            self._foresee(_NOTHING, self.clock.last_instant(), now)
        return self._route(_NOTHING, self.clock.finish())

    def set_timer(self, instant: int) -> None:
        """Ask for a tick at the end of an instant, for one who foresees; none where all has been told through that instant."""
        assert self.clock.timers is not None
        if instant > self.clock.through:
            self.clock.timers.set(instant)

    def _foresee(self, batch: ElementBatch, through: int, last: int | None = None) -> None:
        timer = self.timer
        for each in self.foreseeing:
            if timer is not None:
                timer.enter(each.work)
            each.foresee(batch, through, through if last is None else last)
            if timer is not None:
                timer.leave()

    def _route(self, batch: ElementBatch, step: Step) -> RoutedBatch:
        self._note_tick(step)
        return self.router.route(batch, step, self._counter.take(batch, step))

    def _note_tick(self, step: Step) -> None:
        if self._counts_steps and len(step.ticks):
            self._last_tick = step.ticks.time.item(-1)

    def affected(self, routed: RoutedBatch) -> Iterable[ScanReader]:
        """The queries that a step affects, in the order in which they were attached."""
        return self._only or self.readers.affected(routed)

    def end_step(self) -> None:
        """All affected queries have taken part."""
        if not self.single_reader:
            self.readers.set_timers()
        for cache in self.caches:
            cache.clear()
        self.caches.clear()
        if self.timer is not None:
            self.timer.end()
            self.timer = None
        if state_record.CHECKED:
            state_record.check_replaced()


class SharedSource:
    """A source of deltas, or a part of one, that several operators and queries may read; without readers it is removed.

    `key`: its fingerprint among the shared sub-plans; None for one that no other query can read.
    """

    def __init__(self, shared_scans: SharedScans) -> None:
        self._shared_scans = shared_scans
        self.work = Work()
        self.readers = 0
        self.key: Hashable = None
        self.failure: Exception | None = None
        """The error that ended it in the middle of a step: its state is lost, and no reader may go on."""

    def move(self, shared_scans: SharedScans, key: Hashable) -> None:
        """From now on it is on these scans, where queries find it by this key; None: by none."""
        self._shared_scans, self.key = shared_scans, key
        if key is not None:
            shared_scans.shared_subplans[key] = self

    @property
    def stops(self) -> Iterable[Stop]:
        """Where others ask its evaluation to stop."""
        return ()

    def fail(self, error: Exception) -> None:
        """It has raised this error in the middle of a step."""
        if self.failure is None:
            self.failure = error
            self._shared_scans.broken[self] = error
            if self.key is not None:
                # No other query finds it.
                del self._shared_scans.shared_subplans[self.key]
                self.key = None

    def check_whole(self) -> None:
        """Raise the error that ended it, if there was one."""
        if self.failure is not None:
            raise self.failure

    def acquire(self) -> None:
        """Add a reader."""
        self.readers += 1

    def release(self) -> None:
        """Remove a reader."""
        self.readers -= 1
        if not self.readers:
            self.give_up()

    def give_up(self) -> None:
        """Called when the last reader has been removed."""
        if self.key is not None:
            del self._shared_scans.shared_subplans[self.key]
        self._release_inputs()

    def _release_inputs(self) -> None:
        """Stop reading its own inputs."""


class SharedScansPool:
    """The scans that a query can still join: those that have had no step."""

    def __init__(self) -> None:
        self._open: dict[object, SharedScans] = {}
        self.is_open = False
        """Are there scans that queries can join?"""
        self._memory = StepMemory()
        self.shares = True
        """Otherwise each query gets scans of its own."""

    def join(
        self,
        windows: Sequence[ClockedWindow],
        streams: Sequence[str],
        dictionary: Dictionary,
        *,
        every_boundary: bool,
        alone: bool = False,
        timers: EventTimers | None = None,
        apart: bool = False,
    ) -> SharedScans:
        """The scans of these windows over these streams. `alone`: the query has steps that others have not, as with `timers`.

        `apart`: it shares them with others that are apart, too.
        """
        # Windows without steps have no boundaries.
        every_boundary = every_boundary and any(not each.bounds.eager and each.bounds.of_time for each in windows)
        key = (tuple(windows), tuple(streams), every_boundary, apart)
        alone = alone or not self.shares
        if alone or key not in self._open:
            own = None if alone else key
            made = SharedScans(
                windows,
                len(streams),
                dictionary,
                every_boundary=every_boundary,
                timers=timers,
                key=own,
                memory=self._memory,
            )
            if alone:
                return made
            self._open[key], self.is_open = made, True
        return self._open[key]

    def open_again(self, scans: SharedScans) -> None:
        """The next queries with equal windows join these scans, which have had no step here."""
        if scans.key is not None:
            self._open[scans.key], self.is_open = scans, True

    def close(self) -> None:
        """Elements are about to be processed: queries that are registered from now on see others."""
        self._open.clear()
        self.is_open = False


_NOTHING, _NONE = empty_elements(), np.empty(0, np.int64)
