"""How many arrivals per second do COUNT and SUM by key of a binary join process, by the join's selectivity?

The results of the join are summed by the key that its inputs share, so each sum is a product of sums of the inputs. The
engine keeps those and makes no result of the join (`engine, aggregates below the join`), and so do the kernels by hand.
`engine` inserts and retracts every result, as it must where an aggregate needs the results themselves.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from typing import Any

import numpy as np
from pytest_benchmark.fixture import BenchmarkFixture

from bench.arrivals import Batch, Int64, Setting
from bench.contest import AGAIN, BELOW, BY_HAND, ENGINE, PYTHON, Competitor, Contest, Entry, Meeting, Timing
from bench.engine import Engine
from bench.kernels.by_hand.sums import SumsByHand
from bench.kernels.cpp.yardsticks import in_cpp
from bench.operators import join_of_two
from bench.reevaluation import Reevaluation, joined
from cqels_py.dataflow.term_values import DictionaryValues
from cqels_py.dictionary import Dictionary
from cqels_py.operators.operator import Operator
from cqels_py.operators.r2r.aggregate import Aggregate, GroupBy
from cqels_py.operators.r2r.group_by_key import GroupByKey
from cqels_py.operators.r2r.join import MultiwayJoin
from cqels_py.operators.r2r.joined_rows import JoinedAggregate, JoinedInput
from cqels_py.terms.layout import VALUE_BITS

VALUE = (1 << VALUE_BITS) - 1


class Summing(Engine):
    def __init__(self, setting: Setting, *operators: Operator, keep_ids: bool) -> None:
        super().__init__(join_of_two.inputs(setting, keep_ids=keep_ids), *operators)

    def plain(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        return row[0], row[1] & VALUE, row[2] & VALUE


def engine(setting: Setting) -> Engine:
    join = MultiwayJoin((("k", "left"), ("k", "right")), [True, True], ["k", "right"], retract=True)
    aggregates = [Aggregate("COUNT(*)", None), Aggregate("SUM", 1)]
    return Summing(setting, join, GroupBy([0], aggregates, DictionaryValues(Dictionary())), keep_ids=False)


def below(setting: Setting) -> Engine:
    aggregates = [JoinedAggregate("COUNT(*)"), JoinedAggregate("SUM", 1, 1)]
    inputs = [JoinedInput(2, (0,), expires_fifo=True)] * 2
    return Summing(setting, GroupByKey(inputs, [0], aggregates, DictionaryValues(Dictionary())), keep_ids=True)


class Python(Competitor):
    """A dict with both inputs' counters and the right input's sum for each key."""

    def __init__(self, setting: Setting) -> None:
        self._size = setting.inputs * setting.window
        self._queue: deque[tuple[int, int, int]] = deque()
        self._keys: defaultdict[int, list[int]] = defaultdict(lambda: [0, 0, 0])
        self._shown: dict[int, tuple[int, int]] = {}

    def take(self, batch: Batch) -> list[list[tuple[int, ...]]]:
        made: list[tuple[int, ...]] = []
        for tick, (port, key, term) in enumerate(batch.rows):
            changed = [key]
            if len(self._queue) == self._size:
                old_port, old_key, old_term = self._queue.popleft()
                self._change(old_port, old_key, old_term, -1)
                if old_key != key:
                    changed.append(old_key)
            self._queue.append((port, key, term))
            self._change(port, key, term, 1)
            for each in changed:
                left, right, total = self._keys[each]
                if not left and not right:
                    del self._keys[each]
                if not left or not right:
                    self._shown.pop(each, None)
                elif self._shown.get(each) != (left * right, left * total):
                    self._shown[each] = left * right, left * total
                    made.append((tick, each, left * right, left * total))
        return [made]

    def _change(self, port: int, key: int, term: int, sign: int) -> None:
        sums = self._keys[key]
        sums[port] += sign
        sums[2] += sign * port * (term & VALUE)


class Again(Reevaluation):
    def answer(self, windows: Sequence[Int64]) -> Sequence[Int64]:
        left, right = joined(windows[0][0], windows[1][0])
        keys, key = np.unique(windows[0][0][left], return_inverse=True)
        totals = np.zeros(len(keys), np.int64)
        np.add.at(totals, key, windows[1][1][right] & VALUE)
        return keys, np.bincount(key, minlength=len(keys)), totals


VALUES = (1_000, 1_000_000)
CONTEST = Contest(
    "sums",
    [
        Entry(ENGINE, engine),
        Entry(BELOW, below),
        Entry(BY_HAND, SumsByHand),
        *in_cpp("sums"),
        Entry(PYTHON, Python),
        Entry(AGAIN, lambda setting: Again(setting.inputs * setting.window, 2, timed=True)),
    ],
    join_of_two.settings(VALUES),
    join_of_two.quick_settings((10, 50)),
    net=True,
)


def test_rate(benchmark: BenchmarkFixture, meeting: Meeting, timing: Timing) -> None:
    meeting.measure(benchmark, timing)
