"""The transitive closure against a plain search, at every tick."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pytest

from cqels_py.event_time.clock import Ticks
from cqels_py.operators.r2r.transitive_closure import TransitiveClosure
from cqels_py.state.join_state import OUT_ROWS
from tests.operators.deltas import Live, Port, Row, Step, assert_follows, changes, delta, random_steps

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")

ANY_TICK = Ticks(np.zeros(1, np.int64), first=True)


def reachable(edges: Iterable[Row], start: int) -> set[int]:
    """Nodes that one edge or more lead to."""
    following: dict[int, set[int]] = {}
    for from_, to in edges:
        following.setdefault(from_, set()).add(to)
    found: set[int] = set()
    waiting = [start]
    while waiting:
        for node in following.get(waiting.pop(), set()) - found:
            found.add(node)
            waiting.append(node)
    return found


def closed(edges: Sequence[Row], *, loops: bool = True, source: int | None = None) -> list[Row]:
    """All pairs; edges with a third column lead on within one of its values only."""
    found: list[Row] = []
    for graph in sorted({edge[2:] for edge in edges}):
        mine = [edge[:2] for edge in edges if edge[2:] == graph]
        sources = {edge[0] for edge in mine} if source is None else {source}
        found += [(a, b, *graph) for a in sources for b in reachable(mine, a) if loops or a != b]
    return found


def assert_empty(closure: TransitiveClosure) -> None:
    state = closure.state
    assert state.pairs == 0
    assert not state.tree_table.any()
    assert not state.edge_index.counts.any()
    assert state.node_index.counts.sum() == (state.only_source >= 0)
    assert (state.heads == -1).all()


@pytest.mark.parametrize("loops", [True, False])
@pytest.mark.parametrize("expires_fifo", [True, False])
@pytest.mark.parametrize(("nodes", "most"), [(1, 3), (2, 6), (4, 4), (5, 9), (12, 14), (12, 30)])
def test_every_tick_has_the_transitive_closure(nodes: int, most: int, expires_fifo: bool, loops: bool) -> None:
    for seed in range(3):
        closure = TransitiveClosure((0, 1), loops=loops)
        steps = random_steps(seed, [Port(2, expires_fifo, range(1, nodes + 1))], 12, 6, most)
        assert_follows(closure, [2], steps, lambda live: closed(live[0], loops=loops), chunk=seed)
        assert_empty(closure)


@pytest.mark.parametrize("loops", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_from_one_source(seed: int, loops: bool) -> None:
    """The source need not be in the graph."""
    closure = TransitiveClosure((1, 0), source=2 if seed else 99, loops=loops)

    def model(live: Live) -> list[Row]:
        return closed([(b, a) for a, b in live[0]], source=2 if seed else 99, loops=loops)

    assert_follows(
        closure, [2], random_steps(seed, [Port(2, bool(seed % 2), range(1, 7))], 12, 6, 9), model, chunk=seed
    )
    assert_empty(closure)


@pytest.mark.parametrize("seed", range(3))
def test_paths_are_within_one_graph(seed: int) -> None:
    closure = TransitiveClosure((2, 0, 1))

    def model(live: Live) -> list[Row]:
        return closed([(c, a, b) for a, b, c in live[0]])

    assert_follows(closure, [3], random_steps(seed, [Port(3, False, (1, 2, 3))], 12, 6, 12), model)
    assert_empty(closure)


def sliding(length: int, window: int) -> Iterator[Step]:
    """A path of edges that goes round a circle, its last edges in a window."""
    rng = random.Random(5)
    live: list[Row] = []
    for _ in range(length):
        inputs = []
        if len(live) == window:
            inputs.append((0, -1, live.pop(0)))
        edge = (
            (rng.randrange(40), rng.randrange(40)) if rng.random() < 0.1 else (at := rng.randrange(40), (at + 1) % 40)
        )
        live.append(edge)
        inputs.append((0, 1, edge))
        yield Step([inputs], [[list(live)]])


def test_a_window_over_long_paths() -> None:
    """Whole subtrees are attached to other edges, or retracted."""
    assert_follows(TransitiveClosure((0, 1)), [2], sliding(150, 40), lambda live: closed(live[0]))


def test_more_pairs_at_once_than_a_chunk_or_the_first_arrays_hold() -> None:
    size = 70
    left = [(0, 1, (i + 1, 1000)) for i in range(size)]
    right = [(0, 1, (2000, 3000 + i)) for i in range(size + OUT_ROWS // size)]
    closure = TransitiveClosure((0, 1))
    changes(closure.process(ANY_TICK, [[delta(left + right, 2)]]))
    before = closure.state.pairs
    chunks = list(closure.process(ANY_TICK, [[delta([(0, 1, (1000, 2000))], 2)]]))
    bridged = {
        (a, b): 1 for a in [*(row[0] for _, _, row in left), 1000] for b in [2000, *(row[1] for _, _, row in right)]
    }
    assert changes(chunks) == {0: bridged}
    assert len(chunks) > 1
    chunks = list(closure.process(ANY_TICK, [[delta([(0, -1, (1000, 2000))], 2)]]))
    assert changes(chunks) == {0: dict.fromkeys(bridged, -1)}
    assert len(chunks) > 1
    assert closure.state.pairs == before


def test_an_edge_counts_as_long_as_one_copy_is_there() -> None:
    closure = TransitiveClosure((0, 1))
    events = [(0, 1, (1, 2)), (1, 1, (1, 2)), (2, -1, (1, 2)), (3, -1, (1, 2))]
    assert changes(closure.process(ANY_TICK, [[delta(events, 2)]])) == {0: {(1, 2): 1}, 3: {(1, 2): -1}}


def test_state_does_not_grow_with_the_number_of_nodes_seen() -> None:
    closure = TransitiveClosure((0, 1))
    sizes = []
    for turn in range(40):
        new = [(0, 1, (turn * 30 + i + 1, turn * 30 + i + 2)) for i in range(30)]
        old = [(0, -1, (a - 30, b - 30)) for _, _, (a, b) in new] if turn else []
        changes(closure.process(ANY_TICK, [[delta(old + new, 2)]]))
        sizes.append(closure.nbytes)
    assert sizes[-1] == sizes[9]
    assert closure.state.pairs == 30 * 31 // 2
