"""Where all windows have a STEP, elements wait for a boundary, and nobody can tell."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from cqels_py.batches.elements import ElementBatch
from cqels_py.dataflow import step_program
from cqels_py.engine.engine import Engine
from cqels_py.engine.query import Query
from cqels_py.event_time.windows import Bounds, Measure
from cqels_py.runners.step_waiting import MOST_SINGLY, MOST_WAITING, WaitingElements

STREAMS = ("http://ex.org/s", "http://ex.org/t")
QUERIES = (
    "SELECT ?a (COUNT(*) AS ?n) (SUM(?v) AS ?x) WHERE { STREAM :s [RANGE 4us STEP 2us] { ?a :v ?v } } GROUP BY ?a",
    "SELECT ?a ?v ?w WHERE { STREAM :s [RANGE 3us STEP 3us START 1970-01-01T00:00:00.000001Z] { ?a :v ?v } "
    "STREAM :t [FROM NOW-4us TO NOW-1us STEP 2us] { ?a :v ?w } }",
    "REGISTER RSTREAM :r AS SELECT ?a FROM NAMED WINDOW :w ON :s [RANGE PT0.000005S STEP PT0.000002S] "
    "WHERE { WINDOW :w { ?a :v ?v } }",
    "SELECT ?a ?c WHERE { STREAM :t [SESSION 2us STEP 2us] { ?a :v ?v } OPTIONAL { ?a :color ?c } }",
)
CHANGES_BETWEEN = (
    "SELECT ?a WHERE { STREAM :s [RANGE 3us] { ?a :v ?v } }",
    "SELECT ?a WHERE { STREAM :s [COUNT 4 STEP 2] { ?a :v ?v } }",
)


def elements(*times: int, stream: int = 0) -> ElementBatch:
    one = np.arange(len(times), dtype=np.int64)
    first = np.arange(len(times) + 1, dtype=np.int64)
    return ElementBatch(np.array(times, np.int64), np.full(len(times), stream, np.int32), first, one, one, one)


def times(batch: ElementBatch | None) -> list[int] | None:
    return None if batch is None else batch.time.tolist()


def test_elements_up_to_the_next_boundary_wait() -> None:
    waiting = WaitingElements({(0,): [Bounds(Measure.TIME, 10, 5), Bounds(Measure.TIME, 8, 4)]})
    assert times(waiting.add(elements(1))) == [1]
    assert waiting.add(elements(2, 3)) is None
    assert waiting.add(elements(4)) is None
    assert times(waiting.add(elements(5))) == [2, 3, 4, 5]
    assert times(waiting.add(elements(6))) == [6]
    assert waiting.add(elements(7)) is None
    assert times(waiting.take()) == [7]
    assert len(waiting) == 0


def test_time_moves_on_for_a_query_with_its_own_streams() -> None:
    waiting = WaitingElements({(0,): [Bounds(Measure.TIME, 4, 2)], (0, 1): [Bounds(Measure.TIME, 10, 10)]})
    assert times(waiting.add(elements(1))) == [1]
    assert waiting.add(elements(7, stream=1)) is None
    # The first query has not seen that two have passed.
    assert times(waiting.add(elements(8))) == [7, 8]
    assert waiting.add(elements(8)) is None
    assert waiting.add(elements(9, 10, stream=1)) is None
    assert times(waiting.add(elements(11, stream=1))) == [8, 9, 10, 11]


def test_elements_of_a_stream_that_nobody_reads_any_longer_wait_with_others() -> None:
    waiting = WaitingElements({(0,): [Bounds(Measure.TIME, 10, 5)]})
    assert times(waiting.add(elements(1))) == [1]
    assert waiting.add(elements(9, stream=3)) is None
    assert times(waiting.add(elements(9))) == [9, 9]


def test_so_many_wait_at_most() -> None:
    waiting = WaitingElements({(0,): [Bounds(Measure.TIME, 10, 5)]})
    waiting.add(elements(1))
    assert waiting.add(elements(*[2] * (MOST_WAITING - 1))) is None
    taken = waiting.add(elements(2))
    assert taken is not None
    assert len(taken.time) == MOST_WAITING


@pytest.mark.parametrize(
    "bounds",
    [(), (Bounds(Measure.TIME, 10),), (Bounds(Measure.ELEMENTS, 4, 2), Bounds(Measure.TIME, 10, 5))],
    ids=["no window", "no step", "counted"],
)
def test_none_waits_where_windows_change_between_boundaries(bounds: tuple[Bounds, ...]) -> None:
    waiting = WaitingElements({(0,): bounds} if bounds else {})
    assert [times(waiting.add(elements(time))) for time in (1, 2, 3)] == [[1], [2], [3]]


def test_elements_pass_one_by_one_while_few_come_between_two_boundaries() -> None:
    waiting = WaitingElements({(0,): [Bounds(Measure.TIME, 1_000, 100)]})
    assert times(waiting.add(elements(1))) == [1]
    assert waiting.add(elements(2, 3)) is None
    assert not waiting.lets_pass()
    assert times(waiting.add(elements(101))) == [2, 3, 101]
    assert waiting.lets_pass() and not waiting.takes(0, 102)
    for time in range(102, 102 + MOST_SINGLY):
        waiting.pass_by(0, time)
    assert waiting.lets_pass()
    waiting.pass_by(0, 199)
    # There are many after all: the next ones wait, until few have come between two boundaries.
    assert not waiting.lets_pass() and waiting.takes(0, 200) and not waiting.takes(0, 201)
    assert times(waiting.add(elements(201))) == [201]
    assert not waiting.lets_pass()
    assert times(waiting.add(elements(301))) == [301]
    assert waiting.lets_pass()
    waiting.pass_by(0, 401)
    assert waiting.add(elements(402)) is None
    # None overtakes one that waits.
    assert not waiting.lets_pass()


class Pair:
    """Two engines that are told the same; in the second no element waits."""

    def __init__(self, lateness: int) -> None:
        self.engines = [Engine(lateness=lateness, on_error="skip", report=lambda _: None) for _ in range(2)]
        self.engines[1]._runner._may_wait = False
        self.queries: list[list[Query]] = []
        self.steps = [0, 0]
        for number, engine in enumerate(self.engines):
            self._count_steps(number, engine._runner.pool)

    def _count_steps(self, number: int, pool: Any) -> None:
        # Each step closes the pool for queries that are registered later.
        close = pool.close

        def counted() -> None:
            self.steps[number] += 1
            close()

        pool.close = counted

    def register(self, text: str) -> None:
        static = b'<http://ex.org/a0> <http://ex.org/color> "red" .'
        self.queries.append(
            [
                engine.register("PREFIX : <http://ex.org/>\n" + text, static=[static], changelog="REGISTER" not in text)
                for engine in self.engines
            ]
        )

    def call(self, method: str, *given: Any, **named: Any) -> None:
        for engine in self.engines:
            getattr(engine, method)(*given, **named)

    def check(self) -> int:
        found = [
            [sorted((r.time, r.sign, str(r.bindings)) for r in query.results()) for query in queries]
            for queries in zip(*self.queries, strict=True)
        ]
        assert found[0] == found[1]
        assert self.engines[0].statistics == self.engines[1].statistics
        return sum(map(len, found[0]))


def drawn(seed: int, texts: tuple[str, ...], later: tuple[str, ...] = QUERIES) -> tuple[Pair, int]:
    draw = random.Random(seed)
    pair, now, results = Pair(draw.choice([0, 2])), 0, 0
    for text in texts:
        pair.register(text)
    for _ in range(120):
        now += draw.choice([0, 0, 0, 0, 1, 1, 2, 9])
        match draw.randrange(30):
            case 0:
                pair.register(draw.choice(later))
            case 1:
                pair.call("advance", now)
            case 2:
                pair.call("flush")
            case 3 if len(pair.queries) > 1:
                for engine, query in zip(pair.engines, pair.queries.pop(), strict=True):
                    engine.unregister(query)
            case 4:
                for engine, query in zip(pair.engines, pair.queries[0], strict=True):
                    engine.update_static(query, static=[b'<http://ex.org/a1> <http://ex.org/color> "blue" .'])
            case _:
                stream = draw.choice([each for each in STREAMS if each in pair.engines[0]._registry.streams.numbers])
                value = f'"{draw.randrange(3)}"^^<http://www.w3.org/2001/XMLSchema#integer>'
                subject = f"<http://ex.org/a{draw.randrange(3)}>"
                # Some are late; of one in twenty the object is no term.
                value = value if draw.randrange(20) else "no term"
                time = now - draw.choice([0, 0, 0, 1, 3])
                pair.call("push", stream, [(subject, "<http://ex.org/v>", value)], time=time)
        results += pair.check()
    pair.call("finish")
    return pair, results + pair.check()


@pytest.mark.parametrize("mode", ["calls", "program"])
@pytest.mark.parametrize("seed", range(6))
def test_results_come_at_the_same_call(seed: int, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(step_program.CALLS, mode)
    pair, results = drawn(seed, QUERIES if seed % 2 else QUERIES[seed // 2 : seed // 2 + 1])
    assert results > 5
    # Steps of a program are not counted.
    assert mode == "program" or pair.steps[0] < pair.steps[1]


@pytest.mark.parametrize("other", CHANGES_BETWEEN)
def test_one_query_over_the_streams_that_changes_between_boundaries_is_enough_for_none_to_wait(other: str) -> None:
    pair, _ = drawn(1, (other, QUERIES[0]), QUERIES[:1])
    assert pair.steps[0] == pair.steps[1]


def test_elements_of_a_query_that_feeds_another_do_not_wait() -> None:
    pair = Pair(0)
    pair.register("REGISTER STREAM :t AS CONSTRUCT { ?a :v ?v } WHERE { STREAM :s [RANGE 2us STEP 2us] { ?a :v ?v } }")
    pair.register("SELECT ?a WHERE { STREAM :t [RANGE 4us STEP 4us] { ?a :v ?v } }")
    for time in range(9):
        pair.call("push", STREAMS[0], [("<http://ex.org/a>", "<http://ex.org/v>", f'"{time}"')], time=time)
    assert pair.steps[0] == pair.steps[1]


def test_bytes_are_those_of_the_most_that_ever_waited() -> None:
    waiting = WaitingElements({})
    waiting.may_wait = True
    waiting._boundary[:] = 1_000
    assert waiting.nbytes == 0
    batch = _one_triple(10)
    sizes = []
    for count in (2, 3, 1):
        for _ in range(count):
            assert waiting.add(batch) is None
        sizes.append(waiting.nbytes)
        waiting.take()
        assert waiting.nbytes == sizes[-1]
    columns = (batch.time, batch.stream, batch.first, batch.subject, batch.predicate, batch.object)
    assert sizes[0] == 2 * sum(column.nbytes for column in columns)
    assert sizes[2] == sizes[1] == sizes[0] // 2 * 3


def _one_triple(time: int) -> ElementBatch:
    term = np.ones(1, np.int64)
    return ElementBatch(np.array([time]), np.zeros(1, np.int32), np.array([0, 1]), term, term, term)
