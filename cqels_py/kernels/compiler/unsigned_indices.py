"""Kernels count places from the start: an index is never negative, and the code that looks whether it is, is left out.

For numba an index that may be negative counts from the end, as in Python. Looking costs aggregation below a join a tenth of its
time: every index that comes from memory takes a test, a choice, and a register for the array's length.

With `NUMBA_BOUNDSCHECK=1`, and no kernels kept from before, an index that is negative or too large raises.
"""

from __future__ import annotations

from typing import Any, cast

from numba.core import types
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.lowering import Lower
from numba.core.typed_passes import NativeLowering


class FromTheStart(CompilerBase):
    """numba's compiler but for indices of arrays, which become unsigned numbers."""

    def define_pipelines(self) -> list[PassManager]:
        pipeline = DefaultPassBuilder.define_nopython_pipeline(self.state)
        steps = [(_Lowering if step is NativeLowering else step, text) for step, text in pipeline.passes]
        pipeline.passes[:] = steps
        pipeline.finalize()
        return [pipeline]


class _Lower(Lower):
    def lower_getitem(self, resty: Any, expr: Any, value: Any, index: Any, signature: Any) -> Any:
        return super().lower_getitem(resty, expr, value, index, _from_the_start(signature))

    def lower_setitem(self, target_var: Any, index_var: Any, value_var: Any, signature: Any) -> Any:
        return super().lower_setitem(target_var, index_var, value_var, _from_the_start(signature))


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(NativeLowering):
    _name = "lowering_from_the_start"

    @property
    def lowering_class(self) -> type[Lower]:
        return _Lower


def _from_the_start(signature: Any) -> Any:
    array, index, *rest = signature.args
    if not isinstance(array, types.Array):
        return signature
    return signature.replace(args=(array, _unsigned(index), *rest))


def _unsigned(index: Any) -> Any:
    """Of an index in several dimensions each number; what are slices stays."""
    if isinstance(index, types.BaseTuple):
        return types.Tuple([_unsigned(each) for each in cast(Any, index)])
    return types.uintp if types.unliteral(index) in types.signed_domain else index
