"""RULES and STATE on Spark give the local results: their state is in one part."""

from __future__ import annotations

import re

import pytest

from cqels_py.algebra.nodes import Output
from cqels_py.distribution.stages import stages_of
from cqels_py.engine.compile import compile_query
from tests.oracle.naive import Static
from tests.rules.test_queries_against_oracle import PREFIX, asked, elements_of, is_refused
from tests.runners.spark import simulation
from tests.support.drawn_rules import draw_with_negation

BUSY = f"""{PREFIX} RULES ON :s {{
  RULE {{ ?x a :Held }} FOR [0s, 3s] WHERE {{ ?x a :A }}
  RULE {{ ?x a :Long }} WHERE {{ ALWAYS [0s, 2s] {{ ?x a :Held }} }}
}}
"""
TEXTS = [
    BUSY + "SELECT ?x { STATE { ?x a :Long } }",
    BUSY + "SELECT ?x { STATE [STEP 2s] { ?x a :Held } }",
    BUSY + "SELECT (COUNT(*) AS ?n) { STATE { ?x a :Held } }",
    BUSY + "SELECT ?x { STATE { ?x a :Held } STREAM :s [RANGE 5s] { ?y a :B } FILTER(?x != ?y) }",
]


def check(text, elements, *, parts, changelog=False, cuts=()):
    streams = compile_query(text).plan.streams
    elements = simulation.in_spark_order([each for each in elements if str(each.stream) in streams], streams)
    found = simulation.run(text, elements, Static(), changelog=changelog, cuts=list(cuts), tasks=1, parts=parts, seed=1)
    assert found == simulation.expected(text, elements, Static(), Output.CHANGELOG if changelog else None)
    return found


def places_between_instants(elements):
    times = [each.time for each in elements]
    return [n for n in range(1, len(times)) if times[n] > times[n - 1]]


def heads(program):
    """Names of derived predicates, with the number of their terms."""
    found = (re.search(r"(\w+)\(([^)]*)\)", rule.split(":-")[0]) for rule in program.rules)
    return {(each[1], each[2].count(",") + 1) for each in found if each is not None}


def test_rules_are_in_one_part():
    stage, *others = stages_of(compile_query(TEXTS[0]).plan, 5)
    assert (stage.parts, stage.reason, others) == (1, "its rules are not divided", [])


@pytest.mark.parametrize("changelog", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_random_programs(seed, changelog):
    program = draw_with_negation(9000 + seed)
    if is_refused(program):
        pytest.skip("a program that is refused")
    elements = elements_of(program)
    cuts = places_between_instants(elements)[::3]
    for name, width in sorted(heads(program)):
        check(asked(program, name, width), elements, parts=3, changelog=changelog, cuts=cuts)


@pytest.mark.parametrize("text", TEXTS)
def test_state_with_other_parts_of_a_query(text):
    found = 0
    for seed in range(3):
        elements = elements_of(draw_with_negation(300 + seed))
        cuts = places_between_instants(elements)[::2]
        found += len(check(text, elements, parts=2, changelog=True, cuts=cuts))
    assert found
