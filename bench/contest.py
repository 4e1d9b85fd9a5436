"""A benchmark: competitors that do the same work at the same settings, and the measurement of their rates.

A rate is arrivals per second from full windows on, with every new result delivered: its tick and its ids (or its
values) are written where a consumer can read them. Each round runs the same batches again (the state continues). Rates
are medians of rounds, shown with the slowest and the fastest round.

All competitors of a setting take turns, one round each, and each turn begins with another competitor: changes of the
machine's speed affect all of them. pytest-benchmark times the rounds only; before each, one batch runs untimed. In its
file a setting is one benchmark: the competitors' rates are in extra_info, and the figures of the benchmark itself are
over the rounds of all competitors together.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, ClassVar

import numpy.typing as npt
from pytest_benchmark.fixture import BenchmarkFixture

from bench.arrivals import Arrivals, Batch, Setting
from cqels_py.batches.delta import Delta
from cqels_py.state.arrays import keep_freed_memory

_MOST_BATCHES = 1_000

ENGINE, RETRACTING, BY_HAND = "engine", "engine, retracting", "numba by hand"
IN_CPP, SAME_WORK = "C++ by hand", "C++ by hand, same work"
SAME_RETRACTING = f"{SAME_WORK}, retracting"
BELOW = "engine, aggregates below the join"
PYTHON, AGAIN = "python dicts", "re-evaluation"


def same_work_as(competitor: str) -> str:
    """The C++ yardstick that does the same work as a competitor."""
    return SAME_RETRACTING if competitor == RETRACTING else SAME_WORK


@dataclass(frozen=True, slots=True)
class Rows:
    """Results in columns, all of them insertions: views of buffers that are valid until the next chunk.

    `tick` (n): the arrival of the batch that made each result. Delta, the engine's form, also has a sign.
    """

    tick: npt.NDArray[Any]
    columns: Sequence[npt.NDArray[Any]] | npt.NDArray[Any]

    def __len__(self) -> int:
        return len(self.tick)


@dataclass(frozen=True, slots=True)
class Changes(Rows):
    """Insertions and retractions: `sign` (n) is +1 or -1, as in Delta, but nothing is copied."""

    sign: npt.NDArray[Any]


Chunk = Delta | Rows | list[tuple[Any, ...]]
"""Results: in columns, or as tuples that begin with the tick."""


class Competitor:
    """Takes batches of arrivals and delivers their new results."""

    whole_answers: ClassVar[bool] = False
    """Each batch delivers the whole answer at its end instead of the results of each arrival."""

    def take(self, batch: Batch) -> Iterable[Chunk]:
        """Process one batch; its chunks are read one after another."""
        raise NotImplementedError

    def fill(self, batch: Batch) -> None:
        """Process arrivals whose results are discarded."""
        for _ in self.take(batch):
            pass

    def plain(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        """A result (without its tick) in the form that all competitors of a contest use."""
        return row


@dataclass(frozen=True)
class Entry:
    """A competitor's name, its constructor for a setting, and the largest window at which it is measured."""

    name: str
    make: Callable[[Setting], Competitor]
    largest: int | None = None


@dataclass(frozen=True)
class Timing:
    """The number of rounds for the median, and the approximate length of a round."""

    rounds: int
    seconds: float


