"""Which of a word's bytes come first."""

from __future__ import annotations

from typing import Any

import numba
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.extending import intrinsic


def _generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    word, bit = ir.IntType(64), ir.IntType(1)
    kind = ir.FunctionType(word, [word, bit])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.cttz.i64")
    zeros = builder.call(function, [args[0], bit(0)])
    return builder.lshr(zeros, word(3))


def _typed(typing_context: Any, word: Any) -> Any:
    return types.int64(types.uint64), _generate


def _in_python(word: Any) -> int:
    bits = int(word)
    return ((bits & -bits).bit_length() - 1) // 8 if bits else 8


first_byte = _in_python if numba.config.DISABLE_JIT else intrinsic(_typed)  # type: ignore[attr-defined]
"""first_byte(word): the place of the first byte, from the low end on, that is not 0, from 0 to 7; 8 if all are. Of eight bytes
that were read as one little-endian number the low end is the first."""
