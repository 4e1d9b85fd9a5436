"""GROUP BY over a join of inputs that share a key: each input is aggregated by that key, and no result of the join is
made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from cqels_py.batches.delta import Delta
from cqels_py.batches.elements import Ids
from cqels_py.event_time.clock import Ticks
from cqels_py.kernels.aggregates import accumulators as aggregate
from cqels_py.kernels.aggregates import factorised as kernel
from cqels_py.kernels.aggregates import factorised_records as records
from cqels_py.kernels.aggregates.exact_float_sums import REAL_WORDS
from cqels_py.operators.r2r.aggregate import FUNCTIONS as GROUP_FUNCTIONS
from cqels_py.operators.r2r.aggregate import Aggregate, GroupBy, GroupRun, TermValues, stopped
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


class FactorisedGroupBy:
    """Groups the join of all inputs on their key, as GroupBy would group its results.

    `carrier`: the input with those of the group's variables that are not in the key, its columns `own`. `groups`: for
    each column of the group its place in (key, own). The result's columns are those of the group, then the aggregates.
    """

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
        self._contribution_width = len(groups) + sum(widths)
        made = [Aggregate(function, column) for (function, _), column in zip(functions, columns, strict=True)]
        self._group_by = GroupBy(range(len(groups)), made, values)
        self._summed = any(kind != records.TERM for _, kind in functions)
        self._few_contributions = self._room_for_contributions(_FEW_CONTRIBUTIONS)
        numbers = np.array([GROUP_FUNCTIONS[function] for function, _ in functions], np.int64)
        of_aggregates = np.array(
            [kinds, ports, self.state.local, self.state.local_apart, numbers, columns, expires_fifo], np.int64
        )
        self._cursor = np.zeros(kernel.FIELDS, np.int64)
        self._of_step = self._cursor[: kernel.VISITED]
        located = np.zeros(3 * records.LOCATED_ROWS, np.int64)
        # The constant arguments of the kernel: collected once, as collecting them costs as much as the work on a live
        # stream.
        widths_of_keys = self.state.keys.width, self.state.rows.width
        sized = in_order_of_taking[1:], *map(range, widths_of_keys), self._groups, of_aggregates
        most_common = len(inputs) == 2 and widths_of_keys == (1, 2) and len(aggregates) == 1
        other_inputs, *others = map(_as_tuple if most_common else np.array, sized)
        self._first_arguments = (self._cursor, located, other_inputs, carrier, *others)
        taken = [(port, (*inputs[port].key, *(own if port == carrier else ()))) for port in in_order_of_taking]
        self._layout = JoinedRows(inputs, taken, *widths_of_keys, aggregates, values, hashes=True)

    def _room_for_contributions(self, rows: int) -> _Contributions:
        return _Contributions(self._contribution_width, rows, _Accumulators(_FEW_WIDE) if self._summed else None)

    @property
    def visited(self) -> int:
        """The number of changes of contributions so far: the work that regression tests count."""
        return int(self._cursor[kernel.VISITED])

    def process(self, ticks: Ticks, inputs: Sequence[Iterable[Delta]]) -> Iterator[Delta]:
        if ticks.first and len(self._groups) == 0:
            yield self._group_by.open_single_group()
        for block in self._layout.blocks(inputs):
            filled, rows = self._layout.filled(block)
            if rows:
                yield from _Run(self, filled, rows, len(ticks.time) == 1).chunks()

    def live_ids(self) -> Iterable[Ids]:
        return (*self.state.live_ids(), *self._group_by.live_ids())

    @property
    def nbytes(self) -> int:
        return self.state.nbytes + self._group_by.nbytes


def _as_tuple(numbers: Iterable[Any]) -> tuple[Any, ...]:
    """Numbers, or rows of them, as tuples, for whose length the kernel is compiled."""
    return tuple(_as_tuple(each) if isinstance(each, np.ndarray) else int(each) for each in numbers)


class _Run:
    """One step on its way through the kernel: the rows of all inputs, the contributions, the operator's cursor."""

    def __init__(self, of: FactorisedGroupBy, filled: Sequence[Filled], rows: int, one_tick: bool) -> None:
        self._of = of
        self.cursor = of._cursor
        of._of_step.fill(0)
        self._rows, keys, new_rows, self._odd = of._layout.lay(filled, rows, one_tick=one_tick, carrier=of._carrier)
        of.state.ensure(keys, new_rows)
        if self._odd.reals:
            of.state.keep_reals()
            of._group_by.keep_reals()
        self._contributions = of._few_contributions if rows <= FEW_ROWS else of._room_for_contributions(_CONTRIBUTIONS)

    def chunks(self) -> Iterator[Delta]:
        state = self._of.state
        while True:
            status = self._put_contributions()
            if status in (aggregate.DONE, kernel.ENOUGH):
                made = self.cursor.item(kernel.MADE)
                if made:
                    yield self._into_groups(made)
                if status == aggregate.DONE:
                    return
                self.cursor[kernel.MADE] = self.cursor[kernel.WIDE] = 0
            elif status == kernel.TERMS_FULL:
                state.more_terms()
            elif status == kernel.SNAPS_FULL:
                state.more_snaps()
            elif status == kernel.CONTRIBUTIONS_FULL:
                self._contributions = self._contributions.more(
                    self.cursor.item(kernel.MADE), self.cursor.item(kernel.WIDE), len(self._of._aggregates)
                )
            else:
                raise stopped(status)

    def _put_contributions(self) -> int:
        of, odd = self._of, self._odd
        rows, numbers = (self._rows,), (odd.kind, odd.words, odd.real)
        # Tuples are concatenated, which is faster than unpacking all of them.
        given = (
            rows + of._first_arguments + of.state.arrays + of._group_by.texts() + numbers + self._contributions.arrays
        )
        status: int = kernel.put_contributions(*given)
        return status

    def _into_groups(self, made: int) -> Delta:
        """The changes of the answer caused by the contributions."""
        of = self._of._group_by
        of.reserve_notes(made)
        run = GroupRun(of, made)
        run.take_differences(made, *self._contributions.arrays)
        return run.output()


