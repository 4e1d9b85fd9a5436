"""Kernels that the package calls and the manifest does not have: they would be compiled in the middle of a run."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core.dispatcher import Dispatcher
from numba.core.typing.typeof import Purpose, typeof

from cqels_py.kernels.compiler.manifest import KernelCall, manifest, recorded_call

_KERNELS = "cqels_py.kernels."
BENCHMARKS = "cqels_py.suites."
"""They call kernels by hand, to compare with: no query needs these."""


@contextmanager
def calls_beyond_manifest() -> Iterator[list[KernelCall]]:
    """The calls, as they are made for the first time in this process: then numba asks for a compiled kernel."""
    known, found = frozenset(manifest()), []
    find = Dispatcher._compile_for_args

    def noted(kernel: Any, *arguments: Any, **options: Any) -> Any:
        caller = sys._getframe(1).f_globals["__name__"]
        function = kernel.py_func
        of_package = caller.startswith("cqels_py.") and not caller.startswith(BENCHMARKS)
        if of_package and function.__module__.startswith(_KERNELS):
            types = [typeof(argument, Purpose.argument) for argument in arguments]
            call = recorded_call(caller, function.__module__, function.__name__, types)
            if call not in known:
                found.append(call)
        return find(kernel, *arguments, **options)

    Dispatcher._compile_for_args = noted
    try:
        yield found
    finally:
        Dispatcher._compile_for_args = find
