"""Deliveries of equal queries by several threads: each result is counted once."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cqels_py.batches.results import ResultBatch
from cqels_py.engine.delivery import Delivery, PendingDeliveries


def in_another_thread(call: Callable[[], None]) -> None:
    thread = threading.Thread(target=call)
    thread.start()
    thread.join(30)
    assert not thread.is_alive()


class Counted:
    """A sink that can get the results of an equal query."""

    def __init__(self) -> None:
        self.numbers: list[int] = []

    def write(self, batch: ResultBatch) -> None:
        self.numbers += range(batch.number, batch.number + len(batch.sign))

    def write_equal(self, batch: ResultBatch, number: int) -> None:
        self.numbers += range(number, number + len(batch.sign))

    def united(self, others: Sequence[tuple[Any, int]]) -> None:
        return None

    def flush(self) -> None: ...

    def commit(self) -> None: ...


class Times:
    """The times of one result, of which `meanwhile` happens in another thread when they are counted."""

    meanwhile: Callable[[], None] | None = None

    def __len__(self) -> int:
        if (meanwhile := self.meanwhile) is not None:
            self.meanwhile = None
            in_another_thread(meanwhile)
        return 1


class Popped(deque[ResultBatch]):
    """Of which `meanwhile` happens in another thread once the first has gone."""

    meanwhile: Callable[[], None] | None = None

    def popleft(self) -> ResultBatch:
        gone = super().popleft()
        if (meanwhile := self.meanwhile) is not None:
            self.meanwhile = None
            in_another_thread(meanwhile)
        return gone


def result(times: Any = None) -> ResultBatch:
    return ResultBatch(
        ("s",), np.zeros(1, np.int64) if times is None else times, np.ones(1, np.int8), (np.ones(1, np.int64),)
    )


def delivery(pending: PendingDeliveries, sink: Counted) -> Delivery:
    made = Delivery(pending, lambda batch: None)
    made.add_subscriber(sink.write, sink)
    return made


def test_results_are_counted_that_another_thread_delivers_while_own_ones_are() -> None:
    pending = PendingDeliveries()
    sinks = Counted(), Counted()
    first, second = (delivery(pending, sink) for sink in sinks)

    def step() -> None:
        """The queries have an equal result."""
        batch = result()
        for each in first.share(batch, (second,)):
            each.deliver(result())
        first.deliver(batch)
        first.hand_out(wait=False)
        second.hand_out(wait=False)

    step()
    assert sinks[1].numbers == [1]
    times = Times()
    second.deliver(result(times))
    times.meanwhile = step
    second.hand_out(wait=False)
    assert sinks[0].numbers == [1, 2]
    assert sinks[1].numbers == [1, 2, 3]
    assert first.settle()
    assert second.settle()
    assert not second.undelivered()


def test_results_that_come_after_those_of_an_equal_query_wait_for_them() -> None:
    pending = PendingDeliveries()
    sinks = Counted(), Counted()
    first, second = (delivery(pending, sink) for sink in sinks)
    second._batches = batches = Popped()

    def have_equal() -> None:
        batch = result()
        assert not first.share(batch, (second,))
        first.deliver(batch)

    def steps() -> None:
        """An equal result, which has not been delivered yet, and then one of the second query alone."""
        have_equal()
        second.deliver(result())

    have_equal()
    first.hand_out(wait=False)
    second.deliver(result())
    batches.meanwhile = steps
    second.hand_out(wait=False)
    assert sinks[1].numbers == [1, 2, 3, 4]
    assert sinks[0].numbers == [1, 2]
    assert first.settle()
    assert second.settle()
