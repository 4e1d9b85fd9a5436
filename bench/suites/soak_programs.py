"""Do steps of single elements stay right, and does their memory stay constant, while queries come and go without end?

    python -m bench.suites.soak_programs [--minutes N] [--rounds N] [--seed N] [--quick]

Four engines get elements with ever-new terms one by one, and now and then a table of some: one has one query at a time, one up to
six, one waits for elements that are late, one has a checkpoint and is closed and made anew. Their queries are drawn of all kinds
that programs know (drawn_queries.py), and come and go. Subscribers push elements in the middle, raise errors, and unregister
queries. Each engine has a twin whose steps are calls of single kernels: the results of both have to be equal, in the same order,
after each round of 100 elements. In each round the oracle of the tests also answers a query over a few elements at every tick.
Resident memory, terms and records are noted between rounds. Memory is constant if it grows by at most a twentieth from the second
quarter of the run to the last, and at most 150 records are left once there are no queries, those of work memory that the programs
of an engine share; otherwise, and where results differ, the exit status is 1. Writes bench/results/soak_programs.json.
"""

from __future__ import annotations

import gc
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
from rdflib import Literal, URIRef

import cqels_py as cqels
from bench.suites.drawn_queries import EX, DrawnQuery, drawn_query
from bench.suites.outcome import folder_of, parser_of, taken_now
from bench.suites.soak import MOST_GROWTH
from cqels_py.algebra.nodes import Output
from cqels_py.dataflow.step_program import CALLS
from cqels_py.kernels.primitives.state_record import ArrayTable
from cqels_py.suites import memory
from tests.oracle.naive import Element
from tests.oracle.naive_algebra import TooManyPairs
from tests.support.harness import assert_engine_right

MINUTES, QUICK_ROUNDS = 10.0, 8
_ELEMENTS, _ASKED_OF_THE_ORACLE = 100, 25
_MOST_SAMPLES, _MOST_RECORDS_LEFT = 400, 150
_BEGIN, _MILLISECOND = 1_700_000_000_000_000, 1_000
_LATENESS = 50
"""Milliseconds."""
_INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
Pushed = tuple[str, list[tuple[str, str, str]], int]
"""Stream, triples and time of an element."""


@dataclass(frozen=True)
class Kind:
    """Of an engine: at most so many queries at a time, for up to so many rounds each."""

    name: str
    queries: int
    rounds: int
    late: bool = False
    durable: bool = False


KINDS = (
    Kind("alone", 1, 2),
    Kind("beside others", 6, 40),
    Kind("late", 3, 8, late=True),
    Kind("durable", 3, 16, durable=True),
)


@dataclass(frozen=True)
class Sample:
    """After so many rounds and seconds: megabytes, terms in the dictionaries, queries, and records for kernels."""

    rounds: int
    seconds: float
    resident_mb: float
    terms: int
    queries: int
    records: int


@dataclass
class Totals:
    """Of all engines whose steps are programs."""

    results: int = 0
    registered: int = 0
    pushed_within: int = 0
    raised: int = 0
    unregistered_within: int = 0
    restarts: int = 0


@contextmanager
def steps_by(way: str) -> Iterator[None]:
    """Steps of queries that are registered or begin meanwhile are done this way: "calls" or "program"."""
    before = os.environ.get(CALLS)
    os.environ[CALLS] = way
    try:
        yield
    finally:
        if before is None:
            del os.environ[CALLS]
        else:
            os.environ[CALLS] = before


def elements(draw: random.Random, after: int, count: int, number: int) -> list[Pushed]:
    """So many elements after an instant; keys and some values are new in each round, whose `number` this is."""
    found, at = list[Pushed](), after
    for _ in range(count):
        at += draw.choice((0, 5, 10, 10, 10, 20, 20, 100, 400)) * _MILLISECOND
        stream = draw.choice("ab")
        triples = [_triple(draw, stream, number) for _ in range(draw.choice((1, 1, 1, 2, 3)))]
        found.append((EX + stream, triples if draw.random() > 0.03 else [], at))
    return found


