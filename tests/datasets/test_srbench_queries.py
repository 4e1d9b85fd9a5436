"""SRBench's queries against the oracle, on short streams in which all of their storms, faults and silences happen."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import pytest

from cqels_py.algebra.nodes import Output
from cqels_py.datasets import srbench
from tests.oracle import naive
from tests.oracle.naive import Element, Static
from tests.support.harness import assert_engine_right, parse, run_engine
from tests.support.sampled import assert_right_at_ends, elements_of, ends, static_of

QUERIES = {
    entry.name.removesuffix(".rq"): entry.read_text(encoding="utf-8")
    for entry in (files("cqels_py.queries") / "srbench").iterdir()
    if entry.name.endswith(".rq")
}
NUMBERS = sorted(QUERIES)


@dataclass(frozen=True, slots=True)
class Run:
    """A stream and its static data, and the number of instants between two comparisons with the oracle."""

    elements: list[Element]
    static: Static
    every: int


@cache
def storms() -> Run:
    """Five hours in which the weather of 20 passes: a hurricane and a blizzard."""
    return run(4_000, 3, stations=12, minutes=60, pace=4.0)


@cache
def two_days() -> Run:
    """Long enough for data to expire after a day."""
    return run(3_500, 18, stations=4, minutes=240, pace=1.0)


@cache
def two_stations() -> Run:
    """Short enough to ask the oracle at every tick."""
    return run(500, 1, stations=2, minutes=30, pace=8.0)


def run(triples: int, every: int, *, stations: int, minutes: int, pace: float) -> Run:
    table = srbench.streams(triples, seed=6, stations=stations, minutes=minutes, pace=pace)[srbench.OBSERVATIONS]
    static = static_of(srbench.static(seed=6, stations=stations))
    return Run(elements_of(srbench.OBSERVATIONS, table.read_all()), static, every)


def test_all_seventeen_are_there() -> None:
    assert [f"{number:02}" for number in range(1, 18)] == NUMBERS


@pytest.mark.parametrize("number", NUMBERS)
def test_headers_describe_question_and_decisions(number: str) -> None:
    header = [line for line in QUERIES[number].splitlines() if line.startswith("#")]
    assert QUERIES[number].startswith(header[0])
    for word in ("Dialect: CQELS-QL. Operators: ", "Windows: ", "Results: "):
        assert any(line.startswith(f"# {word}") for line in header)


@pytest.mark.parametrize("number", NUMBERS)
def test_storms(number: str) -> None:
    """The oracle's answers; each query finds something, and not the same all the time."""
    text, data = QUERIES[number], storms()
    ticks = assert_right_at_ends(text, data.elements, data.static, data.every)
    assert len({frozenset(tick.answer.items()) for tick in ticks}) > 1
    if parse(text).form != "ASK":
        assert any(tick.answer for tick in ticks)


@pytest.mark.parametrize("number", ["07", "08", "09", "10"])
def test_days(number: str) -> None:
    data = two_days()
    assert_right_at_ends(QUERIES[number], data.elements, data.static, data.every)


@pytest.mark.parametrize("number", NUMBERS)
def test_every_tick(number: str) -> None:
    data = two_stations()
    assert_engine_right(QUERIES[number], data.elements, data.static, batches=(1, 7, None))


def test_the_oracle_is_compared_at_the_end() -> None:
    """Of each instant's ticks the last, up to the last of all."""
    query, elements = parse(QUERIES["01"]), two_stations().elements
    moments = naive.moments(query, naive.relevant(query, elements))
    asked = ends(query, elements, 3)
    assert asked[-1] == moments[-1]
    assert len(asked) == -(-len({moment.time for moment in moments}) // 3)


@pytest.mark.parametrize("number", NUMBERS)
def test_batches_make_no_difference(number: str) -> None:
    data = storms()
    whole, sevens = (run_engine(QUERIES[number], data.elements, data.static, n, Output.CHANGELOG) for n in (None, 7))
    assert sorted(map(str, whole)) == sorted(map(str, sevens))
