"""A sorted sequence in blocks, against a list."""

from __future__ import annotations

import random
from bisect import bisect_left, insort

import numpy as np
import pytest

from cqels_py.kernels.rows.top import blocks_for
from cqels_py.kernels.structures import ordered_blocks as kernel


class Sequence:
    """The arrays, with room for so many blocks."""

    def __init__(self, room: int) -> None:
        self.blocks = np.zeros((room, kernel.SIZE), np.int64)
        self.blocks[:, 0] = [*range(1, room), -1]
        self.directory = np.zeros((2, room), np.int64)
        self.state = np.zeros(2, np.int64)

    def place(self, number: int) -> tuple[int, int]:
        """The first place that has no smaller number, at the end of a block rather than at the next one's start."""
        position = bisect_left(self.all(), number)
        for d in range(self.used):
            if position <= self.directory[kernel.COUNT, d]:
                return d, position
            position -= int(self.directory[kernel.COUNT, d])
        return 0, 0

    @property
    def used(self) -> int:
        return int(self.state[kernel.USED])

    def all(self) -> list[int]:
        runs = self.directory[:, : self.used].T
        return [number for block, count in runs for number in self.blocks[block, :count].tolist()]

    def put(self, number: int) -> None:
        kernel.put(self.blocks, self.directory, self.state, *self.place(number), number)

    def take_out(self, number: int) -> None:
        d, i = self.place(number)
        if i == self.directory[kernel.COUNT, d]:
            d, i = d + 1, 0
        assert self.blocks[self.directory[kernel.BLOCK, d], i] == number
        kernel.take_out(self.blocks, self.directory, self.state, d, i)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("order", ["any", "rising", "falling"])
def test_numbers_stay_in_order(order: str, seed: int) -> None:
    rng = random.Random(seed)
    sequence, model = Sequence(60), list[int]()
    for step in range(1_500):
        number = {"any": rng.randrange(10_000), "rising": step, "falling": -step}[order]
        sequence.put(number)
        insort(model, number)
    assert sequence.all() == model
    assert sequence.used > 2
    for position in (0, 511, 512, 777, 1_499):
        assert (
            kernel.number_at_position(sequence.blocks, sequence.directory, sequence.used, position) == model[position]
        )
    assert kernel.numbers_before(sequence.directory, sequence.used) == 1_500
    gone = rng.sample(model, 1_400)
    for number in gone:
        sequence.take_out(number)
        model.remove(number)
    assert sequence.all() == model
    assert sequence.used <= 2


def test_there_are_only_as_many_blocks_as_needed() -> None:
    """Ten rounds of insertions and removals everywhere: nearly empty neighbours are merged."""
    rng = random.Random(7)
    numbers = [rng.randrange(10**6) for _ in range(2_000)]
    sequence = Sequence(60)
    for number in numbers:
        sequence.put(number)
    for _ in range(4_000):
        sequence.take_out(numbers.pop(rng.randrange(len(numbers) // 10)))
        numbers.append(rng.randrange(10**6))
        sequence.put(numbers[-1])
    assert sequence.all() == sorted(numbers)
    assert sequence.used <= 4 * 2_000 // kernel.SIZE + 2


@pytest.mark.parametrize("more", [1, 10, 700, 3_000])
@pytest.mark.parametrize("below", [200, 51_200])
def test_there_are_always_enough_blocks(below: int, more: int) -> None:
    """All blocks are full, so that each is split by one more number; or all numbers go to the first ones."""
    sequence = Sequence(blocks_for(10, more))
    for block in range(10):
        sequence.blocks[block] = np.arange(kernel.SIZE) * 10 + block * 10 * kernel.SIZE
        sequence.directory[:, block] = block, kernel.SIZE
    sequence.state[:] = 10, 10
    model = sequence.all()
    for step in range(more):
        number = step * 5_119 % below
        assert sequence.state[kernel.FREE] >= 0
        sequence.put(number)
        insort(model, number)
    assert sequence.all() == model
