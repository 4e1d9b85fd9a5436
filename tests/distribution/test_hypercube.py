"""Shares are optimal, and the predicted number of copies equals the counted one."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqels_py.distribution.hypercube import HypercubeShares, shares_for

CHAIN = [frozenset("ab"), frozenset("bc"), frozenset("cd")]
TRIANGLE = [frozenset("ab"), frozenset("bc"), frozenset("ca")]
STAR = [frozenset("ab"), frozenset("ac"), frozenset("ad")]
PATTERNS = st.lists(st.frozensets(st.sampled_from("abcd"), min_size=1, max_size=3), min_size=1, max_size=4)


def least_load(patterns: Sequence[frozenset[str]], partitions: int) -> Fraction:
    """By trying everything."""
    names = sorted(frozenset().union(*patterns))
    every = product(range(1, partitions + 1), repeat=len(names))
    return min(
        sum(Fraction(1, prod(s for n, s in zip(names, shares, strict=True) if n in p)) for p in patterns)
        / len(patterns)
        for shares in every
        if prod(shares) <= partitions
    )


@given(PATTERNS, st.integers(1, 7))
def test_no_other_shares_are_better(patterns: list[frozenset[str]], partitions: int) -> None:
    found = shares_for(patterns, partitions)
    assert found.cells <= partitions
    assert found.load == least_load(patterns, partitions)


@given(PATTERNS, st.integers(1, 12))
def test_copies_are_the_cells_that_agree(patterns: list[frozenset[str]], partitions: int) -> None:
    found = shares_for(patterns, partitions)
    axes = dict(found.axes)
    chance = random.Random(partitions)
    for pattern in patterns:
        triple = {name: chance.randrange(axes[name]) for name in pattern if name in axes}
        cells = [dict(zip(axes, cell, strict=True)) for cell in product(*map(range, axes.values()))]
        assert sum(all(cell[name] == at for name, at in triple.items()) for cell in cells) == found.copies(pattern)


@pytest.mark.parametrize(
    ("patterns", "partitions", "axes", "replication"),
    [
        (CHAIN, 1, "", 1),
        (CHAIN, 2, "b2", Fraction(4, 3)),
        (CHAIN, 4, "b2 c2", Fraction(5, 3)),
        (CHAIN, 100, "b10 c10", 7),
        (CHAIN, 1000, "b32 c31", Fraction(64, 3)),
        (TRIANGLE, 8, "a2 b2 c2", 2),
        (TRIANGLE, 27, "a3 b3 c3", 3),
        (TRIANGLE, 1000, "a10 b10 c10", 10),
        (STAR, 1000, "a1000", 1),
        ([frozenset("ab"), frozenset("cd")], 25, "a5 c5", 5),
    ],
)
def test_known_ones(patterns: list[frozenset[str]], partitions: int, axes: str, replication: float) -> None:
    found = shares_for(patterns, partitions)
    assert " ".join(f"{name}{share}" for name, share in found.axes) == axes
    assert found.replication == replication


def test_more_partitions_never_mean_more_work_for_each() -> None:
    loads = [shares_for(CHAIN, partitions).load for partitions in (*range(1, 100), *range(100, 1001, 60))]
    assert loads == sorted(loads, reverse=True)
    assert all(shares_for(CHAIN, n).replication <= Fraction(2 * n + 1, 3) for n in (1, 2, 10, 1000))


def test_only_variables_that_may_have_a_share_have_one() -> None:
    assert shares_for(TRIANGLE, 8, ["c"]).axes == (("c", 8),)
    assert shares_for(TRIANGLE, 2, ["c", "a"]).axes == (("c", 2),), "the preferred one"
    assert shares_for(TRIANGLE, 8, []) == HypercubeShares((), tuple(TRIANGLE))
    with pytest.raises(ValueError, match="at least one partition, not 0"):
        shares_for(CHAIN, 0)


@given(
    st.lists(st.frozensets(st.sampled_from("abcd"), min_size=1, max_size=2), min_size=1, max_size=4),
    st.sampled_from([2, 4, 6]),
    st.dictionaries(st.sampled_from("abcd"), st.integers(2, 3), max_size=2),
)
def test_no_shares_have_a_lower_load(patterns: list[frozenset[str]], partitions: int, times: dict[str, int]) -> None:
    """Variables that can be exchanged are tried in one order only; all orders are tried here."""
    names = sorted(frozenset().union(*patterns))
    found = dict(shares_for(patterns, partitions, times=times).axes)

    def load(shares: dict[str, int]) -> float:
        return sum(1 / prod(shares.get(name, 1) for name in pattern) for pattern in patterns)

    divisions = product(range(1, partitions + 1), repeat=len(names))
    least = min(
        load({name: share * times.get(name, 1) for name, share in zip(names, each, strict=True)})
        for each in divisions
        if prod(each) <= partitions
    )
    if times.keys() <= found.keys():
        assert load(found) == pytest.approx(least)


def test_many_variables_that_can_be_exchanged() -> None:
    """All orders of ten would be millions."""
    found = shares_for([frozenset(name) for name in "abcdefghij"], 1000)
    assert sorted(share for _, share in found.axes) == [2] * 8 + [3]
