"""What exact sums of doubles say."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from cqels_py.kernels.aggregates import exact_float_sums as kernel


def exact_value(sums: np.ndarray) -> Fraction:  # type: ignore[type-arg]
    """What the digits say, and that they are as they should be."""
    low, top, digits = int(sums[kernel.LOW]), int(sums[kernel.TOP]), [int(digit) for digit in sums[2:]]
    assert low <= top <= len(digits)
    assert not any(digits[:low])
    assert not any(digits[top:])
    if top == 0:
        return Fraction(0)
    assert digits[top - 1] in (0, 0xFFFFFFFF)
    whole = sum(digit << 32 * i for i, digit in enumerate(digits[:top]))
    return Fraction(whole - (1 << 32 * top if digits[top - 1] else 0), 1 << 1074)
