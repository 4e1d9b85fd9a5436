"""Queries that are registered later move to the scans of earlier ones: each has the results that it has alone, from its
registration on, and what has seen the same elements is one."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import PropertyMock, patch

import pyarrow as pa
import pytest

from cqels_py.dataflow import Dataflow
from cqels_py.dataflow.shared_program import SharedProgram
from cqels_py.dataflow.step_program import Outcome
from cqels_py.engine.engine import Engine
from cqels_py.engine.query import Query

EX = "http://ex.org/"
PREFIX = f"PREFIX : <{EX}>\n"
A, B = EX + "a", EX + "b"
FORMS = (
    "SELECT ?s ?v { STREAM :a %s { ?s :p%d ?v } }",
    "SELECT ?s ?v { STREAM :a %s { ?s :p%d ?v } FILTER(?v > 2) }",
    "SELECT (COUNT(*) AS ?n) (SUM(?w) AS ?m) { STREAM :a %s { ?s :p%d ?v . ?s ?p ?w } }",
    "SELECT ?s (MAX(?v) AS ?m) { STREAM :a %s { ?s :p%d ?v } } GROUP BY ?s",
    "ASK { STREAM :a %s { ?s :p%d 3 } }",
    "SELECT DISTINCT ?v { STREAM :a %s { ?s :p%d ?v . ?s :p1 ?w } }",
    "SELECT ?s ?w { STREAM :a %s { ?s :p%d ?v OPTIONAL { ?s :p1 ?w } } }",
    "SELECT ?s { STREAM :a %s { ?s :p%d ?v FILTER NOT EXISTS { ?s :p2 ?v } } }",
    "REGISTER RSTREAM <q> AS SELECT ?v { STREAM :a %s { ?s :p%d ?v } }",
    "SELECT ?s ?x { STREAM :a %s { ?s :p%d ?v } STREAM :b [RANGE 3s] { ?s :p1 ?x } }",
    "SELECT ?v { STREAM :a %s { ?s :p%d ?v } } ORDER BY ?v LIMIT 2",
    "CONSTRUCT { ?s :q ?v } { STREAM :a %s { ?s :p%d ?v } }",
    "SELECT ?v ?t { STREAM :a %s { ?s :p%d ?v } BIND(NOW() AS ?t) }",
    "REGISTER RSTREAM <q> AS SELECT ?s (COUNT(*) AS ?n) { STREAM :a %s { ?s :p%d ?v . ?s :p1 ?w } } GROUP BY ?s",
    "SELECT ?s ?w { MATCH WITHIN 3s { EVENT ON :a { ?s :p0 ?v } SEQ EVENT ON :a { ?s :p%.0s%d ?w } } }",
    "SELECT ?s ?w { STREAM :a %s { ?s :p%d ?v } MATCH WITHIN 5 EVENTS { EVENT ON :a { ?s :p0 ?x } SEQ EVENT ON :b { ?s :p1 ?w } } }",
    "SELECT ?s ?w { STREAM :a %s { ?s :p%d ?v } MATCH WITHIN 2s { EVENT ON :a { ?s ?x ?v BIND(?v AS ?y) } "
    "SEQ EVENT ON :b { ?s :p1 ?w } } }",
)
WINDOWS = (
    "[RANGE 4s]", "[RANGE 4s]", "[RANGE 9s STEP 2s]", "[COUNT 4]", "[TRIPLES 5]", "[COUNT 4 STEP 2]", "[SESSION 2s]", "[NOW]",
    "[FROM NOW-4s TO NOW-1s]", "[SESSION 2s STEP 1s]", "[SESSION 2s PARTITION BY ?s]", "[COUNT 2 PARTITION BY ?s]",
    "[TRIPLES 2 PARTITION BY ?s]", "[COUNT 2 STEP 3 PARTITION BY ?s]",
)  # fmt: skip
AT_TICKS = (FORMS[8], *FORMS[12:16])
"""Those that tell results at ticks without changes, too, and MATCH."""
Rows = list[tuple[int, int, str]]
Call = tuple[str, Any]


def drawn(seed: int, count: int) -> Iterator[Call]:
    """Elements, one by one or in tables, silence, and queries that come and go."""
    draw = random.Random(seed)
    forms, windows = draw.sample(FORMS, 4) + draw.sample(AT_TICKS, 2), draw.sample(WINDOWS, 3)
    now, there = 0, 0
    for _ in range(count):
        kind = draw.choice("pppprrua")
        now += draw.choice((0, 0, 500_000, 1_000_000, 3_000_000))
        if kind == "r" or there < 2:
            # Few texts: many are equal.
            yield "register", draw.choice(forms) % (draw.choice(windows), draw.randrange(2))
            there += 1
        elif kind == "u" and there > 5:
            yield "unregister", draw.randrange(there)
            there -= 1
        elif kind == "a":
            yield "advance", now
        else:
            triples = [
                (f"<{EX}s{draw.randrange(3)}>", f"<{EX}p{draw.randrange(3)}>", draw.randrange(5))
                for _ in range(draw.choice((1, 2)))
            ]
            yield "push", (draw.choice((A, A, B)), triples, now)


class Run:
    """An engine, its queries in their order, and the results of all that it has ever had."""

    def __init__(self, **options: Any) -> None:
        self.engine = Engine(report=lambda _: None, on_unread="ignore", **options)
        self.queries: list[tuple[Query, Rows]] = []
        self.found: list[Rows] = []

    def do(self, call: Call) -> None:
        kind, given = call
        if kind == "register":
            plain = "RSTREAM" in given or "CONSTRUCT" in given or "ORDER" in given
            name = f"q{len(self.found)}"
            self._add(self.engine.register(PREFIX + given, changelog=not plain, name=name), Rows(), None)
        elif kind == "unregister":
            self.engine.unregister(self.queries.pop(given)[0])
        elif kind == "advance":
            self.engine.advance(given)
        else:
            stream, triples, time = given
            self.engine.push(stream, triples, time=time)

    def again(self, query: Query, rows: Rows) -> Query:
        """The query of an earlier process, which has had these results."""
        same = self.engine.register(query.compiled, name=query.name)
        self._add(same, rows, len(rows) + 1)
        return same

    def _add(self, query: Query, rows: Rows, number: int | None) -> None:
        query.subscribe(lambda r: rows.append((r.time, r.sign, str(sorted(r.bindings.items())))), from_number=number)
        self.queries.append((query, rows))
        self.found.append(rows)

    @property
    def scans(self) -> int:
        """How many clocks and routers there are."""
        return len({id(self.engine._queries[query].dataflow.shared_scans) for query, _ in self.queries})


def by_tick(rows: Rows) -> Rows:
    """Rows in order of ticks; those of one instant and sign sorted."""
    return sorted(rows)


@pytest.mark.parametrize("seed", range(8))
def test_each_query_has_the_results_that_it_has_alone(seed: int) -> None:
    together, alone = Run(), list[Run]()
    for call in drawn(seed, 60):
        together.do(call)
        if call[0] == "unregister":
            del alone[call[1]]
            continue
        if call[0] == "register":
            alone.append(Run())
        for each in alone[-1:] if call[0] == "register" else alone:
            each.do(call)
        for (query, rows), each in zip(together.queries, alone, strict=True):
            assert by_tick(rows) == by_tick(each.found[0]), query.compiled.text


def apart(call: Callable[[], None]) -> None:
    """No query moves while this is done."""
    with patch.object(Dataflow, "can_move", new_callable=PropertyMock, return_value=False):
        call()


@pytest.mark.parametrize("options", [{}, {"batch": 5}, {"lateness": 1_500_000}], ids=["one by one", "batches", "late"])
@pytest.mark.parametrize("seed", range(20, 24))
def test_results_and_their_order_are_those_of_queries_that_stay_apart(seed: int, options: dict[str, Any]) -> None:
    moving, staying = Run(**options), Run(**options)
    for call in drawn(seed, 120):
        moving.do(call)
        apart(lambda call=call: staying.do(call))  # type: ignore[misc]
    moving.engine.flush()
    staying.engine.flush()
    assert moving.found == staying.found
    assert any(moving.found)
    assert moving.scans < staying.scans


@pytest.mark.parametrize("window", [window for window in WINDOWS if "STEP 2]" not in window and "STEP 3" not in window])
@pytest.mark.parametrize("form", [FORMS[0], *AT_TICKS])
def test_in_the_end_queries_of_one_window_are_on_the_same_scans(form: str, window: str) -> None:
    draw, moving, staying, now = random.Random(1), Run(), Run(), 0
    for number in range(40):
        now += draw.choice((0, 300_000, 1_500_000)) if number < 30 else 5_000_000
        triples = [(f"<{EX}s{draw.randrange(2)}>", f"<{EX}p{draw.randrange(2)}>", draw.randrange(5)) for _ in "ab"]
        calls: list[Call] = [("push", (draw.choice((A, A, B)), triples, now))]
        if number in (0, 7, 15):
            calls.insert(0, ("register", form % (window, number % 2)))
        for call in calls:
            moving.do(call)
            apart(lambda call=call: staying.do(call))  # type: ignore[misc]
    assert moving.found == staying.found
    assert any(moving.found)
    assert (moving.scans, staying.scans) == (1, 3)


def test_ticks_of_before_are_no_ticks_of_a_query_that_tells_all_of_its_own() -> None:
    run, text = Run(), "REGISTER RSTREAM <q> AS SELECT ?v { STREAM :a [RANGE 9s] { ?s :p0 ?v } }"
    for time in (1_000_000, 2_000_000):
        run.do(("push", (A, [(f"<{EX}s>", f"<{EX}p0>", 1)], time)))
        run.do(("register", text))
    for time in (3_000_000, 10_500_000, 11_500_000, 12_500_000):
        run.do(("push", (A, [(f"<{EX}s>", f"<{EX}p0>", 1)], time)))
        assert run.scans == (2 if time < 11_000_000 else 1)
    # At 11 s the element of 2 s leaves, which the second query has not seen.
    assert 11_000_000 in {time for time, _, _ in run.found[0]}
    assert {time for time, _, _ in run.found[1]} == {3_000_000, 10_500_000, 11_500_000, 12_000_000, 12_500_000}


@pytest.mark.parametrize("seed", range(30, 33))
def test_an_engine_goes_on_after_a_restart_with_queries_that_have_moved(seed: int, tmp_path: Path) -> None:
    calls = [call for call in drawn(seed, 80) if call[0] != "unregister"]
    whole = Run()
    for call in calls:
        whole.do(call)
    options: dict[str, Any] = {"checkpoint": tmp_path / "state", "durable": "off"}
    run = Run(**options)
    for number, call in enumerate(calls):
        if number in (20, 50):
            run.engine.checkpoint()
        if number in (30, 65):
            run.engine.close()
            before, run = run, Run(**options)
            for query, rows in before.queries:
                again = run.again(query, rows)
                assert again.restored
        run.do(call)
    assert list(map(by_tick, run.found)) == list(map(by_tick, whole.found))
    run.engine.close()


@pytest.mark.parametrize("window", ["[COUNT 4 STEP 2]", "[TRIPLES 4 STEP 3]"])
def test_steps_that_are_counted_from_another_element_on_are_other_steps(window: str) -> None:
    run, text = Run(), FORMS[0] % (window, 0)
    run.do(("register", text))
    for time in range(40):
        run.do(("push", (A, [(f"<{EX}s>", f"<{EX}p0>", time)], time)))
        if time == 0:
            run.do(("register", text))
    first, second = ({time for time, _, _ in rows if time > 9} for rows in run.found)
    assert first and second and not first & second
    assert run.scans == 2


def test_equal_queries_between_which_no_element_came_share_what_they_read() -> None:
    run = Run()
    text = "SELECT (COUNT(*) AS ?n) { STREAM :a [RANGE 4s] { ?s :p0 ?v } }"
    for time in (1_000_000, 2_000_000):
        run.do(("register", text))
        run.do(("advance", time))
    run.do(("push", (A, [(f"<{EX}s>", f"<{EX}p0>", 1)], 3_000_000)))
    run.do(("register", text))
    run.do(("advance", 4_000_000))
    first, second, third = (run.engine._queries[query].dataflow for query, _ in run.queries)
    assert first.shared_scans is second.shared_scans is third.shared_scans
    assert first.root is second.root
    assert third.root is not first.root
    assert [len(rows) for rows in run.found] == [3, 3, 1]


PLAIN = "SELECT ?v { STREAM :a %s { ?s :p%d ?v } }"
MATCHES = "CONSTRUCT { ?s :q ?w } { MATCH WITHIN 3s { EVENT ON :a { ?s :p0 ?v } SEQ EVENT ON :a { ?s :p%.0s%d ?w } } }"


@pytest.mark.parametrize(
    ("form", "window"),
    [
        (PLAIN, "[RANGE 4s]"),
        (PLAIN, "[COUNT 2 PARTITION BY ?s]"),
        (PLAIN, "[SESSION 4s]"),
        (PLAIN, "[SESSION 4s PARTITION BY ?s]"),
        (MATCHES, ""),
    ],
    ids=["range", "count by value", "session", "session by value", "match"],
)
def test_a_step_reaches_only_queries_whose_patterns_match(form: str, window: str) -> None:
    run = Run()
    for number in range(30):
        run.do(("register", form % (window, number)))
        run.do(("push", (A, [(f"<{EX}s>", f"<{EX}p{number}>", number)], number)))
    run.do(("push", (A, [(f"<{EX}s>", f"<{EX}p>", 0)], 5_000_000)))
    assert run.scans == 1
    stopped = patch.object(SharedProgram, "run", return_value=Outcome.STOPPED)
    with patch.object(Dataflow, "process", return_value=()) as process, stopped:
        run.do(("push", (A, [(f"<{EX}s>", f"<{EX}p7>", 7)], 5_000_100)))
    assert process.call_count == 1


def test_a_query_that_was_given_elements_of_before_is_in_its_group_once() -> None:
    run = Run()
    before = [(f"<{EX}s>", f"<{EX}p0>", '"1"')]
    rows = {"time": [1], "subject": [before[0][0]], "predicate": [before[0][1]], "object": [before[0][2]]}
    run.engine.register(f"{PREFIX}SELECT ?s {{ STREAM :a [RANGE 4s] {{ ?s :p0 ?v }} }}", backfill={A: pa.table(rows)})
    run.do(("register", "SELECT ?s { STREAM :a [RANGE 4s] { ?s :p1 ?v } }"))
    (group,) = run.engine._runner._groups
    assert len(group.queries) == len(set(group.queries)) == 2


@pytest.mark.parametrize("form", [0, 3, 4], ids=["rows", "groups", "ask"])
def test_of_equal_queries_one_takes_part_in_steps_and_each_has_its_results_whoever_leaves(form: int) -> None:
    text, alone, run = FORMS[form] % ("[COUNT 3]", 0), Run(), Run()
    alone.do(("register", text))
    for _ in range(4):
        run.do(("register", text))
    seen, first = 0, run.queries[0][1]
    for step in range(1, 60):
        element = (A, [(f"<{EX}s{step % 2}>", f"<{EX}p0>", step % 7)], step)
        alone.do(("push", element))
        with patch.object(Dataflow, "process", autospec=True, side_effect=Dataflow.process) as process:
            run.do(("push", element))
        assert process.call_count == 4 if step == 1 else process.call_count <= 1
        found = alone.found[0]
        assert [rows for _, rows in run.queries] == [found] * len(run.queries)
        seen = len(first) if len(run.queries) == 4 else seen
        if step % 15 == 0 and step < 50:
            # The one that takes part; the last one is left in the end.
            run.do(("unregister", 0))
    assert first == alone.found[0][:seen] and seen < len(alone.found[0])


def test_a_query_that_leaves_within_a_step_takes_no_results_from_those_that_follow_it() -> None:
    engine, found = Engine(report=lambda _: None), list[list[int]]()
    queries = [engine.register(f"{PREFIX}SELECT ?v {{ STREAM :a [COUNT 9000] {{ ?s :p0 ?v }} }}") for _ in range(3)]

    def receive(number: int, time: int) -> None:
        found[number].append(time)
        # In the middle of the step: so many results are delivered within it.
        if number == 0 and time == 2:
            engine.unregister(queries[0])

    for number, query in enumerate(queries):
        found.append([])
        query.subscribe(lambda result, number=number: receive(number, result.time))  # type: ignore[misc]
    engine.push(A, [(f"<{EX}s>", f"<{EX}p0>", 0)], time=1)
    rows = range(5000)
    table = {"time": [2] * len(rows), "subject": [f"{EX}s{row}" for row in rows], "predicate": [f"{EX}p0"] * len(rows)}
    engine.push_batch(A, pa.table(table | {"object": [f'"{row}"' for row in rows]}))
    engine.push(A, [(f"<{EX}s>", f"<{EX}p0>", 0)], time=3)
    assert found[0][:2] == [1, 2] and 3 not in found[0]
    assert found[1] == found[2] == [1, *[2] * 5000, 3]


@pytest.mark.parametrize("window", ["[RANGE 4s]", "[COUNT 4]", "[RANGE 9s STEP 2s]"])
@pytest.mark.parametrize("ticked", [False, True])
def test_a_query_that_is_connected_has_steps_of_its_own(window: str, ticked: bool, tmp_path: Path) -> None:
    options: dict[str, Any] = {"checkpoint": tmp_path / "state", "durable": "off"}
    run, apart = Run(**options), Run()
    apart.engine._runner.pool.shares = False
    text, reader = FORMS[11] % (window, 0), f"SELECT ?s ?v {{ STREAM <{EX}c> [RANGE 3s] {{ ?s :q ?v }} }}"
    elements = [
        ("push", (A, [(f"<{EX}s{step % 3}>", f"<{EX}p{step % 2}>", step % 5)], step * 700_000)) for step in range(60)
    ]
    for each in (run, apart):
        for call in [("register", text), ("register", FORMS[0] % (window, 0)), ("register", text)]:
            each.do(call)
        for call in elements[: 20 if ticked else 0]:
            each.do(call)
        each.do(("register", reader))
        each.engine.connect(each.queries[0][0], f"{EX}c")
        for call in elements[20:30]:
            each.do(call)
    first, second, third, _ = (run.engine._queries[query].dataflow.shared_scans for query, _ in run.queries)
    assert first is not second and second is third
    run.engine.checkpoint()
    run.engine.close()
    before, run = run, Run(**options)
    for query, rows in before.queries:
        assert run.again(query, rows).restored
    for each in (run, apart):
        for call in elements[30:]:
            each.do(call)
    assert list(map(by_tick, run.found)) == list(map(by_tick, apart.found))
    assert all(run.found)
    run.engine.close()
