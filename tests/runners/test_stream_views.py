"""The elements of a step as queries see them, and the places of results among them."""

from __future__ import annotations

import numpy as np

from cqels_py.batches.elements import ElementBatch
from cqels_py.batches.results import ResultBatch
from cqels_py.runners.stream_views import NO_ARRIVALS, StepElements, StreamView


def elements(*streams: int) -> ElementBatch:
    """One triple each, at 10, 20 …"""
    numbers = np.arange(len(streams))
    return ElementBatch(10 * numbers + 10, np.array(streams, np.int32), np.arange(len(streams) + 1), *[numbers] * 3)


def seen(view: StreamView) -> list[tuple[int, int]]:
    """Time and stream of the elements of a view."""
    return list(zip(view.batch.time.tolist(), view.batch.stream.tolist(), strict=True))


def results(*ticks: tuple[int, int]) -> ResultBatch:
    """A result for each tick: its number and its time."""
    tick, time = np.array(ticks).reshape(-1, 2).T
    return ResultBatch((), time, np.ones(len(time), np.int8), (), tick.astype(np.int32))


def test_streams_have_the_numbers_of_their_places() -> None:
    step = StepElements(elements(3, 1, 2, 3))
    view = step.view((3, 1))
    assert seen(view) == [(10, 0), (20, 1), (40, 0)]
    assert view.positions is not None
    assert view.positions.tolist() == [0, 1, 3]
    assert step.view((3, 1)) is view
    assert step.view((3, 2, 1)).positions is None


def test_a_single_element_is_seen_by_those_who_read_its_stream() -> None:
    batch = elements(1)
    step = StepElements(batch)
    assert step.view((0, 1)).batch is batch
    assert seen(step.view((1,))) == [(10, 0)]
    assert seen(step.view((0, 2))) == []


def test_results_follow_their_arrival_or_else_all_elements_of_their_instant() -> None:
    """
    elements   10   20   30   40        ticks of stream 1: 0 (10), 1 (an expiry at 25), 2 (40)
    stream      1    0    0    1
    """
    view = StepElements(elements(1, 0, 0, 1)).view((1,))
    arrivals = np.array([0, 2], np.int32)
    assert view.preceding(results((0, 10), (1, 25), (2, 40)), arrivals).tolist() == [0, 1, 3]
    assert view.preceding(results((0, 5), (1, 10), (2, 99)), NO_ARRIVALS).tolist() == [-1, 0, 3]
