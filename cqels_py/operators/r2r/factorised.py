"""GROUP BY over a join of inputs that share a key: each input is summed up by that key, and no result of the join is made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cqels_py.batches.delta import Delta, TickColumn, concatenate
from cqels_py.batches.elements import Ids
from cqels_py.event_time.clock import Ticks
from cqels_py.kernels import aggregate
from cqels_py.kernels import factorised as kernel
from cqels_py.kernels import joined_records as records
from cqels_py.kernels.dtypes import INT64
from cqels_py.kernels.joined_rows import lay_rows
from cqels_py.kernels.merge import places_by_tick
from cqels_py.operators.r2r.aggregate import FUNCTIONS as GROUP_FUNCTIONS
from cqels_py.operators.r2r.aggregate import (
    NO_ODD,
    Aggregate,
    GroupBy,
    GroupRun,
    OddNumbers,
    TermValues,
    stopped,
    with_numbers,
)
from cqels_py.state.key_sums import KeySums

_SHARES = 4_096
"""Room for so many shares at first."""
_FEW_ROWS, _FEW_SHARES = 8, 32
"""Steps of so few rows, as they come on a live stream, have that room, which is kept."""
_FEW_WIDE = 32

FUNCTIONS = {
    "COUNT(*)": ("SUM", records.ROWS),
    "COUNT": ("SUM", records.BOUND),
    "SUM": ("SUM", records.NUMBER),
    "AVG": ("AVG", records.NUMBER),
    "MIN": ("MIN", records.TERM),
    "SAMPLE": ("MIN", records.TERM),
    "MAX": ("MAX", records.TERM),
}
"""What is kept of a group, a COUNT being a sum of ones; and what is asked of the argument."""


@dataclass(frozen=True, slots=True)
class JoinedInput:
    """An input of the join: how many columns it has, and which are the key, in the same order in all inputs.

    `in_order`: its mappings leave in the order in which they came, as from a window, so that MIN and MAX need no bags of them.
    """

    width: int
    key: tuple[int, ...]
    in_order: bool = False


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
        in_order_of_taking = [carrier, *(p for p in range(len(inputs)) if p != carrier)]
        functions = [FUNCTIONS[a.function] for a in aggregates]
        self._kinds = np.array([kind for _, kind in functions], np.int64)
        self._ports = np.array([carrier if a.argument is None else a.input for a in aggregates], np.int64)
        self.state = KeySums(len(inputs), len(inputs[carrier].key), len(own), self._kinds, self._ports == carrier)
        # A share's columns: of an extreme one, of a sum three.
        widths = [1 if kind == records.TERM else 3 for _, kind in functions]
        columns = [len(groups) + sum(widths[:a]) for a in range(len(widths))]
        self._share_width = len(groups) + sum(widths)
        made = [Aggregate(function, column) for (function, _), column in zip(functions, columns, strict=True)]
        self._group_by = GroupBy(range(len(groups)), made, values)
        self._few_shares = _Shares(self._share_width, _FEW_SHARES)
        numbers = np.array([GROUP_FUNCTIONS[function] for function, _ in functions], np.int64)
        in_order = [inputs[port].in_order for port in self._ports]
        self._of_aggregates = np.array(
            [self._kinds, self._ports, self.state.local, self.state.local_apart, numbers, columns, in_order], np.int64
        )
        self._cursor = np.zeros(kernel.FIELDS, np.int64)
        self._of_step = self._cursor[: kernel.VISITED]
        located = np.zeros(2 * records.LOCATED_ROWS, np.int64)
        # What every call of the kernels gets: once, as looking it up costs as much as the work on a live stream.
        widths_of_keys = self.state.keys.width, self.state.rows.width
        self._first_arguments = (
            self._cursor, located, len(inputs), carrier, *widths_of_keys, self._groups, self._of_aggregates
        )  # fmt: skip
        # Of each input its number, its width, and what the kernel that lays its rows gets.
        self._ways = []
        for port in in_order_of_taking:
            key, arguments = self._columns_of(port)
            self._ways.append((port, inputs[port].width, (key, *widths_of_keys, arguments, self._kinds)))
        self._row_size = records.FIRST + self.state.rows.width + len(aggregates)

    def _columns_of(self, port: int) -> tuple[Ids, Ids]:
        """Which columns of an input are the key (of the carrier its own too), and which the aggregates' arguments."""
        key = (*self._inputs[port].key, *(self._own if port == self._carrier else ()))
        arguments = [
            each.argument if each.argument is not None and each.input == port else -1 for each in self._aggregates
        ]
        return np.array(key, np.int64), np.array(arguments, np.int64)

    @property
    def visited(self) -> int:
        """Changes of rows' shares in their groups so far: the work that regressions are counted in."""
        return int(self._cursor[kernel.VISITED])

    def process(self, ticks: Ticks, inputs: Sequence[Iterable[Delta]]) -> Iterator[Delta]:
        if ticks.first and len(self._groups) == 0:
            yield self._group_by.open_single_group()
        filled, rows = [], 0
        for port, width, given in self._ways:
            delta = concatenate(inputs[port], width)
            if came := len(delta.tick):
                filled.append((port, given, delta))
                rows += came
        if rows:
            yield from _Run(self, filled, rows, len(ticks.time) == 1).chunks()

    def live_ids(self) -> Iterable[Ids]:
        return (*self.state.live_ids(), *self._group_by.live_ids())

    @property
    def nbytes(self) -> int:
        return self.state.nbytes + self._group_by.nbytes


Filled = tuple[int, tuple[Any, ...], Delta]
"""An input that has changes: its number, what the kernel that lays its rows gets, and they."""
_FIRST_POSITIONS = np.arange(_FEW_ROWS, dtype=np.int32)


