"""The short way of single pushes gives what the long way gives, whatever subscribers, queries and elements do meanwhile."""

from __future__ import annotations

import errno
import gc
import random
import signal
import threading
import weakref
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import cqels_py as cqels
from cqels_py.checkpoints import durable_files
from cqels_py.checkpoints.durable_files import StorageError
from cqels_py.dataflow import step_program
from cqels_py.engine.engine import Engine
from cqels_py.engine.single_push import SinglePush

EX, SECOND, BEGIN = "http://ex.org/", 1_000_000, 1_700_000_000_000_000
A, B = f"{EX}a", f"{EX}b"
ONE = f"PREFIX : <{EX}> SELECT ?k ?x WHERE {{ STREAM :a [RANGE 10s] {{ ?k :p ?x }} FILTER(?x > 3) }}"
TWO = f"PREFIX : <{EX}> SELECT ?k ?x ?y WHERE {{ STREAM :a [RANGE 5s] {{ ?k :p ?x }} STREAM :b [RANGE 5s] {{ ?k :p ?y }} }}"
KINDS = (ONE, TWO, ONE.replace("RANGE 10s", "RANGE 3s"))


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each push that tried the short way, whether it took it."""
    found: list[bool] = []
    push = SinglePush.push

    def noted(single: SinglePush, triples: Any, time: Any) -> bool:
        found.append(push(single, triples, time))
        return found[-1]

    monkeypatch.setattr(SinglePush, "push", noted)
    return found


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each element of an engine with a checkpoint that tried the short way, whether it took it."""
    found: list[bool] = []
    keep = SinglePush._keep

    def noted(*given: Any) -> bool:
        found.append(keep(*given))
        return found[-1]

    monkeypatch.setattr(SinglePush, "_keep", noted)
    return found


def triple(key: int, value: object) -> tuple[str, str, str]:
    return f"<{EX}k{key}>", f"<{EX}p>", f'"{value}"^^<http://www.w3.org/2001/XMLSchema#integer>'


