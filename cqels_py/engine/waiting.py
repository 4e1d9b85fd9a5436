"""Results that have not been taken yet."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np

from cqels_py.batches.elements import Ids
from cqels_py.batches.results import ResultBatch, detached, last_rows
from cqels_py.engine.result import Result

Taken = TypeVar("Taken")
MOST_WAITING = 1_000_000
"""The default number of results of a query that may wait; with more, the engine accepts no more elements."""
WAIT, DROP, FAIL = "wait", "drop", "fail"
"""For results beyond the most that may wait: their makers wait, older ones are dropped, or the engine takes in nothing more."""
MOST_OF_A_FEED = 1 << 16
"""The number of results that wait of a query that other queries read; older ones are dropped: the program may never ask for them."""
BETWEEN_LOOKS = 0.5
"""Seconds in which those who wait for room learn that nobody will make any."""


class WaitingResults:
    """The results of one query, in order, until they are taken. Any thread may take them, each result goes to one.

    `decode` makes the results of a batch. While more than `most` wait, this is in `overfull`.
    """

    def __init__(
        self, decode: Callable[[ResultBatch], Iterable[Result]], most: int, overfull: set[WaitingResults]
    ) -> None:
        self._decode = decode
        self._most = most
        self._overfull = overfull
        self._batches: deque[ResultBatch] = deque()
        # The decoded results of the first batch that have not been taken yet.
        self._begun: deque[Result] = deque()
        self._count = 0
        self._lock = threading.Lock()
        self._room = threading.Condition(self._lock)
        self._listeners: tuple[Callable[[], None], ...] = ()
        self._most_without = most
        # Do other queries read them, and does a stream have older ones dropped, or their makers wait?
        self._feeds = self._drops = self._waits = False
        self._streamed = False
        self.ended = False
        """Is nothing added any more?"""
        self.dropped = 0
        """Older results that were not kept."""

    @property
    def most(self) -> int:
        """How many may wait."""
        return self._most

    @property
    def count(self) -> int:
        """How many there are: those of a batch until the last of them has been taken."""
        return self._count

    def add(self, batch: ResultBatch) -> None:
        """Keep a copy of a batch until it is taken."""
        with self._lock:
            self._batches.append(detached(batch))
            self._count += len(batch)
            keeps = self._most if self._drops else MOST_OF_A_FEED if self._feeds else None
            if keeps is not None and self._count > keeps:
                self._drop_oldest(keeps)
            elif self._count > self._most:
                self._overfull.add(self)
        self._tell()

    def close(self) -> None:
        """Nothing more is added; the remaining results can still be taken, and do not stop the engine."""
        with self._lock:
            self._overfull.discard(self)
            self.ended = True
            self._room.notify_all()
        self._tell()

    def limit_in(self, overfull: set[WaitingResults]) -> None:
        """From now on this is in another set while too many wait."""
        with self._lock:
            self._overfull.discard(self)
            self._overfull = overfull
            if self._count > self._most:
                overfull.add(self)

    # --- limits -------------------------------------------------------------------------------------------------------

    def keep_only_last(self, only: bool) -> None:
        """Keep the last `MOST_OF_A_FEED` results, and drop and count older ones."""
        self._feeds = only

    def are_streamed(self) -> bool:
        """Does a stream take them? One whose event loop is closed ends."""
        if self._streamed:
            self._tell()
        return self._streamed

    def begin_stream(self, most: int, full: str) -> None:
        """At most so many wait for one who is called back.

        `full` "wait": those who would add more wait for room; "drop": older ones are dropped and counted; "fail": the engine takes
        in nothing more.
        """
        with self._lock:
            self._most_without = self._most
            self._streamed, self._most, self._waits, self._drops = True, most, full == WAIT, full == DROP

    def wait_for_room(self) -> bool:
        """Wait for room if that is wanted, and say so; False: others decide."""
        while True:
            with self._lock:
                if not self._waits or self.ended or self._count <= self._most:
                    return self._waits
                self._room.wait(BETWEEN_LOOKS)
            # A stream whose event loop has been closed meanwhile ends.
            self._tell()

    def listen(self, listener: Callable[[], None]) -> None:
        """From now on call back, in any thread, when results have been added, or none will be."""
        with self._lock:
            self._listeners = (*self._listeners, listener)

    def end_stream(self, listener: Callable[[], None]) -> None:
        """Do not call back any more; the limits are those of before."""
        with self._lock:
            self._listeners = tuple(each for each in self._listeners if each != listener)
            self._streamed = self._waits = self._drops = False
            self._most = self._most_without
            self._make_room()
            self._room.notify_all()

    def _tell(self) -> None:
        for listener in self._listeners:
            listener()

    # --- taking -------------------------------------------------------------------------------------------------------

    def kept(self) -> list[ResultBatch]:
        """The results that have not been taken, which remain here."""
        with self._lock:
            waiting = list(self._batches)
            if self._begun:
                waiting[0] = last_rows(waiting[0], len(self._begun))
            return waiting

    def results(self) -> Iterator[Result]:
        """The results one by one, also those that are added meanwhile."""
        while (result := self.next()) is not None:
            yield result

    def take(self, read: Callable[[Sequence[ResultBatch]], Taken]) -> Taken:
        """Call `read` with all results and return its value; they are taken if it raises nothing."""
        with self._lock:
            waiting = list(self._batches)
            if self._begun:
                waiting[0] = last_rows(waiting[0], len(self._begun))
            found = read(waiting)
            self._batches.clear()
            self._begun.clear()
            self._count = 0
            self._make_room()
            return found

    def batches(self) -> Iterator[ResultBatch]:
        """The results in batches, also those that are added meanwhile."""
        while (batch := self._next_batch()) is not None:
            yield batch

    def live_ids(self) -> Iterable[Ids]:
        """Ids of the results."""
        waiting = list(self._batches)
        return map(np.concatenate, zip(*(batch.columns for batch in waiting), strict=True))

    def next(self) -> Result | None:
        """The first result; None if there is none now."""
        with self._lock:
            if not self._begun and self._batches:
                self._begun.extend(self._decode(self._batches[0]))
            if not self._begun:
                return None
            if len(self._begun) == 1:
                self._remove_first()
            return self._begun.popleft()

    def _next_batch(self) -> ResultBatch | None:
        with self._lock:
            if not self._batches:
                return None
            batch = self._remove_first()
            if self._begun:
                batch = last_rows(batch, len(self._begun))
                self._begun.clear()
            return batch

    def _remove_first(self) -> ResultBatch:
        batch = self._batches.popleft()
        self._count -= len(batch)
        self._make_room()
        return batch

    def _make_room(self) -> None:
        if self._count <= self._most:
            self._overfull.discard(self)
            self._room.notify_all()

    def _drop_oldest(self, most: int) -> None:
        while (excess := self._count - most) > 0:
            oldest = self._remove_first()
            # The rest of the batch whose first results have been taken.
            untaken = len(self._begun) or len(oldest)
            left = min(untaken, len(oldest) - excess)
            self._begun.clear()
            self.dropped += untaken - max(left, 0)
            if left > 0:
                self._batches.appendleft(last_rows(oldest, left))
                self._count += left
