"""GROUP BY over a join of inputs that share a key: each input is summed up by that key, and no result of the join is made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from cqels_py.batches.delta import Delta, concatenate
from cqels_py.batches.elements import Ids
from cqels_py.errors import RunError
from cqels_py.event_time.clock import Ticks
from cqels_py.kernels import aggregate
from cqels_py.kernels import factorised as kernel
from cqels_py.kernels import joined_records as records
from cqels_py.kernels.joined_rows import lay_rows, order_rows
from cqels_py.operators.r2r.aggregate import OddNumbers, TermValues
from cqels_py.state.key_sums import KeySums

_OUT_ROWS = 4_096
_FEWEST_OUT_ROWS = 64
_NO_ODD = OddNumbers(np.empty(0, np.int64), np.zeros(1, np.int64), np.zeros((1, 3), np.int64), np.zeros(1, np.float64))
_HASHED = (2, 4)
"""Tags of literals without an inline form."""

FUNCTIONS = {
    "COUNT(*)": (aggregate.SUM, records.ROWS),
    "COUNT": (aggregate.SUM, records.BOUND),
    "SUM": (aggregate.SUM, records.NUMBER),
    "AVG": (aggregate.AVG, records.NUMBER),
    "MIN": (aggregate.MIN, records.TERM),
    "SAMPLE": (aggregate.MIN, records.TERM),
    "MAX": (aggregate.MAX, records.TERM),
}
"""What is kept of a group, a COUNT being a sum of ones; and what is asked of the argument."""


@dataclass(frozen=True, slots=True)
class JoinedInput:
    """An input of the join: how many columns it has, and which are the key, in the same order in all inputs."""

    width: int
    key: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class JoinedAggregate:
    """One aggregate: a name of FUNCTIONS, the input that has its argument, and the column there (None for COUNT(*))."""

    function: str
    input: int = 0
    argument: int | None = None


class FactorisedGroupBy:
    """Groups the join of all inputs on their key, as GroupBy would group its results.

    `carrier`: the input with those of the group's variables that are not in the key, its columns `own`. `groups`: for each
    column of the group its place in (key, own). The result's columns are those of the group, then the aggregates.
    """

    def __init__(
        self,
        inputs: Sequence[JoinedInput],
        carrier: int,
        own: Sequence[int],
        groups: Sequence[int],
        aggregates: Sequence[JoinedAggregate],
        values: TermValues,
    ) -> None:
        self._inputs = tuple(inputs)
        self._carrier = carrier
        self._own = tuple(own)
        self._groups = np.array(groups, np.int64)
        self._aggregates = tuple(aggregates)
        self._values = values
        # The carrier's changes are taken in first at each tick.
        self._in_order = [carrier, *(p for p in range(len(inputs)) if p != carrier)]
        self._read = [self._columns_of(p) for p in self._in_order]
        functions = [FUNCTIONS[a.function] for a in aggregates]
        self._functions = np.array([function for function, _ in functions], np.int64)
        self._kinds = np.array([kind for _, kind in functions], np.int64)
        # Of the aggregates, by number, which add numbers up: their functions, else one that does not.
        self._each = np.arange(len(functions))
        self._summed = np.where(self._kinds == records.NUMBER, self._functions, aggregate.MIN)
        self._ports = np.array([carrier if a.argument is None else a.input for a in aggregates], np.int64)
        self.state = KeySums(
            len(inputs),
            len(inputs[carrier].key),
            len(own),
            len(groups),
            self._functions,
            self._kinds,
            self._ports == carrier,
        )
        self._of_aggregates = np.stack(
            [self._kinds, self._ports, self.state.local, self.state.local_apart, self._functions, self.state.places]
        )
        self._cursor = np.zeros(kernel.FIELDS, np.int64)
        self._located = np.zeros(2 * records.LOCATED_ROWS, np.int64)
        self._starts = np.zeros(len(inputs) + 1, np.int64)
        # Of a few rows, as they come on a live stream; more have room of their own.
        self._late = np.zeros((2 * _FEWEST_OUT_ROWS * len(aggregates), 4), np.int64)
        self._late_real = np.zeros(len(self._late), np.float64)

    def _columns_of(self, port: int) -> tuple[Ids, Ids]:
        """Which columns of an input are the key (of the carrier its own too), and which the aggregates' arguments."""
        key = (*self._inputs[port].key, *(self._own if port == self._carrier else ()))
        arguments = [
            each.argument if each.argument is not None and each.input == port else -1 for each in self._aggregates
        ]
        return np.array(key, np.int64), np.array(arguments, np.int64)

    @property
    def visited(self) -> int:
        """Rows of the carrier to whose groups a change was added so far: the work that regressions are counted in."""
        return int(self._cursor[kernel.VISITED])

    def process(self, ticks: Ticks, inputs: Sequence[Iterable[Delta]]) -> Iterator[Delta]:
        deltas = [concatenate(inputs[p], self._inputs[p].width) for p in self._in_order]
        rows = sum([len(delta.tick) for delta in deltas])
        first = ticks.first and len(self._groups) == 0
        if not first and not rows:
            return
        run = _Run(self, deltas, rows)
        if first:
            run.open_single_group()
        yield from run.chunks()

    def live_ids(self) -> Iterable[Ids]:
        return self.state.live_ids()

    @property
    def nbytes(self) -> int:
        return self.state.nbytes


