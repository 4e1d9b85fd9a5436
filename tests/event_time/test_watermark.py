"""Late data: timelines by hand, and decisions that do not depend on batches."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cqels_py.event_time.watermark import Watermark


def admit(watermark: Watermark, *times: int) -> list[bool]:
    admitted = watermark.admit(np.array(times, np.int64))
    return [True] * len(times) if admitted is None else admitted.tolist()


def test_without_lateness_nothing_may_come_after_a_later_element() -> None:
    #                              5  5 |4 |7  7 |6 |8
    assert admit(Watermark(0), 5, 5, 4, 7, 7, 6, 8) == [True, True, False, True, True, False, True]


def test_lateness_waits_that_long_and_no_longer() -> None:
    watermark = Watermark(3)
    # greatest so far              10  10  10   10  11  11  11
    assert admit(watermark, 10, 9, 7, 6, 11, 8, 7) == [True, True, True, False, True, True, False]
    assert watermark.time == 8


def test_a_late_element_does_not_move_the_watermark() -> None:
    watermark = Watermark(0)
    admit(watermark, 5, 1)
    assert watermark.time == 5


def test_a_promise_makes_earlier_elements_late() -> None:
    watermark = Watermark(3)
    admit(watermark, 5)
    watermark.advance(10)
    assert watermark.time == 10
    assert admit(watermark, 9, 10, 13) == [False, True, True]


def test_a_promise_of_what_was_known_changes_nothing() -> None:
    watermark = Watermark(3)
    admit(watermark, 20)
    watermark.advance(10)
    assert watermark.time == 17


def test_no_elements_no_watermark() -> None:
    watermark = Watermark(5)
    assert admit(watermark) == []
    assert admit(watermark, -(10**15)) == [True]


@given(st.lists(st.integers(-10, 30)), st.integers(0, 8), st.lists(st.integers(0, 5), min_size=1))
def test_the_decision_does_not_depend_on_batches(times: list[int], lateness: int, sizes: list[int]) -> None:
    watermark = Watermark(lateness)
    found: list[bool] = []
    at = 0
    while at < len(times):
        size = sizes[at % len(sizes)] or 1
        found += admit(watermark, *times[at : at + size])
        at += size
    assert found == [time >= max(times[: i + 1]) - lateness for i, time in enumerate(times)]
