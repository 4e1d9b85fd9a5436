"""How many arrivals per second does a 3-way star join over count windows process, delivering every result?

The paper's set-up: 10,000 keys, windows of 10k to 1M (1, 10 and 100 matches in each other window, so 1 to 10,000
results per arrival). `engine` delivers insertions only, as for a consumer that knows how long results live; `engine,
retracting` also retracts results when a mapping leaves its window.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence

from pytest_benchmark.fixture import BenchmarkFixture

from bench.arrivals import MANY, Batch, Int64, Setting
from bench.contest import AGAIN, BY_HAND, ENGINE, PYTHON, RETRACTING, Competitor, Contest, Entry, Meeting, Timing
from bench.engine import Engine, WindowedInputs
from bench.kernels.by_hand.star import StarByHand
from bench.kernels.cpp.yardsticks import in_cpp
from bench.reevaluation import Reevaluation, joined
from cqels_py.operators.r2r.join import MultiwayJoin

INPUTS = (("k", "a"), ("k", "b"), ("k", "c"))


def engine(setting: Setting, *, retract: bool = False) -> Engine:
    join = MultiwayJoin(INPUTS, [True] * 3, ["k", "a", "b", "c"], retract=retract)
    return Engine(WindowedInputs([setting.window] * 3, [2] * 3), join)


def retracting(setting: Setting) -> Engine:
    return engine(setting, retract=True)


class Python(Competitor):
    """Element by element, in dicts. A batch may have a hundred million results, so they are not kept until its end."""

    def __init__(self, setting: Setting) -> None:
        self._window = setting.window
        self._queues: list[deque[int]] = [deque() for _ in INPUTS]
        self._rings: list[defaultdict[int, deque[int]]] = [defaultdict(deque) for _ in INPUTS]

    def take(self, batch: Batch) -> Iterator[list[tuple[int, ...]]]:
        made: list[tuple[int, ...]] = []
        for tick, (port, key, value) in enumerate(batch.rows):
            if len(made) >= 1_000_000:
                yield made
                made = []
            bags: list[Sequence[int]] = [ring.get(key, ()) for ring in self._rings]
            bags[port] = (value,)
            made += [(tick, key, a, b, c) for a in bags[0] for b in bags[1] for c in bags[2]]
            self._insert(port, key, value)
        yield made

    def fill(self, batch: Batch) -> None:
        for row in batch.rows:
            self._insert(*row)

    def _insert(self, port: int, key: int, value: int) -> None:
        queue, ring = self._queues[port], self._rings[port]
        if len(queue) == self._window:
            ring[queue.popleft()].popleft()
        queue.append(key)
        ring[key].append(value)


class Again(Reevaluation):
    def answer(self, windows: Sequence[Int64]) -> Sequence[Int64]:
        a, b = joined(windows[0][0], windows[1][0])
        keys = windows[0][0][a]
        ab, c = joined(keys, windows[2][0])
        return keys[ab], windows[0][1][a[ab]], windows[1][1][b[ab]], windows[2][1][c]


def setting(name: str, window: int, keys: int = 10_000, batch: int = 10_000) -> Setting:
    return Setting(f"window {name}", window, keys, (MANY,) * 3, batch)


CONTEST = Contest(
    "star_join",
    [
        Entry(ENGINE, engine),
        Entry(RETRACTING, retracting),
        Entry(BY_HAND, StarByHand),
        *in_cpp("star"),
        Entry(PYTHON, Python),
        Entry(AGAIN, lambda setting: Again(setting.window, 3), largest=100_000),
    ],
    [setting("10k", 10_000), setting("100k", 100_000), setting("1M", 1_000_000)],
    [setting("60", 60, 20, 50), setting("160", 160, 10, 50)],
    changelog=RETRACTING,
)


def test_rate(benchmark: BenchmarkFixture, meeting: Meeting, timing: Timing) -> None:
    meeting.measure(benchmark, timing)
