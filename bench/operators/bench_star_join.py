"""How many arrivals a second does a 3-way star join over count windows take, delivering every result?

The paper's set-up (10,000 keys; windows of 10k and 100k), through delta batches of a thousand arrivals, with and without the
withdrawal of results, beside the same join kept incrementally in Python dicts. Run it with

    python -m pytest bench/operators/bench_star_join.py -o python_files='bench_*.py' --benchmark-enable --benchmark-only
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from cqels_py.batches.delta import Delta
from cqels_py.event_time.clock import Ticks
from cqels_py.operators.r2r.join import MultiwayJoin

KEYS = 10_000
BATCH = 1_000
INPUTS = (("a", "b"), ("a", "c"), ("a", "d"))
TICKS = Ticks(np.arange(BATCH), first=False)


class Arrivals:
    """A thousand arrivals at a time, spread over the inputs; in a full window the oldest one leaves."""

    def __init__(self, window: int) -> None:
        self._window = window
        self._random = np.random.default_rng(1)
        self._counts = [0] * len(INPUTS)

    def columns(self) -> list[tuple[np.ndarray, int, np.ndarray]]:  # type: ignore[type-arg]
        """For each input: the ticks of its arrivals, how many of them fill the window, and their ids (2, n)."""
        ports = self._random.integers(0, len(INPUTS), BATCH)
        found = []
        for port in range(len(INPUTS)):
            ticks = np.flatnonzero(ports == port).astype(np.int32)
            filling = max(0, min(len(ticks), self._window - self._counts[port]))
            self._counts[port] += len(ticks)
            found.append((ticks, filling, self._random.integers(1, KEYS + 1, (2, len(ticks)))))
        return found


def engine(window: int, retract: bool) -> Callable[[list[tuple]], int]:  # type: ignore[type-arg]
    """The operator; answers with the number of positive results of a batch."""
    join = MultiwayJoin(INPUTS, [True] * 3, ["a", "b", "c", "d"], retract=retract)

    def take(batch: list[tuple]) -> int:  # type: ignore[type-arg]
        deltas = []
        for ticks, filling, ids in batch:
            repeats = np.full(len(ticks), 2)
            repeats[:filling] = 1
            sign = np.ones(int(repeats.sum()), np.int8)
            sign[filling::2] = -1
            deltas.append([Delta(np.repeat(ticks, repeats), sign, np.repeat(ids, repeats, axis=1))])
        return sum(int(np.count_nonzero(out.sign > 0)) for out in join.process(TICKS, deltas))

    return take


def python(window: int) -> Callable[[list[tuple]], int]:  # type: ignore[type-arg]
    """The same in Python dicts, element by element."""
    queues = [deque() for _ in INPUTS]  # type: ignore[var-annotated]
    rings = [defaultdict(deque) for _ in INPUTS]  # type: ignore[var-annotated]

    def take(batch: list[tuple]) -> int:  # type: ignore[type-arg]
        rows = sorted(
            (tick, port, key, value)
            for port, (ticks, _, ids) in enumerate(batch)
            for tick, key, value in zip(ticks.tolist(), *ids.tolist(), strict=True)
        )
        made = []
        for _, port, key, value in rows:
            if len(queues[port]) == window:
                rings[port][queues[port].popleft()].popleft()
            others = [rings[other].get(key, ()) for other in range(3) if other != port]
            made += [(key, value, x, y) for x in others[0] for y in others[1]]
            queues[port].append(key)
            rings[port][key].append(value)
        return len(made)

    return take


def run(benchmark: BenchmarkFixture, window: int, take: Callable[[list[tuple]], int], batches: int) -> None:  # type: ignore[type-arg]
    arrivals = Arrivals(window)
    for _ in range(3 * window // BATCH + 3):
        take(arrivals.columns())
    prepared = [arrivals.columns() for _ in range(batches)]
    made = benchmark.pedantic(lambda: sum(take(batch) for batch in prepared), rounds=3)
    benchmark.extra_info["arrivals"] = batches * BATCH
    benchmark.extra_info["results"] = made
    benchmark.extra_info["arrivals_per_second"] = round(batches * BATCH / benchmark.stats.stats.median)


@pytest.mark.parametrize("retract", [False, True], ids=["positive", "retracting"])
@pytest.mark.parametrize("window", [10_000, 100_000])
def test_engine(benchmark: BenchmarkFixture, window: int, retract: bool) -> None:
    run(benchmark, window, engine(window, retract), 3_000_000 // window)


@pytest.mark.parametrize("window", [10_000, 100_000])
def test_python_dicts(benchmark: BenchmarkFixture, window: int) -> None:
    run(benchmark, window, python(window), 300_000 // window)


def test_both_deliver_the_same() -> None:
    """The competitors agree on how many results each batch has."""
    ours, theirs = engine(2_000, True), python(2_000)
    left, right = Arrivals(2_000), Arrivals(2_000)
    assert [ours(left.columns()) for _ in range(12)] == [theirs(right.columns()) for _ in range(12)]
