"""Bags with access to their first member, against sorting."""

from __future__ import annotations

import random
from bisect import insort
from collections.abc import Callable
from decimal import Decimal

import numpy as np
import pytest

from cqels_py.kernels.structures import heaps
from tests.kernels.bags import Bags, number
from tests.operators.plain_dictionary import inline_id

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_the_first_member_is_known_under_insertions_and_retractions(seed: int, largest: bool) -> None:
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
    bags, mine, expires_fifo, count = Bags(1), list[int](), list[int](), 0
    for size in (3 * heaps.MOST_IN_RUN, 20, heaps.MOST_IN_RUN + 3, 0, heaps.MOST_IN_RUN + 40, 60, 160, 0):
        while len(mine) != size:
            # Some are retracted on the way up, and some are inserted on the way down.
            if mine and rng.random() < (0.2 if len(mine) < size else 0.8):
                value = mine.pop(_LEAVES[leaves](mine, rng))
                expires_fifo.remove(value)
                bags.put(0, -1, value, largest=largest)
            else:
                count += 1
                mine.append(_come(order, count, rng))
                insort(expires_fifo, mine[-1])
                bags.put(0, 1, mine[-1], largest=largest)
            wanted = number(expires_fifo[-1 if largest else 0]) if mine else 0
            assert bags.first(0) == wanted


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("order", ["up", "down", "same", "any", "far"])
@pytest.mark.parametrize("most", [1, 3, 17, heaps.MOST_IN_RUN + 20])
def test_one_member_is_replaced_by_another(most: int, order: str, largest: bool) -> None:
    """Or only inserted or retracted: with the same effect as separate calls, whatever room there is."""
    rng = random.Random(order + str(most))
    bags, live, count = Bags(2), [list[int](), list[int]()], 0
    for _ in range(6 * most + 200):
        bag = rng.randrange(2)
        mine = live[bag]
        goes = mine and rng.random() < (0.8 if len(mine) >= most else 0.5)
        gone = mine.pop(rng.choice((0, mine.index(min(mine)), rng.randrange(len(mine))))) if goes else None
        come = None
        if gone is None or (len(mine) < most and rng.random() < 0.6):
            count += 1
            come = _come(order, count, rng)
            mine.append(come)
        assert bags.replace(bag, gone, come, largest=largest)
        wanted = (max(mine) if largest else min(mine)) if mine else None
        assert bags.first(bag) == (0 if wanted is None else number(wanted))


@pytest.mark.parametrize("members", [[], [3], [3, 1, 2], [*range(40)], [*range(3 * heaps.MOST_IN_RUN)]])
def test_a_missing_member_is_not_replaced(members: list[int]) -> None:
    bags = Bags(1)
    for value in members:
        bags.put(0, 1, value)
    # Heaps do not search for a retracted member.
    if len(members) <= heaps.MOST_IN_RUN:
        assert not bags.replace(0, -7, 5)
        assert not bags.replace(0, -7, None)


def test_members_of_other_kinds_replace_each_other() -> None:
    """Integers and decimals, which cannot be compared by id; the extreme numbers of inline ids."""
    rng = random.Random(2)
    most = (1 << 55) - 1
    values = [
        ("1", "integer"),
        ("1.5", "decimal"),
        (str(-most - 1), "integer"),
        (str(most), "integer"),
        ("0.25", "decimal"),
    ]
    for largest in (False, True):
        bags, live = Bags(1), list[tuple[str, str]]()
        for _ in range(400):
            gone = live.pop(rng.randrange(len(live))) if live and rng.random() < 0.6 else None
            come = rng.choice(values) if gone is None or rng.random() < 0.7 else None
            live += [come] if come else []
            bags.replace_id(0, _id(*gone) if gone else 0, _id(*come) if come else 0, largest=largest)
            first = (max if largest else min)(live, key=lambda text: Decimal(text[0]), default=None)
            assert bags.first(0) == (_id(*first) if first else 0)


def test_terms_of_all_kinds_are_reordered_when_a_large_bag_becomes_small() -> None:
    """Integers and decimals, which cannot be compared by id."""
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
def test_ids_are_sorted_in_place_and_no_others(size: int) -> None:
    ids = np.random.default_rng(size).integers(-20, 20, size + 4)
    wanted = [*ids[:2], *sorted(ids[2 : size + 2]), *ids[size + 2 :]]
    heaps._sort(ids, np.int64(2), np.int64(size))
    assert ids.tolist() == wanted


def test_few_members_take_one_run_after_any_number_of_insertions_and_retractions() -> None:
    room = 4 + heaps.LANES
    bags = Bags(1, room)
    for value in range(1_000):
        bags.put(0, 1, value)
        bags.put(0, 1, -value)
        bags.put(0, -1, value)
        bags.put(0, -1, -value)
    assert len(bags.heap) == room


def test_members_retracted_below_the_first_are_purged() -> None:
    """The smallest stays, ten thousand others are inserted and retracted: the bag's size follows its content."""
    bags = Bags(1)
    bags.put(0, 1, -1)
    for value in range(5_000):
        bags.put(0, 1, value)
        if value >= 20:
            bags.put(0, -1, value - 20)
    assert bags.first(0) == number(-1)
    assert len(bags.heap) <= 512


def test_bags_that_grow_free_their_runs() -> None:
    """Two bags of a hundred, one after the other, take no more room than both at once."""
    bags = Bags(2)
    for value in range(100):
        bags.put(0, 1, value)
    room = len(bags.heap)
    for value in range(32):
        bags.put(1, 1, value)
    assert len(bags.heap) == room, "the smaller runs that the first bag has left are used"


def test_a_cleared_bag_reuses_its_run() -> None:
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
