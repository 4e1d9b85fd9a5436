"""The scans of a query: triples matched to patterns, tested, and put into windows, all patterns of a step at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from cqels_py.batches.delta import Delta, empty
from cqels_py.batches.elements import ElementBatch, Ids
from cqels_py.dataflow.ownership import Coordinate
from cqels_py.dictionary.dictionary import Dictionary
from cqels_py.event_time.clock import Step
from cqels_py.event_time.windows import Measure
from cqels_py.kernels import match as kernel
from cqels_py.kernels.hashing import mix
from cqels_py.operators.r2r.expressions import Evaluator
from cqels_py.operators.s2r.arrivals import ArrivalCounter, StreamArrivals
from cqels_py.operators.s2r.partition import Kept, KeyPattern, Partitioning
from cqels_py.operators.s2r.partitioned_window import PartitionedWindow
from cqels_py.operators.s2r.window import Window
from cqels_py.plan.expressions import ExpressionProgram
from cqels_py.plan.nodes import PatternText, PlannedWindow, Scan, is_variable

MakeEvaluator = Callable[[ExpressionProgram], Evaluator]


class ScanSource:
    """One scan: its position in the matching, its conditions and its window."""

    def __init__(self, scan: Scan, window: PlannedWindow, evaluator: MakeEvaluator) -> None:
        self.scan = scan
        self.stream = window.stream
        self._measure = window.bounds.measure
        places = _places(scan.pattern)
        self._places = places
        self._columns = [places[name] for name in scan.variables]
        self._owned: list[tuple[Coordinate, int]] = []
        self._nothing = empty(len(scan.variables))
        self.conditions: list[tuple[Evaluator, list[int]]] = [
            (evaluator(program), [places[name] for name in program.inputs]) for program in scan.conditions
        ]
        self.window: Window | PartitionedWindow = (
            Window(window.bounds, len(scan.variables), keep_ids=scan.keep_ids, index=scan.window)
            if window.partition is None
            else PartitionedWindow(len(scan.variables))
        )

    def keep_to(self, cell: Sequence[Coordinate]) -> None:
        """Take in only what this part of several owns."""
        self._owned = [(each, self._places[each.variable]) for each in cell if each.variable in self._places]

    def advance(
        self,
        batch: ElementBatch,
        rows: npt.NDArray[np.int64],
        arrivals: StreamArrivals,
        element: npt.NDArray[np.int64],
        triple_number: npt.NDArray[np.int64],
        kept: Kept | None,
    ) -> Delta:
        """The deltas of one step. `rows`: the triples that match; `element`, `triple_number`: of every triple of the batch.

        `kept`: what happened to the window's elements, where it is partitioned.
        """
        if not len(rows) and isinstance(self.window, Window) and self.window.rests(arrivals):
            return self._nothing
        parts = (batch.subject, batch.predicate, batch.object)
        for coordinate, position in self._owned:
            rows = rows[coordinate.mine(parts[position][rows])]
        for condition, positions in self.conditions:
            if len(rows):
                rows = rows[condition.test([parts[p][rows] for p in positions], batch.time[element[rows]])]
        columns = np.empty((len(self._columns), len(rows)), np.int64)
        for c, position in enumerate(self._columns):
            columns[c] = parts[position][rows]
        element = element[rows]
        if self._measure in (Measure.TIME, Measure.SESSION):
            points = batch.time[element]
        elif self._measure is Measure.ELEMENTS:
            points = arrivals.step.number[element]
        else:
            points = triple_number[rows]
        if isinstance(self.window, PartitionedWindow):
            assert kept is not None
            return self.window.advance(arrivals, kept, points, element, columns)
        return self.window.advance(arrivals, points, element, columns)


class PartitionSource:
    """PARTITION BY of one window: which of its stream's elements or triples it keeps."""

    def __init__(self, window: PlannedWindow, number: int) -> None:
        partition, size = window.partition, window.bounds.size
        assert partition is not None
        assert size is not None
        self.window = number
        self.stream = window.stream
        self.patterns = tuple(dict.fromkeys(pattern for patterns in partition.alternatives for pattern in patterns))
        self._triples = window.bounds.measure is Measure.TRIPLES
        places = [_places(pattern) for pattern in self.patterns]
        keys = [KeyPattern(tuple(each), tuple(each.values())) for each in places]
        alternatives = [[self.patterns.index(pattern) for pattern in each] for each in partition.alternatives]
        self._partitioning = Partitioning(partition.variables, keys, alternatives, limit=size)

    def advance(
        self,
        batch: ElementBatch,
        matches: Sequence[npt.NDArray[np.int64]],
        step: Step,
        element: npt.NDArray[np.int64],
        triple_number: npt.NDArray[np.int64],
    ) -> Kept:
        unit = triple_number if self._triples else step.number[element]
        return self._partitioning.advance(batch, matches, element, unit)

    def live_ids(self) -> Ids:
        return self._partitioning.live_ids()

    @property
    def nbytes(self) -> int:
        return self._partitioning.nbytes


