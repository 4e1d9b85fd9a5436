"""Examples with answers made by brute force elsewhere: what ISTREAM delivers, and what a changelog nets to, with lists and heaps."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime
from pathlib import Path

import pytest
import rdflib
from rdflib import RDF, XSD, Literal, URIRef

import cqels_py as cqels

EX = "http://ex.org/"
PLACES = [parent / "shared/data/seeds/patterns/examples.json" for parent in Path(__file__).parents]
FILE = next((place for place in PLACES if place.exists()), None)
EXAMPLES = [] if FILE is None else json.loads(FILE.read_text(encoding="utf-8"))
pytestmark = pytest.mark.skipif(FILE is None, reason="no examples beside the repository")


def term(value):
    if isinstance(value, int):
        return Literal(value)
    return RDF.type if value == "a" else URIRef(EX + value)


def shown(node):
    if isinstance(node, Literal):
        return int(node) if node.datatype == XSD.integer else str(node)
    return str(node).removeprefix(EX)


def micros(time):
    return round(datetime.fromisoformat(time).timestamp() * 1_000_000)


def net_changes(example, *, changelog, guarantee, batch):
    """The sum of the signs of each row at each time."""
    graph = rdflib.Graph()
    for triple in example.get("static") or []:
        graph.add(tuple(map(term, triple)))
    engine = cqels.Engine(batch=batch)
    static = [graph.serialize(format="nt").encode()] if len(graph) else []
    query = engine.register(example["query"], static=static, changelog=changelog, guarantee=guarantee)
    found = Counter()

    def take(result):
        row = frozenset((name, shown(value)) for name, value in result.bindings.items())
        found[result.time, row] += result.sign

    query.subscribe(take)
    for time, stream, triples in example["elements"]:
        engine.push(EX + stream, [tuple(map(term, triple)) for triple in triples], time=micros(time))
    engine.flush()
    return {change: count for change, count in found.items() if count}


def expected(example, *, changelog):
    found = Counter()
    for time, *sign, row, many in (
        [*each, 1] if isinstance(each[-1], dict) else each for each in example["changelog" if changelog else "rows"]
    ):
        found[micros(time), frozenset(row.items())] += many * (-1 if sign in ([-1], ["-"]) else 1)
    return {change: count for change, count in found.items() if count}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["name"])
def test_an_example(example):
    for changelog in (False, True):
        if ("changelog" if changelog else "rows") not in example:
            continue
        answer = expected(example, changelog=changelog)
        assert net_changes(example, changelog=changelog, guarantee=False, batch=3) == answer
        try:
            found = net_changes(example, changelog=changelog, guarantee=True, batch=1)
        except cqels.UnsupportedQuery as refusal:
            assert "guarantee=True" in str(refusal)
        else:
            assert found == answer
