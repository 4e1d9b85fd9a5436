"""Event time that follows the computer's clock."""

from __future__ import annotations

import gc
import os
import random
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from cqels_py.engine import clocks
from cqels_py.engine.documents import Document
from cqels_py.engine.engine import Engine
from cqels_py.errors import RunError, UsageError
from cqels_py.event_time.wall_clock import SECOND, WallClock
from cqels_py.runners.local import LocalRunner

EX = "http://ex.org/"
PROV = "http://www.w3.org/ns/prov#generatedAtTime"
XSD = "http://www.w3.org/2001/XMLSchema#"
PREFIX = f"PREFIX : <{EX}>\n"
A, B = EX + "a", EX + "b"
QUERIES = (
    "SELECT ?s { STREAM :a [RANGE 5us] { ?s :p ?o } }",
    "SELECT (COUNT(*) AS ?n) { STREAM :a [RANGE 6us STEP 2us] { ?s :p ?o } }",
    "SELECT ?s (COUNT(*) AS ?n) { STREAM :b [SESSION 3us] { ?s :p ?o } } GROUP BY ?s",
    "SELECT ?s { STREAM :a [RANGE 9us] { ?s :p ?o } FILTER NOT EXISTS { STREAM :b [RANGE 4us] { ?s :p ?q } } }",
    "SELECT ?x ?y { MATCH WITHIN 6us { EVENT ON :a { ?x :p ?o } SEQ EVENT ON :b { ?y :p ?q } } }",
)
PATIENCE = 30
Row = tuple[int, int, str]


class SetClock:
    """A clock that stands where the test sets it."""

    def __init__(self, delay: int) -> None:
        self.delay = delay
        self.time = 0
        self.jumps: list[int] = []

    def now(self) -> int:
        return self.time

    def passed(self) -> int:
        return self.time - self.delay

    def hold(self, time: int | None = None) -> int:
        self.time = max(self.time, time or 0)
        return self.time


class NoThread:
    def __init__(self, engine: object) -> None:
        """The test looks at the clock."""

    def stop(self) -> None:
        """Nothing runs."""


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SetClock:
    clock = SetClock(2)
    monkeypatch.setattr(clocks, "WallClock", lambda delay: clock)
    monkeypatch.setattr(clocks, "ClockThread", NoThread)
    return clock


def take(engine: Engine, found: list[list[Row]]) -> None:
    for query, rows in zip(engine.queries, found, strict=True):
        rows += sorted((r.time, r.sign, str(sorted(r.bindings.items()))) for r in query.results())


def push(engine: Engine, stream: str, at: int, subject: str) -> None:
    engine.push(stream, [(f"<{EX}{subject}>", f"<{EX}p>", f'"{at}"')], time=at)


@pytest.mark.parametrize("lateness", [0, 3])
@pytest.mark.parametrize("seed", range(5))
def test_it_is_as_if_each_instant_of_the_clock_were_promised(clock: SetClock, seed: int, lateness: int) -> None:
    """A second engine gets elements when the clock reaches them, and is told what has passed."""
    draw = random.Random(seed)
    start = clock.time = draw.randrange(1000, 2000)
    engines = [
        Engine(clock="wall", lateness=lateness, report=lambda _: None),
        Engine(lateness=lateness, report=lambda _: None),
    ]
    texts = QUERIES if seed % 2 else QUERIES[:-1]
    for engine in engines:
        for text in texts:
            engine.register(PREFIX + text, changelog="MATCH" not in text)
    found: list[list[list[Row]]] = [[[] for _ in texts] for _ in engines]
    ahead: list[tuple[int, str, str]] = []
    # At the first push time is that of the clock.
    engines[1].advance(clock.passed() - lateness)
    for engine in engines:
        push(engine, A, start, "x")
    for _ in range(150):
        if draw.randrange(3):
            at = clock.time - draw.choice((0, 0, 1, 2, 4, 7, -3))
            stream, subject = draw.choice((A, B)), draw.choice("xy")
            push(engines[0], stream, at, subject)
            if at > clock.time:
                ahead.append((at, stream, subject))
            else:
                push(engines[1], stream, at, subject)
        else:
            clock.time += draw.choice((1, 1, 2, 5, 20))
            for each in sorted((each for each in ahead if each[0] <= clock.time), key=lambda each: each[0]):
                push(engines[1], each[1], each[0], each[2])
                ahead.remove(each)
            engines[0]._follow_clock()
            engines[1].advance(clock.passed() - lateness)
            for engine, rows in zip(engines, found, strict=True):
                take(engine, rows)
    if not ahead:
        for engine, rows in zip(engines, found, strict=True):
            engine.finish()
            take(engine, rows)
    assert [sorted(rows) for rows in found[0]] == [sorted(rows) for rows in found[1]]
    assert all(rows for rows in found[0][:3])
    assert engines[0].statistics.late == engines[1].statistics.late
    assert clock.time > start


