"""numba's compiler, except that array indices are unsigned: the code that handles negative indices is left out.

In numba a negative index counts from the end, as in Python. The check costs aggregation below a join a tenth of its
time: each index loaded from memory takes a comparison, a select, and a register for the array's length.

With `NUMBA_BOUNDSCHECK=1` and an empty cache, an index that is negative or too large raises.
"""

from __future__ import annotations

from typing import Any, cast

from numba.core import types
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.lowering import Lower
from numba.core.typed_passes import NativeLowering


class UnsignedIndices(CompilerBase):
    """numba's compiler with unsigned array indices."""

    def define_pipelines(self) -> list[PassManager]:
        pipeline = DefaultPassBuilder.define_nopython_pipeline(self.state)
        steps = [(_Lowering if step is NativeLowering else step, text) for step, text in pipeline.passes]
        pipeline.passes[:] = steps
        pipeline.finalize()
        return [pipeline]


class _Lower(Lower):
    def lower_getitem(self, resty: Any, expr: Any, value: Any, index: Any, signature: Any) -> Any:
        return super().lower_getitem(resty, expr, value, index, _with_unsigned_index(signature))

    def lower_setitem(self, target_var: Any, index_var: Any, value_var: Any, signature: Any) -> Any:
        return super().lower_setitem(target_var, index_var, value_var, _with_unsigned_index(signature))


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(NativeLowering):
    _name = "lowering_with_unsigned_indices"

    @property
    def lowering_class(self) -> type[Lower]:
        return _Lower


def _with_unsigned_index(signature: Any) -> Any:
    array, index, *rest = signature.args
    if not isinstance(array, types.Array):
        return signature
    return signature.replace(args=(array, _unsigned(index), *rest))


def _unsigned(index: Any) -> Any:
    """An index as an unsigned number; in several dimensions each of its numbers. Slices stay as they are."""
    if isinstance(index, types.BaseTuple):
        return types.Tuple([_unsigned(each) for each in cast(Any, index)])
    return types.uintp if types.unliteral(index) in types.signed_domain else index
