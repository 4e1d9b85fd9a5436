"""What does a triple cost with 1, 10, 100 and 1,000 queries over one stream?

    python -m bench.suites.many [--quick] [--rounds N] [--output FOLDER]

from the repository's root. The queries are all equal; or they share one join of two patterns, each with its own filter
above it; or each has one pattern of a property of its own. Windows hold the last 10,000 triples, of 1,000 properties or
of two. Triples are pushed in tables of 10,000 (`push_batch`), with every result counted, and one by one (`push`).
Printed is the CPU time per triple, the median of the rounds. bench/results/many.json has all rounds and the number of
results per triple. `--quick` tests that everything runs; its figures are meaningless.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median

import pyarrow as pa
from rich.console import Console
from rich.table import Table

import cqels_py as cqels
from bench.suites.outcome import add_rounds, folder_of, parser_of, taken_now

_STREAM = "http://ex.org/s"
_WINDOW = "STREAM :s [TRIPLES 10000]"
_SUBJECTS = 10_000
_INTEGER = "^^<http://www.w3.org/2001/XMLSchema#integer>"
_JOIN = f"SELECT ?k ?x ?y WHERE {{ {_WINDOW} {{ ?k :p0 ?x . ?k :p1 ?y }} FILTER(?x + ?y > %d) }}"
KINDS: dict[str, tuple[Callable[[int], str], int]] = {
    "the same": (lambda _: f"SELECT ?k (AVG(?x) AS ?mean) WHERE {{ {_WINDOW} {{ ?k :p0 ?x }} }} GROUP BY ?k", 2),
    "one join, a filter each": (lambda i: _JOIN % (198 - i % 3), 2),
    "a property each": (lambda i: f"SELECT ?k ?x WHERE {{ {_WINDOW} {{ ?k :p{i} ?x }} }}", 1_000),
}
"""By kind: the text of query i, and the number of the stream's properties."""
COUNTS = (1, 10, 100, 1_000)
_AT_ONCE = {"push_batch": 10_000, "push": 1}


@dataclass(slots=True)
class Case:
    """So many queries of a kind, and one way of input: microseconds of CPU time per triple in each round."""

    kind: str
    way: str
    queries: int
    seconds: float
    cpu: list[float] = field(default_factory=list)
    results_per_triple: float = 0.0


class _Stream:
    """Triples without end."""

    def __init__(self, properties: int) -> None:
        self._drawn, self._properties, self._time = random.Random(1), properties, 0

    def triples(self, count: int) -> list[tuple[str, str, str]]:
        drawn = self._drawn
        return [
            (
                f"<http://ex.org/k{drawn.randrange(_SUBJECTS)}>",
                f"<http://ex.org/p{drawn.randrange(self._properties)}>",
                f'"{drawn.randrange(100)}"{_INTEGER}',
            )
            for _ in range(count)
        ]

    def table(self, count: int) -> pa.Table:
        subject, predicate, object_ = map(list, zip(*self.triples(count), strict=True))
        times = list(range(self._time, self._time + count))
        self._time += count
        return pa.table({"time": times, "subject": subject, "predicate": predicate, "object": object_})

    def pushes(self, engine: cqels.Engine, way: str, count: int) -> list[Callable[[], None]]:
        """Calls that push the next triples; their arguments are made in advance."""
        if way == "push_batch":
            tables = [self.table(_AT_ONCE[way]) for _ in range(count)]
            return [lambda table=table: engine.push_batch(_STREAM, table) for table in tables]  # type: ignore[misc]
        made, start = self.triples(count), self._time
        self._time += count
        return [
            lambda triple=triple, at=at: engine.push(_STREAM, [triple], time=at)  # type: ignore[misc]
            for at, triple in enumerate(made, start)
        ]


def measure(case: Case, *, rounds: int, filled: int) -> None:
    """Fill in the case's figures."""
    text, properties = KINDS[case.kind]
    engine, results = cqels.Engine(), 0

    def count(batch: object) -> None:
        nonlocal results
        results += len(batch)  # type: ignore[arg-type]

    for i in range(case.queries):
        engine.register(f"PREFIX : <http://ex.org/>\n{text(i)}").subscribe_batches(count, ids=True)
    stream = _Stream(properties)
    engine.push_batch(_STREAM, stream.table(filled))
    for push in stream.pushes(engine, case.way, 3):
        push()
    results = triples = 0
    for _ in range(rounds):
        spent = pushed = 0.0
        while spent < case.seconds:
            pushes = stream.pushes(engine, case.way, max(1, 200 // _AT_ONCE[case.way]))
            began = time.process_time()
            for push in pushes:
                push()
            spent += time.process_time() - began
            pushed += len(pushes) * _AT_ONCE[case.way]
        case.cpu.append(spent / pushed * 1e6)
        triples += int(pushed)
    case.results_per_triple = results / triples


def table(measured: Sequence[Case]) -> Table:
    made = Table("queries", title="microseconds of CPU time per triple")
    for count in dict.fromkeys(case.queries for case in measured):
        made.add_column(f"{count:,}", justify="right")
    for kind, way in dict.fromkeys((case.kind, case.way) for case in measured):
        mine = [case for case in measured if (case.kind, case.way) == (kind, way)]
        made.add_row(f"{kind}, {way}", *(f"{median(case.cpu):,.1f}" for case in mine))
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of("many", __doc__)
    add_rounds(parser, "rounds of a second")
    given = parser.parse_args(arguments)
    counts, seconds = ((1, 3), 0.001) if given.quick else (COUNTS, 1.0)
    measured = [Case(kind, way, count, seconds) for kind in KINDS for way in _AT_ONCE for count in counts]
    for case in measured:
        measure(case, rounds=1 if given.quick else given.rounds, filled=100 if given.quick else 20_000)
    Console().print(table(measured))
    figures = {"cases": [asdict(case) for case in measured]}
    found = taken_now("many", (__doc__ or "").split("\n\n")[0], figures, quick=given.quick)
    print(f"written to {found.write(folder_of(given))}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