COUNT = PREFIX + "SELECT (COUNT(*) AS ?n) { STREAM :a [RANGE 10us STEP 5us] { ?s :p ?o } }"


def as_quads(at: int) -> bytes:
    return (
        f'<{EX}g> <{PROV}> "1970-01-01T00:00:00.{at:06}Z"^^<{XSD}dateTime> .\n<{EX}x> <{EX}p> "1" <{EX}g> .\n'.encode()
    )


def push_table(engine: Engine, at: int) -> None:
    row = {"subject": [f"<{EX}x>"], "predicate": [f"<{EX}p>"], "object": ['"1"']}
    engine.push_batch(A, pa.table({"time": pa.array([at], pa.int64()), **row}))


@pytest.mark.parametrize(
    "pushed",
    [
        lambda engine, at: push(engine, A, at, "x"),
        push_table,
        lambda engine, at: engine.push_document(A, Document(as_quads(at), "nq")),
    ],
)
def test_the_time_of_a_query_has_begun_when_the_first_element_is_pushed(clock: SetClock, pushed: Any) -> None:
    """No thread has looked at the clock, and a later query gets its time in the same way."""
    engine = Engine(clock="wall", clock_delay=2, report=lambda _: None)
    clock.time = 1_000
    first = engine.register(COUNT)
    pushed(engine, 997)
    assert engine.statistics.late == 1
    pushed(engine, 998)
    assert engine.statistics.late == 1
    clock.time = 2_000
    engine.register(COUNT.replace(":a", ":b").replace(":p", ":q"), name="second")
    push(engine, B, 1_997, "x")
    assert engine.statistics.late == 2
    clock.time = 2_008
    engine._follow_clock()
    counts = [(result.time, int(result.bindings["n"])) for result in first.results()]
    assert counts == [(1_000, 1), (1_010, 0)]


def test_elements_of_before_that_a_source_has_are_not_late(clock: SetClock, tmp_path: Path) -> None:
    """A run follows the registration: its source has a backlog."""
    engine = Engine(clock="wall", clock_delay=2)
    query = engine.register(COUNT)
    clock.time = 1_000
    (tmp_path / "a.nq").write_bytes(as_quads(12))
    engine.run({A: tmp_path / "a.nq"})
    assert engine.statistics.late == 0
    engine._follow_clock()
    assert (15, 1) in [(result.time, int(result.bindings["n"])) for result in query.results()]


def test_a_restart_makes_the_same_elements_late(clock: SetClock, tmp_path: Path) -> None:
    clock.time = 1_000
    engine = Engine(clock="wall", clock_delay=2, checkpoint=tmp_path, report=lambda _: None)
    query = engine.register(COUNT, name="count")
    for at in (997, 999, 1_009):
        clock.time = max(clock.time, at)
        push(engine, A, at, "x")
    found = [(result.time, int(result.bindings["n"])) for result in query.results()]
    assert found == [(1_000, 1)]
    engine.close()
    # Another time: the log says what it was.
    clock.time = 0
    again = Engine(clock="wall", clock_delay=2, checkpoint=tmp_path, report=lambda _: None)
    assert (again.statistics.elements, again.statistics.late) == (3, 1)
    assert [(result.time, int(result.bindings["n"])) for result in again.queries[0].results()] == found
    again.close()


