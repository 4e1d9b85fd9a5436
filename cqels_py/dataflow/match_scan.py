"""MATCH: the elements of a step become rows of events, and these the matches that an automaton finds."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt

from cqels_py.batches.delta import Delta, empty
from cqels_py.batches.elements import Ids
from cqels_py.dataflow.match_program import match_program
from cqels_py.dataflow.ownership import Condition
from cqels_py.dataflow.router import RoutedBatch
from cqels_py.dataflow.shared_scans import SharedScans
from cqels_py.dataflow.step_source import StepSource
from cqels_py.event_time.windows import NEVER, Measure
from cqels_py.kernels.patterns import event_rows as rows_kernel
from cqels_py.kernels.patterns import runs as kernel
from cqels_py.operators.r2r.expressions import Evaluator
from cqels_py.operators.s2r.window import Timer
from cqels_py.plan.nodes import MatchRows, PlannedEvent, is_variable
from cqels_py.state.match_state import MatchState, TermTexts
from cqels_py.state.stop import Stop

Int64 = npt.NDArray[np.int64]


class EventEvaluators:
    """The evaluators of an event's expressions: `time` of AT, `bindings` and `conditions` in their order."""

    def __init__(self, time: Evaluator | None, bindings: Sequence[Evaluator], conditions: Sequence[Evaluator]) -> None:
        self.time = time
        self.bindings = tuple(bindings)
        self.conditions = tuple(conditions)

    @property
    def all(self) -> tuple[Evaluator, ...]:
        return (*(() if self.time is None else (self.time,)), *self.bindings, *self.conditions)


class EventScan:
    """The rows of one event. `patterns`: the numbers that the router has given its patterns."""

    def __init__(self, event: PlannedEvent, stream: int, patterns: Sequence[int], evaluators: EventEvaluators) -> None:
        self._event = event
        self._stream = stream
        self.patterns = tuple(patterns)
        self._evaluators = evaluators
        self._owned: tuple[Condition, ...] = ()
        self.stop = Stop()
        self.spec = _spec(event)
        self.scratch = np.zeros(1 + 4 * max(1, len(patterns)) + len(event.columns), np.int64)

    @property
    def is_plain(self) -> bool:
        """Are its rows those of its patterns, all of them?"""
        return bool(self.patterns) and not self._owned

    @property
    def expressions(self) -> list[tuple[Evaluator, Int64]]:
        """Those of computed columns, then its conditions, each with the columns of its inputs."""
        event, evaluators = self._event, self._evaluators
        time = [] if evaluators.time is None else [(evaluators.time, np.empty(0, np.int64))]
        programs = [program for _, program in event.bindings], event.conditions
        of_programs = zip(chain(evaluators.bindings, evaluators.conditions), chain(*programs), strict=True)
        return [*time, *((evaluator, self._places(program.inputs)) for evaluator, program in of_programs)]

    @property
    def columns(self) -> list[str]:
        """The variables of its patterns, then those that are computed."""
        event = self._event
        time = [] if self._evaluators.time is None else [event.time]
        return [*event.columns, *time, *(name for name, _ in event.bindings)]

    @property
    def matched(self) -> int:
        """The number of its patterns' variables."""
        return len(self._event.columns)

    @property
    def chosen(self) -> Int64:
        """The columns that are kept."""
        return self._places(self._event.variables)

    @property
    def required(self) -> Int64:
        """The columns that must have a value."""
        return self._places(self._event.required)

    def _places(self, names: Sequence[str]) -> Int64:
        columns = self.columns
        return np.array([columns.index(name) for name in names], np.int64)

    def keep_to(self, cell: Sequence[Condition]) -> None:
        """Rows of other parts are left out, by the variables of the triple patterns."""
        self._owned = tuple(coordinate for coordinate in cell if coordinate.variable in self._event.columns)

    def may_match(self, routed: RoutedBatch) -> bool:
        """Has each of its patterns a match in the step?"""
        first = routed.first
        return all(first.item(pattern) < first.item(pattern + 1) for pattern in self.patterns)

    def rows(self, routed: RoutedBatch) -> tuple[Int64, Int64]:
        """The elements of the rows (n), and the values that the automaton keeps (variables, n)."""
        event, batch = self._event, routed.batch
        element, values = self._joined(routed)
        columns = dict(zip(event.columns, values, strict=True))
        kept = np.arange(len(element))
        if len(element):
            for coordinate in self._owned:
                kept = kept[coordinate.mine(columns[coordinate.variable][kept])]
            times = batch.time[element]
            if self._evaluators.time is not None:
                columns[event.time] = self._evaluators.time.evaluate([], times)
            for (name, program), evaluator in zip(event.bindings, self._evaluators.bindings, strict=True):
                columns[name] = evaluator.evaluate([columns[each] for each in program.inputs], times)
            for name in event.required:
                kept = kept[columns[name][kept] != 0]
            for program, evaluator in zip(event.conditions, self._evaluators.conditions, strict=True):
                if len(kept):
                    kept = kept[evaluator.test([columns[each][kept] for each in program.inputs], times[kept])]
        if not len(kept):
            return kept, np.empty((len(event.variables), 0), np.int64)
        chosen = [columns[name][kept] for name in event.variables]
        return element[kept], np.array(chosen, np.int64).reshape(len(chosen), len(kept))

    def _joined(self, routed: RoutedBatch) -> tuple[Int64, Int64]:
        batch = routed.batch
        if not self.patterns:
            element = np.flatnonzero(batch.stream == self._stream)
            return element, np.empty((0, len(element)), np.int64)
        bounds = np.array([routed.first[[p, p + 1]] for p in self.patterns], np.int64)
        room = 2 * int((bounds[:, 1] - bounds[:, 0]).min())
        chains = np.empty((2 * len(bounds), len(routed.triples)), np.int64)
        while True:
            element, values = np.empty(room, np.int64), np.empty((len(self._event.columns), room), np.int64)
            made = rows_kernel.event_rows(
                batch.subject, batch.predicate, batch.object, routed.arrivals.element, routed.triples, bounds, self.spec,
                self.scratch, chains, element, values,
            )  # fmt: skip
            if made != rows_kernel.FULL:
                break
            self.stop.look()
            room *= 2
        element, values = element[:made], values[:, :made]
        if self.scratch[0] == rows_kernel.REPEATED:
            distinct = np.unique(np.vstack([element, values]), axis=1)
            return np.ascontiguousarray(distinct[0]), np.ascontiguousarray(distinct[1:])
        return element, values


