"""A plan's nodes as running sources: those that another query on the same scans has already are read by both."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeVar

import numpy as np

from cqels_py.batches.delta import concatenate
from cqels_py.batches.elements import Ids
from cqels_py.dataflow.build_operator import build_operator
from cqels_py.dataflow.counted_join import CountedJoinScan, StaticRelation
from cqels_py.dataflow.delta_sources import (
    ChangelogInput,
    Constant,
    DeltaSource,
    OperatorNode,
    SharedOutput,
    plan_fingerprint,
    unwrap,
)
from cqels_py.dataflow.event_rows import EventRowsScan
from cqels_py.dataflow.expressions import EvaluatorBuilder
from cqels_py.dataflow.match_scan import EventEvaluators, MatchScan
from cqels_py.dataflow.running_rules import RunningRules
from cqels_py.dataflow.scans import Partition, PartitionedScan, Scan, WindowScan
from cqels_py.dataflow.shared_scans import SharedScans, SharedSource
from cqels_py.dataflow.state_scan import StateScan
from cqels_py.dataflow.static_data import StaticData
from cqels_py.dataflow.term_values import DictionaryValues
from cqels_py.dictionary import Dictionary
from cqels_py.event_time.clock import Ticks
from cqels_py.functions.limits import Limits
from cqels_py.kernels.rows.distinct import cancel
from cqels_py.plan import nodes as plan
from cqels_py.plan.expressions import ExpressionProgram
from cqels_py.plan.nodes import Node, Plan, inputs_of
from cqels_py.plan.order import is_timed
from cqels_py.plan.traverse import states_of

_TIME = ExpressionProgram((("now", 0),), (), "NOW()", False)
"""The time of an element, as AT gives it."""
Built = TypeVar("Built", bound=SharedSource)


class DataflowBuilder:
    """Builds the sources that a query reads. `shares`: those that other queries on its scans have already are taken.

    `limits`: of the texts that expressions make.
    """

    def __init__(
        self,
        query: Plan,
        dictionary: Dictionary,
        values: DictionaryValues,
        static: StaticData,
        shared_scans: SharedScans,
        *,
        shares: bool,
        limits: Limits,
    ) -> None:
        self._query = query
        self._dictionary = dictionary
        self._values = values
        self._static = static
        self._shared_scans = shared_scans
        self._shares = shares
        self._limits = limits
        self._built: list[SharedSource] = []
        self._partitions: dict[int, Partition] = {}
        self._shared: dict[int, SharedOutput] = {}
        self._rules: RunningRules | None = None

    def build(self, root: Node) -> DeltaSource:
        """The source of a node, with one reader more. After an error nothing of it is left on the scans."""
        try:
            source = self._source(root)
            source.acquire()
            return source
        except BaseException:
            for unread in [built for built in self._built if not built.readers]:
                unread.give_up()
            raise

    def answer(self, node: plan.Once) -> Ids:
        """Answer a static sub-plan by its own operators: all its data at one tick."""
        one_tick = Ticks(np.zeros(1, np.int64), first=True)
        builder = DataflowBuilder(
            self._query,
            self._dictionary,
            self._values,
            self._static,
            self._shared_scans,
            shares=False,
            limits=self._limits,
        )
        try:
            kept = concatenate(builder.build(node.input).deltas(one_tick), len(node.variables))
        finally:
            # The state of the sub-plan's operators is not needed any more.
            self._shared_scans.end_step()
        left = cancel(kept.tick, kept.sign, kept.columns)
        assert (kept.sign[left] > 0).all(), "a static sub-plan retracts a mapping that it has not"
        return kept.columns[:, left]

    def _source(self, node: Node) -> DeltaSource:
        match node:
            case plan.Scan():
                return self._scan(node)
            case plan.MatchRows():
                return self._match(node)
            case plan.CountedJoin():
                return self._counted_join(node)
            case plan.EventRows():
                return self._event_rows(node)
            case plan.StateRows():
                return self._state(node)
            case plan.ChangelogRead():
                return ChangelogInput(node, self._shared_scans)
            case plan.Once():
                return Constant(node, self.answer(node), self._shared_scans)
            case plan.Shared(number, inner):
                if number not in self._shared:
                    self._shared[number] = SharedOutput(node, self._source(inner))
                return self._shared[number]
            case plan.Rows():
                return self._rows(node)
            case plan.StaticScan():
                return Constant(node, self._scan_static(node), self._shared_scans)
            case plan.GraphNames(graph):
                known = None if plan.is_variable(graph) else self._dictionary.encode_one(graph)
                return Constant(node, self._static.graphs(known), self._shared_scans)
            case _:
                return self._operator(node, [self._source(child) for child in inputs_of(node)])

    # --- sharing ----------------------------------------------------------------------------------------------------

    def _known(self, kind: type[Built], key: Hashable) -> Built | None:
        """The source with this fingerprint that is there already; None: build it. No `key`: no other query can read it."""
        if not self._shares or key is None:
            return None
        known = self._shared_scans.shared_subplans.get(key)
        assert known is None or isinstance(known, kind)
        return known

    def _share(self, built: Built, key: Hashable) -> Built:
        """A new source, which other queries may read from now on."""
        if self._shares and key is not None:
            built.key = key
            self._shared_scans.shared_subplans[key] = built
        self._built.append(built)
        return built

    # --- the kinds of sources ---------------------------------------------------------------------------------------

    def _rows(self, node: plan.Rows) -> Constant:
        key = plan_fingerprint(node)
        known = self._known(Constant, key)
        return known or self._share(Constant(node, self._encode_rows(node), self._shared_scans), key)

    def _operator(self, node: Node, inputs: Sequence[DeltaSource]) -> OperatorNode:
        key = None if is_timed(node) else (plan_fingerprint(node), *map(unwrap, inputs))
        known = self._known(OperatorNode, key)
        if known is not None:
            return known
        evaluators = EvaluatorBuilder(self._dictionary, self._limits)
        operator = build_operator(node, self._dictionary, self._values, evaluators)
        return self._share(OperatorNode(node, operator, inputs, evaluators.built, self._shared_scans), key)

    def _scan(self, node: plan.Scan) -> Scan:
        window = self._query.windows[node.window]
        key = plan_fingerprint(node), window.partition
        known = self._known(Scan, key)
        if known is not None:
            return known
        evaluators = EvaluatorBuilder(self._dictionary, self._limits)
        conditions = [evaluators.build(program) for program in node.conditions]
        if window.partition is None:
            return self._share(WindowScan(node, window, conditions, self._shared_scans), key)
        partition = self._partition(node.window)
        return self._share(PartitionedScan(node, window, conditions, partition, self._shared_scans), key)

    def _match(self, node: plan.MatchRows) -> MatchScan:
        key = plan_fingerprint(node)
        known = self._known(MatchScan, key)
        if known is not None:
            return known
        events = [self._of_event(event) for event in node.events]
        windows = self._query.windows
        streams = np.zeros(len(self._query.streams), np.bool_)
        streams[[windows[number].stream for number in node.windows]] = True
        scan = MatchScan(
            node,
            [windows[event.window].stream for event in node.events],
            streams,
            events,
            self._values,
            self._shared_scans,
        )
        return self._share(scan, key)

    def _of_event(self, event: plan.PlannedEvent) -> EventEvaluators:
        evaluators = EvaluatorBuilder(self._dictionary, self._limits)
        return EventEvaluators(
            evaluators.build(_TIME) if event.time else None,
            [evaluators.build(program) for _, program in event.bindings],
            [evaluators.build(program) for program in event.conditions],
        )

    def _event_rows(self, node: plan.EventRows) -> EventRowsScan:
        key = plan_fingerprint(node)
        known = self._known(EventRowsScan, key)
        if known is not None:
            return known
        stream = self._query.windows[node.event.window].stream
        return self._share(EventRowsScan(node, stream, self._of_event(node.event), self._shared_scans), key)

    def _counted_join(self, node: plan.CountedJoin) -> CountedJoinScan:
        key = plan_fingerprint(node)
        known = self._known(CountedJoinScan, key)
        if known is not None:
            return known
        windows = self._query.windows
        evaluators = EvaluatorBuilder(self._dictionary, self._limits)
        scan = CountedJoinScan(
            node,
            [windows[event.window].stream for event in node.events],
            [self._of_event(event) for event in node.events],
            [[evaluators.build(program) for program in source.conditions] for source in node.sources],
            [StaticRelation(each.variables, self._static_rows(each)) for each in node.statics],
            self._dictionary,
            self._shared_scans,
        )
        return self._share(scan, key)

    def _static_rows(self, node: Node) -> Ids:
        match node:
            case plan.Rows():
                return self._encode_rows(node)
            case plan.Once():
                return self.answer(node)
            case _:
                raise AssertionError(node)

    def _state(self, node: plan.StateRows) -> StateScan:
        if self._rules is None:
            query, rules = self._query, self._query.rules
            assert rules is not None
            evaluators = EvaluatorBuilder(self._dictionary, self._limits)
            self._rules = RunningRules(
                rules,
                self._dictionary,
                self._static,
                [evaluators.build(program) for program in rules.expressions],
                self._shared_scans,
                states=states_of(query.root),
                every_instant=query.output == "RSTREAM",
            )
        return self._share(StateScan(node, self._rules, self._shared_scans), None)

    def _partition(self, number: int) -> Partition:
        """The partition of one of the plan's windows, for all scans of it."""
        window = self._query.windows[number]
        if number not in self._partitions:
            key = number, window.partition
            known = self._known(Partition, key)
            self._partitions[number] = known or self._share(Partition(window, number, self._shared_scans), key)
        return self._partitions[number]

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