class Scans:
    """All scans of a query. Triples are routed by predicate, so that patterns that do not match cost nothing."""

    def __init__(
        self,
        scans: Sequence[Scan],
        windows: Sequence[PlannedWindow],
        streams: int,
        dictionary: Dictionary,
        evaluator: MakeEvaluator,
    ) -> None:
        self.sources = [ScanSource(scan, windows[scan.window], evaluator) for scan in scans]
        self._counter = ArrivalCounter(streams)
        self._partitions = [
            PartitionSource(window, n) for n, window in enumerate(windows) if window.partition is not None
        ]
        patterns = [scan.pattern for scan in scans] + [p for source in self._partitions for p in source.patterns]
        self._constants = np.zeros((len(patterns), 3), np.int64)
        self._same = np.zeros(len(patterns), np.int64)
        for j, pattern in enumerate(patterns):
            for position, text in enumerate(pattern):
                if not is_variable(text):
                    self._constants[j, position] = dictionary.encode_one(text)
            self._same[j] = _same_positions(pattern)
        dictionary.pin(self._constants.reshape(-1))
        asked = [source.stream for source in self.sources]
        asked += [source.stream for source in self._partitions for _ in source.patterns]
        self._streams = np.array(asked, np.int64)
        self._route()

    def keep_to(self, cell: Sequence[Coordinate]) -> None:
        """Take in only what this part of several owns."""
        for source in self.sources:
            source.keep_to(cell)

    def _route(self) -> None:
        predicates = self._constants[:, 1]
        size = 8
        while size < 4 * len(predicates):
            size *= 2
        self._routes = np.zeros(size, np.int64)
        lists: list[list[int]] = [[] for _ in range(size + 1)]
        for j, predicate in enumerate(predicates):
            slot = size
            if predicate != 0:
                slot = int(mix(predicate)) & (size - 1)
                while self._routes[slot] not in (0, predicate):
                    slot = (slot + 1) & (size - 1)
                self._routes[slot] = predicate
            lists[slot].append(j)
        self._route_first = np.concatenate([[0], np.cumsum([len(x) for x in lists])]).astype(np.int64)
        self._route_patterns = np.array([j for patterns in lists for j in patterns], np.int64)

    def step(self, batch: ElementBatch, step: Step) -> list[Delta]:
        """One step of every scan, in their order."""
        arrivals = self._counter.take(batch, step)
        element, triple_number = arrivals.element, arrivals.number
        first, triples = kernel.match(
            batch.subject, batch.predicate, batch.object, element, batch.stream, self._constants, self._same,
            self._streams, self._routes, self._route_first, self._route_patterns,
        )  # fmt: skip
        matches = [triples[first[j] : first[j + 1]] for j in range(len(first) - 1)]
        kept: dict[int, Kept] = {}
        start = len(self.sources)
        for partition in self._partitions:
            end = start + len(partition.patterns)
            kept[partition.window] = partition.advance(batch, matches[start:end], step, element, triple_number)
            start = end
        return [
            source.advance(
                batch, rows, arrivals.streams[source.stream], element, triple_number, kept.get(source.scan.window)
            )
            for source, rows in zip(self.sources, matches, strict=False)
        ]

    def live_ids(self) -> list[Ids]:
        """What windows hold, and the terms of conditions."""
        windows = [ids for source in self.sources for ids in source.window.live_ids()]
        windows += [source.live_ids() for source in self._partitions]
        return windows + [
            ids for source in self.sources for condition, _ in source.conditions for ids in condition.live_ids()
        ]

    @property
    def nbytes(self) -> int:
        return sum(source.window.nbytes for source in self.sources) + sum(p.nbytes for p in self._partitions)


def _places(pattern: PatternText) -> dict[str, int]:
    """Each variable of a pattern, and where it first stands."""
    places: dict[str, int] = {}
    for position, name in enumerate(pattern):
        if is_variable(name):
            places.setdefault(name[1:], position)
    return places


def _same_positions(pattern: tuple[str, str, str]) -> int:
    subject, predicate, object_ = (text if is_variable(text) else None for text in pattern)
    same = 0
    if subject and subject == predicate:
        same |= kernel.SUBJECT_PREDICATE
    if subject and subject == object_:
        same |= kernel.SUBJECT_OBJECT
    if predicate and predicate == object_:
        same |= kernel.PREDICATE_OBJECT
    return same
