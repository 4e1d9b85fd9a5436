"""How many arrivals per second does negation over two count windows process (Figure 13), delivering every mapping that
becomes unmatched?

Windows of 100k, 100,000 keys: a key has one right mapping on average, so a third of the left ones are unmatched. A
result is a left mapping that arrives unmatched, or that becomes unmatched when the last right mapping of its key
expires.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Sequence

import numpy as np
from pytest_benchmark.fixture import BenchmarkFixture

from bench.arrivals import MANY, Batch, Int64, Setting
from bench.contest import AGAIN, BY_HAND, ENGINE, PYTHON, Competitor, Contest, Entry, Meeting, Timing
from bench.engine import Engine, WindowedInputs
from bench.kernels.by_hand.negation import NegationByHand
from bench.kernels.cpp.yardsticks import in_cpp
from bench.reevaluation import Reevaluation
from cqels_py.operators.r2r.semi_anti_join import SemiAntiJoin


def engine(setting: Setting) -> Engine:
    return Engine(WindowedInputs([setting.window] * 2, [2, 1]), SemiAntiJoin(("k", "a"), ("k",), [True, True]))


class Python(Competitor):
    """Left mappings in dicts by key, and counts of right ones."""

    def __init__(self, setting: Setting) -> None:
        self._window = setting.window
        self._queues: list[deque[int]] = [deque(), deque()]
        self._left: defaultdict[int, deque[int]] = defaultdict(deque)
        self._right: Counter[int] = Counter()

    def take(self, batch: Batch) -> list[list[tuple[int, ...]]]:
        made: list[tuple[int, ...]] = []
        for tick, (port, key, value) in enumerate(batch.rows):
            queue = self._queues[port]
            queue.append(key)
            old = queue.popleft() if len(queue) > self._window else None
            if port == 0:
                if old is not None:
                    self._left[old].popleft()
                self._left[key].append(value)
                if key not in self._right:
                    made.append((tick, key, value))
            elif old != key:
                self._right[key] += 1
                if old is not None:
                    self._right[old] -= 1
                    if self._right[old] == 0:
                        del self._right[old]
                        made += [(tick, old, each) for each in self._left.get(old, ())]
        return [made]


class Again(Reevaluation):
    def answer(self, windows: Sequence[Int64]) -> Sequence[Int64]:
        alone = windows[0][:, ~np.isin(windows[0][0], windows[1][0])]
        return alone[0], alone[1]


def setting(name: str, window: int, keys: int, batch: int = 10_000) -> Setting:
    return Setting(f"window {name}", window, keys, (MANY, MANY), batch)


CONTEST = Contest(
    "negation",
    [
        Entry(ENGINE, engine),
        Entry(BY_HAND, NegationByHand),
        *in_cpp("negation"),
        Entry(PYTHON, Python),
        Entry(AGAIN, lambda setting: Again(setting.window, 2)),
    ],
    [setting("100k", 100_000, 100_000)],
    [setting("30", 30, 30, 50), setting("200", 200, 100, 50)],
    net=True,
)


def test_rate(benchmark: BenchmarkFixture, meeting: Meeting, timing: Timing) -> None:
    meeting.measure(benchmark, timing)
