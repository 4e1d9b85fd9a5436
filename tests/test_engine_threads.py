"""One engine, several threads: calls are executed one after another, and none waits forever."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from cqels_py.batches.results import ResultBatch
from cqels_py.engine import registering
from cqels_py.engine.engine import Engine, Statistics
from cqels_py.engine.query import Result
from tests.engine.test_engine import COUNT, EX, INTEGER, OTHER, PREFIX, STREAM, VALUES, iri, table, texts

LATEST = PREFIX + "SELECT ?s ?v { STREAM :s [COUNT 1] { ?s :v ?v } }"
PUSHES = 3000
WAITED = 60
"""Seconds after which a thread hangs."""


def together(*works: Callable[[], object]) -> None:
    """Run each function in a thread, all starting at once; raises the exception of any of them."""
    begin = threading.Barrier(len(works))
    failures: list[BaseException] = []

    def run(work: Callable[[], object]) -> None:
        try:
            begin.wait(WAITED)
            work()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAITED)
        assert not thread.is_alive()
    if failures:
        raise failures[0]


def pushing(engine: Engine, subject: str) -> Callable[[], None]:
    def push() -> None:
        for value in range(PUSHES):
            engine.push(STREAM, [texts(f"{subject}{value}", value)], time=1)

    return push


@pytest.mark.parametrize("batch", [None, 7])
def test_two_threads_push(batch: int | None) -> None:
    engine = Engine(batch=batch)
    query = engine.register(LATEST)
    count = engine.register(COUNT.replace("COUNT 2", "ALL"))
    together(pushing(engine, "a"), pushing(engine, "b"))
    engine.flush()
    assert engine.statistics.elements == 2 * PUSHES
    found = [result.bindings["s"].removeprefix(EX) for result in query.results()]
    for subject in "ab":
        assert [name for name in found if name[0] == subject] == [f"{subject}{k}" for k in range(PUSHES)]
    assert [int(result.bindings["n"]) for result in count.results()][-1] == 2 * PUSHES


def test_queries_come_and_go_while_another_thread_pushes() -> None:
    engine = Engine()
    engine.register(VALUES)
    labels = PREFIX + "SELECT ?l { STREAM :s [COUNT 1] { ?s :v ?v } ?s :label ?l }"

    def come_and_go() -> None:
        for _ in range(15):
            query = engine.register(labels)
            query.update_static(static=[[(iri("a"), iri("label"), '"A"')]])
            assert query.nbytes >= 0
            assert query.explain()
            engine.unregister(query)
            engine.flush()

    together(pushing(engine, "a"), come_and_go)
    assert engine.statistics.elements == PUSHES


def test_each_result_is_taken_once() -> None:
    engine = Engine()
    query = engine.register(LATEST)
    taken: list[Result] = []
    pushed = threading.Event()

    def push() -> None:
        pushing(engine, "a")()
        pushed.set()

    def take() -> None:
        while not pushed.is_set():
            taken.extend(query.results())

    together(push, take, take)
    taken += query.results()
    assert sorted(int(result.bindings["v"]) for result in taken) == list(range(PUSHES))


def test_subscribing_while_another_thread_pushes_misses_nothing() -> None:
    engine = Engine()
    query = engine.register(LATEST)
    got: list[int] = []
    together(pushing(engine, "a"), lambda: query.subscribe(lambda result: got.append(int(result.bindings["v"]))))
    assert got == list(range(PUSHES))


def test_subscribers_push_from_two_threads() -> None:
    engine = Engine()
    query = engine.register(LATEST)
    count = engine.register(PREFIX + "SELECT (COUNT(*) AS ?n) { STREAM :t [ALL] { ?s :v ?v } }")
    query.subscribe(lambda result: engine.push(OTHER, [texts("c", int(result.bindings["v"]))], time=1))
    together(pushing(engine, "a"), pushing(engine, "b"))
    assert [int(result.bindings["n"]) for result in count.results()][-1] == 2 * PUSHES


@pytest.mark.parametrize("threads", [1, 2])
def test_a_run_is_one_call(tmp_path: Path, threads: int) -> None:
    """Others push before it or after its end; its results can be taken meanwhile."""
    file = tmp_path / "s.csv"
    rows = "".join(f'{t},{iri("a")},{iri("v")},"""{t}""^^{INTEGER}"\n' for t in range(1, 20))
    file.write_text("time,subject,predicate,object\n" + rows, encoding="utf-8")
    engine = Engine(batch=1)
    query = engine.register(VALUES)
    seen: list[Result] = []
    begun, found = threading.Event(), threading.Event()

    def run() -> None:
        def look(_: object) -> None:
            begun.set()
            assert found.wait(WAITED)

        engine.run({STREAM: file}, progress=look, threads=threads)

    def take() -> None:
        assert begun.wait(WAITED)
        seen.extend(query.results())
        assert engine.statistics.elements
        found.set()

    def push() -> None:
        assert begun.wait(WAITED)
        engine.push(STREAM, [texts("b", 1)], time=1)

    together(run, take, push)
    assert seen
    # It came behind all elements of the run.
    assert engine.statistics.late == 1
    assert len([*seen, *query.results()]) == 19


def test_statistics_are_a_snapshot_that_waits_for_nobody() -> None:
    """Taken in the middle of a step of another thread."""
    engine = Engine()
    in_step, taken = threading.Event(), threading.Event()
    engine.register(VALUES).subscribe(lambda _: (in_step.set(), taken.wait(WAITED))[0])
    before = engine.statistics

    def take() -> None:
        assert in_step.wait(WAITED)
        assert (engine.statistics.elements, engine.statistics.triples) == (1, 1)
        taken.set()

    together(lambda: engine.push(STREAM, [texts("a", 1)], time=5), take)
    assert before == Statistics()
    assert engine.statistics == Statistics(elements=1, triples=1, results=1, event_time=5)
    with pytest.raises(FrozenInstanceError):
        before.elements = 2  # type: ignore[misc]


