"""What a query's operators are wired of: stages, scans, constants. Queries at one front may read the same ones.

`readers`: how many stages and queries read a source; without any it is given up. The deltas of a stage with several are made
once, and remembered until all of them have read them, at most until the turn ends. `key`: what it does, where others may ask for
the same: what its node says but for its inputs, and which sources these are.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import fields
from itertools import chain, tee

from cqels_py.batches.delta import Delta, empty, enough, insertions
from cqels_py.batches.elements import Ids
from cqels_py.dataflow.front import Front, Turn
from cqels_py.dataflow.scans import PartitionedScanSource, PartitionSource, ScanSource
from cqels_py.dataflow.static_data import difference
from cqels_py.event_time.clock import Ticks
from cqels_py.operators.operator import Operator
from cqels_py.operators.r2r.expressions import Evaluator
from cqels_py.operators.s2r.partition import Kept
from cqels_py.operators.s2r.window import Wakes
from cqels_py.plan import nodes as plan
from cqels_py.plan.nodes import Node


class Stage:
    """An operator and the sources it reads. `evaluators`: of its expressions."""

    def __init__(
        self, node: Node, operator: Operator, inputs: Sequence[Source], evaluators: Sequence[Evaluator], front: Front
    ) -> None:
        self.node = node
        self.operator = operator
        self.inputs = tuple(inputs)
        self.evaluators = tuple(evaluators)
        self.readers = 0
        self.key: Hashable = None
        self._front = front
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
        self._front.remembering.append(self)
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
        """The turn has ended."""
        self._step, self._made = None, ()


class PartitionOutput:
    """What PARTITION BY of one window keeps at the turn at hand."""

    def __init__(self, source: PartitionSource, front: Front) -> None:
        self.source = source
        self.readers = 0
        self.key: Hashable = None
        self._front = front
        self._patterns = [front.ask((pattern, source.stream)) for pattern in source.patterns]
        self._turn: Turn | None = None
        self._kept: Kept | None = None

    def kept(self, turn: Turn) -> Kept:
        if self._turn is not turn or self._kept is None:
            self._turn = turn
            self._kept = self.source.advance(turn, [turn.matches(number) for number in self._patterns])
            self._front.remembering.append(self)
        return self._kept

    def forget(self) -> None:
        """The turn has ended."""
        self._turn = self._kept = None

    def give_up(self) -> None:
        self._front.ask_no_more(self._patterns)


class ScanOutput:
    """A scan, and where its deltas of the turn at hand are read. `partition`: of its window, if that has one."""

    def __init__(
        self,
        node: plan.Scan,
        source: ScanSource | PartitionedScanSource,
        partition: PartitionOutput | None,
        front: Front,
    ) -> None:
        self.node = node
        self.source = source
        self.partition = partition
        self.readers = 0
        self.key: Hashable = None
        self._front = front
        self.stream = source.stream
        self.pattern = front.ask((node.pattern, source.stream))
        self._nothing = empty(len(node.variables))
        self._turn: Turn | None = None
        self._changes = 0
        self._chunks: tuple[Delta, ...] = ()

    @property
    def wakes(self) -> Wakes:
        return self.source.wakes

    def take(self, turn: Turn) -> int:
        """The window moves, if it has not yet. Returns the number of changes."""
        if self._turn is not turn:
            delta = self.source.advance(turn, turn.matches(self.pattern))
            if delta is self._nothing and self._front.alone:
                # Nothing has come or gone, and no other query is going to ask.
                return 0
            self._turn, self._changes = turn, len(delta.tick)
            self._chunks = (delta,) if self._changes else ()
            self._front.remembering.append(self)
        return self._changes

    def deltas(self, ticks: Ticks) -> Iterable[Delta]:
        turn = self._turn
        return self._chunks if turn is not None and turn.step.ticks is ticks else ()

    def forget(self) -> None:
        """The turn has ended."""
        self._turn, self._chunks = None, ()

    def give_up(self) -> None:
        self._front.ask_no_more([self.pattern])


class Inbox:
    """Where the deltas that another stage has delivered are read."""

    def __init__(self, node: plan.Received) -> None:
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

    def __init__(self, node: plan.Shared, source: Source) -> None:
        self.node = node
        self.source = source

    def deltas(self, ticks: Ticks) -> Iterable[Delta]:
        return self.source.deltas(ticks)


Source = Stage | ScanOutput | Inbox | Constant | SharedOutput


_INPUTS = frozenset({"input", "inputs", "left", "right"})


def says(node: Node) -> tuple[Hashable, ...]:
    """What a node says but for the nodes it reads."""
    return (type(node), *(getattr(node, each.name) for each in fields(node) if each.name not in _INPUTS))


def itself(source: Source) -> Stage | ScanOutput | Inbox | Constant:
    """What a plan's shared output stands for."""
    while isinstance(source, SharedOutput):
        source = source.source
    return source


def sources_below(root: Source) -> Iterator[Stage | ScanOutput | Inbox | Constant]:
    """All that a source depends on, and it itself, each once."""
    told: set[int] = set()
    waiting: list[Source] = [root]
    while waiting:
        source = itself(waiting.pop())
        if id(source) not in told:
            told.add(id(source))
            yield source
            if isinstance(source, Stage):
                waiting.extend(reversed(source.inputs))
