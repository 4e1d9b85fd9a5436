"""The hash table of pairs (source, node), against a dict."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqels_py.kernels.compiler.jit import jit
from cqels_py.kernels.structures import reach_trees as kernel

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")

PAIRS = st.tuples(st.integers(0, 3), st.integers(0, 3))


@jit
def find(trees, table, source, node):  # type: ignore[no-untyped-def]
    return kernel.find_pair(trees, table, source, node)


@jit
def enter(trees, table, t):  # type: ignore[no-untyped-def]
    kernel.insert_pair(trees, table, t)


@jit
def leave(trees, table, t):  # type: ignore[no-untyped-def]
    kernel.remove_pair(trees, table, t)


@given(st.lists(PAIRS, max_size=120))
def test_pairs_are_inserted_and_removed(toggled: list[tuple[int, int]]) -> None:
    """A table that is half full: entries displaced by others move back when these are removed."""
    trees = np.zeros(16 * kernel.TREE_FIELDS, np.int32)
    table = np.zeros(32, np.int64)
    live: dict[tuple[int, int], int] = {}
    free = list(range(16))
    for pair in toggled:
        if pair in live:
            t = live.pop(pair)
            leave(trees, table, t)
            free.append(t)
        else:
            t = live[pair] = free.pop()
            trees[t * kernel.TREE_FIELDS + kernel.SOURCE], trees[t * kernel.TREE_FIELDS + kernel.NODE] = pair
            enter(trees, table, t)
        for source in range(4):
            for node in range(4):
                assert find(trees, table, source, node) == live.get((source, node), -1)
    assert np.count_nonzero(table) == len(live)


def test_a_larger_table_has_all_pairs() -> None:
    trees = np.zeros(16 * kernel.TREE_FIELDS, np.int32)
    table = np.zeros(32, np.int64)
    for t in range(16):
        trees[t * kernel.TREE_FIELDS + kernel.SOURCE], trees[t * kernel.TREE_FIELDS + kernel.NODE] = t // 4, t
        enter(trees, table, t)
    larger = np.zeros(64, np.int64)
    kernel.enter_all(trees, table, larger)
    assert [find(trees, larger, t // 4, t) for t in range(16)] == list(range(16))
