"""A log of records, in the order in which they were written: a file beside each snapshot, with those that came after it.

    <number>.log      CQELS-LOG <format>\\n, then records: marker, digest, place, length and kind of the content, content

`number` is that of the snapshot before it, `place` that of the record in the file. The digest covers all of them, so that a record
in a wrong place is noticed too. A process or a machine that stops in the middle of a write leaves a torn record at the end, which
was never answered: it is cut. Damage before an intact record is an error: the records after it depend on it.
"""

from __future__ import annotations

import hashlib
import os
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cqels_py.checkpoints import durable_files
from cqels_py.checkpoints.durable_files import Block, StorageError
from cqels_py.kernels.values.digest import xxh64

Bytes = npt.NDArray[np.uint8]

FORMAT = 2
"""Raised whenever the layout of the file or of its records changes. The one before it is read too."""
_MAGIC = b"CQELS-LOG %d\n" % FORMAT
_MAGIC_BEFORE = b"CQELS-LOG %d\n" % (FORMAT - 1)
_MARKER = b"\xa5log"
_HEAD = struct.Struct("<4sqQQB")
_DIGEST, _DIGEST_AT = struct.Struct("<q"), 4
_DIGESTED = _DIGEST_AT + _DIGEST.size
"""The bytes of a record from here on are in its digest."""
_HEAD_BEFORE = struct.Struct("<4sQQB16s")
_AT_LEAST, _AT_MOST = 1 << 12, 1 << 24
"""Bytes of memory for a record that are kept for the next one."""
GATHER = 0.002
"""Seconds between two syncs at least, where a sync may wait for records of other threads."""


class Record(NamedTuple):
    """A record. `kind`: a small number that its writer gives."""

    kind: int
    content: bytes