def test_silence_is_told_before_any_element(clock: SetClock) -> None:
    engine = Engine(clock="wall", clock_delay=2)
    query = engine.register(PREFIX + "SELECT (COUNT(*) AS ?n) { STREAM :a [RANGE 10us STEP 5us] { ?s :p ?o } }")
    clock.time = 1_001
    engine._follow_clock()
    clock.time = 1_020
    engine._follow_clock()
    assert [(r.time, int(r.bindings["n"])) for r in query.results()] == [(1_000, 0)]


def test_what_rules_say_begins_and_ceases_with_the_clock(clock: SetClock) -> None:
    """Nobody knows these instants before they come."""
    engine = Engine(clock="wall", clock_delay=2)
    rules = "RULES ON :a { RULE { ?s a :Late } FOR [5us, 8us) WHERE { ?s :p ?o } }"
    query = engine.register(f"{PREFIX}{rules} SELECT ?s {{ STATE {{ ?s a :Late }} }}", changelog=True)
    clock.time = 1_000
    push(engine, A, 1_000, "x")
    found = []
    for clock.time in (1_001, 1_007, 1_008, 1_010, 1_011):
        engine._follow_clock()
        found.append([(r.time, r.sign) for r in query.results()])
    assert found == [[], [], [(1_005, 1)], [], [(1_008, -1)]]


def test_an_element_ahead_of_the_clock_waits_and_one_too_far_ahead_is_rejected(clock: SetClock) -> None:
    engine = Engine(clock="wall", ahead=100, report=lambda _: None)
    query = engine.register(PREFIX + QUERIES[0])
    clock.time = 1_000
    push(engine, A, 1_100, "later")
    push(engine, A, 1_101, "never")
    push(engine, A, 1_000, "now")
    assert [str(r.bindings["s"]) for r in query.results()] == [EX + "now"]
    assert engine.statistics.rejected == {(A, "ahead"): 1}
    clock.time = 1_099
    engine._follow_clock()
    assert not list(query.results())
    clock.time = 1_100
    engine._follow_clock()
    assert [(r.time, str(r.bindings["s"])) for r in query.results()] == [(1_100, EX + "later")]


def test_the_end_of_a_run_does_not_make_what_follows_late(clock: SetClock, tmp_path: Path) -> None:
    engine = Engine(clock="wall", report=lambda _: None)
    query = engine.register(PREFIX + "SELECT (COUNT(*) AS ?n) { STREAM :a [RANGE 100us STEP 100us] { ?s :p ?o } }")
    clock.time = 1_010
    past = tmp_path / "past.nq"
    # The last one is ahead of the clock.
    past.write_text(quads(1_001, "x") + quads(1_005, "y") + quads(1_040, "z"))
    engine.run({A: str(past)})
    push(engine, A, 1_010, "now")
    assert engine.statistics.late == 0
    clock.time = 1_110
    engine._follow_clock()
    assert [(r.time, int(r.bindings["n"])) for r in query.results()] == [(1_100, 4)]


class Polls:
    """A source whose polls are given. `at`: the poll at which the clock is set, and to which time."""

    idle = False

    def __init__(self, clock: SetClock, *given: list[int], at: tuple[int, int] = (0, 0)) -> None:
        self._clock = clock
        self._given = list(given)
        self._at = at
        self._polls = 0

    def open(self, opening: Any) -> Any:
        self._opening = opening
        return self

    def poll(self) -> Any:
        self._polls += 1
        if self._polls == self._at[0]:
            self._clock.time = self._at[1]
        times = self._given.pop(0) if self._given else None
        triple = (f"<{EX}x>", f"<{EX}p>", '"1"')
        return None if times is None else self._opening.elements([(time, [triple]) for time in times])

    def position(self) -> None:
        """It cannot be read again."""

    def commit(self, position: object) -> None:
        """Nothing is kept."""

    def close(self) -> None:
        """Nothing is open."""


