"""Queries on shared scans whose steps are programs: together they are as each alone, by calls, and in the same order."""

from __future__ import annotations

import gc
import random
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import cqels_py as cqels
from cqels_py.dataflow.program_parts import DeltaRecord
from cqels_py.dataflow.step_memory import SharedBlocks
from cqels_py.dataflow.step_program import Outcome
from cqels_py.errors import RunError
from cqels_py.event_time import clock
from cqels_py.functions import table
from cqels_py.functions.table import Function
from tests.dataflow.test_step_program import (
    BEGIN,
    EX,
    GROUPED,
    INTEGER,
    QUERIES,
    SECOND,
    Pushed,
    of_both_streams,
)
from tests.support.amount import long

A, B = "STREAM :a [RANGE 10s] { ?k :a ?x }", "STREAM :b [RANGE 5s] { ?k :b ?y }"
CHAIN = f"{A} STREAM :b [RANGE 2s] {{ ?l :b ?x }} STREAM :a [RANGE 4s] {{ ?l :a ?y }}"


class Session:
    """An engine with several queries, and all their results in the order of their delivery."""

    def __init__(self, **options: Any) -> None:
        self.engine = cqels.Engine(report=lambda _: None, **options)
        self.found: list[Any] = []
        self.queries: list[cqels.Query] = []

    def register(self, text: str) -> None:
        number = len(self.queries)
        query = self.engine.register(text, changelog="ISTREAM" not in text and "RSTREAM" not in text, name=f"q{number}")
        query.subscribe(lambda result: self.take(number, result))
        self.queries.append(query)

    def take(self, number: int, result: cqels.Result) -> None:
        self.found.append((number, result.number, result.time, result.sign, dict(result.bindings)))

    def push(self, pushed: Sequence[Pushed]) -> None:
        for stream, triples, time in pushed:
            self.engine.push(stream, triples, time=time)


def in_both(run: Callable[[], Any], in_mode: Callable[[str], None], outcomes: list[Outcome]) -> Any:
    """What a function returns in both modes."""
    in_mode("calls")
    expected = run()
    assert not outcomes
    in_mode("program")
    assert run() == expected
    return expected


def over(body: str, columns: str) -> str:
    return f"PREFIX : <{EX}> SELECT {columns} WHERE {{ {body} }}"


def drawn_text(drawn: random.Random, windows: tuple[str, str] = ("RANGE 10s", "RANGE 5s")) -> str:
    """A query over two windows, of which several are alike."""
    a, b = A.replace("RANGE 10s", windows[0]), B.replace("RANGE 5s", windows[1])
    body = drawn.choice(
        (f"{a} {b}", f"{a} {b}", CHAIN, f"{a} OPTIONAL {{ {b} }}", f"{a} MINUS {{ {b} }}", f"{{ {a} }} UNION {{ {b} }}")
    )
    names = "kx" if "MINUS" in body else "kxy"
    if drawn.random() < 0.4:
        body += drawn.choice(
            (
                " FILTER(?x > 30)",
                " FILTER(?x > 60)",
                ' FILTER(CONTAINS(STR(?x), "1"))',
                " BIND(?x * 2 AS ?z) FILTER(?z > 50)",
            )
        )
    if drawn.random() < 0.3:
        key = drawn.choice(names)
        return over(body, f"?{key} (COUNT(*) AS ?n) (SUM(?x) AS ?s)") + f" GROUP BY ?{key}"
    distinct = drawn.choice(("", "DISTINCT "))
    return over(body, distinct + " ".join(f"?{name}" for name in drawn.sample(names, 2)))


WINDOWS = (
    ("RANGE 10s", "RANGE 5s"),
    ("SESSION 3s", "SESSION 2s"),
    ("SESSION 900ms STEP 2s", "RANGE 5s"),
    ("COUNT 2 PARTITION BY ?k", "TRIPLES 3 PARTITION BY ?k"),
    ("COUNT 2 STEP 3 PARTITION BY ?k", "SESSION 3s PARTITION BY ?k"),
)


