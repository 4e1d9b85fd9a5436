"""Compiled kernels on disk: a file for each kernel and each layout of its arguments.

numba would keep one index for all layouts of a kernel. Two processes that compile at once would overwrite each other's entries
there, and could even swap them: here nothing is shared, and files appear whole or not at all.
"""

from __future__ import annotations

import hashlib
import os
import pickle
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import numba
from numba.core.serialize import dumps

from cqels_py.kernels.building import ahead

_DIGEST = 16


class KernelFiles:
    """What numba asks of the files of one kernel (its IndexDataCacheFile): load, save and flush.

    `stamp` stands for the text that the kernel was compiled from; files of another text are passed over, and overwritten.
    """

    def __init__(self, folder: str, stem: str, stamp: str) -> None:
        self._folder = Path(folder)
        self._stem = stem
        self._stamp = stamp

    def load(self, key: Any) -> Any:
        """What was saved for these types, or None; the first time that something is missing, all that will be is compiled."""
        found = self._read(key)
        if found is None and ahead.something_is_missing():
            found = self._read(key)
        return found

    def save(self, key: Any, data: Any) -> None:
        path = self._path(key)
        part = path.with_name(f"{path.name}.{uuid4().hex}")
        # What cannot be kept is compiled again next time.
        with suppress(OSError):
            try:
                part.write_bytes(self._head(key) + dumps(data))
                os.replace(part, path)
            finally:
                part.unlink(missing_ok=True)

    def flush(self) -> None:
        for path in self._folder.glob(f"{self._stem}.*.nbc"):
            path.unlink(missing_ok=True)

    def _read(self, key: Any) -> Any:
        try:
            found = self._path(key).read_bytes()
        except OSError:
            return None
        return pickle.loads(found[_DIGEST:]) if found.startswith(self._head(key)) else None

    def _path(self, key: Any) -> Path:
        types, machine, _ = key
        return self._folder / f"{self._stem}.{_digest(types, machine).hex()}.nbc"

    def _head(self, key: Any) -> bytes:
        return _digest(key, self._stamp, numba.__version__)


def _digest(*parts: Any) -> bytes:
    return hashlib.blake2b(repr(parts).encode(), digest_size=_DIGEST).digest()
