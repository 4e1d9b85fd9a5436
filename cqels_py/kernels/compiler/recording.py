"""Kernels that report their calls instead of being compiled: for a process that only rehearses.

They run as plain Python there. The kernels to compile are those that are called, with the types of their arguments.
"""

from __future__ import annotations

import base64
import json
import os
import pickle
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from cqels_py.kernels.compiler.parallel_build import REHEARSAL

_KERNEL = "is_kernel"


class _Recorder:
    def __init__(self) -> None:
        self.inside = False
        self._seen: set[Any] = set()

    def record(self, function: Callable[..., Any], arguments: tuple[Any, ...], caller: str) -> None:
        """Write a JSON line, once for each kernel, types and calling module: the pickled types, and the bytecode sizes of
        all functions compiled with it."""
        from numba.core.typing.typeof import Purpose, typeof

        types = tuple(typeof(argument, Purpose.argument) for argument in arguments)
        call = (function.__module__, function.__name__, types, caller)
        if call not in self._seen:
            self._seen.add(call)
            line = {
                "module": function.__module__,
                "name": function.__name__,
                "caller": caller,
                "types": base64.b64encode(pickle.dumps(types)).decode(),
                "parts": _parts(function),
            }
            os.write(int(os.environ[REHEARSAL]), json.dumps(line).encode() + b"\n")


_RECORDER = _Recorder()


def recorded(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, reporting calls from outside of kernels; functions called by other kernels are compiled with their
    callers."""

    @wraps(function)
    def call(*arguments: Any) -> Any:
        if _RECORDER.inside:
            return function(*arguments)
        _RECORDER.inside = True
        try:
            _RECORDER.record(function, arguments, sys._getframe(1).f_globals["__name__"])
            return _as_compiled(function(*arguments))
        finally:
            _RECORDER.inside = False

    setattr(call, _KERNEL, True)
    return call


def _parts(function: Callable[..., Any]) -> dict[str, int]:
    """The kernel and all kernels that it calls, directly or indirectly: the bytes of their bytecode, by name."""
    found: dict[str, int] = {}
    waiting: list[Any] = [function]
    while waiting:
        kernel = waiting.pop()
        name = f"{kernel.__module__}.{kernel.__name__}"
        if name not in found:
            found[name] = len(kernel.__code__.co_code)
            called = (kernel.__globals__.get(each) for each in kernel.__code__.co_names)
            waiting += [each.__wrapped__ for each in called if hasattr(each, _KERNEL)]
    return found


def _as_compiled(result: Any) -> Any:
    """Compiled kernels return Python numbers; so do these."""
    if isinstance(result, tuple):
        return tuple(map(_as_compiled, result))
    return result.item() if isinstance(result, np.generic) else result
