"""The passes over arrivals, against their specification in plain Python."""

from __future__ import annotations

import numpy as np
import pytest

from cqels_py.kernels.windows import arrivals as kernel


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


@pytest.mark.parametrize("first", [[0], [0, 1, 2, 3], [0, 2, 2, 3], [0, 1, 3], [0, 0]])
def test_has_each_element_one_triple(first: list[int]) -> None:
    assert kernel.all_of_one_triple(np.array(first)) == all(np.diff(first) == 1)


@pytest.mark.parametrize("streams", [2, 5])
@pytest.mark.parametrize("elements", [1, 2, 50])
def test_numbered_elements_by_stream(elements: int, streams: int) -> None:
    rng = np.random.default_rng([elements, streams])
    stream, before = rng.integers(0, streams, elements, np.int32), rng.integers(0, 99, streams)
    mine = [np.flatnonzero(stream == s) for s in range(streams)]
    number = np.empty(elements, np.int64)
    for s in range(streams):
        number[mine[s]] = before[s] + 1 + np.arange(len(mine[s]))
    start, sorted_elements = np.zeros(streams + 1, np.int64), np.empty(elements, np.int64)
    kernel.split_numbered(stream, number, before.copy(), start, sorted_elements)
    assert start.tolist() == [0, *np.cumsum([len(each) for each in mine])]
    assert sorted_elements.tolist() == np.concatenate(mine).tolist()
