"""Makes the rows of a program from the sources of a dataflow, and takes their results to the calls where a program stops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from cqels_py.batches.elements import Ids
from cqels_py.batches.results import ResultBatch
from cqels_py.dataflow.counted_join import CountedJoinScan
from cqels_py.dataflow.delta_sources import Constant, DataflowNode, DeltaSource, OperatorNode, sources_below, unwrap
from cqels_py.dataflow.element_record import MOST_TRIPLES, ElementRecord
from cqels_py.dataflow.event_rows import EventRowsScan
from cqels_py.dataflow.joined_group_part import JoinedGroupPart
from cqels_py.dataflow.match_scan import MatchScan
from cqels_py.dataflow.partitioned_parts import PartitionedPart, keeping_of
from cqels_py.dataflow.program_parts import (
    MOST_ROWS,
    CalledPart,
    CountedPart,
    CurrentElement,
    CurrentTicks,
    DeltaRecord,
    DistinctPart,
    EventRowsPart,
    ExpressionPart,
    GroupPart,
    JoinPart,
    MatchPart,
    OperatorPart,
    Part,
    ScanPart,
    StatePart,
    TopPart,
    WaitPart,
    event_record,
)
from cqels_py.dataflow.running_rules import RunningRules
from cqels_py.dataflow.scans import PartitionedScan, Scan, WindowScan
from cqels_py.dataflow.shared_scans import SharedScans
from cqels_py.dataflow.state_scan import StateScan
from cqels_py.dictionary import Dictionary
from cqels_py.event_time.windows import Measure
from cqels_py.kernels.compiler.native_call import address_of
from cqels_py.kernels.primitives.state_record import ArrayTable
from cqels_py.kernels.rows import distinct
from cqels_py.kernels.steps import by_calls, counting, deltas, groups, joins, matches, once, partitions, scan, top
from cqels_py.kernels.steps import element as element_entries
from cqels_py.kernels.steps import events as event_entries
from cqels_py.kernels.steps import rows as row_entries
from cqels_py.kernels.steps import rules as rule_entries
from cqels_py.kernels.steps.conditions import EVALUATION
from cqels_py.kernels.windows import clock
from cqels_py.operators.r2r.aggregate import NO_HASHED_NUMBERS, OF_FLOATS, TO_ASK_OF, GroupBy
from cqels_py.operators.r2r.distinct import DistinctRows
from cqels_py.operators.r2r.expressions import Evaluator
from cqels_py.operators.r2r.factorised import FactorisedGroupBy
from cqels_py.operators.r2r.group_by_key import GroupByKey
from cqels_py.operators.r2r.join import MultiwayJoin
from cqels_py.operators.r2r.numbering import NumberRows
from cqels_py.operators.r2r.rows import Extend, Filter, Project, UnionAll
from cqels_py.operators.r2r.semi_anti_join import SemiAntiJoin
from cqels_py.operators.r2r.top import TopRows
from cqels_py.operators.r2r.transitive_closure import TransitiveClosure
from cqels_py.operators.r2s.streams import Changes
from cqels_py.operators.s2r.window import SlidingWindow, WaitingWindow

_HAVE_ENTRIES = (
    MultiwayJoin | SemiAntiJoin | Project | UnionAll | DistinctRows | GroupBy | GroupByKey | FactorisedGroupBy | TopRows
)
_SCANS = WindowScan | PartitionedScan | MatchScan | StateScan | EventRowsScan | CountedJoinScan
CountingPart = MatchPart | WaitPart | PartitionedPart | EventRowsPart | CountedPart | RunningRules
"""Parts that count the rows that they take in."""
_NO_TOTALS = np.empty(0, np.int64)
_CALLED = NumberRows | TransitiveClosure
"""Operators that Python calls in the middle of a program. They do nothing where their inputs do not change."""


MEASURES = {
    Measure.TIME: scan.OF_TIME,
    Measure.SESSION: scan.OF_SESSION,
    Measure.ELEMENTS: clock.ELEMENTS,
    Measure.TRIPLES: clock.TRIPLES,
}
"""Those of windows as entries know them."""
ENCODED, TIMED, ROUTED = 1, 2, 3
"""After so many rows the element's terms have ids, the clock has taken it in, and its triples are routed."""


