"""Sinks that fail: the results wait, in order, and nothing else does."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cqels_py.batches.results import ResultBatch
from cqels_py.checkpoints import savepoints
from cqels_py.engine import backlog, clocks, spool
from cqels_py.engine.backlog import BackloggedSink
from cqels_py.engine.engine import Engine
from cqels_py.engine.feeding import Feed
from cqels_py.engine.query import Query
from cqels_py.engine.spool import Spool
from cqels_py.engine.url_sinks import opened_sink
from cqels_py.errors import RefusedResult, RunError, UsageError
from cqels_py.sinks.protocol import Sink, SinkOpening
from tests.engine.test_clocks_of_queries import NoThread, SetClock
from tests.support.servers import wait_until

EX = "http://ex.org/"
TEXT = f"SELECT ?s ?o {{ STREAM <{EX}a> [RANGE 5us] {{ ?s <{EX}p> ?o }} }}"
OTHER = f"SELECT ?o {{ STREAM <{EX}a> [RANGE 5us] {{ ?s <{EX}p> ?o }} }}"
Row = tuple[int, int, str, str]


class Away:
    """A sink, and the other side, which has what was flushed, unless it is away. `held`: by number, also of earlier processes."""

    changelog = False
    keeps_number = True
    can_retry = True

    def __init__(self) -> None:
        self.held: dict[int, Row] = {}
        self.away = threading.Event()
        self.tried = 0
        self.commits = 0
        self.refuses = False
        self.opens = True

    def open(self, opening: SinkOpening) -> Sink:
        if not self.opens:
            raise RunError("there is nobody")
        self._opening, self._collected = opening, dict[int, Row]()
        return self

    def write(self, batch: ResultBatch) -> None:
        first, second = (self._opening.dictionary.decode(column) for column in batch.columns)
        rows = zip(batch.time.tolist(), batch.sign.tolist(), first, second, strict=True)
        for number, row in enumerate(rows, batch.number):
            if self.refuses and self._opening.report is not None:
                self._opening.report(RefusedResult("no room for it").about(number, ""))
            self._collected[number] = row  # type: ignore[assignment]

    def flush(self) -> None:
        self.tried += 1
        if self.away.is_set():
            raise RunError("the other side is away")
        again = self.held.keys() & self._collected.keys()
        assert all(self.held[number] == self._collected[number] for number in again)
        self.held |= self._collected
        self._collected = {}

    def commit(self) -> None:
        self.flush()
        self.commits += 1


class Written:
    """A sink that is no URL."""

    def write(self, batch: ResultBatch) -> None: ...

    def flush(self) -> None: ...

    def commit(self) -> None: ...


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cqels_py.connections.retry.MOST", 0.01)
    monkeypatch.setattr(backlog, "FIRST", 0.001)


def sink_for(engine: Engine, query: Query, to: Away, most: int = 1 << 20) -> BackloggedSink:
    sink = opened_sink(to, query.plan, engine.dictionary, query.refused, query.continued, query.backlog(most))
    assert isinstance(sink, BackloggedSink)
    query.write_to(sink)
    return sink


def push(engine: Engine, at: int, subject: str = "x") -> None:
    engine.push(f"{EX}a", [(f"<{EX}{subject}>", f"<{EX}p>", f'"{at}"')], time=at)


def rows(query: Query) -> list[Row]:
    return [(r.time, r.sign, r.bindings["s"].n3(), r.bindings["o"].n3()) for r in query.results()]


@pytest.mark.parametrize("seed", range(4))
def test_all_results_come_in_order_however_often_it_fails(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "IN_MEMORY", 2_000)
    draw = random.Random(seed)
    engine, to = Engine(), Away()
    query, same = engine.register(TEXT, changelog=True), engine.register(TEXT, changelog=True)
    sink = sink_for(engine, query, to)
    wanted: list[Row] = []
    for at in range(300):
        if draw.random() < 0.05:
            (to.away.clear if to.away.is_set() else to.away.set)()
        push(engine, at, draw.choice("xyz"))
        wanted += rows(same)
    to.away.clear()
    engine.finish()
    wanted += rows(same)
    assert [*to.held] == [*range(1, len(wanted) + 1)]
    assert [*to.held.values()] == wanted
    assert to.commits == 1
    sink.close()
    assert not sink._thread.is_alive()


class Held(Away):
    """Its attempts last until they are let go, one by one."""

    def __init__(self) -> None:
        super().__init__()
        self.may_flush = threading.Semaphore(0)

    def flush(self) -> None:
        self.may_flush.acquire()
        super().flush()


def test_results_that_are_taken_while_others_are_counted_do_not_count_for_ever(
    caplog: pytest.LogCaptureFixture,
) -> None:
    engine, to = Engine(), Held()
    sink = sink_for(engine, engine.register(TEXT), to)
    waiting = [0, 1]
    for at in waiting:
        push(engine, at)

    class Asked(ResultBatch):
        def __len__(self) -> int:
            if waiting:
                waiting.pop()
                to.may_flush.release()
                # Each was written and flushed.
                wait_until(lambda: sink._done >= 2 * (2 - len(waiting)), "an attempt to end")
            return 1

    ids = engine.dictionary.encode([f"<{EX}x>", '"2"'])
    sink.write(Asked(("s", "o"), np.array([2]), np.ones(1, np.int8), (ids[:1], ids[1:]), number=3))
    sink.flush()
    for _ in range(4):
        to.may_flush.release()
    assert sink.settle()
    with caplog.at_level(logging.WARNING, "cqels_py"):
        sink.close()
    assert [*to.held] == [1, 2, 3]
    assert not caplog.records


class WatchedSpool(Spool):
    """`asked` is called when it is asked for its size, `closing` when it is closed."""

    asked: Callable[[], None] | None = None
    closing: Callable[[], None] | None = None
    closed = False

    @property
    def nbytes(self) -> int:
        if (asked := self.asked) is not None:
            self.asked = None
            asked()
        return super().nbytes

    def add(self, content: bytes) -> None:
        assert not self.closed
        super().add(content)

    def close(self) -> None:
        if self.closing is not None:
            self.closing()
        self.closed = True
        super().close()


class Breaks(Away):
    """Its first attempt fails for good, once it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may_fail = threading.Event()

    def flush(self) -> None:
        self.may_fail.wait(30)
        raise ValueError("it is broken")


