"""The short way of single elements: those of a stream whose queries are on the same scans, each taken in by compiled calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from cqels_py.dataflow.shared_scans import SharedScansPool
from cqels_py.event_time.ahead import AheadGuard
from cqels_py.event_time.watermark import Watermark
from cqels_py.runners.early import EarlyElements
from cqels_py.runners.running import QueriesOnScans
from cqels_py.runners.statistics import Counters


class TakesSingles(Protocol):
    """The part of the runner that single elements need."""

    counters: Counters

    @property
    def guard(self) -> AheadGuard | None: ...

    def end_single(self) -> None: ...


class SingleElements:
    """Takes in the elements of a `stream` one by one. It is made once, and `stands` until queries come or go.

    `early`, `watermark`, `pool`: those of the group that the `queries` are.
    """

    def __init__(
        self,
        stream: int,
        queries: QueriesOnScans,
        early: EarlyElements,
        watermark: Watermark,
        pool: SharedScansPool,
        runner: TakesSingles,
    ) -> None:
        self.stands = True
        self._stream, self._queries = stream, queries
        self._early, self._watermark, self._pool = early, watermark, pool
        self._guard, self._counters, self._end = runner.guard, runner.counters, runner.end_single

    def take(self, time: int, texts: Sequence[bytes], scope: int) -> bool:
        """Take in an element without a graph. `texts`: its terms as of `formats.triples.triple_texts`.

        False: nothing has happened; it is late, waits, or has to be encoded and pushed.
        """
        if self._early or not self._watermark.is_complete_at(time):
            return False
        if self._guard is not None and not self._guard.moves_to(self._stream, time):
            return False
        results = self._queries.push_one(self._stream, time, texts, scope)
        if results is None:
            return False
        self._pool.close()
        self._watermark.move_to(time)
        self._counters.count_one(time, len(texts) // 3, results)
        self._end()
        return True