def _triple(draw: random.Random, stream: str, number: int) -> tuple[str, str, str]:
    key, predicate = f"<{EX}s{number}/{draw.randrange(12)}>", draw.choice((stream, stream, stream, "other", "to"))
    if predicate == "to":
        return key, f"<{EX}to>", f"<{EX}s{number}/{draw.randrange(12)}>"
    text = f'"{draw.randrange(100)}"^^<{_INTEGER}>' if draw.random() > 0.03 else f'"note {number} {draw.random()}"'
    return key, f"<{EX}{predicate}>", text


@dataclass
class Registered:
    """A query of a session, by its number there."""

    number: int
    asked: DrawnQuery
    query: cqels.Query
    results: int = 0


class Session:
    """An engine, its queries and subscribers. `found`: the results of a round, by their query and in its order."""

    def __init__(self, kind: Kind, seed: int, folder: Path) -> None:
        self._kind, self._draw, self._folder = kind, random.Random(seed), folder
        self.totals, self._queries, self._time, self._rounds = Totals(), list[Registered](), _BEGIN, 0
        self._is_restarting = False
        self.found: list[tuple[Any, ...]] = []
        self.engine = self._new()

    def _new(self) -> cqels.Engine:
        options: dict[str, Any] = {"checkpoint": self._folder, "durable": "off"} if self._kind.durable else {}
        lateness = f"{_LATENESS}ms" if self._kind.late else 0
        return cqels.Engine(report=lambda _: None, lateness=lateness, **options)

    @property
    def texts(self) -> list[str]:
        """Those of its queries."""
        return [each.asked.text for each in self._queries]

    def round(self) -> None:
        """Queries come and go, and the next elements are pushed."""
        self.found.clear()
        self._rounds += 1
        draw = self._draw
        self._queries = [each for each in self._queries if not self._goes(each)]
        while not self._queries or (len(self._queries) < self._kind.queries and draw.random() < 0.6):
            self.totals.registered += 1
            self._register(self.totals.registered, drawn_query(draw))
        pushed = elements(draw, self._time, _ELEMENTS, self._rounds)
        if self._kind.late:
            pushed.sort(key=lambda each: each[2] + draw.randrange(2 * _LATENESS) * _MILLISECOND)
        for each in pushed:
            self._push(each)
        if self._kind.durable and self._rounds % 5 == 0:
            self._restart()
        self.found.sort()

    def _goes(self, each: Registered) -> bool:
        if self._draw.random() * self._kind.rounds > 1:
            return False
        if each.query in self.engine.queries:
            self.engine.unregister(each.query)
        return True

    def _register(self, number: int, asked: DrawnQuery, results: int = 0) -> Registered:
        query = self.engine.register(asked.text, changelog=asked.changelog, name=f"q{number}")
        mine = Registered(number, asked, query, results)
        self._queries.append(mine)
        query.subscribe(lambda result: self._take(mine, result), from_number=results + 1)
        return mine

    def _push(self, element: Pushed) -> None:
        stream, triples, at = element
        self._time, chance = max(self._time, at), self._draw.random()
        if not self._is_read(stream):
            return
        # A subscriber's error: all others have got the results.
        with suppress(ValueError):
            if chance < 0.02 and triples:
                self.engine.push_batch(stream, _table(triples, at))
            else:
                self.engine.push(stream, triples, time=at)
        if chance > 0.97 and not self._kind.late:
            self._time += self._draw.choice((1, 300 * _MILLISECOND))
            with suppress(ValueError):
                self.engine.advance(self._time)

    def _is_read(self, stream: str) -> bool:
        return any(stream in each.streams for each in self.engine.queries)

    def _take(self, mine: Registered, result: cqels.Result) -> None:
        mine.results = result.number
        bindings = sorted(map(str, result.bindings.items()))
        self.found.append((mine.number, result.time, result.number, result.sign, str(result.boolean), bindings))
        self.totals.results += 1
        # A subscriber gets the results that it has missed by its error when it subscribes anew.
        if not self._is_restarting:
            self._disturb(self.totals.results)

    def _disturb(self, nth: int) -> None:
        """Do in the middle of a step as subscribers may, at some results."""
        if nth % 97 == 0:
            self.totals.pushed_within += 1
            stream = self._draw.choice("ab")
            if self._is_read(EX + stream):
                self.engine.push(EX + stream, [_triple(self._draw, stream, self._rounds)], time=self._time)
        if nth % 89 == 0:
            self.totals.raised += 1
            raise ValueError("of a subscriber")
        if nth % 499 == 0:
            self.totals.unregistered_within += 1
            self.engine.unregister(self._draw.choice(self.engine.queries))

    def _restart(self) -> None:
        """The engine is closed, and another one goes on from its folder."""
        self.totals.restarts += 1
        self._is_restarting = True
        self.engine.close()
        before, self._queries, there = self._queries, [], self.engine.queries
        self.engine = self._new()
        for each in before:
            if each.query in there:
                self._register(each.number, each.asked, each.results)
        self._is_restarting = False

    def end(self) -> None:
        """There are no more queries."""
        self._queries.clear()
        for query in self.engine.queries:
            self.engine.unregister(query)


