"""The last lines of queries with equal results, which their stores have in common until they write them.

results ─ SharedLines ┬ ResultStore, which numbers them and writes them to its files
                      └ ResultStore …
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Protocol

from cqels_py.batches.results import ResultBatch
from cqels_py.service.result_lines import ResultLines

_WRITTEN_TOGETHER = 1 << 16
"""With so many bytes of lines the stores take them."""


class Store(Protocol):
    """One of the stores. `waits`: is it to be told of each line?"""

    waits: bool


class Taker(Protocol):
    """The sink of one of the queries."""

    def flush(self) -> None:
        """There are new lines: its store takes them."""
        ...


class SharedLines:
    """Lines of equal results, from a number of their own on. One thread at a time writes, any may read."""

    def __init__(self, lines: ResultLines) -> None:
        self._made_by = lines
        self._takers: Sequence[tuple[Store, Taker]] = ()
        self._lock = threading.Lock()
        # Those behind the first `_start`, which all have taken.
        self._lines: list[bytes] = []
        self._start = self._bytes = 0
        self.count = 0
        """How many lines there have been."""

    def give_to(self, takers: Sequence[tuple[Store, Taker]]) -> None:
        """These take them, from the first on: stores, each with its sink."""
        self._takers = takers

    def behind(self, count: int) -> Sequence[bytes]:
        """The lines behind the first `count`."""
        with self._lock:
            return self._lines[count - self._start :]

    def write(self, batch: ResultBatch) -> None:
        """The next results of all queries."""
        # Its lines do not depend on the number of the first result.
        lines = self._made_by.of(batch, 0)
        with self._lock:
            self._lines += lines
            self._bytes += sum(map(len, lines))
            self.count += len(lines)
        if self._bytes >= _WRITTEN_TOGETHER:
            self._have_all_taken()
            return
        for store, taker in self._takers:
            if store.waits:
                taker.flush()

    def end(self) -> None:
        """No more lines follow: the takers have all, and leave."""
        self._have_all_taken()

    def _have_all_taken(self) -> None:
        for _, taker in self._takers:
            taker.flush()
        with self._lock:
            self._start, self._bytes = self.count, 0
            self._lines = []
