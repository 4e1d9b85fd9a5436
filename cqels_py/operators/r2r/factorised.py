"""GROUP BY over a join of inputs that share a key: each input is aggregated by that key, and no result of the join is
made."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from cqels_py.batches.delta import Delta
from cqels_py.batches.elements import Ids
from cqels_py.event_time.clock import Ticks
from cqels_py.kernels.aggregates import accumulators as aggregate
from cqels_py.kernels.aggregates import factorised as kernel
from cqels_py.kernels.aggregates import factorised_records as records
from cqels_py.kernels.aggregates import factorised_state as record
from cqels_py.kernels.aggregates.exact_float_sums import REAL_WORDS
from cqels_py.kernels.primitives.state_record import StateArray, StateRecord
from cqels_py.operators.r2r.aggregate import FUNCTIONS as GROUP_FUNCTIONS
from cqels_py.operators.r2r.aggregate import (
    NO_HASHED_NUMBERS,
    Aggregate,
    GroupBy,
    GroupRun,
    HashedNumbers,
    TermValues,
    stopped,
)
from cqels_py.operators.r2r.joined_rows import (
    FEW_ROWS,
    FUNCTIONS,
    Filled,
    JoinedAggregate,
    JoinedInput,
    JoinedRows,
)
from cqels_py.state.key_sums import KeySums

_CONTRIBUTIONS = 8_192
"""Initial room for contributions."""
_FEW_CONTRIBUTIONS = 32
"""Room for contributions that is kept for steps of few rows."""
_FEW_WIDE = 32


class FactorisedGroupBy(StateRecord):
    """Groups the join of all inputs on their key, as GroupBy would group its results.

    `carrier`: the input with those of the group's variables that are not in the key, its columns `own`. `groups`: for
    each column of the group its place in (key, own). The result's columns are those of the group, then the aggregates.
    """

    _cursor = StateArray[np.int64](record.CURSOR)
    _located = StateArray[np.int64](record.LOCATED)
    _order = StateArray[np.int64](record.ORDER)
    _key_places = StateArray[np.int64](record.KEY_PLACES)
    _row_places = StateArray[np.int64](record.ROW_PLACES)
    _groups = StateArray[np.int64](record.GROUPS)
    _of_aggregates = StateArray[np.int64](record.OF_AGGREGATES)

    STATE = ("state", "_group_by", "_cursor")

    def __init__(
        self,
        inputs: Sequence[JoinedInput],
        carrier: int,
        own: Sequence[int],
        groups: Sequence[int],
        aggregates: Sequence[JoinedAggregate],
        values: TermValues,
    ) -> None:
        self._carrier = carrier
        self._groups = np.array(groups, np.int64)
        self._values = values
        self._aggregates = tuple(aggregates)
        # The carrier's changes are applied first at each tick.
        in_order_of_taking = [carrier, *(p for p in range(len(inputs)) if p != carrier)]
        functions = [FUNCTIONS[a.function] for a in aggregates]
        kinds = np.array([kind for _, kind in functions], np.int64)
        ports = np.array([carrier if a.argument is None else a.input for a in aggregates], np.int64)
        expires_fifo = np.array([inputs[port].expires_fifo for port in ports])
        self.state = KeySums(len(inputs), len(inputs[carrier].key), len(own), kinds, ports == carrier, expires_fifo)
        # A contribution has two columns for an extreme, three for a sum.
        widths = [2 if kind == records.TERM else 3 for _, kind in functions]
        columns = [len(groups) + sum(widths[:a]) for a in range(len(widths))]
        made = [Aggregate(function, column) for (function, _), column in zip(functions, columns, strict=True)]
        self._group_by = GroupBy(range(len(groups)), made, values)
        self.sums = any(kind != records.TERM for _, kind in functions)
        self.keeps_terms = any(kind == records.TERM for _, kind in functions)
        wide = _FEW_WIDE if self.sums else 0
        self._shape = len(groups) + sum(widths), _CONTRIBUTIONS, wide
        self._few_contributions = Contributions(len(groups) + sum(widths), _FEW_CONTRIBUTIONS, wide)
        numbers = np.array([GROUP_FUNCTIONS[function] for function, _ in functions], np.int64)
        self._of_aggregates = np.array(
            [kinds, ports, self.state.local, self.state.local_apart, numbers, columns, expires_fifo], np.int64
        )
        self._cursor = np.zeros(record.FIELDS, np.int64)
        self._located = np.zeros(3 * records.LOCATED_ROWS, np.int64)
        self._order = np.array(in_order_of_taking, np.int64)
        widths_of_keys = self.state.keys.width, self.state.rows.width
        self._key_places, self._row_places = map(np.arange, widths_of_keys)
        self.most_common = len(inputs) == 2 and widths_of_keys == (1, 2) and len(aggregates) == 1
        taken = [(port, (*inputs[port].key, *(own if port == carrier else ()))) for port in in_order_of_taking]
        self.layout = JoinedRows(inputs, taken, *widths_of_keys, aggregates, values, hashes=True)

    def _borrow_contributions(self) -> Contributions:
        """For one step of many rows; to be given back. All operators of the same shape share them."""
        try:
            return _unused[self._shape].pop()
        except IndexError:  # Asking before would not do: another thread may be faster.
            return Contributions(*self._shape)

    def _give_back(self, contributions: Contributions) -> None:
        """Unless they have been enlarged for an unusual step."""
        if contributions is not self._few_contributions and contributions.shape == self._shape:
            _unused[self._shape].append(contributions)

    @property
    def shape(self) -> tuple[int, bool]:
        """The number of columns of contributions, and whether there are sums among them."""
        return self._shape[0], self.sums

    @property
    def made(self) -> int:
        """The number of contributions that the current step has made."""
        return self._cursor.item(record.MADE)

    @property
    def visited(self) -> int:
        """The number of changes of contributions so far: the work that regression tests count."""
        return self._cursor.item(record.VISITED)

    def process(self, ticks: Ticks, inputs: Sequence[Iterable[Delta]]) -> Iterator[Delta]:
        if ticks.first and len(self._groups) == 0:
            yield self._group_by.open_single_group()
        for block in self.layout.blocks(inputs):
            filled, rows = self.layout.filled(block)
            if rows:
                yield from self._begun(filled, rows, len(ticks.time) == 1).chunks()

    def _begun(self, filled: Sequence[Filled], count: int, one_tick: bool) -> _Run:
        """A step that begins."""
        self._cursor[: record.VISITED] = 0
        rows, keys, new_rows, odd = self.layout.lay(filled, count, one_tick=one_tick, carrier=self._carrier)
        if odd.reals:
            self.state.keep_reals()
            self._group_by.keep_reals()
        contributions = self._few_contributions if count <= FEW_ROWS else self._borrow_contributions()
        return _Run(self, rows, keys, new_rows, odd, contributions)

    def make_room_for(self, status: int, rows: int) -> None:
        """Enlarge the array for which the kernel has stopped, of so many rows. RunError if it cannot go on."""
        if status == kernel.KEYS_FULL:
            self.state.ensure(rows, rows)
        elif status == kernel.TERMS_FULL:
            self.state.more_terms()
        elif status == kernel.SNAPS_FULL:
            self.state.more_snaps()
        else:
            raise stopped(status)

    def resume(self, rows: Ids, contributions: Contributions) -> Iterator[Delta]:
        """Go on with rows, as of `JoinedRows.lay`, where their contributions have had no room, or there were enough."""
        return _Run(self, rows, rows.shape[1], rows.shape[1], NO_HASHED_NUMBERS, contributions).chunks()

    @property
    def group_by(self) -> GroupBy:
        """That of its groups."""
        return self._group_by

    def standing_rows(self) -> Ids:
        """As `GroupBy.standing_rows`."""
        return self._group_by.standing_rows()

    def live_ids(self) -> Iterable[Ids]:
        return (*self.state.live_ids(), *self._group_by.live_ids())

    @property
    def nbytes(self) -> int:
        return self.state.nbytes + self._group_by.nbytes


class _Run:
    """One step on its way through the kernel: the rows of all inputs, the contributions, the operator's cursor."""

    def __init__(
        self,
        of: FactorisedGroupBy,
        rows: Ids,
        keys: int,
        new_rows: int,
        odd: HashedNumbers,
        contributions: Contributions,
    ) -> None:
        self._of, self.cursor = of, of._cursor
        self._rows, self._keys, self._new_rows = rows, keys, new_rows
        self._numbers = odd.kind, odd.words, odd.real
        self._contributions = contributions

    def chunks(self) -> Iterator[Delta]:
        try:
            yield from self._chunks()
        finally:
            self._of._give_back(self._contributions)

    def _chunks(self) -> Iterator[Delta]:
        state = self._of.state
        while True:
            status = self._put_contributions()
            if status in (aggregate.DONE, kernel.ENOUGH):
                made = self.cursor.item(record.MADE)
                if made:
                    yield self._into_groups(made)
                if status == aggregate.DONE:
                    return
                self.cursor[record.MADE] = self.cursor[record.WIDE] = 0
            elif status == kernel.KEYS_FULL:
                left = self._rows.shape[1] - self.cursor.item(record.ROW)
                state.ensure(min(self._keys, left), min(self._new_rows, left))
            elif status == kernel.CONTRIBUTIONS_FULL:
                self._contributions = self._contributions.more(
                    self.cursor.item(record.MADE), self.cursor.item(record.WIDE), len(self._of._aggregates)
                )
            else:
                self._of.make_room_for(status, self._rows.shape[1])

    def _put_contributions(self) -> int:
        of, state = self._of, self._of.state
        addresses = of.address, state.address, state.keys.address, state.row_index.address, self._contributions.address
        given: tuple[Any, ...] = (self._rows, *addresses)
        if not of.sums:
            given += of._values.texts()
            status: int = kernel.put_extreme_of_two(*given) if of.most_common else kernel.put_extremes(*given)
        elif not of.keeps_terms:
            given += self._numbers
            status = kernel.put_sum_of_two(*given) if of.most_common else kernel.put_sums(*given)
        else:
            given += of._values.texts() + self._numbers
            status = kernel.put_all(*given)
        return status

    def _into_groups(self, made: int) -> Delta:
        """The changes of the answer caused by the contributions."""
        of = self._of._group_by
        of.reserve_notes(made)
        run = GroupRun(of, made)
        self._contributions.give(run, made)
        return run.output()


