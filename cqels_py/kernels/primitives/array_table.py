"""Several arrays given to a kernel as one argument: a table of their addresses and shapes.

Each array argument of a call into compiled code costs about 60 ns, however little the kernel does. For a single element
of a live stream that is most of the time in kernels. Arrays that stay the same from call to call are therefore listed
once in a table, which is one argument.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from numba.core import types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array
from numba.np.numpy_support import from_dtype

ADDRESS, LENGTH, WIDTH, FIELDS = range(4)


class ArrayTable:
    """Contiguous arrays of one or two dimensions, which the table keeps alive. Make a new table when one of the arrays
    is replaced.

    `addresses` (arrays, FIELDS): the argument for kernels, which read the arrays by their number in it.
    """

    __slots__ = ("_arrays", "addresses")

    def __init__(self, *arrays: npt.NDArray[Any]) -> None:
        assert all(array.flags.c_contiguous for array in arrays)
        self._arrays = arrays
        self.addresses = np.array([(a.ctypes.data, *a.shape, 0)[:FIELDS] for a in arrays], np.int64)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as the arrays, since another process has them at other addresses."""
        return ArrayTable, self._arrays


def _reader(dtype: Any, dimensions: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Two functions that read arrays of this type from a table.

    The first, reader(where, number), is the array of that number. The second, reader(other, where, number), is None
    where the compiler knows `other` to be None, so that code for an absent array is not compiled.
    """
    item = np.dtype(dtype)
    made = types.Array(from_dtype(item), dimensions, "C")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        *_, addresses, number = arguments
        listed = make_array(signature.args[-2])(context, builder, addresses)
        first = builder.mul(number, context.get_constant(types.intp, FIELDS))

        def read(field: int) -> Any:
            place = builder.add(first, context.get_constant(types.intp, field))
            return builder.load(builder.gep(listed.data, [place]))

        size = context.get_constant(types.intp, item.itemsize)
        shape, strides = [read(LENGTH)], [size]
        if dimensions == 2:
            shape, strides = [*shape, read(WIDTH)], [builder.mul(read(WIDTH), size), size]
        array = make_array(made)(context, builder)
        data = builder.inttoptr(read(ADDRESS), array.data.type)
        populate_array(array, data=data, shape=shape, strides=strides, itemsize=size, meminfo=None)
        return array._getvalue()

    def typed(typing_context: Any, addresses: Any, number: Any) -> Any:
        return made(addresses, types.intp), generate

    def typed_with(typing_context: Any, other: Any, addresses: Any, number: Any) -> Any:
        if isinstance(other, types.NoneType):
            return types.none(other, addresses, number), lambda context, *_: context.get_dummy_value()
        return made(other, addresses, types.intp), generate

    def plain(addresses: npt.NDArray[np.int64], number: int) -> npt.NDArray[Any]:
        address, *shape = addresses[number, : LENGTH + dimensions].tolist()
        if 0 in shape:
            return np.empty(shape, item)
        held = (ctypes.c_char * int(np.prod(shape) * item.itemsize)).from_address(address)
        return np.ndarray(shape, item, memoryview(held))

    def plain_with(other: Any, addresses: npt.NDArray[np.int64], number: int) -> npt.NDArray[Any] | None:
        return None if other is None else plain(addresses, number)

    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        return plain, plain_with
    return intrinsic(typed), intrinsic(typed_with)


int64s, int64s_with = _reader(np.int64, 1)
int64_rows, _ = _reader(np.int64, 2)
int32s, _ = _reader(np.int32, 1)
uint32s, uint32s_with = _reader(np.uint32, 1)
uint8s, _ = _reader(np.uint8, 1)
uint8_rows, _ = _reader(np.uint8, 2)
flags, _ = _reader(np.bool_, 1)
flag_rows, _ = _reader(np.bool_, 2)
