"""The rows of a program as Python sees them: where they write, which values Python makes for them, how calls go on after them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from cqels_py.batches.delta import Delta, concatenate
from cqels_py.batches.elements import Ids
from cqels_py.dataflow.counted_join import CountedJoinScan
from cqels_py.dataflow.delta_sources import OperatorNode
from cqels_py.dataflow.event_rows import EventRowsScan
from cqels_py.dataflow.match_scan import EventScan, MatchScan
from cqels_py.dataflow.router import RoutedBatch
from cqels_py.dataflow.scans import WindowScan
from cqels_py.dataflow.state_scan import StateScan
from cqels_py.dataflow.step_memory import SharedBlocks
from cqels_py.event_time.clock import TickClock, Ticks
from cqels_py.kernels.joins import counted
from cqels_py.kernels.patterns import runs
from cqels_py.kernels.primitives.state_record import ArrayTable
from cqels_py.kernels.rows import distinct
from cqels_py.kernels.steps import by_calls, element, events, groups, matches, scan
from cqels_py.kernels.structures import ring_index
from cqels_py.operators.r2r.aggregate import GroupBy
from cqels_py.operators.r2r.distinct import DistinctRows
from cqels_py.operators.r2r.expressions import Evaluator
from cqels_py.operators.r2r.leaf_join import LeafJoin, LeafRows, needed_leaves
from cqels_py.operators.r2r.top import TopRows
from cqels_py.operators.s2r.arrivals import Arrivals
from cqels_py.operators.s2r.window import SlidingWindow, WaitingWindow
from cqels_py.state.counted_state import overflow

MOST_ROWS, MOST_MATCHES = 128, 64
"""Of the changes of one source in a step, and of matches of triples with patterns. With more, the calls go on."""
_FEW_ROWS = 8
"""So many are copied by views that are kept: most steps of single elements make fewer."""
_Rows: TypeAlias = tuple[npt.NDArray[np.int32], npt.NDArray[np.int8], Ids]
"""Ticks, signs and columns."""


def view_of(array: npt.NDArray[Any]) -> memoryview:
    """The array's memory, whose items are read and written faster one by one."""
    return memoryview(cast(bytearray, array))


class DeltaRecord:
    """Where an entry writes a delta of this width. `room`: the most rows."""

    def __init__(self, width: int, room: int = MOST_ROWS) -> None:
        self.width, self.room = width, room
        self.behind_first = range(1, width)
        """The columns but for the first."""
        count = np.zeros(1, np.int64)
        self.count = view_of(count)
        """How many rows there are, as its only item."""
        self._tick, self._sign = np.empty(room, np.int32), np.empty(room, np.int8)
        self._columns = np.empty(width * room, np.int64)
        self.table = ArrayTable(self._tick, self._sign, self._columns, count)
        self.address = self.table.address
        self._few: dict[tuple[int, int], _Rows] = {}

    def __len__(self) -> int:
        return self.count[0]

    def taken(self, count: int, apart: int) -> _Rows:
        """Ticks, signs and columns (width, n) of the first n = `count` rows, copied. Columns begin so many places `apart`."""
        tick, sign, columns = self.rows(count, apart)
        return tick.copy(), sign.copy(), columns.copy()

    def rows(self, count: int, apart: int) -> _Rows:
        """The arrays that `taken` copies."""
        known = self._few.get((count, apart))
        if known is not None:
            return known
        columns = self._columns[: self.width * apart].reshape(self.width, apart)[:, :count]
        found = self._tick[:count], self._sign[:count], columns
        if apart <= _FEW_ROWS:
            self._few[count, apart] = found
        return found

    def deltas(self) -> tuple[Delta, ...]:
        """The delta as those of a step."""
        count = len(self)
        return (Delta(*self.taken(count, count)),) if count else ()

    def begun(self, count: int) -> Delta:
        """So many rows of one that is not complete."""
        return Delta(*self.taken(count, self.room))

    @property
    def tick(self) -> npt.NDArray[np.int32]:
        """The ticks of its rows, not copied."""
        return self._tick[: len(self)]

    @property
    def sign(self) -> npt.NDArray[np.int8]:
        """The signs of its rows, not copied."""
        return self._sign[: len(self)]

    @property
    def columns(self) -> Ids:
        """The columns of its rows (width, n), not copied."""
        return self._columns[: self.width * len(self)].reshape(self.width, len(self))

    def put(self, delta: Delta) -> None:
        """Write a delta, as an entry would. It has few enough rows."""
        count = len(delta)
        self.count[0] = count
        self._tick[:count], self._sign[:count] = delta.tick, delta.sign
        self._columns[: self.width * count] = delta.columns.reshape(-1)


