"""MATCH on Spark gives the local results, in one part and divided."""

from __future__ import annotations

from random import Random

import pytest

from cqels_py.algebra.nodes import Output
from cqels_py.distribution.stages import stages_of
from cqels_py.engine.compile import compile_query
from tests.engine.test_match import drawn
from tests.oracle.naive import Static
from tests.runners.spark import simulation
from tests.support.drawn_matches import drawn_elements

DIVIDED = """PREFIX : <http://ex.org/>
SELECT ?a ?b ?k { MATCH WITHIN 4s {
  { EVENT ON :s0 { ?a a :A ; :k ?k } OR EVENT ON :s0 { ?a a :C ; :k ?k ; :v ?v } }
  SEQ NOT EVENT ON :s0 { ?n a :A ; :v 3 }
  SEQ EVENT ON :s1 { ?b :k ?k } } }"""


def check(text, elements, *, parts, changelog, cuts=()):
    streams = compile_query(text).plan.streams
    elements = simulation.in_spark_order([each for each in elements if str(each.stream) in streams], streams)
    found = simulation.run(text, elements, Static(), changelog=changelog, cuts=list(cuts), tasks=1, parts=parts, seed=1)
    assert found == simulation.expected(text, elements, Static(), Output.CHANGELOG if changelog else None)
    return found


@pytest.mark.parametrize("changelog", [False, True])
def test_divided_by_the_key(changelog):
    assert stages_of(compile_query(DIVIDED).plan, 3)[0].parts == 3
    elements = [each for number, each in enumerate(drawn_elements(Random(11), 60)) if number % 7]
    assert check(DIVIDED, elements, parts=3, changelog=changelog)


@pytest.mark.parametrize("seed", range(12))
def test_drawn_patterns(seed):
    text, elements = drawn(4000 + seed)
    times = [each.time for each in elements]
    cuts = [len(elements) // 2] if len(set(times)) == len(times) else []
    check(text, elements, parts=1 + seed % 3, changelog=bool(seed % 2), cuts=cuts)


POLICIES = [("LATEST", False), ("EARLIEST", False), ("", True), ("EARLIEST", True)]


@pytest.mark.parametrize("seed", range(8))
def test_drawn_policies(seed):
    policy, consume = POLICIES[seed % len(POLICIES)]
    text, elements = drawn(7000 + seed, policy=policy, consume=consume)
    times = [each.time for each in elements]
    cuts = [len(elements) // 2] if len(set(times)) == len(times) else []
    check(text, elements, parts=1 + seed % 3, changelog=bool(seed % 2), cuts=cuts)
