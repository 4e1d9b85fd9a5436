"""Rows that entries of programs add to: their array has room, and keeps them while it grows and shrinks."""

from __future__ import annotations

import numpy as np

from cqels_py.state.kept_rows import KeptRows


def test_rows_stay_while_there_come_more_and_fewer() -> None:
    kept, rows = KeptRows(2), np.arange(2 * 300_000).reshape(-1, 2)
    assert kept.rows.shape == (0, 2)
    for count in (5, 3, 200, 300_000, 299_000, 1, 0, 7):
        kept.rows = rows[:count]
        assert (kept.rows == rows[:count]).all()
        assert len(kept._rows) >= count + 128


def test_the_last_of_its_own_rows_are_kept() -> None:
    kept, rows = KeptRows(1), np.arange(100).reshape(-1, 1)
    kept.rows = rows
    kept.rows = kept.rows[30:]
    assert (kept.rows == rows[30:]).all()


def test_room_for_many_rows_is_given_up() -> None:
    kept = KeptRows(1)
    least = kept.nbytes
    kept.rows = np.zeros((200_000, 1), np.int64)
    kept.rows = np.zeros((3, 1), np.int64)
    assert kept.nbytes < least + 1_000