class CurrentTicks(Protocol):
    """Where the ticks of the current step are."""

    def ticks(self) -> Ticks:
        """The ticks."""
        ...


@dataclass(frozen=True, slots=True)
class StepTicks:
    """Where the ticks of a program's current step are: the clock, and the element's time and words."""

    clock: TickClock
    time: Ids
    words: Ids

    def ticks(self) -> Ticks:
        """The ticks."""
        return self.clock.ticks_of_one(self.time.item(), self.words.item(element.TICKS))


class Part(Protocol):
    """A row of a program, and the source that it stands for."""

    def make_room(self, time: int, triples: int) -> None:
        """Make room in the source's state, as its entry has asked for, in the step of an element of so many triples."""
        ...

    def find_values(self) -> None:
        """Find the values that its entry has asked for: they are not inline, or need texts."""
        ...

    def hand_over(self, routed: RoutedBatch) -> None:
        """The calls go on: give the source the deltas that have been made."""
        ...

    def hand_over_begun(self, routed: RoutedBatch) -> None:
        """The program has stopped here: if the entry has begun, the source goes on with the rest."""
        ...


class CurrentElement(Protocol):
    """The element that a program takes in."""

    def arrivals(self) -> Arrivals:
        """As of a step by calls."""
        ...


@dataclass(slots=True)
class ScanPart:
    """A scan over a sliding window, or over one from which nothing expires, which needs no room."""

    scan: WindowScan
    window: SlidingWindow | None
    output: DeltaRecord

    def make_room(self, time: int, triples: int) -> None:
        assert self.window is not None
        self.window.reserve(np.full(triples, time))

    def find_values(self) -> None:
        raise AssertionError("the entry of this row asks for no values")

    def hand_over(self, routed: RoutedBatch) -> None:
        made = self.output.deltas()
        self.scan.work.rows_in += sum([int((delta.sign > 0).sum()) for delta in made])
        self.scan.take_made(routed, made)

    def hand_over_begun(self, routed: RoutedBatch) -> None:
        """It is done as a whole, or not at all."""


@dataclass(slots=True)
class WaitPart:
    """A scan over a window with STEP, of sessions, or a delay.

    `points`, `entering`, `asked`: of its record, as of kernels/steps/scan.py.
    """

    source: WindowScan
    window: WaitingWindow
    output: DeltaRecord
    element: CurrentElement
    points: Ids
    entering: Ids
    asked: Ids
    made: tuple[Delta, ...] = ()

    def make_room(self, time: int, triples: int) -> None:
        self.window.reserve(np.full(triples, time))

    def find_values(self) -> None:
        count = self.asked.item(scan.NEW)
        columns = self.entering[: self.output.width * count].reshape(self.output.width, count).copy()
        points, element = self.points[:count].copy(), np.zeros(count, np.int64)
        delta = self.window.advance(self.element.arrivals(), points, element, columns)
        self.asked[scan.TAKEN] += count
        if len(delta) > MOST_ROWS:
            self.made, self.asked[scan.CALLED] = (delta,), by_calls.TOO_MANY
        else:
            self.output.put(delta)
            self.asked[scan.CALLED] = by_calls.COMPLETE

    def settle(self) -> None:
        """Count the mappings that have arrived."""
        self.source.work.rows_in += self.asked.item(scan.TAKEN)
        self.asked[scan.TAKEN] = 0

    def hand_over(self, routed: RoutedBatch) -> None:
        self.source.take_made(routed, self.output.deltas())

    def hand_over_begun(self, routed: RoutedBatch) -> None:
        if self.made:
            self.source.take_made(routed, self.made)
            self.made = ()


