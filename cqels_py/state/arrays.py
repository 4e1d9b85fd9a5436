"""The layout of arrays in memory."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

_LINE = 64
_MOST_KEPT = 8 << 20
_Number = TypeVar("_Number", np.int32, np.int64)


def aligned(places: int, dtype: type[_Number]) -> npt.NDArray[_Number]:
    """Zeros, aligned to a cache line, so that a run which begins at a multiple of its length touches as few lines as possible."""
    each = np.dtype(dtype).itemsize
    zeros = np.zeros(places + _LINE // each, dtype)
    return zeros[-zeros.ctypes.data % _LINE // each :][:places]


def longer_aligned(array: npt.NDArray[_Number], places: int, dtype: type[_Number]) -> npt.NDArray[_Number]:
    """The array extended by zeros, aligned."""
    longer = aligned(places, dtype)
    longer[: len(array)] = array
    return longer


def keep_freed_memory() -> None:
    """Let the C library keep the memory of one step's arrays for the next, instead of giving it back to the system.

    glibc trims the free end of its heap once that exceeds twice the largest block that was mapped by itself and freed. With small
    arrays alone, each step would lose its pages and have them cleared again, which took up to a quarter of its time. So a large
    array is allocated and freed once, without being touched.
    """
    np.empty(_MOST_KEPT, np.int8)
