"""STATE in programs: drawn rules and queries, whose steps equal those by calls, and the answers the oracle's."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import cqels_py as cqels
from cqels_py.dataflow.step_program import Outcome
from tests.dataflow.test_programs_in_engines import goes_on_in_both, results_amid_calls
from tests.dataflow.test_step_program import EX, INTEGER, MODES, SECOND, Pushed, assert_equal_in_both, of_both_streams
from tests.rules.test_queries_against_oracle import compare

RULES = (
    "RULE { ?k a :High } FOR [0s, 3s) WHERE { ?k :a ?x FILTER(?x > 50) }",
    "RULE { ?k a :Text } FOR [0s, 2s] WHERE { ?k :a ?x FILTER(STRLEN(STR(?x)) < 2) }",
    "RULE { ?k :level ?z } UNTIL REPLACED BY ?k WITHIN 8s WHERE { ?k :a ?x BIND(?x / 10 AS ?z) }",
    "RULE { ?k :name ?z } FOR [0s, 1s] WHERE { ?k :a ?x BIND(CONCAT('n', STR(?x)) AS ?z) FILTER(?x < 40) }",
    "RULE { ?k a :Steady } WHERE { ALWAYS [0s, 2s] { ?k a :High } SOMETIME [0s, 2s] { ?k :a ?x FILTER(?x > 70) } }",
    "RULE { ?k a :Quiet } WHERE { ?k a :High NOT { ?k a :Steady } }",
    "RULE { ?k a :Since } WHERE { { ?k a :High } SINCE [0s, 4s] { ?k :other ?x } }",
    "RULE { ?k a :Later } FOR [1s, 4s] WHERE { ?k :other ?x }",
)
STATES = (
    *("STATE { ?k a :High }", "STATE { ?k a :Steady }", "STATE { ?k a :Quiet }", "STATE { ?k :level ?z }"),
    *("STATE { ?k a :Since }", "STATE { ?k a :Later }", "STATE { ?k a :Text . ?k :name ?z }", "STATE { ?k :a ?z }"),
)
WINDOWS = ("RANGE 2s", "RANGE 3s STEP 1s", "FROM NOW-4s TO NOW-1s", "COUNT 3", "ALL")
BODIES = (
    "SELECT * WHERE {{ {s} }}",
    "SELECT * WHERE {{ {s} STREAM :b [{w}] {{ ?k :b ?y }} }}",
    "SELECT * WHERE {{ STREAM :b [{w}] {{ ?k :b ?y }} MINUS {{ {s} }} }}",
    "SELECT * WHERE {{ STREAM :a [{w}] {{ ?k :a ?y }} OPTIONAL {{ {s} }} FILTER(?y > 20) }}",
    "SELECT ?k (COUNT(*) AS ?n) WHERE {{ {s} }} GROUP BY ?k",
    "SELECT (COUNT(*) AS ?n) WHERE {{ {s} {t} }}",
    "SELECT * WHERE {{ {{ {s} }} UNION {{ {t} }} }}",
    "SELECT * WHERE {{ {s} MATCH WITHIN 4s {{ EVENT ON :b {{ ?k :b ?y }} }} }}",
    "SELECT DISTINCT ?k WHERE {{ {s} {t} }}",
    "ASK {{ {s} }}",
    "SELECT RSTREAM * WHERE {{ {s} }}",
)


def drawn(seed: int) -> str:
    """A query over one or two drawn STATEs, beside a window now and then."""
    draw = random.Random(seed)
    s, t = (draw.choice(STATES).replace("STATE", draw.choice(("STATE", "STATE", "STATE [STEP 2s]"))) for _ in "st")
    body = BODIES[seed % len(BODIES)].format(s=s, t=t, w=draw.choice(WINDOWS))
    rules = "\n".join(RULES)
    return f"PREFIX : <{EX}> RULES ON {draw.choice((':a', ':a', ':a, :b'))} {{ {rules} }}\n{body}"


def pushed_for(text: str, count: int, seed: int) -> list[Pushed]:
    """Elements of the streams that a query reads."""
    pushed = of_both_streams(count, seed, seed % 3 * 4 * SECOND)
    return [each for each in pushed if f":{each[0][-1]} " in text.replace(",", " ").replace("{", " ")]


@pytest.mark.parametrize("seed", range(0, 140, 10))
def test_drawn_rules_equal_the_oracles(seed: int, outcomes: list[Outcome], in_mode: Callable[[str], None]) -> None:
    in_mode("program")
    for each in range(seed, seed + 10):
        compare(each, (1,))
        compare(3_000 + each, (1,), always=1)
    assert outcomes.count(Outcome.COMPLETE) > 10


@pytest.mark.parametrize("seed", range(70))
def test_steps_equal_those_by_calls(seed: int, outcomes: list[Outcome], in_mode: Callable[[str], None]) -> None:
    text, found, late = drawn(seed), [], seed % 5 == 0
    # Late ones that are complete together are no steps of programs.
    pushed = pushed_for(text, 240 if late else 120, seed)
    changelog = seed % 2 == 0 and "STREAM *" not in text and "ASK" not in text
    for mode in MODES:
        in_mode(mode)
        found.append(results_amid_calls(text, pushed, seed, late=late, changelog=changelog))
    assert found[0] == found[1], text
    if "RSTREAM" in text and "STEP 2s" in text:
        assert not outcomes
    else:
        wanted = Outcome.STOPPED if "ASK" in text or "RSTREAM" in text else Outcome.COMPLETE
        assert outcomes.count(wanted) > 10


def test_more_changes_than_there_is_room_for_are_made_by_calls(
    outcomes: list[Outcome], in_mode: Callable[[str], None]
) -> None:
    rule = "RULE { ?k a :High } FOR [0s, 3s) WHERE { ?k :a ?x }"
    text = f"PREFIX : <{EX}> RULES ON :a {{ {rule} }} SELECT ?k {{ STATE {{ ?k a :High }} }}"
    pushed = list[Pushed]()
    for i in range(1_200):
        # Now one at a time, now a crowd at one instant.
        time = 1_700_000_000 * SECOND + (i * 100_000 if i < 300 or i > 900 else 300 * 100_000)
        pushed.append((f"{EX}a", [(f"<{EX}s{i}>", f"<{EX}a>", f'"{i}"^^{INTEGER}')], time))
    assert_equal_in_both(text, pushed, outcomes, in_mode)
    assert outcomes.count(Outcome.STOPPED) > 0
    assert outcomes.count(Outcome.COMPLETE) > 500


def test_more_instants_of_changes_are_due_at_once_than_there_is_room_for(
    outcomes: list[Outcome], in_mode: Callable[[str], None]
) -> None:
    rule = "RULE { ?k a :High } FOR [0s, 10s] WHERE { ?k :a ?x }"
    text = f"PREFIX : <{EX}> RULES ON :a {{ {rule} }} SELECT ?k {{ STATE {{ ?k a :High }} }}"
    begin = 1_700_000_000 * SECOND
    times = [*(begin + i * 1_000 for i in range(1_100)), begin + 20 * SECOND, begin + 21 * SECOND]
    pushed = [(f"{EX}a", [(f"<{EX}s{i}>", f"<{EX}a>", f'"{i}"^^{INTEGER}')], time) for i, time in enumerate(times)]
    assert_equal_in_both(text, pushed, outcomes, in_mode)
    assert Outcome.STOPPED in outcomes and outcomes[-1] is Outcome.COMPLETE


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("state", STATES)
def test_the_order_of_changes_depends_on_time_and_terms_alone(
    state: str, mode: str, in_mode: Callable[[str], None]
) -> None:
    """Entries of facts are in an order that depends on how elements are batched: they are freed and used again."""
    in_mode(mode)
    rules = "\n".join(RULES)
    text = f"PREFIX : <{EX}> RULES ON :a {{ {rules} }} SELECT * {{ {state} }}"
    pushed = pushed_for(text, 300, 22)
    found = [in_batches(text, pushed, size) for size in (1, 3, 300)]
    assert found[0] == found[1] == found[2]
    assert len(found[0]) > 20


def in_batches(text: str, pushed: list[Pushed], size: int) -> list[tuple[int, int, str]]:
    """A query's changes, where so many elements come at once."""
    engine = cqels.Engine()
    query = engine.register(text, changelog=True)
    for first in range(0, len(pushed), size):
        part = pushed[first : first + size]
        rows = [(time, at, *triple) for at, (_, triples, time) in enumerate(part) for triple in triples]
        names = ("time", "graph", "subject", "predicate", "object")
        columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
        columns["graph"] = [f"<{EX}{first + at}>" for at in columns["graph"]]
        engine.push_batch(f"{EX}a", pa.table(columns))
    engine.finish()
    return [(result.time, result.sign, str(result.bindings)) for result in query.results()]


@pytest.mark.parametrize("seed", range(5))
def test_an_engine_goes_on_from_its_checkpoint(
    seed: int, tmp_path: Path, outcomes: list[Outcome], in_mode: Callable[[str], None]
) -> None:
    text = drawn(11 * seed + seed)
    assert goes_on_in_both(text, pushed_for(text, 180, seed), tmp_path, in_mode)
    assert Outcome.COMPLETE in outcomes
