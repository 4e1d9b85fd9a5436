"""Windows of all kinds in programs: drawn pairs of them, joined, negated, grouped, ordered and delivered in all ways."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from cqels_py.dataflow.step_program import Outcome
from tests.dataflow.test_programs_in_engines import results_amid_calls
from tests.dataflow.test_step_program import (
    EX,
    INTEGER,
    MODES,
    SECOND,
    Pushed,
    assert_equal_in_both,
    elements_of,
    of_both_streams,
)
from tests.support.harness import assert_engine_right

WINDOWS = (
    *("RANGE 2s", "RANGE 3s STEP 1s", "RANGE 2s STEP 2s", "FROM NOW-4s TO NOW-1s", "FROM NOW-4s TO NOW-2s STEP 1s"),
    *("COUNT 3", "COUNT 4 STEP 2", "TRIPLES 4", "TRIPLES 5 STEP 3", "ALL", "NOW"),
    *("SESSION 1s", "SESSION 500ms", "SESSION 900ms STEP 2s", "COUNT 1 PARTITION BY ?k", "COUNT 2 PARTITION BY ?k"),
    *("TRIPLES 2 PARTITION BY ?k", "COUNT 2 STEP 3 PARTITION BY ?k", "SESSION 1s PARTITION BY ?k"),
    "SESSION 900ms STEP 2s PARTITION BY ?k",
)
BODIES = (
    "SELECT ?k ?x ?y WHERE {{ {a} {b} FILTER(?x < ?y) }}",
    "SELECT ?k ?x ?y WHERE {{ {a} OPTIONAL {{ {b} }} }}",
    "SELECT ?k ?x WHERE {{ {a} MINUS {{ {b} }} }}",
    "SELECT ?k (COUNT(*) AS ?n) WHERE {{ {a} {b} }} GROUP BY ?k",
    "SELECT ?k ?y WHERE {{ {{ SELECT ?k ?x {{ {a} }} ORDER BY ?x LIMIT 2 }} {b} }}",
    "ASK {{ {a} {b} }}",
    "SELECT RSTREAM ?k ?x ?y WHERE {{ {a} {b} }}",
)


def drawn(seed: int) -> str:
    """A query over two drawn windows."""
    draw = random.Random(seed)
    first, second = draw.choice(WINDOWS), draw.choice(WINDOWS)
    a, b = f"STREAM :a [{first}] {{ ?k :a ?x }}", f"STREAM :b [{second}] {{ ?k :b ?y }}"
    return f"PREFIX : <{EX}> {BODIES[seed % len(BODIES)].format(a=a, b=b)}"


@pytest.mark.parametrize("seed", range(14))
def test_answers_equal_the_oracles(seed: int, outcomes: list[Outcome], in_mode: Callable[[str], None]) -> None:
    in_mode("program")
    assert_engine_right(drawn(seed), elements_of(of_both_streams(50, seed, 4 * SECOND)), batches=(1,))
    assert outcomes.count(Outcome.COMPLETE) + outcomes.count(Outcome.STOPPED) > 10


@pytest.mark.parametrize("first", range(100, 142, 7))
def test_steps_equal_those_by_calls(first: int, outcomes: list[Outcome], in_mode: Callable[[str], None]) -> None:
    for seed in range(first, first + 7):
        found, pushed = [], of_both_streams(60, seed, seed % 2 * 4 * SECOND)
        for mode in MODES:
            in_mode(mode)
            found.append(results_amid_calls(drawn(seed), pushed, seed, late=seed % 3 == 0))
        assert found[0] == found[1], drawn(seed)
    assert outcomes.count(Outcome.COMPLETE) > 50


def test_elements_that_are_few_between_boundaries_do_not_wait(
    outcomes: list[Outcome], in_mode: Callable[[str], None]
) -> None:
    text = (
        f"PREFIX : <{EX}> SELECT ?k (SUM(?x) AS ?s) WHERE {{ STREAM :a [RANGE 9s STEP 3s] {{ ?k :a ?x }} }} GROUP BY ?k"
    )
    # A few, then so many that they wait, then a few again.
    apart = [SECOND] * 60 + [SECOND // 40] * 600 + [SECOND] * 60
    pushed, time = list[Pushed](), 1_700_000_000 * SECOND
    for i, each in enumerate(apart):
        time += each
        pushed.append((f"{EX}a", [(f"<{EX}s{i % 7}>", f"<{EX}a>", f'"{i % 50}"^^{INTEGER}')], time))
    assert_equal_in_both(text, pushed, outcomes, in_mode)
    assert 80 < outcomes.count(Outcome.COMPLETE) < 240
