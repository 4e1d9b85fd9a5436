"""The nodes of a running dataflow beside its scans: operators, constants, changelogs."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import fields
from itertools import chain, tee

from cqels_py.batches.delta import Delta, empty, enough, insertions
from cqels_py.batches.elements import Ids
from cqels_py.dataflow.scans import Scan
from cqels_py.dataflow.shared_scans import SharedScans, SharedSource
from cqels_py.dataflow.static_data import difference
from cqels_py.event_time.clock import Ticks
from cqels_py.operators.operator import Operator
from cqels_py.operators.r2r.expressions import Evaluator
from cqels_py.plan import nodes as plan
from cqels_py.plan.nodes import Node


class OperatorNode(SharedSource):
    """An operator and the sources that it reads. `evaluators`: of its expressions.

    With several readers its deltas are made once a step, and kept until all of them have read them, at most until the step ends.
    """

    def __init__(
        self,
        node: Node,
        operator: Operator,
        inputs: Sequence[DeltaSource],
        evaluators: Sequence[Evaluator],
        shared_scans: SharedScans,
    ) -> None:
        super().__init__(shared_scans)
        self.node = node
        self.operator = operator
        self.inputs = tuple(inputs)
        self.evaluators = tuple(evaluators)
        self._ticks: Ticks | None = None
        self._made: Iterable[Delta] = ()
        self._unread = 0
        for each in self.inputs:
            each.acquire()

    def deltas(self, ticks: Ticks) -> Iterable[Delta]:
        if self._ticks is ticks:
            return self._next_copy()
        made = self.operator.process(ticks, [source.deltas(ticks) for source in self.inputs])
        if self.readers == 1:
            return made
        self._ticks, self._unread = ticks, self.readers
        if not isinstance(made, tuple):
            rest = iter(made)
            first, complete = enough(rest)
            # Most steps make few deltas.
            made = first if complete else tee(chain(first, rest), 1)[0]
        self._made = made
        self._shared_scans.caches.append(self)
        return self._next_copy()

    def _next_copy(self) -> Iterable[Delta]:
        """The deltas for one more reader; the last one frees them as it reads them."""
        made = self._made
        self._unread -= 1
        assert self._unread >= 0, "an operator is read more often than it has readers"
        if isinstance(made, tuple):
            return made
        if not self._unread:
            self._made = ()
            return made
        return copy(made)

    def clear(self) -> None:
        """The step has ended."""
        self._ticks, self._made = None, ()

    def _release_inputs(self) -> None:
        for each in self.inputs:
            each.release()


class ChangelogInput(SharedSource):
    """Where the changelog of another dataflow is read: `current` are its changes at the ticks at hand."""

    def __init__(self, node: plan.ChangelogRead, shared_scans: SharedScans) -> None:
        super().__init__(shared_scans)
        self.node = node
        self.current = empty(len(node.variables))

    def deltas(self, ticks: Ticks) -> Iterable[Delta]:
        return (self.current,) if len(self.current) else ()


class Constant(SharedSource):
    """Mappings that are there from the first tick on, until they are replaced: static data, inline rows."""

    def __init__(self, node: Node, columns: Ids, shared_scans: SharedScans) -> None:
        super().__init__(shared_scans)
        self.node = node
        self.columns = columns
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
    """The output of a sub-plan that several operators of one plan read; `node` has its number there."""

    def __init__(self, node: plan.Shared, source: DeltaSource) -> None:
        self.node = node
        self.source = source

    def deltas(self, ticks: Ticks) -> Iterable[Delta]:
        return self.source.deltas(ticks)

    def acquire(self) -> None:
        """One reader of the source more."""
        self.source.acquire()

    def release(self) -> None:
        """One reader of the source less."""
        self.source.release()


DataflowNode = OperatorNode | Scan | ChangelogInput | Constant
DeltaSource = DataflowNode | SharedOutput

_INPUTS = frozenset({"input", "inputs", "left", "right"})


def plan_fingerprint(node: Node) -> tuple[Hashable, ...]:
    """All that distinguishes a node from others, but for the nodes it reads."""
    return (type(node), *(getattr(node, each.name) for each in fields(node) if each.name not in _INPUTS))


def unwrap(source: DeltaSource) -> DataflowNode:
    """The source whose output a plan shares under a number, or the source itself."""
    while isinstance(source, SharedOutput):
        source = source.source
    return source


def sources_below(root: DeltaSource) -> Iterator[DataflowNode]:
    """A source and all that it depends on, each once."""
    visited: set[int] = set()
    waiting: list[DeltaSource] = [root]
    while waiting:
        source = unwrap(waiting.pop())
        if id(source) not in visited:
            visited.add(id(source))
            yield source
            if isinstance(source, OperatorNode):
                waiting.extend(reversed(source.inputs))
