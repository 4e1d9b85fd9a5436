"""The scans of a query: triples matched to patterns, tested, and put into windows, all patterns of a step at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from cqels_py.batches.delta import Delta
from cqels_py.batches.elements import ElementBatch, Ids
from cqels_py.dictionary.dictionary import Dictionary
from cqels_py.event_time.clock import Step
from cqels_py.event_time.windows import Measure
from cqels_py.kernels import match as kernel
from cqels_py.kernels.hashing import mix
from cqels_py.operators.r2r.expressions import Evaluator
from cqels_py.operators.s2r.arrivals import ArrivalCounter, StreamArrivals
from cqels_py.operators.s2r.window import Window
from cqels_py.plan.expressions import ExpressionProgram
from cqels_py.plan.nodes import PlannedWindow, Scan, is_variable

MakeEvaluator = Callable[[ExpressionProgram], Evaluator]


class ScanSource:
    """One scan: its position in the matching, its conditions and its window."""

    def __init__(self, scan: Scan, window: PlannedWindow, evaluator: MakeEvaluator) -> None:
        self.scan = scan
        self.stream = window.stream
        self._measure = window.bounds.measure
        places: dict[str, int] = {}
        for position, name in enumerate(scan.pattern):
            if is_variable(name):
                places.setdefault(name[1:], position)
        self._columns = [places[name] for name in scan.variables]
        self.conditions: list[tuple[Evaluator, list[int]]] = [
            (evaluator(program), [places[name] for name in program.inputs]) for program in scan.conditions
        ]
        self.window = Window(window.bounds, len(scan.variables), keep_ids=scan.keep_ids, index=scan.window)

    def advance(
        self,
        batch: ElementBatch,
        rows: npt.NDArray[np.int64],
        arrivals: StreamArrivals,
        element: npt.NDArray[np.int64],
        triple_number: npt.NDArray[np.int64],
    ) -> Delta:
        """The deltas of one step. `rows`: the triples that match; `element`, `triple_number`: of every triple of the batch."""
        parts = (batch.subject, batch.predicate, batch.object)
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
        return self.window.advance(arrivals, points, element, columns)


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
        self._constants = np.zeros((len(scans), 3), np.int64)
        self._same = np.zeros(len(scans), np.int64)
        for j, scan in enumerate(scans):
            for position, text in enumerate(scan.pattern):
                if not is_variable(text):
                    self._constants[j, position] = dictionary.encode_one(text)
            self._same[j] = _same_positions(scan.pattern)
        dictionary.pin(self._constants.reshape(-1))
        self._streams = np.array([source.stream for source in self.sources], np.int64)
        self._route()

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
        arrivals, triple_number = self._counter.take(batch, step)
        element = np.repeat(np.arange(len(batch), dtype=np.int64), np.diff(batch.first))
        first, triples = kernel.match(
            batch.subject, batch.predicate, batch.object, element, batch.stream, self._constants, self._same,
            self._streams, self._routes, self._route_first, self._route_patterns,
        )  # fmt: skip
        return [
            source.advance(batch, triples[first[j] : first[j + 1]], arrivals[source.stream], element, triple_number)
            for j, source in enumerate(self.sources)
        ]

    def live_ids(self) -> list[Ids]:
        """What windows hold, and the terms of conditions."""
        windows = [ids for source in self.sources for ids in source.window.live_ids()]
        return windows + [
            ids for source in self.sources for condition, _ in source.conditions for ids in condition.live_ids()
        ]

    @property
    def nbytes(self) -> int:
        return sum(source.window.nbytes for source in self.sources)


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
