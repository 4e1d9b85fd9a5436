"""A query's operators, wired as its plan says, and one step of them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from cqels_py.batches.delta import Delta, concatenate
from cqels_py.batches.elements import ElementBatch, Ids
from cqels_py.batches.results import ResultBatch
from cqels_py.dataflow.expressions import build_evaluator
from cqels_py.dataflow.front import Fronts, Turn
from cqels_py.dataflow.ownership import Coordinate
from cqels_py.dataflow.scans import PartitionedScanSource, PartitionSource, ScanSource
from cqels_py.dataflow.sources import (
    Constant,
    Inbox,
    PartitionOutput,
    ScanOutput,
    SharedOutput,
    Source,
    Stage,
    itself,
    says,
    sources_below,
)
from cqels_py.dataflow.static_data import StaticData
from cqels_py.dataflow.term_values import DictionaryValues
from cqels_py.dictionary.dictionary import Dictionary
from cqels_py.event_time.clock import ClockedWindow, Ticks
from cqels_py.kernels.distinct import cancel
from cqels_py.operators.operator import Operator
from cqels_py.operators.r2r.aggregate import Aggregate, GroupBy
from cqels_py.operators.r2r.closure import Closure
from cqels_py.operators.r2r.distinct import DistinctRows
from cqels_py.operators.r2r.expressions import Evaluator
from cqels_py.operators.r2r.factorised import FactorisedGroupBy
from cqels_py.operators.r2r.group_by_key import GroupByKey
from cqels_py.operators.r2r.join import MultiwayJoin
from cqels_py.operators.r2r.joined_rows import JoinedAggregate, JoinedInput
from cqels_py.operators.r2r.negation import Negation
from cqels_py.operators.r2r.numbering import NumberRows
from cqels_py.operators.r2r.rows import Extend, Filter, Project, UnionAll
from cqels_py.operators.r2r.timed import TimedExtend, TimedFilter
from cqels_py.operators.r2r.top import TopRows
from cqels_py.operators.r2s.ask import Ask
from cqels_py.operators.r2s.ordered import OrderedAnswers
from cqels_py.operators.r2s.relay import Relay
from cqels_py.operators.r2s.streams import Answers, Changes
from cqels_py.plan import nodes as plan
from cqels_py.plan.expressions import ExpressionProgram
from cqels_py.plan.nodes import Node, Plan, inputs_of
from cqels_py.plan.order import expires_in_order

Made = TypeVar("Made", Stage, ScanOutput, Constant, PartitionOutput)


class Dataflow:
    """The running form of a plan.

    Feed it with `step`, `advance` and `finish` where it sits alone at its front, else with the front's turns: `take`; and with
    `update_static`. Each yields the results that follow. `static` is the static data the query sees: its static sub-plans are
    answered here, and again when the data is replaced.

    One part of several keeps to its `cell`. A stage that another one follows hands its changes to a `relay`, and has no
    results; one that follows another is fed with `receive`. `every_boundary`: see `TickClock`. `fronts`: where it may sit with
    other queries, and then reads the sources that do for them what it needs too.
    """

    def __init__(
        self,
        query: Plan,
        dictionary: Dictionary,
        static: StaticData,
        *,
        cell: Sequence[Coordinate] = (),
        relay: Relay | None = None,
        every_boundary: bool = False,
        fronts: Fronts | None = None,
    ) -> None:
        self.plan = query
        self._dictionary = dictionary
        self._static = static
        self._values = DictionaryValues(dictionary)
        self._cell = tuple(cell)
        # Does something happen at ticks at which nothing changes? A stage that follows wants to know of all of them.
        every_boundary = every_boundary or query.output == "RSTREAM" or _asks_for_now(query.root)
        self._restless = every_boundary or relay is not None
        # What feeds others takes turns that they do not.
        alone = fronts is None or query.form == "CONSTRUCT"
        self.front = (fronts or Fronts()).front(
            [ClockedWindow(w.stream, w.bounds, w.partition is not None) for w in query.windows],
            query.streams,
            dictionary,
            every_boundary=every_boundary,
            alone=alone,
        )
        self._commons: dict[Hashable, Any] | None = None if alone else self.front.commons
        self._partitions: dict[int, PartitionOutput] = {}
        self._evaluators: list[Evaluator] = []
        self._shared: dict[int, SharedOutput] = {}
        self.root = self._read(self._build(query.root))
        below = list(sources_below(self.root))
        self._stages = [source for source in below if isinstance(source, Stage)]
        self._scans = [source for source in below if isinstance(source, ScanOutput)]
        self._constants = [source for source in below if isinstance(source, Constant)]
        self._inbox = next((source for source in below if isinstance(source, Inbox)), None)
        self._keep_to(self._cell)
        self._output = relay or _output_operator(query, self._values)
        self._ticked = False
        self._left = False
        # Of the last step: the tick (its number in the step) of each element's arrival, -1 where it was none.
        self.element_tick: npt.NDArray[np.int32] = np.empty(0, np.int32)
        self.seat = self.front.sit(self._scans)

    # --- building -----------------------------------------------------------------------------------------------

    def _build(self, node: Node) -> Source:
        match node:
            case plan.Scan():
                return self._scan(node)
            case plan.Received():
                return Inbox(node)
            case plan.Once():
                return Constant(node, self._answer(node))
            case plan.Shared(number, inner):
                if number not in self._shared:
                    self._shared[number] = SharedOutput(node, self._build(inner))
                return self._shared[number]
            case plan.Rows():
                return self._common(says(node), lambda: Constant(node, self._encode_rows(node)))
            case plan.StaticScan():
                return Constant(node, self._scan_static(node))
            case plan.GraphNames(graph):
                known = None if plan.is_variable(graph) else self._dictionary.encode_one(graph)
                return Constant(node, self._static.graphs(known))
            case _:
                return self._stage(node, [self._build(child) for child in inputs_of(node)])

    def _common(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """The source that does this already, or a new one."""
        if self._commons is None:
            return make()
        known = self._commons.get(key)
        if known is None:
            known = self._commons[key] = make()
            known.key = key
        return known

    def _stage(self, node: Node, inputs: Sequence[Source]) -> Stage:
        def make() -> Stage:
            start = len(self._evaluators)
            operator = self._operator(node)
            return Stage(node, operator, list(map(self._read, inputs)), self._evaluators[start:], self.front)

        if isinstance(node, plan.FilterRows | plan.ExtendRows) and _is_timed(node):
            return make()
        return self._common((says(node), *map(itself, inputs)), make)

    def _scan(self, node: plan.Scan) -> ScanOutput:
        window = self.plan.windows[node.window]

        def make() -> ScanOutput:
            if window.partition is None:
                return ScanOutput(node, ScanSource(node, window, self._evaluator), None, self.front)
            partition = self._partition(node.window)
            partition.readers += 1
            source = PartitionedScanSource(node, window, self._evaluator, partition.kept)
            return ScanOutput(node, source, partition, self.front)

        return self._common((says(node), window.partition), make)

    def _partition(self, number: int) -> PartitionOutput:
        """That of one of the plan's windows, for all scans of it."""
        window = self.plan.windows[number]
        if number not in self._partitions:
            self._partitions[number] = self._common(
                (number, window.partition), lambda: PartitionOutput(PartitionSource(window, number), self.front)
            )
        return self._partitions[number]

    @staticmethod
    def _read(source: Source) -> Source:
        """The source, with one reader more."""
        itself(source).readers += 1
        return source

    def _answer(self, node: plan.Once) -> Ids:
        """Answer a static sub-plan by its own operators: all its data at one tick."""
        shared, self._shared = self._shared, {}
        commons, self._commons = self._commons, None
        one_tick = Ticks(np.zeros(1, np.int64), first=True)
        source = self._read(self._build(node.input))
        kept = concatenate(source.deltas(one_tick), len(node.variables))
        # What the sub-plan kept on the way is not needed any more.
        self.front.end()
        self._shared, self._commons = shared, commons
        left = cancel(kept.tick, kept.sign, kept.columns)
        assert (kept.sign[left] > 0).all(), "a static sub-plan answers with what is not there"
        return kept.columns[:, left]

    def _give_up(self, source: Source) -> None:
        """A reader goes; without any, the source goes too."""
        source = itself(source)
        source.readers -= 1
        if source.readers:
            return
        if source.key is not None:
            del self.front.commons[source.key]
        if isinstance(source, ScanOutput):
            source.give_up()
            if source.partition is not None:
                self._give_up_partition(source.partition)
        if isinstance(source, Stage):
            for each in source.inputs:
                self._give_up(each)

    def _give_up_partition(self, partition: PartitionOutput) -> None:
        partition.readers -= 1
        if not partition.readers:
            if partition.key is not None:
                del self.front.commons[partition.key]
            partition.give_up()

    def _encode_rows(self, node: plan.Rows) -> Ids:
        columns = np.zeros((len(node.variables), len(node.rows)), np.int64)
        for c in range(len(node.variables)):
            columns[c] = self._dictionary.encode([row[c] for row in node.rows])
        return columns

    def _scan_static(self, node: plan.StaticScan) -> Ids:
        encode = self._dictionary.encode_one
        constants = [0 if plan.is_variable(text) else encode(text) for text in node.pattern]
        graph = None if plan.is_variable(node.graph) else encode(node.graph) if node.graph else 0
        return self._static.mappings(node, constants, graph)

    def _operator(self, node: Node) -> Operator:
        match node:
            case plan.JoinAll(inputs, variables, in_order, loose, retract):
                names = [child.variables for child in inputs]
                return MultiwayJoin(names, in_order, variables, loose=loose, retract=retract)
            case plan.FilterRows(inner, condition) if not condition.deterministic:
                return TimedFilter(self._evaluator(condition), _places(inner, condition.inputs), len(inner.variables))
            case plan.ExtendRows(inner, _, expression) if not expression.deterministic:
                return TimedExtend(self._evaluator(expression), _places(inner, expression.inputs), len(inner.variables))
            case plan.FilterRows(inner, condition):
                return Filter(self._evaluator(condition), _places(inner, condition.inputs))
            case plan.ExtendRows(inner, _, expression):
                return Extend(self._evaluator(expression), _places(inner, expression.inputs))
            case plan.ProjectRows(inner, variables):
                return Project(_places(inner, variables))
            case plan.UnionRows(_, variables):
                return UnionAll(len(variables))
            case plan.DistinctRowsOf(inner):
                return DistinctRows(len(inner.variables))
            case plan.ClosureRows(inner, edge, _, source, loops):
                number = None if source is None else self._dictionary.encode_one(source)
                return Closure(_places(inner, edge), source=number, loops=loops)
            case plan.Negate(left, _, key, in_order, exists):
                return Negation(left.variables, key, in_order, exists=exists)
            case plan.NumberRows(inner, of):
                return NumberRows(_places(inner, of))
            case plan.GroupRows(inner, keys, aggregates):
                made = [
                    Aggregate(
                        a.function,
                        None if a.argument is None else inner.variables.index(a.argument),
                        a.distinct,
                        a.separator,
                    )
                    for a in aggregates
                ]
                return GroupBy(_places(inner, keys), made, self._values, in_order=expires_in_order(inner))
            case plan.FactorisedGroups():
                return self._factorised(node)
            case plan.TopRows(inner, order, offset, limit, by):
                places = [(inner.variables.index(name), descending) for name, descending in order]
                return TopRows(len(inner.variables), places, offset, limit, self._values, _places(inner, by))
            case _:
                raise AssertionError(node)

    def _factorised(self, node: plan.FactorisedGroups) -> Operator:
        inputs = [
            JoinedInput(len(each.variables), tuple(_places(each, node.key)), expires_in_order(each))
            for each in node.inputs
        ]
        aggregates = []
        for a in node.aggregates:
            source = node.source(a)
            column = None if a.argument is None else node.inputs[source].variables.index(a.argument)
            aggregates.append(JoinedAggregate(a.function, source, column))
        columns = (*node.key, *node.own)
        groups = [columns.index(name) for name in node.keys]
        if node.by_key:
            return GroupByKey(inputs, groups, aggregates, self._values)
        own = _places(node.inputs[node.carrier], node.own)
        return FactorisedGroupBy(inputs, node.carrier, own, groups, aggregates, self._values)

    def _evaluator(self, program: ExpressionProgram) -> Evaluator:
        evaluator = build_evaluator(program, self._dictionary)
        self._evaluators.append(evaluator)
        return evaluator

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

    def step(self, batch: ElementBatch) -> Iterator[ResultBatch]:
        """Take in elements of the query's streams, in order; `batch.stream` are positions in the plan's streams."""
        return self._alone(self.front.step(batch))

    def advance(self, time: int) -> Iterator[ResultBatch]:
        """No element before `time` (microseconds) will come any more."""
        return self._alone(self.front.advance(time))

    def finish(self) -> Iterator[ResultBatch]:
        """The streams have ended."""
        return self._alone(self.front.finish())

    def _alone(self, turn: Turn) -> Iterator[ResultBatch]:
        yield from self.take(turn)
        self.front.end()

    def take(self, turn: Turn) -> Iterator[ResultBatch]:
        """Take part in a turn of the front."""
        if self._left:
            return
        ticks, self.element_tick = turn.step.ticks, turn.step.element_tick
        changed = 0
        for scan in self._scans:
            changed += scan.take(turn)
        if len(ticks.time) and (changed or self._restless or not self._ticked):
            if not self._ticked and not self._restless:
                self.front.idle(self.seat)
            self._ticked = True
            yield from self._tick(ticks)

    def leave(self) -> None:
        """The query has been taken away: from now on it does nothing, and keeps nothing."""
        if not self._left:
            self._left = True
            self.front.leave(self.seat)
            self._give_up(self.root)

    def receive(self, ticks: Ticks, delta: Delta) -> Iterator[ResultBatch]:
        """Take in what another stage delivered at these ticks."""
        assert self._inbox is not None
        if len(ticks):
            self._inbox.current = delta
            yield from self._tick(ticks)
            self._inbox.current = None
            self.front.end()

    def update_static(self, static: StaticData) -> Iterator[ResultBatch]:
        """From now on the query sees this static data, and no other.

        A tick of its own at the current time, in which the windows hold what they held at the last one. Before the first tick
        there is none: the first one then sees the new data.
        """
        self._static = static
        for constant in self._constants:
            if isinstance(constant.node, plan.Once):
                constant.replace(self._owned(constant.node, self._answer(constant.node)))
        now = self.front.now
        if self._ticked and now is not None:
            yield from self._tick(Ticks(np.array([now], np.int64), first=False))
            self.front.end()
        for constant in self._constants:
            constant.settle()

    def _tick(self, ticks: Ticks) -> Iterator[ResultBatch]:
        yield from self._output.process(ticks, self.root.deltas(ticks))

    def live_ids(self, told: set[int] | None = None) -> Iterator[Ids]:
        """Arrays with every id this query may still refer to. `told`: sources of which they are known, and which is added to."""
        told = set() if told is None else told
        yield self._static.live_ids()
        for scan in self._new(self._scans, told):
            yield from scan.source.live_ids()
        for partition in self._new([scan.partition for scan in self._scans if scan.partition is not None], told):
            yield partition.source.live_ids()
        for constant in self._new(self._constants, told):
            yield constant.columns.reshape(-1)
        for stage in self._new(self._stages, told):
            yield from stage.operator.live_ids()
        yield from self._output.live_ids()

    @staticmethod
    def _new(sources: Iterable[Made], told: set[int]) -> Iterator[Made]:
        for source in sources:
            if id(source) not in told:
                told.add(id(source))
                yield source

    def forget_evaluations(self) -> None:
        """The dictionary has released terms: values remembered by id are void."""
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