@dataclass(frozen=True, slots=True)
class KnownSource:
    """A source that a program has: its changes, row and part (a constant has none), and the records that belong to them."""

    node: DataflowNode
    changes: DeltaRecord
    row: tuple[int, int] | None
    part: Part | None
    records: tuple[ArrayTable, ...]


KnownSources = dict[int, KnownSource]
"""Sources by their ids."""


class TakenElements(CurrentElement, Protocol):
    """Those that the rows take in, or that scans have taken in. `address`: that of their record."""

    @property
    def address(self) -> int: ...

    @property
    def ticks(self) -> CurrentTicks: ...


class ProgramBuilder:
    """Adds rows in the order in which they run. `taken`: the element that they take in; `texts`: the address of the record that has
    the dictionary's texts. `known`: sources of other programs for the same elements, with which those of this
    one are; the first program of a step runs them. `room`: the most rows of a delta."""

    def __init__(
        self,
        taken: TakenElements,
        shared: SharedScans,
        *,
        texts: int = 0,
        known: KnownSources | None = None,
        room: int = MOST_ROWS,
    ) -> None:
        self._taken, self._element, self._shared = taken, taken.address, shared
        self.texts = texts
        self._known, self._room = known, room
        self._rows: list[tuple[int, int]] = []
        self._records: list[ArrayTable] = []
        self._made: dict[int, DeltaRecord] = {}
        self._nodes: list[DataflowNode] = []
        self.counted: list[DataflowNode] = []
        """The sources that no other program had before."""
        self._rules: tuple[RunningRules, ...] = ()
        self.parts: list[Part] = []
        """Those of `add`, in the order of their rows."""

    def __len__(self) -> int:
        return len(self._rows)

    def add_row(self, entry: Any, links: Sequence[int], *arrays: npt.NDArray[Any]) -> ArrayTable:
        """Add a row of this kernel; returns its record."""
        record = ArrayTable(np.array(links, np.int64), *arrays)
        self._records.append(record)
        row = address_of(entry), record.address
        if self._known is not None:
            around = ArrayTable(np.array([self._element, *row], np.int64), np.full(1, -1, np.int64))
            self._records.append(around)
            row = address_of(once.run_once), around.address
        self._rows.append(row)
        return record

    def add_front(self, terms: Dictionary) -> ArrayTable:
        """Add the rows up to the routing of triples. Returns the record that has the dictionary's arrays."""
        here, shared = self._element, self._shared
        links = here, element_entries.ENCODE.address(), terms.shift
        encode = self.add_row(element_entries.encode, links, terms.table, terms.arena, terms.meta)
        self.texts = encode.address
        telling = here, element_entries.CLOCK.address(), shared.clock.address
        if shared.foreseeing:
            self._add_rules(telling)
        else:
            self.add_row(element_entries.tell_time, telling)
        self.add_row(element_entries.route, (here, element_entries.MATCH.address(), shared.router.table.address))
        return encode

    def _add_rules(self, telling: tuple[int, int, int]) -> None:
        """Add the row that tells the time with the ticks of the query's rules."""
        (rules,) = self._shared.foreseeing
        assert isinstance(rules, RunningRules)
        tests = rules.entry_tests()
        evaluate = EVALUATION.address() if tests else 0
        own = rule_entries.DERIVE.address(), *rules.entry_links, evaluate, rules.type
        self._records += tests
        links = *telling, *own, *(each.address for each in tests)
        self.add_row(rule_entries.tell_time, links, *rules.entry_arrays(self._shared.clock.streams))
        self._rules = (rules,)

    def finished(self, status: npt.NDArray[np.int64]) -> Program:
        """The program, which writes `status`."""
        return self._program(len(self), status)

    def encoding(self, status: npt.NDArray[np.int64]) -> Program:
        """The rows after which the element's terms have ids, as a program."""
        return self._program(ENCODED, status)

    def _program(self, rows: int, status: npt.NDArray[np.int64]) -> Program:
        return Program(ArrayTable(np.array(self._rows[:rows], np.int64), status), tuple(self._records))

    def add(self, source: DeltaSource) -> DeltaRecord:
        """Add the rows of a source and of those that it reads, each once; returns where its changes are."""
        node = unwrap(source)
        if id(node) not in self._made:
            known = None if self._known is None else self._known.get(id(node))
            self._made[id(node)] = self._add_new(node) if known is None else self._add_known(known)
            self._nodes.append(node)
        return self._made[id(node)]

    def _add_new(self, node: DataflowNode) -> DeltaRecord:
        before = len(self._records)
        changes = self._add(node)
        self.counted.append(node)
        if self._known is not None:
            row, part = (self._rows[-1], self.parts[-1]) if self._has_row(node) else (None, None)
            self._known[id(node)] = KnownSource(node, changes, row, part, tuple(self._records[before:]))
        return changes

    def _add_known(self, known: KnownSource) -> DeltaRecord:
        if isinstance(known.node, OperatorNode):
            for each in known.node.inputs:
                self.add(each)
        self._records += known.records
        if known.row is not None and known.part is not None:
            self._rows.append(known.row)
            self.parts.append(known.part)
        return known.changes

    @property
    def sources(self) -> list[DataflowNode]:
        """Those of `parts`."""
        return [node for node in self._nodes if self._has_row(node)]

    def _has_row(self, node: DataflowNode) -> bool:
        """Does a row make its changes?"""
        return not isinstance(node, Constant)

    def add_scans(self, root: DeltaSource) -> None:
        """Add all scans that a source reads."""
        for source in sources_below(root):
            if isinstance(source, _SCANS):
                self.add(source)

    def add_sources_with_entries(self, root: DeltaSource) -> None:
        """Add the sources that a program can do, as far as they read no others."""
        for source in sources_below(root):
            if has_entries(source):
                self.add(source)

    def add_report(self, changes: DeltaRecord, output: Changes) -> DeltaRecord:
        """Add the row that makes results of the answer's changes. Their first column has times."""
        width = len(output.variables)
        results = DeltaRecord(1 + width, self._room)
        links = self._element, deltas.CHANGES.address(), self._shared.clock.address, changes.address, width
        scratch = self._shared.memory.numbers(distinct.ROOM_A_ROW * self._room + distinct.ROOM)
        self.add_row(deltas.report, (*links, *output.asked_signs, results.address), scratch)
        return results

    def add_counts(self) -> RowCounts:
        """Add the row that counts the rows that the sources have made in a complete step: the last one."""
        made_here = [node for node in self.counted if self._has_row(node)]
        totals = np.zeros(2 * len(made_here), np.int64)
        self.add_row(counting.count, [self._made[id(node)].address for node in made_here], totals)
        return RowCounts(tuple(made_here), totals, self.own_counts().counting)

    def own_counts(self) -> RowCounts:
        """The counts of parts that count their input rows for themselves, as these are not the rows that they insert."""
        own = {id(node) for node in self.counted}
        parts = zip(self.sources, self.parts, strict=True)
        return RowCounts(
            (),
            _NO_TOTALS,
            (*self._rules, *(p for node, p in parts if isinstance(p, CountingPart) and id(node) in own)),
        )

    def _add(self, node: DataflowNode) -> DeltaRecord:
        if isinstance(node, WindowScan):
            return self._add_scan(node)
        if isinstance(node, PartitionedScan):
            return self._add_partitioned(node)
        if isinstance(node, MatchScan):
            return self._add_match(node)
        if isinstance(node, StateScan):
            return self._add_state(node)
        if isinstance(node, EventRowsScan):
            return self._add_event_rows(node)
        if isinstance(node, CountedJoinScan):
            return self._add_counted(node)
        if isinstance(node, Constant):
            # It changes between steps only.
            return self._place_of(node)
        assert isinstance(node, OperatorNode)
        return self._add_operator(node)

    def _place_of(self, node: DataflowNode) -> DeltaRecord:
        """Where the changes of a source are that no row makes."""
        place = DeltaRecord(len(node.node.variables), self._room)
        self._records.append(place.table)
        return place

    def _add_operator(self, node: OperatorNode) -> DeltaRecord:
        given = [self.add(each) for each in node.inputs]
        inputs = [each.address for each in given]
        output = DeltaRecord(len(node.node.variables), self._room)
        match node.operator:
            case MultiwayJoin() as join if join.layout.star:
                links = join.asked.address, join.retract, 0, 0, *inputs
                self._add_join(
                    joins.join,
                    joins.STAR.address(),
                    links,
                    JoinPart(node, join, given, output),
                    join.state.address,
                    output,
                )
            case MultiwayJoin() as join:
                blocks = self._shared.memory.blocks(join.state)
                links = join.asked.address, join.retract, blocks.address, join.all_known, *inputs
                part = JoinPart(node, join, given, output, blocks)
                self._add_join(joins.join_blocks, joins.MULTIWAY.address(), links, part, join.state.address, output)
            case SemiAntiJoin() as negation:
                kernel = joins.COUNTING if negation.counts_right else joins.SEMI
                part, links = JoinPart(node, negation, given, output), (0, negation.exists, 0, 0, *inputs)
                self._add_join(joins.negate, kernel.address(), links, part, negation.state.address, output)
            case Project() as project:
                self.add_row(deltas.project, (self._element, output.address, *inputs), project.columns)
                self.parts.append(OperatorPart(node, output))
            case UnionAll():
                columns = np.arange(len(node.node.variables))
                self.add_row(deltas.union, (self._element, output.address, *inputs), columns)
                self.parts.append(OperatorPart(node, output))
            case Filter(condition=Evaluator() as condition, inputs=places):
                filtering = ExpressionPart(node, condition, places, given[0], output, as_test=True)
                self._add_expression(row_entries.filter_rows, filtering, given[0], output)
            case Extend(expression=Evaluator() as expression, inputs=places):
                extending = ExpressionPart(node, expression, places, given[0], output, as_test=False)
                self._add_expression(row_entries.extend_rows, extending, given[0], output)
            case DistinctRows() as distinct:
                own = self._element, row_entries.DISTINCT.address(), distinct.index.address
                links = *own, *inputs, output.width, output.address
                self.add_row(row_entries.distinct, links, self._shared.memory.numbers(self._room))
                self.parts.append(DistinctPart(node, distinct, given[0], output))
            case TopRows() as ordering:
                kept = self._element, top.TAKE.address(), ordering.rows.address
                more = (
                    *inputs,
                    output.width,
                    output.address,
                    ordering.rows.index_address,
                    self.texts,
                    deltas.CHANGES.address(),
                    self._shared.clock.address,
                )
                ordered = TopPart(node, ordering, given[0], output)
                self.add_row(top.top, (*kept, *more), *ordered.arrays)
                self.parts.append(ordered)
            case GroupBy() as grouping:
                self._add_group(node, grouping, given[0], output)
            case GroupByKey() | FactorisedGroupBy() as below_join:
                joined = JoinedGroupPart(node, below_join, given, output, self._taken.ticks, self._shared.memory)
                self.add_row(joined.entry, (self._element, *joined.links(self.texts)), *joined.arrays)
                self.parts.append(joined)
            case _:
                self._add_called(node, given, output)
        return output

    def _add_called(self, node: OperatorNode, given: Sequence[DeltaRecord], output: DeltaRecord) -> None:
        calling = CalledPart(node, given, output, self._taken.ticks)
        inputs = [each.address for each in given]
        self.add_row(by_calls.call, (self._element, output.address, *inputs), calling.called)
        self.parts.append(calling)

    def _add_expression(self, entry: Any, part: ExpressionPart, given: DeltaRecord, output: DeltaRecord) -> None:
        own = self._element, EVALUATION.address(), self._shared.clock.address
        self.add_row(entry, (*own, given.address, given.width, output.address), *part.arrays)
        self.parts.append(part)

    def _add_group(self, node: OperatorNode, grouping: GroupBy, given: DeltaRecord, output: DeltaRecord) -> None:
        kernel = groups.GROUP_TERMS if grouping.keeps_terms else groups.GROUP
        own = self._element, kernel.address(), grouping.address, given.address, given.width, output.address
        tags = groups.TAGS.address(), TO_ASK_OF, OF_FLOATS
        links = *own, output.width, *tags, NO_HASHED_NUMBERS.address, self.texts if grouping.keeps_terms else 0
        part = GroupPart(node, grouping, given, output)
        self.add_row(groups.group, links, *part.arrays)
        self.parts.append(part)

    def _add_join(
        self, entry: Any, kernel: int, links: Sequence[int], part: JoinPart, state: int, output: DeltaRecord
    ) -> None:
        own = self._element, kernel, state, joins.LOADING.address(), output.address, output.width
        self.add_row(entry, (*own, *links), *part.arrays)
        self.parts.append(part)

    def _add_match(self, each: MatchScan) -> DeltaRecord:
        shared, output = self._shared, DeltaRecord(len(each.node.variables))
        part = MatchPart(each, output)
        own = self._element, matches.MATCHING.address(), each.state.address, each.state.program.address
        tables = shared.router.table.address, shared.clock.address, output.address
        options = output.width, each.node.retract, matches.EVENT.address(), EVALUATION.address()
        self._records += part.events
        self.add_row(
            matches.take_in, (*own, *tables, *options, *(event.address for event in part.events)), *part.arrays
        )
        self.parts.append(part)
        return output

    def _add_event_rows(self, each: EventRowsScan) -> DeltaRecord:
        output, event = DeltaRecord(len(each.node.variables)), event_record(each.scan, 0)
        part = EventRowsPart(each, output, np.zeros(1, np.int64))
        self._records.append(event)
        own = 0, 0, *self._event_links(output), event.address, each.waiting.address
        self.add_row(event_entries.deliver, (self._element, *own), part.taken)
        self.parts.append(part)
        return output

    def _event_links(self, output: DeltaRecord) -> tuple[int, ...]:
        tables = self._shared.router.table.address, self._shared.clock.address
        return *tables, output.address, matches.EVENT.address(), EVALUATION.address()

    def _add_counted(self, each: CountedJoinScan) -> DeltaRecord:
        output = DeltaRecord(len(each.node.variables))
        part, state = CountedPart(each, output, self._taken.ticks), each.state
        self._records += [*part.events, *part.sources]
        kernel = event_entries.COUNTING_ROWS.address(), state.address, *self._event_links(output)
        own = state.program_address, event_entries.FINDING_PLACES.address(), len(each.events)
        pairs = zip(part.events, each.waiting, strict=True)
        waiting = [address for event, rows in pairs for address in (event.address, rows.address)]
        sources = [source.address for source in part.sources]
        self.add_row(event_entries.count, (self._element, *kernel, *own, *waiting, *sources), *part.arrays)
        self.parts.append(part)
        return output

    def _add_state(self, each: StateScan) -> DeltaRecord:
        output, rules = DeltaRecord(len(each.node.variables)), each.rules
        kept = rules.told_changes.address, each.later_changes.address
        own = each.predicate, each.node.step or 0, output.address, self._shared.clock.address
        self.add_row(rule_entries.tell_changes, (self._element, 0, *kept, *own))
        self.parts.append(StatePart(each, output))
        return output

    def _scan_links(self, each: Scan, measure: int, output: DeltaRecord) -> tuple[int, ...]:
        """Those of a scan behind those of every entry."""
        shared, tests = self._shared, len(each.tests)
        own = shared.router.table.address, each.pattern, tests, EVALUATION.address() if tests else 0
        return *own, shared.clock.address, output.address, measure, each.stream

    def _add_partitioned(self, each: PartitionedScan) -> DeltaRecord:
        assert isinstance(self._taken, ElementRecord)
        output, keeping = DeltaRecord(len(each.columns)), keeping_of(each.partition, self._taken, self._shared)
        arrays, conditions = _scan_arrays(each, MOST_TRIPLES)
        measure = clock.TRIPLES if each.partition.by_triple else clock.ELEMENTS
        own = self._element, 0, each.window.address, *self._scan_links(each, measure, output)
        self._records.append(keeping.table)
        self.add_row(partitions.take, (*own, keeping.table.address), *arrays, *conditions)
        self.parts.append(PartitionedPart(each, output, keeping, arrays[-1]))
        return output

    def _add_scan(self, each: WindowScan) -> DeltaRecord:
        window, output = each.window, DeltaRecord(len(each.columns))
        arrays, conditions = _scan_arrays(each, MOST_ROWS if isinstance(window, WaitingWindow) else MOST_TRIPLES)
        links = self._scan_links(each, MEASURES[each.bounds.measure], output)
        part: Part
        match window:
            case SlidingWindow():
                entry, state = scan.scan, (scan.SLIDE.address(), window.address)
                part = ScanPart(each, window, output)
            case WaitingWindow():
                state, bounds = (0, window.address), each.bounds
                eager_session = bounds.measure is Measure.SESSION and bounds.eager
                entry = scan.take_session if eager_session else scan.wait
                assert bounds.size is not None
                links = *links, bounds.step or 0, bounds.start, bounds.delay, bounds.size, window.keeps_ids
                window.make_scratch(MOST_ROWS)
                _, _, _, points, *_, entering, asked = arrays
                part = WaitPart(each, window, output, self._taken, points, entering, asked)
            case _:
                entry, state = scan.keep, (0, 0)
                part = ScanPart(each, None, output)
        self.add_row(entry, (self._element, *state, *links), *arrays, *conditions)
        self.parts.append(part)
        return output


