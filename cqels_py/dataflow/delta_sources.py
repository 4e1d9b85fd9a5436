"""What a query's operators are wired of: stages, scans, constants. Queries on shared scans may read the same ones.

`readers`: how many stages and queries read a source; without any it is given up. The deltas of a stage with several are made
once, and remembered until all of them have read them, at most until the step ends. `key`: what it does, where others may ask for
the same: what its node says but for its inputs, and which sources these are.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import fields
from itertools import chain, tee

from cqels_py.batches.delta import Delta, empty, enough, insertions
from cqels_py.batches.elements import Ids
from cqels_py.dataflow.scans import PartitionedScanSource, PartitionSource, ScanSource
from cqels_py.dataflow.shared_scans import RoutedBatch, SharedScans
from cqels_py.dataflow.static_data import difference
from cqels_py.event_time.clock import Ticks
from cqels_py.operators.operator import Operator
from cqels_py.operators.r2r.expressions import Evaluator
from cqels_py.operators.s2r.partition import Kept
from cqels_py.operators.s2r.window import Timer
from cqels_py.plan import nodes as plan
from cqels_py.plan.nodes import Node


class OperatorNode:
    """An operator and the sources it reads. `evaluators`: of its expressions."""

    def __init__(
        self,
        node: Node,
        operator: Operator,
        inputs: Sequence[DeltaSource],
        evaluators: Sequence[Evaluator],
        shared_scans: SharedScans,
    ) -> None:
        self.node = node
        self.operator = operator
        self.inputs = tuple(inputs)
        self.evaluators = tuple(evaluators)
        self.readers = 0
        self.key: Hashable = None
        self._shared_scans = shared_scans
        self._step: Ticks | None = None
        self._made: Iterable[Delta] = ()
        self._left = 0

    def deltas(self, ticks: Ticks) -> Iterable[Delta]:
        if self._step is ticks:
            return self._next_copy()
        made = self.operator.process(ticks, [source.deltas(ticks) for source in self.inputs])
        if self.readers == 1:
            return made
        self._step, self._left = ticks, self.readers
        if not isinstance(made, tuple):
            rest = iter(made)
            first, complete = enough(rest)
            # As a rule a step makes few.
            made = first if complete else tee(chain(first, rest), 1)[0]
        self._made = made
        self._shared_scans.caches.append(self)
        return self._next_copy()

    def _next_copy(self) -> Iterable[Delta]:
        """The deltas for one more reader; with the last one they are let go as they have been read by all."""
        made = self._made
        self._left -= 1
        assert self._left >= 0, "a stage is read by more than its readers"
        if isinstance(made, tuple):
            return made
        if not self._left:
            self._made = ()
            return made
        return copy(made)

    def forget(self) -> None:
        """The step has ended."""
        self._step, self._made = None, ()


class PartitionOutput:
    """What PARTITION BY of one window keeps at the step at hand."""

    def __init__(self, source: PartitionSource, shared_scans: SharedScans) -> None:
        self.source = source
        self.readers = 0
        self.key: Hashable = None
        self._shared_scans = shared_scans
        self._patterns = [shared_scans.add_pattern((pattern, source.stream)) for pattern in source.patterns]
        self._routed: RoutedBatch | None = None
        self._kept: Kept | None = None

    def kept(self, routed: RoutedBatch) -> Kept:
        if self._routed is not routed or self._kept is None:
            self._routed = routed
            self._kept = self.source.advance(routed, [routed.matches(number) for number in self._patterns])
            self._shared_scans.caches.append(self)
        return self._kept

    def forget(self) -> None:
        """The step has ended."""
        self._routed = self._kept = None

    def release(self) -> None:
        self._shared_scans.remove_patterns(self._patterns)


class ScanOutput:
    """A scan, and where its deltas of the step at hand are read. `partition`: of its window, if that has one."""

    def __init__(
        self,
        node: plan.Scan,
        source: ScanSource | PartitionedScanSource,
        partition: PartitionOutput | None,
        shared_scans: SharedScans,
    ) -> None:
        self.node = node
        self.source = source
        self.partition = partition
        self.readers = 0
        self.key: Hashable = None
        self._shared_scans = shared_scans
        self.stream = source.stream
        self.pattern = shared_scans.add_pattern((node.pattern, source.stream))
        self._nothing = empty(len(node.variables))
        self._routed: RoutedBatch | None = None
        self._changes = 0
        self._chunks: tuple[Delta, ...] = ()

    @property
    def next_timer(self) -> Timer:
        return self.source.next_timer

    def take(self, routed: RoutedBatch) -> int:
        """The window moves, if it has not yet. Returns the number of changes."""
        if self._routed is not routed:
            delta = self.source.advance(routed, routed.matches(self.pattern))
            if delta is self._nothing and self._shared_scans.alone:
                # Nothing has come or gone, and no other query is going to ask.
                return 0
            self._routed, self._changes = routed, len(delta.tick)
            self._chunks = (delta,) if self._changes else ()
            self._shared_scans.caches.append(self)
        return self._changes

    def deltas(self, ticks: Ticks) -> Iterable[Delta]:
        routed = self._routed
        return self._chunks if routed is not None and routed.step.ticks is ticks else ()

    def forget(self) -> None:
        """The step has ended."""
        self._routed, self._chunks = None, ()

    def release(self) -> None:
        self._shared_scans.remove_patterns([self.pattern])


class ChangelogInput:
    """Where the deltas that another stage has delivered are read."""

    def __init__(self, node: plan.ChangelogRead) -> None:
        self.node = node
        self.readers = 0
        self.key: Hashable = None
        self.current: Delta | None = None

    def deltas(self, ticks: Ticks) -> Iterator[Delta]:
        if self.current is not None and len(self.current):
            yield self.current


class Constant:
    """Mappings that are there from the first tick on, until they are replaced: static data, inline rows."""

    def __init__(self, node: Node, columns: Ids) -> None:
        self.node = node
        self.columns = columns
        self.readers = 0
        self.key: Hashable = None
        self._change: Delta | None = None

    def deltas(self, ticks: Ticks) -> Iterable[Delta]:
        if ticks.first and self.columns.shape[1]:
            return (insertions(self.columns),)
        return () if self._change is None or not len(self._change) else (self._change,)

    def replace(self, columns: Ids) -> None:
        """Other mappings: until `settle`, `deltas` are the difference."""
        self._change, self.columns = difference(self.columns, columns), columns

    def settle(self) -> None:
        """The change has been delivered."""
        self._change = None


class SharedOutput:
    """What several stages of a plan read, under its number there."""

    def __init__(self, node: plan.Shared, source: DeltaSource) -> None:
        self.node = node
        self.source = source

    def deltas(self, ticks: Ticks) -> Iterable[Delta]:
        return self.source.deltas(ticks)


DeltaSource = OperatorNode | ScanOutput | ChangelogInput | Constant | SharedOutput


_INPUTS = frozenset({"input", "inputs", "left", "right"})


def plan_fingerprint(node: Node) -> tuple[Hashable, ...]:
    """What a node says but for the nodes it reads."""
    return (type(node), *(getattr(node, each.name) for each in fields(node) if each.name not in _INPUTS))


def unwrap(source: DeltaSource) -> OperatorNode | ScanOutput | ChangelogInput | Constant:
    """What a plan's shared output stands for."""
    while isinstance(source, SharedOutput):
        source = source.source
    return source


def sources_below(root: DeltaSource) -> Iterator[OperatorNode | ScanOutput | ChangelogInput | Constant]:
    """All that a source depends on, and itself, each once."""
    visited: set[int] = set()
    waiting: list[DeltaSource] = [root]
    while waiting:
        source = unwrap(waiting.pop())
        if id(source) not in visited:
            visited.add(id(source))
            yield source
            if isinstance(source, OperatorNode):
                waiting.extend(reversed(source.inputs))
