"""Several scans as one sequence in the order of their elements."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pytest

from cqels_py.batches.delta import Delta, in_blocks
from cqels_py.batches.elements import Ids
from cqels_py.dataflow.dataflow import Dataflow
from cqels_py.dataflow.static_data import StaticData
from cqels_py.dictionary import Dictionary
from cqels_py.engine.compile import compile_query
from cqels_py.event_time.clock import Ticks
from cqels_py.operators.arrival_order import in_order_of_arrival
from cqels_py.runners.local import LocalRunner
from cqels_py.runners.running import RunningQuery
from tests.support.driven import Arrival, Received, push, put_on_top

TEXT = """PREFIX : <http://ex.org/> SELECT * {
    { STREAM :one [RANGE 1s] { ?a :p ?b } } UNION { STREAM :two [COUNT 9] { ?a :q ?b } }
    UNION { STREAM :one [RANGE 1s] { ?a :r ?b } }
}"""


class Sequenced:
    """What arrives, as one sequence of (input, subject)."""

    STATE = ()

    def __init__(self) -> None:
        self.seen: list[tuple[int, int]] = []

    def process(self, ticks: Ticks, inputs: Sequence[Iterable[Delta]]) -> Iterator[Delta]:
        for deltas in in_blocks(inputs, [2, 2, 2]):
            merged = in_order_of_arrival(deltas)
            assert merged.tick.tolist() == sorted(merged.tick.tolist())
            for port, row, sign in zip(merged.port.tolist(), merged.row.tolist(), merged.sign.tolist(), strict=True):
                if sign > 0:
                    self.seen.append((port, deltas[port].columns.item(0, row)))
        yield from ()

    def live_ids(self) -> Iterable[Ids]:
        return ()

    @property
    def nbytes(self) -> int:
        return 0


@pytest.mark.parametrize("batch", [1, 2, 5, None])
@pytest.mark.parametrize("seed", range(4))
def test_scans_are_merged_in_the_order_of_their_elements(batch: int | None, seed: int) -> None:
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
            (("pqr".index(p)), s) for s, p in zip(subjects, predicates, strict=True) if (p == "q") == (stream == 1)
        ]
        # Of one element: by scan, then as its triples stand.
        expected += sorted(matched, key=lambda each: each[0])
    operator = Sequenced()
    dictionary = Dictionary()
    dataflow = Dataflow(compile_query(TEXT).plan, dictionary, StaticData())
    put_on_top(dataflow, operator, below=True)
    runner = LocalRunner(dictionary, 0)
    runner.queries = [RunningQuery(dataflow, [0, 1], Received(dictionary))]
    push(runner, dictionary, arrivals, batch)
    seen = [(port, dictionary.decode(np.array([subject]))[0]) for port, subject in operator.seen]
    assert seen == expected
    assert len(seen) > 20