@pytest.mark.parametrize("fails", [True, False])
def test_nothing_waits_for_a_sink_that_has_ended_meanwhile(fails: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backlog, "Spool", WatchedSpool)
    engine, to = Engine(), Breaks() if fails else Away()
    sink = sink_for(engine, engine.register(TEXT), to)
    push(engine, 0)
    assert isinstance(sink._spool, WatchedSpool)

    def end() -> None:
        if isinstance(to, Breaks):
            to.may_fail.set()
            sink._thread.join(30)
        else:
            sink.close()

    sink._spool.asked = end
    ids = engine.dictionary.encode([f"<{EX}x>", '"2"'])
    batch = ResultBatch(("s", "o"), np.array([2]), np.ones(1, np.int8), (ids[:1], ids[1:]), number=2)
    with pytest.raises(ValueError, match="broken") if fails else nullcontext():
        sink.write(batch)
    assert sink._spool.closed and not sink._spool.nbytes


@pytest.mark.parametrize("fails", [True, False])
def test_no_other_thread_uses_what_waits_while_it_is_closed(fails: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backlog, "Spool", WatchedSpool)
    engine, to = Engine(), Breaks() if fails else Away()
    sink = sink_for(engine, engine.register(TEXT), to)
    free: list[bool] = []

    def closing() -> None:
        other = threading.Thread(target=lambda: free.append(sink._changed.acquire(blocking=False)))
        other.start()
        other.join(30)

    assert isinstance(sink._spool, WatchedSpool)
    sink._spool.closing = closing
    push(engine, 0)
    if isinstance(to, Breaks):
        to.may_fail.set()
        sink._thread.join(30)
    else:
        sink.close()
    assert free == [False]


