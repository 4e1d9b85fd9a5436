"""Steps of single elements as one compiled call: they equal those by single calls, whatever stops a program."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pytest
from rdflib import Literal, URIRef

import cqels_py as cqels
from cqels_py.dataflow.step_program import Outcome
from cqels_py.dictionary import Dictionary
from cqels_py.event_time import clock
from cqels_py.operators.s2r.window import WaitingWindow
from cqels_py.runners import local
from tests.oracle.naive import Element
from tests.support.harness import assert_engine_right

EX = "http://ex.org/"
INTEGER = "<http://www.w3.org/2001/XMLSchema#integer>"
FILTERED = f"PREFIX : <{EX}> SELECT ?k ?x WHERE {{ STREAM :a [RANGE 10s] {{ ?k :a ?x }} FILTER(?x > 50) }}"
BEGIN, SECOND = 1_700_000_000_000_000, 1_000_000
MODES = ("calls", "program")

Pushed = tuple[str, list[tuple[str, str, str]], int]
Run = Callable[[str, Sequence[Pushed]], list[Any]]


def readings(count: int, seed: int = 1, stream: str = "a", jump: int = 0) -> Iterator[Pushed]:
    """Elements of one to three triples, some of other predicates; now and then time jumps, or stands still."""
    drawn, time = random.Random(seed), BEGIN
    for _ in range(count):
        time += drawn.choice((0, 10_000, SECOND, jump or SECOND))
        triples = [_triple(drawn, stream) for _ in range(drawn.choice((1, 1, 1, 2, 3)))]
        yield f"{EX}{stream}", triples, time


def _triple(drawn: random.Random, stream: str) -> tuple[str, str, str]:
    predicate = drawn.choice((stream, stream, stream, "other"))
    return f"<{EX}s{drawn.randrange(9)}>", f"<{EX}{predicate}>", f'"{drawn.randrange(100)}"^^{INTEGER}'


def of_both_streams(count: int, seed: int = 1, jump: int = 0) -> list[Pushed]:
    """Elements of :a and :b in one order of time."""
    made = [*readings(count // 2, seed, "a", jump), *readings(count // 2, seed + 1, "b", jump)]
    return sorted(made, key=lambda pushed: pushed[2])


def results_of(text: str, pushed: Sequence[Pushed], **options: Any) -> list[Any]:
    """All results, one by one, in their order."""
    engine, found = cqels.Engine(**options), list[Any]()
    query = engine.register(text, changelog="ISTREAM" not in text)
    query.subscribe(lambda result: found.append((result.time, result.sign, dict(result.bindings))))
    for stream, triples, time in pushed:
        engine.push(stream, triples, time=time)
    engine.finish()
    return found


def elements_of(pushed: Iterable[Pushed]) -> list[Element]:
    """The same elements for the oracle; all objects are integers."""
    return [
        Element(
            time,
            URIRef(stream),
            tuple((URIRef(s[1:-1]), URIRef(p[1:-1]), Literal(int(o.split('"')[1]))) for s, p, o in triples),
        )
        for stream, triples, time in pushed
    ]


def assert_equal_in_both(
    text: str, pushed: Sequence[Pushed], outcomes: list[Outcome], in_mode: Callable[[str], None]
) -> None:
    in_mode("calls")
    expected = results_of(text, pushed)
    assert not outcomes and expected
    in_mode("program")
    assert results_of(text, pushed) == expected


def _over(body: str, columns: str) -> str:
    body = body.replace("{A}", "STREAM :a [RANGE 10s] { ?k :a ?x }").replace("{B}", "STREAM :b [RANGE 5s] { ?k :b ?y }")
    return f"PREFIX : <{EX}> SELECT {columns} WHERE {{ {body} }}"


def _matched(events: str, within: str = "WITHIN 5s", policy: str = "") -> str:
    return f"PREFIX : <{EX}> SELECT * WHERE {{ MATCH {policy} {within} {{ {events} }} }}"


QUERIES = {
    "filter": FILTERED,
    "no filter": f"PREFIX : <{EX}> SELECT ?k ?x WHERE {{ STREAM :a [RANGE 10s] {{ ?k :a ?x }} }}",
    "two filters": FILTERED.replace("FILTER(?x > 50)", "FILTER(?x > 20) FILTER(?x < 80 && ?x != 30)"),
    "a constant": f"PREFIX : <{EX}> SELECT ?x WHERE {{ STREAM :a [RANGE 5s] {{ :s1 :a ?x }} }}",
    "any predicate": f"PREFIX : <{EX}> SELECT ?k ?p ?x WHERE {{ STREAM :a [RANGE 5s] {{ ?k ?p ?x }} }}",
    "the same twice": f"PREFIX : <{EX}> SELECT ?k WHERE {{ STREAM :a [RANGE 5s] {{ ?k :a ?k }} }}",
    "everything": f"PREFIX : <{EX}> SELECT ?k ?x WHERE {{ STREAM :a [RANGE 1us] {{ ?k :a ?x }} }}",
    "join": _over("{A} {B}", "?k ?x ?y"),
    "join without a key": _over("{A} STREAM :b [RANGE 2s] { ?l :b ?y }", "?k ?l"),
    "star of three": _over("{A} {B} STREAM :a [RANGE 2s] { ?k :a ?z }", "?k ?x ?y ?z"),
    "join with filters": _over("{A} {B} FILTER(?x > 20) FILTER(?y < 70)", "?x ?y"),
    "join with itself": _over("{A} STREAM :a [RANGE 2s] { ?k :a ?y }", "?k ?x ?y"),
    "optional": _over("{A} OPTIONAL { {B} }", "?k ?x ?y"),
    "two optionals": _over("{A} OPTIONAL { {B} } OPTIONAL { STREAM :b [RANGE 2s] { ?k :other ?z } }", "?k ?x ?y ?z"),
    "minus": _over("{A} MINUS { {B} }", "?k ?x"),
    "exists": _over("{A} FILTER EXISTS { {B} }", "?k ?x"),
    "union": _over("{ {A} } UNION { {B} }", "?k ?x ?y"),
}
GROUPED = {
    "average": _over("{A}", "?k (AVG(?x) AS ?mean)") + " GROUP BY ?k",
    "extremes": _over("{A}", "?x (MIN(?k) AS ?low) (MAX(?k) AS ?high) (COUNT(*) AS ?n)") + " GROUP BY ?x",
    "distinct terms": _over("{A}", "?k (COUNT(DISTINCT ?x) AS ?n) (SUM(DISTINCT ?x) AS ?s)") + " GROUP BY ?k",
    "one group": _over("{A}", "(COUNT(*) AS ?n) (SUM(?x) AS ?s) (MAX(?x) AS ?high)"),
    "joined texts": _over("{A}", "?k (GROUP_CONCAT(?x) AS ?all)") + " GROUP BY ?k",
    "having": _over("{A}", "?k (COUNT(*) AS ?n)") + " GROUP BY ?k HAVING(COUNT(*) > 2 && MAX(?x) < 90)",
    "sum of a join": _over("{A} {B}", "?y (SUM(?x + ?y) AS ?s) (MIN(?x) AS ?low)") + " GROUP BY ?y",
    "groups of groups": _over("{ SELECT ?k (SUM(?x) AS ?s) { {A} } GROUP BY ?k }", "?s (COUNT(*) AS ?n)")
    + " GROUP BY ?s",
}
QUERIES |= GROUPED | {
    "distinct": _over("{A}", "DISTINCT ?k"),
    "distinct of a join": _over("{A} {B}", "DISTINCT ?x ?y"),
    "bind": _over("{A} BIND(?x * 2 AS ?y) FILTER(?y > 50)", "?k ?y"),
    "bound to an error": _over("{A} {B} BIND(?k + ?y AS ?z) FILTER(!BOUND(?z) || ?y = 3)", "?k ?z"),
    "compared": _over("{A} {B} FILTER(?x < ?y && (?y - ?x) / 7 > 1.5)", "?k ?x ?y"),
    "texts": _over('{A} {B} BIND(CONCAT(STR(?x), "-", STR(?y)) AS ?z) FILTER(CONTAINS(?z, "1"))', "?z"),
}
NO_STARS = {
    "join without a key": QUERIES.pop("join without a key"),
    "chain": _over("{A} STREAM :b [RANGE 2s] { ?l :b ?x } STREAM :a [RANGE 4s] { ?l :a ?z }", "?k ?l ?z"),
    "chain of groups": _over(
        "{A} { SELECT ?x (COUNT(?l) AS ?n) { STREAM :b [RANGE 3s] { ?l :b ?x } } GROUP BY ?x } STREAM :a [RANGE 4s] { ?l :a ?n }",
        "?k ?l ?n",
    ),
    "product of three": _over(
        "{A} STREAM :b [RANGE 8s] { ?l :b ?x } STREAM :a [RANGE 9s] { ?l :other ?z } FILTER(?k != ?l)", "?k ?l ?z"
    ),
    "two joins": _over(
        "{A} STREAM :b [RANGE 4s] { ?l :b ?x } OPTIONAL { {B} STREAM :a [RANGE 2s] { ?m :a ?y } }", "?k ?l ?m"
    ),
}
QUERIES |= NO_STARS
BELOW_JOINS = {
    "average below a join": _over("{A} {B}", "?k (AVG(?x) AS ?mean)") + " GROUP BY ?k",
    "extremes by key": _over("{A} {B}", "?k (MAX(?x) AS ?high) (MIN(?y) AS ?low) (SUM(?y) AS ?s)") + " GROUP BY ?k",
    "by a key of three": _over("{A} {B} STREAM :a [RANGE 2s] { ?k :a ?z }", "?k (SUM(?x) AS ?s) (COUNT(?z) AS ?n)")
    + " GROUP BY ?k",
    "average of one input": _over("{A} {B}", "?x (AVG(?y) AS ?mean) (COUNT(*) AS ?n)") + " GROUP BY ?x",
    "sum of one input": _over("{A} {B}", "?x (SUM(?y) AS ?s)") + " GROUP BY ?x",
    "extreme of one input": _over("{A} {B}", "?x (MAX(?y) AS ?high)") + " GROUP BY ?x",
    "extremes of both": _over("{A} {B}", "?x (MAX(?y) AS ?high) (MIN(?k) AS ?low)") + " GROUP BY ?x",
    "all kinds": _over("{A} {B}", "?y (MIN(?x) AS ?low) (SUM(?x) AS ?s) (COUNT(*) AS ?n)") + " GROUP BY ?y",
    "one group of a join": _over("{A} {B}", "(SUM(?y) AS ?s) (MAX(?x) AS ?high)"),
}
QUERIES |= BELOW_JOINS
CALLED = {
    "different rows": _over("{A} {B}", "(COUNT(DISTINCT *) AS ?n)"),
    "path": f"PREFIX : <{EX}> SELECT ?k ?l WHERE {{ STREAM :a [RANGE 5s] {{ ?k :a+ ?l }} }}",
}
"""Plans with operators that programs call."""
TOP = {
    "top": _over("{ SELECT ?k ?x { {A} } ORDER BY DESC(?x) LIMIT 3 }", "?k ?x"),
    "top from the third on": _over("{ SELECT ?k ?x { {A} } ORDER BY ?k ?x LIMIT 4 OFFSET 2 }", "?k ?x"),
    "top of averages": _over(
        "{ SELECT ?k (AVG(?x) AS ?m) { {A} } GROUP BY ?k ORDER BY DESC(?m) LIMIT 2 } {B}", "?k ?m ?y"
    ),
}
QUERIES |= TOP
QUERIES |= CALLED | {
    "inline rows": _over("{A} VALUES (?x ?w) { (1 2) (50 3) (51 3) (52 3) (53 4) (54 4) (55 5) }", "?k ?w"),
    "union with inline rows": _over("{ {A} } UNION { VALUES ?x { 1 2 3 } }", "?x ?k"),
}
_FIRST, _THEN = "EVENT ON :a { ?k :a ?x }", "EVENT ON :b { ?k :b ?y }"
MATCHES = {
    "sequence": _matched(f"{_FIRST} SEQ {_THEN}"),
    "events with conditions": _matched(
        "EVENT ON :a { ?k :a ?x FILTER(?x > 40) FILTER(?x != 70) } SEQ EVENT ON :b { ?k :b ?y FILTER(?y < 60) }"
    ),
    "three events": _matched(f"{_FIRST} SEQ {_THEN} SEQ EVENT ON :a {{ ?k :a ?z }}", "WITHIN 10s"),
    "absent": _matched(f"{_FIRST} SEQ NOT {_THEN} SEQ EVENT ON :a {{ ?k :a ?z }}"),
    "latest": _matched(f"{_FIRST} SEQ {_THEN}", "WITHIN 3s", "LATEST"),
    "earliest": _matched(f"{_FIRST} SEQ EVENT ON :b {{ ?l :b ?y }}", "WITHIN 3s", "EARLIEST"),
    "events of two patterns": _matched("EVENT ON :a { ?k :a ?x . ?k :other ?w } SEQ EVENT ON :b { ?l :b ?y }"),
}
QUERIES |= MATCHES
_STEP = "STREAM :a [RANGE 10s STEP 2s] { ?k :a ?x }"
WINDOWS = {
    "step": _over(_STEP, "?k ?x"),
    "step with a filter": _over(f"{_STEP} FILTER(?x > 40)", "?k ?x"),
    "tumbling": _over("STREAM :a [RANGE 2s STEP 2s] { ?k :a ?x }", "?k (AVG(?x) AS ?mean)") + " GROUP BY ?k",
    "groups of steps": _over(_STEP, "?k (AVG(?x) AS ?mean) (COUNT(*) AS ?n)") + " GROUP BY ?k",
    "two steps": _over(f"{_STEP} STREAM :b [RANGE 6s STEP 3s] {{ ?k :b ?y }}", "?k ?x ?y"),
    "step and eager": _over(f"{_STEP} {{B}}", "?k ?x ?y"),
    "step and optional": _over(f"{{A}} OPTIONAL {{ {_STEP.replace(':a', ':b').replace('?x', '?y')} }}", "?k ?x ?y"),
    "delayed": _over("STREAM :a [FROM NOW-8s TO NOW-2s] { ?k :a ?x }", "?k ?x"),
    "delayed briefly": _over("STREAM :a [FROM NOW-2050ms TO NOW-2s] { ?k :a ?x }", "?k ?x"),
    "delayed and eager": _over("STREAM :a [FROM NOW-8s TO NOW-2s] { ?k :a ?x } {B}", "?k ?x ?y"),
    "delayed and optional": _over("{A} OPTIONAL { STREAM :b [FROM NOW-8s TO NOW-2s] { ?k :b ?y } }", "?k ?x ?y"),
    "delayed groups": _over("STREAM :a [FROM NOW-8s TO NOW-2s] { ?k :a ?x }", "?k (AVG(?x) AS ?mean)") + " GROUP BY ?k",
    "delayed steps": _over("STREAM :a [FROM NOW-8s TO NOW-3s STEP 2s] { ?k :a ?x }", "?k ?x"),
    "count": _over("STREAM :a [COUNT 5] { ?k :a ?x }", "?k ?x"),
    "triples": _over("STREAM :a [TRIPLES 5] { ?k :a ?x }", "?k ?x"),
    "count and time": _over("STREAM :a [COUNT 4] { ?k :a ?x } {B}", "?k ?x ?y"),
    "groups of counts": _over("STREAM :a [COUNT 7] { ?k :a ?x }", "?k (AVG(?x) AS ?mean)") + " GROUP BY ?k",
    "count steps": _over("STREAM :a [COUNT 6 STEP 3] { ?k :a ?x }", "?k ?x"),
    "triple steps": _over("STREAM :a [TRIPLES 6 STEP 4] { ?k :a ?x }", "?k ?x"),
    "count steps and time": _over("STREAM :a [COUNT 6 STEP 2] { ?k :a ?x } {B}", "?k ?x ?y"),
    "all": _over("STREAM :a [ALL] { ?k :a ?x } {B}", "?k ?x ?y"),
    "session": _over("STREAM :a [SESSION 900ms] { ?k :a ?x }", "?k ?x"),
    "session with a filter": _over("STREAM :a [SESSION 1s] { ?k :a ?x } FILTER(?x > 40)", "?k ?x"),
    "groups of sessions": _over("STREAM :a [SESSION 900ms] { ?k :a ?x }", "?k (AVG(?x) AS ?mean)") + " GROUP BY ?k",
    "two sessions": _over("STREAM :a [SESSION 900ms] { ?k :a ?x } STREAM :b [SESSION 2s] { ?k :b ?y }", "?k ?x ?y"),
    "session and optional": _over("{A} OPTIONAL { STREAM :b [SESSION 500ms] { ?k :b ?y } }", "?k ?x ?y"),
    "partition": _over("STREAM :a [COUNT 2 PARTITION BY ?k] { ?k :a ?x }", "?k ?x"),
    "partition with a filter": _over("STREAM :a [COUNT 2 PARTITION BY ?k] { ?k :a ?x } FILTER(?x > 40)", "?k ?x"),
    "partition by two": _over("STREAM :a [COUNT 1 PARTITION BY ?x ?k] { ?k :a ?x }", "?k ?x"),
    "partition of triples": _over("STREAM :a [TRIPLES 1 PARTITION BY ?k] { ?k :a ?x }", "?k ?x"),
    "partition by another pattern": _over("STREAM :a [COUNT 2 PARTITION BY ?l] { ?k :a ?x . ?l :other ?x }", "?k ?l"),
    "partition by joined patterns": _over(
        "STREAM :a [COUNT 2 PARTITION BY ?k ?y] { ?k :a ?x . ?k :other ?y }", "?k ?x"
    ),
    "groups of partitions": _over("STREAM :a [COUNT 3 PARTITION BY ?k] { ?k :a ?x }", "?k (AVG(?x) AS ?mean)")
    + " GROUP BY ?k",
    "two partitions": _over(
        "STREAM :a [COUNT 2 PARTITION BY ?k] { ?k :a ?x } STREAM :b [TRIPLES 3 PARTITION BY ?k] { ?k :b ?y }",
        "?k ?x ?y",
    ),
    "partition and optional": _over("{A} OPTIONAL { STREAM :b [COUNT 1 PARTITION BY ?k] { ?k :b ?y } }", "?k ?x ?y"),
    "partition steps": _over("STREAM :a [COUNT 2 STEP 3 PARTITION BY ?k] { ?k :a ?x } {B}", "?k ?x ?y"),
    "partition of sessions": _over("STREAM :a [SESSION 3s PARTITION BY ?k] { ?k :a ?x }", "?k ?x"),
    "groups of sessions by value": _over("STREAM :a [SESSION 2s PARTITION BY ?k] { ?k :a ?x }", "?x (COUNT(*) AS ?n)")
    + " GROUP BY ?x",
    "session steps by value": _over("STREAM :a [SESSION 900ms STEP 2s PARTITION BY ?k] { ?k :a ?x } {B}", "?k ?x ?y"),
    "session steps": _over("STREAM :a [SESSION 900ms STEP 2s] { ?k :a ?x } {B}", "?k ?x ?y"),
}
QUERIES |= WINDOWS
ONLY_STEPS = ("step", "step with a filter", "tumbling", "groups of steps", "two steps", "delayed steps")
PARTLY = {
    "ask": f"PREFIX : <{EX}> ASK {{ STREAM :a [RANGE 10s] {{ ?k :a 7 }} }}",
}
"""Plans with operators that only calls know: programs end before these."""
ALL = {**QUERIES, **PARTLY}


@pytest.mark.parametrize("name", [name for name in ALL if name != "the same twice"])
def test_steps_equal_those_by_calls(name: str, outcomes: list[Outcome], in_mode: Callable[[str], None]) -> None:
    pushed = of_both_streams(300) if ":b" in ALL[name] else [*readings(250)]
    assert_equal_in_both(ALL[name], pushed, outcomes, in_mode)
    # Where all windows have STEP, elements mostly wait for its boundary, and are a batch then.
    fewest = 20 if name in ONLY_STEPS else 180
    assert outcomes.count(Outcome.STOPPED if name in PARTLY else Outcome.COMPLETE) > fewest


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ALL)
def test_answers_equal_the_oracles(
    name: str, mode: str, outcomes: list[Outcome], in_mode: Callable[[str], None]
) -> None:
    in_mode(mode)
    pushed = of_both_streams(60, 3, 4 * SECOND) if ":b" in ALL[name] else readings(60, 3, jump=4 * SECOND)
    assert_engine_right(ALL[name], elements_of(pushed), batches=(1,))
    assert bool(outcomes) == (mode == "program")


def test_a_window_that_grows_makes_room_within_a_program(
    outcomes: list[Outcome], in_mode: Callable[[str], None]
) -> None:
    text = QUERIES["no filter"].replace("10s", "1h")
    pushed = [
        (f"{EX}a", [(f"<{EX}s{i}>", f"<{EX}a>", f'"{i}"^^{INTEGER}')], BEGIN + i * (1_000 if i % 7 else 300_000))
        for i in range(1_000)
    ]
    assert_equal_in_both(text, pushed, outcomes, in_mode)
    # The dictionary and the clock grow too, for which the whole step is done by calls.
    assert outcomes.count(Outcome.REFUSED) < 50
    assert not outcomes.count(Outcome.STOPPED)


def test_a_clock_with_much_room_that_gives_it_back_keeps_the_ticks_of_the_step(
    outcomes: list[Outcome], in_mode: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    # As with some hundred windows: each step that the clock makes with Python gives the room back.
    monkeypatch.setattr(clock, "_MOST_KEPT", 1 << 8)
    triple = f"<{EX}s>", f"<{EX}a>", f'"60"^^{INTEGER}'
    pushed = [(f"{EX}a", [triple], BEGIN + i * 1_000) for i in range(400)]
    assert_equal_in_both(QUERIES["no filter"], pushed, outcomes, in_mode)
    assert outcomes.count(Outcome.COMPLETE) > 390


def test_more_changes_than_there_is_room_for_are_made_by_calls(
    outcomes: list[Outcome], in_mode: Callable[[str], None]
) -> None:
    crowd = [(f"{EX}a", [(f"<{EX}s{i}>", f"<{EX}a>", f'"{60 + i % 9}"^^{INTEGER}')], BEGIN) for i in range(300)]
    later = [(f"{EX}a", crowd[0][1], BEGIN + 60 * SECOND), (f"{EX}a", crowd[1][1], BEGIN + 61 * SECOND)]
    assert_equal_in_both(FILTERED, [*crowd, *later], outcomes, in_mode)
    assert Outcome.STOPPED in outcomes
    assert outcomes[-1] is Outcome.COMPLETE


@pytest.mark.parametrize("name", ["join", "optional"])
def test_a_join_goes_on_by_calls_where_its_results_have_no_room(
    name: str, outcomes: list[Outcome], in_mode: Callable[[str], None]
) -> None:
    drawn, pushed = random.Random(5), list[Pushed]()
    for i in range(450):
        # Mostly one key: more partners than results fit. In the middle all of them expire at once.
        stream, time = drawn.choice("aaaab"), BEGIN + i * 1_000 + (60 * SECOND if i > 350 else 0)
        key = "s" if drawn.random() < 0.9 else f"s{i}"
        pushed.append((f"{EX}{stream}", [(f"<{EX}{key}>", f"<{EX}{stream}>", f'"{i}"^^{INTEGER}')], time))
    assert_equal_in_both(QUERIES[name], pushed, outcomes, in_mode)
    assert Outcome.COMPLETE in outcomes and Outcome.STOPPED in outcomes


@pytest.mark.parametrize("body", ["{A} {B}", "{A} OPTIONAL { {B} }", "{A} {B} STREAM :b [RANGE 2s] { ?l :b ?x }"])
def test_groups_of_a_join_come_in_the_same_order_where_its_results_have_no_room(
    body: str, outcomes: list[Outcome], in_mode: Callable[[str], None]
) -> None:
    """They are grouped chunk by chunk: other chunks of the join would be another order within a tick."""
    crowd = [(f"{EX}a", [(f"<{EX}s>", f"<{EX}a>", f'"{i % 3}"^^{INTEGER}')], BEGIN) for i in range(200)]
    later = [(f"{EX}b", [(f"<{EX}s>", f"<{EX}b>", f'"{i % 3}"^^{INTEGER}')], BEGIN + i) for i in range(1, 30)]
    text = _over(body, "?x (COUNT(DISTINCT ?y) AS ?n) (COUNT(*) AS ?m)") + " GROUP BY ?x"
    assert_equal_in_both(text, [*crowd, *later], outcomes, in_mode)
    assert Outcome.STOPPED in outcomes


@pytest.mark.parametrize("name", ["join", "optional"])
def test_a_join_that_grows_makes_room_within_a_program(
    name: str, outcomes: list[Outcome], in_mode: Callable[[str], None]
) -> None:
    drawn, pushed = random.Random(6), list[Pushed]()
    for i in range(1_200):
        stream, key = drawn.choice("ab"), drawn.randrange(500)
        # Windows that become fuller, then empty.
        time = BEGIN + (i * 2_000 if i < 900 else i * 200_000)
        pushed.append((f"{EX}{stream}", [(f"<{EX}s{key}>", f"<{EX}{stream}>", f'"{i}"^^{INTEGER}')], time))
    assert_equal_in_both(QUERIES[name], pushed, outcomes, in_mode)
    assert outcomes.count(Outcome.COMPLETE) > 1_000


@pytest.mark.parametrize("window", ["SESSION 2s PARTITION BY ?k", "SESSION 2s", "TRIPLES 1 PARTITION BY ?k"])
def test_more_mappings_that_leave_at_once_than_there_is_room_for(
    window: str, outcomes: list[Outcome], in_mode: Callable[[str], None]
) -> None:
    pushed = []
    for i in range(600):
        triples = [(f"<{EX}s{i % 40}>", f"<{EX}a>", f'"{i * 3 + n}"^^{INTEGER}') for n in range(3)]
        pushed.append((f"{EX}a", triples, BEGIN + i * 10_000 + i // 200 * 10 * SECOND))
    text = _over(f"STREAM :a [{window}] {{ ?k :a ?x }} {{B}}", "?k ?x")
    pushed.append((f"{EX}b", [(f"<{EX}s3>", f"<{EX}b>", f'"1"^^{INTEGER}')], pushed[-1][2]))
    pushed += [(stream, triples, time + 30 * SECOND) for stream, triples, time in pushed[-50:]]
    assert_equal_in_both(text, pushed, outcomes, in_mode)
    assert outcomes.count(Outcome.COMPLETE) > 550
    assert (Outcome.STOPPED in outcomes) == window.startswith("SESSION")


def test_a_window_whose_scans_calls_go_on_with_keeps_the_same_units(
    outcomes: list[Outcome], in_mode: Callable[[str], None]
) -> None:
    body = 'STREAM :a [COUNT 2 PARTITION BY ?k] { ?k :a ?x . ?k :other ?y } FILTER(CONTAINS(STR(?y), "1"))'
    assert_equal_in_both(_over(body, "?k ?x ?y"), [*readings(400)], outcomes, in_mode)
    assert outcomes.count(Outcome.COMPLETE) > 20 and Outcome.STOPPED in outcomes


def drawn_query(drawn: random.Random) -> str:
    """A query of operators that have entries, one above the other."""
    body, names = drawn.choice(
        (("{A}", "kx"), ("{A} {B}", "kxy"), ("{A} OPTIONAL { {B} }", "kxy"), ("{ {A} } UNION { {B} }", "kxy"))
    )
    if drawn.random() < 0.5:
        body += drawn.choice((" BIND(?x + 1 AS ?z)", " BIND(?x / 3 AS ?z)", " BIND(STR(?x) AS ?z)"))
        names += "z"
    if drawn.random() < 0.5:
        body += drawn.choice((" FILTER(?x > 30)", " FILTER(?x != 7 || !BOUND(?x))", " FILTER(STRLEN(STR(?x)) < 2)"))
    if drawn.random() < 0.3:
        return _over(body, "DISTINCT " + " ".join(f"?{name}" for name in drawn.sample(names, 2)))
    if drawn.random() < 0.2:
        return _over(body, " ".join(f"?{name}" for name in names))
    key, made = drawn.choice(names), []
    for number in range(drawn.choice((1, 1, 2, 3))):
        function = drawn.choice(("COUNT", "SUM", "AVG", "MIN", "MAX"))
        made.append(f"({function}({drawn.choice(('', 'DISTINCT '))}?{drawn.choice(names)}) AS ?made{number})")
    if drawn.random() < 0.2:
        return _over(body, " ".join(made))
    having = drawn.choice(("", " HAVING(COUNT(*) > 1)"))
    return _over(body, " ".join([f"?{key}", *made])) + f" GROUP BY ?{key}{having}"


@pytest.mark.parametrize("seed", range(12))
def test_drawn_queries_are_right_at_every_tick(
    seed: int, outcomes: list[Outcome], in_mode: Callable[[str], None]
) -> None:
    drawn = random.Random(seed)
    text = drawn_query(drawn)
    pushed = of_both_streams(50, seed, 4 * SECOND) if ":b" in text else [*readings(40, seed, jump=4 * SECOND)]
    in_mode("calls")
    expected = results_of(text, pushed)
    in_mode("program")
    assert results_of(text, pushed) == expected, text
    assert outcomes
    assert_engine_right(text, elements_of(pushed), batches=(1,))


NUMBERS = (
    f'"7"^^{INTEGER}', '"2.5"^^<http://www.w3.org/2001/XMLSchema#decimal>', '"1e300"^^<http://www.w3.org/2001/XMLSchema#double>',
    '"0.1"^^<http://www.w3.org/2001/XMLSchema#float>', f'"{40 * "7"}"^^{INTEGER}', '"no number"',
    f'"{30 * "9"}.5"^^<http://www.w3.org/2001/XMLSchema#decimal>', "<http://ex.org/no-number>", '"12"^^<http://ex.org/odd>',
)  # fmt: skip


@pytest.mark.parametrize("function", ["SUM", "AVG", "MAX", "COUNT"])
def test_numbers_that_are_not_inline_are_aggregated_within_a_program(
    function: str, outcomes: list[Outcome], in_mode: Callable[[str], None]
) -> None:
    drawn, text = random.Random(8), _over("{A}", f"?k ({function}(?x) AS ?made)") + " GROUP BY ?k"
    pushed = [
        (f"{EX}a", [(f"<{EX}s{drawn.randrange(3)}>", f"<{EX}a>", drawn.choice(NUMBERS))], BEGIN + i * SECOND // 2)
        for i in range(120)
    ]
    assert_equal_in_both(text, pushed, outcomes, in_mode)
    assert outcomes.count(Outcome.COMPLETE) > 100


@pytest.mark.parametrize("function", ["SUM", "MAX"])
@pytest.mark.parametrize("by", ["k", "x", "y"])
def test_numbers_that_are_not_inline_are_aggregated_below_joins(
    by: str, function: str, outcomes: list[Outcome], in_mode: Callable[[str], None]
) -> None:
    drawn, text = random.Random(9), _over("{A} {B}", f"?{by} ({function}(?x) AS ?made)") + f" GROUP BY ?{by}"
    pushed = [
        (f"{EX}{stream}", [(f"<{EX}s{drawn.randrange(3)}>", f"<{EX}{stream}>", drawn.choice(NUMBERS))], BEGIN + i * SECOND // 2)
        for i, stream in enumerate(drawn.choices("ab", k=120))
    ]  # fmt: skip
    assert_equal_in_both(text, pushed, outcomes, in_mode)
    assert outcomes.count(Outcome.COMPLETE) > 100


@pytest.mark.parametrize(
    ("name", "keys"),
    [("sum of one input", 80), ("extreme of one input", 80), ("all kinds", 40), ("extremes of both", 80)],
)
def test_more_contributions_than_there_is_room_for_are_aggregated_by_calls(
    name: str, keys: int, outcomes: list[Outcome], in_mode: Callable[[str], None]
) -> None:
    carrier, other = "ba" if "?y (" in QUERIES[name] else "ab"
    crowd = [
        (f"{EX}{carrier}", [(f"<{EX}s>", f"<{EX}{carrier}>", f'"{i}"^^{INTEGER}')], BEGIN + i) for i in range(keys)
    ]
    later = [
        (f"{EX}{other}", [(f"<{EX}s>", f"<{EX}{other}>", f'"{i}"^^{INTEGER}')], BEGIN + 1_000 * i)
        for i in (1, 2, 3, 9_000)
    ]
    assert_equal_in_both(QUERIES[name], [*crowd, *later], outcomes, in_mode)
    assert Outcome.COMPLETE in outcomes
    assert Outcome.STOPPED in outcomes or keys < 64


@pytest.mark.parametrize(
    "name",
    [
        *("extremes", "distinct terms", "joined texts", "distinct", "sum of a join", "top"),
        *("extremes by key", "average of one input", "extreme of one input", "all kinds", "one group of a join"),
    ],
)
def test_groups_that_grow_make_room_within_a_program(
    name: str, outcomes: list[Outcome], in_mode: Callable[[str], None]
) -> None:
    pushed = list[Pushed]()
    streams = "ab" if ":b" in QUERIES[name] else "aa"
    for i in range(800):
        # Windows that become fuller, then empty, then fuller again.
        time = BEGIN + i * 4_000 + (i > 500) * 30 * SECOND
        triples = [(f"<{EX}s{i % 7 if i % 3 else i}>", f"<{EX}{streams[i % 2]}>", f'"{i % 400}"^^{INTEGER}')]
        pushed.append((f"{EX}{streams[i % 2]}", triples, time))
    assert_equal_in_both(QUERIES[name], pushed, outcomes, in_mode)
    assert outcomes.count(Outcome.COMPLETE) > 700


@pytest.mark.parametrize("name", ["average", "distinct", "having"])
def test_more_rows_than_a_group_has_room_for_are_aggregated_by_calls(
    name: str, outcomes: list[Outcome], in_mode: Callable[[str], None]
) -> None:
    crowd = [(f"{EX}a", [(f"<{EX}s{i % 50}>", f"<{EX}a>", f'"{60 + i % 9}"^^{INTEGER}')], BEGIN) for i in range(160)]
    later = [(f"{EX}a", crowd[0][1], BEGIN + 60 * SECOND), (f"{EX}a", crowd[1][1], BEGIN + 61 * SECOND)]
    assert_equal_in_both(QUERIES[name], [*crowd, *later], outcomes, in_mode)
    assert name == "distinct" or Outcome.STOPPED in outcomes[-2:-1]
    assert outcomes[-1] is Outcome.COMPLETE


@pytest.mark.parametrize("name", ["join without a key", "chain", "top"])
def test_a_program_stops_where_an_operator_has_made_too_many_changes(
    name: str, outcomes: list[Outcome], in_mode: Callable[[str], None]
) -> None:
    # As all leave the windows at once.
    streams = "ab" if ":b" in QUERIES[name] else "aa"
    pushed = [
        (
            f"{EX}{streams[i % 2]}",
            [(f"<{EX}s{i % 5}>", f"<{EX}{streams[i % 2]}>", f'"{i % 9}"^^{INTEGER}')],
            BEGIN + i * 100,
        )
        for i in range(150)
    ]
    later = [(stream, triples, time + 60 * SECOND) for stream, triples, time in pushed[:5]]
    assert_equal_in_both(QUERIES[name], [*pushed, *later], outcomes, in_mode)
    assert Outcome.STOPPED in outcomes or name == "top"
    assert Outcome.COMPLETE in outcomes


@pytest.mark.parametrize("name", ["step and eager", "count steps and time", "delayed", "all", "count"])
def test_windows_that_grow_make_room_within_a_program(
    name: str, outcomes: list[Outcome], in_mode: Callable[[str], None]
) -> None:
    text = (
        WINDOWS[name]
        .replace("10s", "1h")
        .replace("COUNT 6 STEP 2", "COUNT 400 STEP 150")
        .replace("COUNT 5", "COUNT 700")
    )
    pushed = list[Pushed]()
    for i in range(1_500):
        stream = "b" if ":b" in text and i % 5 == 0 else "a"
        triples = [(f"<{EX}s{i % 211}>", f"<{EX}{stream}>", f'"{i}"^^{INTEGER}')]
        pushed.append((f"{EX}{stream}", triples, BEGIN + i * 20_000 + i // 7 * 130_000))
    assert_equal_in_both(text, pushed, outcomes, in_mode)
    assert outcomes.count(Outcome.COMPLETE) > 1_400


@pytest.mark.parametrize("name", ["step and eager", "count steps and time", "delayed"])
def test_a_window_that_changes_more_than_there_is_room_for_is_handed_over(
    name: str, outcomes: list[Outcome], in_mode: Callable[[str], None]
) -> None:
    text = WINDOWS[name].replace("COUNT 6 STEP 2", "COUNT 600 STEP 300")
    crowd = [(f"{EX}a", [(f"<{EX}s{i}>", f"<{EX}a>", f'"{i}"^^{INTEGER}')], BEGIN) for i in range(400)]
    later = [(stream, triples, BEGIN + 2 * SECOND + i * 100_000) for i, (stream, triples, _) in enumerate(crowd)]
    if ":b" in text:
        later += [
            (f"{EX}b", [(f"<{EX}s{i}>", f"<{EX}b>", f'"1"^^{INTEGER}')], later[0][2] + i * SECOND) for i in range(30)
        ]
        later.sort(key=lambda each: each[2])
    assert_equal_in_both(text, [*crowd, *later], outcomes, in_mode)
    assert Outcome.STOPPED in outcomes
    assert outcomes.count(Outcome.COMPLETE) > 300


@pytest.mark.parametrize("name", ["step", "groups of steps", "step and eager", "count steps"])
def test_elements_of_which_some_have_no_triples_stay_in_order(
    name: str, outcomes: list[Outcome], in_mode: Callable[[str], None]
) -> None:
    drawn = random.Random(6)
    pushed = [
        (stream, [] if drawn.random() < 0.3 else triples, time)
        for stream, triples, time in (of_both_streams(150, 5) if ":b" in WINDOWS[name] else readings(150, 5))
    ]
    assert_equal_in_both(WINDOWS[name], pushed, outcomes, in_mode)


@pytest.mark.parametrize(
    "name",
    (
        *("step and eager", "delayed", "delayed and eager", "count steps", "all", "two sessions", "session steps"),
        *("two partitions", "partition with a filter", "partition steps", "partition of sessions"),
    ),
)
def test_profiles_count_rows_alike(name: str, in_mode: Callable[[str], None]) -> None:
    counts = []
    for mode in MODES:
        in_mode(mode)
        engine = cqels.Engine()
        query = engine.register(WINDOWS[name])
        for stream, triples, time in of_both_streams(200) if ":b" in WINDOWS[name] else readings(200):
            engine.push(stream, triples, time=time)
        counts.append([(each.rows_in, each.rows_out) for each in query.profile().operators])
    assert counts[0] == counts[1]
    assert counts[0]


@pytest.mark.parametrize("name", ["delayed", "delayed briefly", "delayed and eager"])
def test_programs_advance_windows_that_are_delayed(
    name: str, in_mode: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    advanced: list[int] = []
    advance = WaitingWindow.advance

    def noted(window: WaitingWindow, *given: Any) -> Any:
        advanced.append(1)
        return advance(window, *given)

    monkeypatch.setattr(WaitingWindow, "advance", noted)
    counts = []
    for mode in MODES:
        in_mode(mode)
        advanced.clear()
        pushed = of_both_streams(300) if ":b" in WINDOWS[name] else [*readings(300)]
        assert results_of(WINDOWS[name], pushed)
        counts.append(len(advanced))
    # Some steps are left to calls, so that they are measured, and the first.
    assert counts[0] > 200 and counts[1] < 15


@pytest.mark.parametrize("name", ["sequence", "three events", "latest", "earliest"])
def test_an_automaton_that_grows_makes_room_within_a_program(
    name: str, outcomes: list[Outcome], in_mode: Callable[[str], None]
) -> None:
    drawn, pushed = random.Random(4), list[Pushed]()
    for i in range(700):
        stream, key = drawn.choice("aaaaab"), drawn.randrange(90)
        # Many runs, then all of them are out of reach, then many again.
        time = BEGIN + i * 10_000 + (i > 400) * 30 * SECOND
        pushed.append((f"{EX}{stream}", [(f"<{EX}s{key}>", f"<{EX}{stream}>", f'"{i}"^^{INTEGER}')], time))
    assert_equal_in_both(QUERIES[name], pushed, outcomes, in_mode)
    assert outcomes.count(Outcome.COMPLETE) > 650


def test_more_matches_than_there_is_room_for_are_handed_over(
    outcomes: list[Outcome], in_mode: Callable[[str], None]
) -> None:
    crowd = [(f"{EX}a", [(f"<{EX}s>", f"<{EX}a>", f'"{i}"^^{INTEGER}')], BEGIN + i) for i in range(200)]
    last = [
        (f"{EX}b", [(f"<{EX}s>", f"<{EX}b>", f'"{i}"^^{INTEGER}')], BEGIN + 300 + i * 10 * SECOND) for i in range(3)
    ]
    assert_equal_in_both(QUERIES["sequence"], [*crowd, *last], outcomes, in_mode)
    assert Outcome.STOPPED in outcomes[-3:]
    assert Outcome.COMPLETE in outcomes


@pytest.mark.parametrize("mode", MODES)
def test_static_data_may_be_replaced_between_steps(mode: str, in_mode: Callable[[str], None]) -> None:
    in_mode(mode)
    rows = [(URIRef(f"{EX}s{i}"), URIRef(f"{EX}name"), Literal(str(i))) for i in range(9)]
    text = f"PREFIX : <{EX}> SELECT ?x ?name WHERE {{ STREAM :a [RANGE 10s] {{ ?k :a ?x }} ?k :name ?name }}"
    engine, found = cqels.Engine(), list[Any]()
    query = engine.register(text, changelog=True, static=[rows[:5]])
    query.subscribe(lambda result: found.append((result.sign, str(result.bindings["name"]))))
    for number in range(40):
        if number == 20:
            engine.update_static(query, static=[rows[3:]])
        triple = (f"<{EX}s{number % 9}>", f"<{EX}a>", f'"{number}"^^{INTEGER}')
        engine.push(f"{EX}a", [triple], time=BEGIN + number * 1_000)
    assert [name for sign, name in found if sign > 0][:5] == list("01234")
    assert sum(sign for sign, _ in found) == sum(number % 9 >= 3 for number in range(40))


@pytest.mark.parametrize("mode", MODES)
def test_a_sum_that_cannot_be_exact_is_an_error(mode: str, in_mode: Callable[[str], None]) -> None:
    in_mode(mode)
    engine = cqels.Engine()
    query = engine.register(_over("{A}", "?k (SUM(?x) AS ?s)") + " GROUP BY ?k")
    for i in range(10):
        engine.push(f"{EX}a", [(f"<{EX}s>", f"<{EX}a>", f'"1"^^{INTEGER}')], time=BEGIN + i)
    huge = f'"{36 * "9"}"^^{INTEGER}'
    small = f'"0.{18 * "1"}"^^<http://www.w3.org/2001/XMLSchema#decimal>'
    with pytest.raises(cqels.CqelsError, match="a sum does not fit 128 bits"):
        engine.push(f"{EX}a", [(f"<{EX}s>", f"<{EX}a>", value) for value in (huge, small)], time=BEGIN + 20)
    assert len(list(query.results())) == 10


def test_conditions_that_need_texts_are_evaluated_by_calls(
    outcomes: list[Outcome], in_mode: Callable[[str], None]
) -> None:
    text = FILTERED.replace("?x > 50", 'STRLEN(STR(?k)) > 3 && CONTAINS(STR(?x), "1")')
    assert_equal_in_both(text, [*readings(300)], outcomes, in_mode)
    assert outcomes.count(Outcome.COMPLETE) + outcomes.count(Outcome.REFUSED) > 200
    assert 0 < outcomes.count(Outcome.STOPPED) < 50, "a program that always stops must rest"


ODD = {
    "other spellings": (f"<{EX}s>", f"<{EX}a>", f'"+070"^^{INTEGER}'),
    "a blank node": ("_:b", f"<{EX}a>", f'"70"^^{INTEGER}'),
    "no ASCII": (f"<{EX}ä>", f"<{EX}a>", f'"70"^^{INTEGER}'),
    "a text of several lines": (f"<{EX}s>", f"<{EX}a>", '"7\n0"'),
    "a long text": (f"<{EX}s>", f"<{EX}a>", '"' + 5_000 * "x" + '"'),
    "a long number": (f"<{EX}s>", f"<{EX}a>", f'"{70 * "7"}"^^{INTEGER}'),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_terms_are_taken_in_between_others(
    name: str, outcomes: list[Outcome], in_mode: Callable[[str], None]
) -> None:
    usual = [*readings(40)]
    time = usual[-1][2] + 1
    pushed = [*usual, (f"{EX}a", [ODD[name]], time), (f"{EX}a", [ODD[name], ODD[name]], time + 1), *[
        (stream, triples, time + i) for i, (stream, triples, _) in enumerate(usual, 2)
    ]]  # fmt: skip
    assert_equal_in_both(QUERIES["no filter"], pushed, outcomes, in_mode)
    assert outcomes.count(Outcome.COMPLETE) > 60


def test_an_element_of_many_triples_is_taken_in_by_calls(
    outcomes: list[Outcome], in_mode: Callable[[str], None]
) -> None:
    many = [(f"<{EX}s{i}>", f"<{EX}a>", f'"{60 + i}"^^{INTEGER}') for i in range(30)]
    usual = [*readings(40)]
    time = usual[-1][2]
    assert_equal_in_both(
        FILTERED, [*usual, (f"{EX}a", many, time), (f"{EX}a", [], time + 1), (f"{EX}a", many[:3], time + 2)], outcomes, in_mode
    )  # fmt: skip
    assert outcomes[-3:] == [Outcome.REFUSED, Outcome.REFUSED, Outcome.COMPLETE]


def test_terms_are_released_between_steps(
    monkeypatch: pytest.MonkeyPatch, outcomes: list[Outcome], in_mode: Callable[[str], None]
) -> None:
    monkeypatch.setattr(local, "_COLLECT_FROM", 100)
    pushed = [(f"{EX}a", [(f"<{EX}s{i}>", f"<{EX}a>", f'"text {i}"')], BEGIN + i * SECOND // 2) for i in range(400)]
    sizes = set[int]()
    collect = Dictionary.collect

    def noted(dictionary: Any, live: Any) -> int:
        sizes.add(released := collect(dictionary, live))
        return released

    monkeypatch.setattr(Dictionary, "collect", noted)
    assert_equal_in_both(QUERIES["no filter"], pushed, outcomes, in_mode)
    assert max(sizes) > 50 and outcomes.count(Outcome.COMPLETE) > 350


@pytest.mark.parametrize("mode", MODES)
def test_wrong_terms_are_told_and_leave_no_trace(mode: str, in_mode: Callable[[str], None]) -> None:
    in_mode(mode)
    usual = [*readings(20)]
    engine = cqels.Engine()
    query = engine.register(QUERIES["no filter"])
    for stream, triples, time in usual:
        engine.push(stream, triples, time=time)
    seen = len(list(query.results()))
    for wrong in ("<no iri", '"x"^^'):
        with pytest.raises(cqels.CqelsError, match=f"an element pushed to <{EX}a>"):
            engine.push(f"{EX}a", [(f"<{EX}s>", f"<{EX}a>", wrong)], time=usual[-1][2] + 1)
    with pytest.raises(cqels.CqelsError, match="the predicate of a triple is an IRI"):
        engine.push(f"{EX}a", [(f"<{EX}s>", '"a"', f"<{EX}o>")], time=usual[-1][2] + 1)
    assert seen and not list(query.results())
    engine.push(f"{EX}a", [(f"<{EX}s>", f"<{EX}a>", f'"1"^^{INTEGER}')], time=usual[-1][2] + 2)
    assert len(list(query.results())) == 1
    assert engine.statistics.elements == len(usual) + 1


@pytest.mark.parametrize("mode", MODES)
def test_late_elements_are_dropped(mode: str, in_mode: Callable[[str], None]) -> None:
    in_mode(mode)
    engine = cqels.Engine(report=lambda error: None)
    query = engine.register(QUERIES["no filter"])
    one = [(f"<{EX}s>", f"<{EX}a>", f'"1"^^{INTEGER}')]
    for second in (0, 1, 2, 1, 3, 2):
        engine.push(f"{EX}a", one, time=BEGIN + second * SECOND)
    assert [result.time - BEGIN for result in query.results()] == [0, SECOND, 2 * SECOND, 3 * SECOND]
    assert engine.statistics.late == 2
    assert engine.statistics.event_time == BEGIN + 3 * SECOND


@pytest.mark.parametrize("mode", MODES)
def test_subscribers_may_push_raise_and_unregister(mode: str, in_mode: Callable[[str], None]) -> None:
    in_mode(mode)
    engine, found = cqels.Engine(), list[int]()
    query = engine.register(QUERIES["no filter"])

    def take(result: cqels.Result) -> None:
        found.append(result.time - BEGIN)
        if result.time == BEGIN + 5:
            engine.push(f"{EX}a", one, time=BEGIN + 6)
        if result.time == BEGIN + 7:
            raise ValueError("of the subscriber")
        if result.time == BEGIN + 9:
            engine.unregister(query)

    query.subscribe(take)
    one = [(f"<{EX}s>", f"<{EX}a>", f'"1"^^{INTEGER}')]
    for at in (1, 2, 3, 4, 5):
        engine.push(f"{EX}a", one, time=BEGIN + at)
    with pytest.raises(ValueError, match="of the subscriber"):
        engine.push(f"{EX}a", one, time=BEGIN + 7)
    engine.push(f"{EX}a", one, time=BEGIN + 8)
    engine.push(f"{EX}a", one, time=BEGIN + 9)
    with pytest.raises(cqels.CqelsError, match="no registered query reads"):
        engine.push(f"{EX}a", one, time=BEGIN + 10)
    assert found == [*range(1, 10)]


def test_a_query_that_comes_later_does_not_disturb_a_program(
    outcomes: list[Outcome], in_mode: Callable[[str], None]
) -> None:
    in_mode("program")
    pushed = [*readings(120)]
    alone = results_of(QUERIES["filter"], pushed)
    outcomes.clear()
    engine, found, other = cqels.Engine(), list[Any](), list[Any]()
    query = engine.register(QUERIES["filter"], changelog=True)
    query.subscribe(lambda result: found.append((result.time, result.sign, dict(result.bindings))))
    for stream, triples, time in pushed[:60]:
        engine.push(stream, triples, time=time)
    second = engine.register(QUERIES["a constant"])
    second.subscribe(other.append)
    for stream, triples, time in pushed[60:90]:
        engine.push(stream, triples, time=time)
    shared = len(outcomes)
    engine.unregister(second)
    for stream, triples, time in pushed[90:]:
        engine.push(stream, triples, time=time)
    engine.finish()
    assert found == alone and other
    assert len(outcomes) - shared == 30, "alone again, the query has a program"
    assert shared > 100, "together they have programs, too"


def test_batches_between_single_elements(outcomes: list[Outcome], in_mode: Callable[[str], None]) -> None:
    pushed = [*readings(200)]

    def mixed() -> list[Any]:
        engine, found = cqels.Engine(), list[Any]()
        query = engine.register(FILTERED, changelog=True)
        query.subscribe(lambda result: found.append((result.time, result.sign, dict(result.bindings))))
        for number, (stream, triples, time) in enumerate(pushed):
            if number % 10 == 5:
                engine.push_batch(stream, _table(triples, time))
            else:
                engine.push(stream, triples, time=time)
            if number % 50 == 49:
                engine.advance(time + 1)
        engine.finish()
        return found

    in_mode("calls")
    expected = mixed()
    in_mode("program")
    assert mixed() == expected
    assert outcomes.count(Outcome.COMPLETE) > 150


def test_tables_of_one_row_are_pushed(outcomes: list[Outcome], in_mode: Callable[[str], None]) -> None:
    pa = pytest.importorskip("pyarrow")
    pushed = [(stream, triples[:1], time) for stream, triples, time in readings(120)]
    kinds = None, pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.timestamp("ms"), pa.string()
    odd = {11: f"{EX}s3", 13: f"<{EX}ä>"}

    def by_tables() -> list[Any]:
        engine, found = cqels.Engine(on_error="skip"), list[Any]()
        query = engine.register(QUERIES["no filter"], changelog=True)
        query.subscribe(lambda result: found.append((result.time, result.sign, dict(result.bindings))))
        for number, (stream, triples, time) in enumerate(pushed):
            table = _table([(odd.get(number, triples[0][0]), *triples[0][1:])], time)
            if kind := kinds[number % 5]:
                table = table.set_column(0, "time", table["time"].cast(pa.timestamp("us")).cast(kind))
            if number % 50 == 49:
                table = table.set_column(1, "subject", pa.array([None], pa.string()))
            engine.push_batch(stream, table if number % 2 else table.to_batches()[0])
        engine.finish()
        return [*found, engine.statistics]

    in_mode("calls")
    expected = by_tables()
    assert not outcomes and len(expected) > 100
    in_mode("program")
    assert by_tables() == expected
    assert outcomes.count(Outcome.COMPLETE) > 100


def _table(triples: Sequence[tuple[str, str, str]], time: int) -> Any:
    pa = pytest.importorskip("pyarrow")
    columns = dict(zip(("subject", "predicate", "object"), map(list, zip(*triples, strict=True)), strict=True))
    return pa.table({"time": [time] * len(triples), **columns})
