"""Makes the rows of a program from the sources of a dataflow, and takes what they have made to the calls where a program stops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt

from cqels_py.batches.delta import Delta
from cqels_py.batches.elements import Ids
from cqels_py.dataflow.delta_sources import DataflowNode, DeltaSource, OperatorNode, sources_below, unwrap
from cqels_py.dataflow.router import RoutedBatch
from cqels_py.dataflow.scans import WindowScan
from cqels_py.dataflow.shared_scans import SharedScans
from cqels_py.kernels.compiler.native_call import address_of
from cqels_py.kernels.primitives.state_record import ArrayTable
from cqels_py.kernels.rows import distinct
from cqels_py.kernels.steps import counting, deltas, joins, scan
from cqels_py.kernels.structures import ring_index
from cqels_py.operators.r2r.join import LeafRows, MultiwayJoin
from cqels_py.operators.r2r.rows import Project, UnionAll
from cqels_py.operators.r2r.semi_anti_join import SemiAntiJoin
from cqels_py.operators.r2s.streams import Changes
from cqels_py.operators.s2r.window import SlidingWindow

_MOST_ROWS = 128
"""Of the changes of one source in a step. With more, the calls go on."""


def view_of(array: npt.NDArray[Any]) -> memoryview:
    """The array's memory, whose items are read and written faster one by one."""
    return memoryview(cast(bytearray, array))


class DeltaRecord:
    """Where an entry writes a delta of this width."""

    def __init__(self, width: int) -> None:
        self.width = width
        count = np.zeros(1, np.int64)
        self._count = view_of(count)
        self._tick, self._sign = np.empty(_MOST_ROWS, np.int32), np.empty(_MOST_ROWS, np.int8)
        self._columns = np.empty(width * _MOST_ROWS, np.int64)
        self._table = ArrayTable(self._tick, self._sign, self._columns, count)
        self.address = self._table.address

    def __len__(self) -> int:
        return self._count[0]

    def taken(self, count: int, apart: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int8], Ids]:
        """Ticks, signs and columns (width, n) of the first n = `count` rows, copied. Columns begin so many places `apart`."""
        columns = self._columns[: self.width * apart].reshape(self.width, apart)[:, :count].copy()
        return self._tick[:count].copy(), self._sign[:count].copy(), columns

    def deltas(self) -> tuple[Delta, ...]:
        """The delta as those of a step."""
        count = len(self)
        return (Delta(*self.taken(count, count)),) if count else ()

    def begun(self, count: int) -> Delta:
        """So many rows of one that is not complete."""
        return Delta(*self.taken(count, _MOST_ROWS))


class Part(Protocol):
    """A row of a program, and the source that it stands for."""

    def make_room(self, time: int, triples: int) -> None:
        """Make room in the source's state, as its entry has asked for, in the step of an element of so many triples."""
        ...

    def hand_over(self, routed: RoutedBatch) -> None:
        """The calls go on: give the source the deltas that have been made."""
        ...

    def hand_over_begun(self, routed: RoutedBatch) -> None:
        """The program has stopped here: if the entry has begun, the source goes on with the rest."""
        ...


@dataclass(slots=True)
class ScanPart:
    """A scan over a sliding window."""

    scan: WindowScan
    window: SlidingWindow
    output: DeltaRecord

    def make_room(self, time: int, triples: int) -> None:
        self.window.reserve(np.full(triples, time))

    def hand_over(self, routed: RoutedBatch) -> None:
        made = self.output.deltas()
        self.scan.work.rows_in += sum([int((delta.sign > 0).sum()) for delta in made])
        self.scan.take_made(routed, made)

    def hand_over_begun(self, routed: RoutedBatch) -> None:
        """It is done as a whole, or not at all."""


@dataclass(slots=True)
class OperatorPart:
    """An operator without a state."""

    node: OperatorNode
    output: DeltaRecord

    def make_room(self, time: int, triples: int) -> None:
        raise AssertionError("an operator without a state needs no room")

    def hand_over(self, routed: RoutedBatch) -> None:
        self.node.take_made(routed.step.ticks, self.output.deltas())

    def hand_over_begun(self, routed: RoutedBatch) -> None:
        """It is done as a whole, or not at all."""


