"""LSBench's queries against the oracle, on short streams of a small network; each acts at the pace at which its windows matter."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import pytest

from cqels_py.datasets import lsbench
from tests.oracle.naive import Element, Static
from tests.support.harness import assert_engine_right, parse
from tests.support.sampled import assert_right_at_ends, elements_of, static_of

USERS = 25
FEW = 12
"""The number of users, where the oracle answers at every tick."""
FIRST = 60
"""Elements, likewise."""
QUERIES = {
    entry.name.removesuffix(".rq"): entry.read_text(encoding="utf-8")
    for entry in (files("cqels_py.queries") / "lsbench").iterdir()
    if entry.name.endswith(".rq")
}
NUMBERS = sorted(QUERIES)


@dataclass(frozen=True, slots=True)
class Run:
    """The length and pace of the streams, and the number of instants between two comparisons with the oracle."""

    triples: int
    pace: float
    every: int


SECONDS = Run(6_000, 8.0, 6)
"""An element every half a second: windows of up to 15 seconds hold some and lose them."""
HOURS = Run(6_000, 0.1, 20)
"""An element every 20 seconds; in ten hours windows of minutes and of two hours empty and fill."""
DAYS = Run(6_000, 0.016, 20)
"""Two days and a half."""
RUNS = {
    "01": SECONDS,
    "02": SECONDS,
    "03": SECONDS,
    "04": SECONDS,
    "05": DAYS,
    "06": Run(6_000, 0.1, 40),
    "07": Run(6_000, 0.016, 40),
    "08": DAYS,
    "09": Run(4_000, 0.1, 40),
    "10": SECONDS,
    "11": HOURS,
    "12": HOURS,
}


@cache
def network(users: int) -> Static:
    return static_of(lsbench.static(users=users))


@cache
def everything(run: Run, users: int) -> list[Element]:
    """Of all streams, in the order of time. Fewer users each do more."""
    streams = lsbench.streams(run.triples, users=users, pace=run.pace * USERS / users)
    made = [element for iri, batches in streams.items() for element in elements_of(iri, batches.read_all())]
    return sorted(made, key=lambda element: element.time)


def elements(number: str, users: int) -> list[Element]:
    """The data that the query reads."""
    reads = {window.stream for window in parse(QUERIES[number]).windows}
    return [element for element in everything(RUNS[number], users) if element.stream in reads]


def test_all_twelve_are_there() -> None:
    assert [f"{number:02}" for number in range(1, 13)] == NUMBERS == sorted(RUNS)


@pytest.mark.parametrize("number", NUMBERS)
def test_headers_describe_question_and_decisions(number: str) -> None:
    header = [line for line in QUERIES[number].splitlines() if line.startswith("#")]
    assert QUERIES[number].startswith(header[0])
    for word in ("Dialect: CQELS-QL. Operators: ", "Windows: ", "Results: ", "Decided: "):
        assert any(line.startswith(f"# {word}") for line in header)


@pytest.mark.parametrize("number", NUMBERS)
def test_every_tick_at_any_batch_size(number: str) -> None:
    assert_engine_right(QUERIES[number], elements(number, FEW)[:FIRST], network(FEW), batches=(1, 7, None))


@pytest.mark.parametrize("number", NUMBERS)
def test_windows_fill_and_empty(number: str) -> None:
    """The oracle's answers; each query finds something, and not the same all the time."""
    run = RUNS[number]
    ticks = assert_right_at_ends(QUERIES[number], elements(number, USERS), network(USERS), run.every, batch=50)
    assert len({frozenset(tick.answer.items()) for tick in ticks if tick.answer}) > 1
