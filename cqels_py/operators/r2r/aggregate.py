"""GROUP BY with aggregates (Algorithm 6)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from cqels_py.batches.delta import Delta, SignColumn, TickColumn, first_rows
from cqels_py.batches.elements import Ids
from cqels_py.errors import RunError
from cqels_py.event_time.clock import Ticks
from cqels_py.kernels.aggregates import accumulators as kernel
from cqels_py.kernels.aggregates import group_by as grouping
from cqels_py.kernels.aggregates import group_records as record
from cqels_py.kernels.aggregates.exact_float_sums import REAL_WORDS
from cqels_py.kernels.aggregates.factorised_records import ROW_PORT, ROW_SIGN, ROW_TICK
from cqels_py.kernels.aggregates.updates import FIRST, OF_INPUT, SEEN
from cqels_py.kernels.primitives.dtypes import INT8, INT32, INT64
from cqels_py.kernels.primitives.state_record import StateArray, StateRecord
from cqels_py.state.arrays import SHRINK_FROM, longer_aligned, new_numbers, rows_of
from cqels_py.state.key_table import KeyTable
from cqels_py.state.term_runs import Form, RunsOf, TermRuns
from cqels_py.terms.layout import (
    TAG_BLANK,
    TAG_BOOLEAN,
    TAG_DATE,
    TAG_DATETIME,
    TAG_DATETIME_MICROS,
    TAG_FLOAT,
    TAG_IRI,
    TAG_LITERAL,
    TAG_OVERFLOW,
    TAG_QUOTIENT,
    TAG_SHIFT,
)

FUNCTIONS = {
    "COUNT(*)": kernel.COUNT_ALL,
    "COUNT": kernel.COUNT,
    "SUM": kernel.SUM,
    "AVG": kernel.AVG,
    "MIN": kernel.MIN,
    "SAMPLE": kernel.MIN,
    "MAX": kernel.MAX,
    "GROUP_CONCAT": kernel.CONCAT,
}

_WORDS = {
    kernel.COUNT_ALL: kernel.COUNT_WORDS,
    kernel.COUNT: kernel.COUNT_WORDS,
    kernel.SUM: kernel.SUM_WORDS,
    kernel.AVG: kernel.SUM_WORDS,
    kernel.MIN: kernel.EXTREME_WORDS,
    kernel.MAX: kernel.EXTREME_WORDS,
    kernel.CONCAT: kernel.CONCAT_WORDS,
}


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate: a name of FUNCTIONS, the column of its argument (None for COUNT(*)), and DISTINCT.

    `separator`: the text between the values of GROUP_CONCAT. SAMPLE is the first value in term order.
    """

    function: str
    argument: int | None
    distinct: bool = False
    separator: str = " "


class HashedNumbers(StateRecord):
    """Hashed literals (n of them) as numbers, according to the dictionary.

    `ids` (n): an inline id of the same value and type, or 0. Where that is 0: `kind` (n), one of the ODD_* of
    accumulators.py, `words` (n, 3): hi, lo and scale of a large exact number, or of a duration's months or seconds,
    `real` (n): the value of a float or double. `reals`: there are floats among the arguments, or doubles without an
    inline form, which are summed separately.
    """

    kind = StateArray[np.int64](record.HASHED_KIND)
    words = StateArray[np.int64](record.HASHED_WORDS)
    real = StateArray[np.float64](record.HASHED_REAL)

    def __init__(self, count: int, *, reals: bool = False) -> None:
        self.ids = np.zeros(count, np.int64)
        self.kind, self.words = np.zeros(count, np.int64), np.zeros((count, 3), np.int64)
        self.real = np.zeros(count, np.float64)
        self.reals = reals


@dataclass(frozen=True, slots=True)
class OfInputs:
    """For a GroupBy over the rows of several inputs, whose join by its keys is never made: the number of inputs.

    And by aggregate: the input of its argument, and whether that input is FIFO.
    """

    inputs: int
    ports: Sequence[int]
    expires_fifo: Sequence[bool]


