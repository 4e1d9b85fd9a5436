"""Texts of bytes that wait, first in, first out: a few in memory, and the others in a file without a name."""

from __future__ import annotations

import os
import struct
import tempfile
from collections import deque
from pathlib import Path
from typing import IO

from cqels_py.checkpoints.durable_files import StorageError

IN_MEMORY = 4 << 20
"""Bytes that wait in memory; more do in the file."""
_LENGTH = struct.Struct("<Q")


class Spool:
    """Used by one thread at a time. `folder`: for the file; None: where temporary files are.

    >>> spool = Spool()
    >>> spool.add(b"one")
    >>> spool.add(b"two")
    >>> spool.take(), spool.take(), spool.take()
    (b'one', b'two', None)
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._first: deque[bytes] = deque()
        self._file: IO[bytes] | None = None
        # Where the next one in the file begins, and where the last one ends.
        self._at = self._end = 0
        self._in_memory = 0

    @property
    def nbytes(self) -> int:
        """Bytes that wait."""
        return self._in_memory + self._end - self._at

    def add(self, content: bytes) -> None:
        """Behind the others. StorageError if the file cannot be written, as on a full disk; then it is not there."""
        # Behind those in the file, too.
        if self._at == self._end and self._in_memory + len(content) <= IN_MEMORY:
            self._first.append(content)
            self._in_memory += len(content)
            return
        try:
            if self._file is None:
                # Closed by `close`.
                self._file = tempfile.TemporaryFile(prefix="cqels-backlog-", dir=self._folder, buffering=0)  # noqa: SIM115
            self._write(self._file.fileno(), _LENGTH.pack(len(content)) + content)
        except OSError as error:
            raise StorageError(
                f"results wait for a sink, and cannot be written to {self._folder or tempfile.gettempdir()}: {error.strerror}"
            ) from error

    def take(self) -> bytes | None:
        """The first one, which is there no longer; None: there is none."""
        if self._first:
            content = self._first.popleft()
            self._in_memory -= len(content)
            return content
        if self._at == self._end or self._file is None:
            return None
        (length,) = _LENGTH.unpack(os.pread(self._file.fileno(), _LENGTH.size, self._at))
        start = self._at + _LENGTH.size
        content = b"".join(self._read(self._file.fileno(), start, length))
        self._at = start + length
        if self._at == self._end:
            self._file.truncate(0)
            self._at = self._end = 0
        return content

    def close(self) -> None:
        """Forget all that waits."""
        self._first.clear()
        self._at = self._end = self._in_memory = 0
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write(self, file: int, content: bytes) -> None:
        left, at = memoryview(content), self._end
        while len(left):
            # Bytes that a failure has left behind the end are overwritten.
            written = os.pwrite(file, left, at)
            left, at = left[written:], at + written
        self._end = at

    @staticmethod
    def _read(file: int, start: int, length: int) -> list[bytes]:
        found = []
        while length:
            part = os.pread(file, length, start)
            assert part, "the file is shorter than the bytes that were written"
            found.append(part)
            start, length = start + len(part), length - len(part)
        return found
