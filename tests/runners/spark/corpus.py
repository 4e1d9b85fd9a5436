"""The queries of all scenarios and suites in Spark's stages, with the local answers at each tick.

    python -m tests.runners.spark.corpus [--elements N] [--seed S] [NAME …]

from the repository's root tries each query in 1, 2 and 5 parts, as results and as a changelog, with random micro-batches and with
random workers that have lost the state. NAME: a scenario, or scenario/query. A slice of this is in the check (test_corpus.py).
"""

from __future__ import annotations

import random
import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby, islice
from typing import Any

import pyarrow as pa
import rdflib
from rdflib import URIRef

from cqels_py.algebra.nodes import Output
from cqels_py.cli.demo import SCENARIOS
from cqels_py.distribution.stages import stages_of
from cqels_py.engine.compile import compile_query
from cqels_py.errors import UnsupportedQuery
from cqels_py.formats.times import time_of_text
from cqels_py.terms.rdf import to_rdflib
from tests.datasets import test_lsbench_queries as lsbench
from tests.datasets import test_srbench_queries as srbench
from tests.oracle.naive import Element, Static
from tests.runners.spark import simulation

PARTS = (1, 2, 5)
SUITES = ("srbench", "lsbench")
DAYS = 2
_PIECE = 1000
BEGINNINGS = {
    "flights/busiest-routes": "2013-01-02T18:30:00Z",
    "flights/gust-then-delays": "2013-01-01T20:50:00Z",
    "flights/lasting-wind": "2013-01-02T00:00:00Z",
    "flights/late-airlines": "2013-01-01T19:20:00Z",
    "flights/strong-wind": "2013-01-02T01:10:00Z",
    "patterns/card-fraud": "2024-01-01T08:30:00Z",
    "patterns/potassium": "2024-01-01T11:15:00Z",
    "taxi/earnings": "2013-01-02T16:00:00Z",
    "taxi/hot-areas": "2013-01-02T02:00:00Z",
    "taxi/no-cash-between": "2013-01-01T18:43:40Z",
    "taxi/tips-after-arrivals": "2013-01-02T16:30:00Z",
}
"""Where the elements of a query begin that has no results over the first ones: some hours before it has any."""
LEAST = {"taxi/earnings": 1_200, "taxi/hot-areas": 600}
"""The number of elements over which a query has results, if that is more than others need."""


@dataclass(frozen=True, slots=True)
class Case:
    """A query of a scenario or suite."""

    scenario: str
    name: str

    def __str__(self) -> str:
        return f"{self.scenario}/{self.name}"

    @property
    def text(self) -> str:
        if self.scenario == "srbench":
            return srbench.QUERIES[self.name]
        if self.scenario == "lsbench":
            return lsbench.QUERIES[self.name]
        return next(each for each in SCENARIOS if each.name == self.scenario).queries()[self.name]

    def data(self, count: int) -> tuple[Sequence[Element], Static]:
        """The first elements, and static data. `count`: at most so many, unless the query needs more for any result."""
        count = max(count, LEAST.get(str(self), 0))
        if self.scenario == "srbench":
            data = srbench.storms()
            return data.elements[:count], data.static
        if self.scenario == "lsbench":
            return lsbench.elements(self.name, lsbench.USERS)[:count], lsbench.network(lsbench.USERS)
        read = compile_query(self.text).plan.streams
        begin = time_of_text(BEGINNINGS.get(str(self), "1970-01-01"))
        elements = [each for each in elements_of(self.scenario, count, begin) if str(each.stream) in read]
        return elements[:count], static_of(self.scenario)


def cases() -> Iterator[Case]:
    for scenario in SCENARIOS:
        yield from (Case(scenario.name, name) for name in scenario.queries())
    yield from (Case("srbench", number) for number in srbench.NUMBERS)
    yield from (Case("lsbench", number) for number in lsbench.NUMBERS)


@cache
def elements_of(name: str, count: int, begin: int = 0) -> list[Element]:
    """The first of each stream of a scenario from an instant on, together by time."""
    scenario = next(each for each in SCENARIOS if each.name == name)
    found: list[Element] = []
    for iri, reader in scenario.dataset().streams(DAYS).items():
        rows = (row for row in _rows(reader) if row["time"] >= begin)
        groups = groupby(rows, key=lambda row: (row["time"], row.get("graph")))
        for (when, _), group in islice(groups, count):
            triples = tuple((to_rdflib(r["subject"]), to_rdflib(r["predicate"]), to_rdflib(r["object"])) for r in group)
            found.append(Element(when, URIRef(iri), triples))
    return sorted(found, key=lambda each: each.time)


def _rows(reader: pa.RecordBatchReader) -> Iterator[dict[str, Any]]:
    for batch in reader:
        for start in range(0, batch.num_rows, _PIECE):
            piece = pa.Table.from_batches([batch.slice(start, _PIECE)])
            times = piece["time"].cast(pa.int64())
            yield from piece.set_column(piece.schema.get_field_index("time"), "time", times).to_pylist()


@cache
def static_of(name: str) -> Static:
    scenario = next(each for each in SCENARIOS if each.name == name)
    graph = rdflib.Graph().parse(data=scenario.dataset().static(), format="turtle")
    return Static(tuple(graph), {})


def check(case: Case, parts: int, *, changelog: bool, count: int, seed: int) -> int:
    """The number of results, if they are the local ones. UnsupportedQuery for a query that Spark refuses."""
    chance = random.Random(f"{case} {parts} {seed}")
    text = case.text
    elements, static = case.data(count)
    elements = simulation.in_spark_order(elements, compile_query(text).plan.streams)
    times = [each.time for each in elements]
    # An element with the time of the one before it, in a later micro-batch, would come after others of that time.
    places = [n for n in range(1, len(times)) if times[n] > times[n - 1]]
    cuts = sorted(chance.sample(places, min(len(places), chance.randrange(7))))
    found = simulation.run(
        text,
        elements,
        static,
        changelog=changelog,
        cuts=cuts,
        tasks=1,
        parts=parts,
        seed=chance.randrange(9),
        solutions=True,
    )
    wanted = simulation.expected(text, elements, static, Output.CHANGELOG if changelog else None)
    assert found == wanted, f"{case} in {parts} parts: {found - wanted} instead of {wanted - found}"
    return found.total()


def parts_in_words(text: str, parts: int) -> str:
    """How many parts a query has, or why it has only one."""
    first = stages_of(compile_query(text).plan, parts)[0]
    return f"{first.parts} parts" if first.parts > 1 else f"one part: {first.reason}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--elements", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    wrong = 0
    for case in cases():
        if given.names and not {str(case), case.scenario} & set(given.names):
            continue
        began, told = time.process_time(), []
        for changelog in (False, True):
            for parts in PARTS:
                try:
                    told.append(f"{check(case, parts, changelog=changelog, count=given.elements, seed=given.seed)}")
                except UnsupportedQuery as error:
                    told.append(f"refused ({error})")
                except AssertionError as error:
                    wrong += 1
                    told.append(f"WRONG: {error}"[:400])
        if set(told) == {"0"}:
            told.append("(nothing was compared)")
        how = parts_in_words(case.text, PARTS[-1])
        print(
            f"{case}: {' '.join(dict.fromkeys(told))} results; {how}; {time.process_time() - began:.1f} s", flush=True
        )
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