def _table(triples: Sequence[tuple[str, str, str]], at: int) -> pa.Table:
    subject, predicate, object_ = map(list, zip(*triples, strict=True))
    return pa.table({"time": [at] * len(triples), "subject": subject, "predicate": predicate, "object": object_})


@dataclass
class Difference:
    """Where results differ: the kind of engine, or the oracle, the round, the queries' texts, and the first that differ."""

    where: str
    round: int
    texts: list[str]
    results: list[str]


@dataclass
class Soak:
    """The engines, each with its twin, from round to round. `differences`: what they have found."""

    seed: int
    folder: Path
    differences: list[Difference] = field(default_factory=list)
    asked_of_the_oracle: int = 0

    def __post_init__(self) -> None:
        self._records_before = _records()
        self.rounds, self._draw = 0, random.Random(self.seed)
        self._pairs = [self._pair(kind, self.seed + number) for number, kind in enumerate(KINDS)]

    def _pair(self, kind: Kind, seed: int) -> dict[str, Session]:
        """A session by each way of steps."""
        return {way: Session(kind, seed, self.folder / f"{kind.name} {way}") for way in ("calls", "program")}

    def round(self) -> None:
        """The next round of all engines, and a query for the oracle."""
        self.rounds += 1
        for kind, pair in zip(KINDS, self._pairs, strict=True):
            for way, session in pair.items():
                with steps_by(way):
                    session.round()
            self._compare(kind, pair["calls"], pair["program"])
        self._ask_the_oracle()

    def _compare(self, kind: Kind, calls: Session, program: Session) -> None:
        if calls.found != program.found:
            pairs = zip([*calls.found, None], [*program.found, None], strict=False)
            first = next(each for each in pairs if each[0] != each[1])
            self.differences.append(Difference(kind.name, self.rounds, program.texts, [*map(str, first)]))

    def _ask_the_oracle(self) -> None:
        asked = drawn_query(self._draw)
        if asked.rules:
            return
        pushed = [each for each in elements(self._draw, _BEGIN, _ASKED_OF_THE_ORACLE, self.rounds) if _has(asked, each)]
        with steps_by("program"), suppress(TooManyPairs):
            try:
                assert_engine_right(
                    asked.text, [*map(_as_asked, pushed)], output=Output.CHANGELOG if asked.changelog else None, batches=(1,)
                )  # fmt: skip
            except AssertionError as error:
                self.differences.append(Difference("the oracle", self.rounds, [asked.text], [str(error)]))
            self.asked_of_the_oracle += 1

    @property
    def totals(self) -> Totals:
        """Those of all engines whose steps are programs."""
        found = [asdict(pair["program"].totals) for pair in self._pairs]
        return Totals(**{name: sum(each[name] for each in found) for name in found[0]})

    def end(self) -> int:
        """Unregister all queries; returns how many records for kernels are left."""
        for session in (session for pair in self._pairs for session in pair.values()):
            session.end()
        return _records() - self._records_before

    def sample(self, started: float) -> Sample:
        """Now, in a run that began at `started`, by the clock of performance."""
        records = _records()
        engines = [session.engine for pair in self._pairs for session in pair.values()]
        return Sample(
            self.rounds,
            round(time.perf_counter() - started, 3),
            round(memory.now(), 1),
            sum(len(engine.dictionary) for engine in engines),
            sum(len(engine.queries) for engine in engines),
            records,
        )


