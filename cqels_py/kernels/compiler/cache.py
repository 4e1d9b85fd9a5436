"""The cache of compiled kernels as numba sees it: load, save, and compile again if a file cannot be loaded."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any, cast

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache, UserWideCacheLocator
from numba.misc.appdirs import AppDirs

from cqels_py.kernels.compiler import shipped
from cqels_py.kernels.compiler.cache_files import KernelFiles
from cqels_py.kernels.compiler.shipped import Shipment

FOLDER = "CQELS_CACHE_DIR"
"""Environment variable with the folder for compiled kernels; it takes precedence over NUMBA_CACHE_DIR and the default
folders."""


class _Names(UserWideCacheLocator):
    """Makes the names of a kernel's files. Folders and stamps are the business of KernelFiles, and nothing is written
    before there is a kernel."""

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
        """The kernel, or None where it was written by other versions of the libraries."""
        try:
            return super().rebuild(target_context, payload)
        except Exception:
            return None


class KernelCache(FunctionCache):
    """The files of one kernel. `stamp`: a digest of the source that it is compiled from."""

    _impl_class = _Results

    def __init__(self, function: Any, stamp: str) -> None:
        super().__init__(function)
        self._module = function.__code__.co_filename
        self._stamp = stamp
        folders, shipment = folders_of(self._module, stamp), shipped.usable()
        beside = None if shipment is None else (shipped.folder_of(Path(self._module)), shipment.machine)
        self._cache_path = str(folders[0])
        self._files = KernelFiles(folders, self._impl.filename_base, stamp, beside)
        self._cache_file = cast(Any, self._files)

    def has(self, types: tuple[Any, ...], target: Any) -> bool:
        """Is there a file of the kernel for arguments of these types? It is not loaded."""
        return self._files.has(self._index_key(types, target.codegen()))

    def ship(self, types: tuple[Any, ...], target: Any, shipment: Shipment, compiled: str, folder: Path) -> bool:
        """Copy a kernel from a cache, the folder `compiled`, where it was compiled for other machines, to a folder for them.
        The answer is False if it is not there."""
        signature, _, code = self._index_key(types, target.codegen())
        (place,) = folders_of(self._module, self._stamp, compiled)
        into = shipped.folder_of(Path(self._module), folder)
        return self._files.copy((signature, shipment.machine, code), place, into)

    @property
    def can_be_written(self) -> bool:
        """Can kernels be kept, so that one process can use those that another has compiled?"""
        return self._files.can_be_written


def folders_of(module: str, stamp: str, given: str | None = None) -> list[Path]:
    """The folders for the kernels of a module: that of `given`, or of the folder that the environment names; else the
    module's __pycache__ and the user's cache folder.

    Apart from the module they have the name of its source, wherever it lies: an environment that Spark unpacks is in another folder
    each time, and several versions of the package keep their kernels side by side.
    """
    given = given or os.environ.get(FOLDER) or numba.config.CACHE_DIR  # type: ignore[attr-defined]
    source = hashlib.blake2b(stamp.encode(), digest_size=16).hexdigest()
    apart = f"{Path(module).stem}_{source}"
    if given:
        return [Path(given, apart)]
    users = AppDirs(appname="numba", appauthor=False).user_cache_dir
    return [Path(module).parent / "__pycache__", Path(users, apart)]
