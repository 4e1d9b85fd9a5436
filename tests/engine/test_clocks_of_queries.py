"""Queries with clocks of their own: each has the results that it has in an engine in which all have its clock."""

from __future__ import annotations

import queue
import random
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cqels_py.engine import clocks
from cqels_py.engine.engine import Engine
from cqels_py.engine.query import Query
from cqels_py.engine.result import Result
from cqels_py.errors import UsageError
from cqels_py.event_time.wall_clock import SECOND, WallClock
from tests.engine.test_parted_sources import (
    COUNTS_B,
    PREFIX,
    READS_A,
    READS_AB,
    A,
    B,
    Rows,
    Scripted,
    drawn,
    rows,
    whole,
)

QUERIES = (READS_A, COUNTS_B, READS_AB)
CLOCKS = ("events", "wall")
FEEDS = "REGISTER STREAM :c AS CONSTRUCT { ?s :p ?o } { STREAM :a [RANGE 3us] { ?s :p ?o } }"
READS_C = "SELECT ?s ?o { STREAM :c [RANGE 4us] { ?s :p ?o } }"


class SetClock(WallClock):
    """A clock that the test sets, in microseconds."""

    def __init__(self) -> None:
        super().__init__(2)
        self.time = 0

    def _read(self) -> tuple[float, float]:
        return self.time / SECOND, self.time / SECOND


class NoThread:
    def __init__(self, engine: object) -> None:
        """The test looks at the clock."""

    def stop(self) -> None:
        """Nothing runs."""


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SetClock:
    clock = SetClock()
    monkeypatch.setattr(clocks, "WallClock", lambda delay: clock)
    monkeypatch.setattr(clocks, "ClockThread", NoThread)
    return clock


def push(engine: Engine, stream: str, at: int, subject: str) -> None:
    engine.push(stream, [(f"<http://ex.org/{subject}>", "<http://ex.org/p>", f'"{at}"')], time=at)


@pytest.mark.parametrize("of_engine", CLOCKS)
@pytest.mark.parametrize("seed", range(4))
def test_each_query_has_the_results_of_an_engine_with_its_clock(clock: SetClock, seed: int, of_engine: str) -> None:
    draw = random.Random(seed)
    lateness, ahead = draw.choice((0, 3)), 10
    clock.time = 1000
    options: dict[str, Any] = {"lateness": lateness, "report": lambda _: None}
    mixed = Engine(clock=of_engine, **options)
    alone = {each: Engine(clock=each, **options) for each in CLOCKS}
    # So that all have the same limit.
    for engine in (mixed, *alone.values()):
        engine._clocks.guard._ahead = ahead
    registered: list[tuple[Query, Query]] = []
    for text in QUERIES:
        for each in draw.sample(CLOCKS, 2):
            # That of the engine need not be said.
            said = None if each == of_engine and draw.random() < 0.5 else each
            of_mixed = mixed.register(PREFIX + text, changelog=True, clock=said)
            registered.append((of_mixed, alone[each].register(PREFIX + text, changelog=True)))
    found: list[tuple[Rows, Rows]] = [([], []) for _ in registered]
    for _ in range(120):
        if draw.randrange(3):
            at, stream, subject = (
                clock.time - draw.choice((0, 1, 3, 6, -4, -12)),
                draw.choice((A, B)),
                draw.choice("xy"),
            )
            for engine in (mixed, *alone.values()):
                push(engine, stream, at, subject)
        else:
            clock.time += draw.choice((1, 2, 5, 15))
            mixed._follow_clock()
            alone["wall"]._follow_clock()
        for pair, results in zip(registered, found, strict=True):
            for query, told in zip(pair, results, strict=True):
                told += rows(query)
    for told, wanted in found:
        assert told == wanted
        assert len(told) > 3
    assert len(found) == len({str(told) for told, _ in found}), "the clocks make no difference"
    rejected = [engine.statistics.rejected for engine in (mixed, *alone.values())]
    # An element that two queries leave out is counted once for each reason.
    assert all(rejected[0][each] >= count for part in rejected[1:] for each, count in part.items())


