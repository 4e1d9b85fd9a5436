"""EVENT blocks without windows in programs: drawn queries, whose steps equal those by calls, and the answers the oracle's."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import cqels_py as cqels
from cqels_py.dataflow.step_program import Outcome
from cqels_py.engine.compile import compile_query
from cqels_py.errors import RunError
from tests.dataflow.test_programs_in_engines import goes_on_in_both, results_amid_calls
from tests.dataflow.test_step_program import EX, INTEGER, MODES, SECOND, Pushed, assert_equal_in_both, of_both_streams
from tests.oracle.naive import Element
from tests.oracle.naive_algebra import TooManyPairs
from tests.support.drawn_events import STATIC, EventDrawer, drawn_elements
from tests.support.harness import assert_engine_right

A, B = "EVENT ON :a{all} AT ?i {{ ?k :a ?x {f} }}", "EVENT ON :b{all} AT ?j {{ {l} :b ?y {g} }}"
BODIES = (
    "SELECT ?x ?y WHERE {{ {a} {b} FILTER(?i < ?j) }}",
    "SELECT ?x (COUNT(*) AS ?n) (SUM(?y) AS ?s) WHERE {{ {a} {b} FILTER(?i <= ?j) }} GROUP BY ?x",
    "SELECT DISTINCT ?x WHERE {{ {a} {b} FILTER(?i > ?j) }}",
    "SELECT ?x ?y WHERE {{ {a} {b} FILTER(?i = ?j) }}",
    "SELECT ?i ?x WHERE {{ {a} }}",
    "SELECT (COUNT(*) AS ?n) WHERE {{ {{ {a} }} UNION {{ {b} }} }}",
    "SELECT * WHERE {{ MATCH WITHIN 4s {{ EVENT ON :a AT ?i {{ ?k :a ?x BIND(?x + 1 AS ?u) FILTER(?u > 30) }} "
    "SEQ EVENT ON :b AT ?j {{ ?k :b ?y BIND(CONCAT('n', STR(?y)) AS ?v) }} }} }}",
)
CONDITIONS = (
    "FILTER(?x IN (1, 2, 3, 50, 51, 52, 53, 54, 55, 56))",
    "FILTER(?x > 40 && ?x < 60 && DATATYPE(?x) = xsd:integer)",
)
OTHERS = ("", "FILTER(?y > 30)", "FILTER(STRLEN(STR(?y)) < 2)", "BIND(?y + 1 AS ?w) FILTER(?w > 50)")


def drawn(seed: int) -> str:
    """A query over two EVENT blocks, or MATCH with computed values."""
    draw = random.Random(seed)
    every = draw.choice((" [ALL]", " [ALL]", ""))
    a = A.format(all=every, f=draw.choice(CONDITIONS))
    b = B.format(all=every, l="?l" if not every else draw.choice(("?k", "?l")), g=draw.choice(OTHERS))
    xsd = "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>"
    return f"PREFIX : <{EX}> {xsd} {BODIES[seed % len(BODIES)].format(a=a, b=b)}"


def pushed_for(text: str, count: int, seed: int) -> list[Pushed]:
    """Elements of the streams that a query reads."""
    pushed = of_both_streams(count, seed, seed % 3 * 4 * SECOND)
    return [each for each in pushed if f"ON :{each[0][-1]}" in text]


def _registered(text: str) -> str:
    """The query; where its memory is not bounded without [ALL], with it."""
    try:
        cqels.Engine().register(text)
    except cqels.QueryError:
        return text.replace(" AT ?i {", " [ALL] AT ?i {").replace(" AT ?j {", " [ALL] AT ?j {")
    return text


@pytest.mark.parametrize("seed", range(40))
def test_steps_equal_those_by_calls(seed: int, outcomes: list[Outcome], in_mode: Callable[[str], None]) -> None:
    text, found = _registered(drawn(seed)), []
    pushed = pushed_for(text, 120, seed)
    for mode in MODES:
        in_mode(mode)
        found.append(
            results_amid_calls(text, pushed, seed, late=seed % 5 == 0, changelog="GROUP" in text or "COUNT" in text)
        )
    assert found[0] == found[1], text
    # Conditions that need texts are those of calls.
    assert outcomes.count(Outcome.COMPLETE) > (5 if "STR" in text else 20)


@pytest.mark.parametrize("seed", range(42))
def test_answers_equal_the_oracles(seed: int, outcomes: list[Outcome], in_mode: Callable[[str], None]) -> None:
    in_mode("program")
    draw = random.Random(seed)
    drawer, elements = EventDrawer(draw), drawn_elements(draw, 14)
    grouped = seed % 3 == 2
    text = drawer.aggregates() if grouped else drawer.text()
    mine: list[Element] = [each for each in elements if str(each.stream) in compile_query(text).plan.streams]
    try:
        if grouped:
            assert_engine_right(text, mine, STATIC, batches=(1,))
        else:
            assert_engine_right(text, mine, STATIC, output=None, batches=(1,))
    except TooManyPairs:
        pytest.skip("more combinations than the oracle tries")
    assert not mine or outcomes or len(mine) < 4


def test_many_results_of_an_instant_are_delivered_by_calls(
    outcomes: list[Outcome], in_mode: Callable[[str], None]
) -> None:
    text = f"PREFIX : <{EX}> SELECT ?y WHERE {{ EVENT ON :a AT ?i {{ ?k :a 1 }} EVENT ON :b AT ?j {{ ?l :b ?y }} FILTER(?i < ?j) }}"
    pushed = list[Pushed]()
    for i in range(400):
        stream, number = ("b", i) if i % 7 == 0 else ("a", 1)
        triple = f"<{EX}s{i}>", f"<{EX}{stream}>", f'"{number}"^^{INTEGER}'
        pushed.append((f"{EX}{stream}", [triple], 1_700_000_000 * SECOND + i * SECOND))
    assert_equal_in_both(text, pushed, outcomes, in_mode)
    assert outcomes.count(Outcome.STOPPED) > 10
    assert outcomes.count(Outcome.COMPLETE) > 250


def test_a_crowd_of_one_instant_waits(outcomes: list[Outcome], in_mode: Callable[[str], None]) -> None:
    text = f"PREFIX : <{EX}> SELECT ?x WHERE {{ EVENT ON :a [ALL] {{ ?k :a ?x }} }}"
    pushed = list[Pushed]()
    for i in range(700):
        time = 1_700_000_000 * SECOND + (i if i < 200 or i > 500 else 200) * SECOND
        pushed.append((f"{EX}a", [(f"<{EX}s{i}>", f"<{EX}a>", f'"{i}"^^{INTEGER}')], time))
    assert_equal_in_both(text, pushed, outcomes, in_mode)
    assert outcomes.count(Outcome.COMPLETE) > 600


@pytest.mark.parametrize("mode", MODES)
def test_a_counter_that_overflows_ends_the_run(mode: str, in_mode: Callable[[str], None]) -> None:
    in_mode(mode)
    blocks = " ".join(f"EVENT ON :a {{ ?x{i} :a ?n{i} }}" for i in range(7))
    engine = cqels.Engine()
    engine.register(f"PREFIX : <{EX}> SELECT (1 AS ?one) WHERE {{ EVENT ON :b AT ?z {{ ?y :b ?n }} {blocks} }}")
    with pytest.raises(RunError, match="passed 2\\^63 - 1"):
        for i in range(900):
            engine.push(f"{EX}a", [(f"<{EX}s{i}>", f"<{EX}a>", f'"{i}"^^{INTEGER}')], time=i + 1)
        engine.finish()


def test_queries_on_shared_scans(outcomes: list[Outcome], in_mode: Callable[[str], None]) -> None:
    texts, found = [_registered(drawn(seed)) for seed in (0, 1, 8, 2)], []
    pushed = of_both_streams(150, 3)
    for mode in MODES:
        in_mode(mode)
        found.append(_results_of_all(texts, pushed))
    assert found[0] == found[1] and found[0]
    assert Outcome.COMPLETE in outcomes


def _results_of_all(texts: Sequence[str], pushed: Sequence[Pushed]) -> list[Any]:
    engine, told = cqels.Engine(), list[Any]()
    for number, text in enumerate(texts):
        engine.register(text).subscribe(partial(_note, told, number))
    for stream, triples, time in pushed:
        engine.push(stream, triples, time=time)
    engine.finish()
    return told


def _note(told: list[Any], number: int, result: cqels.Result) -> None:
    told.append((number, result.time, dict(result.bindings)))


@pytest.mark.parametrize("seed", range(3))
def test_an_engine_goes_on_from_its_checkpoint(
    seed: int, tmp_path: Path, outcomes: list[Outcome], in_mode: Callable[[str], None]
) -> None:
    text = _registered(drawn(seed))
    assert goes_on_in_both(text, pushed_for(text, 180, seed), tmp_path, in_mode)
    assert Outcome.COMPLETE in outcomes
