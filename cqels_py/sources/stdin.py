"""Standard input as a source."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from cqels_py.formats.compression import CHUNK_BYTES, widen_pipe
from cqels_py.interrupts import wait_to_read

STANDARD_INPUT: Final = "-"
"""The location that stands for standard input."""


def standard_input_chunks(chunk_bytes: int = CHUNK_BYTES) -> Iterator[bytes]:
    """The bytes of standard input as they become available, at most `chunk_bytes` at a time."""
    buffer: Any = sys.stdin.buffer
    widen_pipe(buffer)
    is_empty = False
    while True:
        if is_empty:
            # Not every input has a file.
            with suppress(AttributeError, OSError, ValueError):
                wait_to_read(buffer.fileno())
        chunk = buffer.read1(chunk_bytes)
        if not chunk:
            return
        yield chunk
        is_empty = len(chunk) < chunk_bytes
