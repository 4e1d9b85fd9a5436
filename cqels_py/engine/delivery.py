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
from typing import Any, Protocol, runtime_checkable

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

    def united(self, others: Sequence[tuple[Any, int]]) -> EqualSinks | None:
        """One for all of these equal sinks, this one among them, each with the number of its next result; None: there is none."""
        ...


class EqualSinks(Protocol):
    """Several sinks of equal queries, which get their results in one call, each with its own numbers. It never raises."""

    def write(self, batch: ResultBatch) -> None:
        """The next results of all; they are flushed, too."""
        ...

    def end(self) -> None:
        """From now on each sink is written to alone."""
        ...


MOST_OF_A_STEP = 1 << 11
"""The results of one query that are collected in a step; with more, they are delivered within it, to bound memory."""
_FEWEST_TOGETHER = 2
"""Receivers for which one call pays."""
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
        """Does nobody get results any more?"""
        self.failures: dict[Subscriber, BaseException] = {}
        """Exceptions of subscribers that have not been raised yet; these subscribers get nothing until then."""
        self._batches: deque[ResultBatch] = deque()
        # `_added` is written in steps; `_delivered` under `lock` for `_batches`, and under that of `_with` for results that are
        # delivered there: never at the same time, as these are delivered before own ones, and none are added to them while there
        # are `_batches`. While it is `_among` others, `Together.end` alone writes both, under its lock, for which a step waits.
        self._added = self._delivered = 0
        # The first subscriber, if it is a sink that gets results with those of equal queries as long as it is the only one.
        self._equal: EqualSink | None = None
        # The delivery with which its results are delivered that have not been; its own `_batches` are later ones.
        self._with: Delivery | None = None
        # That with whose others it gets results in one call.
        self._among: Together | None = None
        # Those that get the results of this one, all of `_others`.
        self._together: Together | None = None
        self._others: Sequence[Delivery] = ()

    def close(self) -> None:
        """Nobody gets results any more."""
        self.leave()
        self.closed = True

    def leave(self) -> None:
        """Get results in one call with others no longer."""
        if (among := self._among) is not None:
            among.end()

    def deliver(self, batch: ResultBatch) -> None:
        """Collect results of the current step, and number them."""
        if self._among is not None:
            self.leave()
        batch.number = self._added + 1
        self._batches.append(batch)
        self._added = added = self._added + len(batch.time)
        self._pending.add(self)
        if added - self._delivered > MOST_OF_A_STEP:
            with self._pending.here():
                self.hand_out(wait=False)

    def share(self, batch: ResultBatch, others: Sequence[Delivery]) -> Sequence[Delivery]:
        """Have results of the current step, which are to be collected here, delivered for equal queries, too.

        `others`: theirs; the same object while they are the same. Returns those that have to collect the results themselves.
        """
        results, together = len(batch.time), self._together
        if together is not None and others is self._others and (number := together.add(results)):
            batch.others = ((together, number),)
            return ()
        if together is not None:
            together.end()
            self._together = None
        elif (together := self._united(others)) is not None:
            self._together, self._others = together, others
            batch.others = ((together, together.add(results)),)
            return ()
        taking = [(each, each._takes_part(self, results)) for each in others]
        batch.others = tuple([(each, number) for each, number in taking if number])
        return [each for each, number in taking if not number]

    def _takes_part(self, other: Delivery, results: int) -> int:
        """Have results of the current step, which are equal to those of another query, delivered with these.

        Returns the number of the first; 0 if they have to be collected here.
        """
        self.leave()
        if not self._takes_equal:
            return 0
        if self._batches or (self._added != self._delivered and self._with is not other):
            # Those before them are elsewhere, or a thread that delivers them counts them.
            return 0
        self._with, number = other, self._added + 1
        self._added += results
        return number

    def _united(self, others: Sequence[Delivery]) -> Together | None:
        """These in one, if each has all its results, and their sinks can be."""
        if len(others) < _FEWEST_TOGETHER or not all(each._has_all for each in others):
            return None
        sinks: list[tuple[Any, int]] = [(each._equal, each._added + 1) for each in others]
        united = sinks[0][0].united(sinks)
        if united is None:
            return None
        made = Together(others, united)
        for each in others:
            each._with, each._among = self, made
        return made

    @property
    def _has_all(self) -> bool:
        """Has its only sink, which can get results with those of equal queries, all of them?"""
        return self._takes_equal and self._among is None and self._added == self._delivered and not self._batches

    @property
    def _takes_equal(self) -> bool:
        """Can its only sink get results with those of equal queries?"""
        return self._equal is not None and len(self.subscribers) == 1 and not self.closed and not self.failures

    def _counts(self) -> tuple[int, int]:
        """How many results there have been, and how many of them have been delivered."""
        among = self._among
        return (self._added, self._delivered) if among is None else among.counts_of(self)

    def fail(self, error: RunError) -> None:
        """The query has lost its state in the middle of the current step."""
        self._pending.failed.append((self, error))

    @property
    def count(self) -> int:
        """The number of results so far, which is that of the last one."""
        return self._counts()[0]

    def undelivered(self) -> list[ResultBatch]:
        """Results that nobody has got yet."""
        return [*self._taking_part(), *self._batches]

    def _taking_part(self) -> Iterator[ResultBatch]:
        """The results that are delivered with those of another query."""
        for batch in () if self._with is None else list(self._with._batches):
            for other, number in batch.others:
                if first := other.first_of(self, number):
                    own = unnumbered(batch)
                    own.number = first
                    yield own

    def first_of(self, delivery: Delivery, number: int) -> int:
        """The number of the first of its results, if they are delivered here; 0: they are not."""
        return number if delivery is self else 0

    def resume(self, count: int) -> None:
        """So many results have been delivered earlier, by another process."""
        self._added = self._delivered = count

    def is_behind(self) -> bool:
        """Are so many results undelivered that a thread which makes more must wait for the delivering thread?"""
        added, delivered = (self._added, self._delivered) if self._among is None else self._counts()
        return added - delivered > MOST_BEHIND

    def add_subscriber(self, subscriber: Subscriber, sink: Sink | None) -> None:
        """Add a subscriber to the following results. `sink`: it is flushed when there are no more results."""
        self.leave()
        self.subscribers = (*self.subscribers, subscriber)
        if sink is not None:
            self._sinks = (*self._sinks, sink)
        if len(self.subscribers) == 1 and isinstance(sink, EqualSink):
            # It stays so when others come: results that are under way to it are not theirs.
            self._equal = sink

    def settle(self) -> bool:
        """Have the sinks all results? Those that get on are waited for; results wait for one that fails, see `BackloggedSink`."""
        if not self._sinks:
            return True
        settled = [getattr(sink, "settle", None) for sink in self._sinks]
        added, delivered = self._counts()
        return added == delivered and all(each() for each in settled if each is not None)

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
                while batches and (self._with is None or not self._comes_later):
                    # It stays in `live_ids` until all subscribers have it.
                    batch = batches[0]
                    self._give(batch)
                    for other, number in batch.others:
                        try:
                            other.take_part(batch, number)
                        except BaseException as error:
                            self.failures[other.take_part] = error
                    # Before it leaves `_batches`: until it has, nobody else counts results here.
                    self._delivered += len(batch.time)
                    batches.popleft()
                if self._sinks:
                    self._flush()
            finally:
                self.lock.release()
            if (before := self._with) is not None and self._comes_later:
                before.hand_out(wait=True)

    @property
    def _comes_later(self) -> bool:
        """Are there results that come before those in `_batches`, and are delivered with those of another query?"""
        return (before := self._with) is not None and before is not self and len(before._batches) > 0

    def _give(self, batch: ResultBatch) -> None:
        subscribers, failures = self.subscribers, self.failures
        if not subscribers and not self.closed:
            self._keep(batch)
        for subscriber in subscribers:
            if not self.closed and subscriber not in failures:
                try:
                    subscriber(batch)
                except BaseException as error:
                    # Also KeyboardInterrupt and SystemExit: the delivery is completed first.
                    failures[subscriber] = error

    def take_part(self, batch: ResultBatch, number: int) -> None:
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


