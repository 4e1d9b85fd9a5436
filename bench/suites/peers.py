"""How fast is the average of each sensor over its last observations, compared with the alternatives of a Python user?

    python -m bench.suites.peers [--rounds N] [--seconds S] [--quick]

An observation has five triples; the query joins them over the last 10,000 observations of 100 sensors, and takes the
AVG by sensor at each STEP. The engine takes texts. The others re-evaluate at each step: pyoxigraph (a store that is
kept, or filled anew), rdflib, Polars and DuckDB, if installed. Pathway (`pip install pathway`, 1.6 GB) gets insertions
and removals. PyFlink gets insertions; it takes part if CQELS_BENCH_FLINK names the Python of an environment that has it
(python3.11 -m venv FOLDER; FOLDER/bin/pip install apache-flink; with Java). Their terms are made outside of the timing,
and tables get numbers instead of terms, except for `Polars, over texts`. Every contender has the same time for a round.
Their answers must have the same checksums at all steps that two of them reach, or the suite stops. Writes
bench/results/peers.json, peers.png and peers.svg.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from bench.suites import over_flink, paces
from bench.suites.contenders import (
    DuckDB,
    Polars,
    PolarsOverTexts,
    PyoxigraphKept,
    PyoxigraphRebuilt,
    Question,
    RdflibKept,
    Reevaluation,
    available,
)
from bench.suites.observations import (
    PREFIX,
    Int64,
    Property,
    Terms,
    integers,
    numbered,
    scattered,
    sensor_iris,
    two_digits,
)
from bench.suites.over_flink import Flink
from bench.suites.over_pathway import Pathway
from bench.suites.slides import SENSORS, WINDOW, engines
from bench.suites.stepping import Pace, Timing

STEPS = (1, 10, 100, 1_000)


def _place_iris(numbers: Int64) -> Terms:
    return numbered(f"<{PREFIX}place/", numbers, ">", digits=3)


PROPERTIES = (
    Property("sensor", lambda numbers: scattered(numbers, SENSORS), sensor_iris),
    Property("result", two_digits, integers),
    Property("place", lambda numbers: scattered(numbers + 1, 500), _place_iris),
    Property("quality", lambda numbers: 10 + numbers % 3, integers),
    Property("note", lambda numbers: numbers, lambda codes: numbered('"note ', codes, '"')),
)
OTHERS: tuple[tuple[str, type[Reevaluation]], ...] = (
    ("pyoxigraph", PyoxigraphKept),
    ("pyoxigraph", PyoxigraphRebuilt),
    ("rdflib", RdflibKept),
    ("polars", Polars),
    ("polars", PolarsOverTexts),
    ("duckdb", DuckDB),
    ("pathway", Pathway),
)


def measure(quick: bool, timing: Timing) -> tuple[list[Pace], Mapping[str, Any]]:
    window, steps = (200, (1, 100)) if quick else (WINDOW, STEPS)
    question = Question(PROPERTIES, "AVG", window)
    others, missing = available(OTHERS)
    elsewhere = {}
    try:
        elsewhere["apache-flink"] = over_flink.version()
        others.append(Flink)
    except over_flink.Absent as reason:
        missing.append(f"{Flink.name} is left out: {reason}")
    for line in missing:
        print(line, file=sys.stderr)

    def maker(other: type[Reevaluation]) -> paces.Make:
        return lambda step: other(question, step)

    found = paces.taken([*engines(question), *map(maker, others)], steps, window, timing)
    settings = {"window": window, "sensors": SENSORS, "query": question.continuous(1, whole=False), "left_out": missing}
    return found, settings | {"versions_elsewhere": elsewhere}


def main(arguments: Sequence[str] | None = None) -> int:
    title = "AVG by sensor of observations with five triples, over the last 10,000"
    return paces.main("peers", __doc__ or "", measure, title, ("png", "svg"), arguments)


if __name__ == "__main__":
    sys.exit(main())
