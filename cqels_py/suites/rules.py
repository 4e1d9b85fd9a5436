"""How many facts per second do temporal rules take, how long does a tick take, and how much is kept as facts get denser?

Beside it, reelay on a property of its own kind: one entity, intervals over dense time, no joins.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from cqels_py.batches.elements import ElementBatch
from cqels_py.batches.results import ResultBatch
from cqels_py.dataflow.dataflow import Dataflow
from cqels_py.dataflow.state_scan import StateScan
from cqels_py.dataflow.static_data import StaticData
from cqels_py.dictionary import Dictionary
from cqels_py.engine.compile import compile_query
from cqels_py.engine.engine import Engine
from cqels_py.errors import UsageError
from cqels_py.suggestions import unknown
from cqels_py.suites.rule_facts import EX, SECOND, STREAM, SUITES, Facts, RuleSuite

Flags = npt.NDArray[np.bool_]
GAPS = (SECOND, SECOND // 10, SECOND // 100)
"""Between instants, for the peaks by density."""
NODES = 10_000
LEAST_UPDATES = 1_000
_KEPT_AT = 8
PUBLISHED = (
    "The paper (section 7.1, temporal LUBM): its Algorithm 6 keeps 1,006 to 10,945 facts at most where Algorithm 1 keeps 41,612 to "
    "369,664. Other data and programs, so compare the growth and not the numbers."
)
PROPERTY = "historically[0:4](once[0:2]{q}) and {p}"
_QUERY = f"""PREFIX : <{EX}>
RULES ON :s {{
  RULE {{ ?m a :Q }} FOR (0s, 1s] WHERE {{ ?m :tells :q }}
  RULE {{ ?m a :P }} FOR (0s, 1s] WHERE {{ ?m :tells :p }}
  RULE {{ ?m a :Alarm }} WHERE {{ ?m a :P . ALWAYS [0s, 4s] {{ SOMETIME [0s, 2s] {{ ?m a :Q }} }} }}
}}
SELECT ?m WHERE {{ STATE {{ ?m a :Alarm }} }}"""


@dataclass(frozen=True, slots=True)
class Peak:
    """The most intervals kept at once over the same time, with facts in so many seconds' distance; static facts aside.

    `per_second`: facts per second, from ids.
    """

    gap: float
    facts: int
    intervals: int
    per_second: float


@dataclass(frozen=True, slots=True)
class Figures:
    """Rates in facts per second, of facts at distances of a second; ticks in milliseconds. `kept`: intervals, over time."""

    suite: str
    facts: int
    results: int
    from_texts: float
    from_ids: float
    p50: float
    p99: float
    kept: tuple[int, ...]
    peaks: tuple[Peak, ...]


@dataclass(frozen=True, slots=True)
class Peer:
    """Updates per second of one entity; reelay's is None if it is not installed."""

    updates: int
    rules: float
    reelay: float | None


def chosen(name: str | None) -> Sequence[RuleSuite]:
    """A suite by its name, or all."""
    if name is None:
        return SUITES
    found = [suite for suite in SUITES if suite.name == name]
    if not found:
        raise UsageError(unknown("suite of rules", name, [suite.name for suite in SUITES]))
    return found


class _Run:
    """A query without an engine, from ids."""

    def __init__(self, query: str, facts: Facts) -> None:
        dictionary = Dictionary()
        static = [dictionary.encode(column) for column in zip(*facts.static, strict=True)] or [
            np.empty(0, np.int64)
        ] * 3
        self._static = len(static[0])
        self._flow = Dataflow(
            compile_query(query).plan, dictionary, StaticData([np.stack([*static, np.zeros(self._static, np.int64)])])
        )
        self._facts = facts
        self._columns = [
            dictionary.encode(column.tolist()) for column in (facts.subject, facts.predicate, facts.object)
        ]
        (scan,) = [each for each in self._flow._scans if isinstance(each, StateScan)]
        self._state = scan.rules._state

    def ticks(self) -> Iterator[int]:
        """Take in all instants, one by one. The number of results of each."""
        bounds = np.flatnonzero(np.diff(self._facts.time, prepend=-1))
        for first, last in zip(bounds.tolist(), [*bounds[1:].tolist(), len(self._facts)], strict=True):
            yield self._count(self._flow.step(self._elements(first, last)))
        yield self.end()

    def take(self) -> int:
        """Take in all facts as one batch."""
        return self._count(self._flow.step(self._elements(0, len(self._facts)))) + self.end()

    def end(self) -> int:
        return self._count(self._flow.advance(int(self._facts.time[-1]) + 1))

    def _elements(self, first: int, last: int) -> ElementBatch:
        columns = [np.ascontiguousarray(column[first:last]) for column in self._columns]
        count = last - first
        return ElementBatch(
            self._facts.time[first:last], np.zeros(count, np.int32), np.arange(count + 1, dtype=np.int64), *columns
        )

    @staticmethod
    def _count(results: Iterator[ResultBatch]) -> int:
        return sum(len(each.time) for each in results)

    @property
    def kept(self) -> int:
        """Intervals of facts that are not static."""
        return self._state.live_intervals - self._static

    @property
    def peak(self) -> int:
        return self._state.peak_intervals - self._static


