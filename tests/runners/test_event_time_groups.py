"""Queries over different streams have event times of their own: each gets the results that it has alone in an engine."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from cqels_py.engine.engine import Engine
from cqels_py.errors import UsageError

EX = "http://ex.org/"
PREFIX = f"PREFIX : <{EX}>\n"
A, B, C = (EX + name for name in "abc")
READS_A = "SELECT ?s { STREAM :a [RANGE 5us] { ?s :p ?o } }"
READS_B = "SELECT (COUNT(*) AS ?n) { STREAM :b [RANGE 6us STEP 2us] { ?s :p ?o } }"
READS_BOTH = "SELECT ?s { STREAM :a [RANGE 5us] { ?s :p ?o } STREAM :b [RANGE 9us] { ?s :p ?q } }"
SESSIONS = "SELECT ?s (COUNT(*) AS ?n) { STREAM :b [SESSION 3us] { ?s :p ?o } } GROUP BY ?s"
FEEDS = "REGISTER STREAM :c AS CONSTRUCT { ?s :p 1 } { STREAM :a [RANGE 3us] { ?s :p ?o } }"
READS_FED = "SELECT ?s { STREAM :c [RANGE 4us] { ?s :p 1 } STREAM :b [RANGE 4us] { ?s :p ?o } }"
QUERIES = (READS_A, READS_B, READS_BOTH, SESSIONS, READS_FED)
Row = tuple[int, int, str]


class Run:
    """An engine with some queries, and all results of each so far."""

    def __init__(self, texts: Sequence[str], **options: Any) -> None:
        self.engine = Engine(report=lambda _: None, **options)
        self.queries = {text: self.engine.register(PREFIX + text, changelog="CONSTRUCT" not in text) for text in texts}
        self.found: dict[str, list[Row]] = {text: [] for text in texts}

    def push(self, stream: str, time: int, subject: str) -> None:
        streams = {each for query in self.queries.values() for each in query.streams} - {C}
        if stream in streams:
            self.engine.push(stream, [(f"<{EX}{subject}>", f"<{EX}p>", f'"{time}"')], time=time)
        self.take()

    def take(self) -> None:
        for text, query in self.queries.items():
            self.found[text] += [(r.time, r.sign, str(sorted(r.bindings.items()))) for r in query.results()]


def drawn(seed: int) -> list[tuple[str, int, str]]:
    """Streams whose clocks are far from each other (with odd seeds), and elements out of order."""
    draw = random.Random(seed)
    now = {A: draw.randrange(100), B: draw.randrange(100)}
    calls = []
    for _ in range(150):
        stream = draw.choice((A, B))
        now[stream] = (now[stream] if seed % 2 else max(now.values())) + draw.choice((0, 0, 1, 1, 2, 7))
        calls.append((stream, max(0, now[stream] - draw.choice((0, 0, 0, 1, 3))), draw.choice("xyz")))
    return calls


@pytest.mark.parametrize("batch", [None, 1, 7])
@pytest.mark.parametrize("lateness", [0, 2])
@pytest.mark.parametrize("seed", range(4))
def test_each_query_has_the_results_that_it_has_alone(seed: int, lateness: int, batch: int | None) -> None:
    options = {"lateness": lateness, "batch": batch}
    together = Run((FEEDS, *QUERIES), **options)
    alone = [Run((FEEDS, text) if text == READS_FED else (text,), **options) for text in QUERIES]
    calls = drawn(seed)
    for at, call in enumerate(calls):
        for each in (together, *alone):
            each.push(*call)
            if at == 75:
                each.engine.advance(call[1] - lateness)
    for each in (together, *alone):
        each.engine.finish()
        each.take()
    for text, each in zip(QUERIES, alone, strict=True):
        assert together.found[text] == each.found[text], text
        assert len(each.found[text]) > 3 or seed % 2
    late = {each.engine.statistics.late for each in alone}
    assert together.engine.statistics.late >= max(late)
    assert together.engine.statistics.elements == len(calls)


def test_an_element_that_is_late_for_two_queries_is_counted_once() -> None:
    run = Run((READS_A, READS_BOTH))
    run.push(A, 10, "x")
    run.push(B, 20, "x")
    # It is late where :b is read too, and not for the other query.
    run.push(A, 15, "y")
    assert run.engine.statistics.late == 1
    assert [time for time, sign, _ in run.found[READS_A] if sign > 0] == [10, 15]
    run.push(A, 5, "y")
    assert run.engine.statistics.late == 2
    assert run.engine.statistics.rejected == {(A, "late"): 2}


def test_a_stream_with_a_wrong_clock_touches_no_query_that_does_not_read_it() -> None:
    run = Run((READS_A, READS_B))
    run.push(B, 4_000_000_000_000_000, "x")
    run.push(A, 10, "x")
    assert run.engine.statistics.late == 0
    assert len(run.found[READS_A]) == 1


def test_a_query_registered_later_begins_at_the_last_promise() -> None:
    run = Run((READS_A,))
    run.push(A, 100, "x")
    run.engine.advance(120)
    query = run.engine.register(PREFIX + READS_B)
    run.queries[READS_B], run.found[READS_B] = query, []
    run.push(B, 119, "x")
    assert run.engine.statistics.late == 1
    run.push(B, 121, "x")
    assert run.engine.statistics.late == 1


@pytest.mark.parametrize("lateness", [0, 4])
def test_event_times_are_joined_when_one_query_feeds_the_other(lateness: int) -> None:
    feeding = "CONSTRUCT { ?s :p 1 } { STREAM :a [RANGE 3us] { ?s :p ?o } }"
    run = Run((feeding, READS_FED), lateness=lateness)
    run.push(A, 10, "x")
    run.push(A, 11, "y")
    run.push(B, 30, "x")
    run.push(B, 29, "y")
    late = run.engine.statistics.late
    run.engine.connect(run.queries[feeding], C)
    # From now on one event time: that of :b.
    run.push(A, 24 - lateness, "z")
    assert run.engine.statistics.late == late + 1
    run.push(A, 31, "x")
    run.push(B, 32, "x")
    run.engine.finish()
    run.take()
    assert [row[0] for row in run.found[READS_FED] if row[1] > 0] == [31, 32] or lateness
    assert run.engine.statistics.elements == 7


@pytest.mark.parametrize("seed", range(3))
def test_event_times_and_waiting_elements_are_saved(seed: int) -> None:
    calls = drawn(seed)
    first, second = (Run(QUERIES[:4], lateness=3) for _ in range(2))
    for call in calls[:80]:
        first.push(*call)
    state = first.engine._runner.state()
    second.engine._runner.restore(state)
    assert second.engine._runner.nbytes > 0
    again = second.engine._runner.state()
    assert {name: values.get("watermark") for name, values in state.items()} == {
        name: values.get("watermark") for name, values in again.items()
    }
    waiting = [values["waiting.time"] for name, values in state.items() if name.startswith("group.")]
    assert [list(times) for times in waiting] == [  # type: ignore[arg-type]
        list(values["waiting.time"])
        for name, values in again.items()
        if name.startswith("group.")  # type: ignore[arg-type]
    ]
    assert sum(len(times) for times in waiting) > 0  # type: ignore[arg-type, misc]


def test_a_stream_may_have_a_lateness_of_its_own() -> None:
    run = Run((READS_A, READS_B, READS_BOTH), lateness=1, lateness_of={B: 5})
    run.push(A, 10, "x")
    run.push(A, 9, "y")
    # :a alone waits for a microsecond.
    run.push(A, 11, "z")
    assert [time for time, sign, _ in run.found[READS_A] if sign > 0] == [9, 10]
    run.push(B, 20, "x")
    run.push(B, 15, "z")
    assert run.engine.statistics.late == 0
    run.push(B, 14, "x")
    assert run.engine.statistics.rejected == {(B, "late"): 1}
    # Where both are read, elements of :a wait as long as those of :b, up to 15; alone it is at 10.
    run.push(A, 9, "x")
    assert run.engine.statistics.rejected == {(B, "late"): 1, (A, "late"): 1}
    run.engine.finish()
    run.take()
    assert [time for time, sign, _ in run.found[READS_BOTH] if sign > 0] == [15]


@pytest.mark.parametrize("lateness", [-1, 1 << 62, "soon"])
def test_a_lateness_of_a_stream_that_cannot_be_is_refused(lateness: Any) -> None:
    with pytest.raises(UsageError, match=r"lateness_of <http://ex\.org/a> is"):
        Engine(lateness_of={A: lateness})