@dataclass(frozen=True, slots=True)
class RowCounts:
    """The rows of complete steps of a program, by source: `totals` as kernels/steps/counting.py has them.

    Parts that are `counting` count those that they take in for themselves.
    """

    nodes: tuple[DataflowNode, ...]
    totals: npt.NDArray[np.int64]
    counting: tuple[CountingPart, ...] = ()

    def settle(self) -> None:
        """Give the sources their counts."""
        for node, rows, insertions in zip(
            self.nodes, self.totals[::2].tolist(), self.totals[1::2].tolist(), strict=True
        ):
            node.work.rows_out += rows
            if isinstance(node, WindowScan) and not isinstance(node.window, WaitingWindow):
                node.work.rows_in += insertions
        self.totals[:] = 0
        for part in self.counting:
            part.settle()


def _scan_arrays(each: Scan, entering: int) -> tuple[tuple[Ids, ...], list[npt.NDArray[Any]]]:
    """The arrays of a scan's record, with room for so many entering mappings, and those of its conditions."""
    rows, points, now, true = np.empty((4, MOST_TRIPLES), np.int64)
    inputs, mappings = np.empty(3 * MOST_TRIPLES, np.int64), np.empty(len(each.columns) * entering, np.int64)
    conditions = [
        array for condition, places in each.tests for array in (*condition.program, np.array(places, np.int64))
    ]
    return (each.columns, rows, inputs, points, now, true, mappings, np.zeros(3, np.int64)), conditions


