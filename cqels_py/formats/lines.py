"""Chunks of bytes to blocks of whole lines of UTF-8, with line numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from cqels_py.errors import DataError, Place
from cqels_py.kernels.text.lines import survey

LINE_LIMIT = 64 << 20
"""The maximum length of a line in bytes. A longer line is malformed."""

Malformed = Callable[[DataError], None]
"""Handles malformed input: raises the error, or counts and reports it."""

_WORD = 8
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def line_blocks(
    chunks: Iterable[bytes], source: str, malformed: Malformed, number: int = 1
) -> Iterator[tuple[bytes, int]]:
    """Blocks of whole lines, each with the number of its first line; the last line may lack its newline. `number`: of the first.

    An empty block stands where a chunk is empty: nothing comes for now. Lines that are not UTF-8 or longer than LINE_LIMIT are
    given to `malformed` and replaced by empty lines.
    """
    for block in _whole_lines(chunks, started=number > 1):
        if block is None:
            malformed(DataError(f"a line longer than {LINE_LIMIT >> 20} MiB", Place(number, None, source)))
            block = b"\n"
        if not block:
            yield block, number
            continue
        newlines, is_ascii = _survey(block)
        if is_ascii:
            yield block, number
        else:
            yield from (part for part in _valid(block, number, source, malformed) if part[0])
        number += newlines


def _survey(block: bytes) -> tuple[int, bool]:
    """The number of newlines, and whether the block is ASCII."""
    data = np.frombuffer(block, np.uint8)
    whole = len(data) // _WORD * _WORD
    newlines, is_ascii = survey(data[:whole].view(np.uint64), data[whole:])
    return int(newlines), bool(is_ascii)


def _whole_lines(chunks: Iterable[bytes], *, started: bool) -> Iterator[bytes | None]:
    """Blocks that end with a newline (except perhaps the last); None for a line that is too long. `started`: not the beginning."""
    parts: list[bytes] = []
    size = 0
    skipping = False
    for chunk in _pieces(chunks):
        if not chunk:
            yield chunk
            continue
        if not started:
            # The byte order mark may be split between chunks.
            parts.append(chunk)
            size += len(chunk)
            if size < len(_BYTE_ORDER_MARK):
                continue
            chunk = b"".join(parts).removeprefix(_BYTE_ORDER_MARK)
            parts, size, started = [], 0, True
        cut = chunk.rfind(b"\n") + 1
        if cut:
            if skipping:
                start = chunk.find(b"\n") + 1
                skipping = False
            else:
                start = 0
            end = chunk.find(b"\n") + 1
            if parts and size + end > LINE_LIMIT:
                yield None
                parts, start = [], end
            if start < cut:
                whole = not parts and start == 0 and cut == len(chunk)
                yield chunk if whole else b"".join([*parts, memoryview(chunk)[start:cut]])
            parts, size, chunk = [], 0, chunk[cut:]
        if skipping or not chunk:
            continue
        parts.append(chunk)
        size += len(chunk)
        if size > LINE_LIMIT:
            yield None
            parts, size, skipping = [], 0, True
    if size:
        yield b"".join(parts)


def _pieces(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Pieces of at most LINE_LIMIT bytes (an empty chunk is one), so that a line that is too long spans more than one."""
    for chunk in chunks:
        for start in range(0, max(1, len(chunk)), LINE_LIMIT):
            yield chunk[start : start + LINE_LIMIT]


def _valid(block: bytes, number: int, source: str, malformed: Malformed) -> Iterator[tuple[bytes, int]]:
    """The block, or the parts of it between lines that are not UTF-8."""
    try:
        block.decode()
    except UnicodeDecodeError:
        yield from _valid_lines(block, number, source, malformed)
    else:
        yield block, number


def _valid_lines(block: bytes, number: int, source: str, malformed: Malformed) -> Iterator[tuple[bytes, int]]:
    """Decode line by line: a UnicodeDecodeError keeps a copy of everything that was to be decoded."""
    start = at = 0
    for line in block.split(b"\n"):
        try:
            line.decode()
        except UnicodeDecodeError as error:
            yield block[start:at], number
            number += block.count(b"\n", start, at)
            place = Place(number, len(line[: error.start].decode()) + 1, source)
            wrong = DataError(f"the byte 0x{line[error.start]:02x} is not UTF-8", place)
            malformed(wrong.about(line.decode("utf-8", "backslashreplace")))
            start = at + len(line)
        at += len(line) + 1
    yield block[start:], number
