"""How many events per second does a join without windows take by counters, beside others that keep all events?

The query counts readings above a threshold level that was set after a reset. Beside the counters are the join of all rows, DuckDB
asked anew over all events so far, and a kernel by hand.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from statistics import median

import numpy as np
import numpy.typing as npt

from cqels_py.batches.elements import ElementBatch
from cqels_py.batches.results import ResultBatch
from cqels_py.dataflow.counted_join import CountedJoinScan
from cqels_py.engine.compile import compile_query
from cqels_py.engine.engine import Engine
from cqels_py.engine.stream_opening import opening_of
from cqels_py.errors import UsageError
from cqels_py.kernels.joins import counted as kernel
from cqels_py.kernels.joins import counted_by_hand as by_hand
from cqels_py.sources.opened import table_in_order
from cqels_py.suites import bounded_duckdb
from cqels_py.suites.bounded_events import EX, Curve, Events, Point, parts, term

Int64 = npt.NDArray[np.int64]
STREAM = f"{EX}s"
_BATCH = 1 << 16
_ROUNDS = 3
"""Of runs that are over at once, the middle one counts."""
FEW = 64
"""Events of a batch for those whose cost grows."""
_MOST_FOR_ROWS = 1_000
"""The joins of rows get the first events only: their cost grows with the cube of their number."""
_MOST_FOR_SUMS = 16_000
"""So do running sums over all events so far."""
QUERY = f"""PREFIX : <{EX}> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
SELECT ?level (COUNT(*) AS ?n) WHERE {{
  EVENT ON :s [ALL] AT ?i {{ ?a :value ?reading }}
  EVENT ON :s [ALL] AT ?j {{ ?b :level ?level FILTER(0 < ?level && ?level < 5 && DATATYPE(?level) = xsd:integer) }}
  EVENT ON :s [ALL] AT ?k {{ ?c :reset ?number }}
  FILTER(?i > ?j && ?j > ?k && ?reading > ?level)
}} GROUP BY ?level"""
COUNTERS, ALL_ROWS, JOIN, SUMS = "counters", "all rows", "DuckDB, the join anew", "DuckDB, running sums anew"


@dataclass(frozen=True, slots=True)
class Figures:
    """Events per second; `counters`: their number at the end. `curves`: contenders over time, the counters over all events first."""

    events: int
    from_texts: float
    from_ids: float
    kernel: float
    by_hand: float
    counters: int
    curves: tuple[Curve, ...]


class _Run:
    """The query, with its last results by level."""

    def __init__(self, *, counted: bool) -> None:
        self.engine = Engine()
        self.query = self.engine.register(compile_query(QUERY, without=() if counted else ("count_events",)))
        self.query.subscribe_batches(self._take, ids=True)
        self.totals: dict[str, str] = {}

    def _take(self, batch: ResultBatch) -> None:
        level, number = (self.engine.dictionary.decode(np.ascontiguousarray(column[-64:])) for column in batch.columns)
        self.totals.update((str(one), str(other)) for one, other in zip(level, number, strict=True))

    def points(self, events: Events, batch: int) -> tuple[Point, ...]:
        """Take in all events; a point after each doubling."""
        found, since, began = [], 0, time.perf_counter()
        for first, last, is_point in parts(len(events), batch):
            self.engine.push_batch(STREAM, events.table(first, last))
            if is_point:
                self.engine.flush()
                now = time.perf_counter()
                found.append(Point(last, (last - since) / (now - began), self.query.nbytes))
                since, began = last, time.perf_counter()
        self.engine.finish()
        return tuple(found)

    def take_ids(self, events: Events, batch: int) -> float:
        """Take in all events, whose terms are known: events per second."""
        batches = [each for first, last, _ in parts(len(events), batch) for each in self._in_ids(events, first, last)]
        began = time.perf_counter()
        for each in batches:
            self.engine._process_part(each)
        self.engine.finish()
        return len(events) / (time.perf_counter() - began)

    def _in_ids(self, events: Events, first: int, last: int) -> list[ElementBatch]:
        opening = opening_of(self.engine, STREAM, None, self.engine._reports.malformed)
        return list(table_in_order(events.table(first, last), opening, None, 0, sort=False))

    @property
    def counted(self) -> CountedJoinScan:
        """The counted join of the query."""
        (scan,) = [each for each in self.query._dataflow._scans if isinstance(each, CountedJoinScan)]  # type: ignore[union-attr]
        return scan


def measure(count: int, seed: int, tell: Callable[[str], None]) -> Figures:
    """The figures of so many events. UsageError if answers differ."""
    events = Events(count, seed)
    hand, totals = _time_by_hand(events)
    tell("counters, from texts")
    _Run(counted=True).points(Events(1_000, seed), 1_000)  # Kernels that are not compiled yet are compiled now.
    run = _Run(counted=True)
    counters = Curve(COUNTERS, min(count, _BATCH), run.points(events, min(count, _BATCH)))
    _check("by counters", run.totals, totals)
    tell("counters, from ids")
    from_ids = []
    for _ in range(_ROUNDS):
        run = _Run(counted=True)
        from_ids.append(run.take_ids(events, _BATCH))
        _check("by counters, from ids", run.totals, totals)
    tell("the kernel alone")
    rates, numbers = zip(*(_time_kernel(events) for _ in range(_ROUNDS)), strict=True)
    curves = (counters, *_small_batches(count, seed, tell))
    return Figures(count, counters.per_second, median(from_ids), median(rates), hand, numbers[0], curves)


def _small_batches(count: int, seed: int, tell: Callable[[str], None]) -> list[Curve]:
    """Those whose cost grows, beside the counters with as many answers."""
    more, few = Events(min(count, _MOST_FOR_SUMS), seed), Events(min(count, _MOST_FOR_ROWS), seed)
    found = []
    for name, counted, events in ((COUNTERS, True, more), (ALL_ROWS, False, few)):
        tell(f"{name}, by {FEW} events")
        run = _Run(counted=counted)
        found.append(Curve(name, FEW, run.points(events, FEW)))
        _check(name, run.totals, _time_by_hand(events)[1])
    if find_spec("duckdb"):
        for name, question, events in (
            (JOIN, bounded_duckdb.JOIN, few),
            (SUMS, bounded_duckdb.RUNNING_SUMS, more),
        ):
            tell(name)
            curve, totals = bounded_duckdb.measure(name, question, events, FEW)
            found.append(curve)
            _check(name, totals, _time_by_hand(events)[1])
    return found


def _check(name: str, found: dict[str, str], totals: Int64) -> None:
    expected = {term(n + 1): term(total) for n, total in enumerate(totals.tolist()) if total}
    if found != expected:
        raise UsageError(f"the kernel by hand finds {expected}, {name}: {found}")


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
