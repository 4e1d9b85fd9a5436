"""C++ that does the engine's work: the same changes of both signs, and state that ever-new keys do not grow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

from bench.arrivals import Batch, Setting, integers, iris
from bench.contest import BELOW, ENGINE, RETRACTING, Competitor, Contest, same_work_as
from bench.kernels import bench_ring_index
from bench.kernels.cpp import library
from bench.kernels.cpp.yardsticks import SameAverage, SameWork
from bench.operators import (
    bench_average,
    bench_chain_join,
    bench_distinct,
    bench_minimum,
    bench_negation,
    bench_star_join,
    bench_sums,
)
from tests.bench.test_agreement import Bags, batches, signed_rows

pytestmark = pytest.mark.skipif(library.compiler() is None, reason=f"there is no {library.COMPILER}")

CONTESTS = [
    pytest.param(module.CONTEST, engine, id=f"{module.CONTEST.name}-{engine}")
    for module, engine in (
        (bench_ring_index, ENGINE),
        (bench_average, ENGINE),
        (bench_sums, BELOW),
        (bench_minimum, ENGINE),
        (bench_distinct, ENGINE),
        (bench_negation, ENGINE),
        (bench_star_join, ENGINE),
        (bench_star_join, RETRACTING),
        (bench_chain_join, ENGINE),
        (bench_chain_join, RETRACTING),
    )
]


def net(competitor: Competitor, batch: Batch) -> Bags:
    """The insertions and retractions of each tick, by ids."""
    found: Bags = {}
    for chunk in competitor.take(batch):
        for tick, sign, row in signed_rows(chunk):
            found.setdefault(tick, Counter())[row] += sign
    cleaned = {tick: Counter({row: n for row, n in bag.items() if n}) for tick, bag in found.items()}
    return {tick: bag for tick, bag in cleaned.items() if bag}


def parts(batch: Batch, contest: Contest) -> list[Batch]:
    """The batch itself, or where a contest's batches are of one input each, such ones."""
    if not contest.quick[0].measured:
        return [batch]
    each = [batch.of(port) for port in range(contest.quick[0].inputs)]
    return [Batch(batch.port[mine], np.take(batch.columns, mine, axis=1)) for mine in each]


def engine_and_same(contest: Contest, setting: Setting, engine: str = ENGINE) -> tuple[Competitor, SameWork]:
    made = {
        entry.name: entry.make(setting) for entry in contest.entries if entry.name in (engine, same_work_as(engine))
    }
    same = made[same_work_as(engine)]
    assert isinstance(same, SameWork)
    return made[engine], same


@pytest.mark.parametrize(("contest", "kind"), CONTESTS)
def test_withdrawals_are_those_of_the_engine(contest: Contest, kind: str) -> None:
    for setting in contest.quick:
        engine, same = engine_and_same(contest, setting, kind)
        for batch in batches(setting, seed=3):
            assert net(same, batch) == net(engine, batch)


def ever_new(setting: Setting) -> Iterator[Batch]:
    """Six arrivals in a row share a key, and the next six have another. The middle one of three inputs leads from key to key."""
    random = np.random.default_rng(7)
    made = 1
    while True:
        number = made + np.arange(setting.batch)
        made += setting.batch
        port = (number % setting.inputs).astype(np.int32)
        keys = iris(number // 6)
        values = integers(np.where(port == 0, number, random.integers(1, 1000, setting.batch)))
        yield Batch(port, np.stack([keys, np.where((port == 1) & (setting.inputs == 3), keys, values)]))


@pytest.mark.parametrize(("contest", "kind"), CONTESTS)
def test_ever_new_keys_do_not_grow_its_state(contest: Contest, kind: str) -> None:
    inputs = contest.quick[0].values
    setting = Setting("ever new", 200, 1, inputs, batch=1000)
    engine, same = engine_and_same(contest, setting, kind)
    kept = []
    for _, batch in zip(range(30), ever_new(setting), strict=False):
        for part in parts(batch, contest):
            assert net(same, part) == net(engine, part)
        kept.append(same.nbytes)
    assert kept[5] == kept[-1]
    assert kept[-1] < 400 * setting.window * setting.inputs


@pytest.mark.parametrize(
    ("contest", "kind"),
    [case for case in CONTESTS if case.values[0].name in ("ring_index", "star_join", "chain_join", "negation")],
)
def test_rings_grow_and_shrink_with_their_keys(contest: Contest, kind: str) -> None:
    """Blocks of arrivals of one key each: every ring at some time holds all of its window."""
    setting = Setting("one key", 60, 1, contest.quick[0].values, batch=50)
    engine, same = engine_and_same(contest, setting, kind)
    arrivals = setting.arrivals(seed=4)
    kept = []
    for number in range(60):
        batch = arrivals.batch()
        batch.columns[0] = iris(np.int64(1 + number % 20))
        for part in parts(batch, contest):
            assert net(same, part) == net(engine, part)
        kept.append(same.nbytes)
    assert kept[-1] == kept[len(kept) // 2]


@pytest.mark.parametrize("size", [10, 1000, 10**6])
def test_averages_are_the_engines_to_the_last_digit(size: int) -> None:
    """Positive and negative sums over counts up to 40, by ids; none comes near to 0, or has a text instead of an id."""
    setting = Setting("averages", 40, 1, (1,), batch=400)
    engine, same = engine_and_same(bench_average.CONTEST, setting)
    random = np.random.default_rng(8)
    for most in (1, 5, 40):
        key = random.integers(1, most + 1, setting.batch)
        values = np.where(key % 2, 1, -1) * random.integers(size // 2, size, setting.batch)
        ids = integers(values & ((1 << 56) - 1))
        batch = Batch(np.zeros(setting.batch, np.int32), np.stack([iris(key), ids]))
        assert net(same, batch) == net(engine, batch)


def test_values_without_an_average_are_an_error() -> None:
    setting = Setting("texts", 40, 1, (1,), batch=1)
    batch = Batch(np.zeros(1, np.int32), iris(np.array([[1], [2]])))
    with pytest.raises(RuntimeError, match="no integer"):
        list(SameAverage(setting).take(batch))
