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


class Taker(Protocol):
    """The sink of one of the queries."""

    @property
    def waits(self) -> bool:
        """Is it to be told of each line, as somebody follows its results, or a limit is to be kept?"""
        ...

    def flush(self) -> None:
        """There are new lines: take them."""
        ...


class SharedLines:
    """Lines of equal results, from a number of their own on. One thread at a time writes, any may read."""

    def __init__(self, lines: ResultLines) -> None:
        self._made_by = lines
        self._takers: Sequence[Taker] = ()
        self._lock = threading.Lock()
        # Those behind the first `_start`, which all have taken.
        self._lines: list[bytes] = []
        self._start = self._bytes = 0
        self.count = 0
        """How many lines there have been."""

    def give_to(self, takers: Sequence[Taker]) -> None:
        """These take them, from the first on."""
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
        for taker in self._takers:
            if taker.waits:
                taker.flush()

    def end(self) -> None:
        """No more lines follow: the takers have all, and leave."""
        self._have_all_taken()

    def _have_all_taken(self) -> None:
        for taker in self._takers:
            taker.flush()
        with self._lock:
            self._start, self._bytes = self.count, 0
            self._lines = []
