"""One pass over arrivals, beside what it says."""

from __future__ import annotations

import numpy as np

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


def test_places_before_and_through() -> None:
    instants, points = np.array([1, 3, 3, 7]), np.array([0, 3, 5, 7, 9])
    before, through = np.empty(5, np.int32), np.empty(5, np.int32)
    kernel.places_of(instants, points, False, before)
    kernel.places_of(instants, points, True, through)
    assert before.tolist() == np.searchsorted(instants, points).tolist()
    assert through.tolist() == np.searchsorted(instants, points, side="right").tolist()
