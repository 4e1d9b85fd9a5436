"""The sessions of each value against plain lists of units."""

from __future__ import annotations

import random

import numpy as np
import pytest

from cqels_py.state.sessions_by_value import SessionsByValue

Value = tuple[int, ...]
Came = list[tuple[int, int, list[Value]]]
"""Units: number, time, values."""


def ends(came: Came, gap: int) -> dict[int, int]:
    """When each unit leaves, if nothing more comes: at the end of the last of its values' sessions."""
    found: dict[int, int] = {}
    for value in {value for _, _, values in came for value in values}:
        mine = [(unit, time) for unit, time, values in came if value in values]
        end = 0
        for place in reversed(range(len(mine))):
            unit, time = mine[place]
            if place + 1 == len(mine) or mine[place + 1][1] - time > gap:
                end = time + gap
            found[unit] = max(found.get(unit, 0), end)
    return found


@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize("seed", range(15))
def test_units_leave_when_the_last_session_of_their_values_ends(width: int, seed: int) -> None:
    rng = random.Random(seed)
    gap, different = rng.choice([1, 2, 5, 30]), rng.choice([2, 5, 400])
    sessions, came, gone = SessionsByValue(width, gap), Came(), dict[int, int]()
    number, time = 0, 100
    for _ in range(12):
        first = len(came)
        for _ in range(rng.choice([0, 1, 2, 60])):
            number, time = number + rng.choice([1, 1, 4]), time + rng.choice([0, 0, 1, 2, 9])
            values = [tuple(rng.randrange(different) for _ in range(width)) for _ in range(rng.choice([1, 1, 2, 4]))]
            came.append((number, time, values))
        rows = [(unit, at, value) for unit, at, values in came[first:] for value in values]
        through = time + rng.choice([-1, -1, 0, 3])
        columns = np.array([value for _, _, value in rows], np.int64).reshape(len(rows), width).T.copy()
        unit, at = np.array([row[0] for row in rows], np.int64), np.array([row[1] for row in rows], np.int64)
        left, left_at = sessions.keep(unit, at, columns, through)
        assert (np.diff(left_at) >= 0).all()
        gone |= dict(zip(left.tolist(), left_at.tolist(), strict=True))
        assert gone == {unit: end for unit, end in ends(came, gap).items() if end <= through}
        time = max(time, through + 1)


def test_what_is_kept_follows_from_the_sessions_not_from_the_stream() -> None:
    """Each value comes once: a session has ten units at most."""
    sessions = SessionsByValue(1, 10)
    sizes = []
    for start in range(1, 8_001, 40):
        unit = np.arange(start, start + 40)
        sessions.keep(unit, unit, unit[np.newaxis], start + 39)
        sizes.append(sessions.nbytes)
    assert sizes[-1] == sizes[10]
