"""Columns of deltas that are put together, or made smaller."""

from __future__ import annotations

import numpy as np
import pytest

from cqels_py.batches.delta import first_rows


@pytest.mark.parametrize("width", [0, 1, 2, 3])
@pytest.mark.parametrize(
    ("room", "made"), [(10, 0), (10, 1), (10, 5), (10, 9), (10, 10), (130, 64), (130, 65), (130, 129)]
)
def test_the_first_rows_of_a_buffer(width: int, room: int, made: int) -> None:
    tick, sign = np.arange(room, dtype=np.int32), np.ones(room, np.int8)
    columns = np.arange(width * room).reshape(width, room)
    wanted = columns[:, :made].tolist()
    delta = first_rows(tick, sign, columns, made)
    assert delta.columns.tolist() == wanted
    assert delta.columns.shape == (width, made)
    assert delta.columns.flags.c_contiguous
    assert delta.tick.tolist() == list(range(made)) and len(delta.sign) == made


@pytest.mark.parametrize(
    ("room", "made", "within"), [(100, 90, True), (100, 100, True), (100, 40, False), (10, 10, True), (10, 9, False)]
)
def test_a_small_part_of_a_buffer_does_not_keep_all_of_it(room: int, made: int, within: bool) -> None:
    columns = np.arange(2 * room).reshape(2, room)
    delta = first_rows(np.zeros(room, np.int32), np.ones(room, np.int8), columns, made)
    assert np.shares_memory(delta.columns, columns) == within
