"""The layout of arrays in memory."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

_LINE = 64
_MOST_KEPT = 8 << 20
SHRINK_FROM = 4
"""Arrays shrink where they would be no longer than this part (1/n) of what they are: to grow again costs less than was saved, as
their owners are asked once in many rows, or when all of the arrays is written anyway."""
_Number = TypeVar("_Number", np.int32, np.int64, np.uint32)


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


def rows_of(array: npt.NDArray[_Number], rows: npt.NDArray[np.int64], of: int, places: int) -> npt.NDArray[_Number]:
    """These rows of an array with as many words for each of `of` rows, in an aligned one with room for `places` rows."""
    words = len(array) // of
    fewer = aligned(places * words, array.dtype.type)
    fewer[: len(rows) * words] = array.reshape(of, words)[rows].reshape(-1)
    return fewer


def new_numbers(kept: npt.NDArray[np.int64], before: int) -> npt.NDArray[np.int64]:
    """By former number, of which there were `before`, the new one: `kept` are renumbered from 0 on, others have no meaning."""
    numbers = np.zeros(before, np.int64)
    numbers[kept] = np.arange(len(kept))
    return numbers


def keep_freed_memory() -> None:
    """Let the C library keep the memory of one step's arrays for the next, instead of giving it back to the system.

    glibc trims the free end of its heap once that exceeds twice the largest block that was mapped by itself and freed. With small
    arrays alone, each step would lose its pages and have them cleared again, which took up to a quarter of its time. So a large
    array is allocated and freed once, without being touched.
    """
    np.empty(_MOST_KEPT, np.int8)
