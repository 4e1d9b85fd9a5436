"""How many arrivals per second does DISTINCT after a binary join process, by the join's selectivity?

1,000 different left and right values, so a million different results. The engine counts the occurrences of each result.
The kernel by hand knows the expiry of each result and keeps the latest, so it never processes an expiry.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from pytest_benchmark.fixture import BenchmarkFixture

from bench.arrivals import Batch, Int64, Setting
from bench.contest import AGAIN, BY_HAND, ENGINE, PYTHON, Contest, Entry, Meeting, Timing
from bench.engine import Engine
from bench.kernels.by_hand.distinct import DistinctByHand
from bench.kernels.cpp.yardsticks import in_cpp
from bench.operators import join_of_two
from bench.reevaluation import Reevaluation, joined
from cqels_py.operators.r2r.distinct import DistinctRows


def engine(setting: Setting) -> Engine:
    return join_of_two.engine(setting, DistinctRows(2))


class Python(join_of_two.PythonJoin):
    """The number of occurrences of each result, in a dict."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._counts: Counter[tuple[int, int]] = Counter()

    def take(self, batch: Batch) -> list[list[tuple[int, ...]]]:
        made: list[tuple[int, ...]] = []
        counts = self._counts
        for tick, (gone, come) in enumerate(self.changes(batch)):
            # Insertions first: a result that also expires at this tick was there before.
            for pair in come:
                counts[pair] += 1
                if counts[pair] == 1:
                    made.append((tick, *pair))
            for pair in gone:
                counts[pair] -= 1
                if counts[pair] == 0:
                    del counts[pair]
        return [made]


class Again(Reevaluation):
    def answer(self, windows: Sequence[Int64]) -> Sequence[Int64]:
        left, right = joined(windows[0][0], windows[1][0])
        pairs = np.stack([windows[0][1][left], windows[1][1][right]])
        order = np.lexsort(pairs)
        pairs = pairs[:, order]
        new = np.ones(pairs.shape[1], np.bool_)
        new[1:] = (pairs[:, 1:] != pairs[:, :-1]).any(axis=0)
        return pairs[0, new], pairs[1, new]


VALUES = (1_000, 1_000)
CONTEST = Contest(
    "distinct",
    [
        Entry(ENGINE, engine),
        Entry(BY_HAND, DistinctByHand),
        *in_cpp("distinct"),
        Entry(PYTHON, Python),
        Entry(AGAIN, lambda setting: Again(setting.inputs * setting.window, 2, timed=True)),
    ],
    join_of_two.settings(VALUES),
    join_of_two.quick_settings((10, 10)),
    net=True,
)


def test_rate(benchmark: BenchmarkFixture, meeting: Meeting, timing: Timing) -> None:
    meeting.measure(benchmark, timing)
