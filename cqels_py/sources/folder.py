"""A folder as a stream: the files in it, as they are renamed into place."""

from __future__ import annotations

import logging
import os
import time
from collections import deque
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, TypeAlias

from cqels_py.batches.elements import ElementBatch
from cqels_py.batches.rearrange import empty_elements, slice_elements
from cqels_py.connections.location import Location
from cqels_py.connections.positions import PositionFile
from cqels_py.errors import DataError, RunError, UsageError
from cqels_py.formats.endings import STREAMS, format_of
from cqels_py.formats.input_wait import InputWait
from cqels_py.sources.malformed import CountedReports
from cqels_py.sources.opened import opened
from cqels_py.sources.protocol import Opening, Source

MOST_FILES: Final = 1_000_000
"""The number of files in a folder; with more the run ends with an error."""

_LOG = logging.getLogger("cqels_py")
_COARSE = 2_000_000_000
"""Nanoseconds within which a folder may change twice, and have the same time of modification."""
_ANYHOW = 5.0
"""Seconds after which a folder is read again although it seems not to have changed: another computer may have set its time."""

Position: TypeAlias = tuple[int, str, int, int]
"""The number of files that were read to their ends; the name of the one after them, and how many elements of it were polled."""
Known: TypeAlias = tuple[int, int]
"""A file's inode and its time of modification in nanoseconds: another file of the same name has others."""


def folder_source(location: Location) -> FolderConnector:
    """`dir:PATH?pattern=*.nq&after=delete&position=FILE`."""
    options = location.options
    if not location.path:
        raise UsageError(f"{location.shown} names no folder; one is written like dir:readings")
    pattern = options.text("pattern", "*") or "*"
    delete = options.choice("after", ("keep", "delete"), "keep") == "delete"
    kept = options.text("position")
    memory = None if kept is None else PositionFile(Path(kept), f"dir:{location.path}")
    return FolderConnector(location.shown, Path(location.path), pattern, delete, memory)


@dataclass(frozen=True, slots=True)
class FolderConnector:
    """A folder that is there. `delete`: committed files are; `memory`: where commits are kept, if anywhere."""

    shown: str
    path: Path
    pattern: str
    delete: bool
    memory: PositionFile | None

    @property
    def begins_anew(self) -> bool:
        """Does a run that is started again read the same files once more?"""
        return self.memory is None and not self.delete

    def open(self, opening: Opening) -> FolderSource:
        """Begin with the files that have not been committed. UsageError if the folder is not there, or nothing would tell the next
        process of a run with a checkpoint which they are.
        """
        if opening.continues and self.begins_anew:
            raise UsageError(
                f"{self.shown}: a run with a checkpoint needs position=FILE, which keeps the names of the files that have been read"
            )
        if not self.path.is_dir():
            raise UsageError(f"{self.shown}: there is no folder {self.path}")
        return FolderSource(self, opening)


class Folder:
    """The files of a folder that have not been taken: in order of their names, those that came earlier first."""

    def __init__(self, of: FolderConnector, taken: dict[str, Known]) -> None:
        self._of = of
        self.taken = taken
        self._waiting: deque[tuple[str, Known]] = deque()
        self._listed: dict[str, Known] = {}
        self._left_out: set[str] = set()
        self._changed, self._looked_ns, self._looked = -1, 0, 0.0

    def next(self) -> tuple[str, Known] | None:
        """The next file that is still there. One that was replaced since it was listed is listed anew, and read once."""
        if not self._waiting and self._may_have_changed():
            self._look()
        while self._waiting:
            name, known = self._waiting.popleft()
            if _is_still(self._of.path / name, known):
                return name, known
            self._listed.pop(name, None)
        return None

    def _may_have_changed(self) -> bool:
        try:
            changed = self._of.path.stat().st_mtime_ns
        except OSError as error:
            raise RunError(f"{self._of.shown}: cannot read the folder: {error.strerror or error}") from None
        if (
            changed == self._changed
            and self._looked_ns - changed > _COARSE
            and time.monotonic() - self._looked < _ANYHOW
        ):
            return False
        self._changed, self._looked_ns, self._looked = changed, time.time_ns(), time.monotonic()
        return True

    def _look(self) -> None:
        try:
            with os.scandir(self._of.path) as entries:
                found = {entry.name: known for entry in entries if (known := self._known(entry)) is not None}
        except OSError as error:
            raise RunError(f"{self._of.shown}: cannot read the folder: {error.strerror or error}") from None
        if len(found) > MOST_FILES:
            raise RunError(
                f"{self._of.shown}: the folder has more than {MOST_FILES:,} files; use after=delete, or move some"
            )
        # Files that are no longer there are forgotten.
        self.taken = {name: known for name, known in self.taken.items() if name in found}
        self._listed = {name: known for name, known in self._listed.items() if found.get(name) == known}
        new = [name for name in found if self.taken.get(name) != found[name] and name not in self._listed]
        for name in sorted(new):
            self._listed[name] = found[name]
            self._waiting.append((name, found[name]))

    def _known(self, entry: os.DirEntry[str]) -> Known | None:
        """None for an entry that is no file of the stream."""
        name = entry.name
        if name.startswith(".") or not fnmatchcase(name, self._of.pattern):
            return None
        try:
            if not entry.is_file():
                return None
            status = entry.stat()
        except OSError:
            return None
        try:
            format_of(name, STREAMS)
        except UsageError as error:
            if name not in self._left_out and len(self._left_out) < MOST_FILES:
                self._left_out.add(name)
                _LOG.warning("%s: %s is left out: %s", self._of.shown, name, error)
            return None
        return status.st_ino, status.st_mtime_ns


