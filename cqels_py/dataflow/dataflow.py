"""A query's operators, wired as its plan says, and one step of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from cqels_py.batches.delta import Delta
from cqels_py.batches.elements import ElementBatch, Ids
from cqels_py.batches.results import ResultBatch
from cqels_py.dataflow.build_operator import is_timed, make_output
from cqels_py.dataflow.builder import DataflowBuilder, release
from cqels_py.dataflow.delta_sources import (
    ChangelogInput,
    Constant,
    OperatorNode,
    PartitionOutput,
    ScanOutput,
    sources_below,
)
from cqels_py.dataflow.expressions import build_evaluator
from cqels_py.dataflow.ownership import Coordinate
from cqels_py.dataflow.shared_scans import RoutedBatch, SharedScansPool
from cqels_py.dataflow.static_data import StaticData
from cqels_py.dataflow.term_values import DictionaryValues
from cqels_py.dictionary import Dictionary
from cqels_py.event_time.clock import ClockedWindow, Ticks
from cqels_py.functions.limits import NO_WORD, Limits
from cqels_py.operators.r2r.expressions import Evaluator
from cqels_py.operators.r2s.changelog_output import ChangelogOutput
from cqels_py.plan import nodes as plan
from cqels_py.plan.expressions import ExpressionProgram
from cqels_py.plan.nodes import Node, Plan, inputs_of
from cqels_py.plan.order import is_monotone

Held = TypeVar("Held", OperatorNode, ScanOutput, Constant, PartitionOutput)


class Dataflow:
    """The running form of a plan.

    Feed it with `step`, `advance` and `finish` where it sits alone on its scans, else with theirs: `process`; and with
    `update_static`. Each yields the results that follow. `static` is the static data the query sees: its static sub-plans are
    answered here, and again when the data is replaced.

    One part of several keeps to its `cell`. A stage that another one follows hands its changes to a `relay`, and has no
    results; one that follows another is fed with `receive`. `every_boundary`: see `TickClock`. `pool`: where it may sit with
    other queries, and then reads the sources that do for them what it needs too. `limits`: of the texts that expressions make.
    """

    def __init__(
        self,
        query: Plan,
        dictionary: Dictionary,
        static: StaticData,
        *,
        cell: Sequence[Coordinate] = (),
        relay: ChangelogOutput | None = None,
        every_boundary: bool = False,
        pool: SharedScansPool | None = None,
        limits: Limits = NO_WORD,
    ) -> None:
        self.plan = query
        self._limits = limits
        self._dictionary = dictionary
        self._static = static
        self._values = DictionaryValues(dictionary, limits)
        self._cell = tuple(cell)
        # Does something happen at ticks at which nothing changes? A stage that follows wants to know of all of them.
        every_boundary = every_boundary or query.output == "RSTREAM" or _asks_for_now(query.root)
        self._every_tick = every_boundary or relay is not None
        # What feeds others takes steps that they do not.
        alone = pool is None or query.form == "CONSTRUCT"
        self.shared_scans = (pool or SharedScansPool()).join(
            [ClockedWindow(w.stream, w.bounds, w.partition is not None) for w in query.windows],
            query.streams,
            dictionary,
            every_boundary=every_boundary,
            alone=alone,
        )
        self._shares = not alone
        self.root = self._wiring().read(query.root)
        below = list(sources_below(self.root))
        self._stages = [source for source in below if isinstance(source, OperatorNode)]
        self._scans = [source for source in below if isinstance(source, ScanOutput)]
        self._constants = [source for source in below if isinstance(source, Constant)]
        self._inbox = next((source for source in below if isinstance(source, ChangelogInput)), None)
        self._keep_to(self._cell)
        self._at: Ticks | None = None
        self._one_way = is_monotone(query.root) and self._inbox is None
        self._evaluators: list[Evaluator] = []
        self._output = relay or make_output(query, dictionary, self._values, self._settled, self._evaluator)
        self._ticked = False
        self._left = False
        # Of the last step: the tick (its number in the step) of each element's arrival, -1 where it was none.
        self.element_tick: npt.NDArray[np.int32] = np.empty(0, np.int32)
        self.reader = self.shared_scans.attach(self._scans)

    def _wiring(self) -> DataflowBuilder:
        return DataflowBuilder(
            self.plan,
            self._dictionary,
            self._values,
            self._static,
            self.shared_scans,
            shares=self._shares,
            limits=self._limits,
        )

    def _evaluator(self, program: ExpressionProgram) -> Evaluator:
        """Of an expression that is evaluated with the results."""
        self._evaluators.append(build_evaluator(program, self._dictionary, self._limits))
        return self._evaluators[-1]

    def _keep_to(self, cell: Sequence[Coordinate]) -> None:
        """This dataflow is one part of several: it leaves alone what belongs to others."""
        if not cell:
            return
        for scan in self._scans:
            scan.source.keep_to(cell)
        for constant in self._constants:
            constant.columns = self._owned(constant.node, constant.columns)

    def _owned(self, node: Node, columns: Ids) -> Ids:
        for coordinate in self._cell:
            if coordinate.variable in node.variables:
                columns = columns[:, coordinate.mine(columns[node.variables.index(coordinate.variable)])]
        return columns

    # --- running ------------------------------------------------------------------------------------------------

    @property
    def is_shared(self) -> bool:
        """Does another query read what a stage of this one makes?"""
        return any(stage.readers > 1 for stage in self._stages)

    def step(self, batch: ElementBatch) -> Iterator[ResultBatch]:
        """Take in elements of the query's streams, in order; `batch.stream` are positions in the plan's streams."""
        return self._alone(self.shared_scans.step(batch))

    def advance(self, time: int) -> Iterator[ResultBatch]:
        """No element before `time` (microseconds) will come any more."""
        return self._alone(self.shared_scans.advance(time))

    def finish(self) -> Iterator[ResultBatch]:
        """The streams have ended."""
        return self._alone(self.shared_scans.finish())

    def _alone(self, routed: RoutedBatch) -> Iterator[ResultBatch]:
        yield from self.process(routed)
        self.shared_scans.end()

    def process(self, routed: RoutedBatch) -> Iterable[ResultBatch]:
        """One step of the shared scans."""
        if self._left:
            return ()
        step = routed.step
        ticks, self.element_tick = step.ticks, step.element_tick
        changed = 0
        for scan in self._scans:
            changed += scan.take(routed)
        if len(ticks.time) and (changed or self._every_tick or not self._ticked):
            if not self._ticked and not self._every_tick:
                self.shared_scans.park(self.reader)
            self._ticked = True
            return self._tick(ticks)
        return ()

    def detach(self) -> None:
        """The query has been taken away: from now on it does nothing, and keeps nothing."""
        if not self._left:
            self._left = True
            self.shared_scans.detach(self.reader)
            release(self.root, self.shared_scans)

    def receive(self, ticks: Ticks, delta: Delta) -> Iterator[ResultBatch]:
        """Take in what another stage delivered at these ticks."""
        assert self._inbox is not None
        if len(ticks):
            self._inbox.current = delta
            yield from self._tick(ticks)
            self._inbox.current = None
            self.shared_scans.end()

    def update_static(self, static: StaticData) -> Iterator[ResultBatch]:
        """From now on the query sees this static data, and no other.

        A tick of its own at the current time, in which the windows hold what they held at the last one. Before the first tick
        there is none: the first one then sees the new data.
        """
        self._static = static
        wiring = self._wiring()
        for constant in self._constants:
            if isinstance(constant.node, plan.Once):
                constant.replace(self._owned(constant.node, wiring.answer(constant.node)))
        now = self.shared_scans.now
        if self._ticked and now is not None:
            yield from self._tick(Ticks(np.array([now], np.int64), first=False))
            self.shared_scans.end()
        for constant in self._constants:
            constant.settle()

    def _tick(self, ticks: Ticks) -> Iterator[ResultBatch]:
        self._at = ticks
        return self._output.process(ticks, self.root.deltas(ticks))

    def _settled(self, tick: int) -> bool:
        """Have all changes of the answer at this tick of the step at hand one sign? Only True is certain."""
        if not self._one_way or self._at is None:
            return False
        signs: set[int] = set()
        sources: list[ScanOutput | Constant] = [*self._scans, *self._constants]
        for source in sources:
            for delta in source.deltas(self._at):
                first, last = np.searchsorted(delta.tick, [tick, tick + 1])
                signs.update(np.unique(delta.sign[first:last]).tolist())
        return len(signs) < 2

    def live_ids(self, visited: set[int] | None = None) -> Iterator[Ids]:
        """Arrays with every id this query may still refer to. `visited`: sources of which they are known, and which is added to."""
        visited = set() if visited is None else visited
        yield self._static.live_ids()
        for scan in self._new(self._scans, visited):
            yield from scan.source.live_ids()
        for partition in self._new([scan.partition for scan in self._scans if scan.partition is not None], visited):
            yield partition.source.live_ids()
        for constant in self._new(self._constants, visited):
            yield constant.columns.reshape(-1)
        for stage in self._new(self._stages, visited):
            yield from stage.operator.live_ids()
        yield from self._output.live_ids()

    @staticmethod
    def _new(sources: Iterable[Held], visited: set[int]) -> Iterator[Held]:
        for source in sources:
            if id(source) not in visited:
                visited.add(id(source))
                yield source

    def forget_evaluations(self) -> None:
        """The dictionary has released terms: values remembered by id are void."""
        for evaluator in self._evaluators:
            evaluator.clear()
        for stage in self._stages:
            for evaluator in stage.evaluators:
                evaluator.clear()
        for scan in self._scans:
            for evaluator, _ in scan.source.conditions:
                evaluator.clear()

    @property
    def nbytes(self) -> int:
        """Size of the state in bytes, with that of what it reads together with other queries."""
        partitions = self._new([scan.partition for scan in self._scans if scan.partition is not None], set())
        return (
            sum(scan.source.nbytes for scan in self._scans)
            + sum(partition.source.nbytes for partition in partitions)
            + sum(stage.operator.nbytes for stage in self._stages)
            + self._output.nbytes
        )


def _asks_for_now(root: Node) -> bool:
    waiting, visited = [root], set[int]()
    while waiting:
        node = waiting.pop()
        if is_timed(node):
            return True
        if isinstance(node, plan.Shared):
            if node.number in visited:
                continue
            visited.add(node.number)
        waiting.extend(inputs_of(node))
    return False
