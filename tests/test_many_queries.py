"""Many queries of one engine: each gets the results that it gets alone, and shared parts are evaluated once."""

from __future__ import annotations

import gc
import random
import weakref
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import pytest

import cqels_py
from cqels_py.batches.results import ResultBatch
from cqels_py.dataflow import Dataflow, builder, step_program
from cqels_py.dataflow.delta_sources import OperatorNode
from cqels_py.dataflow.expressions import EvaluatorBuilder
from cqels_py.dataflow.scans import Partition, PartitionedScan, Scan, WindowScan
from cqels_py.event_time.clock import TickClock
from cqels_py.kernels.compiler.jit import jit_flat
from cqels_py.kernels.primitives.state_record import int64_rows
from cqels_py.kernels.windows import match as kernel
from cqels_py.operators.r2r.join import MultiwayJoin
from cqels_py.operators.s2r.window import SlidingWindow


@jit_flat
def count_constants(patterns):
    return len(int64_rows(patterns, kernel.CONSTANTS))


STREAM, OTHER = "http://ex.org/stream", "http://ex.org/other"
WINDOWS = (
    "[COUNT 5]", "[COUNT 5]", "[RANGE 4s]", "[RANGE 6s STEP 2s]", "[NOW]", "[COUNT 4 STEP 2]", "[TRIPLES 3]", "[SESSION 2s]",
    "[COUNT 2 PARTITION BY ?s]", "[TRIPLES 2 STEP 3 PARTITION BY ?s]", "[SESSION 2s PARTITION BY ?s]",
)  # fmt: skip
FORMS = (
    "SELECT ?s ?v WHERE { STREAM <%s> %s { ?s :p%d ?v } }",
    "SELECT ?s (COUNT(*) AS ?n) WHERE { STREAM <%s> %s { ?s :p%d ?v } } GROUP BY ?s",
    "SELECT (COUNT(*) AS ?n) WHERE { STREAM <%s> %s { ?s :p%d ?v . ?s ?p ?w } }",
    "ASK { STREAM <%s> %s { ?s :p%d ?v } }",
    "SELECT DISTINCT ?s WHERE { STREAM <%s> %s { ?s :p%d ?v . ?s ?p ?w } }",
    "SELECT ?s ?w WHERE { STREAM <%s> %s { ?s :p%d ?v OPTIONAL { ?s :p1 ?w } } }",
    'SELECT ?s WHERE { STREAM <%s> %s { ?s :p%d ?v FILTER NOT EXISTS { ?s :p2 ?w } FILTER(?v != "2") } }',
    "SELECT ?s (MAX(?w) AS ?m) WHERE { STREAM <%s> %s { ?s :p%d ?v . ?s ?p ?w } } GROUP BY ?s",
    'SELECT ?s ?v WHERE { STREAM <%s> %s { ?s :p%d ?v } VALUES ?v { "1" "2" } }',
    "REGISTER RSTREAM <q> AS SELECT ?v WHERE { STREAM <%s> %s { ?s :p%d ?v } }",
    "SELECT ?s ?v WHERE { MATCH WITHIN 3s { EVENT ON <%s> { ?s :p1 ?w } SEQ EVENT ON :stream { ?s :p%.0s%d ?v } } }",
    "SELECT ?s (SUM(?n) AS ?m) WHERE { STREAM <%s> %s { ?s :p%d ?v } { SELECT ?s (COUNT(*) AS ?n) WHERE "
    "{ STREAM <http://ex.org/stream> [COUNT 5] { ?s :p0 ?x } } GROUP BY ?s } } GROUP BY ?s",
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
    """The results of one query in an engine of its own."""
    engine = cqels_py.Engine(batch=batch)
    got: list[Any] = []
    query = engine.register(text, changelog="RSTREAM" not in text)
    query.subscribe(got.append)
    for stream, triples, time in pushed:
        if stream in query.streams:
            engine.push(stream, triples, time=time)
    engine.finish()
    return sorted(told(got))


@pytest.mark.parametrize("batch", [None, 3, 50])
@pytest.mark.parametrize("seed", range(6))
def test_each_query_gets_the_results_that_it_gets_alone(seed: int, batch: int | None) -> None:
    asked, pushed = texts(seed, 12), elements(seed, 40)
    engine = cqels_py.Engine(batch=batch)
    got: list[list[Any]] = [[] for _ in asked]
    queries = [engine.register(text, changelog="RSTREAM" not in text) for text in asked]
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


def test_a_query_registered_later_sees_later_elements() -> None:
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
    all_scans = {id(q): engine._queries[q].dataflow.shared_scans for q in queries}
    for i, (stream, triples, time) in enumerate(pushed):
        engine.push(stream, triples, time=time)
        gone = queries[i % len(queries)]
        if i % 3 == 0 and gone is not kept and gone in engine._queries:
            engine.unregister(gone)
    for query in [q for q in queries if q in engine._queries and q is not kept]:
        engine.unregister(query)
    engine.flush()
    mine = engine._queries[kept].dataflow
    for shared_scans in all_scans.values():
        patterns = {number for number, count in enumerate(shared_scans.router._scans) if count}
        own = set().union(*(scan.patterns for scan in mine._scans))
        assert patterns == (own if shared_scans is mine.shared_scans else set())
        assert set(shared_scans.readers) == ({mine.reader} if shared_scans is mine.shared_scans else set())
        assert set(shared_scans.shared_subplans.values()) == (
            {*mine._scans, *mine._partitions, *mine._operators, *mine._constants}
            if shared_scans is mine.shared_scans
            else set()
        )
        assert not shared_scans.caches
        assert shared_scans.readers.waiting <= (set(mine._scans) if shared_scans is mine.shared_scans else set())


JOINED = f"""PREFIX : <http://ex.org/>
    SELECT ?s (COUNT(*) AS ?n) WHERE {{
      STREAM <{STREAM}> [COUNT 5] {{ ?s :p0 ?v . ?s :p1 ?w FILTER(?w > 1) }}
      STREAM <{STREAM}> [TRIPLES 3 PARTITION BY ?s] {{ ?s :p2 ?x }}
      {{ SELECT ?s WHERE {{ ?s :room ?r . ?r :floor ?f }} }}
      VALUES ?v {{ "1" "2" }}
    }} GROUP BY ?s HAVING(?n > NOW())"""


@pytest.mark.parametrize("allowed", range(17))
def test_a_query_that_fails_while_it_is_registered_leaves_nothing(allowed: int) -> None:
    """Whichever of its parts it is that cannot be made."""
    engine = cqels_py.Engine()
    other = engine.register(texts(1, 1)[0])
    partly = engine.register(JOINED.replace(":p1 ?w", ":p3 ?w"))
    shared_scans = engine._queries[partly].dataflow.shared_scans
    before = (
        dict(shared_scans.shared_subplans),
        {key: made.readers for key, made in shared_scans.shared_subplans.items()},
        list(shared_scans.router._scans),
    )
    made = 0

    def failing(make: Any) -> Any:
        def instead(*given: Any, **named: Any) -> Any:
            nonlocal made
            made += 1
            if made > allowed:
                raise MemoryError("no room")
            return make(*given, **named)

        return instead

    classes = (OperatorNode, Scan, WindowScan, PartitionedScan, Partition)
    with ExitStack() as patched:
        for each in classes:
            patched.enter_context(patch.object(each, "__init__", failing(each.__init__)))
        patched.enter_context(patch.object(builder, "build_operator", failing(builder.build_operator)))
        patched.enter_context(patch.object(EvaluatorBuilder, "build", failing(EvaluatorBuilder.build)))
        try:
            late = engine.register(JOINED)
        except MemoryError:
            pass
        else:
            assert made <= allowed
            engine.unregister(late)
    patterns = [*before[2], *[0] * (len(shared_scans.router._scans) - len(before[2]))]
    assert (
        shared_scans.shared_subplans,
        {key: made.readers for key, made in shared_scans.shared_subplans.items()},
        shared_scans.router._scans,
    ) == (
        *before[:2],
        patterns,
    )
    engine.unregister(partly)
    assert not shared_scans.shared_subplans
    assert not any(shared_scans.router._scans)
    assert other.nbytes


def test_who_has_left_keeps_no_state_though_somebody_holds_it() -> None:
    engine = cqels_py.Engine()
    query = engine.register(JOINED)
    dataflow, explanation = weakref.ref(engine._queries[query].dataflow), query.explain()
    engine.push(STREAM, [("<http://ex.org/a>", "<http://ex.org/p0>", '"1"')], time=1)
    assert query.nbytes
    engine.unregister(query)
    gc.collect()
    assert dataflow() is None
    assert query.nbytes == 0
    assert query.explain() == explanation


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
    """One step of the clock and one matching for all queries of the same windows; equal patterns are matched once."""
    asked = [
        f"PREFIX : <http://ex.org/> SELECT ?s WHERE {{ STREAM <{STREAM}> [COUNT 9] {{ ?s :p{i % 5} ?v }} }}"
        for i in range(50)
    ]
    with (
        patch.object(TickClock, "step", autospec=True, side_effect=TickClock.step) as stepped,
        patch.object(kernel, "match", side_effect=kernel.match) as matched,
    ):
        engine = cqels_py.Engine(batch=10)
        for text in asked:
            engine.register(text).subscribe(lambda _: None)
        for stream, triples, time in elements(1, 60):
            if stream == STREAM:
                engine.push(stream, triples, time=time)
        engine.flush()
        assert stepped.call_count == matched.call_count
        assert 3 <= matched.call_count <= 6
        assert all(count_constants(call.args[6]) == 5 for call in matched.call_args_list)


def test_a_window_that_many_read_changes_once_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one in which nothing comes or goes."""
    monkeypatch.setenv(step_program.CALLS, "calls")
    pattern = f"STREAM <{STREAM}> [COUNT 9] {{ ?s :p0 ?v . ?s :p1 ?w }}"
    with patch.object(SlidingWindow, "advance", autospec=True, side_effect=SlidingWindow.advance) as moved:
        engine = cqels_py.Engine()
        for i in range(20):
            text = f"PREFIX : <http://ex.org/> SELECT ?s WHERE {{ {pattern} FILTER(?v + ?w > {i}) }}"
            engine.register(text).subscribe(lambda _: None)
        for time in range(30):
            engine.push(
                STREAM, [(f"<http://ex.org/s{time % 4}>", f"<http://ex.org/p{time % 2}>", f'"{time}"')], time=time
            )
        assert 30 <= moved.call_count <= 2 * 30


def test_common_sub_plans_have_one_state() -> None:
    """Windows and joins that deliver the same columns."""
    pattern = f"STREAM <{STREAM}> [COUNT 9] {{ ?s :p0 ?v . ?s :p1 ?w }}"
    asked = [
        f"PREFIX : <http://ex.org/> {query}"
        for query in (
            f"SELECT ?s ?v WHERE {{ {pattern} }}",
            f"SELECT ?s (COUNT(DISTINCT ?v) AS ?n) WHERE {{ {pattern} }} GROUP BY ?s",
            f"SELECT ?s WHERE {{ {pattern} }}",
            f"SELECT DISTINCT ?s WHERE {{ {pattern} }}",
        )
    ]
    engine = cqels_py.Engine()
    dataflows = [engine._queries[engine.register(text)].dataflow for text in asked * 2]
    # The two joins read one scan together, and one with the value or without.
    assert len({id(scan) for dataflow in dataflows for scan in dataflow._scans}) == 3
    operators = {id(node.operator): node.operator for dataflow in dataflows for node in dataflow._operators}
    assert sum(isinstance(operator, MultiwayJoin) for operator in operators.values()) == 2
    assert len(operators) == 4


def test_queries_to_which_nothing_happens_take_part_in_no_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only those of the predicate that came, and of the predicate whose mapping leaves."""
    monkeypatch.setenv(step_program.CALLS, "calls")
    engine = cqels_py.Engine()
    got: list[list[Any]] = [[] for _ in range(40)]
    for i, results in enumerate(got):
        text = f"PREFIX : <http://ex.org/> SELECT ?s WHERE {{ STREAM <{STREAM}> [COUNT 3] {{ ?s :p{i} ?v }} }}"
        engine.register(text, changelog=True).subscribe(results.append)
    sequence = [0, 1, 2, 3, 3, 3, 4, 0]
    with patch.object(Dataflow, "process", autospec=True, side_effect=Dataflow.process) as taken:
        steps = []
        for time, i in enumerate(sequence):
            engine.push(STREAM, [("<http://ex.org/s>", f"<http://ex.org/p{i}>", '"1"')], time=time)
            steps.append(taken.call_count)
            taken.reset_mock()
    assert steps == [40, 1, 1, 2, 2, 2, 2, 2]
    signs = [[result.sign for result in results] for results in got[:5]]
    assert signs == [[1, -1, 1], [1, -1], [1, -1], [1, 1, 1, -1, -1], [1]]


def test_static_data_of_one_query_may_change() -> None:
    """The parts that two queries share are not affected."""
    text = f"PREFIX : <http://ex.org/> SELECT ?s ?r WHERE {{ STREAM <{STREAM}> [COUNT 9] {{ ?s :p0 ?v . ?s :p1 ?w }} ?s :room ?r }}"
    rooms = [[(f"<http://ex.org/s{n}>", "<http://ex.org/room>", f'"{room}"') for n in range(3)] for room in "abc"]
    pushed = [each for each in elements(5, 60) if each[0] == STREAM]

    def run(*statics: int) -> list[list[Any]]:
        engine = cqels_py.Engine()
        queries = [engine.register(text, static=[rooms[n]], changelog=True) for n in statics]
        got: list[list[Any]] = [[] for _ in queries]
        for query, results in zip(queries, got, strict=True):
            query.subscribe(results.append)
        for number, (stream, triples, time) in enumerate(pushed):
            engine.push(stream, triples, time=time)
            if number == 12:
                queries[0].update_static(static=[rooms[2]])
        engine.finish()
        return [sorted(told(results)) for results in got]

    both = run(0, 1)
    assert both[0] == run(0)[0]
    assert any(sign == -1 for _, sign, _ in both[1])
    assert {row for _, _, row in both[1]} == {(("r", "b"), ("s", f"http://ex.org/s{n}")) for n in range(3)}


def test_a_subscriber_that_writes_into_its_batch_changes_that_of_no_other_query() -> None:
    text = f"PREFIX : <http://ex.org/> SELECT ?s WHERE {{ STREAM <{STREAM}> [NOW] {{ ?s :p0 ?v }} }}"
    engine = cqels_py.Engine()
    first, second = engine.register(text), engine.register(text)
    got: list[str] = []

    def write(batch: ResultBatch) -> None:
        batch.columns[0][:] = 0
        batch.time[:] = 0

    first.subscribe_batches(write, ids=True)
    second.subscribe(lambda result: got.append(f"{result.bindings['s']} {result.time}"))
    for i in range(1, 4):
        engine.push(STREAM, [(f"<http://ex.org/s{i}>", "<http://ex.org/p0>", '"1"')], time=i)
    assert got == [f"http://ex.org/s{i} {i}" for i in range(1, 4)]
