"""Signals and exceptions of subscribers that end a program: a step is completed first, and the engine remains usable."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cqels_py import interrupts
from cqels_py.engine.delivery import PendingDeliveries
from cqels_py.engine.documents import Document
from cqels_py.engine.engine import Engine
from cqels_py.engine.query import Result
from cqels_py.engine.steps import Steps
from cqels_py.errors import RunError, UsageError
from cqels_py.interrupts import Signalled
from tests.engine.test_engine import ANSWERS, COUNT, LABELS, PREFIX, ROWS, STREAM, VALUES, iri, seen, table, texts

JOIN = (
    PREFIX + "SELECT ?s ?v ?w { STREAM :s [COUNT 3] { ?s :v ?v } STREAM :s [RANGE 9us] { ?s :v ?w } FILTER(?v <= ?w) }"
)
STEPPED = VALUES.replace("RANGE 4us", "RANGE 3us STEP 3us")


def ctrl_c(_: object = None) -> None:
    signal.raise_signal(signal.SIGINT)


@pytest.fixture(autouse=True)
def handler() -> Iterator[None]:
    """Python's own before and after each test."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_in_a_subscriber_is_raised_after_all_results_are_delivered() -> None:
    engine = Engine()
    told: dict[str, list[Result]] = {"first": [], "second": [], "other": []}
    query = engine.register(VALUES, changelog=True)
    query.subscribe(lambda result: (told["first"].append(result), ctrl_c())[0] if result.time == 5 else None)
    query.subscribe(told["second"].append)
    engine.register(VALUES, changelog=True).subscribe(told["other"].append)
    engine.push_batch(STREAM, table(ROWS[:3]))
    with pytest.raises(KeyboardInterrupt):
        engine.push(STREAM, [texts("a", 4)], time=7)
    assert len(told["first"]) == 1
    assert seen(iter(told["second"])) == seen(iter(told["other"])) == ANSWERS
    engine.push(STREAM, [texts("b", 5)], time=7)
    assert seen(iter(told["second"]))[len(ANSWERS) :] == [(7, 1, "b", 5)]


def pushes(engine: Engine, between: Callable[[], object] = lambda: None) -> list[tuple[Any, ...]]:
    """The results of a join and a count, pushed one by one, with something to do before each."""
    queries = [engine.register(text, changelog=True) for text in (JOIN, COUNT)]
    for number in range(60):
        between()
        try:
            engine.push(STREAM, [texts("abc"[number % 3], number * 7 % 5)], time=number * 2)
        except KeyboardInterrupt:
            assert engine.statistics.elements == number + 1
        finally:
            sys.setprofile(None)
    return [[(r.time, r.sign, sorted(r.bindings.items())) for r in query.results()] for query in queries]  # type: ignore[misc]


def test_ctrl_c_anywhere_in_a_step() -> None:
    """At a call of a function somewhere in each push, another one each time: the answers are those of an undisturbed engine."""
    expected = pushes(Engine())
    interrupted, calls = [0], [0]

    def disturb() -> None:
        after = calls[0] = calls[0] + 1
        sys.setprofile(profile(4 * after))

    def profile(left: int) -> Callable[..., None]:
        inside = False

        def count(frame: Any, event: str, argument: Any) -> None:
            nonlocal left, inside
            inside = inside or frame.f_code.co_name == "_push"
            left -= inside
            if inside and left == 0:
                sys.setprofile(None)
                interrupted[0] += 1
                ctrl_c()

        return count

    assert pushes(Engine(), disturb) == expected
    assert interrupted[0] > 30


def ways() -> dict[str, Callable[[Engine], object]]:
    return {
        "push": lambda engine: engine.push(STREAM, [texts("a", 9)], time=9),
        "push_batch": lambda engine: engine.push_batch(STREAM, table([(9, "a", 9)])),
        "advance": lambda engine: engine.advance(9),
        "finish": lambda engine: engine.finish(),
        "run": lambda engine: engine.run({STREAM: table([(9, "a", 9), (11, "b", 9)])}),
    }


DOCUMENT = Document(b'<http://ex.org/a> <http://ex.org/v> "9" .', "nt")
OTHERS: dict[str, Callable[[Engine], object]] = {
    "push_document": lambda engine: engine.push_document(STREAM, DOCUMENT),
    "push_documents": lambda engine: engine.push_documents([(STREAM, DOCUMENT)]),
    "flush": lambda engine: engine.flush(),
    "register": lambda engine: engine.register(VALUES, backfill={STREAM: table(ROWS)}),
    "subscribe": lambda engine: engine.queries[0].subscribe(lambda _: None),
    "refresh_static": lambda engine: engine.refresh_static(),
    "update_static": lambda engine: engine.update_static(engine.queries[1], static=[[(iri("a"), iri("label"), '"b"')]]),
}


