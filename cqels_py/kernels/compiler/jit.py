"""The house decorator: every compiled function of the project goes through it.

Kept on disk (compiled once per machine), without the GIL, with numpy's error model (no Python exceptions for
division: kernels check what they divide by), and without negative indices. `NUMBA_DISABLE_JIT=1` runs the same
functions as plain Python.
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
from cqels_py.kernels.compiler.parallel_build import REHEARSAL
from cqels_py.kernels.compiler.recording import recorded
from cqels_py.kernels.compiler.unsigned_indices import FromTheStart

Function = TypeVar("Function", bound=Callable[..., Any])

_IMPORT = re.compile(r"^from (cqels_py\.[\w.]+) import", re.MULTILINE)
_ROOT = Path(__file__).resolve().parents[3]


def jit(function: Function) -> Function:
    """Compile `function` at its first call for the types of its arguments, or load it from the cache."""
    return _compile(function)


def jit_flat(function: Function) -> Function:
    """The same for a kernel that allocates nothing: without reference counting.

    An inlined helper would cost an atomic operation for each array it takes: several times the kernel's own work.
    """
    return _compile(function, _nrt=False)


def jit_allocating(function: Function) -> Function:
    """For a kernel that allocates and is called by ones that do not, from which it would inherit that it cannot."""
    return _compile(function, _nrt=True)


def jit_inline(function: Function) -> Function:
    """For helpers of a few lines inside hot loops, which allocate nothing: LLVM puts them into their callers.

    numba would compile one for each constant that it is given, which LLVM does anyway.
    """
    return _same_for_constants(_compile(function, _nrt=False, forceinline=True))


def _same_for_constants(function: Function) -> Function:
    compiled = cast(Any, function)
    if hasattr(compiled, "get_call_template"):
        template = compiled.get_call_template
        compiled.get_call_template = lambda args, kws: template(tuple(map(numba.types.unliteral, args)), kws)
    return function


def _compile(function: Function, *, forceinline: bool = False, **options: bool) -> Function:
    # Said in any case: what is first compiled for a caller that is inlined would inherit that.
    if REHEARSAL in os.environ:
        return cast(Function, recorded(function))
    return cast(Function, _keep_in_files(_njit(function, forceinline=forceinline, **options)))


def _njit(function: Function, **options: bool) -> Any:
    """Nobody calls kernels from C."""
    compiled = cast(Any, numba.njit)(
        nogil=True, error_model="numpy", no_cfunc_wrapper=True, pipeline_class=FromTheStart, **options
    )
    return compiled(function)


def _keep_in_files(compiled: Any) -> Any:
    """Tie what is kept to the text of the kernel's module and of all it imports.

    numba looks at the one file only, and would go on using a caller whose inlined helper has changed in another file.
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
        # What else it imports keeps kernels and does not make them.
        return text + _fingerprint(FromTheStart.__module__)
    imported = [_fingerprint(name) for name in dict.fromkeys(_IMPORT.findall(text)) if name != module]
    return hashlib.blake2b("\n".join([text, *imported]).encode(), digest_size=16).hexdigest()
