"""Partitions of a stream in one order of time, and positions from which a reading goes on, with drawn streams."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cqels_py.batches.elements import ElementBatch
from cqels_py.sources.partitions import Partition, PartitionMerge

Log = list[list[int]]
"""A partition: the times of the elements of each message; some have none, some have several."""
LOGS = st.lists(st.lists(st.lists(st.integers(0, 30), max_size=3), max_size=12), min_size=1, max_size=4)


def decoded(bodies: Sequence[bytes], numbers: Sequence[int], offsets: Sequence[int]) -> ElementBatch:
    """The subject of an element is its place: of the message, and within it. The stream is the number of the partition."""
    elements = [
        (time, 10 * offset + place)
        for body, offset in zip(bodies, offsets, strict=True)
        for place, time in enumerate(body)
    ]
    ids = np.array([subject for _, subject in elements], np.int64)
    return ElementBatch(
        np.array([time for time, _ in elements], np.int64),
        np.array([number for body, number in zip(bodies, numbers, strict=True) for _ in body], np.int32),
        np.arange(len(elements) + 1),
        ids,
        ids,
        ids,
    )


class Reading:
    """The partitions of logs, from a position on; `clock` says how long they have been silent."""

    def __init__(self, logs: Sequence[Log], position: Sequence[tuple[int, int, int]] | None = None) -> None:
        self.now = 0.0
        self._logs = logs
        begin = position or [(number, 0, 0) for number in range(len(logs))]
        parts = [Partition(number, offset, decoded, skip=taken) for number, offset, taken in begin]
        self.merge = PartitionMerge(parts, 30, lambda: self.now)
        self.found: list[tuple[int, int, int]] = []

    def put(self, number: int, count: int) -> None:
        part = self.merge.partitions[number]
        first = part.next
        bodies = self._logs[number][first : first + count]
        after = min(first + count, len(self._logs[number]))
        part.put([*map(bytes, bodies)], [number] * len(bodies), range(first, after), after, self.now)
        if after == len(self._logs[number]):
            part.end = after

    def take(self) -> None:
        batch = self.merge.take()
        self.found += zip(batch.stream.tolist(), batch.subject.tolist(), batch.time.tolist(), strict=True)

    def finish(self) -> list[tuple[int, int, int]]:
        for number, log in enumerate(self._logs):
            self.put(number, len(log))
        self.now += 100
        while self.merge.can_decode or any(len(each.keys) for each in self.merge.partitions.values()):
            self.take()
        return self.found


def elements_of(number: int, log: Log) -> list[tuple[int, int, int]]:
    return [(number, 10 * offset + place, time) for offset, times in enumerate(log) for place, time in enumerate(times)]


PUTS = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4)), max_size=20)


@given(LOGS, PUTS)
def test_no_element_is_late_because_of_another_partition(logs: list[Log], puts: list[tuple[int, int]]) -> None:
    """The elements come with their partition's greatest time in order, however they are put; each partition keeps its order."""
    reading = Reading(logs)
    for number, count in puts:
        if number < len(logs):
            reading.put(number, count)
            reading.take()
    found = reading.finish()
    for number, log in enumerate(logs):
        assert [each for each in found if each[0] == number] == elements_of(number, log)
    greatest = {
        number: list(accumulate((time for *_, time in elements_of(number, log)), max))
        for number, log in enumerate(logs)
    }
    keys = [greatest[number].pop(0) for number, *_ in found]
    assert keys == sorted(keys) or len(logs) == 1


@given(LOGS, PUTS, st.integers(0, 20))
def test_a_reading_goes_on_at_any_position(logs: list[Log], puts: list[tuple[int, int]], stop: int) -> None:
    """What was taken before the position, and what a new reading from there takes, are all elements, each once."""
    first = Reading(logs)
    for number, count in puts[:stop]:
        if number < len(logs):
            first.put(number, count)
            first.take()
    second = Reading(logs, first.merge.position())
    for number, count in puts[stop:]:
        if number < len(logs):
            second.put(number, count)
            second.take()
    third = Reading(logs, second.merge.position())
    found = first.found + second.found + third.finish()
    for number, log in enumerate(logs):
        assert [each for each in found if each[0] == number] == elements_of(number, log)
