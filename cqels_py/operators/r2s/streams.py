"""Relation to stream: ISTREAM, DSTREAM, RSTREAM and the changelog."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar

import numpy as np

from cqels_py.batches.delta import Delta, TickSigns, by_whole_ticks, empty, in_blocks
from cqels_py.batches.elements import Ids
from cqels_py.batches.results import ResultBatch
from cqels_py.event_time.clock import Ticks
from cqels_py.kernels.primitives.dtypes import INT8, INT32, INT64
from cqels_py.kernels.rows import distinct as kernel
from cqels_py.state.key_table import KeyTable

_FEWEST_CHANGES = 256
_FEW_ROWS = 8
"""Steps of so few rows, as on a live stream, use arrays that are kept."""
_FEWEST_ROWS, _MOST_ROWS = 1 << 10, 1 << 16
"""Results of as many ticks as fit are delivered together; a larger tick gets a larger array."""


def _room_for(rows: int) -> Ids:
    """Scratch for `changes` to compare rows."""
    return np.empty(kernel.ROOM_A_ROW * rows + kernel.ROOM, INT64)


class Changes:
    """The difference of the answers at two ticks, as bags: its insertions, its deletions, or both (the changelog).

    `signs`: those of the answer's changes. If all changes of a tick are known to have one sign they are delivered as
    they come, however many there are.
    """

    STATE: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        variables: tuple[str, ...],
        *,
        insertions: bool,
        deletions: bool,
        signs: TickSigns | None = None,
    ) -> None:
        self.variables = variables
        self._signs = signs
        # A number is passed to a kernel faster than a bool.
        self._insertions = int(insertions)
        self._deletions = int(deletions)
        self._rows = range(1, 1 + len(variables))
        self._for_few = _room_for(_FEW_ROWS)

    def process(self, ticks: Ticks, chunks: Iterable[Delta]) -> Iterator[ResultBatch]:
        for delta in by_whole_ticks(chunks, len(self.variables), signs=self._signs):
            rows = len(delta.tick)
            tick, sign = np.empty(rows, INT32), np.empty(rows, INT8)
            made = np.empty((1 + len(self.variables), rows), INT64)
            count = kernel.changes(
                delta.tick, delta.sign, delta.columns, ticks.time, self._insertions, self._deletions,
                self._for_few if rows <= _FEW_ROWS else _room_for(rows), tick, sign, made,
            )  # fmt: skip
            if count < rows:
                tick, sign, made = tick[:count], sign[:count], made[:, :count]
            if count:
                columns = tuple([made[row] for row in self._rows])
                yield ResultBatch(self.variables, made[0], sign, columns, tick)

    @property
    def asked_signs(self) -> tuple[int, int]:
        """Are insertions results (1, else 0), and deletions?"""
        return self._insertions, self._deletions

    def live_ids(self) -> Iterable[Ids]:
        return ()

    @property
    def nbytes(self) -> int:
        return 0


class Answers:
    """RSTREAM: the whole answer at each tick, kept as a bag."""

    STATE = ("_bag",)

    def __init__(self, variables: tuple[str, ...]) -> None:
        self._variables = variables
        self._width = len(variables)
        self._bag = KeyTable(self._width)

    def process(self, ticks: Ticks, chunks: Iterable[Delta]) -> Iterator[ResultBatch]:
        tick, held = 0, empty(self._width)
        for (delta,) in in_blocks([chunks], [self._width]):
            if len(held.tick):
                # The next delta may begin with the last tick of this one.
                yield from self._report(ticks, held, tick, last := int(held.tick[-1]))
                tick = last
            held = delta
        yield from self._report(ticks, held, tick, len(ticks))

    def _report(self, ticks: Ticks, delta: Delta, tick: int, end: int) -> Iterator[ResultBatch]:
        """Apply changes, and report the answers at the ticks from `tick` to `end`, up to which these changes go."""
        starts = np.searchsorted(delta.tick, np.arange(end + 1))
        bag, row, rows, room = self._bag, 0, len(delta.tick), _FEWEST_ROWS
        while tick < end:
            made, columns = np.empty(room, np.int32), np.empty((self._width, room), np.int64)
            tick, row, count, waiting = kernel.report_bag(
                tick, end, row, starts, delta.sign, delta.columns, bag.address, made, columns
            )
            if count:
                made = made[:count]
                yield ResultBatch(
                    self._variables, ticks.time[made], np.ones(count, np.int8), tuple(columns[:, :count]), made
                )
            if waiting == kernel.KEYS_FULL:
                # The bag gets room for this many changes, not for a whole step: each tick reads all of it.
                changes = min(max(_FEWEST_CHANGES, bag.live), rows - row)
                bag.ensure(max(changes, int(starts[tick + 1]) - row))
            elif tick < end:
                room = max(int(waiting), min(2 * room, _MOST_ROWS))
        if row < rows and not kernel.count_rows(delta.sign, delta.columns, row, rows, bag.address):
            bag.ensure(rows - row)
            kernel.count_rows(delta.sign, delta.columns, row, rows, bag.address)

    def live_ids(self) -> Iterable[Ids]:
        return (self._bag.live_ids(),)

    def shrink(self) -> None:
        self._bag.compact()

    @property
    def nbytes(self) -> int:
        return self._bag.nbytes
