"""Results that nobody takes: there is a bound, and none of them is lost."""

from __future__ import annotations

from typing import Any

import pytest

from cqels_py.engine.engine import Engine
from cqels_py.errors import RunError, UsageError
from tests.engine.test_engine import OTHER, STREAM, VALUES, table, texts

LATEST = VALUES.replace("RANGE 4us", "COUNT 1")
FULL = "more than 3 results of a query wait, and no more elements are taken in"


def values(query: Any) -> list[int]:
    return [int(result.bindings["v"]) for result in query.results()]


@pytest.fixture
def engine() -> Engine:
    return Engine(max_waiting=3)


def test_no_more_elements_are_taken_in_until_results_are(engine: Engine) -> None:
    query = engine.register(LATEST)
    for value in range(4):
        engine.push(STREAM, [texts("a", value)], time=1)
    for _ in range(2):
        with pytest.raises(RunError, match=FULL):
            engine.push(STREAM, [texts("a", 9)], time=1)
    with pytest.raises(RunError, match=FULL):
        engine.push_batch(STREAM, table([(2, "a", 9)]))
    with pytest.raises(RunError, match=FULL):
        engine.advance(9)
    assert engine.statistics.elements == 4
    assert int(next(query.results()).bindings["v"]) == 0
    engine.push(STREAM, [texts("a", 4)], time=1)
    with pytest.raises(RunError, match=FULL):
        engine.push(STREAM, [texts("a", 9)], time=1)
    assert values(query) == [1, 2, 3, 4]
    engine.push(STREAM, [texts("a", 5)], time=1)
    assert values(query) == [5]


def test_one_step_may_have_more(engine: Engine) -> None:
    query = engine.register(LATEST)
    engine.push_batch(STREAM, table([(1, "a", value) for value in range(10)]))
    with pytest.raises(RunError, match=FULL):
        engine.push(STREAM, [texts("a", 10)], time=1)
    assert values(query) == list(range(10))


def test_a_run_ends_and_the_engine_can_be_used_on(engine: Engine) -> None:
    engine = Engine(max_waiting=3, batch=2)
    query = engine.register(LATEST)
    with pytest.raises(RunError, match=FULL):
        engine.run({STREAM: table([(time, "a", time) for time in range(10)])})
    assert values(query) == [0, 1, 2, 3]
    engine.push_batch(STREAM, table([(20, "a", 20)]))
    assert values(query) == [20]


@pytest.mark.parametrize("way", ["subscribe", "subscribe_batches", "unregister"])
def test_other_ways_to_go_on(way: str, engine: Engine) -> None:
    query = engine.register(LATEST)
    other = engine.register(LATEST.replace(":s [", ":t ["))
    for value in range(4):
        engine.push(STREAM, [texts("a", value)], time=1)
    got: list[Any] = []
    engine.unregister(query) if way == "unregister" else getattr(query, way)(got.append)
    assert len(got) == (0 if way == "unregister" else 4)
    engine.push(OTHER, [texts("a", 4)], time=1)
    assert values(other) == [4]


def test_the_end_may_always_come(engine: Engine) -> None:
    query = engine.register(VALUES.replace("4us", "9us STEP 9us"))
    engine.push_batch(STREAM, table([(1, "a", value) for value in range(10)]))
    engine.finish()
    assert len(values(query)) == 10


@pytest.mark.parametrize(("most", "message"), [(0, "1 or more results, not 0"), ("many", "an integer of results")])
def test_bounds_that_make_no_sense(most: Any, message: str) -> None:
    with pytest.raises(UsageError, match=f"max_waiting is {message}"):
        Engine(max_waiting=most)
