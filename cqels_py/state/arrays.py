"""How arrays lie in memory."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

_LINE = 64
_MOST_KEPT = 8 << 20
_Number = TypeVar("_Number", np.int32, np.int64)


def aligned(places: int, dtype: type[_Number]) -> npt.NDArray[_Number]:
    """Zeros that begin with a line of the processor's cache: no run that begins at a multiple of its length is in more lines than
    it need be."""
    each = np.dtype(dtype).itemsize
    zeros = np.zeros(places + _LINE // each, dtype)
    return zeros[-zeros.ctypes.data % _LINE // each :][:places]


def longer_aligned(array: npt.NDArray[_Number], places: int, dtype: type[_Number]) -> npt.NDArray[_Number]:
    """The array with zeros behind it, aligned."""
    longer = aligned(places, dtype)
    longer[: len(array)] = array
    return longer


def keep_freed_memory() -> None:
    """Have the process keep some of the memory that arrays of a step leave for those of the next.

    The C library gives what is free at the end of its heap back to the system as soon as that is twice the largest array which it
    ever had from there by itself and freed. Where all are small, steps would lose it and have every page of it cleared again, which
    took up to a quarter of their time. So one is asked for and freed, without being touched.
    """
    np.empty(_MOST_KEPT, np.int8)
