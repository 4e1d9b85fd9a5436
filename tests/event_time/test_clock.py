"""Which instants are ticks: timelines by hand, then the oracle's at random, however the elements come."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from rdflib import URIRef

from cqels_py.algebra.nodes import ElementCount, Everything, Extent, Session, TimeRange, TripleCount
from tests.event_time.driving import (
    NAMES,
    Cut,
    at_random,
    clock_of,
    one_by_one,
    query_of,
    random_elements,
    random_extent,
    steps,
    whole,
)
from tests.oracle import naive
from tests.oracle.naive import Element, Phase
from tests.support import traces


def elements_of(*lines: str) -> list[Element]:
    """A line for each stream, "1" where an element arrives ("2": two of them); its place is the time."""
    found = []
    for stream, line in zip(NAMES, lines, strict=False):
        for time, char in enumerate(line):
            found += [Element(time, URIRef(traces.STREAMS + stream), ())] * (int(char) if char.isdigit() else 0)
    return sorted(found, key=lambda element: element.time)


def tick_times(extents: Sequence[Extent], cuts: Sequence[Cut], *, every_boundary: bool = True) -> list[int]:
    clock = clock_of(query_of(extents), every_boundary=every_boundary)
    return [int(time) for _, step in steps(clock, cuts) for time in step.ticks.time]


def timeline(times: Sequence[int]) -> str:
    return "".join(str(times.count(time)) if time in times else "." for time in range(max(times) + 1))


def check(extent: Extent, arriving: str, ticks: str, *, every_boundary: bool = True) -> None:
    elements = elements_of(arriving.replace(" ", ""))
    for cuts in (whole(elements), one_by_one(elements), at_random(random.Random(arriving), elements)):
        times = tick_times([extent], cuts, every_boundary=every_boundary)
        assert timeline(times) == ticks.replace(" ", "").rstrip(".")


def test_a_range_ticks_at_arrivals_and_expiries_before_the_end() -> None:
    # fmt: off
    check(TimeRange(3), "1.... 1.1.. ...1.",
                        "1..1. 1.11. 1..1")
    # fmt: on


def test_an_expiry_at_an_arrival_is_no_tick_of_its_own() -> None:
    # fmt: off
    check(TimeRange(3), "1..1. ",
                        "1..1. ")
    check(TimeRange(3), "2..2.. 1",
                        "2..2.. 1")
    # fmt: on


def test_now_expires_at_the_next_microsecond() -> None:
    # fmt: off
    check(TimeRange(1), "2...1 1",
                        "21..1 1")
    # fmt: on


def test_step_ticks_at_its_boundaries_only() -> None:
    # fmt: off
    check(TimeRange(4, 2), "..... .1... ....1 .",
                           "..... .1.1. 1.1.1 ", every_boundary=True)
    check(TimeRange(4, 4), ".1... .1... .1",
                           "....1 ...1. ..1 ", every_boundary=True)
    # fmt: on


def test_boundaries_at_which_nothing_can_change_are_left_out() -> None:
    # fmt: off
    check(TimeRange(2, 2), ".1... ..... .1",
                           "..1.1 ..... ..1", every_boundary=False)
    check(TimeRange(2, 2), ".1... ..... .1",
                           "..1.1 .1.1. 1.1", every_boundary=True)
    # fmt: on


def test_boundaries_count_from_their_start() -> None:
    # fmt: off
    check(TimeRange(2, 4, 1), "..1.. 1.... 1",
                              "..... 1...1 ...1")
    # fmt: on


def test_a_count_ticks_at_arrivals_only() -> None:
    # fmt: off
    check(ElementCount(2), "1.1.. 1...2",
                           "1.1.. 1...2")
    check(TripleCount(2),  "1.1.. 1...2",
                           "1.1.. 1...2")
    check(Everything(),    "1.1.. 1...2",
                           "1.1.. 1...2")
    check(ElementCount(5, 2), "1.1.. 1...2 1",
                              "..1.. ....1 1")
    # fmt: on


def test_a_boundary_after_the_last_element_is_still_a_tick_an_expiry_is_not() -> None:
    elements = elements_of("1.1")
    assert tick_times([TimeRange(100), TimeRange(10, 5)], whole(elements)) == [0, 0, 2, 5]
    assert tick_times([TimeRange(1), TimeRange(10, 5)], whole(elements)) == [0, 0, 1, 2, 5]


def test_a_window_in_the_past_ticks_at_arrivals_entries_and_expiries() -> None:
    # fmt: off
    check(TimeRange(3, delay=2), "1..... ...1.. 1",
                                 "1.1..1 ...1.1 1")
    check(TimeRange(2, 4, delay=1), "1.... .1... 1",
                                    "1...1 ...1. ..1")
    # fmt: on


def test_a_session_ends_a_gap_after_its_last_element() -> None:
    # fmt: off
    check(Session(2), "1.1.. 1.... 1",
                      "1.1.1 1.1.. 1")
    # fmt: on


def test_an_element_at_a_sessions_end_continues_it() -> None:
    """Elements of other streams at that instant still see the session."""
    elements = elements_of("1.1", "..2.2.1")
    for cuts in (whole(elements), one_by_one(elements)):
        assert tick_times([Session(2), Everything()], cuts) == [0, 2, 2, 2, 4, 4, 4, 6]


def test_the_last_boundary_says_what_has_expired_since_the_last_element() -> None:
    elements = elements_of("...........1", "..1")
    for every in (True, False):
        times = tick_times([TimeRange(3), TimeRange(4, 5)], whole(elements), every_boundary=every)
        assert times[-2:] == [11, 15]


def test_a_boundary_waits_until_time_has_passed_it() -> None:
    """An element at the boundary's own instant may still come, and belongs to it."""
    clock = clock_of(query_of([TimeRange(5, 5)]), every_boundary=True)
    taken = [[int(t) for t in step.ticks.time] for _, step in steps(clock, one_by_one(elements_of("11...11")))]
    assert taken == [[], [0], [], [5], [10]]


