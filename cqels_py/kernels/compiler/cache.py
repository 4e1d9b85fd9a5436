"""Where compiled kernels lie, and what numba does with them: loads, saves, and compiles again what does not load."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, cast

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache, UserWideCacheLocator
from numba.misc.appdirs import AppDirs

from cqels_py.kernels.compiler.cache_files import KernelFiles

FOLDER = "CQELS_CACHE_DIR"
"""In the environment: the folder for compiled kernels, before NUMBA_CACHE_DIR and the usual ones."""


class _Names(UserWideCacheLocator):
    """Names the files of a kernel. Folders and stamp are those of KernelFiles, and nothing is written before there is a kernel."""

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> _Names:
        return cls(py_func, py_file)

    def ensure_cache_path(self) -> None:
        pass

    def get_source_stamp(self) -> None:
        pass


class _Results(CompileResultCacheImpl):
    _locator_classes = [_Names]  # noqa: RUF012

    def rebuild(self, target_context: Any, payload: Any) -> Any:
        """The kernel, or None where libraries other than those that are installed now have written it."""
        try:
            return super().rebuild(target_context, payload)
        except Exception:
            return None


class KernelCache(FunctionCache):
    """The files of one kernel. `stamp`: that of the text it is compiled from."""

    _impl_class = _Results

    def __init__(self, function: Any, stamp: str) -> None:
        super().__init__(function)
        folders = folders_of(function.__code__.co_filename)
        self._cache_path = str(folders[0])
        self._cache_file = cast(Any, KernelFiles(folders, self._impl.filename_base, stamp))


def folders_of(module: str) -> list[Path]:
    """The folders for the kernels of a module's file: the one that the environment names, or those beside it and the user's."""
    given = os.environ.get(FOLDER) or numba.config.CACHE_DIR  # type: ignore[attr-defined]
    apart = _Names.get_suitable_cache_subpath(module)
    if given:
        return [Path(given, apart)]
    users = AppDirs(appname="numba", appauthor=False).user_cache_dir
    return [Path(module).parent / "__pycache__", Path(users, apart)]
