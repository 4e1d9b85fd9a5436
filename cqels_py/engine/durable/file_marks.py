"""By which a file is known again."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import NamedTuple

from cqels_py.formats.endings import STREAMS, compression_of, format_of

_PIECES, _PIECE, _CHUNK = 64, 1 << 12, 1 << 20
_BY_LINE = ("nq", "nt", "ndjson", "csv", "tsv")
_ANY_TIME = -1


class FileMark(NamedTuple):
    """A file as it was: its bytes, the time of its last change in nanoseconds, and a digest of pieces all over it."""

    size: int
    changed: int
    digest: str

    @staticmethod
    def of(path: Path, former: FileMark | None = None) -> FileMark:
        """The mark of a file as it is now. `former`: an earlier one, whose digest is taken if nothing has changed."""
        status = path.stat()
        if former is not None and (former.size, former.changed) == (status.st_size, status.st_mtime_ns):
            return former
        return FileMark(status.st_size, status.st_mtime_ns, _digest(path, status.st_size))

    @staticmethod
    def before(path: Path, line: int) -> FileMark | None:
        """The mark of a text up to the beginning of a line (from 1): the text behind it may change. None for other formats, in
        which lines do not say where elements are.
        """
        if compression_of(str(path)) is not None or format_of(str(path), STREAMS) not in _BY_LINE:
            return None
        size = _start_of(path, line)
        return FileMark(size, _ANY_TIME, _digest(path, size))

    @property
    def is_before_line(self) -> bool:
        """Is it one of `before`?"""
        return self.changed == _ANY_TIME

    def is_beginning_of(self, path: Path) -> bool:
        """Has the file the same content up to where it ended?"""
        if not path.is_file() or path.stat().st_size < self.size:
            return False
        return FileMark.of(path, self) == self or _digest(path, self.size) == self.digest


def _start_of(path: Path, line: int) -> int:
    """The byte at which a line begins."""
    at, left = 0, line - 1
    with path.open("rb") as file:
        while left and (chunk := file.read(_CHUNK)):
            found = chunk.count(b"\n")
            if found < left:
                at, left = at + len(chunk), left - found
                continue
            end = 0
            for _ in range(left):
                end = chunk.index(b"\n", end) + 1
            return at + end
    return at


def _digest(path: Path, size: int) -> str:
    """The digest of the first `size` bytes, of a large file that of pieces at equal distances, the first and the last among them."""
    whole = size <= _PIECES * _PIECE
    starts = [0] if whole else [(size - _PIECE) * place // (_PIECES - 1) for place in range(_PIECES)]
    digest = hashlib.blake2b(digest_size=16)
    with path.open("rb", buffering=0) as file:
        for start in starts:
            digest.update(os.pread(file.fileno(), size if whole else _PIECE, start))
    return digest.hexdigest()