class Runner:
    """A competitor at a setting: rounds of the same batches, from full windows on."""

    def __init__(self, entry: Entry, setting: Setting) -> None:
        # The engine does this when it runs queries; here only operators run.
        keep_freed_memory()
        self.competitor = entry.make(setting)
        self._name = entry.name
        self._setting = setting
        self._ahead: list[Batch] = []
        self._batches: list[Batch] = []
        self._results = 0
        self._seconds: list[float] = []

    def prepare(self, batches: Iterator[Batch], seconds: float) -> None:
        """Choose the number of batches per round and count their results. One batch before loads all kernels."""
        self._ahead = [next(batches)]
        self._take(self._ahead)
        spent = 0.0
        while spent < seconds and len(self._batches) < _MOST_BATCHES:
            batch = next(batches)
            started = time.perf_counter()
            found = sum(insertions(chunk) for chunk in self.competitor.take(batch))
            spent += time.perf_counter() - started
            self._batches.append(batch)
            self._results += found

    def warm_up(self) -> None:
        """Run a batch untimed: the first batch after the others' rounds takes up to seven times as long. At most as
        long as a round.
        """
        if len(self._batches) > 1:
            self._take(self._ahead)

    def round(self) -> None:
        """The part that is timed."""
        self._take(self._batches)

    def _take(self, batches: Sequence[Batch]) -> None:
        for batch in batches:
            for _ in self.competitor.take(batch):
                pass

    def lasted(self, seconds: float) -> None:
        """Record the duration of a round."""
        self._seconds.append(seconds)

    def rates(self) -> dict[str, Any]:
        """The rates in the form of bench.report."""
        made = sum(map(len, self._batches))
        return {
            "setting": self._setting.name,
            "competitor": self._name,
            "results_per_arrival": self._results / made,
            "rates": [made / seconds for seconds in self._seconds],
        }


@dataclass(frozen=True)
class Meeting:
    """All competitors at one setting."""

    setting: Setting
    entries: Sequence[Entry]

    def __str__(self) -> str:
        return self.setting.name

    def measure(self, benchmark: BenchmarkFixture, timing: Timing) -> None:
        """Fill all windows, choose the number of batches per round, and time rounds in turn."""
        arrivals = self.setting.arrivals(seed=1)
        runners = [Runner(entry, self.setting) for entry in self.entries]
        for batch in arrivals.filling():
            for runner in runners:
                runner.competitor.fill(batch)
        # All take the same batches; the fastest competitor takes most of them.
        drawn: list[Batch] = []
        for runner in runners:
            runner.prepare(_drawn(arrivals, drawn), timing.seconds)
        order = in_turn(runners, timing.rounds)
        waiting = iter(order)

        def next_one() -> tuple[tuple[Runner], dict[str, Any]]:
            runner = next(waiting)
            runner.warm_up()
            return (runner,), {}

        benchmark.group = self.setting.name
        timed: Any = benchmark  # Its methods have no types.
        timed.pedantic(Runner.round, setup=next_one, rounds=len(order))
        for runner, seconds in zip(order, timed.stats.stats.data, strict=True):
            runner.lasted(seconds)
        benchmark.extra_info["rates"] = [runner.rates() for runner in runners]


def in_turn(runners: Sequence[Runner], turns: int) -> list[Runner]:
    """Each turn begins with another competitor; the cyclic order stays the same."""
    starts = [turn % len(runners) for turn in range(turns)]
    return [runner for start in starts for runner in (*runners[start:], *runners[:start])]


def _drawn(arrivals: Arrivals, drawn: list[Batch]) -> Iterator[Batch]:
    """The batches generated so far, then new ones."""
    for number in count():
        if number == len(drawn):
            drawn.append(arrivals.batch())
        yield drawn[number]


def insertions(chunk: Chunk) -> int:
    """The number of new results in a chunk."""
    return int((chunk.sign > 0).sum()) if isinstance(chunk, Delta | Changes) else len(chunk)


@dataclass(frozen=True)
class Contest:
    """A benchmark; its module's docstring is its question.

    `quick`: settings of a short test run. `net`: results that are inserted and retracted within one tick do not count.
    `changelog`: the competitor that also delivers retractions, from which the whole answer can be rebuilt.
    """

    name: str
    entries: Sequence[Entry]
    settings: Sequence[Setting]
    quick: Sequence[Setting]
    net: bool = field(default=False, kw_only=True)
    changelog: str = field(default=ENGINE, kw_only=True)

    def meetings(self, *, quick: bool = False) -> Iterator[Meeting]:
        for setting in self.quick if quick else self.settings:
            waited_for = [each for each in self.entries if each.largest is None or setting.window <= each.largest]
            yield Meeting(setting, waited_for)
