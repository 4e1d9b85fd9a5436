"""From the steps that make results to those who get them.

A step collects the results of each query; they are delivered when it is complete and the engine's lock is free. One thread at a
time delivers the results of a query, in order. Another thread that brings more of them leaves these to it, and does not wait for a
subscriber that is at work. A subscriber that pushes elements, or lets a query leave, only notes that: the delivery goes on first.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from cqels_py.batches.elements import Ids
from cqels_py.batches.results import ResultBatch
from cqels_py.errors import RunError
from cqels_py.sinks.protocol import Sink

Subscriber = Callable[[ResultBatch], object]

MOST_OF_A_STEP = 1 << 11
"""Results of one query for whose delivery a step is interrupted: an arrival may have more of them than memory holds."""
MOST_BEHIND = 1 << 16
"""Results left to the thread that is at work on a query's subscribers, from which on a thread that brings more waits for it."""


class Delivery:
    """The results of one query between its steps and its subscribers, or `keep` while there are none."""

    def __init__(self, pending: PendingDeliveries, keep: Subscriber) -> None:
        self._pending = pending
        self._keep = keep
        self.subscribers: tuple[Subscriber, ...] = ()
        self._sinks: tuple[Sink, ...] = ()
        self.lock = threading.RLock()
        """Of the thread that delivers."""
        self.closed = False
        self.failures: dict[Subscriber, BaseException] = {}
        """Exceptions of subscribers that nobody has taken yet; until then these get nothing more."""
        self._batches: deque[ResultBatch] = deque()
        # Each is written by one thread at a time: by that in a step, and by that which delivers.
        self._added = self._delivered = 0

    def deliver(self, batch: ResultBatch) -> None:
        """Results of the step at hand."""
        self._batches.append(batch)
        self._added += len(batch.time)
        self._pending.add(self)
        if self._added - self._delivered > MOST_OF_A_STEP:
            with self._pending.here():
                self.hand_out(wait=False)

    def fail(self, error: RunError) -> None:
        """The query has lost its state in the middle of the step at hand."""
        self._pending.failed.append((self, error))

    def is_behind(self) -> bool:
        """Are there so many results that the thread that brings more of them waits for the one that delivers?"""
        return self._added - self._delivered > MOST_BEHIND

    def add_subscriber(self, subscriber: Subscriber, sink: Sink | None) -> None:
        """From the next results on. `sink`: it is flushed when there are no more results."""
        self.subscribers = (*self.subscribers, subscriber)
        if sink is not None:
            self._sinks = (*self._sinks, sink)

    def finish(self) -> None:
        """The streams have ended: wait for another thread that delivers, then commit the sinks."""
        with self.lock:
            for sink in self._sinks:
                sink.commit()

    def live_ids(self) -> Iterator[Ids]:
        """Ids of results that have not been delivered yet."""
        for batch in list(self._batches):
            yield from batch.columns

    def take_failures(self) -> list[BaseException]:
        """The exceptions of subscribers since the last call; from now on all of them are called again."""
        failures = list(self.failures.values())
        self.failures.clear()
        return failures

    def hand_out(self, *, wait: bool) -> None:
        """Deliver the results that there are, unless another thread does so: then `wait` for it, or leave them to it."""
        batches = self._batches
        # Once more after the lock was given up: another thread may have found it taken at the last moment.
        while batches and self.lock.acquire(blocking=wait):
            try:
                while batches:
                    # It stays among the live ones until all have it.
                    self._give(batches[0])
                    self._delivered += len(batches.popleft().time)
                if self._sinks:
                    self._flush()
            finally:
                self.lock.release()

    def _give(self, batch: ResultBatch) -> None:
        if not self.subscribers and not self.closed:
            self._keep(batch)
        failures = self.failures
        for subscriber in self.subscribers:
            if not self.closed and subscriber not in failures:
                try:
                    subscriber(batch)
                except BaseException as error:
                    # Also an exception that is to end the program: first the delivery is completed.
                    failures[subscriber] = error

    def _flush(self) -> None:
        for sink in self._sinks:
            if not self.closed and sink.write not in self.failures:
                try:
                    sink.flush()
                except BaseException as error:
                    self.failures[sink.write] = error


class PendingDeliveries:
    """The queries with results of complete steps, and the threads in which subscribers are at work."""

    def __init__(self) -> None:
        self._deliveries: list[Delivery] = []
        self.threads: set[int] = set()
        """Those in which subscribers are at work."""
        self.failed: list[tuple[Delivery, RunError]] = []
        """Queries that have lost their state, until they are forgotten."""

    def add(self, delivery: Delivery) -> None:
        """The step at hand has results of it."""
        if not self._deliveries or self._deliveries[-1] is not delivery:
            self._deliveries.append(delivery)

    def take(self) -> Sequence[Delivery]:
        """Those of the steps so far, for the thread that has the engine's turn."""
        if not self._deliveries:
            return ()
        deliveries, self._deliveries = self._deliveries, []
        return deliveries

    def is_here(self) -> bool:
        """Is this called by a subscriber?"""
        return bool(self.threads) and threading.get_ident() in self.threads

    @contextmanager
    def here(self) -> Iterator[None]:
        """Inside, subscribers are called by this thread."""
        thread = threading.get_ident()
        if thread in self.threads:
            yield
            return
        self.threads.add(thread)
        try:
            yield
        finally:
            self.threads.discard(thread)

    def deliver(self, deliveries: Sequence[Delivery]) -> list[BaseException]:
        """Deliver the results; returns the exceptions of subscribers."""
        thread, failures = threading.get_ident(), list[BaseException]()
        # Without the context manager above, which a single element would notice.
        self.threads.add(thread)
        try:
            for delivery in deliveries:
                delivery.hand_out(wait=delivery.is_behind())
                if delivery.failures:
                    failures += delivery.take_failures()
        finally:
            self.threads.discard(thread)
        return failures