def test_a_source_has_caught_up_only_if_it_was_asked_in_this_round(clock: SetClock) -> None:
    """While the other one is read, time passes, and an element comes that has not been asked for yet."""
    engine = Engine(clock="wall", report=lambda _: None)
    engine.register(PREFIX + "SELECT ?s { STREAM :a [RANGE 500us] { ?s :p ?o } STREAM :b [RANGE 500us] { ?t :p ?o } }")
    clock.time = 3_002
    first = Polls(clock, [], [], [3_055], [], [])
    second = Polls(clock, [2_900], [2_950], [], [], [], at=(3, 5_000))
    engine.run({A: first, B: second})
    assert engine.statistics.elements == 3
    assert engine.statistics.late == 0


def test_time_does_not_go_back_and_a_step_forward_is_noted() -> None:
    class Set(WallClock):
        given = iter([(5.0, 5.0), (3.0, 6.0), (4.0, 7.0), (200.0, 8.0)])

        def _read(self) -> tuple[float, float]:
            return next(self.given)

    clock = Set(SECOND)
    assert [clock.now() for _ in range(3)] == [5 * SECOND] * 3
    assert not clock.jumps
    assert clock.passed() == 199 * SECOND
    # It would be 3 seconds later, were it not set: 192 seconds beyond all times of before.
    assert list(clock.jumps) == [192 * SECOND]


def test_a_clock_that_is_set_back_and_put_right_is_reported_once() -> None:
    class Set(WallClock):
        given = iter([(5_000.0, 5.0), (1_400.0, 5.0), (1_401.0, 6.0), (5_002.0, 7.0), (5_103.0, 8.0)])

        def _read(self) -> tuple[float, float]:
            return next(self.given)

    clock, found = Set(SECOND), []
    for _ in range(5):
        clock.now()
        found.append([round(jump / SECOND) for jump in clock.jumps])
        clock.jumps.clear()
    assert found == [[], [-3_600], [], [], [100]]


@pytest.mark.parametrize(("by", "told"), [(3_600, "forward by 3,600 seconds"), (-3_600, "back by 3,600 seconds")])
def test_a_clock_that_is_set_is_reported(clock: SetClock, by: int, told: str) -> None:
    reports: list[Any] = []
    engine = Engine(clock="wall", report=reports.append)
    clock.jumps.append(by * SECOND)
    engine._follow_clock()
    assert [told in str(report) for report in reports] == [True]


def _soon() -> int:
    """An instant ahead of the clock, which no look at the clock before the push can make late."""
    return round((time.time() + 1) * SECOND)


