"""MINUS, NOT EXISTS and EXISTS (anti-join and semi-join) against a plain set, at every tick."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from cqels_py.event_time.clock import Ticks
from cqels_py.operators.r2r.semi_anti_join import SemiAntiJoin
from cqels_py.state import join_state
from cqels_py.state.join_state import OUT_ROWS
from tests.operators.deltas import Live, Port, Row, assert_follows, changes, delta, random_steps

ANY_TICK = Ticks(np.zeros(1, np.int64), first=True)
LEFT = ("a", "b")


def filtered(live: Live, key: Sequence[str], exists: bool) -> list[Row]:
    places = [LEFT.index(name) for name in key]
    right = set(live[1])
    return [row for row in live[0] if (tuple(row[place] for place in places) in right) == exists]


def assert_empty(negation: SemiAntiJoin) -> None:
    assert [negation.state.leaves(p) for p in range(2)] == [0, 0]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("exists", [False, True])
@pytest.mark.parametrize("expires_fifo", [(True, True), (True, False), (False, True), (False, False)])
@pytest.mark.parametrize("key", [(), ("a",), ("b",), ("a", "b")])
def test_every_tick_has_the_difference(
    key: tuple[str, ...], expires_fifo: tuple[bool, bool], exists: bool, seed: int
) -> None:
    ports = [Port(2, expires_fifo[0], (1, 2, 3, 4)), Port(len(key), expires_fifo[1], (1, 2, 3, 4))]
    negation = SemiAntiJoin(LEFT, key, expires_fifo, exists=exists)
    steps = random_steps(seed, ports, 20, 8, 8)
    assert_follows(negation, [2, len(key)], steps, lambda live: filtered(live, key, exists), chunk=seed)
    assert_empty(negation)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("expires_fifo", [True, False])
def test_where_state_grows_and_rings_move(monkeypatch: pytest.MonkeyPatch, expires_fifo: bool, seed: int) -> None:
    for name, size in {"_FIRST_RINGS": 16, "_FIRST_CAPACITY": 2, "_FEW_PLACES": 0, "_SLOTS_ROOM": 0}.items():
        monkeypatch.setattr(join_state, name, size)
    negation = SemiAntiJoin(LEFT, ("a",), (True, expires_fifo))
    steps = random_steps(seed, [Port(2, True, (1, 2, 3)), Port(1, expires_fifo, (1, 2, 3))], 60, 40, 12)
    assert_follows(negation, [2, 1], steps, lambda live: filtered(live, ("a",), False), chunk=seed)
    assert_empty(negation)


def test_right_mappings_of_fifo_inputs_are_only_counted() -> None:
    negation, other = SemiAntiJoin(LEFT, ("a",), (True, True)), SemiAntiJoin(LEFT, ("a",), (True, False))
    right = delta([(0, 1, (7,)) for _ in range(10_000)], 1)
    for each in (negation, other):
        assert changes(each.process(ANY_TICK, [[delta([(0, 1, (7, 1))], 2)], []])) == {0: {(7, 1): 1}}
        assert changes(each.process(ANY_TICK, [[], [right]])) == {0: {(7, 1): -1}}
    assert len(other.state.rings) > 10_000 > len(negation.state.rings)
    gone = delta([(tick, -1, (7,)) for tick in range(10_000)], 1)
    for each in (negation, other):
        assert changes(each.process(ANY_TICK, [[], [gone]])) == {9_999: {(7, 1): 1}}


@pytest.mark.parametrize("exists", [False, True])
def test_a_key_that_comes_and_goes_within_a_tick_changes_nothing(exists: bool) -> None:
    negation = SemiAntiJoin(LEFT, ("a",), (True, True), exists=exists)
    changes(negation.process(ANY_TICK, [[delta([(0, 1, (1, 1)), (0, 1, (1, 2))], 2)], []]))
    assert changes(negation.process(ANY_TICK, [[], [delta([(0, 1, (1,)), (0, -1, (1,))], 1)]])) == {}


@pytest.mark.parametrize("expires_fifo", [True, False])
def test_one_key_retracts_more_results_than_a_chunk_holds(expires_fifo: bool) -> None:
    rows = OUT_ROWS + 1000
    negation = SemiAntiJoin(LEFT, ("a",), (expires_fifo, expires_fifo))
    left = delta([(0, 1, (7, i + 1)) for i in range(rows)], 2)
    assert changes(negation.process(ANY_TICK, [[left], []])) == {0: {(7, i + 1): 1 for i in range(rows)}}
    chunks = list(negation.process(ANY_TICK, [[], [delta([(0, 1, (7,))], 1)]]))
    assert len(chunks) > 1
    assert changes(chunks) == {0: {(7, i + 1): -1 for i in range(rows)}}
    assert changes(negation.process(ANY_TICK, [[], [delta([(0, 1, (7,))], 1)]])) == {}
    twice = delta([(0, -1, (7,)), (1, -1, (7,))], 1)
    assert changes(negation.process(ANY_TICK, [[], [twice]])) == {1: {(7, i + 1): 1 for i in range(rows)}}
    gone = delta([(0, -1, (7, i + 1)) for i in range(rows)], 2)
    assert changes(negation.process(ANY_TICK, [[gone], []])) == {0: {(7, i + 1): -1 for i in range(rows)}}
    assert_empty(negation)


def test_state_does_not_grow_with_the_number_of_keys_seen() -> None:
    negation = SemiAntiJoin(LEFT, ("a",), (True, True))
    sizes = []
    for turn in range(60):
        events = [(0, -1, (0, 0))] * (40 if turn else 0) + [(0, 1, (turn * 40 + i + 1, 1)) for i in range(40)]
        keys = [(tick, sign, row[:1]) for tick, sign, row in events]
        changes(negation.process(ANY_TICK, [[delta(events, 2)], [delta(keys, 1)]]))
        sizes.append(negation.nbytes)
    assert sizes[-1] == sizes[9]
