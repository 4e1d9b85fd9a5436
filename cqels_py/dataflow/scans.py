"""The scans of a query: triples that match a pattern are tested and put into a window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from cqels_py.batches.delta import Delta, empty
from cqels_py.batches.elements import ElementBatch, Ids
from cqels_py.dataflow.ownership import Coordinate
from cqels_py.dataflow.shared_scans import RoutedBatch
from cqels_py.event_time.windows import Measure, Points
from cqels_py.kernels.primitives.dtypes import INT64
from cqels_py.kernels.windows import mappings as kernel
from cqels_py.operators.r2r.expressions import Evaluator
from cqels_py.operators.s2r.kept_units import KeptUnits
from cqels_py.operators.s2r.partition import Kept, KeyPattern, Partitioning
from cqels_py.operators.s2r.partitioned_window import PartitionedWindow
from cqels_py.operators.s2r.window import Timer, Window
from cqels_py.plan.expressions import ExpressionProgram
from cqels_py.plan.nodes import PatternText, PlannedWindow, Scan, is_variable

MakeEvaluator = Callable[[ExpressionProgram], Evaluator]
_NONE = np.empty(0, np.int64)


AnyWindow = TypeVar("AnyWindow", Window, PartitionedWindow)


class _Source(Generic[AnyWindow]):
    """One scan and its conditions."""

    window: AnyWindow

    def __init__(self, scan: Scan, window: PlannedWindow, evaluator: MakeEvaluator) -> None:
        self.scan = scan
        self.stream = window.stream
        # Where a window has PARTITION BY, elements are known by their numbers.
        self._timed = window.bounds.of_time and window.partition is None
        self._by_triple = window.bounds.measure is Measure.TRIPLES
        places = _places(scan.pattern)
        self._places = places
        self._columns = np.array([places[name] for name in scan.variables], np.int64)
        self._width = len(scan.variables)
        self._for_one: tuple[Ids, npt.NDArray[np.int64], Points] | None = None
        self._owned: list[tuple[Coordinate, int]] = []
        self.conditions: list[tuple[Evaluator, list[int]]] = [
            (evaluator(program), [places[name] for name in program.inputs]) for program in scan.conditions
        ]
        self._takes_all = not self.conditions

    def live_ids(self) -> list[Ids]:
        """What the window holds, and the terms of conditions."""
        return [*self.window.live_ids(), *(ids for condition, _ in self.conditions for ids in condition.live_ids())]

    @property
    def nbytes(self) -> int:
        return self.window.nbytes

    def keep_to(self, cell: Sequence[Coordinate]) -> None:
        """Take in only what this part of several owns."""
        self._owned = [(each, self._places[each.variable]) for each in cell if each.variable in self._places]
        self._takes_all = not self.conditions and not self._owned

    def _mappings(self, routed: RoutedBatch, rows: npt.NDArray[np.int64]) -> tuple[Ids, npt.NDArray[np.int64], Points]:
        """The triples' mappings: their columns, their elements, and at which point of the window's measure each arrived."""
        batch, arrivals, n = routed.batch, routed.arrivals, len(rows)
        columns, element, points = self._for_one if n == 1 and self._for_one else self._room_for(n)
        kernel.mappings(
            batch.subject, batch.predicate, batch.object, batch.graph, rows, self._columns, arrivals.element,
            batch.time if self._timed else routed.step.number, arrivals.counted.number if self._by_triple else _NONE, columns,
            element, points,
        )  # fmt: skip
        return columns, element, points

    def _room_for(self, rows: int) -> tuple[Ids, npt.NDArray[np.int64], Points]:
        """As `_mappings` makes them."""
        return np.empty((self._width, rows), INT64), np.empty(rows, INT64), np.empty(rows, INT64)

    def _taken_in(
        self, batch: ElementBatch, rows: npt.NDArray[np.int64], element: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        """Those of the triples that are this part's own and fulfil the conditions."""
        parts = batch.positions
        for coordinate, position in self._owned:
            rows = rows[coordinate.mine(parts[position][rows])]
        for condition, positions in self.conditions:
            if len(rows):
                rows = rows[condition.test([parts[p][rows] for p in positions], batch.time[element[rows]])]
        return rows


