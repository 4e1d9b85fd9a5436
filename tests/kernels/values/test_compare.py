"""Comparison of values: the exact one of decimals."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from cqels_py.kernels.values import compare


@given(st.integers(-(1 << 62), 1 << 62), st.integers(0, 18), st.integers(-(1 << 62), 1 << 62), st.integers(0, 18))
@example(1, 0, 10, 1)
@example(-1, 0, -11, 1)
@example(-11, 1, -1, 0)
def test_decimals_are_compared_exactly(a: int, a_scale: int, b: int, b_scale: int) -> None:
    first, second = Fraction(a, 10**a_scale), Fraction(b, 10**b_scale)
    found = compare.compare_decimals(np.int64(a), np.int64(a_scale), np.int64(b), np.int64(b_scale))
    assert found == (first > second) - (first < second)