class Results:
    """Results that come from another thread."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, int]] = []
        self._came = threading.Condition()

    def __call__(self, result: Any) -> None:
        with self._came:
            self._rows.append((result.time, result.sign))
            self._came.notify()

    def wait_for(self, count: int) -> list[tuple[int, int]]:
        with self._came:
            assert self._came.wait_for(lambda: len(self._rows) >= count, PATIENCE), self._rows
            return list(self._rows)


def test_a_window_ends_while_nothing_is_pushed() -> None:
    results = Results()
    engine = Engine(clock="wall", clock_delay=0)
    engine.register(PREFIX + "SELECT ?s { STREAM :a [RANGE 100ms] { ?s :p ?o } }", changelog=True).subscribe(results)
    now = _soon()
    push(engine, A, now, "x")
    assert results.wait_for(2) == [(now, 1), (now + 100_000, -1)]
    engine.close()


def test_an_exception_of_a_subscriber_is_reported_and_time_goes_on() -> None:
    reports: list[Any] = []
    results = Results()
    engine = Engine(clock="wall", clock_delay=0, report=reports.append)
    query = engine.register(
        PREFIX + "SELECT (COUNT(*) AS ?n) { STREAM :a [RANGE 1s STEP 50ms] { ?s :p ?o } }", changelog=True
    )

    def fail(result: Any) -> None:
        results(result)
        if len(results._rows) == 1:
            raise ValueError("no")

    query.subscribe(fail)
    push(engine, A, _soon(), "x")
    results.wait_for(3)
    engine.close()
    assert any("a subscriber raised ValueError('no') as time went on" in str(report) for report in reports)
    assert engine.statistics.subscriber_errors == 1


def test_time_goes_on_after_errors_of_sinks_and_elements_and_exceptions_of_reports() -> None:
    def report(error: object) -> None:
        reports.append(str(error))
        if len(reports) == 1:
            raise ValueError("no report")

    reports: list[str] = []
    results = Results()
    engine = Engine(clock="wall", clock_delay=0, report=report, batch=1000)
    query = engine.register(
        PREFIX + "SELECT (COUNT(*) AS ?n) { STREAM :a [RANGE 1s STEP 50ms] { ?s :p ?o } }", changelog=True
    )

    failing = threading.Event()

    def fail(result: Any) -> None:
        results(result)
        # Not as the first push begins time: that raises it itself.
        if failing.is_set():
            failing.clear()
            raise RunError("the server is away")

    query.subscribe(fail)
    # It waits for others, and the clock's thread finds the mistake.
    engine.push(A, [("<not an IRI>", "<http://ex.org/p>", '"1"')], time=_soon())
    failing.set()
    push(engine, A, _soon(), "x")
    results.wait_for(4)
    engine.close()
    assert sum("as time went on: the server is away" in each for each in reports) == 1
    assert sum("not an IRI" in each for each in reports) == 1


def test_a_failed_engine_does_not_follow_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    came = threading.Event()

    def report(error: object) -> None:
        told.append(str(error))
        came.set()

    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(LocalRunner, "follow", fail)
    engine = Engine(clock="wall", report=report)
    assert came.wait(PATIENCE)
    _wait_until_no_clock_runs()
    assert len(told) == 1
    assert "time does not follow the clock any more" in told[0]
    engine.close()


def test_its_thread_ends_with_the_engine() -> None:
    engine = Engine(clock="wall")
    assert any(each.name == "cqels clock" for each in threading.enumerate())
    engine.close()
    _wait_until_no_clock_runs()
    engine = Engine(clock="wall")
    del engine
    _wait_until_no_clock_runs()


def _wait_until_no_clock_runs() -> None:
    end = time.monotonic() + PATIENCE
    while any(each.name == "cqels clock" for each in threading.enumerate()):
        assert time.monotonic() < end
        gc.collect()
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"clock": "sun"}, "clock is 'events' or 'wall', not 'sun'"),
        ({"clock_delay": -1}, "clock_delay is 0 or more microseconds"),
        ({"idle": 0}, "idle is 1 or more microseconds"),
    ],
)
def test_options_that_cannot_be_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Engine(**options)


# --- live sources ---------------------------------------------------------------------------------------------------


def quads(at: int, subject: str) -> str:
    graph = f"<{EX}g{at}{subject}>"
    return (
        f'{graph} <http://www.w3.org/ns/prov#generatedAtTime> "{at}"^^<http://www.w3.org/2001/XMLSchema#integer> .\n'
        f'<{EX}{subject}> <{EX}p> "{at}" {graph} .\n'
    )


@pytest.fixture
def pipes(tmp_path: Path) -> Iterator[list[Path]]:
    paths = [tmp_path / f"{name}.nq" for name in "ab"]
    for path in paths:
        os.mkfifo(path)
    yield paths


def running(engine: Engine, sources: dict[str, Path]) -> threading.Thread:
    thread = threading.Thread(target=engine.run, args=({iri: str(path) for iri, path in sources.items()},))
    thread.start()
    return thread


def test_silence_of_a_pipe_is_told_while_it_is_read(pipes: Sequence[Path]) -> None:
    results = Results()
    # The element comes when it is complete, 200 ms after its time.
    engine = Engine(clock="wall", clock_delay=SECOND)
    engine.register(PREFIX + "SELECT ?s { STREAM :a [RANGE 300ms] { ?s :p ?o } }", changelog=True).subscribe(results)
    thread = running(engine, {A: pipes[0]})
    with pipes[0].open("w", buffering=1) as writer:
        # Time goes on before the first element.
        time.sleep(0.2)
        now = round(time.time() * SECOND)
        writer.write(quads(now, "x"))
        writer.flush()
        assert results.wait_for(2) == [(now, 1), (now + 300_000, -1)]
    thread.join(PATIENCE)
    engine.close()


def test_others_do_not_wait_for_a_pipe_that_is_idle(pipes: Sequence[Path]) -> None:
    results = Results()
    engine = Engine(idle=100_000)
    engine.register(PREFIX + "SELECT ?s { STREAM :a [RANGE 5us] { ?s :p ?o } }").subscribe(results)
    engine.register(PREFIX + "SELECT ?s { STREAM :b [RANGE 5us] { ?s :p ?o } }")
    thread = running(engine, {A: pipes[0], B: pipes[1]})
    with pipes[0].open("w", buffering=1) as first, pipes[1].open("w", buffering=1) as second:
        first.write(quads(1_700_000_000_000_000, "x") + quads(1_700_000_000_000_001, "y"))
        first.flush()
        assert [at for at, _ in results.wait_for(2)] == [1_700_000_000_000_000, 1_700_000_000_000_001]
        second.write(quads(1_700_000_000_000_002, "z"))
    thread.join(PATIENCE)
    engine.close()
    assert engine.statistics.elements == 3


def test_streams_that_do_not_follow_the_clock(clock: SetClock) -> None:
    """A recording of years ago beside a live stream: each has its own time, and a join of both that of their elements."""
    engine = Engine(clock="wall", clock_of={B: "events"}, report=lambda _: None)
    found: list[list[Row]] = [[], [], []]
    for text in (
        "SELECT ?s { STREAM :a [RANGE 5us] { ?s :p ?o } }",
        "SELECT (COUNT(*) AS ?n) { STREAM :b [RANGE 4us STEP 4us] { ?s :p ?o } }",
        "SELECT ?s { STREAM :a [RANGE 500us] { ?s :p ?o } STREAM :b [RANGE 500us] { ?s :p ?q } }",
    ):
        engine.register(PREFIX + text, changelog=True)
    clock.time = 1_000
    push(engine, A, 1_000, "x")
    push(engine, B, 8, "x")
    engine._follow_clock()
    take(engine, found)
    assert [len(rows) for rows in found] == [1, 0, 0]
    clock.time = 1_010
    engine._follow_clock()
    take(engine, found)
    # The live element came, and left; the recording's time has not moved.
    assert [(time, sign) for time, sign, _ in found[0]] == [(1_000, 1), (1_005, -1)]
    assert not found[1]
    push(engine, B, 13, "x")
    take(engine, found)
    assert [time for time, sign, _ in found[1] if sign > 0] == [8, 12]
    push(engine, B, 1_100 + 4_000_000_000, "x")
    assert engine.statistics.ahead == 0
    # Nothing of the recording is late for its own query; for the join, whose time is that of :a, it is.
    assert engine.statistics.late == 2


def test_a_run_ends_the_time_of_recordings_alone(clock: SetClock) -> None:
    engine = Engine(clock="wall", clock_of={B: "events"}, report=lambda _: None)
    live, recorded = (
        engine.register(PREFIX + f"SELECT (COUNT(*) AS ?n) {{ STREAM :{name} [RANGE 8us STEP 4us] {{ ?s :p ?o }} }}")
        for name in "ab"
    )
    clock.time = 1_003
    engine.run({A: Polls(clock, [1_001], []), B: Polls(clock, [101], [])})
    assert [each.time for each in recorded.results()] == [104]
    assert not [*live.results()]
    clock.time = 1_008
    engine._follow_clock()
    assert [each.time for each in live.results()] == [1_004]


def test_wrong_clocks_of_streams_are_refused() -> None:
    with pytest.raises(UsageError, match=r"clock_of <http://ex.org/a> is 'events' or 'wall', not 'sun'"):
        Engine(clock="wall", clock_of={A: "sun"})
    with pytest.raises(UsageError, match=r"give clock='wall', and 'events' for others than <http://ex.org/a>"):
        Engine(clock_of={A: "wall"})
