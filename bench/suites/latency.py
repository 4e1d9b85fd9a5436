"""How long does one element take, from the call that pushes it until the subscriber has its results?

    python -m bench.suites.latency [--quick] [--rounds N] [--output FOLDER]

from the repository's root. Elements arrive one by one, through `Engine.push` and, each as a table of its own, through
`Engine.push_batch`, with full windows: for each arrival an older element expires. "by calls": the kernels of a step are called
from Python, instead of by one driver (docs/architecture.md). All cases take turns, round by round. Printed are the CPU time per
push (which other processes hardly disturb) and percentiles of the wall-clock time, each the median of the rounds, with the lowest
and the highest p50. bench/results/latency.json has all rounds. `--quick` tests that everything runs; its figures
are meaningless.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median

import pyarrow as pa
from rich.console import Console
from rich.table import Table

import cqels_py as cqels
from bench.suites.outcome import add_rounds, folder_of, parser_of, taken_now
from cqels_py.dataflow.step_program import CALLS

_STREAM = "http://ex.org/{}"
_BEGIN = 1_700_000_000_000_000
_APART = 10_000
"""Microseconds of event time between elements."""
_KEYS = 200

_WINDOWS = """STREAM :a [RANGE 10s] { ?k :a ?x }
        STREAM :b [RANGE 10s] { ?k :b ?y }
        STREAM :c [RANGE 10s] { ?k :c ?z }"""
_OF_A, _OF_B = "STREAM :a [RANGE 1s] { ?k :a ?x }", "STREAM :b [RANGE 1s] { ?k :b ?y }"
_EVENT_A, _EVENT_B = "EVENT ON :a { ?k :a ?x }", "EVENT ON :b { ?k :b ?y }"
_RULE = "RULES ON :a { RULE { ?k a :High } FOR [0s, 1s) WHERE { ?k :a ?x FILTER(?x > 50) } }"
_COUNTED = "EVENT ON :a AT ?i { ?k :a ?x FILTER(?x > 50) } EVENT ON :b AT ?j { ?l :b ?y }"
_QUERIES = {
    "pattern with a filter": "SELECT ?k ?x WHERE { STREAM :a [RANGE 10s] { ?k :a ?x } FILTER(?x > 50) }",
    "join of 2 windows": f"SELECT ?k ?x ?y WHERE {{ {_OF_A} {_OF_B} }}",
    "OPTIONAL": f"SELECT ?k ?x ?y WHERE {{ {_OF_A} OPTIONAL {{ {_OF_B} }} }}",
    "MATCH of A then B": f"SELECT ?k ?x ?y WHERE {{ MATCH WITHIN 1s {{ {_EVENT_A} SEQ {_EVENT_B} }} }}",
    "STATE of a rule": f"{_RULE} SELECT ?k WHERE {{ STATE {{ ?k a :High }} }}",
    "join of 2 EVENTs, counted": f"SELECT (COUNT(*) AS ?n) WHERE {{ {_COUNTED} FILTER(?i < ?j) }}",
    "join of 3 windows, AVG": f"SELECT ?k (AVG(?x) AS ?mean) WHERE {{ {_WINDOWS} }} GROUP BY ?k",
    "join of 3 windows, AVG of its results": f"SELECT ?z (AVG(?x + ?y) AS ?mean) WHERE {{ {_WINDOWS} }} GROUP BY ?z",
}
"""AVG over values of one window is computed below the join; AVG over values of several windows needs the join's results."""

_BY_CALLS = "push, by calls"
Element = tuple[str, list[tuple[str, str, str]], int]
Push = Callable[[], None]


