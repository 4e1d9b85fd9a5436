"""A log of records, in the order in which they were written: a file beside each snapshot, with those that came after it.

    <number>.log      CQELS-LOG <format>\\n, a head, then records: marker, digest, place, length and kind of the content, content

The head names the engine, the file itself (an id that is drawn for it), its number, and the digest of the log before it, so that no
log of another engine or of an older copy passes for this one. `number` is that of the snapshot before it, `place` that of the
record in the file. The digest of a record covers all of them, so that a record in a wrong place is noticed too. A process or a
machine that stops in the middle of a write leaves a torn record at the end, which was never answered: it is cut. Damage before an
intact record is an error: the records after it depend on it.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import struct
import threading
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cqels_py.checkpoints import durable_files
from cqels_py.checkpoints.durable_files import Block, StorageError
from cqels_py.kernels.values.digest import xxh64

Bytes = npt.NDArray[np.uint8]

FORMAT = 3
"""Raised whenever the layout of the file or of its records changes. The two before it are read too."""
_MAGIC, _MAGIC_2, _MAGIC_1 = (b"CQELS-LOG %d\n" % (FORMAT - before) for before in range(3))
_FIELDS, _HEAD_DIGEST = struct.Struct("<16s8sqq"), struct.Struct("<q")
_NO_ENGINE = 32 * "0"
_BEGIN = len(_MAGIC) + _FIELDS.size + _HEAD_DIGEST.size
"""The bytes before the first record."""
_MARKER = b"\xa5log"
_HEAD = struct.Struct("<4sqQQB")
_DIGEST, _DIGEST_AT = struct.Struct("<q"), 4
_DIGESTED = _DIGEST_AT + _DIGEST.size
"""The bytes of a record from here on are in its digest."""
_HEAD_1 = struct.Struct("<4sQQB16s")
_AT_LEAST, _AT_MOST = 1 << 12, 1 << 24
"""Bytes of memory for a record that are kept for the next one."""
GATHER = 0.002
"""Seconds between two syncs at least, where a sync may wait for records of other threads."""


class Incomplete(StorageError):
    """The files of a checkpoint are not all there, or not as they were written."""

    code = "CQ-INCOMPLETE"


class Unsettled(StorageError):
    """It is not known whether a file that should be replaced has been."""

    code = "CQ-UNSETTLED"


class Record(NamedTuple):
    """A record. `kind`: a small number that its writer gives."""

    kind: int
    content: bytes


class Head(NamedTuple):
    """The beginning of a log: the id of the engine, and of the file, as hexadecimal digits; the digest of the log before."""

    engine: str
    own: str
    number: int
    before: int

    def to_bytes(self) -> bytes:
        """With a digest of its own."""
        fields = _MAGIC + _FIELDS.pack(bytes.fromhex(self.engine), bytes.fromhex(self.own), self.number, self.before)
        return fields + hashlib.blake2b(fields, digest_size=_HEAD_DIGEST.size).digest()

    @property
    def digest(self) -> int:
        """Of all that it says, a signed number."""
        found: int = _HEAD_DIGEST.unpack(self.to_bytes()[-_HEAD_DIGEST.size :])[0]
        return found

    @staticmethod
    def of(data: bytes) -> Head | None:
        """The head with which a file begins; None if it is not whole, or damaged."""
        if len(data) < _BEGIN:
            return None
        engine, own, number, before = _FIELDS.unpack_from(data, len(_MAGIC))
        head = Head(engine.hex(), own.hex(), number, before)
        return head if head.to_bytes() == data[:_BEGIN] else None


class Digests:
    """The digest of digests, all signed numbers."""

    def __init__(self, first: int) -> None:
        self._hash = hashlib.blake2b(_DIGEST.pack(first), digest_size=_DIGEST.size)
        self._last = array("q")
        self.add = self._last.append
        """Takes in another one."""

    def gather(self) -> None:
        """Take less memory."""
        self._hash.update(self._last)
        del self._last[:]

    @property
    def all(self) -> int:
        """Of those so far."""
        self.gather()
        found: int = _DIGEST.unpack(self._hash.digest())[0]
        return found


class ReadLog(NamedTuple):
    """The content of a log. `head`: None in the formats before this one, and if it was not written whole.

    `digests`: of the head and the records. `length`: the bytes up to there; `torn`: those behind them.
    """

    number: int
    head: Head | None
    records: list[Record]
    digests: Digests
    length: int
    torn: int

    @property
    def digest(self) -> int:
        """Of everything up to the last record."""
        return self.digests.all


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
        self._seed = self._place = 0
        self.size = 0
        """Bytes of the current file."""
        self.before = 0
        """The digest of the log before the current one."""
        self._digests: Digests | None = None
        # Bytes, of all files.
        self._appended = self._synced = 0
        self._synced_at = 0.0
        self._lock, self._syncing = threading.Lock(), threading.Lock()
        self._broken: str | None = None
        self._record = np.empty(_AT_LEAST, np.uint8)

    def begin(self, number: int, engine: str = _NO_ENGINE, named: Callable[[str], None] = lambda _: None) -> None:
        """Sync all that was appended, and begin the log of this number. After StorageError the former one goes on.

        `engine`: its id, 32 hexadecimal digits. `named`: told the id of the file before anything is appended to it.
        """
        # Of an unfinished record that was not cut nothing would be left to sync.
        self._check()
        self.sync()
        path = _path(self._folder, number)
        # Nothing is appended to the former one once its digest has been taken.
        with self._syncing, self._lock:
            self._sync_rest()
            before = self.before if self._digests is None else self._digests.all
            head = Head(engine, secrets.token_hex(8), number, before)
            try:
                descriptor = durable_files.create(path, head.to_bytes())
                try:
                    durable_files.sync_entries(self._folder)
                    named(head.own)
                except BaseException:
                    os.close(descriptor)
                    raise
            except Unsettled as error:
                # It has to stay, and nothing may come before it.
                raise self._fails(error.message) from error
            except (OSError, StorageError) as error:
                with suppress(OSError):
                    # The end of the former one may be torn only while no other follows.
                    durable_files.remove(path)
                if isinstance(error, StorageError):
                    raise
                raise StorageError(f"cannot write {path}: {error.strerror}") from error
            self.close()
            self._descriptor = descriptor
            self._path, self._place, self.size = path, 0, _BEGIN
            self.before, self._seed, self._digests = before, head.digest, Digests(head.digest)

    def resume(self, found: ReadLog) -> None:
        """Go on with a log that has been read; a torn record at its end is cut."""
        assert found.head is not None
        self._path, self._place = _path(self._folder, found.number), len(found.records)
        self.before, self._seed, self._digests = found.head.before, found.head.digest, found.digests
        try:
            if found.torn:
                durable_files.cut(self._path, found.length)
            self._descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        except OSError as error:
            raise StorageError(f"cannot write {self._path}: {error.strerror}") from error
        self.size = found.length

    def append(self, kind: int, *content: Block) -> None:
        """Write a record, with its content in consecutive blocks.

        It is durable after `sync`; after StorageError it is not there, and the log can be used further.
        """
        with self._lock:
            if self._broken is not None:
                self._check()
            assert self._descriptor is not None and self._digests is not None
            record, digest = self._packed(kind, content)
            try:
                durable_files.append(self._descriptor, record)
            except OSError as error:
                self._cut_unfinished(error)
                raise StorageError(f"cannot write {self._path}: {error.strerror}; nothing was taken in") from error
            self._place += 1
            self._digests.add(digest)
            self._appended += len(record)
            self.size += len(record)

    @property
    def place(self) -> int:
        """How many records the current file has."""
        return self._place

    @property
    def digest(self) -> int:
        """Of the current file so far."""
        assert self._digests is not None
        return self._digests.all

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
            self._sync_rest()

    def _sync_rest(self) -> None:
        reached = self._appended
        if self._synced >= reached:
            return
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

    def _packed(self, kind: int, content: Sequence[Block]) -> tuple[memoryview, int]:
        """A record, in the same memory as the one before it, and its digest."""
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
        digest = xxh64(record, _DIGESTED, size, self._seed)
        _DIGEST.pack_into(data, _DIGEST_AT, digest)
        return data, digest

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
    """The intact records of a log that may be in use. Incomplete for a damaged one."""
    return read(folder, number).records


def read(folder: Path, number: int) -> ReadLog:
    """The content of a log that may be in use. Incomplete if a part before intact records is damaged."""
    path = _path(folder, number)
    try:
        data = np.fromfile(path, np.uint8)
    except FileNotFoundError:
        raise Incomplete(f"{path} is missing") from None
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror}") from error
    magic = data[: len(_MAGIC)].tobytes()
    head, begin = None, len(_MAGIC)
    if magic == _MAGIC:
        head, begin = Head.of(data[:_BEGIN].tobytes()), _BEGIN
        if head is None:
            if len(data) > begin:
                raise Incomplete(f"{path} is damaged in its first {_BEGIN} bytes")
            return ReadLog(number, None, [], Digests(0), 0, len(data))
    elif magic not in (_MAGIC_2, _MAGIC_1):
        if _MAGIC.startswith(magic):
            return ReadLog(number, None, [], Digests(0), 0, len(data))
        raise Incomplete(f"{path} is damaged, or of another format: this version reads {FORMAT - 2} to {FORMAT}")
    seed = number if head is None else head.digest
    intact = partial(_record_1 if magic == _MAGIC_1 else _record, data, seed)
    found, at, digests = list[Record](), begin, Digests(seed)
    while (record := intact(at)) is not None and record.place == len(found):
        found.append(record.record)
        digests.add(record.digest)
        at = record.end
    if any(place >= len(found) for place in _places(data, at + 1, intact)):
        raise Incomplete(f"{path} is damaged at byte {at}, after {len(found)} records, and the others depend on those")
    return ReadLog(number, head, found, digests, at, len(data) - at)


def _path(folder: Path, number: int) -> Path:
    return folder / name_of(number)


class _Intact(NamedTuple):
    """A record, its place and digest, and the position behind it."""

    place: int
    end: int
    digest: int
    record: Record


def _places(data: Bytes, start: int, intact: Callable[[int], _Intact | None]) -> Iterator[int]:
    """The places of the intact records from here on."""
    rest = data[start:].tobytes()
    at = rest.find(_MARKER)
    while at >= 0:
        record = intact(start + at)
        if record is not None:
            yield record.place
        at = rest.find(_MARKER, at + 1)


def _record(data: Bytes, seed: int, at: int) -> _Intact | None:
    """The intact record at a position; None if there is none."""
    if at + _HEAD.size > len(data):
        return None
    marker, digest, place, length, kind = _HEAD.unpack_from(data.data, at)
    start = at + _HEAD.size
    if marker != _MARKER or length > len(data) - start:
        return None
    if xxh64(data, at + _DIGESTED, start + length, seed) != digest:
        return None
    return _Intact(place, start + length, digest, Record(kind, data[start : start + length].tobytes()))


def _record_1(data: Bytes, number: int, at: int) -> _Intact | None:
    """Of format 1."""
    if at + _HEAD_1.size > len(data):
        return None
    marker, place, length, kind, digest = _HEAD_1.unpack_from(data.data, at)
    start = at + _HEAD_1.size
    if marker != _MARKER or length > len(data) - start:
        return None
    content = data[start : start + length].tobytes()
    if hashlib.sha256(struct.pack("<QQB", number, place, kind) + content).digest()[: len(digest)] != digest:
        return None
    return _Intact(place, start + length, _DIGEST.unpack_from(digest)[0], Record(kind, content))
