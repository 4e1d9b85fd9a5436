"""UNION: its results come in the order in which the elements arrived."""

from __future__ import annotations

import random

import pytest

from cqels_py.dataflow.dataflow import Dataflow
from cqels_py.dataflow.static_data import StaticData
from cqels_py.dictionary import Dictionary
from cqels_py.engine.compile import compile_query
from cqels_py.runners.local import LocalRunner
from cqels_py.runners.running import RunningQuery
from tests.support.driven import Arrival, Received, push

TEXT = """PREFIX : <http://ex.org/> SELECT ?p ?q ?r {
    { STREAM :one [RANGE 1s] { ?p :p ?o } } UNION { STREAM :two [COUNT 9] { ?q :q ?o } }
    UNION { STREAM :one [RANGE 1s] { ?r :r ?o } }
}"""


@pytest.mark.parametrize("batch", [1, 2, 5, None])
@pytest.mark.parametrize("seed", range(4))
def test_results_come_in_the_order_of_arrival_and_those_of_an_element_by_branch(batch: int | None, seed: int) -> None:
    rng = random.Random(seed)
    arrivals: list[Arrival] = []
    expected: list[tuple[int, str]] = []
    time = 0
    for number in range(60):
        time += rng.choice((0, 0, 400_000))
        stream = rng.randrange(2)
        predicates = [rng.choice("pqr" if stream == 0 else "q") for _ in range(rng.randrange(3))]
        subjects = [f"<http://ex.org/{number}/{place}>" for place in range(len(predicates))]
        triples = [(s, f"<http://ex.org/{p}>", "<http://ex.org/o>") for s, p in zip(subjects, predicates, strict=True)]
        arrivals.append((time, stream, triples))
        matched = [
            ("pqr".index(p), s) for s, p in zip(subjects, predicates, strict=True) if (p == "q") == (stream == 1)
        ]
        expected += sorted(matched, key=lambda each: each[0])
    dictionary = Dictionary()
    received = Received(dictionary)
    runner = LocalRunner(dictionary, 0)
    runner.queries = [RunningQuery(Dataflow(compile_query(TEXT).plan, dictionary, StaticData()), [0, 1], received)]
    push(runner, dictionary, arrivals, batch)
    bound = [next((branch, term) for branch, term in enumerate(terms) if term) for _, _, terms in received.rows]
    assert bound == expected
    assert len(bound) > 20
