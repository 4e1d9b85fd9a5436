"""By which a file is known again."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import NamedTuple

_PIECES, _PIECE = 64, 1 << 12


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

    def is_beginning_of(self, path: Path) -> bool:
        """Has the file, which is not shorter now, the same content up to where it ended?"""
        return FileMark.of(path, self) == self or _digest(path, self.size) == self.digest


def _digest(path: Path, size: int) -> str:
    """The digest of the first `size` bytes, of a large file that of pieces at equal distances, the first and the last among them."""
    whole = size <= _PIECES * _PIECE
    starts = [0] if whole else [(size - _PIECE) * place // (_PIECES - 1) for place in range(_PIECES)]
    digest = hashlib.blake2b(digest_size=16)
    with path.open("rb", buffering=0) as file:
        for start in starts:
            digest.update(os.pread(file.fileno(), size if whole else _PIECE, start))
    return digest.hexdigest()
