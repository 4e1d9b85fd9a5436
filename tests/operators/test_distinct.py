"""DISTINCT against a set, at every tick."""

from __future__ import annotations

import pytest

from cqels_py.event_time.clock import Ticks
from cqels_py.operators.r2r.distinct import DistinctRows
from tests.operators.deltas import Port, assert_follows, changes, delta, random_steps
from tests.operators.test_semi_anti_join import ANY_TICK


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("width", [0, 1, 2, 5])
@pytest.mark.parametrize("expires_fifo", [True, False])
def test_every_tick_has_the_sets_difference(expires_fifo: bool, width: int, seed: int) -> None:
    steps = random_steps(seed, [Port(width, expires_fifo, (0, 1, -(1 << 60)))], 25, 8, 12)
    assert_follows(DistinctRows(width), [width], steps, lambda live: set(live[0]), chunk=seed)


def test_chunks_may_end_within_a_tick() -> None:
    distinct = DistinctRows(1)
    events = [(0, 1, (1,)), (0, 1, (1,)), (0, -1, (1,)), (1, -1, (1,)), (1, 1, (1,))]
    each = [delta([event], 1) for event in events]
    assert changes(distinct.process(ANY_TICK, [each])) == {0: {(1,): 1}}


def test_state_does_not_grow_with_the_number_of_mappings_seen() -> None:
    distinct = DistinctRows(2)
    sizes = []
    for turn in range(60):
        old = [(0, -1, (turn * 50 - 50 + i, 1)) for i in range(50)] if turn else []
        new = [(0, 1, (turn * 50 + i, 1)) for i in range(50)]
        assert len(changes(distinct.process(ANY_TICK, [[delta([*old, *new], 2)]]))[0]) == len(old) + len(new)
        sizes.append(distinct.nbytes)
    assert sizes[-1] == sizes[9]
    assert distinct.index.entries <= distinct.index.capacity


def test_a_missing_mapping_cannot_be_retracted() -> None:
    with pytest.raises(AssertionError, match="never inserted"):
        list(DistinctRows(1).process(ANY_TICK, [[delta([(0, -1, (1,))], 1)]]))


def test_no_input_gives_no_output() -> None:
    assert list(DistinctRows(1).process(Ticks(ANY_TICK.time, first=False), [[]])) == []
