"""Published programs as RULES and STATE: the changelogs and rows that they derive."""

from __future__ import annotations

import json
import os
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from rdflib import RDF, XSD, Literal, URIRef, Variable

from cqels_py.algebra.nodes import Output
from tests.oracle.naive import Element, Static
from tests.support.harness import run_engine

DATA = Path(os.environ.get("CQELS_SHARED_DATA", Path(__file__).parents[3] / "shared" / "data"))
EXAMPLES = DATA / "seeds" / "rules" / "examples.json"
"""They are not part of the repository."""
EX = "http://ex.org/"


def term(value: Any) -> URIRef | Literal:
    if isinstance(value, int):
        return Literal(str(value), datatype=XSD.integer)
    return URIRef(EX + value)


def triple(values: list[Any]) -> tuple[Any, ...]:
    subject, predicate, object_ = values
    return URIRef(EX + subject), RDF.type if predicate == "a" else URIRef(EX + predicate), term(object_)


def micros(text: str) -> int:
    moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return int(moment.timestamp()) * 1_000_000 + moment.microsecond


def elements_of(example: dict[str, Any]) -> list[Element]:
    found = [Element(micros(t), URIRef(EX + s), tuple(map(triple, triples))) for t, s, triples in example["elements"]]
    return sorted(found, key=lambda element: element.time)


def row(bindings: dict[str, Any]) -> frozenset[tuple[Variable, Any]]:
    return frozenset((Variable(name), term(value)) for name, value in bindings.items())


def cases() -> list[Any]:
    if not EXAMPLES.exists():
        return []
    return [
        pytest.param(example, asked, id=f"{example['name']}-{number}")
        for example in json.loads(EXAMPLES.read_text())
        for number, asked in enumerate(example["queries"])
    ]


@pytest.mark.skipif(not EXAMPLES.exists(), reason="set CQELS_SHARED_DATA to the folder with seeds/rules")
@pytest.mark.parametrize(("example", "asked"), cases())
def test_published_examples(example: dict[str, Any], asked: dict[str, Any]) -> None:
    elements, static = elements_of(example), Static(tuple(map(triple, example["static"])))
    horizon = micros(example["horizon"])
    for batch in (1, 3, None):
        if "rows" in asked:
            found = run_engine(asked["query"], elements, static, batch)
            expected = Counter((micros(time), row(bindings)) for time, bindings in asked["rows"])
            assert Counter((r.time, r.mapping) for r in found if r.time < horizon) == expected, batch
        else:
            found = run_engine(asked["query"], elements, static, batch, Output.CHANGELOG)
            expected_changes = Counter(
                (micros(time), 1 if sign == "+" else -1, row(bindings)) for time, sign, bindings in asked["changelog"]
            )
            assert Counter((r.time, r.sign, r.mapping) for r in found if r.time < horizon) == expected_changes, batch
