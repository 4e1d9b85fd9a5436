"""What windows hold at every tick, by the oracle's definition, whatever the batches."""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from cqels_py.algebra import nodes
from cqels_py.batches.delta import Delta
from cqels_py.batches.elements import ElementBatch
from cqels_py.event_time.clock import Step
from cqels_py.event_time.windows import Measure
from cqels_py.operators.s2r.arrivals import ArrivalCounter, Arrivals
from cqels_py.operators.s2r.window import make_window
from cqels_py.planner.windows import bounds_of
from tests.event_time.driving import (
    NAMES,
    Cut,
    at_random,
    clock_of,
    columns,
    one_by_one,
    query_of,
    random_elements,
    random_extent,
    steps,
    stream_number,
    whole,
)
from tests.oracle import naive
from tests.oracle.naive import Element
from tests.support import traces

Contents = list[tuple[int, list[int]]]
"""For each tick its time and the numbers of the triples in the window, in order."""


class Player:
    """One window's scan, without its pattern: it takes in the triples whose numbers are matched."""

    def __init__(self, query: nodes.ContinuousQuery, index: int, *, keep_ids: bool = True, width: int = 1) -> None:
        definition = query.windows[index]
        self._bounds = bounds_of(definition.extent)
        self._stream = stream_number(definition.stream)
        self._counter = ArrivalCounter(len(NAMES))
        self._width = width
        self.window = make_window(self._bounds, width, keep_ids=keep_ids, stream=self._stream, index=index)

    def take(self, elements: Sequence[Element], step: Step) -> Delta:
        batch = batch_of(elements)
        arrivals = self._counter.take(batch, step)
        element = arrivals.element
        rows = np.flatnonzero((batch.stream[element] == self._stream) & (batch.object % 3 != 0))
        match self._bounds.measure:
            case Measure.TIME | Measure.SESSION:
                points = batch.time[element[rows]]
            case Measure.ELEMENTS:
                points = step.number[element[rows]]
            case Measure.TRIPLES:
                points = arrivals.number[rows]
        return self.window.advance(arrivals, points, element[rows], batch.object[rows][np.newaxis][: self._width])


def is_matched(number: int) -> bool:
    """Two triples of three match the pattern."""
    return number % 3 != 0


def batch_of(elements: Sequence[Element]) -> ElementBatch:
    time, stream, first = columns(elements)
    numbers = np.array([int(str(o)) for e in elements for _, _, o in e.triples], np.int64)
    return ElementBatch(time, stream, first, numbers, numbers, numbers)


def contents(
    extents: Sequence[nodes.Extent], index: int, cuts: Sequence[Cut], *, every_boundary: bool, keep_ids: bool = True
) -> Contents:
    """What the window holds after each tick."""
    query = query_of(extents)
    player = Player(query, index, keep_ids=keep_ids)
    held: list[int] = []
    found: Contents = []
    for elements, step in steps(clock_of(query, every_boundary=every_boundary), cuts):
        delta = player.take(elements, step)
        assert (np.diff(delta.tick) >= 0).all()
        changes = list(zip(delta.tick.tolist(), delta.sign.tolist(), delta.columns[0].tolist(), strict=True))
        assert all(0 <= tick < len(step.ticks) for tick, _, _ in changes)
        assert len({(tick, row) for tick, _, row in changes if row}) == sum(row != 0 for _, _, row in changes)
        for tick, time in enumerate(step.ticks.time.tolist()):
            for _, sign, row in (change for change in changes if change[0] == tick):
                if sign > 0:
                    held.append(row)
                else:
                    gone = held.pop(0)
                    assert row == (gone if keep_ids else 0), "mappings leave in the order in which they came"
            found.append((time, list(held)))
    return found


def expected(extents: Sequence[nodes.Extent], index: int, elements: Sequence[Element]) -> Contents:
    query = query_of(extents)
    found: Contents = []
    for moment in naive.moments(query, elements):
        triples = naive.content(query, query.windows[index], elements, moment).triples
        numbers = [int(str(o)) for _, _, o in triples]
        found.append((moment.time, [n for n in numbers if is_matched(n)]))
    return found


def without_repetition(found: Contents) -> Contents:
    """Only ticks at which something changed."""
    before: list[list[int]] = [[], *(held for _, held in found)]
    return [(time, held) for (time, held), last in zip(found, before, strict=False) if held != last]


def all_cuts(rng: random.Random, elements: Sequence[Element]) -> Iterator[Sequence[Cut]]:
    yield whole(elements)
    yield one_by_one(elements)
    yield at_random(rng, elements)


@pytest.mark.parametrize("seed", range(80))
def test_windows_hold_what_the_oracle_says_however_elements_come(seed: int) -> None:
    rng = random.Random(seed)
    extents = [random_extent(rng) for _ in range(rng.randrange(1, 4))]
    elements = random_elements(rng, 25, min(len(extents), 2))
    for index in range(len(extents)):
        wanted = expected(extents, index, elements)
        for cuts in all_cuts(rng, elements):
            assert contents(extents, index, cuts, every_boundary=True) == wanted
            fewer = contents(extents, index, cuts, every_boundary=False)
            assert without_repetition(fewer) == without_repetition(wanted)


