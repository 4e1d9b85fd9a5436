"""Bags that know their first member, against sorting."""

from __future__ import annotations

import random
from bisect import insort
from collections.abc import Callable

import numpy as np
import pytest

from cqels_py.kernels import heaps
from tests.kernels.bags import Bags, number
from tests.operators.plain_dictionary import inline_id

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


def _come(order: str, count: int, rng: random.Random) -> int:
    return {"up": count, "down": -count, "same": 5, "any": rng.randrange(-99, 99), "far": rng.randrange(1 << 40)}[order]


_LEAVES: dict[str, Callable[[list[int], random.Random], int]] = {
    "the first to come": lambda mine, rng: 0,
    "the last to come": lambda mine, rng: -1,
    "any": lambda mine, rng: rng.randrange(len(mine)),
    "the least": lambda mine, rng: mine.index(min(mine)),
}


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("leaves", _LEAVES)
@pytest.mark.parametrize("order", ["up", "down", "same", "any", "far"])
def test_bags_that_grow_and_shrink_past_a_run_know_their_first(order: str, leaves: str, largest: bool) -> None:
    rng = random.Random(order + leaves)
    bags, mine, in_order, count = Bags(1), list[int](), list[int](), 0
    for size in (3 * heaps.MOST_IN_RUN, 20, heaps.MOST_IN_RUN + 3, 0, heaps.MOST_IN_RUN + 40, 60, 160, 0):
        while len(mine) != size:
            # Some go on the way up, and some come on the way down.
            if mine and rng.random() < (0.2 if len(mine) < size else 0.8):
                value = mine.pop(_LEAVES[leaves](mine, rng))
                in_order.remove(value)
                bags.put(0, -1, value, largest=largest)
            else:
                count += 1
                mine.append(_come(order, count, rng))
                insort(in_order, mine[-1])
                bags.put(0, 1, mine[-1], largest=largest)
            wanted = number(in_order[-1 if largest else 0]) if mine else 0
            assert bags.first(0) == wanted


def test_terms_of_all_kinds_are_brought_in_order_again_when_a_large_bag_has_become_small() -> None:
    """Integers and decimals, which ids alone do not compare."""
    rng = random.Random(1)
    texts = [(str(n), "integer") for n in range(150)] + [(f"{n}.5", "decimal") for n in range(150)]
    rng.shuffle(texts)
    bags = Bags(1)
    for text, datatype in texts:
        bags.put_id(0, 1, _id(text, datatype))
    by_value = sorted(texts, key=lambda text: float(text[0]))
    for text, datatype in by_value[40:]:
        bags.put_id(0, -1, _id(text, datatype))
    for text, datatype in by_value[:40]:
        assert bags.first(0) == _id(text, datatype)
        bags.put_id(0, -1, _id(text, datatype))
    assert bags.first(0) == 0


def _id(text: str, datatype: str) -> int:
    found = inline_id(text, datatype)
    assert found is not None
    return found


@pytest.mark.parametrize("size", [0, 1, 2, 3, 10, 257])
def test_ids_are_sorted_in_place_and_nothing_beside_them(size: int) -> None:
    ids = np.random.default_rng(size).integers(-20, 20, size + 4)
    wanted = [*ids[:2], *sorted(ids[2 : size + 2]), *ids[size + 2 :]]
    heaps._sort(ids, np.int64(2), np.int64(size))
    assert ids.tolist() == wanted


def test_few_members_take_one_run_however_many_have_come_and_gone() -> None:
    bags = Bags(1, arena=4)
    for value in range(1_000):
        bags.put(0, 1, value)
        bags.put(0, 1, -value)
        bags.put(0, -1, value)
        bags.put(0, -1, -value)
    assert len(bags.heap) == 4


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
