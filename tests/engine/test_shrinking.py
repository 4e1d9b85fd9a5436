"""States give back room when few of their entries are left, and results stay the same when they do so between any two steps."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings

import cqels_py as cqels
from cqels_py.algebra.nodes import Dialect
from cqels_py.checkpoints.state_file import to_bytes
from cqels_py.engine.durable.saved_state import state_of_engine
from cqels_py.runners import local
from tests.oracle.naive import Static
from tests.support import harness
from tests.support.generators import FEATURES, SOAKING, WINDOWS, Scenario, answerable, scenarios
from tests.support.traces import EX, STREAMS
from tests.test_saved_state import LARGE, PREFIX, Run, long_trace

ONE, TWO = (f"STREAM <{STREAMS}{name}>" for name in ("one", "two"))
START = 1_709_294_400_000_000
LONG = "[RANGE 100s]"
SOME = settings() if SOAKING else settings(max_examples=8)
XSD = "http://www.w3.org/2001/XMLSchema#"


@contextmanager
def always_shrinking() -> Iterator[None]:
    """All parts of a state are compacted after every step, however full they are."""
    modules = [module for name, module in sorted(sys.modules.items()) if name.startswith("cqels_py.")]
    with ExitStack() as patches:
        for module in modules:
            for name in ("SHRINK_FROM", "_SHRINK_FROM"):
                if hasattr(module, name):
                    patches.enter_context(patch.object(module, name, 0))
        release = local.LocalRunner.release_terms

        def shrinking(runner: local.LocalRunner) -> None:
            runner.shrink()
            release(runner)

        patches.enter_context(patch.object(local.LocalRunner, "release_terms", shrinking))
        yield


@pytest.mark.parametrize("name", LARGE)
def test_results_stay_the_same(name: str) -> None:
    trace = long_trace(300, 40)
    given = [PREFIX + LARGE[name]], Static()
    expected = Run(*given, batch=20, changelog=True).through(trace, [], replace=False)
    with always_shrinking():
        run = Run(*given, batch=20, changelog=True)
        assert run.through(trace, [2, 200], replace=True) == expected
    assert len(expected[0]) > 40


@SOME
@given(scenarios(FEATURES, WINDOWS, most_elements=12))
def test_against_the_oracle(scenario: Scenario) -> None:
    with always_shrinking(), answerable():
        harness.assert_engine_right(
            scenario.texts[Dialect.CQELS_QL], scenario.elements, scenario.static, batches=(1, 3)
        )


KINDS = {
    "window": f"SELECT * {{ {ONE} {LONG} {{ ?k :p ?x }} }}",
    "boundaries": f"SELECT ?k (AVG(?x) AS ?a) {{ {ONE} [RANGE 100s STEP 10s] {{ ?k :p ?x }} }} GROUP BY ?k",
    "groups": f"SELECT ?k (AVG(?x) AS ?a) {{ {ONE} {LONG} {{ ?k :p ?x }} }} GROUP BY ?k",
    "terms of groups": f"SELECT ?k (MIN(?x) AS ?a) (GROUP_CONCAT(?t) AS ?b) {{ {ONE} {LONG} {{ ?k :p ?x ; :t ?t }} }} "
    "GROUP BY ?k",
    "star": f"SELECT * {{ {ONE} {LONG} {{ ?k :p ?x }} {TWO} {LONG} {{ ?k :t ?y }} }}",
    "chain": f"SELECT * {{ {ONE} {LONG} {{ ?k :q ?l }} {TWO} {LONG} {{ ?l :q ?m . ?m :p ?x }} }}",
    "in any order": f"SELECT * {{ {ONE} [SESSION 50s PARTITION BY ?k] {{ ?k :q ?l }} {TWO} {LONG} {{ ?k :p ?x }} }}",
    "below a join": f"SELECT ?x (SUM(?y) AS ?s) (MAX(?y) AS ?m) {{ {ONE} {LONG} {{ ?k :p ?x }} {TWO} {LONG} {{ ?k :p ?y }} }} "
    "GROUP BY ?x",
    "by the key": f"SELECT ?k (SUM(?y) AS ?s) {{ {ONE} {LONG} {{ ?k :p ?x }} {TWO} {LONG} {{ ?k :p ?y }} }} GROUP BY ?k",
    "distinct": f"SELECT DISTINCT ?k {{ {ONE} {LONG} {{ ?k :p ?x }} }}",
    "count distinct": f"SELECT ?t (COUNT(DISTINCT ?k) AS ?c) {{ {ONE} {LONG} {{ ?k :p ?x ; :t ?t }} }} GROUP BY ?t",
    "minus": f"SELECT * {{ {ONE} {LONG} {{ ?k :p ?x }} MINUS {{ {TWO} {LONG} {{ ?k :q ?y }} }} }}",
    "optional": f"SELECT * {{ {ONE} {LONG} {{ ?k :p ?x }} OPTIONAL {{ {TWO} {LONG} {{ ?k :q ?y }} }} }}",
    "paths": f"SELECT * {{ {ONE} {LONG} {{ ?k :q+ ?l }} }}",
    "order": f"SELECT ?k ?x {{ {ONE} {LONG} {{ ?k :p ?x }} }} ORDER BY DESC(?x) ?k LIMIT 7",
    "sessions": f"SELECT * {{ {ONE} [SESSION 50s PARTITION BY ?k] {{ ?k :p ?x }} }}",
    "whole answers": f"SELECT RSTREAM ?k {{ {ONE} [RANGE 100s STEP 100s] {{ ?k :p ?x }} }}",
    "now": f"SELECT * {{ {ONE} [RANGE 100s STEP 100s] {{ ?k :p ?x }} FILTER(NOW() > '2000-01-01T00:00:00Z'^^<{XSD}dateTime>) }}",
    "match": f"SELECT * {{ MATCH WITHIN 100s {{ EVENT ON <{STREAMS}one> {{ ?k :p ?x }} "
    f"SEQ EVENT ON <{STREAMS}two> {{ ?k :p ?y }} }} }}",
}


def push(engine: cqels.Engine, numbers: range, second: int) -> None:
    """Elements with these numbers, within 80 seconds."""
    for place, n in enumerate(numbers):
        key = f"<{EX}k{n}>"
        triples = [
            (key, f"<{EX}p>", f'"{n % 1000}"^^<{XSD}integer>'),
            (key, f"<{EX}q>", f"<{EX}k{n - n % 10}>"),
            (key, f"<{EX}t>", f'"text {n % 1000}"'),
        ]
        time = START + second * 10**6 + place * 80 * 10**6 // len(numbers)
        engine.push(STREAMS + ("one", "two")[n % 2], triples, time=time)


def size_and_bytes(name: str, *, grown: bool) -> tuple[int, int]:
    """The arrays and the snapshot of a state with 200 elements in its windows, after 4000 others have left it if it has `grown`."""
    engine = cqels.Engine(batch=500, on_unread="count")
    query: Any = engine.register(PREFIX + KINDS[name], changelog=name != "whole answers")
    query.subscribe_batches(lambda table: None)
    if grown:
        push(engine, range(4000), 0)
    push(engine, range(10_000, 10_200), 400)
    engine.flush()
    runner: Any = engine._runner
    runner.shrink()
    runner.release_terms()
    state = query._dataflow.state()
    arrays = [value for values in state.values() for value in values.values() if isinstance(value, np.ndarray)]
    return sum(array.nbytes for array in arrays), len(to_bytes({**state_of_engine(engine), **state}))


@pytest.mark.parametrize("name", KINDS)
def test_a_state_is_as_large_as_what_is_in_it(name: str) -> None:
    (grown, in_file), (fresh, fresh_in_file) = (size_and_bytes(name, grown=grown) for grown in (True, False))
    assert grown <= 1.5 * fresh
    assert in_file <= 1.5 * fresh_in_file
