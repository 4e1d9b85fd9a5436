"""UNTIL REPLACED BY against its definition: each reading holds until the next one of its key, at most for some time."""

from __future__ import annotations

from random import Random

import pytest
from rdflib import XSD, Literal, URIRef, Variable

from cqels_py.algebra.nodes import Output
from tests.oracle.naive import Element
from tests.support.harness import run_engine

EX = "http://ex.org/"
END = 40


def held(readings: list[tuple[int, str, int]], within: int | None) -> set[tuple[str, int, int]]:
    """(key, value, second) for each second at which a reading stands."""
    found = set()
    for time, key, value in readings:
        following = min((t for t, k, _ in readings if k == key and t > time), default=END)
        last = following if within is None else min(following, time + within)
        found |= {(key, value, second) for second in range(time, max(last, time + 1))}
    return found


def changes(points: set[tuple[str, int, int]]) -> list[tuple[int, int, str, int]]:
    """Begins and ends at whole seconds before the end."""
    begun = [(s, 1, k, v) for k, v, s in points if (k, v, s - 1) not in points and s < END]
    return sorted(begun + [(s + 1, -1, k, v) for k, v, s in points if (k, v, s + 1) not in points and s + 1 < END])


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("within", [None, 1, 3, 10])
def test_a_reading_stands_until_the_next(seed: int, within: int | None) -> None:
    random = Random(seed)
    readings = sorted(
        {(random.randrange(END - 2), random.choice("ab"), random.randrange(3)) for _ in range(random.randint(1, 14))}
    )
    limit = "" if within is None else f"WITHIN {within}s"
    text = (
        f"PREFIX : <{EX}> RULES ON :s {{ RULE {{ ?s :level ?v }} UNTIL REPLACED BY ?s {limit} WHERE {{ ?s :reads ?v }} }} "
        "SELECT ?s ?v { STATE { ?s :level ?v } }"
    )
    elements = [element(time, key, "reads", value) for time, key, value in readings]
    elements.append(element(END, "clock", "says", 0))
    for batch in (1, None):
        found = [
            (result.time / 1_000_000, result.sign, *row(dict(result.mapping)))
            for result in run_engine(text, elements, None, batch, Output.CHANGELOG)
        ]
        assert sorted(each for each in found if each[0] < END) == changes(held(readings, within)), batch


def element(seconds: int, key: str, predicate: str, value: int) -> Element:
    number = Literal(str(value), datatype=XSD.integer)
    return Element(seconds * 1_000_000, URIRef(EX + "s"), ((URIRef(EX + key), URIRef(EX + predicate), number),))


def row(values: dict[Variable, object]) -> tuple[str, int]:
    key, value = values[Variable("s")], values[Variable("v")]
    return text_of(key).removeprefix(EX), int(text_of(value))


def text_of(term: object) -> str:
    return str(term[-1] if isinstance(term, tuple) else term)
