"""What a benchmark is: competitors that do the same work at the same settings, and how their rates are taken.

A rate is arrivals a second from full windows on, every new result delivered: its tick and its ids, or its values, written out
where a consumer can read them. Each round runs the same batches again (state goes on from where it was); rates are medians of
rounds with the slowest and the fastest beside them.

All competitors of a setting take turns, a round each, and another one begins each turn: a machine that changes its speed does so
for all of them. pytest-benchmark times the rounds alone, each after a batch that is not timed. In its file a setting is one
benchmark: the rates of each competitor are its extra_info, and its own figures are of all rounds, whosesoever they are.
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
    """The yardstick in C++ that does what a competitor does."""
    return SAME_RETRACTING if competitor == RETRACTING else SAME_WORK


@dataclass(frozen=True, slots=True)
class Rows:
    """Results in columns, all of them new: views of buffers that are valid until the next chunk.

    `tick` (n): which arrival of the batch made each. Delta, the engine's form, has a sign too.
    """

    tick: npt.NDArray[Any]
    columns: Sequence[npt.NDArray[Any]] | npt.NDArray[Any]

    def __len__(self) -> int:
        return len(self.tick)


@dataclass(frozen=True, slots=True)
class Changes(Rows):
    """Results that come and go: `sign` (n) is +1 or -1, as in Delta, but nothing is copied."""

    sign: npt.NDArray[Any]


Chunk = Delta | Rows | list[tuple[Any, ...]]
"""Results: in columns, or as tuples whose first part is the tick."""


class Competitor:
    """Something that takes batches of arrivals and delivers what they make new."""

    whole_answers: ClassVar[bool] = False
    """Each batch delivers the whole answer at its end, not the results of each arrival."""

    def take(self, batch: Batch) -> Iterable[Chunk]:
        """One batch; chunks are read in turn."""
        raise NotImplementedError

    def fill(self, batch: Batch) -> None:
        """Take in arrivals whose results nobody wants."""
        for _ in self.take(batch):
            pass

    def plain(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        """A result (without its tick) as all competitors of a contest agree to write it."""
        return row


@dataclass(frozen=True)
class Entry:
    """A competitor's name, how it is made for a setting, and the largest window at which waiting for it makes sense."""

    name: str
    make: Callable[[Setting], Competitor]
    largest: int | None = None


@dataclass(frozen=True)
class Timing:
    """How many rounds a median is taken over, and about how long one is."""

    rounds: int
    seconds: float


class Runner:
    """A competitor at a setting: rounds of the same batches, from full windows on."""

    def __init__(self, entry: Entry, setting: Setting) -> None:
        # As the engine does where it runs queries: here there are operators alone.
        keep_freed_memory()
        self.competitor = entry.make(setting)
        self._name = entry.name
        self._setting = setting
        self._ahead: list[Batch] = []
        self._batches: list[Batch] = []
        self._results = 0
        self._seconds: list[float] = []

    def prepare(self, batches: Iterator[Batch], seconds: float) -> None:
        """Choose how many batches a round takes, and count their results; one more before them loads all kernels."""
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
        """After the others' rounds a first batch takes up to seven times as long as the next. One as long as a round may do so."""
        if len(self._batches) > 1:
            self._take(self._ahead)

    def round(self) -> None:
        """What is timed."""
        self._take(self._batches)

    def _take(self, batches: Sequence[Batch]) -> None:
        for batch in batches:
            for _ in self.competitor.take(batch):
                pass

    def lasted(self, seconds: float) -> None:
        """A round did."""
        self._seconds.append(seconds)

    def rates(self) -> dict[str, Any]:
        """As bench.report has them."""
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
        """Fill all windows, choose how many batches a round of each takes, and time rounds in turn."""
        arrivals = self.setting.arrivals(seed=1)
        runners = [Runner(entry, self.setting) for entry in self.entries]
        for batch in arrivals.filling():
            for runner in runners:
                runner.competitor.fill(batch)
        # All take the same batches: the fastest one most of them.
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
        timed: Any = benchmark  # its methods have no types
        timed.pedantic(Runner.round, setup=next_one, rounds=len(order))
        for runner, seconds in zip(order, timed.stats.stats.data, strict=True):
            runner.lasted(seconds)
        benchmark.extra_info["rates"] = [runner.rates() for runner in runners]


def in_turn(runners: Sequence[Runner], turns: int) -> list[Runner]:
    """Each turn begins with another one: who follows whom stays, who is first does not."""
    starts = [turn % len(runners) for turn in range(turns)]
    return [runner for start in starts for runner in (*runners[start:], *runners[:start])]


def _drawn(arrivals: Arrivals, drawn: list[Batch]) -> Iterator[Batch]:
    """The batches drawn so far, then others."""
    for number in count():
        if number == len(drawn):
            drawn.append(arrivals.batch())
        yield drawn[number]


def insertions(chunk: Chunk) -> int:
    """How many new results a chunk has."""
    return int((chunk.sign > 0).sum()) if isinstance(chunk, Delta | Changes) else len(chunk)


@dataclass(frozen=True)
class Contest:
    """A benchmark: its question is its module's docstring.

    `quick` are settings for a look at whether all runs. `net`: results that come and go within one tick do not count.
    `changelog`: the competitor that withdraws results too, from which the whole answer can be rebuilt.
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
