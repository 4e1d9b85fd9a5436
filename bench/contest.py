"""What a benchmark is: competitors that do the same work at the same settings, and how their rates are taken.

A rate is arrivals a second from full windows on, every new result delivered: its tick and its ids, or its values, written out
where a consumer can read them. Each round runs the same batches again (state goes on from where it was); rates are medians of
rounds with the slowest and the fastest beside them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy.typing as npt
from pytest_benchmark.fixture import BenchmarkFixture

from bench.arrivals import Arrivals, Batch, Setting
from cqels_py.batches.delta import Delta

_MOST_BATCHES = 1_000

ENGINE, RETRACTING, BY_HAND = "engine", "engine, retracting", "numba by hand"
IN_CPP, SAME_WORK = "C++ by hand", "C++ by hand, same work"
BELOW = "engine, aggregates below the join"
PYTHON, AGAIN = "python dicts", "re-evaluation"


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


@dataclass(frozen=True)
class Meeting:
    """One competitor at one setting."""

    setting: Setting
    entry: Entry

    def __str__(self) -> str:
        return f"{self.setting.name}-{self.entry.name}"

    def measure(self, benchmark: BenchmarkFixture, timing: Timing) -> None:
        """Fill the windows, choose how many batches a round takes, and time the rounds."""
        competitor = self.entry.make(self.setting)
        arrivals = self.setting.arrivals(seed=1)
        for batch in arrivals.filling():
            competitor.fill(batch)
        prepared, results = _prepare(competitor, arrivals, timing.seconds)

        def round_of_batches() -> None:
            for batch in prepared:
                for _ in competitor.take(batch):
                    pass

        timed: Any = benchmark  # its methods have no types
        timed.pedantic(round_of_batches, rounds=timing.rounds)
        made = sum(map(len, prepared))
        stats = timed.stats.stats
        benchmark.group = self.setting.name
        benchmark.extra_info |= {
            "setting": self.setting.name,
            "competitor": self.entry.name,
            "results_per_arrival": results / made,
            "rates": [made / seconds for seconds in stats.data],
        }


def _prepare(competitor: Competitor, arrivals: Arrivals, seconds: float) -> tuple[list[Batch], int]:
    """As many batches as fill a round, and how many new results they have; one more before them loads all kernels."""
    for _ in competitor.take(arrivals.batch()):
        pass
    prepared: list[Batch] = []
    results, spent = 0, 0.0
    while spent < seconds and len(prepared) < _MOST_BATCHES:
        batch = arrivals.batch()
        started = time.perf_counter()
        found = sum(insertions(chunk) for chunk in competitor.take(batch))
        spent += time.perf_counter() - started
        prepared.append(batch)
        results += found
    return prepared, results


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
            for entry in self.entries:
                if entry.largest is None or setting.window <= entry.largest:
                    yield Meeting(setting, entry)
