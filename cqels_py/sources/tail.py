"""A file that grows, as a stream: its lines as they are written, also after it has been rotated or cut."""

from __future__ import annotations

import hashlib
import logging
import os
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeAlias

from cqels_py.batches.elements import ElementBatch
from cqels_py.batches.rearrange import empty_elements, slice_elements
from cqels_py.connections.location import Location
from cqels_py.connections.positions import PositionFile
from cqels_py.errors import DataError, RunError, UsageError
from cqels_py.formats.compression import CHUNK_BYTES, local_path
from cqels_py.formats.endings import ENDINGS
from cqels_py.formats.input_wait import InputWait
from cqels_py.formats.json_ld import file_iri
from cqels_py.sources.files import elements_of_chunks
from cqels_py.sources.malformed import CountedReports
from cqels_py.sources.protocol import Opening

FORMATS: Final = ("nq", "nt", "ndjson", "csv", "tsv")
"""Formats of which a line can be read when it has been written."""

_LOG = logging.getLogger("cqels_py")
_WITH_HEAD = ("csv", "tsv")
_LINGER = 1.0
"""Seconds for which a file that was replaced is still read: its writer may not know yet."""
_FLUSH_AFTER = 0.2
_BEGIN = 256
"""A file is known by its inode, and by so many of its first bytes."""
_MOST_NAMES = 10_000
"""The number of names in a folder among which a file that was renamed is looked for."""
_LONGEST_HEAD = 1 << 20

Position: TypeAlias = tuple[int, int, int, int, str, int]
"""The file's inode; the byte at which a line begins, up to which all elements were polled; the number of elements behind it that
were; the number of bytes at the file's beginning of which the digest is; that; how many malformed pieces are behind that byte."""


def tail_source(location: Location) -> TailConnector:
    """`tail:PATH?format=ndjson&start=end&position=FILE`."""
    options = location.options
    path = Path(location.path)
    if not location.path:
        raise UsageError(f"{location.shown} names no file; one is written like tail:readings.nq")
    form = options.text("format") or ENDINGS.get(path.suffix.lower(), "")
    if form not in FORMATS:
        what = f"{form} cannot be read while it is written" if form else "its ending does not tell the format"
        raise UsageError(f"{location.shown}: {what}; give format= one of {', '.join(FORMATS)}")
    start = options.choice("start", ("begin", "end"), "begin")
    kept = options.text("position")
    memory = None if kept is None else PositionFile(Path(kept), f"tail:{location.path}")
    return TailConnector(location.shown, path, form, start == "end", memory)


@dataclass(frozen=True, slots=True)
class TailConnector:
    """A file that is there. `at_end`: its first lines are passed over; `memory`: where commits are kept, if anywhere."""

    shown: str
    path: Path
    form: str
    at_end: bool
    memory: PositionFile | None

    def open(self, opening: Opening) -> TailSource:
        """Begin at the last commit, or where `start` says. UsageError if the file is not there."""
        local_path(str(self.path))
        if not self.path.is_file():
            raise UsageError(f"{self.shown}: {self.path} is not a regular file; a pipe is read without tail:")
        return TailSource(self, opening)


class GrowingFile:
    """The whole lines of a file, as they are written. `at`: how many bytes have been returned."""

    def __init__(self, path: Path, at: int = 0) -> None:
        self._path = path
        self._file = path.open("rb", buffering=0)
        self.inode = os.fstat(self._file.fileno()).st_ino
        self.at = at
        # Its first bytes, as far as they have been returned.
        self._known = b""
        self._replaced_at: float | None = None

    @property
    def size(self) -> int:
        return os.fstat(self._file.fileno()).st_size

    def lines(self) -> bytes:
        """The next lines; none where no whole line has been written."""
        chunk = os.pread(self._file.fileno(), CHUNK_BYTES, self.at)
        cut = chunk.rfind(b"\n") + 1
        if not cut and len(chunk) == CHUNK_BYTES:
            # A line that long is put together, or refused, by the reader.
            cut = len(chunk)
        self.at += cut
        return chunk[:cut]

    def rest(self) -> bytes:
        """The bytes behind the last whole line, once nothing follows."""
        rest = os.pread(self._file.fileno(), CHUNK_BYTES, self.at)
        self.at += len(rest)
        return rest

    def is_cut(self) -> bool:
        """Has it become shorter than the part that has been read, or been written anew since?"""
        if self.size < self.at or self.begin(len(self._known)) != self._known:
            return True
        if len(self._known) < min(_BEGIN, self.at):
            self._known = self.begin(min(_BEGIN, self.at))
        return False

    def is_replaced(self, path: Path) -> bool:
        """Is another file at the path now, for long enough that the writer knows? A file that is only gone is not replaced."""
        try:
            replaced = path.stat().st_ino != self.inode
        except OSError:
            replaced = False
        if not replaced:
            self._replaced_at = None
            return False
        self._replaced_at = self._replaced_at or time.monotonic()
        return time.monotonic() - self._replaced_at >= _LINGER

    def begin(self, length: int) -> bytes:
        """Its first bytes."""
        return os.pread(self._file.fileno(), length, 0)

    def head(self) -> bytes:
        """The first line, which names the columns."""
        head, newline, _ = os.pread(self._file.fileno(), _LONGEST_HEAD, 0).partition(b"\n")
        return head + newline

    def to_end(self) -> None:
        """Pass over the content, up to the last whole line."""
        self.at = self.size
        while self.at:
            before = max(0, self.at - CHUNK_BYTES)
            found = os.pread(self._file.fileno(), self.at - before, before).rfind(b"\n") + 1
            self.at = before + found
            if found:
                return

    def close(self) -> None:
        self._file.close()


