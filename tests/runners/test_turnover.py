"""Equal queries that were registered one after the other become one when their windows have turned over since."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tests.runners.test_moving_queries import EX, A, B, Call, Run, apart

FORMS = (
    "SELECT ?s ?v { STREAM :a %s { ?s :p0 ?v } }",
    "SELECT ?s ?n { STREAM :a %s { ?s :p0 ?v } FILTER(?v > 1) BIND(?v + 1 AS ?n) }",
    "SELECT (COUNT(*) AS ?n) (SUM(?v) AS ?m) (MAX(?v) AS ?x) { STREAM :a %s { ?s :p0 ?v } }",
    "SELECT (AVG(?v) AS ?m) { STREAM :a %s { ?s :p0 ?v . ?s :p1 ?w } }",
    "SELECT ?s ?v ?w { STREAM :a %s { ?s :p0 ?v . ?s :p1 ?w } }",
    "SELECT DISTINCT ?v { STREAM :a %s { { ?s :p0 ?v } UNION { ?s :p1 ?v } } }",
    "ASK { STREAM :a %s { ?s :p0 3 } }",
    "SELECT ?s ?x { STREAM :a %s { ?s :p0 ?v } STREAM :b [RANGE 3s] { ?s :p1 ?x } }",
    "SELECT ?s (MAX(?v) AS ?m) { STREAM :a %s { ?s :p0 ?v } } GROUP BY ?s",
    "SELECT ?v (GROUP_CONCAT(?s) AS ?all) { STREAM :a %s { ?s :p0 ?v } } GROUP BY ?v HAVING(COUNT(*) > 1)",
    "SELECT ?s (AVG(?w) AS ?m) (SUM(DISTINCT ?v) AS ?n) { STREAM :a %s { ?s :p0 ?v . ?s :p1 ?w } } GROUP BY ?s",
    "SELECT ?s ?v ?w { STREAM :a %s { ?s :p0 ?v OPTIONAL { ?s :p1 ?w } } }",
    "SELECT ?s ?v ?w { STREAM :a %s { ?s :p0 ?v } OPTIONAL { STREAM :b [RANGE 3s] { ?s :p1 ?w FILTER(?w > ?v) } } }",
    "SELECT ?s (COUNT(?w) AS ?n) { STREAM :a %s { ?s :p0 ?v OPTIONAL { ?s :p1 ?w } } } GROUP BY ?s",
    "SELECT ?s ?v { STREAM :a %s { ?s :p0 ?v FILTER NOT EXISTS { ?s :p1 ?w } } }",
    "SELECT ?s ?v { STREAM :a %s { ?s :p0 ?v } FILTER EXISTS { STREAM :b [COUNT 3] { ?s :p1 ?v } } }",
    "SELECT ?s ?v { STREAM :a %s { ?s :p0 ?v MINUS { ?s :p1 ?v } } }",
    "SELECT ?s ?v ?w ?x { STREAM :a %s { ?s :p0 ?v . ?z :p0 ?v . ?z :p1 ?w } }",
    "SELECT ?s ?z ?w { STREAM :a %s { ?s :p0 ?v } STREAM :b [RANGE 2s] { ?s :p1 ?w . ?z :p0 ?v } }",
    "SELECT ?s ?v { STREAM :a %s { ?s :p0 ?v } } ORDER BY DESC(?v) LIMIT 2 OFFSET 1",
    "SELECT ?s ?v ?w { STREAM :a %s { ?s :p0 ?v OPTIONAL { ?s :p1 ?w } } } ORDER BY ?w LIMIT 3",
    "CONSTRUCT { ?s :q _:x } { STREAM :a %s { ?s :p0 ?v } }",
)
UNDECIDED = (
    "SELECT ?s ?v ?w { STREAM :a %s { ?s :p0 ?v OPTIONAL { ?s :p1 ?w } OPTIONAL { ?z :p1 ?v } } }",
    "SELECT ?s ?v ?x { STREAM :a %s { ?s :p0 ?v } { SELECT DISTINCT ?s ?x { STREAM :b [RANGE 3s] { ?s :p1 ?x } } } }",
    "REGISTER RSTREAM <q> AS SELECT ?s ?v { STREAM :a %s { ?s :p0 ?v } }",
    "SELECT (NOW() AS ?t) ?v { STREAM :a %s { ?s :p0 ?v } }",
    "SELECT ?s { STREAM :a %s { ?s :p0 ?v } STREAM :b [ALL] { ?s :p1 ?x } }",
)
WINDOWS = ("[RANGE 2s]", "[RANGE 3s STEP 1s]", "[COUNT 3]", "[TRIPLES 4]", "[NOW]", "[FROM NOW-3s TO NOW-1s]")


def elements(draw: random.Random, count: int, start: int) -> list[Call]:
    """Elements of few subjects, several at some instants; later ones are a second and more behind the first."""
    now, made = start, list[Call]()
    for _ in range(count):
        now += draw.choice((0, 0, 200_000, 700_000))
        terms = [(f"<{EX}s{draw.randrange(3)}>", f"<{EX}p{draw.randrange(2)}>", draw.randrange(5)) for _ in "ab"]
        made.append(("push", (draw.choice((A, A, B)), terms[: draw.choice((1, 2))], now)))
    return made


def calls(seed: int, count: int) -> list[Call]:
    """Queries that come and go between elements."""
    draw = random.Random(seed)
    texts = [form % draw.choice(WINDOWS) for form in draw.sample(FORMS, 3) + draw.sample(UNDECIDED, 1)]
    found, there = list[Call](), 0
    for call in elements(draw, count, 1_000_000):
        if there < 3 or draw.random() < 0.12:
            found.append(("register", draw.choice(texts)))
            there += 1
        elif there > 4 and draw.random() < 0.1:
            found.append(("unregister", draw.randrange(there)))
            there -= 1
        found.append(call)
    return found


def leaders(run: Run) -> int:
    """The queries that take part in steps."""
    return sum(not run.engine._queries[query].follows for query, _ in run.queries)


@pytest.mark.parametrize("options", [{}, {"batch": 4}, {"lateness": 800_000}], ids=["one by one", "batches", "late"])
@pytest.mark.parametrize("seed", [0, 1, 2, 4, 6])  # Of the calls of the others none leave equal queries.
def test_each_has_the_results_in_the_order_that_it_has_alone(seed: int, options: dict[str, Any]) -> None:
    together, alone, most = Run(**options), Run(**options), 0
    for call in calls(seed, 150):
        together.do(call)
        apart(lambda call=call: alone.do(call))  # type: ignore[misc]
        most = max(most, leaders(alone) - leaders(together))
    for each in (together, alone):
        each.engine.flush()
    assert together.found == alone.found
    assert most > 0


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("form", FORMS[:-1])
def test_one_takes_part_once_windows_have_turned_over(form: str, window: str) -> None:
    run, draw = Run(), random.Random(1)
    for number in range(3):
        run.do(("register", form % window))
        for call in elements(draw, 6, number * 5_000_000):
            run.do(call)
    assert leaders(run) > 1 or window == "[NOW]"
    for call in elements(draw, 60, 20_000_000):
        run.do(call)
    assert leaders(run) == 1
    first = run.engine._queries[run.queries[0][0]].dataflow
    assert len(first.shared_scans.readers) == 1
    assert all(scan in {*first._scans} for scan in first.shared_scans.readers._of_scan)


@pytest.mark.parametrize("form", UNDECIDED)
def test_queries_whose_order_may_depend_on_former_contents_stay_apart(form: str) -> None:
    run, draw = Run(), random.Random(1)
    for number in range(3):
        run.do(("register", form % "[RANGE 2s]"))
        for call in elements(draw, 30, number * 9_000_000):
            run.do(call)
    assert leaders(run) == 3


@pytest.mark.parametrize(("form", "seed"), [*zip(UNDECIDED[:4], (0, 19, 0, 0), strict=True)])
def test_former_contents_decide_their_order_for_good(form: str, seed: int) -> None:
    """Two queries have the same results after their windows have turned over, but in another order."""
    draw, run, now = random.Random(seed), Run(), 0
    for number in range(160):
        now += draw.choice((0, 100_000, 400_000))
        terms = [(f"<{EX}s{draw.randrange(2)}>", f"<{EX}p{draw.randrange(2)}>", draw.randrange(4)) for _ in "ab"]
        if number in (0, 20):
            run.do(("register", form % "[RANGE 2s]"))
        if number == 80:
            turned_over = now
        run.do(("push", (draw.choice((A, A, B)), terms, now)))
    first, second = ([row for row in rows if row[0] > turned_over] for rows in run.found)
    assert sorted(first) == sorted(second)
    assert first != second


def test_the_order_of_results_does_not_depend_on_how_many_mappings_a_key_once_had() -> None:
    """The rings of a key that once had more than 32 mappings hold ids, also once it has few."""
    together, alone, now = Run(), Run(), 0
    text = "SELECT ?v ?w ?x { STREAM :a [RANGE 10s] { ?s :p0 ?v . ?s :p1 ?w . ?s :p2 ?x } }"

    def push(predicate: int, value: int, later: int) -> Call:
        nonlocal now
        now += later
        return "push", (A, [(f"<{EX}s>", f"<{EX}p{predicate}>", value)], now)

    given: list[Call] = [("register", text), *(push(1, each, 1000) for each in range(70)), ("register", text)]
    given += [push(1, each, 1_000_000) for each in range(12)]
    given += [push(predicate, each, 1_600_000) for each, predicate in enumerate((1, 2, 1, 2, 1, 1, 0, 0))]
    for call in given:
        together.do(call)
        apart(lambda call=call: alone.do(call))  # type: ignore[misc]
    assert leaders(together) == 1
    assert len(alone.found[0]) == len(alone.found[1]) > 10
    assert together.found == alone.found


@pytest.mark.parametrize("seed", range(4))
def test_a_process_that_goes_on_from_a_snapshot_gives_results_the_same_numbers(seed: int, tmp_path: Path) -> None:
    given = [call for call in calls(seed + 50, 120) if call[0] != "unregister"]
    whole = Run()
    for call in given:
        apart(lambda call=call: whole.do(call))  # type: ignore[misc]
    options: dict[str, Any] = {"checkpoint": tmp_path / "state", "durable": "off"}
    run, least = Run(**options), 0
    for number, call in enumerate(given):
        if number % 37 == 20:
            run.engine.checkpoint()
        if number % 41 == 30:
            least = max(least, len(run.queries) - leaders(run))
            run.engine.close()
            before, run = run, Run(**options)
            for query, rows in before.queries:
                run.again(query, rows)
        run.do(call)
    assert run.found == whole.found
    assert least > 0
    run.engine.close()


@pytest.mark.parametrize("window", WINDOWS[:4])
@pytest.mark.parametrize("form", [FORMS[2], FORMS[4], FORMS[6]])
def test_queries_that_are_one_are_one_again_after_a_restart(form: str, window: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"checkpoint": tmp_path / "state", "durable": "off"}
    given, draw = list[Call](), random.Random(2)
    # The last one, and one of other windows, see fewer elements before the snapshot.
    for number, each in enumerate((form % window, form % window, FORMS[0] % "[COUNT 9]", form % window, form % window)):
        given += [("register", each), *elements(draw, 3 if number == 4 else 30, 1_000_000 + 20_000_000 * number)]
    whole, run = Run(), Run(**options)
    for call in given:
        apart(lambda call=call: whole.do(call))  # type: ignore[misc]
        run.do(call)
    assert leaders(run) == 3
    run.engine.checkpoint()
    run.engine.close()
    before, run = run, Run(**options)
    for query, rows in before.queries:
        assert run.again(query, rows).restored
    for number, call in enumerate(elements(draw, 40, 200_000_000)):
        apart(lambda call=call: whole.do(call))  # type: ignore[misc]
        run.do(call)
        assert number < 2 or leaders(run) <= 3
    assert run.found == whole.found
    assert leaders(run) == 2
    run.engine.close()
