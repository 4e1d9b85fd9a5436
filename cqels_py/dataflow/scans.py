"""Scans: the triples that match a pattern and fulfil its conditions, as mappings in a window."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from cqels_py.batches.delta import Delta, empty
from cqels_py.batches.elements import ElementBatch, Ids
from cqels_py.dataflow.ownership import Condition
from cqels_py.dataflow.router import RoutedBatch
from cqels_py.dataflow.shared_scans import SharedScans, SharedSource
from cqels_py.dataflow.step_source import StepSource
from cqels_py.event_time.windows import Measure, Points
from cqels_py.kernels.primitives.dtypes import INT64
from cqels_py.kernels.windows import mappings as kernel
from cqels_py.operators.r2r.expressions import Evaluator
from cqels_py.operators.s2r.kept_units import KeptUnits
from cqels_py.operators.s2r.partition import Kept, KeyPattern, Partitioning
from cqels_py.operators.s2r.partitioned_window import PartitionedWindow
from cqels_py.operators.s2r.window import Timer, Window, make_window
from cqels_py.plan.nodes import PatternText, PlannedWindow, is_variable
from cqels_py.plan.nodes import Scan as PlannedScan
from cqels_py.state.last_by_value import LastByValue
from cqels_py.state.stop import Stop

_NONE = np.empty(0, np.int64)
_LAST_OF_TRIPLE = 2
"""The position of a triple's object; behind it is that of its graph."""


