"""The last lines of queries with equal results, which their stores have in common, and the files that these have in common.

results ─ SharedLines ┬ ResultStore, which writes them to its files
                      ├ ResultStore, which has the same files, and numbers of its own
                      └ ResultStore, whose files end otherwise: it takes the lines, and writes them itself
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from typing import Protocol

from cqels_py.batches.results import ResultBatch
from cqels_py.checkpoints.durable_files import StorageError
from cqels_py.service.result_lines import ResultLines
from cqels_py.service.result_store import ResultStore

_WRITTEN_TOGETHER = 1 << 16
"""With so many bytes of lines that are in no file yet, they are written."""
_SAVES = 4
"""The lines that the last calls of `save` have written stay in memory, for readers."""


class Taker(Protocol):
    """The sink of one of the queries."""

    def flush(self) -> None:
        """There are new lines: its store takes them."""
        ...


class SharedLines:
    """Lines of equal results, from a number of their own on. One thread at a time writes, any may read or save."""

    def __init__(self, lines: ResultLines) -> None:
        self._made_by = lines
        self._takers: Sequence[tuple[ResultStore, Taker]] = ()
        self._lock = threading.Lock()
        # Those behind the first `_start`, and the bytes of those that are in no file.
        self._lines: list[bytes] = []
        self._start = self._bytes = 0
        self.count = 0
        """How many lines there have been."""
        # Held while lines are written to files. How many lines were in files after the last calls of `save`.
        self._saving = threading.Lock()
        self._saved: deque[int] = deque([0], _SAVES + 1)
        self._leader: ResultStore | None = None

    def give_to(self, takers: Sequence[tuple[ResultStore, Taker]]) -> None:
        """These take them, from the first on: stores, each with its sink."""
        self._takers = takers

    def behind(self, count: int) -> tuple[int, Sequence[bytes]]:
        """The lines behind the first `count`: how many of them are in files alone, and the others."""
        with self._lock:
            missing = max(0, self._start - count)
            return missing, self._lines[count + missing - self._start :]

    def write(self, batch: ResultBatch) -> None:
        """The next results of all queries."""
        # Its lines do not depend on the number of the first result.
        lines = self._made_by.of(batch, 0)
        with self._lock:
            self._lines += lines
            self._bytes += sum(map(len, lines))
            self.count += len(lines)
        if self._bytes >= _WRITTEN_TOGETHER:
            self.save()
            return
        for store, taker in self._takers:
            if store.waits:
                taker.flush()

    def save(self) -> None:
        """Have all lines in files. A store where this fails writes them itself from now on, and says so if it cannot."""
        with self._saving:
            with self._lock:
                count, self._bytes = self.count, 0
            if count == self._saved[-1]:
                return
            self._write_files()
            for store, taker in self._takers:
                if store.apart or store.waits:
                    taker.flush()
            self._saved.append(count)
            with self._lock:
                # A new list, as readers may have slices of the former one.
                self._lines, self._start = self._lines[self._saved[0] - self._start :], self._saved[0]

    def end(self) -> None:
        """No more lines follow: the stores take those that they do not have, and write them to files of their own."""
        with self._saving:
            for store, _ in self._takers:
                store.leave()

    def _write_files(self) -> None:
        """One store writes the lines, and the others have its files."""
        together = [store for store, _ in self._takers if not store.apart]
        if not together:
            return
        leader, *others = together
        try:
            leader.lead(anew=leader is not self._leader)
        except StorageError:
            for store in together:
                store.go_apart()
            return
        self._leader = leader
        for store in others:
            try:
                store.follow(leader)
            except StorageError:
                store.go_apart()
