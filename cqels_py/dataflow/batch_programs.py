"""The operators of a step of some hundred elements as one compiled call for each query.

Elements are matched by calls, once for all queries. The rows of a query's program are its scans and operators, which work on larger
deltas than those of single elements (`shared_program.py`). Scans with conditions or of other windows than sliding ones take the step
in by calls, and operators whose entries have room for few rows are called.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable

import numpy as np

from cqels_py.batches.results import ResultBatch
from cqels_py.dataflow.batch_record import BatchRecord
from cqels_py.dataflow.dataflow import Dataflow
from cqels_py.dataflow.delta_sources import Constant, DataflowNode, DeltaSource, OperatorNode, sources_below
from cqels_py.dataflow.match_scan import MatchScan
from cqels_py.dataflow.program_builder import MEASURES, ProgramBuilder, has_entry
from cqels_py.dataflow.program_parts import DeltaRecord, Part, ScanPart
from cqels_py.dataflow.query_programs import QueryProgram, QueryPrograms
from cqels_py.dataflow.router import RoutedBatch
from cqels_py.dataflow.scans import Scan, WindowScan
from cqels_py.dataflow.shared_scans import SharedScans
from cqels_py.dataflow.step_program import CALLS
from cqels_py.dataflow.work import taken_in
from cqels_py.dictionary import Dictionary
from cqels_py.kernels.primitives.state_record import ArrayTable
from cqels_py.kernels.steps import batch_scan
from cqels_py.kernels.steps.scan import SLIDE
from cqels_py.operators.r2r.aggregate import GroupBy
from cqels_py.operators.r2r.distinct import DistinctRows
from cqels_py.operators.r2r.factorised import FactorisedGroupBy
from cqels_py.operators.r2r.group_by_key import GroupByKey
from cqels_py.operators.r2r.join import MultiwayJoin
from cqels_py.operators.r2r.numbering import NumberRows
from cqels_py.operators.r2r.rows import Extend, Filter, Project, UnionAll
from cqels_py.operators.r2r.semi_anti_join import SemiAntiJoin
from cqels_py.operators.r2r.top import TopRows
from cqels_py.operators.r2r.transitive_closure import TransitiveClosure
from cqels_py.operators.s2r.window import SlidingWindow

MOST_ROWS = 1024
"""Of the changes of one source in a step. Of steps with more the calls are a small part."""
_AS_ROWS = MultiwayJoin | SemiAntiJoin | Project | UnionAll | DistinctRows | Filter | Extend
"""Operators whose entries have room for as many rows as deltas have."""
_CALLED = GroupBy | GroupByKey | FactorisedGroupBy | TopRows | NumberRows | TransitiveClosure
"""Operators that are called. They do nothing where nothing changes."""


class _Builder(ProgramBuilder):
    """Adds rows of operators, and of scans of sliding windows without conditions. Others take the step in by calls."""

    def _has_row(self, node: DataflowNode) -> bool:
        return isinstance(node, OperatorNode) or has_row(node)

    def _add(self, node: DataflowNode) -> DeltaRecord:
        if isinstance(node, WindowScan) and has_row(node):
            return self._add_scan(node)
        if not isinstance(node, OperatorNode):
            return self._place_of(node)
        if isinstance(node.operator, _AS_ROWS) and has_entry(node):
            return self._add_operator(node)
        output = DeltaRecord(len(node.node.variables), self._room)
        self._add_called(node, [self.add(each) for each in node.inputs], output)
        return output

    def _add_scan(self, each: WindowScan) -> DeltaRecord:
        shared, output, window = self._shared, DeltaRecord(len(each.columns), self._room), each.window
        assert isinstance(window, SlidingWindow) and isinstance(self._taken, BatchRecord)
        own = self._element, SLIDE.address(), window.address, shared.router.table.address, each.pattern
        of_window = MEASURES[each.bounds.measure], each.stream, shared.clock.streams
        links = *own, shared.clock.address, output.address, *of_window
        self.add_row(batch_scan.scan_batch, links, each.columns, *self._taken.scratch)
        self._taken.count(each.bounds.measure)
        self.parts.append(_ScanPart(each, window, output, self._taken))
        return output


def has_row(node: DataflowNode) -> bool:
    """Is it a scan that a row does?"""
    return isinstance(node, WindowScan) and node.is_plain and not node.tests and isinstance(node.window, SlidingWindow)


class _ScanPart(ScanPart):
    """A scan of a sliding window. `taken`: the elements of the step."""

    def __init__(self, scan: WindowScan, window: SlidingWindow, output: DeltaRecord, taken: BatchRecord) -> None:
        super().__init__(scan, window, output)
        self._taken = taken

    def make_room(self, time: int, triples: int) -> None:
        assert self.window is not None
        # The entry has written the points of the mappings that arrive.
        count = len(self._taken.routed.matches(self.scan.pattern))
        if count:
            self.window.reserve(self._taken.scratch[1][:count])
        self.window.make_scratch(MOST_ROWS)


class _Place:
    """Where the changes of a scan without a row are, in the step of this `number`."""

    def __init__(self, scan: Scan | MatchScan, record: DeltaRecord) -> None:
        self.scan, self.record = scan, record
        self._number, self._has_room = 0, True

    def take(self, routed: RoutedBatch, number: int) -> bool:
        """Let the scan take in the step, unless that has been done. False: programs have no room for its changes."""
        if self._number != number:
            self._number, self._has_room = number, self._put(routed)
        return self._has_room

    def _put(self, routed: RoutedBatch) -> bool:
        record, scan = self.record, self.scan
        if not taken_in(scan, routed):
            record.count[0] = 0
            return True
        made = scan.deltas(routed.step.ticks)
        # Several chunks stay apart: GROUP BY takes in chunk by chunk.
        if not isinstance(made, tuple) or len(made) != 1 or len(made[0].tick) > MOST_ROWS:
            return False
        record.put(made[0])
        return True


class BatchPrograms(QueryPrograms):
    """The programs of the queries on shared scans. A step: `begin`, for those that are affected in turn `run`, `end`."""

    def __init__(self, shared: SharedScans, dictionary: Dictionary) -> None:
        terms = ArrayTable(np.zeros(3, np.int64), dictionary.table, dictionary.arena, dictionary.meta)
        super().__init__(shared, dictionary, terms)
        self._record = BatchRecord(shared.clock.streams)
        # By the numbers of queries' readers; and by the ids of scans.
        self._places: dict[int, tuple[_Place, ...]] = {}
        self._of_scans: dict[int, _Place] = {}

    def begin(self, routed: RoutedBatch) -> bool:
        """May programs take part in a step? Not in large ones, and those that are measured are done by calls."""
        ticks = routed.step.ticks
        if self._shared.timer is not None or not len(ticks) or not self._record.begin(routed):
            return False
        if not self._shared.clock.tell(ticks):
            return False
        self._begin_step()
        return True

    def run(self, dataflow: Dataflow) -> Iterable[ResultBatch] | None:
        """The results of a query that takes part in the step; None: it is to be processed by calls."""
        program = None if self._by_calls else self._program_of(dataflow)
        if program is None:
            self._go_on_by_calls()
            return None
        record = self._record
        for place in self._places[dataflow.reader.number]:
            if not place.take(record.routed, record.number):
                self._go_on_by_calls()
                return None
        if not self._is_done(program):
            return None
        if program.output is not None:
            made = program.result_batch()
            return () if made is None else (made,)
        if len(program.changes) or dataflow.acts_at_every_tick:
            return dataflow.results_of(record.routed.step.ticks, program.changes.deltas())
        return ()

    def end(self) -> None:
        """The step has ended."""
        self._record.end()

    @property
    def routed(self) -> RoutedBatch:
        return self._record.routed

    def _make_room(self, part: Part) -> None:
        batch = self.routed.batch
        part.make_room(batch.time.item(-1) if len(batch) else 0, len(batch.subject))

    def keep_to(self, readers: Collection[int]) -> None:
        super().keep_to(readers)
        self._places = {number: places for number, places in self._places.items() if number in self._programs}
        self._of_scans = {each: place for each, place in self._of_scans.items() if each in self._known}

    def _program_of(self, dataflow: Dataflow) -> QueryProgram | None:
        number = dataflow.reader.number
        if number not in self._programs:
            if not dataflow.has_ticked:
                return None
            self._programs[number] = self._make(dataflow) if _has_program(dataflow.root) else None
        return self._programs[number]

    def _make(self, dataflow: Dataflow) -> QueryProgram:
        builder = _Builder(
            self._record, self._shared, texts=self._terms_record.address, known=self._known, room=MOST_ROWS
        )
        changes = builder.add(dataflow.root)
        scans = [
            node for node in sources_below(dataflow.root) if isinstance(node, Scan | MatchScan) and not has_row(node)
        ]
        self._places[dataflow.reader.number] = tuple([self._place_of(node) for node in scans])
        return QueryProgram.built(builder, changes, dataflow.changes_output, self._status)

    def _place_of(self, scan: Scan | MatchScan) -> _Place:
        """That which all programs read."""
        record, place = self._known[id(scan)].changes, self._of_scans.get(id(scan))
        if place is None or place.record is not record:
            place = self._of_scans[id(scan)] = _Place(scan, record)
        return place


def _has_program(root: DeltaSource) -> bool:
    """Do rows do all that a query does in a step? All sources do nothing where nothing changes."""
    return all(
        isinstance(node, Scan | MatchScan | Constant)
        or (isinstance(node, OperatorNode) and isinstance(node.operator, _AS_ROWS | _CALLED))
        for node in sources_below(root)
    )


def batch_programs_of(shared: SharedScans, dictionary: Dictionary) -> BatchPrograms | None:
    """The programs of queries on these scans for steps of few elements, made once; None if all are done by calls."""
    if os.environ.get(CALLS) == "calls":
        return None
    if shared.batch_programs is None:
        shared.batch_programs = BatchPrograms(shared, dictionary)
    assert isinstance(shared.batch_programs, BatchPrograms)
    return shared.batch_programs
