"""Rejects: elements that are left out, counted by stream and reason, and kept as lines of JSON where the user asks for it."""

from __future__ import annotations

import json
import os
import stat
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from cqels_py.batches.elements import ElementBatch, Ids
from cqels_py.batches.rearrange import slice_elements
from cqels_py.checkpoints.durable_files import StorageError
from cqels_py.dictionary import Dictionary
from cqels_py.errors import DataError, RefusedResult, RunError, UsageError
from cqels_py.formats.statements import statements
from cqels_py.runners.statistics import Counters

MALFORMED, SPLIT, REFUSED = "malformed", "split element", "refused"

_MOST_CHARACTERS = 4_096
"""Those of an element that is remembered."""

RejectsFile = str | os.PathLike[str]
Record = dict[str, Any]
"""A line of the file."""


class Rejects:
    """Counts the elements that are left out, and writes them to a file if there is one; also results that a sink's other side
    refuses.

    `name_of`: the IRI of a stream by its number. A line of the file is an object with the members stream, position (of malformed
    input: its file, line and column, null if it was pushed; of an element: its number among all that the engine has taken in, from
    1), reason, message (of malformed input), time (of an element that was late or too far ahead, in microseconds) and element: its
    triples as N-Quads, or the malformed text; null where the reader cannot tell how far that reaches. That of a result has query
    (its name or null), number, reason, message and result. A line is in the file as soon as it is written.
    """

    def __init__(self, counters: Counters, dictionary: Dictionary, name_of: Callable[[int], str]) -> None:
        self._counters = counters
        self._dictionary = dictionary
        self._name_of = name_of
        self._path: RejectsFile | None = None
        self._file: IO[str] | None = None
        self._dropped: deque[dict[str, Any]] = deque()
        self._most_remembered = 0
        self._remembered: dict[str, deque[Record]] = {}
        # Threads of sinks write too.
        self._writing = threading.Lock()

    def remember(self, most: int) -> None:
        """From now on keep the last ones of each stream, at most so many, for `last`."""
        self._most_remembered = most

    def last(self, stream: str) -> list[Record]:
        """The last elements of a stream that were left out, in order: as lines of the file, and when that was, in seconds (`at`).

        Elements are cut after 4,096 characters.
        """
        return list(self._remembered.get(stream, ()))

    def begin(self, path: RejectsFile, length: int = 0) -> None:
        """Write them to this file, behind so many bytes, to which it is cut.

        StorageError if it has fewer, UsageError if it cannot be written.
        """
        try:
            file = Path(path).open("a", encoding="utf-8", buffering=1)  # noqa: SIM115
        except OSError as error:
            raise UsageError(f"rejects: cannot write to {path}: {error.strerror}") from None
        self._path, self._file = path, file
        size = self._size()
        if size < length:
            raise StorageError(
                f"rejects: {path} has {size} bytes, where the checkpoint has written {length}. To start again, remove the folder of "
                "the checkpoint"
            )
        if size > length:
            file.truncate(length)

    def sync(self) -> int:
        """Write the elements dropped so far, and make the file durable; returns its length in bytes, 0 if there is none."""
        self.write_dropped()
        size = self._size()
        if size:
            assert self._file is not None
            with self._told():
                os.fsync(self._file.fileno())
        return size

    def _size(self) -> int:
        """The bytes of the file; 0 for none, and for a pipe or a device."""
        found = None if self._file is None else os.fstat(self._file.fileno())
        return 0 if found is None or not stat.S_ISREG(found.st_mode) else found.st_size

    def left_out(self, reason: str, error: DataError) -> Record:
        """Count and write malformed input, or triples of an element that was complete before they came; returns the line."""
        record = line_of(reason, error)
        self.add(record)
        return record

    def add(self, record: Record) -> None:
        """Count and write input that an earlier process has left out."""
        self._counters.malformed += record["reason"] == MALFORMED
        self._counters.reject(record["stream"], record["reason"], 1)
        self._tell(record)

    @property
    def kept(self) -> bool:
        """Is there a file?"""
        return self._file is not None

    def refused(self, record: Record) -> None:
        """Write a result that the other side of a sink refuses, see `refused_result`."""
        if self._file is not None:
            self._write(record)

    def dropped(self, reason: str, elements: ElementBatch, numbers: Ids) -> None:
        """Count elements of the current step (n) with their numbers (n); `write_dropped` writes them when it is complete."""
        for stream, count in zip(*np.unique(elements.stream, return_counts=True), strict=True):
            self._counters.reject(self._name_of(int(stream)), reason, int(count))
        # Where they are only remembered, those are enough that will be.
        first = 0 if self._file is not None else max(len(numbers) - self._most_remembered, 0)
        # Now, as the dictionary may release their terms at the end of the step.
        for at, number in enumerate(numbers[first:].tolist(), first):
            element = slice_elements(elements, at, at + 1)
            columns = (element.subject, element.predicate, element.object, element.graph)
            self._dropped.append(
                {
                    "stream": self._name_of(element.stream.item(0)),
                    "position": number,
                    "reason": reason,
                    "time": element.time.item(0),
                    "element": statements(columns, self._dictionary),
                }
            )

    def write_dropped(self) -> None:
        """Write the elements that were dropped in the steps so far, in their order, however they came in batches."""
        if self._dropped:
            dropped = [self._dropped.popleft() for _ in range(len(self._dropped))]
            for record in sorted(dropped, key=lambda each: int(each["position"])):
                self._tell(record)

    def close(self) -> None:
        """Nothing more follows."""
        if self._file is not None:
            with self._told():
                self._file.close()

    def _tell(self, record: Record) -> None:
        if self._most_remembered:
            kept = self._remembered.setdefault(record["stream"], deque(maxlen=self._most_remembered))
            kept.append({**record, "at": time.time(), "element": _cut(record["element"])})
        if self._file is not None:
            self._write(record)

    def _write(self, record: Record) -> None:
        assert self._file is not None
        line = json.dumps(record) + "\n"
        with self._told(), self._writing:
            self._file.write(line)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """An error of the file inside is a RunError."""
        try:
            yield
        except OSError as error:
            raise RunError(f"cannot write the rejects to {self._path}: {error.strerror}") from error


def _cut(text: str | None) -> str | None:
    return text if text is None or len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}…"


def line_of(reason: str, error: DataError) -> Record:
    """The line about input that is left out."""
    return {
        "stream": error.stream or "",
        "position": None if error.place is None else str(error.place),
        "reason": reason,
        "message": error.message,
        "element": error.element,
    }


def refused_result(query: str | None, error: RefusedResult) -> Record:
    """The line about a result that the other side of a sink refuses. `query`: its name, if it has one."""
    return {
        "query": query,
        "number": error.number,
        "reason": REFUSED,
        "message": error.message,
        "result": error.result,
    }