@pytest.mark.parametrize("call", ways() | OTHERS)
def test_no_call_changes_state_or_delivers_where_signals_are_raised(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []

    def noting(method: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*given: Any, **named: Any) -> Any:
            seen.append(interrupts._in_step(sys._getframe(1)))
            return method(*given, **named)

        return noted

    engine = Engine()
    for text in (STEPPED, LABELS):
        engine.register(text, changelog=True)
    engine.push_batch(STREAM, table(ROWS[:3]))
    monkeypatch.setattr(Steps, "__enter__", noting(Steps.__enter__))
    monkeypatch.setattr(PendingDeliveries, "deliver", noting(PendingDeliveries.deliver))
    monkeypatch.setattr(PendingDeliveries, "here", noting(PendingDeliveries.here))
    (ways() | OTHERS)[call](engine)
    assert seen
    assert all(seen)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
@pytest.mark.parametrize("way", ways())
def test_exceptions_that_end_a_program_are_raised_after_the_step(way: str, error: type[BaseException]) -> None:
    engine = Engine()
    for each in (error, ValueError):
        engine.register(STEPPED).subscribe(lambda result, each=each: fail(each))
    last = engine.register(STEPPED)
    engine.push_batch(STREAM, table(ROWS[:3]))
    with pytest.raises(error) as raised:
        ways()[way](engine)
    assert raised.value.__notes__ == ["another subscriber raised ValueError()"]
    assert seen(last.results())[:3] == [(3, 1, "a", 1), (3, 1, "b", 2), (3, 1, "c", 3)]
    assert engine.statistics.elements == (2 if way in ("advance", "finish") else 3)
    if way != "finish":
        for query in list(engine._queries)[:2]:
            engine.unregister(query)
        engine.push(STREAM, [texts("z", 8)], time=12)
        engine.advance(13)
        assert seen(last.results())[-1] == (12, 1, "z", 8)


def fail(error: type[BaseException]) -> None:
    raise error


def test_ctrl_c_while_static_data_is_replaced() -> None:
    engine = Engine()
    label = (iri("a"), iri("label"), '"one"')
    query = engine.register(LABELS, static=[[label]], changelog=True)
    got: list[str] = []
    query.subscribe(lambda result: (got.append(str(result.bindings["l"])), ctrl_c())[0])
    with pytest.raises(KeyboardInterrupt):
        engine.push(STREAM, [texts("a", 1)], time=1)
    with pytest.raises(KeyboardInterrupt):
        query.update_static(static=[[(*label[:2], '"two"')]])
    assert got == ["one", "one", "two"]


def test_a_second_signal_is_raised_at_once() -> None:
    """A subscriber that never returns can be ended; the step is completed even then."""
    engine = Engine()
    got: list[Result] = []

    def hang(result: Result) -> None:
        ctrl_c()
        got.append(result)
        ctrl_c()
        raise AssertionError("this is not reached")

    engine.register(VALUES).subscribe(hang)
    other = engine.register(VALUES)
    with pytest.raises(KeyboardInterrupt):
        engine.push(STREAM, [texts("a", 1)], time=1)
    assert len(got) == len(list(other.results())) == 1
    engine.advance(20)


def test_a_second_signal_in_the_middle_of_a_step_fails_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine()
    engine.register(VALUES)

    def twice(*_: object) -> None:
        ctrl_c()
        ctrl_c()

    monkeypatch.setattr(engine._runner, "release_terms", twice)
    with pytest.raises(KeyboardInterrupt):
        engine.push(STREAM, [texts("a", 1)], time=1)
    with pytest.raises(RunError, match=r"the engine has failed .KeyboardInterrupt"):
        engine.push(STREAM, [texts("a", 1)], time=2)


def test_a_signal_outside_of_steps_is_raised_where_it_comes() -> None:
    engine = Engine()
    engine.register(VALUES)
    engine.push(STREAM, [texts("a", 1)], time=1)
    assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    with pytest.raises(KeyboardInterrupt):
        ctrl_c()
    engine.push(STREAM, [texts("a", 1)], time=1)


def test_the_handler_stays_while_an_engine_is_open() -> None:
    gc.collect()
    others = set(interrupts._users)
    engine, forgotten = Engine(), Engine()
    for each in (engine, forgotten):
        each.register(VALUES)
        each.push(STREAM, [texts("a", 1)], time=1)
    mine = signal.getsignal(signal.SIGINT)
    engine.finish()
    assert signal.getsignal(signal.SIGINT) is mine
    del forgotten, each
    gc.collect()
    assert others or signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_handler_of_the_program_is_left_alone() -> None:
    seen_by_program: list[int] = []
    own = lambda signum, frame: seen_by_program.append(signum)  # noqa: E731
    signal.signal(signal.SIGINT, own)
    engine = Engine()
    query = engine.register(VALUES)
    query.subscribe(ctrl_c)
    engine.push(STREAM, [texts("a", 1)], time=1)
    assert seen_by_program == [signal.SIGINT]
    assert signal.getsignal(signal.SIGINT) is own


def test_a_step_of_another_thread_keeps_nothing_from_the_main_one() -> None:
    engine = Engine()
    in_step, go_on = threading.Event(), threading.Event()
    query = engine.register(VALUES)
    query.subscribe(lambda _: (in_step.set(), go_on.wait(60))[0])
    thread = threading.Thread(target=engine.push, args=(STREAM, [texts("a", 1)]), kwargs={"time": 1})
    Engine().register(VALUES)
    thread.start()
    try:
        assert in_step.wait(60)
        with pytest.raises(KeyboardInterrupt):
            ctrl_c()
    finally:
        go_on.set()
        thread.join()
    assert engine.statistics.results == 1


def test_other_signals_are_raised_between_steps_too() -> None:
    engine = Engine()
    got: list[int] = []
    engine.register(VALUES).subscribe(lambda result: (os.kill(os.getpid(), signal.SIGTERM), got.append(1))[1])
    with interrupts.raised(signal.SIGTERM, signal.SIGHUP):
        with pytest.raises(Signalled) as raised:
            engine.push(STREAM, [texts("a", 1)], time=1)
        assert raised.value.signum == signal.SIGTERM
        assert got == [1]
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_a_signal_that_is_ignored_stays_so() -> None:
    """As under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interrupts.raised(signal.SIGHUP):
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


# --- exceptions that are reported -----------------------------------------------------------------------------------


def picky(result: Result) -> None:
    if int(result.bindings["v"]) % 2:
        raise ValueError("odd")


def test_exceptions_of_a_subscriber_can_be_reported() -> None:
    reports: list[Any] = []
    engine = Engine(report=reports.append)
    query = engine.register(VALUES, changelog=True)
    got: list[Result] = []
    query.subscribe(picky, on_error="report")
    query.subscribe(got.append)
    for time, subject, value in ROWS:
        engine.push(STREAM, [texts(subject, value)], time=time)
    engine.push_batch(STREAM, table([(8, "d", 5), (9, "e", 7)]))
    assert seen(iter(got))[: len(ANSWERS)] == ANSWERS
    odd = sum(value % 2 for _, _, _, value in seen(iter(got)))
    assert engine.statistics.subscriber_errors == len(reports) == odd > 4
    assert {str(report) for report in reports} == {"a subscriber raised ValueError: odd (in picky)"}
    assert all(isinstance(report, RunError) and isinstance(report.__cause__, ValueError) for report in reports)


def test_results_that_wait_can_be_reported_too() -> None:
    engine = Engine(report=lambda error: None)
    queries = [engine.register(VALUES) for _ in range(2)]
    engine.push_batch(STREAM, table(ROWS[:3]))
    queries[0].subscribe(picky, on_error="report")
    queries[1].subscribe_batches(lambda batch: fail(ValueError), on_error="report", ids=True)
    assert engine.statistics.subscriber_errors == 4
    engine.push(STREAM, [texts("a", 4)], time=7)
    assert engine.statistics.subscriber_errors == 5


def test_exceptions_that_end_a_program_are_never_only_reported() -> None:
    engine = Engine()
    engine.register(VALUES).subscribe(lambda _: sys.exit(3), on_error="report")
    with pytest.raises(SystemExit):
        engine.push(STREAM, [texts("a", 1)], time=1)
    assert engine.statistics.subscriber_errors == 0


def test_a_report_that_fails_is_raised_after_the_step(tmp_path: Path) -> None:
    engine = Engine(report=lambda error: fail(OSError))
    engine.register(VALUES).subscribe(picky, on_error="report")
    other = engine.register(VALUES)
    with pytest.raises(OSError):
        engine.push(STREAM, [texts("a", 1)], time=1)
    assert len(list(other.results())) == 1
    engine.push(STREAM, [texts("a", 2)], time=1)


@pytest.mark.parametrize("wrong", ["skip", None, 5])
def test_other_ways_than_these_are_refused(wrong: Any) -> None:
    query = Engine().register(VALUES)
    for subscribe in (query.subscribe, query.subscribe_batches):
        with pytest.raises(UsageError, match="on_error is 'raise' or 'report', not"):
            subscribe(picky, on_error=wrong)  # type: ignore[arg-type, operator]


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


def test_waiting_for_a_pipe_ends_by_a_signal_that_came_before_it(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    seen: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, _: seen.append(number))
    try:
        with interrupts.raised(signal.SIGTERM):
            # The notification may be late, or about a signal that ends nothing: waiting continues.
            signal.raise_signal(signal.SIGUSR1)
            threading.Timer(0.05, os.write, (writer, b"x")).start()
            interrupts.wait_to_read(reader)
            assert os.read(reader, 1) == b"x"
            threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGTERM)).start()
            with pytest.raises(Signalled):
                interrupts.wait_to_read(reader)
        assert seen == [signal.SIGUSR1]
        assert signal.set_wakeup_fd(-1) == -1
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_pipe_that_has_ended_can_be_read(pipe: tuple[int, int]) -> None:
    with interrupts.raised(signal.SIGTERM):
        os.close(pipe[1])
        interrupts.wait_to_read(pipe[0])
        assert os.read(pipe[0], 1) == b""
    os.dup2(pipe[0], pipe[1])


def test_an_event_loop_still_receives_signals() -> None:
    async def inside() -> bool:
        told = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, told.set)
        with interrupts.raised(signal.SIGTERM):
            signal.raise_signal(signal.SIGUSR1)
            await asyncio.wait_for(told.wait(), 10)
        return True

    assert asyncio.run(inside())
