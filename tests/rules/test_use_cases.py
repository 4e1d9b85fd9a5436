"""The use cases of docs/rules.md, run on small streams."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from rdflib import RDF, XSD, Literal, URIRef

from cqels_py.algebra.nodes import Output
from tests.oracle.naive import Element, Static
from tests.support.harness import run_engine

PAGE = Path(__file__).parents[2] / "docs" / "rules.md"
QUERIES = re.findall(r"```sparql\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
EX = "http://ex.org/"
MINUTE, DAY = 60, 86_400


def triple(subject: str, predicate: str, value: str | int) -> tuple[Any, ...]:
    object_ = URIRef(EX + value) if isinstance(value, str) else Literal(str(value), datatype=XSD.integer)
    return URIRef(EX + subject), RDF.type if predicate == "a" else URIRef(EX + predicate), object_


def element(seconds: int, stream: str, *triples: tuple[Any, ...]) -> Element:
    return Element(seconds * 1_000_000, URIRef(EX + stream), triples)


def speeds(vehicle: str, *values: int) -> list[Element]:
    return [element(second, "vehicles", triple(vehicle, "speed", value)) for second, value in enumerate(values)]


NETWORK = [element(s, "network", triple("s", "a", "Signal"), triple("n1", "monitors", "s")) for s in range(9)]
VITALS = [element(m * MINUTE, "vitals", triple("p", "temperature", 39)) for m in range(0, 71, 10)]
PULSE = element(50 * MINUTE, "vitals", triple("p", "pulse", 95))
PAYMENTS = [
    element(0, "payments", triple("x", "a", "Listed")),
    element(3 * DAY, "payments", triple("x", "pays", "y")),
    element(9 * DAY, "payments", triple("y", "pays", "z")),
    element(10 * DAY, "payments", triple("x", "pays", "v")),
    element(20 * DAY, "payments", triple("z", "pays", "w")),
]
CASES = {
    # A flag is a point in time, as monitoring is told each second; the relay monitors until three seconds after the last one.
    "Signal": (
        NETWORK,
        [("n2", 4.0, 11.000001)],
        Static((triple("n2", "connected", "n1"), triple("n2", "a", "Relay"))),
    ),
    "ShortStop": (
        [*speeds("v1", 5, 0, 0, 4), *speeds("v2", 5, 0, 0, 0, 0, 0, 0, 0, 3)],
        [("v1", 3.0, 3.000001)],
        Static(),
    ),
    "Alerted": ([*VITALS, PULSE], [("w3", 3600.0, 4800.000001)], Static((triple("p", "ward", "w3"),))),
    "Exposed": (
        PAYMENTS,
        [("x", 0.0, 7 * DAY + 1e-6), ("y", 3.0 * DAY, 10 * DAY + 1e-6), ("z", 9.0 * DAY, 16 * DAY + 1e-6)],
        Static(),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_use_cases(name: str) -> None:
    elements, expected, static = CASES[name]
    (text,) = [query for query in QUERIES if f":{name}" in query]
    end = element(30 * DAY, str(elements[0].stream).removeprefix(EX), triple("clock", "says", "end"))
    ordered = [*sorted(elements, key=lambda each: each.time), end]
    for batch in (1, 4, None):
        found = [
            (str(term[-1] if isinstance(term, tuple) else term).removeprefix(EX), r.time / 1_000_000, r.sign)
            for r in run_engine(text, ordered, static, batch, Output.CHANGELOG)
            for variable, term in r.mapping
            if str(variable) != "signal"
        ]
        changes = [(x, time, sign) for x, first, last in expected for time, sign in ((first, 1), (last, -1))]
        assert sorted(found) == sorted(changes), batch
