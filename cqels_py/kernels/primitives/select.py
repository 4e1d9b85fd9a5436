"""Choosing one of two values without a jump.

Which rows come or go, and where a key stands, nobody can foresee: a jump there is foreseen wrongly half of the time, and costs
more than both values do. Of a conditional expression the compiler may make a jump, and often does.
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


def _choose(condition: Any, one: Any, other: Any) -> Any:
    return one if condition else other


choose = _choose if numba.config.DISABLE_JIT else intrinsic(_typed)  # type: ignore[attr-defined]
"""choose(condition, one, other): `one` if the condition holds, else `other`; both are found in any case."""
