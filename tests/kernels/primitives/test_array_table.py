"""Tables of arrays, read by kernels through their addresses."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from cqels_py.kernels.compiler.jit import jit_flat
from cqels_py.kernels.primitives.array_table import (
    ArrayTable,
    flag_rows,
    flags,
    int32s,
    int64_rows,
    int64s,
    int64s_with,
    uint8_rows,
    uint32s,
    uint32s_with,
)


@jit_flat
def change_all(addresses):
    """Add one to the last element of each array, or invert it."""
    numbers, small, large = int64s(addresses, 0), int32s(addresses, 1), uint32s(addresses, 2)
    rows, bytes_, truths, rows_of_truths = (
        int64_rows(addresses, 3),
        uint8_rows(addresses, 4),
        flags(addresses, 5),
        flag_rows(addresses, 6),
    )
    last = rows.shape[0] - 1, rows.shape[1] - 1
    numbers[len(numbers) - 1] += 1
    small[len(small) - 1] += 1
    large[len(large) - 1] += 1
    rows[last] += 1
    bytes_[len(bytes_) - 1, bytes_.shape[1] - 1] += 1
    truths[len(truths) - 1] = not truths[len(truths) - 1]
    rows_of_truths[len(rows_of_truths) - 1, 0] = not rows_of_truths[len(rows_of_truths) - 1, 0]


@jit_flat
def lengths(addresses, other):
    numbers, more = int64s_with(other, addresses, 0), uint32s_with(other, addresses, 1)
    if other is None:
        return -1
    return 10 * len(numbers) + len(more)


def arrays() -> list[np.ndarray]:
    return [
        np.arange(5), np.arange(3, dtype=np.int32), np.arange(4, dtype=np.uint32), np.arange(6).reshape(2, 3),
        np.zeros((3, 2), np.uint8), np.array([False, True]), np.zeros((2, 1), np.bool_),
    ]  # fmt: skip


def test_kernels_read_and_write_the_arrays_themselves() -> None:
    made, expected = arrays(), arrays()
    array_table = ArrayTable(*made)
    for array in expected:
        array[(-1,) * array.ndim] = not array[-1, 0] if array.ndim == 2 and array.dtype == bool else array.flat[-1] + 1
    expected[5][-1] = False
    change_all(array_table.addresses)
    assert [array.tolist() for array in made] == [array.tolist() for array in expected]


def test_absent_arrays_are_none() -> None:
    array_table = ArrayTable(np.arange(5), np.arange(3, dtype=np.uint32))
    assert lengths(array_table.addresses, 1) == 53
    assert lengths(array_table.addresses, None) == -1


def test_empty_arrays_have_their_shapes() -> None:
    array_table = ArrayTable(np.empty(0, np.int64), np.empty(0, np.uint32))
    assert lengths(array_table.addresses, 1) == 0


def test_a_pickled_table_has_the_addresses_of_the_copied_arrays() -> None:
    made = arrays()
    there, array_table = pickle.loads(pickle.dumps((made, ArrayTable(*made))))
    change_all(array_table.addresses)
    assert there[0].tolist() == [0, 1, 2, 3, 5]
    assert made[0].tolist() == [0, 1, 2, 3, 4]


def test_arrays_live_as_long_as_the_table() -> None:
    array_table = ArrayTable(*arrays())
    np.full(5, 7)
    change_all(array_table.addresses)
    assert array_table.addresses.shape == (7, 3)


def test_arrays_that_are_not_contiguous_are_refused() -> None:
    with pytest.raises(AssertionError):
        ArrayTable(np.arange(10)[::2])