def event_record(event: EventScan, number: int) -> ArrayTable:
    """That of the event of this number as kernels/steps/matches.py has it."""
    expressions, columns = event.expressions, event.columns
    arrays = [array for expression, places in expressions for array in (*expression.program, places)]
    most = max((len(places) for _, places in expressions), default=0)
    patterns = np.array(event.patterns, np.int64)
    now, true, of_row = np.empty((3, MOST_ROWS), np.int64)
    bounds, chains = np.empty((len(patterns), 2), np.int64), np.empty((2 * len(patterns), MOST_MATCHES), np.int64)
    values, inputs = np.empty(len(columns) * MOST_ROWS, np.int64), np.empty(most * MOST_ROWS, np.int64)
    computed = len(columns) - event.matched
    of_event = np.array([number, event.matched, computed, len(expressions) - computed], np.int64)
    return ArrayTable(
        patterns, event.spec, bounds, event.scratch, chains, of_row, values, event.chosen, of_event, inputs, now, true,
        event.required, *arrays,
    )  # fmt: skip


class MatchPart:
    """A MATCH; `arrays`: those of its row as of kernels/steps/matches.py, `events`: the records of its events."""

    def __init__(self, taken_in: MatchScan, output: DeltaRecord) -> None:
        self._scan, self._output = taken_in, output
        self._begun = np.zeros(4, np.int64)
        rows = np.empty((MOST_ROWS, runs.VALUES + taken_in.width), np.int64)
        none, one = np.empty(0, np.int64), np.empty(1, np.int64)
        self.arrays = taken_in.streams.astype(np.int64), self._begun, rows, np.empty(3, np.int64), one, none
        self.events = [event_record(taken_in.events[number], number) for number in taken_in.order]

    def make_room(self, time: int, triples: int) -> None:
        self._scan.state.make_room()

    def find_values(self) -> None:
        raise AssertionError("the entry of this row asks for no values")

    def settle(self) -> None:
        """Count the rows that have been taken in."""
        self._scan.work.rows_in += self._begun.item(matches.ALL_ROWS)
        self._begun[matches.ALL_ROWS] = 0

    def hand_over(self, routed: RoutedBatch) -> None:
        self._scan.take_made(routed, self._output.deltas())

    def hand_over_begun(self, routed: RoutedBatch) -> None:
        if self._begun[matches.STATE_OF] == matches.TOO_MANY:
            self._begun[matches.STATE_OF] = matches.READY
            self._scan.take_made(routed, (self._scan.state.found(),))


@dataclass(slots=True)
class EventRowsPart:
    """The rows of an EVENT. `taken`: of its row as of kernels/steps/events.py."""

    scan: EventRowsScan
    output: DeltaRecord
    taken: Ids

    def make_room(self, time: int, triples: int) -> None:
        raise AssertionError("calls go on where there is no room")

    def find_values(self) -> None:
        raise AssertionError("calls go on where expressions need texts")

    def settle(self) -> None:
        """Count the rows that have been taken in."""
        self.scan.work.rows_in += self.taken.item()
        self.taken[0] = 0

    def hand_over(self, routed: RoutedBatch) -> None:
        self.scan.take_made(routed, self.output.deltas())

    def hand_over_begun(self, routed: RoutedBatch) -> None:
        """It is done as a whole, or not at all."""


class CountedPart:
    """A counted join; `arrays`: those of its row as of kernels/steps/events.py, `events`, `sources`: the records of these."""

    def __init__(self, scan: CountedJoinScan, output: DeltaRecord, step: CurrentTicks) -> None:
        self._scan, self._output, self._step = scan, output, step
        node, self._taken, self._begun = scan.node, np.zeros(1, np.int64), np.zeros(3, np.int64)
        self._rows = np.zeros((MOST_ROWS, counted.ROW_VALUES + scan.width), np.int64)
        summed = np.array([node.output.index(name) for name in node.summed], np.int64)
        options = np.array([node.once, bool(node.weight)], np.int64)
        found = np.empty(len(scan.events), np.int64)
        self.arrays = self._taken, found, self._begun, self._rows, summed, options
        self.events = [event_record(event, number) for number, event in enumerate(scan.events)]
        self.sources = [source.record() for source in scan.sources]
        self._made: npt.NDArray[np.int64] | None = None

    def make_room(self, time: int, triples: int) -> None:
        row = self._begun.item(events.AT_ROW)
        self._scan.state.make_room_behind(self._rows.item(row, counted.SOURCE))

    def find_values(self) -> None:
        # An error ends the step.
        stage, self._begun[events.STAGE] = self._begun.item(events.STAGE), events.READY
        if stage == events.OVERFLOWN:
            raise overflow()
        ticks = self._step.ticks()
        made = self._scan.count_ended(ticks.known_through)
        if self._scan.results_of(made) > MOST_ROWS:
            self._made, self._begun[events.STAGE] = made, events.TOO_MANY
        else:
            self._output.put(concatenate(tuple(self._scan.blocks(ticks, made)), self._output.width))
            self._begun[events.STAGE] = events.COMPLETE

    def settle(self) -> None:
        """Count the rows that have been taken in."""
        self._scan.work.rows_in += self._taken.item()
        self._taken[0] = 0

    def hand_over(self, routed: RoutedBatch) -> None:
        self._scan.take_made(routed, self._output.deltas())

    def hand_over_begun(self, routed: RoutedBatch) -> None:
        if self._begun[events.STAGE] == events.TOO_MANY:
            self._begun[events.STAGE] = events.READY
            self._scan.take_counted(routed, self._scan.state.made if self._made is None else self._made)
            self._made = None


