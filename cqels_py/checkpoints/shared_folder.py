"""A folder of files, perhaps on a mounted file system, that processes of several machines write to at the same time."""

from __future__ import annotations

import uuid
from pathlib import Path

from cqels_py.checkpoints import durable_files
from cqels_py.checkpoints.durable_files import StorageError

ASIDE = ".aside"
"""The ending of files that are being written."""


class SharedFolder:
    """A store whose folder is made when it is first written to. Files are written aside, under names of their own, synced and
    renamed: at any moment there is the old or the new version, also after a crash of the machine."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, name: str, data: bytes | memoryview) -> None:
        aside = self._folder / f"{name}.{uuid.uuid4().hex[:12]}{ASIDE}"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            durable_files.write_synced(aside, data)
            durable_files.rename(aside, self._folder / name)
            durable_files.sync_entries(self._folder)
        except OSError as error:
            aside.unlink(missing_ok=True)
            raise StorageError(f"cannot write the state {self._folder / name}: {error.strerror}") from error

    def get(self, name: str) -> bytes:
        try:
            return (self._folder / name).read_bytes()
        except OSError as error:
            raise StorageError(f"cannot read the state {self._folder / name}: {error.strerror}") from error

    def names(self) -> list[str]:
        try:
            return sorted(path.name for path in self._folder.iterdir() if path.suffix != ASIDE and path.is_file())
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StorageError(f"cannot list the state {self._folder}: {error.strerror}") from error

    def delete(self, name: str) -> None:
        try:
            durable_files.remove(self._folder / name)
        except OSError as error:
            raise StorageError(f"cannot remove the state {self._folder / name}: {error.strerror}") from error
