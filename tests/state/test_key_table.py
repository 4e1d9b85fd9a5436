"""The one-way index as operators hold it, driven by the kernel of DISTINCT, against a dict of counters."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from cqels_py.kernels.rows import distinct as kernel
from cqels_py.state.key_table import KeyTable

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")

Key = tuple[int, ...]


def count(table: KeyTable, rows: list[tuple[int, Key]]) -> bool:
    """Keys with signs; True if the arrays have grown."""
    grown = table.ensure(len(rows))
    columns = np.array([key for _, key in rows], np.int64).reshape(len(rows), table.width).T.copy()
    signs = np.array([sign for sign, _ in rows], np.int8)
    assert kernel.count_rows(signs, columns, 0, len(rows), table.address)
    return grown


def content(table: KeyTable) -> Counter[Key]:
    rows = np.repeat(np.arange(int(table.meta[0])), table.counts[: int(table.meta[0])])
    keys = table.keys.reshape(-1, max(table.width, 1))[:, : table.width]
    return Counter(tuple(keys[row].tolist()) for row in rows)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("width", [0, 1, 2, 4])
def test_it_counts_like_a_dict(width: int, seed: int) -> None:
    rng = random.Random(seed)
    table = KeyTable(width)
    live: list[Key] = []
    for step in range(60):
        rows: list[tuple[int, Key]] = []
        for _ in range(rng.choice((1, 10, 100))):
            if live and rng.random() < 0.5:
                rows.append((-1, live.pop(rng.randrange(len(live)))))
            else:
                live.append(tuple(rng.randrange(step * 5 + 3) for _ in range(width)))
                rows.append((1, live[-1]))
        count(table, rows)
        assert content(table) == Counter(live)
        assert table.entries <= max(table.capacity, 1)
        assert table.entries - int(table.meta[2]) == len(set(live))


def test_numbers_of_entries_stay_while_the_table_grows() -> None:
    """Operators keep what belongs to an entry in arrays of their own."""
    table = KeyTable(1)
    count(table, [(1, (i,)) for i in range(10)])
    before = table.keys[:10].tolist()
    grown = [count(table, [(1, (i,)) for i in range(start, start + 50)]) for start in range(10, 500, 50)]
    assert any(grown)
    assert table.keys[:10].tolist() == before


def test_entries_with_a_zero_counter_are_used_again() -> None:
    table = KeyTable(2)
    for turn in range(200):
        keys = [(turn, i) for i in range(20)]
        count(table, [(1, key) for key in keys])
        count(table, [(-1, key) for key in keys])
    assert table.capacity <= 128
    assert content(table) == Counter()


def test_keys_that_look_alike_are_told_apart() -> None:
    """Ids of inline terms differ in few bits; (a, b) is not (b, a)."""
    table = KeyTable(2)
    keys = [(5 << 60 | i, -(i << 56)) for i in range(64)] + [(-(i << 56), 5 << 60 | i) for i in range(64)]
    count(table, [(1, key) for key in keys])
    assert content(table) == Counter(keys)
    assert len(set(keys)) == 128


def test_live_ids_are_those_of_the_keys() -> None:
    table = KeyTable(2)
    count(table, [(1, (1, 2)), (1, (3, 4))])
    assert set(table.live_ids().tolist()) == {1, 2, 3, 4}


def filled(keys: int, live: Sequence[int]) -> KeyTable:
    """A table that had so many keys, each the number of its entry plus 1000, of which these are live."""
    table = KeyTable(1)
    count(table, [(1, (1000 + key,)) for key in range(keys)])
    count(table, [(-1, (1000 + key,)) for key in sorted(set(range(keys)) - set(live))])
    return table


def test_a_sparse_table_is_compacted() -> None:
    table = filled(5000, [7, 4000, 4999])
    kept = table.compact()
    assert kept is not None
    assert kept.tolist() == [7, 4000, 4999]
    assert (table.capacity, table.entries, table.live, table.spare) == (64, 3, 3, 61)
    assert table.keys_of(np.arange(3)).tolist() == [[1007, 5000, 5999]]
    assert table.compact() is None
    # Keys are found again, and others get new entries.
    count(table, [(1, (5000,)), (1, (1,))])
    assert (table.counts[:4].tolist(), table.live) == ([1, 2, 1, 1], 4)


def test_a_table_is_compacted_only_where_it_gets_much_smaller() -> None:
    table = filled(5000, range(2049, 5000))
    assert table.compact() is None
    assert table.live == 2951


def test_entries_that_keep_their_numbers() -> None:
    table = filled(5000, [7, 400])
    table.release()
    assert (table.capacity, table.live, table.keys_of(np.array([7, 400])).tolist()) == (512, 2, [[1007, 1400]])
    # Terms of released entries are not kept.
    assert sorted(set(table.live_ids().tolist())) == [0, 1007, 1400]
    # The next key gets the lowest number.
    count(table, [(1, (1,))])
    assert table.counts[0] == 1