def measure(suite: RuleSuite, count: int, seed: int, tell: Callable[[str], None], *, nodes: int = NODES) -> Figures:
    """The figures of about so many facts. UsageError if runs differ in their number of results."""
    tell(f"{suite.name}: from ids")
    facts = _about(suite, count, seed, nodes)
    _Run(suite.query, _about(suite, 1_000, seed, nodes)).take()  # Kernels that are not compiled yet are compiled now.
    ids = _Run(suite.query, facts)
    began = time.perf_counter()
    results = ids.take()
    from_ids = len(facts) / (time.perf_counter() - began)
    tell(f"{suite.name}: by ticks")
    by_tick = _Run(suite.query, facts)
    seconds, kept, told = [], [], 0
    began = time.perf_counter()
    for each in by_tick.ticks():
        seconds.append(time.perf_counter() - began)
        told += each
        kept.append(by_tick.kept)
        began = time.perf_counter()
    tell(f"{suite.name}: from texts")
    from_texts, texts = _from_texts(suite.query, facts)
    if not results == told == texts:
        raise UsageError(f"{suite.name}: {results} results from one batch, {told} by ticks, {texts} from texts")
    tell(f"{suite.name}: peaks")
    peaks = tuple(_peak(suite, gap, count, seed, nodes) for gap in GAPS)
    p50, p99 = (float(np.quantile(seconds[:-1], share)) * 1e3 for share in (0.5, 0.99))
    places = [len(kept) * n // _KEPT_AT - 1 for n in range(1, _KEPT_AT + 1)]
    return Figures(
        suite.name, len(facts), results, from_texts, from_ids, p50, p99, tuple(kept[n] for n in places), peaks
    )


def _about(suite: RuleSuite, count: int, seed: int, nodes: int, gap: int = SECOND) -> Facts:
    """At least eight instants of about so many facts in all."""
    few = suite.draw(_KEPT_AT, SECOND, nodes, np.random.default_rng(seed))
    instants = max(_KEPT_AT, count * _KEPT_AT // len(few))
    return suite.draw(instants * SECOND // gap, gap, nodes, np.random.default_rng(seed))


def _peak(suite: RuleSuite, gap: int, count: int, seed: int, nodes: int) -> Peak:
    """Over the time in which the densest facts are about `count`."""
    facts = _about(suite, count * GAPS[-1] // GAPS[0], seed, nodes, gap)
    run = _Run(suite.query, facts)
    began = time.perf_counter()
    run.take()
    return Peak(gap / SECOND, len(facts), run.peak, len(facts) / (time.perf_counter() - began))


def _from_texts(query: str, facts: Facts) -> tuple[float, int]:
    """Arrow tables of N-Triples terms to batches of results."""
    engine, results = Engine(), 0

    def count(batch: ResultBatch) -> None:
        nonlocal results
        results += len(batch.time)

    static = "".join(f"{s} {p} {o} .\n" for s, p, o in facts.static).encode()
    engine.register(query, static=static).subscribe_batches(count, ids=True)
    table = facts.table()
    began = time.perf_counter()
    engine.push_batch(STREAM, table)
    engine.finish()
    return len(facts) / (time.perf_counter() - began), results


def measure_peer(updates: int, seed: int) -> Peer:
    """One entity that reports two signals each second, here and in reelay. UsageError if the answers differ."""
    random = np.random.default_rng(seed)
    q, p = random.random(updates) < 0.6, random.random(updates) < 0.9
    # Before the beginning ALWAYS is false here, and true in reelay.
    q[:8] = False
    facts = _reports(q, p)
    _Run(_QUERY, _reports(q[:16], p[:16])).take()
    run = _Run(_QUERY, facts)
    began = time.perf_counter()
    results = run.take()
    rate = updates / (time.perf_counter() - began)
    if not find_spec("reelay"):
        return Peer(updates, rate, None)
    seconds, alarms = _reelay(q, p)
    if alarms != results:
        raise UsageError(f"reelay finds {alarms} alarms, the rules {results}")
    return Peer(updates, rate, updates / seconds)


def _reports(q: Flags, p: Flags) -> Facts:
    """A fact that holds for the second up to a report in reelay is told here when it begins."""
    second = np.concatenate([np.flatnonzero(q), np.flatnonzero(p), [len(q)]])
    value = np.repeat(np.array([f"<{EX}q>", f"<{EX}p>", f"<{EX}end>"], object), [q.sum(), p.sum(), 1])
    order = np.argsort(second, kind="stable")
    machine, tells = (np.full(len(second), f"<{EX}{name}>", object) for name in ("m", "tells"))
    return Facts(SECOND * second[order], machine, tells, value[order])


def _reelay(q: Flags, p: Flags) -> tuple[float, int]:
    """Seconds, and how often the property begins to hold."""
    monitor: Any = import_module("reelay").dense_timed_monitor(pattern=PROPERTY, semantics="boolean")
    updates = [
        {"time": n + 1, "q": one, "p": other} for n, (one, other) in enumerate(zip(q.tolist(), p.tolist(), strict=True))
    ]
    changes: list[dict[str, Any]] = []
    began = time.perf_counter()
    for update in updates:
        changes += monitor.update(update)
    seconds = time.perf_counter() - began
    return seconds, sum(each["value"] for each in changes)
