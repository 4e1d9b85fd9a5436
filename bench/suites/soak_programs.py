"""Do steps of single elements stay right, and does their memory stay constant, while queries come and go without end?

    python -m bench.suites.soak_programs [--elements N] [--compared N] [--quick]

Elements with ever-new terms are pushed one by one to seven queries that stay, of a kind of operators each, and to up to four
others, one of which is registered or unregistered every 100 elements. Subscribers push elements in the middle, raise errors, and
unregister queries. The first elements (default 10,000) are also pushed to an engine whose steps are calls of single kernels: the
results of both have to be equal, in the same order. Resident memory, the dictionary's terms and bytes, and the number of records
are noted after each block. Memory is constant if it grows by at most a twentieth from the second quarter of the run to the last,
and records by a quarter, as queries are drawn that need more or fewer of them; otherwise, and where results differ, the exit status
is 1. Writes bench/results/soak_programs.json.
"""

from __future__ import annotations

import gc
import os
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from statistics import median

import cqels_py as cqels
from bench.suites.outcome import folder_of, parser_of, taken_now
from bench.suites.soak import MOST_GROWTH
from cqels_py.dataflow.step_program import CALLS
from cqels_py.kernels.primitives.state_record import ArrayTable
from cqels_py.suites import memory

ELEMENTS, COMPARED, QUICK = 200_000, 10_000, 2_000
_BLOCKS, _MOST_MORE_RECORDS = 16, 0.25
EX = "http://ex.org/"
_BEGIN, _APART = 1_700_000_000_000_000, 10_000
"""Microseconds."""
_A, _B = "STREAM :a [RANGE 1s] { ?k :a ?x }", "STREAM :b [RANGE 800ms] { ?k :b ?y }"
_CHAIN = f"{_A} STREAM :b [RANGE 300ms] {{ ?l :b ?x }} STREAM :a [RANGE 500ms] {{ ?l :a ?z }}"


def _over(body: str, columns: str, more: str = "") -> str:
    return f"PREFIX : <{EX}> SELECT {columns} {{ {body} }} {more}"


STAYING = (
    _over(f"{_A} FILTER(?x > 50)", "?k ?x"),
    _over(f"{_A} {_B}", "?k ?x ?y"),
    _over(f"{_A} OPTIONAL {{ {_B} }}", "?k ?x ?y"),
    _over(_CHAIN, "?k ?l ?z"),
    _over(f"{_A} {_B}", "?k (AVG(?x) AS ?mean) (MAX(?y) AS ?high)", "GROUP BY ?k"),
    _over(_A, "?k (COUNT(*) AS ?n) (SUM(?x) AS ?s)", "GROUP BY ?k"),
    _over("MATCH WITHIN 1s { EVENT ON :a { ?k :a ?x } SEQ EVENT ON :b { ?k :b ?y } }", "?k ?x ?y"),
)
COMING = (
    _over(f"{_A} FILTER(?x > LEAST)", "?k ?x"),
    _over(f"{_A} {_B} FILTER(?y > LEAST)", "DISTINCT ?k"),
    _over(f"{_CHAIN} FILTER(?z > LEAST)", "?k ?l"),
    _over(f"{_A} {_B} FILTER(?x > LEAST)", "?y (SUM(?x) AS ?s)", "GROUP BY ?y"),
)
_EVERY, _MOST_COMING = 100, 4


@dataclass(frozen=True)
class Sample:
    """After so many elements and seconds: megabytes, terms in the dictionary, and records for kernels."""

    elements: int
    seconds: float
    resident_mb: float
    terms: int
    dictionary_mb: float
    records: int


