"""How much is tested: everything with CQELS_TEST_ALL=1, and otherwise a slice that takes minutes."""

from __future__ import annotations

import os

import pytest

ALL = os.environ.get("CQELS_TEST_ALL") == "1"

long = pytest.mark.skipif(not ALL, reason="it takes long: set CQELS_TEST_ALL=1")
"""For a test that starts many processes or waits for minutes, and beside which shorter tests see most of the same faults."""


def step(every: int) -> int:
    """The step of a sweep over all places where something may fail: `every` if everything is tested, and else four times that.

    Odd steps stay odd, so that a sweep meets operations that alternate.
    """
    return every if ALL else 4 * every + 1


def has_seed_of_slice(item: pytest.Item) -> bool:
    """Of a test with numbered seeds the slice has the first two and each seventh."""
    seed = item.callspec.params.get("seed") if isinstance(item, pytest.Function) and hasattr(item, "callspec") else None
    return not isinstance(seed, int) or seed % 1000 < 2 or seed % 7 == 0


__all__ = ["ALL", "has_seed_of_slice", "long", "step"]
