"""The last results of a query, on disk, by number.

    <number of the first>-<id>.results    lines of JSON, each a result, in order of their numbers, without gaps; behind those that
                                          were written together, a line  #<lines so far> <digest of the file so far>
    <number of the first>.ndjson          as of earlier versions: the lines alone

A line gets its number when it is read; those of files of earlier versions may have it. The digests begin with the id, which is drawn
for the file, so that results that are damaged, missing, or of another file are noticed: they are not kept, nor are those behind them
up to the next file.
Files of full length are never changed; the oldest are removed when enough results are kept without them. The last lines are in
memory too, for those who follow, and some of them there alone: they are written together, at the latest before a snapshot of the
engine, which makes again the results that follow it. So a line that a process did not finish is cut.

Lines that several stores have in common are written by one of them, and its files are hard links in the folders of the others, each
under the number that the first of its results has there. A file with more than one name is appended to by that store alone, and
only while they have the lines in common: afterwards each begins another file.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple, Protocol

from cqels_py.checkpoints import durable_files
from cqels_py.checkpoints.durable_files import StorageError
from cqels_py.service.definitions import Keep

IN_A_FILE = 4096
"""Results in a file."""
_FILES = 4
"""The files, about, over which a limit of bytes or age is spread."""
_TAIL_BYTES = 1 << 18
"""Bytes of lines in memory, about."""
_WRITTEN_TOGETHER = 1 << 16
"""With so many bytes of lines that are in no file yet, they are written."""
_WRITES = 4
"""The writes, at least, of a file that a limit of bytes or age ends."""


_FILE = re.compile(r"(\d{16})(?:-([0-9a-f]{16})\.results|\.ndjson)")
_LOG = logging.getLogger("cqels_py.service")


class NotKept(LookupError):
    """The results from this number on are not all kept, or damaged. `first`: the number of the first one that is, or will be."""

    def __init__(self, first: int, reason: str) -> None:
        super().__init__(first)
        self.first = first
        self.reason = reason


class Lines(Protocol):
    """Lines that several stores have in common."""

    @property
    def count(self) -> int:
        """How many there have been."""
        ...

    def behind(self, count: int) -> tuple[int, Sequence[bytes]]:
        """Those behind the first `count`: how many are only in files, and the others."""
        ...

    def save(self) -> None:
        """Have all of them in files."""
        ...


class ResultStore:
    """Keeps the last results, as `keep` says. One thread at a time writes, any may read."""

    def __init__(self, folder: Path, keep: Keep) -> None:
        self._folder = folder
        self._keep = keep
        self._lock = threading.Lock()
        self._listeners: tuple[Callable[[], None], ...] = ()
        # The number of the first result in each file, and the ids of files that have one.
        self._files: list[int] = []
        self._ids: dict[int, str] = {}
        # Of the last file, if it is written by this store.
        self._digest = b""
        # When the last file was begun, or looked at first, if there is a limit of age.
        self._begun: dict[int, float] = {}
        self._tail: list[bytes] = []
        self._tail_bytes = 0
        self._added: list[bytes] = []
        # The number of the last result that is in a file, and the bytes of those behind it that can be read.
        self._written = self._unwritten_bytes = 0
        self._written_at = 0.0
        # Up to this number they are durable, at least.
        self._synced = 0
        # Is something in the last file that has not been synced? Has a file begun since the folder was synced?
        self._unsynced = self._began = False
        self._ended = False
        self.failing = False
        """Could results not be written? They wait in memory for the next `flush`."""
        self.waits = False
        """Is it to be flushed whenever there are more of the lines that it shares?"""
        # The number of the last result here.
        self._last = 0
        # Those behind it, how many of these are here, and the number of the last result before them.
        self._shared: Lines | None = None
        self._taken = self._before_shared = 0
        self.apart = True
        """Does it write the shared lines itself, to files that no other store has?"""
        # Is the last file not to be appended to, as other stores may have it, too?
        self._is_linked = False
        # The number of the first shared result that others have in files of this store; 0: they have none.
        self._leads_from = 0
        # The store that writes the last file, if it is another one.
        self._leader: ResultStore | None = None
        self._open()
        self._know_whether_it_waits()

    @property
    def keep(self) -> Keep:
        """Which results: `results` and `age` say how many at least, `bytes` how many at most."""
        return self._keep

    @keep.setter
    def keep(self, keep: Keep) -> None:
        self._keep = keep
        self._know_whether_it_waits()

    def _know_whether_it_waits(self) -> None:
        """Somebody follows its results, or a limit is to be kept, or results wait for room on the disk."""
        self.waits = self._is_limited or self.failing or bool(self._listeners)

    @property
    def _is_limited(self) -> bool:
        """Do bytes or age end its files?"""
        return self._keep.bytes is not None or self._keep.age is not None

    @property
    def last(self) -> int:
        """The number of the last result that can be read."""
        shared = self._shared
        return self._last if shared is None else self._before_shared + shared.count

    def share(self, lines: Lines) -> None:
        """From now on these are the next results; they begin here, and end when results are added otherwise.

        StorageError if those before them cannot be written; this store writes the shared ones itself then.
        """
        with self._lock:
            self._take_all()
            self._before_shared, self._taken, self._shared = self._last - lines.count, lines.count, lines
            self.apart = True
            # Files of other stores begin with shared lines.
            self._write_all()
            self.apart = self._is_limited
        self.wake()

    def lead(self, *, anew: bool) -> None:
        """Write the shared lines to files that `follow` gives to other stores. `anew`: these begin here. StorageError."""
        with self._lock:
            self._take_shared()
            if anew:
                self._leads_from = self._written + 1
                self._is_linked = bool(self._files) and self._files[-1] <= self._written
            self._write_all()
        self.wake()

    def follow(self, leader: ResultStore) -> None:
        """Have in the same files the shared lines that another store has written. StorageError if these files cannot be had."""
        with self._lock:
            if self._ended:
                return
            ahead = self._before_shared - leader._before_shared
            files = [first for first in leader._files if first >= leader._leads_from]
            for first, after in zip(files, [*files[1:], leader._written + 1], strict=True):
                if after + ahead > self._written + 1:
                    self._have_file(leader._name(first), first + ahead, after + ahead - 1)
                    self._leader = leader
            self._count_unwritten()

    def go_apart(self) -> None:
        """From now on write the shared lines to files of its own."""
        with self._lock:
            self.apart = True
            self._lead_no_longer()

    def leave(self) -> None:
        """There are no more shared lines."""
        with self._lock:
            self._part()

    def _have_file(self, path: str, first: int, last: int) -> None:
        """Have a file of another store as the last one. `first`, `last`: the numbers of its first and last result here."""
        if first > self._written + 1:
            raise StorageError(f"{path} does not follow the files of {self._folder}")
        begins = first > self._written
        if begins:
            self._link(path, first)
        self._written, self._unsynced = last, True
        if begins:
            self._remove_oldest()

    def _link(self, path: str, first: int) -> None:
        try:
            durable_files.make_folder(self._folder)
            if self._leader is None:
                # Otherwise that one has done so.
                self._sync_last()
            id_ = _id_of(path)
            durable_files.link(path, self._name_with(first, id_))
            self._began_at(first, id_)
        except OSError as error:
            raise StorageError(f"cannot write to {self._folder}: {error.strerror}") from error
        self._is_linked = True

    def _take_shared(self) -> int:
        """Take over those of the shared lines that are not here; returns how many."""
        if (shared := self._shared) is None or shared.count == self._taken:
            return 0
        missing, lines = shared.behind(self._taken)
        were_written = self._written > self._last
        if missing:
            # They are in files, and those before them, too.
            self._tail, self._tail_bytes = [], 0
        self._remember(lines)
        self._taken += missing + len(lines)
        self._last += missing + len(lines)
        if were_written:
            self._count_unwritten()
        return missing + len(lines)

    def _count_unwritten(self) -> None:
        """Anew, as shared lines may be in files before they are taken over."""
        unwritten = max(0, self._last - self._written)
        self._unwritten_bytes = sum(map(len, self._tail[len(self._tail) - unwritten :]))

    def _take_all(self) -> int:
        """The results that were shared or added can be read; returns how many more."""
        shared = self._take_shared()
        added, self._added = self._added, []
        self._remember(added)
        self._last += len(added)
        return shared + len(added)

    def _part(self) -> None:
        """Results are added otherwise from now on."""
        if self._shared is None:
            return
        self._take_shared()
        self._lead_no_longer()
        self._shared, self._leader = None, None

    def _lead_no_longer(self) -> None:
        if self._leads_from:
            self._is_linked, self._leads_from = True, 0

    @property
    def first(self) -> int:
        """The number of the first result that is kept, or will be."""
        return self._files[0] if self._files else self._written + 1

    @property
    def next(self) -> int:
        """The number of the next result that is to be added."""
        with self._lock:
            return self.last + len(self._added) + 1

    def begin_at(self, number: int) -> None:
        """The next result has this number, which is greater than `next`: those between were lost with their files."""
        with self._lock:
            self._part()
            self._tail, self._tail_bytes, self._unwritten_bytes = [], 0, 0
            self._last = self._written = number - 1
            # They go into another file.
            self._is_linked = bool(self._files)

    def add(self, lines: Sequence[bytes]) -> None:
        """Add the next results, without numbers and newlines; they can be read after `flush`."""
        with self._lock:
            self._part()
            self._added += lines

    def append(self, number: int, lines: Sequence[bytes]) -> bool:
        """Add results that can be read at once, if the first of them, which has this number, is the next one. StorageError as of
        `flush`."""
        with self._lock:
            self._part()
            if self._added or number != self._last + 1:
                return False
            self._remember(lines)
            self._last += len(lines)
        if self._listeners:
            self.wake()
        if self.failing or self._is_due():
            with self._lock:
                self._write_all()
        return True

    def flush(self) -> None:
        """The results that were added can be read. They are written where there are many: StorageError: by a later call."""
        if self._added or self._shared is not None:
            with self._lock:
                self._take_all()
            # Also if another thread has taken over shared lines.
            self.wake()
        if self.failing or self._is_due():
            with self._lock:
                self._write_all()

    def sync(self, until: int | None = None) -> None:
        """Return when the results up to this number, or all that can be read, are durable. StorageError where that fails. Others may
        write meanwhile."""
        until = self.last if until is None else until
        if self._written < until and (shared := self._shared) is not None:
            shared.save()
        try:
            with ExitStack() as opened:
                with self._lock:
                    if self._ended:
                        return
                    if self._writes_itself:
                        self._take_shared()
                        self._write_all()
                    if not self._unsynced or not self._files:
                        return
                    last_file = self._files[-1]
                    synced, paths = self._synced_by_leader(), [str(self._folder)] if self._began else []
                    if synced < until:
                        # A file that is removed meanwhile can be synced nevertheless.
                        synced, paths = self._written, [self._name(self._files[-1]), *paths]
                    descriptors = [_opened(path, opened) for path in paths]
                for each in descriptors:
                    durable_files.sync(each)
        except OSError as error:
            raise StorageError(f"cannot sync {self._folder}: {error.strerror}") from error
        with self._lock:
            self._synced = max(self._synced, synced)
            if self._written <= synced:
                self._unsynced = False
                if self._files[-1:] == [last_file]:
                    # Otherwise a file has begun meanwhile, and nothing could be written to it.
                    self._began = False

    def _synced_by_leader(self) -> int:
        """The number up to which another store has synced files that this one has, too."""
        leader = self._leader
        return 0 if leader is None else min(self._written, leader._synced + self._before_shared - leader._before_shared)

    def end(self) -> None:
        """Nothing is written any more."""
        with self._lock:
            self._ended = True

    def is_in_memory(self, number: int) -> bool:
        """Does `read` from this number need no file?"""
        with self._lock:
            self._take_shared()
        return number > self._last - len(self._tail)

    def read(self, number: int, most: int) -> Sequence[bytes]:
        """The next results from this number on, at most so many; none if the last one comes before it. NotKept."""
        with self._lock:
            self._take_shared()
            if number > self._last:
                return []
            start = number - (self._last - len(self._tail) + 1)
            if start >= 0:
                return _numbered(self._tail[start : start + most], number)
            first = self._file_with(number)
            path = self._path(first)
            # Files that others write, too, may have more lines than belong here.
            end = next((each for each in self._files if each > first), number - start)
            try:
                lines = _intact(path.read_bytes(), self._ids.get(first, "")).lines
            except FileNotFoundError:
                lines = []
            except OSError as error:
                raise StorageError(f"cannot read {path}: {error.strerror}") from error
        found = lines[number - first : min(number - first + most, end - first)]
        if not found:
            reason = f"the results from number {number} to {end - 1} are lost, as a file is damaged or missing: ask from={end}"
            _LOG.error("%s: %s", path, reason)
            raise NotKept(end, reason)
        return _numbered(found, number)

    def listen(self, listener: Callable[[], None]) -> None:
        """From now on call back, in any thread, when results have been written."""
        with self._lock:
            self._listeners = (*self._listeners, listener)
            self._know_whether_it_waits()

    def wake(self) -> None:
        """Call the listeners: something else has changed."""
        for listener in self._listeners:
            listener()

    def _file_with(self, number: int) -> int:
        if number < self.first:
            raise NotKept(self.first, f"too slow: results before number {self.first} are no longer kept")
        return next(first for first in reversed(self._files) if first <= number)

    def _path(self, first: int) -> Path:
        return Path(self._name(first))

    def _name(self, first: int) -> str:
        return self._name_with(first, self._ids.get(first, ""))

    def _name_with(self, first: int, id_: str) -> str:
        # A text, as a path takes as long to make as a file to open.
        return f"{self._folder}{os.sep}{first:016}{f'-{id_}.results' if id_ else '.ndjson'}"

    @property
    def _writes_itself(self) -> bool:
        """Do its results come into files only by itself?"""
        return self._shared is None or self.apart

    def _is_due(self) -> bool:
        """Are there enough results for a file? Limits of bytes and of age count those that are in files."""
        if not self._writes_itself:
            return False
        keep = self.keep
        if self._unwritten_bytes >= _WRITTEN_TOGETHER:
            return True
        if keep.bytes is not None and self._unwritten_bytes >= keep.bytes // _FILES // _WRITES:
            return True
        return keep.age is not None and time.time() - self._written_at >= keep.age / _FILES / _WRITES

    def _write_all(self) -> None:
        if self._ended:
            return
        self._written_at = time.time()
        try:
            while self._written < self._last:
                self._write_part()
        except StorageError:
            self.failing = self.waits = True
            raise
        if self.failing:
            self.failing = False
            self._know_whether_it_waits()

    def _write_part(self) -> None:
        """Write the results that belong into one file."""
        if not self._files or self._is_full():
            self._begin_file()
        room = IN_A_FILE - (self._written - self._files[-1] + 1)
        start = len(self._tail) - (self._last - self._written)
        part = self._tail[start : start + room]
        self._write(part)
        self._written += len(part)
        self._unwritten_bytes -= sum(map(len, part))

    def _is_full(self) -> bool:
        """Is it time for another file? With limits of bytes or age there are several, the oldest of which can be removed."""
        if self._is_linked:
            return True
        count = self._written - self._files[-1] + 1
        if count >= IN_A_FILE or count == 0 or (self.keep.bytes is None and self.keep.age is None):
            return count >= IN_A_FILE
        found = self._stat(self._files[-1])
        too_large = self.keep.bytes is not None and found.st_size >= self.keep.bytes // _FILES
        begun = self._begun.setdefault(self._files[-1], found.st_mtime)
        return too_large or (self.keep.age is not None and time.time() - begun >= self.keep.age / _FILES)

    def _are_enough(self) -> bool:
        """Are the results without those of the oldest file enough?"""
        keep, oldest = self.keep, self._stat(self._files[0])
        assert keep.results is not None
        if self._written - self._files[1] + 1 >= keep.results:
            return True
        if keep.age is not None and time.time() - oldest.st_mtime > keep.age:
            return True
        return keep.bytes is not None and sum(self._stat(each).st_size for each in self._files) > keep.bytes

    def _stat(self, first: int) -> os.stat_result:
        try:
            return self._path(first).stat()
        except OSError as error:
            raise StorageError(f"cannot read {self._path(first)}: {error.strerror}") from None

    def _begin_file(self) -> None:
        first = self._written + 1
        try:
            durable_files.make_folder(self._folder)
            self._sync_last()
            id_ = secrets.token_hex(8)
            Path(self._name_with(first, id_)).touch()
            self._began_at(first, id_)
            self._is_linked = False
            self._remove_oldest()
        except OSError as error:
            raise StorageError(f"cannot write to {self._folder}: {error.strerror}") from error

    def _sync_last(self) -> None:
        """Before another file begins: after a crash of the machine no results are missing within the files."""
        if self._files and self._unsynced:
            descriptor = os.open(self._path(self._files[-1]), os.O_RDONLY | os.O_CLOEXEC)
            try:
                durable_files.sync(descriptor)
            finally:
                os.close(descriptor)

    def _began_at(self, first: int, id_: str) -> None:
        """There is another file; it may have taken the place of an empty one."""
        if not self._files or self._files[-1] != first:
            self._files.append(first)
        elif self._ids.get(first) != id_:
            durable_files.remove(self._path(first))
        self._ids[first], self._digest = id_, id_.encode()
        self._began = True

    def _remove_oldest(self) -> None:
        while len(self._files) > 1 and self._are_enough():
            # There are enough without it.
            durable_files.remove(self._path(self._files[0]))
            first = self._files.pop(0)
            self._begun.pop(first, None)
            self._ids.pop(first, None)

    def _write(self, lines: Sequence[bytes]) -> None:
        path = self._name(self._files[-1])
        data = b"\n".join(lines) + b"\n"
        digest = _digest(self._digest, data)
        data += _end_of_block(self._written - self._files[-1] + 1 + len(lines), digest)
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
            try:
                size = os.fstat(descriptor).st_size
                try:
                    durable_files.append(descriptor, data)
                except OSError:
                    os.ftruncate(descriptor, size)
                    raise
            finally:
                os.close(descriptor)
        except OSError as error:
            raise StorageError(f"cannot write {path}: {error.strerror}") from error
        self._digest, self._unsynced = digest, True

    def _remember(self, lines: Sequence[bytes]) -> None:
        """These lines are the last ones, and in no file."""
        size = sum(map(len, lines))
        if self._tail_bytes > 2 * _TAIL_BYTES:
            # A new list, as readers may have slices of the former one; with all that is in no file.
            kept, at, unwritten = 0, len(self._tail), self._last - self._written
            while at and (kept < _TAIL_BYTES or len(self._tail) - at < unwritten):
                at -= 1
                kept += len(self._tail[at])
            self._tail, self._tail_bytes = self._tail[at:], kept
        self._tail += lines
        self._tail_bytes += size
        self._unwritten_bytes += size

    def _open(self) -> None:
        if not self._folder.is_dir():
            return
        # A file in the place of an empty one comes behind that.
        for name in sorted(os.listdir(self._folder), key=lambda name: os.path.getsize(self._folder / name)):
            if (found := _FILE.fullmatch(name)) is not None:
                self._ids[int(found[1])] = found[2] or ""
        self._files = sorted(self._ids)
        if not self._files:
            return
        first = self._files[-1]
        path, id_ = self._path(first), self._ids.get(first, "")
        data = path.read_bytes()
        found_lines, whole, self._digest = _intact(data, id_)
        # Of results that were not all written, no end of a block is there.
        is_damaged = _END in data[whole:]
        if is_damaged:
            _LOG.error(
                "%s is damaged at byte %d: results from number %d on are lost, or made again",
                path,
                whole,
                first + len(found_lines),
            )
        elif whole < len(data):
            durable_files.cut(path, whole)
        self._is_linked = not id_ or is_damaged or path.stat().st_nlink > 1
        self._last = self._written = first + len(found_lines) - 1
        self._remember(found_lines)
        self._unwritten_bytes = 0
        self._unsynced = self._began = True


class _Intact(NamedTuple):
    """The intact lines of a file, the bytes that they take, and the digest of these."""

    lines: list[bytes]
    size: int
    digest: bytes


_END = b"\n#"
"""Before the line behind a block; no line of JSON begins so."""


def _intact(data: bytes, id_: str) -> _Intact:
    """The lines of a file of this id up to the first block that is damaged or not complete; "": of a file without digests."""
    if not id_:
        lines = data.split(b"\n")
        return _Intact(lines[:-1], len(data) - len(lines[-1]), b"")
    found, at, digest = list[bytes](), 0, id_.encode()
    while (end := data.find(_END, at) + 1) > 0:
        lines = data[at : end - 1].split(b"\n")
        next_digest = _digest(digest, data[at:end])
        mark = _end_of_block(len(found) + len(lines), next_digest)
        if not data.startswith(mark, end):
            break
        found += lines
        at, digest = end + len(mark), next_digest
    return _Intact(found, at, digest)


def _digest(before: bytes, data: bytes) -> bytes:
    return hashlib.blake2b(before + data, digest_size=16).hexdigest().encode()


def _end_of_block(count: int, digest: bytes) -> bytes:
    return b"#%d %b\n" % (count, digest)


def _id_of(path: str) -> str:
    """The id in the name of a file; "" for one of an earlier version."""
    found = _FILE.fullmatch(os.path.basename(path))
    assert found is not None
    return found[2] or ""


def _opened(path: str, until: ExitStack) -> int:
    """A descriptor of a file or folder that is to be synced, closed at the end of `until`."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    until.callback(os.close, descriptor)
    return descriptor


_NUMBER = b'{"number":'


def _numbered(lines: Sequence[bytes], first: int) -> list[bytes]:
    """The lines with their numbers, as the first member of each object."""
    return [
        line if line.startswith(_NUMBER) else b"%b%d,%b" % (_NUMBER, number, line[1:])
        for number, line in enumerate(lines, first)
    ]
