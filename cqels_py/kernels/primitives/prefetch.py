"""Asking memory for a cache line that will be needed some rows later.

Kernels over hash tables larger than the processor's cache mostly wait: each row's entry is somewhere else. Rows further on are
known already, so their entries can be on the way while this one is worked on.
"""

from __future__ import annotations

from typing import Any

import numba
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.extending import intrinsic

_WRITE, _KEEP, _DATA = 1, 3, 1


def _generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    view = context.make_array(signature.args[0])(context, builder, args[0])
    # One signature for arrays of all types.
    address = builder.bitcast(builder.gep(view.data, [args[1]]), cgutils.voidptr_t)
    word = cgutils.int32_t
    kind = ir.FunctionType(ir.VoidType(), [address.type, word, word, word])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    builder.call(function, [address, word(_WRITE), word(_KEEP), word(_DATA)])
    return context.get_dummy_value()


def _typed(typing_context: Any, array: Any, index: Any) -> Any:
    return types.void(array, index), _generate


def _nothing(array: Any, index: Any) -> None:
    """Without compilation there is nothing to hide."""


prefetch = _nothing if numba.config.DISABLE_JIT else intrinsic(_typed)  # type: ignore[attr-defined]
"""prefetch(array, index): start loading the cache line of array[index]; an index outside of the array does no harm."""
