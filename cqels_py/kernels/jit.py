"""The house decorator: every compiled function of the project goes through it.

Cached on disk (compiled once per machine), without the GIL, with numpy's error model (no Python exceptions for
division: kernels check what they divide by). `NUMBA_DISABLE_JIT=1` runs the same functions as plain Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def jit(function: Function) -> Function:
    """Compile `function` at its first call for the types of its arguments, or load it from the cache."""
    compiled: Function = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    return compiled


def jit_inline(function: Function) -> Function:
    """For helpers of a few lines inside hot loops: LLVM puts them into their callers."""
    compiled: Function = numba.njit(cache=True, nogil=True, error_model="numpy", forceinline=True)(function)
    return compiled
