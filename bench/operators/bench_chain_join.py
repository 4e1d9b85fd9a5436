"""How many arrivals per second does a 3-way chain join (a, b), (b, c), (c, d) over count windows process, delivering
every result?

10,000 different b and c; windows of 10k and 100k (1 and 10 matches per step, so about 1 and 100 results per arrival).
The middle input is probed from either of its ends, and an arrival at one end of the chain is joined in two steps.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence

from pytest_benchmark.fixture import BenchmarkFixture

from bench.arrivals import Batch, Int64, Setting
from bench.contest import AGAIN, BY_HAND, ENGINE, PYTHON, RETRACTING, Competitor, Contest, Entry, Meeting, Timing
from bench.engine import Engine, WindowedInputs
from bench.kernels.by_hand.chain import ChainByHand
from bench.kernels.cpp.yardsticks import in_cpp
from bench.reevaluation import Reevaluation, joined
from cqels_py.operators.r2r.join import MultiwayJoin

INPUTS = (("b", "a"), ("b", "c"), ("c", "d"))


def engine(setting: Setting, *, retract: bool = False) -> Engine:
    join = MultiwayJoin(INPUTS, [True] * 3, ["a", "b", "c", "d"], retract=retract)
    return Engine(WindowedInputs([setting.window] * 3, [2] * 3), join)


def retracting(setting: Setting) -> Engine:
    return engine(setting, retract=True)


class Python(Competitor):
    """Element by element, in dicts: a by b, c by b, b by c, d by c."""

    def __init__(self, setting: Setting) -> None:
        self._window = setting.window
        self._queues: list[deque[tuple[int, int]]] = [deque() for _ in INPUTS]
        self._a, self._c, self._b, self._d = (defaultdict[int, deque[int]](deque) for _ in range(4))

    def take(self, batch: Batch) -> list[list[tuple[int, ...]]]:
        made: list[tuple[int, ...]] = []
        for tick, (port, key, value) in enumerate(batch.rows):
            if port == 0:
                made += [(tick, value, key, c, d) for c in self._c.get(key, ()) for d in self._d.get(c, ())]
            elif port == 1:
                made += [(tick, a, key, value, d) for a in self._a.get(key, ()) for d in self._d.get(value, ())]
            else:
                made += [(tick, a, b, key, value) for b in self._b.get(key, ()) for a in self._a.get(b, ())]
            self._insert(port, key, value)
        return [made]

    def fill(self, batch: Batch) -> None:
        for row in batch.rows:
            self._insert(*row)

    def _insert(self, port: int, key: int, value: int) -> None:
        queue = self._queues[port]
        if len(queue) == self._window:
            old_key, old_value = queue.popleft()
            for ring, ring_key, _ in self._rings(port, old_key, old_value):
                ring[ring_key].popleft()
        queue.append((key, value))
        for ring, ring_key, entry in self._rings(port, key, value):
            ring[ring_key].append(entry)

    def _rings(self, port: int, key: int, value: int) -> list[tuple[defaultdict[int, deque[int]], int, int]]:
        if port == 1:
            return [(self._c, key, value), (self._b, value, key)]
        return [(self._a if port == 0 else self._d, key, value)]


class Again(Reevaluation):
    def answer(self, windows: Sequence[Int64]) -> Sequence[Int64]:
        ab, bc = joined(windows[0][0], windows[1][0])
        c = windows[1][1][bc]
        abc, cd = joined(c, windows[2][0])
        ab = ab[abc]
        return windows[0][1][ab], windows[0][0][ab], c[abc], windows[2][1][cd]


def setting(name: str, window: int, keys: int = 10_000, batch: int = 10_000) -> Setting:
    return Setting(f"window {name}", window, keys, (keys,) * 3, batch)


CONTEST = Contest(
    "chain_join",
    [
        Entry(ENGINE, engine),
        Entry(RETRACTING, retracting),
        Entry(BY_HAND, ChainByHand),
        *in_cpp("chain"),
        Entry(PYTHON, Python),
        Entry(AGAIN, lambda setting: Again(setting.window, 3)),
    ],
    [setting("10k", 10_000), setting("100k", 100_000)],
    [setting("60", 60, 20, 50), setting("120", 120, 20, 50)],
    changelog=RETRACTING,
)


def test_rate(benchmark: BenchmarkFixture, meeting: Meeting, timing: Timing) -> None:
    meeting.measure(benchmark, timing)
