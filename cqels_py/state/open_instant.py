"""Rows of instants that have not ended: at the end of a step, those of the last instant alone."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cqels_py.kernels.primitives.state_record import StateArray, StateRecord
from cqels_py.kernels.structures import open_instant as record

Int64 = npt.NDArray[np.int64]
_FIRST_ROOM = 64


class OpenInstant(StateRecord):
    """Rows in order of time, with `width` values each, until their instant has ended. Its arrays grow and never shrink."""

    _rows = StateArray[np.int64](record.ROWS)
    _counts = StateArray[np.int64](record.COUNT)
    STATE = ("_rows", "_count")

    def __init__(self, width: int) -> None:
        self._rows = np.zeros((1 + width, _FIRST_ROOM), np.int64)
        self._counts = np.zeros(1, np.int64)

    @property
    def _count(self) -> int:
        return self._counts.item()

    @_count.setter
    def _count(self, count: int) -> None:
        self._counts[0] = count

    def add(self, times: Int64, values: Int64) -> None:
        """Rows behind those that wait: `times` (n), `values` (width, n)."""
        first, last = self._count, self._count + len(times)
        if last > self._rows.shape[1]:
            larger = np.zeros((len(self._rows), 1 << (last - 1).bit_length()), np.int64)
            larger[:, :first] = self._rows[:, :first]
            self._rows = larger
        self._rows[0, first:last], self._rows[1:, first:last] = times, values
        self._count = last

    def take_through(self, instant: int) -> tuple[Int64, Int64]:
        """Take out the rows up to this instant: their times (n) and values (width, n)."""
        count = int(np.searchsorted(self._rows[0, : self._count], instant, side="right"))
        taken = self._rows[:, :count].copy()
        rest = self._count - count
        self._rows[:, :rest] = self._rows[:, count : self._count].copy()
        self._count = rest
        return taken[0], taken[1:]

    def live_ids(self) -> Int64:
        """The values of the rows that wait."""
        return self._rows[1:, : self._count].reshape(-1)

    @property
    def nbytes(self) -> int:
        return self._rows.nbytes