class Contributions(StateRecord):
    """Room for changes of contributions (see kernels/aggregates/factorised.py), at least those of a tick, which are
    aggregated together.

    `wide`: the number of accumulators for which there is room, for sums that do not fit the columns; 0 if all aggregates
    are MIN and MAX.
    """

    tick = StateArray[np.int32](record.OUT_TICK)
    _sign = StateArray[np.int8](record.OUT_SIGN)
    _columns = StateArray[np.int64](record.OUT_COLUMNS)
    _wide = StateArray[np.int64](record.WIDE_WORDS)
    _wide_apart = StateArray[np.uint32](record.WIDE_APART)

    def __init__(self, width: int, rows: int, wide: int) -> None:
        self.shape = width, rows, wide
        self.tick, self._sign = np.empty(rows, np.int32), np.empty(rows, np.int8)
        self._columns = np.empty((width, rows), np.int64)
        self._wide = np.empty(wide * aggregate.SUM_WORDS, np.int64)
        self._wide_apart = np.zeros(wide * REAL_WORDS, np.uint32)

    def give(self, run: GroupRun, made: int) -> None:
        """Let a GROUP BY process the first `made` contributions."""
        sums = (self._wide, self._wide_apart) if len(self._wide) else (None, None)
        run.take_differences(made, self.tick, self._sign, self._columns, *sums)

    def more(self, made: int, taken: int, wanted: int) -> Contributions:
        """These with more room: there is none for one more row's contribution, or for `wanted` more accumulators. There
        are `made` contributions and `taken` accumulators."""
        width, rows, wide = self.shape
        room = max(_CONTRIBUTIONS, 2 * rows) if made == rows else rows
        wide_room = max(_CONTRIBUTIONS, 2 * wide) if wide and taken + wanted > wide else wide
        larger = Contributions(width, room, wide_room)
        larger.tick[:made], larger._sign[:made] = self.tick[:made], self._sign[:made]
        larger._columns[:, :made] = self._columns[:, :made]
        words, apart = taken * aggregate.SUM_WORDS, taken * REAL_WORDS
        larger._wide[:words], larger._wide_apart[:apart] = self._wide[:words], self._wide_apart[:apart]
        return larger


_unused: defaultdict[tuple[int, int, int], list[Contributions]] = defaultdict(list)
"""Those of the usual size, by their shape."""
