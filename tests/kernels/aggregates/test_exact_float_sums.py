"""Exact sums of doubles against Python's fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cqels_py.kernels.aggregates import exact_float_sums as kernel
from tests.kernels.digits import exact_value

REALS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(-1e6, 1e6),
    st.floats(-1e6, 1e6, width=32),
    st.sampled_from([5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 2.0**32, 2.0**-1042, 1.0, -1.0, 0.0, -0.0]),
)  # fmt: skip
WEIGHTS = st.one_of(st.integers(-9, 9), st.integers(-(1 << 60), 1 << 60))


def nothing() -> np.ndarray:  # type: ignore[type-arg]
    return np.zeros(kernel.REAL_WORDS, np.uint32)


def sum_of(values: list[float]) -> np.ndarray:  # type: ignore[type-arg]
    total = nothing()
    for value in values:
        kernel.add_real(total, 0, np.float64(value), np.int64(1))
    return total


def nearest(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


@given(st.lists(REALS, max_size=12), st.data())
@example([1e300, 1e150, 1.0], None)
@example([-5e-324, 1.7976931348623157e308, 1.7976931348623157e308], None)
def test_members_are_added_and_subtracted(values: list[float], data: st.DataObject | None) -> None:
    total, there = nothing(), []
    for value in values:
        there.append(value)
        kernel.add_real(total, 0, np.float64(value), np.int64(1))
        if data is not None and data.draw(st.booleans()):
            gone = there.pop(data.draw(st.integers(0, len(there) - 1)))
            kernel.add_real(total, 0, np.float64(gone), np.int64(-1))
        exact = sum(map(Fraction, there), Fraction(0))
        assert exact_value(total) == exact
        assert kernel.nearest_real(total, 0) == nearest(exact)
        assert kernel.is_zero(total, 0) == (exact == 0)
    for value in there:
        kernel.add_real(total, 0, np.float64(value), np.int64(-1))
    assert kernel.is_zero(total, 0)


@given(st.lists(REALS, max_size=6), st.lists(REALS, max_size=6), WEIGHTS, WEIGHTS)
@example([-1.0], [1.0], 1 << 60, 1 << 60)
@example([1.7976931348623157e308], [], 1 << 60, -(1 << 60))
def test_a_sum_times_weights_is_added_and_subtracted(
    values: list[float], others: list[float], weight: int, other_weight: int
) -> None:
    total, one, other = sum_of(others), sum_of(values), sum_of(others)
    kernel.add_reals_times(total, 0, one, 0, np.int64(weight))
    kernel.add_reals_times(total, 0, other, 0, np.int64(other_weight))
    of_values, of_others = (sum(map(Fraction, each), Fraction(0)) for each in (values, others))
    exact = weight * of_values + (other_weight + 1) * of_others
    assert exact_value(total) == exact
    assert kernel.nearest_real(total, 0) == nearest(exact)
    kernel.add_reals_times(total, 0, one, 0, np.int64(-weight))
    kernel.add_reals_times(total, 0, other, 0, np.int64(-other_weight))
    assert exact_value(total) == of_others


@pytest.mark.parametrize("times", [1, 1000])
def test_adding_a_sum_again_and_again_does_not_make_it_longer(times: int) -> None:
    total, one = nothing(), sum_of([0.1, -1e6])
    for _ in range(times):
        kernel.add_reals_times(total, 0, one, 0, np.int64(1))
        kernel.add_reals_times(total, 0, one, 0, np.int64(-1))
    assert total[kernel.TOP] - total[kernel.LOW] <= 6


@given(st.lists(REALS, max_size=4), st.lists(REALS, max_size=4))
def test_copies_replace_the_previous_sum(values: list[float], others: list[float]) -> None:
    total, other = sum_of(values), sum_of(others)
    kernel.copy_reals(total, 0, other, 0)
    assert total.tolist() == other.tolist()
    kernel.clear_reals(total, 0)
    assert not total.any()


@pytest.mark.parametrize(
    "values",
    [
        (1.0, 2.0**-53),
        (1.0, 2.0**-53, 5e-324),
        (1.0 + 2.0**-52, 2.0**-53),
        (-1.0, -(2.0**-53), -5e-324),
        (2.0**-1022, -5e-324),
        (1.7976931348623157e308, 9.9792015476736e291),
        (1.7976931348623157e308, 9.979201547673599e291),
    ],
)
def test_halves_are_rounded_to_even(values: tuple[float, ...]) -> None:
    exact = sum(map(Fraction, values), Fraction(0))
    assert kernel.nearest_real(sum_of(list(values)), 0) == nearest(exact)
