"""One pass over arrivals, beside what it says."""

from __future__ import annotations

import numpy as np
import pytest

from cqels_py.kernels import arrivals as kernel


@pytest.mark.parametrize("seed", range(5))
def test_instants_are_merged_by_phase(seed: int) -> None:
    rng = np.random.default_rng(seed)
    expiry, boundary = (np.unique(rng.integers(0, 30, 12)) for _ in range(2))
    arrival = np.sort(rng.integers(0, 30, 15))
    instant = np.empty(len(expiry) + len(arrival) + len(boundary), np.int64)
    place = np.empty(len(arrival), np.int32)
    count = kernel.merge_instants(expiry, arrival, boundary, instant, place)
    expected = sorted(
        [(int(t), 0) for t in expiry if t not in arrival]
        + [(int(t), 1) for t in arrival]
        + [(int(t), 2) for t in boundary]
    )
    assert instant[:count].tolist() == [t for t, _ in expected]
    assert place.tolist() == [k for k, (_, phase) in enumerate(expected) if phase == 1]


def test_elements_and_triples_by_stream() -> None:
    first, stream = np.array([0, 2, 3, 3, 5]), np.array([1, 0, 1, 1], np.int32)
    element_start, triple_start = np.zeros(3, np.int64), np.zeros(3, np.int64)
    elements, element, by_stream, number = np.empty(4, np.int64), *np.empty((3, 5), np.int64)
    counts = np.array([10, 20])
    kernel.split_by_stream(first, stream, element_start, triple_start, elements, element, by_stream, number, counts)
    assert element_start.tolist() == [0, 1, 4]
    assert elements.tolist() == [1, 0, 2, 3]
    assert triple_start.tolist() == [0, 1, 5]
    assert by_stream.tolist() == [1, 0, 0, 3, 3]
    assert element.tolist() == [0, 0, 1, 3, 3]
    assert number.tolist() == [21, 22, 11, 23, 24]
    assert counts.tolist() == [11, 24]


def test_every_third_element_is_a_tick() -> None:
    stream = np.array([0, 1, 0, 0, 1, 0, 0], np.int32)
    counts, number, rank = np.array([2, 0]), np.empty(7, np.int64), np.empty(7, np.int32)
    eager = np.array([False, True])
    ticks = kernel.number_elements(stream, counts, eager, np.array([0]), np.array([3]), number, rank)
    assert ticks == 4
    assert number.tolist() == [3, 1, 4, 5, 2, 6, 7]
    assert rank.tolist() == [0, 1, -1, -1, 2, 3, -1]
    assert counts.tolist() == [7, 2]


def test_places_before_and_through() -> None:
    instants, points = np.array([1, 3, 3, 7]), np.array([0, 3, 5, 7, 9])
    before, through = np.empty(5, np.int32), np.empty(5, np.int32)
    kernel.places_of(instants, points, False, before)
    kernel.places_of(instants, points, True, through)
    assert before.tolist() == np.searchsorted(instants, points).tolist()
    assert through.tolist() == np.searchsorted(instants, points, side="right").tolist()
