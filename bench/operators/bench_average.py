"""How many arrivals per second does AVG by group over one count window process, delivering each group's new average at
once?

10,000 groups, integers from 1 to 1,000,000, a window of 1M. The averages of the engine and of the C++ that does the
same work are exact decimals of SPARQL, as terms; the others are floats. An arrival changes two groups: its own, and
that of the expired mapping.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
from pytest_benchmark.fixture import BenchmarkFixture

from bench.arrivals import Batch, Int64, Setting
from bench.contest import AGAIN, BY_HAND, ENGINE, PYTHON, Competitor, Contest, Entry, Meeting, Timing
from bench.engine import Engine, WindowedInputs
from bench.kernels.by_hand.average import AverageByHand, rounded
from bench.kernels.cpp.yardsticks import in_cpp
from bench.reevaluation import Reevaluation
from cqels_py.dataflow.term_values import DictionaryValues
from cqels_py.dictionary import Dictionary
from cqels_py.operators.r2r.aggregate import Aggregate, GroupBy
from cqels_py.terms.layout import VALUE_BITS

VALUE = (1 << VALUE_BITS) - 1


class AveragingEngine(Engine):
    def __init__(self, setting: Setting) -> None:
        self._dictionary = Dictionary()
        group_by = GroupBy([0], [Aggregate("AVG", 1)], DictionaryValues(self._dictionary), expires_fifo=True)
        super().__init__(WindowedInputs([setting.window], [2], keep_ids=True), group_by)

    def plain(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        (text,) = self._dictionary.decode(np.array(row[1:]))
        assert text is not None
        return row[0], rounded(float(text.split('"')[1]))


class Python(Competitor):
    """Sum and count of each group in a dict."""

    def __init__(self, setting: Setting) -> None:
        self._window = setting.window
        self._queue: deque[tuple[int, int]] = deque()
        self._groups: dict[int, tuple[int, int]] = {}
        self._shown: dict[int, float] = {}

    def take(self, batch: Batch) -> list[list[tuple[Any, ...]]]:
        made: list[tuple[Any, ...]] = []
        for tick, (_, group, term) in enumerate(batch.rows):
            changed = [group]
            if len(self._queue) == self._window:
                old_group, old_value = self._queue.popleft()
                total, count = self._groups[old_group]
                self._groups[old_group] = total - old_value, count - 1
                if old_group != group:
                    changed.append(old_group)
            value = term & VALUE
            self._queue.append((group, value))
            total, count = self._groups.get(group, (0, 0))
            self._groups[group] = total + value, count + 1
            for each in changed:
                total, count = self._groups[each]
                if count == 0:
                    del self._groups[each], self._shown[each]
                elif self._shown.get(each) != total / count:
                    self._shown[each] = total / count
                    made.append((tick, each, total / count))
        return [made]

    def plain(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        return row[0], rounded(row[1])


class Again(Reevaluation):
    def answer(self, windows: Sequence[Int64]) -> Sequence[Any]:
        groups, group = np.unique(windows[0][0], return_inverse=True)
        return groups, np.bincount(group, windows[0][1] & VALUE) / np.bincount(group)

    def plain(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        return row[0], rounded(row[1])


def setting(name: str, window: int, groups: int, batch: int = 10_000) -> Setting:
    return Setting(f"window {name}", window, groups, (1_000_000,), batch, values_are_numbers=True)


CONTEST = Contest(
    "average",
    [
        Entry(ENGINE, AveragingEngine),
        Entry(BY_HAND, AverageByHand),
        *in_cpp("average"),
        Entry(PYTHON, Python),
        Entry(AGAIN, lambda setting: Again(setting.window, 1)),
    ],
    [setting("1M", 1_000_000, 10_000)],
    [setting("30", 30, 20, 50), setting("300", 300, 20, 50)],
    net=True,
)


def test_rate(benchmark: BenchmarkFixture, meeting: Meeting, timing: Timing) -> None:
    meeting.measure(benchmark, timing)