class JoinPart:
    """A join, semi-join or anti-join; `arrays`: those of its rows in the order of kernels/steps/joins.py."""

    def __init__(self, node: OperatorNode, operator: MultiwayJoin | SemiAntiJoin, output: DeltaRecord) -> None:
        self._node, self._operator, self._output = node, operator, output
        self._port, self._slot, self._tick, self._placed, loaded = np.empty((5, _MOST_ROWS), np.int32)
        self._sign, self._begun = np.empty(_MOST_ROWS, np.int8), np.zeros(2, np.int64)
        self._starts = np.zeros(operator.state.n + 1, np.int64)
        self.arrays = (
            self._port, self._slot, self._tick, self._sign, self._placed, loaded, self._starts, self._begun,
        )  # fmt: skip

    def make_room(self, time: int, triples: int) -> None:
        self._operator.state.grow(self._begun.item(1))

    def hand_over(self, routed: RoutedBatch) -> None:
        self._node.take_made(routed.step.ticks, self._output.deltas())

    def hand_over_begun(self, routed: RoutedBatch) -> None:
        if not self._begun[0]:
            return
        self._begun[0], count = 0, self._starts.item(-1)
        port, slot, tick, placed = (each[:count].copy() for each in (self._port, self._slot, self._tick, self._placed))
        rows = LeafRows(port, slot, tick, self._sign[:count].copy(), placed)
        made = self._output.begun(self._operator.state.cursor.item(ring_index.OUT))
        self._node.take_made(routed.step.ticks, self._operator.resume(rows, made))