@dataclass(frozen=True, slots=True)
class Program:
    """`rows`: the record for the driver. `records`: those that its rows name, which live as long as this does."""

    rows: ArrayTable
    records: tuple[ArrayTable, ...]

    @property
    def address(self) -> int:
        """That of the record."""
        return self.rows.address


def replace_terms(encode: ArrayTable, terms: Dictionary) -> None:
    """The dictionary has grown, or released terms: it has other arrays."""
    arrays = (
        (element_entries.TABLE, terms.table),
        (element_entries.ARENA, terms.arena),
        (element_entries.META, terms.meta),
    )
    for number, array in arrays:
        encode.replace(number, array, still_read=True)


def result_batch(results: DeltaRecord, changes: DeltaRecord, output: Changes) -> ResultBatch | None:
    """The results that `add_report` has made of the answer's changes; None if there are none."""
    count = results.count[0]
    if not count:
        return None
    tick, sign, made = results.rows(count, changes.count[0])
    made = made.copy()
    # Taken by number: an array that is iterated raises an IndexError at its end, which takes longer than the rest.
    columns = tuple(map(made.__getitem__, results.behind_first))
    # A single row needs no tick to tell it from others.
    return ResultBatch(output.variables, made[0], sign.copy(), columns, None if count == 1 else tick.copy())


def has_entries(root: DeltaSource) -> bool:
    """Can a program do the steps of a source and of all that it reads?"""
    return all(has_entry(source) for source in sources_below(root))


def has_entry(source: DataflowNode) -> bool:
    """Can a row of a program do the steps of a source?"""
    if isinstance(source, _SCANS):
        return source.is_plain
    if isinstance(source, Constant):
        return True
    if not isinstance(source, OperatorNode):
        return False
    operator = source.operator
    if isinstance(operator, Filter | Extend):
        expression = operator.condition if isinstance(operator, Filter) else operator.expression
        return isinstance(expression, Evaluator) and bool((operator.inputs >= 0).all())
    return isinstance(operator, _HAVE_ENTRIES | _CALLED)
