"""The one-way index as kernels open it from the record of a KeyTable: keys counted as a dict counts them."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from cqels_py.kernels.compiler.jit import jit_flat
from cqels_py.kernels.structures.hash_table import hash_row
from cqels_py.kernels.structures.key_index import add_key, count_entry, find_key, has_room, open_index
from cqels_py.state.key_table import KeyTable

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")


@jit_flat
def count_keys(record, width, columns, steps):
    """Count the columns' keys while there is room; returns the number of those that were counted."""
    index = open_index(record)
    for row in range(columns.shape[1]):
        hashed = hash_row(columns, row, width)
        entry = find_key(index, width, columns, row, hashed)
        if entry < 0:
            if not has_room(index, width, 1):
                return row
            entry = add_key(index, width, columns, row, hashed)
        count_entry(index, entry, steps[row])
    return columns.shape[1]


def content(table: KeyTable) -> dict[tuple[int, ...], int]:
    used = int(table.meta[0])
    keys = table.keys.reshape(-1, max(table.width, 1))[:used, : table.width].tolist()
    return {tuple(key): count for key, count in zip(keys, table.counts[:used].tolist(), strict=True) if count}


@pytest.mark.parametrize("width", [0, 1, 3])
def test_keys_are_counted_and_a_full_index_is_told(width: int) -> None:
    rng = random.Random(width)
    table, expected, stops = KeyTable(width), Counter[tuple[int, ...]](), 0
    address = table.address
    for _ in range(40):
        keys = [tuple(rng.randrange(9 if width > 1 else 400) for _ in range(width)) for _ in range(25)]
        steps = [rng.choice((1, 1, 2)) for _ in keys]
        if rng.random() < 0.5 and expected:
            key = rng.choice(list(expected))
            keys[0], steps[0] = key, -expected[key]
        columns, counted = np.array(keys, np.int64).reshape(len(keys), width).T.copy(), 0
        while counted < len(keys):
            counted += int(count_keys(table.address, width, columns[:, counted:].copy(), np.array(steps[counted:])))
            if counted < len(keys):
                stops += 1
                assert table.spare == 0
                table.ensure(1)
        for key, step in zip(keys, steps, strict=True):
            expected[key] += step
            if expected[key] == 0:
                del expected[key]
        assert content(table) == expected
        assert table.live == len(expected)
    assert table.address == address
    assert (stops > 0) == (width > 0)
