"""Clocks that run ahead: timelines by hand, and decisions that do not depend on batches."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqels_py.engine.engine import Engine
from cqels_py.errors import CqelsError, UsageError
from cqels_py.event_time.ahead import AheadGuard

ONE, OTHER = "http://example.org/one", "http://example.org/other"
PREFIX = "PREFIX : <http://example.org/>"
SECOND = 1_000_000
FAR = 4_860_000_000 * SECOND
"""An instant of 2124."""


def admit(guard: AheadGuard, *elements: tuple[int, int]) -> list[bool]:
    streams, times = (np.array(each) for each in zip(*elements, strict=True))
    admitted = guard.admit(times.astype(np.int64), streams.astype(np.int32))
    return [True] * len(elements) if admitted is None else admitted.tolist()


def naive(ahead: int, elements: list[tuple[int, int]]) -> list[bool]:
    latest: dict[int, int] = {}
    found = []
    for stream, time in elements:
        found.append(time - latest.get(stream, time) <= ahead)
        if found[-1]:
            latest[stream] = max(latest.get(stream, time), time)
    return found


def test_an_element_that_is_too_far_ahead_does_not_count_for_those_after_it() -> None:
    elements = [(0, 10), (0, 16), (0, 15), (0, 12), (0, 21), (0, 20), (0, 25)]
    assert admit(AheadGuard(5), *elements) == [True, False, True, True, False, True, True]


def test_each_stream_has_its_own_time() -> None:
    assert admit(AheadGuard(5), (0, 10), (1, 100), (0, 101), (1, 103)) == [True, True, False, True]


def test_after_a_promise_elements_are_judged_from_there() -> None:
    guard = AheadGuard(5)
    admit(guard, (0, 10), (1, 10))
    guard.advance(100)
    assert admit(guard, (0, 104), (1, 106), (2, 500)) == [True, False, True]


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(-10, 40))),
    st.integers(1, 12),
    st.lists(st.integers(1, 5), min_size=1),
)
def test_the_decision_does_not_depend_on_batches(elements: list[tuple[int, int]], ahead: int, sizes: list[int]) -> None:
    guard = AheadGuard(ahead)
    found: list[bool] = []
    at = 0
    while at < len(elements):
        size = sizes[at % len(sizes)]
        found += admit(guard, *elements[at : at + size])
        at += size
    assert found == naive(ahead, elements)


# --- in an engine -------------------------------------------------------------------------------------------------------


def push(engine: Engine, stream: str, name: str, time: int) -> None:
    engine.push(stream, [(f"<http://example.org/{name}>", "<http://example.org/p>", '"1"')], time=time)


def lines(*elements: tuple[str, int]) -> str:
    rows = [
        f'{time},<http://example.org/g{n}>,<http://example.org/{name}>,<http://example.org/p>,"""1"""\n'
        for n, (name, time) in enumerate(elements)
    ]
    return "time,graph,subject,predicate,object\n" + "".join(rows)


@pytest.mark.parametrize("batch", [None, 1, 2, 7])
def test_a_wrong_clock_is_rejected_and_touches_nothing_else(tmp_path: Path, batch: int | None) -> None:
    reports: list[CqelsError] = []
    path = tmp_path / "rejects"
    engine = Engine(ahead=3_600 * SECOND, batch=batch, rejects=path, report=reports.append)
    query = engine.register(f"{PREFIX} SELECT ?s {{ STREAM :one [RANGE 10s] {{ ?s :p ?v }} }}")
    push(engine, ONE, "a", SECOND)
    push(engine, ONE, "wrong", FAR)
    push(engine, ONE, "b", 2 * SECOND)
    push(engine, ONE, "old", SECOND)
    push(engine, ONE, "c", 3_000 * SECOND)
    engine.flush()
    found = [str(result.bindings["s"]).rsplit("/", 1)[-1] for result in query.results()]
    assert found == ["a", "b", "c"]
    statistics = engine.statistics
    assert (statistics.ahead, statistics.late, statistics.elements) == (1, 1, 5)
    assert statistics.rejected == {(ONE, "ahead"): 1, (ONE, "late"): 1}
    engine.close()
    kept = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(each["reason"], each["position"], each["time"]) for each in kept] == [
        ("ahead", 2, FAR),
        ("late", 4, SECOND),
    ]
    assert "/wrong>" in kept[0]["element"]
    assert any("a greater ahead accepts it" in str(report) for report in reports)


@pytest.mark.parametrize("threads", [1, 2])
def test_other_files_do_not_wait_for_the_time_of_a_wrong_clock(tmp_path: Path, threads: int) -> None:
    one, other = tmp_path / "one.csv", tmp_path / "other.csv"
    one.write_text(lines(("a", SECOND), ("wrong", FAR), ("a", 2 * SECOND), ("a", 30 * SECOND)))
    other.write_text(lines(("a", SECOND), ("a", 3 * SECOND), ("a", 40 * SECOND)))
    engine = Engine(ahead=60 * SECOND, report=lambda _: None)
    text = f"{PREFIX} SELECT ?s {{ STREAM :one [RANGE 5s] {{ ?s :p ?v }} STREAM :other [RANGE 5s] {{ ?s :p ?w }} }}"
    query = engine.register(text)
    engine.run({ONE: one, OTHER: other}, threads=threads)
    assert {result.time // SECOND for result in query.results()} == {1, 2, 3}
    assert (engine.statistics.ahead, engine.statistics.late) == (1, 0)


def test_without_a_guard_a_jump_of_more_than_a_year_is_reported_once() -> None:
    reports: list[CqelsError] = []
    engine = Engine(report=reports.append)
    engine.register(f"{PREFIX} SELECT ?s {{ STREAM :one [RANGE 10s] {{ ?s :p ?v }} }}")
    start = 1_700_000_000 * SECOND
    for time in (start, FAR // 2, FAR):
        push(engine, ONE, "a", time)
    assert [str(report) for report in reports if "jumped by more than a year" in str(report)] == [
        f"<{ONE}>: the time has jumped by more than a year, to {FAR // 2} microseconds since the epoch, and earlier elements "
        "are late from now on; if a clock is wrong, ahead drops its elements (--ahead 1h)"
    ]
    assert engine.statistics.ahead == 0


@pytest.mark.parametrize("ahead", [0, -5, 1.5, "soon"])
def test_a_guard_of_no_time_is_refused(ahead: object) -> None:
    with pytest.raises(UsageError, match="ahead is"):
        Engine(ahead=ahead)  # type: ignore[arg-type]
