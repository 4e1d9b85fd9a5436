"""What do insertion into a ring index and probing cost, by window size and number of keys (Figures 9 to 12)?

`insert`: each arrival enters the window and its ring, and the oldest mapping leaves. It is also looked up in the join's
other index, which is empty. `probe`: each arrival reads all mappings of its key; it enters and leaves the other index,
which is tiny. 10,000 arrivals per batch, with no clock or windows around the join: the kernel is measured.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from pytest_benchmark.fixture import BenchmarkFixture

from bench.arrivals import MANY, Batch, Setting
from bench.contest import BY_HAND, ENGINE, PYTHON, Competitor, Contest, Entry, Meeting, Timing
from bench.kernels.by_hand.ring import RingByHand
from bench.kernels.cpp.yardsticks import in_cpp
from cqels_py.batches.delta import Delta, SignColumn, TickColumn
from cqels_py.event_time.clock import Ticks
from cqels_py.operators.r2r.join import MultiwayJoin


class RingIndex(Competitor):
    """A join of two inputs: the first input's index is measured, the second one holds a mapping for a moment."""

    def __init__(self, setting: Setting) -> None:
        self._window = setting.window
        self._inserted = 0
        self._join = MultiwayJoin((("k", "a"), ("k",)), [True, True], ["a"], retract=False)

    def take(self, batch: Batch) -> Iterator[Delta]:
        if batch.port[0] == 1:
            probes = Delta(*_in_pairs(len(batch), 1, -1), batch.in_pairs[:1])
            return self._join.process(_ticks(len(batch)), [[], [probes]])
        # Before each insertion the oldest mapping leaves, unless the window is not full yet.
        n = len(batch)
        filling = max(0, min(n, self._window - self._inserted))
        self._inserted += n
        tick, sign = _in_pairs(n, -1, 1)
        columns = batch.in_pairs
        if filling:
            there = np.flatnonzero((sign > 0) | (tick >= filling))
            tick, sign, columns = tick[there], sign[there], columns[:, there]
        return self._join.process(_ticks(n), [[Delta(tick, sign, columns)], []])


@cache
def _ticks(arrivals: int) -> Ticks:
    return Ticks(np.arange(arrivals), first=False)


@cache
def _in_pairs(arrivals: int, first: int, second: int) -> tuple[TickColumn, SignColumn]:
    """Ticks and signs of rows; each arrival makes two rows."""
    return np.repeat(np.arange(arrivals, dtype=np.int32), 2), np.tile(np.array([first, second], np.int8), arrivals)


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


def pair(window: int, keys: int, batch: int = 10_000) -> list[Setting]:
    sizes = f"window {window:,}, keys {keys:,}"
    return [
        Setting(f"{what}, {sizes}", window, keys, (MANY, MANY), batch, filled=(0,), measured=(port,))
        for port, what in enumerate(("insert", "probe"))
    ]


CONTEST = Contest(
    "ring_index",
    [
        Entry(ENGINE, RingIndex),
        Entry(BY_HAND, RingByHand),
        *in_cpp("ring"),
        Entry(PYTHON, Python, largest=1_000_000),
    ],
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