@pytest.mark.parametrize("of_engine", CLOCKS)
@pytest.mark.parametrize("seed", range(6))
def test_a_run_puts_elements_in_order_for_both_clocks(clock: SetClock, seed: int, of_engine: str) -> None:
    """With sources that find nothing for some time, after which those with a clock go on, and others wait."""
    draw = random.Random(seed)
    quiet = draw.random() < 0.5
    polls = {stream: drawn(draw, often_empty=quiet) for stream in (A, B)}
    if not quiet:
        polls = {stream: [poll for poll in each if poll] for stream, each in polls.items()}
    latest = max(time for each in polls.values() for poll in each for time, _ in poll)
    # Far behind all elements, or in the middle of them.
    clock.time = 10 * latest if quiet else latest // 2
    mixed = Engine(clock=of_engine, report=lambda _: None)
    registered = [
        (text, each, mixed.register(PREFIX + text, changelog=True, clock=each)) for text in QUERIES for each in CLOCKS
    ]
    mixed.run({stream: Scripted(each) for stream, each in polls.items()})
    clock.time = 20 * latest
    mixed._follow_clock()
    alone = Engine(report=lambda _: None)
    wanted = {text: alone.register(PREFIX + text, changelog=True) for text in QUERIES}
    alone.run({stream: Scripted(whole(each)) for stream, each in polls.items()})
    told = {text: rows(query) for text, query in wanted.items()}
    alone.advance(clock.time - 2)
    through = {text: told[text] + rows(query) for text, query in wanted.items()}
    for text, each, query in registered:
        if each == "events":
            assert rows(query) == told[text]
        elif not quiet:
            assert rows(query) == through[text]
    assert quiet or mixed.statistics.late == 0


def test_queries_that_feed_each_other_have_one_clock(clock: SetClock) -> None:
    engine = Engine()
    engine.register(PREFIX + FEEDS, clock="wall")
    reading = engine.register(PREFIX + READS_C)
    with pytest.raises(UsageError, match="say different clocks"):
        engine.register(PREFIX + READS_C, clock="events")
    clock.time = 100
    push(engine, A, 100, "x")
    push(engine, A, 105, "y")
    assert [at for at, _, _ in rows(reading)] == [100]
    clock.time = 105
    engine._follow_clock()
    assert [at for at, _, _ in rows(reading)] == [105]


def test_a_clock_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match="clock is 'events' or 'wall', not 'sun'"):
        Engine().register(PREFIX + READS_A, clock="sun")


def test_a_thread_keeps_the_time_of_a_query_that_follows_the_clock() -> None:
    """In an engine in which nothing else does."""
    engine = Engine(clock_delay=1)
    query = engine.register(
        PREFIX + "SELECT (COUNT(*) AS ?n) { STREAM :a [RANGE 1s STEP 100ms] { ?s :p ?o } }", clock="wall"
    )
    told: queue.Queue[str] = queue.Queue()
    query.subscribe(lambda result: told.put(str(result.bindings["n"])))
    assert told.get(timeout=30) == "0"
    engine.close()


Numbered = dict[int, tuple[int, int, str]]


def note(results: Numbered, result: Result) -> None:
    results[result.number] = (result.time, result.sign, str(sorted(result.bindings.items())))


@pytest.mark.parametrize("seed", range(4))
def test_clocks_of_queries_are_kept_in_a_checkpoint(clock: SetClock, seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    calls: list[tuple[str, Sequence[Any]]] = []
    for _ in range(60):
        clock.time += draw.choice((0, 1, 4))
        at = clock.time + 1000 - draw.choice((0, 2, -3))
        calls.append(("push", (draw.choice((A, B)), at, draw.choice("xy"))))
        calls.append(("time", (clock.time + 1000,)))
    runs: list[list[Numbered]] = []
    for stops in ((), tuple(draw.randrange(len(calls)) for _ in range(3))):
        found: list[Numbered] = [{} for _ in range(4)]
        folder = tmp_path / str(len(stops))

        def opened(folder: Path = folder, found: list[Numbered] = found) -> Engine:
            # That of a new process.
            clock._latest, clock._held = 0, None
            engine = Engine(checkpoint=folder, durable="off", report=lambda _: None)
            names = [(text, each) for text in (READS_AB, COUNTS_B) for each in CLOCKS]
            for (text, each), results in zip(names, found, strict=True):
                query = engine.register(PREFIX + text, changelog=True, clock=each, name=f"{each} {text}")
                query.subscribe(partial(note, results), from_number=max(results, default=0) + 1)
            return engine

        clock.time = 1000
        engine = opened()
        for number, (kind, given) in enumerate(calls):
            if number in stops:
                if draw.random() < 0.5:
                    engine.checkpoint()
                engine.close()
                engine = opened()
                assert all(query.restored for query in engine.queries)
            if kind == "push":
                push(engine, *given)
            else:
                clock.time = given[0]
                engine._follow_clock()
        engine.close()
        runs.append(found)
    assert runs[0] == runs[1]
    assert all(len(each) > 3 for each in runs[0])
    with pytest.raises(UsageError, match="differs in: clock"):
        Engine(checkpoint=tmp_path / "0").register(PREFIX + READS_AB, changelog=True, name=f"wall {READS_AB}")
