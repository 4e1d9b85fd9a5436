"""Traces worked out by hand: tests/golden/NAME.trace through NAME.rq gives NAME.txt (times in seconds)."""

from __future__ import annotations

from pathlib import Path

from rdflib import Variable

from cqels_py.algebra import nodes
from tests.oracle import naive
from tests.oracle.naive import Element
from tests.support import traces

GOLDEN = Path(__file__).parent / "golden"
SECOND = 1_000_000


def golden_elements(name: str) -> list[Element]:
    text = "\n".join(_lines(f"{name}.trace"))
    return [Element(e.time * SECOND, e.stream, e.triples) for e in traces.elements(text)]


def golden_changes(name: str) -> list[str]:
    return sorted(
        f"{int(time) * SECOND} {rest}" for time, rest in (line.split(maxsplit=1) for line in _lines(f"{name}.txt"))
    )


def _lines(file: str) -> list[str]:
    return [line for line in (GOLDEN / file).read_text().splitlines() if line and not line.startswith("#")]


def figure8() -> nodes.ContinuousQuery:
    """figure8.rq's algebra, built by hand."""
    joined = nodes.Join(
        nodes.Join(traces.over("w1", "?x p ?y"), traces.over("w2", "?y q ?z")), traces.over("w3", "?z r ?v")
    )
    average = nodes.AggregateCall("AVG", nodes.VariableRef(Variable("v")))
    return traces.query(
        nodes.Group(joined, (Variable("x"),), ((Variable("avg"), average),)),
        "x avg",
        [
            traces.window("w1", "one", nodes.ElementCount(4)),
            traces.window("w2", "two", nodes.TimeRange(10 * SECOND)),
            traces.window("w3", "three", nodes.TimeRange(5 * SECOND)),
        ],
    )


def test_the_oracle_reproduces_figure_8() -> None:
    query = figure8()
    found = naive.output(query, naive.ticks(query, golden_elements("figure8")))
    assert sorted(traces.changes(found)) == golden_changes("figure8")
