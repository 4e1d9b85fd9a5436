"""`net=True`: of each micro-batch the changes that are left when equal additions and removals cancel each other."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

from cqels_py.batches.results import ResultBatch
from cqels_py.engine.compile import compile_query
from cqels_py.errors import UsageError
from cqels_py.runners.spark.net_changes import NetChanges
from cqels_py.spark import prepare, statistics
from tests.runners.spark import simulation
from tests.runners.spark.test_simulated import DIVIDED, EX, STATIC, drawn
from tests.runners.spark.test_stages import BY_SHARES, MERGED

QUERIES = {
    **{name: DIVIDED[name] for name in ("range", "step", "count", "optional", "not exists", "having")},
    **{name: MERGED[name] for name in ("groups", "top", "aggregates", "ask", "groups of groups")},
    "triangle": BY_SHARES["triangle"],
    "construct": "CONSTRUCT { ?c :twice ?v } WHERE { STREAM :s [RANGE 40us] { ?c :v ?v } }",
}


def summed(rows: list[dict[str, Any]]) -> Counter[Any]:
    """The sum of the signs of each result; without those whose sum is zero."""
    found: Counter[Any] = Counter()
    for (_, sign, bindings), count in simulation.counted(rows).items():
        found[bindings] += sign * count
    return Counter({bindings: count for bindings, count in found.items() if count})


@pytest.mark.parametrize("name", QUERIES)
def test_sums_of_each_micro_batch(name: str) -> None:
    """Those of all changes, each told once, whichever worker had the state; and as many as the counts say."""
    text, chance = f"PREFIX : <{EX}> {QUERIES[name]}", random.Random(name)
    streams = compile_query(text, changelog=True).plan.streams
    elements = [each for each in drawn(chance.randrange(1000), 90) if str(each.stream) in streams]
    told: dict[bool, list[list[dict[str, Any]]]] = {}
    for net in (False, True):
        with simulation.scratch() as place:
            job, plan = prepare(text, state=place, partitions=3, static=[list(STATIC.default)], changelog=True, net=net)
            cluster = simulation.Cluster(job, seed=1, snapshots=0.5)
            pieces = [elements[start : start + 15] for start in range(0, len(elements), 15)]
            tables = [
                simulation.rows_of(piece, plan.streams, [f"g{number}x{n}" for n in range(len(piece))])
                for number, piece in enumerate(pieces)
            ]
            told[net] = [
                cluster.run(number, [each], final=number == len(tables) - 1) for number, each in enumerate(tables)
            ]
            if "CONSTRUCT" not in text:
                assert statistics(place).results == sum(map(len, told[net]))
    for all_changes, left in zip(told[False], told[True], strict=True):
        assert summed(left) == summed(all_changes)
        assert len(left) == sum(map(abs, summed(left).values()))
        assert not simulation.counted(left) - simulation.counted(all_changes)
    assert sum(map(len, told[True])) < sum(map(len, told[False]))


@pytest.mark.parametrize("name", ["range", "groups"])
def test_switched_when_the_query_is_started_again_in_the_workers_of_before(name: str) -> None:
    """They have its state in memory."""
    text, chance = f"PREFIX : <{EX}> {QUERIES[name]}", random.Random(name)
    elements = [each for each in drawn(chance.randrange(1000), 400) if str(each.stream).endswith("/s")]
    assert len(elements) >= 90
    with simulation.scratch() as place:
        for run, net in enumerate((False, True, False)):
            job, plan = prepare(text, state=place, partitions=3, changelog=True, net=net, application="one")
            cluster = simulation.Cluster(job, chance=1)
            for number in (2 * run, 2 * run + 1):
                piece = elements[15 * number : 15 * number + 15]
                table = simulation.rows_of(piece, plan.streams, [f"g{number}x{n}" for n in range(len(piece))])
                told = cluster.run(number, [table])
                assert (len(told) == sum(map(abs, summed(told).values()))) == net


def test_what_has_no_net_change() -> None:
    text = f"PREFIX : <{EX}> {DIVIDED['range']}"
    with simulation.scratch() as place, pytest.raises(UsageError, match="give changelog=True"):
        prepare(text, state=place, partitions=2, net=True)


@pytest.mark.parametrize("piece", [1, 3, 16])
def test_in_pieces_as_in_one(piece: int) -> None:
    """Whatever the pieces, each change that is left has the time of one that none after it cancels; arrays are its own."""
    chance = random.Random(piece)
    for _ in range(30):
        changes = NetChanges(piece)
        expected: dict[int, list[tuple[int, int]]] = {}
        added = 0
        for _ in range(chance.randrange(4)):
            values = [chance.randrange(6) for _ in range(chance.randrange(20))]
            signs = [chance.choice((1, -1)) for _ in values]
            for value, sign in zip(values, signs, strict=True):
                waiting = expected.setdefault(value, [])
                if waiting and waiting[-1][1] != sign:
                    waiting.pop()
                else:
                    waiting.append((added, sign))
                added += 1
            time = np.arange(added - len(values), added)
            batch = ResultBatch(("a",), time, np.array(signs, np.int8), (np.array(values, np.int64),))
            changes.add(batch)
            time[:] = -1
        left, left_out = changes.fetch()
        found = (
            []
            if left is None
            else list(zip(left.time.tolist(), left.sign.tolist(), left.columns[0].tolist(), strict=True))
        )
        wanted = sorted((*each, value) for value, waiting in expected.items() for each in waiting)
        assert found == wanted
        assert left_out == added - len(wanted)
        assert changes.fetch() == (None, 0)