class Together:
    """Deliveries that get the results of another one in one call, as long as none of them comes or goes.

    Their counts are those that they had before, and those here.
    """

    def __init__(self, deliveries: Sequence[Delivery], sinks: EqualSinks) -> None:
        self._sinks = sinks
        self._before = {each: each._added for each in deliveries}
        self._added = self._delivered = 0
        # Held while they get results: it has not ended then, or they get them one by one.
        self._lock = threading.Lock()
        self._goes_on = True

    def add(self, results: int) -> int:
        """So many more results, in the current step; returns the number of the first here. 0: it has ended."""
        with self._lock:
            if not self._goes_on:
                return 0
            number = self._added + 1
            self._added += results
            return number

    def counts_of(self, delivery: Delivery) -> tuple[int, int]:
        """How many results one of them has had, and how many of them have been delivered."""
        with self._lock:
            added, delivered = (self._added, self._delivered) if delivery._among is self else (0, 0)
            return delivery._added + added, delivery._delivered + delivered

    def first_of(self, delivery: Delivery, number: int) -> int:
        """The number of the first of its results, if they are delivered here; 0: they are not."""
        before = self._before.get(delivery)
        return 0 if before is None else before + number

    def take_part(self, batch: ResultBatch, number: int) -> None:
        """Give all of them results."""
        with self._lock:
            if self._goes_on:
                self._sinks.write(batch)
                self._delivered += len(batch.time)
                return
        for each, before in self._before.items():
            each.take_part(batch, before + number)

    def end(self) -> None:
        """From now on each of them counts its own results. Those that have been added come still, one by one."""
        with self._lock:
            if not self._goes_on:
                return
            self._goes_on = False
            self._sinks.end()
            for each in self._before:
                each._added += self._added
                each._delivered += self._delivered
                each._among = None


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
