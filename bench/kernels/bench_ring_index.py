"""What do inserting into a ring index and probing it cost, by window size and number of keys (Figures 9 to 12)?

`insert`: each arrival enters the window and its ring, the oldest mapping leaves. It is also looked up in the join's other index,
which is empty. `probe`: each arrival asks for all mappings of its key, and is itself gone at the next one. Results are pointers
(the slots of mappings): looking up what they point at is the consumer's part.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from typing import Any

from pytest_benchmark.fixture import BenchmarkFixture

from bench.arrivals import MANY, Batch, Setting
from bench.contest import BY_HAND, ENGINE, PYTHON, Competitor, Contest, Entry, Meeting, Timing
from bench.engine import Engine, WindowedInputs
from bench.kernels.by_hand.ring import RingByHand
from cqels_py.batches.delta import Delta
from cqels_py.operators.r2r.join import MultiwayJoin


class RingIndex(Engine):
    """A join of two: the first input's index is measured, the second one's window holds one mapping."""

    def __init__(self, setting: Setting) -> None:
        join = MultiwayJoin((("k", "a"), ("k",)), [True, True], ["a"], retract=False)
        super().__init__(WindowedInputs([setting.window, 1], [2, 1]), join)

    def take(self, batch: Batch) -> Iterator[Delta]:
        return self._deltas(batch)


class Python(Competitor):
    """A dict of deques."""

    def __init__(self, setting: Setting) -> None:
        self._window = setting.window
        self._queue: deque[int] = deque()
        self._rings: defaultdict[int, deque[int]] = defaultdict(deque)

    def take(self, batch: Batch) -> list[list[tuple[Any, ...]]]:
        made: list[tuple[Any, ...]] = []
        for tick, (port, key, value) in enumerate(batch.rows):
            if port == 1:
                made += [(tick, each) for each in self._rings.get(key, ())]
                continue
            if len(self._queue) == self._window:
                self._rings[self._queue.popleft()].popleft()
            self._queue.append(key)
            self._rings[key].append(value)
        return [made]


def pair(window: int, keys: int, batch: int = 1_000) -> list[Setting]:
    sizes = f"window {window:,}, keys {keys:,}"
    return [
        Setting(f"{what}, {sizes}", window, keys, (MANY, MANY), batch, filled=(0,), measured=(port,))
        for port, what in enumerate(("insert", "probe"))
    ]


CONTEST = Contest(
    "ring_index",
    [Entry(ENGINE, RingIndex), Entry(BY_HAND, RingByHand), Entry(PYTHON, Python, largest=1_000_000)],
    [
        setting
        for window in (10_000, 100_000, 1_000_000, 10_000_000)
        for keys in (10_000, 100_000, 1_000_000)
        for setting in pair(window, keys)
    ],
    pair(300, 20, 50),
)


def test_rate(benchmark: BenchmarkFixture, meeting: Meeting, timing: Timing) -> None:
    meeting.measure(benchmark, timing)
