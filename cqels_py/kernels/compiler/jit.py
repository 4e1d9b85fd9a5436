"""The decorators of this project for compiled functions; every kernel uses one of them.

Kernels are cached on disk (compiled once per machine), release the GIL, use numpy's error model (division by zero
raises no Python exception, so kernels check divisors), and have no negative indices. With `NUMBA_DISABLE_JIT=1` the
same functions run as plain Python.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

from cqels_py.kernels.compiler.cache import KernelCache
from cqels_py.kernels.compiler.recording import RECORDING, recorded
from cqels_py.kernels.compiler.unsigned_indices import UnsignedIndices

Function = TypeVar("Function", bound=Callable[..., Any])

_IMPORT = re.compile(r"^from (cqels_py\.[\w.]+) import", re.MULTILINE)
_ROOT = Path(__file__).resolve().parents[3]


def jit(function: Function) -> Function:
    """Compile `function` at its first call for the types of its arguments, or load it from the cache.

    It may allocate, also where a `jit_flat` kernel calls it, whose setting numba would otherwise hand on.
    """
    return _compile(function, _nrt=True)


def jit_flat(function: Function) -> Function:
    """`jit` for a kernel that allocates nothing: it is compiled without reference counting.

    With reference counting an inlined helper would cost an atomic operation for each array it takes: several times the
    kernel's own work.
    """
    return _compile(function, _nrt=False)


def jit_inline(function: Function) -> Function:
    """`jit` for helpers of a few lines inside hot loops, which allocate nothing: LLVM inlines them.

    numba compiles a version for each constant argument. Here one version serves all constants, as LLVM propagates them
    after inlining.
    """
    return _same_for_constants(_compile(function, _nrt=False, forceinline=True))


def _same_for_constants(function: Function) -> Function:
    compiled = cast(Any, function)
    if hasattr(compiled, "get_call_template"):
        template = compiled.get_call_template
        compiled.get_call_template = lambda args, kws: template(tuple(map(numba.types.unliteral, args)), kws)
    return function


def _compile(function: Function, *, forceinline: bool = False, **options: bool) -> Function:
    # All options are set explicitly, since a function that is first compiled for an inlined caller would inherit the
    # caller's options.
    if RECORDING in os.environ:
        return cast(Function, recorded(function))
    return cast(Function, _keep_in_files(_njit(function, forceinline=forceinline, **options)))


def _njit(function: Function, **options: bool) -> Any:
    """Without a C wrapper: nothing calls kernels from C."""
    compiled = cast(Any, numba.njit)(
        nogil=True, error_model="numpy", no_cfunc_wrapper=True, pipeline_class=UnsignedIndices, **options
    )
    return compiled(function)


def _keep_in_files(compiled: Any) -> Any:
    """Tie the cached kernel to the source of its module and of all modules that it imports.

    numba checks only the kernel's own file, and would keep using a caller whose inlined helper has changed in another
    file.
    """
    if not numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        compiled._cache = KernelCache(compiled.py_func, _fingerprint(compiled.__module__))
    return compiled


@cache
def _fingerprint(module: str) -> str:
    path = _ROOT.joinpath(*module.split(".")).with_suffix(".py")
    if not path.exists():
        return module
    text = path.read_text()
    if module == __name__:
        # Its other imports only manage cached files and do not affect the generated code.
        return text + _fingerprint(UnsignedIndices.__module__)
    imported = [_fingerprint(name) for name in dict.fromkeys(_IMPORT.findall(text)) if name != module]
    return hashlib.blake2b("\n".join([text, *imported]).encode(), digest_size=16).hexdigest()
