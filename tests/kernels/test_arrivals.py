"""One pass over arrivals, beside what it says."""

from __future__ import annotations

import numpy as np
import pytest

from cqels_py.kernels import arrivals as kernel


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


@pytest.mark.parametrize("later", [0, 1, 30])
@pytest.mark.parametrize("instants", [0, 1, 4, 200])
@pytest.mark.parametrize("points", [0, 1, 7, 300])
def test_places_of_points_among_instants(points: int, instants: int, later: int) -> None:
    rng = np.random.default_rng(points + instants + later)
    for furthest in (10, 5_000):
        there, asked = (np.sort(rng.integers(0, furthest, count)) for count in (instants, points))
        place = np.empty(points, np.int32)
        kernel.places_of(there, asked, later, place)
        assert place.tolist() == np.searchsorted(there, asked + later).tolist()


@pytest.mark.parametrize("first", [[0], [0, 1, 2, 3], [0, 2, 2, 3]])
def test_the_element_of_each_triple(first: list[int]) -> None:
    element = np.empty(first[-1], np.int64)
    kernel.elements_of_triples(np.array(first), element)
    assert element.tolist() == np.repeat(np.arange(len(first) - 1), np.diff(first)).tolist()
