"""The file operations of checkpoints on a local disk. All of them are here, so that tests can let each of them fail."""

from __future__ import annotations

import os
from pathlib import Path

from cqels_py.errors import CqelsError

Block = bytes | memoryview
"""Consecutive bytes."""


class StorageError(CqelsError):
    """A checkpoint cannot be written or read: a full disk, a folder without permission, a damaged file."""

    code = "CQ-STORAGE"


def write_synced(path: Path, data: bytes | memoryview, mode: int = 0o666) -> None:
    """Write a file, and sync its content. `mode`: who may read a new one, less the process's umask."""
    with open(path, "wb", opener=lambda name, flags: os.open(name, flags, mode)) as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())


def rename(path: Path, to: Path) -> None:
    """Give a file another name; one of that name is replaced."""
    path.rename(to)


def link(path: Path | str, to: Path | str) -> None:
    """Give a file another name, too; one that has this name is replaced."""
    try:
        os.link(path, to)
    except FileExistsError:
        remove(Path(f"{to}.new"))
        os.link(path, f"{to}.new")
        os.rename(f"{to}.new", to)


def sync_entries(folder: Path) -> None:
    """Sync the entries of a folder."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(path: Path, mode: int = 0o777) -> None:
    """Make a folder, and those above it that are missing, if it is not there; each is durable in the one above it."""
    if path.is_dir():
        return
    make_folder(path.parent)
    path.mkdir(mode, exist_ok=True)
    sync_entries(path.parent)


def remove(path: Path) -> None:
    """Remove a file if it is there."""
    path.unlink(missing_ok=True)


def cut(path: Path, length: int) -> None:
    """Cut a file to this length, and sync it."""
    with path.open("r+b") as file:
        file.truncate(length)
        os.fsync(file.fileno())


def create(path: Path, data: bytes) -> int:
    """Make a file, also in the place of another one, with this synced content; returns a descriptor to append to it."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o666)
    try:
        append(descriptor, data)
        sync(descriptor)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def append(descriptor: int, data: Block) -> None:
    """Write at the end of a file; after an error a part of the data may be there."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def sync(descriptor: int) -> None:
    """Sync the content and the length of a file."""
    os.fsync(descriptor)
