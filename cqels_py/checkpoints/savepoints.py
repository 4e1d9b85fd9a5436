"""Copies of a checkpoint, which may be in use."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from cqels_py.checkpoints import log
from cqels_py.checkpoints.durable_files import StorageError
from cqels_py.checkpoints.objects import LocalStore
from cqels_py.checkpoints.snapshots import Snapshots
from cqels_py.checkpoints.state_file import from_bytes
from cqels_py.errors import UsageError

_ATTEMPTS = 5


def copy(folder: Path, to: Path) -> None:
    """Copy the last intact snapshot, and the log behind it, to a folder that does not exist or is empty.

    The process that uses the checkpoint can go on meanwhile. UsageError for wrong folders, StorageError for a copy that fails.
    """
    if to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise UsageError(f"{to} is there already: name a folder that is empty, or that does not exist")
    # A snapshot may be removed while it is copied, when there are newer ones.
    for attempt in range(_ATTEMPTS):
        try:
            _copy(folder, to)
            return
        except FileNotFoundError as error:
            if attempt == _ATTEMPTS - 1:
                raise StorageError(f"cannot copy {folder}: {error.strerror}") from error


def numbers_of(folder: Path) -> list[int]:
    """The numbers of the snapshots in a folder. UsageError if it has none."""
    numbers = Snapshots(LocalStore(folder)).numbers() if folder.is_dir() else []
    if not numbers:
        raise UsageError(f"{folder} is no folder of a checkpoint: it has no snapshot")
    return numbers


def _copy(folder: Path, to: Path) -> None:
    for number in reversed(numbers_of(folder)):
        name = f"{number:012}.snapshot"
        data = (folder / name).read_bytes()
        try:
            from_bytes(data)
        except StorageError:
            continue
        # All that is appended from here on belongs to the original only. There are several while a snapshot is being written.
        logs = [log.name_of(each) for each in log.numbers(folder) if each >= number]
        if logs and logs[0] != log.name_of(number):
            # There are two newer snapshots by now.
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        since = [(each, (folder / each).read_bytes()) for each in logs]
        to.mkdir(parents=True, exist_ok=True)
        store = LocalStore(to)
        for each, content in since:
            store.put(each, content)
        store.put(name, data)
        return
    raise StorageError(f"no snapshot of {folder} is intact")
