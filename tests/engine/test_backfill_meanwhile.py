"""Other threads go on while a query is given elements of before; it has the results of one that was there."""

from __future__ import annotations

import errno
import os
import random
import shutil
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest

from cqels_py.checkpoints import durable_files
from cqels_py.checkpoints.durable_files import StorageError
from cqels_py.engine import backfill, clocks
from cqels_py.engine.engine import Engine
from cqels_py.engine.query import Query
from cqels_py.errors import DataError, RunError, UsageError
from cqels_py.runners import joining
from tests.engine.test_backfill import BASE, PREFIX, QUERIES, A, B, Element, drawn, push, register, rows
from tests.engine.test_clocks_of_queries import NoThread, SetClock
from tests.engine.test_parted_sources import Scripted

OTHER = "SELECT ?s { STREAM :a [RANGE 3us] { ?s :p ?o } STREAM :b [RANGE 3us] { ?s :p ?q } }"
Call = Callable[[], object]
PATIENCE = 300
"""Seconds: the first registrations compile kernels."""


class Between:
    """Calls in another thread, one between two turns of a registration each, and the rest by `finish`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, calls: Sequence[Call]) -> None:
        self.left = list(calls)
        self._failures: list[BaseException] = []
        monkeypatch.setattr(backfill, "pause", self._pause)

    def _pause(self) -> None:
        if self.left:
            thread = threading.Thread(target=self._do, args=(self.left.pop(0),))
            thread.start()
            thread.join(PATIENCE)
            assert not thread.is_alive(), "the other thread waits for the registration"
        for each in self._failures:
            raise each

    def _do(self, call: Call) -> None:
        try:
            call()
        except BaseException as error:
            self._failures.append(error)

    def finish(self) -> None:
        while self.left:
            self.left.pop(0)()


def past_of(streams: Sequence[str], elements: Sequence[Element], size: int = 6) -> dict[str, Scripted]:
    """Sources with some elements a poll."""
    found = {}
    for stream in streams:
        mine = [(time, subject) for each, time, subject in elements if each == stream]
        found[stream] = Scripted([mine[at : at + size] for at in range(0, len(mine), size)])
    return found


def parts(draw: random.Random, streams: Sequence[str], seed: int) -> tuple[list[Element], list[Element], list[Element]]:
    """Elements of before, in the order in which they are merged, of meanwhile, and of after."""
    elements = [each for each in drawn(seed, 150) if each[0] in streams]
    first = draw.randrange(25, 50)
    second = draw.randrange(first, len(elements))
    past = elements[:first]
    if len(streams) > 1:
        past.sort(key=lambda each: (each[1], each[0]))
    return past, elements[first:second], elements[second:]


def divided(draw: random.Random, elements: Sequence[Element]) -> list[Sequence[Element]]:
    """Some elements for each call."""
    found, at = [], 0
    while at < len(elements):
        count = draw.randrange(6)
        found.append(elements[at : at + count])
        at += count
    return found


def numbered(query: Query) -> dict[int, tuple[int, int, str]]:
    return {r.number: (r.time, r.sign, str(sorted(r.bindings.items()))) for r in query.results()}


def push_all(engines: Sequence[Engine], elements: Sequence[Element], advanced: int | None) -> None:
    for engine in engines:
        for each in elements:
            push(engine, each)
        if advanced is not None:
            engine.advance(advanced)


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("text", QUERIES)
@pytest.mark.parametrize("seed", range(3))
def test_results_are_those_of_a_query_that_was_there(
    seed: int, text: str, monkeypatch: pytest.MonkeyPatch, *, there: bool
) -> None:
    draw = random.Random(seed)
    lateness = draw.choice((0, 3))
    engine, other = (Engine(lateness=lateness, report=lambda _: None) for _ in range(2))
    wanted = register(other, text)
    known = register(engine, text) if there else None
    if draw.random() < 0.5:
        register(engine, OTHER)
    past, meanwhile, after = parts(draw, wanted.streams, seed)
    push_all([other, engine] if there else [other], past, None)
    calls: list[Call] = [
        partial(push_all, (engine, other), each, each[-1][1] if each and draw.random() < 0.3 else None)
        for each in divided(draw, meanwhile)
    ]
    # Another one, whose group may begin before the query joins it.
    calls.insert(draw.randrange(len(calls) + 1), partial(register, engine, draw.choice(QUERIES)))
    between = Between(monkeypatch, calls)
    later = register(engine, text, backfill=past_of(wanted.streams, past))
    between.finish()
    push_all((engine, other), after, None)
    engine.finish()
    other.finish()
    expected = rows(wanted)
    assert sorted(rows(later)) == sorted(expected)
    assert expected
    assert known is None or rows(known) == expected


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_it_is_so_by_the_clock(seed: int, monkeypatch: pytest.MonkeyPatch, *, there: bool) -> None:
    """Elements ahead of it wait for their times, also if these have passed when the query takes them in."""
    clock = SetClock()
    monkeypatch.setattr(clocks, "WallClock", lambda delay: clock)
    monkeypatch.setattr(clocks, "ClockThread", NoThread)
    draw = random.Random(seed)
    clock.time = BASE
    engine, other = (Engine(clock="wall", report=lambda _: None) for _ in range(2))
    text = QUERIES[seed % 2]
    wanted = register(other, text)
    if there:
        register(engine, text)
    past = [(A, BASE + at, draw.choice("xyz")) for at in range(0, 90, 2)]
    push_all([other, engine] if there else [other], past, None)
    clock.time += 100
    for one in (other, engine):
        one._follow_clock()

    def go_on() -> None:
        clock.time += draw.choice((0, 1, 3))
        ahead = draw.choice((0, -1, 2, 4))
        push_all((engine, other), [(A, clock.time + ahead, draw.choice("xyz"))], None)
        for one in (engine, other):
            one._follow_clock()

    between = Between(monkeypatch, [go_on] * 25)
    later = register(engine, text, backfill=past_of((A,), past))
    assert len(between.left) < 20
    between.finish()
    clock.time += 100
    for one in (engine, other):
        one._follow_clock()
    assert sorted(rows(later)) == sorted(rows(wanted))


@pytest.mark.parametrize("text", QUERIES)
@pytest.mark.parametrize("seed", range(2))
def test_the_log_has_what_came_meanwhile(seed: int, text: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """After a restart the query is where it was. A process that ends in the middle leaves none, and it is registered again."""
    draw = random.Random(seed)

    def opened(folder: Path) -> Engine:
        return Engine(lateness=2, report=lambda _: None, checkpoint=folder, durable="off")

    engine, other = opened(tmp_path / "state"), Engine(lateness=2, report=lambda _: None)
    wanted = register(other, text)
    # It reads both streams; its time begins meanwhile.
    register(engine, QUERIES[2], name="first")
    past, meanwhile, after = parts(draw, wanted.streams, seed)
    push_all([other], past, None)
    calls: list[Call] = [partial(push_all, (engine, other), each, None) for each in divided(draw, meanwhile)]
    calls.insert(draw.randrange(3), partial(register, engine, QUERIES[0], name="beside"))
    calls.insert(draw.randrange(1, 5), lambda: shutil.copytree(tmp_path / "state", tmp_path / "killed"))
    between = Between(monkeypatch, calls)
    later = register(engine, text, name="later", backfill=past_of(wanted.streams, past))
    between.finish()
    found = numbered(later)
    if draw.random() < 0.5:
        engine.checkpoint()
    engine.close()
    engine = opened(tmp_path / "state")
    assert [query.name for query in engine.queries] == ["first", "beside", "later"]
    later = engine.queries[-1]
    push_all((engine, other), after, None)
    engine.finish()
    other.finish()
    again = numbered(later)
    assert all(found[number] == again[number] for number in found.keys() & again.keys())
    assert sorted((found | again).values()) == sorted(rows(wanted))

    first = numbered(engine.queries[0])
    killed = opened(tmp_path / "killed")
    assert "later" not in {query.name for query in killed.queries}
    known = numbered(killed.queries[0])
    assert all(first[number] == known[number] for number in first.keys() & known.keys())
    between.left = []
    later = register(killed, text, name="later", backfill=past_of(wanted.streams, past))
    killed.close()
    killed = opened(tmp_path / "killed")
    assert numbered(killed.queries[-1])
    killed.close()


def test_a_query_that_is_given_up_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "state"
    engine, other = Engine(checkpoint=folder, durable="off"), Engine()
    beside: list[Query] = []

    def fails() -> None:
        beside.append(register(engine, QUERIES[3], name="beside"))
        push(engine, (B, BASE + 20, "x"))
        # To a stream that only the query reads that is going to be registered.
        push(engine, (A, BASE + 20, "x"))
        raise RuntimeError("the registration ends")

    Between(monkeypatch, [lambda: None, fails])
    with pytest.raises(RuntimeError, match="the registration ends"):
        register(engine, QUERIES[0], name="later", backfill=past_of((A,), drawn(0, 40)))
    with pytest.raises(UsageError, match="no registered query reads the stream"):
        push(engine, (A, BASE + 21, "x"))
    push(engine, (B, BASE + 22, "x"))
    engine.close()
    engine = Engine(checkpoint=folder, durable="off")
    assert [query.name for query in engine.queries] == ["beside"]
    for one in (engine, other):
        query = register(one, QUERIES[0], name="later")
        for time in (30, 31):
            push(one, (A, BASE + time, "y"))
        assert [at for at, sign, _ in rows(query) if sign > 0] == [BASE + 30, BASE + 31]
    engine.close()


def test_another_registration_that_fails_meanwhile_gives_up_none_but_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    engine = Engine(checkpoint=tmp_path, durable="off")

    def refused() -> None:
        with pytest.raises(UsageError, match="cannot read their own results"):
            engine.register(
                f"{PREFIX}REGISTER STREAM <{A}> AS CONSTRUCT {{ ?s :p ?o }} {{ STREAM <{A}> [RANGE 3us] {{ ?s :p ?o }} }}"
            )

    past = [(A, BASE + at, "x") for at in range(20)]
    Between(monkeypatch, [refused])
    later = numbered(register(engine, QUERIES[0], name="later", backfill=past_of((A,), past)))
    engine.close()
    engine = Engine(checkpoint=tmp_path, durable="off")
    (query,) = engine.queries
    assert numbered(query) == later
    engine.close()


def test_an_error_of_another_element_does_not_keep_a_query_from_being_given_up(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Elements that wait for others of their batch are processed then."""
    engine = Engine(checkpoint=tmp_path, batch=10)
    register(engine, QUERIES[0], name="there")

    def fails() -> None:
        engine.push(A, [("<http://ex.org/x>", "<http://ex.org/p>", "no term")], time=BASE + 1)
        raise RuntimeError("the registration ends")

    past = [(A, BASE + at, "x") for at in range(20)]
    Between(monkeypatch, [fails])
    with pytest.raises(DataError, match="no term") as raised:
        register(engine, QUERIES[0], name="later", backfill=past_of((A,), past))
    assert isinstance(raised.value.__context__, RuntimeError)
    # The next one begins anew.
    Between(monkeypatch, [])
    later = register(engine, QUERIES[0], name="later", backfill=past_of((A,), past))
    assert rows(later)
    engine.close()


