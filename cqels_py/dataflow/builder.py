"""The sources that a query reads, made or found: what another query on its scans does already, both read."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

import numpy as np

from cqels_py.batches.delta import concatenate
from cqels_py.batches.elements import Ids
from cqels_py.dataflow.build_operator import build_operator, is_timed
from cqels_py.dataflow.delta_sources import (
    ChangelogInput,
    Constant,
    DeltaSource,
    OperatorNode,
    PartitionOutput,
    ScanOutput,
    SharedOutput,
    plan_fingerprint,
    unwrap,
)
from cqels_py.dataflow.expressions import build_evaluator
from cqels_py.dataflow.scans import PartitionedScanSource, PartitionSource, ScanSource
from cqels_py.dataflow.shared_scans import SharedScans
from cqels_py.dataflow.static_data import StaticData
from cqels_py.dataflow.term_values import DictionaryValues
from cqels_py.dictionary import Dictionary
from cqels_py.event_time.clock import Ticks
from cqels_py.functions.limits import Limits
from cqels_py.kernels.rows.distinct import cancel
from cqels_py.operators.r2r.expressions import Evaluator
from cqels_py.plan import nodes as plan
from cqels_py.plan.expressions import ExpressionProgram
from cqels_py.plan.nodes import Node, Plan, inputs_of

Made = TypeVar("Made", OperatorNode, ScanOutput, Constant, PartitionOutput)


class DataflowBuilder:
    """Makes what a query reads on its scans. `shares`: what others there do already is read, and not made.

    `limits`: of the texts that its expressions make.
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
        self._limits = limits
        self._shared_subplans: dict[Hashable, Any] | None = shared_scans.shared_subplans if shares else None
        self._made: list[OperatorNode | ScanOutput | Constant | PartitionOutput] = []
        self._partitions: dict[int, PartitionOutput] = {}
        self._shared: dict[int, SharedOutput] = {}

    def read(self, node: Node) -> DeltaSource:
        """The source of a node, with one reader more. After an error nothing of it is left on the scans."""
        try:
            return _with_reader(self._build(node))
        except BaseException:
            for unread in [made for made in self._made if not made.readers]:
                _end(unread, self._shared_scans)
            raise

    def answer(self, node: plan.Once) -> Ids:
        """Answer a static sub-plan by its own operators: all its data at one tick."""
        one_tick = Ticks(np.zeros(1, np.int64), first=True)
        alone = DataflowBuilder(
            self._query,
            self._dictionary,
            self._values,
            self._static,
            self._shared_scans,
            shares=False,
            limits=self._limits,
        )
        try:
            kept = concatenate(alone.read(node.input).deltas(one_tick), len(node.variables))
        finally:
            # What the sub-plan kept on the way is not needed any more.
            self._shared_scans.end()
        left = cancel(kept.tick, kept.sign, kept.columns)
        assert (kept.sign[left] > 0).all(), "a static sub-plan answers with what is not there"
        return kept.columns[:, left]

    def _build(self, node: Node) -> DeltaSource:
        match node:
            case plan.Scan():
                return self._scan(node)
            case plan.ChangelogRead():
                return ChangelogInput(node)
            case plan.Once():
                return Constant(node, self.answer(node))
            case plan.Shared(number, inner):
                if number not in self._shared:
                    self._shared[number] = SharedOutput(node, self._build(inner))
                return self._shared[number]
            case plan.Rows():
                return self._common(plan_fingerprint(node), lambda: Constant(node, self._encode_rows(node)))
            case plan.StaticScan():
                return Constant(node, self._scan_static(node))
            case plan.GraphNames(graph):
                known = None if plan.is_variable(graph) else self._dictionary.encode_one(graph)
                return Constant(node, self._static.graphs(known))
            case _:
                return self._stage(node, [self._build(child) for child in inputs_of(node)])

    def _common(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """The source that does this already, or a new one. `key`: what it does; None for what nobody else can read."""
        if self._shared_subplans is None or key is None:
            made = make()
            self._made.append(made)
            return made
        known: Made | None = self._shared_subplans.get(key)
        if known is None:
            known = self._shared_subplans[key] = make()
            known.key = key
            self._made.append(known)
        return known

    def _stage(self, node: Node, inputs: Sequence[DeltaSource]) -> OperatorNode:
        def make() -> OperatorNode:
            evaluators: list[Evaluator] = []

            def evaluator(program: ExpressionProgram) -> Evaluator:
                evaluators.append(self._evaluator(program))
                return evaluators[-1]

            operator = build_operator(node, self._dictionary, self._values, evaluator)
            stage = OperatorNode(node, operator, inputs, evaluators, self._shared_scans)
            for each in inputs:
                _with_reader(each)
            return stage

        return self._common(None if is_timed(node) else (plan_fingerprint(node), *map(unwrap, inputs)), make)

    def _scan(self, node: plan.Scan) -> ScanOutput:
        window = self._query.windows[node.window]

        def make() -> ScanOutput:
            if window.partition is None:
                return ScanOutput(node, ScanSource(node, window, self._evaluator), None, self._shared_scans)
            partition = self._partition(node.window)
            source = PartitionedScanSource(node, window, self._evaluator, partition.kept)
            scan = ScanOutput(node, source, partition, self._shared_scans)
            partition.readers += 1
            return scan

        return self._common((plan_fingerprint(node), window.partition), make)

    def _partition(self, number: int) -> PartitionOutput:
        """That of one of the plan's windows, for all scans of it."""
        window = self._query.windows[number]
        if number not in self._partitions:
            self._partitions[number] = self._common(
                (number, window.partition), lambda: PartitionOutput(PartitionSource(window, number), self._shared_scans)
            )
        return self._partitions[number]

    def _evaluator(self, program: ExpressionProgram) -> Evaluator:
        return build_evaluator(program, self._dictionary, self._limits)

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


def release(source: DeltaSource, shared_scans: SharedScans) -> None:
    """A reader goes; without any, the source goes too."""
    source = unwrap(source)
    source.readers -= 1
    if not source.readers:
        _end(source, shared_scans)


def _end(
    source: OperatorNode | ScanOutput | ChangelogInput | Constant | PartitionOutput, shared_scans: SharedScans
) -> None:
    """Nobody reads it any more."""
    if source.key is not None:
        del shared_scans.shared_subplans[source.key]
    match source:
        case OperatorNode():
            for each in source.inputs:
                release(each, shared_scans)
        case ScanOutput(partition=partition):
            source.release()
            if partition is not None:
                partition.readers -= 1
                if not partition.readers:
                    _end(partition, shared_scans)
        case PartitionOutput():
            source.release()


def _with_reader(source: DeltaSource) -> DeltaSource:
    """The source, with one reader more."""
    unwrap(source).readers += 1
    return source
