"""Write a fixed number of values at once with SIMD instructions, whether all of them are needed or not.

The number of results of a mapping is unpredictable, so the branch that ends a loop over them is often mispredicted.
Writing a whole vector needs no loop. The lanes after the last value that is needed are overwritten by the next write,
so arrays have room for one more vector at their end.
"""

from __future__ import annotations

from typing import Any

import numba
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.extending import intrinsic

VECTOR_LENGTH = 16


def _place(context: Any, builder: Any, array: Any, value: Any, index: Any) -> tuple[Any, int]:
    """(the pointer to the vector that begins at `index` of an array, the bytes of a value)."""
    view = context.make_array(array)(context, builder, value)
    vector = ir.VectorType(context.get_data_type(array.dtype), VECTOR_LENGTH)
    return builder.bitcast(builder.gep(view.data, [index]), vector.as_pointer()), array.dtype.bitwidth // 8


def _typed_fill(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place, size = _place(context, builder, array, arguments[0], arguments[1])
        one = ir.Constant(place.type.pointee, ir.Undefined)
        first = builder.insert_element(one, arguments[2], ir.Constant(ir.IntType(32), 0))
        every = builder.shuffle_vector(
            first, one, ir.Constant(ir.VectorType(ir.IntType(32), VECTOR_LENGTH), [0] * VECTOR_LENGTH)
        )
        builder.store(every, place, align=size)
        return context.get_dummy_value()

    return types.void(array, index, array.dtype), generate


def _typed_copy(typing_context: Any, to: Any, index: Any, ring: Any, first: Any, start: Any, mask: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        to_data = context.make_array(to)(context, builder, arguments[0]).data
        ring_data = context.make_array(ring)(context, builder, arguments[2]).data
        _, at, _, begin, position, most = arguments
        for lane in range(VECTOR_LENGTH):
            place = builder.and_(builder.add(position, ir.Constant(position.type, lane)), most)
            value = builder.load(builder.gep(ring_data, [builder.add(begin, place)]))
            builder.store(value, builder.gep(to_data, [builder.add(at, ir.Constant(at.type, lane))]))
        return context.get_dummy_value()

    return types.void(to, types.uint64, ring, types.uint64, types.uint64, types.uint64), generate


def _fill(array: Any, index: Any, value: Any) -> None:
    array[int(index) : int(index) + VECTOR_LENGTH] = value


def _copy(to: Any, index: Any, ring: Any, first: Any, start: Any, mask: Any) -> None:
    for lane in range(VECTOR_LENGTH):
        to[int(index) + lane] = ring[int(first) + (int(start) + lane & int(mask))]


fill_vector = _fill if numba.config.DISABLE_JIT else intrinsic(_typed_fill)  # type: ignore[attr-defined]
"""fill_vector(array, index, value): set VECTOR_LENGTH elements of `array` from `index` on to that value."""
copy_vector = _copy if numba.config.DISABLE_JIT else intrinsic(_typed_copy)  # type: ignore[attr-defined]
"""copy_vector(to, index, ring, first, start, mask): copy VECTOR_LENGTH elements of a circular buffer to `to` from `index` on.
The buffer begins at ring[first] and has mask + 1 elements; the copy begins at its element `start` and wraps around."""
