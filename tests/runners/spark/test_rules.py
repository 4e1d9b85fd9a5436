"""RULES and STATE on Spark give the local results, divided by a variable of all atoms, or in one part."""

from __future__ import annotations

import re
from random import Random

import pytest
from rdflib import URIRef

from cqels_py.algebra.nodes import Output
from cqels_py.distribution.stages import stages_of
from cqels_py.engine.compile import compile_query
from cqels_py.runners.spark.describe import describe
from tests.oracle.naive import Element, Static
from tests.rules.test_queries_against_oracle import EX, PREFIX, asked, elements_of, is_refused
from tests.runners.spark import simulation
from tests.support.drawn_rules import draw_keyed, draw_with_negation
from tests.support.generators import SOAKING

BUSY = f"""{PREFIX} RULES ON :s {{
  RULE {{ ?x a :Held }} FOR [0s, 3s] WHERE {{ ?x a :A }}
  RULE {{ ?x a :Long }} WHERE {{ ALWAYS [0s, 2s] {{ ?x a :Held }} }}
}}
"""
TEXTS = {
    "state": BUSY + "SELECT ?x { STATE { ?x a :Long } }",
    "step": BUSY + "SELECT ?x { STATE [STEP 2s] { ?x a :Held } }",
    "one row": BUSY + "SELECT (COUNT(*) AS ?n) { STATE { ?x a :Held } }",
    "groups": BUSY + "SELECT ?x (COUNT(*) AS ?n) { STATE { ?x a :Held } } GROUP BY ?x",
    "window": BUSY + "SELECT ?x { STATE { ?x a :Held } STREAM :s [RANGE 5s] { ?y a :B } FILTER(?x != ?y) }",
    "two": BUSY + "SELECT ?x { STATE { ?x a :Held } STATE { ?x a :Long } }",
    "ask": BUSY + "ASK { STATE { ?x a :Held } }",
    "negated": BUSY + "SELECT ?x { STATE { ?x a :Held } FILTER NOT EXISTS { STREAM :s [RANGE 1s] { ?x a :B } } }",
}
REPORTED = {
    "each instant": BUSY + "REGISTER RSTREAM :o AS SELECT ?x { STATE { ?x a :Held } }",
    "each step": BUSY + "REGISTER RSTREAM :o AS SELECT ?x { STATE [STEP 2s] { ?x a :Held } }",
    "ordered": BUSY + "REGISTER RSTREAM :o AS SELECT ?x { STATE { ?x a :Held } } ORDER BY ?x",
}


def check(text, elements, *, parts, changelog=False, cuts=(), static=(), tasks=1):
    streams = compile_query(text).plan.streams
    elements = simulation.in_spark_order([each for each in elements if str(each.stream) in streams], streams)
    static = Static(list(static))
    found = simulation.run(
        text, elements, static, changelog=changelog, cuts=list(cuts), tasks=tasks, parts=parts, seed=1
    )
    assert found == simulation.expected(text, elements, static, Output.CHANGELOG if changelog else None)
    return found


def heads(program):
    """Names of derived predicates, with the number of their terms."""
    found = (re.search(r"([A-Z])\(([^)]*)\)$", rule.split(":-")[0]) for rule in program.rules)
    return {(each[1], each[2].count(",") + 1) for each in found if each is not None}


def first_stage(text, parts=4):
    return stages_of(compile_query(text).plan, parts)[0]


@pytest.mark.parametrize("changelog", [False, True])
@pytest.mark.parametrize("seed", range(300 if SOAKING else 10))
def test_programs_with_a_common_variable(seed, changelog):
    """Each of them is divided, and told at the instants of the local runner, wherever the elements are cut."""
    program, random = draw_keyed(9000 + seed), Random(seed)
    if is_refused(program):
        pytest.skip("a program that is refused")
    elements = elements_of(program)
    static = random.choice(elements).triples
    for name, width in sorted(heads(program)):
        text, parts = asked(program, name, width), random.choice((2, 4))
        cuts = [random.randrange(len(elements)) for _ in range(seed % 3)]
        check(text, elements, parts=parts, changelog=changelog, cuts=cuts, static=static, tasks=1 + seed % 2)


def test_most_of_them_are_divided():
    programs = [program for program in map(draw_keyed, range(30)) if not is_refused(program)]
    parts = [first_stage(asked(program, *head)).parts for program in programs for head in heads(program)]
    assert parts.count(4) > 0.9 * len(parts)


