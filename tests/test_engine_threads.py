"""One engine, several threads: calls are executed one after another, and none waits forever."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

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
        with pytest.raises(Exception, match="streams have ended"):
            engine.push(STREAM, [texts("b", 1)], time=1)

    together(run, take, push)
    assert seen
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


def test_a_table_is_one_call() -> None:
    engine = Engine()
    query = engine.register(VALUES)
    together(*[lambda: engine.push_batch(STREAM, table([(1, "a", k) for k in range(50)]))] * 4)
    assert [int(result.bindings["v"]) for result in query.results()] == [*range(50)] * 4
