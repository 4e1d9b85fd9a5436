"""Select one of two values without a branch.

Whether a row is an insertion or a retraction, or which slot holds a key, is unpredictable. A branch on it is
mispredicted half of the time, which costs more than computing both values. LLVM may compile a conditional expression to
a branch, and often does; `select_branchless` marks the condition as unpredictable, so that it becomes a conditional move.
"""

from __future__ import annotations

from typing import Any

import numba
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.extending import intrinsic


def _generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    condition, one, other = args
    chosen = builder.select(condition, one, other)
    if isinstance(chosen, ir.Instruction):
        chosen.set_metadata("unpredictable", builder.module.add_metadata([]))
    return chosen


def _typed(typing_context: Any, condition: Any, one: Any, other: Any) -> Any:
    value = typing_context.unify_pairs(types.unliteral(one), types.unliteral(other))
    return value(types.boolean, value, value), _generate


def _select(condition: Any, one: Any, other: Any) -> Any:
    return one if condition else other


select_branchless = _select if numba.config.DISABLE_JIT else intrinsic(_typed)  # type: ignore[attr-defined]
"""select_branchless(condition, one, other): `one` if the condition holds, else `other`. Both are evaluated."""