def _is_timed(node: plan.FilterRows | plan.ExtendRows) -> bool:
    """Does its value depend on more than the mapping?"""
    program = node.condition if isinstance(node, plan.FilterRows) else node.expression
    return not program.deterministic


def _asks_for_now(root: Node) -> bool:
    waiting, told = [root], set[int]()
    while waiting:
        node = waiting.pop()
        if isinstance(node, plan.FilterRows | plan.ExtendRows) and _is_timed(node):
            return True
        if isinstance(node, plan.Shared):
            if node.number in told:
                continue
            told.add(node.number)
        waiting.extend(inputs_of(node))
    return False


def _places(node: Node, names: Iterable[str]) -> list[int]:
    """Columns by name; -1 for one the node does not have."""
    return [node.variables.index(name) if name in node.variables else -1 for name in names]


def _output_operator(query: Plan, values: DictionaryValues) -> Answers | OrderedAnswers | Changes | Ask:
    insertions_too = query.output in ("ISTREAM", "CHANGELOG")
    deletions = query.output in ("DSTREAM", "CHANGELOG")
    if query.form == "ASK":
        return Ask(
            query.variables, insertions=insertions_too, deletions=deletions, every_tick=query.output == "RSTREAM"
        )
    if query.order is not None:
        columns = query.root.variables
        keys = [(columns.index(name), descending) for name, descending in query.order.keys]
        return OrderedAnswers(query.variables, len(columns), keys, values, distinct=query.order.distinct)
    if query.output == "RSTREAM":
        return Answers(query.variables)
    return Changes(query.variables, insertions=insertions_too, deletions=deletions)
