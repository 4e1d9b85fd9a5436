"""Standard input as a source."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, Final

from cqels_py.formats.compression import CHUNK_BYTES, widen_pipe
from cqels_py.formats.input_wait import InputWait

STANDARD_INPUT: Final = "-"
"""The location that stands for standard input."""


def standard_input_chunks(chunk_bytes: int = CHUNK_BYTES, wait: InputWait | None = None) -> Iterator[bytes]:
    """The bytes of standard input as they become available, at most `chunk_bytes` at a time; none where `wait` ends."""
    buffer: Any = sys.stdin.buffer
    widen_pipe(buffer)
    return (wait or InputWait()).chunks(buffer, chunk_bytes)
