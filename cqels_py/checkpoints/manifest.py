"""What should be in the folder of a checkpoint: a small file, replaced whole, so that a missing or exchanged file is noticed.

    manifest    the digest of what follows, as hexadecimal digits, \\n, a JSON object

Folders of earlier versions have none until they are used. A log is named before anything is appended to it, and a snapshot
after it is on the disk: a log that is not named is empty.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Self

from cqels_py.checkpoints.durable_files import StorageError
from cqels_py.checkpoints.log import Incomplete, Unsettled
from cqels_py.checkpoints.objects import LocalStore

FORMAT = 1
NAME = "manifest"


@dataclass(frozen=True, slots=True)
class Contents:
    """The files of a checkpoint.

    `engine`: its id. `snapshots`: their numbers. `logs`: the ids of the files by their numbers; "" in the formats that have none.
    `end`: the digest of the last log where the engine was closed, None while it is used, or if the process ended otherwise.
    `dropped`: logs up to this number that are not named may be there nevertheless: they are not used. `copied`: another folder has
    the same logs, and may go on differently.
    """

    engine: str
    snapshots: list[int] = field(default_factory=list)
    logs: dict[int, str] = field(default_factory=dict)
    end: int | None = None
    dropped: int = -1
    copied: bool = False

    def to_bytes(self) -> bytes:
        """The content of the file."""
        body = json.dumps({"format": FORMAT, **asdict(self)}).encode()
        return _digest(body) + b"\n" + body

    @classmethod
    def read(cls, folder: Path) -> Self | None:
        """Those of a folder; None if it has no manifest. Incomplete if that is damaged."""
        path = folder / NAME
        try:
            digest, _, body = path.read_bytes().partition(b"\n")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StorageError(f"cannot read {path}: {error.strerror}") from error
        if digest != _digest(body):
            raise Incomplete(f"{path} is damaged: its digest does not fit its content")
        plain = json.loads(body)
        if (found := plain.pop("format")) != FORMAT:
            raise StorageError(f"{path} has the format {found}; this version reads {FORMAT}")
        return cls(**{**plain, "logs": {int(number): own for number, own in plain["logs"].items()}})


class Manifest:
    """Keeps the contents of a folder in its file; each change is durable when a call returns, and not there after StorageError."""

    def __init__(self, folder: Path, contents: Contents) -> None:
        self._store = LocalStore(folder)
        self._path = folder / NAME
        self.contents = contents

    def name_log(self, number: int, own: str) -> None:
        """There is another log, of this id."""
        self.put(replace(self.contents, logs={**self.contents.logs, number: own}, dropped=-1, end=None, copied=False))

    def name_snapshots(self, numbers: list[int]) -> None:
        """There are these snapshots, and the logs from the first of them on are needed."""
        logs = {number: own for number, own in self.contents.logs.items() if number >= numbers[0]}
        self.put(replace(self.contents, snapshots=numbers, logs=logs))

    def end(self, digest: int) -> None:
        """The last log is complete."""
        self.put(replace(self.contents, end=digest))

    def put(self, contents: Contents) -> None:
        """Replace all of them."""
        try:
            self._store.put(NAME, contents.to_bytes())
        except StorageError as error:
            if self._has(contents):
                # It is there, and perhaps not for good.
                try:
                    self._store.put(NAME, self.contents.to_bytes())
                except StorageError:
                    raise Unsettled(error.message) from error
            raise
        self.contents = contents

    def _has(self, contents: Contents) -> bool:
        try:
            return self._path.read_bytes() == contents.to_bytes()
        except OSError:
            return False


def _digest(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=16).hexdigest().encode()