def _records() -> int:
    """How many records for kernels there are."""
    gc.collect()
    return sum(isinstance(each, ArrayTable) for each in gc.get_objects())


def _has(asked: DrawnQuery, element: Pushed) -> bool:
    """Does the query read the element's stream?"""
    return f":{element[0][-1]} " in asked.text


def _as_asked(pushed: Pushed) -> Element:
    """The element as the oracle has it."""
    stream, triples, at = pushed
    return Element(at, URIRef(stream), tuple((URIRef(s[1:-1]), URIRef(p[1:-1]), _object(o)) for s, p, o in triples))


def _object(text: str) -> URIRef | Literal:
    if text.startswith("<"):
        return URIRef(text[1:-1])
    return Literal(text.split('"')[1], datatype=URIRef(_INTEGER) if _INTEGER in text else None)


def run(soak: Soak, *, seconds: float, rounds: int | None) -> Iterator[Sample]:
    """Rounds until so many seconds or rounds are over, or results differ; samples in between."""
    started = last = time.perf_counter()
    while not soak.differences:
        soak.round()
        now = time.perf_counter()
        over = now - started >= seconds if rounds is None else soak.rounds >= rounds
        if over or now - last >= seconds / _MOST_SAMPLES:
            yield soak.sample(started)
            last = now
        if over:
            return


def _growth(values: Sequence[float]) -> float:
    """That of the median of a quarter, from the second to the last, relative to the former; 0 for a few values."""
    n = len(values)
    return median(values[3 * n // 4 :]) / median(values[n // 4 : n // 2]) - 1 if n >= 4 else 0.0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of("soak_programs", __doc__)
    parser.add_argument("--minutes", type=float, default=MINUTES, metavar="N", help=f"default {MINUTES:g}")
    parser.add_argument("--rounds", type=int, metavar="N", help="so many rounds instead")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of all that is drawn; default 1")
    given = parser.parse_args(arguments)
    rounds = given.rounds or (QUICK_ROUNDS if given.quick else None)
    samples = []
    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(given.seed, Path(folder))
        for sample in run(soak, seconds=60 * given.minutes, rounds=rounds):
            samples.append(sample)
            if len(samples) % 20 == 0:
                print(f"{sample.rounds:,} rounds, {sample.seconds:.0f} s, {sample.resident_mb:.0f} MB", file=sys.stderr)
        left = soak.end()
    more = _growth([sample.resident_mb for sample in samples])
    figures = {
        "rounds": soak.rounds,
        "elements": soak.rounds * _ELEMENTS * len(KINDS),
        "asked_of_the_oracle": soak.asked_of_the_oracle,
        "differences": [asdict(each) for each in soak.differences],
        **asdict(soak.totals),
        "growth": round(more, 4),
        "records_left": left,
        "samples": [asdict(sample) for sample in samples],
    }
    outcome = taken_now("soak_programs", (__doc__ or "").split("\n\n")[0], figures, quick=given.quick)
    path = outcome.write(folder_of(given))
    for each in soak.differences:
        print(f"results DIFFER in round {each.round}, {each.where}:", *each.texts, *each.results, sep="\n")
    print(
        f"{soak.rounds:,} rounds of {_ELEMENTS * len(KINDS)} elements, {figures['results']:,} results of {figures['registered']:,} "
        f"queries as by calls, {soak.asked_of_the_oracle:,} queries as by the oracle; "
        f"memory {more:+.1%} from the second quarter to the last, {left} records left without queries"
    )
    print(f"written to {path}", file=sys.stderr)
    flat = more <= MOST_GROWTH and left <= _MOST_RECORDS_LEFT
    return 0 if not soak.differences and (given.quick or flat) else 1


if __name__ == "__main__":
    sys.exit(main())
