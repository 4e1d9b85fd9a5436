"""Calls of compiled functions by their addresses, so that one compiled driver runs programs that are data.

Calls follow numba's own convention: errors of the callee propagate, it is loaded from the cache of kernels (a C callback would
swallow errors, and be compiled again for each caller), and nothing is compiled with its callers. In plain Python
(NUMBA_DISABLE_JIT=1) an address is the number of a function in a list.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import Any, cast

import numba
from numba.core import cgutils, types
from numba.extending import intrinsic

from cqels_py.kernels.compiler.recording import RECORDING, record_entry

_PLAIN = bool(numba.config.DISABLE_JIT)  # type: ignore[attr-defined]
_functions: list[Callable[..., Any]] = []

INT64, BOOL, NONE = types.int64, types.boolean, types.none


def _arrays(item: Any, dimensions: int = 1, *, readonly: bool = False) -> Any:
    return types.Array(item, dimensions, "C", readonly=readonly)


INT64S, INT64_ROWS = _arrays(types.int64), _arrays(types.int64, 2)
INT32S, INT8S, UINT8S = _arrays(types.int32), _arrays(types.int8), _arrays(types.uint8)
UINT32S, FLOAT64S = _arrays(types.uint32), _arrays(types.float64)
READONLY_UINT8S = _arrays(types.uint8, readonly=True)
INT64_PAIR = types.UniTuple(types.int64, 2)


class NativeCall:
    """A kernel that others call by its address. `call(address, arguments)`, arguments as a tuple: for compiled code."""

    def __init__(self, kernel: Callable[..., Any], result: Any, *arguments: Any) -> None:
        self._kernel = kernel
        self._result = result
        self._arguments = arguments
        self.call: Callable[[int, tuple[Any, ...]], Any] = _call_plainly if _PLAIN else _caller(result, arguments)

    def address(self) -> int:
        """Where the kernel is, which is compiled for these types, or loaded, if it is asked for the first time."""
        return address_of(self._kernel, self._arguments, self._result)


def address_of(function: Callable[..., Any], arguments: tuple[Any, ...] = (INT64,), result: Any = INT64) -> int:
    """Where a kernel is that takes arguments of these types; without others it is an entry of programs."""
    if _PLAIN:
        if RECORDING in os.environ and arguments == (INT64,):
            record_entry(function)
        if function not in _functions:
            _functions.append(function)
        return _functions.index(function)
    return _compiled(function, arguments, result)


@cache
def _compiled(function: Callable[..., Any], arguments: tuple[Any, ...], result: Any) -> int:
    kernel = cast(Any, function)
    kernel.compile(arguments)
    compiled = kernel.overloads[arguments]
    assert compiled.signature.return_type == result, f"{function.__name__} returns {compiled.signature.return_type}"
    return int(compiled.library.get_pointer_to_function(compiled.fndesc.mangled_name))


def _call_plainly(address: int, arguments: tuple[Any, ...]) -> Any:
    return _functions[address](*arguments)


def _caller(result: Any, expected: tuple[Any, ...]) -> Any:
    """For compiled code: call(address, arguments) of a kernel that was compiled for the `expected` types."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        address, arguments = given
        convention = context.call_conv
        pointer = builder.inttoptr(address, convention.get_function_type(result, expected).as_pointer())
        values = [
            context.cast(builder, builder.extract_value(arguments, place), type_, wanted)
            for place, (type_, wanted) in enumerate(zip(signature.args[1], expected, strict=True))
        ]
        status, value = convention.call_function(builder, pointer, result, expected, values)
        with cgutils.if_unlikely(builder, status.is_error):
            convention.return_status_propagate(builder, status)
        return value

    def typed(typing_context: Any, address: Any, arguments: Any) -> Any:
        return result(types.int64, arguments), generate

    return intrinsic(typed)


call_entry = _call_plainly if _PLAIN else _caller(INT64, (INT64,))
"""call_entry(address, (record,)), for compiled code."""
