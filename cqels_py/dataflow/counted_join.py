"""A counted join: the rows of its events, an instant at a time, and the results that its counters make of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import numpy as np
import numpy.typing as npt

from cqels_py.batches.delta import BLOCK_ROWS, Delta
from cqels_py.batches.elements import Ids
from cqels_py.dataflow.counted_program import counted_program
from cqels_py.dataflow.event_rows import ticks_of
from cqels_py.dataflow.match_scan import EventEvaluators, EventScan
from cqels_py.dataflow.ownership import Condition
from cqels_py.dataflow.places import places_of
from cqels_py.dataflow.relations import RelationIndex
from cqels_py.dataflow.router import RoutedBatch
from cqels_py.dataflow.shared_scans import SharedScans, SharedSource
from cqels_py.dictionary import Dictionary
from cqels_py.event_time.clock import Ticks
from cqels_py.kernels.joins import counted as kernel
from cqels_py.kernels.primitives.state_record import ArrayTable
from cqels_py.kernels.values.places import NO_NUMBER
from cqels_py.operators.r2r.expressions import Evaluator
from cqels_py.operators.s2r.window import Timer
from cqels_py.plan.nodes import CountedJoin, CountedSource
from cqels_py.state.counted_state import CountedState
from cqels_py.state.open_instant import OpenInstant
from cqels_py.state.stop import Stop
from cqels_py.terms.layout import TAG_DECIMAL, TAG_INTEGER, TAG_SHIFT, VALUE_BITS, XSD

Int64 = npt.NDArray[np.int64]
Columns = dict[str, Int64]


class StaticRelation:
    """The solutions of a static pattern: `columns` by variable."""

    def __init__(self, variables: Sequence[str], columns: Ids) -> None:
        self.columns: Columns = dict(zip(variables, columns, strict=True))
        self.rows = columns.shape[1]
        self._indexes: dict[tuple[str, ...], RelationIndex] = {}

    def by(self, names: tuple[str, ...]) -> RelationIndex:
        """Its rows by these variables."""
        if names not in self._indexes:
            self._indexes[names] = RelationIndex([self.columns[name] for name in names], self.rows)
        return self._indexes[names]


class SourceRows:
    """Makes the rows of a source, as the kernel reads them, of those of its events."""

    def __init__(
        self,
        number: int,
        source: CountedSource,
        statics: Sequence[StaticRelation],
        conditions: Sequence[Evaluator],
        dictionary: Dictionary,
    ) -> None:
        self._number = number
        self._source = source
        self.is_plain = len(source.events) == 1 and not (source.joined or source.found)
        """Are its rows those of one event?"""
        self.events = len(source.events)
        self._statics = statics
        self._conditions = tuple(conditions)
        self._dictionary = dictionary

    def record(self) -> ArrayTable:
        """That of the source as kernels/steps/events.py has it."""
        source, names = self._source, list(self._source.events[0].variables) if self.is_plain else []
        of_source = [self._number, self.events, not self.is_plain, len(self._conditions)]
        ranges = {name: number for number, (name, _, _) in enumerate(source.ranges)}
        least, most = np.iinfo(np.int64).min, np.iinfo(np.int64).max
        columns, limits, conditions = [], [], list[Int64]()
        if self.is_plain:
            columns = [(names.index(c.variable), -1 if c.exact else ranges[c.variable]) for c in source.columns]
            limits = [
                (names.index(name), least if low is None else low, most if high is None else high)
                for name, low, high in source.ranges
            ]
            for program, condition in zip(source.conditions, self._conditions, strict=True):
                conditions += [*condition.program, np.array([names.index(name) for name in program.inputs], np.int64)]
        inputs = max((len(program.inputs) for program in source.conditions), default=0)
        return ArrayTable(
            np.array(of_source, np.int64), _rows_of(columns, 2), _rows_of(limits, 3), np.empty(len(ranges), np.int64),
            np.empty(inputs, np.int64), np.empty(1, np.int64), np.empty(1, np.int64), *conditions,
        )  # fmt: skip

    def rows(self, events: Sequence[tuple[Int64, Int64]]) -> Int64:
        """The rows of instants that have ended. `events`: of each the times (n) and values (variables, n)."""
        times, columns = self._joined(events)
        for number in self._source.joined:
            times, columns = _with_partners(times, columns, self._statics[number])
        kept = np.ones(len(times), np.bool_)
        for number in self._source.found:
            relation = self._statics[number]
            names = tuple(sorted(set(columns) & set(relation.columns)))
            kept &= relation.by(names).has_partner([columns[name] for name in names], len(times))
        for program, condition in zip(self._source.conditions, self._conditions, strict=True):
            if len(times):
                kept &= condition.test([columns[name] for name in program.inputs], times)
        places: Columns = {}
        for name, low, high in self._source.ranges:
            place = places[name] = places_of(columns[name], self._dictionary)
            kept &= place != NO_NUMBER
            kept &= True if low is None else place >= low
            kept &= True if high is None else place <= high
        return self._laid_out(times, columns, places, np.flatnonzero(kept))

    def _joined(self, events: Sequence[tuple[Int64, Int64]]) -> tuple[Int64, Columns]:
        """The events of the same instant, joined by their common variables."""
        times, values = events[0]
        columns: Columns = dict(zip(self._source.events[0].variables, values, strict=True))
        for event, (others, more) in zip(self._source.events[1:], events[1:], strict=True):
            theirs = dict(zip(event.variables, more, strict=True))
            names = tuple(name for name in theirs if name in columns)
            index = RelationIndex([others, *(theirs[name] for name in names)], len(others))
            mine, partner = index.partners([times, *(columns[name] for name in names)], len(times))
            added = {name: column[partner] for name, column in theirs.items() if name not in columns}
            times, columns = times[mine], {name: column[mine] for name, column in columns.items()} | added
        return times, columns

    def _laid_out(self, times: Int64, columns: Columns, places: Columns, kept: Int64) -> Int64:
        rows = np.empty((len(kept), kernel.ROW_VALUES + len(self._source.columns)), np.int64)
        rows[:, kernel.SOURCE], rows[:, kernel.TIME] = self._number, times[kept]
        for c, column in enumerate(self._source.columns):
            rows[:, kernel.ROW_VALUES + c] = (columns if column.exact else places)[column.variable][kept]
        return rows


def _rows_of(rows: Sequence[tuple[int, ...]], width: int) -> Int64:
    return np.array(rows, np.int64).reshape(len(rows), width)


def _with_partners(times: Int64, columns: Columns, relation: StaticRelation) -> tuple[Int64, Columns]:
    names = tuple(sorted(set(columns) & set(relation.columns)))
    mine, partner = relation.by(names).partners([columns[name] for name in names], len(times))
    added = {name: column[partner] for name, column in relation.columns.items() if name not in columns}
    return times[mine], {name: column[mine] for name, column in columns.items()} | added


class CountedJoinScan(SharedSource):
    """The results of a counted join. Its rows are made once a step, and the results that they stand for as they are read."""

    STATE = ("_open", "_state")

    def __init__(
        self,
        node: CountedJoin,
        streams: Sequence[int],
        evaluators: Sequence[EventEvaluators],
        conditions: Sequence[Sequence[Evaluator]],
        statics: Sequence[StaticRelation],
        dictionary: Dictionary,
        shared_scans: SharedScans,
    ) -> None:
        super().__init__(shared_scans)
        self.node = node
        self.stream = streams[0]
        self.conditions = (
            *(each for event in evaluators for each in event.all),
            *(each for source in conditions for each in source),
        )
        self._statics = tuple(statics)
        self._dictionary = dictionary
        self._width = max(len(source.columns) for source in node.sources)
        program = counted_program(node)
        self.state = CountedState(
            program.arrays,
            width=program.width,
            indexes=program.indexes,
            outputs=len(node.output),
            once=node.once,
            ids=program.ids,
        )
        self.sources = [
            SourceRows(number, source, statics, each, dictionary)
            for number, (source, each) in enumerate(zip(node.sources, conditions, strict=True))
        ]
        self.waiting = [OpenInstant(len(event.variables)) for event in node.events]
        self._routed: RoutedBatch | None = None
        self._made = np.empty((0, kernel.OUT_VALUES + len(node.output)), np.int64)
        self._results = 0
        # Those of a program.
        self._chunks: tuple[Delta, ...] = ()
        router = shared_scans.router
        self._patterns: list[int] = []
        self.events: list[EventScan] = []
        for event, stream, evaluator in zip(node.events, streams, evaluators, strict=True):
            numbers = [router.add((pattern, stream)) for pattern in event.patterns]
            self._patterns += numbers
            self.events.append(EventScan(event, stream, numbers, evaluator))
        self.patterns = (*self._patterns,)

    @property
    def stops(self) -> tuple[Stop, ...]:
        return (*[each.stop for each in self.events], *[each.stop for each in self.conditions])

    @property
    def next_timer(self) -> Timer:
        """It takes part in every step: an instant may end at each of them."""
        return None

    @property
    def _open(self) -> list[OpenInstant]:
        """As saved states name it."""
        return self.waiting

    @property
    def _state(self) -> CountedState:
        """As saved states name it."""
        return self.state

    @property
    def counters(self) -> int:
        """The number of counters."""
        return self.state.counters

    def take(self, routed: RoutedBatch) -> int:
        """Take in a step, unless another reader has caused that already. Returns the number of results."""
        if self._routed is not routed:
            self._take_in(routed)
            self.take_counted(routed, self.count_ended(routed.step.ticks.known_through))
        return self._results

    def take_counted(self, routed: RoutedBatch, made: Int64) -> None:
        """The step has been taken in, and the counters have made these rows of output."""
        self._made, self._routed = made, routed
        self._results = self.results_of(made)
        self.work.rows_out += self._results
        self._shared_scans.caches.append(self)

    def take_made(self, routed: RoutedBatch, chunks: tuple[Delta, ...]) -> None:
        """The step has been taken in, with these results."""
        self._routed, self._chunks = routed, chunks
        self._results = sum(len(delta.tick) for delta in chunks)
        self.work.rows_out += self._results
        self._shared_scans.caches.append(self)

    @property
    def is_plain(self) -> bool:
        """Are the rows of all events those of their patterns, all of them?"""
        return all(event.is_plain for event in self.events)

    @property
    def width(self) -> int:
        """Values of a source's row, at most."""
        return self._width

    def results_of(self, made: Int64) -> int:
        """The number of results that rows of output stand for."""
        return int(len(made) and self._counts(made).sum())

    def _counts(self, made: Int64) -> Int64:
        """How often each row comes."""
        counts = made[:, kernel.OUT_COUNT]
        if self.node.once:
            return np.ones(len(counts), np.int64)
        return np.where(self._have_weights(made), 1, counts) if self.node.weight else counts

    def _have_weights(self, made: Int64) -> npt.NDArray[np.bool_]:
        """Does a row come once, with its weight?"""
        found = np.ones(len(made), np.bool_)
        for name in self.node.summed:
            tag = (made[:, kernel.OUT_VALUES + self.node.output.index(name)] >> TAG_SHIFT) & 15
            found &= (tag == TAG_INTEGER) | (tag == TAG_DECIMAL)
        return found

    def _weights(self, made: Int64) -> Int64:
        """The weights of the rows, as terms."""
        counts = np.where(self._have_weights(made), made[:, kernel.OUT_COUNT], 1)
        found = (np.int64(TAG_INTEGER) << np.int64(TAG_SHIFT)) | counts
        for row in np.flatnonzero(counts >= 1 << (VALUE_BITS - 1)).tolist():
            found[row] = self._dictionary.encode_one(f'"{counts[row]}"^^<{XSD}integer>')
        return found

    def _take_in(self, routed: RoutedBatch) -> None:
        """The rows of the elements wait until their instants have ended."""
        if len(routed.batch):
            for scan, waiting in zip(self.events, self.waiting, strict=True):
                if scan.may_match(routed):
                    element, values = scan.rows(routed)
                    self.work.rows_in += len(element)
                    waiting.add(routed.batch.time[element], values)

    def count_ended(self, through: int) -> Int64:
        """Count the rows of instants that have ended; returns the rows of output that they make."""
        found = []
        opened = iter(self.waiting)
        for source in self.sources:
            events = [waiting.take_through(through) for waiting in islice(opened, source.events)]
            if all(len(times) for times, _ in events):
                found.append(source.rows(events))
        return self.state.take(self._in_order(found))

    def _in_order(self, found: Sequence[Int64]) -> Int64:
        """The rows of all sources: by time, and of an instant later sources first."""
        rows = np.zeros((sum(map(len, found)), kernel.ROW_VALUES + self._width), np.int64)
        at = 0
        for each in found:
            rows[at : at + len(each), : each.shape[1]] = each
            at += len(each)
        # Sources have been taken in their order, and the sort is stable.
        return rows if len(found) < 2 else np.ascontiguousarray(rows[np.argsort(rows[:, kernel.TIME], kind="stable")])

    def deltas(self, ticks: Ticks) -> Iterable[Delta]:
        routed = self._routed
        if routed is None or routed.step.ticks is not ticks or not self._results:
            return ()
        if self._chunks:
            return self._chunks
        return (
            tuple(self.blocks(ticks, self._made)) if self._results <= BLOCK_ROWS else _Results(self, ticks, self._made)
        )

    def blocks(self, ticks: Ticks, made: Int64) -> Iterator[Delta]:
        """The results that rows of output stand for in blocks: each row as often as it counts."""
        left = self._counts(made).copy()
        tick = ticks_of(ticks, np.ascontiguousarray(made[:, kernel.OUT_TIME]))
        columns = made[:, kernel.OUT_VALUES :].T
        if self.node.weight:
            columns = np.vstack([columns, self._weights(made)])
        first = 0
        while first < len(made):
            ends = np.minimum(np.cumsum(np.minimum(left[first : first + BLOCK_ROWS], BLOCK_ROWS)), 2 * BLOCK_ROWS)
            last = first + max(1, int(np.searchsorted(ends, BLOCK_ROWS, side="right")))
            times = np.minimum(left[first:last], BLOCK_ROWS)
            chosen = np.repeat(np.arange(first, last), times)
            left[first:last] -= times
            yield Delta(tick[chosen], np.ones(len(chosen), np.int8), columns[:, chosen])
            first = last if not left[last - 1] else last - 1

    def clear(self) -> None:
        """The step has ended."""
        self._routed, self._made, self._results, self._chunks = None, self._made[:0], 0, ()

    def keep_to(self, cell: Sequence[Condition]) -> None:
        """Take in only rows that belong to this part of a divided state."""
        for scan in self.events:
            scan.keep_to(cell)

    def live_ids(self) -> Iterator[Ids]:
        """Ids of counters, of waiting rows, of static relations, and in expressions."""
        yield self.state.live_ids()
        for waiting in self.waiting:
            yield waiting.live_ids()
        for relation in self._statics:
            yield from relation.columns.values()
        for condition in self.conditions:
            yield from condition.live_ids()

    @property
    def nbytes(self) -> int:
        return self.state.nbytes + sum(waiting.nbytes for waiting in self.waiting)

    def _release_inputs(self) -> None:
        for number in self._patterns:
            self._shared_scans.router.remove(number)


class _Results:
    """The results of a step, which are made anew for each reader."""

    def __init__(self, scan: CountedJoinScan, ticks: Ticks, made: Int64) -> None:
        self._scan, self._ticks, self._made = scan, ticks, made

    def __iter__(self) -> Iterator[Delta]:
        return self._scan.blocks(self._ticks, self._made)