class Log:
    """Appends to the log behind a snapshot. Several threads may use it: `sync` waits for one that syncs already.

    `wait`: seconds between two syncs at least: records that come in between share one; one that comes alone does not wait. After an
    error of a sync, or an unfinished record that cannot be cut, every call raises StorageError: nobody knows then how much the disk
    has.
    """

    def __init__(self, folder: Path, wait: float = 0.0) -> None:
        self._folder = folder
        self._wait = wait
        self._path = folder
        self._descriptor: int | None = None
        self._number = self._place = 0
        self.size = 0
        """Bytes of the current file."""
        # Bytes, of all files.
        self._appended = self._synced = 0
        self._synced_at = 0.0
        self._lock, self._syncing = threading.Lock(), threading.Lock()
        self._broken: str | None = None
        self._record = np.empty(_AT_LEAST, np.uint8)

    def begin(self, number: int) -> None:
        """Sync all that was appended, and begin the log of this number. After StorageError the former one goes on."""
        # Of an unfinished record that was not cut nothing would be left to sync.
        self._check()
        self.sync()
        path = _path(self._folder, number)
        try:
            descriptor = durable_files.create(path, _MAGIC)
            try:
                durable_files.sync_entries(self._folder)
            except BaseException:
                os.close(descriptor)
                raise
        except OSError as error:
            with suppress(OSError):
                # The end of the former one may be torn only while no other follows.
                durable_files.remove(path)
            raise StorageError(f"cannot write {path}: {error.strerror}") from error
        with self._syncing, self._lock:
            self.close()
            self._descriptor = descriptor
            self._path, self._number, self._place, self.size = path, number, 0, len(_MAGIC)

    def resume(self, number: int, place: int) -> None:
        """Go on with a log of which `records` has returned so many records."""
        self._path, self._number, self._place = _path(self._folder, number), number, place
        try:
            self._descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        except OSError as error:
            raise StorageError(f"cannot write {self._path}: {error.strerror}") from error
        self.size = os.fstat(self._descriptor).st_size

    def append(self, kind: int, *content: Block) -> None:
        """Write a record, with its content in consecutive blocks.

        It is durable after `sync`; after StorageError it is not there, and the log can be used further.
        """
        with self._lock:
            if self._broken is not None:
                self._check()
            assert self._descriptor is not None
            record = self._packed(kind, content)
            try:
                durable_files.append(self._descriptor, record)
            except OSError as error:
                self._cut_unfinished(error)
                raise StorageError(f"cannot write {self._path}: {error.strerror}; nothing was taken in") from error
            self._place += 1
            self._appended += len(record)
            self.size += len(record)

    @property
    def place(self) -> int:
        """How many records the current file has."""
        return self._place

    @property
    def unsynced(self) -> int:
        """Bytes that have been appended since the last sync."""
        return self._appended - self._synced

    def sync(self) -> None:
        """Return when all records that were appended before this call are durable."""
        wanted = self._appended
        if self._synced >= wanted:
            return
        with self._syncing:
            if self._synced >= wanted:
                return
            if (pause := self._synced_at + self._wait - time.monotonic()) > 0:
                time.sleep(pause)
            self._check()
            reached = self._appended
            try:
                assert self._descriptor is not None
                durable_files.sync(self._descriptor)
            except OSError as error:
                raise self._fails(f"cannot sync {self._path}: {error.strerror}") from error
            self._synced, self._synced_at = reached, time.monotonic()

    def close(self) -> None:
        """Append nothing more; without a sync."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __del__(self) -> None:
        """An engine that nobody has closed leaves no file open."""
        self.close()

    def _packed(self, kind: int, content: Sequence[Block]) -> memoryview:
        """A record, in the same memory as the one before it."""
        length = sum(map(len, content))
        size = _HEAD.size + length
        record = self._record
        if len(record) < size:
            record = np.empty(2 * size, np.uint8)
            if len(record) <= _AT_MOST:
                self._record = record
        data = record.data[:size]
        _HEAD.pack_into(data, 0, _MARKER, 0, self._place, length, kind)
        at = _HEAD.size
        for block in content:
            end = at + len(block)
            data[at:end] = block
            at = end
        _DIGEST.pack_into(data, _DIGEST_AT, xxh64(record, _DIGESTED, size, self._number))
        return data

    def _check(self) -> None:
        if self._broken is not None:
            raise StorageError(self._broken)

    def _fails(self, reason: str) -> StorageError:
        self._broken = f"{reason}. Make a new engine with the same checkpoint when that has been mended"
        return StorageError(self._broken)

    def _cut_unfinished(self, cause: OSError) -> None:
        try:
            durable_files.cut(self._path, self.size)
        except OSError:
            self._fails(f"cannot write {self._path}: {cause.strerror}")


def numbers(folder: Path) -> list[int]:
    """The numbers of the logs in a folder, in order."""
    return sorted(int(path.stem) for path in folder.glob("*.log") if path.stem.isdigit())


def records(folder: Path, number: int, *, last: bool) -> list[Record]:
    """The records of a log. `last`: no other follows, and a torn record at its end is cut. StorageError for a damaged one."""
    path = _path(folder, number)
    try:
        found, length = _read(path, number)
        if length != path.stat().st_size or not length:
            if not last:
                raise StorageError(f"{path} is damaged behind byte {length}, and records of a later log follow")
            if length:
                durable_files.cut(path, length)
            else:
                os.close(durable_files.create(path, _MAGIC))
    except OSError as error:
        raise StorageError(f"cannot read {path}, or cut its end: {error.strerror}") from error
    return found


def remove(folder: Path, number: int) -> None:
    """Remove a log."""
    try:
        durable_files.remove(_path(folder, number))
    except OSError as error:
        raise StorageError(f"cannot remove {_path(folder, number)}: {error.strerror}") from error


def name_of(number: int) -> str:
    """The name of the file of a log."""
    return f"{number:012}.log"


def look(folder: Path, number: int) -> list[Record]:
    """The intact records of a log that may be in use: nothing is cut. StorageError for a damaged one."""
    return _read(_path(folder, number), number)[0]


def _path(folder: Path, number: int) -> Path:
    return folder / name_of(number)


def is_former(folder: Path, number: int) -> bool:
    """Is a log of the format before this one, which nothing can be appended to?"""
    with _path(folder, number).open("rb") as file:
        return file.read(len(_MAGIC_BEFORE)) == _MAGIC_BEFORE


Reader = Callable[[Bytes, int, int], "tuple[int, int, Record] | None"]
"""The place of the intact record at a position of a log with a number, where it ends, and its content; None if there is none."""


def _read(path: Path, number: int) -> tuple[list[Record], int]:
    """The intact records, and where they end. StorageError if there are intact ones behind a damaged one."""
    data = np.fromfile(path, np.uint8)
    begin = data[: len(_MAGIC)].tobytes()
    if begin not in (_MAGIC, _MAGIC_BEFORE):
        if _MAGIC.startswith(begin):
            return [], 0
        raise StorageError(f"{path} is damaged, or of another format: this version reads {FORMAT} and {FORMAT - 1}")
    reader = _record if begin == _MAGIC else _record_before
    found, at = list[Record](), len(_MAGIC)
    while (record := reader(data, at, number)) is not None and record[0] == len(found):
        found.append(record[2])
        at = record[1]
    if any(place >= len(found) for place in _places(data, at + 1, number, reader)):
        raise StorageError(
            f"{path} is damaged at byte {at}, after {len(found)} records, and the others depend on those; a copy of "
            "the folder from before (cqels checkpoint copy) can be used instead"
        )
    return found, at


def _places(data: Bytes, start: int, number: int, reader: Reader) -> Iterator[int]:
    """The places of the intact records from here on."""
    rest = data[start:].tobytes()
    at = rest.find(_MARKER)
    while at >= 0:
        record = reader(data, start + at, number)
        if record is not None:
            yield record[0]
        at = rest.find(_MARKER, at + 1)


def _record(data: Bytes, at: int, number: int) -> tuple[int, int, Record] | None:
    if at + _HEAD.size > len(data):
        return None
    marker, digest, place, length, kind = _HEAD.unpack_from(data.data, at)
    start = at + _HEAD.size
    if marker != _MARKER or length > len(data) - start:
        return None
    if xxh64(data, at + _DIGESTED, start + length, number) != digest:
        return None
    return place, start + length, Record(kind, data[start : start + length].tobytes())


def _record_before(data: Bytes, at: int, number: int) -> tuple[int, int, Record] | None:
    """Of the format before this one."""
    if at + _HEAD_BEFORE.size > len(data):
        return None
    marker, place, length, kind, digest = _HEAD_BEFORE.unpack_from(data.data, at)
    start = at + _HEAD_BEFORE.size
    if marker != _MARKER or length > len(data) - start:
        return None
    content = data[start : start + length].tobytes()
    if hashlib.sha256(struct.pack("<QQB", number, place, kind) + content).digest()[: len(digest)] != digest:
        return None
    return place, start + length, Record(kind, content)
