"""What a kernel tells the compiler about itself, in its first line; as plain Python it says nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from numba.core import types
from numba.extending import intrinsic


def _said(attribute: str) -> Callable[[], None]:
    """What gives the function in which it is called an attribute of LLVM's."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        # Those of a name and a value are none that llvmlite knows.
        set.add(builder.function.attributes, attribute)
        return context.get_dummy_value()

    def typed(typing_context: Any) -> Any:
        return types.void(), generate

    return (lambda: None) if numba.config.DISABLE_JIT else intrinsic(typed)  # type: ignore[attr-defined,return-value]


in_whole_vectors = _said('"prefer-vector-width"="512"')
"""Its loops do eight numbers at once where the processor can, not four, which the compiler takes for faster on some: for loops of
many operations, of which divisions and products are most of the time."""

kept_apart = _said("noinline")
"""It is not put into its caller, among whose variables its own would find no registers."""
