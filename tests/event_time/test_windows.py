"""Window bounds: entry, exit and boundaries, by hand and against counting."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqels_py.event_time.windows import NEVER, Bounds, Measure

MICROS = st.integers(-(10**15), 10**16)


def points(*values: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(values, np.int64)


def test_a_sliding_range_holds_from_arrival_for_its_size() -> None:
    bounds = Bounds(Measure.TIME, 10)
    assert bounds.eager
    assert bounds.entry(points(-3, 0, 7)).tolist() == [-3, 0, 7]
    assert bounds.exit(points(-3, 0, 7)).tolist() == [7, 10, 17]


def test_with_step_both_move_to_the_next_boundary() -> None:
    bounds = Bounds(Measure.TIME, 10, 4)
    assert not bounds.eager
    assert bounds.entry(points(-1, 0, 1, 4, 5)).tolist() == [0, 0, 4, 4, 8]
    assert bounds.exit(points(-1, 0, 1, 2, 3)).tolist() == [12, 12, 12, 12, 16]


def test_what_lies_between_two_boundaries_of_a_short_window_is_never_in() -> None:
    bounds = Bounds(Measure.TIME, 2, 10)
    entry, exit_ = bounds.entry(points(1, 8, 9, 10)), bounds.exit(points(1, 8, 9, 10))
    assert (exit_ > entry).tolist() == [False, False, True, True]


def test_boundaries_count_from_start() -> None:
    assert Bounds(Measure.TIME, 10, 10, 3).boundary(points(-8, -7, 2, 3, 4)).tolist() == [-7, -7, 3, 3, 13]


def test_what_has_no_size_never_leaves() -> None:
    assert Bounds(Measure.TIME, None).exit(points(0, 5)).tolist() == [NEVER, NEVER]


@given(MICROS, st.integers(1, 10**12), st.one_of(st.none(), st.integers(1, 10**12)), st.integers(-(10**6), 10**6))
def test_a_mapping_is_in_at_just_the_boundaries_that_see_it(x: int, size: int, step: int | None, start: int) -> None:
    bounds = Bounds(Measure.TIME, size, step, start)
    entry, exit_ = int(bounds.entry(points(x))[0]), int(bounds.exit(points(x))[0])
    every = step or 1
    if step is not None:
        assert (entry - start) % every == (exit_ - start) % every == 0
    for boundary in (entry - every, entry, exit_ - every, exit_, exit_ + every):
        assert (boundary - size < x <= boundary) == (entry <= boundary < exit_)


@pytest.mark.parametrize("measure", [Measure.ELEMENTS, Measure.TRIPLES])
def test_the_last_n_of_a_count(measure: Measure) -> None:
    bounds = Bounds(measure, 3)
    numbers = np.arange(1, 11)
    for reached in range(1, 11):
        held = numbers[(bounds.entry(numbers) <= reached) & (bounds.exit(numbers) > reached)]
        assert held.tolist() == list(range(max(1, reached - 2), reached + 1))