class TailSource:
    """The elements of a file, and of those that take its place. It does not end."""

    resumes = True

    def __init__(self, of: TailConnector, opening: Opening) -> None:
        self._of = of
        self._wait = opening.wait or InputWait(_FLUSH_AFTER)
        self._reports = CountedReports()
        self._opening = opening
        self._skip = 0
        self._file = self._first()
        self._elements = self._begin()

    @property
    def idle(self) -> bool:
        return self._wait.idle

    def poll(self) -> ElementBatch:
        """The next elements. DataError for a file that cannot be read any longer."""
        try:
            batch = next(self._elements, None)
            if batch is None:
                self._go_on()
                return empty_elements()
        except OSError as error:
            raise DataError(f"cannot read {self._of.path}: {error.strerror or error}") from None
        if not len(batch):
            if self._wait.at_rest and not self._skip:
                self._anchor, self._behind = self._file.at, 0
                self._reports.begin()
            return batch
        self._behind += len(batch)
        skipped = min(self._skip, len(batch))
        self._skip -= skipped
        return slice_elements(batch, skipped, len(batch)) if skipped else batch

    def position(self) -> Position:
        begin = self._file.begin(min(_BEGIN, self._file.at))
        behind = self._behind + self._skip
        return self._file.inode, self._anchor, behind, len(begin), _digest(begin), self._reports.count

    def commit(self, position: object) -> None:
        if self._of.memory is not None:
            self._of.memory.save(position)

    def close(self) -> None:
        if isinstance(self._elements, Generator):
            self._elements.close()
        self._file.close()

    # --- files --------------------------------------------------------------------------------------------------------

    def _first(self) -> GrowingFile:
        """The file with which a run begins: that of the opening's position, or of the last commit, wherever it is now."""
        kept: Any = self._opening.position
        if kept is None and self._of.memory is not None:
            kept = self._of.memory.load()
        if kept is None:
            file = GrowingFile(self._of.path)
            if self._of.at_end:
                file.to_end()
            return file
        # Positions of earlier versions do not count malformed input.
        inode, at, behind, length, digest, *told = kept
        for path in _named(inode, self._of.path):
            file = GrowingFile(path, at)
            if file.size >= max(at, length) and _digest(file.begin(length)) == digest:
                self._skip = behind
                self._reports = CountedReports(*told)
                return file
            file.close()
        gone = f"{self._of.shown}: the file that was read before is no longer there"
        if self._opening.position is not None:
            raise RunError(
                f"{gone}, and the run cannot go on behind it: put it back, or name a new folder for the checkpoint"
            )
        _LOG.warning("%s; lines that it had since are lost", gone)
        return GrowingFile(self._of.path)

    def _begin(self) -> Iterator[ElementBatch]:
        """The elements of the file from where it is now."""
        self._anchor, self._behind = self._file.at, 0
        source, chunks = str(self._of.path), self._chunks()
        opening = replace(
            self._opening,
            base=file_iri(self._of.path),
            wait=self._wait,
            report=self._reports.through(self._opening.report),
            on_split=self._reports.through(self._opening.on_split),
        )
        if opening.map is None:
            return elements_of_chunks(self._of.form, chunks, opening, source)
        # A map needs pyarrow.
        from cqels_py.sources.mapped import mapped_chunks

        return mapped_chunks(self._of.form, chunks, opening, source)

    def _chunks(self) -> Iterator[bytes]:
        """The lines of the file, until it is replaced or cut; empty where it has none for now."""
        file = self._file
        if self._of.form in _WITH_HEAD and file.at:
            yield file.head()
        while not file.is_cut():
            chunk = file.lines()
            if not chunk and file.is_replaced(self._of.path):
                if rest := file.rest():
                    yield rest
                return
            if chunk:
                self._wait.came(chunk)
            else:
                time.sleep(self._wait.pause)
            yield chunk

    def _go_on(self) -> None:
        """With the file that is at the path now."""
        if self._file.is_cut():
            _LOG.warning("%s: the file has been cut; it is read from its beginning", self._of.shown)
        else:
            _LOG.warning("%s: another file is there now; it is read from its beginning", self._of.shown)
        self._file.close()
        self._skip = 0
        self._reports.begin()
        self._file = GrowingFile(self._of.path)
        self._elements = self._begin()


def _named(inode: int, path: Path) -> Iterator[Path]:
    """The paths of a file in the folder of a path, first this."""
    for found in (path, *islice(path.absolute().parent.iterdir(), _MOST_NAMES)):
        try:
            if found.stat().st_ino == inode and found.is_file():
                yield found
        except OSError:
            continue


def _digest(begin: bytes) -> str:
    return hashlib.blake2b(begin, digest_size=8).hexdigest()