@dataclass(slots=True)
class StatePart:
    """A STATE."""

    scan: StateScan
    output: DeltaRecord

    def make_room(self, time: int, triples: int) -> None:
        raise AssertionError("there is room for as many rows as a delta has")

    def find_values(self) -> None:
        raise AssertionError("the entry of this row asks for no values")

    def hand_over(self, routed: RoutedBatch) -> None:
        self.scan.take_made(routed, self.output.deltas())

    def hand_over_begun(self, routed: RoutedBatch) -> None:
        """It is done as a whole, or not at all."""


class OperatorPart:
    """An operator whose entry is done as a whole, or not at all."""

    def __init__(self, node: OperatorNode, output: DeltaRecord) -> None:
        self._node, self._output = node, output

    def make_room(self, time: int, triples: int) -> None:
        raise AssertionError("an operator without a state needs no room")

    def find_values(self) -> None:
        raise AssertionError("the entry of this row asks for no values")

    def hand_over(self, routed: RoutedBatch) -> None:
        self._node.take_made(routed.step.ticks, self._output.deltas())

    def hand_over_begun(self, routed: RoutedBatch) -> None:
        """Nothing has begun."""


class DistinctPart(OperatorPart):
    """DISTINCT. `given`: the delta that it reads."""

    def __init__(self, node: OperatorNode, operator: DistinctRows, given: DeltaRecord, output: DeltaRecord) -> None:
        super().__init__(node, output)
        self._operator, self._given = operator, given

    def make_room(self, time: int, triples: int) -> None:
        self._operator.index.ensure(len(self._given))


class TopPart(OperatorPart):
    """ORDER BY with LIMIT; `arrays`: those of its row as of kernels/steps/top.py."""

    def __init__(self, node: OperatorNode, operator: TopRows, given: DeltaRecord, output: DeltaRecord) -> None:
        super().__init__(node, output)
        self._operator, self._given, width = operator, given, output.width
        scratch = np.empty(distinct.ROOM_A_ROW * MOST_ROWS + distinct.ROOM, np.int64)
        tick, sign = np.empty(MOST_ROWS, np.int32), np.empty(MOST_ROWS, np.int8)
        moved, remaining = np.empty(width * MOST_ROWS, np.int64), np.empty((width + 1) * MOST_ROWS, np.int64)
        self.arrays = tick, sign, moved, scratch, remaining

    def make_room(self, time: int, triples: int) -> None:
        self._operator.rows.make_room(len(self._given))


class ExpressionPart(OperatorPart):
    """A filter (`as_test`), or a column that is computed; `arrays`: those of its row as of kernels/steps/rows.py."""

    def __init__(
        self,
        node: OperatorNode,
        expression: Evaluator,
        places: Ids,
        given: DeltaRecord,
        output: DeltaRecord,
        *,
        as_test: bool,
    ) -> None:
        super().__init__(node, output)
        self._expression, self._given, self._as_test = expression, given, as_test
        room, self._width = output.room, len(places)
        self._inputs = np.empty(len(places) * room, np.int64)
        self._now, self._values = np.empty((2, room), np.int64)
        self._found = np.zeros(1, np.int64)
        self.arrays = *expression.program, places, self._inputs, self._now, self._values, self._found

    def find_values(self) -> None:
        rows, width = len(self._given), self._width
        inputs = self._inputs[: width * rows].reshape(width, rows)
        self._expression.resolve(inputs, self._now[:rows], self._as_test, self._values[:rows])
        self._found[0] = 1


