"""References within a state are preserved when it is read back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.pickles import copied


class Table:
    """As kernels and their owners have it: one memory, two ways to see it."""

    def __init__(self, table: Any) -> None:
        self.table = table
        self.flat = table.reshape(-1)
        self.row = table[1, ::2]


def again(state: Any) -> Any:
    return copied(state)


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8, np.float64])
def test_views_stay_views(dtype: Any) -> None:
    table = Table(np.arange(12).astype(dtype).reshape(3, 4).copy())
    for _ in range(3):
        table = again(table)
        table.flat[5] += 1
        assert table.table[1, 1] == table.flat[5]
        table.table[1, 2] += 5
        assert table.flat[6] == table.table[1, 2] == table.row[1]
    assert table.table.ravel().tolist() == [0, 1, 2, 3, 4, 8, 21, 7, 8, 9, 10, 11]
    assert table.flat.flags.c_contiguous
    assert table.flat.flags.writeable
    assert table.flat.flags.aligned


def test_the_array_itself_may_come_after_its_view() -> None:
    owner = np.zeros(4, np.int64)
    view, found = again((owner[1:3], owner))
    view[0] = 7
    assert found.tolist() == [0, 7, 0, 0]


def test_columns_first() -> None:
    owner = np.asfortranarray(np.arange(6).reshape(2, 3))
    found, column, transposed = again((owner, owner[:, 1], owner.T))
    column[0] = 50
    assert found.tolist() == [[0, 50, 2], [3, 4, 5]]
    assert transposed[1].tolist() == [50, 4]


def test_what_is_no_view_is_written_as_ever() -> None:
    state = {"numbers": np.arange(3), "names": np.array(["a", None], object), "nothing": np.zeros((0, 3)), "text": "x"}
    found = again(state)
    assert found["numbers"].tolist() == [0, 1, 2]
    assert found["names"].tolist() == ["a", None]
    assert found["nothing"].shape == (0, 3)
    assert found["text"] == "x"


def test_an_empty_view_into_the_middle_of_an_empty_array() -> None:
    """As a column of a table without rows."""
    table = np.empty((0, 2), np.int64)
    found = copied((table, table[:, 1]))[1]
    assert (found.shape, found.dtype) == ((0,), np.dtype(np.int64))