class FailsLate(Away):
    """Its first attempt lasts until it may fail."""

    def __init__(self) -> None:
        super().__init__()
        self.has_begun, self.may_fail = threading.Event(), threading.Event()

    def flush(self) -> None:
        if not self.has_begun.is_set():
            self.has_begun.set()
            self.may_fail.wait(30)
            raise RunError("it was away a moment ago")
        super().flush()


def test_an_attempt_that_has_begun_before_a_commit_does_not_end_it() -> None:
    engine, to = Engine(), FailsLate()
    sink = sink_for(engine, engine.register(TEXT), to)
    push(engine, 0)
    assert to.has_begun.wait(30)
    failed: list[BaseException] = []

    def finish() -> None:
        try:
            engine.finish()
        except RunError as error:
            failed.append(error)

    given, finishing = sink._given, threading.Thread(target=finish)
    finishing.start()
    wait_until(lambda: sink._given > given, "the commit is given")
    to.may_fail.set()
    finishing.join(30)
    assert failed == [] and len(to.held) == 1 and to.commits == 1


def test_a_query_that_is_alone_waits_when_too_many_results_do() -> None:
    engine, to = Engine(), Away()
    query = engine.register(TEXT)
    sink_for(engine, query, to, most=2_000)
    to.away.set()
    pushed: list[int] = []

    def pushing() -> None:
        for at in range(200):
            push(engine, at)
            pushed.append(at)

    thread = threading.Thread(target=pushing)
    thread.start()
    thread.join(1)
    assert thread.is_alive()
    assert 3 < len(pushed) < 100
    to.away.clear()
    thread.join(30)
    engine.finish()
    assert len(to.held) == len(pushed) == 200


def test_beside_others_it_is_stopped_and_says_so() -> None:
    engine, to = Engine(), Away()
    query, other = engine.register(TEXT, name="one"), engine.register(OTHER)
    sink_for(engine, query, to, most=2_000)
    to.away.set()
    at = 0
    with pytest.raises(RunError, match=r"bytes of its results wait for a sink that fails \(max_backlog\)"):
        for at in range(200):
            push(engine, at)
    assert engine.queries == (other,)
    push(engine, at + 1)
    engine.finish()
    assert [r.time for r in other.results()][-1] == at + 1


HEAD = "time,subject,predicate,object\n"


def line(at: int) -> str:
    return f'1970-01-01T00:00:00.{at:06}Z,<{EX}x>,<{EX}p>,"""{at}"""\n'


def fed(engine: Engine, stream: str, path: Path) -> Feed:
    path.write_text(HEAD)
    return engine.feed(stream, f"tail:{path}")


def grow(path: Path, feed: Feed, at: int) -> None:
    with path.open("a") as file:
        file.write(line(at))
    feed.step()