class GroupPart(OperatorPart):
    """GROUP BY; `arrays`: those of its row as of kernels/steps/groups.py."""

    def __init__(self, node: OperatorNode, operator: GroupBy, given: DeltaRecord, output: DeltaRecord) -> None:
        super().__init__(node, output)
        self._operator, self._given = operator, given
        self._begun = np.zeros(2, np.int64)
        self.arrays = self._begun, operator.keys, np.empty(len(operator.keys) * MOST_ROWS, np.int64)

    def make_room(self, time: int, triples: int) -> None:
        # An error ends the step.
        state, self._begun[0] = self._begun.item(0), 0
        self._operator.make_room_for(self._begun.item(1), self._given.tick)
        self._begun[0] = state

    def find_values(self) -> None:
        if self._begun[0] == groups.AGGREGATED:
            self._operator.resolve(self._output.columns)
        else:
            (delta,) = self._given.deltas()
            self._output.put(self._operator.aggregate(delta))
        self._begun[0] = groups.RESOLVED


class CalledPart(OperatorPart):
    """An operator that is called, as it has no entry of its own. `step` has the ticks; `called`: its row's array."""

    def __init__(
        self, node: OperatorNode, given: Sequence[DeltaRecord], output: DeltaRecord, step: CurrentTicks
    ) -> None:
        super().__init__(node, output)
        self._given, self._step = given, step
        self.called = np.zeros(1, np.int64)
        self._made: Iterable[Delta] = ()

    def find_values(self) -> None:
        inputs = [each.deltas() for each in self._given]
        self._take(self._node.operator.process(self._step.ticks(), inputs))

    def _take(self, changes: Iterable[Delta]) -> None:
        """These are the operator's changes."""
        made, rows, rest = list[Delta](), 0, iter(changes)
        for delta in rest:
            made.append(delta)
            rows += len(delta)
            if rows > self._output.room:
                self._made, self.called[0] = chain(made, rest), by_calls.TOO_MANY
                return
        self._output.put(concatenate(tuple(made), self._output.width))
        self.called[0] = by_calls.COMPLETE

    def hand_over_begun(self, routed: RoutedBatch) -> None:
        self._node.take_made(routed.step.ticks, self._made)
        self._made = ()


class JoinPart:
    """A join, semi-join or anti-join; `arrays`: those of its rows in the order of kernels/steps/joins.py.

    `given`: the deltas that it reads; `blocks`: those that its kernel works in, if it is a join and no star.
    """

    def __init__(
        self,
        node: OperatorNode,
        operator: LeafJoin,
        given: Sequence[DeltaRecord],
        output: DeltaRecord,
        blocks: SharedBlocks | None = None,
    ) -> None:
        self._node, self._operator, self._given, self._output, self._blocks = node, operator, given, output, blocks
        self._port, self._slot, self._tick, self._placed, loaded = np.empty((5, output.room), np.int32)
        self._sign, self._begun = np.empty(output.room, np.int8), np.zeros(2, np.int64)
        self._starts = np.zeros(operator.state.n + 1, np.int64)
        self.arrays = (
            self._port, self._slot, self._tick, self._sign, self._placed, loaded, self._starts, self._begun,
        )  # fmt: skip

    def make_room(self, time: int, triples: int) -> None:
        state = self._operator.state
        if self._begun[0]:
            state.grow(self._begun.item(1))
        else:
            state.ensure_leaves(needed_leaves(state, [each.sign for each in self._given]))

    def find_values(self) -> None:
        raise AssertionError("the entry of this row asks for no values")

    def hand_over(self, routed: RoutedBatch) -> None:
        self._node.take_made(routed.step.ticks, self._output.deltas())

    def hand_over_begun(self, routed: RoutedBatch) -> None:
        if not self._begun[0]:
            return
        self._begun[0], count = 0, self._starts.item(-1)
        port, slot, tick, placed = (each[:count].copy() for each in (self._port, self._slot, self._tick, self._placed))
        rows = LeafRows(port, slot, tick, self._sign[:count].copy(), placed)
        made = self._output.begun(self._operator.state.cursor.item(ring_index.OUT))
        blocks = None if self._blocks is None else self._blocks.taken(self._operator.state)
        rest = self._operator.resume(rows, made, blocks)
        self._node.take_made(routed.step.ticks, rest)
