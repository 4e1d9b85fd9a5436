"""Queues of delta-encoded points, against lists."""

from __future__ import annotations

import random

import numpy as np
import pytest

from cqels_py.kernels.windows import varint_queue as kernel

LEAST, MOST = -(2**63), 2**63 - 1


class Queue:
    """The bytes of a queue, round whose end its points go."""

    def __init__(self, room: int) -> None:
        self.varints = np.zeros(room, np.uint8)
        self.ends = np.zeros(kernel.FIELDS, np.int64)

    def append(self, points: list[int]) -> None:
        kernel.append(np.array(points, np.int64), self.varints, self.ends)

    def read(self, limit: int, reader: int, room: int = 99) -> list[int] | None:
        points = np.empty(room, np.int64)
        read = kernel.read_through(limit, reader, self.varints, self.ends, points)
        return points[:read].tolist() if read <= room else None

    def bytes_used(self) -> int:
        return int(self.ends[kernel.END] - self.ends[kernel.EXPIRING + kernel.AT]) % len(self.varints)


@pytest.mark.parametrize(
    "points", [[LEAST, MOST], [LEAST, LEAST, -1, 0, 1, MOST, MOST], [MOST], [-5, -5, 123, 128, 256]]
)
def test_points_of_all_kinds(points: list[int]) -> None:
    queue = Queue(10 * len(points) + 1)
    queue.append(points)
    assert queue.read(MOST, kernel.EXPIRING) == points
    assert queue.read(points[0], kernel.ENTERING) == [point for point in points if point == points[0]]


@pytest.mark.parametrize(
    ("gap", "size"), [(0, 1), (127, 1), (128, 2), (16_383, 2), (16_384, 3), (2**56 - 1, 8), (2**56, 9)]
)
def test_a_varint_takes_a_byte_for_seven_bits(gap: int, size: int) -> None:
    queue = Queue(21)
    queue.append([0])
    queue.append([gap])
    assert queue.bytes_used() == 1 + size


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("apart", [(0, 1, 1, 200, 10**6), (0, 1, 1, 127), (*[3] * 30, 128)])
def test_two_readers_wrap_around_the_end(apart: tuple[int, ...], seed: int) -> None:
    chance = random.Random(seed)
    queue, point = Queue(64), 0
    waiting: dict[int, list[int]] = {kernel.EXPIRING: [], kernel.ENTERING: []}
    for _ in range(500):
        points = []
        for _ in range(chance.randrange(4)):
            point += chance.choice(apart)
            points.append(point)
        if len(waiting[kernel.EXPIRING]) + len(points) <= 15:
            queue.append(points)
            for mine in waiting.values():
                mine += points
        limit = point
        for reader in (kernel.ENTERING, kernel.EXPIRING):
            limit -= chance.choice((0, 1, 300, 10**6)) if max(apart) > 128 else chance.choice((0, 1, 60))
            mine = waiting[reader]
            expected = [value for value in mine if value <= limit]
            assert queue.read(limit, reader) == expected
            del mine[: len(expected)]
            assert not mine or queue.ends[reader + kernel.NEXT] == mine[0]


def test_nothing_is_read_without_room() -> None:
    queue = Queue(64)
    queue.append([1, 2, 3])
    assert queue.read(2, kernel.EXPIRING, room=1) is None
    assert queue.read(2, kernel.EXPIRING, room=2) == [1, 2]