def test_a_promise_lets_time_pass() -> None:
    clock = clock_of(query_of([TimeRange(3), TimeRange(5, 5)]), every_boundary=True)
    cuts = [Cut(elements_of("1"), 3), Cut([], 4), Cut([], 10)]
    taken = [[int(t) for t in step.ticks.time] for _, step in steps(clock, cuts)]
    assert taken == [[0], [0], [], [3], [], [5], [10]]


def test_no_element_no_tick() -> None:
    assert tick_times([TimeRange(3), TimeRange(4, 2)], [Cut([], None), Cut([], 5)]) == []


def test_the_first_tick_says_so() -> None:
    clock = clock_of(query_of([ElementCount(1, 2)]), every_boundary=True)
    firsts = [(len(step.ticks), step.ticks.first) for _, step in steps(clock, one_by_one(elements_of("11111")))]
    assert firsts == [(0, False), (1, True), (0, False), (1, False), (0, False), (0, False)]


def test_elements_have_numbers_within_their_stream() -> None:
    clock = clock_of(query_of([Everything(), Everything()]), every_boundary=True)
    elements = elements_of("1.2.1", ".11..")
    numbers = [n for _, step in steps(clock, at_random(random.Random(1), elements)) for n in step.number.tolist()]
    assert numbers == [1, 1, 2, 3, 2, 4]


@pytest.mark.parametrize("seed", range(60))
def test_ticks_are_the_oracles_however_elements_come(seed: int) -> None:
    rng = random.Random(seed)
    extents = [random_extent(rng) for _ in range(rng.randrange(1, 4))]
    query = query_of(extents)
    elements = random_elements(rng, 25, min(len(extents), 2))
    moments = naive.moments(query, elements)
    expected = [moment.time for moment in moments]
    for cuts in (whole(elements), one_by_one(elements), at_random(rng, elements)):
        assert tick_times(extents, cuts) == expected
    fewer = tick_times(extents, whole(elements), every_boundary=False)
    assert tick_times(extents, at_random(rng, elements), every_boundary=False) == fewer
    needed = [moment.time for moment in moments if moment.phase is not Phase.BOUNDARY]
    assert not list_difference(fewer, expected), "no ticks but those"
    assert not list_difference(needed, fewer), "only boundaries are left out"


def list_difference(left: Sequence[int], right: Sequence[int]) -> list[int]:
    rest = list(right)
    missing = []
    for item in left:
        if item in rest:
            rest.remove(item)
        else:
            missing.append(item)
    return missing
