"""Selection without a branch."""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt
import pytest

from cqels_py.kernels.compiler.jit import jit_flat
from cqels_py.kernels.primitives.select import select_branchless


@jit_flat
def _larger(a, b, out):  # type: ignore[no-untyped-def]
    for i in range(len(out)):
        out[i] = select_branchless(a[i] > b[i], a[i], b[i])


@jit_flat
def _mixed(flags, out):  # type: ignore[no-untyped-def]
    for i in range(len(out)):
        out[i] = select_branchless(flags[i], 7, np.float64(i) / 2)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint64, np.float64])
def test_one_or_the_other_value_is_selected(dtype: type[np.generic]) -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.integers(0, 9, 50).astype(dtype) for _ in range(2))
    out: npt.NDArray[np.generic] = np.empty(50, dtype)
    _larger(a, b, out)
    assert np.array_equal(out, np.maximum(a, b))


def test_values_of_different_types_are_unified() -> None:
    out = np.empty(4)
    _mixed(np.array([True, False, True, False]), out)
    assert out.tolist() == [7.0, 0.5, 7.0, 1.5]


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="there is no compiler")  # type: ignore[attr-defined]
def test_the_condition_is_marked_as_unpredictable() -> None:
    compiled = numba.njit(_places)
    place = np.zeros(5, np.int64)
    compiled(np.array([1, 4, 5]), np.array([2, 3]), place)
    assert place.tolist() == [0, 0, 0, 1, 2]
    (code,) = compiled.inspect_llvm().values()
    assert "!unpredictable" in code


def _places(a, b, place):  # type: ignore[no-untyped-def]
    """Merge two runs, until one has ended."""
    i, j = 0, 0
    while i < len(a) and j < len(b):
        first = a[i] < b[j]
        place[select_branchless(first, i, len(a) + j)] = i + j
        i += np.int64(first)
        j += np.int64(not first)
