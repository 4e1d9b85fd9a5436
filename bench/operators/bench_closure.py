"""How many edges per second does a transitive closure over a count window process, by the window's size and the number
of reachable pairs?

Edges join random nodes. With half as many edges as nodes, an edge connects few pairs whatever the window's size, so the
rate should not fall with it. With more edges than nodes there are long cycles, and an edge may connect or disconnect
thousands of pairs. A result is a pair of nodes that becomes reachable.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence

import numpy as np
from pytest_benchmark.fixture import BenchmarkFixture

from bench.arrivals import Batch, Int64, Setting
from bench.contest import AGAIN, ENGINE, PYTHON, Competitor, Contest, Entry, Meeting, Timing
from bench.engine import Engine, WindowedInputs
from bench.reevaluation import Reevaluation, joined
from cqels_py.operators.r2r.transitive_closure import TransitiveClosure

Neighbours = Mapping[int, Counter[int]]


def engine(setting: Setting) -> Engine:
    return Engine(WindowedInputs([setting.window], [2], keep_ids=True), TransitiveClosure((0, 1)))


def search(neighbours: Neighbours, start: int) -> set[int]:
    """The nodes that one step or more lead to."""
    found: set[int] = set()
    waiting = [start]
    while waiting:
        new = neighbours.get(waiting.pop(), Counter()).keys() - found
        found |= new
        waiting += new
    return found


class Python(Competitor):
    """Sets of the nodes that each node reaches. A backwards search finds the nodes that use an edge, and a search from
    each finds the nodes it still reaches.
    """

    def __init__(self, setting: Setting) -> None:
        self._window = setting.window
        self._edges: deque[tuple[int, int]] = deque()
        self._after: defaultdict[int, Counter[int]] = defaultdict(Counter)
        self._before: defaultdict[int, Counter[int]] = defaultdict(Counter)
        self._reached: defaultdict[int, set[int]] = defaultdict(set)

    def take(self, batch: Batch) -> list[list[tuple[int, ...]]]:
        made: list[tuple[int, ...]] = []
        for tick, (_, start, end) in enumerate(batch.rows):
            gone = self._remove(*self._edges.popleft()) if len(self._edges) == self._window else set()
            self._edges.append((start, end))
            made += [(tick, *pair) for pair in self._insert(start, end) - gone]
        return [made]

    def _insert(self, start: int, end: int) -> set[tuple[int, int]]:
        self._after[start][end] += 1
        self._before[end][start] += 1
        if end in self._reached[start]:
            return set()
        new: set[tuple[int, int]] = set()
        targets = {end, *self._reached[end]}
        for source in {start, *search(self._before, start)}:
            new |= {(source, node) for node in targets - self._reached[source]}
            self._reached[source] |= targets
        return new

    def _remove(self, start: int, end: int) -> set[tuple[int, int]]:
        for bag, node in ((self._after[start], end), (self._before[end], start)):
            bag[node] -= 1
            if bag[node] == 0:
                del bag[node]
        if end in self._after[start]:
            return set()
        gone: set[tuple[int, int]] = set()
        for source in {start, *search(self._before, start)}:
            left = search(self._after, source)
            gone |= {(source, node) for node in self._reached[source] - left}
            self._reached[source] = left
        return gone


class Again(Reevaluation):
    """Longer and longer paths, until there is no new pair."""

    def answer(self, windows: Sequence[Int64]) -> Sequence[Int64]:
        nodes, ends = np.unique(windows[0], return_inverse=True)
        start, end = np.unique(ends.reshape(2, -1), axis=1)
        pairs = newest = start * len(nodes) + end
        while len(newest):
            left, edge = joined(newest % len(nodes), start)
            longer = np.unique(newest[left] // len(nodes) * len(nodes) + end[edge])
            newest = np.setdiff1d(longer, pairs, assume_unique=True)
            pairs = np.union1d(pairs, newest)
        return nodes[pairs // len(nodes)], nodes[pairs % len(nodes)]


def setting(name: str, window: int, nodes: int, batch: int = 1_000) -> Setting:
    return Setting(f"window {name}", window, nodes, (nodes,), batch)


CONTEST = Contest(
    "closure",
    [
        Entry(ENGINE, engine),
        # A round has to turn the window over, or its edges are there already.
        Entry(PYTHON, Python, largest=10_000),
        Entry(AGAIN, lambda setting: Again(setting.window, 1)),
    ],
    [
        setting("1k", 1_000, 2_000),
        setting("10k", 10_000, 20_000),
        setting("100k", 100_000, 200_000),
        setting("200, cyclic", 200, 160, 100),
    ],
    [setting("20", 20, 40, 50), setting("40, cyclic", 40, 25, 50)],
    changelog=ENGINE,
    net=True,
)


def test_rate(benchmark: BenchmarkFixture, meeting: Meeting, timing: Timing) -> None:
    meeting.measure(benchmark, timing)