def _spec(event: PlannedEvent) -> Int64:
    """For each pattern the columns that its positions bind and compare, as the kernel reads it."""
    spec = np.full((len(event.patterns), 3), rows_kernel.ANY, np.int64)
    bound: set[str] = set()
    for place, pattern in enumerate(event.patterns):
        for position, text in enumerate(pattern):
            if is_variable(text):
                column = event.columns.index(text[1:])
                spec[place, position] = -2 - column if text in bound else column
                bound.add(text)
    return spec


class MatchScan(StepSource):
    """The matches of one MATCH. Its deltas are made once a step. `streams`: which of the plan's streams are the pattern's."""

    STATE = ("state",)

    def __init__(
        self,
        node: MatchRows,
        stream_of: Sequence[int],
        streams: npt.NDArray[np.bool_],
        evaluators: Sequence[EventEvaluators],
        values: TermTexts,
        shared_scans: SharedScans,
    ) -> None:
        super().__init__(shared_scans)
        self.node = node
        self.stream = stream_of[0]
        self.conditions = tuple(each for event in evaluators for each in event.all)
        self.streams = streams
        self._counts_all = bool(streams.all())
        program = match_program(node)
        self.width = program.width
        self.state = MatchState(
            program.arrays,
            values,
            width=program.width,
            variables=program.variables,
            outputs=len(node.variables),
            longest_key=program.longest_key,
        )
        # In one element, events of NOT come first: those of other rows then know them.
        absent = [gap.event for gap in node.absent]
        self.order = [*absent, *(number for number in range(len(node.events)) if number not in absent)]
        self._nothing = empty(len(node.variables))
        self._no_rows = np.empty((0, kernel.VALUES + self.width), np.int64)
        self._stream_of = tuple(stream_of)
        # Last: a failure before this leaves no pattern behind.
        self._patterns = self._add_patterns(shared_scans)
        self.events = [
            EventScan(event, stream, patterns, each)
            for event, stream, patterns, each in zip(node.events, stream_of, self._patterns, evaluators, strict=True)
        ]

    def _add_patterns(self, shared_scans: SharedScans) -> list[tuple[int, ...]]:
        """Have the router of these scans match the patterns of all events: their numbers."""
        add = shared_scans.router.add
        of_events = zip(self.node.events, self._stream_of, strict=True)
        return [tuple([add((pattern, stream)) for pattern in event.patterns]) for event, stream in of_events]

    def move(self, shared_scans: SharedScans, key: Hashable) -> None:
        """See `SharedSource`; the router there matches its patterns."""
        self._patterns = self._add_patterns(shared_scans)
        for event, patterns in zip(self.events, self._patterns, strict=True):
            event.patterns = patterns
        super().move(shared_scans, key)

    @property
    def stops(self) -> tuple[Stop, ...]:
        return self.state.stop, *[each.stop for each in self.events], *[each.stop for each in self.conditions]

    @property
    def patterns(self) -> set[int]:
        """The numbers of the patterns of its events."""
        return {number for patterns in self._patterns for number in patterns}

    @property
    def next_timer(self) -> Timer:
        """It takes part in every step where it counts elements, retracts matches, or has an event of any element."""
        node = self.node
        if node.within_events is not None or node.retract or not all(self._patterns):
            return None
        return Measure.ELEMENTS, NEVER

    @property
    def is_plain(self) -> bool:
        """Are the rows of all events those of their patterns that fulfil their conditions?"""
        return all(event.is_plain for event in self.events)

    def _advance(self, routed: RoutedBatch) -> Delta:
        batch, step, state = routed.batch, routed.step, self.state
        before = state.positions
        if self._counts_all:
            state.positions = before + len(batch)
            rows, element_tick = self._rows(routed, before, None), step.element_tick
        else:
            mine = self.streams[batch.stream]
            state.positions = before + int(mine.sum())
            rows, element_tick = self._rows(routed, before, mine), step.element_tick[mine]
        if not len(rows) and not self.node.retract:
            return self._nothing
        self.work.rows_in += len(rows)
        numbers = np.array([before, state.positions - 1, step.expired_through], np.int64)
        found = state.step(rows, step.ticks.time, element_tick.astype(np.int64), numbers)
        if not len(found):
            return self._nothing
        tick, sign = found[:, kernel.OUT_TICK].astype(np.int32), found[:, kernel.OUT_SIGN].astype(np.int8)
        return Delta(tick, sign, found[:, kernel.OUT_VALUES :].T)

    def _rows(self, routed: RoutedBatch, before: int, mine: npt.NDArray[np.bool_] | None) -> Int64:
        """The rows of all events, by element and then by event.

        `before`: so many elements have had positions; `mine`: which of the batch get one (None: all).
        """
        batch, found = routed.batch, []
        for number in self.order:
            event = self.events[number]
            if not event.may_match(routed):
                continue
            element, values = event.rows(routed)
            if len(element):
                rows = np.zeros((len(element), kernel.VALUES + self.width), np.int64)
                rows[:, kernel.EVENT] = number
                rows[:, kernel.AT] = before + (element if mine is None else np.cumsum(mine)[element] - 1)
                rows[:, kernel.WHEN], rows[:, kernel.TICK] = batch.time[element], routed.step.element_tick[element]
                rows[:, kernel.VALUES : kernel.VALUES + len(values)] = values.T
                found.append(rows)
        if not found:
            return self._no_rows
        if len(found) == 1:
            return found[0]
        rows = np.concatenate(found)
        return np.ascontiguousarray(rows[np.argsort(rows[:, kernel.AT], kind="stable")])

    def keep_to(self, cell: Sequence[Condition]) -> None:
        """Take in only rows that belong to this part of a divided state."""
        for event in self.events:
            event.keep_to(cell)

    def live_ids(self) -> Iterator[Ids]:
        """Ids of runs, of standing matches, and in expressions."""
        yield from self.state.live_ids()
        for condition in self.conditions:
            yield from condition.live_ids()

    @property
    def nbytes(self) -> int:
        return self.state.nbytes

    def _release_inputs(self) -> None:
        for patterns in self._patterns:
            for number in patterns:
                self._shared_scans.router.remove(number)
