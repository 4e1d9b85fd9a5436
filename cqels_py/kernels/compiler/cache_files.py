"""Compiled kernels on disk: a file for each kernel and each layout of its arguments.

numba would keep one index for all layouts of a kernel. Two processes that compile at once would overwrite each other's entries
there, and could even swap them: here nothing is shared, and files appear whole or not at all. A file that is damaged all the same
counts as missing: the kernel is compiled anew and takes its place.
"""

from __future__ import annotations

import hashlib
import logging
import os
import pickle
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import mmh3
import numba
from numba.core.serialize import dumps

from cqels_py.kernels.compiler import parallel_build as ahead

_LOG = logging.getLogger("cqels_py")
_DIGEST = 16
"""Bytes of a digest. A file is the digest of what the kernel was made from, that of the rest, and the rest: the kernel."""


class KernelFiles:
    """What numba asks of the files of one kernel (its IndexDataCacheFile): load, save and flush.

    A kernel is looked for in each of `folders` and kept in the first that can be written; folders are made when they are needed.
    `stamp` stands for the text that the kernel was compiled from; files of another text are passed over, and overwritten.
    """

    def __init__(self, folders: Sequence[Path], stem: str, stamp: str) -> None:
        self._folders = tuple(folders)
        self._stem = stem
        self._stamp = stamp

    def load(self, key: Any) -> Any:
        """What was saved for these types, or None; the first time that something is missing, all that will be is compiled."""
        found = self._read(key)
        if found is None and ahead.something_is_missing(lambda: _can_be_written(self._folders)):
            found = self._read(key)
        return found

    def save(self, key: Any, data: Any) -> None:
        """Write the kernel's file; where that fails, say so once, and the kernel is compiled again next time."""
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

    def _read(self, key: Any) -> Any:
        name, head = self._name(key), self._head(key)
        for folder in self._folders:
            with suppress(OSError):
                found = _kernel_in((folder / name).read_bytes(), head)
                if found is not None:
                    return found
        return None

    def _name(self, key: Any) -> str:
        types, machine, _ = key
        return f"{self._stem}.{_digest(types, machine).hex()}.nbc"

    def _head(self, key: Any) -> bytes:
        return _digest(key, self._stamp, numba.__version__)


def _digest(*parts: Any) -> bytes:
    return hashlib.blake2b(repr(parts).encode(), digest_size=_DIGEST).digest()


def _kernel_in(content: bytes, head: bytes) -> Any:
    """What a file keeps; None where it was made from something else, is damaged, or does not load."""
    payload = memoryview(content)[2 * _DIGEST :]
    if not content.startswith(head) or content[_DIGEST : 2 * _DIGEST] != mmh3.mmh3_x64_128_digest(payload):
        return None
    try:
        return pickle.loads(payload)
    except Exception:
        # Written whole, but by libraries other than those that are installed now.
        return None


def _write(folders: Sequence[Path], name: str, content: bytes) -> None:
    """Write a file into the first folder that takes it. OSError, the first folder's, where none does."""
    failed: OSError | None = None
    for folder in folders:
        try:
            return _write_whole(folder / name, content)
        except OSError as error:
            failed = failed or error
    if failed is not None:
        raise failed


def _write_whole(path: Path, content: bytes) -> None:
    """A file of this name holds all of the content or is not there, also after the machine has lost its power."""
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
    """Is there a folder that would keep a kernel? If not, other processes would compile for nobody."""
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
    """Say once that kernels are not kept, and why."""
    if not _WARNED:
        _WARNED.append(error)
        _LOG.warning(
            "compiled kernels cannot be kept in %s (%s): every start will compile them again; CQELS_CACHE_DIR names another folder",
            " or ".join(map(str, folders)),
            error.strerror or error,
        )
