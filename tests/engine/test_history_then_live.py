"""History, then live input, on the same windows; and time that begins, or goes on, without elements."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from cqels_py.engine.engine import Engine, Query
from cqels_py.errors import UsageError

STREAM, OTHER = "http://example.org/one", "http://example.org/other"
PREFIX = "PREFIX : <http://example.org/>"
SECOND = 1_000_000
SENSORS = b"<http://example.org/k0> <http://example.org/kind> <http://example.org/Sensor> ."
EAGER = [
    f"{PREFIX} SELECT * {{ STREAM :one [RANGE 4s] {{ ?s :p ?v }} }}",
    f"{PREFIX} SELECT ?s (AVG(?v) AS ?mean) {{ STREAM :one [RANGE 3s] {{ ?s :p ?v }} }} GROUP BY ?s",
    f"{PREFIX} SELECT * {{ STREAM :one [RANGE 4s] {{ ?s :p ?v }} STREAM :other [COUNT 3] {{ ?s :p ?w }} }}",
    f"{PREFIX} SELECT (COUNT(*) AS ?n) {{ STREAM :one [SESSION 2s] {{ ?s :p ?v }} }}",
    f"{PREFIX} SELECT (COUNT(*) AS ?n) {{ STREAM :one [SESSION 2s PARTITION BY ?s] {{ ?s :p ?v }} }}",
    f"{PREFIX} SELECT * {{ MATCH WITHIN 5s {{ EVENT ON :one {{ ?s :p ?v }} SEQ EVENT ON :other {{ ?s :p ?w }} }} }}",
    f"{PREFIX} RULES ON :one {{ RULE {{ ?s a :Busy }} FOR [0s, 2s] WHERE {{ ?s :p ?v }} }} SELECT ?s {{ STATE {{ ?s a :Busy }} }}",
]
STEPPED = [
    f"{PREFIX} SELECT * {{ STREAM :one [RANGE 4s STEP 2s] {{ ?s :p ?v }} }}",
    f"{PREFIX} SELECT (SUM(?v) AS ?n) {{ STREAM :one [RANGE 6s STEP 3s] {{ ?s :p ?v }} }}",
    f"{PREFIX} SELECT * {{ STREAM :one [RANGE 4s STEP 2s] {{ ?s :p ?v }} STREAM :other [RANGE 9s STEP 3s] {{ ?s :p ?w }} }}",
]
MIXED = [
    f"{PREFIX} SELECT * {{ STREAM :one [RANGE 4s] {{ ?s :p ?v }} STREAM :other [RANGE 9s STEP 3s] {{ ?s :p ?w }} }}",
    f"{PREFIX} SELECT ?s (COUNT(?v) AS ?n) {{ STREAM :one [RANGE 3s] {{ ?s :p ?v }} "
    "STREAM :other [RANGE 9s STEP 7s] { ?s :p ?w } } GROUP BY ?s",
]
Element = tuple[str, int, int, int]


def trace(seed: int, count: int = 60) -> list[Element]:
    """Stream, time, key and value of elements in order of time. No two streams have an element at the same instant."""
    rng, time, found = random.Random(seed), 0, []
    for _ in range(count):
        time += rng.choice([0, 300_000, SECOND, 2 * SECOND])
        stream = rng.choice([STREAM, OTHER])
        found.append((stream, time + 50_000 * (stream == OTHER), rng.randrange(3), rng.randrange(9)))
    found.sort(key=lambda each: each[1])
    return found


def table(elements: Sequence[Element], stream: str) -> pa.Table:
    mine = [each for each in elements if each[0] == stream]
    return pa.table(
        {
            "time": pa.array([time for _, time, _, _ in mine], pa.int64()),
            "subject": [f"<http://example.org/k{key}>" for _, _, key, _ in mine],
            "predicate": ["<http://example.org/p>"] * len(mine),
            "object": [f'"{value}"^^<http://www.w3.org/2001/XMLSchema#integer>' for *_, value in mine],
            "graph": [f"<http://example.org/g{number}>" for number in range(len(mine))],
        }
    )


def push(engine: Engine, elements: Sequence[Element]) -> None:
    for stream, time, key, value in elements:
        term = f'"{value}"^^<http://www.w3.org/2001/XMLSchema#integer>'
        engine.push(stream, [(f"<http://example.org/k{key}>", "<http://example.org/p>", term)], time=time)


def run(engine: Engine, elements: Sequence[Element], **how: Any) -> None:
    read = {stream for query in engine.queries for stream in query.streams}
    engine.run({stream: table(elements, stream) for stream in sorted(read)}, **how)


def told(query: Query) -> list[tuple[int, int, tuple[tuple[str, str], ...]]]:
    """Results in order; those of one instant in order of their text."""
    found = [
        (each.time, each.sign, tuple(sorted((k, str(v)) for k, v in each.bindings.items()))) for each in query.results()
    ]
    return sorted(found, key=lambda each: (each[0], str(each)))


def made(text: str, changelog: bool) -> tuple[Engine, Query]:
    engine = Engine()
    return engine, engine.register(text, changelog=changelog)


def mine(query: Query, elements: Sequence[Element]) -> list[Element]:
    return [each for each in elements if each[0] in query.streams]


@pytest.mark.parametrize("changelog", [False, True])
@pytest.mark.parametrize("text", [*EAGER, *STEPPED, *MIXED])
def test_history_that_is_followed_by_more_is_as_if_all_had_been_pushed(text: str, changelog: bool) -> None:
    for seed in range(3):
        elements = trace(seed)
        (one, query), (other, reference) = made(text, changelog), made(text, changelog)
        for part in (elements[:20], elements[20:33]):
            run(one, part, more=True)
        push(one, mine(query, elements[33:]))
        push(other, mine(reference, elements))
        one.finish()
        other.finish()
        found = told(query)
        assert found == told(reference)
        assert found


@pytest.mark.parametrize("changelog", [False, True])
@pytest.mark.parametrize("text", [*EAGER, *STEPPED])
def test_the_end_of_a_run_tells_as_an_advance_to_the_last_boundary_does(text: str, changelog: bool) -> None:
    for seed in range(3):
        elements = trace(seed)
        (one, query), (other, reference) = made(text, changelog), made(text, changelog)
        history = mine(query, elements[:30])
        last = history[-1][1]
        # 18 s are a multiple of every STEP: no later element is late.
        later = [(stream, time + 18 * SECOND, key, value) for stream, time, key, value in mine(query, elements[30:])]
        run(one, history)
        end = max(
            [last, *(-(-last // step) * step for step in (2 * SECOND, 3 * SECOND) if f"STEP {step // SECOND}s" in text)]
        )
        push(other, history)
        other.advance(end + 1)
        assert told(query) == told(reference)
        for engine in (one, other):
            push(engine, later)
            engine.finish()
        found = told(query)
        assert found == told(reference)
        assert found
        assert one.statistics.late == other.statistics.late == 0


@pytest.mark.parametrize("text", MIXED)
def test_expiries_before_the_boundary_that_a_run_tells_have_no_ticks_afterwards(text: str) -> None:
    for seed in range(3):
        elements = trace(seed)
        (one, query), (other, reference) = made(text, True), made(text, True)
        history = elements[:30]
        later = [(stream, time + 42 * SECOND, key, value) for stream, time, key, value in elements[30:]]
        run(one, history)
        times = [time for time, _, _ in told(query)]
        run(other, history, more=True)
        push(one, later)
        push(other, later)
        one.finish()
        other.finish()
        found = told(query)
        assert all(time > max(times) for time, _, _ in found)
        begin = later[0][1]
        assert [each for each in found if each[0] >= begin] == [each for each in told(reference) if each[0] >= begin]


def test_elements_up_to_the_instant_that_was_told_are_late() -> None:
    engine, query = made(STEPPED[1], False)
    run(engine, [(STREAM, 4 * SECOND, 0, 1)])
    assert [time for time, _, _ in told(query)] == [6 * SECOND]
    push(engine, [(STREAM, 6 * SECOND, 0, 2), (STREAM, 6 * SECOND + 1, 0, 4)])
    assert engine.statistics.late == 1
    engine.finish()
    assert told(query) == [(9 * SECOND, 1, (("n", "5"),))]


def test_finishing_after_a_run_tells_nothing_twice() -> None:
    for text in (EAGER[0], STEPPED[0], STEPPED[1], MIXED[0]):
        engine, query = made(text, True)
        run(engine, trace(1))
        assert told(query)
        engine.finish()
        assert told(query) == []


def test_queries_can_join_between_two_runs() -> None:
    engine, first = made(EAGER[0], False)
    run(engine, [(STREAM, SECOND, 0, 1)])
    second = engine.register(EAGER[0])
    run(engine, [(STREAM, 2 * SECOND, 1, 2)])
    assert [len(told(first)), len(told(second))] == [2, 1]


@pytest.mark.parametrize("text", [*EAGER[:3], *STEPPED])
def test_until_goes_on_to_an_instant_as_advance_does(text: str) -> None:
    for seed in range(2):
        elements = trace(seed)
        (one, query), (other, reference) = made(text, True), made(text, True)
        last = mine(query, elements)[-1][1]
        run(one, elements, until=last + 5 * SECOND)
        run(other, elements, more=True)
        other.advance(last + 5 * SECOND + 1)
        found = told(query)
        assert found == told(reference)
        assert all(time <= last + 5 * SECOND for time, _, _ in found)


def test_until_before_the_last_element_ends_as_always() -> None:
    (one, query), (other, reference) = made(STEPPED[1], False), made(STEPPED[1], False)
    run(one, trace(3), until=5)
    run(other, trace(3))
    found = told(query)
    assert found == told(reference)
    assert found


def test_until_within_the_lateness_loses_no_element() -> None:
    """Elements that still wait for the watermark are complete when the sources have ended."""
    elements = [(STREAM, second * SECOND, 0, second) for second in range(5)]
    engine = Engine(lateness=100 * SECOND)
    query = engine.register(EAGER[0])
    run(engine, elements, until=2 * SECOND)
    assert [time // SECOND for time, _, _ in told(query)] == [0, 1, 2, 3, 4]


def test_until_of_a_stream_without_elements_is_the_instant_of_its_silence() -> None:
    engine, query = silent("")
    run(engine, [], until=7 * SECOND)
    assert told(query)[0][0] == 7 * SECOND


def test_more_and_until_exclude_each_other() -> None:
    with pytest.raises(UsageError, match="leave one out"):
        run(made(EAGER[0], False)[0], [], more=True, until=5)


# --- before the first element -------------------------------------------------------------------------------------------

SILENT = f"{PREFIX} SELECT ?s {{ ?s :kind :Sensor FILTER NOT EXISTS {{ STREAM :one [RANGE 10s{{}}] {{ ?s :p ?v }} }} }}"


def silent(step: str) -> tuple[Engine, Query]:
    engine = Engine()
    return engine, engine.register(SILENT.replace("{}", step), static=SENSORS, changelog=True)


def instants(query: Query) -> list[tuple[int, int]]:
    return [(time // SECOND, sign) for time, sign, _ in told(query)]


def test_silence_is_seen_though_no_element_has_ever_come() -> None:
    engine, query = silent("")
    engine.advance(3 * SECOND)
    assert instants(query) == [(3, 1)]
    push(engine, [(STREAM, 3 * SECOND, 0, 1)])
    assert instants(query) == [(3, -1)]
    engine.advance(13 * SECOND + 1)
    assert instants(query) == [(13, 1)]
    engine.advance(60 * SECOND)
    assert instants(query) == []


def test_windows_with_steps_begin_at_a_boundary() -> None:
    engine, query = silent(" STEP 5s")
    engine.advance(3 * SECOND)
    assert instants(query) == []
    engine.advance(5 * SECOND + 1)
    assert instants(query) == [(5, 1)]
    push(engine, [(STREAM, 6 * SECOND, 0, 1)])
    engine.advance(40 * SECOND)
    assert instants(query) == [(10, -1), (20, 1)]


def test_a_second_advance_begins_nothing() -> None:
    engine = Engine()
    query = engine.register(
        f"{PREFIX} SELECT (COUNT(*) AS ?n) {{ STREAM :one [RANGE 10s] {{ ?s :p ?v }} }}", changelog=True
    )
    engine.advance(3 * SECOND)
    engine.advance(4 * SECOND)
    assert [(time // SECOND, sign) for time, sign, _ in told(query)] == [(3, 1)]


def test_an_advance_before_the_first_element_changes_nothing_of_rules_and_streams_that_are_made() -> None:
    engine = Engine()
    rules = engine.register(EAGER[-1])
    engine.advance(3 * SECOND)
    push(engine, [(STREAM, 3 * SECOND, 0, 1)])
    engine.finish()
    assert [time // SECOND for time, _, _ in told(rules)] == [3]
