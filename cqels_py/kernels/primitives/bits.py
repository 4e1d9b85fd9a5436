"""The lowest nonzero byte of a word."""

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
"""first_byte(word): the position, from 0 to 7, of the lowest nonzero byte of a 64-bit word; 8 if the word is 0. In
eight bytes read as one little-endian number, the lowest byte is the first."""