@pytest.mark.parametrize("clock", ["events", "wall"])
def test_a_source_that_it_alone_reads_is_paused_until_the_sink_is_back(
    tmp_path: Path, clock: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = SetClock()
    monkeypatch.setattr(clocks, "WallClock", lambda delay: now)
    monkeypatch.setattr(clocks, "ClockThread", NoThread)
    engine, to = Engine(clock=clock), Away()
    query, other = engine.register(TEXT, name="one"), engine.register(OTHER.replace("/a>", "/b>"), name="other")
    sink = sink_for(engine, query, to, most=8_000)
    feed, path = fed(engine, f"{EX}a", tmp_path / "a.csv"), tmp_path / "a.csv"
    feed.step()
    to.away.set()
    for at in range(1, 201):
        now.time = at
        grow(path, feed, at)
        engine.push(f"{EX}b", [(f"<{EX}x>", f"<{EX}p>", f'"{at}"')], time=at)
        if clock == "wall":
            engine._follow_clock()
    assert feed.paused
    assert 3 < feed.elements < 150
    assert 8_000 < sink._spool.nbytes < 9_000
    assert engine.queries == (query, other)
    to.away.clear()
    wait_until(sink.settle, "the sink to take results")
    while feed.elements < 200:
        feed.step()
    assert not feed.paused
    feed.close()
    engine.finish()
    assert [row[0] for row in to.held.values()] == list(range(1, 201))
    assert len(list(other.results())) == 200
    assert engine.statistics.late == 0


def test_what_a_source_gets_while_pushes_have_filled_the_backlog_is_not_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = SetClock()
    monkeypatch.setattr(clocks, "WallClock", lambda delay: now)
    monkeypatch.setattr(clocks, "ClockThread", NoThread)
    engine, to = Engine(clock="wall"), Away()
    query = engine.register(TEXT, name="one")
    engine.register(OTHER.replace("/a>", "/b>"), name="other")
    sink = sink_for(engine, query, to, most=2_000)
    feed, path = fed(engine, f"{EX}a", tmp_path / "a.csv"), tmp_path / "a.csv"
    feed.step()
    to.away.set()
    while not sink.is_full:
        now.time += 1
        push(engine, now.time)
    pushed = now.time
    assert not feed.step()
    assert feed.paused
    now.time += 1_000
    engine._follow_clock()
    to.away.clear()
    wait_until(sink.settle, "the sink to take results")
    grow(path, feed, pushed + 1)
    assert (feed.elements, engine.statistics.late) == (1, 0)
    feed.close()
    engine.finish()
    assert [row[0] for row in to.held.values()] == list(range(1, pushed + 2))


@pytest.mark.parametrize("beside", ["a reader", "a push", "a query that reads it"])
def test_a_query_that_others_would_wait_for_is_stopped(tmp_path: Path, beside: str) -> None:
    engine, to = Engine(), Away()
    text = TEXT
    if beside == "a query that reads it":
        text = f"REGISTER STREAM <{EX}c> AS CONSTRUCT {{ ?s <{EX}p> ?o }} {TEXT[TEXT.index('{') :]}"
        engine.register(OTHER.replace("/a>", "/c>"))
    query = engine.register(text)
    other = engine.register(OTHER if beside == "a reader" else OTHER.replace("/a>", "/b>"))
    sink_for(engine, query, to, most=1_000)
    feed, path = fed(engine, f"{EX}a", tmp_path / "a.csv"), tmp_path / "a.csv"
    feed.step()
    to.away.set()
    with pytest.raises(RunError, match="has been stopped: more than 1,000 bytes of its results wait"):
        for at in range(1, 300):
            if beside == "a push":
                push(engine, at)
                assert not feed.step()
            else:
                grow(path, feed, at)
                assert not feed.paused
    assert query not in engine.queries
    assert other in engine.queries


def test_what_waits_when_it_is_closed_is_written_if_it_is_taken_and_told_if_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    for away in (False, True):
        engine, to = Engine(), Away()
        query = engine.register(TEXT)
        sink = sink_for(engine, query, to)
        if away:
            to.away.set()
        for at in range(20):
            push(engine, at)
        with caplog.at_level(logging.WARNING, "cqels_py"):
            engine.close()
            sink.close()
        assert len(to.held) == (0 if away else 20)
    assert "a sink has not taken 20 results, which are dropped" in caplog.text


def test_a_commit_raises_that_the_sink_fails() -> None:
    engine, to = Engine(), Away()
    query = engine.register(TEXT)
    sink = sink_for(engine, query, to)
    to.away.set()
    push(engine, 1)
    assert not sink.settle()
    with pytest.raises(RunError, match="the other side is away"):
        engine.commit()
    to.away.clear()
    engine.commit()
    assert sink.settle()
    assert to.commits >= 1


def test_refused_results_are_reported() -> None:
    reports: list[str] = []
    engine, to = Engine(report=lambda error: reports.append(str(error))), Away()
    query = engine.register(TEXT)
    sink_for(engine, query, to)
    to.refuses = True
    push(engine, 1)
    engine.finish()
    assert len(reports) == 1
    assert "no room for it" in reports[0]


def test_for_a_sink_that_cannot_be_tried_again_nothing_waits() -> None:
    engine, to = Engine(), Away()
    to.can_retry = False
    query = engine.register(TEXT)
    assert opened_sink(to, query.plan, engine.dictionary, query.refused, query.continued, query.backlog(9)) is to


def test_a_sink_that_cannot_be_opened_says_so_at_once() -> None:
    engine = Engine()
    query = engine.register(TEXT)
    to = Away()
    to.opens = False
    with pytest.raises(RunError, match="there is nobody"):
        sink_for(engine, query, to)
    with pytest.raises(UsageError, match="max_backlog is 1 or more bytes, not 0"):
        query.write_to("http://127.0.0.1:1/", max_backlog=0)
    with pytest.raises(UsageError, match="max_backlog is for sinks by URL"):
        query.write_to(Written(), max_backlog=1)


@pytest.mark.parametrize("seed", range(4))
def test_no_snapshot_leaves_waiting_results_behind(seed: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A process that ends while they wait makes them again from its log; the other side gets each result."""
    from cqels_py.engine.durable import logged

    monkeypatch.setattr(logged, "LEAST", 100)
    monkeypatch.setattr(logged, "APART", 0.0)
    draw = random.Random(seed)
    to, alone = Away(), Engine()
    same = alone.register(TEXT, changelog=True)
    folder, at = tmp_path / "0", 0
    for process in range(4):
        engine = Engine(checkpoint=folder, durable="off")
        query = engine.register(TEXT, changelog=True, name="one")
        sink = sink_for(engine, query, to)
        (to.away.set if draw.random() < 0.5 and process < 3 else to.away.clear)()
        for _ in range(draw.randrange(20, 60)):
            at += 1
            push(engine, at, "xyz"[at % 3])
            push(alone, at, "xyz"[at % 3])
        engine._inputs.sync()
        if process < 3:
            # It is killed; a snapshot may be on its way.
            savepoints.copy(folder, folder := tmp_path / str(process + 1))
            to.away.set()
            sink.close()
            engine.close()
        else:
            engine.checkpoint()
            engine.close()
    wanted = rows(same)
    assert [to.held[number] for number in range(1, len(wanted) + 1)] == wanted


@pytest.mark.parametrize("kept", [True, False], ids=["checkpoint", "none"])
def test_the_file_lies_in_the_folder_of_the_checkpoint(
    kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That is the disk which was chosen for what is to be kept; the file has no name, and ends with its process."""
    monkeypatch.setattr(spool, "IN_MEMORY", 1_000)
    asked: list[Path | None] = []
    temporary = spool.tempfile.TemporaryFile

    def opened(*, dir: Path | None, **how: Any) -> Any:
        asked.append(dir)
        return temporary(dir=dir, **how)

    monkeypatch.setattr(spool.tempfile, "TemporaryFile", opened)
    engine, to = Engine(checkpoint=tmp_path if kept else None), Away()
    query = engine.register(TEXT, name="q")
    sink = sink_for(engine, query, to)
    to.away.set()
    for at in range(60):
        push(engine, at)
    to.away.clear()
    while not sink.settle():
        assert sink._thread.is_alive()
    engine.close()
    assert asked == [tmp_path if kept else None]
    assert [*to.held] == [*range(1, 61)]
    assert {path.name for path in tmp_path.iterdir()} == (
        {"000000000000.log", "000000000000.snapshot", "lock", "manifest"} if kept else set()
    )


def test_spooled_texts_come_in_order_and_the_file_shrinks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "IN_MEMORY", 50)
    draw, waiting, model = random.Random(1), Spool(), list[bytes]()
    for _ in range(2_000):
        if draw.random() < 0.5:
            content = b"x" * draw.randrange(30)
            waiting.add(content)
            model.append(content)
        else:
            assert waiting.take() == (model.pop(0) if model else None)
    assert waiting.nbytes >= sum(map(len, model))
    while model:
        assert waiting.take() == model.pop(0)
    assert waiting.nbytes == 0
    assert waiting.take() is None
    waiting.close()