@pytest.mark.parametrize("seed", range(200 if SOAKING else 8))
def test_other_programs(seed):
    """Some can be divided, some not."""
    program = draw_with_negation(9000 + seed)
    if is_refused(program):
        pytest.skip("a program that is refused")
    elements = elements_of(program)
    for name, width in sorted(heads(program)):
        check(asked(program, name, width), elements, parts=3, changelog=bool(seed % 2), cuts=[seed, 2 * seed + 1])


@pytest.mark.parametrize("name", [*TEXTS, *REPORTED])
def test_state_with_other_parts_of_a_query(name):
    text, found = {**TEXTS, **REPORTED}[name], 0
    assert first_stage(text).parts == 4
    for seed in range(3):
        elements = elements_of(draw_with_negation(300 + seed))
        cuts = [random.randrange(len(elements)) for random in [Random(seed)] for _ in range(seed)]
        found += len(check(text, elements, parts=4, changelog=name in TEXTS, cuts=cuts, tasks=1 + seed))
    assert found


def rules(*texts, asked="?x a :Long"):
    return f"{PREFIX} RULES ON :s {{ {' '.join(f'RULE {each}' for each in texts)} }} SELECT * {{ STATE {{ {asked} }} }}"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            rules("{ ?x a :Long } FOR [0s, 7s] WHERE { ?y :pays ?x . ?y a :Long }"),
            "a rule of <http://ex.org/Long> joins facts of <http://ex.org/Long> with other values",
        ),
        (
            rules("{ :it a :Long } WHERE { ?x a :A }"),
            "a rule of <http://ex.org/Long> sets a value that its facts do not have",
        ),
        (
            rules("{ ?y a :Long } WHERE { ?x :v ?n BIND(?n + 1 AS ?y) }"),
            "a rule of <http://ex.org/Long> sets a value that its facts do not have",
        ),
        (
            rules("{ ?w a :Long } WHERE { ?x a :Held ; :in ?w }", "{ ?x a :Held } FOR [0s, 1s] WHERE { ?x a :A }"),
            "a rule of <http://ex.org/Long> joins facts of <http://ex.org/Held> with other values",
        ),
        (
            BUSY + "SELECT * { STATE { ?x a :Held } STATE { ?y a :Long } }",
            "STATE { ?y <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://ex.org/Long> } has no ?x; "
            "STATE { ?x <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://ex.org/Held> } has no ?y",
        ),
        (
            BUSY + "SELECT ?x { { STATE { ?x a :Held } } UNION { ?x a :B } }",
            "results that no STATE is needed for come with the first of all parts",
        ),
        (
            BUSY + "SELECT ?x (NOW() AS ?t) { STATE { ?x a :Held } }",
            "NOW is evaluated whenever the rules of any part say something",
        ),
    ],
)
def test_what_is_in_one_part(text, reason):
    stage, *others = stages_of(compile_query(text).plan, 4)
    assert (stage.parts, stage.reason, others) == (1, reason, [])
    assert f"the state is in one partition: {reason}" in describe(compile_query(text).plan, 4)


def test_facts_without_the_variable_go_to_every_part():
    text = rules(
        "{ ?x :flags ?z } WHERE { ?x :monitors ?z . ALWAYS [0s, 4s] { SOMETIME [0s, 2s] { ?z a :Signal } } }",
        "{ ?x :monitors ?z } FOR [0s, 3s] WHERE { ?y :flags ?z . ?x :connected ?y }",
        asked="?node :monitors ?signal",
    )
    found = describe(compile_query(text).plan, 4)
    assert "partitioned by ?signal: 4 partitions" in found
    assert "facts ?s <http://ex.org/connected> ?o go to every partition" in found
    assert "facts ?s <http://ex.org/monitors> ?o go to the partition of their object" in found


def test_a_triple_that_is_asked_in_both_places_goes_to_both_parts():
    text = rules("{ ?x a :Long } WHERE { ?x :knows ?y . SOMETIME [0s, 5s] { ?y :knows ?x } }")
    found = describe(compile_query(text).plan, 4)
    assert "facts ?s <http://ex.org/knows> ?o go to the partition of their subject" in found
    assert "facts ?s <http://ex.org/knows> ?o go to the partition of their object" in found
    random, people = Random(7), [URIRef(f"{EX}{name}") for name in "abcdef"]
    elements = [
        Element(
            time * 500_000, URIRef(EX + "s"), ((random.choice(people), URIRef(EX + "knows"), random.choice(people)),)
        )
        for time in range(80)
    ]
    assert check(text, elements, parts=4, changelog=True)
