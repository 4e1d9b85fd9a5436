"""The house decorator: every compiled function of the project goes through it.

Cached on disk (compiled once per machine), without the GIL, with numpy's error model (no Python exceptions for
division: kernels check what they divide by). `NUMBA_DISABLE_JIT=1` runs the same functions as plain Python.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])

_IMPORT = re.compile(r"^from (cqels_py\.[\w.]+) import", re.MULTILINE)
_ROOT = Path(__file__).resolve().parents[2]


def jit(function: Function) -> Function:
    """Compile `function` at its first call for the types of its arguments, or load it from the cache."""
    return _compile(function)


def jit_flat(function: Function) -> Function:
    """The same for a kernel that allocates nothing: without reference counting.

    An inlined helper would cost an atomic operation for each array it takes: several times the kernel's own work.
    """
    return _compile(function, _nrt=False)


def jit_inline(function: Function) -> Function:
    """For helpers of a few lines inside hot loops, which allocate nothing: LLVM puts them into their callers."""
    return _compile(function, _nrt=False, forceinline=True)


def _compile(function: Function, **options: bool) -> Function:
    compiled = cast(Any, numba.njit)(cache=True, nogil=True, error_model="numpy", **options)(function)
    return cast(Function, _watch_imports(compiled))


def _watch_imports(compiled: Any) -> Any:
    """Tie the cache to the text of the kernel's module and of all it imports.

    numba looks at the one file only, and would go on using a caller whose inlined helper has changed in another file.
    """
    cache_file = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if cache_file is not None:
        cache_file._source_stamp = _fingerprint(compiled.__module__)
    return compiled


@cache
def _fingerprint(module: str) -> str:
    path = _ROOT.joinpath(*module.split(".")).with_suffix(".py")
    if not path.exists():
        return module
    text = path.read_text()
    imported = [_fingerprint(name) for name in dict.fromkeys(_IMPORT.findall(text)) if name != module]
    return hashlib.blake2b("\n".join([text, *imported]).encode(), digest_size=16).hexdigest()