class TermValues(Protocol):
    """The interface of the dictionary for aggregates."""

    def numbers(self, ids: Ids) -> HashedNumbers:
        """The values of hashed literals; each is looked up once per chunk."""
        ...

    def no_numbers(self, ids: Ids) -> None:
        """Report terms that were given to SUM or AVG and cannot be added; one that was given several times is repeated."""
        ...

    def computed(self, deferred: npt.NDArray[np.int64], real: npt.NDArray[np.float64]) -> Ids:
        """Ids of computed numbers without an inline form: (tag, hi, lo, scale), and `real` for floats or as a divisor.

        For durations the tag is one of LATE_*; 0 where no literal holds the duration.
        """
        ...

    def joined(self, values: Ids, start: Ids, length: Ids, separators: Sequence[str]) -> Ids:
        """Ids of joined texts. For each its values, start to start + length in `values`, as strings with its separator
        between them.

        0 where a value is a blank node, which has no string.
        """
        ...

    def texts(self) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
        """The arrays in which kernels find the texts of hashed terms."""
        ...


_EXTREMES = ("MIN", "MAX", "SAMPLE")
_SUMS = (kernel.SUM, kernel.AVG)
_WITHOUT_NUMBER = (TAG_LITERAL, TAG_OVERFLOW, TAG_QUOTIENT)
"""Terms whose numbers SUM and AVG ask the dictionary for."""
_NO_NUMBERS = (TAG_IRI, TAG_BLANK, TAG_BOOLEAN, TAG_DATETIME, TAG_DATETIME_MICROS, TAG_DATE)
TO_ASK_OF = sum(1 << tag for tag in (*_WITHOUT_NUMBER, *_NO_NUMBERS))
OF_FLOATS = 1 << TAG_FLOAT
"""Bits of tags: of arguments that the dictionary must be asked about, and of floats."""
_WITHOUT_TERMS = (kernel.COUNT_ALL, kernel.COUNT, *_SUMS)
_LINE = 8
_CHUNK = 1000
"""Rows that pass through the kernels together, if no tick has more: few enough for intermediate results to stay in the
cache."""
_SMALLEST_CHUNK, _FEW = 16, 65
_MOST_NOTES = 8 * _CHUNK
_SMALLEST_QUEUE = 64
_GROUP_OF_VALUE = 1
"""The column of a group's number among those of a term that counts once (`only_new` of kernels/aggregates/updates.py)."""
NO_HASHED_NUMBERS, JUST_FLOATS = HashedNumbers(0), HashedNumbers(0, reals=True)
_NO_WIDE = np.zeros(0, np.int64), np.zeros(0, np.uint32)


