"""Compiled kernels on disk: one file for each kernel and each combination of argument types.

numba keeps one index file for all signatures of a kernel. Processes that compile at the same time overwrite each
other's index entries there, and can even swap them. Here nothing is shared between files, and a file is written
atomically. A file that is damaged anyway counts as missing: the kernel is compiled again and replaces it.
"""

from __future__ import annotations

import hashlib
import logging
import os
import pickle
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import mmh3
import numba
from numba.core.serialize import dumps

_LOG = logging.getLogger("cqels_py")
_DIGEST = 16
"""Bytes of a digest. A file is a digest of the kernel's inputs (source, types, versions), a digest of the payload, and
the payload: the compiled kernel."""

Machine = tuple[str, str, str]
"""A machine by numba's names: LLVM's triple, the processor, and its features."""


class KernelFiles:
    """The files of one kernel, with the interface of numba's IndexDataCacheFile: load, save and flush.

    A kernel is looked up in each of `folders` and saved in the first that is writable; folders are created when needed.
    `stamp` identifies the source that the kernel was compiled from; files of other sources are ignored and overwritten.
    `shipped`: a folder with kernels that were compiled for another machine and run on this one too, and that machine.
    """

    def __init__(
        self, folders: Sequence[Path], stem: str, stamp: str, shipped: tuple[Path, Machine] | None = None
    ) -> None:
        self._folders = tuple(folders)
        self._stem = stem
        self._stamp = stamp
        self._shipped = shipped

    def load(self, key: Any) -> Any:
        """The kernel saved for these types, or None."""
        for path, head in self._places(key):
            with suppress(OSError):
                found = _kernel_in(path.read_bytes(), head)
                if found is not None:
                    return found
        return None

    def has(self, key: Any) -> bool:
        """Is there a file for these types, made from the same source by the same numba? Its content is not checked."""
        return any(_begins_with(path, head) for path, head in self._places(key))

    def copy(self, key: Any, source: Path, into: Path) -> bool:
        """Copy the kernel's file from one folder to another; False if it is not there."""
        path = source / self._name(key)
        if not _begins_with(path, self._head(key)):
            return False
        _write_whole(into / path.name, path.read_bytes())
        return True

    @property
    def can_be_written(self) -> bool:
        return _can_be_written(self._folders)

    def save(self, key: Any, data: Any) -> None:
        """Write the kernel's file. If that fails, warn once; the kernel is then compiled again next time."""
        payload = dumps(data)
        content = self._head(key) + mmh3.mmh3_x64_128_digest(payload) + payload
        try:
            _write(self._folders, self._name(key), content)
        except OSError as error:
            _warn(error, self._folders)

    def flush(self) -> None:
        for folder in self._folders:
            for path in folder.glob(f"{self._stem}.*.nbc"):
                with suppress(OSError):
                    path.unlink()

    def _places(self, key: Any) -> Iterator[tuple[Path, bytes]]:
        """The files that a kernel may be in, each with the digest of its inputs."""
        name, head = self._name(key), self._head(key)
        for folder in self._folders:
            yield folder / name, head
        if self._shipped is not None:
            folder, machine = self._shipped
            types, _, code = key
            of_target = types, machine, code
            yield folder / self._name(of_target), self._head(of_target)

    def _name(self, key: Any) -> str:
        types, machine, _ = key
        return f"{self._stem}.{_digest(types, machine).hex()}.nbc"

    def _head(self, key: Any) -> bytes:
        return _digest(key, self._stamp, numba.__version__)


def _digest(*parts: Any) -> bytes:
    return hashlib.blake2b(repr(parts).encode(), digest_size=_DIGEST).digest()


def _begins_with(path: Path, head: bytes) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(head)) == head
    except OSError:
        return False


def _kernel_in(content: bytes, head: bytes) -> Any:
    """The kernel in a file; None where it was made from other inputs, is damaged, or does not load."""
    payload = memoryview(content)[2 * _DIGEST :]
    if not content.startswith(head) or content[_DIGEST : 2 * _DIGEST] != mmh3.mmh3_x64_128_digest(payload):
        return None
    try:
        return pickle.loads(payload)
    except Exception:
        # An intact file, but written by other versions of the libraries.
        return None


def _write(folders: Sequence[Path], name: str, content: bytes) -> None:
    """Write a file to the first folder that accepts it. Raises the first folder's OSError if none does."""
    failed: OSError | None = None
    for folder in folders:
        try:
            return _write_whole(folder / name, content)
        except OSError as error:
            failed = failed or error
    if failed is not None:
        raise failed


def _write_whole(path: Path, content: bytes) -> None:
    """Write a file atomically and durably: under this name there is the whole content or nothing, also after a power
    failure."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{uuid4().hex}")
    try:
        with part.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    finally:
        with suppress(OSError):
            part.unlink()


@cache
def _can_be_written(folders: tuple[Path, ...]) -> bool:
    """Is there a folder that can keep a kernel? If not, kernels compiled by other processes would be lost."""
    name = f"{uuid4().hex}.probe"
    try:
        _write(folders, name, bytes(1 << 16))
    except OSError:
        return False
    for folder in folders:
        with suppress(OSError):
            (folder / name).unlink()
    return True


_WARNED: list[OSError] = []


def _warn(error: OSError, folders: Sequence[Path]) -> None:
    """Warn once that kernels are not kept, and why."""
    if not _WARNED:
        _WARNED.append(error)
        _LOG.warning(
            "compiled kernels cannot be kept in %s (%s): every start will compile them again; CQELS_CACHE_DIR names another folder",
            " or ".join(map(str, folders)),
            error.strerror or error,
        )
