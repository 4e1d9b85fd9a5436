"""Does the engine's memory stay constant while new IRIs and literals pass through its windows without end?

    python -m bench.suites.soak [--triples N] [--quick]

A join of three patterns over the observations of the last 100 seconds (100,000 of them), with AVG and COUNT by group.
The terms of every observation and its note occur only once, and the groups are always new sensors; with 100,000,000
triples (default) these are some 70 million different terms. Resident memory, the dictionary's terms and bytes, and the
query's bytes are recorded after each block. Memory is constant if it grows by at most a twentieth from the second
quarter of the run to the last; otherwise the exit status is 1. Writes bench/results/soak.json and soak.png.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import cqels_py as cqels
from bench.suites.observations import (
    PREFIX,
    STREAM,
    Int64,
    Property,
    integers,
    numbered,
    scattered,
    sensor_iris,
    table,
    two_digits,
)
from bench.suites.outcome import Outcome, folder_of, parser_of, taken_now
from cqels_py.suites import memory

TRIPLES, QUICK = 100_000_000, 300_000
MOST_GROWTH = 0.05
_BLOCK = 33_000
"""Observations per push."""
_SENSORS, _SENSORS_LIVE_FOR = 100, 50_000
"""The number of sensors at a time, and the number of observations after which they are replaced."""

QUERY = f"""PREFIX : <{PREFIX}>
SELECT ?sensor (AVG(?result) AS ?mean) (COUNT(?note) AS ?notes)
WHERE {{ STREAM <{STREAM}> [RANGE %s] {{ ?o :sensor ?sensor . ?o :result ?result . ?o :note ?note }} }}
GROUP BY ?sensor"""


def _sensors(numbers: Int64) -> Int64:
    generation = numbers // _SENSORS_LIVE_FOR
    return generation * _SENSORS + scattered(numbers, _SENSORS)


PROPERTIES = (
    Property("sensor", _sensors, sensor_iris),
    Property("result", two_digits, integers),
    Property("note", lambda numbers: numbers, lambda codes: numbered('"note ', codes, '"')),
)


@dataclass(frozen=True)
class Sample:
    """After so many triples and seconds: megabytes, and terms in the dictionary."""

    triples: int
    seconds: float
    resident_mb: float
    terms: int
    dictionary_mb: float
    query_mb: float


def sample_now(engine: cqels.Engine, query: cqels.Query, triples: int, started: float) -> Sample:
    """After so many triples of a run that began at `started`, by the clock of performance."""
    return Sample(
        triples,
        round(time.perf_counter() - started, 3),
        round(memory.now(), 1),
        len(engine.dictionary),
        round(engine.dictionary.nbytes / 2**20, 2),
        round(query.nbytes / 2**20, 2),
    )


def soak(triples: int, window: str) -> Iterator[Sample]:
    """The run, sample by sample."""
    engine = cqels.Engine()
    query = engine.register(QUERY % window)
    query.subscribe_batches(lambda batch: None, ids=True)
    observations = triples // len(PROPERTIES)
    started = time.perf_counter()
    for first in range(0, observations, _BLOCK):
        block = min(_BLOCK, observations - first)
        engine.push_batch(STREAM, table(first, block, PROPERTIES))
        yield sample_now(engine, query, (first + block) * len(PROPERTIES), started)


def quarter(samples: Sequence[Sample], number: int) -> float:
    """The median of resident memory in a quarter of the run, in MB."""
    n = len(samples)
    return median(sample.resident_mb for sample in samples[number * n // 4 : (number + 1) * n // 4])


def growth(samples: Sequence[Sample]) -> float:
    """The growth from the second quarter of the run to the last, relative to the former."""
    return quarter(samples, 3) / quarter(samples, 1) - 1


def draw(outcome: Outcome, samples: Sequence[Sample], path: Path) -> None:
    """Memory by triples. ImportError if matplotlib is not installed."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    lines: tuple[tuple[str, Callable[[Sample], float]], ...] = (
        ("resident memory", lambda sample: sample.resident_mb),
        ("dictionary", lambda sample: sample.dictionary_mb),
        ("the query's state", lambda sample: sample.query_mb),
    )
    for label, value in lines:
        axes.plot([s.triples / 1e6 for s in samples], [value(s) for s in samples], label=label)
    axes.set_ylim(0)
    axes.set_xlabel(f"million triples ({outcome.origin})")
    axes.set_ylabel("MB")
    axes.grid(alpha=0.3)
    axes.set_title("Always new terms through a window of 100,000 observations", loc="left", fontsize="medium")
    figure.legend(loc="outside lower center", ncols=3)
    figure.savefig(path, dpi=150)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of("soak", __doc__)
    parser.add_argument("--triples", type=int, metavar="N", help=f"default {TRIPLES:,}")
    given = parser.parse_args(arguments)
    triples = given.triples or (QUICK if given.quick else TRIPLES)
    if triples < 4 * _BLOCK * len(PROPERTIES) and not given.quick:
        parser.error(f"fewer than {4 * _BLOCK * len(PROPERTIES):,} triples say nothing")
    samples = []
    for sample in soak(triples, "10s" if given.quick else "100s"):
        samples.append(sample)
        if len(samples) % 20 == 0 or sample.triples == triples:
            print(f"{sample.triples:,} triples, {sample.seconds:.0f} s, {sample.resident_mb:.0f} MB", file=sys.stderr)
    last = samples[-1]
    rate = last.triples / last.seconds
    more = growth(samples)
    figures = {
        "triples": last.triples,
        "triples_per_second": round(rate),
        "second_quarter_mb": quarter(samples, 1),
        "last_quarter_mb": quarter(samples, 3),
        "growth": round(more, 4),
        "samples": [asdict(sample) for sample in samples[:: max(1, len(samples) // 500)]],
    }
    outcome = taken_now("soak", (__doc__ or "").split("\n\n")[0], figures, quick=given.quick)
    folder = folder_of(given)
    path = outcome.write(folder)
    try:
        draw(outcome, samples, folder / "soak.png")
    except ImportError:
        print("no plot: matplotlib is not installed (pip install -e .[bench])", file=sys.stderr)
    print(
        f"{last.triples:,} triples in {last.seconds:.0f} s ({rate / 1e6:.2f} M a second): "
        f"{quarter(samples, 1):.0f} MB in the second quarter, {quarter(samples, 3):.0f} MB in the last ({more:+.1%})"
    )
    print(f"written to {path}", file=sys.stderr)
    return 0 if given.quick or more <= MOST_GROWTH else 1


if __name__ == "__main__":
    sys.exit(main())
