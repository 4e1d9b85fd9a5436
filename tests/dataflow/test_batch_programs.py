"""Steps of several elements whose scans and operators are programs: they are as those by calls, in the same order."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest

from cqels_py.dataflow import batch_programs
from cqels_py.dataflow.batch_programs import BatchPrograms
from cqels_py.dataflow.dataflow import Dataflow
from tests.dataflow.test_shared_program import Session, drawn_text
from tests.dataflow.test_step_program import ALL, EX, SECOND, Pushed, of_both_streams, readings


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch, unmeasured: None) -> list[bool]:
    """Of each query in a step that programs may do: has its program done it?"""
    found: list[bool] = []
    run = BatchPrograms.run

    def noted(programs: BatchPrograms, dataflow: Dataflow) -> Any:
        results = run(programs, dataflow)
        found.append(results is not None)
        return results

    monkeypatch.setattr(BatchPrograms, "run", noted)
    return found


def batches_of(pushed: Sequence[Pushed], drawn: random.Random, most: int) -> Iterator[tuple[str, pa.Table]]:
    """The elements in tables, each of those of one stream that follow each other, 5 to `most` if there are as many."""
    at = 0
    while at < len(pushed):
        stream, end = pushed[at][0], at + drawn.randint(5, most)
        rows = []
        while at < min(end, len(pushed)) and pushed[at][0] == stream:
            _, triples, time = pushed[at]
            rows += [(time, *triple) for triple in triples]
            at += 1
        yield (
            stream,
            pa.table(dict(zip(("time", "subject", "predicate", "object"), zip(*rows, strict=True), strict=True))),
        )


def by_stream(pushed: Sequence[Pushed], run: int = 40) -> list[Pushed]:
    """The same elements so that runs of one stream follow each other, with the times in order."""
    streams = {stream: [each for each in pushed if each[0] == stream] for stream, _, _ in pushed}
    found: list[Pushed] = []
    while any(streams.values()):
        for each in streams.values():
            found += each[:run]
            del each[:run]
    times = sorted(time for _, _, time in pushed)
    return [(stream, triples, time) for (stream, triples, _), time in zip(found, times, strict=True)]


def results_in(
    texts: Sequence[str], pushed: Sequence[Pushed], seed: int, most: int, *, late: int = 0, lateness: int = 0
) -> list[Any]:
    """The results of queries, of which the last `late` are registered in the middle.

    With `lateness`, in seconds, steps have elements of both streams.
    """
    session, drawn = Session(), random.Random(seed)
    first = len(texts) - late
    for stream in ("a", "b") if lateness else ():
        session.engine.declare(f"{EX}{stream}", lateness=f"{lateness}s")
    for text in texts[:first]:
        session.register(text)
    tables = list(batches_of(pushed, drawn, most))
    for number, (stream, table) in enumerate(tables):
        if number == len(tables) // 3:
            for text in texts[first:]:
                session.register(text)
        session.engine.push_batch(stream, table)
    session.engine.finish()
    # Of up to four elements programs make a step each: between two queries the order is another one then.
    return sorted(session.found, key=lambda result: result[0])


def assert_equal(run: Callable[[], list[Any]], ran: list[bool], in_mode: Callable[[str], None], fewest: int) -> None:
    in_mode("calls")
    expected = run()
    assert expected and not ran
    in_mode("program")
    assert run() == expected
    assert ran.count(True) > fewest


@pytest.mark.parametrize("name", [name for name in ALL if name != "the same twice"])
def test_batches_equal_those_by_calls(name: str, ran: list[bool], in_mode: Callable[[str], None]) -> None:
    pushed = by_stream(of_both_streams(600, seed=len(name)) if ":b" in ALL[name] else [*readings(300)])
    # EVENT, STATE and the like have none.
    assert_equal(lambda: results_in([ALL[name]], pushed, 1, 60), ran, in_mode, -1)


@pytest.mark.parametrize("seed", range(8))
def test_drawn_queries_in_batches(seed: int, ran: list[bool], in_mode: Callable[[str], None]) -> None:
    drawn = random.Random(seed)
    pool = [drawn_text(drawn) for _ in range(4)]
    texts = [drawn.choice(pool) for _ in range(6)]
    pushed = by_stream(of_both_streams(500, seed, drawn.choice((0, SECOND))), drawn.choice((10, 40, 100)))
    most, lateness = (8, 30, 120)[seed % 3], 3 * (seed % 2)
    assert_equal(lambda: results_in(texts, pushed, seed, most, late=2, lateness=lateness), ran, in_mode, 20)


@pytest.mark.parametrize("seed", range(3))
def test_programs_that_have_too_little_room(
    seed: int, ran: list[bool], in_mode: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_programs, "MOST_ROWS", 24)
    drawn = random.Random(seed + 20)
    texts, pushed = [drawn_text(drawn) for _ in range(5)], by_stream(of_both_streams(400, seed))
    assert_equal(lambda: results_in(texts, pushed, seed, 30), ran, in_mode, 5)
    assert False in ran


def test_outputs_that_have_no_row(ran: list[bool], in_mode: Callable[[str], None]) -> None:
    a, b = "STREAM :a [RANGE 10s] { ?k :a ?x }", "STREAM :b [RANGE 5s] { ?k :b ?y }"
    texts = [
        f"PREFIX : <{EX}> ASK {{ {a} {b} FILTER(?x > 60) }}",
        f"PREFIX : <{EX}> SELECT ?k ?x {{ {a} {b} }}",
        f"PREFIX : <{EX}> ASK {{ {a} {b} }}",
        f"PREFIX : <{EX}> SELECT ?k ?x {{ {a} {b} }}",
        f"PREFIX : <{EX}> SELECT (COUNT(*) AS ?n) {{ {a} {b} }}",
    ]
    pushed = by_stream(of_both_streams(400, 3))
    assert_equal(lambda: results_in(texts, pushed, 3, 50), ran, in_mode, 50)
    assert all(ran[len(texts) :])


def test_rows_are_counted_as_by_calls(ran: list[bool], in_mode: Callable[[str], None]) -> None:
    texts = [ALL["join"], ALL["join with filters"], ALL["count"], ALL["average"]]
    pushed = by_stream(of_both_streams(400, 5))

    def counts() -> list[Any]:
        session = Session()
        for text in texts:
            session.register(text)
        for stream, table in batches_of(pushed, random.Random(1), 50):
            session.engine.push_batch(stream, table)
        return [[(each.rows_in, each.rows_out) for each in query.profile().operators] for query in session.queries]

    assert_equal(counts, ran, in_mode, 20)
