"""What does registering a query cost those that run? Pushes at a fixed rate, while queries are registered beside them.

    python -m bench.suites.registering [--quick] [--rate N] [--seconds S] [--output FOLDER]

from the repository's root. A thread pushes elements at the rate; the delay of an element is the time from when it was
due until the subscriber has its result, so a push that waits delays all that follow. The first half of the time nothing
else happens; in the second half another thread registers a query and removes it, five times a second. "warm": their
kernels are in the cache. "cold": they are not, and are compiled by other processes on the same cores.
bench/results/registering.json has all figures.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from threading import Event, Thread

import numpy as np
from rich.console import Console
from rich.table import Table

import cqels_py as cqels
from bench.suites.outcome import folder_of, parser_of, taken_now

_PREFIX = "PREFIX : <http://ex.org/>\n"
_RUNNING = "SELECT ?k ?x WHERE { STREAM :a [RANGE 1s] { ?k :a ?x } FILTER(?x > 5) }"
_ADDED = (
    "SELECT ?k (AVG(?x) AS ?m) WHERE { STREAM :a [RANGE 1s] { ?k :a ?x } } GROUP BY ?k",
    "SELECT ?k ?x ?y WHERE { STREAM :a [RANGE 1s] { ?k :a ?x } STREAM :b [RANGE 1s] { ?k :b ?y } }",
    "SELECT DISTINCT ?x WHERE { STREAM :a [RANGE 2s] { ?k :a ?x } }",
    "SELECT ?k ?x WHERE { STREAM :a [RANGE 2s] { ?k :a ?x } } ORDER BY ?x LIMIT 10",
)

_APART = 0.2
"""Seconds between registrations."""


@dataclass(frozen=True, slots=True)
class Delays:
    """Milliseconds from when an element was due until its result."""

    when: str
    elements: int
    registered: int
    p50: float
    p99: float
    worst: float


def pushed(engine: cqels.Engine, rate: int, seconds: float, phase: str, registered: list[int]) -> Delays:
    """Push at the rate for so long."""
    delays: list[float] = []
    due = [0.0]
    query = engine.register(_PREFIX + _RUNNING)
    query.subscribe_batches(lambda batch: delays.append(time.perf_counter() - due[0]), ids=True)
    start, event_time = time.perf_counter(), (engine.statistics.event_time or 0) + 1_000_000
    for i in range(int(rate * seconds)):
        due[0] = start + i / rate
        while (early := due[0] - time.perf_counter()) > 0:
            if early > 0.001:
                time.sleep(early / 2)
        triple = (
            f"<http://ex.org/k{i % 100}>",
            "<http://ex.org/a>",
            f'"{10 + i % 50}"^^<http://www.w3.org/2001/XMLSchema#integer>',
        )
        engine.push("http://ex.org/a", [triple], time=event_time + i * 1_000_000 // rate)
    engine.unregister(query)
    taken = np.array(delays) * 1000
    p50, p99 = np.percentile(taken, [50, 99])
    return Delays(phase, len(taken), len(registered), float(p50), float(p99), float(taken.max()))


def registering(engine: cqels.Engine, over: Event, registered: list[int]) -> None:
    """Register and remove queries until it is over."""
    for text in _endlessly(_ADDED):
        if over.wait(_APART):
            return
        engine.unregister(engine.register(_PREFIX + text))
        registered.append(1)


def _endlessly(texts: Sequence[str]) -> Iterator[str]:
    while True:
        yield from texts


def measure(rate: int, seconds: float) -> list[Delays]:
    engine = cqels.Engine()
    # The kernels of the query that runs are loaded.
    pushed(engine, rate, 0.5, "", [])
    alone = pushed(engine, rate, seconds, "alone", [])
    over, registered = Event(), []
    other = Thread(target=registering, args=(engine, over, registered))
    other.start()
    try:
        beside = pushed(engine, rate, seconds, "beside", registered)
    finally:
        over.set()
        other.join()
    return [alone, beside]


def measured_in_a_process(cache: str | None, rate: int, seconds: float) -> list[Delays]:
    """In a process with a cache of its own, or with the usual one."""
    program = (
        "import json; from bench.suites import registering as here; "
        f"print(json.dumps([here.asdict(each) for each in here.measure({rate}, {seconds})]))"
    )
    variables = {} if cache is None else {"CQELS_CACHE_DIR": cache}
    command = [sys.executable, "-c", program]
    output = subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, **variables}).stdout
    return [Delays(**each) for each in json.loads(output)]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of("registering", __doc__)
    parser.add_argument("--rate", type=int, default=10_000, metavar="N", help="elements a second (default 10,000)")
    parser.add_argument("--seconds", type=float, default=30.0, metavar="S", help="of each half (default 30)")
    given = parser.parse_args(arguments)
    seconds = 0.3 if given.quick else given.seconds
    figures = {"warm": measured_in_a_process(None, given.rate, seconds)}
    if not given.quick:
        with tempfile.TemporaryDirectory() as cache:
            figures["cold"] = measured_in_a_process(cache, given.rate, seconds)
    table = Table("", title=f"milliseconds until the result, at {given.rate:,} elements a second")
    for heading in ("registered", "p50", "p99", "worst"):
        table.add_column(heading, justify="right")
    for kind, found in figures.items():
        for each in found:
            row = (f"{each.registered:,}", *(f"{value:.2f}" for value in (each.p50, each.p99, each.worst)))
            table.add_row(f"{kind}, {each.when}", *row)
    Console().print(table)
    found = {kind: list(map(asdict, each)) for kind, each in figures.items()}
    outcome = taken_now("registering", (__doc__ or "").split("\n\n")[0], found, quick=given.quick)
    print(f"written to {outcome.write(folder_of(given))}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
