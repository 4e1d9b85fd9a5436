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
        buffer.append(points, np.array(rows, np.int64).reshape(count, 3).T[:width])
        model += rows
        gone = rng.randrange(len(model) + 1)
        buffer.start += gone
        del model[:gone]
        assert len(buffer) == len(model)
        assert buffer.points(buffer.start, buffer.end).tolist() == [row[0] for row in model]
        if model:
            chosen = rng.randrange(len(model))
            assert buffer.point(buffer.start + chosen) == model[chosen][0]
            assert buffer.cut(model[chosen][0], buffer.start) == buffer.start + chosen + 1
        assert buffer.live_ids().T.tolist() == [list(row[:width]) for row in model]


def test_a_number_stays_that_of_its_mapping() -> None:
    buffer = LeafBuffer(1, capacity=8)
    buffer.append(np.arange(6), np.arange(6)[np.newaxis])
    buffer.start = 4
    for first in (6, 12, 24):
        buffer.append(np.arange(first, 2 * first), np.arange(first, 2 * first)[np.newaxis])
        columns, place = buffer.run(5, 2 * first)
        assert columns[0, place : place + 2 * first - 5].tolist() == list(range(5, 2 * first))


def test_a_full_window_needs_no_more_room() -> None:
    buffer = LeafBuffer(2, capacity=16)
    for start in range(0, 10_000, 10):
        buffer.append(np.arange(start, start + 10), np.zeros((2, 10), np.int64))
        buffer.start = max(buffer.start, buffer.end - 20)
    assert buffer.nbytes <= 30 * 9 // 8 * 3 * 8


def test_a_burst_is_forgotten() -> None:
    buffer = LeafBuffer(2, capacity=16)
    buffer.append(np.arange(10_000), np.zeros((2, 10_000), np.int64))
    assert buffer.nbytes == 11_250 * 3 * 8
    buffer.start = buffer.end - 1_500
    buffer.append(np.arange(10_000, 11_000), np.zeros((2, 1_000), np.int64))
    assert buffer.nbytes == 2_812 * 3 * 8
    assert len(buffer) == 2_500
    assert buffer.point(buffer.start) == 8_500


def test_rows_are_moved_a_constant_number_of_times() -> None:
    """Growing to 10,000 rows, one at a time, lays out as often as an eighth more each time says, and a full window never."""
    buffer = LeafBuffer(0, capacity=16)
    sizes = []
    for point in range(40_000):
        buffer.append(np.array([point]), np.empty((0, 1), np.int64))
        buffer.start = max(buffer.start, buffer.end - 10_000)
        sizes.append(buffer.nbytes)
    changes = np.flatnonzero(np.diff(sizes))
    assert len(changes) < 60
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
