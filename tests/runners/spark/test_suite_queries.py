"""Every query of SRBench and LSBench in Spark's stages: two parts, micro-batches of any size, and at each tick the local answer.

That the local runner's answers are the oracle's is shown in tests/datasets, on the same streams.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from cqels_py.algebra.nodes import Output
from cqels_py.engine.compile import compile_query
from cqels_py.spark import stages
from tests.datasets import test_lsbench_queries as lsbench
from tests.datasets import test_srbench_queries as srbench
from tests.oracle.naive import Element, Static
from tests.runners.spark import simulation

PARTS = 2


def agree(text: str, elements: Sequence[Element], static: Static, chance: random.Random) -> None:
    assert stages(text, PARTS)[0].parts == PARTS
    elements = simulation.in_spark_order(elements, compile_query(text).plan.streams)
    wanted = simulation.expected(text, elements, static, Output.CHANGELOG)
    assert wanted, "a query that never answers shows nothing"
    cuts = sorted(chance.sample(range(1, len(elements)), 5))
    seed = chance.randrange(9)
    found = simulation.run(
        text, elements, static, changelog=True, cuts=cuts, tasks=1, parts=PARTS, seed=seed, solutions=True
    )
    assert found == wanted


@pytest.mark.parametrize("number", srbench.NUMBERS)
def test_srbench(number: str) -> None:
    data = srbench.storms()
    agree(srbench.QUERIES[number], data.elements, data.static, random.Random(number))


@pytest.mark.parametrize("number", lsbench.NUMBERS)
def test_lsbench(number: str) -> None:
    elements = lsbench.elements(number, lsbench.USERS)
    agree(
        lsbench.QUERIES[number], elements[: len(elements) // 2], lsbench.network(lsbench.USERS), random.Random(number)
    )
