"""The short way of single elements: those of a stream whose queries are on the same scans, each taken in by compiled calls."""

from __future__ import annotations

from typing import Protocol

from cqels_py.dataflow.shared_scans import SharedScansPool
from cqels_py.event_time.ahead import AheadGuard
from cqels_py.event_time.watermark import Watermark
from cqels_py.runners.early import EarlyElements
from cqels_py.runners.running import QueriesOnScans
from cqels_py.runners.statistics import Counters
from cqels_py.runners.step_waiting import WaitingElements

_BETWEEN_LOOKS = 64
"""After so many elements, of which none has many triples, terms that nothing refers to may be released."""


class TakesSingles(Protocol):
    """The part of the runner that single elements need."""

    counters: Counters

    @property
    def guard(self) -> AheadGuard | None: ...

    def end_singles(self) -> None:
        """Elements have been taken in."""
        ...


class SingleElements:
    """Takes in the elements of a `stream` one by one. It is made once, and `stands` until queries come or go.

    `early`, `waiting`, `watermark`, `pool`: those of the group that the `queries` are.
    """

    def __init__(
        self,
        stream: int,
        queries: QueriesOnScans,
        early: EarlyElements,
        waiting: WaitingElements,
        watermark: Watermark,
        pool: SharedScansPool,
        runner: TakesSingles,
    ) -> None:
        self.stands = True
        self.stream, self._queries = stream, queries
        self._number = queries.number_of(stream)
        self._early, self._watermark, self._pool = early, watermark, pool
        self._waiting = waiting if waiting.may_wait else None
        self._guard, self._counters, self._end = runner.guard, runner.counters, runner.end_singles
        # So many elements until the next look at the terms: the first has one, as queries may come and go after each few.
        self._left = 1
        self._encoded = False

    @property
    def is_open(self) -> bool:
        """Is the next element to be tried? Not while elements wait for the boundary of windows with STEP."""
        return self._waiting is None or self._waiting.lets_pass()

    def encode(self, time: int, lines: bytes, triples: int, scope: int) -> bool:
        """The first part of `take`, which is to follow at once with the same arguments, and surely takes the element in then.

        Its terms have ids, and nothing else has happened. False: it is late, waits, or has to be encoded and pushed.
        """
        if self._early or not self._watermark.is_complete_at(time) or not self.is_open:
            return False
        if self._guard is not None and not self._guard.moves_to(self.stream, time, moves=False):
            return False
        self._encoded = self._queries.encode_one(self._number, time, lines, triples, scope)
        return self._encoded

    def take(self, time: int, lines: bytes, triples: int, scope: int) -> bool:
        """Take in an element without a graph. `lines`: the terms of so many triples as of `formats.triples.term_lines`.

        False: nothing has happened; it is late, waits, or has to be encoded and pushed. Each further call would be a noticeable part
        of the time of a push: so the counts are written here.
        """
        watermark, counters = self._watermark, self._counters
        encoded = self._encoded
        if not encoded and (self._early or not watermark.is_complete_at(time) or not self.is_open):
            return False
        if self._guard is not None and not self._guard.moves_to(self.stream, time):
            return False
        if encoded:
            self._encoded, results = False, self._queries.push_encoded(self._number, time, triples)
        elif (taken := self._queries.push_one(self._number, time, lines, triples, scope)) is None:
            return False
        else:
            results = taken
        if self._pool.is_open:
            self._pool.close()
        watermark.greatest = time
        if self._waiting is not None:
            self._waiting.pass_by(self.stream, time)
        counters.elements += 1
        counters.triples += triples
        counters.results += results
        if counters.event_time is None or time > counters.event_time:
            counters.event_time = time
        self._left -= 1
        if not self._left:
            self._left = _BETWEEN_LOOKS
            self._end()
        return True
