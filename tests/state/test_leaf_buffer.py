"""The leaf buffers against lists."""

from __future__ import annotations

import random

import numpy as np
import pytest

from cqels_py.kernels.windows import varint_queue as kernel
from cqels_py.state.leaf_buffer import LeafBuffer, SparseLeafBuffer


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("width", [0, 1, 3])
def test_mappings_enter_and_leave_by_their_points(width: int, seed: int) -> None:
    rng = random.Random(seed)
    buffer = LeafBuffer(width, capacity=4)
    waiting: list[tuple[int, ...]] = []
    model: list[tuple[int, ...]] = []
    # Gaps of one byte, of some, and of all that a point can have.
    farthest = rng.choice((2, 300, 2**40))
    point = rng.choice((0, -(2**50), 2**62))
    for _ in range(200):
        rows = []
        for _ in range(rng.choice((0, 1, 2, 9))):
            point += rng.randrange(farthest) * rng.randrange(2)
            rows.append((point, rng.randrange(100), rng.randrange(100)))
        buffer.append(np.array([row[0] for row in rows], np.int64), columns_of(rows, width))
        model += rows
        waiting += rows
        entering = rng.choice([point - rng.randrange(2 * farthest), *(row[0] for row in waiting[:3])])
        enter = [row for row in waiting if row[0] <= entering]
        first = buffer.entered
        assert buffer.enter(entering).tolist() == [row[0] for row in enter]
        assert buffer.ids(first, buffer.entered).tolist() == columns_of(enter, width).tolist()
        del waiting[: len(enter)]
        assert not waiting or buffer.first_to_enter == waiting[0][0]
        leaving = rng.choice([entering - 4 * farthest, *(row[0] - 1 for row in waiting[:1])])
        leave = [row for row in model if row[0] <= leaving]
        assert buffer.expire(leaving).tolist() == [row[0] for row in leave]
        del model[: len(leave)]
        assert not model or buffer.oldest == model[0][0]
        assert len(buffer) == len(model)
        assert buffer.live_ids().tolist() == columns_of(model, width).tolist()


def columns_of(rows: list[tuple[int, ...]], width: int) -> np.ndarray:
    return np.array(rows, np.int64).reshape(len(rows), 3).T[:width]


def no_ids(points: int) -> np.ndarray:
    return np.zeros((2, points), np.int64)


def test_a_number_stays_that_of_its_mapping() -> None:
    buffer = LeafBuffer(1, capacity=8)
    buffer.append(np.arange(6), np.arange(6)[np.newaxis])
    buffer.expire(3)
    for first in (6, 12, 24):
        buffer.append(np.arange(first, 2 * first), np.arange(first, 2 * first)[np.newaxis])
        assert buffer.ids(5, 2 * first)[0].tolist() == list(range(5, 2 * first))


def test_a_full_window_needs_no_more_room() -> None:
    """Of points that follow each other each takes a byte beside its ids."""
    buffer = LeafBuffer(2, capacity=16)
    for start in range(0, 10_000, 10):
        buffer.append(np.arange(start, start + 10), no_ids(10))
        buffer.expire(start + 9 - 20)
    assert buffer.nbytes <= 30 * 9 // 8 * 2 * 8 + (30 + kernel.MOST_BYTES * 10) * 9 // 8


def test_a_burst_is_forgotten() -> None:
    buffer = LeafBuffer(2, capacity=16)
    buffer.append(np.arange(10_000), no_ids(10_000))
    assert 10_000 * 17 < buffer.nbytes < 11_250 * 2 * 8 + 12_900
    buffer.expire(8_499)
    buffer.append(np.arange(10_000, 11_000), no_ids(1_000))
    assert buffer.nbytes < 2_812 * 2 * 8 + 12_900
    for point in range(11_000, 13_000):
        buffer.expire(point - 101)
        buffer.append(np.array([point]), no_ids(1))
    assert buffer.nbytes < 150 * 2 * 8 + 150
    assert len(buffer) == 101
    assert buffer.expire(12_898).tolist() == []
    assert buffer.oldest == 12_899


def test_rows_are_moved_a_constant_number_of_times() -> None:
    """Growing to 10,000 rows, one at a time, lays out as often as an eighth more each time says, and a full window never."""
    buffer = LeafBuffer(1, capacity=16)
    sizes = []
    for point in range(40_000):
        buffer.append(np.array([point]), np.zeros((1, 1), np.int64))
        buffer.expire(point - 10_000)
        sizes.append(buffer.nbytes)
    changes = np.flatnonzero(np.diff(sizes))
    assert len(changes) < 120
    assert changes.max() < 10_000


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("width", [0, 1, 3])
def test_mappings_leave_by_their_points_in_any_order(width: int, seed: int) -> None:
    rng = random.Random(seed)
    buffer = SparseLeafBuffer(width, capacity=4)
    model: dict[int, list[tuple[int, ...]]] = {}
    for point in range(300):
        rows = [(point, rng.randrange(9), i) for i in range(rng.choice((0, 1, 1, 3)))]
        model[point] = [row[:width] for row in rows]
        buffer.append(np.full(len(rows), point), np.array(rows, np.int64).reshape(len(rows), 3).T[:width])
        gone = sorted(rng.sample(sorted(model), rng.randrange(min(len(model), 4))))
        places, which = buffer.places_of(np.array(gone, np.int64))
        assert [gone[i] for i in which] == [point for point in gone for _ in model[point]]
        assert buffer.columns[:, places].T.tolist() == [list(row) for point in gone for row in model.pop(point)]
        buffer.release(places)
        assert len(buffer) == sum(map(len, model.values()))
        assert buffer.live_ids().T.tolist() == [list(row) for rows in model.values() for row in rows]


def test_memory_follows_what_is_kept_however_long_the_oldest_stays() -> None:
    buffer = SparseLeafBuffer(2, capacity=16)
    for start in range(0, 10_000, 10):
        buffer.append(np.arange(start, start + 10), np.zeros((2, 10), np.int64))
        places, _ = buffer.places_of(np.arange(max(start - 10, 1), max(start, 1)))
        buffer.release(places)
    assert len(buffer.points) <= 64
