"""The kernels of the one-way index: keys that were added are found, and only these, also after a rebuild."""

from __future__ import annotations

import random

import numpy as np
import pytest

from cqels_py.kernels.structures import hash_table as kernel

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")

Key = tuple[int, ...]


class Table:
    """The arrays, and the kernels over them one key at a time."""

    def __init__(self, width: int, entries: int) -> None:
        self.width = width
        self.table = np.zeros(2 * entries, np.int64)
        self.keys = np.zeros(entries * width, np.int64)
        self.counts = np.zeros(entries, np.int64)
        self.free = np.zeros(entries, np.int32)
        self.meta = np.zeros(4, np.int64)

    @property
    def _mask(self) -> int:
        return len(self.table) - 1

    def find(self, key: Key) -> int:
        column, hashed = self._hashed(key)
        return int(kernel.find(self.table, self._mask, self.keys, self.width, column, 0, hashed))

    def add(self, key: Key) -> int:
        column, hashed = self._hashed(key)
        return int(
            kernel.add(
                self.table, self._mask, self.keys, self.width, column, 0, hashed, self.counts, self.free, self.meta
            )
        )

    def rebuild(self) -> None:
        kernel.rebuild(self.table, self.keys, self.width, self.counts, self.free, self.meta)

    def _hashed(self, key: Key) -> tuple[np.ndarray[tuple[int, int], np.dtype[np.int64]], np.int64]:
        column = np.array(key, np.int64).reshape(-1, 1)
        return column, np.int64(kernel.hash_row(column, 0, self.width))


@pytest.mark.parametrize("width", [1, 2, 5])
def test_added_keys_are_found_and_no_others(width: int) -> None:
    rng = random.Random(width)
    keys = list({tuple(rng.randrange(-(1 << 62), 1 << 62) for _ in range(width)) for _ in range(120)})
    table = Table(width, 128)
    numbers = {key: table.add(key) for key in keys[:60]}
    assert sorted(numbers.values()) == list(range(60))
    assert {key: table.find(key) for key in keys} == {key: numbers.get(key, -1) for key in keys}


def test_a_key_of_another_order_is_another_key() -> None:
    table = Table(2, 16)
    assert table.add((1, 2)) != table.add((2, 1))
    assert table.find((2, 1)) == 1


def test_a_rebuild_frees_entries_with_a_zero_counter_and_keeps_the_numbers_of_the_others() -> None:
    table = Table(1, 64)
    numbers = {(key,): table.add((key,)) for key in range(100, 140)}
    alive = {key: entry for key, entry in numbers.items() if key[0] % 4 == 0}
    for entry in alive.values():
        table.counts[entry] = 1
        table.meta[kernel.ZERO] -= 1
    assert table.meta[kernel.ZERO] == 30
    table.rebuild()
    assert {key: table.find(key) for key in numbers} == {key: alive.get(key, -1) for key in numbers}
    assert table.meta.tolist()[:3] == [40, 30, 0]
    assert {table.add((key,)) for key in range(30)} == set(numbers.values()) - set(alive.values())
    assert table.meta[kernel.FREE] == 0
    assert table.add((1000,)) == 40


def test_ids_that_differ_in_few_bits_spread_over_the_table() -> None:
    """Inline terms: without mixing, thousands of them would be in one probe sequence."""
    ids = np.array([[5 << 60 | i << 20 for i in range(4096)]], np.int64)
    slots = {int(kernel.hash_row(ids, row, 1)) & 8191 for row in range(4096)}
    assert len(slots) > 2800
