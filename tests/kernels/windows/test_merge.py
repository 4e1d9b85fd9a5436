"""Merging runs of rows that are ordered by tick."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cqels_py.kernels.windows.merge import merge_by_tick, merge_rows

TICKS = st.integers(0, 9) | st.integers(0, 1_000)
RUNS = st.lists(st.lists(TICKS, max_size=6).map(sorted), min_size=1, max_size=4)


def flat(runs: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    starts = np.cumsum([0, *map(len, runs)]).astype(np.int64)
    return np.array([tick for run in runs for tick in run], np.int32), starts


def expected(runs: list[list[int]]) -> list[tuple[int, int, int]]:
    """(tick, run, position in all) in the order of ticks, then of runs."""
    ticks, starts = flat(runs)
    rows = [(int(ticks[i]), r, int(i)) for r in range(len(runs)) for i in range(starts[r], starts[r + 1])]
    return sorted(rows)


@given(RUNS)
def test_positions(runs: list[list[int]]) -> None:
    ticks, starts = flat(runs)
    order = np.empty(len(ticks), np.int64)
    merge_by_tick(ticks, starts, order)
    assert order.tolist() == [i for _, _, i in expected(runs)]


@given(RUNS)
def test_rows(runs: list[list[int]]) -> None:
    ticks, starts = flat(runs)
    n = len(ticks)
    slots = np.arange(100, 100 + n, dtype=np.int32)
    signs = np.where(np.arange(n) % 3 == 0, -1, 1).astype(np.int8)
    port, slot, tick = (np.empty(n, np.int32) for _ in range(3))
    sign = np.empty(n, np.int8)
    merge_rows(ticks, signs, slots, starts, port, slot, tick, sign)
    found = list(zip(tick.tolist(), port.tolist(), slot.tolist(), sign.tolist(), strict=True))
    assert found == [(t, r, 100 + i, int(signs[i])) for t, r, i in expected(runs)]