class GroupBy(StateRecord):
    """Groups mappings by `keys` (columns) and keeps the aggregates of each group; the result's columns are keys,
    aggregates.

    Without keys there is one group, and it is there from the first tick on, whatever the input. `expires_fifo`: mappings
    are retracted in FIFO order, as from a window, so that MIN and MAX need no bags. `of_inputs`: rows are those of a
    join's inputs (see kernels/aggregates/group_by.py), whose aggregates are without DISTINCT.
    """

    _settings = StateArray[np.int64](record.SETTINGS)
    _records = StateArray[np.int64](record.RECORDS)
    _of_aggregates = StateArray[np.int64](record.OF_AGGREGATES)
    _cursor = StateArray[np.int64](record.CURSOR)
    _queue = StateArray[np.int32](record.QUEUE)
    _rows = StateArray[np.int64](record.ROWS)
    _notes = StateArray[np.int64](record.NOTES)
    _results = StateArray[np.int64](record.RESULTS)
    _scratch = StateArray[np.int64](record.SCRATCH)
    _words = StateArray[np.int64](record.WORDS)
    _apart = StateArray[np.uint32](record.APART)
    _deferred = StateArray[np.int64](record.DEFERRED_ROWS)
    _deferred_real = StateArray[np.float64](record.DEFERRED_REAL)
    _joined = StateArray[np.int64](record.JOINED_VALUES)
    _port_counts = StateArray[np.int64](record.PORT_COUNTS)
    _weighted = StateArray[np.int64](record.WEIGHTED)
    _weighted_apart = StateArray[np.uint32](record.WEIGHTED_APART)

    STATE = (
        *("index", "_words", "_apart", "_reals_by_group", "_terms"),
        *("_distinct_values", "_port_counts", "_queue", "_cursor"),
    )

    def __init__(
        self,
        keys: Sequence[int],
        aggregates: Sequence[Aggregate],
        values: TermValues,
        *,
        expires_fifo: bool = False,
        of_inputs: OfInputs | None = None,
    ) -> None:
        self.keys = np.array(keys, np.int64)
        self._keys_first = list(keys) == list(range(len(keys)))
        self._aggregates = tuple(aggregates)
        self.width = len(keys) + len(aggregates)
        self.values = values
        self.index = KeyTable(len(keys))
        self._functions = np.array([FUNCTIONS[a.function] for a in aggregates], np.int64)
        self._arguments = np.array([a.argument or 0 for a in aggregates], np.int64)
        # DISTINCT makes no difference to an extreme.
        distinct = [a.distinct and a.function not in _EXTREMES for a in aggregates]
        places, self._group_words = _lay_out(self._functions.tolist())
        n = len(aggregates)
        of_one = OfInputs(1, [0] * n, [expires_fifo] * n)
        self._inputs, ports, each_expires_fifo = astuple(of_inputs or of_one)
        self._of_aggregates = np.array(
            [self._functions, self._arguments, places, distinct, ports, each_expires_fifo], np.int64
        )
        self._sums = int(np.isin(self._functions, _SUMS).sum())
        self._settings = np.array([len(keys), expires_fifo, self._group_words, self._sums], np.int64)
        self._joins = of_inputs is not None
        self._port_counts = np.zeros(0, np.int64)
        self._weighted, self._weighted_apart = np.zeros(kernel.SUM_WORDS, np.int64), np.zeros(REAL_WORDS, np.uint32)
        self._distinct_values = KeyTable(3)
        self._scratch = np.zeros((3, 1), np.int64)
        keep_terms = np.flatnonzero(~np.isin(self._functions, _WITHOUT_TERMS)).tolist()
        self._terms = TermRuns()
        self._kept_terms = [
            (_form_of(self._functions[a], expires_fifo=each_expires_fifo[a]), places[a]) for a in keep_terms
        ]
        self._words = np.zeros(0, np.int64)
        self._apart = np.zeros(0, np.uint32)
        self._reals_by_group = 0
        self._queue = np.zeros(_SMALLEST_QUEUE if expires_fifo else 1, np.int32)
        self._cursor = np.zeros(grouping.FIELDS, np.int64)
        # The stamp of a group without a note is 0.
        self._cursor[SEEN] = 1
        self._make_deferred(_FEW)
        self.make_notes(_SMALLEST_CHUNK)
        self._grow_groups()
        self._derive()

    def _derive(self) -> None:
        """Set the array of addresses, which depend on where the other records are."""
        self._of_run = self._cursor[:SEEN]
        self._records = np.array([self.index.address, self._distinct_values.address, self._terms.address], np.int64)

    @property
    def keeps_terms(self) -> bool:
        """Are there aggregates for which kernels need the dictionary's texts?"""
        return bool(self._kept_terms)

    def _grow_groups(self) -> None:
        """Enlarge the arrays by group to the index's capacity."""
        groups = self.index.capacity
        self._words = longer_aligned(self._words, groups * self._group_words, np.int64)
        more_reals = groups * self._reals_by_group - len(self._apart)
        self._apart = np.concatenate([self._apart, np.zeros(more_reals, np.uint32)])
        if self._joins:
            more = groups * self._inputs - len(self._port_counts)
            self._port_counts = np.concatenate([self._port_counts, np.zeros(more, np.int64)])

    def keep_reals(self) -> None:
        """Prepare for numbers that are summed separately."""
        if self._reals_by_group == 0:
            self._reals_by_group = self._sums * REAL_WORDS
            self._grow_groups()

    def make_notes(self, rows: int) -> None:
        """Make room for chunks of `rows` rows."""
        fields = OF_INPUT.item() + (self._inputs if self._joins else 0)
        self._noted, self._rows, self._notes = rows, np.zeros((4, rows), np.int64), np.zeros((fields, rows), np.int64)
        values = len(self._aggregates) * rows
        self._results = np.zeros((4, values), np.int64)

    def _lay_out_queue(self, size: int) -> None:
        """Room for so many mappings of FIFO input, a power of two."""
        there, mask = self._in_queue(), len(self._queue) - 1
        queue = np.zeros(size, np.int32)
        queue[there & (size - 1)] = self._queue[there & mask]
        self._queue = queue

    def _in_queue(self) -> npt.NDArray[np.int64]:
        """The numbers of the mappings that are in the queue."""
        return np.arange(*self._cursor[[grouping.HEAD, grouping.TAIL]].tolist())

    def shrink(self) -> None:
        """Give back room, between two steps, after groups or mappings have become much fewer."""
        before, kept = self.index.capacity, self.index.compact()
        if kept is not None:
            self._keep_groups(kept, before)
        self._terms.shrink(self._runs(), groups_moved=kept is not None)
        self._distinct_values.compact()
        size = max(_SMALLEST_QUEUE, 1 << len(self._in_queue()).bit_length())
        if SHRINK_FROM * size <= len(self._queue):
            self._lay_out_queue(size)

    def _keep_groups(self, kept: npt.NDArray[np.int64], before: int) -> None:
        """Keep what belongs to these of `before` groups, and number them anew."""
        groups, numbers = self.index.capacity, new_numbers(kept, before)
        self._words = rows_of(self._words, kept, before, groups)
        self._apart = rows_of(self._apart, kept, before, groups)
        self._port_counts = rows_of(self._port_counts, kept, before, groups)
        there = self._in_queue() & (len(self._queue) - 1)
        self._queue[there] = numbers[self._queue[there]]
        self._distinct_values.renumber(_GROUP_OF_VALUE, numbers)

    def make_room(self, groups: int) -> None:
        """Make room for new groups; no group may wait for delivery."""
        if self.index.ensure(groups):
            self._grow_groups()

    def make_distinct_room(self) -> None:
        """Room for the terms of a chunk in the index of those that count once."""
        self._distinct_values.ensure(self._noted)

    def reserve_notes(self, rows: int) -> None:
        """Make room for the notes of a chunk of `rows` rows. Notes of an exceptionally large tick are not kept for
        ever."""
        room = self._noted
        if rows <= room <= _MOST_NOTES:
            return
        if room < min(rows, _CHUNK) or (room > _MOST_NOTES and 4 * rows < room):
            self.make_notes(max(min(2 * rows, _CHUNK), _SMALLEST_CHUNK))

    def more_terms(self) -> None:
        """Room for more members of bags, monotonic queues and sorted runs."""
        self._terms.grow(self._runs())

    def _runs(self) -> list[RunsOf]:
        return [RunsOf(form, self._words, self._group_words, at) for form, at in self._kept_terms]

    def reserve_deferred(self, rows: int) -> None:
        """Make room for the values of `rows` rows that are computed later. That of an exceptionally large delta is not kept for
        ever."""
        room = max(_FEW, rows)
        if self._deferring < room or self._deferring > 4 * room:
            self._make_deferred(room)

    def _make_deferred(self, rows: int) -> None:
        deferred, self._deferring = (rows + 1) * len(self._aggregates), rows
        self._deferred, self._deferred_real = np.empty((deferred, kernel.DEFERRED_FIELDS), np.int64), np.empty(deferred)
        self._joined = np.empty(rows, np.int64)

    def more_joined(self) -> None:
        """Room for more values of joined texts."""
        self._joined = np.concatenate([self._joined, np.empty_like(self._joined)])

    def process(self, ticks: Ticks, inputs: Sequence[Iterable[Delta]]) -> Iterator[Delta]:
        if ticks.first and len(self.keys) == 0:
            yield self.open_single_group()
        for delta in inputs[0]:
            if len(delta):
                yield self.aggregate(delta)

    def open_single_group(self) -> Delta:
        """The row of the single group of an aggregation without keys, before there is any mapping."""
        run = GroupRun(self, 0)
        run.open()
        return run.output()

    def aggregate(self, delta: Delta) -> Delta:
        """The changes of the groups' rows. There is at least one mapping."""
        columns = delta.columns
        self.reserve_notes(len(delta))
        values, odd = self._values_of(delta)
        run = GroupRun(self, len(delta))
        run.take(delta, columns if self._keys_first else np.ascontiguousarray(columns[self.keys]), values, odd)
        return run.output()

    def _values_of(self, delta: Delta) -> tuple[Ids, HashedNumbers]:
        """The columns with hashed literals replaced by their numbers for SUM and AVG."""
        columns = delta.columns
        tags = grouping.tags_of_arguments(columns, self._arguments, self._functions)
        if not needs_numbers(tags):
            return columns, without_terms(tags)
        summed = np.unique(self._arguments[np.isin(self._functions, _SUMS)])
        values = columns.copy()
        values[summed], numbers = with_numbers(values[summed], self.values, delta.sign > 0)
        return values, numbers

    def standing_rows(self) -> Ids:
        """The rows that have been delivered and not retracted (width, n), between two steps."""
        words = self._words.reshape(-1, self._group_words)
        groups = np.flatnonzero(words[:, kernel.SHOWN])
        keys = self.index.keys_of(groups)
        return np.concatenate([keys, words[groups][:, self._of_aggregates[record.PLACES] - 1].T])

    def make_room_for(self, status: int, tick: TickColumn) -> None:
        """Enlarge the array for which a kernel has stopped; `tick`: the ticks of its rows. RunError if it cannot go on."""
        if status == kernel.HEAP_FULL:
            self.more_terms()
        elif status == kernel.JOINED_FULL:
            self.more_joined()
        elif status == grouping.INDEX_FULL:
            self.make_room(self._rows_of_tick(tick))
        elif status == grouping.DISTINCT_FULL:
            self.make_distinct_room()
        elif status == grouping.QUEUE_FULL:
            self._lay_out_queue(2 * len(self._queue))
        elif status == grouping.CHUNK_SMALL:
            self.make_notes(1 << self._rows_of_tick(tick).bit_length())
        else:
            raise stopped(status)

    def _rows_of_tick(self, tick: TickColumn) -> int:
        first = self._cursor[FIRST]
        return int(np.searchsorted(tick, tick[first], side="right") - first)

    def resolve(self, columns: Ids) -> None:
        """The changes of the last rows have provisional ids: replace them with those of their numbers and texts."""
        count = self._cursor.item(kernel.DEFERRED)
        deferred = self._deferred[:count]
        ids = self._resolved(deferred, self._deferred_real[:count])
        provisional = (columns >> TAG_SHIFT) == kernel.PROVISIONAL >> TAG_SHIFT
        columns[provisional] = ids[columns[provisional] - kernel.PROVISIONAL]
        place, words = deferred[:, kernel.DEFERRED_PLACE], self._words
        still = words[place] == kernel.PROVISIONAL + np.arange(count)
        words[place[still]] = ids[still]

    def _resolved(self, deferred: Ids, real: npt.NDArray[np.float64]) -> Ids:
        """The ids of computed numbers and joined texts."""
        ids = np.empty(len(deferred), np.int64)
        texts = deferred[:, 0] == kernel.DEFERRED_TEXT
        if not texts.all():
            ids[~texts] = self.values.computed(deferred[~texts, : kernel.DEFERRED_PLACE], real[~texts])
        if texts.any():
            _, start, length, aggregate = deferred[texts, : kernel.DEFERRED_PLACE].T
            separators = [self._aggregates[a].separator for a in aggregate.tolist()]
            ids[texts] = self.values.joined(self._joined, start, length, separators)
        return ids

    def live_ids(self) -> Iterable[Ids]:
        last = self._words.reshape(-1, self._group_words)[:, self._of_aggregates[record.PLACES] - 1]
        return (self.index.live_ids(), last.reshape(-1), self._terms.heap, self._distinct_values.live_ids())

    @property
    def nbytes(self) -> int:
        return (
            self.index.nbytes + self._words.nbytes + self._apart.nbytes + self._terms.heap.nbytes
            + self._queue.nbytes + self._distinct_values.nbytes + self._port_counts.nbytes
        )  # fmt: skip


