"""A query's operators, wired as its plan says, and one step of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cqels_py.batches.delta import Delta, concatenate, insertions
from cqels_py.batches.elements import ElementBatch, Ids
from cqels_py.batches.results import ResultBatch
from cqels_py.dataflow.expressions import build_evaluator
from cqels_py.dataflow.front import Fronts
from cqels_py.dataflow.ownership import Coordinate
from cqels_py.dataflow.scans import Scans
from cqels_py.dataflow.static_data import StaticData, difference
from cqels_py.dataflow.term_values import DictionaryValues
from cqels_py.dictionary.dictionary import Dictionary
from cqels_py.event_time.clock import ClockedWindow, Step, TickClock, Ticks
from cqels_py.kernels.distinct import cancel
from cqels_py.operators.operator import Operator
from cqels_py.operators.r2r.aggregate import Aggregate, GroupBy
from cqels_py.operators.r2r.closure import Closure
from cqels_py.operators.r2r.distinct import DistinctRows
from cqels_py.operators.r2r.expressions import Evaluator
from cqels_py.operators.r2r.factorised import FactorisedGroupBy, JoinedAggregate, JoinedInput
from cqels_py.operators.r2r.join import MultiwayJoin
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


class Stage:
    """An operator and the stages it reads."""

    def __init__(self, node: Node, operator: Operator, inputs: Sequence[Source]) -> None:
        self.node = node
        self.operator = operator
        self.inputs = tuple(inputs)

    def deltas(self, ticks: Ticks) -> Iterable[Delta]:
        return self.operator.process(ticks, [source.deltas(ticks) for source in self.inputs])


class ScanOutput:
    """Where a scan's deltas of the step at hand are read."""

    def __init__(self, node: plan.Scan) -> None:
        self.node = node
        self.current: Delta | None = None

    def deltas(self, ticks: Ticks) -> Iterable[Delta]:
        return () if self.current is None or not len(self.current.tick) else (self.current,)


class Inbox:
    """Where the deltas that another stage has delivered are read."""

    def __init__(self, node: plan.Received) -> None:
        self.node = node
        self.current: Delta | None = None

    def deltas(self, ticks: Ticks) -> Iterator[Delta]:
        if self.current is not None and len(self.current):
            yield self.current


class Constant:
    """Mappings that are there from the first tick on, until they are replaced: static data, inline rows."""

    def __init__(self, node: Node, columns: Ids) -> None:
        self.node = node
        self.columns = columns
        self._change: Delta | None = None

    def deltas(self, ticks: Ticks) -> Iterator[Delta]:
        if ticks.first and self.columns.shape[1]:
            yield insertions(self.columns)
        elif self._change is not None and len(self._change):
            yield self._change

    def replace(self, columns: Ids) -> None:
        """Other mappings: until `settle`, `deltas` are the difference."""
        self._change, self.columns = difference(self.columns, columns), columns

    def settle(self) -> None:
        """The change has been delivered."""
        self._change = None


class SharedOutput:
    """The deltas of the step at hand of what several stages read; computed for the first of them."""

    def __init__(self, node: plan.Shared, source: Source) -> None:
        self.node = node
        self.source = source
        self._step: Ticks | None = None
        self._deltas: list[Delta] = []

    def deltas(self, ticks: Ticks) -> Iterator[Delta]:
        if self._step is not ticks:
            self._deltas = list(self.source.deltas(ticks))
            self._step = ticks
        yield from self._deltas

    def forget(self) -> None:
        """The step has ended."""
        self._step, self._deltas = None, []


Source = Stage | ScanOutput | Inbox | Constant | SharedOutput


