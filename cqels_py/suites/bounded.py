"""How many events per second does a join without windows take by counters, beside the join of all rows and a kernel by hand?

Events are resets, thresholds and readings, one triple each. The query counts readings above a threshold level that was set after a
reset.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cqels_py.batches.results import ResultBatch
from cqels_py.dataflow.counted_join import CountedJoinScan
from cqels_py.engine.compile import compile_query
from cqels_py.engine.engine import Engine
from cqels_py.errors import UsageError
from cqels_py.kernels.joins import counted as kernel
from cqels_py.kernels.joins import counted_by_hand as by_hand

Int64 = npt.NDArray[np.int64]
EX = "http://ex.org/"
STREAM = f"{EX}s"
_XSD = "http://www.w3.org/2001/XMLSchema#"
_START = 1_704_067_200_000_000
_BATCH = 1 << 16
_ALL_EVENTS = 1_000
"""The join of all rows gets the first events only: its cost grows with the square of their number."""
QUERY = f"""PREFIX : <{EX}> PREFIX xsd: <{_XSD}>
SELECT ?level (COUNT(*) AS ?n) WHERE {{
  EVENT ON :s [ALL] AT ?i {{ ?a :value ?reading }}
  EVENT ON :s [ALL] AT ?j {{ ?b :level ?level FILTER(0 < ?level && ?level < 5 && DATATYPE(?level) = xsd:integer) }}
  EVENT ON :s [ALL] AT ?k {{ ?c :reset ?number }}
  FILTER(?i > ?j && ?j > ?k && ?reading > ?level)
}} GROUP BY ?level"""


@dataclass(frozen=True, slots=True)
class Point:
    """After so many events: events per second since the point before, and the bytes of the query's state."""

    events: int
    per_second: float
    nbytes: int


@dataclass(frozen=True, slots=True)
class Figures:
    """Events per second; `counters`: at the end. `all_rows`: the join without counters."""

    events: int
    from_texts: float
    kernel: float
    by_hand: float
    counters: int
    points: tuple[Point, ...]
    all_rows: tuple[Point, ...]


class Events:
    """Events drawn at random: resets, thresholds of levels from 0 to 7, readings."""

    def __init__(self, count: int, seed: int) -> None:
        random = np.random.default_rng(seed)
        self.kind = random.integers(0, 3, count)
        self.value = random.integers(0, 8, count)
        self.time = _START + np.arange(count) * 1_000

    def __len__(self) -> int:
        return len(self.kind)

    def table(self, first: int, last: int) -> pa.Table:
        """Some of them as triples."""
        kind = self.kind[first:last]
        predicates = np.array([f"<{EX}reset>", f"<{EX}level>", f"<{EX}value>"], object)
        values = np.array([f'"{value}"^^<{_XSD}integer>' for value in range(8)], object)
        return pa.table(
            {
                "time": self.time[first:last],
                "subject": np.array([f"<{EX}e{each}>" for each in range(3)], object)[kind],
                "predicate": predicates[kind],
                "object": values[self.value[first:last]],
            }
        )


class _Run:
    """The query over events, with its last results by level."""

    def __init__(self, *, counted: bool) -> None:
        self.engine = Engine()
        self.query = self.engine.register(compile_query(QUERY, without=() if counted else ("count_events",)))
        self.query.subscribe_batches(self._take)
        self.totals: dict[str, str] = {}

    def _take(self, batch: ResultBatch) -> None:
        level, number = (self.engine.dictionary.decode(np.ascontiguousarray(column[-64:])) for column in batch.columns)
        self.totals.update((str(one), str(other)) for one, other in zip(level, number, strict=True))

    def points(self, events: Events, batch: int) -> list[Point]:
        """Take in all events; a point after each doubling."""
        found, following, since, began = [], batch, 0, time.perf_counter()
        for first in range(0, len(events), batch):
            self.engine.push_batch(STREAM, events.table(first, first + batch))
            done = min(first + batch, len(events))
            if done >= following or done == len(events):
                self.engine.flush()
                now = time.perf_counter()
                found.append(Point(done, (done - since) / (now - began), self.query.nbytes))
                following, since, began = 2 * done, done, time.perf_counter()
        self.engine.finish()
        return found

    @property
    def counted(self) -> CountedJoinScan:
        """The counted join of the query."""
        (scan,) = [each for each in self.query._dataflow._scans if isinstance(each, CountedJoinScan)]  # type: ignore[union-attr]
        return scan


def measure(count: int, seed: int, tell: Callable[[str], None]) -> Figures:
    """The figures of so many events. UsageError if answers differ."""
    events = Events(count, seed)
    tell("counters, from texts")
    _Run(counted=True).points(Events(1_000, seed), 1_000)
    run = _Run(counted=True)
    points = run.points(events, min(count, _BATCH))
    tell("the kernel alone, and by hand")
    hand, totals = _time_by_hand(events)
    _check(run.totals, totals)
    rate, counters = _time_kernel(events)
    few = Events(min(count, _ALL_EVENTS), seed)
    tell("the join of all rows")
    whole = _Run(counted=False)
    rows = whole.points(few, max(1, len(few) // 16))
    _check(whole.totals, _time_by_hand(few)[1])
    texts = sum(each.events for each in points[-1:]) / sum(_seconds(points))
    return Figures(count, texts, rate, hand, counters, tuple(points), tuple(rows))


def _seconds(points: Sequence[Point]) -> list[float]:
    before = [0, *(each.events for each in points)]
    return [(each.events - first) / each.per_second for each, first in zip(points, before, strict=False)]


def _check(found: dict[str, str], totals: Int64) -> None:
    expected = {
        f'"{n + 1}"^^<{_XSD}integer>': f'"{total}"^^<{_XSD}integer>' for n, total in enumerate(totals.tolist()) if total
    }
    if found != expected:
        raise UsageError(f"the kernel by hand finds {expected}, the query {found}")


def _time_by_hand(events: Events) -> tuple[float, Int64]:
    seconds, totals = 0.0, np.zeros(by_hand.LEVELS, np.int64)
    for _ in range(2):  # The first run compiles.
        totals = np.zeros(by_hand.LEVELS, np.int64)
        began = time.perf_counter()
        by_hand.readings_above_thresholds(events.kind, events.value, np.zeros(1 + by_hand.LEVELS, np.int64), totals)
        seconds = time.perf_counter() - began
    return len(events) / seconds, totals


def _time_kernel(events: Events) -> tuple[float, int]:
    """Rows of sources in, rows of results out."""
    scan = _Run(counted=True).counted
    state = scan._state
    rows = np.zeros((len(events), kernel.ROW_VALUES + 2), np.int64)
    # In the plan later sources come first.
    rows[:, kernel.SOURCE], rows[:, kernel.TIME] = 2 - events.kind, events.time
    for number, source in enumerate(scan.node.sources):
        mine = rows[:, kernel.SOURCE] == number
        for column in range(len(source.columns)):
            # Terms and places are both in the order of the values.
            rows[mine, kernel.ROW_VALUES + column] = 2 * events.value[mine]
    rows = rows[(events.kind != by_hand.THRESHOLD) | ((events.value > 0) & (events.value < 5))]
    began = time.perf_counter()
    for first in range(0, len(rows), _BATCH):
        state.take(rows[first : first + _BATCH])
    return len(events) / (time.perf_counter() - began), state.counters
