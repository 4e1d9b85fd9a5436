"""Ids without most of their repetitions, compared with plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqels_py.kernels.rows.repeats import find_repeats


def found(ids: list[int], room: int) -> tuple[list[int], list[int]]:
    recent, places = np.zeros(room, np.int64), np.full(room, -1, np.int32)
    positions, different = np.zeros(len(ids), np.int32), np.zeros(len(ids), np.int64)
    count = find_repeats(np.array(ids, np.int64), recent, places, positions, different)
    return different[:count].tolist(), positions.tolist()


@pytest.mark.parametrize("room", [1, 4, 1024])
@given(ids=st.lists(st.one_of(st.integers(-3, 9), st.integers(-(2**63), 2**63 - 1))))
def test_each_id_is_at_its_position(room: int, ids: list[int]) -> None:
    different, positions = found(ids, room)
    assert [different[position] for position in positions] == ids
    if room == 1:
        # One id is remembered: only those that follow it at once are told.
        assert different == [each for at, each in enumerate(ids) if not at or ids[at - 1] != each]


def test_a_few_ids_are_written_once() -> None:
    ids = [7, 8, 7, 0, 8, 0, 7] * 30
    different, _ = found(ids, 1024)
    assert sorted(different) == [0, 7, 8]
