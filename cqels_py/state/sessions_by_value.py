"""The units of each value's session, for SESSION with PARTITION BY: the arrays of `kernels.windows.partition`, and their growth."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cqels_py.kernels.windows import partition as kernel
from cqels_py.state.key_table import KeyTable
from cqels_py.state.last_by_value import grown

Int64 = npt.NDArray[np.int64]

_SMALLEST = 64


class SessionsByValue:
    """For each value (a row of `width` ids) the units since it last was quiet for `gap` microseconds. A unit may have several
    values. A value whose session has ended is forgotten.
    """

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
        self._ensure(len(unit))
        left, left_at = np.empty((2, int(self._places[kernel.SLOTS]) + len(unit)), np.int64)
        values = self._values
        made = kernel.keep_sessions(
            unit, time, columns, values.width, self._gap, through, values.table, values.mask, values.keys, values.counts,
            values.free, values.meta, self._ends, self._last[0], self._nodes, self._slots, self._places, self._awaited, left,
            left_at,
        )  # fmt: skip
        return left[:made], left_at[:made]

    def _ensure(self, count: int) -> None:
        if self._values.ensure(count):
            self._ends = grown(self._ends, self._values.capacity)
            self._last = grown(self._last, self._values.capacity)
        self._nodes = grown(self._nodes, int(self._places[kernel.NODES]) + count)
        self._slots = grown(self._slots, int(self._places[kernel.SLOTS]) + count)
        head, tail = int(self._places[kernel.HEAD]), int(self._places[kernel.TAIL])
        if tail + count > self._awaited.shape[1]:
            # The cost of a move is at most a constant for each row since the last one.
            moved = grown(self._awaited, 2 * (tail - head + count))
            moved[:, : tail - head] = self._awaited[:, head:tail].copy()
            self._awaited = moved
            self._places[[kernel.HEAD, kernel.TAIL]] = 0, tail - head

    def live_ids(self) -> Int64:
        return self._values.live_ids()

    @property
    def nbytes(self) -> int:
        arrays = (self._ends, self._last, self._nodes, self._slots, self._awaited)
        return self._values.nbytes + sum(array.nbytes for array in arrays)
