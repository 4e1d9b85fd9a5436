"""The nodes of a running dataflow beside its scans: operators, constants, changelogs."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import fields
from itertools import chain, tee

import numpy as np

from cqels_py.batches.delta import BLOCK_ROWS, Delta, empty, insertions
from cqels_py.batches.elements import Ids
from cqels_py.dataflow.counted_join import CountedJoinScan
from cqels_py.dataflow.event_rows import EventRowsScan
from cqels_py.dataflow.match_scan import MatchScan
from cqels_py.dataflow.scans import Scan
from cqels_py.dataflow.shared_scans import SharedScans, SharedSource
from cqels_py.dataflow.state_scan import StateScan
from cqels_py.dataflow.static_data import difference
from cqels_py.errors import UsageError
from cqels_py.event_time.clock import Ticks
from cqels_py.operators.operator import Operator
from cqels_py.operators.r2r.expressions import Evaluator
from cqels_py.operators.r2r.leaf_join import LeafJoin
from cqels_py.operators.r2r.transitive_closure import TransitiveClosure
from cqels_py.operators.r2s.changelog_output import Changelog
from cqels_py.plan import nodes as plan
from cqels_py.plan.nodes import Node
from cqels_py.state.stop import Stop


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

    @property
    def stops(self) -> Iterable[Stop]:
        own = [self.operator.stop] if isinstance(self.operator, LeafJoin | TransitiveClosure) else []
        return own + [each.stop for each in self.evaluators]

    def deltas(self, ticks: Ticks) -> Iterable[Delta]:
        if self.failure is not None:
            raise self.failure
        if self._ticks is ticks:
            return self._next_copy()
        try:
            return self._deltas(ticks)
        except Exception as error:
            self.fail(error)
            raise

    def _deltas(self, ticks: Ticks) -> Iterable[Delta]:
        read = [source.deltas(ticks) for source in self.inputs]
        work, timer = self.work, self._shared_scans.timer
        if timer is not None:
            timer.enter(work)
        first: tuple[Delta, ...] = ()
        rows, rest = 0, iter(self.operator.process(ticks, read))
        for delta in rest:
            if more := len(delta.tick):
                rows += more
                first += (delta,)
                if rows >= BLOCK_ROWS:
                    break
        if timer is not None:
            timer.leave()
        made: Iterable[Delta] = first
        if rows:
            work.rows_out += rows
            # Most steps make few deltas.
            if rows >= BLOCK_ROWS:
                made = self._watched(chain(first, work.counted(rest if timer is None else timer.rest(work, rest))))
        if self.readers == 1:
            return made
        self._ticks, self._unread = ticks, self.readers
        self._made = made if isinstance(made, tuple) else tee(made, 1)[0]
        self._shared_scans.caches.append(self)
        return self._next_copy()

    def _watched(self, made: Iterable[Delta]) -> Iterator[Delta]:
        """The deltas, of which the later ones are made as they are read."""
        try:
            yield from made
        except Exception as error:
            self.fail(error)
            raise

    def _whole(self, made: Iterable[Delta]) -> Iterator[Delta]:
        """A copy of the deltas for one of several readers: it ends with the error that another one has met."""
        yield from made
        self.check_whole()

    def take_made(self, ticks: Ticks, made: Iterable[Delta]) -> None:
        """A program has made the deltas at these ticks, or the first of them."""
        self._ticks, self._unread = ticks, self.readers
        if isinstance(made, tuple):
            self.work.rows_out += sum([len(delta.tick) for delta in made])
        else:
            made = self._watched(self.work.counted(made))
        self._made = made if isinstance(made, tuple) or self.readers == 1 else tee(made, 1)[0]
        self._shared_scans.caches.append(self)

    def _next_copy(self) -> Iterable[Delta]:
        """The deltas for one more reader; the last one frees them as it reads them."""
        made = self._made
        self._unread -= 1
        assert self._unread >= 0, "an operator is read more often than it has readers"
        if isinstance(made, tuple):
            return made
        if not self._unread:
            self._made = ()
            return self._whole(made)
        return self._whole(copy(made))

    def read_instead(self, inputs: Sequence[DeltaSource]) -> None:
        """Read these from now on, which have the same changes."""
        former, self.inputs = self.inputs, tuple(inputs)
        for each in self.inputs:
            each.acquire()
        for each in former:
            each.release()

    def clear(self) -> None:
        """The step has ended."""
        self._ticks, self._made = None, ()

    def _release_inputs(self) -> None:
        for each in self.inputs:
            each.release()


class ChangelogInput(SharedSource):
    """Where the changelog of another dataflow is read.

    `current`: its changes at the current ticks, where these are the ticks of the other dataflow. Otherwise changes wait here until
    the instant of their tick has ended: the last tick at that instant is theirs. `instants` (n), `signs` (n), `columns` (width, n)
    are those that wait, in order.
    """

    STATE = ("instants", "signs", "columns")

    def __init__(self, node: plan.ChangelogRead, shared_scans: SharedScans) -> None:
        super().__init__(shared_scans)
        self.node = node
        self.current = empty(len(node.variables))
        self.instants, self.signs, self.columns = np.empty(0, np.int64), self.current.sign, self.current.columns
        self._ticks: Ticks | None = None
        self._due: tuple[Delta, ...] = ()

    def queue(self, changes: Changelog) -> None:
        """Changes that are read when their instants have ended; instants never fall."""
        delta = changes.delta
        self.instants = np.concatenate([self.instants, changes.ticks.time[delta.tick]])
        self.signs = np.concatenate([self.signs, delta.sign])
        self.columns = np.concatenate([self.columns, delta.columns], axis=1)

    def deltas(self, ticks: Ticks) -> Iterable[Delta]:
        if len(self.current):
            return (self.current,)
        if self._ticks is not ticks and len(self.instants):
            self._ticks, self._due = ticks, self._take_due(ticks)
            self._shared_scans.caches.append(self)
        return self._due

    def _take_due(self, ticks: Ticks) -> tuple[Delta, ...]:
        due = int(np.searchsorted(self.instants, ticks.known_through, side="right"))
        tick = np.searchsorted(ticks.time, self.instants[:due], side="right").astype(np.int32) - np.int32(1)
        found = Delta(tick, self.signs[:due], self.columns[:, :due])
        self.instants, self.signs, self.columns = self.instants[due:], self.signs[due:], self.columns[:, due:]
        return (found,) if due else ()

    def clear(self) -> None:
        """The step has ended."""
        self._ticks, self._due = None, ()


class Constant(SharedSource):
    """Mappings that are there from the first tick on, until they are replaced: static data, inline rows."""

    STATE = ("rows",)

    def __init__(self, node: Node, columns: Ids, shared_scans: SharedScans) -> None:
        super().__init__(shared_scans)
        self.node = node
        self.columns = columns
        self._change: Delta | None = None

    def deltas(self, ticks: Ticks) -> Iterable[Delta]:
        if ticks.first and self.columns.shape[1]:
            return (insertions(self.columns),)
        return () if self._change is None or not len(self._change) else (self._change,)

    @property
    def rows(self) -> Ids:
        """The mappings. In a restored dataflow they are those of the state, or it is not that of the same data: UsageError."""
        return self.columns

    @rows.setter
    def rows(self, rows: Ids) -> None:
        if len(difference(self.columns, rows)):
            raise UsageError("the static data differs from that of the query when its state was taken")

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
        """Add a reader to the source."""
        self.source.acquire()

    def release(self) -> None:
        """Remove a reader from the source."""
        self.source.release()


DataflowNode = OperatorNode | Scan | MatchScan | EventRowsScan | CountedJoinScan | StateScan | ChangelogInput | Constant
DeltaSource = DataflowNode | SharedOutput

_INPUTS = frozenset({"input", "inputs", "left", "right"})


def plan_fingerprint(node: Node) -> tuple[Hashable, ...]:
    """The fingerprint of a node without its inputs: equal nodes with equal inputs deliver the same."""
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
