"""Kernels that report their calls instead of being compiled: for the processes that record the manifest.

They run as plain Python there (`NUMBA_DISABLE_JIT=1`).
"""

from __future__ import annotations

import base64
import json
import os
import pickle
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, Final

import numpy as np

RECORDING: Final = "CQELS_RECORD_KERNELS"
"""Environment variable of a recording process: the number of the open file descriptor to which it writes its calls."""


_PROGRAMS: Final = "cqels_py.dataflow.program_builder"
"""The module that makes programs."""


class _Recorder:
    def __init__(self) -> None:
        self.inside = False
        self._seen: set[Any] = set()

    def record(self, function: Callable[..., Any], arguments: tuple[Any, ...], caller: str) -> None:
        """Write a JSON line, once for each kernel, types and calling module, with the pickled types."""
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
            }
            os.write(int(os.environ[RECORDING]), json.dumps(line).encode() + b"\n")


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

    return call


def record_entry(function: Any) -> None:
    """Report an entry of programs, which a driver calls by its address."""
    _RECORDER.record(function.__wrapped__, (0,), _PROGRAMS)


def _as_compiled(result: Any) -> Any:
    """Compiled kernels return Python numbers; so do these."""
    if isinstance(result, tuple):
        return tuple(map(_as_compiled, result))
    return result.item() if isinstance(result, np.generic) else result
