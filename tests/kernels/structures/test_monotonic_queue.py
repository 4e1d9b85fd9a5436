"""Monotonic queues, against the minimum of all members."""

from __future__ import annotations

import random
from collections import deque

import pytest

from cqels_py.kernels.structures import monotonic_queue as staircase
from cqels_py.kernels.structures.arena import TOP
from tests.kernels.bags import Bags, number

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")


def queues_in_one_arena(count: int) -> Bags:
    return Bags(count, room=staircase.queue_room, put=staircase.queue_put)


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("values", [2, 10, 1000])
def test_the_first_member_is_known_while_the_oldest_expire(values: int, largest: bool) -> None:
    rng = random.Random(values)
    queues = queues_in_one_arena(3)
    live: list[deque[int]] = [deque(), deque(), deque()]
    for step in range(1500):
        queue = rng.randrange(3)
        mine = live[queue]
        # Queues grow for a while, and are emptied for a while.
        if mine and rng.random() < (0.4 if step // 300 % 2 == 0 else 0.7):
            queues.put(queue, -1, mine.popleft(), largest=largest)
        else:
            mine.append(rng.randrange(values))
            queues.put(queue, 1, mine[-1], largest=largest)
        expected = number((max if largest else min)(mine)) if mine else 0
        assert queues.first(queue) == expected


@pytest.mark.parametrize("rises", [True, False])
def test_room_follows_the_members_that_may_still_become_the_first(rises: bool) -> None:
    """A window of 100 values: if they rise each may become the smallest, if they fall only the last may."""
    queues = queues_in_one_arena(1)
    for i in range(10_000):
        queues.put(0, 1, i if rises else 10_000 - i)
        if i >= 100:
            queues.put(0, -1, i - 100 if rises else 10_100 - i)
    assert queues.first(0) == number(9_900 if rises else 1)
    assert queues.meta[TOP] <= (512 if rises else 8)


def test_a_cleared_queue_reuses_its_run() -> None:
    queues = queues_in_one_arena(1)
    for value in (1, 2, 3, 4, 5):
        queues.put(0, 1, value)
    before = len(queues.heap)
    queues.clear(0)
    assert queues.first(0) == 0
    for value in (7, 6, 8):
        queues.put(0, 1, value)
    assert queues.first(0) == number(6)
    assert len(queues.heap) == before
