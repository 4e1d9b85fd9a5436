"""The LLVM attributes that kernels set for themselves."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest

from cqels_py.kernels.primitives.llvm_hints import noinline, prefer_512_bit_vectors


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")  # type: ignore[attr-defined]
def test_functions_have_the_attributes() -> None:
    def with_attributes(numbers: Any) -> Any:
        prefer_512_bit_vectors()
        noinline()
        return numbers[0]

    compiled = numba.njit(with_attributes)
    assert compiled(np.arange(3)) == 0
    (text,) = compiled.inspect_llvm().values()
    assert "noinline" in text
    assert '"prefer-vector-width"="512"' in text


def test_results_do_not_change() -> None:
    @numba.njit
    def sum_of(numbers: Any) -> Any:
        noinline()
        prefer_512_bit_vectors()
        total = 0
        for each in numbers:
            total += each
        return total

    assert sum_of(np.arange(100)) == 4950