class Slow:
    """A subscriber that is at work until it is told to go on."""

    def __init__(self) -> None:
        self.got: list[int] = []
        self.threads: list[int] = []
        self.at_work, self.go_on = threading.Event(), threading.Event()

    def __call__(self, result: Result) -> None:
        self.got.append(int(result.bindings["v"]))
        self.threads.append(threading.get_ident())
        self.at_work.set()
        assert self.go_on.wait(WAITED)


@pytest.mark.parametrize("way", ["push", "push_batch", "subscribe"])
def test_others_push_while_a_subscriber_is_slow(way: str) -> None:
    """Their elements are evaluated at once; the slow subscriber gets its results in order, all in the thread in which it is."""
    engine = Engine()
    slow, others = Slow(), engine.register(LATEST)
    query = engine.register(LATEST)
    if way != "subscribe":
        query.subscribe(slow)

    def first() -> None:
        if way == "push_batch":
            engine.push_batch(STREAM, table([(1, "a", 1)]))
        else:
            engine.push(STREAM, [texts("a", 1)], time=1)
        if way == "subscribe":
            query.subscribe(slow)

    def push() -> None:
        assert slow.at_work.wait(WAITED)
        for value in (2, 3):
            engine.push(STREAM, [texts("a", value)], time=1)
            assert [int(result.bindings["v"]) for result in others.results()][-1] == value
        engine.push_batch(STREAM, table([(1, "a", 4)]))
        engine.advance(2)
        assert engine.statistics.elements == 4
        assert query.nbytes > 0 and "blank nodes" in query.explain()
        assert slow.got == [1]
        slow.go_on.set()

    together(first, push)
    assert slow.got == [1, 2, 3, 4]
    assert len(set(slow.threads)) == 1


def test_a_query_that_leaves_gets_nothing_that_another_thread_has_left_to_it() -> None:
    engine = Engine()
    slow = Slow()
    query = engine.register(LATEST)
    query.subscribe(slow)

    def push() -> None:
        assert slow.at_work.wait(WAITED)
        engine.push(STREAM, [texts("a", 2)], time=1)
        engine.unregister(query)
        slow.go_on.set()

    together(lambda: engine.push(STREAM, [texts("a", 1)], time=1), push)
    assert slow.got == [1]


def test_an_engine_that_is_finished_waits_for_a_slow_subscriber() -> None:
    engine = Engine()
    slow = Slow()
    engine.register(LATEST).subscribe(slow)

    def finish() -> None:
        assert slow.at_work.wait(WAITED)
        engine.push(STREAM, [texts("a", 2)], time=1)
        threading.Timer(0.05, slow.go_on.set).start()
        engine.finish()
        assert slow.got == [1, 2]

    together(lambda: engine.push(STREAM, [texts("a", 1)], time=1), finish)


def test_a_slow_subscriber_may_push_and_leave_while_another_thread_runs(tmp_path: Path) -> None:
    """The run has its turn, and the subscriber does not wait for it."""
    engine = Engine()
    query, count = engine.register(LATEST), engine.register(COUNT.replace("COUNT 2", "ALL"))
    pushed, running = threading.Event(), threading.Event()

    def subscriber(result: Result) -> None:
        pushed.set()
        assert running.wait(WAITED)
        engine.push(STREAM, [texts("b", 9)], time=1)
        engine.flush()
        engine.unregister(query)
        left.set()

    left = threading.Event()
    query.subscribe(subscriber)

    def run() -> None:
        assert pushed.wait(WAITED)

        def look(_: object) -> None:
            running.set()
            assert left.wait(WAITED)

        engine.run({STREAM: table([(1, "a", 2), (1, "a", 3)])}, progress=look)

    together(lambda: engine.push(STREAM, [texts("a", 1)], time=1), run)
    assert int([*count.results()][-1].bindings["n"]) >= 3


def test_what_a_subscriber_decodes_stays_known_while_another_thread_releases_terms(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("cqels_py.runners.local._COLLECT_FROM", 50)
    engine = Engine()
    query = engine.register(LATEST)
    at_work, go_on = threading.Event(), threading.Event()
    found: list[str | None] = []

    def decode(batch: ResultBatch) -> None:
        at_work.set()
        assert go_on.wait(WAITED)
        found.extend(engine.dictionary.decode(batch.columns[0]))

    query.subscribe_batches(decode, ids=True)

    def push() -> None:
        assert at_work.wait(WAITED)
        for k in range(1, 500):
            engine.push(STREAM, [texts(f"x{k}", k)], time=1)
        go_on.set()

    together(lambda: engine.push(STREAM, [texts("x0", 0)], time=1), push)
    assert found == [iri(f"x{k}") for k in range(500)]


def test_a_table_is_one_call() -> None:
    engine = Engine()
    query = engine.register(VALUES)
    together(*[lambda: engine.push_batch(STREAM, table([(1, "a", k) for k in range(50)]))] * 4)
    assert [int(result.bindings["v"]) for result in query.results()] == [*range(50)] * 4


def test_other_threads_use_the_engine_while_the_kernels_of_a_query_are_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = Engine()
    asked: list[int] = []

    def compile_long(calls: Sequence[object]) -> int:
        together(engine.flush, lambda: engine.advance(1))
        asked.append(len(calls))
        return 0

    monkeypatch.setattr(registering, "prepare", compile_long)
    engine.register(LATEST)
    assert len(asked) == 1 and asked[0] > 10