class FolderSource:
    """The elements of the files of a folder, one file after the other. It does not end."""

    def __init__(self, of: FolderConnector, opening: Opening) -> None:
        self._of = of
        self._wait = opening.wait or InputWait()
        # A file in it is read as files are, to its end.
        self._reports = CountedReports()
        self._opening = replace(opening, wait=None)
        kept: dict[str, Any] = (None if of.memory is None else of.memory.load()) or {"taken": {}, "begun": None}
        self._folder = Folder(of, {name: (inode, at) for name, (inode, at) in kept["taken"].items()})
        # The file that the last run had begun: its name, inode and time, the number of its elements, and of malformed pieces.
        self._begun: list[Any] | None = kept["begun"]
        self._read: deque[tuple[str, Known]] = deque()
        self._files = self._committed = 0
        self._file: Source | None = None
        self._now: tuple[str, Known] = ("", (0, 0))
        self._elements = self._skip = 0

    @property
    def idle(self) -> bool:
        return self._file is None and self._wait.idle

    def poll(self) -> ElementBatch:
        """The next elements of the file that is being read, or of the next one."""
        if self._file is None and not self._begin():
            time.sleep(self._wait.pause)
            return empty_elements()
        assert self._file is not None
        try:
            batch = self._file.poll()
        except DataError as error:
            # The rest of the file cannot be read.
            self._refuse(error)
            batch = None
        if batch is None:
            self._end()
            return empty_elements()
        skipped = min(self._skip, len(batch))
        self._skip -= skipped
        self._elements += len(batch) - skipped
        return slice_elements(batch, skipped, len(batch)) if skipped else batch

    def position(self) -> Position:
        return self._files, "" if self._file is None else self._now[0], self._elements, self._reports.count

    def commit(self, position: object) -> None:
        """Delete the files up to there, if they are to be, and keep the position."""
        assert isinstance(position, tuple)
        files, name, elements, told = position
        for _ in range(files - self._committed):
            done, known = self._read.popleft()
            if self._of.delete:
                self._delete(done, known)
            else:
                self._folder.taken[done] = known
        self._committed = files
        if self._of.memory is not None:
            known = self._read[0][1] if self._read else self._now[1]
            begun = [name, *known, elements, told] if name else None
            self._of.memory.save({"taken": self._folder.taken, "begun": begun})

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _begin(self) -> bool:
        """Open the next file, if there is one."""
        while (found := self._folder.next()) is not None:
            self._now = found
            self._find_begun()
            try:
                self._file = opened(str(self._of.path / found[0]), self._counted())
            except DataError as error:
                self._refuse(error)
                self._end()
                continue
            except UsageError:
                if (self._of.path / found[0]).exists():
                    raise
                # Somebody has taken it away.
                self._elements = self._skip = 0
                self._reports.begin()
                continue
            return True
        return False

    def _find_begun(self) -> None:
        """Is this the file that the last run had begun? Then as much of it as that had is passed over."""
        name, known = self._now
        if self._begun is not None and self._begun[:3] == [name, *known]:
            # Positions of earlier versions do not count malformed input.
            _, _, _, self._skip, *told = self._begun
            self._elements, self._reports = self._skip, CountedReports(*told)
            self._begun = None

    def _counted(self) -> Opening:
        return replace(self._opening, report=self._reports.through(self._opening.report))

    def _refuse(self, error: DataError) -> None:
        if self._opening.on_error == "stop" or self._opening.report is None:
            raise error
        self._reports.through(self._opening.report)(error)

    def _end(self) -> None:
        """The file has been read to its end, or as far as it can be."""
        if self._file is not None:
            self._file.close()
        self._file = None
        self._files += 1
        self._read.append(self._now)
        self._elements = self._skip = 0
        self._reports.begin()
        self._wait.came(b"\n")

    def _delete(self, name: str, known: Known) -> None:
        """Delete a file, unless another has taken its name."""
        path = self._of.path / name
        try:
            if _is_still(path, known):
                path.unlink()
        except FileNotFoundError:
            pass
        except OSError as error:
            raise RunError(f"{self._of.shown}: cannot delete {path}: {error.strerror or error}") from None


def _is_still(path: Path, known: Known) -> bool:
    """Is it the file that was there, neither replaced nor written to?"""
    try:
        status = path.stat()
    except OSError:
        return False
    return (status.st_ino, status.st_mtime_ns) == known