@pytest.mark.parametrize("seed", range(20))
def test_without_ids_what_leaves_is_only_counted(seed: int) -> None:
    rng = random.Random(1000 + seed)
    extents = [random_extent(rng)]
    elements = random_elements(rng, 25, 1)
    for cuts in all_cuts(rng, elements):
        found = contents(extents, 0, cuts, every_boundary=True, keep_ids=False)
        assert found == expected(extents, 0, elements)


@pytest.mark.parametrize("seed", range(10))
def test_mappings_without_variables_enter_and_leave_too(seed: int) -> None:
    rng = random.Random(2000 + seed)
    extents = [random_extent(rng)]
    elements = random_elements(rng, 25, 1)
    wanted = [(time, len(held)) for time, held in expected(extents, 0, elements)]
    for cuts in all_cuts(rng, elements):
        query = query_of(extents)
        player, held, found = Player(query, 0, width=0), 0, []
        for some, step in steps(clock_of(query, every_boundary=True), cuts):
            delta = player.take(some, step)
            assert delta.columns.shape == (0, len(delta))
            for tick, time in enumerate(step.ticks.time.tolist()):
                held += int(delta.sign[delta.tick == tick].sum())
                found.append((time, held))
        assert found == wanted


@pytest.mark.parametrize("extent", [nodes.TimeRange(50), nodes.ElementCount(50), nodes.TimeRange(50, 10)])
def test_state_does_not_grow_with_the_stream(extent: nodes.Extent) -> None:
    query = query_of([extent])
    player, clock = Player(query, 0), clock_of(query, every_boundary=False)
    sizes = []
    for start in range(0, 8_000, 40):
        elements = [
            Element(t, query.windows[0].stream, traces.triples(f"s p {3 * t + 1}")) for t in range(start, start + 40)
        ]
        player.take(elements, clock.step(*columns(elements)))
        sizes.append(player.window.nbytes)
    assert sizes[-1] == sizes[20]
    (live,) = player.window.live_ids()
    assert 0 < live.size <= 100


def test_everything_keeps_nothing() -> None:
    """Nothing ever leaves, so nothing needs to be known of what came."""
    query = query_of([nodes.Everything()])
    player, clock = Player(query, 0), clock_of(query, every_boundary=False)
    before = player.window.nbytes
    elements = random_elements(random.Random(1), 2000, 1)
    assert Counter(player.take(elements, clock.step(*columns(elements))).sign.tolist()).keys() == {1}
    assert player.window.nbytes == before


@pytest.mark.parametrize("extent", [nodes.TimeRange(700), nodes.ElementCount(700)])
@pytest.mark.parametrize("together", [1, 7, 300])
def test_hundreds_of_mappings_are_moved_to_where_there_is_room(together: int, extent: nodes.Extent) -> None:
    query = query_of([extent])
    player, clock = Player(query, 0), clock_of(query, every_boundary=False)
    held: deque[int] = deque()
    for start in range(0, 2_100, together):
        times = range(start, start + together)
        elements = [Element(t, query.windows[0].stream, traces.triples(f"s p {3 * t + 1}")) for t in times]
        step = clock.step(*columns(elements))
        delta = player.take(elements, step)
        instants = step.ticks.time[delta.tick].tolist()
        for time, sign, row in zip(instants, delta.sign.tolist(), delta.columns[0].tolist(), strict=True):
            if sign > 0:
                held.append(row)
                assert row == 3 * time + 1
            else:
                assert row == held.popleft() == 3 * (time - 700) + 1
        assert list(held) == [3 * t + 1 for t in range(max(0, times[-1] - 699), times[-1] + 1)]


@pytest.mark.parametrize(
    "extent", [nodes.Everything(), nodes.TimeRange(5), nodes.TimeRange(6, 2), nodes.ElementCount(5)]
)
def test_a_window_that_copies_gives_away_nothing_of_what_it_is_given(extent: nodes.Extent) -> None:
    query = query_of([extent])
    player, clock = Player(query, 0), clock_of(query, every_boundary=False)
    given: list[np.ndarray] = []
    advance = player.window.advance

    def remembering(arrivals: Arrivals, *arrays: np.ndarray) -> Delta:
        given.extend(arrays)
        return advance(arrivals, *arrays)

    player.window.advance = remembering  # type: ignore[method-assign,assignment]
    shared = False
    for t in range(20):
        elements = [Element(t, query.windows[0].stream, traces.triples(f"s p {3 * t + 1}"))]
        delta = player.take(elements, clock.step(*columns(elements)))
        shared |= any(np.shares_memory(delta.columns, array) for array in given)
    assert shared is not player.window.copies
