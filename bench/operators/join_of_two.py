"""The common part of the benchmarks of MIN, sums and DISTINCT: a binary join over time windows, and its settings by
selectivity.

Selectivity: results of the join per arrival. Windows are time windows with an arrival at each tick, so that a mapping's
expiry is known when it arrives. Each window holds about 10,000 mappings of its input; the number of keys varies.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence

from bench.arrivals import Batch, Setting
from bench.contest import Competitor
from bench.engine import Engine, WindowedInputs
from cqels_py.operators.operator import Operator
from cqels_py.operators.r2r.join import MultiwayJoin

WINDOW = 10_000
SELECTIVITIES = (0.01, 1.0, 10.0, 100.0)


def settings(values: tuple[int, int]) -> list[Setting]:
    return [
        Setting(f"selectivity {s:g}", WINDOW, round(WINDOW / s), values, values_are_numbers=True) for s in SELECTIVITIES
    ]


def quick_settings(values: tuple[int, int]) -> list[Setting]:
    return [
        Setting(f"selectivity {s:g}", 60, round(60 / s), values, batch=50, values_are_numbers=True) for s in (0.5, 6.0)
    ]


def engine(setting: Setting, following: Operator) -> Engine:
    """The join, which retracts results when their mappings expire, and the operator that reads left and right values."""
    join = MultiwayJoin((("k", "left"), ("k", "right")), [True, True], ["left", "right"], retract=True)
    return Engine(inputs(setting), join, following)


def inputs(setting: Setting, *, keep_ids: bool = False) -> WindowedInputs:
    """The windows of both inputs."""
    sizes: Sequence[int] = [setting.inputs * setting.window] * 2
    return WindowedInputs(sizes, [2, 2], timed=True, keep_ids=keep_ids)


class PythonJoin(Competitor):
    """The join in dicts; an expired mapping is joined again to find the results to retract."""

    def __init__(self, setting: Setting) -> None:
        self._size = setting.inputs * setting.window
        self._queue: deque[tuple[int, int, int]] = deque()
        self._rings: list[defaultdict[int, deque[int]]] = [defaultdict(deque), defaultdict(deque)]

    def changes(self, batch: Batch) -> Iterator[tuple[list[tuple[int, int]], list[tuple[int, int]]]]:
        """For each arrival, the retracted and the inserted (left, right) pairs."""
        for port, key, value in batch.rows:
            gone: list[tuple[int, int]] = []
            if len(self._queue) == self._size:
                old_port, old_key, old_value = self._queue.popleft()
                self._rings[old_port][old_key].popleft()
                gone = self._pairs(old_port, old_key, old_value)
            self._queue.append((port, key, value))
            come = self._pairs(port, key, value)
            self._rings[port][key].append(value)
            yield gone, come

    def _pairs(self, port: int, key: int, value: int) -> list[tuple[int, int]]:
        others = self._rings[1 - port].get(key, ())
        return [(value, other) for other in others] if port == 0 else [(other, value) for other in others]