class _Run:
    """One step on its way through the kernel: the rows of all inputs, the operator's cursor, and the output."""

    def __init__(self, of: FactorisedGroupBy, deltas: Sequence[Delta], rows: int) -> None:
        self._of = of
        self.cursor = of._cursor
        self.cursor[: kernel.VISITED] = 0
        width = of.state.rows.width
        self._rows = np.empty((records.FIRST + width + len(of._aggregates), rows), np.int64)
        self._lay_rows(deltas, width)
        hashed = order_rows(self._rows, of._starts, of.state.keys.width, width, of._each, of._summed, self.cursor)
        self._odd = self._odd_numbers(self._rows[records.FIRST + width :]) if hashed else _NO_ODD
        # Every row changes a group in most queries, which is withdrawn and delivered anew.
        self._make_room(min(_OUT_ROWS, _FEWEST_OUT_ROWS + 2 * rows))

    def _lay_rows(self, deltas: Sequence[Delta], width: int) -> None:
        """Each row's tick, sign and port, its key and group columns, and the aggregates' arguments; where each input's start."""
        of, keys, new_rows, start = self._of, 0, 0, 0
        for place, (port, (key, arguments), delta) in enumerate(zip(of._in_order, of._read, deltas, strict=True), 1):
            if len(delta.tick):
                come = lay_rows(start, port, delta.tick, delta.sign, delta.columns, key, arguments, width, self._rows)
                keys += come
                new_rows += come if port == of._carrier else 0
                start += len(delta.tick)
            of._starts[place] = start
        of.state.ensure(keys, new_rows)

    def _odd_numbers(self, arguments: Ids) -> OddNumbers:
        """What hashed literals are to SUM and AVG, put in their places among the arguments."""
        numbers = self._of._kinds == records.NUMBER
        hashed = np.isin((arguments >> 60) & 15, _HASHED) & numbers[:, None]
        different, place = np.unique(arguments[hashed], return_inverse=True)
        known = self._of._values.numbers(different)
        stand_in = np.where(known.ids != 0, known.ids, aggregate.PROVISIONAL | np.arange(len(different)))
        arguments[hashed] = stand_in[place]
        return known

    def open_single_group(self) -> None:
        """Without group variables there is one group, and it is there from the first tick on."""
        groups = self._of.state.groups
        scratch = np.zeros((1, 1), np.int64)
        aggregate.open_group(groups.table, groups.counts, groups.meta, scratch, groups.free)
        self._of.state.touched[0] = 0
        self.cursor[aggregate.TOUCHED] = 1
        self.cursor[aggregate.TICK] = 0

    def chunks(self) -> Iterator[Delta]:
        while True:
            status = self._step()
            if status in (kernel.DONE, kernel.OUT_FULL):
                made, late = self.cursor.item(aggregate.OUT), self.cursor.item(aggregate.LATE)
                if made:
                    yield self._output(made, late)
                if status == kernel.DONE:
                    return
                self._make_room(max(_OUT_ROWS, 2 * int(self.cursor[aggregate.TOUCHED])))
            elif status == kernel.HEAP_FULL:
                self._of.state.grow_heap()
            elif status == kernel.SNAPS_FULL:
                self._of.state.grow_snaps()
            elif status == kernel.GROUPS_FULL:
                self._of.state.more_groups(int(self.cursor[aggregate.TOUCHED]))
            elif status == kernel.OVERFLOW:
                raise RunError("a sum does not fit 128 bits: the numbers are too large to be added exactly")
            elif status == kernel.TOO_MANY:
                raise RunError("the join has more results than an aggregate can count: 2**61 of one key, for AVG 2**53")
            else:
                raise AssertionError("a mapping was withdrawn that was never there")

    def _make_room(self, rows: int) -> None:
        of, n = self._of, len(self._of._aggregates)
        self._out_tick = np.empty(rows, np.int32)
        self._out_sign = np.empty(rows, np.int8)
        self._out = np.empty((len(of._groups) + n, rows), np.int64)
        few = rows * n <= len(of._late)
        self._late = of._late if few else np.empty((rows * n, 4), np.int64)
        self._late_real = of._late_real if few else np.empty(rows * n, np.float64)
        self.cursor[aggregate.OUT] = 0
        self.cursor[aggregate.LATE] = 0

    def _step(self) -> int:
        of, s = self._of, self._of.state
        texts, spans = of._values.texts()
        keys, rows, groups = s.keys, s.rows, s.groups
        status: int = kernel.step(
            self._rows, self.cursor, of._located, len(of._inputs), of._carrier, keys.width, rows.width, of._groups,
            of._of_aggregates, s.group_words,
            keys.table, keys.keys, keys.counts, keys.free, keys.meta, s.key_size, s.key_words, s.key_apart_size, s.key_apart,
            rows.table, s.row_keys, rows.counts, rows.free, rows.meta, s.row_size, s.row_words, s.row_apart_size, s.row_apart,
            groups.table, groups.keys, groups.counts, groups.free, groups.meta, s.words, s.apart, s.live, s.last, s.shown,
            s.touched, s.in_touched,
            s.snap_key, s.snap_words, s.snap_apart, s.change, s.change_apart, s.group_key, s.terms, s.heap_meta,
            texts, spans, self._odd.kind, self._odd.words, self._odd.real, self._out_tick, self._out_sign, self._out,
            self._late, self._late_real, s.fresh, s.joined,
        )  # fmt: skip
        return status

    def _output(self, made: int, late: int) -> Delta:
        columns = self._out[:, :made]
        if late:
            ids = self._of._values.computed(self._late[:late], self._late_real[:late])
            for array in (columns, self._of.state.last):
                provisional = (array >> 60) == -1
                array[provisional] = ids[array[provisional] & ((1 << 60) - 1)]
        return Delta(self._out_tick[:made], self._out_sign[:made], columns)
