"""What kernels tell the compiler about themselves."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest

from cqels_py.kernels.primitives.llvm_hints import in_whole_vectors, kept_apart


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")  # type: ignore[attr-defined]
def test_the_compiler_is_told() -> None:
    def told(numbers: Any) -> Any:
        in_whole_vectors()
        kept_apart()
        return numbers[0]

    compiled = numba.njit(told)
    assert compiled(np.arange(3)) == 0
    (text,) = compiled.inspect_llvm().values()
    assert "noinline" in text
    assert '"prefer-vector-width"="512"' in text


def test_nothing_else_happens() -> None:
    @numba.njit
    def sum_of(numbers: Any) -> Any:
        kept_apart()
        in_whole_vectors()
        total = 0
        for each in numbers:
            total += each
        return total

    assert sum_of(np.arange(100)) == 4950
