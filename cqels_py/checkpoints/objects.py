"""Where checkpoints are kept: a protocol for whole objects by name, and a local folder that implements it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Protocol

from cqels_py.checkpoints import durable_files
from cqels_py.checkpoints.durable_files import StorageError

_ASIDE = ".aside"


class Store(Protocol):
    """Whole objects by name. Errors are StorageError."""

    def put(self, name: str, data: bytes | memoryview) -> None:
        """Store an object, durably and as a whole: after a crash there is the new object, or none of this name (or the former)."""
        ...

    def get(self, name: str) -> bytes:
        """The content of an object."""
        ...

    def names(self) -> list[str]:
        """The names of all objects, sorted."""
        ...

    def delete(self, name: str) -> None:
        """Delete an object, if it is there."""
        ...


class LocalStore:
    """A folder of files, each written aside, synced and renamed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, name: str, data: bytes | memoryview) -> None:
        path = self._folder / name
        aside = path.with_name(name + _ASIDE)
        try:
            durable_files.write_synced(aside, data)
            durable_files.rename(aside, path)
            durable_files.sync_entries(self._folder)
        except OSError as error:
            with suppress(OSError):
                # A disk that is full has room again.
                durable_files.remove(aside)
            raise StorageError(f"cannot write the checkpoint {path}: {error.strerror}") from error

    def get(self, name: str) -> bytes:
        path = self._folder / name
        try:
            return path.read_bytes()
        except OSError as error:
            raise StorageError(f"cannot read the checkpoint {path}: {error.strerror}") from error

    def remove_incomplete(self) -> None:
        """Remove objects that were being written when a process ended. No other one writes here now."""
        for path in self._folder.glob(f"*{_ASIDE}"):
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise StorageError(f"cannot remove {path}: {error.strerror}") from error

    def names(self) -> list[str]:
        return sorted(path.name for path in self._folder.iterdir() if path.suffix != _ASIDE)

    def delete(self, name: str) -> None:
        try:
            durable_files.remove(self._folder / name)
        except OSError as error:
            raise StorageError(f"cannot remove the checkpoint {self._folder / name}: {error.strerror}") from error
