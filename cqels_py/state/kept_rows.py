"""Rows that are kept from step to step, in an array with room for more, so that entries of programs can add to them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cqels_py.kernels.primitives.state_record import StateArray, StateRecord
from cqels_py.kernels.structures import kept_rows as record

Int64 = npt.NDArray[np.int64]
_ROOM = 128
_MOST_SPARE = 1 << 16
"""Rows of room that are kept although few of them are used."""


class KeptRows(StateRecord):
    """`rows` (n, width), at first none. When they have been set there is room for 128 more."""

    _rows = StateArray[np.int64](record.ROWS)
    _count = StateArray[np.int64](record.COUNT)

    def __init__(self, width: int) -> None:
        self._rows, self._count = np.zeros((_ROOM, width), np.int64), np.zeros(1, np.int64)

    @property
    def rows(self) -> Int64:
        """The rows, not copied."""
        return self._rows[: self._count.item()]

    @rows.setter
    def rows(self, rows: Int64) -> None:
        count, room = len(rows), len(self._rows)
        if count + _ROOM > room or room > max(_MOST_SPARE, 8 * count):
            other = np.zeros((2 * count + _ROOM, self._rows.shape[1]), np.int64)
            other[:count] = rows
            self._rows = other
        else:
            # They may be some of those that are here.
            self._rows[:count] = rows
        self._count[0] = count

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self._rows.nbytes