class _Contributions:
    """Room for changes of contributions (see kernels/aggregates/factorised.py), at least those of a tick, which are
    aggregated together.

    `wide`: accumulators, unless all aggregates are MIN and MAX. `arrays`: as the kernels take them.
    """

    def __init__(self, width: int, rows: int, wide: _Accumulators | None) -> None:
        self._tick, self._sign = np.empty(rows, np.int32), np.empty(rows, np.int8)
        self._columns = np.empty((width, rows), np.int64)
        self._wide = wide
        self.arrays = self._tick, self._sign, self._columns, *(wide.arrays if wide else (None, None))

    def more(self, made: int, wide: int, aggregates: int) -> _Contributions:
        """Enlarge the arrays that have no room for the contribution of one more row; there are `made` contributions and
        `wide` accumulators."""
        rows = len(self._tick)
        room = max(_CONTRIBUTIONS, 2 * rows) if made == rows else rows
        larger = _Contributions(len(self._columns), room, self._wide.more(wide, aggregates) if self._wide else None)
        larger._tick[:made], larger._sign[:made] = self._tick[:made], self._sign[:made]
        larger._columns[:, :made] = self._columns[:, :made]
        return larger


class _Accumulators:
    """Accumulators for sums that do not fit the columns of a contribution."""

    def __init__(self, room: int) -> None:
        self._words = np.empty(room * aggregate.SUM_WORDS, np.int64)
        self._apart = np.zeros(room * REAL_WORDS, np.uint32)
        self.arrays = self._words, self._apart

    def more(self, taken: int, wanted: int) -> _Accumulators:
        """These, if there is room for `wanted` more, or larger ones with a copy of those `taken`."""
        room = len(self._apart) // REAL_WORDS
        if taken + wanted <= room:
            return self
        larger = _Accumulators(max(_CONTRIBUTIONS, 2 * room))
        words, apart = taken * aggregate.SUM_WORDS, taken * REAL_WORDS
        larger._words[:words], larger._apart[:apart] = self._words[:words], self._apart[:apart]
        return larger
