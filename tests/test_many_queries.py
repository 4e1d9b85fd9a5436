"""Many queries of one engine: each gets what it would get alone, and what they have in common is done once."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import pytest

import cqels_py
from cqels_py.event_time.clock import TickClock
from cqels_py.kernels import match as kernel

STREAM, OTHER = "http://ex.org/stream", "http://ex.org/other"
WINDOWS = ("[COUNT 5]", "[COUNT 5]", "[RANGE 4s]", "[RANGE 6s STEP 2s]", "[NOW]", "[COUNT 4 STEP 2]")
FORMS = (
    "SELECT ?s ?v WHERE { STREAM <%s> %s { ?s :p%d ?v } }",
    "SELECT ?s (COUNT(*) AS ?n) WHERE { STREAM <%s> %s { ?s :p%d ?v } } GROUP BY ?s",
    "SELECT (COUNT(*) AS ?n) WHERE { STREAM <%s> %s { ?s :p%d ?v . ?s ?p ?w } }",
    "ASK { STREAM <%s> %s { ?s :p%d ?v } }",
)

Pushed = tuple[str, list[tuple[str, str, str]], int]


def texts(seed: int, count: int) -> list[str]:
    rng = random.Random(seed)
    made = [
        "PREFIX : <http://ex.org/>\n"
        + rng.choice(FORMS) % (rng.choice((STREAM, STREAM, OTHER)), rng.choice(WINDOWS), rng.randrange(3))
        for _ in range(count)
    ]
    return [*made, made[0]]


def elements(seed: int, count: int) -> list[Pushed]:
    rng = random.Random(seed)
    time, found = 0, []
    for _ in range(count):
        time += rng.choice((0, 500_000, 1_000_000, 3_000_000))
        subject = f"<http://ex.org/s{rng.randrange(3)}>"
        triples = [(subject, f"<http://ex.org/p{rng.randrange(4)}>", f'"{rng.randrange(5)}"') for _ in range(2)]
        found.append((rng.choice((STREAM, STREAM, OTHER)), triples, time))
    return found


def told(results: Sequence[Any]) -> list[Any]:
    return [(r.time, r.sign, tuple(sorted((k, str(v)) for k, v in r.bindings.items()))) for r in results]


def alone(text: str, pushed: Sequence[Pushed], batch: int | None) -> list[Any]:
    """What one query gets in an engine of its own."""
    engine = cqels_py.Engine(batch=batch)
    got: list[Any] = []
    query = engine.register(text, changelog=True)
    query.subscribe(got.append)
    for stream, triples, time in pushed:
        if stream in query.streams:
            engine.push(stream, triples, time=time)
    engine.finish()
    return sorted(told(got))


@pytest.mark.parametrize("batch", [None, 3, 50])
@pytest.mark.parametrize("seed", range(3))
def test_each_query_gets_what_it_gets_alone(seed: int, batch: int | None) -> None:
    asked, pushed = texts(seed, 12), elements(seed, 40)
    engine = cqels_py.Engine(batch=batch)
    got: list[list[Any]] = [[] for _ in asked]
    queries = [engine.register(text, changelog=True) for text in asked]
    for query, results in zip(queries, got, strict=True):
        query.subscribe(results.append)
    needed = {stream for query in queries for stream in query.streams}
    for stream, triples, time in pushed:
        if stream in needed:
            engine.push(stream, triples, time=time)
    engine.finish()
    for text, results in zip(asked, got, strict=True):
        mine = [p for p in pushed if p[0] in needed]
        assert sorted(told(results)) == alone(text, mine, batch), text


def test_who_comes_later_sees_what_comes_later() -> None:
    text = f"PREFIX : <http://ex.org/> SELECT ?s ?v WHERE {{ STREAM <{STREAM}> [COUNT 3 STEP 2] {{ ?s :p0 ?v }} }}"
    pushed = [(STREAM, [("<http://ex.org/s>", "<http://ex.org/p0>", f'"{i}"')], i) for i in range(9)]
    engine = cqels_py.Engine()
    first: list[Any] = []
    second: list[Any] = []
    engine.register(text, changelog=True).subscribe(first.append)
    for each in pushed[:3]:
        engine.push(each[0], each[1], time=each[2])
    engine.register(text, changelog=True).subscribe(second.append)
    for each in pushed[3:]:
        engine.push(each[0], each[1], time=each[2])
    engine.finish()
    assert sorted(told(first)) == alone(text, pushed, None)
    assert sorted(told(second)) == alone(text, pushed[3:], None)
    assert told(first) != told(second)


def test_queries_come_and_go_and_nothing_stays() -> None:
    asked, pushed = texts(7, 20), elements(7, 60)
    engine = cqels_py.Engine(batch=4)
    queries = [engine.register(text) for text in asked]
    for query in queries:
        query.subscribe(lambda _: None)
    kept = queries[3]
    fronts = {id(q): engine._queries[q].dataflow._seat._front for q in queries}
    for i, (stream, triples, time) in enumerate(pushed):
        engine.push(stream, triples, time=time)
        gone = queries[i % len(queries)]
        if i % 3 == 0 and gone is not kept and gone in engine._queries:
            engine.unregister(gone)
    for query in [q for q in queries if q in engine._queries and q is not kept]:
        engine.unregister(query)
    engine.flush()
    for front in fronts.values():
        assert not front._turns
    mine = engine._queries[kept].dataflow._seat
    for front in fronts.values():
        wanted = [number for number, count in enumerate(front._router._wanted) if count]
        assert wanted == (sorted(set(mine._patterns)) if front is mine._front else [])


def test_a_query_taken_away_by_anothers_subscriber_does_nothing_more() -> None:
    text = f"PREFIX : <http://ex.org/> SELECT ?s WHERE {{ STREAM <{STREAM}> [NOW] {{ ?s :p0 ?v }} }}"
    engine = cqels_py.Engine()
    first, second, third = (engine.register(text) for _ in range(3))
    got: list[str] = []
    first.subscribe(lambda _: engine.unregister(second) if not got else None)
    first.subscribe(lambda _: got.append("first"))
    second.subscribe(lambda _: got.append("second"))
    third.subscribe(lambda _: got.append("third"))
    for i in range(2):
        engine.push(STREAM, [(f"<http://ex.org/s{i}>", "<http://ex.org/p0>", '"1"')], time=i)
    assert got == ["first", "third", "first", "third"]


def test_common_work_is_done_once() -> None:
    """One turn of the clock and one matching for all queries of the same windows; equal patterns are matched once."""
    asked = [
        f"PREFIX : <http://ex.org/> SELECT ?s WHERE {{ STREAM <{STREAM}> [COUNT 9] {{ ?s :p{i % 5} ?v }} }}"
        for i in range(50)
    ]
    with (
        patch.object(TickClock, "step", autospec=True, side_effect=TickClock.step) as turned,
        patch.object(kernel, "match", side_effect=kernel.match) as matched,
    ):
        engine = cqels_py.Engine(batch=10)
        for text in asked:
            engine.register(text).subscribe(lambda _: None)
        for stream, triples, time in elements(1, 60):
            if stream == STREAM:
                engine.push(stream, triples, time=time)
        engine.flush()
        assert turned.call_count == matched.call_count
        assert 3 <= matched.call_count <= 6
        assert all(len(call.args[5]) == 5 for call in matched.call_args_list)