def test_a_full_disk_ends_a_registration_and_nothing_else(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The log says later that the query was given up: the numbers of streams that follow depend on it."""
    append, full = durable_files.append, threading.Event()

    def appended(descriptor: int, data: durable_files.Block) -> None:
        if full.is_set():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        append(descriptor, data)

    monkeypatch.setattr(durable_files, "append", appended)
    engine = Engine(checkpoint=tmp_path, durable="off")
    held = len(engine.dictionary._holders)
    past = [(A, BASE + at, "x") for at in range(20)]
    Between(monkeypatch, [full.set])
    with pytest.raises(StorageError, match="No space left on device"):
        register(engine, QUERIES[0], name="later", backfill=past_of((A,), past))
    full.clear()
    assert len(engine.dictionary._holders) == held
    other = register(engine, QUERIES[3], name="other")
    for at in (0, 1, 9):
        push(engine, (B, BASE + at, "x"))
    expected = numbered(other)
    assert expected
    engine.close()
    engine = Engine(checkpoint=tmp_path, durable="off")
    (again,) = engine.queries
    assert numbered(again) == expected
    # Snapshots come again, too.
    engine.checkpoint()
    assert register(engine, QUERIES[0], name="later", backfill=past_of((A,), past))
    engine.close()


def test_what_waits_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joining, "MOST_OF_MEANWHILE", 20)
    engine = Engine()
    there = register(engine, QUERIES[0])
    past = [(A, BASE + at, "x") for at in range(120)]
    pushed: list[int] = []

    def go_on() -> None:
        pushed.append(len(pushed))
        push(engine, (A, BASE + 200 + pushed[-1], "y"))

    Between(monkeypatch, [go_on] * 200)
    later = register(engine, QUERIES[0], backfill=past_of((A,), past, size=2))
    # Then others wait until the query is there.
    assert len(pushed) == 11
    assert [row for row in rows(later) if row[0] >= BASE + 200] == [row for row in rows(there) if row[0] >= BASE + 200]

    Between(monkeypatch, [lambda: engine.run({A: Scripted([[(BASE + 1000 + at, "z") for at in range(30)]])})])
    with pytest.raises(RunError, match="more than 20 elements came while the query was given elements of before"):
        register(engine, QUERIES[0], backfill=past_of((A,), past))
    assert len(engine.queries) == 2


def test_two_registrations_and_a_checkpoint_come_one_after_the_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    engine = Engine(checkpoint=tmp_path)
    past = [(A, BASE + at, "x") for at in range(60)]
    threads = [
        threading.Thread(target=engine.checkpoint),
        threading.Thread(target=lambda: register(engine, QUERIES[1], name="two", backfill=past_of((A,), past))),
    ]
    Between(monkeypatch, [thread.start for thread in threads])
    register(engine, QUERIES[0], name="one", backfill=past_of((A,), past))
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()
    assert [query.name for query in engine.queries] == ["one", "two"]
    engine.close()


def test_threads_that_push_get_their_turns() -> None:
    """By their own: without a hook between two turns."""
    engine = Engine()
    query = register(engine, QUERIES[0])
    stop, pushed = threading.Event(), list[int]()

    def pushing() -> None:
        while not stop.is_set():
            pushed.append(BASE + 10_000 + len(pushed))
            push(engine, (A, pushed[-1], "y"))

    thread = threading.Thread(target=pushing)
    thread.start()
    counts: list[int] = []
    source = Scripted([[(BASE + at, "x")] for at in range(300)], seen=lambda _: counts.append(len(pushed)))
    later = engine.register(PREFIX + QUERIES[1], backfill={A: source})
    stop.set()
    thread.join(PATIENCE)
    assert len(set(counts)) > 5
    engine.finish()
    assert sum(row[1] for row in rows(query)) >= 0
    assert len(rows(later)) > 0
