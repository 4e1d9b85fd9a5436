"""The leaf buffers against lists."""

from __future__ import annotations

import random

import numpy as np
import pytest

from cqels_py.state.leaf_buffer import LeafBuffer, SparseLeafBuffer


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("width", [0, 1, 3])
def test_what_is_kept_is_one_run_in_order(width: int, seed: int) -> None:
    rng = random.Random(seed)
    buffer = LeafBuffer(width, capacity=4)
    model: list[tuple[int, ...]] = []
    number = 0
    for _ in range(200):
        count = rng.choice((0, 1, 2, 9))
        rows = [tuple(100 * number + 10 * i + c for c in range(3)) for i in range(count)]
        number += count
        points = np.array([row[0] for row in rows], np.int64)
        start = buffer.start
        moved = buffer.append(points, np.array(rows, np.int64).reshape(count, 3).T[:width])
        assert buffer.start == start - moved
        model += rows
        gone = rng.randrange(len(model) + 1)
        buffer.start += gone
        del model[:gone]
        assert len(buffer) == len(model)
        assert buffer.points[buffer.start : buffer.end].tolist() == [row[0] for row in model]
        assert buffer.live_ids().T.tolist() == [list(row[:width]) for row in model]


def test_a_place_noted_before_follows_what_append_says() -> None:
    buffer = LeafBuffer(1, capacity=8)
    buffer.append(np.arange(6), np.arange(6)[np.newaxis])
    buffer.start, noted = 4, 5
    noted -= buffer.append(np.arange(6, 12), np.arange(6, 12)[np.newaxis])
    assert buffer.points[noted] == 5


def test_memory_follows_what_is_kept() -> None:
    buffer = LeafBuffer(2, capacity=16)
    for start in range(0, 10_000, 10):
        buffer.append(np.arange(start, start + 10), np.zeros((2, 10), np.int64))
        buffer.start = max(buffer.start, buffer.end - 20)
    assert len(buffer.points) <= 64


def test_a_third_is_free_at_most_and_a_burst_is_forgotten() -> None:
    buffer = LeafBuffer(2, capacity=16)
    buffer.append(np.arange(10_000), np.zeros((2, 10_000), np.int64))
    assert len(buffer.points) == 15_000
    buffer.start = buffer.end - 10
    buffer.append(np.arange(10_000, 15_010), np.zeros((2, 5_010), np.int64))
    assert len(buffer.points) == 7_530
    buffer.start = buffer.end - 20
    buffer.append(np.arange(15_010, 18_000), np.zeros((2, 2_990), np.int64))
    assert len(buffer) == 3_010
    assert len(buffer.points) == 4_515
    assert buffer.points[buffer.start] == 14_990


def test_rows_are_moved_a_constant_number_of_times() -> None:
    """Moving is paid for by what has come since: 10,000 single rows into a buffer of 1,000 move fewer than 4 times as many."""
    buffer = LeafBuffer(0, capacity=16)
    moved = 0
    for point in range(10_000):
        start, kept = buffer.start, len(buffer)
        buffer.append(np.array([point]), np.empty((0, 1), np.int64))
        moved += kept if buffer.start < start else 0
        buffer.start = max(buffer.start, buffer.end - 1000)
    assert 0 < moved < 40_000


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
