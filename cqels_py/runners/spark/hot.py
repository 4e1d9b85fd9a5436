"""Hot states: copies in memory that the workers of a host share.

Spark decides which worker gets a partition's next micro-batch. A worker without the partition's state would restore it
from the snapshot and the log. So a copy is left beside Spark's own temporary files, in the system's page cache: any
worker of the host takes it from there at the speed of memory. Nothing is synced, as nothing depends on it: a copy that
is missing, of another state, incomplete or damaged is ignored, and Spark removes its temporary files when it ends.
"""

from __future__ import annotations

import pickle
import struct
import uuid
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Generic, TypeVar

import numpy as np

from cqels_py.checkpoints.snapshot import to_buffers

State = TypeVar("State")

_CHECK = struct.Struct("<I")
_LENGTH = struct.Struct("<q")
LARGEST = 256 << 20
"""A larger state costs more to copy at every micro-batch than to restore now and then."""


class HotCopy(Generic[State]):
    """The copy of one partition's state. `mark` distinguishes its query's state from any other."""

    def __init__(self, folder: Path, mark: str, stage: int, part: int) -> None:
        self._path = folder / f"cqels-{mark}-{stage}-{part}.hot"

    def leave(self, name: str, state: State) -> None:
        """Replace the copy; `name` is that of the state in its store."""
        blocks = to_buffers((name, state))
        if sum(map(len, blocks)) > LARGEST:
            self._path.unlink(missing_ok=True)
            return
        temporary = self._path.with_suffix(f".{uuid.uuid4().hex[:12]}")
        try:
            with temporary.open("wb") as out:
                out.write(_CHECK.pack(_checksum(blocks)))
                for block in blocks:
                    out.write(_LENGTH.pack(len(block)))
                    out.write(block)
            temporary.rename(self._path)
        except OSError:
            # A full disk, for example: the durable state is elsewhere.
            temporary.unlink(missing_ok=True)

    def take(self, name: str) -> State | None:
        """The state of that name, if this is its copy."""
        with suppress(OSError, EOFError, ValueError, MemoryError), self._path.open("rb") as file:
            check = file.read(_CHECK.size)
            blocks = list(_blocks(file))
            if check == _CHECK.pack(_checksum(blocks)) and blocks:
                found: tuple[str, State] = pickle.loads(blocks[0], buffers=blocks[1:])
                return found[1] if found[0] == name else None
        return None


def _checksum(blocks: Iterable[memoryview]) -> int:
    found = 0
    for block in blocks:
        found = zlib.crc32(block, found)
    return found


def _blocks(file: IO[bytes]) -> Iterator[memoryview]:
    """The blocks of a file, each in writable memory of its own; EOFError if one is incomplete."""
    while length := file.read(_LENGTH.size):
        if len(length) < _LENGTH.size:
            raise EOFError
        block = np.empty(_LENGTH.unpack(length)[0], np.uint8)
        if file.readinto(block) < len(block):  # type: ignore[attr-defined]
            raise EOFError
        yield block.data