class Scan(StepSource):
    """One pattern over one window. Its deltas are made once a step, and read by all its readers until the step ends.

    `conditions`: the evaluators of the plan's conditions, in their order; `tests`: these, and where their inputs are in a triple.
    `columns`: where those of a mapping are.
    """

    STATE = ("_window",)
    _window: Window | PartitionedWindow

    def __init__(
        self, node: PlannedScan, window: PlannedWindow, conditions: Sequence[Evaluator], shared_scans: SharedScans
    ) -> None:
        super().__init__(shared_scans)
        self.node = node
        self.stream = window.stream
        self.bounds = window.bounds
        self.conditions = tuple(conditions)
        self._places = _places(node.pattern)
        inputs = [[self._places[name] for name in program.inputs] for program in node.conditions]
        self.tests = list(zip(self.conditions, inputs, strict=True))
        self.columns = np.array([self._places[name] for name in node.variables], np.int64)
        self._owned: list[tuple[Condition, int]] = []
        self._takes_all = not self.conditions
        # Where a window has PARTITION BY, elements are known by their numbers.
        self._timed = window.bounds.of_time and window.partition is None
        self._by_triple = window.bounds.measure is Measure.TRIPLES
        # On a live stream mappings come one by one: the arrays for one are used again and again, if the window copies them.
        self._for_one = self._room_for(1) if self._window.copies else None
        self._nothing = empty(len(node.variables))
        # Last: a failure before this leaves no pattern behind.
        self.pattern = shared_scans.router.add((node.pattern, window.stream))

    def take(self, routed: RoutedBatch) -> int:
        """Take in a step, unless another reader has caused that already. Returns the number of changes."""
        if self._routed is not routed:
            delta = self._advance(routed)
            if delta is self._nothing and self._shared_scans.single_reader:
                # There is no other query.
                return 0
            self.take_made(routed, (delta,) if len(delta.tick) else ())
        return self._changes

    @property
    def next_timer(self) -> Timer:
        """When the window next changes though nothing arrives."""
        raise NotImplementedError

    @property
    def patterns(self) -> Collection[int]:
        """The numbers of the patterns whose matches may change the window."""
        return (self.pattern,)

    def move(self, shared_scans: SharedScans, key: Hashable) -> None:
        """See `SharedSource`; the router there matches its pattern."""
        self.pattern = shared_scans.router.add((self.node.pattern, self.stream))
        super().move(shared_scans, key)

    def keep_to(self, cell: Sequence[Condition]) -> None:
        """Take in only mappings that belong to this part of a divided state."""
        self._owned = [(each, self._places[each.variable]) for each in cell if each.variable in self._places]
        self._takes_all = not self.conditions and not self._owned

    @property
    def is_plain(self) -> bool:
        """Does it take in the triples that match its pattern and conditions?"""
        in_graph = bool(len(self.columns)) and int(self.columns.max()) > _LAST_OF_TRIPLE
        return not (self._owned or in_graph)

    def live_ids(self) -> Iterator[Ids]:
        """Ids in the window and in the conditions."""
        yield self._window.live_ids()
        for condition in self.conditions:
            yield from condition.live_ids()

    @property
    def stops(self) -> tuple[Stop, ...]:
        return tuple([each.stop for each in self.conditions])

    @property
    def nbytes(self) -> int:
        return self._window.nbytes

    def _release_inputs(self) -> None:
        self._shared_scans.router.remove(self.pattern)

    def _mappings(self, routed: RoutedBatch, rows: npt.NDArray[np.int64]) -> tuple[Ids, npt.NDArray[np.int64], Points]:
        """The triples' mappings: their columns, their elements, and the points of the window's measure at which they arrived."""
        batch, arrivals, n = routed.batch, routed.arrivals, len(rows)
        self.work.rows_in += n
        columns, element, points = self._for_one if n == 1 and self._for_one else self._room_for(n)
        kernel.mappings(
            batch.subject, batch.predicate, batch.object, batch.graph, rows, self.columns, arrivals.element,
            batch.time if self._timed else routed.step.number, arrivals.number if self._by_triple else _NONE, columns, element,
            points,
        )  # fmt: skip
        return columns, element, points

    def _room_for(self, rows: int) -> tuple[Ids, npt.NDArray[np.int64], Points]:
        """As `_mappings` makes them."""
        return np.empty((len(self.columns), rows), INT64), np.empty(rows, INT64), np.empty(rows, INT64)

    def _accepted(
        self, batch: ElementBatch, rows: npt.NDArray[np.int64], element: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        """Those of the triples that belong to this part and fulfil the conditions."""
        parts = batch.positions
        for coordinate, position in self._owned:
            rows = rows[coordinate.mine(parts[position][rows])]
        for condition, positions in self.tests:
            if len(rows):
                rows = rows[condition.test([parts[p][rows] for p in positions], batch.time[element[rows]])]
        return rows


class WindowScan(Scan):
    """A scan of a window that takes in all elements of its stream."""

    _window: Window

    def __init__(
        self, node: PlannedScan, window: PlannedWindow, conditions: Sequence[Evaluator], shared_scans: SharedScans
    ) -> None:
        self._window = make_window(
            window.bounds, len(node.variables), keep_ids=node.keep_ids, stream=window.stream, index=node.window
        )
        super().__init__(node, window, conditions, shared_scans)

    @property
    def next_timer(self) -> Timer:
        return self._window.next_timer

    def _advance(self, routed: RoutedBatch) -> Delta:
        rows = routed.matches(self.pattern)
        if not self._takes_all:
            rows = self._accepted(routed.batch, rows, routed.arrivals.element)
        if len(rows):
            columns, element, points = self._mappings(routed, rows)
            return self._window.advance(routed.arrivals, points, element, columns)
        return self._window.advance(routed.arrivals, _NONE, _NONE, self._nothing.columns)

    @property
    def window(self) -> Window:
        """The window, which has the mappings."""
        return self._window


class PartitionedScan(Scan):
    """A scan of a window with PARTITION BY; `partition` says which elements the window keeps, for all its scans."""

    _window: PartitionedWindow

    def __init__(
        self,
        node: PlannedScan,
        window: PlannedWindow,
        conditions: Sequence[Evaluator],
        partition: Partition,
        shared_scans: SharedScans,
    ) -> None:
        self._window = PartitionedWindow(len(node.variables))
        super().__init__(node, window, conditions, shared_scans)
        self.partition = partition
        partition.acquire()

    @property
    def next_timer(self) -> Timer:
        return self.partition.next_timer

    @property
    def patterns(self) -> Collection[int]:
        return {self.pattern, *self.partition.patterns}

    def _advance(self, routed: RoutedBatch) -> Delta:
        rows = routed.matches(self.pattern)
        columns, _, points = self._mappings(routed, self._accepted(routed.batch, rows, routed.arrivals.element))
        return self._window.advance(self.partition.take(routed), points, columns)

    @property
    def window(self) -> PartitionedWindow:
        """The window, which has the mappings."""
        return self._window

    def kept(self) -> Ids:
        """The ids (width, n) of the mappings in the window."""
        return self._window.inside(self.partition.waiting)

    def read_instead(self, partition: Partition) -> None:
        """Read this partition from now on, which keeps the same units."""
        if partition is not self.partition:
            partition.acquire()
            self.partition.release()
            self.partition = partition

    def _release_inputs(self) -> None:
        super()._release_inputs()
        self.partition.release()


class Partition(SharedSource):
    """PARTITION BY of one window, for all scans of it: which of its stream's elements or triples it keeps.

    `number`: that of the window within the query.
    """

    STATE = ("_units",)

    def __init__(self, window: PlannedWindow, number: int, shared_scans: SharedScans) -> None:
        super().__init__(shared_scans)
        partition = window.partition
        assert partition is not None
        self.stream = window.stream
        patterns = tuple(dict.fromkeys(pattern for patterns in partition.alternatives for pattern in patterns))
        self._of_patterns = patterns
        self.by_triple = window.bounds.measure is Measure.TRIPLES
        """Are units triples? Else they are elements."""
        places = [_places(pattern) for pattern in patterns]
        keys = [KeyPattern(tuple(each), tuple(each.values())) for each in places]
        alternatives = [[patterns.index(pattern) for pattern in each] for each in partition.alternatives]
        self._partitioning = Partitioning(partition.variables, keys, alternatives)
        self._units = KeptUnits(len(partition.variables), window.bounds, number)
        self._patterns = [shared_scans.router.add((pattern, window.stream)) for pattern in patterns]
        self._routed: RoutedBatch | None = None
        self._kept: Kept | None = None
        self.keeping: object = None
        """The record of programs beside it (partitioned_parts.py)."""

    def move(self, shared_scans: SharedScans, key: Hashable) -> None:
        """See `SharedSource`; the router there matches its patterns."""
        self._patterns = [shared_scans.router.add((pattern, self.stream)) for pattern in self._of_patterns]
        super().move(shared_scans, key)

    def take(self, routed: RoutedBatch) -> Kept:
        """Take in a step, unless another scan has caused that already."""
        self.check_whole()
        if self._routed is routed and self._kept is not None:
            return self._kept
        try:
            kept = self.advance(routed)
        except Exception as error:
            self.fail(error)
            raise
        self.took(routed, kept)
        return kept

    def took(self, routed: RoutedBatch, kept: Kept) -> None:
        """The step has been taken in."""
        self._routed, self._kept = routed, kept
        self._shared_scans.caches.append(self)

    def advance(self, routed: RoutedBatch) -> Kept:
        """Take in a step, once."""
        batch, arrivals = routed.batch, routed.arrivals
        matches = [routed.matches(number) for number in self._patterns]
        rows, values = self._partitioning.values(batch, matches, arrivals.element)
        element = arrivals.element[rows]
        unit = arrivals.number[rows] if self.by_triple else routed.step.number[element]
        return self._units.advance(arrivals.streams[self.stream], unit, element, batch.time[element], values)

    @property
    def last(self) -> LastByValue | None:
        """See `KeptUnits.last`; None also if several patterns give values, or a graph is one."""
        return self._units.last if len(self._patterns) == 1 and max(self.positions) <= _LAST_OF_TRIPLE else None

    @property
    def positions(self) -> tuple[int, ...]:
        """See `Partitioning.positions`."""
        return self._partitioning.positions

    def reserve(self, rows: int) -> None:
        """Make room for so many values of units."""
        if self.last is not None:
            self.last.reserve(rows)

    @property
    def next_timer(self) -> Timer:
        """When the window next changes though nothing arrives."""
        return self._units.next_timer

    @property
    def patterns(self) -> Sequence[int]:
        """The numbers of the patterns that tell the units' values."""
        return self._patterns

    def expire_all(self) -> None:
        """See `KeptUnits.expire_all`."""
        measure = Measure.TRIPLES if self.by_triple else Measure.ELEMENTS
        self._units.expire_all(self._shared_scans.arrived(self.stream, measure))

    def clear(self) -> None:
        """The step has ended."""
        self._routed = self._kept = None

    @property
    def waiting(self) -> npt.NDArray[np.int64]:
        """The numbers of the units that wait to enter the window."""
        return self._units.waiting

    def live_ids(self) -> Ids:
        return self._units.live_ids()

    @property
    def nbytes(self) -> int:
        return self._units.nbytes

    def _release_inputs(self) -> None:
        for number in self._patterns:
            self._shared_scans.router.remove(number)


def _places(pattern: PatternText) -> dict[str, int]:
    """Each variable of a pattern, and where it first stands."""
    places: dict[str, int] = {}
    for position, name in enumerate(pattern):
        if is_variable(name):
            places.setdefault(name[1:], position)
    return places