def _positions(rows: int) -> npt.NDArray[np.int32]:
    return _FIRST_POSITIONS if rows <= _FEW_ROWS else np.arange(rows, dtype=np.int32)


def _places(ticks: Sequence[TickColumn]) -> npt.NDArray[np.int32]:
    """The place of each row of several inputs in the order of ticks."""
    starts = [0]
    for column in ticks:
        starts.append(starts[-1] + len(column))
    place: npt.NDArray[np.int32] = places_by_tick(np.concatenate(ticks), np.array(starts, np.int64))
    return place


class _Run:
    """One step on its way through the kernel: the rows of all inputs, the shares, the operator's cursor."""

    def __init__(self, of: FactorisedGroupBy, filled: Sequence[Filled], rows: int, one_tick: bool) -> None:
        self._of = of
        self.cursor = of._cursor
        of._of_step.fill(0)
        self._rows = np.empty((of._row_size, rows), INT64)
        hashed = self._lay_rows(filled, rows, one_tick)
        self._odd = self._odd_numbers(self._rows[of._row_size - len(of._aggregates) :]) if hashed else NO_ODD
        self._shares = of._few_shares if rows <= _FEW_ROWS else _Shares(of._share_width, _SHARES)

    def _lay_rows(self, filled: Sequence[Filled], rows: int, one_tick: bool) -> bool:
        """Each row's tick, sign and port, its key and group columns, and the aggregates' arguments, all in the order of ticks.

        Returns whether the number of any argument is known to the dictionary alone.
        """
        of = self._of
        in_order = one_tick or len(filled) == 1
        place = _positions(rows) if in_order else _places([delta.tick for _, _, delta in filled])
        keys, new_rows, hashed, start = 0, 0, False, 0
        for port, given, delta in filled:
            tick = delta.tick
            come, unknown = lay_rows(port, tick, delta.sign, delta.columns, place, start, self._rows, *given)
            hashed = hashed or unknown
            keys += come
            new_rows += come if port == of._carrier else 0
            start += len(tick)
        of.state.ensure(keys, new_rows)
        return hashed

    def _odd_numbers(self, arguments: Ids) -> OddNumbers:
        """What hashed literals are to SUM and AVG, put in their places among the arguments."""
        summed = self._of._kinds == records.NUMBER
        arguments[summed], known = with_numbers(arguments[summed], self._of._values)
        return known

    def chunks(self) -> Iterator[Delta]:
        state = self._of.state
        while True:
            status = self._put_shares()
            if status in (aggregate.DONE, kernel.ENOUGH):
                made = self.cursor.item(kernel.MADE)
                if made:
                    yield self._into_groups(made)
                if status == aggregate.DONE:
                    return
                self.cursor[kernel.MADE] = self.cursor[kernel.WIDE] = 0
            elif status == kernel.TERMS_FULL:
                state.grow_heap()
            elif status == kernel.SNAPS_FULL:
                state.more_snaps()
            elif status == kernel.SHARES_FULL:
                self._shares = self._shares.more(
                    self.cursor.item(kernel.MADE), self.cursor.item(kernel.WIDE), len(self._of._aggregates)
                )
            else:
                raise stopped(status)

    def _put_shares(self) -> int:
        of, odd = self._of, self._odd
        rows, numbers = (self._rows,), (odd.kind, odd.words, odd.real)
        # One tuple after another, as going through all that they have takes longer.
        given = rows + of._first_arguments + of.state.arrays + of._group_by.texts() + numbers + self._shares.arrays
        status: int = kernel.put_shares(*given)
        return status

    def _into_groups(self, made: int) -> Delta:
        """How the answer changes by the shares that are put down."""
        of = self._of._group_by
        of.expect_rows(made)
        run = GroupRun(of, made)
        run.take_differences(made, *self._shares.arrays)
        return run.output()


class _Shares:
    """Room for changes of shares (see kernels/factorised.py), those of a tick at least: these go into their groups together."""

    def __init__(self, width: int, rows: int) -> None:
        self._tick, self._sign = np.empty(rows, np.int32), np.empty(rows, np.int8)
        self._columns = np.empty((width, rows), np.int64)
        self._wide = np.empty(_FEW_WIDE * aggregate.SUM_WORDS, np.int64)
        self._wide_apart = np.empty(_FEW_WIDE * aggregate.APART_WORDS)
        self._gather()

    def _gather(self) -> None:
        """The arrays as the kernels take them."""
        self.arrays = self._tick, self._sign, self._columns, self._wide, self._wide_apart

    def more(self, made: int, wide: int, aggregates: int) -> _Shares:
        """More room, where that is short for the share of one more row; there are `made` shares and `wide` accumulators."""
        rows, wide_room = len(self._tick), len(self._wide_apart) // aggregate.APART_WORDS
        larger = _Shares(len(self._columns), max(_SHARES, 2 * rows) if made + 2 > rows else rows)
        larger._tick[:made], larger._sign[:made] = self._tick[:made], self._sign[:made]
        larger._columns[:, :made] = self._columns[:, :made]
        if wide + aggregates > wide_room:
            larger._wide = np.empty(max(_SHARES, 2 * wide_room) * aggregate.SUM_WORDS, np.int64)
            larger._wide_apart = np.empty(max(_SHARES, 2 * wide_room) * aggregate.APART_WORDS)
            taken, apart = wide * aggregate.SUM_WORDS, wide * aggregate.APART_WORDS
            larger._wide[:taken], larger._wide_apart[:apart] = self._wide[:taken], self._wide_apart[:apart]
        else:
            larger._wide, larger._wide_apart = self._wide, self._wide_apart
        larger._gather()
        return larger
