"""How many arrivals per second does MIN by group after a binary join process, by the join's selectivity?

1,000 groups (the left values), numbers up to a billion (the right ones). `engine` inserts and retracts every result of
the join. `engine, aggregates below the join`, which is the plan that a query gets, makes none: it keeps the right
values of each key, and a group takes the least of them. The kernel by hand knows the expiry of each result and keeps a
monotonic queue for each group, so it never processes an expiry.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from heapq import heappop, heappush

import numpy as np
from pytest_benchmark.fixture import BenchmarkFixture

from bench.arrivals import Batch, Int64, Setting
from bench.contest import AGAIN, BELOW, BY_HAND, ENGINE, PYTHON, Contest, Entry, Meeting, Timing
from bench.engine import Engine
from bench.kernels.by_hand.minimum import MinimumByHand
from bench.kernels.cpp.yardsticks import in_cpp
from bench.operators import join_of_two
from bench.reevaluation import Reevaluation, joined
from cqels_py.dataflow.term_values import DictionaryValues
from cqels_py.dictionary import Dictionary
from cqels_py.operators.r2r.aggregate import Aggregate, GroupBy
from cqels_py.operators.r2r.factorised import FactorisedGroupBy
from cqels_py.operators.r2r.joined_rows import JoinedAggregate, JoinedInput


def engine(setting: Setting) -> Engine:
    return join_of_two.engine(setting, GroupBy([0], [Aggregate("MIN", 1)], DictionaryValues(Dictionary())))


def below(setting: Setting) -> Engine:
    inputs, least = [JoinedInput(2, (0,), expires_fifo=True)] * 2, JoinedAggregate("MIN", 1, 1)
    operator = FactorisedGroupBy(inputs, 0, [1], [1], [least], DictionaryValues(Dictionary()))
    return Engine(join_of_two.inputs(setting, keep_ids=True), operator)


class Python(join_of_two.PythonJoin):
    """A bag of values and a heap for each group. Expired values are dropped when they reach the top of the heap."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._bags: defaultdict[int, Counter[int]] = defaultdict(Counter)
        self._heaps: defaultdict[int, list[int]] = defaultdict(list)
        self._shown: dict[int, int] = {}

    def take(self, batch: Batch) -> list[list[tuple[int, ...]]]:
        made: list[tuple[int, ...]] = []
        for tick, (gone, come) in enumerate(self.changes(batch)):
            for group, value in gone:
                bag = self._bags[group]
                bag[value] -= 1
                if bag[value] == 0:
                    del bag[value]
            for group, value in come:
                bag = self._bags[group]
                if value not in bag:
                    heappush(self._heaps[group], value)
                bag[value] += 1
            for group in {group for group, _ in gone} | {group for group, _ in come}:
                heap, bag = self._heaps[group], self._bags[group]
                while heap and heap[0] not in bag:
                    heappop(heap)
                if not heap:
                    self._shown.pop(group, None)
                elif self._shown.get(group) != heap[0]:
                    self._shown[group] = heap[0]
                    made.append((tick, group, heap[0]))
        return [made]


class Again(Reevaluation):
    def answer(self, windows: Sequence[Int64]) -> Sequence[Int64]:
        left, right = joined(windows[0][0], windows[1][0])
        groups, values = windows[0][1][left], windows[1][1][right]
        order = np.lexsort((values, groups))
        groups, first = np.unique(groups[order], return_index=True)
        return groups, values[order][first]


VALUES = (1_000, 1_000_000_000)
CONTEST = Contest(
    "minimum",
    [
        Entry(ENGINE, engine),
        Entry(BELOW, below),
        Entry(BY_HAND, MinimumByHand),
        *in_cpp("minimum"),
        Entry(PYTHON, Python),
        Entry(AGAIN, lambda setting: Again(setting.inputs * setting.window, 2, timed=True)),
    ],
    join_of_two.settings(VALUES),
    join_of_two.quick_settings((10, 50)),
    net=True,
)


def test_rate(benchmark: BenchmarkFixture, meeting: Meeting, timing: Timing) -> None:
    meeting.measure(benchmark, timing)