def _lay_out(functions: Sequence[int]) -> tuple[list[int], int]:
    """The position of each aggregate's accumulator in a group's words, after the value last delivered, and the number
    of words.

    Sums come first, and the words that most rows change are in one cache line; for the first sum it is the line with
    the words that every row of the group needs.
    """
    places, end = [0] * len(functions), kernel.GROUP_WORDS
    for a in sorted(range(len(functions)), key=lambda a: functions[a] not in _SUMS):
        if functions[a] in _SUMS and end % _LINE + 1 + kernel.MOST_USED_WORDS > _LINE:
            end = _of_lines(end)
        places[a], end = end + 1, end + 1 + _WORDS[functions[a]]
    return places, _of_lines(end)


def _of_lines(words: int) -> int:
    """The number of words rounded up to whole cache lines, or to a power of two that divides a line."""
    return -(-words // _LINE) * _LINE if words > _LINE // 2 else 1 << (words - 1).bit_length()


def needs_numbers(tags: int) -> bool:
    """Are there arguments of SUM and AVG that the dictionary must be asked about? `tags`: a bit for each tag among
    them."""
    return bool(tags & TO_ASK_OF)


def without_terms(tags: int) -> HashedNumbers:
    """The numbers of arguments of which all have inline ids."""
    return JUST_FLOATS if tags & OF_FLOATS else NO_HASHED_NUMBERS


def with_numbers(
    terms: Ids, values: TermValues, is_insert: npt.NDArray[np.bool_], reported: Sequence[int] | slice = slice(None)
) -> tuple[Ids, HashedNumbers]:
    """Arguments of SUM and AVG with hashed literals replaced by their numbers; tag 15 for those without an inline id.

    `terms` (a, n): arguments of n rows, of which those are insertions that `is_insert` (n). For the arguments chosen by
    `reported`, inserted terms that are no numbers are reported to `values`.
    """
    hashed = np.isin((terms >> TAG_SHIFT) & 15, _WITHOUT_NUMBER)
    different, place = np.unique(terms[hashed], return_inverse=True)
    numbers = values.numbers(different)
    found = terms.copy()
    found[hashed] = np.where(numbers.ids != 0, numbers.ids, kernel.PROVISIONAL | np.arange(len(different)))[place]
    wrong = np.isin((terms >> TAG_SHIFT) & 15, _NO_NUMBERS)
    wrong[hashed] = ((numbers.ids == 0) & (numbers.kind == kernel.HASHED_ERROR))[place]
    wrong &= is_insert
    if wrong.any():
        # Row by row, so that the first one reported came first.
        values.no_numbers(terms[reported].T[wrong[reported].T])
    hashed_reals = (numbers.ids == 0) & (numbers.kind >= kernel.HASHED_FLOAT)
    numbers.reals = bool(hashed_reals.any() or (found >> TAG_SHIFT == TAG_FLOAT - 16).any())
    return found, numbers


def _form_of(function: int, *, expires_fifo: bool) -> Form:
    """The data structure in which an aggregate keeps its terms."""
    return Form.SORTED_RUN if function == kernel.CONCAT else Form.MONOTONIC_QUEUE if expires_fifo else Form.BAG


def stopped(status: int) -> Exception:
    """The error for which a kernel cannot continue."""
    if status == kernel.OVERFLOW:
        return RunError("a sum does not fit 128 bits: the numbers are too large to be added exactly")
    if status == kernel.TOO_MANY:
        return RunError("the join has more results than an aggregate can count: 2**61 of one key, for AVG 2**53")
    return AssertionError("a retracted mapping was never inserted")


class GroupRun:
    """Rows on their way through the kernel, and the output."""

    __slots__ = ("_cursor", "_of", "_output")

    def __init__(self, group_by: GroupBy, rows: int) -> None:
        self._of = group_by
        # A row changes one group's row, which is retracted and inserted; without any, the single group inserts its
        # first row.
        room = 2 * rows or 1
        self._cursor = group_by._cursor
        group_by._of_run.fill(0)
        group_by.reserve_deferred(rows)
        # Tick, sign and columns.
        self._output = np.empty(room, INT32), np.empty(room, INT8), np.empty((group_by.width, room), INT64)

    def open(self) -> None:
        """The single group, before any mapping."""
        grouping.open_group(self._of.address, *self._output)

    def take(self, delta: Delta, keyed: Ids, values: Ids, odd: HashedNumbers) -> None:
        """Process all rows; `keyed` and `values` as for `group_by.group`."""
        of, given = self._of, (delta.tick, delta.sign, keyed, delta.columns, values, *self._output)
        if odd.reals:
            of.keep_reals()
        if of.keeps_terms:
            texts = of.values.texts()
            while status := grouping.group_terms(of.address, odd.address, *texts, *given):
                of.make_room_for(status, delta.tick)
        else:
            while status := grouping.group(of.address, odd.address, *given):
                of.make_room_for(status, delta.tick)

    def take_joined(self, rows: Ids, keyed: Ids, arguments: Ids, odd: HashedNumbers) -> None:
        """Process all rows of a join's inputs, as laid out by kernels/aggregates/factorised_records.py."""
        of, tick = self._of, rows[ROW_TICK]
        given = tick, rows[ROW_SIGN], rows[ROW_PORT], keyed, arguments, *self._output
        if odd.reals:
            of.keep_reals()
        if of.keeps_terms:
            texts = of.values.texts()
            while status := grouping.group_joined_terms(of.address, odd.address, *texts, *given):
                of.make_room_for(status, tick)
        else:
            while status := grouping.group_joined(of.address, odd.address, *given):
                of.make_room_for(status, tick)

    def take_differences(
        self,
        rows: int,
        tick: TickColumn,
        sign: SignColumn,
        columns: Ids,
        wide: Ids | None,
        wide_apart: npt.NDArray[np.uint32] | None,
    ) -> None:
        """Process the first `rows` rows, whose SUM and AVG columns, if there are any, are differences
        (kernels/aggregates/weighted_sums.py)."""
        of, tick = self._of, tick[:rows]
        wide_sums = _NO_WIDE if wide is None else (wide, wide_apart)
        given = tick, sign, columns, *wide_sums, *self._output
        if of.keeps_terms:
            texts = of.values.texts()
            while status := grouping.group_differences_terms(of.address, *texts, *given):
                of.make_room_for(status, tick)
        else:
            while status := grouping.group_differences(of.address, *given):
                of.make_room_for(status, tick)

    def output(self) -> Delta:
        delta = first_rows(*self._output, self._cursor.item(kernel.OUT))
        if self._cursor.item(kernel.DEFERRED):
            self._of.resolve(delta.columns)
        return delta