class ProgramBuilder:
    """Adds rows in the order in which they run. `element`: the address of the element's record."""

    def __init__(self, element: int, shared: SharedScans, most_triples: int) -> None:
        self._element, self._shared, self._most = element, shared, most_triples
        self._rows: list[tuple[int, int]] = []
        self._records: list[ArrayTable] = []
        self._made: dict[int, DeltaRecord] = {}
        self._nodes: list[DataflowNode] = []
        self.parts: list[Part] = []
        """Those of `add`, in the order of their rows."""

    def __len__(self) -> int:
        return len(self._rows)

    def add_row(self, entry: Any, links: Sequence[int], *arrays: npt.NDArray[Any]) -> ArrayTable:
        """Add a row of this kernel; returns its record."""
        record = ArrayTable(np.array(links, np.int64), *arrays)
        self._rows.append((address_of(entry), record.address))
        self._records.append(record)
        return record

    def finished(self, status: npt.NDArray[np.int64]) -> Program:
        """The program, which writes `status`."""
        return Program(ArrayTable(np.array(self._rows, np.int64), status), tuple(self._records))

    def add(self, source: DeltaSource) -> DeltaRecord:
        """Add the rows of a source and of those that it reads, each once; returns where its changes are."""
        node = unwrap(source)
        if id(node) not in self._made:
            self._made[id(node)] = self._add(node)
            self._nodes.append(node)
        return self._made[id(node)]

    def add_what_has_entries(self, root: DeltaSource) -> None:
        """Add the sources that a program can do, as far as they read no others."""
        for source in sources_below(root):
            if has_entries(source):
                self.add(source)

    def add_report(self, changes: DeltaRecord, output: Changes) -> DeltaRecord:
        """Add the row that makes results of the answer's changes. Their first column has times."""
        width = len(output.variables)
        results = DeltaRecord(1 + width)
        links = self._element, deltas.CHANGES.address(), self._shared.clock.address, changes.address, width
        scratch = np.empty(distinct.ROOM_A_ROW * _MOST_ROWS + distinct.ROOM, np.int64)
        self.add_row(deltas.report, (*links, *output.asked_signs, results.address), scratch)
        return results

    def add_counts(self) -> RowCounts:
        """Add the row that counts what the sources have made in a complete step: the last one."""
        totals = np.zeros(2 * len(self._nodes), np.int64)
        self.add_row(counting.count, [self._made[id(node)].address for node in self._nodes], totals)
        return RowCounts(tuple(self._nodes), totals)

    def _add(self, node: DataflowNode) -> DeltaRecord:
        if isinstance(node, WindowScan):
            return self._add_scan(node)
        assert isinstance(node, OperatorNode)
        inputs = [self.add(each).address for each in node.inputs]
        output = DeltaRecord(len(node.node.variables))
        match node.operator:
            case MultiwayJoin() as join:
                links = join.asked.address, join.retract, *inputs
                self._add_join(
                    joins.join, joins.STAR.address(), links, JoinPart(node, join, output), join.state.address, output
                )
            case SemiAntiJoin() as negation:
                kernel = joins.COUNTING if negation.counts_right else joins.SEMI
                part, links = JoinPart(node, negation, output), (0, negation.exists, *inputs)
                self._add_join(joins.negate, kernel.address(), links, part, negation.state.address, output)
            case Project() as project:
                self.add_row(deltas.project, (self._element, output.address, *inputs), project.columns)
                self.parts.append(OperatorPart(node, output))
            case UnionAll():
                columns = np.arange(len(node.node.variables))
                self.add_row(deltas.union, (self._element, output.address, *inputs), columns)
                self.parts.append(OperatorPart(node, output))
            case _:
                raise AssertionError(node.node)
        return output

    def _add_join(
        self, entry: Any, kernel: int, links: Sequence[int], part: JoinPart, state: int, output: DeltaRecord
    ) -> None:
        own = self._element, kernel, state, joins.LOADING.address(), output.address, output.width
        self.add_row(entry, (*own, *links), *part.arrays)
        self.parts.append(part)

    def _add_scan(self, each: WindowScan) -> DeltaRecord:
        window, tests, shared, most = each.window, each.tests, self._shared, self._most
        assert isinstance(window, SlidingWindow)
        output = DeltaRecord(len(each.columns))
        links = self._element, scan.SLIDE.address(), window.address, shared.router.table.address, each.pattern
        evaluate = scan.EVALUATION.address() if tests else 0
        rows, points, now, true = np.empty((4, most), np.int64)
        inputs, entering = np.empty(3 * most, np.int64), np.empty(len(each.columns) * most, np.int64)
        arrays = each.columns, rows, inputs, points, now, true, entering, np.empty(0, np.int64)
        conditions = [
            array for condition, places in tests for array in (*condition.program, np.array(places, np.int64))
        ]
        more = len(tests), evaluate, shared.clock.address, output.address
        self.add_row(scan.scan, (*links, *more), *arrays, *conditions)
        self.parts.append(ScanPart(each, window, output))
        return output


@dataclass(frozen=True, slots=True)
class RowCounts:
    """The rows of complete steps of a program, by source: `totals` as kernels/steps/counting.py has them."""

    nodes: tuple[DataflowNode, ...]
    totals: npt.NDArray[np.int64]

    def settle(self) -> None:
        """Give the sources their counts."""
        for node, rows, insertions in zip(
            self.nodes, self.totals[::2].tolist(), self.totals[1::2].tolist(), strict=True
        ):
            node.work.rows_out += rows
            if isinstance(node, WindowScan):
                node.work.rows_in += insertions
        self.totals[:] = 0


NO_COUNTS = RowCounts((), np.empty(0, np.int64))


@dataclass(frozen=True, slots=True)
class Program:
    """`rows`: the record for the driver. `records`: those that its rows name, which live as long as this does."""

    rows: ArrayTable
    records: tuple[ArrayTable, ...]

    @property
    def address(self) -> int:
        """That of the record."""
        return self.rows.address


def has_entries(root: DeltaSource) -> bool:
    """Can a program do the steps of a source and of all that it reads?"""
    return all(_has_entry(source) for source in sources_below(root))


def _has_entry(source: DataflowNode) -> bool:
    if isinstance(source, WindowScan):
        return source.is_plain
    if not isinstance(source, OperatorNode):
        return False
    operator = source.operator
    if isinstance(operator, MultiwayJoin):
        return operator.layout.star
    return isinstance(operator, SemiAntiJoin | Project | UnionAll)
