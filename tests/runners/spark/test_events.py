"""EVENT blocks without windows on Spark give the local results, in one part and divided."""

from __future__ import annotations

from random import Random

import pytest

from cqels_py.distribution.stages import stages_of
from cqels_py.engine.compile import compile_query
from tests.oracle.naive import Static
from tests.runners.spark import simulation
from tests.support.drawn_events import EX, STATIC, EventDrawer, drawn_elements

DIVIDED = f"""PREFIX : <{EX}>
SELECT ?k ?b (COUNT(*) AS ?n) WHERE {{
  EVENT ON :s AT ?i {{ ?x :n ?a ; :k ?k }}
  EVENT ON :t AT ?j {{ ?y :n ?b ; :k ?k FILTER(?b IN (1, 2, 3) && ?k IN (:k0, :k1)) }} FILTER(?i > ?j)
}} GROUP BY ?k ?b"""


def check(text, elements, *, parts, static=STATIC, cuts=()):
    streams = compile_query(text).plan.streams
    elements = simulation.in_spark_order([each for each in elements if str(each.stream) in streams], streams)
    found = simulation.run(text, elements, static, changelog=False, cuts=list(cuts), tasks=1, parts=parts, seed=1)
    assert found == simulation.expected(text, elements, static, None)
    return found


def test_divided_by_a_variable_of_all_blocks():
    assert stages_of(compile_query(DIVIDED).plan, 3)[0].parts == 3
    assert check(DIVIDED, drawn_elements(Random(2), 80), parts=3, static=Static())


@pytest.mark.parametrize("seed", range(10))
def test_drawn_queries(seed):
    random = Random(5000 + seed)
    text, elements = EventDrawer(random).text(), drawn_elements(random, 20)
    times = [each.time for each in elements]
    cut = next((n for n in range(10, len(times)) if times[n] > times[n - 1]), 0)
    check(text, elements, parts=1 + seed % 3, cuts=[cut] if cut else [])
