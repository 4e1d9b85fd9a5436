"""Standard input, whose first bytes can be inspected before they are read."""

from __future__ import annotations

import select
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any, Final

from cqels_py.formats.compression import CHUNK_BYTES, widen_pipe
from cqels_py.interrupts import wait_to_read

STANDARD_INPUT: Final = "-"
"""The location that stands for standard input."""
FIRST_BYTES: Final = 1 << 15
"""The number of bytes at the beginning that can be inspected."""


class StandardInput:
    """The bytes of a pipe, a terminal or a file, as they become available."""

    def __init__(self, buffer: Any) -> None:
        self.buffer = buffer
        self._first: bytes | None = None
        self._given_back = b""
        self._is_empty = False
        """The buffer is empty: the next bytes come from the file."""

    def first(self) -> bytes | None:
        """The first bytes, at most `FIRST_BYTES`, whether they have been read or not; None while there are none.

        Never waits: it returns the bytes that the first read found.
        """
        if self._first is None and self._is_ready():
            with suppress(OSError, ValueError):
                self._first = self._given_back = self.buffer.read1(FIRST_BYTES)
        return self._first

    def read(self, size: int) -> bytes:
        """The bytes that are there, at most `size`; waits only if there are none. Empty at the end."""
        if self._first == b"":
            return b""
        chunk: bytes = self._given_back[:size]
        self._given_back = self._given_back[size:]
        if not chunk:
            if self._is_empty:
                self._wait()
            chunk = self.buffer.read1(size)
            self._is_empty = len(chunk) < size
        if self._first is None:
            self._first = chunk[:FIRST_BYTES]
        return chunk

    def _wait(self) -> None:
        # Not every input has a file.
        with suppress(AttributeError, OSError, ValueError):
            wait_to_read(self.buffer.fileno())

    def _is_ready(self) -> bool:
        # An input that cannot be asked (no file, a pipe on Windows) may make its reader wait.
        with suppress(OSError, ValueError):
            return bool(select.select([self.buffer], [], [], 0)[0])
        return False


_KNOWN: list[StandardInput] = []


def standard_input() -> StandardInput:
    """The standard input of this process: one object for each `sys.stdin`, so that no bytes are lost between two readers."""
    buffer = sys.stdin.buffer
    if not _KNOWN or _KNOWN[0].buffer is not buffer:
        _KNOWN[:] = [StandardInput(buffer)]
    return _KNOWN[0]


def standard_input_chunks(chunk_bytes: int = CHUNK_BYTES) -> Iterator[bytes]:
    """The bytes of standard input as they become available, at most `chunk_bytes` at a time."""
    pipe = standard_input()
    widen_pipe(pipe.buffer)
    yield from iter(partial(pipe.read, chunk_bytes), b"")