@dataclass
class Session:
    """An engine, its queries and subscribers. `digest`: of all results in the order of their delivery."""

    seed: int = 1
    results: int = 0
    pushed_within: int = 0
    raised: int = 0
    registered: int = 0
    unregistered: int = 0
    unregistered_within: int = 0
    digest: str = ""
    time: int = _BEGIN
    _coming: list[cqels.Query] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.engine = cqels.Engine(report=lambda _: None)
        self._drawn, self._hash = random.Random(self.seed), sha256()
        for text in STAYING:
            self._register(text)

    def _register(self, text: str) -> cqels.Query:
        number, self.registered = self.registered, self.registered + 1
        query = self.engine.register(text, changelog=True, name=f"q{number}")
        query.subscribe(lambda result: self._take(number, result))
        return query

    def _take(self, number: int, result: cqels.Result) -> None:
        self.results += 1
        told = number, result.number, result.time, result.sign, sorted(map(str, result.bindings.items()))
        self._hash.update(repr(told).encode())
        if number == 1 and self.results % 97 == 0:
            self.pushed_within += 1
            self._push("b", self.results % 100)
        if number == 2 and self.results % 89 == 0:
            self.raised += 1
            raise ValueError("of a subscriber")
        if number == 4 and self.results % 29 == 0 and len(self._coming) == _MOST_COMING:
            self.unregistered_within += 1
            self.engine.unregister(self._coming.pop())

    def _push(self, stream: str, value: int) -> None:
        key = (self.time - _BEGIN) // _APART // 100 * 20 + self._drawn.randrange(20)
        triple = f"<{EX}s{key}>", f"<{EX}{stream}>", f'"{value}"^^<http://www.w3.org/2001/XMLSchema#integer>'
        self.engine.push(f"{EX}{stream}", [triple], time=self.time)

    def push(self, number: int) -> None:
        """Push an element; now and then a query comes or goes before."""
        self.time += _APART
        if number % _EVERY == 0:
            self._come_or_go()
        # The subscriber's error: all others have got the results.
        with suppress(ValueError):
            self._push(self._drawn.choice("ab"), self._drawn.randrange(100))

    def _come_or_go(self) -> None:
        if len(self._coming) < _MOST_COMING and self._drawn.random() < 0.7:
            text = self._drawn.choice(COMING).replace("LEAST", str(self._drawn.randrange(100)))
            self._coming.append(self._register(text))
        elif self._coming:
            self.unregistered += 1
            self.engine.unregister(self._coming.pop(0))

    def close(self) -> None:
        """The end: `digest` is told."""
        self.digest = self._hash.hexdigest()


def compare(elements: int) -> bool:
    """Are the results of programs those of calls of single kernels?"""
    told = set[tuple[int, str]]()
    before = os.environ.get(CALLS)
    try:
        for mode in ("calls", "program"):
            os.environ[CALLS] = mode
            session = Session()
            for number in range(elements):
                session.push(number)
            session.close()
            told.add((session.results, session.digest))
    finally:
        if before is None:
            del os.environ[CALLS]
        else:
            os.environ[CALLS] = before
    return len(told) == 1


def soak(session: Session, elements: int) -> Iterator[Sample]:
    """The run, sample by sample."""
    started, block = time.perf_counter(), elements // _BLOCKS
    for number in range(elements):
        session.push(number)
        if number % block == block - 1:
            gc.collect()
            dictionary = session.engine.dictionary
            yield Sample(
                number + 1,
                round(time.perf_counter() - started, 3),
                round(memory.now(), 1),
                len(dictionary),
                round(dictionary.nbytes / 2**20, 2),
                sum(isinstance(each, ArrayTable) for each in gc.get_objects()),
            )
    session.close()


def _growth(of: Callable[[Sequence[float]], float], values: Sequence[float]) -> float:
    """That of this figure of a quarter, from the second to the last, relative to the former."""
    n = len(values)
    return of(values[3 * n // 4 :]) / of(values[n // 4 : n // 2]) - 1


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of("soak_programs", __doc__)
    parser.add_argument("--elements", type=int, metavar="N", help=f"default {ELEMENTS:,}")
    parser.add_argument("--compared", type=int, metavar="N", help=f"default {COMPARED:,}")
    given = parser.parse_args(arguments)
    elements = given.elements or (QUICK if given.quick else ELEMENTS)
    if elements < QUICK:
        parser.error(f"fewer than {QUICK:,} elements say nothing")
    compared = given.compared or min(COMPARED, elements)
    equal = compare(compared)
    session, samples = Session(), []
    for sample in soak(session, elements):
        samples.append(sample)
        print(f"{sample.elements:,} elements, {sample.seconds:.0f} s, {sample.resident_mb:.0f} MB", file=sys.stderr)
    more = _growth(median, [sample.resident_mb for sample in samples])
    # Queries come and go: there are as many at most.
    more_records = _growth(max, [sample.records for sample in samples])
    figures = {
        "elements": elements,
        "compared": compared,
        "equal": equal,
        "results": session.results,
        "registered": session.registered,
        "unregistered": session.unregistered,
        "unregistered_within": session.unregistered_within,
        "pushed_within": session.pushed_within,
        "raised": session.raised,
        "growth": round(more, 4),
        "growth_of_records": round(more_records, 4),
        "samples": [asdict(sample) for sample in samples],
    }
    outcome = taken_now("soak_programs", (__doc__ or "").split("\n\n")[0], figures, quick=given.quick)
    path = outcome.write(folder_of(given))
    print(
        f"{elements:,} elements, {session.results:,} results in {samples[-1].seconds:.0f} s; {session.registered} queries; "
        f"memory {more:+.1%}, records {more_records:+.1%} from the second quarter to the last; the first {compared:,} by calls: "
        f"{'equal' if equal else 'DIFFERENT'}"
    )
    print(f"written to {path}", file=sys.stderr)
    flat = more <= MOST_GROWTH and more_records <= _MOST_MORE_RECORDS
    return 0 if equal and (given.quick or flat) else 1


if __name__ == "__main__":
    sys.exit(main())