@dataclass(slots=True)
class Case:
    """One query, one way of input, one way of output: figures of each round, in microseconds per push."""

    query: str
    way: str
    subscriber: str
    pushes: int
    cpu: list[float] = field(default_factory=list)
    p50: list[float] = field(default_factory=list)
    p99: list[float] = field(default_factory=list)
    p999: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Pushes per second of CPU time."""
        return 1e6 / median(self.cpu)


class Runner:
    """A query with full windows, and elements without end."""

    def __init__(self, case: Case, warm: int) -> None:
        self._engine = cqels.Engine()
        query = self._engine.register(f"PREFIX : <http://ex.org/>\n{_QUERIES[case.query]}")
        self.results = 0
        if case.subscriber == "decoded":
            query.subscribe(lambda result: self._count(1))
        else:
            query.subscribe_batches(lambda batch: self._count(len(batch)), ids=True)
        self._elements = elements(len(query.streams))
        self._way = case.way
        if case.way == _BY_CALLS:
            os.environ[CALLS] = "calls"
        # The driver's program is made after the first tick.
        for push in self.pushes(warm):
            push()
        os.environ.pop(CALLS, None)

    def _count(self, results: int) -> None:
        self.results += results

    def pushes(self, count: int) -> list[Push]:
        """Calls that push the next elements; their arguments are made in advance."""
        made = (next(self._elements) for _ in range(count))
        return [self._push(*element) if self._way != "push_batch" else self._push_batch(*element) for element in made]

    def _push(self, stream: str, triples: list[tuple[str, str, str]], at: int) -> Push:
        engine = self._engine
        return lambda: engine.push(stream, triples, time=at)

    def _push_batch(self, stream: str, triples: list[tuple[str, str, str]], at: int) -> Push:
        engine = self._engine
        subject, predicate, object_ = map(list, zip(*triples, strict=True))
        table = pa.table({"time": [at], "subject": subject, "predicate": predicate, "object": object_})
        return lambda: engine.push_batch(stream, table)


def elements(streams: int) -> Iterator[Element]:
    """One triple each; the streams alternate."""
    drawn = random.Random(1)
    names, at = "abc"[:streams], _BEGIN
    while True:
        for name in names:
            at += _APART
            value = f'"{drawn.randrange(100)}"^^<http://www.w3.org/2001/XMLSchema#integer>'
            yield (
                _STREAM.format(name),
                [(f"<http://ex.org/s{drawn.randrange(_KEYS)}>", f"<http://ex.org/{name}>", value)],
                at,
            )


def measure(measured: Sequence[Case], *, rounds: int, warm: int) -> None:
    """Fill in the cases' figures."""
    runners = [Runner(case, warm) for case in measured]
    for _ in range(rounds):
        for case, runner in zip(measured, runners, strict=True):
            _round(case, runner)
    assert all(runner.results for runner in runners), "nothing came out"


def _round(case: Case, runner: Runner) -> None:
    pushes, taken, now = runner.pushes(case.pushes), [0] * case.pushes, time.perf_counter_ns
    began = time.process_time_ns()
    for i, push in enumerate(pushes):
        start = now()
        push()
        taken[i] = now() - start
    case.cpu.append((time.process_time_ns() - began) / case.pushes / 1000)
    taken.sort()
    for figures, part in ((case.p50, 0.5), (case.p99, 0.99), (case.p999, 0.999)):
        figures.append(taken[int(case.pushes * part)] / 1000)


def cases(pushes: int) -> list[Case]:
    """Every query with both ways of input, and with results as ids or decoded."""
    found = [Case(query, "push", out, pushes) for query in _QUERIES for out in ("ids", "decoded")]
    return found + [Case(query, way, "ids", pushes) for way in (_BY_CALLS, "push_batch") for query in _QUERIES]


def table(measured: Sequence[Case]) -> Table:
    made = Table("query", title="microseconds a push")
    for heading in ("CPU", "p50", "lowest … highest", "p99", "p99.9", "pushes/s"):
        made.add_column(heading, justify="right", no_wrap=True)
    for query in _QUERIES:
        made.add_section()
        made.add_row(query, style="bold")
        for case in (each for each in measured if each.query == query):
            cpu, p50, p99, p999 = (f"{median(each):.1f}" for each in (case.cpu, case.p50, case.p99, case.p999))
            spread = f"{min(case.p50):.1f} … {max(case.p50):.1f}"
            made.add_row(f"  {case.way}, {case.subscriber}", cpu, p50, spread, p99, p999, f"{case.rate:,.0f}")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of("latency", __doc__)
    add_rounds(parser, "rounds of 5,000 pushes")
    given = parser.parse_args(arguments)
    measured = cases(20 if given.quick else 5_000)
    measure(measured, rounds=1 if given.quick else given.rounds, warm=60 if given.quick else 5_000)
    Console().print(table(measured))
    figures = {"cases": [asdict(case) | {"pushes_per_second": case.rate} for case in measured]}
    found = taken_now("latency", (__doc__ or "").split("\n\n")[0], figures, quick=given.quick)
    print(f"written to {found.write(folder_of(given))}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
