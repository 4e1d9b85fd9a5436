"""State records: an operator's arrays, given to its kernels as one number.

Each array argument of a call into compiled code costs about 60 ns, however little the kernel does. For a single element of a live
stream that is most of the time in kernels. So the arrays of an operator's state are listed in a record: their addresses and shapes,
in memory that stays where it is. A kernel gets the record's address, an int64, and opens the record once, outside of its loops: it
reads its arrays by their numbers (`int64s(state, CELLS)`), where there are many into NamedTuples of at most 12, which cost nothing
in compiled code. The numbers are defined beside the kernels.

In Python the arrays are attributes of their owner, which alone replaces them:

>>> CELLS, COUNTS = range(2)
>>> class Cells(StateRecord):
...     cells = StateArray(CELLS)
...     counts = StateArray(COUNTS)
...     def __init__(self):
...         self.cells, self.counts = np.zeros(4, np.int64), np.zeros(2, np.int32)
>>> owner = Cells()
>>> owner.cells = np.zeros(8, np.int64)  # The record, at the same address, has the larger array.
>>> len(int64s(owner.address, CELLS))  # As a kernel reads it; in compiled code only.  # doctest: +SKIP
8

In plain Python (NUMBA_DISABLE_JIT=1) the readers find the owner by the record's address: a record whose owner is gone is a KeyError,
a number that the record does not have an IndexError, an array of another type or shape an AssertionError, and an index beyond an
array's end an IndexError, as everywhere in numpy. With CQELS_CHECK_MEMORY=1 compiled kernels are checked too: see `check_replaced`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar
from weakref import WeakValueDictionary

import numba
import numpy as np
import numpy.typing as npt
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array
from numba.np.numpy_support import from_dtype

_ADDRESS, _LENGTH, _WIDTH, _FIELDS = range(4)

Number = TypeVar("Number", bound=np.generic)

_PLAIN = bool(numba.config.DISABLE_JIT)  # type: ignore[attr-defined]
_tables: WeakValueDictionary[int, ArrayTable] = WeakValueDictionary()
"""In plain Python, all tables by their addresses."""

CHECKED = bool(os.environ.get("CQELS_CHECK_MEMORY"))
"""Is `check_replaced` called after each step?"""
_PATTERN = 0xA5
_replaced: list[npt.NDArray[Any]] = []
_filled: list[npt.NDArray[np.uint8]] = []


class ArrayTable:
    """A record of contiguous arrays of one or two dimensions, which it keeps alive. `address`: the argument for kernels."""

    __slots__ = ("__weakref__", "_arrays", "_words", "address")

    def __init__(self, *arrays: npt.NDArray[Any] | None) -> None:
        self._arrays: list[npt.NDArray[Any] | None] = [None] * len(arrays)
        self._words = np.zeros((len(arrays), _FIELDS), np.int64)
        self.address = self._words.ctypes.data
        if _PLAIN:
            _tables[self.address] = self
        for number, array in enumerate(arrays):
            if array is not None:
                self.replace(number, array)

    def replace(self, number: int, array: npt.NDArray[Any], *, still_read: bool = False) -> None:
        """From now on this is the array of that number. `still_read`: others may go on reading the former one, which they hold."""
        assert array.flags.c_contiguous
        before = self._arrays[number]
        # Another view of the same memory replaces nothing.
        if CHECKED and not still_read and before is not None and before.ctypes.data != array.ctypes.data:
            _replaced.append(before)
        self._arrays[number] = array
        self._words[number] = (array.ctypes.data, *array.shape, 0)[:_FIELDS]

    def array(self, number: int) -> npt.NDArray[Any]:
        """The array of that number."""
        array = self._arrays[number]
        assert array is not None, f"array {number} of the record has not been set"
        return array

    def __reduce__(self) -> NoReturn:
        """TypeError for a copy, or a pickle, whose addresses would be those of these arrays."""
        raise TypeError("a record is not copied: take its values (state.named_values), and restore another one")


class StateArray(Generic[Number]):
    """An attribute of a StateRecord: the array that kernels read from its record by `number`.

    Reading it is as fast as for any other attribute: without `__get__` Python looks into the owner's own attributes.
    """

    def __init__(self, number: int) -> None:
        self.number = number

    if TYPE_CHECKING:

        def __get__(self, record: StateRecord, owner: type) -> npt.NDArray[Number]: ...

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __set__(self, record: StateRecord, array: npt.NDArray[Number]) -> None:
        record.__dict__[self._name] = array
        record._table.replace(self.number, array)


class StateRecord:
    """The owner of arrays that kernels read by the record's `address`, which stays the same; see the module.

    A subclass declares the arrays as StateArray and sets all of them in its constructor.
    """

    _table: ArrayTable
    _size = 0

    def __init_subclass__(cls) -> None:
        cls._size = max((declared.number + 1 for _, declared in _declared(cls)), default=0)

    def __new__(cls, *arguments: object, **options: object) -> Any:
        record = super().__new__(cls)
        record._table = ArrayTable(*[None] * cls._size)
        record.address = record._table.address
        return record

    address: int


def _declared(cls: type) -> Iterator[tuple[str, StateArray[Any]]]:
    for parent in cls.__mro__:
        for name, value in vars(parent).items():
            if isinstance(value, StateArray):
                yield name, value


def check_replaced() -> None:
    """With CQELS_CHECK_MEMORY=1, called after each step: the arrays that were replaced during the step are filled with a pattern,
    and those of the step before must still be full of it. A kernel that read one since has computed with the pattern; for one that
    wrote, AssertionError."""
    for memory in _filled:
        assert (memory == _PATTERN).all(), (
            f"a kernel has written to an array of {memory.nbytes} bytes that was replaced before"
        )
    _filled.clear()
    for array in _replaced:
        memory = array.reshape(-1).view(np.uint8)
        memory[:] = _PATTERN
        _filled.append(memory)
    _replaced.clear()


def _reader(dtype: Any, dimensions: int) -> Callable[..., Any]:
    """reader(record, number): the array of that number, which is of this type."""
    item = np.dtype(dtype)
    made = types.Array(from_dtype(item), dimensions, "C")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        record, number = arguments
        words = builder.inttoptr(record, ir.IntType(64).as_pointer())
        first = builder.mul(number, context.get_constant(types.intp, _FIELDS))

        def read(field: int) -> Any:
            place = builder.add(first, context.get_constant(types.intp, field))
            return builder.load(builder.gep(words, [place]))

        size = context.get_constant(types.intp, item.itemsize)
        shape, strides = [read(_LENGTH)], [size]
        if dimensions == 2:
            shape, strides = [*shape, read(_WIDTH)], [builder.mul(read(_WIDTH), size), size]
        array = make_array(made)(context, builder)
        data = builder.inttoptr(read(_ADDRESS), array.data.type)
        populate_array(array, data=data, shape=shape, strides=strides, itemsize=size, meminfo=None)
        return array._getvalue()

    def typed(typing_context: Any, record: Any, number: Any) -> Any:
        return made(types.int64, types.intp), generate

    def plain(record: int, number: int) -> npt.NDArray[Any]:
        table = _tables[record]
        array = table.array(number)
        assert array.dtype == item and array.ndim == dimensions, (
            f"array {number} is {array.ndim}-dimensional, of {array.dtype}"
        )
        return array

    if _PLAIN:
        return plain
    return intrinsic(typed)


int64s = _reader(np.int64, 1)
int64_rows = _reader(np.int64, 2)
int32s = _reader(np.int32, 1)
uint32s = _reader(np.uint32, 1)
int8s = _reader(np.int8, 1)
float64s = _reader(np.float64, 1)
uint8s = _reader(np.uint8, 1)
uint8_rows = _reader(np.uint8, 2)
flags = _reader(np.bool_, 1)
flag_rows = _reader(np.bool_, 2)


def _matrix_maker() -> Callable[..., Any]:
    """matrix(array, rows, columns): the beginning of an array of numbers as one of two dimensions, of the same memory."""
    made = types.Array(types.int64, 2, "C")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        flat, rows, columns = arguments
        size = context.get_constant(types.intp, 8)
        array = make_array(made)(context, builder)
        data = make_array(signature.args[0])(context, builder, value=flat).data
        strides = [builder.mul(columns, size), size]
        populate_array(array, data=data, shape=[rows, columns], strides=strides, itemsize=size, meminfo=None)
        return array._getvalue()

    def typed(typing_context: Any, flat: Any, rows: Any, columns: Any) -> Any:
        return made(flat, types.intp, types.intp), generate

    def plain(flat: npt.NDArray[np.int64], rows: int, columns: int) -> npt.NDArray[np.int64]:
        return flat[: rows * columns].reshape(rows, columns)

    return plain if _PLAIN else intrinsic(typed)


matrix = _matrix_maker()