class Drawn:
    """An engine, and calls of it that are drawn: what happens in them is in `log`."""

    def __init__(self, seed: int, **options: Any) -> None:
        self._drawn, self._time = random.Random(seed), BEGIN
        self.log: list[Any] = []
        self.engine = cqels.Engine(on_error="skip", report=lambda error: self.log.append(str(error)), **options)
        self._queries: list[cqels.Query] = []
        self._pushes = self._registered = 0
        self._register()

    def run(self, calls: int) -> list[Any]:
        for _ in range(calls):
            call = self._drawn.choices(
                (self._push, self._late, self._wrong, self._register, self._unregister, self._advance, self._several),
                (80, 3, 2, 1, 4, 2, 3),
            )[0]
            try:
                call()
            except (ValueError, cqels.CqelsError) as error:
                self.log.append(f"{type(error).__name__}: {error} {getattr(error, '__notes__', '')}")
        statistics = self.engine.statistics
        self.engine.finish()
        return [*self.log, statistics, self.engine.statistics]

    def _element(self) -> tuple[str, list[tuple[str, str, str]]]:
        return self._drawn.choice((A, A, B)), [triple(self._drawn.randrange(4), self._drawn.randrange(9))]

    def _push(self) -> None:
        self._time += self._drawn.choice((0, 10, SECOND // 2, SECOND))
        stream, triples = self._element()
        self.engine.push(stream, triples, time=self._time)

    def _late(self) -> None:
        self.engine.push(*self._element(), time=self._time - SECOND)

    def _wrong(self) -> None:
        self.engine.push(A, [(f"<{EX}k>", '"no predicate"', "<x")], time=self._time)

    def _several(self) -> None:
        self.engine.push(A, [triple(1, 4), triple(2, 5)], time=self._time)

    def _advance(self) -> None:
        self._time += 2 * SECOND
        self.engine.advance(self._time)

    def _register(self) -> None:
        if len(self._queries) < 3:
            self._registered += 1
            text, changelog = self._drawn.choice(KINDS), self._drawn.random() < 0.5
            query = self.engine.register(text, changelog=changelog, name=str(self._registered))
            self._queries.append(query)
            self._subscribe(query, f"query {len(self.log)}")

    def _subscribe(self, query: cqels.Query, name: str) -> None:
        odd = self._drawn.choice((None, self._pushing, self._raising, self._leaving))
        every = self._drawn.randrange(3, 20)
        count = 0

        def take(result: cqels.Result) -> None:
            nonlocal count
            count += 1
            shown = {variable: str(term) for variable, term in result.bindings.items()}
            self.log.append((name, result.number, result.time - BEGIN, result.sign, shown))
            if odd is not None and count % every == 0:
                odd(query)

        # No batches: how results are divided into them is not the same.
        query.subscribe(take)

    def _pushing(self, query: cqels.Query) -> None:
        # Its results may make it push again.
        self._pushes += 1
        if self._pushes < 60:
            self.engine.push(*self._element(), time=self._time)

    def _raising(self, query: cqels.Query) -> None:
        raise ValueError("of a subscriber")

    def _leaving(self, query: cqels.Query) -> None:
        if query in self._queries and len(self._queries) > 1:
            self._queries.remove(query)
            self.engine.unregister(query)

    def _unregister(self) -> None:
        if len(self._queries) > 1:
            self.engine.unregister(self._queries.pop(0))


@pytest.mark.parametrize("seed", range(12))
def test_drawn_calls_do_what_they_do_by_the_long_way(
    seed: int, short: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(step_program.CALLS, "calls")
    expected = Drawn(seed).run(250)
    assert not short, "without a program there is no short way"
    monkeypatch.setenv(step_program.CALLS, "program")
    found = Drawn(seed).run(250)
    assert found == expected
    assert len(found) > 100 and any(short)


@pytest.mark.parametrize("seed", range(6))
def test_with_a_checkpoint_drawn_calls_do_what_they_do_by_the_long_way(
    seed: int, kept: list[bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(SinglePush, "_keep", lambda *given: False)
        expected = Drawn(seed, checkpoint=tmp_path / "long", durable="off").run(200)
    assert not kept
    found = Drawn(seed, checkpoint=tmp_path / "short", durable="off").run(200)
    assert found == expected
    assert len(found) > 80 and kept.count(True) > 40


def test_elements_of_the_short_way_are_there_after_a_restart(kept: list[bool], tmp_path: Path) -> None:
    text = f"PREFIX : <{EX}> SELECT ?k ?p ?x WHERE {{ STREAM :a [RANGE 10s] {{ ?k ?p ?x }} }}"
    terms = ['"5"', '"05"^^<http://www.w3.org/2001/XMLSchema#integer>', "_:b", '"tür"@de', "<http://ex.org/o>", '"_:"']
    pushed = [[(f"<{EX}k{at % 3}>", f"<{EX}p>", terms[at % 6]), triple(at % 2, at)][: 1 + at % 2] for at in range(24)]

    def answer(folder: Path, restarts: int) -> Any:
        # Results come again after a restart, with the same numbers.
        found: dict[int, Any] = {}
        engine = cqels.Engine(checkpoint=folder, durable="off")
        query = engine.register(text, name="one")
        for at, triples in enumerate(pushed):
            if restarts and at % restarts == 0:
                engine.close()
                engine = cqels.Engine(checkpoint=folder, durable="off")
                query = engine.register(text, name="one")
            engine.push(A, triples, time=BEGIN + at * SECOND)
            for result in query.results():
                made = result.time, *map(str, result.bindings.values())
                assert found.setdefault(result.number, made) == made
        return found, engine.statistics.elements

    expected = answer(tmp_path / "without", 0)
    assert len(expected[0]) == 36
    # Blank nodes, and what looks like them, take the long way.
    assert kept.count(True) > 10 and kept.count(False) > 5
    assert answer(tmp_path / "with", 5) == expected


def begun(query: str = ONE, **options: Any) -> tuple[cqels.Engine, cqels.Query]:
    """An engine that is ready for the short way."""
    engine = cqels.Engine(**options)
    registered = engine.register(query)
    for at in range(3):
        for stream in registered.streams:
            engine.push(stream, [triple(1, 5)], time=BEGIN + at)
    list(registered.results())
    return engine, registered


def test_usual_elements_take_the_short_way(short: list[bool]) -> None:
    engine, _ = begun(TWO)
    short.clear()
    for at in range(10):
        engine.push((A, B)[at % 2], [triple(at, 5)], time=BEGIN + SECOND + at)
    assert short == [True] * 10
    assert engine.statistics.elements == 16


@pytest.mark.parametrize(
    ("triples", "time", "tried"),
    [
        ((triple(1, 5),), BEGIN + SECOND, [False]),
        ([triple(1, 5)], "2023-11-14T22:13:21Z", [False]),
        ([(f"<{EX}k>", f"<{EX}p>", "\ud800")], BEGIN + SECOND, [False]),
        ([triple(1, 5)], BEGIN - 1, [True]),
        ([(f"<{EX}k>", f"<{EX}p>", "no term")], BEGIN + SECOND, []),
        ([(f"<{EX}k>", f"<{EX}p>", '"a\nb"')], BEGIN + SECOND, [False]),
    ],
)
def test_unusual_elements_do_what_they_do_by_the_long_way(
    triples: Any, time: Any, tried: list[bool], short: list[bool]
) -> None:
    def answer(engine: cqels.Engine) -> Any:
        try:
            engine.push(A, triples, time=time)
        except cqels.CqelsError as error:
            return type(error), str(error)
        return engine.statistics

    engine, _ = begun()
    short.clear()
    found = answer(engine)
    assert short == tried
    other, _ = begun()
    other._singles.clear()
    assert answer(other) == found


ROW = (BEGIN + SECOND, *triple(1, 5))


@pytest.mark.parametrize(
    ("row", "schema", "is_taken"),
    [
        (ROW, {}, True),
        ((BEGIN + SECOND, f"<{EX}k>", f"<{EX}p>", '"tür"@de'), {}, True),
        (ROW, {"time": pa.timestamp("us"), "object": pa.large_string()}, True),
        ((BEGIN + SECOND, f"{EX}k", f"<{EX}p>", "<http://ex.org/o>"), {}, False),
        ((BEGIN + SECOND, "_:b", f"<{EX}p>", "<http://ex.org/o>"), {}, False),
        ((BEGIN + SECOND, f"<{EX}k>", f"<{EX}p>", "no term"), {}, False),
        ((BEGIN + SECOND, f"<{EX}k>", f"<{EX}p>", '"a\nb"'), {}, False),
        ((BEGIN + SECOND, f"<{EX}k>", f"<{EX}p>", "<no iri>"), {}, False),
        ((BEGIN + SECOND, f"<{EX}k>", f"<{EX}p>", None), {}, False),
        ((None, *triple(1, 5)), {}, False),
        ((BEGIN - 1, *triple(1, 5)), {}, False),
        ((1, *triple(1, 5)), {}, False),
        ((BEGIN // SECOND, *triple(1, 5)), {"time": pa.timestamp("s")}, False),
    ],
)
@pytest.mark.parametrize("kind", [pa.table, pa.record_batch])
def test_tables_of_one_row_do_what_they_do_by_the_long_way(
    row: Any, schema: dict[str, Any], is_taken: bool, kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    types = {"time": pa.int64(), "subject": pa.string(), "predicate": pa.string(), "object": pa.string(), **schema}
    # In another order of columns.
    names = ["object", "time", "subject", "predicate"]
    values = dict(zip(types, row, strict=True))
    table = kind({name: pa.array([values[name]], types[name]) for name in names})
    tried: list[bool] = []
    push_row = SinglePush.push_row

    def noted(single: SinglePush, given: Any) -> bool:
        tried.append(push_row(single, given))
        return tried[-1]

    monkeypatch.setattr(SinglePush, "push_row", noted)

    def answer(*, by_short_way: bool) -> Any:
        engine, query = begun(ONE.replace("FILTER(?x > 3)", ""))
        if not by_short_way:
            engine._singles.clear()
            monkeypatch.setattr(Engine, "_pushed_row", lambda *given: False)
        for _ in range(2):
            try:
                engine.push_batch(A, table)
            except cqels.CqelsError as error:
                return type(error), str(error)
        return engine.statistics, [
            (result.time, result.number, *result.bindings.values()) for result in query.results()
        ]

    found = answer(by_short_way=True)
    assert tried and set(tried) == {is_taken}
    assert answer(by_short_way=False) == found


def test_an_engine_that_has_ended_takes_in_nothing(short: list[bool]) -> None:
    engine, _ = begun()
    engine.close()
    with pytest.raises(cqels.CqelsError, match="has been closed"):
        engine.push(A, [triple(1, 5)], time=BEGIN + SECOND)
    assert short[-1] is False


def test_an_error_in_a_step_stops_the_query(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, query = begun()

    def broken(*_: object) -> None:
        raise ZeroDivisionError("of a step")

    monkeypatch.setattr(step_program.StepProgram, "step", broken)
    with pytest.raises(
        cqels.RunError, match=r"has been stopped: an error in its evaluation \(ZeroDivisionError: of a step\)"
    ):
        engine.push(A, [triple(1, 5)], time=BEGIN + SECOND)
    assert engine.queries == () and query.nbytes == 0
    other = engine.register(ONE)
    engine.push(A, [triple(1, 5)], time=BEGIN + SECOND)
    assert other.waiting == 1


def test_a_query_without_memory_leaves_and_the_engine_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, query = begun()

    def broken(*_: object) -> None:
        raise MemoryError("no room")

    monkeypatch.setattr(step_program.StepProgram, "step", broken)
    with pytest.raises(cqels.CqelsError, match="has run out of memory"):
        engine.push(A, [triple(1, 5)], time=BEGIN + SECOND)
    assert engine.queries == () and query.nbytes == 0
    other = engine.register(ONE)
    engine.push(A, [triple(1, 5)], time=BEGIN + SECOND)
    assert other.waiting == 1


def test_while_too_many_results_wait_nothing_is_taken_in() -> None:
    engine = cqels.Engine(max_waiting=5)
    query = engine.register(ONE)
    with pytest.raises(cqels.CqelsError, match="more than 5 results of a query wait"):
        for at in range(9):
            engine.push(A, [triple(1, 5)], time=BEGIN + at)
    assert query.waiting == 6
    list(query.results())
    engine.push(A, [triple(1, 5)], time=BEGIN + SECOND)
    assert query.waiting == 1


def test_threads_push_at_the_same_time_while_a_subscriber_pushes(short: list[bool]) -> None:
    engine, query = begun()
    numbers: list[int] = []

    def take(result: cqels.Result) -> None:
        numbers.append(result.number)
        if result.number % 50 == 0 and len(numbers) < 900:
            engine.push(A, [triple(7, 8)], time=BEGIN + SECOND)

    query.subscribe(take)

    def push(key: int) -> None:
        for _ in range(200):
            engine.push(A, [triple(key, 5)], time=BEGIN + SECOND)

    threads = [threading.Thread(target=push, args=(key,)) for key in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(numbers) == engine.statistics.results - 3 > 600
    assert numbers == [*range(4, 4 + len(numbers))]
    assert any(short)


def test_an_interrupt_in_a_step_is_raised_after_its_delivery() -> None:
    engine, query = begun()
    found: list[int] = []

    def take(result: cqels.Result) -> None:
        found.append(result.number)
        signal.raise_signal(signal.SIGINT)

    query.subscribe(take)
    query.subscribe(lambda result: found.append(-result.number))
    with pytest.raises(KeyboardInterrupt):
        engine.push(A, [triple(1, 5)], time=BEGIN + SECOND)
    assert found == [4, -4]
    assert engine.statistics.elements == 4


def test_the_state_of_a_query_that_has_left_is_freed() -> None:
    engine, query = begun()
    assert query._dataflow is not None
    state = weakref.ref(query._dataflow)
    engine.unregister(query)
    gc.collect()
    assert state() is None


def test_an_element_that_cannot_be_logged_leaves_no_trace(
    tmp_path: Path, kept: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, query = begun(checkpoint=tmp_path, durable="off", ahead=SECOND)
    assert kept[-1]
    before = engine.statistics
    with monkeypatch.context() as patch:
        patch.setattr(durable_files, "append", _full)
        with pytest.raises(StorageError, match="nothing was taken in"):
            engine.push(A, [triple(1, 5)], time=BEGIN + SECOND)
    assert engine.statistics == before
    # It is too far ahead of those that were taken in, but not of the one that was not.
    engine.push(A, [triple(2, 5)], time=BEGIN + 2 * SECOND)
    assert engine.statistics.ahead == 1
    engine.push(A, [triple(3, 5)], time=BEGIN + SECOND)
    assert [str(result.bindings["k"]) for result in query.results()] == [f"{EX}k3"]


def _full(*given: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")
