"""Reading ahead: a second thread parses the next elements while the engine evaluates the current ones.

The reader holds the dictionary's lock while it parses a batch, so other threads that enter or release terms wait for it. Looking up
a term of a batch that has been passed on needs no lock.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cqels_py.batches.elements import ElementBatch, Ids
from cqels_py.dictionary import Dictionary
from cqels_py.errors import DataError, UsageError
from cqels_py.formats.compression import is_file

LARGE = 16 << 20
"""The least size of files, in bytes, for which starting a second thread pays."""
AHEAD = 2
"""Batches that are read before the engine asks for them."""


@dataclass(slots=True)
class _Part:
    """A batch, or None at the end; the malformed input before it; the exception that ended the reader."""

    batch: ElementBatch | None = None
    reports: list[DataError] = field(default_factory=list)
    error: BaseException | None = None


def pays(sources: Iterable[object]) -> bool:
    """Are they files that are large enough, and is there a processor for a second thread?

    Only whole files can be read ahead: a reader that waits for a pipe's writer holds the lock that the engine needs.
    """
    files = regular_files(sources)
    return files is not None and sum(path.stat().st_size for path in files) >= LARGE and _processors() > 1


def reader_ahead(
    sources: Sequence[object], threads: int | None, dictionary: Dictionary, tell: Callable[[DataError], None]
) -> ReadAhead | None:
    """A reader for `threads` 2, and for None where that pays. UsageError where there is nothing to be read ahead."""
    if threads not in (None, 1, 2):
        raise UsageError(f"threads is 1 or 2, not {threads!r}")
    if threads == 2 and regular_files(sources) is None:
        raise UsageError(
            "a second thread can only read files ahead, and a source is not a file: leave threads out, or give 1"
        )
    if threads == 1 or (threads is None and not pays(sources)):
        return None
    return ReadAhead(dictionary, tell)


def regular_files(sources: Iterable[object]) -> list[Path] | None:
    """The sources as paths, if all of them are files that are there."""
    paths = [Path(str(source).removeprefix("file://")) for source in sources if isinstance(source, str | Path)]
    return paths if len(paths) == len(list(sources)) and all(map(is_file, paths)) else None


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class ReadAhead:
    """Iterates over batches that a thread of its own reads.

    Results, and the order of errors, are those of a single thread: an exception of the reader is raised when all batches before it
    have been taken, and its reports are passed on, ahead of the next batch, by the thread that takes the batches. `close` it,
    however the iteration ends.
    """

    def __init__(self, dictionary: Dictionary, tell: Callable[[DataError], None]) -> None:
        self._dictionary = dictionary
        self._tell = tell
        self._room = threading.Semaphore(AHEAD)
        self._ready = threading.Semaphore(0)
        self._parts: deque[_Part] = deque()
        self._reports: list[DataError] = []
        self._stopped = False
        self._thread: threading.Thread | None = None

    def report(self, *errors: DataError) -> None:
        """Called by the reader for malformed input that is skipped."""
        self._reports += errors

    def live_ids(self) -> Iterator[Ids]:
        """Ids of batches that were read, but not taken yet."""
        for part in self._parts:
            if part.batch is not None:
                yield from part.batch.live_ids()

    def read(self, batches: Iterable[ElementBatch]) -> Iterator[ElementBatch]:
        """The batches, read ahead from now on."""
        self._thread = threading.Thread(target=self._run, args=(iter(batches),), name="cqels reader", daemon=True)
        self._thread.start()
        while True:
            self._ready.acquire()
            part = self._parts.popleft()
            for error in part.reports:
                self._tell(error)
            if part.error is not None:
                raise part.error
            if part.batch is None:
                return
            self._room.release()
            yield part.batch

    def close(self) -> None:
        """End the reader's thread, and wait for it."""
        self._stopped = True
        self._room.release()
        if self._thread is not None:
            self._thread.join()

    def _run(self, batches: Iterator[ElementBatch]) -> None:
        part = _Part()
        while part.error is None:
            self._room.acquire()
            if self._stopped:
                return
            with self._dictionary.lock:
                part = self._next(batches)
                self._parts.append(part)
            self._ready.release()
            if part.batch is None:
                return

    def _next(self, batches: Iterator[ElementBatch]) -> _Part:
        part = _Part()
        try:
            part.batch = next(batches, None)
        except BaseException as error:
            part.error = error
        part.reports, self._reports = self._reports, []
        return part
