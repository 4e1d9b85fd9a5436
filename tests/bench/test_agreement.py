"""All competitors of a benchmark do the same work: at each tick they deliver the same results."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from bench.arrivals import Batch, Setting
from bench.contest import Changes, Chunk, Competitor, Contest
from bench.kernels import bench_ring_index
from bench.operators import (
    bench_average,
    bench_chain_join,
    bench_closure,
    bench_distinct,
    bench_minimum,
    bench_negation,
    bench_star_join,
    bench_sums,
)
from cqels_py.batches.delta import Delta

CONTESTS: list[Contest] = [
    module.CONTEST
    for module in (
        bench_ring_index,
        bench_star_join,
        bench_chain_join,
        bench_average,
        bench_minimum,
        bench_sums,
        bench_distinct,
        bench_negation,
        bench_closure,
    )
]
Bag = Counter[tuple[Any, ...]]
Bags = dict[int, Bag]


def signed_rows(chunk: Chunk) -> list[tuple[int, int, tuple[Any, ...]]]:
    """Tick, sign, result."""
    if isinstance(chunk, list):
        return [(tick, 1, tuple(row)) for tick, *row in chunk]
    signs = chunk.sign.tolist() if isinstance(chunk, Delta | Changes) else [1] * len(chunk)
    rows = zip(*(column.tolist() for column in chunk.columns), strict=True)
    return list(zip(chunk.tick.tolist(), signs, rows, strict=True))


def changes(competitor: Competitor, chunks: Iterable[Chunk], *, net: bool) -> tuple[Bags, Bag]:
    """The insertions of each tick, and the sum of all changes. A chunk is read before the next one is requested."""
    new: Bags = defaultdict(Counter)
    total: Bag = Counter()
    for chunk in chunks:
        for tick, sign, row in signed_rows(chunk):
            plain = competitor.plain(row)
            if net or sign > 0:
                new[tick][plain] += sign
            total[plain] += sign
    return {tick: +bag for tick, bag in new.items() if +bag}, total


CASES = [
    pytest.param(contest, setting, id=f"{contest.name}-{setting.name}")
    for contest in CONTESTS
    for setting in contest.quick
]


def batches(setting: Setting, seed: int) -> Iterator[Batch]:
    """From empty windows to full ones that have turned over."""
    arrivals = setting.arrivals(seed)
    yield from arrivals.filling()
    for _ in range(setting.inputs * setting.window // setting.batch + 2):
        yield arrivals.batch()


@pytest.mark.parametrize("filled", [False, True], ids=["taken", "filled"])
@pytest.mark.parametrize(("contest", "setting"), CASES)
def test_all_deliver_the_same(contest: Contest, setting: Setting, filled: bool) -> None:
    """Whether the first batches' results are read (`taken`) or not (`filled`) makes no difference for the others."""
    competitors = {entry.name: entry.make(setting) for entry in contest.entries}
    answer: Bag = Counter()
    seen = 0
    for number, batch in enumerate(batches(setting, seed=2)):
        if filled and number == 0:
            for competitor in competitors.values():
                competitor.fill(batch)
            continue
        new: dict[str, Bags] = {}
        whole: dict[str, Bag] = {}
        for name, competitor in competitors.items():
            found, total = changes(competitor, competitor.take(batch), net=contest.net)
            if competitor.whole_answers:
                whole[name] = total
            else:
                new[name] = found
            if name == contest.changelog:
                answer.update(total)
        expected = new[contest.entries[0].name]
        for name, found in new.items():
            assert found == expected, name
        if not filled:
            for name, total in whole.items():
                assert +total == +answer, name
        seen += sum(bag.total() for bag in expected.values())
    # Insertion into a ring index alone has no results.
    assert seen > 0 or setting.measured == (0,)
