"""Delivers results from the steps that make them to subscribers and sinks.

A step collects the results of each query; they are delivered when it is complete and the engine's lock has been released. One
thread at a time delivers the results of a query, in order. A thread that makes more of them meanwhile leaves their delivery to it,
and does not wait for its subscribers. Elements that a subscriber pushes are processed after the current delivery.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol, runtime_checkable

from cqels_py.batches.elements import Ids
from cqels_py.batches.results import ResultBatch, unnumbered
from cqels_py.errors import RunError
from cqels_py.sinks.protocol import Sink

Subscriber = Callable[[ResultBatch], object]


@runtime_checkable
class EqualSink(Sink, Protocol):
    """A sink that can get the results of an equal query when that one's are delivered, by whatever thread does it."""

    def write_equal(self, batch: ResultBatch, number: int) -> None:
        """Results that have other numbers here, from `number` on; they are flushed, too."""
        ...


MOST_OF_A_STEP = 1 << 11
"""The results of one query that are collected in a step; with more, they are delivered within it, to bound memory."""
MOST_BEHIND = 1 << 16
"""The results that may be left to the delivering thread of a query; a thread that makes more waits for it (backpressure)."""


class Delivery:
    """The results of one query between its steps and its subscribers, or `keep` while there are none."""

    def __init__(self, pending: PendingDeliveries, keep: Subscriber) -> None:
        self._pending = pending
        self._keep = keep
        self.subscribers: tuple[Subscriber, ...] = ()
        self._sinks: tuple[Sink, ...] = ()
        self.lock = threading.RLock()
        """Held by the thread that delivers."""
        self.closed = False
        self.failures: dict[Subscriber, BaseException] = {}
        """Exceptions of subscribers that have not been raised yet; these subscribers get nothing until then."""
        self._batches: deque[ResultBatch] = deque()
        # `_added` is written by the thread in a step alone, `_delivered` by the delivering thread alone.
        self._added = self._delivered = 0
        # The sink, if it is the only subscriber and gets results with those of equal queries.
        self._equal: EqualSink | None = None
        # The delivery with which its results are delivered that have not been; its own `_batches` are later ones.
        self._with: Delivery | None = None

    def deliver(self, batch: ResultBatch) -> None:
        """Collect results of the current step, and number them."""
        batch.number = self._added + 1
        self._batches.append(batch)
        self._added += len(batch.time)
        self._pending.add(self)
        if self._added - self._delivered > MOST_OF_A_STEP:
            with self._pending.here():
                self.hand_out(wait=False)

    def takes_part(self, other: Delivery, results: int) -> int:
        """Have results of the current step, which are equal to those of another query, delivered with these.

        Returns the number of the first; 0 if they have to be collected here.
        """
        if self._equal is None or self.closed or self.failures:
            return 0
        if self._added != self._delivered and (self._batches or self._with is not other):
            # Those before them are elsewhere.
            return 0
        self._with, number = other, self._added + 1
        self._added += results
        return number

    def fail(self, error: RunError) -> None:
        """The query has lost its state in the middle of the current step."""
        self._pending.failed.append((self, error))

    @property
    def count(self) -> int:
        """The number of results so far, which is that of the last one."""
        return self._added

    def undelivered(self) -> list[ResultBatch]:
        """Results that nobody has got yet."""
        return [*self._taking_part(), *self._batches]

    def _taking_part(self) -> Iterator[ResultBatch]:
        """The results that are delivered with those of another query."""
        for batch in () if self._with is None else list(self._with._batches):
            for delivery, number in batch.others:
                if delivery is self:
                    own = unnumbered(batch)
                    own.number = number
                    yield own

    def resume(self, count: int) -> None:
        """So many results have been delivered earlier, by another process."""
        self._added = self._delivered = count

    def is_behind(self) -> bool:
        """Are so many results undelivered that a thread which makes more must wait for the delivering thread?"""
        return self._added - self._delivered > MOST_BEHIND

    def add_subscriber(self, subscriber: Subscriber, sink: Sink | None) -> None:
        """Add a subscriber to the following results. `sink`: it is flushed when there are no more results."""
        self.subscribers = (*self.subscribers, subscriber)
        if sink is not None:
            self._sinks = (*self._sinks, sink)
        only = len(self.subscribers) == 1 and isinstance(sink, EqualSink)
        self._equal = sink if only and isinstance(sink, EqualSink) else None

    def settle(self) -> bool:
        """Have the sinks all results? Those that get on are waited for; results wait for one that fails, see `BackloggedSink`."""
        if not self._sinks:
            return True
        settled = [getattr(sink, "settle", None) for sink in self._sinks]
        return self._added == self._delivered and all(each() for each in settled if each is not None)

    @property
    def is_full(self) -> bool:
        """Do as many results wait for a sink that fails as may?"""
        return any(getattr(sink, "is_full", False) for sink in self._sinks)

    def commit_if_settled(self) -> bool:
        """Commit the sinks, unless results wait for one that fails, or another thread is delivering. Have they been committed?"""
        if not self._sinks:
            return True
        if not self.lock.acquire(blocking=False):
            return False
        try:
            if not self.settle():
                return False
            self.commit()
        except RunError:
            if self.settle():
                raise
            # It has begun to fail, and is tried again.
            return False
        finally:
            self.lock.release()
        return True

    def commit(self) -> None:
        """Wait for another thread that delivers, then commit the sinks."""
        with self.lock:
            for sink in self._sinks:
                sink.commit()

    def live_ids(self) -> Iterator[Ids]:
        """Ids of results that have not been delivered yet."""
        for batch in list(self._batches):
            yield from batch.columns

    def take_failures(self) -> list[BaseException]:
        """The exceptions of subscribers since the last call; afterwards all subscribers are called again."""
        failures = list(self.failures.values())
        self.failures.clear()
        return failures

    def hand_out(self, *, wait: bool) -> None:
        """Deliver the collected results. If another thread is delivering, `wait` for it, or leave them to it."""
        batches = self._batches
        if self._with is not None and (wait or batches) and self._with is not self:
            # They come before those here.
            self._with.hand_out(wait=True)
        # Check again after releasing the lock: another thread may have added results while it was held.
        while batches and self.lock.acquire(blocking=wait):
            try:
                self._pending.inputs_kept()
                while batches:
                    # It stays in `live_ids` until all subscribers have it.
                    self._give(batches[0])
                    for other, number in batches[0].others:
                        other._take_part(batches[0], number)
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
                    # Also KeyboardInterrupt and SystemExit: the delivery is completed first.
                    failures[subscriber] = error

    def _take_part(self, batch: ResultBatch, number: int) -> None:
        """Give the sink results with those of another query."""
        sink = self._equal
        if sink is not None and not self.closed:
            try:
                sink.write_equal(batch, number)
            except BaseException as error:
                self.failures[sink.write] = error
        self._delivered += len(batch.time)

    def _flush(self) -> None:
        for sink in self._sinks:
            if not self.closed and sink.write not in self.failures:
                try:
                    sink.flush()
                except BaseException as error:
                    self.failures[sink.write] = error


class PendingDeliveries:
    """The queries with results of complete steps, and the threads in which subscribers are running."""

    def __init__(self, inputs_kept: Callable[[], None] = lambda: None) -> None:
        self._deliveries: list[Delivery] = []
        self.inputs_kept = inputs_kept
        """To be called before results are handed out: the inputs that led to them are durable afterwards."""
        self.threads: set[int] = set()
        """The threads in which subscribers are running."""
        self.failed: list[tuple[Delivery, RunError]] = []
        """Queries that have lost their state, until they are unregistered."""

    def add(self, delivery: Delivery) -> None:
        """The query has results in the current step."""
        if not self._deliveries or self._deliveries[-1] is not delivery:
            self._deliveries.append(delivery)

    def take(self) -> Sequence[Delivery]:
        """Remove and return the queries with results; called by the thread that holds the engine's `_turn`."""
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
        thread = threading.get_ident()
        failures: list[BaseException] = []
        # Not `with self.here()`: a context manager is a noticeable part of the time of a single element.
        self.threads.add(thread)
        try:
            for delivery in deliveries:
                delivery.hand_out(wait=delivery.is_behind())
                if delivery.failures:
                    failures += delivery.take_failures()
        finally:
            self.threads.discard(thread)
        return failures
