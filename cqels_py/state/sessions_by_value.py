"""The units of each value's session, for SESSION with PARTITION BY: the arrays of `kernels.windows.partition`, and their growth."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cqels_py.event_time.windows import NEVER
from cqels_py.kernels.primitives.state_record import StateArray, StateRecord
from cqels_py.kernels.windows import partition as kernel
from cqels_py.state.arrays import new_numbers
from cqels_py.state.key_table import KeyTable
from cqels_py.state.last_by_value import grown, kept_lists

Int64 = npt.NDArray[np.int64]

_SMALLEST = 64


class SessionsByValue(StateRecord):
    """For each value (a row of `width` ids) the units since it last was quiet for `gap` microseconds. A unit may have several
    values. A value whose session has ended is forgotten.
    """

    _slots = StateArray[np.int64](kernel.UNITS)
    _places = StateArray[np.int64](kernel.PLACES)
    _ends = StateArray[np.int64](kernel.ENDS)
    _nodes = StateArray[np.int64](kernel.NODES)
    _last = StateArray[np.int64](kernel.LAST)
    _awaited = StateArray[np.int64](kernel.AWAITED)
    STATE = ("_values", "_ends", "_last", "_nodes", "_slots", "_awaited", "_places")

    def __init__(self, width: int, gap: int) -> None:
        self._gap = gap
        self._values = KeyTable(width)
        self._ends = np.zeros((2, self._values.capacity), np.int64)
        self._last = np.zeros((1, self._values.capacity), np.int64)
        self._nodes = np.zeros((2, _SMALLEST), np.int64)
        self._slots = np.zeros((2, _SMALLEST), np.int64)
        self._awaited = np.zeros((2, _SMALLEST), np.int64)
        self._places = np.array([0, -1, 0, -1, 0, 0], np.int64)

    def keep(self, unit: Int64, time: Int64, columns: Int64, through: int) -> tuple[Int64, Int64]:
        """Take in units: `unit` (n) numbers, `time` (n) of their arrival, both not falling, `columns` (width, n) their values, a row
        for each value of each unit. Then sessions end whose ends are at `through` at most.

        Returns the numbers of the units that expire, and when each of them does, in that order.
        """
        left, left_at = np.empty((2, int(self._places[kernel.SLOT_COUNT]) + len(unit)), np.int64)
        arguments = self.address, self._values.address, unit, time, columns, self._gap, through, left, left_at
        while (made := kernel.keep_sessions(*arguments)) == kernel.SHORT:
            self._make_room(len(unit))
        return left[:made], left_at[:made]

    @property
    def first_end(self) -> int:
        """No session ends before this instant."""
        head, tail = self._places[[kernel.HEAD, kernel.TAIL]].tolist()
        return self._awaited.item(kernel.TIME, head) + self._gap if head < tail else NEVER

    def _make_room(self, count: int) -> None:
        if self._values.ensure(count):
            self._ends = grown(self._ends, self._values.capacity)
            self._last = grown(self._last, self._values.capacity)
        self._nodes = grown(self._nodes, int(self._places[kernel.NODE_COUNT]) + count)
        self._slots = grown(self._slots, int(self._places[kernel.SLOT_COUNT]) + count)
        head, tail = int(self._places[kernel.HEAD]), int(self._places[kernel.TAIL])
        if tail + count > self._awaited.shape[1]:
            # The cost of a move is at most a constant for each row since the last one.
            moved = grown(self._awaited, 2 * (tail - head + count))
            moved[:, : tail - head] = self._awaited[:, head:tail].copy()
            self._awaited = moved
            self._places[[kernel.HEAD, kernel.TAIL]] = 0, tail - head

    def shrink(self) -> None:
        """Give back room, between two steps, after sessions have become much fewer."""
        before, kept = self._values.capacity, self._values.compact()
        if kept is None:
            return
        head, tail = self._places[[kernel.HEAD, kernel.TAIL]].tolist()
        awaited = self._awaited[:, head:tail]
        # Rows of values whose sessions have ended are passed over anyway.
        awaited = awaited.compress(np.isin(awaited[kernel.ENTRY], kept), axis=1)
        awaited[kernel.ENTRY] = new_numbers(kept, before)[awaited[kernel.ENTRY]]
        self._awaited = grown(awaited, max(_SMALLEST, awaited.shape[1]))
        self._places[[kernel.HEAD, kernel.TAIL]] = 0, awaited.shape[1]
        self._last = grown(self._last.take(kept, axis=1), self._values.capacity)
        self._ends, self._nodes, self._slots = kept_lists(
            self._ends.take(kept, axis=1), self._nodes, self._slots, self._places
        )
        self._ends = grown(self._ends, self._values.capacity)

    def live_ids(self) -> Int64:
        return self._values.live_ids()

    @property
    def nbytes(self) -> int:
        arrays = (self._ends, self._last, self._nodes, self._slots, self._awaited)
        return self._values.nbytes + sum(array.nbytes for array in arrays)
