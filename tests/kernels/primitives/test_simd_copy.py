"""Fixed numbers of values written at once."""

from __future__ import annotations

import numpy as np
import pytest

from cqels_py.kernels.compiler.jit import jit
from cqels_py.kernels.primitives.simd_copy import VECTOR_LENGTH, copy_vector, fill_vector


@jit
def fill(array, index, value):  # type: ignore[no-untyped-def]
    fill_vector(array, np.uint64(index), value)


@jit
def copy(to, index, ring, first, start, mask):  # type: ignore[no-untyped-def]
    copy_vector(to, np.uint64(index), ring, np.uint64(first), np.uint64(start), np.uint64(mask))


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.int8])
@pytest.mark.parametrize("index", [0, 1, 7])
def test_a_vector_is_filled_with_one_value(dtype: type[np.signedinteger], index: int) -> None:
    array = np.zeros(VECTOR_LENGTH + 9, dtype)
    fill(array, index, dtype(-3))
    wanted = np.zeros(VECTOR_LENGTH + 9, dtype)
    wanted[index : index + VECTOR_LENGTH] = -3
    assert array.tolist() == wanted.tolist()


@pytest.mark.parametrize("size", [1, 4, 16, 64])
@pytest.mark.parametrize("start", [0, 1, 15, 63])
def test_a_copy_wraps_around_the_end_of_a_circular_buffer(size: int, start: int) -> None:
    ring = np.arange(100, 200)
    to = np.zeros(VECTOR_LENGTH + 5, np.int64)
    copy(to, 3, ring, 32, start % size, size - 1)
    wanted = [132 + (start + i) % size for i in range(VECTOR_LENGTH)]
    assert to.tolist() == [0, 0, 0, *wanted, 0, 0]