class Dataflow:
    """The running form of a plan.

    Feed it with `step`, `advance`, `update_static` and `finish`; each yields the results that follow. `static` is the static
    data the query sees: its static sub-plans are answered here, and again when the data is replaced.

    One part of several keeps to its `cell`. A stage that another one follows hands its changes to a `relay`, and has no
    results; one that follows another is fed with `receive`. `every_boundary`: see `TickClock`. `fronts`: where it may sit with
    other queries.
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
        self._stages: list[Stage] = []
        self._constants: list[Constant] = []
        self._evaluators: list[Evaluator] = []
        self._shared: dict[int, SharedOutput] = {}
        self._scan_nodes: list[plan.Scan] = []
        self._scan_outputs: list[ScanOutput] = []
        self._inbox: Inbox | None = None
        self.root = self._build(query.root)
        self._scans = Scans(self._scan_nodes, query.windows, self._evaluator)
        self._cell = tuple(cell)
        self._keep_to(self._cell)
        self._output = relay or _output_operator(query, self._values)
        self._ticked = False
        # Of the last step: the tick (its number in the step) of each element's arrival, -1 where it was none.
        self.element_tick: npt.NDArray[np.int32] = np.empty(0, np.int32)
        every_boundary = (
            every_boundary
            or query.output == "RSTREAM"
            or any(isinstance(stage.operator, TimedFilter | TimedExtend) for stage in self._stages)
        )
        # Does something happen at ticks at which nothing changes? A stage that follows wants to know of all of them.
        self._restless = every_boundary or relay is not None
        front = (fronts or Fronts()).front(
            [ClockedWindow(w.stream, w.bounds, w.partition is not None) for w in query.windows],
            query.streams,
            dictionary,
            every_boundary=every_boundary,
            alone=query.form == "CONSTRUCT",
        )
        self._seat = front.sit(self._scans.patterns)

    # --- building -----------------------------------------------------------------------------------------------

    def _build(self, node: Node) -> Source:
        match node:
            case plan.Scan():
                output = ScanOutput(node)
                self._scan_nodes.append(node)
                self._scan_outputs.append(output)
                return output
            case plan.Received():
                self._inbox = Inbox(node)
                return self._inbox
            case plan.Once():
                return self._keep(node, self._answer(node))
            case plan.Shared(number, inner):
                if number not in self._shared:
                    self._shared[number] = SharedOutput(node, self._build(inner))
                return self._shared[number]
            case plan.Rows():
                return self._keep(node, self._encode_rows(node))
            case plan.StaticScan():
                return self._keep(node, self._scan_static(node))
            case plan.GraphNames(graph):
                known = None if plan.is_variable(graph) else self._dictionary.encode_one(graph)
                return self._keep(node, self._static.graphs(known))
            case _:
                stage = Stage(node, self._operator(node), [self._build(child) for child in inputs_of(node)])
                self._stages.append(stage)
                return stage

    def _keep(self, node: Node, columns: Ids) -> Constant:
        constant = Constant(node, columns)
        self._constants.append(constant)
        return constant

    def _answer(self, node: plan.Once) -> Ids:
        """Answer a static sub-plan by its own operators: all its data at one tick."""
        lists: tuple[list[Any], ...] = (self._stages, self._constants, self._evaluators)
        lengths, shared = [len(each) for each in lists], dict(self._shared)
        one_tick = Ticks(np.zeros(1, np.int64), first=True)
        kept = concatenate(self._build(node.input).deltas(one_tick), len(node.variables))
        # What the sub-plan kept on the way is not needed any more.
        for each, length in zip(lists, lengths, strict=True):
            del each[length:]
        self._shared = shared
        return kept.columns[:, cancel(kept.tick, kept.sign, kept.columns)]

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
        own = _places(node.inputs[node.carrier], node.own)
        return FactorisedGroupBy(inputs, node.carrier, own, groups, aggregates, self._values)

    def _evaluator(self, program: ExpressionProgram) -> Evaluator:
        evaluator = build_evaluator(program, self._dictionary)
        self._evaluators.append(evaluator)
        return evaluator

    def _keep_to(self, cell: Sequence[Coordinate]) -> None:
        """This dataflow is one part of several: it leaves alone what belongs to others."""
        self._scans.keep_to(cell)
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
        return self._run(batch, lambda clock: clock.step(batch.time, batch.stream, batch.first))

    def advance(self, time: int) -> Iterator[ResultBatch]:
        """No element before `time` (microseconds) will come any more."""
        return self._run(_NOTHING, lambda clock: clock.advance(time))

    def finish(self) -> Iterator[ResultBatch]:
        """The streams have ended."""
        return self._run(_NOTHING, TickClock.finish)

    def leave(self) -> None:
        """The query has been taken away: from now on it does nothing."""
        self._seat.leave()

    def receive(self, ticks: Ticks, delta: Delta) -> Iterator[ResultBatch]:
        """Take in what another stage delivered at these ticks."""
        assert self._inbox is not None
        if len(ticks):
            self._inbox.current = delta
            yield from self._tick(ticks)
            self._inbox.current = None

    def update_static(self, static: StaticData) -> Iterator[ResultBatch]:
        """From now on the query sees this static data, and no other.

        A tick of its own at the current time, in which the windows hold what they held at the last one. Before the first tick
        there is none: the first one then sees the new data.
        """
        self._static = static
        for constant in list(self._constants):
            if isinstance(constant.node, plan.Once):
                constant.replace(self._owned(constant.node, self._answer(constant.node)))
        now = self._seat.now
        if self._ticked and now is not None:
            for output in self._scan_outputs:
                output.current = None
            yield from self._tick(Ticks(np.array([now], np.int64), first=False))
        for constant in self._constants:
            constant.settle()

    def _run(self, batch: ElementBatch, move: Callable[[TickClock], Step]) -> Iterator[ResultBatch]:
        if self._seat.left:
            return
        turn = self._seat.take(batch, move)
        ticks, self.element_tick = turn.step.ticks, turn.step.element_tick
        deltas = self._scans.step(turn, self._seat.matches(turn))
        changed = 0
        for output, delta in zip(self._scan_outputs, deltas, strict=True):
            output.current = delta
            changed += len(delta.tick)
        if len(ticks.time) and (changed or self._restless or not self._ticked):
            self._ticked = True
            yield from self._tick(ticks)

    def _tick(self, ticks: Ticks) -> Iterator[ResultBatch]:
        yield from self._output.process(ticks, self.root.deltas(ticks))
        for shared in self._shared.values():
            shared.forget()

    def live_ids(self) -> Iterable[Ids]:
        """Arrays with every id this query may still refer to."""
        yield from self._scans.live_ids()
        yield self._static.live_ids()
        for constant in self._constants:
            yield constant.columns.reshape(-1)
        for stage in self._stages:
            yield from stage.operator.live_ids()
        yield from self._output.live_ids()

    def forget_evaluations(self) -> None:
        """The dictionary has released terms: values remembered by id are void."""
        for evaluator in self._evaluators:
            evaluator.clear()

    @property
    def nbytes(self) -> int:
        """Size of the state in bytes."""
        return self._scans.nbytes + sum(stage.operator.nbytes for stage in self._stages) + self._output.nbytes


_NOTHING = ElementBatch(
    np.empty(0, np.int64), np.empty(0, np.int32), np.zeros(1, np.int64), *(np.empty(0, np.int64) for _ in range(3))
)


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