@pytest.mark.parametrize(("seed", "windows"), [(seed, WINDOWS[max(0, seed // 4 - 1)]) for seed in range(24)])
def test_drawn_queries_come_and_go(
    seed: int, windows: tuple[str, str], outcomes: list[Outcome], in_mode: Callable[[str], None]
) -> None:
    drawn = random.Random(seed)
    pool = [drawn_text(drawn, windows) for _ in range(4)]
    texts = [drawn.choice(pool) for _ in range(7)]
    pushed, actions = of_both_streams(140, seed, 2 * SECOND), dict[int, str]()
    for at in drawn.sample(range(20, 130), 8):
        actions[at] = drawn.choice(("register", "unregister", "advance", "advance"))

    def run() -> list[Any]:
        session, chosen = Session(), random.Random(seed)
        for text in texts[:4]:
            session.register(text)
        for at, element in enumerate(pushed):
            match actions.get(at):
                case "register":
                    session.register(texts[len(session.queries) % len(texts)])
                case "unregister" if len(session.engine.queries) > 1:
                    session.engine.unregister(chosen.choice(session.engine.queries))
                case "advance":
                    session.engine.advance(element[2])
            session.push([element])
        session.engine.finish()
        return session.found

    assert in_both(run, in_mode, outcomes)
    assert outcomes.count(Outcome.COMPLETE) > 80


@pytest.mark.parametrize("seed", range(3))
def test_queries_together_are_as_each_alone(seed: int, outcomes: list[Outcome], in_mode: Callable[[str], None]) -> None:
    drawn = random.Random(seed + 50)
    texts, pushed = [drawn_text(drawn) for _ in range(5)], of_both_streams(80, seed, 3 * SECOND)
    in_mode("program")
    together = Session()
    for text in texts:
        together.register(text)
    together.push(pushed)
    together.engine.finish()
    assert outcomes.count(Outcome.COMPLETE) > 150
    in_mode("calls")
    for number, text in enumerate(texts):
        alone = Session()
        alone.register(text)
        alone.push(pushed)
        alone.engine.finish()
        assert [each for _, *each in alone.found] == [each for of, *each in together.found if of == number], text


def test_some_have_no_programs(outcomes: list[Outcome], in_mode: Callable[[str], None]) -> None:
    ask = f"PREFIX : <{EX}> ASK {{ {A} {B} FILTER(?x > 60) }}"
    every = over(f"{A} {B}", "?k ?x") + " ORDER BY ?x LIMIT 3"

    def run() -> list[Any]:
        session = Session()
        for text in (QUERIES["join"], QUERIES["optional"], ask, QUERIES["join"], every, QUERIES["sum of a join"]):
            session.register(text)
        session.push(of_both_streams(150, 4, SECOND))
        session.engine.finish()
        return session.found

    assert in_both(run, in_mode, outcomes)
    assert Outcome.COMPLETE in outcomes and Outcome.STOPPED in outcomes


def test_a_program_that_stops_leaves_the_rest_to_calls(outcomes: list[Outcome], in_mode: Callable[[str], None]) -> None:
    crowd = [(f"{EX}a", [(f"<{EX}s{i % 3}>", f"<{EX}a>", f'"{i}"^^{INTEGER}')], BEGIN + i) for i in range(300)]
    pushed = [
        *((f"{EX}b", [(f"<{EX}s{i % 3}>", f"<{EX}b>", f'"{i}"^^{INTEGER}')], BEGIN) for i in range(3)),
        *crowd,
        *((stream, triples, time + 60 * SECOND) for stream, triples, time in crowd[:20]),
    ]
    texts = QUERIES["join"], over(f"{A} {B}", "?k ?x"), over(f"{A} {B}", "?x (COUNT(*) AS ?n)") + " GROUP BY ?x"

    def run() -> list[Any]:
        session = Session()
        for text in (*texts, texts[0]):
            session.register(text)
        session.push(pushed)
        session.engine.finish()
        return session.found

    assert in_both(run, in_mode, outcomes)
    assert Outcome.STOPPED in outcomes and outcomes[-1] is Outcome.COMPLETE


def test_more_expires_at_once_than_a_clock_keeps_room_for(
    outcomes: list[Outcome], in_mode: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock, "_MOST_KEPT", 1 << 10)
    times = [*(BEGIN + i * 1_000 for i in range(1_100)), *(BEGIN + second * SECOND for second in (30, 31, 60))]
    pushed = [(f"{EX}a", [(f"<{EX}s{i % 3}>", f"<{EX}a>", f'"{i}"^^{INTEGER}')], time) for i, time in enumerate(times)]

    def run() -> list[Any]:
        session = Session()
        for text in (QUERIES["no filter"], QUERIES["filter"]):
            session.register(text)
        session.push(pushed)
        session.engine.finish()
        return session.found

    assert len(in_both(run, in_mode, outcomes)) > 2_200
    assert Outcome.STOPPED in outcomes and outcomes[-1] is Outcome.COMPLETE


@pytest.mark.parametrize("size", [1, 5])
def test_a_program_that_runs_out_of_memory_hands_over_the_rows_that_it_has_done(
    size: int, unmeasured: None, in_mode: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def greedy(term: Any) -> Any:
        if term.text == "too much":
            raise MemoryError
        return term

    monkeypatch.setitem(table.FUNCTIONS, "UCASE", Function(greedy, 1, 1))
    # The second has no program for all of a step: calls go on there, with the window that all read.
    texts = over(A, "(UCASE(?x) AS ?y)"), over(A, "RSTREAM ?x"), over(A, "?x"), over(A, "(COUNT(*) AS ?n)")
    values = [*(f"text {number}" for number in range(20)), "too much", *(f"text {number}" for number in range(20, 39))]

    def run() -> list[Any]:
        session = Session()
        for text in texts:
            session.register(text)
        for first in range(0, len(values), size):
            part = range(first, min(first + size, len(values)))
            terms = [[f"<{EX}s>"] * len(part), [f"<{EX}a>"] * len(part), [f'"{values[at]}"' for at in part]]
            rows = [[BEGIN + at for at in part], *terms]
            with pytest.raises(RunError, match="has run out of memory") if 20 in part else nullcontext():
                session.engine.push_batch(
                    f"{EX}a", pa.table(dict(zip(("time", "subject", "predicate", "object"), rows, strict=True)))
                )
        session.engine.advance(BEGIN + 20 * SECOND)
        return [session.found, [query.profile().operators[-1].rows_in for query in session.queries[1:]]]

    found = []
    for mode in ("calls", "program"):
        in_mode(mode)
        found.append(run())
    assert found[0] == found[1]
    assert sum(sign < 0 for number, *_, sign, _ in found[0][0] if number == 2) == len(values)


def test_a_query_that_is_alone_again_sees_its_rows_expire(
    outcomes: list[Outcome], in_mode: Callable[[str], None]
) -> None:
    one = [(f"<{EX}s>", f"<{EX}a>", f'"1"^^{INTEGER}')]
    text = QUERIES["no filter"]

    def run() -> list[Any]:
        session = Session()
        session.register(text)
        session.engine.push(f"{EX}a", one, time=BEGIN)
        session.register(text.replace("?k ?x WHERE", "?x WHERE"))
        for second in (1, 2, 3, 30):
            session.engine.push(f"{EX}a", one, time=BEGIN + second * SECOND)
        session.engine.advance(BEGIN + 50 * SECOND)
        session.engine.unregister(session.queries[1])
        session.engine.push(f"{EX}a", one, time=BEGIN + 60 * SECOND)
        session.engine.push(f"{EX}a", one, time=BEGIN + 61 * SECOND)
        session.engine.advance(BEGIN + 90 * SECOND)
        return session.found

    found = in_both(run, in_mode, outcomes)
    assert [each[2] - BEGIN for each in found if each[0] == 0 and each[3] < 0][-2:] == [70 * SECOND, 71 * SECOND]
    assert Outcome.COMPLETE in outcomes


def test_rows_are_counted_as_by_calls(outcomes: list[Outcome], in_mode: Callable[[str], None]) -> None:
    def run() -> list[list[tuple[str, int]]]:
        session = Session()
        for text in (
            QUERIES["join"],
            QUERIES["join"],
            QUERIES["sum of a join"],
            GROUPED["sum of a join"],
            QUERIES["texts"],
        ):
            session.register(text)
        session.push(of_both_streams(150, 6, SECOND))
        session.engine.unregister(session.queries[0])
        session.push([(stream, triples, time + 1000 * SECOND) for stream, triples, time in of_both_streams(80, 7)])
        return [
            [(each.text, each.rows_in, each.rows_out) for each in query.profile().operators]
            for query in session.queries[1:]
        ]

    assert in_both(run, in_mode, outcomes)
    assert outcomes.count(Outcome.COMPLETE) > 500


def test_an_engine_with_a_checkpoint_and_several_queries(
    tmp_path: Path, outcomes: list[Outcome], in_mode: Callable[[str], None]
) -> None:
    texts = [QUERIES["join"], QUERIES["optional"], QUERIES["sum of a join"], QUERIES["distinct of a join"]]
    pushed = of_both_streams(90, 8, SECOND)
    in_mode("calls")
    lone = Session(lateness="1s")
    for text in texts:
        lone.register(text)
    lone.push(pushed)
    in_mode("program")
    found = list[Any]()
    for part in range(0, 90, 30):
        session = Session(lateness="1s", checkpoint=tmp_path, durable="off")
        session.found = found
        for text in texts:
            number = len(session.queries)
            query = session.engine.register(text, changelog=True, name=f"q{number}")
            seen = sum(each[0] == number for each in found)
            query.subscribe(lambda result, of=number, to=session: to.take(of, result), from_number=seen + 1)
            session.queries.append(query)
        session.push(pushed[part : part + 30])
        session.engine._inputs._saving.wait()
        session.engine._inputs._resources.close()
    assert sorted(found, key=lambda each: each[:2]) == sorted(lone.found, key=lambda each: each[:2])
    assert outcomes.count(Outcome.COMPLETE) > 100


def test_subscribers_push_raise_and_unregister_in_the_middle(
    outcomes: list[Outcome], in_mode: Callable[[str], None]
) -> None:
    pushed = of_both_streams(160, 9, SECOND)

    def run() -> list[Any]:
        session, drawn, raised = Session(), random.Random(9), list[str]()
        engine, taken = session.engine, [0]

        def disturb(result: cqels.Result) -> None:
            taken[0] += 1
            if taken[0] % 17 == 3:
                engine.push(
                    f"{EX}a", [(f"<{EX}s{taken[0] % 9}>", f"<{EX}a>", f'"{taken[0]}"^^{INTEGER}')], time=result.time
                )
            if taken[0] % 41 == 5:
                raise ValueError(f"of the subscriber {taken[0]}")
            if taken[0] % 150 == 7 and len(engine.queries) > 2:
                engine.unregister(drawn.choice(engine.queries[1:]))

        texts = (
            QUERIES["join"],
            QUERIES["optional"],
            QUERIES["join"],
            QUERIES["sum of a join"],
            QUERIES["distinct of a join"],
        )
        for text in texts:
            session.register(text)
        session.queries[0].subscribe(disturb)
        for element in pushed:
            try:
                session.push([element])
            except ValueError as error:
                raised.append(str(error))
        return [session.found, raised, len(engine.queries)]

    found, raised, queries = in_both(run, in_mode, outcomes)
    assert len(found) > 500 and len(raised) > 3 and queries < 5
    assert outcomes.count(Outcome.COMPLETE) > 200


@long
def test_queries_that_come_and_go_leave_nothing_behind(in_mode: Callable[[str], None]) -> None:
    in_mode("program")
    session, records = Session(), list[int]()
    for text in (QUERIES["join"], QUERIES["optional"]):
        session.register(text)
    pushed = iter(of_both_streams(600, 10, SECOND))
    for number in range(24):
        session.register(over(f"{A} {B} FILTER(?x > {number})", "?k ?x"))
        session.push([next(pushed) for _ in range(20)])
        session.engine.unregister(session.queries[-1])
        session.queries.pop()
        gc.collect()
        records.append(sum(isinstance(each, DeltaRecord) for each in gc.get_objects()))
    assert 5 < max(records[12:]) <= max(records[:12])


def test_joins_of_all_queries_work_in_the_same_blocks(outcomes: list[Outcome], in_mode: Callable[[str], None]) -> None:
    texts = [over(f"{CHAIN} FILTER(?y != {number})", "?k ?l ?y") for number in range(6)]
    # Other windows, so other scans.
    texts += [text.replace("RANGE 4s", "RANGE 3s") for text in texts[:2]]
    # In the middle many leave their windows at once: there is no room for the results, and calls go on.
    crowd = [(stream, triples, BEGIN + i * 100) for i, (stream, triples, _) in enumerate(of_both_streams(250))]
    later = [(stream, triples, time + 60 * SECOND + i * 50_000) for i, (stream, triples, time) in enumerate(crowd)]
    blocks = set[int]()

    def run() -> list[Any]:
        session = Session()
        for text in texts:
            session.register(text)
        session.push([*crowd, *later])
        blocks.add(sum(isinstance(each, SharedBlocks) for each in gc.get_objects()))
        return session.found

    gc.collect()
    assert len(in_both(run, in_mode, outcomes)) > 500
    assert Outcome.STOPPED in outcomes and Outcome.COMPLETE in outcomes
    assert max(blocks) <= 1
