"""Bags that know their first member, against sorting."""

from __future__ import annotations

import random

import pytest

from tests.kernels.bags import Bags, number

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_the_first_member_is_known_while_members_come_and_go(seed: int, largest: bool) -> None:
    rng = random.Random(seed)
    bags = Bags(3)
    live: list[list[int]] = [[], [], []]
    for _ in range(600):
        bag = rng.randrange(3)
        mine = live[bag]
        if mine and rng.random() < (0.45 if seed % 2 else 0.6):
            value = mine.pop(rng.choice((0, -1, rng.randrange(len(mine)))))
            bags.put(bag, -1, value, largest=largest)
        else:
            mine.append(rng.randrange(-50, 50))
            bags.put(bag, 1, mine[-1], largest=largest)
        wanted = (max(mine) if largest else min(mine)) if mine else None
        assert bags.first(bag) == (0 if wanted is None else number(wanted))


def test_what_has_gone_below_the_first_is_purged() -> None:
    """The least stays, ten thousand others come and go: the bag's size follows its content."""
    bags = Bags(1)
    bags.put(0, 1, -1)
    for value in range(5_000):
        bags.put(0, 1, value)
        if value >= 20:
            bags.put(0, -1, value - 20)
    assert bags.first(0) == number(-1)
    assert len(bags.heap) <= 512


def test_bags_that_grow_leave_their_places_to_others() -> None:
    """Two bags of a hundred after each other take no more room than both at once."""
    bags = Bags(2)
    for value in range(100):
        bags.put(0, 1, value)
    room = len(bags.heap)
    for value in range(32):
        bags.put(1, 1, value)
    assert len(bags.heap) == room, "the smaller runs that the first bag has left are used"


def test_a_cleared_bag_starts_anew_in_its_place() -> None:
    bags = Bags(1)
    for _ in range(10):
        for value in range(30):
            bags.put(0, 1, value)
        bags.put(0, -1, 7)
        bags.clear(0)
        assert bags.first(0) == 0
        bags.put(0, 1, 9)
        assert bags.first(0) == number(9)
        bags.clear(0)
    assert len(bags.heap) <= 128
