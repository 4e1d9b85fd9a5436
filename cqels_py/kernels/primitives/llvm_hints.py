"""Attributes of LLVM that a kernel sets for itself in its first line. In plain Python they do nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from numba.core import types
from numba.extending import intrinsic


def _attribute(attribute: str) -> Callable[[], None]:
    """A function whose call sets an LLVM attribute on the function that contains the call."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        # llvmlite accepts only the attributes that it knows, and none with a value: this bypasses its check.
        set.add(builder.function.attributes, attribute)
        return context.get_dummy_value()

    def typed(typing_context: Any) -> Any:
        return types.void(), generate

    return (lambda: None) if numba.config.DISABLE_JIT else intrinsic(typed)  # type: ignore[attr-defined,return-value]


prefer_512_bit_vectors = _attribute('"prefer-vector-width"="512"')
"""Loops of this function use 512-bit vectors, eight numbers at once, where the processor has them. On some processors
LLVM prefers 256 bits. For loops of many operations, mostly divisions and multiplications."""

noinline = _attribute("noinline")
"""This function is not inlined: in its caller there would be too few registers for the variables of both."""