class ScanSource(_Source[Window]):
    """A scan and its window."""

    def __init__(self, scan: Scan, window: PlannedWindow, evaluator: MakeEvaluator) -> None:
        super().__init__(scan, window, evaluator)
        self._no_columns = empty(len(scan.variables)).columns
        self.window = Window(
            window.bounds, len(scan.variables), keep_ids=scan.keep_ids, stream=window.stream, index=scan.window
        )
        if self.window.copies:
            # As rows come one by one on a live stream.
            self._for_one = self._room_for(1)

    @property
    def next_timer(self) -> Timer:
        """When something happens here though nothing arrives."""
        return self.window.next_timer

    def advance(self, routed: RoutedBatch, rows: npt.NDArray[np.int64]) -> Delta:
        """The deltas of one step. `rows`: the triples that match."""
        if not self._takes_all:
            rows = self._taken_in(routed.batch, rows, routed.arrivals.element)
        if len(rows):
            columns, element, points = self._mappings(routed, rows)
            return self.window.advance(routed.arrivals, points, element, columns)
        return self.window.advance(routed.arrivals, _NONE, _NONE, self._no_columns)


class PartitionedScanSource(_Source[PartitionedWindow]):
    """A scan and its window with PARTITION BY, of whose elements `kept` tells what happens at a routed."""

    def __init__(
        self, scan: Scan, window: PlannedWindow, evaluator: MakeEvaluator, kept: Callable[[RoutedBatch], Kept]
    ) -> None:
        super().__init__(scan, window, evaluator)
        self.window = PartitionedWindow(len(scan.variables))
        self._kept = kept

    @property
    def next_timer(self) -> Timer:
        return None

    def advance(self, routed: RoutedBatch, rows: npt.NDArray[np.int64]) -> Delta:
        """The deltas of one step. `rows`: the triples that match."""
        columns, _, points = self._mappings(routed, self._taken_in(routed.batch, rows, routed.arrivals.element))
        return self.window.advance(self._kept(routed), points, columns)


class PartitionSource:
    """PARTITION BY of one window: which of its stream's elements or triples it keeps."""

    def __init__(self, window: PlannedWindow, number: int) -> None:
        partition = window.partition
        assert partition is not None
        self.window = number
        self.stream = window.stream
        self.patterns = tuple(dict.fromkeys(pattern for patterns in partition.alternatives for pattern in patterns))
        self._triples = window.bounds.measure is Measure.TRIPLES
        places = [_places(pattern) for pattern in self.patterns]
        keys = [KeyPattern(tuple(each), tuple(each.values())) for each in places]
        alternatives = [[self.patterns.index(pattern) for pattern in each] for each in partition.alternatives]
        self._partitioning = Partitioning(partition.variables, keys, alternatives)
        self._kept = KeptUnits(len(partition.variables), window.bounds, number)

    def advance(self, routed: RoutedBatch, matches: Sequence[npt.NDArray[np.int64]]) -> Kept:
        batch, arrivals = routed.batch, routed.arrivals
        rows, values = self._partitioning.values(batch, matches, arrivals.element)
        element = arrivals.element[rows]
        unit = arrivals.counted.number[rows] if self._triples else routed.step.number[element]
        return self._kept.advance(arrivals.counted.streams[self.stream], unit, element, batch.time[element], values)

    def live_ids(self) -> Ids:
        return self._kept.live_ids()

    @property
    def nbytes(self) -> int:
        return self._kept.nbytes


def _places(pattern: PatternText) -> dict[str, int]:
    """Each variable of a pattern, and where it first stands."""
    places: dict[str, int] = {}
    for position, name in enumerate(pattern):
        if is_variable(name):
            places.setdefault(name[1:], position)
    return places
