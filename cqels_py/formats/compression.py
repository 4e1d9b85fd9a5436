"""Reads the bytes of a file and decompresses them on the way."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator
from io import BufferedReader, BytesIO, FileIO
from pathlib import Path
from typing import IO, Any

from cqels_py.errors import DataError, MissingExtra, UsageError
from cqels_py.formats.endings import compression_of, missing
from cqels_py.formats.input_wait import InputWait
from cqels_py.interrupts import wait_to_read

CHUNK_BYTES = 1 << 22

_COMPRESSED_BYTES = 1 << 16
_PIPE_BYTES = 1 << 20
_ZSTD_PIECE = 1 << 9
"""Compressed bytes given to zstd at once: they expand to at most 16 MiB. (gzip limits the size of its output itself.)"""
_NEAR = 1 << 12


def local_path(location: str) -> Path:
    """The path of a file or a `file:` URL.

    UsageError if the file does not exist or cannot be accessed, and for other kinds of URLs.
    """
    scheme, separator, rest = location.partition("://")
    if separator and scheme != "file":
        raise UsageError(f"there is no connector for {scheme}://; a source is a file, or '-' for standard input")
    path = Path(rest if separator else location)
    try:
        if not path.exists():
            raise UsageError(missing(path))
        if path.is_dir():
            raise UsageError(f"{path} is a folder, not a file")
    except OSError as error:
        # In a folder that may not be entered, it is not even known whether the file exists.
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from None
    return path


def is_file(path: Path) -> bool:
    """Whether the path is a file that can be accessed."""
    try:
        return path.is_file()
    except OSError:
        return False


def read_chunks(
    location: str, chunk_bytes: int = CHUNK_BYTES, wait: InputWait | None = None, start: int = 0
) -> Iterator[bytes]:
    """The bytes of a file as they become available, in chunks of about `chunk_bytes` at most. Of a named pipe without compression
    chunks are empty where `wait` ends. `start`: the first byte, of a regular file without compression.

    Files ending in .gz or .zst are decompressed. If compressed data is damaged or truncated, DataError is raised after
    the bytes that could be read.
    """
    if chunk_bytes < 1:
        raise UsageError("chunk_bytes must be 1 or more")
    path = local_path(location)
    compression = compression_of(location)
    try:
        with _opened(path) as file:
            if compression == "gzip":
                yield from _gzip(file, location, chunk_bytes)
            elif compression == "zstd":
                yield from _zstd(file, location)
            elif path.is_file() and hasattr(os, "pread"):
                yield from _cut_at_lines(file, chunk_bytes, start)
            else:
                yield from (wait or InputWait()).chunks(file, chunk_bytes)
    except OSError as error:
        raise DataError(f"cannot read {location}: {error.strerror or error}") from None


class _Pipe(FileIO):
    """A named pipe on which a blocking read can be interrupted."""

    def readinto(self, buffer: Any) -> int:
        wait_to_read(self.fileno())
        return super().readinto(buffer)


def _opened(path: Path) -> BufferedReader[Any]:
    if not path.is_fifo():
        return path.open("rb")
    pipe: BufferedReader[Any] = BufferedReader(_Pipe(path))
    widen_pipe(pipe)
    return pipe


def _cut_at_lines(file: IO[bytes], chunk_bytes: int, at: int) -> Iterator[bytes]:
    """Chunks that end at a line's end, if there is one near the chunk's end. The reader then need not copy chunks to
    join their lines.
    """
    near = min(_NEAR, chunk_bytes)
    file.seek(at)
    while True:
        cut = os.pread(file.fileno(), near, at + chunk_bytes - near).rfind(b"\n") + 1
        chunk = file.read(chunk_bytes - near + cut if cut else chunk_bytes)
        if not chunk:
            return
        yield chunk
        at += len(chunk)


def widen_pipe(pipe: Any) -> None:
    """Enlarge a pipe's buffer, where the system allows it, so that a slow reader gets more data at once."""
    try:
        import fcntl

        fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    except (ImportError, AttributeError, OSError):
        pass


def _gzip(file: IO[bytes], location: str, chunk_bytes: int) -> Iterator[bytes]:
    with gzip.GzipFile(fileobj=file) as stream:
        while True:
            try:
                chunk = stream.read1(chunk_bytes)
            except EOFError:
                raise _ends_early(location) from None
            except (gzip.BadGzipFile, zlib.error) as error:
                raise DataError(f"{location} is not valid gzip data: {error}") from None
            if not chunk:
                return
            yield chunk


def _zstd(file: IO[bytes], location: str) -> Iterator[bytes]:
    zstandard = _zstandard(location)
    frame = None
    while raw := file.read1(_COMPRESSED_BYTES):  # type: ignore[attr-defined]
        chunks: list[bytes] = []
        size = at = 0
        while at < len(raw):
            frame = frame or zstandard.ZstdDecompressor().decompressobj()
            piece = raw[at : at + _ZSTD_PIECE]
            try:
                chunk = frame.decompress(piece)
            except zstandard.ZstdError as error:
                raise DataError(f"{location} is not valid zstd data: {error}") from None
            at += len(piece) - len(frame.unused_data)
            if frame.eof:
                frame = None
            if size + len(chunk) > CHUNK_BYTES and chunks:
                yield b"".join(chunks)
                chunks, size = [], 0
            chunks.append(chunk)
            size += len(chunk)
        if size:
            yield b"".join(chunks)
    if frame is not None:
        raise _ends_early(location)


def _zstandard(location: str) -> Any:
    try:
        import zstandard
    except ImportError:
        raise MissingExtra(f"{location} needs the package zstandard: pip install 'cqels_py[zstd]'") from None
    return zstandard


def _ends_early(location: str) -> DataError:
    return DataError(f"{location} ends early: its compressed data is cut off")


class ByteStream:
    """Chunks as a readable file. An error of the chunks ends the data and is kept in `error`."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._chunk = BytesIO()
        self.error: DataError | None = None

    def read(self, size: int = -1) -> bytes:
        """At most `size` bytes (a whole chunk if negative); empty at the end."""
        found = self._chunk.read(size)
        while not found and size != 0:
            try:
                self._chunk = BytesIO(next(self._chunks))
            except StopIteration:
                break
            except DataError as error:
                self.error = error
                break
            found = self._chunk.read(size)
        return found
